# SPDX-License-Identifier: Apache-2.0
"""The pending state of a thread, which is a pause and requests, and requests as people see them.

The pending entries come after the newest entry of a kind that a pause blocks, so the reader walks
only that part. It verifies every entry there on its own. A request counts only while its basis is
that of the thread. The reader ignores a request whose statement does not match its place, that
another identity signed than it names, or that shows another answer or world than its statement
binds. It also ignores an answer to a request that is not there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum, unique
from itertools import islice
from typing import Any, NamedTuple, TypeGuard

from sealpoint.errors import RequestClosed, WorldInvalid
from sealpoint.gate._decision import Difference, GrantFacts
from sealpoint.gate._policy import Policy
from sealpoint.gate._resume_call import answer_digest
from sealpoint.ledger import (
    KINDS,
    Body,
    Entry,
    ExpiryBody,
    HandoffBody,
    Header,
    Kind,
    RequestBody,
    ResumeBody,
    StoreChain,
    VerdictBody,
    counted_attestations,
    is_bound,
    is_lost,
    link_hash,
    readable_body,
)
from sealpoint.limits import REQUEST_ANSWERS_MAX
from sealpoint.signing import (
    Action,
    Attestation,
    Identity,
    Role,
    Roster,
    Statement,
    Tally,
    Verdict,
    count,
    persons_asking,
)
from sealpoint.storage import Record
from sealpoint.store import Chain
from sealpoint.world import World, WorldDiff, value_digest

_AMISS = timedelta(minutes=1)
"""The tolerated time between choosing the expiry of a request and writing the request."""

_CLOSED_WITHIN = 1_024
"""The search for the closing of a request covers this many of the newest entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that is bound to the current state of the thread, with the answers to it."""

    id: str
    """The digest of its statement."""
    entry: Entry
    body: RequestBody
    attestations: tuple[Attestation, ...] = ()
    relayed: tuple[int, ...] = ()
    """The positions of the entries that hold the attestations."""
    denials: tuple[tuple[str, datetime | None], ...] = ()
    """The identities that denied it and had the right to at that time, each with the time. A
    denial is final. The time is None if the writer of its entry may not determine the time."""
    expired: bool = False
    """Whether an entry records that it expired, at a time when it had, or withdraws its answer."""
    positions: tuple[str, ...] = ()
    """For a rollout, the digests of the position lists that were recorded after its end."""
    ended_in: int | None = None
    """The epoch of the entry that first denied it or recorded its end."""
    listed_by: frozenset[str] = frozenset()
    """The persons who recorded those lists."""
    answered_by: tuple[str, ...] = ()
    """For each entry that answers the request, the key that signed the entry."""

    def counts(self, key: str) -> bool:
        """Whether one more answer that this key records still counts."""
        return self.answered_by.count(key) < REQUEST_ANSWERS_MAX


class RequestsById(dict[str, Asked]):
    """Requests by the digests of their statements, oldest first."""

    def __init__(self, known: "RequestsById | None" = None) -> None:
        super().__init__(known or {})
        self.denied: set[str] = set() if known is None else set(known.denied)
        """The ids that a denial named while no such request was known. If a request with such an
        id comes later, it was there before and has lost its body: it grants nothing."""


class Pause(NamedTuple):
    """A pause in force, with the statement of its writer."""

    entry: Entry
    reason: str
    actor: str | None
    """The person on whose behalf it was written, as the writer claims."""

    @property
    def words(self) -> str:
        """The writer and the reason, as one text."""
        claimed = "" if self.actor is None else f" for {self.actor}"
        return f"{self.entry.writer}{claimed}: {self.reason}"


@dataclass(slots=True)
class Pending:
    """The pending pause and requests of a thread."""

    time: datetime
    """The time of the thread."""
    paused: Pause | None = None
    """The pause in force."""
    asked: RequestsById = field(default_factory=RequestsById)
    """Every request."""
    lost: tuple[Entry, ...] = ()
    """The entries about requests whose body is missing, or is not the one that was sealed."""


class PendingReader:
    """Reads the pending state of a thread; later reads cover only the new entries.

    Any member may add any number of answers to requests.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._trust: StoreChain | None = None
        self._basis: tuple[int, bytes] | None = None
        self._head: tuple[int, bytes] | None = None
        self._known: Pending | None = None

    def read(self) -> Pending:
        """Read the pending state below a verified head; raises as `read_pending` does."""
        chain, tip = self._chain, self._chain.tip()
        head = tip.entry.seq, tip.entry.hash
        trust = chain.core.trust()
        if KINDS[tip.entry.header.kind].blocked_by_pause:
            self._known = None
            return Pending(time=tip.time)  # nothing is pending: the most frequent case
        if trust is not self._trust or tip.basis != self._basis:
            self._known = None  # judge again which answers count
        pending = Pending(time=tip.time)
        found: list[tuple[Header, Record]] = []
        for header, record in chain.walk():
            if KINDS[header.kind].blocked_by_pause or header.kind is Kind.ERASE:
                break
            if self._is_head(header, record) and self._known is not None:
                known = self._known
                asked = RequestsById(known.asked)
                pending = Pending(tip.time, known.paused, asked, known.lost)
                break
            found.append((header, record))
        fold_found(chain, tip.basis, reversed(found), pending)
        self._trust, self._basis, self._head, self._known = trust, tip.basis, head, pending
        return pending

    def _is_head(self, header: Header, record: Record) -> bool:
        """Whether an entry was the newest at the previous read."""
        if self._head is None or header.seq != self._head[0]:
            return False
        return link_hash(record.header) == self._head[1]


