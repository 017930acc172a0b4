# SPDX-License-Identifier: Apache-2.0
"""Drafts of checkpoints and results, checked before the store is read or written."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from sealpoint.errors import HeadMoved, UsageError, ValueNotAllowed
from sealpoint.ledger import CheckpointBody, Entry, Kind, Origin
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.signing import check_reason
from sealpoint.store._checkpoint_index import Key
from sealpoint.store._names import check_name, check_path
from sealpoint.store._return_values import CheckpointRef
from sealpoint.world import JsonCopy, JsonFault, World

_JSON_HINT = "Metadata and worlds are JSON: turn the value into that."
_encode_json = msgspec.json.Encoder().encode


def plain_object(value: object, what: str) -> dict[str, Any]:
    """Return a copy of a JSON object, so that later changes by the caller have no effect.

    Raises:
        ValueNotAllowed: The value is not a mapping of JSON values; the message has the path.
    """
    if not isinstance(value, Mapping):
        raise ValueNotAllowed(
            f"{what}: expected a mapping, found {type(value).__name__}", hint=_JSON_HINT
        )
    made: dict[str, Any] = plain_value(dict(value), what)
    return made


def plain_value(value: object, what: str) -> Any:
    """Return a copy of a JSON value that decodes to an equal value: a tuple is refused.

    Raises:
        ValueNotAllowed: The value is not JSON; the message has the path.
    """
    try:
        return JsonCopy(exact=True).copy(value)
    except JsonFault as fault:
        raise ValueNotAllowed(fault.at(what), hint=_JSON_HINT) from None


def _check_question(question: object) -> Any:
    """Check the question that a run waits for a person to answer; it must fit the entry's body.

    Raises:
        ValueNotAllowed: It is not JSON.
        UsageError: It is too long.
    """
    plain = plain_value(question, "question")
    size_bytes, bytes_max = len(_encode_json(plain)), BODY_BYTES_MAX - _BESIDE_QUESTION_BYTES
    if size_bytes > bytes_max:
        raise UsageError(
            f"question: expected at most {bytes_max} bytes as JSON, found {size_bytes}",
            hint="Ask with what names a large thing, and keep the thing itself in the state.",
        )
    return plain


_BESIDE_QUESTION_BYTES = 64 * 1024
"""The space in the body of an entry for everything but the question."""

_REPEATS_MAX = 64
"""How often a save starts again. Each time another process made progress, but a process that
writes without end must not block the save forever."""

_THREAD = re.compile("[0-9a-f]{32}")
_ENTRY = re.compile("[0-9a-f]{64}")


def _check_origin(origin: Any) -> Origin:
    """Check the original of a copy, as every reader will; return it with its time in UTC.

    Raises:
        UsageError: Readers would refuse it, and the thread would become unreadable.
    """
    if not isinstance(origin, Origin):
        raise UsageError(f"origin: expected an Origin, found {type(origin).__name__}")
    for name, form in (("thread", _THREAD), ("entry", _ENTRY)):
        text = getattr(origin, name)
        if not isinstance(text, str) or form.fullmatch(text) is None:
            digits = form.pattern.partition("{")[2].rstrip("}")
            raise UsageError(f"origin: {name} must be {digits} lower-case hexadecimal digits")
    at: Any = origin.at  # the caller's value is not checked yet
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise UsageError(
            "origin: the time needs a zone",
            hint="Give it with its zone, such as datetime(2030, 1, 1, tzinfo=UTC).",
        )
    try:
        return msgspec.structs.replace(origin, at=at.astimezone(UTC))
    except OverflowError as exc:
        raise UsageError("origin: the time lies outside of what UTC can express") from exc


class RunPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position of the run that writes, which its framework states with each write.

    A framework reads for many reasons and does not state them, so the gate decides nothing on a
    read. From this value the gate determines whether a write continues the run of the handle's
    session, or begins another run.
    """

    run: object | None = None
    """An object shared by all writes of a run and by no other run; None: the run is unknown."""
    token: str | None = None
    """The token that `begin` received for the run; None: the run was not judged before."""
    checkpoint: str | None = None
    """The checkpoint of the main lane that the run continues from; None: not stated."""
    lanes: Mapping[str, str] = {}
    """The checkpoints of other lanes that the run was asked to continue from, by lane."""
    begins: bool = False
    """Whether a run begins with this write: an input, an edit, an answer."""
    rising: bool = True
    """Whether the ids of the framework's checkpoints rise, as texts: a higher one is a new one."""
    inside: bool = False
    """Whether code of a task of the run itself writes it, in addition to the run's own writes."""
    answered: bool = False
    """Whether the write brings an answer or an edit from outside."""
    edits: bool = False
    """Whether it is part of an edit from outside of a run, so that nothing runs in its session."""
    deliberate: str | None = None
    """Why this is intended, if the policy asks for that."""

    def __post_init__(self) -> None:
        """Check the caller's values.

        Raises:
            UsageError: The reason is not a text, has no visible content, or is too long.
        """
        if self.deliberate is not None:
            check_reason(self.deliberate, "deliberate")


