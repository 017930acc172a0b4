# SPDX-License-Identifier: Apache-2.0
"""The adapter of the PostgreSQL backend: raw edits are plain SQL by the superuser of the server.

The server is the one that the tests start; it ends with the process.
"""

import atexit
from pathlib import Path
from typing import Any

from benchmarks.agmi._ledger import LedgerAdapter, Row
from sealpoint.storage import Record
from tests.attacks.ledger.raw_editor import ServerEditor, columns_of, record_of
from tests.postgres_server import end_shared_server, schema_of, shared_server

_THREADS = "SELECT DISTINCT thread FROM entries"
_ROWS = "SELECT seq, head, body, payload FROM entries WHERE thread = %s ORDER BY seq"
_PUT_ROW = (
    "INSERT INTO entries (thread, seq, head, body, payload) VALUES (%s, %s, %s, %s, %s) "
    "ON CONFLICT (thread, seq) DO UPDATE SET head = excluded.head, body = excluded.body, "
    "payload = excluded.payload"
)
_DROP_ROW = "DELETE FROM entries WHERE thread = %s AND seq = %s"
_BLOB = "SELECT data FROM blobs WHERE thread = %s AND digest = %s"
_PUT_BLOB = (
    "INSERT INTO blobs (thread, digest, data) VALUES (%s, %s, %s) "
    "ON CONFLICT (thread, digest) DO UPDATE SET data = excluded.data"
)


class PostgresAdapter(LedgerAdapter):
    """A store in a schema of a PostgreSQL server."""

    name = "sealpoint-postgres"

    def setup(self) -> None:
        """Make an empty store, with keys and anchor elsewhere."""
        atexit.register(end_shared_server)
        super().setup()

    def teardown(self) -> None:
        """Remove everything."""
        if self._folder is not None:
            shared_server().drop_schema(schema_of(self._path))
        super().teardown()

    def snapshot_store(self) -> object:
        """The rows of every table."""
        return self._editor.copied()

    def restore_store(self, token: object) -> None:
        """Put every row back, and nothing else."""
        if not callable(token):
            raise TypeError("expected what snapshot_store returned")
        token()

    @property
    def _path(self) -> Path:
        """What the schema is named after."""
        return self._disk / "agents"

    @property
    def _editor(self) -> ServerEditor:
        return ServerEditor(self._path)

    @property
    def _url(self) -> str:
        return shared_server().url(schema=schema_of(self._path))

    @property
    def _places(self) -> dict[str, Any]:
        return {**super()._places, "password": shared_server().password}

    def _threads(self) -> list[bytes]:
        return [thread for (thread,) in self._editor.run(_THREADS)]

    def _rows(self, thread: bytes) -> list[Row]:
        found = []
        for position, *columns in self._editor.run(_ROWS, thread):
            record = record_of(*columns)
            body = record.body or b""
            found.append(Row(position, record.header, record.seals, body, record.payload))
        return found

    def _put_row(self, thread: bytes, row: Row) -> None:
        record = Record(row.header, row.seals, row.body, row.payload)
        self._editor.run(_PUT_ROW, thread, row.position, *columns_of(record))

    def _drop_row(self, thread: bytes, position: int) -> None:
        self._editor.run(_DROP_ROW, thread, position)

    def _blob(self, thread: bytes, digest: bytes) -> bytes:
        ((data,),) = self._editor.run(_BLOB, thread, digest)
        return bytes(data)

    def _put_blob(self, thread: bytes, digest: bytes, data: bytes) -> None:
        self._editor.run(_PUT_BLOB, thread, digest, data)
