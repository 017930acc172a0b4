# SPDX-License-Identifier: Apache-2.0
"""The store chain: rosters and roots, in an order that cannot be rolled back.

The store keeps it like any thread, under a reserved id. It is verified before anything else, from
the pin alone. All rosters are kept, because an entry is judged by the roster that its writer saw.
For the same reason, no right shrinks from one roster to the next without a cutoff for each key that
had it. A cutoff of the newest roster names a list, by its digest: for every thread that the key
wrote, the last position that counts and the hash of the entry there. The list decides, and never
the time that an entry claims. When verification meets an entry by such a key, it fetches the list
through a function that the caller provides; only its digest makes the list trusted. A roster that
changes a policy also names such a list, of the positions of all threads: an entry beyond it is
judged by the new policy, whatever roster it names. The previous root and the new root both sign a
new root, which signs the rosters from there on. A restore ends an epoch and lists what stays of it.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

import msgspec

from sealpoint.errors import (
    Edited,
    Forged,
    Misplaced,
    Missing,
    NotTrusted,
    RolledBack,
    Tampered,
)
from sealpoint.ids import KeyId
from sealpoint.ledger._entry import Entry, Header, link_hash, parse_header, skip_seq
from sealpoint.ledger._entry_bodies import RestoreBody, RootBody, RosterBody, readable_body
from sealpoint.ledger._entry_kinds import KINDS, Kind
from sealpoint.limits import POSITION_LIST_BYTES_MAX
from sealpoint.signing import (
    ANY_NAMESPACE,
    ENTRY_TYPE,
    Identity,
    PublicKey,
    Role,
    Root,
    Roster,
    Seal,
    TrustPin,
    pae,
    parse_seals,
)

STORE_CHAIN = bytes(16)
"""The thread id of the store chain in every store; a drawn id is never this one."""

Fetch = Callable[[bytes], bytes | None]
"""Returns the blob of the store chain that has a digest, or None."""

_THREAD_BYTES = 16
_SEQ_BYTES = 8
_HASH_BYTES = 32
_LINE_BYTES = _THREAD_BYTES + _SEQ_BYTES + _HASH_BYTES


class PositionList:
    """A list of positions, one for each thread: 16 bytes thread, 8 position, 32 hash.

    It stays in bytes: 100,000 threads take 5.6 MB and no objects.

    Raises:
        NotTrusted: The bytes are not such a list, with the threads in order and each once.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        if len(data) > POSITION_LIST_BYTES_MAX or len(data) % _LINE_BYTES:
            raise NotTrusted(
                f"list of positions: expected lines of {_LINE_BYTES} bytes, at most "
                f"{POSITION_LIST_BYTES_MAX} in all, found {len(data)} bytes"
            )
        self.data = data
        before = b""
        for thread in self.threads():
            if thread <= before:
                raise NotTrusted(
                    "list of positions: expected threads in rising order, found another order"
                )
            before = thread

    @classmethod
    def of(cls, positions: Iterable[tuple[bytes, int, bytes]]) -> "PositionList":
        """Make the list of these threads, positions and hashes, given in any order."""
        lines = [
            thread + seq.to_bytes(_SEQ_BYTES, "big") + entry for thread, seq, entry in positions
        ]
        return cls(b"".join(sorted(lines)))

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the list, which identifies it."""
        return hashlib.sha256(self.data).digest()

    def __len__(self) -> int:
        return len(self.data) // _LINE_BYTES

    def threads(self) -> Iterator[bytes]:
        """Yield the threads, in order."""
        for place in range(0, len(self.data), _LINE_BYTES):
            yield self.data[place : place + _THREAD_BYTES]

    def position(self, thread: bytes) -> tuple[int, bytes] | None:
        """Return the last position that counts in a thread and its hash; None if none does."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            place = middle * _LINE_BYTES
            found = self.data[place : place + _THREAD_BYTES]
            if found == thread:
                entry = place + _THREAD_BYTES + _SEQ_BYTES
                seq = int.from_bytes(self.data[place + _THREAD_BYTES : entry], "big")
                return seq, self.data[entry : entry + _HASH_BYTES]
            if found < thread:
                low = middle + 1
            else:
                high = middle
        return None


