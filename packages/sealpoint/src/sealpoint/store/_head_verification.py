# SPDX-License-Identifier: Apache-2.0
"""Judging a thread from its head, for a handle that has not read the entries below.

The anchor proves that a process has seen the head. That process may belong to a member of the
roster who runs other code, so the head is judged by the rules of `ledger/_entry_rules.py` before
anything of the thread counts. The number of entries that are read does not grow with the thread:
the head, its session, the pause in force, the handoffs since the genesis, and the entries added
after the owner's last one.

This is sufficient for the following reasons. The head names the newest session, pause and owner,
and the anchor keeps the highest of each that it ever saw, so none of them can be left out. The
owner's newest entry vouches for everything below it, because every writer judges before it appends.
The entries above it are verified here, one by one: any member of the roster may have written them.

A former owner is the exception. It can leave out the handoff that took the thread from it, and
write a later handoff on top, which the anchor then takes for the newest. So a handoff by an owner
counts without a look below it only once another person has written on top. Until then, every entry
down to the owner's entry before it is read. A person who erases a thread, or hands it off with
approval, does not own it and does not vouch for it: until another person has written on top, the
entries that the same person wrote right below are verified too.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from sealpoint.anchor import Position
from sealpoint.errors import Forked, Misplaced, Missing, NotTrusted
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    Fence,
    GenesisBody,
    Header,
    Kind,
    Marks,
    OwnerEntry,
    StoreChain,
    begin,
    check_generation,
    check_handoff,
    check_key_expiry,
    check_owner,
    check_pause,
    check_reserved,
    check_session,
    check_succession,
    check_world,
    link_hash,
    next_time,
    parse_body,
    read_basis_and_time,
    read_fence,
    read_owner_entry,
    require_counted,
    time_at,
)
from sealpoint.storage import Record


class LinkedEntries(Protocol):
    """Entries below a verified head, each proven by its link."""

    def descend(self, seq: int) -> tuple[Record, Header]:
        """Return the entry at a position."""
        ...

    def before(self, header: Header) -> Header:
        """Return the entry before a proven one."""
        ...

    def walk(self, below: Header | None = None) -> Iterator[tuple[Header, Record]]:
        """Yield every entry from the head, or below a proven one, downwards."""
        ...

    def verify(self, record: Record, seq: int, *, covered: bool = False) -> Entry:
        """Verify one entry on its own: signature, rights, place and cutoffs.

        `covered`: a verified entry of the same key is above, and covers the signature.
        """
        ...

    def body(self, header: Header, record: Record) -> Any:
        """Return the body of a proven entry."""
        ...


class JudgedHead(NamedTuple):
    """The state in force at a head that the rules allow."""

    fence: Fence
    owner: OwnerEntry
    paused: int | None
    """The position of the pause in force."""


class _Owned(NamedTuple):
    """The owner of a thread, and the entry that names the owner."""

    name: str | None
    """None: the body with the name is missing, which only a later erasure can explain."""
    entry: OwnerEntry
    begun: Header
    """The genesis of the generation, or the erasure that ended the last one: not paused there."""

    @property
    def erased(self) -> bool:
        return self.begun.kind is Kind.ERASE


def judge_head(
    entries: LinkedEntries,
    head: Entry,
    seen: Sequence[Position],
    trust: StoreChain,
    *,
    reserved: bool,
    name: str | None = None,
) -> JudgedHead:
    """Judge the head of a thread by the rules that every entry follows.

    Args:
        entries: The thread below the head.
        head: The head, verified on its own.
        seen: The positions of the thread in the anchors, in the epoch that is in force.
        trust: The store chain.
        reserved: Whether the reader asked for one of Sealpoint's own names. An erasure removes the
            name in the genesis, and must not turn the thread into another one.
        name: The name of the anchor's slot; None if it is unknown.

    Raises:
        NotTrusted: An entry is not allowed at its place, or an anchor contradicts it.
        Misplaced: A handoff or a genesis does not belong to this place.
        Forked: The owner's entry is not the one that an anchor has seen.
        Missing: An entry is missing.
    """
    for position in seen:
        _require_marks(head.header, position)
    newest, additions = _judge_additions(entries, head)
    _check_keys(entries, [*additions, newest[0].header], trust)
    owned = _judge_ownership(entries, newest[0], seen, trust, reserved=reserved, name=name)
    for header in (*additions, newest[0].header):
        check_reserved(header, reserved=reserved or owned.entry.reserved)
        if header.gen != owned.begun.gen:
            raise Misplaced(
                f"entry {header.seq} of thread {header.thread[:12]}: expected generation "
                f"{owned.begun.gen}, found {header.gen}"
            )
    if owned.erased and newest[0].seq != owned.entry.seq:
        # After an erasure the owner is unknown, so no check could find a wrong owner.
        raise Misplaced(
            f"entry {newest[0].seq} of thread {head.header.thread[:12]}: expected a genesis after "
            "an erasure"
        )
    paused = _judge_pause(entries, head.header, owned, trust)
    for position in seen:
        _require_pause(head.header, position, paused)
    fence = _judge_session(entries, newest, owned, trust)
    return JudgedHead(fence, owned.entry, paused)


def _require_marks(header: Header, anchored: Position) -> None:
    """Refuse a head that leaves out a session, a pause or an owner that the anchor has seen."""
    seen = Marks(anchored.fence, anchored.pause, anchored.owner)
    for what, named, known in zip(
        ("session", "pause", "handoff"), Marks.of(header), seen, strict=True
    ):
        if named < known:
            raise NotTrusted(
                f"entry {header.seq} of thread {header.thread[:12]}: it leaves out the {what} in "
                f"entry {known}, which the anchor has seen",
                hint="A member of the roster wrote it with other code: sealpoint audit shows who. "
                "Revoke the key: sealpoint keys revoke NAME --reason WHY; the guide on keys and "
                "trust says how the thread is brought back.",
            )


def _require_pause(header: Header, anchored: Position, paused: int | None) -> None:
    """Refuse an anchor that contradicts the pause that the head names."""
    if anchored.pause == header.pause and anchored.paused != (paused is not None):
        is_paused = "paused" if paused is not None else "not paused"
        raise NotTrusted(
            f"entry {header.seq} of thread {header.thread[:12]}: by entry {header.pause} the "
            f"thread is {is_paused}, and the anchor says that it is not so",
            hint="Other code moved the anchor: find out who may write it. An "
            "accepted restore makes it right again: sealpoint accept-restore --dry-run shows it.",
        )


def require_genesis_name(entry: Entry, record: Record, name: str | None) -> None:
    """Refuse a genesis of another name than that of the anchor's slot.

    Raises:
        Misplaced: An attacker has put a thread into the slot of another name.
    """
    if name is None or entry.header.kind is not Kind.GENESIS or record.body is None:
        return
    body: GenesisBody = parse_body(Kind.GENESIS, entry.header.body, record.body)
    if body.name != name:
        raise Misplaced(
            f"thread {name!r}: the anchor has thread {entry.header.thread[:12]} for it, which is "
            "one of another name",
            hint="Other code wrote the anchor: find out who may write it.",
        )


def _judge_additions(
    entries: LinkedEntries, head: Entry
) -> tuple[tuple[Entry, Record], list[Header]]:
    """Judge the entries after the owner's last one, and find that one."""
    additions, signers = list[Header](), set[str]()
    for header, record in entries.walk():
        # Any member may have written it. No other entry vouches for its writer's role, and only a
        # later entry about requests by the same key vouches for the signature.
        rule = KINDS[header.kind]
        covered = rule.about_requests and header.by in signers
        is_head = header.seq == head.seq
        entry = head if is_head else entries.verify(record, header.seq, covered=covered)
        if additions:
            _check_after(header, additions[-1])
        if rule.about_requests:
            signers.add(header.by)
        if rule.by_owner or rule.settles_owner:
            return (entry, record), additions
        additions.append(header)
    raise Missing(f"thread {head.header.thread[:12]}: its first entry is missing")


