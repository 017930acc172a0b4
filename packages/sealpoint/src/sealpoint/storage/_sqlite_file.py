# SPDX-License-Identifier: Apache-2.0
"""The SQLite file of a store, and what lies beside it: made, told apart, and made anew.

It guarantees that a file appears under its name complete or not at all, and that after
`compact_file` nothing that was dropped is in the file or its log. It refuses what SQLite would use
beside a store although no store has it. What is open, and what failures of SQLite mean, is left to
`_sqlite_connections.py`.
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
    """Which file lies under a name: two connections must not be on two files.

    Raises:
        StorageUnavailable: There is none, or it is a link, a pipe, a device or a directory.
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
    """How much the file of a store and its log hold."""
    total = 0
    for name in (path.name, f"{path.name}-wal"):
        with contextlib.suppress(OSError):
            total += path.with_name(name).lstat().st_size
    return total


def refuse_beside(path: Path) -> None:
    """Refuse what SQLite would use beside the store although no store has it.

    A store with a write-ahead log never has a rollback journal. SQLite would play a planted one
    back, and then delete whatever file it names as its super-journal: the anchor, say. A log or
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
    """The file of a store, or its directory, that this user may not use; None if it may."""
    for place in (path.parent, path, path.with_name(f"{path.name}-wal")):
        wanted = os.R_OK | os.W_OK | (os.X_OK if place == path.parent else 0)
        effective = os.access in os.supports_effective_ids
        if os.path.lexists(place) and not os.access(place, wanted, effective_ids=effective):
            return place
    return None


def create_file(path: Path, group: int | None = None) -> None:
    """Make the file of a store unless there is a file already.

    It is made complete under another name, then given its own, which fails if that is taken: of
    two processes that create at once one makes the store, and the other uses it. If a group shares
    it, its members may write it: SQLite gives the files beside it the same mode.

    Raises:
        sqlite3.Error: SQLite failed.
        StorageUnavailable: The directory does not exist or cannot be written, or somebody put
            another file in the place of the one that was made.
    """
    if os.path.lexists(path):
        return
    content = _empty_store()
    expected = f"store {path}: expected a directory {path.parent} that can be written"
    with reporting(StorageUnavailable, expected), contextlib.suppress(FileExistsError):
        disk.write_file(path, content, replace=False, group=group)


def _empty_store() -> bytes:
    """The bytes of a file with the tables of a store; made in memory, since SQLite knows paths."""
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
    # The versions of the format for writing and reading: a write-ahead log, which memory has not.
    content[18:20] = b"\x02\x02"
    return bytes(content)


def sync_log(path: Path) -> None:
    """Let reach the disk what SQLite has just found in the log.

    A writer that was killed before its sync leaves a commit that is read from now on, and that
    a power cut could still take away after the anchor has seen it.

    Raises:
        StorageUnavailable: It cannot be synced.
    """
    log = path.with_name(f"{path.name}-wal")
    with (
        reporting(StorageUnavailable, f"store {path}: expected its log to reach the disk"),
        refusing(StorageUnavailable, log),
        contextlib.suppress(FileNotFoundError),
    ):
        descriptor = disk.open_plain(log, FILE)
        try:
            if os.fstat(descriptor).st_size:  # in an empty one nothing was found
                disk.sync(descriptor)
        finally:
            os.close(descriptor)


# Overwriting what is dropped (`secure_delete`) is not enough. When SQLite moves rows from page to
# page, it leaves copies in the gaps of pages, which nobody knows of when the row goes; and the
# log holds pages as they were. So everything that is stored is copied to new pages (`VACUUM`),
# which come into the file by the log, as any change does: a crash leaves the store as it was or
# as it will be, and other processes see either. Then the log is emptied, which takes a moment
# without readers on older pages; until it is empty, what was dropped may still be there, and that
# is `StorageUnavailable`.
#
# It refuses a damaged file before it copies anything: following wrong pointers, SQLite could copy
# the same page without end. It leaves to the file system what becomes of blocks that files no
# longer use.
#
# SQLite copies into a database of its own that has no name: in memory if what is stored takes at
# most 64 MiB, otherwise in a file that is for its owner alone and, except on Windows, has lost
# its name before the first byte is written. It holds nothing of what was dropped. Where that file
# lies is SQLite's decision for the whole process (`SQLITE_TMPDIR`, `TMPDIR`, `/var/tmp`); the one
# way to say so from here, `PRAGMA temp_store_directory`, changes it for everybody else in the
# process, is not safe while they work, and is deprecated.

_MEMORY_BYTES_MAX = 64 * 1024 * 1024
_PAGE_BYTES = 4096
# While readers are waited for writers wait too, so that is done in turns.
_TURN_SECONDS = 1.0
_PAUSE_SECONDS = 0.05


def compact_file(connection: sqlite3.Connection, path: Path, wait_seconds_max: float) -> None:
    """Write the file anew, and empty its log.

    Raises:
        Edited: The file is damaged.
        StorageUnavailable: Others read for so long that the log could not be emptied.
    """
    # (1) The pages form the trees of their tables, each once.
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        # What SQLite says about it may hold text from the file.
        raise Edited(f"store {path}: expected whole tables, found damaged ones")
    # (2) What is stored, and nothing else, in new pages.
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
