# SPDX-License-Identifier: Apache-2.0
"""The anchor compared with the store, for people; adoption; sharing an anchor.

The comparison uses only positions and hashes: it verifies no signature, proves no name beyond the
anchor's slot for it, and writes nothing. So it also works for a store that every read refuses.
Adoption verifies everything from its first entry.

A machine that joins a shared anchor contributes the positions that it has seen, and neither anchor
loses information: the store must show the positions of both anchors as one history before anything
is written. The store chain records what the shared anchor learns.
"""

import hashlib
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum

from sealpoint.anchor import RESERVED_SEQ, AnchorUrl, Position, SharedAnchor
from sealpoint.api._open import OPERATOR
from sealpoint.api._store_location import StoreLocation
from sealpoint.audit import verify_thread
from sealpoint.config import parse_anchor_url
from sealpoint.errors import (
    AnchorUnavailable,
    ConfigError,
    DirectoryUnusable,
    Forked,
    Missing,
    RolledBack,
    SealpointError,
    Unanchored,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import STORE_CHAIN, Kind, link_hash, parse_header
from sealpoint.store import (
    Chain,
    Core,
    ListedThread,
    adopt_store_chain,
    adopt_thread,
    all_threads,
    claimed_name,
    judge_positions,
    record_joining,
    store_slot,
    unanchored_threads,
)


class AnchorStanding(StrEnum):
    """How the anchor and the store compare, for one chain."""

    IN_STEP = "in-step"
    """Both end at the same entry."""
    ANCHOR_BEHIND = "anchor-behind"
    """The store has newer entries; the next load or save verifies them and moves the anchor."""
    STORE_BEHIND = "store-behind"
    """The store ends before the anchored entry: it was rolled back."""
    FORKED = "forked"
    """Another entry, or another thread, is at the anchored position."""
    MISSING = "missing"
    """The anchor knows the thread, and the store has no entry of it."""
    UNANCHORED = "unanchored"
    """The store has the thread, and the anchor does not know it."""
    RESERVED = "reserved"
    """A first save began and never wrote an entry."""
    ERASED = "erased"
    """It was erased on purpose."""
    UNREADABLE = "unreadable"
    """The store's data cannot be read, so there is nothing to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorPosition:
    """One chain: the anchored position, and the claimed end in the store."""

    name: str | None
    """The thread's name; None for the store chain and for threads with unknown names."""
    thread: str
    """The thread's id in hexadecimal."""
    is_store_chain: bool
    anchored: int | None
    """The anchored sequence number; None if the anchor does not know it."""
    head: int | None
    """The newest sequence number in the store; None if it has no entry."""
    standing: AnchorStanding
    local: int | None = None
    """The position in the anchor of this machine, if another one is shared too."""
    shared: int | None = None
    """The position in the shared anchor, if one exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The result of joining a shared anchor."""

    url: str
    """The shared anchor that is used from now on."""
    taken: int
    """The number of chains for which the shared anchor has learned a newer position."""
    threads: int
    """How many threads it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """The chains that were adopted, or would be in a dry run."""

    store_chain: bool
    threads: tuple[str, ...]


class AnchorAdmin:
    """`admin.anchor`: the record of heads on this machine."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def positions(
        self, *, threads: Sequence[str] | None = None, namespace: str = "default"
    ) -> list[AnchorPosition]:
        """Compare the anchor with the store: the store chain first, then threads by name.

        Args:
            threads: Names; without them, all threads of the namespace, and all threads in any
                namespace that the anchor knows and the store does not have.
            namespace: The namespace of the threads.

        Raises:
            NotTrusted: There is no pin for this store here.
            UnknownThread: Neither the anchor nor the store knows a thread of that name.
            StorageUnavailable, AnchorUnavailable: Store or anchor cannot be read.
        """
        with self._location.open_core(namespace=namespace, read_only=True) as core:
            return _AnchorComparison(core).positions(threads)

    def adopt(
        self,
        *,
        reason: str,
        threads: Sequence[str] | None = None,
        dry_run: bool = False,
        identity: str = OPERATOR,
        namespace: str = "default",
    ) -> Adopted:
        """Adopt the store chain and threads into an anchor that does not know them, and record it.

        The operator who adopts vouches that the store is the newest copy: an older one would be
        trusted from now on. Everything is verified from its first entry before it is adopted.

        Args:
            reason: Why; it is recorded in every adopted chain.
            threads: Names; without them, all threads that the anchor does not know.
            dry_run: Only show what would be adopted.
            identity: An operator.
            namespace: The namespace of the threads.

        Raises:
            UnknownThread: There is no such thread that the anchor does not know.
            NotTrusted: The identity is not an operator, or a chain lacks a required signature.
            Tampered: A chain does not verify; it is not adopted.
        """
        signer = None if dry_run else self._location.signer(identity)
        with self._location.open_core(
            signer=signer, namespace=namespace, read_only=dry_run
        ) as core:
            new_store = not core.is_anchored()
            if not dry_run:
                adopt_store_chain(core, reason)
            found = _unanchored_by_name(core)
            names = tuple(found) if threads is None else tuple(threads)
            for name in names:
                if name not in found:
                    raise UnknownThread(
                        f"thread {name!r}: the anchor knows it already, so there is nothing to "
                        "adopt",
                        hint="Nothing has to be done for this thread: leave it out.",
                    )
            if not dry_run:
                for name in names:
                    verify_thread(core, found[name])
                    adopt_thread(core, name, found[name], reason)
            return Adopted(store_chain=new_store, threads=names)

    def join(self, url: str, *, reason: str | None = None, identity: str = OPERATOR) -> Joined:
        """Use a shared anchor from now on, in addition to the one of this machine.

        The first machine that joins contributes the positions that it has seen; that is recorded. A
        machine that has seen nothing yet needs only the pin and a login to the anchor.

        Args:
            url: The database, such as `postgresql://USER@HOST/DATABASE`.
            reason: Why, if the shared anchor learns new positions; it is recorded on the store
                chain.
            identity: An operator, for the same case.

        Raises:
            Unanchored: Neither anchor knows the store; or this machine's own has seen an entry,
                under its own secret, that the shared one has not.
            RolledBack: The store does not show an entry that one of the two has seen.
            Forked: The two have seen different histories.
            StoreExists: Another anchor is shared already.
            UsageError: The shared anchor would learn new positions, and there is no reason to
                record.
            AnchorUnavailable: It cannot be used, or has another secret than this machine saw.
        """
        location, target = self._location, parse_anchor_url(url)
        files, pin = location.files, location.files.pin()
        before = files.shared_anchor.require_same(target)
        shared = location.open_shared_anchor(pin.store, url=target, read_only=False, create=True)
        if shared is None:
            raise AnchorUnavailable(f"anchor {target}: it cannot be opened")
        with closing(shared):
            _SecretOfSlots(location, shared, target).settle(declared=before is not None)
        files.shared_anchor.declare(target)
        try:
            return self._take_along(target, reason, identity)
        except BaseException:
            if before is None:
                files.shared_anchor.forget()
            raise

    def _take_along(self, url: AnchorUrl, reason: str | None, identity: str) -> Joined:
        """Advance the shared anchor to the positions seen by this machine, and record that."""
        with self._location.open_core(read_only=True) as core:
            ahead = _ahead_of_shared(core)
            threads = sum(1 for _ in core.anchor.slots()) - 1
        if ahead:
            if reason is None:
                raise UsageError(
                    f"anchor {url}: it has seen less than this machine of {len(ahead)} chains, and "
                    "no reason was given for teaching it",
                    hint="It is recorded on the store chain: sealpoint anchor join URL --reason "
                    "TEXT",
                )
            signer = self._location.signer(identity)
            with self._location.open_core(signer=signer) as core:
                record_joining(core, reason)
                for slot, position in _ahead_of_shared(core).items():
                    _teach(core, slot, position)
        return Joined(url=str(url), taken=len(ahead), threads=threads)

    def leave(self) -> None:
        """Stop using the shared anchor, once this machine's own has seen as much.

        Raises:
            NoPin: This machine does not know the store.
            UsageError: No anchor is shared.
            RolledBack: The store does not show an entry that the shared anchor has seen.
            Forked: The two have seen different histories.
            AnchorUnavailable: The shared anchor cannot be read.
        """
        self._location.files.pin()
        declared = self._location.files.shared_anchor
        url = declared.url()
        if url is None:
            raise UsageError(
                f"store {self._location.url}: it shares no anchor, so nothing to leave"
            )
        with self._location.open_core() as core:
            core.renewed_trust()
            for slot, _ in core.anchor.slots():
                newest = core.anchor.get(slot)
                if newest is not None and newest != core.parts.anchor.get(slot):
                    # This machine's own anchor advances once the thread is judged.
                    with suppress(Missing, RolledBack):
                        Chain.at_slot(core, slot, newest.thread).refresh()
                    newest = core.anchor.get(slot)
                if newest != core.parts.anchor.get(slot):
                    raise RolledBack(
                        f"anchor {url}: it has seen what the store does not show, and this machine "
                        "has not seen it",
                        hint="Bring the newest copy of the store back first: sealpoint anchor show",
                    )
        declared.forget()
        if declared.url() is not None:
            raise ConfigError(
                f"anchor {url}: a mounted secret declares it",
                hint="Take anchor.json out of the directory that SEALPOINT_SECRETS_DIR names.",
            )


