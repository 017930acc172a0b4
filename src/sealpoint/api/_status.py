# SPDX-License-Identifier: Apache-2.0
"""How a store stands on this machine: keys, anchor, policy, who can approve, modes of files.

Faults are what has to be repaired. The checklist is what an operator of checkpoint storage answers
for: nothing in it is wrong by itself, such as a root key that still lies on the machine of a
developer.

It only looks. What cannot be found out is a fault among the others and no exception, so that
whoever has several things to repair is told all of them.
"""

import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sealpoint.api._key_list import KeyInfo, KeyListing, KeyStatus
from sealpoint.api._location import Directory, StoreLocation, now
from sealpoint.api._policy import Approvers, who_can_approve
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
from sealpoint.gate import Policies, Policy, policy_digest
from sealpoint.ledger import StoreChain
from sealpoint.signing import KeyFacts, Role, TrustPin
from sealpoint.store import Core


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFault:
    """Something to repair."""

    code: str
    """As that of the error which it is or would be."""
    exit_status: int
    message: str
    repair: str
    """A command, or what to do."""


_IN_A_DATABASE = "it lies in a database, whose server and grants say so"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCheck:
    """A line of the checklist: something that should be so in production, and whether it is."""

    name: str
    """What programs call it."""
    claim: str
    holds: bool | None
    """None if nothing here can tell."""
    detail: str = ""
    """What was found."""


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
    checks: tuple[StatusCheck, ...] = ()
    """The checklist; empty if the store cannot be opened."""
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
    facts: dict[str, KeyFacts] = {}
    for name in sorted({*found.keys, *(() if identity is None else (identity,))}):
        with _noting(faults):
            facts[name] = files.keys.facts(name, mounted=True)
    if pin is not None:
        anchor = files.anchor_directory(pin.store)
        found = replace(found, anchor=str(anchor))
        if group is not None:
            faults += _mode_faults(location, group, anchor)
        with _noting(faults), location.open_core(read_only=True) as core:
            chain = core.renewed_trust()
            threads = sum(1 for _ in core.anchor.slots()) - 1
            found = replace(found, threads=threads, roster=chain.roster.seq)
            policy = _policy(core, chain, namespace)
            found = replace(
                found,
                policy=None if policy is None else policy.name,
                asks=_asks(policy),
                approvers=who_can_approve(chain.roster, policy, namespace, now()),
            )
            keys = KeyListing(chain, facts, now()).rows()
            found = replace(found, checks=tuple(_Checklist(location, found, keys, anchor).lines()))
    return replace(found, faults=tuple(faults))


@contextmanager
def _noting(faults: list[StatusFault]) -> Iterator[None]:
    """Note what went wrong in the block, and go on after it."""
    try:
        yield
    except SealpointError as error:
        faults.append(_fault(error))


def _policy(core: Core, chain: StoreChain, namespace: str) -> Policy | None:
    digest = policy_digest(chain.roster, namespace)
    return None if digest is None else Policies(core).get(digest)


def _asks(policy: Policy | None) -> dict[str, tuple[str, ...]]:
    """What a policy asks for, with the rules that do, the strictest first."""
    found: dict[str, tuple[str, ...]] = {}
    rules = {} if policy is None else policy.rules
    for measure in sorted({each for each in rules.values() if not each.passes}, reverse=True):
        found[str(measure)] = tuple(str(rule) for rule, each in rules.items() if each == measure)
    return found