class PositionLists:
    """Lists by their digests, with a cache of the last used ones, up to a bound in bytes.

    Args:
        fetch: Fetches the lists; without it there are none.
    """

    __slots__ = ("_fetch", "_kept", "_kept_bytes", "_lock")

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch
        self._kept: OrderedDict[str, PositionList] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def get(self, digest: str) -> PositionList:
        """Return a list, proven by its digest.

        Raises:
            Missing: It does not exist.
            Edited: The store has other bytes.
            NotTrusted: The bytes have the digest that the root signed, but are not a list.
        """
        with self._lock:
            found = self._kept.get(digest)
            if found is not None:
                self._kept.move_to_end(digest)
                return found
        name = bytes.fromhex(digest)
        data = None if self._fetch is None else self._fetch(name)
        if data is None:
            raise Missing(f"list of positions {digest[:12]}: it is missing from the store")
        if hashlib.sha256(data).digest() != name:
            raise Edited(f"list of positions {digest[:12]}: the store has bytes of another hash")
        return self._keep(digest, PositionList(data))

    def _keep(self, digest: str, made: PositionList) -> PositionList:
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = made
                self._kept_bytes += len(made.data)
            while self._kept_bytes > POSITION_LIST_BYTES_MAX:
                _, dropped = self._kept.popitem(last=False)
                self._kept_bytes -= len(dropped.data)
        return made


class Restore(msgspec.Struct, frozen=True):
    """One restore, as the store chain records it."""

    seq: int
    """Its position on the store chain."""
    kept: str
    """The digest of the list of the entries that stay."""
    lost: str
    """The digest of the list of the entries that the anchor had seen and that are gone."""
    released: str
    """The digest of the list of the cut threads that may continue from the entry that stays."""
    paused: str | None = None
    """The digest of the list of the threads whose pause was lost; None: no pause was lost."""

    @property
    def lists(self) -> tuple[str, ...]:
        """The digests of its lists."""
        lists = self.kept, self.lost, self.released
        return lists if self.paused is None else (*lists, self.paused)


