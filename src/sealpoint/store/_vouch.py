# SPDX-License-Identifier: Apache-2.0
"""Judging, entry by entry, what nobody has vouched for yet.

A reader that meets a thread for the first time judges its head by what the head names (`_judge.py`)
and does not read the rest: every writer judges before it appends, so whoever wrote on top of
somebody else's entries vouches for them. That leaves the entries which one person has written since
another one wrote. Their writer may run other code, and say of itself whatever it likes.

So before this store's key goes on from there, all of them are judged from below, by the same rules
that an audit applies. It costs one look at each of those entries, once for each handle, and nothing
where the entries are one's own. Reading alone does not do it: the work of a cold load does not grow
with the thread. Words that anybody may write vouch for nothing and are judged along with the rest.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sealpoint.errors import Misplaced
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    Header,
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
    """Judge what one other person wrote last, up to the head that this handle met first.

    Raises:
        Tampered, NotTrusted, Forked: An entry is not allowed at its place.
    """
    head = chain.unvouched
    if head is None:
        return
    trust = chain.trust.get()
    person = _newest_writer(chain, head, trust)
    if person is None or person != _own_person(chain, trust):
        _judge_from(chain, _find_vouched(chain, head, person, trust), head)
    chain.unvouched = None


def _own_person(chain: Chain, trust: StoreChain) -> str | None:
    signer = chain.core.parts.signer
    holder = None if signer is None else trust.roster.holder(signer.public.id)
    return None if holder is None else holder[0].person


def _down_from(chain: Chain, head: Entry) -> Iterator[tuple[Header, Record]]:
    record, header = chain.descend(head.seq)
    yield header, record
    yield from chain.walk(header)


def _claimed_person(header: Header, trust: StoreChain) -> str | None:
    roster = trust.roster_at(header.roster)
    holder = None if roster is None else roster.holder(KeyId(bytes.fromhex(header.by)))
    return None if holder is None else holder[0].person


def _newest_writer(chain: Chain, head: Entry, trust: StoreChain) -> str | None:
    """The person who wrote the newest entry of the owner; the anchored head was judged before."""
    for header, _ in _down_from(chain, head):
        if KINDS[header.kind].by_owner:
            return _claimed_person(header, trust)
    return None


def _find_vouched(
    chain: Chain, head: Entry, person: str | None, trust: StoreChain
) -> _Vouched | None:
    """The newest entry of an owner that is by another person; None: there is none."""
    for header, record in _down_from(chain, head):
        if KINDS[header.kind].by_owner and _claimed_person(header, trust) != person:
            # Who claims to be somebody else must have that key.
            return _Vouched(chain.verify(record, header.seq), record)
    return None


def _judge_from(chain: Chain, vouched: _Vouched | None, head: Entry) -> None:
    tip = None if vouched is None else tip_at(chain, vouched.entry, vouched.record)
    first = 0 if tip is None else tip.entry.seq + 1
    given_up = -1
    for seq, record in chain.entries.scan(chain.thread, first, head.seq):
        entry, trust = chain.verify(record, seq), chain.trust.get()
        body = _payload_body(chain, entry.header, record)
        if tip is None:
            tip = begin(entry, record.body, trust)
        else:
            tip = extend(tip, entry, record.body, trust, parsed=body)
        if KINDS[entry.header.kind].is_retention:
            given_up = seq
        if isinstance(body, CheckpointBody):
            _judge_checkpoint(chain, tip, body, given_up)
    if tip is None or tip.entry.hash != head.hash:
        raise Misplaced(f"thread {chain.name!r}: expected its entries to lead to entry {head.seq}")
    tip.require_owner()


def _payload_body(chain: Chain, header: Header, record: Record) -> object:
    """The body of a checkpoint or of results; what an erasure took is for `extend` to judge."""
    if record.body is None or not KINDS[header.kind].holds_payload:
        return None
    return entry_body(chain.name, header, record.body)


def _judge_checkpoint(chain: Chain, tip: Tip, body: CheckpointBody, given_up: int) -> None:
    """Judge what a checkpoint says of those before it: what was given up, and its own first one."""
    entry = tip.entry
    if (-1 if body.prune is None else body.prune) < given_up:
        raise Misplaced(
            f"checkpoint {body.id!r}: expected it to name what entry {given_up} gave up, found "
            f"{body.prune}"
        )
    if body.again is None:
        return
    record, header = chain.descend(body.again)
    first = _payload_body(chain, header, record)
    if first is None and record.body is None:
        return  # an erasure took it; `extend` knows whether there was one
    same = isinstance(first, CheckpointBody) and id_print(first.lane, first.id) == id_print(
        body.lane, body.id
    )
    if not isinstance(first, CheckpointBody) or not same or first.again is not None:
        raise Misplaced(
            f"entry {entry.seq}: expected the first checkpoint {body.id!r} in entry {body.again}, "
            f"found a {header.kind.word}"
        )
    require_place_of(place_of(entry.header, entry.hash, body), place_of(header, b"", first))
