# SPDX-License-Identifier: Apache-2.0
"""The statements of the SQLite backend, and what may be a row.

It guarantees that a value of another type or beyond its bound is never brought into memory: SQLite
answers with its size or type instead, and the row is refused as `Edited`. Rows to be written are
held to the same bounds, so that nothing is written that could not be read.
"""

from sealpoint.errors import Edited, UsageError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage._contract import Record

__all__ = [
    "BLOB",
    "BLOBS",
    "BLOBS_ROWS",
    "BLOB_THREAD_FIRST",
    "BLOB_THREAD_NEXT",
    "DIGEST_BYTES",
    "LABELLED",
    "LABELLED_MAX",
    "READ",
    "SCAN_ASCENDING",
    "SCAN_DESCENDING",
    "SCAN_ROWS",
    "SEQ_MAX",
    "STORED_FIRST",
    "STORED_NEXT",
    "STORED_ROWS",
    "THREAD_BYTES",
    "THREAD_FIRST",
    "THREAD_NEXT",
    "BlobRow",
    "EntryRow",
    "blob_row",
    "entry_row",
    "expected_bytes",
    "numbered_record",
    "require_bytes",
    "stored_blob",
    "stored_thread",
]

THREAD_BYTES = 16
DIGEST_BYTES = 32
SEQ_MAX = 2**63 - 1
SCAN_ROWS = 32
LABELLED_MAX = 4096
BLOBS_ROWS = 128
STORED_ROWS = 128
# SQLite itself takes 1,000,000,000 bytes for a whole row.
_BLOB_BYTES_MAX = 999_000_000


def _guarded(column: str, bytes_max: str) -> str:
    """A column of bytes as it is; too many bytes as their number; another type as its name.

    SQLite tells type and length of bytes without reading them; the length of a text it would
    have to read, so that is not asked.
    """
    return (
        f"CASE typeof({column}) WHEN 'blob' THEN CASE WHEN length({column}) <= {bytes_max} "
        f"THEN {column} ELSE length({column}) END ELSE typeof({column}) END"
    )


def _guarded_or_null(column: str, bytes_max: int) -> str:
    return f"CASE WHEN {column} IS NULL THEN NULL ELSE {_guarded(column, str(bytes_max))} END"


def _select(columns: str, source: str) -> str:
    """Put a statement together, of constants of this package alone."""
    return f"SELECT {columns} FROM {source}"  # noqa: S608 # nosec B608


_COLUMNS = ", ".join(
    (
        "seq",
        _guarded("header", str(HEADER_BYTES_MAX)),
        _guarded("seals", str(SEALS_BYTES_MAX)),
        _guarded_or_null("body", BODY_BYTES_MAX),
        _guarded_or_null("payload", PAYLOAD_BYTES_MAX),
    )
)
READ = _select(_COLUMNS, "entries WHERE thread = ? AND seq = ?")
_SCAN = _select(_COLUMNS, "entries WHERE thread = ? AND seq BETWEEN ? AND ?")
SCAN_ASCENDING = f"{_SCAN} ORDER BY seq LIMIT {SCAN_ROWS}"
SCAN_DESCENDING = f"{_SCAN} ORDER BY seq DESC LIMIT {SCAN_ROWS}"
BLOB = _select(_guarded("data", "?"), "blobs WHERE thread = ? AND digest = ?")
BLOBS = _select(
    f"digest, {_guarded('data', '?')}",
    # A damaged index may have a digest many times.
    f"blobs WHERE thread = ? AND digest IN ({', '.join('?' * BLOBS_ROWS)}) LIMIT {BLOBS_ROWS}",
)
_THREAD = _guarded("thread", str(THREAD_BYTES))
THREAD_FIRST = _select(_THREAD, "entries ORDER BY thread LIMIT 1")
THREAD_NEXT = _select(_THREAD, "entries WHERE thread > ? ORDER BY thread LIMIT 1")
BLOB_THREAD_FIRST = _select(_THREAD, "blobs ORDER BY thread LIMIT 1")
BLOB_THREAD_NEXT = _select(_THREAD, "blobs WHERE thread > ? ORDER BY thread LIMIT 1")
# The size of a value that is no bytes is not asked: that of a text would have to be read.
_STORED = (
    f"{_guarded('digest', str(DIGEST_BYTES))}, "
    "CASE typeof(data) WHEN 'blob' THEN length(data) ELSE typeof(data) END"
)
STORED_FIRST = _select(_STORED, f"blobs WHERE thread = ? ORDER BY digest LIMIT {STORED_ROWS}")
STORED_NEXT = _select(
    _STORED, f"blobs WHERE thread = ? AND digest > ? ORDER BY digest LIMIT {STORED_ROWS}"
)
LABELLED = _select(_THREAD, f"labels WHERE label = ? LIMIT {LABELLED_MAX + 1}")

