# SPDX-License-Identifier: Apache-2.0
"""How a store stands on this machine: keys, anchor, policy, who can approve, modes of files.

Faults are what has to be repaired before it can be used. Whether it is set up as production asks
for is another question: `checks.py` has the checklist of it, and `_doctor.py` answers it.

It only looks. What cannot be found out is a fault among the others and no exception, so that
whoever has several things to repair is told all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sealpoint.api._location import Directory, StoreLocation, now
from sealpoint.api._policy import Approvers, policy_in_force, who_can_approve
from sealpoint.config import (
    Group,
    Settings,
    StoreFiles,
    StoreUrl,
    group_faults,
    known_urls,
    load_settings,
    store_password,
)
from sealpoint.errors import DirectoryUnusable, SealpointError
from sealpoint.gate import Policy
from sealpoint.signing import TrustPin


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFault:
    """Something to repair."""

    code: str
    """As that of the error which it is or would be."""
    exit_status: int
    message: str
    repair: str
    """A command, or what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How a store stands on this machine."""

    url: str
    store: str | None = None
    """Its id; None if there is no pin to say it."""
    fingerprint: str | None = None
    """Of the pin, for people to compare."""
    keys: tuple[str, ...] = ()
    """The identities whose private keys are here."""
    anchor: str | None = None
    """The directory of this machine's anchor."""
    shared_anchor: str | None = None
    """The URL of the anchor that other machines ask too, if there is one."""
    threads: int | None = None
    """How many threads the anchor knows."""
    roster: int | None = None
    """The number of the roster in force."""
    policy: str | None = None
    """The name of the policy in force in the namespace."""
    asks: dict[str, tuple[str, ...]] | None = None
    """What it asks for before a run goes on, and by which rules."""
    approvers: Approvers | None = None
    """Who can approve what it asks for."""
    group: str | None = None
    """The group that this user shares the store with."""
    faults: tuple[StatusFault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is nothing to repair."""
        return not self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStore:
    """A store that this machine has files for."""

    url: str
    store: str | None = None
    """Its id, as the pin says; None if there is no pin."""
    keys: tuple[str, ...] = ()
    """The identities whose private keys are here."""
    anchor: bool = False
    """Whether its anchor is here."""
    data: bool | None = None
    """Whether there is something where the URL leads; None if that cannot be told."""
    fault: str = ""
    """Why no more is known."""


def known_stores(
    *, config_dir: Directory = None, state_dir: Directory = None
) -> tuple[KnownStore, ...]:
    """The stores that this machine has files for. Writes nothing, and opens no store and no key.

    Args:
        config_dir: Where keys and pins lie, instead of the user's configuration directory.
        state_dir: Where anchors lie, instead of the user's state directory.
    """
    settings = load_settings(config_dir=config_dir, state_dir=state_dir)
    return tuple(_known_store(settings, url) for url in known_urls(settings))


def _known_store(settings: Settings, text: str) -> KnownStore:
    found = KnownStore(url=text)
    try:
        url = StoreUrl.parse(text)
        files = StoreFiles.find(settings, url)
        found = replace(found, keys=tuple(files.keys.names()))
        found = replace(found, data=not url.is_vacant(url.target(), store_password(None)))
        store = files.pin().store
        anchor = files.anchor_directory(store).is_dir()
        return replace(found, store=str(store), anchor=anchor)
    except SealpointError as error:
        return replace(found, fault=error.message)


def check_status(location: StoreLocation, identity: str | None, namespace: str) -> StoreStatus:
    """Look at everything that has to be in order, whatever the outcome of each look."""
    files = location.files
    faults: list[StatusFault] = []
    found = StoreStatus(url=str(location.url))
    pin: TrustPin | None = None
    group: Group | None = None
    with _noting(faults):
        group = files.group()
        found = replace(found, group=None if group is None else group.name)
        shared = files.shared_anchor.url()
        found = replace(found, shared_anchor=None if shared is None else str(shared))
        pin = files.pin()
        found = replace(found, store=str(pin.store), fingerprint=str(pin.fingerprint()))
        found = replace(found, keys=tuple(files.keys.names()))
    for name in sorted({*found.keys, *(() if identity is None else (identity,))}):
        with _noting(faults):
            files.keys.facts(name, mounted=True)
    if pin is not None:
        anchor = files.anchor_directory(pin.store)
        found = replace(found, anchor=str(anchor))
        if group is not None:
            with _noting(faults):
                faults += _mode_faults(location, group)
        with _noting(faults), location.open_core(read_only=True) as core:
            chain = core.renewed_trust()
            threads = sum(1 for _ in core.anchor.slots()) - 1
            found = replace(found, threads=threads, roster=chain.roster.seq)
            policy = policy_in_force(core, chain, namespace)
            found = replace(
                found,
                policy=None if policy is None else policy.name,
                asks=_asks(policy),
                approvers=who_can_approve(chain.roster, policy, namespace, now()),
            )
    return replace(found, faults=tuple(faults))


@contextmanager
def _noting(faults: list[StatusFault]) -> Iterator[None]:
    """Note what went wrong in the block, and go on after it."""
    try:
        yield
    except SealpointError as error:
        faults.append(_fault(error))


def _asks(policy: Policy | None) -> dict[str, tuple[str, ...]]:
    """What a policy asks for, with the rules that do, the strictest first."""
    found: dict[str, tuple[str, ...]] = {}
    rules = {} if policy is None else policy.rules
    for measure in sorted({each for each in rules.values() if not each.passes}, reverse=True):
        found[str(measure)] = tuple(str(rule) for rule, each in rules.items() if each == measure)
    return found


def _mode_faults(location: StoreLocation, group: Group) -> list[StatusFault]:
    """What about the modes keeps members of the group out, or lets others in."""
    return [
        StatusFault(
            code=DirectoryUnusable.code,
            exit_status=DirectoryUnusable.exit_status,
            message=message,
            repair=repair,
        )
        for message, repair in group_faults(group, *location.shared_paths())
    ]


def _fault(error: SealpointError) -> StatusFault:
    return StatusFault(
        code=error.code,
        exit_status=error.exit_status,
        message=error.message,
        repair=error.hint or "",
    )
