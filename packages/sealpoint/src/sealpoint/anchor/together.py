# SPDX-License-Identifier: Apache-2.0
"""Two anchors that are required together: one that a fleet shares, and the memory of this machine.

A call is judged by whichever of the two has seen more. A write goes to the shared one first, and is
acknowledged when the local one has followed; should either fail, the call is `AnchorUnavailable`,
and the next one finds both as they are.

- *Local behind* (the machine was off, or is new): the shared one counts. The local one follows once
  this machine has judged the thread up to there (`confirm`), and the store shows that what the
  shared one holds descends from what the local one held. A machine that remembers another history
  says `Forked`, however far the others went on with theirs.
- *Shared behind* (its database was put back): the local one counts. The next advance is told what
  the shared one holds; the caller proves, as after every advance that met something else, that
  this is an ancestor, and advances it from there. A slot that the shared one lost is made again
  with what this machine has seen.
- *Neither* descends from the other: `Forked`.

The marks of both count, whichever has seen more entries: a pause that this machine has seen is not
left out because somebody moved the shared anchor past it.

A name that was only reserved says nothing about entries, and gives way. An anchor never writes what
the store does not show: a shared anchor that somebody else writes cannot spoil the local one with
positions that never were.

A shared anchor lies at the other end of a network: where it can answer for two slots in one round
trip, it is asked so. The store chain is looked at with each load and after each save, so its slot,
the *watched* one, comes along with the thread's.

What it leaves to others: whether one entry descends from another, which only the store can tell
(`Judge`).
"""

import threading
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

import msgspec

from sealpoint.anchor._contract import Anchor, Hold, Holder, Position, is_behind
from sealpoint.errors import AnchorUnavailable, Forked

__all__ = ["FORKED_HINT", "AnchorsTogether", "newer_position"]

FORKED_HINT = (
    "Two histories exist: keep a copy of both. To continue with the one of the shared anchor, give "
    "up what this machine remembers: move the directory away that sealpoint status names as anchor."
)

Judge = Callable[[bytes, Position, Position], tuple[Position, bool]]
"""Given a slot and what the local and the shared anchor hold of it, which are not the same: the
newer one, and whether the store shows it and that it descends from the other. Raises Forked if it
does not descend, for all that the store shows."""


@runtime_checkable
class PairedReads(Protocol):
    """What a shared anchor MAY have besides: two slots in one round trip."""

    def get_both(self, first: bytes, second: bytes) -> tuple[Position | None, Position | None]:
        """As `get` for each."""
        ...

    def advance_and_get(
        self, slot: bytes, expected: Position, position: Position, other: bytes
    ) -> tuple[Position, Position | None]:
        """As `advance`, and then `get` for another slot."""
        ...


class AnchorsTogether:
    """A shared and a local anchor as one; see `Anchor` for what each method promises.

    Args:
        shared: The one that others ask too.
        local: The memory of this machine.
        judge: Compares two positions by what the store has.
        read_only: Nothing is written: the local one stays where it is.
        watched: The slot that comes along with others.
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
        """The newer of the two positions, or None if neither anchor ever had one.

        Raises:
            AnchorUnavailable: One of the two cannot be read.
            Forked: They went different ways.
        """
        # The local one first: it follows the shared one, and so cannot be ahead by mere timing.
        local = self.local.get(slot)
        return self._settled(slot, local, self.shared.get(slot))

    def get_with_watched(self, slot: bytes) -> tuple[Position | None, Position | None]:
        """The same for the watched slot, and for another one."""
        if self._pairs is None or self._watched is None:
            watched = None if self._watched is None else self.get(self._watched)
            return watched, self.get(slot)
        local = (self.local.get(self._watched), self.local.get(slot))
        shared = self._pairs.get_both(self._watched, slot)
        watched = self._settled(self._watched, local[0], shared[0])
        return watched, self._settled(slot, local[1], shared[1])

    def take_watched(self) -> Position | None:
        """What the shared anchor held in the watched slot after this OS thread's last advance.

        None if it did not come along, or was taken already: then it is to be asked for.
        """
        found: Position | None = getattr(self._came_along, "position", None)
        self._came_along.position = None
        return found

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent in both, the shared one first.

        Returns:
            What the slot holds now: `position`, or what one of the two knew before.

        Raises:
            AnchorUnavailable: One of the two cannot be written.
            Forked: They went different ways.
        """
        local = self.local.get(slot)
        shared = self.shared.create(slot, position if local is None else local)
        if local is None and shared == position:
            local = self.local.create(slot, position)
        return self._settled(slot, local, shared) or position

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position` in the shared one, and let the local one follow.

        Returns:
            What the shared one holds now: `position` if it was written.

        Raises:
            AnchorUnavailable: One of the two cannot be written, or both lack the slot.
            Forked: The local one knows another history.
        """
        self._came_along.position = None
        try:
            found = self._advance_shared(slot, expected, position)
        except AnchorUnavailable:
            local = self.local.get(slot)
            if local is None or self.shared.get(slot) is not None:
                raise
            # It was put back to a time before the slot.
            self.shared.create(slot, local)
            found = self._advance_shared(slot, expected, position)
        if found == position:
            self._follow(slot, position, told=expected)
        return found

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Every slot that either knows, with the newer of its positions.

        They are compared by their numbers alone, and the marks of both count. Where the two went
        different ways, that of this machine is given: `get` refuses it, and who plans a restore
        has to see it.

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
        """Let a run have a thread, on all the machines that share the anchor."""
        return self.shared.hold(slot, holder, instead=instead)

    def holder(self, slot: bytes) -> Holder | None:
        """Whose run has a thread, on whichever machine."""
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
            Forked: It knows another history.
        """
        if self._read_only:
            return
        local = self.local.get(slot)
        if local is None or is_behind(local, position):
            self._follow(slot, position, told=None)

    def _settled(
        self, slot: bytes, local: Position | None, shared: Position | None
    ) -> Position | None:
        """What counts, of what the two hold: the newer position, with the marks of both."""
        if shared is None or shared == local:
            return local
        newer, _ = self._judged(slot, local, shared)
        if local is None:
            if newer.reserved and not self._read_only:
                self.local.create(slot, newer)  # no entry hangs on it that could be judged
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

        Args:
            slot: The slot.
            position: Where it shall go.
            told: What it held when that was found to descend from it.
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
    """A position with the marks of another, where those are later ones of the same history.

    Raises:
        Forked: The two have seen different entries that say whose the thread is.
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
    """The same for who reads no entries, and so cannot judge which of the two lies about a pause.

    Then the thread counts as paused.
    """
    found = _with_marks(newer, other)
    same = (newer.epoch, newer.thread, newer.pause) == (other.epoch, other.thread, other.pause)
    return msgspec.structs.replace(found, paused=True) if same and other.paused else found


def newer_position(local: Position, shared: Position) -> Position:
    """The newer of two positions of a slot, by their numbers alone.

    Raises:
        Forked: They are of different threads, or different entries at the same place.
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