def _check_after(before: Header, header: Header) -> None:
    """Check rules 1, 2 and 4, for an entry and the one before it."""
    check_succession(before, header)
    check_generation(header, before, erased=before.kind is Kind.ERASE)


def _check_keys(entries: LinkedEntries, headers: Sequence[Header], trust: StoreChain) -> None:
    """Check rule 10, for entries that follow each other, newest first.

    Few keys expire: only for those, the time before the entries is read.
    """
    rosters = ((header.by, trust.roster_at(header.roster)) for header in headers)
    if not any(roster is not None and by in roster.expiries for by, roster in rosters):
        return
    time = headers[-1].at
    if headers[-1].seq:
        below = ((found, each.header) for found, each in entries.walk(headers[-1]))
        time = read_basis_and_time(below)[1]
    for header in reversed(headers):
        check_key_expiry(header, time, trust)
        time = next_time(header, time)


def _judge_ownership(
    entries: LinkedEntries,
    newest: Entry,
    seen: Sequence[Position],
    trust: StoreChain,
    *,
    reserved: bool,
    name: str | None,
) -> _Owned:
    """Find the owner: judge the handoffs down to the genesis or the newest erasure."""
    seq, found = newest.header.owner, list[tuple[Entry, Record]]()
    while True:
        record, header = entries.descend(seq)
        entry = _vouched(newest, record, header, trust) if not seq and not found else None
        entry = entries.verify(record, seq) if entry is None else entry
        if header.owner != seq or not KINDS[header.kind].settles_owner:
            raise Misplaced(
                f"entry {seq} of thread {header.thread[:12]}: expected an entry that says whose "
                f"the thread is, found a {header.kind.word}"
            )
        check_reserved(header, reserved=reserved)
        require_genesis_name(entry, record, name)
        found.append((entry, record))
        if not seq:
            break
        before = entries.before(header)
        _check_after(before, header)
        if header.kind is Kind.ERASE:
            break
        seq = before.owner
    _require_seen({entry.seq: entry for entry, _ in found}, seq, seen)
    # Of each, whether only its writer wrote on top: the next handoffs, and the owner's last entry.
    alone, writers = list[bool](), {trust.person_of(newest)}
    for entry, _ in found:
        alone.append(writers == {trust.person_of(entry)})
        writers.add(trust.person_of(entry))
    first, record = found.pop()
    owned = _begun(first, record, trust)
    _check_keys(entries, [first.header], trust)
    if alone.pop() and owned.erased:
        _walk_own(entries, first, trust)
    below: dict[int, tuple[tuple[int, bytes], datetime]] = {}
    while found:
        owned = _handed_over(entries, owned, found.pop(), below, trust, is_alone=alone.pop())
    return owned


