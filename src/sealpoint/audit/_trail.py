# SPDX-License-Identifier: Apache-2.0
"""The trail: every entry of a namespace's threads and of the store chain, in the order of time.

Each entry is verified before it is told. A thread that does not verify is told up to there, and
then as a record with a finding, whatever was asked for: nothing is skipped in silence. Threads are
read side by side, each from the time of its first entry on, so memory follows how many are under
way at once and not how much the store holds.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sealpoint.audit._report import Finding
from sealpoint.audit._walk import Source, Step, ThreadWalk, sources
from sealpoint.audit._words import NONSENSE, said, said_on_store_chain, speaker
from sealpoint.errors import Edited, Missing, SealpointError, UsageError
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    HandoffBody,
    Kind,
    StoreChain,
    VerdictBody,
    link_hash,
    parse_body,
    parse_header,
)
from sealpoint.signing import Attestation, Roster, parse_seals
from sealpoint.storage import Record
from sealpoint.store import Chain, Core, check_name

__all__ = ["AuditRecord", "audit_trail", "record_of", "select_threads", "store_chain_record"]

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ROOT = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One entry in plain words, or what is wrong with a thread."""

    time: datetime | None
    """When it was written, as its writer says; of a finding, the newest time that was verified."""
    thread: str
    """The name of the thread; empty for the store chain, and where an erasure has taken it."""
    thread_id: str
    """The thread's id in hexadecimal; zeros for the store chain."""
    seq: int
    """The position; of a finding, the first one that did not verify."""
    kind: str
    """The kind of the entry, or `finding`."""
    by: str
    """The identity that signed; `root` for the root."""
    person: str
    """The person behind it, as the roster of that time says."""
    entry: str
    """The hash of the entry, which nothing else has."""
    summary: str
    """What it says, in words; texts that somebody wrote are made visible."""
    people: tuple[str, ...] = ()
    """Every identity and person that it is by, or that it carries a valid word of."""
    finding: Finding | None = None
    """Why nothing beyond is told of the thread."""

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "time": None if self.time is None else self.time.isoformat(),
            "thread": self.thread,
            "thread_id": self.thread_id,
            "seq": self.seq,
            "kind": self.kind,
            "by": self.by,
            "person": self.person,
            "entry": self.entry,
            "summary": self.summary,
            "people": list(self.people),
            "finding": None if self.finding is None else self.finding.as_dict(),
        }


_Key = tuple[datetime, str, int]
_Keyed = tuple[_Key, AuditRecord]


