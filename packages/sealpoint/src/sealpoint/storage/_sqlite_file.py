# SPDX-License-Identifier: Apache-2.0
"""The SQLite file of a store, and the files next to it: made, identified, and compacted.

The module guarantees that a file appears under its name complete or not at all, and that after
`compact_file` no dropped bytes are in the file or its log. It refuses files next to a store that
SQLite would use although no store has them. `_sqlite_connections.py` handles open connections and
failures of SQLite.
"""

import contextlib
import os
import sqlite3
import stat
import time
from pathlib import Path

from sealpoint import disk
from sealpoint.disk import FILE, refusing, reporting
from sealpoint.errors import Edited, StorageUnavailable
from sealpoint.storage._sqlite_schema import APPLICATION_ID, SCHEMA, SCHEMA_VERSION


def file_identity(path: Path) -> tuple[int, int]:
    """Return the identity of the file under a name: two connections must use the same file.

    Raises:
        StorageUnavailable: It does not exist, or is a link, a pipe, a device or a directory.
    """
    try:
        found = path.lstat()
    except FileNotFoundError as exc:
        raise StorageUnavailable(f"store {path}: there is no such file") from exc
    except OSError as exc:
        raise StorageUnavailable(f"store {path}: expected a file, found {exc.strerror}") from exc
    if not stat.S_ISREG(found.st_mode):
        raise StorageUnavailable(
            f"store {path}: expected a file, found a link or something else",
            hint="Name the file itself in the URL.",
        )
    return found.st_dev, found.st_ino


def file_bytes(path: Path) -> int:
    """Return the size of a store's file and its log."""
    total = 0
    for name in (path.name, f"{path.name}-wal"):
        with contextlib.suppress(OSError):
            total += path.with_name(name).lstat().st_size
    return total


def refuse_beside(path: Path) -> None:
    """Refuse files next to the store that SQLite would use although no store has them.

    A store with a write-ahead log never has a rollback journal. SQLite would play back a planted
    one, and then delete the file that it names as its super-journal, such as the anchor. A log or
    its index that has another name elsewhere would be overwritten there.
    """
    if os.path.lexists(f"{path}-journal"):
        raise Edited(
            f"store {path}: there is a rollback journal, {path.name}-journal, which "
            "Sealpoint never leaves"
        )
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(OSError):
            found = os.lstat(f"{path}{suffix}")
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                raise Edited(f"store {path}: expected a file of its own, found {path.name}{suffix}")


def denied_place(path: Path) -> Path | None:
    """Return the file of a store, or its directory, that this user may not use; None if usable."""
    for place in (path.parent, path, path.with_name(f"{path.name}-wal")):
        wanted = os.R_OK | os.W_OK | (os.X_OK if place == path.parent else 0)
        effective = os.access in os.supports_effective_ids
        if os.path.lexists(place) and not os.access(place, wanted, effective_ids=effective):
            return place
    return None


def create_file(path: Path, group: int | None = None) -> None:
    """Make the file of a store unless a file exists already.

    It is made complete under another name, then given its own, which fails if that is taken: of two
    processes that create at once, one makes the store, and the other uses it. If a group shares it,
    its members may write it: SQLite gives the files next to it the same mode.

    Raises:
        sqlite3.Error: SQLite failed.
        StorageUnavailable: The directory does not exist or cannot be written, or another file was
            put in the place of the new one.
    """
    if os.path.lexists(path):
        return
    content = _empty_store()
    expected = f"store {path}: expected a directory {path.parent} that can be written"
    with reporting(StorageUnavailable, expected), contextlib.suppress(FileExistsError):
        disk.write_file(path, content, replace=False, group=group)