class _SecretOfSlots:
    """The secret that keys the slots, for a machine that joins a shared anchor."""

    def __init__(self, location: StoreLocation, shared: SharedAnchor, url: AnchorUrl) -> None:
        self._location = location
        self._files = location.files
        self._shared = shared
        self._url = url
        self._store = location.files.pin().store

    def settle(self, *, declared: bool) -> None:
        """Make the secrets here and there equal, without either side losing its knowledge.

        Args:
            declared: Whether this machine used the anchor before: another secret is then refused.
        """
        mine = self._files.secret() if self._files.has_secret() else None
        kept, known = self._shared.secret(), self._known(mine)
        if kept is None:
            if mine is None or not known:
                raise Unanchored(
                    f"anchor {self._url}: it does not know store {self._location.url}, and neither "
                    "does this machine's own",
                    hint="Join first where the store is used. If that is here, and this is its "
                    "newest copy: sealpoint anchor adopt --reason TEXT, then join.",
                )
            kept = self._shared.keep_secret(mine)
        if kept == mine:
            return
        if mine is not None and declared:
            raise AnchorUnavailable(
                f"anchor {self._url}: it has another secret of the slots of store "
                f"{self._location.url} than this machine first saw",
                hint="An attacker may have put another anchor in its place. Bring the database of "
                "the anchor back.",
            )
        if known:
            self._require_covered(known)
            self._put_aside()
        self._files.take_secret(kept, replace=mine is not None)

    def _known(self, secret: bytes | None) -> dict[bytes, Position]:
        """Return the positions in the anchor of this machine."""
        if secret is None:
            return {}
        gid = self._files.gid()
        with closing(
            self._location.open_local_anchor(self._store, secret, gid=gid, read_only=True)
        ) as local:
            return {slot: each for slot, each in local.slots() if not each.reserved}

    def _require_covered(self, known: dict[bytes, Position]) -> None:
        """Refuse to drop this machine's positions unless the shared anchor has seen as much."""
        theirs = {each.thread: each for _, each in self._shared.slots()}
        with self._location.open_core(read_only=True) as core:
            core.renewed_trust()
            for mine in known.values():
                other = theirs.get(mine.thread)
                if other is None or (
                    other != mine and judge_positions(core, mine, other)[0] == mine
                ):
                    raise Unanchored(
                        f"thread {mine.thread.hex()[:12]}: this machine has seen entry {mine.seq}, "
                        "under a secret of its own, and the shared anchor has not",
                        hint="On a machine that shares it, load the thread, or if it is not known "
                        "there: sealpoint anchor adopt --reason TEXT; then join again.",
                    )

    def _put_aside(self) -> None:
        """Keep the file of an anchor whose slots have other names from now on."""
        directory = self._files.anchor_directory(self._store)
        aside = directory.with_name(f"{directory.name}.before-{self._shared_name()}")
        try:
            directory.rename(aside)
        except OSError as exc:
            raise DirectoryUnusable(
                f"{directory}: it cannot be moved to {aside}: {exc.strerror}"
            ) from exc

    def _shared_name(self) -> str:
        return hashlib.sha256(self._url.place.encode()).hexdigest()[:12]


