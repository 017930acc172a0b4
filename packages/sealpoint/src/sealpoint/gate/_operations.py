# SPDX-License-Identifier: Apache-2.0
"""What people do to a thread: pause and unpause it, hand it off, and answer requests about it.

Everything is an entry of the thread. An entry that lost its place to another is decided anew on
what is there then, so an approval never lands on a request that was denied or voided meanwhile,
and nothing is done to a thread that has moved since whoever acts was shown it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from sealpoint.errors import (
    Forged,
    Moved,
    NeedsApproval,
    NoRight,
    NotOwner,
    NotTrusted,
    ResumeRefused,
    UnknownCheckpoint,
    UnknownRequest,
    UsageError,
    WorldInvalid,
)
from sealpoint.gate._context import GateContext
from sealpoint.gate._policy import Measure, Policy, Rule
from sealpoint.gate._requests import (
    Asked,
    Request,
    Status,
    can_be_approved,
    denied_first,
    find_closing,
    has_expired,
    may_list,
    why_closed,
)
from sealpoint.gate._standing import Standing
from sealpoint.gate._worlds import AllowedWorld, SessionWorlds
from sealpoint.ledger import (
    ROLLOUTS,
    ExpiryBody,
    HandoffBody,
    Kind,
    PauseBody,
    RequestBody,
    UnpauseBody,
    VerdictBody,
)
from sealpoint.limits import REQUEST_ANSWERS_MAX, ROLLOUT_DAYS_MAX
from sealpoint.signing import (
    Action,
    Attestation,
    Identity,
    Role,
    Statement,
    Verdict,
    attest,
    check_attestation,
    check_reason,
    count,
    persons_asking,
    verify_attestation,
)
from sealpoint.store import (
    Release,
    ThreadReader,
    ThreadState,
    anchored_positions,
    check_rights,
    is_paused,
)
from sealpoint.world import World, WorldDiff

_KINDS = {
    Verdict.APPROVE: Kind.APPROVAL,
    Verdict.DENY: Kind.DENIAL,
    Verdict.BREAK_GLASS: Kind.BREAK_GLASS,
}

_PROLONGED = timedelta(days=1)
_LISTS = 2
"""So many persons list where the threads stand when a rollout ends."""
"""So much later a rollout ends at least that is meant to prolong another."""


class Operations:
    """What operators, approvers and owners do to a thread beside saving."""

    def __init__(self, state: ThreadState, reader: ThreadReader, context: GateContext) -> None:
        self._state = state
        self._reader = reader
        self._context = context
        self._worlds = SessionWorlds(state.chain, reader, context.policies, context.book)
        self._core = state.core
        self._chain = state.chain

    # ------------------------------------------------------------------ pausing

    def is_paused(self) -> bool:
        """Whether an operator has stopped the thread; looked up anew each time."""
        with self._state.reporting():
            return self._state.find() and is_paused(self._chain)

    def standing(self) -> Standing:
        """Where the thread stands; see `Thread.standing`."""
        with self._state.reporting():
            self._context.require_living()
            return self._context.standing()

    def pause(self, reason: str, actor: str | None, expect: Standing | None) -> int:
        """Stop the thread; see `Thread.pause`."""
        check_reason(reason, "pause")
        with self._state.reporting():
            return self._write_in_turn(lambda: self._pause(reason, actor, expect))

    def _write_in_turn(self, write: Callable[[], int | None]) -> int:
        """Write an entry, also while somebody else appends all the time.

        The first attempt judges whatever is new. Where it loses its place, the next one holds that
        place, and has only the entries to judge that came meanwhile.

        Args:
            write: Looks at the thread, decides, and writes; None if somebody else wrote first.
        """
        seq = write()
        while seq is None:
            with self._core.storage.alone(self._chain.thread):
                seq = write()
        return seq

    def _pause(self, reason: str, actor: str | None, expect: Standing | None) -> int | None:
        """Stop the thread; None if somebody else wrote first."""
        self._context.require_living()
        check_rights(self._chain, self._core.trust(), Kind.PAUSE, None)
        self._context.require_person(actor)
        # A checkpoint more is no reason not to stop the run.
        self._context.require_standing(expect, basis=False)
        paused = self._chain.tip().paused
        if paused is not None:
            return paused
        body = PauseBody(salt=self._core.salt(), reason=reason, actor=actor)
        return self._context.write(Kind.PAUSE, body)

    def unpause(self, reason: str, actor: str | None, expect: Standing | None) -> int:
        """Let the thread go on: sessions and requests are as they were; see `Thread.unpause`."""
        check_reason(reason, "unpause")
        with self._state.reporting():
            return self._write_in_turn(lambda: self._unpause(reason, actor, expect))

    def _unpause(self, reason: str, actor: str | None, expect: Standing | None) -> int | None:
        """Let the thread go on; None if somebody else wrote first."""
        self._context.require_living()
        self._context.require_standing(expect, basis=True)
        if not is_paused(self._chain):
            raise UsageError(
                f"thread {self._state.name!r}: it is not paused",
                hint="Nothing is to be done: its runs may resume.",
            )
        self._context.require_person(actor)
        body = UnpauseBody(salt=self._core.salt(), reason=reason, actor=actor)
        return self._context.write(Kind.UNPAUSE, body)

    # ------------------------------------------------------------------ handing off

    def handoff(self, to: str, reason: str, actor: str | None, expect: Standing | None) -> int:
        """Give the thread to another owner; see `Thread.handoff`."""
        check_reason(reason, "handoff")
        with self._state.reporting():
            while True:
                self._context.require_living()
                self._context.require_person(actor)
                self._context.require_standing(expect, basis=True)
                body = self._handoff_body(to, reason, actor)
                if body is not None:
                    seq = self._context.write(Kind.HANDOFF, body)
                    if seq is not None:
                        return seq

    def _handoff_body(self, to: str, reason: str, actor: str | None) -> HandoffBody | None:
        """What is to be recorded; None if a request was made, and all is to be looked at anew."""
        trust = self._core.trust()
        me = check_rights(self._chain, trust, Kind.HANDOFF, None)
        self._require_writers(to)
        body = HandoffBody(salt=self._core.salt(), owner=to, reason=reason, actor=actor)
        if trust.roster.owns(me.name, self._context.owner()) and me.may(
            Role.WRITER, self._core.namespace
        ):
            return body
        if not me.may(Role.OPERATOR, self._core.namespace):
            raise NotOwner(
                f"thread {self._state.name!r}: it is handed off by its owner "
                f"{self._context.owner()!r} or by an operator, and {me.name!r} is neither"
            )
        policy = self._context.policy()
        measure = None if policy is None else policy.measure(Rule.HANDOFF_BY_OPERATOR)
        if policy is None or measure is None or measure == Measure.REFUSE:
            words = "the policy does not let an operator hand a thread off"
            raise ResumeRefused(f"thread {self._state.name!r}: {words}", reasons=(words,))
        wanted = (Action.HANDOFF, to, me.name, policy.digest)
        for asked in denied_first(self._context.pending().asked.values()):
            found = asked.body.statement
            expired = has_expired(asked, policy, self._context.now())
            named = (found.action, found.to, found.requester, found.policy)
            # A denial stands, whatever number of people the request asked for.
            answers = asked.denials or found.needed == measure.people
            if named == wanted and answers and not expired:
                return self._approved_handoff(body, asked)
        statement = self._context.statement(
            action=Action.HANDOFF,
            to=to,
            policy=policy,
            needed=measure.people,
            reason=reason,
            actor=actor,
        )
        words = f"{me.name!r} is not the owner of thread {self._state.name!r}"
        self._context.ask(
            RequestBody(salt=self._core.salt(), statement=statement, reasons=(words,))
        )
        return None

    def _approved_handoff(self, body: HandoffBody, asked: Asked) -> HandoffBody:
        request = self._context.request(asked)
        if request.status is Status.APPROVED and request.approved_by:
            return msgspec.structs.replace(
                body,
                statement=asked.body.statement,
                reason=asked.body.statement.reason,
                attestations=self._approvals(asked),
            )
        if request.status is Status.DENIED:
            words = f"the request was denied by {', '.join(request.denied_by)}"
            raise ResumeRefused(f"thread {self._state.name!r}: {words}", reasons=(words,))
        raise NeedsApproval(
            f"thread {self._state.name!r}: request {request.short} has "
            f"{len(request.approved_by)} of {request.needed} approvals",
            request=request,
        )

    def _approvals(self, asked: Asked) -> tuple[Attestation, ...]:
        """One approval of each person that counts; whatever else was relayed is left out."""
        return count(
            asked.attestations,
            statement=asked.body.statement,
            roster=self._core.trust().roster,
            now=self._context.now(),
        ).approvals

    def _require_writers(self, to: str) -> None:
        roster, namespace = self._core.trust().roster, self._core.namespace
        for name in roster.members.get(to, frozenset({to})):
            identity = roster.identity(name)
            if identity is None or not identity.may(Role.WRITER, namespace):
                raise UsageError(
                    f"handoff: expected a writer of namespace {namespace!r} or a pool of such, "
                    f"found {to!r}"
                )

    # ------------------------------------------------------------------ rollouts

    def ask_rollout(
        self,
        pairs: tuple[tuple[str, str], ...],
        worlds: tuple[World, ...],
        *,
        needed: int,
        policy: Policy,
        reason: str,
        expires: datetime,
        actor: str | None,
    ) -> Request:
        """Ask for a rollout, on the thread that is the book of them; see `Rollouts.propose`."""
        check_reason(reason, "rollout")
        with self._state.reporting():
            check_rights(self._chain, self._core.trust(), Kind.REQUEST, None)
            while not self._state.find():
                self._state.begin_empty()
            _record_ends(self._state, self._context)
            while True:
                self._context.require_living()
                self._context.require_person(actor)
                # Read after the head that is written on: what others propose meanwhile takes that
                # place, and all is looked at anew.
                roster = self._core.trust().roster
                there = [each for each in self._context.rollouts() if can_be_approved(each, roster)]
                _require_new_rollout(there, pairs, expires, self._context.now())
                statement = self._context.statement(
                    action=Action.ROLLOUT,
                    pairs=pairs,
                    policy=policy,
                    needed=needed,
                    expires=expires,
                    reason=reason,
                    actor=actor,
                )
                body = RequestBody(
                    salt=self._core.salt(),
                    statement=statement,
                    worlds=tuple(world.to_dict() for world in worlds),
                )
                if self._context.ask(body) is not None:
                    return self._context.request(self._require_open(statement.digest))

    # ------------------------------------------------------------------ requests

    def requests(self) -> tuple[Request, ...]:
        """Every request that is about the thread as it is; see `Thread.requests`."""
        with self._state.reporting():
            self._state.refresh()
            return tuple(
                self._context.request(asked) for asked in self._context.pending().asked.values()
            )

    def compare(self, request: Request) -> WorldDiff | None:
        """What a request changes in what the run could do; see `Thread.compare`."""
        if request.statement.checkpoint is None:
            return None
        with self._state.reporting():
            release, allowed = self._require_told(request)
            before = allowed.world
            try:
                if before is None and not allowed.faults:
                    saved = self._reader.read_world(release)
                    before = None if saved is None else World.from_dict(saved)
                if before is None or request.world is None:
                    return None
                return before.diff(World.from_dict(request.world))
            except WorldInvalid:
                return None

    def _require_told(self, request: Request) -> tuple[Release, AllowedWorld]:
        """What a request would resume, and the world before it, if the request says both truly.

        Raises:
            NotTrusted: It says something else: another state, or a world that was not allowed.
        """
        statement, release = request.statement, self._release_of(request)
        allowed = self._worlds.allowed(release.session)
        told = statement.release, statement.world_from
        if (release.digest, allowed.digest(release.world)) != told:
            why = "; ".join(allowed.faults)
            raise NotTrusted(
                f"request {request.short} of thread {request.thread!r}: what it says would be "
                f"resumed is not what the thread has{why and f': {why}'}",
                hint="Deny it, and find out who uses the requester's key.",
            )
        return release, allowed

    def release_of(self, request: Request) -> Release:
        """What a request asks to be released, made anew; see `Thread.release_of`."""
        with self._state.reporting():
            return self._release_of(request)

    def _release_of(self, request: Request) -> Release:
        self._state.refresh()
        wanted = request.statement.checkpoint
        release = None if wanted is None else self._reader.release_of(wanted)
        if release is None:
            raise UnknownCheckpoint(
                f"request {request.short} of thread {request.thread!r}: the thread does not have "
                "the checkpoint that it is about"
            )
        return release

    def answer(
        self, request_id: str, verdict: Verdict, reason: str, actor: str | None = None
    ) -> tuple[int, Attestation]:
        """Say something to a request with this store's own key; what stands, and where."""
        return self._record(self._attested(request_id, verdict, reason), actor)

    def attest(self, request_id: str, verdict: Verdict, reason: str) -> Attestation:
        """Say something to a request without recording it; see `Store`."""
        attestation = self._attested(request_id, verdict, reason)
        with self._state.reporting():
            self._state.refresh()
            asked = self._require_open(attestation.statement)
            said = self._said(asked, self._fitting(attestation, asked), attestation.verdict)
            return attestation if said is None else asked.attestations[said]

    def relay(self, attestation: Attestation) -> int:
        """Record somebody's attestation; see `Store`."""
        return self._record(attestation, None)[0]

    def _attested(self, request_id: str, verdict: Verdict, reason: str) -> Attestation:
        check_reason(reason, "verdict")
        return attest(self._core.signer(), request_id, verdict, reason)

    def _record(self, attestation: Attestation, actor: str | None) -> tuple[int, Attestation]:
        """Record an attestation, unless the person has said that; what stands, and where."""
        with self._state.reporting():
            check_attestation(attestation)
            verdict = Verdict(attestation.verdict)
            while True:
                self._state.refresh()
                asked = self._require_open(attestation.statement)
                said = self._said(asked, self._fitting(attestation, asked), verdict)
                if said is not None:
                    return asked.relayed[said], asked.attestations[said]
                if attestation in asked.attestations:
                    return asked.relayed[asked.attestations.index(attestation)], attestation
                self._context.require_person(actor)
                if not asked.counts(self._core.signer().key):
                    raise UsageError(
                        f"request {asked.id[:12]} of thread {self._state.name!r}: this key has "
                        f"recorded {REQUEST_ANSWERS_MAX} answers to it, and no more of them count",
                        hint="Record the answer with another key.",
                    )
                body = VerdictBody(salt=self._core.salt(), attestation=attestation, actor=actor)
                seq = self._context.write(_KINDS[verdict], body)
                if seq is not None:
                    break
            # Once the anchor has the denial, every worker meets it: what the list misses is late.
            _record_ends(self._state, self._context)
            return seq, attestation

    def _fitting(self, attestation: Attestation, asked: Asked) -> Identity:
        """Who says it, if it is genuine and they have a say in this."""
        identity = verify_attestation(attestation, self._core.trust().roster)
        self._require_say(identity, asked, Verdict(attestation.verdict))
        return identity

    def _said(self, asked: Asked, identity: Identity, verdict: Verdict) -> int | None:
        """Which attestation it is by which a person has said the same, and counts; None if none."""
        roster, request = self._core.trust().roster, self._context.request(asked)
        names = {
            Verdict.APPROVE: request.approved_by,
            Verdict.DENY: request.denied_by,
            Verdict.BREAK_GLASS: request.broken_glass_by,
        }[verdict]
        counted = {found.person for name in names if (found := roster.identity(name)) is not None}
        if identity.person not in counted:
            return None
        for place, word in enumerate(asked.attestations):
            with suppress(Forged, NotTrusted):
                if (word.verdict, verify_attestation(word, roster).person) == (
                    verdict,
                    identity.person,
                ):
                    return place
        return None

    def _require_open(self, request_id: str) -> Asked:
        asked = self._context.pending().asked.get(request_id)
        if asked is None:
            if (closing := find_closing(self._chain, request_id)) is not None:
                raise closing
            raise UnknownRequest(
                f"request {request_id[:12]} of thread {self._state.name!r}: there is no such "
                "open request"
            )
        request = self._context.request(asked)
        if request.status in (Status.DENIED, Status.EXPIRED, Status.VOID):
            _record_ends(self._state, self._context)
            asked = self._context.pending().asked.get(request_id, asked)
            if request.status is Status.EXPIRED and not asked.expired:
                self._expire(asked)
            raise why_closed(request)
        return asked

    def _require_say(self, identity: Identity, asked: Asked, verdict: Verdict) -> None:
        """Refuse at once what would not count."""
        statement, namespace = asked.body.statement, self._core.namespace
        if verdict is not Verdict.DENY and statement.action is Action.RESUME:
            self._require_told(self._context.request(asked))
        if verdict is Verdict.BREAK_GLASS:
            _require_breaker(identity, statement, self._state.name)
            return
        same = identity.person in persons_asking(statement, self._core.trust().roster)
        if verdict is Verdict.DENY and same:
            return
        if same:
            raise NoRight(
                f"approval by {identity.name!r}: {identity.person!r} asks for this, and another "
                "person has to approve it",
                hint="Nobody approves their own request, whichever identity or key they use. If "
                "you are another person: --identity NAME. To add a person: sealpoint keys new "
                "NAME, then sealpoint keys add NAME --person NAME --role approver "
                f"--namespace {namespace}",
            )
        if not identity.may(Role.APPROVER, namespace):
            found, hint = identity.lacking((Role.APPROVER,), namespace)
            raise NoRight(
                f"{verdict} by {identity.name!r}: this needs role approver in namespace "
                f"{namespace!r}; {identity.name!r} has {found}",
                hint=hint,
            )

    def _expire(self, asked: Asked) -> int | None:
        """Record that a request has expired; None if somebody else wrote first."""
        return self._context.write(
            Kind.EXPIRY, ExpiryBody(salt=self._core.salt(), request=asked.id)
        )