def read_pending(chain: Chain) -> Pending:
    """Read the pending state below a verified head.

    Before the first checkpoint, the basis is the first entry of the thread.

    Raises:
        Tampered, NotTrusted: An entry is not what was written.
        Missing: A body is missing, and no erasure explains that.
    """
    return PendingReader(chain).read()


def fold_found(
    chain: Chain,
    basis: tuple[int, bytes],
    found: Iterable[tuple[Header, Record]],
    pending: Pending,
    *,
    since_epoch: int | None = None,
) -> Pending:
    """Add entries below a verified head, oldest first, each proven by its link.

    Args:
        chain: The chain of the thread.
        basis: The position of the basis, and its hash.
        found: The entries.
        pending: The pending state so far; it is changed.
        since_epoch: Requests of this epoch and of later ones count; None: only those of the epoch
            in force.
    """
    for header, record in found:
        if since_epoch is not None and header.epoch < since_epoch:
            continue
        if header.kind in (Kind.UNPAUSE, Kind.ERASE):
            pending.paused = None
        elif header.kind is Kind.PAUSE:
            entry, pause = _verified(chain, header, record), readable_body(header, record.body)
            # A pause counts even if its body is lost or unreadable.
            said = ("", None) if pause is None else (pause.reason, pause.actor)
            pending.paused = Pause(entry, *said)
        elif header.seq > basis[0] and KINDS[header.kind].about_requests:
            if not pending.asked and header.kind not in (Kind.REQUEST, Kind.DENIAL):
                continue  # it refers to no request
            body, trust = readable_body(header, record.body), chain.core.trust()
            if body is None:
                if is_lost(header, record.body):
                    entry = _verified(chain, header, record)
                    pending.lost = (*pending.lost, entry)
                    fold_lost(pending.asked, entry, trust.roster_at(header.roster))
            elif header.kind is Kind.DENIAL and _request_of(body) not in pending.asked:
                pending.asked.denied.add(_request_of(body))
            elif _may_count(body, header, pending.asked):
                entry = _verified(chain, header, record)
                fold_entry(
                    pending.asked,
                    entry,
                    body,
                    basis=basis[1].hex(),
                    epoch=trust.epoch if since_epoch is None else header.epoch,
                    trust=trust,
                )
    return pending