def _ahead_of_shared(core: Core) -> dict[bytes, Position]:
    """Return the positions of this machine beyond the shared anchor, by slot.

    Raises:
        RolledBack: The store does not show one of these positions, or one of the shared anchor's.
        Forked: The two have seen different histories.
    """
    core.renewed_trust()
    shared = {} if core.parts.shared_anchor is None else dict(core.parts.shared_anchor.slots())
    ahead = {}
    for slot, mine in core.parts.anchor.slots():
        if mine.reserved or shared.get(slot) == mine:
            continue
        other = shared.get(slot, Position(mine.thread, 0, 0, RESERVED_SEQ, bytes(32)))
        newer, shown = judge_positions(core, mine, other)
        if not shown:
            raise RolledBack(
                f"thread {mine.thread.hex()[:12]}: the store does not show entry {newer.seq}, "
                "which one of the two anchors has seen"
            )
        if newer == mine:
            ahead[slot] = mine
    return ahead


def _teach(core: Core, slot: bytes, position: Position) -> None:
    """Advance the shared anchor to a position that is newer than its own."""
    shared = core.parts.shared_anchor
    if shared is None:
        return
    found = shared.create(slot, position)
    while found != position and judge_positions(core, position, found) == (position, True):
        found = shared.advance(slot, found, position)


