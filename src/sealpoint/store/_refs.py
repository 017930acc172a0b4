# SPDX-License-Identifier: Apache-2.0
"""What the store hands out: references to checkpoints, loaded states, lists of names."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

__all__ = ["CheckpointRef", "Event", "Loaded", "ThreadNames"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRef:
    """One checkpoint of a thread: where it is and who wrote it, without its state."""

    id: str
    seq: int
    """Its position in the thread."""
    time: datetime
    """When it was written, by the writer's clock."""
    writer: str
    """The identity that signed it."""
    metadata: dict[str, Any] = field(hash=False)
    entry: str = ""
    """The hash of its entry, which no other checkpoint of any thread has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A state, and the checkpoint that it came from."""

    state: Any
    ref: CheckpointRef
    metadata: dict[str, Any]
    world: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadNames:
    """The names of the threads of a namespace."""

    names: tuple[str, ...]
    complete: bool
    """Whether every thread that the anchor knows was found: False means that some are missing
    from the store or cannot be read."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened: codes and digests only, never a name or a payload."""

    code: str
    thread: str
    """The thread's id in hexadecimal."""
    seq: int
    entry: str
    """The hash of the entry in hexadecimal; empty where no single entry is meant."""