def fold_entry(
    asked: RequestsById,
    entry: Entry,
    body: Body,
    *,
    basis: str,
    epoch: int,
    trust: StoreChain,
) -> None:
    """Add a verified entry that concerns requests; other entries are ignored.

    The gate and an audit both count answers by this function alone. An answer of a key that had
    ended counts towards the limit of the key that recorded it, and for nothing else.

    Args:
        asked: The requests so far, by their ids; it is changed.
        entry: The entry.
        body: Its body, of any kind.
        basis: The hash of the basis that the entry was written on, in hexadecimal.
        epoch: The epoch that a request must name.
        trust: The store chain. It has the roster that the entry names, which shows who may record
            a denial or that a request expired, and the keys that had ended by then.
    """
    if isinstance(body, RequestBody):
        if is_bound(body.statement, entry, basis, epoch) and _is_shown(body):
            made = Asked(id=body.statement.digest, entry=entry, body=body)
            if made.id not in asked.denied:
                asked.setdefault(made.id, made)
        return
    found = asked.get(_request_of(body))
    if found is None and entry.header.kind is Kind.DENIAL:
        asked.denied.add(_request_of(body))
    if found is None or not found.counts(entry.header.by):
        return
    before = found
    found = replace(found, answered_by=(*found.answered_by, entry.header.by))
    match body:
        case VerdictBody(attestation=word):
            found = replace(
                found,
                attestations=(*found.attestations, word),
                relayed=(*found.relayed, entry.seq),
                denials=(*found.denials, *_denials(found, body, entry, trust)),
            )
        case ExpiryBody():
            found = _ended(found, entry, body, trust.roster_at(entry.header.roster))
        case _:
            return  # it concerns no request
    asked[found.id] = _with_its_end(found, entry)
    if found.denials and not before.denials:
        _withdraw(asked, before, entry, trust.roster_at(entry.header.roster))


def _withdraw(asked: RequestsById, answer: Asked, entry: Entry, roster: Roster | None) -> None:
    """End the requests to resume with an answer that was signed, and is denied now."""
    about = answer.body.statement
    if about.action is not Action.ANSWER or roster is None:
        return
    if not _tally(answer, roster, entry.header.at).approved_by:
        return
    given = (about.answer, about.release, about.actor)
    for each in tuple(asked.values()):
        told = each.body.statement
        if told.action is Action.RESUME and (told.answer, told.release, told.actor) == given:
            asked[each.id] = _with_its_end(replace(each, expired=True), entry)


def fold_lost(asked: RequestsById, entry: Entry, roster: Roster | None) -> None:
    """Add a verified entry about requests whose body is missing, or is not the one it sealed.

    Its writer did that, or an attacker who edits the store. Nobody knows which request it was
    about, so it grants nothing, and what it may have denied or ended is not granted any more. A
    denial by an identity that may deny is final, as if it were about each request. Other identities
    can only relay denials: the requests are then closed, and another request may ask for the same.

    Args:
        asked: The requests so far, by their ids; it is changed.
        entry: The entry.
        roster: The roster that the entry names.
    """
    writer, kind = entry.writer, entry.header.kind
    identity = None if roster is None else roster.identity(writer)
    for each in tuple(asked.values()):
        found, statement = each, each.body.statement
        if kind is Kind.DENIAL and may_list(identity, statement):
            found = replace(each, denials=(*each.denials, (writer, None)))
        elif kind is Kind.DENIAL:
            found = replace(each, expired=True)
        elif kind is Kind.EXPIRY and statement.expired_at(entry.header.at):
            expired = each.expired or _may_expire(writer, statement, roster)
            found = replace(each, expired=expired)
        asked[each.id] = _with_its_end(found, entry)


def _with_its_end(asked: Asked, entry: Entry) -> Asked:
    """Return a request with the epoch of its end, if an entry is the first to record one."""
    if asked.ended_in is not None or not (asked.denials or asked.expired):
        return asked
    return replace(asked, ended_in=entry.header.epoch)


def _ended(asked: Asked, entry: Entry, body: ExpiryBody, roster: Roster | None) -> Asked:
    """Return a request after an entry that records its end, if the writer has that right."""
    statement = asked.body.statement
    identity = None if roster is None else roster.identity(entry.writer)
    late = statement.expired_at(entry.header.at)
    expired = asked.expired or (late and _may_expire(entry.writer, statement, roster))
    asked = replace(asked, expired=expired)
    # Before its end, nobody can list the positions of the threads after it.
    ended = expired or bool(asked.denials)
    if body.positions is None or not ended or not may_list(identity, statement):
        return asked
    return replace(
        asked,
        positions=(*asked.positions, body.positions),
        listed_by=asked.listed_by | {identity.person},
    )


def _request_of(body: Body) -> str:
    """Return the id of the request that an entry is about; empty if it is about none."""
    match body:
        case VerdictBody(attestation=word):
            return word.statement
        case ExpiryBody(request=request):
            return request
        case _:
            return ""


