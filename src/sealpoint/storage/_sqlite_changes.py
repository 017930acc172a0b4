# SPDX-License-Identifier: Apache-2.0
"""The transactions of a SQLite store: what is appended, what is dropped, what is cut off.

Each takes the writing connection from begin to commit. It guarantees that whether a change may be
made is decided inside the transaction that makes it, which no other writer can come between. When
anything fails it raises, and leaves to its caller to roll back. It brings no stored value into
memory that a record could not have: it would have been planted there.
"""

import sqlite3
from collections.abc import Sequence

from sealpoint.errors import Edited, HeadMoved, Missing
from sealpoint.storage._contract import Record
from sealpoint.storage._sqlite_rows import (
    BLOBS_ROWS,
    READ,
    SEQ_MAX,
    BlobRow,
    EntryRow,
    numbered_record,
)

# A whole record has less; a row is written anew when a part of it goes.
_ROW_BYTES_MAX = 2 * 1024 * 1024

_PUT_ENTRY = (
    "INSERT INTO entries (thread, seq, header, seals, body, payload) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (thread, seq) DO NOTHING"
)
# The same bytes dirty no page. A stored value of another length is not read to be compared: it
# may be a gigantic one that somebody planted.
_PUT_BLOB = (
    "INSERT INTO blobs (thread, digest, data) VALUES (?, ?, ?) "
    "ON CONFLICT (thread, digest) DO UPDATE SET data = excluded.data "
    "WHERE CASE typeof(data) WHEN 'blob' THEN CASE length(data) WHEN length(excluded.data) "
    "THEN data IS NOT excluded.data ELSE 1 END ELSE 1 END"
)
_PUT_LABEL = (
    "INSERT INTO labels (label, thread) VALUES (?, ?) ON CONFLICT (label, thread) DO NOTHING"
)

_IS_AT = "SELECT 1 FROM entries WHERE thread = ? AND seq = ?"
_STORED_OF = (
    "SELECT digest FROM blobs WHERE thread = ? "  # noqa: S608 # nosec B608 # constants alone
    f"AND digest IN ({', '.join('?' * BLOBS_ROWS)}) LIMIT {BLOBS_ROWS}"
)
# What has gone before dirties no page.
_DROP_PAYLOAD = (
    "UPDATE entries SET payload = NULL WHERE thread = ? AND seq = ? AND payload IS NOT NULL"
)
_DROP_BODY = (
    "UPDATE entries SET body = NULL, payload = NULL "
    "WHERE thread = ? AND seq = ? AND (body IS NOT NULL OR payload IS NOT NULL)"
)
_DROP_BLOB = "DELETE FROM blobs WHERE thread = ? AND digest = ?"
_TRUNCATE = "DELETE FROM entries WHERE thread = ? AND seq >= ?"
_DROP_LABEL = "DELETE FROM labels WHERE label = ? AND thread = ?"


def append_rows(
    writer: sqlite3.Connection,
    thread: bytes,
    *,
    entries: Sequence[EntryRow],
    blobs: Sequence[BlobRow],
    needs: Sequence[bytes],
    label: bytes | None,
) -> None:
    """Store entries and blobs.

    Raises:
        HeadMoved: Another record lies at one of the positions.
        Missing: A blob that is needed is not stored.
        Edited: What lies at one of the positions cannot be a record.
    """
    if len(entries) == 1 and not blobs and not needs and label is None:
        # The most frequent append is one statement: a transaction of its own.
        if writer.execute(_PUT_ENTRY, entries[0]).rowcount != 1:
            _require_same(writer, entries[0])
        return
    writer.execute("BEGIN IMMEDIATE")
    for row in entries:
        # Create if absent: the statement itself decides, and its count tells.
        if writer.execute(_PUT_ENTRY, row).rowcount != 1:
            _require_same(writer, row)
    if needs:
        _require_stored(writer, thread, needs)
    if blobs:
        writer.executemany(_PUT_BLOB, blobs)
    if label is not None:
        writer.execute(_PUT_LABEL, (label, thread))
    writer.execute("COMMIT")


def drop_rows(
    writer: sqlite3.Connection,
    thread: bytes,
    head: int,
    *,
    payloads: Sequence[int],
    bodies: Sequence[int],
    blobs: Sequence[bytes],
    label: bytes | None,
) -> None:
    """Take parts of a thread away.

    Raises:
        HeadMoved: There is an entry after the head.
    """
    # An entry is written anew without what goes: nothing that stays of it may be gigantic.
    bytes_max = writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ROW_BYTES_MAX)
    try:
        writer.execute("BEGIN IMMEDIATE")
        if head < SEQ_MAX and writer.execute(_IS_AT, (thread, head + 1)).fetchall():
            raise HeadMoved(
                f"entry {head + 1} of thread {thread.hex()}: expected no record, found one"
            )
        writer.executemany(_DROP_BODY, ((thread, seq) for seq in bodies))
        writer.executemany(_DROP_PAYLOAD, ((thread, seq) for seq in payloads))
        writer.executemany(_DROP_BLOB, ((thread, digest) for digest in blobs))
        if label is not None:
            writer.execute(_DROP_LABEL, (label, thread))
        writer.execute("COMMIT")
    finally:
        writer.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, bytes_max)


def truncate_rows(
    writer: sqlite3.Connection, thread: bytes, seq: int, header: bytes | None
) -> None:
    """Take the row of a position and all after it away.

    Raises:
        HeadMoved: The record there has another header, or there is none.
    """
    writer.execute("BEGIN IMMEDIATE")
    stored = writer.execute(READ, (thread, seq)).fetchone()
    if stored is None or _header(thread, stored) != header:
        raise HeadMoved(
            f"entry {seq} of thread {thread.hex()}: expected the record that is to go, found "
            "another or none"
        )
    writer.execute(_TRUNCATE, (thread, seq))
    writer.execute("COMMIT")


def _header(thread: bytes, stored: tuple[object, ...]) -> bytes | None:
    """The header of a row, or None if the row cannot be a record."""
    try:
        return numbered_record(thread, stored)[1].header
    except Edited:
        return None


def _require_stored(writer: sqlite3.Connection, thread: bytes, needs: Sequence[bytes]) -> None:
    """Look each blob up in the index; its bytes are not read.

    Raises:
        Missing: One is not there.
    """
    for place in range(0, len(needs), BLOBS_ROWS):
        wanted = [*needs[place : place + BLOBS_ROWS]]
        # One statement for any number: SQLite keeps it prepared.
        padded = wanted + wanted[-1:] * (BLOBS_ROWS - len(wanted))
        absent = set(wanted)
        for (digest,) in writer.execute(_STORED_OF, (thread, *padded)):
            absent.discard(digest)
        if absent:
            raise Missing(
                f"blob {min(absent).hex()} of thread {thread.hex()}: expected it to be stored, "
                f"found none"
            )


def _require_same(writer: sqlite3.Connection, row: EntryRow) -> None:
    """Compare what lies at a position with what was to be written there.

    Raises:
        HeadMoved: It is another record.
        Edited: It cannot be a record.
    """
    thread, number, header, seals, body, payload = row
    stored = writer.execute(READ, (thread, number)).fetchone()
    if stored is None:
        raise Edited(
            f"entry {number} of thread {thread.hex()}: expected it to be written, found nothing"
        )
    if numbered_record(thread, stored)[1] != Record(header, seals, body, payload):
        raise HeadMoved(
            f"entry {number} of thread {thread.hex()}: expected no record, found another one"
        )
