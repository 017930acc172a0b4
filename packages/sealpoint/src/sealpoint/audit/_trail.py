# SPDX-License-Identifier: Apache-2.0
"""The trail: every entry of a namespace's threads and of the store chain, in order of time.

Each entry is verified before it appears. For a thread that does not verify, the trail shows the
entries up to the failure and then a record with a finding, regardless of the filter: nothing is
skipped silently. Threads are merged by time, each from its first entry on, so memory grows with the
number of threads that overlap in time and not with the size of the store.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sealpoint.audit._report import Finding
from sealpoint.errors import Edited, Forged, Missing, NotTrusted, SealpointError, UsageError
from sealpoint.ids import KeyId
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    AdoptBody,
    ChainStep,
    CheckpointBody,
    Entry,
    EraseBody,
    ExpiryBody,
    GenesisBody,
    HandoffBody,
    Kind,
    PauseBody,
    PruneBody,
    RequestBody,
    RestoreBody,
    ResultsBody,
    ResumeBody,
    RootBody,
    RosterBody,
    StoreChain,
    UnpauseBody,
    VerdictBody,
    is_bound,
    link_hash,
    parse_header,
    readable_body,
)
from sealpoint.signing import (
    Action,
    Attestation,
    Identity,
    Roster,
    RosterDocument,
    Verdict,
    parse_seals,
    verify_attestation,
)
from sealpoint.storage import Record
from sealpoint.store import Chain, Core, ThreadWalk, check_name
from sealpoint.world import json_form, visible

# Descriptions of entries, in one line of plain words.
#
# Text that someone wrote into a body is made visible: the output contains no control characters, no
# reversed writing direction and no invisible characters.


NOT_RELEASED = "allowed, not known to be released"
"""The note on a resume that no later entry of its session follows."""

UNREADABLE = "(its body cannot be read)"
"""The description of an entry whose body is as it was sealed but is not valid."""

UNBOUND = " (it does not fit the thread as it was: nobody can approve it)"
"""The note on a request that is about another thread, or another state of this one."""

_SHORT_DIGITS = 12
_TEXT_CHARS_MAX = 500


def short(digest: str | None) -> str:
    """Return the first digits of a digest, for people to compare."""
    return "none" if digest is None else visible(digest[:_SHORT_DIGITS])


def _show(text: str) -> str:
    shown = visible(text)
    if len(shown) <= _TEXT_CHARS_MAX:
        return shown
    return f"{shown[:_TEXT_CHARS_MAX]}... and {len(shown) - _TEXT_CHARS_MAX} more characters"


def _because(reason: str | None) -> str:
    return "" if reason is None else f": {_show(reason)}"


def _for(actor: str | None) -> str:
    return "" if actor is None else f" for {_show(actor)}, as claimed"


def find_signer(word: Attestation, roster: Roster) -> Identity | None:
    """Return the roster's identity that signed an attestation; None if no identity of it did."""
    try:
        return verify_attestation(word, roster)
    except (Forged, NotTrusted):
        return None


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def describe_entry(kind: Kind, body: Any, roster: Roster, *, released: bool = True) -> str:
    """Describe an entry of a thread.

    Args:
        kind: Its kind.
        body: Its body; None if it was erased.
        roster: The roster that it was written under.
        released: For a resume, whether a later entry of its session follows.
    """
    if body is None:
        left = f"; {NOT_RELEASED}" if kind is Kind.RESUME and not released else ""
        return f"(erased){left}"
    if isinstance(body, VerdictBody):
        return _verdict(body, roster)
    if isinstance(body, ResumeBody):
        return _resume(body, released=released)
    if isinstance(body, PruneBody):
        return _prune(body, kind)
    if kind is Kind.HELD:
        return f"held back by the pause: {_checkpoint(body)}"
    return _DESCRIBED[type(body)](body)


def _genesis(body: GenesisBody) -> str:
    return f"the thread {_show(body.name)!r} begins, owned by {_show(body.owner)}"


def _checkpoint(body: CheckpointBody) -> str:
    lane = f" of lane {_show(body.lane)}" if body.lane else ""
    again = "" if body.again is None else "; it replaces the one of the same name"
    asked = "" if body.question is None else "; a question is pending"
    world = "" if body.world is None else f"; world {short(body.world)}"
    return f"state {_show(body.id)}{lane} is saved{again}{world}{_copied(body)}{asked}"