def _denials(
    asked: Asked, body: VerdictBody, entry: Entry, trust: StoreChain
) -> Iterator[tuple[str, datetime | None]]:
    """Yield a denial by a person who had that right at the time; it stays when their key ends.

    The writer of the entry chooses its time. That time is never earlier than that of the request,
    and counts only if the writer denies for themselves or may list positions: otherwise anyone
    could copy a denial to an earlier time.
    """
    word, then = body.attestation, trust.roster_at(entry.header.roster)
    if then is None or word.verdict is not Verdict.DENY:
        return
    if not counted_attestations(entry, body, trust):
        return  # its key had ended
    statement = asked.body.statement
    tally = count([word], statement=statement, roster=then, now=entry.header.at)
    for name in tally.denied_by:
        told = entry.writer == name or may_list(then.identity(entry.writer), statement)
        yield name, max(entry.header.at, asked.entry.header.at) if told else None


def _may_expire(writer: str, statement: Statement, roster: Roster | None) -> bool:
    """Whether a writer may record that a request has expired.

    The requester may, and everyone who could deny it or pause the thread. If others could, they
    could end any request with a wrong clock.
    """
    identity = None if roster is None else roster.identity(writer)
    return writer == statement.requester or may_list(identity, statement)


def may_list(identity: Identity | None, statement: Statement) -> TypeGuard[Identity]:
    """Whether an identity may list the positions of the threads at the end of a rollout.

    Being the proposer is not enough: with a false list a worker could accuse others, or keep on
    using the rollout.
    """
    return identity is not None and identity.may_any((Role.APPROVER, Role.OPERATOR), statement.ns)


def _may_count(body: Body, header: Header, asked: RequestsById) -> bool:
    """Whether an entry is a request, or answers a known request."""
    found = asked.get(_request_of(body))
    return isinstance(body, RequestBody) or (found is not None and found.counts(header.by))


def _verified(chain: Chain, header: Header, record: Record) -> Entry:
    """Verify an entry on its own."""
    head = chain.verified_head()
    return head if header.seq == head.seq else chain.verify(record, header.seq)


def _is_shown(body: RequestBody) -> bool:
    """Whether the statement binds exactly the content that people are shown."""
    try:
        world = None if body.world is None else World.from_dict(body.world).digest
        differences = shown_differences(body.differences)
    except WorldInvalid:
        return False
    statement = body.statement
    return (answer_digest(body.answer), world, differences) == (
        statement.answer,
        statement.world_to,
        statement.differences,
    )


ShownDifference = tuple[str, tuple[Any, ...], tuple[Any, ...]]
"""A difference with the values of its leaf, before and after; empty where the leaf is absent."""


def shown_differences(found: Iterable[ShownDifference]) -> tuple[Difference, ...]:
    """Return the differences as a statement binds them, with the digests of their values.

    Raises:
        WorldInvalid: One of them is not about a leaf.
    """
    found = tuple(found)
    WorldDiff.of_values(found)
    return tuple(
        (
            leaf,
            value_digest(before[0]) if before else None,
            value_digest(after[0]) if after else None,
        )
        for leaf, before, after in found
    )


@unique
class Status(StrEnum):
    """The status of a request."""

    OPEN = "open"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The policy has changed since: the request can no longer be approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for approval by other people, verified in its thread."""

    id: str
    """The digest of the statement; approving is signing it."""
    thread: str
    """The name of the thread."""
    statement: Statement
    asked_at: datetime
    reasons: tuple[str, ...]
    """Why it needs approval, in the requester's words: the verified facts are in the statement."""
    answer: Any = field(hash=False)
    """The answer that the run would receive; the statement binds its digest."""
    world: dict[str, Any] | None = field(hash=False)
    """The capabilities that the run would have, if they differ; the statement binds the digest."""
    status: Status
    approved_by: tuple[str, ...]
    """The identities whose approvals count by the newest roster, one for each person."""
    denied_by: tuple[str, ...]
    needed: int
    """How many approvals it needs, by the policy that the statement names."""
    differences: WorldDiff | None = field(default=None, hash=False)
    """The differences between worlds that a rollout accepts; the statement binds their digests."""
    broken_glass: str | None = None
    """The operators who let it pass without the approvals, and why."""
    broken_glass_by: tuple[str, ...] = ()
    """The identities of those operators, one for each person."""
    ignored: tuple[str, ...] = ()
    """Answers that do not count, and why."""
    attestations: tuple[Attestation, ...] = ()
    """Every recorded answer, even if it does not count."""
    approved_in: int | None = None
    """The position of the entry with the first approval that counts; None: there is none."""

    @property
    def short(self) -> str:
        """The first digits of the id, for people to compare."""
        return self.id[:12]

    @property
    def is_answer(self) -> bool:
        """Whether it is the answer of a person to a question, and asks nobody for approval."""
        return self.statement.action is Action.ANSWER


