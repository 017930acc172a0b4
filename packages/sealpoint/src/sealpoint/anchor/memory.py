# SPDX-License-Identifier: Apache-2.0
"""The reference anchor: positions in a dict.

It fulfills the whole contract for the OS threads of one process. No other process shares it, and it
is gone with the object, so it protects nothing beyond that. Use it for tests, for stores in memory,
and for reading.
"""

import threading
from collections.abc import Iterator

from msgspec.structs import replace

from sealpoint.anchor._contract import Hold, Holder, Position
from sealpoint.anchor._position_rules import (
    require_holder,
    require_position,
    require_rising,
    require_slot,
)
from sealpoint.errors import AnchorUnavailable, UsageError

__all__ = ["MemoryAnchor"]


class MemoryAnchor:
    """An anchor in the memory of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: dict[bytes, Position] = {}
        self._holds: dict[bytes, _MemoryHold] = {}
        self._left: dict[bytes, Holder] = {}
        """The holders of runs that never began, as other callers see them."""
        self._closed = False

    def get(self, slot: bytes) -> Position | None:
        """Return the position in a slot, or None if there never was one."""
        require_slot(slot)
        with self._lock:
            self._require_open()
            return self._positions.get(slot)

    def create(self, slot: bytes, position: Position) -> Position:
        """Write an absent slot; return the current content of the slot."""
        require_slot(slot)
        require_position(position)
        with self._lock:
            self._require_open()
            return self._positions.setdefault(slot, position)

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position`; return the current content of the slot.

        Raises:
            AnchorUnavailable: The slot is absent.
        """
        require_slot(slot)
        require_position(expected)
        require_position(position)
        require_rising(expected, position)
        with self._lock:
            self._require_open()
            found = self._positions.get(slot)
            if found is None:
                raise AnchorUnavailable(
                    "anchor in memory: it has no position of this thread to advance"
                )
            if found != expected:
                return found
            self._positions[slot] = position
            return position

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Iterate over a snapshot of every slot and its position."""
        with self._lock:
            self._require_open()
            return iter(list(self._positions.items()))

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Give a thread to a run; return the hold, or the current holder."""
        require_slot(slot)
        require_holder(holder)
        with self._lock:
            self._require_open()
            found = self._holds.get(slot)
            if found is not None and not instead:
                return found.holder
            left = self._left.pop(slot, None) is not None
            hold = self._holds[slot] = _MemoryHold(self, slot, holder, left=left)
            return hold

    def holder(self, slot: bytes) -> Holder | None:
        """Return the holder of a thread, if there is a run."""
        require_slot(slot)
        with self._lock:
            self._require_open()
            found = self._holds.get(slot)
            return self._left.get(slot) if found is None else found.holder

    def close(self) -> None:
        """Forget everything; closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._positions.clear()
            self._holds.clear()

    def let_go(self, slot: bytes, hold: "_MemoryHold", *, begun: bool) -> None:
        """End a hold."""
        with self._lock:
            if self._holds.get(slot) is hold:
                del self._holds[slot]
                if not begun and not self._closed:
                    self._left[slot] = replace(hold.holder, living=False)

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("anchor in memory: expected an open anchor, found a closed one")


class _MemoryHold:
    """The hold of a run of this process."""

    __slots__ = ("_anchor", "_slot", "holder", "left")

    def __init__(self, anchor: MemoryAnchor, slot: bytes, holder: Holder, *, left: bool) -> None:
        self._anchor = anchor
        self._slot = slot
        self.holder = holder
        self.left = left

    def end(self, *, begun: bool = True) -> None:
        """End the run."""
        self._anchor.let_go(self._slot, self, begun=begun)
