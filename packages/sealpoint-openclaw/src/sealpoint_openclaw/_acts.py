# SPDX-License-Identifier: Apache-2.0
"""The acts of a gateway in one run, in the order in which its plugin reported it.

Each run has a thread of its own, next to that of the seals, and each checkpoint of it is a group of
acts. A new thread needs no decision of the gate, so recording never waits for people. While the
thread of the seals is paused, this thread also holds the seals that cannot be saved there.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sealpoint.errors import UnknownThread
from sealpoint.gate import Thread
from sealpoint.store import CheckpointRef

_HELD = "held"
_OPEN_GROUPS_MAX = 100
"""How far back to look for tool calls that have not ended."""


class ActLog:
    """The acts of one run.

    Args:
        thread: The thread of the run.
    """

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    def record(self, acts: Sequence[Mapping[str, Any]]) -> None:
        """Record acts in order; when it returns, they survive a power cut."""
        self._thread.save({"acts": list(acts)}, metadata={"acts": len(acts)})

    def position(self) -> int:
        """Return the position of what was recorded last; -1 if there is nothing."""
        try:
            return next(self._thread.history()).seq
        except UnknownThread:
            return -1

    def since(self, position: int, until: datetime | None = None) -> list[Mapping[str, Any]]:
        """Return the acts that were recorded after a position, and not after a time, in order."""
        return [act for _, act in self._acts(position, until)]

    def during(self, position: int, until: datetime) -> list[Mapping[str, Any]]:
        """Return the same, after the tool calls that had not ended at the position."""
        acts = self._acts(position - _OPEN_GROUPS_MAX, until)
        ended = {
            act["facts"].get("toolCallId")
            for seq, act in acts
            if seq <= position and act["kind"] == "act" and act["name"] == "after_tool_call"
        }
        return [
            act
            for seq, act in acts
            if seq > position or (act["kind"] == "tool" and act["call"] not in ended)
        ]

    def _acts(self, position: int, until: datetime | None) -> list[tuple[int, Mapping[str, Any]]]:
        groups = []
        try:
            for ref in self._thread.history():
                if ref.seq <= position:
                    break
                if until is None or ref.time <= until:
                    acts = self._thread.load(ref).state.get("acts", [])
                    groups.append([(ref.seq, act) for act in acts])
        except UnknownThread:
            return []
        return [act for group in reversed(groups) for act in group]

    def hold(self, seal: Mapping[str, Any], basis: str) -> CheckpointRef:
        """Keep a seal that a pause keeps out of the thread of the seals.

        Args:
            seal: Its state.
            basis: The id of the newest seal there.
        """
        return self._thread.save({_HELD: dict(seal)}, metadata={_HELD: basis})

    def held(self, basis: str) -> tuple[CheckpointRef, Mapping[str, Any]] | None:
        """Return the seal that was kept last; None if acts or another seal came after it."""
        try:
            loaded = self._thread.load()
        except UnknownThread:
            return None
        if loaded.ref.metadata.get(_HELD) != basis:
            return None
        return loaded.ref, loaded.state[_HELD]