class _Checklist:
    """What can be told of the checklist on this machine, without opening a key."""

    def __init__(
        self, location: StoreLocation, found: StoreStatus, keys: Iterable[KeyInfo], anchor: Path
    ) -> None:
        self._location = location
        self._found = found
        self._keys = tuple(keys)
        self._here = tuple(key for key in self._keys if key.here)
        self._anchor = anchor

    def lines(self) -> Iterator[StatusCheck]:
        """Its lines, by place, keys and people."""
        yield StatusCheck(
            name="places-apart",
            claim="store, keys and anchor lie in places of their own",
            holds=True,  # a store that lies among them is refused
        )
        yield self._store_closed()
        yield self._anchor_apart()
        yield self._anchor_in_use()
        yield self._missing(
            "root-elsewhere",
            "the root's private key is kept elsewhere",
            "here",
            [key.name for key in self._here if key.status is KeyStatus.ROOT],
        )
        yield self._missing(
            "keys-locked",
            "the private keys here have passphrases",
            "without",
            [key.name for key in self._here if not key.encrypted],
        )
        yield self._duties_apart()
        yield from self._expiry()
        yield from self._people()

    def _store_closed(self) -> StatusCheck:
        group = self._found.group
        may = "this user" if group is None else f"the group {group}"
        open_to = stat.S_IRWXO if group is not None else stat.S_IRWXO | stat.S_IRWXG
        closed: tuple[bool | None, str] = (None, _IN_A_DATABASE)
        if self._location.url.path is not None:
            closed = _closed(Path(self._location.target()), open_to)
        holds, detail = closed
        claim = f"only {may} may read and write the store"
        return StatusCheck(name="store-closed", claim=claim, holds=holds, detail=detail)

    def _anchor_apart(self) -> StatusCheck:
        claim = "store and anchor are on different disks, so that no one copy puts both back"
        holds: bool | None = None
        if self._location.url.path is None:
            return StatusCheck(
                name="anchor-elsewhere", claim=claim, holds=None, detail=_IN_A_DATABASE
            )
        with suppress(OSError):  # what is not there is a fault already
            holds = self._location.directory().stat().st_dev != self._anchor.stat().st_dev
        return StatusCheck(name="anchor-elsewhere", claim=claim, holds=holds)

    def _anchor_in_use(self) -> StatusCheck:
        threads = self._found.threads or 0
        detail = f"threads: {threads}"
        with suppress(OSError):
            changed = (self._anchor / "anchor.slots").stat().st_mtime
            detail += f"; written last {datetime.fromtimestamp(changed, UTC):%Y-%m-%d %H:%M:%SZ}"
        return StatusCheck(
            name="anchor-in-use",
            claim="the anchor has seen threads of this store",
            holds=threads > 0,
            detail=detail,
        )

    def _duties_apart(self) -> StatusCheck:
        workers = [key.name for key in self._here if Role.WRITER in key.roles]
        people = [key.name for key in self._here if {Role.APPROVER, Role.OPERATOR} & {*key.roles}]
        return self._missing(
            "duties-apart",
            "keys of workers and of those who approve or operate are on different machines",
            "here",
            [*workers, *people] if workers and people else [],
        )

    def _expiry(self) -> Iterator[StatusCheck]:
        held = [key for key in self._keys if key.in_roster]
        ends = (KeyStatus.EXPIRED, KeyStatus.EXPIRES_SOON)
        yield self._missing(
            "keys-expire",
            "every key of the roster expires, so that it is rotated",
            "never",
            [key.name for key in held if key.expires is None],
        )
        yield self._missing(
            "keys-valid",
            "every key of the roster is valid for 30 days at least",
            "until",
            [f"{key.name} {key.expires}" for key in held if key.status in ends],
        )

    def _people(self) -> Iterator[StatusCheck]:
        found, people = self._found, self._found.approvers
        yield StatusCheck(
            name="policy-in-force",
            claim="a policy is in force in the namespace",
            holds=found.policy is not None,
            detail=found.policy or "",
        )
        needed = 0 if people is None else people.needed
        yield StatusCheck(
            name="people-asked",
            claim="it asks people before some runs go on",
            holds=needed > 0,
            detail=f"{needed} each time" if needed else "",
        )
        yield StatusCheck(
            name="approvers-enough",
            claim="enough people can approve that",
            holds=None if people is None or not needed else not people.missing,
            detail="" if people is None or not needed else ", ".join(people.people) or "nobody",
        )

    def _missing(self, name: str, claim: str, how: str, against: list[str]) -> StatusCheck:
        """A line that holds where nothing speaks against it."""
        detail = f"{how}: {', '.join(dict.fromkeys(against))}" if against else ""
        return StatusCheck(name=name, claim=claim, holds=not against, detail=detail)


def _closed(path: Path, others: int) -> tuple[bool | None, str]:
    """Whether others are kept out of a file or directory, by its mode or that of its directory."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        above = stat.S_IMODE(path.parent.stat().st_mode)
    except OSError:
        return None, ""
    if not mode & others or not above & others:
        return True, ""
    return False, f"{path} has mode {mode:o}"


def _mode_faults(location: StoreLocation, group: Group, anchor: Path) -> list[StatusFault]:
    """What about the modes keeps members of the group out, or lets others in."""
    files = [anchor / "anchor.slots"]
    if location.url.backend.lies_as == "file":
        target = location.target()
        files += [Path(target), *(Path(target + end) for end in location.url.backend.beside)]
    directories = [location.files.state_dir, anchor.parent, anchor, location.directory()]
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
