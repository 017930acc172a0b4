# SPDX-License-Identifier: Apache-2.0
"""Two anchors that are required together: one shared by a fleet, and this machine's own.

A call is judged by the anchor that has seen more. A write goes to the shared anchor first, and is
acknowledged when the local one has followed. If either fails, the call is `AnchorUnavailable`, and
the next call finds both as they are.

- *Local behind* (the machine was off, or is new): the shared anchor counts. The local one follows
  once this machine has judged the thread up to there (`confirm`), and the store shows that the
  shared position descends from the local one. If this machine has seen another history, it raises
  `Forked`, however far the others have continued theirs.
- *Shared behind* (its database was restored from a backup): the local anchor counts. The next
  advance returns the shared position. The caller proves that it is an ancestor, as after every
  advance that found an unexpected position, and advances from there. A slot that the shared anchor
  lost is created again with the position that this machine has seen.
- *Neither* descends from the other: `Forked`.

The marks of both anchors count, no matter which has seen more entries: if someone moved the shared
anchor past a pause that this machine has seen, the pause still counts.

A position that only reserves a name says nothing about entries, and the other one counts. An anchor
never records anything that the store does not show: an attacker who writes the shared anchor cannot
spoil the local one with positions that never existed.

A shared anchor is at the other end of a network: if it can answer for two slots in one round trip,
this class uses that. Each load, and each save afterwards, checks the store chain, so the slot of
the store chain, the *watched* slot, comes along with the thread's slot.

Left to others: only the store can tell whether one entry descends from another (`Judge`).
"""

import threading
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import msgspec

from sealpoint.anchor._contract import Anchor, Hold, Holder, Position
from sealpoint.anchor._position_rules import is_behind
from sealpoint.errors import AnchorUnavailable, Forked

__all__ = ["FORKED_HINT", "PairedAnchors", "newer_position"]

FORKED_HINT = (
    "Two histories exist: keep a copy of both. To continue with the one of the shared anchor, give "
    "up what this machine remembers: move the directory away that sealpoint doctor names as anchor."
)

Judge = Callable[[bytes, Position, Position], tuple[Position, bool]]
"""Compares the different positions that the local and the shared anchor hold in a slot. Returns the
newer one, and whether the store shows it and its descent from the other. Raises Forked if, as far
as the store shows, it does not descend."""


@runtime_checkable
class PairedReads(Protocol):
    """An optional interface of a shared anchor: two slots in one round trip."""

    def get_both(self, first: bytes, second: bytes) -> tuple[Position | None, Position | None]:
        """Call `get` for each."""
        ...

    def advance_and_get(
        self, slot: bytes, expected: Position, position: Position, other: bytes
    ) -> tuple[Position, Position | None]:
        """Call `advance`, and then `get` for another slot."""
        ...