def _empty_store() -> bytes:
    """Return the bytes of a file with the tables of a store; made in memory, without a path."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if not hasattr(connection, "serialize"):  # pragma: no cover - only before SQLite 3.36
            raise StorageUnavailable(
                f"SQLite: expected 3.36 or newer to make a store, found {sqlite3.sqlite_version}",
                hint="Use a newer Python or SQLite, or a store of files: file:///DIRECTORY",
            )
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("BEGIN")
        for sql in SCHEMA.values():
            connection.execute(sql)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
        content = bytearray(connection.serialize())
    # The versions of the format for writing and reading: a write-ahead log, which memory lacks.
    content[18:20] = b"\x02\x02"
    return bytes(content)


def sync_log(path: Path) -> None:
    """Sync the commits that SQLite has just found in the log.

    A writer that was killed before its sync leaves a commit that is read from now on, and that a
    power cut could still remove after the anchor has seen it.

    Raises:
        StorageUnavailable: The log cannot be synced.
    """
    log = path.with_name(f"{path.name}-wal")
    with (
        reporting(StorageUnavailable, f"store {path}: expected its log to reach the disk"),
        refusing(StorageUnavailable, log),
        contextlib.suppress(FileNotFoundError),
    ):
        descriptor = disk.open_plain(log, FILE)
        try:
            if os.fstat(descriptor).st_size:  # an empty log has no commits
                disk.sync(descriptor)
        finally:
            os.close(descriptor)


# Overwriting dropped bytes (`secure_delete`) is not enough. When SQLite moves rows from page to
# page, it leaves copies in the gaps of pages, which it no longer knows when the row is dropped; and
# the log holds old pages. So all stored data is copied to new pages (`VACUUM`), which enter the
# file through the log, like any change: a crash leaves the old or the new state of the store, and
# other processes see either. Then the log is emptied, which needs a moment without readers on older
# pages; until it is empty, dropped bytes may still be there, and that is `StorageUnavailable`.
#
# `compact_file` refuses a damaged file before it copies anything: following wrong pointers, SQLite
# could copy the same page without end. Blocks that files no longer use are left to the file system.
#
# SQLite copies into a temporary database without a name: in memory if the stored data takes at most
# 64 MiB, otherwise in a file that only its owner can read and that, except on Windows, has lost its
# name before the first byte is written. It contains no dropped bytes. SQLite decides the place of
# that file for the whole process (`SQLITE_TMPDIR`, `TMPDIR`, `/var/tmp`). The only way to set it
# from here, `PRAGMA temp_store_directory`, changes it for all other code in the process, is not
# safe
# while that code runs, and is deprecated.

_MEMORY_BYTES_MAX = 64 * 1024 * 1024
_PAGE_BYTES = 4096
# Waiting for readers also makes writers wait, so it is done in turns.
_TURN_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


def compact_file(connection: sqlite3.Connection, path: Path, wait_seconds_max: float) -> None:
    """Rewrite the file, and empty its log.

    Raises:
        Edited: The file is damaged.
        StorageUnavailable: Others read for so long that the log could not be emptied.
    """
    # (1) The pages form the trees of their tables, each once.
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        # SQLite's message may contain text from the file.
        raise Edited(f"store {path}: expected whole tables, found damaged ones")
    # (2) Only the stored data, in new pages.
    in_memory = _live_bytes(connection) <= _MEMORY_BYTES_MAX
    connection.execute(f"PRAGMA temp_store = {'MEMORY' if in_memory else 'FILE'}")
    connection.execute("VACUUM")
    # (3) Those pages in the file, no page after them, and nothing in the log.
    deadline = time.monotonic() + wait_seconds_max
    while True:
        turn_seconds = min(_TURN_SECONDS, max(0.0, deadline - time.monotonic()))
        connection.execute(f"PRAGMA busy_timeout = {int(turn_seconds * 1000)}")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return
        if time.monotonic() + _PAUSE_SECONDS > deadline:
            raise StorageUnavailable(
                f"store {path}: others kept reading or writing for {wait_seconds_max:g} seconds, "
                "so its log could not be emptied; what was dropped may still be in its files",
                hint="Compact again when nobody else works with the store.",
            )
        time.sleep(_PAUSE_SECONDS)


def _live_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    return int(pages - free) * _PAGE_BYTES
