# SPDX-License-Identifier: Apache-2.0
"""The adapter of the SQLite backend: raw edits are made with plain `sqlite3` on the file."""

import sqlite3
from contextlib import closing
from pathlib import Path

from benchmarks.agmi._ledger import LedgerAdapter, Row

_THREADS = "SELECT DISTINCT thread FROM entries"
_ROWS = "SELECT seq, header, seals, body, payload FROM entries WHERE thread = ? ORDER BY seq"
_PUT_ROW = (
    "INSERT INTO entries (seq, header, seals, body, payload, thread) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (thread, seq) DO UPDATE SET header = excluded.header, seals = excluded.seals, "
    "body = excluded.body, payload = excluded.payload"
)
_DROP_ROW = "DELETE FROM entries WHERE thread = ? AND seq = ?"
_BLOB = "SELECT data FROM blobs WHERE thread = ? AND digest = ?"
_PUT_BLOB = "INSERT OR REPLACE INTO blobs (thread, digest, data) VALUES (?, ?, ?)"


class SqliteAdapter(LedgerAdapter):
    """A store in an SQLite file."""

    name = "sealpoint-sqlite"

    def snapshot_store(self) -> bytes:
        """The file: with the store closed, all of it is in there."""
        return self._path.read_bytes()

    def restore_store(self, token: object) -> None:
        """Put the file back."""
        if not isinstance(token, bytes):
            raise TypeError("expected what snapshot_store returned")
        for side in ("-wal", "-shm"):
            self._path.with_name(self._path.name + side).unlink(missing_ok=True)
        self._path.write_bytes(token)

    @property
    def _path(self) -> Path:
        return self._disk / "agents.db"

    @property
    def _url(self) -> str:
        return f"sqlite:///{self._path}"

    def _raw(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)

    def _threads(self) -> list[bytes]:
        with closing(self._raw()) as database:
            return [thread for (thread,) in database.execute(_THREADS)]

    def _rows(self, thread: bytes) -> list[Row]:
        with closing(self._raw()) as database:
            return [Row(*row) for row in database.execute(_ROWS, (thread,))]

    def _put_row(self, thread: bytes, row: Row) -> None:
        with closing(self._raw()) as database, database:
            database.execute(_PUT_ROW, (*row, thread))

    def _drop_row(self, thread: bytes, position: int) -> None:
        with closing(self._raw()) as database, database:
            database.execute(_DROP_ROW, (thread, position))

    def _blob(self, thread: bytes, digest: bytes) -> bytes:
        with closing(self._raw()) as database:
            found: tuple[bytes] = database.execute(_BLOB, (thread, digest)).fetchone()
        return found[0]

    def _put_blob(self, thread: bytes, digest: bytes, data: bytes) -> None:
        with closing(self._raw()) as database, database:
            database.execute(_PUT_BLOB, (thread, digest, data))