class PairedAnchors:
    """A shared and a local anchor as one; see `Anchor` for the contract of each method.

    Args:
        shared: The anchor that several machines use.
        local: The anchor of this machine.
        judge: Compares two positions by the entries in the store.
        read_only: Write nothing: the local anchor does not move.
        watched: The slot to read along with others.
    """

    def __init__(
        self,
        shared: Anchor,
        local: Anchor,
        *,
        judge: Judge,
        read_only: bool = False,
        watched: bytes | None = None,
    ) -> None:
        self.shared = shared
        self.local = local
        self._judge = judge
        self._read_only = read_only
        self._watched = watched
        self._pairs = shared if isinstance(shared, PairedReads) else None
        self._came_along = threading.local()

    def get(self, slot: bytes) -> Position | None:
        """Return the newer of the two positions, or None if neither anchor ever had one.

        Raises:
            AnchorUnavailable: One of the two cannot be read.
            Forked: Their histories differ.
        """
        # Read the local one first: it follows the shared one, so timing alone cannot put it ahead.
        local = self.local.get(slot)
        return self._settled(slot, local, self.shared.get(slot))

    def get_with_watched(self, slot: bytes) -> tuple[Position | None, Position | None]:
        """Return the positions of the watched slot and of another one."""
        if self._pairs is None or self._watched is None:
            watched = None if self._watched is None else self.get(self._watched)
            return watched, self.get(slot)
        local = (self.local.get(self._watched), self.local.get(slot))
        shared = self._pairs.get_both(self._watched, slot)
        watched = self._settled(self._watched, local[0], shared[0])
        return watched, self._settled(slot, local[1], shared[1])

    def take_watched(self) -> Position | None:
        """Return the shared position of the watched slot after this OS thread's last advance.

        None if that advance did not return it, or it was taken already: then ask the anchor.
        """
        found: Position | None = getattr(self._came_along, "position", None)
        self._came_along.position = None
        return found

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent in both, the shared one first.

        Returns:
            The current content of the slot: `position`, or the earlier position in one of the two.

        Raises:
            AnchorUnavailable: One of the two cannot be written.
            Forked: Their histories differ.
        """
        local = self.local.get(slot)
        shared = self.shared.create(slot, position if local is None else local)
        if local is None and shared == position:
            local = self.local.create(slot, position)
        return self._settled(slot, local, shared) or position

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position` in the shared anchor, and let the local one follow.

        Returns:
            The current content of the shared slot: `position` if it was written.

        Raises:
            AnchorUnavailable: One of the two cannot be written, or both lack the slot.
            Forked: The local one has seen another history.
        """
        self._came_along.position = None
        try:
            found = self._advance_shared(slot, expected, position)
        except AnchorUnavailable:
            local = self.local.get(slot)
            if local is None or self.shared.get(slot) is not None:
                raise
            # The shared anchor was restored to a time before the slot.
            self.shared.create(slot, local)
            found = self._advance_shared(slot, expected, position)
        if found == position:
            self._follow(slot, position, told=expected)
        return found

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Iterate over every slot of either anchor, with the newer of its positions.

        This compares the numbers alone, and the marks of both count. If the histories differ, it
        yields the position of this machine: `get` refuses it, and a restore plan must show it.

        Raises:
            AnchorUnavailable: One of the two cannot be read.
        """
        found = dict(self.shared.slots())
        for slot, local in self.local.slots():
            shared = found.get(slot, local)
            try:
                newer = newer_position(local, shared)
                found[slot] = _with_pause(newer, local if newer is shared else shared)
            except Forked:
                found[slot] = local
        return iter(found.items())

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Give a thread to a run, across all the machines that share the anchor."""
        return self.shared.hold(slot, holder, instead=instead)

    def holder(self, slot: bytes) -> Holder | None:
        """Return the holder of a thread, on any machine."""
        return self.shared.holder(slot)

    def close(self) -> None:
        """Close both."""
        try:
            self.shared.close()
        finally:
            self.local.close()

    def _advance_shared(self, slot: bytes, expected: Position, position: Position) -> Position:
        if self._pairs is None or self._watched is None:
            return self.shared.advance(slot, expected, position)
        found, watched = self._pairs.advance_and_get(slot, expected, position, self._watched)
        self._came_along.position = watched
        return found

    def confirm(self, slot: bytes, position: Position) -> None:
        """Let the local anchor follow to a position up to which the caller has judged the thread.

        Raises:
            AnchorUnavailable: It cannot be written.
            Forked: It has seen another history.
        """
        if self._read_only:
            return
        local = self.local.get(slot)
        if local is None or is_behind(local, position):
            self._follow(slot, position, told=None)

    def _settled(
        self, slot: bytes, local: Position | None, shared: Position | None
    ) -> Position | None:
        """Return the position that counts: the newer of the two, with the marks of both."""
        if shared is None or shared == local:
            return local
        newer, _ = self._judged(slot, local, shared)
        if local is None:
            if newer.reserved and not self._read_only:
                self.local.create(slot, newer)  # no entry depends on it that could be judged
            return newer
        return _with_marks(newer, local if newer == shared else shared)

    def _judged(
        self, slot: bytes, local: Position | None, shared: Position
    ) -> tuple[Position, bool]:
        if local is None:
            local = Position(shared.thread, 0, 0, -1, bytes(32))
            if shared.reserved:
                return shared, True
        return self._judge(slot, local, shared)

    def _follow(self, slot: bytes, position: Position, *, told: Position | None) -> None:
        """Move the local anchor to a position of the shared one that the store shows.

        `told` is an earlier position from which the new one is known to descend. If the local
        anchor holds another one, the store is asked.
        """
        while True:
            local = self.local.get(slot)
            if local is None:
                local = self.local.create(slot, position)
            if local == position:
                return
            if local != told:
                newer, shown = self._judged(slot, local, position)
                if newer != position or not shown:
                    return
            if self.local.advance(slot, local, position) == position:
                return


def _with_marks(newer: Position, other: Position) -> Position:
    """Return a position with the marks of another, if those are later ones of the same history.

    Raises:
        Forked: The two have seen different owner entries at the same position.
    """
    if newer.epoch != other.epoch or newer.thread != other.thread:
        return newer
    if newer.owner == other.owner and newer.owner_entry != other.owner_entry:
        raise Forked(
            f"anchors of thread {newer.thread.hex()[:12]}: they have seen different entries "
            f"{newer.owner}, which say whose the thread is",
            hint=FORKED_HINT,
        )
    owner = newer if newer.owner >= other.owner else other
    pause = newer if newer.pause >= other.pause else other
    return msgspec.structs.replace(
        newer,
        fence=max(newer.fence, other.fence),
        pause=pause.pause,
        owner=owner.owner,
        owner_entry=owner.owner_entry,
        paused=pause.paused,
    )


def _with_pause(newer: Position, other: Position) -> Position:
    """Return the same for a caller that reads no entries, so cannot judge which pause is right.

    The thread then counts as paused.
    """
    found = _with_marks(newer, other)
    same = (newer.epoch, newer.thread, newer.pause) == (other.epoch, other.thread, other.pause)
    return msgspec.structs.replace(found, paused=True) if same and other.paused else found


def newer_position(local: Position, shared: Position) -> Position:
    """Return the newer of two positions of a slot, by their numbers alone.

    Raises:
        Forked: They belong to different threads, or are different entries at the same place.
    """
    if local.thread != shared.thread and (local.reserved or shared.reserved):
        return shared if local.reserved else local
    same_place = (local.epoch, local.seq) == (shared.epoch, shared.seq)
    if local.thread != shared.thread or (same_place and local.entry != shared.entry):
        raise Forked(
            f"anchors of thread {local.thread.hex()[:12]}: this machine has seen entry "
            f"{local.seq} {local.entry.hex()[:12]}, and the shared anchor has seen entry "
            f"{shared.seq} {shared.entry.hex()[:12]} of thread {shared.thread.hex()[:12]}",
            hint=FORKED_HINT,
        )
    return shared if is_behind(local, shared) else local
