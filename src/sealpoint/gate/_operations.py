# SPDX-License-Identifier: Apache-2.0
"""What people do to a thread: pause and unpause it, hand it off, and answer requests about it.

Everything is an entry of the thread. An entry that lost its place to another is decided anew on
what is there then, so an approval never lands on a request that was denied or voided meanwhile.
"""

from contextlib import suppress
from typing import Any

import msgspec

from sealpoint.errors import (
    Forged,
    NeedsApproval,
    NotOwner,
    NotTrusted,
    RequestClosed,
    ResumeRefused,
    UnknownCheckpoint,
    UnknownRequest,
    UsageError,
    WorldInvalid,
)
from sealpoint.gate._handle import GateHandle
from sealpoint.gate._pending import Asked
from sealpoint.gate._policy import Measure, Rule
from sealpoint.gate._requests import Request, Status
from sealpoint.ledger import (
    BreakGlassBody,
    ExpiryBody,
    HandoffBody,
    Kind,
    PauseBody,
    RequestBody,
    UnpauseBody,
    VerdictBody,
)
from sealpoint.signing import (
    Action,
    Attestation,
    Identity,
    Role,
    Verdict,
    attest,
    check_reason,
    verify_attestation,
)
from sealpoint.store import check_rights
from sealpoint.world import World, WorldDiff

__all__ = ["OperatedThread"]