EntryRow = tuple[bytes, int, bytes, bytes, bytes | None, bytes | None]
BlobRow = tuple[bytes, bytes, bytes]


def require_bytes(name: str, value: bytes, size_bytes: int) -> None:
    """Refuse a thread, digest or label that could not be found again."""
    if type(value) is not bytes or len(value) != size_bytes:
        raise UsageError(f"{name}: expected {size_bytes} bytes, found {_shown(value)}")


def entry_row(thread: bytes, number: int, record: Record) -> EntryRow:
    """What is written for a record.

    Raises:
        UsageError: It would not be read again.
    """
    header, seals, body, payload = record.header, record.seals, record.body, record.payload
    if (
        type(header) is bytes
        and len(header) <= HEADER_BYTES_MAX
        and type(seals) is bytes
        and len(seals) <= SEALS_BYTES_MAX
        and (body is None or (type(body) is bytes and len(body) <= BODY_BYTES_MAX))
        and (payload is None or (type(payload) is bytes and len(payload) <= PAYLOAD_BYTES_MAX))
    ):
        return thread, number, header, seals, body, payload
    raise UsageError(
        f"entry {number}: expected at most {HEADER_BYTES_MAX} bytes of header, {SEALS_BYTES_MAX} "
        f"of seals, {BODY_BYTES_MAX} of body and {PAYLOAD_BYTES_MAX} of payload, found "
        f"{_shown(header)}, {_shown(seals)}, {_shown(body)} and {_shown(payload)}"
    )


def blob_row(thread: bytes, digest: bytes, data: bytes) -> BlobRow:
    """What is written for a blob.

    Raises:
        UsageError: SQLite could not take it.
    """
    require_bytes("digest", digest, DIGEST_BYTES)
    if type(data) is not bytes or len(data) > _BLOB_BYTES_MAX:
        raise UsageError(
            f"blob {digest.hex()}: expected at most {_BLOB_BYTES_MAX} bytes, found {_shown(data)}"
        )
    return thread, digest, data


def numbered_record(thread: bytes, row: tuple[object, ...]) -> tuple[int, Record]:
    """A row as a record with its position.

    Raises:
        Edited: It cannot be one.
    """
    seq, header, seals, body, payload = row
    if (
        type(header) is bytes
        and type(seals) is bytes
        and (body is None or type(body) is bytes)
        and (payload is None or type(payload) is bytes)
        and type(seq) is int
    ):
        return seq, Record(header, seals, body, payload)
    place = f"entry {seq!r} of thread {thread.hex()}"
    if type(seq) is not int:
        raise Edited(
            f"{place}: expected a whole number as its position, found {type(seq).__name__}"
        )
    for name, value, bytes_max in (
        ("header", header, HEADER_BYTES_MAX),
        ("seals", seals, SEALS_BYTES_MAX),
        ("body", body, BODY_BYTES_MAX),
        ("payload", payload, PAYLOAD_BYTES_MAX),
    ):
        if type(value) is int or type(value) is str:
            raise Edited(f"{place}: {expected_bytes(name, value, bytes_max)}")
    raise Edited(f"{place}: expected a header, found nothing")


def stored_thread(table: str, value: object) -> bytes:
    """A thread as a row names it.

    Raises:
        Edited: It cannot be one.
    """
    if type(value) is bytes and len(value) == THREAD_BYTES:
        return value
    found = f"{len(value)} bytes" if type(value) is bytes else _found(value)
    raise Edited(f"thread in {table}: expected {THREAD_BYTES} bytes, found {found}")


def stored_blob(thread: bytes, row: tuple[object, ...]) -> tuple[bytes, int]:
    """A row as the digest and the size of a blob.

    Raises:
        Edited: It cannot be one.
    """
    digest, size_bytes = row
    if type(digest) is not bytes or len(digest) != DIGEST_BYTES:
        found = f"{len(digest)} bytes" if type(digest) is bytes else _found(digest)
        raise Edited(
            f"digest in blobs of thread {thread.hex()}: expected {DIGEST_BYTES} bytes, "
            f"found {found}"
        )
    if type(size_bytes) is not int:
        raise Edited(
            f"blob {digest.hex()} of thread {thread.hex()}: expected bytes, "
            f"found {_found(size_bytes)}"
        )
    return digest, size_bytes


def expected_bytes(name: str, value: object, bytes_max: int) -> str:
    """Say what a guarded column answered in place of its bytes."""
    return f"expected at most {bytes_max} bytes of {name}, found {_found(value)}"


def _found(value: object) -> str:
    return f"{value} bytes" if type(value) is int else f"type {value}"


def _shown(value: object) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else type(value).__name__