class Restores(msgspec.Struct, frozen=True):
    """Every restore of a store, oldest first: the first one ended epoch 0.

    A restore lists the newest entry that stays, for every thread that existed. Entries of earlier
    epochs count up to there and no further: lost entries are genuine in every other respect, and
    must not silently reappear. It also lists the threads that it cut but that may continue anyway:
    each only from exactly the entry that it kept, and not after a later restore. And it lists the
    threads whose pause it lost: they stay paused until an operator decides.
    """

    all: tuple[Restore, ...] = ()

    @property
    def epoch(self) -> int:
        """The current epoch, in which entries are written."""
        return len(self.all)

    def then(self, restore: Restore) -> "Restores":
        """Return these, and one more."""
        return Restores((*self.all, restore))

    def check(self, header: Header, entry: bytes, lists: PositionLists) -> None:
        """Judge an entry of a thread by its epoch.

        Args:
            header: Its header.
            entry: Its hash.
            lists: The source of the lists.

        Raises:
            Misplaced: A restore cut it off, or it names an epoch that has not begun.
            Missing, Edited: A list is missing or has changed.
        """
        where = f"entry {header.seq} of thread {header.thread[:12]}"
        if header.epoch > self.epoch:
            raise Misplaced(f"{where}: expected epoch {self.epoch}, found {header.epoch}")
        thread = bytes.fromhex(header.thread)
        for restore in self.all[header.epoch :]:
            last = lists.get(restore.kept).position(thread)
            if last is None or header.seq > last[0] or (header.seq == last[0] and entry != last[1]):
                stays = "nothing" if last is None else f"entries up to {last[0]}, and not this one"
                raise Misplaced(
                    f"{where}: it is of epoch {header.epoch}, of which the restore in entry "
                    f"{restore.seq} of the store chain kept {stays}"
                )

    def check_first(
        self, header: Header, before: tuple[int, bytes] | None, lists: PositionLists
    ) -> None:
        """Require that a thread's first entry in an epoch follows the entry that the restore kept.

        Args:
            header: Its header, of a later epoch than the entry before it.
            before: Position and hash of the entry before it; None: it is the first of its thread.
            lists: The source of the lists.

        Raises:
            Misplaced: The restore that began the epoch kept something else.
            Missing, Edited: A list is missing or has changed.
        """
        restore = self.all[header.epoch - 1]
        kept = lists.get(restore.kept).position(bytes.fromhex(header.thread))
        if kept != before:
            stays = "nothing" if kept is None else f"entry {kept[0]} {kept[1].hex()[:12]}"
            raise Misplaced(
                f"entry {header.seq} of thread {header.thread[:12]}: it is of epoch "
                f"{header.epoch}, and does not follow what the restore in entry {restore.seq} of "
                f"the store chain kept: {stays}"
            )

    def cuts_off(
        self,
        thread: bytes,
        lists: PositionLists,
        *,
        basis: int,
        since: int,
        until: int | None = None,
    ) -> bool:
        """Whether a restore cut a thread, and did not release it in its current state.

        The newest restore that cut it decides: an earlier restore could not know about it when it
        released the thread.

        Args:
            thread: Its id.
            lists: The source of the lists.
            basis: The position of the newest entry that changes what a resume would do: a release
                is for the thread as it was kept, and not for anything later.
            since: The epoch in which it was last executed.
            until: The epoch to judge in; without it, the one in force.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        for restore in reversed(self.all[since:until]):
            if lists.get(restore.lost).position(thread) is not None:
                released = lists.get(restore.released).position(thread)
                kept = lists.get(restore.kept).position(thread)
                return released is None or released != kept or basis > released[0]
        return False

    def lost_pause(
        self, thread: bytes, lists: PositionLists, *, pause: int, epoch: int
    ) -> Restore | None:
        """Return the restore that lost a thread's pause, if no operator has decided about it since.

        Args:
            thread: Its id.
            lists: The source of the lists.
            pause: The mark `pause` of an entry: the newest entry that determines the pause.
            epoch: The epoch of that entry.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        for number, restore in enumerate(self.all[:epoch]):
            if restore.paused is None:
                continue
            last = lists.get(restore.paused).position(thread)
            # A later restore may have reassigned positions below the listed one.
            for later in self.all[number + 1 : epoch] if last is not None else ():
                kept = lists.get(later.kept).position(thread)
                last = None if last is None or kept is None else min(last, kept)
            if last is not None and pause <= last[0]:
                return restore
        return None

    def kept(self, thread: bytes, lists: PositionLists) -> tuple[int, bytes] | None:
        """Return the newest entry of a thread that the newest restore kept, or None."""
        return lists.get(self.all[-1].kept).position(thread)


class _PolicyChange(NamedTuple):
    """A roster that changed a policy, and the list of positions for it."""

    roster: Roster
    positions: str
    """The digest of the list that counts: its own, or a later one for the same policies."""
    epoch: int
    """The epoch in which the list was taken."""