def _writes(body: ResultsBody) -> str:
    what = "an answer" if body.answers else f"results of task {short(body.task)}"
    asked = "" if body.question is None else "; a question is pending"
    return f"{what} for state {_show(body.checkpoint)}{_copied(body)}{asked}"


def _copied(body: CheckpointBody | ResultsBody) -> str:
    if body.origin is None:
        return ""
    entry = short(body.origin.entry)
    if body.origin.is_file:
        return f"; imported from a file with the SHA-256 {entry}"
    return f"; copied from entry {entry} of thread {short(body.origin.thread)}"


def _resume(body: ResumeBody, *, released: bool) -> str:
    parts = [f"a session of {_show(body.owner)} begins"]
    if body.checkpoint is not None:
        parts.append(f"from checkpoint entry {short(body.checkpoint)}")
        parts.append(f"release {short(body.release)}")
    if body.rules:
        parts.append(f"rules {', '.join(_show(rule) for rule in body.rules)}")
    elif body.checkpoint is not None:
        parts.append("no rule applied")
    if body.policy is not None:
        parts.append(f"policy {short(body.policy)}")
    if body.request is not None:
        parts.append(f"spends request {short(body.request)}")
    parts += [f"by rollout {short(each.digest)}{_because(each.reason)}" for each in body.rollouts]
    if body.answer is not None:
        parts.append(f"answer {short(body.answer)}")
    if body.edits:
        parts.append("an edit, in which nothing runs")
    if body.idempotent:
        parts.append("the outcome of the last run was unknown, and doing it again is harmless")
    if body.unsealed:
        parts.append(f"the run reads what is not sealed: {', '.join(map(_show, body.unsealed))}")
    if body.answered is not None:
        parts.append(f"answered by {_show(body.actor or '')}, signed as {short(body.answered)}")
    elif body.actor is not None:
        parts.append(f"for {_show(body.actor)}, as the caller claims")
    if body.reason is not None:
        parts.append(f"reason given{_because(body.reason)}")
    if not released:
        parts.append(NOT_RELEASED)
    return "; ".join(parts)


def _handoff(body: HandoffBody) -> str:
    if body.statement is None:
        return f"new owner {_show(body.owner)}{_for(body.actor)}{_because(body.reason)}"
    words = f"by an operator, request {short(body.statement.digest)}"
    words += f" with {len(body.attestations)} words of others"
    return f"new owner {_show(body.owner)}, {words}{_for(body.actor)}{_because(body.reason)}"


def _request(body: RequestBody) -> str:
    statement = body.statement
    if statement.action is Action.ROLLOUT:
        count = len(statement.differences)
        what = f"asks to roll out {count} difference{'' if count == 1 else 's'} between worlds"
    elif statement.action is Action.HANDOFF:
        what = f"asks to hand off to {_show(statement.to or '')}"
    elif statement.action is Action.ANSWER:
        what = f"answers the question at checkpoint entry {short(statement.checkpoint)}"
    else:
        what = f"asks to resume from checkpoint entry {short(statement.checkpoint)}"
    what += _for(statement.actor)
    until = f"policy {short(statement.policy)}, open until {_time(statement.expires)}"
    return f"request {short(statement.digest)} {what}, {until}{_because(statement.reason)}"


def _verdict(body: VerdictBody, roster: Roster) -> str:
    word = body.attestation
    who = find_signer(word, roster)
    by = "nobody of the roster: it does not count" if who is None else _show(who.name)
    what = f"{word.verdict} of request {short(word.statement)}"
    if word.verdict is Verdict.BREAK_GLASS:
        what = f"request {short(word.statement)} passes without the approvals it needs"
    return f"{what} by {by}{_for(body.actor)}{_because(word.reason)}"


def _prune(body: PruneBody, kind: Kind = Kind.PRUNE) -> str:
    if kind is Kind.DELETE:
        spans = ", ".join(f"{first} to {last}" for first, last in body.deleted)
        return f"deleted for the application by now: entries {spans}{_because(body.reason)}"
    kept = f", {len(body.kept)} kept" if body.kept else ""
    return f"states before entry {body.before} are given up{kept}{_because(body.reason)}"


