# SPDX-License-Identifier: Apache-2.0
"""The anchor of one store for one user of one machine: a file of fixed-size slots.

Guarantees for every process of the user that opens the same directory:

- A position counts only if it was written under the secret, for this slot and this store. An
  edited, foreign, garbled or truncated file is `AnchorUnavailable`, and so is a damaged slot: it
  never turns into an unknown thread. A torn write leaves the previous position.
- Reads take no lock. Writes take one across processes (`flock` on the anchor file itself: a
  separate lock file could be deleted, and two writers would not notice) and one across OS threads.
- `create` is on the disk when it returns, because a thread that the anchor forgot would be refused.
  `advance` is not: a power failure may leave the anchor behind, never ahead and never unreadable.

`_slot_table.py` describes the format. The file is `anchor.slots` in the directory. Each write of a
slot overwrites the older of its two copies, with the next counter; the valid copy with the highest
counter counts. A new slot gets its first copy, then its key. Growth, under the lock: (1) verify all
slots, (2) write a file of twice the capacity as `anchor.grown` and sync it, (3) mark the old file
as superseded, (4) rename the new file over it, (5) sync the directory. A process that finds the
mark checks whether the file still has its name. If so, growth did not happen and the file is the
current one, and the next writer removes the mark; if not, the process opens the file that has the
name now.

Separate files in the directory record which threads have a run; see `_run_files.py`.

At most one process, and one OS thread in it, is between `SharedFile.locked` and `unlock`, and the
file it gets is the one that every other process reads. A file that was removed or replaced by hand
is `AnchorUnavailable`: no other process would read what is written to it.

Left to others: the choice of the directory, the storage of the secret, and the meaning of an absent
file. With `create=False` and no file, `get` returns None and `slots` is empty, so that the store
raises `Unanchored` for every thread in it; the method `create` then makes the file. Once a handle
has seen the file, its absence is `AnchorUnavailable`. This module cannot detect a file that was
replaced by an older copy of itself before it was opened. If another process truncates the file
while it is open, this process dies, as with every memory-mapped file.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from sealpoint import disk
from sealpoint.anchor._contract import Hold, Holder, Position
from sealpoint.anchor._position_rules import (
    require_holder,
    require_position,
    require_rising,
    require_slot,
)
from sealpoint.anchor._run_files import RunFiles
from sealpoint.anchor._slot_table import (
    FREE,
    KEY_BYTES,
    PIECE_BYTES,
    SLOT_BYTES,
    SUPERSEDED_AT,
    SlotSeal,
    Table,
    open_table,
    position_of,
    write_table,
)
from sealpoint.disk import DIRECTORY, refusing, reporting
from sealpoint.errors import AnchorUnavailable, DirectoryUnusable, UsageError

__all__ = ["LocalAnchor"]

try:
    import fcntl
except ImportError:  # pragma: no cover - only where there is no POSIX
    fcntl = None  # type: ignore[assignment]


_NAME = "anchor.slots"
_GROWN = "anchor.grown"
_LOCK_WAIT_S = 30.0
_REOPEN_MAX = 100

_open_files: "weakref.WeakSet[SharedFile]" = weakref.WeakSet()
_open_files_lock = threading.Lock()


@contextmanager
def opened_directory(directory: Path, group: int | None) -> Iterator[int]:
    """Open a directory after checking it; operations through the descriptor stay in it.

    Raises:
        DirectoryUnusable: It is a link, not a directory, belongs to another user, or others can
            write it.
        FileNotFoundError: It does not exist.
    """
    named = f"anchor directory {directory}"
    try:
        with refusing(DirectoryUnusable, directory, named):
            descriptor, _ = disk.open_safe(directory, DIRECTORY, group=group)
    except NotADirectoryError as exc:
        raise DirectoryUnusable(f"{named}: expected a directory, found {exc.strerror}") from exc
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class SharedFile:
    """A handle on the file; hold `mutex` around every method except the constructor.

    Args:
        directory: The directory of the file.
        seal: Makes and checks its codes.
        read_only: Open for reading only; locks then only keep writers out.
        group: The group that shares the file; None: it belongs to this user alone.

    Raises:
        AnchorUnavailable: This system has no POSIX file locks.
    """

    def __init__(
        self, directory: Path, seal: SlotSeal, *, read_only: bool, group: int | None = None
    ) -> None:
        if fcntl is None:
            raise AnchorUnavailable(
                "local anchor: expected POSIX file locks, found a system without the fcntl module"
            )
        self.mutex = threading.Lock()
        self.table: Table | None = None
        """The file as last opened: readers may use it without the mutex unless it is superseded."""
        self._directory = directory
        self._seal = seal
        self._read_only = read_only
        self._lock_kind = (fcntl.LOCK_SH if read_only else fcntl.LOCK_EX) | fcntl.LOCK_NB
        self._group = group
        self._seen = False
        self._closed = False
        with _open_files_lock:
            _open_files.add(self)

    def current(self) -> Table | None:
        """Return the file that has the name now, opened if needed; None if there never was one."""
        self.require_open()
        for _ in range(_REOPEN_MAX):
            table = self._opened()
            if table is None or not table.superseded or self._has_the_name(table):
                return table
            self._release()
        raise self._vanished()

    def locked(self) -> Table | None:
        """Return the current file with its lock held, or None if there never was one."""
        table = self.table
        if table is not None:
            try:
                fcntl.flock(table.descriptor, self._lock_kind)
            except BlockingIOError:
                pass  # the code below waits for the lock
            else:
                # The usual case: the file still has the name.
                if os.fstat(table.descriptor).st_nlink and not table.map[SUPERSEDED_AT]:
                    return table
        self.require_open()
        for _ in range(_REOPEN_MAX):
            table = self._opened()
            if table is None:
                return None
            self._wait_for_lock(table.descriptor)
            removed = os.fstat(table.descriptor).st_nlink == 0
            if not table.map[SUPERSEDED_AT]:
                if removed:
                    # No other process will ever read what is written to a removed file.
                    raise self._vanished()
                return table
            if not removed and self._has_the_name(table):
                # Growth holds the lock from mark to rename, so this growth was interrupted between
                # them.
                if not self._read_only:
                    table.mark(superseded=False)
                return table
            self._release()
        raise self._vanished()

    def unlock(self) -> None:
        """Release the lock for the next writer; without a lock this does nothing."""
        if self.table is not None:
            fcntl.flock(self.table.descriptor, fcntl.LOCK_UN)

    def make(self) -> None:
        """Create an empty file unless it exists, and open it."""
        directory = f"anchor directory {self._directory}"
        with reporting(DirectoryUnusable, f"{directory}: expected to make it"):
            disk.make_directory(self._directory, self._group, parents=True)
        temporary = f"anchor.{os.urandom(8).hex()}.new"
        published = False
        # Another process may be faster; its file is just as good.
        with (
            reporting(DirectoryUnusable, f"{directory}: expected to make a file"),
            suppress(FileExistsError),
            opened_directory(self._directory, self._group) as within,
        ):
            write_table(within, temporary, self._seal, group=self._group)
            disk.publish(temporary, _NAME, within=within, replace=False)
            published = True
        self._opened(published=published)

    def make_locked(self) -> Table:
        """Create an empty file unless it exists, and hold its lock."""
        self.make()
        table = self.locked()
        if table is None:
            raise self._vanished()
        return table

    def grow(self, old: Table) -> Table:
        """Return a table with room for one more slot, locked like the old one."""
        # (1) Moving a slot with a damaged key would hide it from its thread forever.
        used = 0
        for offset in old.offsets():
            old.newest(old.raw(offset)[:KEY_BYTES], offset)
            used += 1
        old.count(used)
        if not old.crowded:
            return old
        with opened_directory(self._directory, self._group) as within:
            # (2) Write the larger file, complete and locked before any process can see it.
            write_table(within, _GROWN, self._seal, grown_from=old, group=self._group)
            new = open_table(
                self._directory, within, _GROWN, self._seal, read_only=False, group=self._group
            )
            try:
                self._wait_for_lock(new.descriptor)
                # (3) From here on every reader checks which file has the name.
                old.mark(superseded=True)
                # (4) and (5) Rename the file, and sync the directory.
                disk.publish(_GROWN, _NAME, within=within, replace=True)
            except BaseException:
                _let_go(new)
                raise
        self._release()
        self.table = new
        return new

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        with self.mutex:
            self._closed = True
            self._release()
        with _open_files_lock:
            _open_files.discard(self)

    def require_open(self) -> None:
        """Refuse to work after `close`."""
        if self._closed:
            raise UsageError(f"anchor in {self._directory}: expected it open, found it closed")

    def start_in_child(self) -> None:
        """Reopen after a fork: a lock shared with the parent does not exclude the parent."""
        self.mutex = threading.Lock()
        table, self.table = self.table, None
        if table is not None:
            os.close(table.descriptor)

    def _opened(self, *, published: bool = False) -> Table | None:
        if self.table is None:
            try:
                with opened_directory(self._directory, self._group) as within:
                    self.table = open_table(
                        self._directory,
                        within,
                        _NAME,
                        self._seal,
                        read_only=self._read_only,
                        group=self._group,
                    )
                    if not self._read_only and not published:
                        # The process that named the file may have died before the name was on the
                        # disk.
                        disk.sync(within)
            except FileNotFoundError as exc:
                if self._seen:
                    raise self._vanished() from exc
                return None
            self._seen = True
        return self.table

    def _wait_for_lock(self, descriptor: int) -> None:
        try:
            # The lock is nearly always free.
            fcntl.flock(descriptor, self._lock_kind)
        except BlockingIOError as exc:
            if not disk.wait_for_lock(descriptor, _LOCK_WAIT_S, shared=self._read_only):
                raise AnchorUnavailable(
                    f"anchor in {self._directory}: another process held its lock for "
                    f"{_LOCK_WAIT_S:.0f} s"
                ) from exc

    def _release(self) -> None:
        table, self.table = self.table, None
        if table is not None:
            _let_go(table)

    def _has_the_name(self, table: Table) -> bool:
        try:
            status = (self._directory / _NAME).stat(follow_symlinks=False)
        except FileNotFoundError as exc:
            raise self._vanished() from exc
        return (status.st_dev, status.st_ino) == table.identity

    def _vanished(self) -> AnchorUnavailable:
        return AnchorUnavailable(
            f"anchor in {self._directory}: expected the file that was opened, "
            "found it removed or replaced",
            hint="Bring the anchor's directory back, then open the store again.",
        )


def _let_go(table: Table) -> None:
    # The map has its own descriptor, which would keep the lock, so unlock explicitly. A reader may
    # still be using the map, so the map stays until the last reader drops it.
    fcntl.flock(table.descriptor, fcntl.LOCK_UN)
    os.close(table.descriptor)


def _start_in_child() -> None:
    for file in _open_files:
        file.start_in_child()
    _open_files_lock.release()


if fcntl is not None:
    # Hold the lock across the fork, so that the child finds the set consistent.
    os.register_at_fork(
        before=_open_files_lock.acquire,
        after_in_parent=_open_files_lock.release,
        after_in_child=_start_in_child,
    )


_KEY_BYTES = 32
_STORE_BYTES = 16
_KNOWN_MAX = 1024


class _Verified(msgspec.Struct, frozen=True):
    """The verified bytes of a slot, including its key, and their meaning."""

    offset: int
    """The offset of the bytes; if the file has grown since, other bytes may be there."""
    raw: bytes
    start: int
    position: Position


class LocalAnchor:
    """Positions in a file that the processes of one user, or of a group of users, share.

    Args:
        directory: The directory of this store's anchor alone.
        store: The store's id, 16 bytes.
        key: The secret that authenticates every copy, 32 bytes.
        create: Create directory and file now if they are absent; otherwise `create` does it.
        read_only: Write nothing and need no permission to write; `create`, `advance` and `hold` are
            refused.
        group: The number of the group that shares it; None: it belongs to this user alone.

    Raises:
        AnchorUnavailable: The file is not a complete anchor of this store under this secret, or
            this system has no POSIX file locks.
        DirectoryUnusable: Directory or file is a link, belongs to another user, others can write
            it, or it cannot be created.
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
        self._listings: dict[int, tuple[bytes, list[tuple[bytes, Position]]]] = {}
        """By offset, the pieces of the file that were verified while listing all slots, and their
        content."""
        self._file = SharedFile(directory, SlotSeal(key, store), read_only=read_only, group=group)
        self._runs = RunFiles(directory, partial(opened_directory, directory, group), group)
        try:
            if self._file.current() is None and create:
                self._file.make()
        except OSError as exc:
            raise self._unavailable(exc) from exc

    def get(self, slot: bytes) -> Position | None:
        """Return the position in a slot, or None if there never was one.

        Raises:
            AnchorUnavailable: The file is gone or cannot be read, or the slot is damaged.
        """
        table = self._file.table
        if table is None or table.map[SUPERSEDED_AT]:
            table = self._current()
        known = self._known.get(slot)
        if known is not None and table is not None:
            offset = known.offset
            if table.map[offset : offset + SLOT_BYTES] == known.raw:
                # The same bytes were verified before.
                return known.position
        require_slot(slot)
        if table is None:
            return None
        offset = table.find(slot)
        if offset:
            raw = table.raw(offset)
            start = table.seal.newest_if_clear(slot, raw)
            if start:
                found = _Verified(offset, raw, start, position_of(raw, start))
                return self._remember(slot, found)
        elif table.is_absent(slot):
            return None
        return self._settled(slot)

    def _remember(self, slot: bytes, found: _Verified) -> Position:
        """Cache the verified bytes of a slot, so that they are verified only once."""
        if len(self._known) >= _KNOWN_MAX:
            self._known = {}
        self._known[slot] = found
        return found.position

    def create(self, slot: bytes, position: Position) -> Position:
        """Write an absent slot, and sync it to the disk.

        Returns:
            The current content of the slot: `position`, or the earlier position, which stays.

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
                        # The writer may have died or failed before the slot was on the disk. After
                        # a failed sync, only data that is written again gets there.
                        table.rewrite(offset)
                        disk.sync_data(table.descriptor)
                    return found
                table.require_absent(slot)
                free = table.find_free(slot)
                if not free or table.crowded:
                    table = self._file.grow(table)
                    free = table.find_free(slot)
                table.insert(slot, free, position)
                disk.sync_data(table.descriptor)
                return position
            except (OSError, DirectoryUnusable) as exc:
                raise self._unavailable(exc) from exc
            finally:
                self._file.unlock()

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position`; a slot that holds anything else stays as it is.

        Returns:
            The current content of the slot: `position` if it was written.

        Raises:
            AnchorUnavailable: It cannot be written, or the slot is absent.
        """
        known, file = self._known.get(slot), self._file
        if known is None:
            require_slot(slot)
        require_position(position)
        require_rising(expected, position)
        with file.mutex:
            try:
                table = self._locked_for_writing() if self._read_only else file.locked()
                if table is None:
                    raise self._absent()
                # Usually the slot is at the cached offset, with the cached bytes, including its
                # key. Otherwise search for it and verify it again.
                if known is None or table.raw(known.offset) != known.raw:
                    known = self._verified(table, slot)
                if known.position != expected:
                    require_position(expected)
                    return self._remember(slot, known)
                offset = known.offset
                raw, start = table.overwrite(slot, offset, known.raw, known.start, position)
                return self._remember(slot, _Verified(offset, raw, start, position))
            except (OSError, DirectoryUnusable) as exc:
                raise self._unavailable(exc) from exc
            finally:
                file.unlock()

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Iterate over every slot and its position, in no order; may omit slots created during it.

        Raises:
            AnchorUnavailable: Also while iterating, at a damaged slot.
        """
        table = self._file.table
        if table is None or table.map[SUPERSEDED_AT]:
            table = self._current()
        return iter(()) if table is None else chain.from_iterable(self._listed(table))

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Give a thread to a run; return the hold, or the current holder.

        Raises:
            AnchorUnavailable: The directory cannot be written.
        """
        require_slot(slot)
        require_holder(holder)
        try:
            self._require_writing()
            if self._file.table is None:
                with self._file.mutex:
                    if self._file.current() is None:
                        self._file.make()
            return self._runs.hold(slot.hex(), holder, instead=instead)
        except (OSError, DirectoryUnusable) as exc:
            raise self._unavailable(exc) from exc

    def holder(self, slot: bytes) -> Holder | None:
        """Return the holder of a thread, also if its process has ended.

        Raises:
            AnchorUnavailable: The directory cannot be read.
        """
        require_slot(slot)
        # A missing directory is an error; it does not mean that no run has the thread.
        if self._current() is None:
            return None
        try:
            return self._runs.holder(slot.hex())
        except (OSError, DirectoryUnusable) as exc:
            raise self._unavailable(exc) from exc

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        self._file.close()

    def _listed(self, table: Table) -> Iterator[list[tuple[bytes, Position]]]:
        """Yield the slots of a file piece by piece, with a cache of verified pieces."""
        for offset in table.pieces():
            raw = table.map[offset : offset + PIECE_BYTES]
            known = self._listings.get(offset)
            if known is not None and known[0] == raw and not table.superseded:
                yield known[1]
                continue
            found: list[tuple[bytes, Position]] = []
            doubts = 0
            for at in range(0, PIECE_BYTES, SLOT_BYTES):
                one = raw[at : at + SLOT_BYTES]
                slot = one[:KEY_BYTES]
                if slot == FREE or table.seal.is_torn(one):
                    continue
                start = 0 if table.superseded else table.seal.newest_if_clear(slot, one)
                # A superseded file does not count: others may have written to its replacement.
                position = position_of(one, start) if start else self.get(slot)
                if position is None:
                    raise table.damaged(offset + at)
                found.append((slot, position))
                doubts += not start
            if not doubts:
                self._listings[offset] = raw, found
            yield found

    def _verified(self, table: Table, slot: bytes) -> _Verified:
        """Return the offset and content of a slot; only while no writer is working."""
        offset = table.find(slot)
        if not offset:
            raise self._absent()
        raw, start = table.newest(slot, offset)
        return _Verified(offset, raw, start, position_of(raw, start))

    def _absent(self) -> AnchorUnavailable:
        return AnchorUnavailable(
            f"anchor in {self._directory}: it has no position of this thread to advance"
        )

    def _settled(self, slot: bytes) -> Position | None:
        """Return the position in a slot under the lock, where any invalid data is damage."""
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
        self._require_writing()
        return self._file.locked()

    def _require_writing(self) -> None:
        self._file.require_open()
        if self._read_only:
            raise AnchorUnavailable(
                f"anchor in {self._directory}: expected to write, found it opened for reading only"
            )

    def _unavailable(self, cause: Exception) -> AnchorUnavailable:
        return AnchorUnavailable(f"anchor in {self._directory}: found {cause}")