def audit_trail(
    core: Core,
    *,
    thread: str | None = None,
    actor: str | None = None,
    kind: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[AuditRecord]:
    """Tell what happened, oldest first.

    Args:
        core: The store.
        thread: Only this thread; the store chain is then left out.
        actor: Only what this identity or person did or said.
        kind: Only entries of this kind.
        since: Only entries of this time or later.
        until: Only entries before this time.

    Raises:
        UsageError: There is no such kind, or a time has no time zone.
        UnknownThread, Unanchored: There is no such thread, or only the store knows it.
        SealpointError: The store chain cannot be believed, or nobody can look.
    """
    if kind is not None and kind not in tuple(Kind):
        raise UsageError(f"kind: expected one of {', '.join(Kind)}, found {kind[:64]!r}")
    for what, time in (("since", since), ("until", until)):
        if time is not None and time.tzinfo is None:
            raise UsageError(f"{what}: expected a time with its time zone, found one without")
    chosen = None if thread is None else select_threads(core, [thread])
    return _selected(_merged(core, chosen), actor=actor, kind=kind, since=since, until=until)


def select_threads(core: Core, names: list[str]) -> list[tuple[str, Source]]:
    """The threads of some names, as the anchor knows them.

    Raises:
        UnknownThread, Unanchored: There is no such thread, or only the store knows it.
    """
    core.trust()
    found = []
    for name in names:
        chain = Chain(core, check_name(name, "thread name"))
        position = core.anchor.get(chain.slot)
        if position is None:
            chain.refresh()  # which says why it cannot be found
            position = core.anchor.get(chain.slot)
        if position is not None:
            found.append((name, Source(position.thread, core.restored(position))))
    return found


def _selected(
    records: Iterator[AuditRecord],
    *,
    actor: str | None,
    kind: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Iterator[AuditRecord]:
    for record in records:
        time = record.time
        if record.finding is not None or (
            (actor is None or actor in record.people)
            and (kind is None or record.kind == kind)
            and (since is None or time is None or time >= since)
            and (until is None or time is None or time < until)
        ):
            yield record


def _merged(core: Core, chosen: list[tuple[str, Source]] | None) -> Iterator[AuditRecord]:
    """Merge the threads; one is begun when the time of its first entry has come."""
    heap: list[tuple[_Key, int, AuditRecord | None]] = []
    streams: dict[int, Iterator[_Keyed]] = {}

    def add(first: datetime, stream: Iterator[_Keyed]) -> None:
        number = len(streams)
        streams[number] = stream
        heap.append(((first, "", -1), number, None))

    if chosen is None:
        add(_LONG_AGO, _store_chain(core, core.renewed_trust()))
        chosen = [("", source) for source in sources(core)]
    for name, source in chosen:
        walk = ThreadWalk(core, source.thread, source.anchored, name)
        add(_begun(core, source.thread), _told(walk))
    heapq.heapify(heap)
    while heap:
        _, number, record = heapq.heappop(heap)
        if record is not None:
            yield record
        following = next(streams[number], None)
        if following is None:
            del streams[number]
        else:
            heapq.heappush(heap, (following[0], number, following[1]))


def _begun(core: Core, thread: bytes) -> datetime:
    """When a thread says that it began: it decides when to read on, and proves nothing."""
    try:
        record = core.storage.read(thread, 0)
        return _LONG_AGO if record is None else parse_header(record.header).at
    except SealpointError:
        return _LONG_AGO


def _told(walk: ThreadWalk) -> Iterator[_Keyed]:
    """The records of one thread, in rising order of their keys; at the end what is wrong."""
    newest, last = _LONG_AGO, -1
    held: list[Step] = []

    def tell(*, released: bool) -> Iterator[_Keyed]:
        nonlocal newest
        for step in held:
            # A clock that went back does not bring the thread out of order.
            newest = max(newest, step.entry.header.at)
            record = record_of(step, walk.name, released=released)
            yield (newest, walk.name, step.entry.seq), record
        held.clear()

    try:
        for step in walk.steps():
            rule = KINDS[step.entry.header.kind]
            if rule.sets_fence:
                yield from tell(released=False)
            held.append(step)
            # Whether a session has written anything is known at its first entry, or its end.
            waits = step.tip.fence.is_session and held[0].entry.header.kind is Kind.RESUME
            if not waits or rule.in_session:
                yield from tell(released=True)
            last = step.entry.seq
    except SealpointError as error:
        yield from tell(released=False)
        yield (newest, walk.name, last + 1), _finding(error, walk, newest, last + 1)
        return
    yield from tell(released=False)


def _finding(error: SealpointError, walk: ThreadWalk, newest: datetime, seq: int) -> AuditRecord:
    thread = walk.thread.hex()
    message = str(error)
    return AuditRecord(
        time=None if newest == _LONG_AGO else newest,
        thread=walk.name,
        thread_id=thread,
        seq=seq,
        kind="finding",
        by="",
        person="",
        entry="",
        summary=f"this thread does not verify from here on: {message}",
        finding=Finding(code=error.code, thread=thread, name=walk.name, message=message),
    )


def record_of(step: Step, name: str, *, released: bool = True) -> AuditRecord:
    """An entry of a thread in plain words."""
    entry, body = step.entry, step.body
    header = entry.header
    roster = step.chain.roster_at(header.roster)
    if roster is None:
        raise Missing(f"store chain: expected roster {header.roster}, found none")
    identity = roster.identity(entry.writer)
    person = "" if identity is None else identity.person
    people = {entry.writer, person}
    words: tuple[Attestation, ...] = ()
    if isinstance(body, VerdictBody):
        words = (body.attestation,)
    elif isinstance(body, HandoffBody):
        words = body.attestations
    for word in words:
        who = speaker(word, roster)
        if who is not None:
            people |= {who.name, who.person}
    return AuditRecord(
        time=header.at,
        thread=name,
        thread_id=header.thread,
        seq=entry.seq,
        kind=str(header.kind),
        by=entry.writer,
        person=person,
        entry=entry.hash.hex(),
        summary=NONSENSE if step.nonsense else said(header.kind, body, roster, released=released),
        people=tuple(sorted(people - {""})),
    )


# ---------------------------------------------------------------------- the store chain


def _store_chain(core: Core, chain: StoreChain) -> Iterator[_Keyed]:
    newest = _LONG_AGO
    for seq, record in core.storage.scan(STORE_CHAIN, 0, chain.seq):
        if link_hash(record.header) != chain.hashes[seq]:
            raise Edited(f"store chain entry {seq}: expected it as it was verified, found another")
        told = store_chain_record(record, chain, seq)
        newest = max(newest, told.time or _LONG_AGO)
        yield (newest, "", seq), told


def store_chain_record(record: Record, chain: StoreChain, seq: int) -> AuditRecord:
    """An entry of the verified store chain in plain words."""
    header = parse_header(record.header)
    body = parse_body(header.kind, header.body, record.body or b"")
    roster = next((each for each in reversed(chain.rosters) if each.seq < seq), None)
    names, persons = _signers(record, roster)
    return AuditRecord(
        time=header.at,
        thread="",
        thread_id=header.thread,
        seq=seq,
        kind=str(header.kind),
        by=", ".join(names),
        person=", ".join(persons),
        entry=chain.hashes[seq].hex(),
        summary=said_on_store_chain(body, chain, seq),
        people=tuple(sorted({*names, *persons})),
    )


def _signers(record: Record, roster: Roster | None) -> tuple[list[str], list[str]]:
    """Who signed: identities of the roster before, or the root."""
    names, persons = [], []
    for seal in parse_seals(record.seals):
        holder = None if roster is None else roster.holder(KeyId(seal.key.raw))
        if holder is None:
            names.append(_ROOT)
        else:
            names.append(holder[0].name)
            persons.append(holder[0].person)
    return sorted(set(names)), sorted(set(persons))