_DESCRIBED: dict[type, Callable[[Any], str]] = {
    GenesisBody: _genesis,
    CheckpointBody: _checkpoint,
    HandoffBody: _handoff,
    RequestBody: _request,
    ResultsBody: _writes,
    PauseBody: lambda body: f"paused{_for(body.actor)}{_because(body.reason)}",
    UnpauseBody: lambda body: f"unpaused{_for(body.actor)}{_because(body.reason)}",
    ExpiryBody: lambda body: (
        f"request {short(body.request)} has "
        + (
            "expired"
            if body.positions is None
            else "ended; the positions of all threads are listed"
        )
    ),
    EraseBody: lambda body: f"all that the thread held was erased{_because(body.reason)}",
    AdoptBody: lambda body: f"taken into an anchor that did not know it{_because(body.reason)}",
}


def describe_store_entry(body: Any, chain: StoreChain, seq: int) -> str:
    """Describe an entry of the store chain.

    Args:
        body: Its body.
        chain: The store chain, read at least up to this entry.
        seq: Its position.
    """
    if isinstance(body, RosterBody):
        return _roster(body, chain, seq)
    if isinstance(body, RootBody):
        root = body.root
        keys = f"{root.threshold} of {len(root.keys)} keys have to sign"
        return f"root {root.version}: {keys}{_because(body.reason)}"
    if isinstance(body, RestoreBody):
        lists = (chain.lists.get(each) for each in (body.kept, body.lost, body.released))
        kept, lost, released = map(len, lists)
        what = f"{kept} threads kept, {lost} cut off or lost"
        what += f", {released} of these released" if released else ""
        if body.paused is not None:
            paused = len(chain.lists.get(body.paused))
            what += f", {paused} of these paused until an operator decides"
        return f"a restored store was accepted: {what}{_because(body.reason)}"
    return _DESCRIBED[type(body)](body)


def _roster(body: RosterBody, chain: StoreChain, seq: int) -> str:
    document = body.roster
    earlier = [each for each in chain.rosters if each.seq < seq]
    if not earlier:
        names = ", ".join(_show(each.name) for each in document.identities)
        return f"the first roster: {names}{_policies({}, document.policies)}{_because(body.reason)}"
    before = earlier[-1].document
    parts = _identity_changes(before, document)
    if before.pools != document.pools:
        parts.append("pools changed")
    if before.restore_quorum != document.restore_quorum:
        parts.append(f"restore quorum {document.restore_quorum}")
    # Earlier rosters no longer have their cutoffs: only the current number is known.
    if document.cutoffs:
        parts.append(f"{len(document.cutoffs)} keys have come to their end")
    what = ", ".join(parts) or "nobody was added"
    return f"roster {seq}: {what}{_policies(before.policies, document.policies)}" + _because(
        body.reason
    )


def _identity_changes(before: RosterDocument, document: RosterDocument) -> list[str]:
    old = {each.name: each for each in before.identities}
    new = {each.name: each for each in document.identities}
    added = [f"+{_show(name)} ({', '.join(new[name].roles)})" for name in new if name not in old]
    removed = [f"-{_show(name)}" for name in old if name not in new]
    changed = [f"~{_show(name)}" for name in new if name in old and new[name] != old[name]]
    return [*added, *removed, *changed]


def _policies(old: dict[str, str], new: dict[str, str]) -> str:
    changed = [
        f"; policy of namespace {_show(name)} is {short(digest)}"
        for name, digest in sorted(new.items())
        if old.get(name) != digest
    ]
    gone = [f"; no policy for namespace {_show(name)}" for name in sorted(old.keys() - new.keys())]
    return "".join(changed + gone)


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ROOT = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One entry in plain words, or what is wrong with a thread."""

    time: datetime | None
    """Its time, as its writer claims; for a finding, the newest time that was verified."""
    thread: str
    """The name of the thread; empty for the store chain, and after an erasure."""
    thread_id: str
    """The thread's id in hexadecimal; zeros for the store chain."""
    seq: int
    """The position; for a finding, the first one that did not verify."""
    kind: str
    """The kind of the entry, or `finding`."""
    by: str
    """The identity that signed it; `root` for the root."""
    person: str
    """The person behind it, according to the roster of that time."""
    entry: str
    """The hash of the entry, which is unique."""
    summary: str
    """A description in words; text that someone wrote is made visible."""
    people: tuple[str, ...] = ()
    """Every identity and person that wrote it, or whose valid attestation it carries."""
    actor: str = ""
    """The person for whom its writer claims to have written it, which proves nothing; empty:
    none."""
    request: str = ""
    """The id of the request that it makes, answers, ends or uses; empty: none, or the request does
    not fit the thread."""
    word_of: str = ""
    """For an answer to a request, the identity that signed the answer; empty: none."""
    finding: Finding | None = None
    """Why the trail shows no more of the thread."""

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return json_form(self)