def grant_of(
    asked: Asked, roster: Roster, now: datetime, policy: Policy | None = None
) -> GrantFacts:
    """Return the state of a request by the newest roster and the policy that it must name."""
    return _grant(asked, now, _tally(asked, roster, now), policy)


def has_expired(asked: Asked, policy: Policy | None, now: datetime) -> bool:
    """Whether a request is over, or claims a longer validity than the policy permits.

    The requester chooses the expiry. The writer who records the end chooses the time of that entry,
    and must not end a denial that way: a denied request is over only when its own expiry is
    reached.
    """
    recorded = asked.expired and not asked.denials
    over = recorded or asked.body.statement.expired_at(now)
    return over or holds_too_long(asked, policy)


def holds_too_long(asked: Asked, policy: Policy | None) -> bool:
    """Whether a request claims a longer validity than the policy permits."""
    statement = asked.body.statement
    if policy is None or statement.action is Action.ROLLOUT:
        return False  # a rollout has its own bounds
    return statement.expires - asked.entry.header.at > policy.expires + _AMISS


def is_too_early(asked: Asked, policy: Policy | None, now: datetime) -> bool:
    """Whether a request is dated so far ahead that by its own time it would hold forever.

    Until then it cannot be approved. It is not over, so setting back a clock revives no earlier
    request.
    """
    if policy is None or asked.body.statement.action is Action.ROLLOUT:
        return False
    return asked.entry.header.at - now > policy.expires


def _tally(asked: Asked, roster: Roster, now: datetime) -> Tally:
    if not asked.attestations:
        return Tally()
    return count(asked.attestations, statement=asked.body.statement, roster=roster, now=now)


def _grant(asked: Asked, now: datetime, tally: Tally, policy: Policy | None) -> GrantFacts:
    statement = asked.body.statement
    early = is_too_early(asked, policy, now)
    broken = () if early else zip(tally.broken_glass_by, tally.broken_glass, strict=True)
    return GrantFacts(
        approved_by=() if early else tally.approved_by,
        denied_by=tuple(sorted({*tally.denied_by, *(name for name, _ in asked.denials)})),
        expired=has_expired(asked, policy, now),
        broken_glass="; ".join(f"{name}: {word.reason}" for name, word in broken) or None,
        needed=statement.needed,
    )


def as_spent(
    asked: Asked, entry: Entry, body: ResumeBody | HandoffBody, chain: StoreChain
) -> Asked:
    """Return a request with the counted approvals of the resume or handoff that uses it.

    That entry names a roster, and could name one from before a key was ended. So its approvals are
    judged by its position.
    """
    counted = counted_attestations(entry, body, chain)
    words = (word for word in asked.attestations if word.verdict == Verdict.DENY or word in counted)
    return replace(asked, attestations=tuple(words))


def denied_first(asked: Iterable[Asked]) -> list[Asked]:
    """Sort equivalent requests by precedence: denied ones first, then the newest.

    A denial stands, regardless of how often the same is requested again.
    """
    return sorted(asked, key=lambda each: (not each.denials, -each.entry.seq))


def is_alike(one: Statement, other: Statement) -> bool:
    """Whether two requests that are bound to the same basis ask for the same."""
    return _request_key(one) == _request_key(other)


def denied_alike(
    requests: Iterable[Asked], asked: Asked, policy: Policy | None, at: datetime
) -> Asked | None:
    """Return another open request for the same that was denied; None if no such request exists."""
    for each in requests:
        living = each.denials and not has_expired(each, policy, at)
        if living and each.id != asked.id and is_alike(each.body.statement, asked.body.statement):
            return each
    return None


def _request_key(asked: Statement) -> tuple[object, ...]:
    worlds = (asked.world_from, asked.world_to)
    what = (asked.action, asked.checkpoint, asked.release, worlds, asked.answer, asked.to)
    return (*what, asked.requester, asked.policy)


