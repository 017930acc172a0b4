# SPDX-License-Identifier: Apache-2.0
"""How a store stands on this machine: keys, anchor, policy, who can approve, modes of files.

It only looks. What cannot be found out is a fault among the others and no exception, so that
whoever has several things to repair is told all of them.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from sealpoint.api._key_changes import opened
from sealpoint.api._location import StorePlace, now
from sealpoint.api._policy import Approvers, who_can_approve
from sealpoint.config import Group, group_faults
from sealpoint.errors import DirectoryUnusable, SealpointError
from sealpoint.gate import Policies, Policy, policy_digest
from sealpoint.ledger import StoreChain
from sealpoint.signing import TrustPin
from sealpoint.store import Core

_Directory = str | os.PathLike[str] | None


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
    store: str | None
    """Its id; None if there is no pin to say it."""
    fingerprint: str | None
    """Of the pin, for people to compare."""
    keys: tuple[str, ...]
    """The identities whose private keys are here."""
    anchor: str | None
    """The directory of the anchor."""
    threads: int | None
    """How many threads the anchor knows."""
    roster: int | None
    """The number of the roster in force."""
    policy: str | None
    """The name of the policy in force in the namespace."""
    approvers: Approvers | None
    """Who can approve what it asks for."""
    group: str | None
    """The group that this user shares the store with."""
    faults: tuple[StatusFault, ...]

    @property
    def ok(self) -> bool:
        """Whether there is nothing to repair."""
        return not self.faults


def store_status(
    url: str,
    *,
    identity: str | None = None,
    namespace: str = "default",
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    secrets_dir: _Directory = None,
) -> StoreStatus:
    """Say how a store stands on this machine. Writes nothing, and opens no private key.

    Args:
        url: The store.
        identity: Who would open it: that their key is here, and safe, is looked at too.
        namespace: Whose policy and approvers to tell.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        secrets_dir: The directory of a mounted secret, as for `open_store`.

    Raises:
        UrlInvalid: The URL names no store on disk.
        StoreMisplaced: The store lies in the configuration or state directory.
    """
    place = StorePlace.find(
        url, config_dir=config_dir, state_dir=state_dir, secrets_dir=secrets_dir
    )
    faults: list[StatusFault] = []
    pin: TrustPin | None = None
    group: Group | None = None
    keys: tuple[str, ...] = ()
    try:
        group = place.files.group()
        pin = place.files.pin()
        keys = tuple(place.files.key_names())
    except SealpointError as error:
        faults.append(_fault(error))
    for name in sorted({*keys, *([] if identity is None else [identity])}):
        try:
            place.files.key_facts(name, mounted=True)
        except SealpointError as error:
            faults.append(_fault(error))
    anchor = None if pin is None else place.files.anchor_directory(pin.store)
    if group is not None and anchor is not None:
        faults += _mode_faults(place, group, anchor)
    threads = roster = policy = people = None
    if pin is not None:
        try:
            with opened(place, read_only=True) as core:
                chain = core.renewed_trust()
                threads = sum(1 for _ in core.anchor.slots()) - 1
                roster = chain.roster.seq
                policy = _policy(core, chain, namespace)
                people = who_can_approve(chain.roster, policy, namespace, now())
        except SealpointError as error:
            faults.append(_fault(error))
    return StoreStatus(
        url=str(place.url),
        store=None if pin is None else str(pin.store),
        fingerprint=None if pin is None else str(pin.fingerprint()),
        keys=keys,
        anchor=None if anchor is None else str(anchor),
        threads=threads,
        roster=roster,
        policy=None if policy is None else policy.name,
        approvers=people,
        group=None if group is None else group.name,
        faults=tuple(faults),
    )


def _policy(core: Core, chain: StoreChain, namespace: str) -> Policy | None:
    digest = policy_digest(chain.roster, namespace)
    return None if digest is None else Policies(core).get(digest)


def _mode_faults(place: StorePlace, group: Group, anchor: Path) -> list[StatusFault]:
    """What about the modes keeps members of the group out, or lets others in."""
    files = [anchor / "anchor.slots"]
    if place.url.backend.lies_as == "file":
        target = place.target()
        files += [Path(target), *(Path(target + end) for end in place.url.backend.beside)]
    directories = [place.files.state_dir, anchor.parent, anchor, place.directory()]
    return [
        StatusFault(
            code=DirectoryUnusable.code,
            exit_status=DirectoryUnusable.exit_status,
            message=message,
            repair=repair,
        )
        for message, repair in group_faults(group, directories, files)
    ]


def _fault(error: SealpointError) -> StatusFault:
    return StatusFault(
        code=error.code,
        exit_status=error.exit_status,
        message=error.message,
        repair=error.hint or "",
    )
