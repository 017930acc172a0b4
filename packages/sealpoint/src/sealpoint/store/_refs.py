# SPDX-License-Identifier: Apache-2.0
"""What the store hands out: references to checkpoints, loaded states, what was given up.

What every save and load makes is a struct: a frozen dataclass takes five times as long to make.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec


class CheckpointRef(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of a thread: where it is and who wrote it, without its state."""

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
    """Its state was given up by a prune."""
    question: Any = None
    """What the run was waiting for somebody to answer."""
    lane: str = ""
    """Which of several lines of work inside the thread it belongs to, such as a subgraph's."""
    parent: str | None = None
    """The id of the checkpoint it came from, as the application said."""
    held: bool = False
    """A pause held it back."""

    def __hash__(self) -> int:
        # Its metadata and its question have none; its entry is no other's.
        return hash((self.entry, self.id, self.seq))


class ResultsRef(msgspec.Struct, frozen=True, kw_only=True):
    """Where results that were added to a checkpoint lie."""

    seq: int
    entry: str


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a task that were added to a checkpoint."""

    task: str
    path: str
    """Where the task stands in the program."""
    value: Any
    ref: ResultsRef
    question: Any = None
    """What the task waits for somebody to answer."""
    answers: bool = False
    """They are an answer that somebody gave."""


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
    """What the run was able to do when it was saved, if that was declared."""
    question: Any = None
    """What the run was waiting for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What a prune gave up, or would."""

    pruned: tuple[CheckpointRef, ...]
    """The checkpoints that lost their state, newest first."""
    blobs: int
    """How many blobs were dropped."""
    size_bytes: int
    """How much they held; a state that lies beside its entry is not counted."""
    entry: int | None
    """The position of the entry that records it; None: nothing was to be recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What an erasure removed, or would."""

    entries: int
    """How many entries it took the bodies of."""
    blobs: int
    size_bytes: int
    entry: int | None
    """The position of the entry that records it; None for a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a collection found to remove in a whole store."""

    threads: int
    """How many threads were looked at."""
    blobs: int
    size_bytes: int
    failures: tuple[tuple[str, str], ...]
    """The threads that could not be read, which are left as they are: id and message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened: codes and digests, never a payload or a name that data has."""

    code: str
    thread: str
    """The thread's id in hexadecimal."""
    seq: int
    entry: str
    """The hash of the entry in hexadecimal; empty where no single entry is meant."""
    detail: str = ""
    """What of the application's own code is meant: names of rules, types and fields."""
