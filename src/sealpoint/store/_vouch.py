# SPDX-License-Identifier: Apache-2.0
"""Judging, entry by entry, what nobody has vouched for yet.

A reader that meets a thread for the first time judges its head by what the head names (`_judge.py`)
and does not read the rest: every writer judges before it appends, so whoever wrote on top of
somebody else's entries vouches for them. That leaves the entries which one person has written since
another one wrote. Their writer may run other code, and say of itself whatever it likes.

So before this store's key goes on from there, all of them are judged from below, by the same rules
that an audit applies. It costs one look at each of those entries, once for each handle, and nothing
where one's own key wrote the newest. Reading alone does not do it: the work of a cold load does not
grow with the thread. Words that anybody may write vouch for nothing and are judged along with the
rest.
"""

from collections.abc import Iterator
from itertools import chain as chained
from typing import NamedTuple

from sealpoint.errors import Misplaced
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    NO_ID,
    CheckpointBody,
    Entry,
    Header,
    IdTable,
    Kind,
    StoreChain,
    Tip,
    begin,
    extend,
    id_print,
)
from sealpoint.storage import Record
from sealpoint.store._chain import Chain, entry_body, tip_at
from sealpoint.store._index import place_of, require_place_of


class _Vouched(NamedTuple):
    """The newest entry that somebody else vouches for."""

    entry: Entry
    record: Record


def judge_unvouched(chain: Chain) -> None:
    """Judge what one other person wrote last, up to the newest entry that this handle has met.

    Raises:
        Tampered, NotTrusted, Forked: An entry is not allowed at its place.
    """
    head = chain.unvouched
    if head is None:
        return
    trust, signer = chain.trust.get(), chain.core.parts.signer
    newest = _newest_of_owner(chain, head)
    if newest is None or signer is None or newest.header.by != signer.key:
        _Judge(chain, _find_vouched(chain, head, newest, trust)).run(head)
    chain.unvouched = None


def _down_from(chain: Chain, head: Entry) -> Iterator[tuple[Header, Record]]:
    record, header = chain.descend(head.seq)
    yield header, record
    yield from chain.walk(header)


def _newest_of_owner(chain: Chain, head: Entry) -> Entry | None:
    """The newest entry of the owner; who claims to be somebody must have that key."""
    for header, record in _down_from(chain, head):
        if KINDS[header.kind].by_owner:
            return chain.verify(record, header.seq)
    return None


def _find_vouched(
    chain: Chain, head: Entry, newest: Entry | None, trust: StoreChain
) -> _Vouched | None:
    """The newest entry of an owner that is by another person than its newest; None: there is none.

    Where that is one's own person, another key is enough: who holds all keys of a person can do
    everything that this person can.
    """
    if newest is None:
        return None
    writer, own = _claimed(newest.header, trust), _own_person(chain, trust)
    for header, record in _down_from(chain, head):
        if not KINDS[header.kind].by_owner or header.by == newest.header.by:
            continue
        if (writer is not None and writer == own) or _claimed(header, trust) != writer:
            return _Vouched(chain.verify(record, header.seq), record)
    return None


def _own_person(chain: Chain, trust: StoreChain) -> str | None:
    signer = chain.core.parts.signer
    holder = None if signer is None else trust.roster.holder(signer.public.id)
    return None if holder is None else holder[0].person


def _claimed(header: Header, trust: StoreChain) -> str | None:
    """The person whose key a header names."""
    roster = trust.roster_at(header.roster)
    holder = None if roster is None else roster.holder(KeyId(bytes.fromhex(header.by)))
    return None if holder is None else holder[0].person


class _Judge:
    """Entries being judged one after the other, from one that is vouched for.

    Args:
        chain: The chain.
        vouched: That entry; None: the genesis is the first.
    """

    def __init__(self, chain: Chain, vouched: _Vouched | None) -> None:
        self._chain = chain
        self._tip = None if vouched is None else tip_at(chain, vouched.entry, vouched.record)
        self._given_up = None if vouched is None else self._named_by(*vouched)

    def _named_by(self, entry: Entry, record: Record) -> int | None:
        """The newest prune or deletion up to an entry that is vouched for."""
        entries = chained([(entry.header, record)], self._chain.walk(entry.header))
        for header, found in entries:
            rule = KINDS[header.kind]
            if rule.is_retention:
                return header.seq
            body = self._payload_body(header, found)
            if isinstance(body, CheckpointBody):
                return body.prune
            if header.kind in (Kind.GENESIS, Kind.ERASE):
                return None
        return None

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
        kind = entry.header.kind
        body = self._payload_body(entry.header, record)
        if self._tip is None:
            tip = begin(entry, record.body, trust)
        else:
            tip = extend(self._tip, entry, record.body, trust, parsed=body)
        if KINDS[kind].is_retention:
            self._given_up = seq
        elif kind in (Kind.GENESIS, Kind.ERASE):
            self._given_up = None
        elif isinstance(body, CheckpointBody):
            self._judge_checkpoint(entry, body)
        return tip

    def _payload_body(self, header: Header, record: Record) -> object:
        """The body of a checkpoint or of results; what an erasure took is for `extend` to judge."""
        if record.body is None or not KINDS[header.kind].holds_payload:
            return None
        return entry_body(self._chain.name, header, record.body)

    def _judge_checkpoint(self, entry: Entry, body: CheckpointBody) -> None:
        """Judge what a checkpoint says of the entries before it."""
        if body.prune != self._given_up:
            raise Misplaced(
                f"checkpoint {body.id!r}: expected it to name what entry {self._given_up} gave up, "
                f"found {body.prune}"
            )
        if body.ids is not None:
            self._judge_table(entry.header, body.ids)
        if body.again is not None:
            self._judge_place(entry, body, body.again)

    def _judge_place(self, entry: Entry, body: CheckpointBody, again: int) -> None:
        """A checkpoint of a name that was there before keeps the place of the first one."""
        record, header = self._chain.descend(again)
        if record.body is None:
            return  # an erasure took it; `extend` knows whether there was one
        first = self._payload_body(header, record)
        is_first = isinstance(first, CheckpointBody) and first.again is None
        if not isinstance(first, CheckpointBody) or not is_first or _key(first) != _key(body):
            raise Misplaced(
                f"entry {entry.seq}: expected the first checkpoint {body.id!r} in entry {again}, "
                f"found a {header.kind.word}"
            )
        require_place_of(place_of(entry.header, entry.hash, body), place_of(header, b"", first))

    def _judge_table(self, header: Header, table: IdTable) -> None:
        """A table of ids has those of the entries before it."""
        prints, seq = list[bytes](), header.seq
        for below, record in self._chain.walk(header):
            seq = below.seq
            body = self._payload_body(below, record)
            is_named = isinstance(body, CheckpointBody)
            prints.append(id_print(*_key(body)) if is_named else NO_ID)  # type: ignore[arg-type]
            if seq <= table.first or below.kind is Kind.GENESIS:
                break
        if table.first != seq or table.prints != b"".join(reversed(prints)).hex():
            raise Misplaced(
                f"entry {header.seq}: expected its table of ids to be that of the entries before it"
            )


def _key(body: CheckpointBody) -> tuple[str, str]:
    return body.lane, body.id