def _unanchored_by_name(core: Core) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, thread in unanchored_threads(core):
        other = found.setdefault(name, thread)
        if other != thread:
            raise Forked(
                f"thread {name!r}: the store has two threads of that name, {other.hex()[:12]} "
                f"and {thread.hex()[:12]}"
            )
    return found


def anchor_positions(core: Core) -> list[AnchorPosition]:
    """Compare the anchor of an open store with it: every chain of its namespace."""
    return _AnchorComparison(core).positions(None)


class _AnchorComparison:
    """Compares the anchored positions with the ends of the chains in the store."""

    def __init__(self, core: Core) -> None:
        self._core = core
        with suppress(SealpointError):
            core.renewed_trust()  # for the restores; without it, positions are shown unchanged
        self._slots: dict[bytes, Position] = {}
        self._each: list[dict[bytes, int | None]] = []
        """By thread, the positions in the local and the shared anchor, if both exist."""
        if (shared := core.parts.shared_anchor) is not None:
            self._each = [
                {each.thread: _seen(each) for _, each in anchor.slots()}
                for anchor in (core.parts.anchor, shared)
            ]

    def positions(self, names: Sequence[str] | None) -> list[AnchorPosition]:
        """Return every chain, or those of some names: the store chain, named ones, unnamed ones."""
        core, asked = self._core, {self._slot(name): name for name in names or ()}
        chain = self._compared(None, STORE_CHAIN, core.anchor.get(store_slot(core.parts.secret)))
        threads = all_threads(core)
        self._slots = {
            each.slot: core.restored_or_same(each.anchored)
            for each in threads
            if each.anchored is not None
        }
        found = (self._listed(each, asked.get(each.slot)) for each in threads)
        rows = [row for row in found if row is not None]
        rows.sort(key=lambda row: (row.name is None, row.name or ""))
        return [chain, *(rows if names is None else _of_names(rows, names))]

    def _listed(self, listed: ListedThread, asked: str | None) -> AnchorPosition | None:
        """Return the row of a thread of the namespace or of an unknown one; None for others."""
        position = self._slots.get(listed.slot)
        if not listed.stored:
            return self._compared(asked, listed.thread, position)
        try:
            namespace, name = claimed_name(self._core.storage, listed.thread)
        except SealpointError:
            return self._compared(None, listed.thread, position)
        if namespace != self._core.namespace:
            return None
        if name:
            return self._compared(name, listed.thread, self._slots.get(self._slot(name)))
        return self._compared(asked, listed.thread, position)

    def _slot(self, name: str) -> bytes:
        return Chain(self._core, name).slot

    def _compared(
        self, name: str | None, thread: bytes, position: Position | None
    ) -> AnchorPosition:
        head: int | None = None
        try:
            head = next(
                (seq for seq, _ in self._core.storage.scan(thread, 0, descending=True)), None
            )
            standing = self._standing(thread, position, head)
        except SealpointError:
            standing = AnchorStanding.UNREADABLE
        return AnchorPosition(
            name=name,
            thread=thread.hex(),
            is_store_chain=thread == STORE_CHAIN,
            anchored=None if position is None else _seen(position),
            head=head,
            standing=standing,
            local=self._each[0].get(thread) if self._each else None,
            shared=self._each[1].get(thread) if self._each else None,
        )

    def _standing(
        self, thread: bytes, position: Position | None, head: int | None
    ) -> AnchorStanding:
        if position is None:
            return AnchorStanding.UNANCHORED
        if position.thread != thread:
            return AnchorStanding.FORKED
        if head is None:
            return AnchorStanding.RESERVED if position.reserved else AnchorStanding.MISSING
        if position.reserved:
            return AnchorStanding.ANCHOR_BEHIND
        if head < position.seq:
            return AnchorStanding.STORE_BEHIND
        record = self._core.storage.read(thread, position.seq)
        if record is None or link_hash(record.header) != position.entry:
            return AnchorStanding.FORKED
        if head != position.seq:
            return AnchorStanding.ANCHOR_BEHIND
        is_erased = thread != STORE_CHAIN and parse_header(record.header).kind is Kind.ERASE
        return AnchorStanding.ERASED if is_erased else AnchorStanding.IN_STEP


def _seen(position: Position) -> int | None:
    """Return the newest entry that a position records as seen."""
    return None if position.reserved else position.seq


def _of_names(rows: Sequence[AnchorPosition], names: Sequence[str]) -> list[AnchorPosition]:
    for name in names:
        if not any(row.name == name for row in rows):
            raise UnknownThread(
                f"thread {name!r}: neither the anchor nor the store knows a thread of this name"
            )
    return [row for row in rows if row.name in names]
