# SPDX-License-Identifier: Apache-2.0
"""Results in a form in which two runs can be compared: nothing random, no type forgotten.

Ids that the framework draws anew in every run are replaced: a checkpoint is named by its lane and
its place in it, other ids by a word. Everything else is kept with its exact type, so `1`, `1.0`
and `True`, a message and a dict are all different. Only a tuple is written like a list: the stock
savers bring it back as one, so whoever keeps the type is right as well.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send, StateSnapshot
from pydantic import BaseModel

__all__ = ["CONTROL_CHANNELS", "Names", "types_of"]

CONTROL_CHANNELS = frozenset({*WRITES_IDX_MAP, "__error_source_node__"})
"""As of the framework: writes that say what happened to a task and are not its result."""


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INTERRUPT = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Ids of runs, and how many steps a run may still take, which begins anew when it is resumed.
_UNNAMED = {"run_id", "remaining_steps"}
# How long ago a delta channel was written whole: a run that was killed may do it earlier.
_COUNTERS = "counters_since_delta_snapshot"


def _type_name(value: object) -> str:
    return type(value).__qualname__


def _fields(value: object) -> dict[str, Any] | None:
    """Read the fields of a record, or None when the value is not one."""
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value):
        return {item.name: getattr(value, item.name, None) for item in dataclasses.fields(value)}
    if isinstance(value, Send):
        return {"node": value.node, "arg": value.arg, "timeout": value.timeout}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    return None


class Names:
    """The names of the checkpoints of one thread, for writing its results down."""

    def __init__(self, ids: Iterable[tuple[str, str]]) -> None:
        lanes: dict[str, list[str]] = {}
        for lane, checkpoint_id in ids:
            lanes.setdefault(lane, []).append(checkpoint_id)
        self._names = {
            checkpoint_id: f"{_UUID.sub('task', lane)}#{place}"
            for lane, found in lanes.items()
            for place, checkpoint_id in enumerate(sorted(found))
        }

    def is_orphan(self, entry: CheckpointTuple) -> bool:
        """Whether this is a subgraph's checkpoint whose parent was never saved.

        A kill can leave such ones behind, as a subgraph does not wait for its parent's
        checkpoint. No run finds them again: the lane's name holds an id drawn for that parent.
        """
        parents = entry.metadata.get("parents", {})
        return not all(parent in self._names for parent in parents.values())

    def text(self, text: str) -> str:
        """Replace what is random in a text."""
        text = _UUID.sub(lambda found: self._names.get(found[0], "some id"), text)
        return _ADDRESS.sub("", _TIME.sub("some time", _INTERRUPT.sub("some interrupt", text)))

    def plain(self, value: object) -> Any:
        """Write a value down as strings, lists and dicts, with its type."""
        if value is None or type(value) is str:
            return None if value is None else self.text(str(value))
        if isinstance(value, Enum | BaseException):
            return f"{_type_name(value)} {self.text(str(value))}"
        if (fields := _fields(value)) is not None:
            if isinstance(value, BaseMessage) and value.id is None:
                # The framework gives a message its id when it adds it to the state, while another
                # thread is saving the same object as a write: both orders are right.
                fields["id"] = "some id"
            return {"is": _type_name(value), **self._mapping(fields)}
        if isinstance(value, list | tuple):
            items = [self.plain(item) for item in value]
            if items and all(isinstance(item, Interrupt) for item in value):
                # Branches side by side ask in the order in which they come to it.
                items.sort(key=str)
            return items
        if isinstance(value, set | frozenset):
            return {"is": _type_name(value), "items": sorted(str(self.plain(v)) for v in value)}
        if type(value) is dict:
            return self._mapping(value)
        return f"{_type_name(value)} {self.text(repr(value))}"

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        return {
            self.text(key) if isinstance(key, str) else str(self.plain(key)): self.plain(item)
            for key, item in value.items()
            if key not in _UNNAMED
        }

    def snapshot(self, state: StateSnapshot) -> Any:
        """Write the state of a graph down, as `get_state` and its history return it."""
        return {
            "values": self.plain(state.values),
            "next": list(state.next),
            "at": self.place(state.config),
            "after": self.place(state.parent_config),
            "metadata": self.plain(
                {key: value for key, value in (state.metadata or {}).items() if key != _COUNTERS}
            ),
            "tasks": [
                {
                    "name": task.name,
                    "path": self.plain(task.path),
                    "error": None if task.error is None else self.text(str(task.error)),
                    "interrupts": self.plain(list(task.interrupts)),
                    "result": self.plain(task.result),
                    "state": self.snapshot(task.state)
                    if isinstance(task.state, StateSnapshot)
                    else self.plain(task.state),
                }
                for task in state.tasks
            ],
            "interrupts": self.plain(list(state.interrupts)),
        }

    def placeless(self, state: StateSnapshot) -> Any:
        """Write a state down without where in the history it stands."""
        written = self.snapshot(state)
        return {
            "values": written["values"],
            "next": written["next"],
            "tasks": [{**task, "state": None} for task in written["tasks"]],
            "interrupts": written["interrupts"],
        }

    def place(self, config: Mapping[str, Any] | None) -> str | None:
        """Name the checkpoint that a configuration addresses."""
        if config is None:
            return None
        return self.text(str(config["configurable"].get("checkpoint_id")))

    def stored(self, entry: CheckpointTuple, *, whole: bool, writes: bool) -> Any:
        """Write down what a saver lists for one checkpoint.

        A run that goes on from a checkpoint notes there which breakpoints it has passed, so what
        each node has seen is compared between runs that took the same way, with `whole`.
        """
        checkpoint = entry.checkpoint
        written = {
            "lane": self.text(entry.config["configurable"]["checkpoint_ns"]),
            "at": self.place(entry.config),
            "after": self.place(entry.parent_config),
            # The stock savers differ in which checkpoints list the snapshot of a delta channel: in
            # memory, all that have the same version of it. States and history hold the value.
            "values": self.plain(
                {
                    channel: value
                    for channel, value in checkpoint["channel_values"].items()
                    if not isinstance(value, _DeltaSnapshot)
                }
            ),
            "versions": sorted(self.text(name) for name in checkpoint["channel_versions"]),
            "updated": sorted(checkpoint.get("updated_channels") or ()),
            "metadata": self.plain(
                {key: value for key, value in entry.metadata.items() if whole or key != _COUNTERS}
            ),
        }
        if whole:
            written["seen"] = {
                node: sorted(self.text(name) for name in seen)
                for node, seen in checkpoint["versions_seen"].items()
            }
        if writes:
            written["writes"] = self._writes(entry.pending_writes or ())
        return written

    def _writes(self, writes: Sequence[PendingWrite]) -> list[Any]:
        """Write pending writes down, without the questions and answers of finished tasks.

        The stock savers differ there, and nobody reads it: a task that asked twice saves its
        answers together with its result; in memory that replaces the first answer, while the
        SQLite saver, which replaces only when a call holds nothing else, keeps the old one.
        """
        finished = {task for task, channel, _ in writes if channel not in CONTROL_CHANNELS}
        return [
            [channel, self.plain(value)]
            for task, channel, value in writes
            if channel not in CONTROL_CHANNELS or task not in finished
        ]


def types_of(value: object, note: Callable[[type], object]) -> None:
    """Call `note` with the type of a value and of everything inside it."""
    note(type(value))
    if isinstance(value, Enum):
        return
    if (fields := _fields(value)) is not None:
        for item in fields.values():
            types_of(item, note)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            note(type(key))
            types_of(item, note)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            types_of(item, note)