def _vouched(newest: Entry, record: Record, header: Header, trust: StoreChain) -> Entry | None:
    """Return the genesis below an owner's entry, whose signature covers the genesis as well.

    An owner who signs on top of a genesis that names it as the owner has adopted the thread, even
    if another key signed the genesis.
    """
    if newest.seq == header.seq:
        return None
    roster = trust.roster_at(header.roster)
    holder = None if roster is None else roster.holder(KeyId(bytes.fromhex(header.by)))
    return None if holder is None else Entry.verified(record.header, header, holder[0].name)


def _require_seen(owners: Mapping[int, Entry], first: int, seen: Sequence[Position]) -> None:
    """Refuse a thread whose handoffs skip the owner's entry that an anchor has seen."""
    for position in seen:
        entry = owners.get(position.owner)
        if position.owner < first or (entry and entry.hash == position.owner_entry):
            continue
        raise Forked(
            f"entry {position.owner} of thread {position.thread.hex()[:12]}: an anchor has seen "
            "that it says whose the thread is, and the thread's later entries leave it out"
        )


def _begun(entry: Entry, record: Record, trust: StoreChain) -> _Owned:
    """Return the owner after the first entry or an erasure: nothing before it counts."""
    if entry.header.kind is Kind.ERASE:
        return _Owned(None, read_owner_entry(entry, None), entry.header)
    tip = begin(entry, record.body, trust)
    return _Owned(tip.fence.owner, tip.owner, entry.header)


def _handed_over(
    entries: LinkedEntries,
    before: _Owned,
    handoff: tuple[Entry, Record],
    below: dict[int, tuple[tuple[int, bytes], datetime]],
    trust: StoreChain,
    *,
    is_alone: bool,
) -> _Owned:
    """Return the owner after a genesis that follows an erasure, or after a permitted handoff."""
    entry, record = handoff
    header = entry.header
    check_reserved(header, reserved=before.entry.reserved)
    check_generation(header, entries.before(header), erased=before.erased)
    if header.kind is Kind.GENESIS:
        owner = read_fence(entry, record.body).owner
        check_owner(entry, owner, trust)
        _check_keys(entries, [header], trust)
        return _Owned(owner, read_owner_entry(entry, record.body), header)
    rows = ((found, each.header) for found, each in entries.walk(header))
    basis, time = below[header.seq] = read_basis_and_time(rows, below)
    check_key_expiry(header, time, trust)
    approved = check_handoff(
        entry,
        record.body,
        owner=before.name,
        basis=basis[1].hex(),
        now=time_at(header, time),
        chain=trust,
    )
    if is_alone:
        if approved:
            _walk_own(entries, entry, trust)
        else:
            _walk_down(entries, header, before.entry.seq, trust)
    # An unknown owner stays unknown up to the erasure, regardless of later bodies.
    owner = read_fence(entry, None if before.name is None else record.body).owner
    return _Owned(owner, read_owner_entry(entry, record.body), before.begun)


