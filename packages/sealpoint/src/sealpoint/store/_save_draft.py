# SPDX-License-Identifier: Apache-2.0
"""What is to be written, checked before anything is read or written."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from sealpoint.errors import HeadMoved, UsageError, ValueNotAllowed
from sealpoint.ledger import CheckpointBody, Entry, Kind, Origin
from sealpoint.limits import BODY_BYTES_MAX
from sealpoint.signing import check_reason
from sealpoint.store._index import Key
from sealpoint.store._names import check_name, check_path
from sealpoint.store._refs import CheckpointRef
from sealpoint.world import JsonCopy, JsonFault, World

_JSON_HINT = "Metadata and worlds are JSON: turn the value into that."
_encode_json = msgspec.json.Encoder().encode


def plain_object(value: object, what: str) -> dict[str, Any]:
    """A JSON object of its own: a copy, so that later edits of the caller's do not matter.

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
    """Any JSON value of its own, which comes back exactly: a tuple is refused, and no list.

    Raises:
        ValueNotAllowed: The value is not one; the message has the path.
    """
    try:
        return JsonCopy(exact=True).copy(value)
    except JsonFault as fault:
        raise ValueNotAllowed(fault.at(what), hint=_JSON_HINT) from None


def _check_question(question: object) -> Any:
    """What the run waits for somebody to answer, which has to fit the body of its entry.

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
"""Room in the body of an entry for what stands beside a question."""

_REPEATS_MAX = 64
"""How often a save begins anew. Every time somebody else got on, but one who writes without end
must not keep it for ever."""

_THREAD = re.compile("[0-9a-f]{32}")
_ENTRY = re.compile("[0-9a-f]{64}")


def _check_origin(origin: Any) -> Origin:
    """What a copy was taken from, as every reader will take it; its time in UTC.

    Raises:
        UsageError: No reader would take it, and the thread could not be read any more.
    """
    if not isinstance(origin, Origin):
        raise UsageError(f"origin: expected an Origin, found {type(origin).__name__}")
    for name, form in (("thread", _THREAD), ("entry", _ENTRY)):
        text = getattr(origin, name)
        if not isinstance(text, str) or form.fullmatch(text) is None:
            digits = form.pattern.partition("{")[2].rstrip("}")
            raise UsageError(f"origin: {name} must be {digits} lower-case hexadecimal digits")
    at: Any = origin.at  # nothing checks what a caller gives
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
    """Where the run stands that writes something, as its framework says with each write.

    A framework reads for many reasons and does not say for which, so nothing is decided when it
    reads. By this the gate finds whether a write goes on with the run of the handle's session, or
    another run begins with it.
    """

    run: object | None = None
    """An object that all writes of a run have and no other run has; None: nobody knows the run."""
    token: str | None = None
    """What `begin` was given for the run; None: nobody has decided about it before."""
    checkpoint: str | None = None
    """The checkpoint of the main lane that the run goes on from; None: it does not say."""
    lanes: Mapping[str, str] = {}
    """The checkpoints of other lanes that the run was told to go on from, by lane."""
    begins: bool = False
    """Whether a run begins with this write: an input, an edit, an answer."""
    rising: bool = True
    """Whether the ids of the framework's checkpoints rise, as texts: a higher one is a new one."""
    inside: bool = False
    """Whether code of a task of the run itself writes it, beside what the run writes."""
    answered: bool = False
    """Whether something is brought in from outside that answers or edits."""
    deliberate: str | None = None
    """Why this is meant, where the policy asks for that."""

    def __post_init__(self) -> None:
        """Check what a caller gives.

        Raises:
            UsageError: The reason is no text, shows nothing, or is too long.
        """
        if self.deliberate is not None:
            check_reason(self.deliberate, "deliberate")


class _PayloadDraft:
    """What both kinds of drafts have: a value, and the world of the run that wrote it."""

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
        """A pause stops it although its kind would be let pass."""
        self.collected = 0
        """How often somebody collected what was put ahead of its entry."""
        self._repeats = _REPEATS_MAX
        self.declare(world)

    def declare(self, world: World | None) -> None:
        """Say what the run is able to do."""
        if world is not None and not isinstance(world, World):
            raise UsageError(
                f"world: expected a World, which the gate can judge, found {type(world).__name__}"
            )
        self.declared = world
        self.world = None if world is None else world.encode()

    def repeat_after(self, newest: Entry, thread: str) -> None:
        """Begin once more because somebody else wrote first, but not for ever.

        Raises:
            HeadMoved: It has been so too often.
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
        name: A name of the caller's own; None: one is drawn.
        parent: The checkpoint it came from, as the application says.
        metadata: A JSON object beside the state.
        world: What the run was able to do.
        question: What the run waits for somebody to answer, as JSON.
        lane: Which of several lines of work inside the thread it belongs to.
        supersedes: Whether another state under the same name replaces the one that is there;
            otherwise it is refused. The names of a lane rise then, as texts.
        holds: Whether a pause holds it back instead of refusing it: it is kept, and nobody goes on
            from it before the pause has ended. Only for work that is done already.
        origin: What it is a copy of.
        position: Where the run stands that saves it; None: the session of the handle goes on.
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
        """What names it within the thread."""
        if isinstance(parent, CheckpointRef):
            parent = parent.id
        self.parent = None if parent is None else check_name(parent, "parent id")
        self.metadata = None if metadata is None else plain_object(metadata, "metadata") or None
        self.supersedes = supersedes
        self.holds = holds

    def says_what(self, body: CheckpointBody, world: str | None) -> bool:
        """Whether a checkpoint says the same, beside its state."""
        # As JSON: in Python, 1 equals 1.0 and True.
        mine = (self.parent, _encode_json((self.metadata, self.question)), world)
        return (body.parent, _encode_json((body.metadata, body.question)), body.world) == mine


class ResultsDraft(_PayloadDraft):
    """Results of a task that are to be added to a checkpoint.

    Args:
        results: Any value that the store's registry allows.
        checkpoint: The id of the checkpoint, which may follow later.
        task: Whose results they are.
        path: Where the task stands in the program.
        lane: The lane of the checkpoint.
        question: What the task waits for somebody to answer, as JSON.
        answers: Whether they answer a question: a paused thread takes no answers.
        world: What the run is able to do, if a session begins with them.
        origin: What it is a copy of.
        position: Where the run stands that adds them; None: the session of the handle goes on.
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
        """What names the checkpoint within the thread."""
        self.task = check_name(task, "task id")
        self.path = "" if path == "" else check_path(path, "task path")
        self.blocked_by_pause = answers