def _record_ends(state: ThreadState, context: GateContext) -> None:
    """Record where each thread stands, for each rollout that has ended.

    From there on no time that a resume names brings the rollout back. Whoever ends a rollout does
    it, and whoever answers or proposes one later. A worker has no such right, and a read writes
    nothing. A list may be false, and each of them binds: so two persons record one.
    """
    while (ended := next(_unlisted(state, context), None)) is not None:
        positions = anchored_positions(state.core, state.core.trust())
        body = ExpiryBody(
            salt=state.core.salt(), request=ended.id, positions=positions.digest.hex()
        )
        context.write(Kind.EXPIRY, body, {positions.digest: positions.data})
        state.refresh()


def _unlisted(state: ThreadState, context: GateContext) -> Iterator[Asked]:
    """The rollouts that have ended, and whose end this identity is to list."""
    if state.name != ROLLOUTS:
        return
    me = state.core.trust().roster.identity(context.identity())
    for asked in context.pending().asked.values():
        statement = asked.body.statement
        expired = asked.expired or statement.expired_at(context.now())
        ended = statement.action is Action.ROLLOUT and (asked.denials or expired)
        is_listed = me is None or me.person in asked.listed_by or len(asked.listed_by) >= _LISTS
        if ended and not is_listed and may_list(me, statement):
            yield asked