class _PayloadDraft:
    """The common part of both kinds of drafts: a value, and the world of the run that wrote it."""

    __slots__ = (
        "_repeats",
        "blocked_by_pause",
        "collected",
        "declared",
        "lane",
        "origin",
        "position",
        "question",
        "value",
        "world",
    )

    kind: Kind

    def __init__(
        self,
        value: Any,
        *,
        lane: str,
        world: World | None,
        question: Any,
        origin: Origin | None,
        position: RunPosition | None,
    ) -> None:
        self.value = value
        self.position = position
        self.lane = "" if lane == "" else check_path(lane, "lane")
        self.question = None if question is None else _check_question(question)
        self.origin = None if origin is None else _check_origin(origin)
        self.blocked_by_pause = False
        """Whether a pause blocks it although its kind is not blocked."""
        self.collected = 0
        """How often another process has collected blobs stored ahead of its entry."""
        self._repeats = _REPEATS_MAX
        self.declare(world)

    def declare(self, world: World | None) -> None:
        """Set the capabilities of the run."""
        if world is not None and not isinstance(world, World):
            raise UsageError(
                f"world: expected a World, which the gate can judge, found {type(world).__name__}"
            )
        self.declared = world
        self.world = None if world is None else world.encode()

    def repeat_after(self, newest: Entry, thread: str) -> None:
        """Count another attempt after a lost write, up to a limit.

        Raises:
            HeadMoved: The limit is reached.
        """
        self._repeats -= 1
        if self._repeats < 0:
            raise HeadMoved(
                f"thread {thread!r}: gave up after {_REPEATS_MAX} attempts, because others wrote "
                f"first each time, the last of them {newest.writer!r} entry {newest.seq}",
                hint="Nothing was saved, and the session stays open: save again later.",
            )


class SaveDraft(_PayloadDraft):
    """A state that is to become a checkpoint.

    Args:
        state: Any value that the store's registry allows.
        name: A name that the caller chooses; None: a random one is made.
        parent: The checkpoint it came from, as the application says.
        metadata: A JSON object stored with the state.
        world: The capabilities of the run.
        question: The question that the run waits for a person to answer, as JSON.
        lane: The line of work inside the thread that it belongs to.
        supersedes: Whether another state under the same name replaces the existing one; otherwise
            it is refused. The names of a lane then rise, as texts.
        holds: Whether a pause holds it back instead of refusing it: it is kept, and no run
            continues from it before the pause has ended. Only for work that is already done.
        origin: The original that it is a copy of.
        position: The position of the run that saves it; None: the session of the handle continues.
    """

    __slots__ = ("holds", "id", "key", "metadata", "parent", "supersedes")

    kind = Kind.CHECKPOINT

    def __init__(
        self,
        state: Any,
        name: str | None,
        parent: str | CheckpointRef | None,
        metadata: Mapping[str, Any] | None,
        world: World | None,
        *,
        question: Any = None,
        lane: str = "",
        supersedes: bool = False,
        holds: bool = False,
        origin: Origin | None = None,
        position: RunPosition | None = None,
    ) -> None:
        super().__init__(
            state, lane=lane, world=world, question=question, origin=origin, position=position
        )
        self.id = None if name is None else check_name(name, "checkpoint id")
        self.key = None if self.id is None else Key(self.lane, self.id)
        """The key that identifies it within the thread."""
        if isinstance(parent, CheckpointRef):
            parent = parent.id
        self.parent = None if parent is None else check_name(parent, "parent id")
        self.metadata = None if metadata is None else plain_object(metadata, "metadata") or None
        self.supersedes = supersedes
        self.holds = holds

    def equals_stored(self, body: CheckpointBody, world: str | None) -> bool:
        """Whether a checkpoint has the same content, apart from its state."""
        # As JSON: in Python, 1 equals 1.0 and True.
        mine = (self.parent, _encode_json((self.metadata, self.question)), world)
        return (body.parent, _encode_json((body.metadata, body.question)), body.world) == mine


class ResultsDraft(_PayloadDraft):
    """Results of a task that are to be added to a checkpoint.

    Args:
        results: Any value that the store's registry allows.
        checkpoint: The id of the checkpoint, which may be saved later.
        task: The task that produced the results.
        path: The position of the task in the program.
        lane: The lane of the checkpoint.
        question: The question that the task waits for a person to answer, as JSON.
        answers: Whether they answer a question: a paused thread accepts no answers.
        world: The capabilities of the run, if a session begins with them.
        origin: The original that it is a copy of.
        position: The position of the run that adds them; None: the session of the handle continues.
    """

    __slots__ = ("checkpoint", "key", "path", "task")

    kind = Kind.RESULTS

    def __init__(
        self,
        results: Any,
        *,
        checkpoint: str,
        task: str,
        path: str = "",
        lane: str = "",
        question: Any = None,
        answers: bool = False,
        world: World | None = None,
        origin: Origin | None = None,
        position: RunPosition | None = None,
    ) -> None:
        super().__init__(
            results, lane=lane, world=world, question=question, origin=origin, position=position
        )
        self.checkpoint = check_name(checkpoint, "checkpoint id")
        self.key = Key(self.lane, self.checkpoint)
        """The key that identifies the checkpoint within the thread."""
        self.task = check_name(task, "task id")
        self.path = "" if path == "" else check_path(path, "task path")
        self.blocked_by_pause = answers
