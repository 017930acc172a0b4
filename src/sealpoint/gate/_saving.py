# SPDX-License-Identifier: Apache-2.0
"""Saving behind the gate: the session that a save begins by itself is judged like any other.

It has to be an ordinary continuation, or what the policy allows without a word; anything else is
refused, and `resume` says why or asks. Inside a session the declared world becomes no wider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from sealpoint.errors import ResumeRefused, UnknownCheckpoint, UsageError
from sealpoint.gate._facts import gather
from sealpoint.gate._operations import OperatedThread
from sealpoint.gate._policy import Measure, Rule
from sealpoint.gate._rules import Outcome as Said
from sealpoint.gate._rules import decide
from sealpoint.gate._wish import Wish
from sealpoint.ledger import Entry, ResumeBody
from sealpoint.store import CheckpointRef, Draft, EntryDraft, Item, Outcome
from sealpoint.world import World

__all__ = ["SavingThread"]


class Admission(NamedTuple):
    """A resume that was decided and is to be recorded with the first entry of its session."""

    wish: Wish
    answered: bool


class SavingThread(OperatedThread):
    """A thread whose saves begin no session that the gate would not allow."""

    _admission: Admission | None = None

    _world: World | None = None
    """What the run of this handle's session declared to be able to do."""

    def save(
        self,
        state: Any,
        *,
        id: str | None = None,  # noqa: A002 (the name callers write)
        parent: "str | CheckpointRef | None" = None,
        metadata: Mapping[str, Any] | None = None,
        world: World | Mapping[str, Any] | None = None,
        question: Any = None,
    ) -> CheckpointRef:
        """Save a state as the newest checkpoint of the thread.

        When it returns, the checkpoint survives a crash and a power cut.

        Args:
            state: Any value that the store's registry allows.
            id: A name of the caller's own. Saving the same again under it returns the checkpoint
                that is there; anything else under it is refused.
            parent: The checkpoint that this one came from: lineage for people, not order.
            metadata: A JSON object beside the state, shown in listings.
            world: What the run is able to do; without it, what the session was resumed with.
            question: What the run waits for somebody to answer, as JSON.

        Raises:
            ResumeRefused: A session would begin that is no ordinary continuation, or the world
                has become wider than that of the session: call `resume`.
            EncodeError: The state holds something that is not allowed; nothing was written.
            HeadMoved: Somebody else has written since this handle looked; load again.
            Superseded: A later session took the thread over; load again.
            Paused: An operator paused the thread; keep the state and save it later.
            NotOwner: The thread belongs to another identity.
            NotTrusted: The roster does not let this identity write here.
            IdReused: The id names another checkpoint of this thread.
            AnchorUnavailable: The anchor is down. `.ref` is the checkpoint if it was saved; it
                stands. None: nothing was saved.
            StorageUnavailable: It was not saved, or nobody can tell: repeat it under the same id.
            Tampered, RolledBack, Forked, Unanchored: The store is not what it was.
        """
        return super().save(
            state,
            id=id,
            parent=parent,
            metadata=metadata,
            world=World.of(world),
            question=question,
        )

    def commit(self, drafts: Sequence[EntryDraft]) -> list[Outcome]:
        """Write several things in their order, as one durable step where that can be.

        What declares no world has that of the one before it, or of the session. See `save` for
        what may be refused.
        """
        with self._lock:
            if self._session is None and self._admission is None:
                self._world = None
            world = self._world
            for draft in drafts:
                if draft.world is None:
                    draft.declare(world)
                elif draft.declared is None:
                    raise UsageError("world: expected a World, which the gate can judge")
                world = draft.declared
            return super().commit(drafts)

    def _opening(self, draft: EntryDraft) -> list[Draft]:
        self._under = None
        drafts = super()._opening(draft)
        if not drafts and draft.declared != self._world:
            self._require_no_wider(draft.declared)
        self._world = draft.declared
        return drafts

    def _saved(self, entries: Sequence[Entry], group: Sequence[Item]) -> list[tuple[Item, Outcome]]:
        self._admission = None  # it is recorded by now
        return super()._saved(entries, group)

    def _require_no_wider(self, world: World | None) -> None:
        """Refuse another world inside a session, unless it is narrower or an allowed first one."""
        before = self._world
        if before is None:
            policy = self._policies.in_force(self._core.trust().roster)
            if policy is not None and policy.measure(Rule.FIRST_WORLD) is Measure.ALLOW:
                return
            found = "a world, and none was declared when the session began"
        elif world is None:
            found = "none"
        else:
            diff = before.diff(world)
            if diff.narrowing and not (diff.code_changed or diff.widening):
                return
            found = ", ".join(diff.lines())
        raise ResumeRefused(
            f"thread {self._name!r}: expected the world of the session or a narrower one, "
            f"found: {found}",
            reasons=(found,),
            hint="Call resume(world=...) with the new world: that begins a session with it.",
        )

    def _continuation(self, draft: EntryDraft, owner: str, basis: int) -> ResumeBody:
        """Judge the session that a save begins by itself."""
        world, trust = draft.declared, self._core.trust()
        self._under, policy = trust, self._policies.in_force(trust.roster)
        body = ResumeBody(
            salt=self._core.salt(),
            owner=owner,
            basis=basis,
            world=None if world is None else world.digest,
            policy=None if policy is None else policy.digest,
        )
        if self._chain.head is None or self._chain.tip().fence.erased:
            return body
        admission = self._admission
        try:
            candidate = self._candidate(None if admission is None else admission.wish.ref)
        except UnknownCheckpoint:
            return body  # it holds nothing, or no longer: there is nothing to go on from
        # Whether it is paused is told by the append, as to a save in a session.
        facts = gather(
            self._chain,
            candidate,
            trust=trust,
            who=self._who(),
            session=self._session,
            world=world,
            pause=None,
            now=self._now(),
        )
        if admission is not None:
            deliberate = admission.wish.deliberate
            facts = replace(facts, answered=admission.answered, deliberate=deliberate)
        decision = decide(facts, policy)
        if decision.outcome is not Said.ALLOW:
            reasons = tuple(reason.words for reason in decision.reasons)
            raise ResumeRefused(
                f"thread {self._name!r}: expected an ordinary continuation, found: "
                f"{'; '.join(reasons)}",
                reasons=reasons,
                hint="Call resume(world=...) first: the gate decides, and records it.",
            )
        rules = tuple(reason.rule for reason in decision.reasons)
        other = world is not None and world.digest != candidate.world_digest
        return msgspec.structs.replace(
            body,
            reason=None if admission is None else admission.wish.deliberate,
            checkpoint=candidate.ref.entry,
            leaves=world.to_dict() if world is not None and other else None,
            rules=rules,
        )
