# SPDX-License-Identifier: Apache-2.0
"""Compacting a SQLite store: nothing that was dropped stays in the file or its log.

Overwriting what is dropped (`secure_delete`) is not enough. When SQLite moves rows from page to
page, it leaves copies in the gaps of pages, which nobody knows of when the row goes; and the log
holds pages as they were. So everything that is stored is copied to new pages (`VACUUM`), which
come into the file by the log, as any change does: a crash leaves the store as it was or as it
will be, and other processes see either. Then the log is emptied, which takes a moment without
readers on older pages; until it is empty, what was dropped may still be there, and that is
`StorageUnavailable`.

It refuses a damaged file before it copies anything: following wrong pointers, SQLite could copy
the same page without end. It leaves to the file system what becomes of blocks that files no
longer use.

SQLite copies into a database of its own that has no name: in memory if what is stored takes at
most 64 MiB, otherwise in a file that is for its owner alone and, except on Windows, has lost its
name before the first byte is written. It holds nothing of what was dropped. Where that file lies
is SQLite's decision for the whole process (`SQLITE_TMPDIR`, `TMPDIR`, `/var/tmp`); the one way to
say so from here, `PRAGMA temp_store_directory`, changes it for everybody else in the process, is
not safe while they work, and is deprecated.
"""

import sqlite3
import time
from pathlib import Path

from sealpoint.errors import Edited, StorageUnavailable

__all__ = ["compact_file"]

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
                f"store {path}: expected to empty its log within {wait_seconds_max:g} seconds, "
                f"found others reading or writing; what was dropped may still be in its files",
                hint="Compact again when nobody else works with the store.",
            )
        time.sleep(_PAUSE_SECONDS)


def _live_bytes(connection: sqlite3.Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    return int(pages - free) * _PAGE_BYTES