@dataclass(frozen=True, slots=True)
class StoreChain:
    """The verified part of the store chain; without entries it is only the pin."""

    pin: TrustPin
    hashes: tuple[bytes, ...] = ()
    """The hash of every entry; the chain is short, with one entry for each change of the roster."""
    rosters: tuple[Roster, ...] = ()
    """Every roster; only the newest has its cutoffs."""
    roots: tuple[Root, ...] = ()
    """Every root after the one that the pin begins with."""
    settled: int = -1
    """The position of the newest roster or root, which only the root signs."""
    restores: Restores = field(default_factory=Restores)
    lists: PositionLists = field(default_factory=PositionLists, compare=False, repr=False)
    """The source of the lists of cutoffs, restores and changes of policy."""
    epoch: int = field(init=False, compare=False, repr=False)
    """The current epoch, in which entries are written."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epoch", self.restores.epoch)

    @property
    def seq(self) -> int:
        """The position of the newest entry, or -1."""
        return len(self.hashes) - 1

    @property
    def roster(self) -> Roster:
        """The roster in force.

        Raises:
            NotTrusted: The chain has none.
        """
        if not self.rosters:
            raise NotTrusted("store chain: it has no roster")
        return self.rosters[-1]

    @property
    def root(self) -> Root:
        """The root in force."""
        return self.roots[-1] if self.roots else self.pin.root

    @property
    def blobs(self) -> tuple[bytes, ...]:
        """The digests of the blobs that it names: lists and policies, each once and in order."""
        cutoffs = self.rosters[-1].cutoffs.values() if self.rosters else ()
        named = {
            *cutoffs,
            *(digest for each in self.restores.all for digest in each.lists),
            *(digest for roster in self.rosters for digest in roster.document.policies.values()),
            *(change.positions for change in self._policy_changes()),
        }
        return tuple(bytes.fromhex(digest) for digest in sorted(named))

    def require_minimum(self, where: str) -> None:
        """Refuse a chain that ends before the root or the roster that the pin names.

        Raises:
            RolledBack: It does.
        """
        newest, least = self.pin.newest, self.pin.roster_seq_min
        if newest is not None and self.root.version < newest.version:
            raise RolledBack(
                f"{where}: expected root {newest.version}, which the pin names, found root "
                f"{self.root.version}"
            )
        if self.roster.seq < least:
            raise RolledBack(
                f"{where}: expected roster {least} or later, which the pin names, found roster "
                f"{self.roster.seq}"
            )

    def kept(self, thread: bytes) -> tuple[int, bytes] | None:
        """Return the newest entry of a thread that the newest restore kept, with its hash.

        None if it kept nothing of the thread, or there was no restore.

        Raises:
            Missing, Edited: The list is missing or has changed.
        """
        return self.restores.kept(thread, self.lists) if self.epoch else None

    def kept_threads(self) -> Iterator[bytes]:
        """Return every thread of which the newest restore kept something.

        Raises:
            Missing, Edited: The list is missing or has changed.
        """
        return self.lists.get(self.restores.all[-1].kept).threads() if self.epoch else iter(())

    def require_counted(self, header: Header, entry: bytes) -> None:
        """Refuse an entry of a thread that no longer counts.

        Args:
            header: Its header.
            entry: Its hash.

        Raises:
            Misplaced: A restore cut it off, or it belongs to a future epoch.
            NotTrusted: Its key signed it after the key's end, or a restore lost the pause that
                blocks it.
            Missing, Edited: A list is missing or has changed.
        """
        if header.epoch != self.epoch:
            self.restores.check(header, entry, self.lists)
        self.accepted_until(header, entry)
        if header.epoch and KINDS[header.kind].blocked_by_pause:
            words = self.lost_pause(bytes.fromhex(header.thread), header.pause, header.epoch)
            if words is not None:
                raise NotTrusted(
                    f"entry {header.seq} of thread {header.thread[:12]}: expected no "
                    f"{header.kind.word} while the thread is paused: {words}",
                    hint="Find out who uses the key that signed it, and revoke it: sealpoint keys "
                    "revoke NAME --reason WHY; sealpoint audit shows the entry.",
                )

    def lost_pause(self, thread: bytes, pause: int, epoch: int | None = None) -> str | None:
        """Describe the restore that lost a thread's pause, if no operator has ended it since.

        Such a thread stays paused, although none of its entries says so. None: no pause was lost.

        Args:
            thread: Its id.
            pause: The mark `pause` of its newest entry, or of the entry that is judged.
            epoch: The epoch of the entry that is judged; without it, the one in force.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        if not self.epoch:
            return None
        epoch = self.epoch if epoch is None else epoch
        restore = self.restores.lost_pause(thread, self.lists, pause=pause, epoch=epoch)
        if restore is None:
            return None
        return (
            f"the restore in entry {restore.seq} of the store chain lost the pause, and no "
            "operator has ended it since"
        )

    def accepted_until(
        self, header: Header, entry: bytes, key: str | None = None
    ) -> tuple[int, bytes] | None:
        """Judge an entry of a thread by the cutoff of its key, if the newest roster has one.

        Args:
            header: Its header.
            entry: Its hash.
            key: The digits of the id of another key, whose attestation it carries.

        Returns:
            The last position of its key in this thread that counts, and the hash there; None if the
            key has no cutoff.

        Raises:
            NotTrusted: The entry is beyond the cutoff, or is not the listed one.
            Missing, Edited: The list is missing or has changed.
        """
        key = header.by if key is None else key
        digest = self.rosters[-1].cutoffs.get(key) if self.rosters else None
        if digest is None:
            return None
        last = self._last(digest, header, key)
        if last is None or header.seq > last[0] or (header.seq == last[0] and entry != last[1]):
            listed = "no entry of this thread"
            if last is not None:
                listed = f"entries of this thread up to {last[0]}, and not this one"
            raise NotTrusted(
                f"entry {header.seq} of thread {header.thread[:12]}: it is of the revoked key "
                f"{key[:12]}, whose cutoff lists {listed}",
                hint="A revoked key signed this after its end. Find out who has the key; the "
                "guide on keys and trust says how the thread is brought back.",
            )
        return last

    def believes(self, entry: Entry, key: str) -> bool:
        """Whether an attestation of a key counts in an entry: no cutoff of the key ends before it.

        Raises:
            Missing, Edited: The list is missing or has changed.
        """
        try:
            self.accepted_until(entry.header, entry.hash, key)
        except NotTrusted:
            return False
        return True

    def _last(self, digest: str, header: Header, by: str) -> tuple[int, bytes] | None:
        """Return the last position of a revoked key, reduced by any restore after the key's end."""
        thread, key = bytes.fromhex(header.thread), KeyId(bytes.fromhex(by))
        last = self.lists.get(digest).position(thread)
        for restore in self.restores.all:
            if any(each.seq > restore.seq and each.attester(key) for each in self.rosters):
                continue  # the key was still in use in the epoch that the restore began
            kept = self.lists.get(restore.kept).position(thread)
            last = None if last is None or kept is None else min(last, kept)
        return last

    def policy_at(self, header: Header) -> str | None:
        """Return the digest of the policy that judges an entry of a thread; None: no policy does.

        It is the policy of the roster that the entry names, unless the entry is beyond the
        positions of a later change of policy: then its writer chose the earlier roster too late.

        Args:
            header: The header of a verified entry.

        Raises:
            Missing, Edited: A list is missing or has changed.
        """
        for change in self._policy_changes(header.roster):
            if self._binds(change, header):
                return change.roster.policy_digest(header.ns)
        named = self.roster_at(header.roster)
        return None if named is None else named.policy_digest(header.ns)

    def _policy_changes(self, after: int = -1) -> Iterator["_PolicyChange"]:
        """Yield the changes of policy by the rosters after a position, newest first."""
        listed: Roster | None = None
        for before, roster in zip(self.rosters[-2::-1], self.rosters[::-1], strict=False):
            if roster.seq <= after:
                return
            if listed is None and roster.positions is not None:
                listed = roster
            if listed is not None and before.document.policies != roster.document.policies:
                epoch = sum(restore.seq < listed.seq for restore in self.restores.all)
                yield _PolicyChange(roster, listed.positions or "", epoch)
                listed = None

    def _binds(self, change: "_PolicyChange", header: Header) -> bool:
        """Whether an entry was written after a change of policy, by its position."""
        if header.epoch > change.epoch:
            return True  # a restore may have reassigned positions below the listed one
        last = self.lists.get(change.positions).position(bytes.fromhex(header.thread))
        return last is None or header.seq > last[0]

    def person_of(self, entry: Entry) -> str | None:
        """Return the person who wrote an entry, by the roster that it names."""
        roster = self.roster_at(entry.header.roster)
        identity = None if roster is None else roster.identity(entry.writer)
        return None if identity is None else identity.person

    def roster_at(self, seq: int) -> Roster | None:
        """Return the roster at a position of the store chain, or None."""
        if self.rosters and self.rosters[-1].seq == seq:
            return self.rosters[-1]
        return next((roster for roster in self.rosters if roster.seq == seq), None)

    def extended(self, raw: bytes, seals: bytes, body: bytes | None) -> "StoreChain":
        """Return the chain after one more entry.

        Raises:
            Tampered: The entry is edited, forged or misplaced.
            NotTrusted: The root did not sign it, or its content is not allowed.
        """
        seq = self.seq + 1
        header = parse_header(raw)
        self._check_place(header, seq)
        self._check_seals(header, raw, seals)
        if body is None:
            raise Tampered(f"store chain entry {seq}: its body is missing")
        parsed = readable_body(header, body)
        hashes = (*self.hashes, link_hash(raw))
        if isinstance(parsed, RosterBody):
            rosters = self._with_roster(parsed, seq)
            return replace(self, hashes=hashes, rosters=rosters, settled=seq)
        if isinstance(parsed, RootBody):
            root = self._next_root(parsed, seq)
            root.verify(pae(ENTRY_TYPE, raw), parse_seals(seals))
            return replace(self, hashes=hashes, roots=(*self.roots, root), settled=seq)
        if isinstance(parsed, RestoreBody):
            restore = Restore(seq, parsed.kept, parsed.lost, parsed.released, parsed.paused)
            return replace(self, hashes=hashes, restores=self.restores.then(restore))
        return replace(self, hashes=hashes)

    def _check_place(self, header: Header, seq: int) -> None:
        prev = self.hashes[-1].hex() if seq else None
        skip = self.hashes[skip_seq(seq)].hex() if seq else None
        roster = self.rosters[-1].seq if self.rosters else 0
        epoch = self.epoch + (header.kind is Kind.RESTORE)
        for what, found, expected in (
            ("store", header.store, self.pin.store.raw.hex()),
            ("chain", (header.thread, header.ns), (STORE_CHAIN.hex(), "")),
            ("position", header.seq, seq),
            ("epoch", header.epoch, epoch),
            ("generation", header.gen, 0),
            ("session, pause and owner", (header.fence, header.pause, header.owner), (0, 0, 0)),
            ("previous hash", header.prev, prev),
            ("skip hash", header.skip, skip),
            ("roster", header.roster, roster),
        ):
            if found != expected:
                raise Misplaced(
                    f"store chain entry {seq}: expected another {what} than {_shown(found)}"
                )

    def _check_seals(self, header: Header, raw: bytes, seals: bytes) -> None:
        where = f"store chain entry {header.seq}"
        rule = KINDS[header.kind]
        if not rule.on_store_chain:
            raise NotTrusted(f"{where}: expected a kind of this chain, found {header.kind.word}")
        found = parse_seals(seals)
        message = pae(ENTRY_TYPE, raw)
        if found[0].key.raw.hex() != header.by:
            raise Forged(f"{where}: expected a signature by key {header.by[:12]}")
        if not rule.roles:
            if header.kind is not Kind.RESTORE or not self._has_quorum(header, found, message):
                self.root.verify(message, found)
            return
        holder = self.roster.holder(found[0].key)
        if holder is None or not holder[0].may_any(rule.roles, ANY_NAMESPACE):
            by = header.by[:12] if holder is None else repr(holder[0].name)
            raise NotTrusted(
                f"{where}: expected an entry by role {rule.roles_text} of all namespaces, found "
                f"one by {by}"
            )
        if len(found) != 1:
            raise Forged(f"{where}: expected one signature, found {len(found)}")
        holder[1].verify(found[0].signature, message)

    def _has_quorum(self, header: Header, seals: Sequence[Seal], message: bytes) -> bool:
        """Whether enough persons signed a restore for the roster's quorum; false without one."""
        persons = set()
        for seal in seals:
            holder = self.restorer(seal.key, header.at)
            if holder is not None:
                holder[1].verify(seal.signature, message)
                persons.add(holder[0].person)
        return 0 < self.roster.document.restore_quorum <= len(persons)

    def restorer(self, key: KeyId, at: datetime) -> tuple[Identity, PublicKey] | None:
        """Return the holder of a key that counts for the quorum of a restore; None if it does not.

        The key must belong to an operator of all namespaces, and must not have expired at this
        time.
        """
        holder = self.roster.holder(key)
        if holder is None or self.roster.key_expired_at(key.raw.hex(), at):
            return None
        return holder if holder[0].may(Role.OPERATOR, ANY_NAMESPACE) else None

    def _with_roster(self, body: RosterBody, seq: int) -> tuple[Roster, ...]:
        roster = Roster(body.roster, seq=seq, positions=body.positions)
        roster.follows(self.rosters[-1] if self.rosters else None)
        return (*self.rosters[:-1], *(each.without_cutoffs() for each in self.rosters[-1:]), roster)

    def _next_root(self, body: RootBody, seq: int) -> Root:
        root = Root.parse(body.root)
        if root.version != self.root.version + 1:
            raise NotTrusted(
                f"store chain entry {seq}: expected root {self.root.version + 1}, "
                f"found root {root.version}"
            )
        known = self.pin.newest
        if known is not None and known.version == root.version and known.document != body.root:
            raise NotTrusted(
                f"store chain entry {seq}: root {root.version} is not the one that the pin has"
            )
        return root


def _shown(found: object) -> str:
    return str(found)[:40]
