# SPDX-License-Identifier: Apache-2.0
"""Judging, one by one, the entries that no other writer has vouched for yet.

A reader that meets a thread for the first time judges its head by the entries that the head names
(`_head_verification.py`), and does not read the rest. Every writer judges before it appends, so a
writer on top of another person's entries vouches for them. That leaves the entries that one person
has written since another person wrote. Their writer may run other code, and make any claim about
itself.

So before this store's key continues from there, all of them are judged from below, by the same
rules that an audit applies. Each of those entries is read once for each handle, and none if our own
key wrote the newest entry; an active handle judges the entries that others add. A plain read does
not judge them, so that the cost of a cold load does not grow with the thread. Entries that any
member may write vouch for nothing, and are judged along with the rest.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sealpoint.errors import Misplaced
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    PRINT_BYTES,
    CheckpointBody,
    ClaimCheck,
    Entry,
    Header,
    Kind,
    PruneBody,
    Rank,
    StoreChain,
    Tip,
    begin,
    extend,
    id_print,
)
from sealpoint.storage import Record
from sealpoint.store._checkpoint_index import (
    AllCheckpoints,
    CheckpointIndex,
    Key,
    checkpoint_of,
    id_stretches,
    retention_at,
)
from sealpoint.store._verified_chain import Chain, entry_body, tip_at


class _Unvouched(NamedTuple):
    """Entries that no other writer vouches for."""

    below: tuple[Entry, Record] | None
    """The newest entry that another writer vouches for; None: the genesis is the first."""
    erased: int
    """The position of the newest erasure among them; -1 if none."""


def judge_unvouched(chain: Chain, *, by_own_key: bool = True) -> None:
    """Judge the last entries of one other person, up to the newest entry that this handle has met.

    Args:
        chain: The chain, with a verified head.
        by_own_key: Whether this store's own key vouches for its entries, and everything below.

    Raises:
        Tampered, NotTrusted, Forked: An entry is not allowed at its place.
    """
    head = chain.unvouched
    if head is None:
        return
    signer = chain.core.parts.signer
    own = signer.key if by_own_key and signer is not None else ""
    newest = _newest_of_owner(chain, head)
    if newest is None or newest.header.by != own:
        _UnvouchedJudge(chain, _find_unvouched(chain, head, newest, own)).run(head)
    chain.unvouched = None


def _down_from(chain: Chain, head: Entry) -> Iterator[tuple[Header, Record]]:
    record, header = chain.descend(head.seq)
    yield header, record
    yield from chain.walk(header)


def _newest_of_owner(chain: Chain, head: Entry) -> Entry | None:
    """Return the newest entry of the owner, after its signature was checked."""
    for header, record in _down_from(chain, head):
        if KINDS[header.kind].by_owner:
            return chain.verify(record, header.seq)
    return None


def _find_unvouched(chain: Chain, head: Entry, newest: Entry | None, own: str) -> _Unvouched:
    """Return the entries above the newest owner entry by another person or by our own key.

    Another key of our own person vouches for nothing: a thief of two such keys would vouch for
    itself.
    """
    trust, erased = chain.trust.get(), -1
    writer = None if newest is None else _claimed(newest.header, trust)
    for header, record in _down_from(chain, head):
        if header.kind is Kind.ERASE:
            erased = max(erased, header.seq)
        if newest is None or not KINDS[header.kind].by_owner or header.by == newest.header.by:
            continue
        if header.by == own or _claimed(header, trust) != writer:
            return _Unvouched((chain.verify(record, header.seq), record), erased)
    return _Unvouched(None, erased)


def _claimed(header: Header, trust: StoreChain) -> str | None:
    """Return the person whose key a header names."""
    roster = trust.roster_at(header.roster)
    holder = None if roster is None else roster.holder(KeyId(bytes.fromhex(header.by)))
    return None if holder is None else holder[0].person


class _Below:
    """The thread below a vouched entry, for comparison with the claims of later entries.

    Args:
        chain: The chain.
        entry: The entry, with its record.
    """

    def __init__(self, chain: Chain, entry: Entry, record: Record) -> None:
        self._chain = Chain(chain.core, chain.name, entries=chain.entries)
        self._chain.bind(chain.thread, chain.place.ns)
        self._chain.trust.note(chain.trust.get())
        self._chain.head, self._chain.head_record = entry, record
        self._index = CheckpointIndex(self._chain)
        self._all = AllCheckpoints(self._chain)
        self.removals: tuple[int, PruneBody] | None = None
        self.checkpoint = -1
        self._look()

    def _look(self) -> None:
        """Find the newest checkpoint, and the newest prune or deletion, which that one names."""
        named: int | None = None
        for header, record in _down_from(self._chain, self._chain.verified_head()):
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                break
            if KINDS[header.kind].is_retention and named is None:
                named = header.seq
            if KINDS[header.kind].is_checkpoint:
                body: CheckpointBody = entry_body(self._chain.name, header, record.body)
                named = body.prune if named is None else named
                self.checkpoint = header.seq
                break
        if named is not None:
            self.removals = named, retention_at(self._chain, named)

    def find(self, lane: str, name: str) -> Rank | None:
        """Return the newest checkpoint of a name."""
        place = self._index.find(Key(lane, name))
        return None if place is None else Rank(place.seq, place.rank, place.since)

    def newest(self, lane: str, is_gone: Callable[[int], bool]) -> Rank | None:
        """Return the checkpoint of a lane with the highest rank that is not gone."""
        return next((place for place in self._all.each(lane) if not is_gone(place.seq)), None)

    def lanes_with_removals(self, earlier: PruneBody, now: PruneBody) -> set[str]:
        """Return every lane of which a prune removes a checkpoint that remained until then.

        The prune removes checkpoints above the earlier removals, and checkpoints that those kept.
        """
        lanes = self._all.lanes_between(earlier.before, now.before)
        top, kept = self._chain.verified_head().seq, set(now.kept)
        for seq in earlier.kept:
            if seq not in kept and seq <= top:
                record, header = self._chain.descend(seq)
                body = checkpoint_of(self._chain, header, record)
                lanes |= set() if body is None else {body.lane}
        return lanes

    def divides(self, earlier: PruneBody, now: PruneBody) -> bool:
        """Whether a deletion takes a checkpoint and leaves another one of its name."""
        top, names = self._chain.verified_head().seq, set[Key]()
        for first, last in now.deleted:
            newly = range(max(first, earlier.span_at(first)[1] + 1), min(last, top) + 1)
            names |= {key for seq in newly if (key := self._key_at(seq)) is not None}
        if not names:
            return False
        start, prints = self.prints()
        wanted = {id_print(*key) for key in names}
        return any(
            prints[at : at + PRINT_BYTES] in wanted
            and not now.deletes(seq)
            and self._key_at(seq) in names
            for seq, at in enumerate(range(0, len(prints), PRINT_BYTES), start)
        )

    def _key_at(self, seq: int) -> Key | None:
        record, header = self._chain.descend(seq)
        body = checkpoint_of(self._chain, header, record)
        return None if body is None else Key(body.lane, body.id)

    def prints(self) -> tuple[int, bytes]:
        """Return the first position of the generation, and the prints of its entries."""
        head = self._chain.verified_head().seq
        stretches = list(id_stretches(self._chain, head, head + 1))
        return stretches[-1][0], b"".join(found for _, found in reversed(stretches))


class _UnvouchedJudge:
    """Judges entries one after the other, starting from a vouched entry.

    Args:
        chain: The chain.
        unvouched: The entries to judge.
    """

    def __init__(self, chain: Chain, unvouched: _Unvouched) -> None:
        self._chain = chain
        self._erased = unvouched.erased
        self._tip: Tip | None = None
        self._claims = ClaimCheck()
        if unvouched.below is not None:
            entry, record = unvouched.below
            self._tip = tip_at(chain, entry, record)
            below = None if entry.seq <= self._erased else _Below(chain, entry, record)
            self._claims = ClaimCheck(below, entry.seq + 1)

    def run(self, head: Entry) -> None:
        """Judge every entry up to a head."""
        first = 0 if self._tip is None else self._tip.entry.seq + 1
        for seq, record, covered in self._chain.scan_covered(first, head.seq):
            self._tip = self._follow(seq, record, covered=covered)
        if self._tip is None or self._tip.entry.hash != head.hash:
            raise Misplaced(
                f"thread {self._chain.name!r}: expected its entries to lead to entry {head.seq}"
            )
        self._tip.require_owner()

    def _follow(self, seq: int, record: Record, *, covered: bool) -> Tip:
        entry = self._chain.verify(record, seq, covered=covered)
        trust = self._chain.trust.get()
        # An erased body counts for no one, even if an attacker has put it back. Only an erasure
        # removes a
        # body: without the body, a claim could not be compared with the named entries.
        is_there = seq >= self._erased
        data, body = record.body if is_there else None, None
        if is_there and _makes_claims(entry.header):
            body = entry_body(self._chain.name, entry.header, record.body)
        if self._tip is None:
            tip = begin(entry, data, trust)
        else:
            tip = extend(self._tip, entry, data, trust, parsed=body)
        self._claims.follow(entry.header, body)
        return tip


def _makes_claims(header: Header) -> bool:
    rule = KINDS[header.kind]
    return rule.holds_payload or rule.is_retention
