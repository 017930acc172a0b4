# SPDX-License-Identifier: Apache-2.0
"""The return values of the store: references to checkpoints, loaded states, removed data.

The values of every save and load are structs: a frozen dataclass takes five times as long to make.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec


class CheckpointRef(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of a thread: its position and its writer, without its state."""

    id: str
    seq: int
    """Its position in the thread."""
    time: datetime
    """When it was written, by the writer's clock."""
    writer: str
    """The identity that signed it."""
    metadata: dict[str, Any]
    entry: str = ""
    """The hash of its entry, which no other checkpoint of any thread has."""
    pruned: bool = False
    """Whether a prune removed its state."""
    question: Any = None
    """The question that the run was waiting for a person to answer."""
    lane: str = ""
    """The line of work inside the thread that it belongs to, such as a subgraph's."""
    parent: str | None = None
    """The id of the checkpoint it came from, as the application said."""
    held: bool = False
    """Whether a pause held it back."""

    def __hash__(self) -> int:
        # Metadata and question are not hashable; the hash of the entry is unique.
        return hash((self.entry, self.id, self.seq))


class ResultsRef(msgspec.Struct, frozen=True, kw_only=True):
    """The position of results that were added to a checkpoint."""

    seq: int
    entry: str


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a task that were added to a checkpoint."""

    task: str
    path: str
    """The position of the task in the program."""
    value: Any
    ref: ResultsRef
    question: Any = None
    """The question that the task waits for a person to answer."""
    answers: bool = False
    """Whether they are an answer that a person gave."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint with its state, and everything that was added to it since."""

    state: Any
    ref: CheckpointRef
    results: tuple[Results, ...]
    """In the order in which they were added."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A state, and the checkpoint that it came from."""

    state: Any
    ref: CheckpointRef
    metadata: dict[str, Any]
    world: dict[str, Any] | None
    """The capabilities of the run when the state was saved, if they were declared."""
    question: Any = None
    """The question that the run was waiting for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """The result of a prune, or of its dry run."""

    pruned: tuple[CheckpointRef, ...]
    """The checkpoints that lost their state, newest first."""
    blobs: int
    """How many blobs were dropped."""
    size_bytes: int
    """The size of the dropped blobs; a state that is stored with its entry is not counted."""
    entry: int | None
    """The position of the entry that records it; None: there was nothing to record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The result of an erasure, or of its dry run."""

    entries: int
    """How many entries lost their bodies."""
    blobs: int
    size_bytes: int
    entry: int | None
    """The position of the entry that records it; None for a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The data that a collection found to remove in a whole store."""

    threads: int
    """How many threads were read."""
    blobs: int
    size_bytes: int
    failures: tuple[tuple[str, str], ...]
    """The threads that could not be read, which are not changed: id and message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event: codes and digests, never a payload or a name from the data."""

    code: str
    thread: str
    """The thread's id in hexadecimal."""
    seq: int
    entry: str
    """The hash of the entry in hexadecimal; empty if no single entry is meant."""
    detail: str = ""
    """Names of rules, types and fields of the application's own code."""