def _require_new_rollout(
    rollouts: Iterable[Request],
    pairs: Collection[tuple[str, str]],
    expires: datetime,
    now: datetime,
) -> None:
    """Refuse a change that is proposed already: people would end one, and the other holds.

    One that holds may be prolonged; one that can never hold is in nobody's way.

    Raises:
        Moved: A rollout for one of the changes waits for approval, or holds about as long.
    """
    longest = now + timedelta(days=ROLLOUT_DAYS_MAX)
    for each in rollouts:
        told = each.statement
        if set(told.pairs).isdisjoint(pairs) or told.expires > longest:
            continue
        if each.status is Status.OPEN:
            stands = "is proposed for the same change, and waits for approval"
            hint = (
                f"Nothing was written. Another person answers that one: sealpoint approve "
                f"{each.short} --reason WHY, or sealpoint rollout revoke {each.short} --reason WHY"
            )
        elif each.status is Status.APPROVED and expires - told.expires < _PROLONGED:
            stands = f"lets the same change pass until {told.expires:%Y-%m-%d %H:%M}Z"
            hint = (
                "Nothing was written, and nothing is to be done. To prolong it, propose one that "
                "ends a day later or more: --until"
            )
        else:
            continue
        moved = f"rollout {each.short} {stands}"
        raise Moved(moved, moved=(moved,), hint=hint)


def require_breakable(statement: Statement, thread: str) -> None:
    """Refuse what the glass is not broken for.

    Raises:
        UsageError: It is no resume.
    """
    if statement.action is not Action.RESUME:
        raise UsageError(
            f"thread {thread!r}: break-glass is for one resume; a handoff or a "
            "rollout always needs its approvals"
        )


def _require_breaker(identity: Identity, statement: Statement, thread: str) -> None:
    """Refuse whoever may not break the glass, and what it is not broken for."""
    require_breakable(statement, thread)
    if not identity.may_break_glass(statement.ns):
        found, hint = identity.lacking((Role.OPERATOR,), statement.ns)
        raise NoRight(
            f"break-glass by {identity.name!r}: this needs role operator in namespace "
            f"{statement.ns!r}, marked for break-glass; {identity.name!r} has {found}, and is "
            f"{'marked' if identity.break_glass else 'not marked'}",
            hint=f"{hint} --break-glass",
        )
