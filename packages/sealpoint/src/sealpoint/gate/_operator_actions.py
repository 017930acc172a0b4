# SPDX-License-Identifier: Apache-2.0
"""The actions of people on a thread: pause, unpause, handoff, and answers to requests.

Every action is an entry of the thread. If another entry takes its place first, the action is
decided again on the new state of the thread. So an approval never lands on a request that was
denied or voided in between, and no action applies to a thread that has moved since its operator saw
it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

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
from sealpoint.gate._decision import Difference
from sealpoint.gate._gate_context import GateContext
from sealpoint.gate._policy import Measure, Policy, Rule
from sealpoint.gate._requests import (
    Asked,
    Request,
    ShownDifference,
    Status,
    can_be_approved,
    denied_first,
    find_closing,
    has_expired,
    may_list,
    shown_differences,
    why_closed,
)
from sealpoint.gate._session_worlds import AllowedWorld, SessionWorlds
from sealpoint.gate._shown_standing import Standing
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
    require_answerer,
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

_Written = TypeVar("_Written")

_KINDS = {
    Verdict.APPROVE: Kind.APPROVAL,
    Verdict.DENY: Kind.DENIAL,
    Verdict.BREAK_GLASS: Kind.BREAK_GLASS,
}

_PROLONGED = timedelta(days=1)
"""A rollout that prolongs another must end at least this much later."""
_LISTS = 2
"""This many persons record the positions of all threads when a rollout ends."""


class OperatorActions:
    """The actions of operators, approvers and owners on a thread, other than saving."""

    def __init__(self, state: ThreadState, reader: ThreadReader, context: GateContext) -> None:
        self._state = state
        self._reader = reader
        self._context = context
        self._worlds = SessionWorlds(state.chain, reader, context.policies, context.book)
        self._core = state.core
        self._chain = state.chain

    # ------------------------------------------------------------------ pausing

    def is_paused(self) -> bool:
        """Whether an operator has paused the thread; read again on every call."""
        with self._state.reporting():
            return self._state.find() and is_paused(self._chain)

    def standing(self) -> Standing:
        """Return the position of the thread; see `Thread.standing`."""
        with self._state.reporting():
            self._context.require_living()
            return self._context.standing()

    def pause(self, reason: str, actor: str | None, expect: Standing | None) -> int:
        """Pause the thread; see `Thread.pause`."""
        check_reason(reason, "pause")
        with self._state.reporting():
            return self.write_in_turn(lambda: self._pause(reason, actor, expect))

    def write_in_turn(self, write: Callable[[], _Written | None]) -> _Written:
        """Write an entry, even while another process appends all the time.

        The first attempt judges all new entries. If it loses its place, the next attempt locks the
        thread, and has to judge only the entries added since.

        Args:
            write: Reads the thread, decides, and writes; returns None if another process wrote
                first.
        """
        written = write()
        while written is None:
            with self._core.storage.alone(self._chain.thread):
                written = write()
        return written

    def _pause(self, reason: str, actor: str | None, expect: Standing | None) -> int | None:
        """Pause the thread; None if another process wrote first."""
        self._context.require_living()
        check_rights(self._chain, self._core.trust(), Kind.PAUSE, None)
        self._context.require_person(actor)
        # A new checkpoint is not a reason to refuse the pause.
        self._context.require_standing(expect, basis=False)
        paused = self._chain.tip().paused
        if paused is not None:
            return paused
        body = PauseBody(salt=self._core.salt(), reason=reason, actor=actor)
        return self._context.write(Kind.PAUSE, body)

    def unpause(self, reason: str, actor: str | None, expect: Standing | None) -> int:
        """End the pause: sessions and requests are unchanged; see `Thread.unpause`."""
        check_reason(reason, "unpause")
        with self._state.reporting():
            return self.write_in_turn(lambda: self._unpause(reason, actor, expect))

    def _unpause(self, reason: str, actor: str | None, expect: Standing | None) -> int | None:
        """End the pause; None if another process wrote first."""
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
            return self.write_in_turn(lambda: self._handoff(to, reason, actor, expect))

    def _handoff(
        self, to: str, reason: str, actor: str | None, expect: Standing | None
    ) -> int | None:
        """Give the thread away; None if a request was made, or another writer was first."""
        self._context.require_living()
        self._context.require_person(actor)
        self._context.require_standing(expect, basis=True)
        body = self._handoff_body(to, reason, actor)
        return None if body is None else self._context.write(Kind.HANDOFF, body)

    def _handoff_body(self, to: str, reason: str, actor: str | None) -> HandoffBody | None:
        """Return the body to record; None if a request was made, so that all steps start again."""
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
            # A denial stands, regardless of the number of approvals that the request asked for.
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
        """Return one counted approval of each person; other relayed attestations are left out."""
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
        differences: tuple[ShownDifference, ...],
        *,
        needed: int,
        policy: Policy,
        reason: str,
        expires: datetime,
        actor: str | None,
    ) -> Request:
        """Ask for a rollout, on the thread that serves as their book; see `Rollouts.propose`."""
        check_reason(reason, "rollout")
        with self._state.reporting():
            check_rights(self._chain, self._core.trust(), Kind.REQUEST, None)
            while not self._state.find():
                self._state.begin_empty()
            self._record_ends()
            named = shown_differences(differences)
            while True:
                self._context.require_living()
                self._context.require_person(actor)
                # Read after the head that the entry is written on: a proposal made in between takes
                # that place, and all steps start again.
                roster = self._core.trust().roster
                there = [each for each in self._context.rollouts() if can_be_approved(each, roster)]
                _require_new_rollout(there, named, expires, self._context.now())
                statement = self._context.statement(
                    action=Action.ROLLOUT,
                    differences=named,
                    policy=policy,
                    needed=needed,
                    expires=expires,
                    reason=reason,
                    actor=actor,
                )
                body = RequestBody(
                    salt=self._core.salt(),
                    statement=statement,
                    differences=differences,
                )
                if self._context.ask(body) is not None:
                    return self._context.request(self._require_open(statement.digest))

    # ------------------------------------------------------------------ requests

    def requests(self) -> tuple[Request, ...]:
        """Return every request about the thread's current state; see `Thread.requests`."""
        with self._state.reporting():
            self._state.refresh()
            found = (self._context.request(each) for each in self._context.pending().asked.values())
            return tuple(each for each in found if not each.is_answer)

    def compare(self, request: Request) -> WorldDiff | None:
        """Return how a request changes the capabilities of the run; see `Thread.compare`."""
        if request.statement.checkpoint is None:
            return None
        with self._state.reporting():
            release, allowed = self._require_truthful(request)
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

    def _require_truthful(self, request: Request) -> tuple[Release, AllowedWorld]:
        """Return the release of a request and the world before it, if the request is truthful.

        Raises:
            NotTrusted: The request names another state, or a world that was not allowed.
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
        """Make again the release that a request asks for; see `Thread.release_of`."""
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
        """Answer a request with this store's own key; return the counted answer and its place."""
        return self._record(self._attested(request_id, verdict, reason), actor)

    def attest(self, request_id: str, verdict: Verdict, reason: str) -> Attestation:
        """Sign an answer to a request without recording it; see `Store`."""
        attestation = self._attested(request_id, verdict, reason)
        with self._state.reporting():
            self._state.refresh()
            asked = self._require_open(attestation.statement)
            said = self._find_same_verdict(
                asked, self._fitting(attestation, asked), attestation.verdict
            )
            return attestation if said is None else asked.attestations[said]

    def relay(self, attestation: Attestation, require: Callable[[], None] = lambda: None) -> int:
        """Record another person's attestation; see `Store`.

        Args:
            attestation: The signature of the person.
            require: Raises an error if it may no longer be recorded as the thread is now.
        """
        return self._record(attestation, None, require)[0]

    def _attested(self, request_id: str, verdict: Verdict, reason: str) -> Attestation:
        check_reason(reason, "verdict")
        return attest(self._core.signer(), request_id, verdict, reason)

    def _record(
        self,
        attestation: Attestation,
        actor: str | None,
        require: Callable[[], None] = lambda: None,
    ) -> tuple[int, Attestation]:
        """Record an attestation, unless the person has already given that answer; see `answer`."""
        with self._state.reporting():
            check_attestation(attestation)
            recorded = self.write_in_turn(lambda: self._write_answer(attestation, actor, require))
            # Once the anchor has the denial, every worker sees it; a resume missing from the list
            # is late.
            self._record_ends()
            return recorded

    def _write_answer(
        self, attestation: Attestation, actor: str | None, require: Callable[[], None]
    ) -> tuple[int, Attestation] | None:
        """Return the answer's position, recorded now or earlier; None if another was first."""
        self._state.refresh()
        require()
        verdict = Verdict(attestation.verdict)
        asked = self._require_open(attestation.statement)
        said = self._find_same_verdict(asked, self._fitting(attestation, asked), verdict)
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
        return None if seq is None else (seq, attestation)

    def _fitting(self, attestation: Attestation, asked: Asked) -> Identity:
        """Return the identity that signed, if the signature is genuine and it may answer this."""
        identity = verify_attestation(attestation, self._core.trust().roster)
        self._require_say(identity, asked, Verdict(attestation.verdict))
        return identity

    def _find_same_verdict(self, asked: Asked, identity: Identity, verdict: Verdict) -> int | None:
        """Return the index of the counted attestation in which the person said the same."""
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
            self._record_ends()
            asked = self._context.pending().asked.get(request_id, asked)
            if request.status is Status.EXPIRED and not asked.expired:
                self._expire(asked)
            raise why_closed(request)
        return asked

    def _require_say(self, identity: Identity, asked: Asked, verdict: Verdict) -> None:
        """Refuse at once an answer that would not count."""
        statement, namespace = asked.body.statement, self._core.namespace
        if statement.action is Action.ANSWER and verdict is not Verdict.DENY:
            require_answerer(identity, statement)
            return
        if verdict is not Verdict.DENY and statement.action is Action.RESUME:
            self._require_truthful(self._context.request(asked))
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

    def _record_ends(self) -> None:
        """Record the position of each thread, for each rollout that has ended and may have held.

        Past those positions no time that a resume claims revives the rollout. The person who ends a
        rollout records the list, or a person who answers or proposes one later. A worker has no
        such right, and a read writes nothing. A list may be false, and every list is binding, so
        two persons each record one.
        """
        unlisted = list(self._unlisted())
        if not unlisted:
            return
        positions = anchored_positions(self._core, self._core.trust())
        blobs = {positions.digest: positions.data}
        for asked in unlisted:
            body = ExpiryBody(
                salt=self._core.salt(), request=asked.id, positions=positions.digest.hex()
            )
            self.write_in_turn(partial(self._write_end, body, blobs))
        self._state.refresh()

    def _write_end(self, body: ExpiryBody, blobs: Mapping[bytes, bytes]) -> int | None:
        """Record the end of a rollout; None if another process wrote first."""
        self._state.refresh()
        return self._context.write(Kind.EXPIRY, body, blobs)

    def _unlisted(self) -> Iterator[Asked]:
        """Yield the ended rollouts whose end this identity must still record.

        A rollout that never had its approvals is left out, unless someone other than its proposer
        denied it: a proposer could propose many, and no resume rests on them.
        """
        if self._state.name != ROLLOUTS:
            return
        me = self._core.trust().roster.identity(self._context.identity())
        for asked in self._context.pending().asked.values():
            statement = asked.body.statement
            expired = asked.expired or statement.expired_at(self._context.now())
            ended = statement.action is Action.ROLLOUT and (asked.denials or expired)
            is_listed = me is None or me.person in asked.listed_by or len(asked.listed_by) >= _LISTS
            if ended and not is_listed and may_list(me, statement) and self._may_matter(asked):
                yield asked

    def _may_matter(self, asked: Asked) -> bool:
        """Whether a rollout had its approvals, or someone other than its proposer denied it."""
        if self._context.book.had_approvals(asked):
            return True
        roster = self._core.trust().roster
        asking = persons_asking(asked.body.statement, roster)
        deniers = [roster.identity(name) for name, _ in asked.denials]
        return any(each is None or each.person not in asking for each in deniers)

    def _expire(self, asked: Asked) -> int | None:
        """Record that a request has expired; None if another process wrote first."""
        return self._context.write(
            Kind.EXPIRY, ExpiryBody(salt=self._core.salt(), request=asked.id)
        )


