# SPDX-License-Identifier: Apache-2.0
"""What the gate and those who operate it need of a thread: what is pending, and statements."""

from datetime import datetime, timedelta
from typing import Any

from sealpoint.errors import Busy, ResumeRefused, SealpointError, UsageError
from sealpoint.gate._facts import Candidate
from sealpoint.gate._pending import Asked, Pending, read_pending
from sealpoint.gate._policies import Policies
from sealpoint.gate._policy import Policy
from sealpoint.gate._requests import Request, make_request
from sealpoint.gate._rules import Decision
from sealpoint.ledger import Body, Header, Kind, RequestBody, link_hash
from sealpoint.signing import Action, Statement
from sealpoint.storage import Record
from sealpoint.store import CheckpointRef, Core, Draft, Thread, decode_world, make_ref

__all__ = ["GateHandle"]

_NONCE_BYTES = 16


class GateHandle(Thread):
    """A thread, with what is pending on it."""

    def __init__(self, core: Core, name: str, policies: Policies) -> None:
        super().__init__(core, name)
        self._policies = policies

    def _pending(self) -> Pending:
        return read_pending(self._chain)

    def _shown(self, asked: Asked) -> Request:
        roster = self._core.trust().roster
        return make_request(
            asked,
            self._name,
            roster=roster,
            policy=self._policies.in_force(roster),
            now=self._now(),
        )

    def _asked(self, body: RequestBody) -> int | None:
        """Append a request; None if somebody else wrote first."""
        body.statement.check()
        return self._written(Kind.REQUEST, body)

    def _written(self, kind: Kind, body: Body) -> int | None:
        return self._recorded(Draft(kind, body))

    def _require_living(self) -> None:
        """Look, and refuse a thread that holds nothing."""
        self._look()
        self._require_generation(self._chain.verified_head().header)

    def _now(self) -> datetime:
        return self._core.now(self._chain.tip().time)

    def _owner(self) -> str:
        return self._chain.tip().fence.owner or ""

    def _who(self) -> str:
        """The identity that the store was opened with; empty if it was for reading only."""
        if self._core.parts.read_only:
            return ""
        holder = self._core.holder(self._core.trust())
        return "" if holder is None else holder[0].name

    def _stated(
        self,
        *,
        action: Action,
        policy: Policy,
        reason: str,
        checkpoint: str | None = None,
        world_from: str | None = None,
        world_to: str | None = None,
        answer: str | None = None,
        to: str | None = None,
    ) -> Statement:
        """A statement that is bound to the thread as it is."""
        head = self._chain.verified_head().header
        return Statement(
            store=head.store,
            ns=head.ns,
            thread=head.thread,
            epoch=self._core.trust().epoch,
            gen=head.gen,
            basis=self._chain.tip().basis[1].hex(),
            action=action,
            checkpoint=checkpoint,
            world_from=world_from,
            world_to=world_to,
            answer=answer,
            to=to,
            requester=self._who(),
            policy=policy.digest,
            nonce=self._core.random_hex(_NONCE_BYTES),
            expires=self._until(policy.expires),
            reason=reason,
        )

    def _refusal(self, decision: Decision) -> SealpointError:
        reasons = tuple(reason.words for reason in decision.reasons)
        message = f"thread {self._name!r}: expected a resume that is allowed, found: "
        message += "; ".join(reasons)
        if decision.busy:
            return Busy(message)
        paused = any(reason.rule == "paused" for reason in decision.reasons)
        hint = f"An operator ends it: sealpoint unpause {self._name!r} --reason WHY"
        return ResumeRefused(message, reasons=reasons, hint=hint if paused else None)

    def _until(self, span: timedelta) -> datetime:
        now = self._now()
        try:
            return now + span
        except OverflowError as exc:
            raise UsageError(
                f"thread {self._name!r}: expected a time that can be added to, found {now}",
                hint="Somebody saved with a clock far ahead; erase the thread or begin another.",
            ) from exc

    def _candidate(self, ref: "str | CheckpointRef | None") -> Candidate:
        """A checkpoint that would be released, with its world and question but not its state."""
        newest = self._newest()
        if ref is None:
            return self._candidate_at(newest.header, newest.record, newest=True)
        found = self._named(ref)
        self._require_kept(found.header)
        is_newest = found.header.seq == newest.header.seq
        return self._candidate_at(found.header, found.record, newest=is_newest)

    def _candidate_at(self, header: Header, record: Record, *, newest: bool) -> Candidate:
        body = self._body(header, record)

        def read_world() -> dict[str, Any]:
            reader = self._reader(header, record, bytes.fromhex(body.root))
            return decode_world(reader.get(bytes.fromhex(body.world or "")))

        return Candidate(
            ref=make_ref(header, body, self._core.writer(header), link_hash(record.header)),
            newest=newest,
            world_digest=body.world,
            read_world=read_world,
            question=self._pending_question(header, body),
        )