def spending_faults(
    statement: Statement,
    entry: Entry,
    body: ResumeBody,
    saved_world: str | None,
    policy: str | None,
) -> Iterator[str]:
    """Yield each difference between a request and the resume that uses it.

    Args:
        statement: The statement of the request.
        entry: The resume.
        body: Its body.
        saved_world: The world of the checkpoint that it released.
        policy: The digest of the policy that judges it.
    """
    for name, found, expected in (
        ("action", statement.action, Action.RESUME),
        ("checkpoint", statement.checkpoint, body.checkpoint),
        ("release", statement.release, body.release),
        ("world", statement.world_to, body.world),
        ("answer", statement.answer, body.answer),
        ("requester", statement.requester, entry.writer),
        ("policy", statement.policy, policy),
        ("epoch", str(statement.epoch), str(entry.header.epoch)),
        ("saved world", statement.world_from, saved_world),
    ):
        if found != expected:
            yield f"it was for {name} {short_digest(found)}, not {short_digest(expected)}"


def short_digest(digest: str | None) -> str:
    """Return the first digits of a digest, or of another text, for a finding."""
    return "none" if digest is None else repr(digest[:12])


def make_request(
    asked: Asked,
    thread: str,
    *,
    roster: Roster,
    policy: Policy | None,
    now: datetime,
    least: int = 0,
) -> Request:
    """Return a request in its current state, where at least `least` people must approve it."""
    statement = asked.body.statement
    needed = max(statement.needed, least)
    tally = _tally(asked, roster, now)
    grant = _grant(asked, now, tally, policy)
    if is_too_early(asked, policy, now):
        grant = replace(grant, expired=True)
    return Request(
        id=asked.id,
        thread=thread,
        statement=statement,
        asked_at=asked.entry.header.at,
        reasons=asked.body.reasons,
        answer=asked.body.answer,
        world=asked.body.world,
        differences=(
            WorldDiff.of_values(asked.body.differences) if asked.body.differences else None
        ),
        status=_status(grant, statement, policy, needed),
        approved_by=grant.approved_by,
        denied_by=grant.denied_by,
        needed=needed,
        broken_glass=grant.broken_glass,
        broken_glass_by=tally.broken_glass_by,
        ignored=tally.ignored,
        attestations=asked.attestations,
        approved_in=min(
            (asked.relayed[asked.attestations.index(each)] for each in tally.approvals),
            default=None,
        ),
    )


def can_be_approved(request: Request, roster: Roster) -> bool:
    """Whether the request can be approved: the roster lists the requester and enough people."""
    is_known = None not in persons_asking(request.statement, roster)
    return is_known and request.needed <= len(roster.persons)


def why_closed(request: Request) -> RequestClosed:
    """Return the error that says why a request is no longer open."""
    why = {
        Status.DENIED: f"it was denied by {', '.join(request.denied_by)}",
        Status.EXPIRED: f"it expired at {request.statement.expires.isoformat()}, or the answer in "
        "it was withdrawn",
        Status.VOID: "another policy is in force than the one that it was made under",
    }[request.status]
    return _closed(request.id, request.thread, why)


def _closed(request_id: str, thread: str, why: str) -> RequestClosed:
    return RequestClosed(
        f"request {request_id[:12]} of thread {thread!r}: it is not open any more: {why}"
    )


def find_closing(chain: Chain, request_id: str) -> RequestClosed | None:
    """Return the error for a request that an entry below a verified head has closed.

    Returns:
        None if the newest entries do not contain the request.
    """
    closing: Header | None = None
    for header, record in islice(chain.walk(), _CLOSED_WITHIN):
        if KINDS[header.kind].moves_basis:
            closing = header
        if header.kind is not Kind.REQUEST or closing is None:
            continue
        _verified(chain, header, record)
        body = readable_body(header, record.body)
        if body is not None and body.statement.digest == request_id:
            what = f"the thread has continued since, with entry {closing.seq} ({closing.kind.word})"
            return _closed(request_id, chain.name, what)
    return None


def _status(grant: GrantFacts, statement: Statement, policy: Policy | None, needed: int) -> Status:
    if grant.denied_by:
        return Status.DENIED
    if grant.expired:
        return Status.EXPIRED
    if policy is None or policy.digest != statement.policy:
        return Status.VOID
    if len(grant.approved_by) >= needed or grant.broken_glass is not None:
        return Status.APPROVED
    return Status.OPEN
