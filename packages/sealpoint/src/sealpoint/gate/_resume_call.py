# SPDX-License-Identifier: Apache-2.0
"""The arguments of a `resume` call, checked before the store is read."""

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
    """The arguments of a `resume` call."""

    world: World | None
    ref: str | CheckpointRef | None
    answer: Any
    actor: str | None
    deliberate: str | None
    lanes: Mapping[str, str] = {}
    """Checkpoints of other lanes to resume from although they are not the newest there."""
    offer: Callable[[], Any] | None = None
    """Returns the run's input that is not an answer, where it must be bound like an answer."""
    would_run: Callable[[], bool] | None = None
    """Returns whether anything would run at all, before people are asked."""
    idempotent: Callable[[], bool] | None = None
    """Returns whether the steps to run may be repeated, where they may already have happened."""
    edits: bool = False
    """Whether the call only edits the state, so that nothing runs."""
    run: str | None = None
    """The token of the run that holds the thread; None: no run holds it for this call."""
    takes: str | int | None = None
    """The signed answer or approved request that is the reason for this call, by its id, or the
    session that was interrupted. If another run has taken it, the call is refused."""

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
        """Check the arguments of a caller.

        Raises:
            WorldInvalid: The world is invalid.
            ValueNotAllowed: The answer is not JSON.
            UsageError: Actor or reason is not a text, or a text is too long.
        """
        check_actor(actor)
        # An empty text is passed through: the rules treat it as a missing reason.
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
        """Return the call with an answer.

        Raises:
            ValueNotAllowed: The answer is not JSON.
            UsageError: It is too long.
        """
        plain = None if answer is None else plain_value(answer, "answer")
        check_answer(plain)
        return self._replace(answer=plain)

    def require_something_to_run(self, thread: str) -> None:
        """Refuse to ask people about a thread that has finished: there is nothing to approve.

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
        """Return the digest of the answer, which a statement binds."""
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
            release: The state that would be executed.
            before: The digest of the world that the current one is compared with.
            policy: The policy in force.
            who: The identity that asks to resume.
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


def check_answer(answer: Any) -> None:
    """Refuse an answer that is too long.

    Raises:
        UsageError: It is.
    """
    size_bytes = len(_encode_json(answer))
    if size_bytes > ANSWER_BYTES_MAX:
        raise UsageError(
            f"answer: expected at most {ANSWER_BYTES_MAX} bytes as JSON, found {size_bytes}",
            hint="Answer with what names a large thing, and let the run fetch it.",
        )


def check_actor(actor: object) -> None:
    """Refuse a value that cannot name an actor.

    Raises:
        UsageError: It is not a text, or too long.
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