class OperatedThread(GateHandle):
    """A thread, and what operators, approvers and owners do to it beside saving."""

    # ------------------------------------------------------------------ pausing

    @property
    def question(self) -> Any:
        """What the newest checkpoint, or a task that goes on from it, waits for; looked up anew."""
        with self._lock, self._reporting():
            if not self._find_head():
                return None
            try:
                return self._candidate(None).question
            except UnknownCheckpoint:
                return None

    @property
    def paused(self) -> bool:
        """Whether an operator has stopped the thread; looked up anew each time."""
        with self._lock, self._reporting():
            return self._find_head() and self._chain.tip().paused is not None

    def pause(self, reason: str) -> int:
        """Stop the thread: until it is unpaused nothing is saved and nobody resumes.

        A worker that runs learns it at its next save. Pausing twice records nothing more.

        Returns:
            The position of the entry that records it.

        Raises:
            UsageError: There is no reason.
            NotTrusted: The identity is no operator of the namespace.
            UnknownThread, Erased: There is nothing to pause.
        """
        check_reason(reason, "pause")
        with self._lock, self._reporting():
            while True:
                self._require_living()
                paused = self._chain.tip().paused
                if paused is not None:
                    return paused
                seq = self._written(Kind.PAUSE, PauseBody(salt=self._core.salt(), reason=reason))
                if seq is not None:
                    return seq

    def unpause(self, reason: str) -> int:
        """Let the thread go on: sessions and requests are as they were.

        Returns:
            The position of the entry that records it.

        Raises:
            UsageError: There is no reason, or the thread is not paused.
            NotTrusted: The identity is no operator of the namespace.
        """
        check_reason(reason, "unpause")
        with self._lock, self._reporting():
            while True:
                self._require_living()
                if self._chain.tip().paused is None:
                    raise UsageError(f"thread {self._name!r}: expected it paused, found it running")
                body = UnpauseBody(salt=self._core.salt(), reason=reason)
                seq = self._written(Kind.UNPAUSE, body)
                if seq is not None:
                    return seq

    # ------------------------------------------------------------------ handing off

    def handoff(self, *, to: str, reason: str) -> int:
        """Give the thread to another owner: an identity, or a pool of the roster.

        The session that is under way ends: its worker's next save is refused. An owner may do
        that by itself; an operator needs the approval of others, as for a resume.

        Returns:
            The position of the entry that records it.

        Raises:
            NeedsApproval: An operator asks, and others have to approve first.
            ResumeRefused: The policy does not let operators hand threads off.
            UsageError: There is no reason, or no writer of that name.
            NotOwner, NotTrusted: The identity is neither owner nor operator.
        """
        check_reason(reason, "handoff")
        with self._lock, self._reporting():
            while True:
                self._require_living()
                body = self._handoff_body(to, reason)
                if body is not None:
                    seq = self._written(Kind.HANDOFF, body)
                    if seq is not None:
                        return seq

    def _handoff_body(self, to: str, reason: str) -> HandoffBody | None:
        """What is to be recorded; None if a request was made, and all is to be looked at anew."""
        trust = self._core.trust()
        me = check_rights(self._chain, trust, Kind.HANDOFF, None)
        self._require_writers(to)
        body = HandoffBody(salt=self._core.salt(), owner=to, reason=reason)
        if trust.roster.owns(me.name, self._owner()) and me.may(Role.WRITER, self._core.namespace):
            return body
        if not me.may(Role.OPERATOR, self._core.namespace):
            raise NotOwner(
                f"thread {self._name!r}: expected its owner {self._owner()!r} or an operator, "
                f"found {me.name!r}"
            )
        policy = self._policies.in_force(trust.roster)
        if policy is None or policy.measure(Rule.HANDOFF_BY_OPERATOR) is not Measure.APPROVAL:
            words = "the policy does not let an operator hand a thread off"
            raise ResumeRefused(f"thread {self._name!r}: {words}", reasons=(words,))
        wanted = (Action.HANDOFF, to, me.name, policy.digest)
        for asked in reversed(self._pending().asked.values()):
            found = asked.body.statement
            expired = asked.expired or self._now() >= found.expires
            if (found.action, found.to, found.requester, found.policy) == wanted and not expired:
                return self._approved_handoff(body, asked)
        statement = self._stated(action=Action.HANDOFF, to=to, policy=policy, reason=reason)
        words = f"{me.name!r} is not the owner of thread {self._name!r}"
        self._asked(RequestBody(salt=self._core.salt(), statement=statement, reasons=(words,)))
        return None

    def _approved_handoff(self, body: HandoffBody, asked: Asked) -> HandoffBody:
        request = self._shown(asked)
        if request.status is Status.APPROVED and request.approved_by:
            return msgspec.structs.replace(
                body,
                statement=asked.body.statement,
                reason=asked.body.statement.reason,
                attestations=self._counted(asked, request),
            )
        if request.status is Status.DENIED:
            words = f"the request was denied by {', '.join(request.denied_by)}"
            raise ResumeRefused(f"thread {self._name!r}: {words}", reasons=(words,))
        raise NeedsApproval(
            f"thread {self._name!r}: expected {request.needed} approvals of request "
            f"{request.short}, found {len(request.approved_by)}",
            request=request,
        )

    def _counted(self, asked: Asked, request: Request) -> tuple[Attestation, ...]:
        """One approval of each person that counts; whatever else was relayed is left out."""
        roster = self._core.trust().roster
        counted: dict[str, Attestation] = {}
        for word in asked.attestations:
            with suppress(Forged, NotTrusted):
                name = verify_attestation(word, roster).name
                if word.verdict is Verdict.APPROVE and name in request.approved_by:
                    counted.setdefault(name, word)
        return tuple(counted.values())

    def _require_writers(self, to: str) -> None:
        roster, namespace = self._core.trust().roster, self._core.namespace
        for name in roster.members.get(to, frozenset({to})):
            identity = roster.identity(name)
            if identity is None or not identity.may(Role.WRITER, namespace):
                raise UsageError(
                    f"handoff: expected a writer of namespace {namespace!r} or a pool of such, "
                    f"found {to!r}"
                )

    # ------------------------------------------------------------------ requests

    def requests(self) -> tuple[Request, ...]:
        """Every request that is about the thread as it is, oldest first, whatever became of it.

        Raises:
            UnknownThread: Nobody has saved anything under this name.
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        with self._lock, self._reporting():
            self._look()
            return tuple(self._shown(asked) for asked in self._pending().asked.values())

    def compare(self, request: Request) -> WorldDiff | None:
        """What the run could do after a request, compared with the checkpoint that it names.

        Returns:
            The difference; None if one of the worlds is not declared, or that of the checkpoint
            cannot be compared.

        Raises:
            NotTrusted: The request says another world of the checkpoint than that has.
            UnknownCheckpoint: The thread has no such checkpoint, or has given it up.
        """
        statement, named = request.statement, f"request {request.short} of thread {self._name!r}"
        if statement.checkpoint is None:
            return None
        refs = (ref for ref in self.history() if ref.entry == statement.checkpoint)
        ref = next(refs, None)
        if ref is None or ref.pruned:
            raise UnknownCheckpoint(f"{named}: expected its checkpoint on the thread, found none")
        with self._lock, self._reporting():
            candidate = self._candidate(ref)
            if candidate.world_digest != statement.world_from:
                raise NotTrusted(
                    f"{named}: expected the world of its checkpoint, found another",
                    hint="Deny it, and find out who uses the requester's key.",
                )
            if candidate.world_digest is None or request.world is None:
                return None
            try:
                before = World.from_dict(candidate.read_world())
            except WorldInvalid:
                return None
            return before.diff(World.from_dict(request.world))

    def answer(self, request_id: str, verdict: Verdict, reason: str) -> Attestation:
        """Approve or deny a request with this store's own key.

        Raises:
            UnknownRequest: There is no such request, or the thread has moved on.
            RequestClosed: It was denied, has expired, or the policy has changed.
            NotTrusted: This identity may not, because of its role or because it asked itself.
            UsageError: There is no reason.
        """
        check_reason(reason, "verdict")
        attestation = attest(self._core.signer(), request_id, verdict, reason)
        self.relay(attestation)
        return attestation

    def relay(self, attestation: Attestation) -> int:
        """Record somebody's attestation; it counts by its own proof, not by who relays it.

        Returns:
            The position of the entry that records it; relaying it again records nothing more.

        Raises:
            UnknownRequest, RequestClosed: There is no such open request.
            Forged, NotTrusted: Its proof is none, or whoever signed it has no say in this.
        """
        kind = Kind.APPROVAL if attestation.verdict is Verdict.APPROVE else Kind.DENIAL
        with self._lock, self._reporting():
            while True:
                self._look()
                asked = self._require_open(attestation.statement)
                identity = verify_attestation(attestation, self._core.trust().roster)
                self._require_say(identity, asked, attestation.verdict)
                if attestation in asked.attestations:
                    return asked.relayed[asked.attestations.index(attestation)]
                body = VerdictBody(salt=self._core.salt(), attestation=attestation)
                seq = self._written(kind, body)
                if seq is not None:
                    return seq

    def break_glass(self, request_id: str, reason: str) -> int:
        """Let a request pass at once, without the approvals that it needs. It is recorded.

        Returns:
            The position of the entry that records it.

        Raises:
            NotTrusted: The roster does not mark this identity for it.
            UnknownRequest, RequestClosed: There is no such open request.
            UsageError: There is no reason.
        """
        check_reason(reason, "break-glass")
        with self._lock, self._reporting():
            while True:
                self._look()
                asked = self._require_open(request_id)
                if asked.body.statement.action is Action.HANDOFF:
                    raise UsageError(
                        f"break-glass of thread {self._name!r}: expected a request to resume, "
                        "found one to hand off, which every reader asks an approval for"
                    )
                body = BreakGlassBody(salt=self._core.salt(), request=request_id, reason=reason)
                seq = self._written(Kind.BREAK_GLASS, body)
                if seq is not None:
                    return seq

    def _require_open(self, request_id: str) -> Asked:
        asked = self._pending().asked.get(request_id)
        if asked is None:
            raise UnknownRequest(
                f"request {request_id[:12]} of thread {self._name!r}: expected an open one, "
                "found none"
            )
        request = self._shown(asked)
        if request.status in (Status.DENIED, Status.EXPIRED, Status.VOID):
            if request.status is Status.EXPIRED and not asked.expired:
                self._expire(asked)
            raise RequestClosed(
                f"request {request.short} of thread {self._name!r}: expected an open one, found "
                f"it {request.status}"
            )
        return asked

    def _require_say(self, identity: Identity, asked: Asked, verdict: Verdict) -> None:
        """Refuse at once what would not count."""
        roster, namespace = self._core.trust().roster, self._core.namespace
        requester = roster.identity(asked.body.statement.requester)
        same = requester is not None and requester.person == identity.person
        if verdict is Verdict.DENY and same:
            return
        if same:
            raise NotTrusted(
                f"approval by {identity.name!r}: expected another person than the requester",
                hint="Who asks cannot approve, with no identity and no key. To add somebody: "
                "sealpoint keys new NAME, then sealpoint keys add NAME --person NAME --role "
                "approver",
            )
        if not identity.may(Role.APPROVER, namespace):
            raise NotTrusted(
                f"{verdict} by {identity.name!r}: expected an approver of namespace "
                f"{namespace!r}, found other rights"
            )

    def _expire(self, asked: Asked) -> int | None:
        """Record that a request has expired; None if somebody else wrote first."""
        return self._written(Kind.EXPIRY, ExpiryBody(salt=self._core.salt(), request=asked.id))
