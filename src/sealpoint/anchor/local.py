# SPDX-License-Identifier: Apache-2.0
"""The anchor of one store for one user of one machine: a file of fixed slots.

What it guarantees, to every process of the user that opens the same directory:

- A position is believed only if it was written under the secret, for this slot and this store. An
  edited, foreign, garbled or truncated file is `AnchorUnavailable`, and a damaged slot is too: it
  never turns into an unknown thread. A torn write leaves the position before it.
- Reading takes no lock. Writing takes one over processes (`flock` on the anchor file itself: a
  lock file beside it could be deleted, and two writers would not notice) and one over OS threads.
- `create` is on the disk when it returns, because a thread that the anchor forgot would be
  refused. `advance` is not: a power cut may leave it behind, never ahead and never unreadable.

The bytes are described in `_slots.py`. The file is `anchor.slots` in the directory. Each write of
a slot goes over the older of its two copies, with the next counter; the valid copy with the
highest counter counts. A new slot gets its first copy, then its key. The order of growth, under
the lock: (1) all slots are verified, (2) a file of twice the capacity is written as `anchor.grown`
and reaches the disk, (3) the old file is marked superseded, (4) the new one is renamed over it,
(5) the directory reaches the disk. Who finds the mark looks whether the file still has its name:
if so, growth has not happened and the file is the current one, and the next writer takes the mark
away; if not, it opens the file that has the name now.

What it leaves to others: that the directory is the right one, that the secret is kept, and what
an absent file means. With `create=False` and no file there, `get` returns None and `slots` is
empty, so that the store says `Unanchored` for every thread it holds; the method `create` then
makes the file. Once a handle has seen the file, its absence is `AnchorUnavailable`. A file that
was replaced by an older copy of itself before it was opened is only older: nothing here can tell.
A file that somebody shortens while it is open ends the process, as with every mapped file.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from sealpoint.anchor._bounds import require_position, require_slot
from sealpoint.anchor._contract import Position
from sealpoint.anchor._directory import sync_data
from sealpoint.anchor._shared import SharedFile
from sealpoint.anchor._slots import KEY_BYTES, SUPERSEDED_AT, Seal, body_of, position_of
from sealpoint.anchor._table import Table
from sealpoint.errors import AnchorUnavailable, DirectoryUnusable, UsageError

__all__ = ["LocalAnchor"]

_KEY_BYTES = 32
_STORE_BYTES = 16
_KNOWN_MAX = 1024


class _Verified(msgspec.Struct, frozen=True):
    """The bytes of a slot that were verified, its key among them, and what they say."""

    offset: int
    """Where they lay: in a file that has grown since, other bytes may lie there."""
    raw: bytes
    start: int
    position: Position


class LocalAnchor:
    """Positions in a file that the processes of one user, or of a group of users, share.

    Args:
        directory: The directory of this store's anchor alone.
        store: The store's id, 16 bytes.
        key: The secret under which every copy is authenticated, 32 bytes.
        create: Make directory and file now if they are absent; else `create` makes them.
        read_only: Write nothing and need no permission to; `create` and `advance` are refused.
        group: The number of the group whose members share it; without it, it is this user's own.

    Raises:
        AnchorUnavailable: The file is not a whole anchor of this store under this secret, or
            this system has no POSIX file locks.
        DirectoryUnusable: Directory or file is a link, of another user or writable for others,
            or cannot be made.
    """

    def __init__(
        self,
        directory: Path,
        *,
        store: bytes,
        key: bytes,
        create: bool = False,
        read_only: bool = False,
        group: int | None = None,
    ) -> None:
        for name, found, expected in (("store", store, _STORE_BYTES), ("key", key, _KEY_BYTES)):
            if len(found) != expected:
                raise UsageError(
                    f"local anchor: expected {expected} bytes of {name}, found {len(found)}"
                )
        if create and read_only:
            raise UsageError("local anchor: expected create or read_only, found both")
        self._directory = directory
        self._read_only = read_only
        self._known: dict[bytes, _Verified] = {}
        self._file = SharedFile(directory, Seal(key, store), read_only=read_only, group=group)
        try:
            if self._file.current() is None and create:
                self._file.make()
        except OSError as exc:
            raise self._unavailable(exc) from exc

    def get(self, slot: bytes) -> Position | None:
        """The position in a slot, or None if there never was one.

        Raises:
            AnchorUnavailable: The file is gone or cannot be read, or the slot is damaged.
        """
        table = self._file.table
        if table is None or table.map[SUPERSEDED_AT]:
            table = self._current()
        known = self._known.get(slot)
        if known is not None and table is not None and table.raw(known.offset) == known.raw:
            # The very bytes that were verified before.
            return known.position
        require_slot(slot)
        if table is None:
            return None
        offset = table.find(slot)
        if offset:
            raw = table.raw(offset)
            start = table.seal.newest_if_clear(slot, raw)
            if start:
                return self._remembered(slot, offset, raw, start, position_of(raw, start))
        elif table.is_absent(slot):
            return None
        return self._settled(slot)

    def _remembered(
        self, slot: bytes, offset: int, raw: bytes, start: int, position: Position
    ) -> Position:
        """Keep the bytes of a slot that were verified, so that they need not be verified twice."""
        if len(self._known) >= _KNOWN_MAX:
            self._known = {}
        self._known[slot] = _Verified(offset, raw, start, position)
        return position

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent, and let it reach the disk.

        Returns:
            What the slot holds now: `position`, or what was there before and stays.

        Raises:
            AnchorUnavailable: It cannot be written.
        """
        require_slot(slot)
        require_position(position)
        with self._file.mutex:
            try:
                table = self._locked_for_writing() or self._file.make_locked()
                offset = table.find(slot)
                if offset:
                    found = position_of(*table.newest(slot, offset))
                    if found.reserved:
                        # Whoever wrote it may have died or failed before it was on the disk;
                        # after a failed sync only what is written again gets there.
                        table.rewrite(offset)
                        sync_data(table.descriptor)
                    return found
                table.require_absent(slot)
                free = table.find_free(slot)
                if not free or table.crowded:
                    table = self._file.grow(table)
                    free = table.find_free(slot)
                table.insert(slot, free, body_of(position))
                sync_data(table.descriptor)
                return position
            except (OSError, DirectoryUnusable) as exc:
                raise self._unavailable(exc) from exc
            finally:
                self._file.unlock()

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position`; a slot that holds anything else stays as it is.

        Returns:
            What the slot holds now: `position` if it was written.

        Raises:
            AnchorUnavailable: It cannot be written, or the slot is absent.
        """
        require_slot(slot)
        require_position(position)
        with self._file.mutex:
            try:
                table = self._locked_for_writing()
                offset = 0 if table is None else table.find(slot)
                if table is None or not offset:
                    raise AnchorUnavailable(
                        f"anchor in {self._directory}: expected a slot to advance, found none"
                    )
                raw = table.raw(offset)
                known = self._known.get(slot)
                if known is not None and known.raw == raw:
                    start, found = known.start, known.position
                else:
                    raw, start = table.newest(slot, offset)
                    found = position_of(raw, start)
                if found != expected:
                    require_position(expected)
                    return self._remembered(slot, offset, raw, start, found)
                raw, start = table.overwrite(slot, offset, raw, start, body_of(position))
                return self._remembered(slot, offset, raw, start, position)
            except (OSError, DirectoryUnusable) as exc:
                raise self._unavailable(exc) from exc
            finally:
                self._file.unlock()

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Every slot with its position, in no order. Slots made meanwhile may be left out.

        Raises:
            AnchorUnavailable: Also while iterating, at a damaged slot.
        """
        table = self._file.table
        if table is None or table.map[SUPERSEDED_AT]:
            table = self._current()
        return iter(()) if table is None else self._listed(table)

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        self._file.close()

    def _listed(self, table: Table) -> Iterator[tuple[bytes, Position]]:
        for offset in table.offsets():
            raw = table.raw(offset)
            slot = raw[:KEY_BYTES]
            start = 0 if table.superseded else table.seal.newest_if_clear(slot, raw)
            # Others may have written to the file that took the place of a superseded one.
            position = position_of(raw, start) if start else self.get(slot)
            if position is None:
                raise table.damaged(offset)
            yield slot, position

    def _settled(self, slot: bytes) -> Position | None:
        """The position in a slot while no writer is at work: what is invalid now is damage."""
        with self._file.mutex:
            try:
                table = self._file.locked()
                if table is None:
                    return None
                offset = table.find(slot)
                if offset:
                    return position_of(*table.newest(slot, offset))
                table.require_absent(slot)
                return None
            except (OSError, DirectoryUnusable) as exc:
                raise self._unavailable(exc) from exc
            finally:
                self._file.unlock()

    def _current(self) -> Table | None:
        try:
            with self._file.mutex:
                return self._file.current()
        except (OSError, DirectoryUnusable) as exc:
            raise self._unavailable(exc) from exc

    def _locked_for_writing(self) -> Table | None:
        if self._read_only:
            self._file.require_open()
            raise AnchorUnavailable(
                f"anchor in {self._directory}: expected to write, found it opened for reading only"
            )
        return self._file.locked()

    def _unavailable(self, cause: Exception) -> AnchorUnavailable:
        return AnchorUnavailable(f"anchor in {self._directory}: found {cause}")
