# SPDX-License-Identifier: Apache-2.0
"""What a caller of `resume` asks for, checked before anything is looked at."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, Self

import msgspec

from sealpoint.errors import ResumeRefused, UsageError
from sealpoint.gate._policy import Policy
from sealpoint.limits import ANSWER_BYTES_MAX, NAME_BYTES_MAX
from sealpoint.signing import Action, Statement, check_reason
from sealpoint.store import CheckpointRef, Release, plain_value
from sealpoint.world import World

_encode_json = msgspec.json.Encoder(order="deterministic").encode


def answer_digest(answer: Any) -> str | None:
    """The SHA-256 of an answer's canonical JSON; None if there is no answer."""
    return None if answer is None else sha256(_encode_json(answer)).hexdigest()


class ResumeCall(NamedTuple):
    """What a caller of `resume` asks for."""

    world: World | None
    ref: str | CheckpointRef | None
    answer: Any
    actor: str | None
    deliberate: str | None
    lanes: Mapping[str, str] = {}
    """Checkpoints of other lanes that it goes on from although they are not the newest there."""
    offer: Callable[[], Any] | None = None
    """What it brings along that is no answer, for where it has to be bound like one."""
    would_run: Callable[[], bool] | None = None
    """Whether anything would run at all, for where people would have to be asked."""
    idempotent: Callable[[], bool] | None = None
    """Whether what would run may be done again, for where it may have been done."""
    edits: bool = False
    """Whether it only edits the state, and nothing runs."""
    run: str | None = None
    """What the run is known by that has the thread; None: none has it for this call."""

    @classmethod
    def of(
        cls,
        world: World | Mapping[str, Any] | None,
        *,
        ref: str | CheckpointRef | None,
        answer: Any,
        actor: str | None,
        deliberate: str | None,
        lanes: Mapping[str, str] | None = None,
        offer: Callable[[], Any] | None = None,
        would_run: Callable[[], bool] | None = None,
        idempotent: Callable[[], bool] | None = None,
    ) -> Self:
        """Check what a caller gives.

        Raises:
            WorldInvalid: The world is none.
            ValueNotAllowed: The answer is not JSON.
            UsageError: Actor or reason is no text, or something is too long.
        """
        check_actor(actor)
        # An empty text is passed on: the rules say that it is no reason.
        if deliberate is not None and deliberate != "":
            check_reason(deliberate, "deliberate")
        found = cls(
            World.of(world),
            ref,
            None,
            actor,
            deliberate,
            lanes or {},
            offer,
            would_run,
            idempotent,
        )
        return found.with_answer(answer)

    def with_answer(self, answer: Any) -> Self:
        """The same with an answer.

        Raises:
            ValueNotAllowed: It is not JSON.
            UsageError: It is too long.
        """
        plain = None if answer is None else plain_value(answer, "answer")
        _check_answer(plain)
        return self._replace(answer=plain)

    def require_something_to_run(self, thread: str) -> None:
        """Refuse to ask people about a thread that has finished: they have nothing to say to it.

        Raises:
            ResumeRefused: Nothing would run.
        """
        if self.would_run is not None and not self.would_run():
            words = "nothing would run: it has finished, and waits for no answer"
            raise ResumeRefused(
                f"thread {thread!r}: {words}",
                reasons=(words,),
                hint="Nobody was asked. Give it an input to begin another turn.",
            )

    @property
    def answer_digest(self) -> str | None:
        """What a statement binds of the answer."""
        return answer_digest(self.answer)

    def is_asked_by(
        self,
        statement: Statement,
        release: Release,
        before: str | None,
        policy: Policy | None,
        who: str,
    ) -> bool:
        """Whether a request that is bound to this thread and basis is for exactly this resume.

        Args:
            statement: The statement of the request.
            release: What would be executed.
            before: The digest of the world that the present one is compared with.
            policy: The policy in force.
            who: The identity that would go on.
        """
        return (
            statement.action,
            statement.checkpoint,
            statement.release,
            statement.world_from,
            statement.world_to,
            statement.answer,
            statement.requester,
            statement.policy,
        ) == (
            Action.RESUME,
            release.entry,
            release.digest,
            before,
            None if self.world is None else self.world.digest,
            self.answer_digest,
            who,
            None if policy is None else policy.digest,
        )


def _check_answer(answer: Any) -> None:
    size_bytes = len(_encode_json(answer))
    if size_bytes > ANSWER_BYTES_MAX:
        raise UsageError(
            f"answer: expected at most {ANSWER_BYTES_MAX} bytes as JSON, found {size_bytes}",
            hint="Answer with what names a large thing, and let the run fetch it.",
        )


def check_actor(actor: object) -> None:
    """Refuse what cannot name anybody.

    Raises:
        UsageError: It is no text, or too long.
    """
    if actor is None:
        return
    if not isinstance(actor, str):
        raise UsageError(f"actor: expected text, found {type(actor).__name__}")
    try:
        size_bytes = len(actor.encode())
    except UnicodeEncodeError as exc:
        raise UsageError("actor: expected text without lone surrogates, found one") from exc
    if size_bytes > NAME_BYTES_MAX:
        raise UsageError(f"actor: expected at most {NAME_BYTES_MAX} bytes, found {size_bytes}")
