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

The bytes are described in `_table.py`. The file is `anchor.slots` in the directory. Each write of
a slot goes over the older of its two copies, with the next counter; the valid copy with the
highest counter counts. A new slot gets its first copy, then its key. The order of growth, under
the lock: (1) all slots are verified, (2) a file of twice the capacity is written as `anchor.grown`
and reaches the disk, (3) the old file is marked superseded, (4) the new one is renamed over it,
(5) the directory reaches the disk. Who finds the mark looks whether the file still has its name:
if so, growth has not happened and the file is the current one, and the next writer takes the mark
away; if not, it opens the file that has the name now.

Which threads have a run is in files of their own beside it; see `_run_files.py`.

At most one process, and one OS thread in it, is between `SharedFile.locked` and `unlock`, and the
file it gets is the one that every other process reads. A file that was removed or replaced by hand
is `AnchorUnavailable`: what would be written to it, nobody else would read.

What it leaves to others: that the directory is the right one, that the secret is kept, and what
an absent file means. With `create=False` and no file there, `get` returns None and `slots` is
empty, so that the store says `Unanchored` for every thread it holds; the method `create` then
makes the file. Once a handle has seen the file, its absence is `AnchorUnavailable`. A file that
was replaced by an older copy of itself before it was opened is only older: nothing here can tell.
A file that somebody shortens while it is open ends the process, as with every mapped file.
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
from sealpoint.anchor._contract import (
    Hold,
    Holder,
    Position,
    require_holder,
    require_position,
    require_rising,
    require_slot,
)
from sealpoint.anchor._run_files import RunFiles
from sealpoint.anchor._table import (
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
    """Open a directory after checking it; what is done through the descriptor stays in it.

    Raises:
        DirectoryUnusable: It is a link, no directory, of another user, or writable for others.
        FileNotFoundError: There is none.
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
    """A handle on the file; `mutex` is to be held around every method but the constructor.

    Args:
        directory: Where the file is or will be.
        seal: Makes and checks its codes.
        read_only: Open for reading only; locks then keep writers away and nothing else.
        group: The group whose members share the file; None: it is this user's own.

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
        """The file as last opened: readers may use it without the mutex unless superseded."""
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
        """The file that has the name now, opened if need be, or None while there never was one."""
        self.require_open()
        for _ in range(_REOPEN_MAX):
            table = self._opened()
            if table is None or not table.superseded or self._has_the_name(table):
                return table
            self._release()
        raise self._vanished()

    def locked(self) -> Table | None:
        """The current file with its lock held, or None while there never was one."""
        table = self.table
        if table is not None:
            try:
                fcntl.flock(table.descriptor, self._lock_kind)
            except BlockingIOError:
                pass  # it is waited for below
            else:
                # Nearly always it is the file that has the name.
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
                    # What is written to it now, no other process will ever read.
                    raise self._vanished()
                return table
            if not removed and self._has_the_name(table):
                # Growth holds the lock from mark to rename: this one ended between them.
                if not self._read_only:
                    table.mark(superseded=False)
                return table
            self._release()
        raise self._vanished()

    def unlock(self) -> None:
        """Let the next writer in; without a lock held it does nothing."""
        if self.table is not None:
            fcntl.flock(self.table.descriptor, fcntl.LOCK_UN)

    def make(self) -> None:
        """Make an empty file unless there is one, and open it."""
        directory = f"anchor directory {self._directory}"
        with reporting(DirectoryUnusable, f"{directory}: expected to make it"):
            disk.make_directory(self._directory, self._group, parents=True)
        temporary = f"anchor.{os.urandom(8).hex()}.new"
        published = False
        # Another process may be faster; its file is as good.
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
        """Make an empty file unless there is one, and hold its lock."""
        self.make()
        table = self.locked()
        if table is None:
            raise self._vanished()
        return table

    def grow(self, old: Table) -> Table:
        """A table with room for one more slot, its lock held like the lock of the old one."""
        # (1) Moving a slot whose key is damaged would hide it from its thread for ever.
        used = 0
        for offset in old.offsets():
            old.newest(old.raw(offset)[:KEY_BYTES], offset)
            used += 1
        old.count(used)
        if not old.crowded:
            return old
        with opened_directory(self._directory, self._group) as within:
            # (2) The larger file, complete and locked before anybody can see it.
            write_table(within, _GROWN, self._seal, grown_from=old, group=self._group)
            new = open_table(
                self._directory, within, _GROWN, self._seal, read_only=False, group=self._group
            )
            try:
                self._wait_for_lock(new.descriptor)
                # (3) From here on every reader asks which file has the name.
                old.mark(superseded=True)
                # (4) and (5) Renamed, and the directory on the disk.
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
        """Refuse to go on after `close`."""
        if self._closed:
            raise UsageError(f"anchor in {self._directory}: expected it open, found it closed")

    def start_in_child(self) -> None:
        """After a fork: a lock shared with the parent is none against it, so open anew."""
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
                        # Whoever gave the file its name may have died before that was on the disk.
                        disk.sync(within)
            except FileNotFoundError as exc:
                if self._seen:
                    raise self._vanished() from exc
                return None
            self._seen = True
        return self.table

    def _wait_for_lock(self, descriptor: int) -> None:
        try:
            # Nearly always it is free.
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
    # The map has a descriptor of its own, which would keep the lock; and a reader may still be
    # using the map, so it goes when the last reader does.
    fcntl.flock(table.descriptor, fcntl.LOCK_UN)
    os.close(table.descriptor)


def _start_in_child() -> None:
    for file in _open_files:
        file.start_in_child()
    _open_files_lock.release()


if fcntl is not None:
    # The lock is held over the fork, so that the child finds the set whole.
    os.register_at_fork(
        before=_open_files_lock.acquire,
        after_in_parent=_open_files_lock.release,
        after_in_child=_start_in_child,
    )


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
        read_only: Write nothing and need no permission to; `create`, `advance` and `hold` are
            refused.
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
        self._listings: dict[int, tuple[bytes, list[tuple[bytes, Position]]]] = {}
        """By where they lie, the pieces of the file that were verified when all slots were listed,
        and what they say."""
        self._file = SharedFile(directory, SlotSeal(key, store), read_only=read_only, group=group)
        self._runs = RunFiles(directory, partial(opened_directory, directory, group), group)
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
        if known is not None and table is not None:
            offset = known.offset
            if table.map[offset : offset + SLOT_BYTES] == known.raw:
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
                found = _Verified(offset, raw, start, position_of(raw, start))
                return self._remember(slot, found)
        elif table.is_absent(slot):
            return None
        return self._settled(slot)

    def _remember(self, slot: bytes, found: _Verified) -> Position:
        """Keep the bytes of a slot that were verified, so that they need not be verified twice."""
        if len(self._known) >= _KNOWN_MAX:
            self._known = {}
        self._known[slot] = found
        return found.position

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
            What the slot holds now: `position` if it was written.

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
                # Mostly it lies where it was left, with the very bytes that were verified or
                # written then, its key among them; else it is looked for and verified anew.
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
        """Every slot with its position, in no order. Slots made meanwhile may be left out.

        Raises:
            AnchorUnavailable: Also while iterating, at a damaged slot.
        """
        table = self._file.table
        if table is None or table.map[SUPERSEDED_AT]:
            table = self._current()
        return iter(()) if table is None else chain.from_iterable(self._listed(table))

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Let a run have a thread; returns the hold, or who has it.

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
        """Whose run has a thread, or had it when its process ended.

        Raises:
            AnchorUnavailable: The directory cannot be read.
        """
        require_slot(slot)
        # A directory that is gone is an error, and not a thread that no run has.
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
        """The slots of a file by pieces; the very bytes that were verified before, at once."""
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
                # Others may have written to the file that took the place of a superseded one.
                position = position_of(one, start) if start else self.get(slot)
                if position is None:
                    raise table.damaged(offset + at)
                found.append((slot, position))
                doubts += not start
            if not doubts:
                self._listings[offset] = raw, found
            yield found

    def _verified(self, table: Table, slot: bytes) -> _Verified:
        """Where a slot lies and what it holds; only while no writer is at work."""
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