_Key = tuple[datetime, str, int]
_Keyed = tuple[_Key, AuditRecord]


class _Filter(NamedTuple):
    """The filter of the caller; None: everything."""

    actor: str | None
    kind: str | None
    since: datetime | None
    until: datetime | None

    def takes(self, record: AuditRecord) -> bool:
        """Whether the trail shows a record; it always shows one with a finding."""
        if record.finding is not None or record.time is None:
            return True
        return (
            (self.actor is None or self.actor in (*record.people, record.actor))
            and (self.kind is None or self.kind == record.kind)
            and (self.since is None or self.since <= record.time)
            and (self.until is None or record.time < self.until)
        )


def audit_trail(
    core: Core,
    *,
    thread: str | None = None,
    actor: str | None = None,
    kind: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[AuditRecord]:
    """Show what happened, oldest first.

    Args:
        core: The store.
        thread: Only this thread; the store chain is then left out.
        actor: Only entries by this identity or person, or written on its behalf as claimed.
        kind: Only entries of this kind.
        since: Only entries of this time or later.
        until: Only entries before this time.

    Raises:
        UsageError: There is no such kind, or a time has no time zone.
        UnknownThread, Unanchored: There is no such thread, or only the store knows it.
        SealpointError: The store chain cannot be trusted, or the store cannot be read.
    """
    words = [each.word for each in Kind]
    if kind is not None and kind not in words:
        raise UsageError(f"kind: expected one of {', '.join(words)}, found {kind[:64]!r}")
    for what, time in (("since", since), ("until", until)):
        if time is not None and time.tzinfo is None:
            raise UsageError(
                f"{what}: expected a time with its time zone, found one without",
                hint="Give it with its zone, such as datetime(2030, 1, 1, tzinfo=UTC).",
            )
    chosen = None if thread is None else select_threads(core, [thread])
    wanted = _Filter(actor, kind, since, until)
    return (record for record in _merge(core, chosen) if wanted.takes(record))


def select_threads(core: Core, names: Iterable[str]) -> list[ThreadWalk]:
    """Return a walk for each of some threads, as the anchor knows them.

    Raises:
        UnknownThread, Unanchored: There is no such thread, or only the store knows it.
    """
    core.trust()
    found = []
    for name in sorted(names):
        chain = Chain(core, check_name(name, "thread name"))
        position = core.anchor.get(chain.slot)
        if position is None:
            chain.refresh()  # raises the error that says why it cannot be found
            position = core.anchor.get(chain.slot)
        if position is not None:
            found.append(ThreadWalk(core, position.thread, core.restored(position), name))
    return found


def _merge(core: Core, chosen: Iterable[ThreadWalk] | None) -> Iterator[AuditRecord]:
    """Merge the threads; start each when the merge reaches the time of its first entry."""
    heap: list[tuple[_Key, int, AuditRecord | None]] = []
    streams: dict[int, Iterator[_Keyed]] = {}

    def add(first: datetime, stream: Iterator[_Keyed]) -> None:
        number = len(streams)
        streams[number] = stream
        heap.append(((first, "", -1), number, None))

    if chosen is None:
        add(_LONG_AGO, _store_chain(core, core.renewed_trust()))
        chosen = ThreadWalk.each(core)
    for walk in chosen:
        add(_claimed_start(core, walk.thread), _records(walk))
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


def _claimed_start(core: Core, thread: bytes) -> datetime:
    """Return when a thread claims to have begun; the merge uses this, but it proves nothing."""
    try:
        record = core.storage.read(thread, 0)
        return _LONG_AGO if record is None else parse_header(record.header).at
    except SealpointError:
        return _LONG_AGO


def _records(walk: ThreadWalk) -> Iterator[_Keyed]:
    """Yield the records of one thread, ordered by their keys, and then any finding."""
    newest, last = _LONG_AGO, -1
    held: list[ChainStep] = []

    def tell(*, released: bool) -> Iterator[_Keyed]:
        nonlocal newest
        for step in held:
            # A clock that went back does not disturb the order of the thread.
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
            # Whether a session wrote anything is known at its first entry, or at its end.
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
    message = error.message
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


def record_of(step: ChainStep, name: str, *, released: bool = True) -> AuditRecord:
    """Describe an entry of a thread in plain words."""
    entry, body = step.entry, step.body
    record = make_record(
        entry, body, step.chain, name, unreadable=step.unreadable, released=released
    )
    if isinstance(body, RequestBody):
        basis = step.tip.basis[1].hex()
        if not is_bound(body.statement, entry, basis, entry.header.epoch):
            return replace(record, request="", summary=record.summary + UNBOUND)
    return record


def make_record(
    entry: Entry,
    body: Any,
    chain: StoreChain,
    name: str,
    *,
    unreadable: bool = False,
    released: bool = True,
) -> AuditRecord:
    """Describe a verified entry of a thread in plain words.

    Args:
        entry: The entry.
        body: Its body; None if it was erased, or cannot be read.
        chain: The store chain that it was judged by.
        name: The name of the thread.
        unreadable: Whether its body cannot be read.
        released: For a resume, whether a later entry of its session follows.
    """
    header = entry.header
    roster = chain.roster_at(header.roster)
    if roster is None:
        raise Missing(f"store chain: roster {header.roster} is missing")
    identity = roster.identity(entry.writer)
    person = "" if identity is None else identity.person
    people = {entry.writer, person}
    words: tuple[Attestation, ...] = ()
    if isinstance(body, VerdictBody):
        words = (body.attestation,)
    elif isinstance(body, HandoffBody):
        words = body.attestations
    for word in words:
        who = find_signer(word, roster)
        if who is not None:
            people |= {who.name, who.person}
    return AuditRecord(
        time=header.at,
        thread=name,
        thread_id=header.thread,
        seq=entry.seq,
        kind=header.kind.word,
        by=entry.writer,
        person=person,
        entry=entry.hash.hex(),
        summary=UNREADABLE
        if unreadable
        else describe_entry(header.kind, body, roster, released=released),
        people=tuple(sorted(people - {""})),
        actor=_actor_of(body),
        request=_request_of(body),
        word_of=_word_of(body, roster),
    )


def _actor_of(body: Any) -> str:
    """Return the person for whom an entry was written, as its writer claims."""
    if isinstance(body, RequestBody):
        return body.statement.actor or ""
    claims = PauseBody | UnpauseBody | HandoffBody | ResumeBody | VerdictBody
    return (body.actor or "") if isinstance(body, claims) else ""


def _request_of(body: Any) -> str:
    """Return the id of the request that an entry is about."""
    if isinstance(body, VerdictBody):
        return body.attestation.statement
    if isinstance(body, ExpiryBody | ResumeBody):
        return body.request or ""
    statement = body.statement if isinstance(body, RequestBody | HandoffBody) else None
    return "" if statement is None else statement.digest


def _word_of(body: Any, roster: Roster) -> str:
    """Return the identity that signed an answer to a request, regardless of the entry's writer."""
    who = find_signer(body.attestation, roster) if isinstance(body, VerdictBody) else None
    return "" if who is None else who.name


def _store_chain(core: Core, chain: StoreChain) -> Iterator[_Keyed]:
    newest = _LONG_AGO
    for seq, record in core.storage.scan(STORE_CHAIN, 0, chain.seq):
        if link_hash(record.header) != chain.hashes[seq]:
            raise Edited(f"store chain entry {seq}: it changed after it was verified")
        told = store_chain_record(record, chain, seq)
        newest = max(newest, told.time or _LONG_AGO)
        yield (newest, "", seq), told


def store_chain_record(record: Record, chain: StoreChain, seq: int) -> AuditRecord:
    """Describe an entry of the verified store chain in plain words."""
    header = parse_header(record.header)
    body = readable_body(header, record.body)
    roster = next((each for each in reversed(chain.rosters) if each.seq < seq), None)
    names, persons = _signers(record, roster)
    return AuditRecord(
        time=header.at,
        thread="",
        thread_id=header.thread,
        seq=seq,
        kind=header.kind.word,
        by=", ".join(names),
        person=", ".join(persons),
        entry=chain.hashes[seq].hex(),
        summary=UNREADABLE if body is None else describe_store_entry(body, chain, seq),
        people=tuple(sorted({*names, *persons})),
    )


def _signers(record: Record, roster: Roster | None) -> tuple[list[str], list[str]]:
    """Return the signers: identities of the roster before, or the root."""
    names, persons = [], []
    for seal in parse_seals(record.seals):
        holder = None if roster is None else roster.holder(KeyId(seal.key.raw))
        if holder is None:
            names.append(_ROOT)
        else:
            names.append(holder[0].name)
            persons.append(holder[0].person)
    return sorted(set(names)), sorted(set(persons))