def _require_new_rollout(
    rollouts: Iterable[Request],
    differences: Collection[Difference],
    expires: datetime,
    now: datetime,
) -> None:
    """Refuse differences that are already proposed: people would end one, and the other would hold.

    A proposal may prolong a rollout that holds; a rollout that can never hold blocks nothing.

    Raises:
        Moved: A rollout with all of the differences waits for approval, or holds about as long.
    """
    longest = now + timedelta(days=ROLLOUT_DAYS_MAX)
    for each in rollouts:
        told = each.statement
        if not set(told.differences).issuperset(differences) or told.expires > longest:
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


def require_break_glass_allowed(statement: Statement, thread: str) -> None:
    """Refuse an action that break-glass does not cover.

    Raises:
        UsageError: The action is not a resume.
    """
    if statement.action is not Action.RESUME:
        raise UsageError(
            f"thread {thread!r}: break-glass is for one resume; a handoff or a "
            "rollout always needs its approvals"
        )


def _require_breaker(identity: Identity, statement: Statement, thread: str) -> None:
    """Refuse an identity without break-glass rights, and an action that it does not cover."""
    require_break_glass_allowed(statement, thread)
    if not identity.may_break_glass(statement.ns):
        found, hint = identity.lacking((Role.OPERATOR,), statement.ns)
        raise NoRight(
            f"break-glass by {identity.name!r}: this needs role operator in namespace "
            f"{statement.ns!r}, marked for break-glass; {identity.name!r} has {found}, and is "
            f"{'marked' if identity.break_glass else 'not marked'}",
            hint=f"{hint} --break-glass",
        )
