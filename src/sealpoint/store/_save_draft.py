# SPDX-License-Identifier: Apache-2.0
"""The arguments of a save, checked before anything is read or written."""

from collections.abc import Mapping
from typing import Any

import msgspec

from sealpoint.errors import HeadMoved
from sealpoint.ledger import Entry
from sealpoint.store._json import plain_object, plain_value
from sealpoint.store._names import check_name
from sealpoint.store._refs import CheckpointRef
from sealpoint.world import World

__all__ = ["SaveDraft"]

_encode_json = msgspec.json.Encoder().encode

_REPEATS_MAX = 64
"""How often a save begins anew. Every time somebody else got on, but one who writes without end
must not keep it for ever."""


class SaveDraft:
    """The arguments of a save, checked before anything is read or written."""

    __slots__ = ("_repeats", "declared", "id", "metadata", "parent", "question", "state", "world")

    def __init__(
        self,
        state: Any,
        name: str | None,
        parent: str | CheckpointRef | None,
        metadata: Mapping[str, Any] | None,
        world: World | Mapping[str, Any] | None,
        *,
        question: Any = None,
    ) -> None:
        self.state = state
        self._repeats = _REPEATS_MAX
        self.id = None if name is None else check_name(name, "checkpoint id")
        if isinstance(parent, CheckpointRef):
            parent = parent.id
        self.parent = None if parent is None else check_name(parent, "parent id")
        self.metadata = None if metadata is None else plain_object(metadata, "metadata") or None
        self.declared = world if isinstance(world, World) else None
        self.world = _encoded(world)
        self.question = None if question is None else plain_value(question, "question")

    def may_repeat(self) -> bool:
        """Whether it is worth while to begin once more."""
        self._repeats -= 1
        return self._repeats >= 0

    def repeat_after(self, newest: Entry, thread: str) -> None:
        """Begin once more because somebody else wrote first, but not for ever.

        Raises:
            HeadMoved: It has been so too often.
        """
        if not self.may_repeat():
            raise HeadMoved(
                f"thread {thread!r}: expected a position for the checkpoint, found others to "
                f"write each first, the last of them {newest.writer!r} entry {newest.seq}",
                hint="Nothing was saved, and the session goes on: save again once they are quiet.",
            )


def _encoded(world: World | Mapping[str, Any] | None) -> bytes | None:
    if world is None:
        return None
    if isinstance(world, World):
        return world.encode()
    return _encode_json(plain_object(world, "world"))