def _walk_down(entries: LinkedEntries, above: Header, owner: int, trust: StoreChain) -> None:
    """Make sure that nothing was left out between a handoff and the owner's entry before it."""
    for header, record in entries.walk(above):
        check_succession(header, above)
        require_counted(trust, header, link_hash(record.header))
        if header.seq == owner:
            return
        above = header


def _walk_own(entries: LinkedEntries, entry: Entry, trust: StoreChain) -> None:
    """Judge the entries by the same person right below an entry, down to another person's."""
    above, person = entry.header, trust.person_of(entry)
    own = list[Header]()
    for header, record in entries.walk(above):
        _check_after(header, above)
        if trust.person_of(entries.verify(record, header.seq)) != person:
            break
        own.append(header)
        above = header
    if own:
        _check_keys(entries, own, trust)


def _judge_pause(
    entries: LinkedEntries, head: Header, owned: _Owned, trust: StoreChain
) -> int | None:
    """Return the pause in force at the head, if any; refuse entries above it that it blocks."""
    paused = _paused_at(entries, head, owned, trust)
    if paused is None:
        _judge_lost_pause(entries, head, trust)
    else:
        for above, _ in entries.walk():
            if above.seq == paused:
                break
            check_pause(above, paused)
    return paused


def _judge_lost_pause(entries: LinkedEntries, head: Header, trust: StoreChain) -> None:
    """Refuse entries since a restore that a pause would block which that restore lost."""
    thread, above = bytes.fromhex(head.thread), head
    for header, record in entries.walk():
        if trust.lost_pause(thread, head.pause, header.epoch) is None:
            break
        if header.seq != head.seq:
            check_succession(header, above)
        require_counted(trust, header, link_hash(record.header))
        above = header


def _paused_at(
    entries: LinkedEntries, header: Header, owned: _Owned, trust: StoreChain
) -> int | None:
    """Return the pause that an entry names as in force; None if it names the end of one.

    Raises:
        Misplaced: It names an entry that settles nothing.
    """
    if header.pause == owned.begun.seq:
        return None
    record, settled = entries.descend(header.pause)
    entries.verify(record, header.pause)
    _check_keys(entries, [settled], trust)
    # A genesis or an erasure also settles it. They begin the generation, which was checked above.
    settles = settled.kind in (Kind.PAUSE, Kind.UNPAUSE) and settled.pause == header.pause
    if not settles or settled.gen != header.gen:
        raise Misplaced(
            f"entry {header.pause} of thread {header.thread[:12]}: expected a pause or the end of "
            f"one, found a {settled.kind.word}"
        )
    return header.pause if settled.kind is Kind.PAUSE else None


def _judge_session(
    entries: LinkedEntries,
    newest: tuple[Entry, Record],
    owned: _Owned,
    trust: StoreChain,
) -> Fence:
    """Judge the owner's last entry and the opening of its session: the writer, and no pause."""
    entry, record = newest
    header, saved = entry.header, record
    if header.seq == owned.entry.seq:
        return read_fence(entry, record.body)
    _judge_owned(entries, entry, owned, trust)
    if header.fence == header.seq:
        opening = entry
    else:
        record, opened = entries.descend(header.fence)
        if opened.by == header.by:
            # The usual case: the signature of the later entry covers that one too.
            opening = Entry.verified(record.header, opened, entry.writer)
            require_counted(trust, opened, opening.hash)
        else:
            opening = entries.verify(record, header.fence)
        _judge_owned(entries, opening, owned, trust)
        _check_keys(entries, [opened], trust)
    fence = read_fence(opening, None if owned.name is None else record.body)
    check_session(header, fence)
    if KINDS[header.kind].is_checkpoint and saved.body is not None and fence.owner is not None:
        state: CheckpointBody = entries.body(header, saved)
        check_world(f"entry {header.seq} of thread {header.thread[:12]}", state.world, fence.world)
    if fence.owner not in (None, owned.name):
        raise NotTrusted(
            f"entry {fence.seq} of thread {header.thread[:12]}: expected owner {owned.name!r}, "
            f"found {fence.owner!r}"
        )
    return fence


def _judge_owned(entries: LinkedEntries, entry: Entry, owned: _Owned, trust: StoreChain) -> None:
    """Judge an entry of the owner: its writer, and whether a pause blocked it."""
    header, rule = entry.header, KINDS[entry.header.kind]
    if header.seq == owned.entry.seq:
        return
    _check_after(entries.before(header), header)
    check_owner(entry, owned.name, trust)
    check_reserved(header, reserved=owned.entry.reserved)
    if rule.blocked_by_pause or rule.only_paused:
        check_pause(header, _paused_at(entries, header, owned, trust))
