# SPDX-License-Identifier: Apache-2.0
"""The PostgreSQL backend, on a real server: the conformance suite, and what is its own."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import sleep

import pytest

from sealpoint.errors import HeadMoved
from sealpoint.storage import Record, Storage
from sealpoint_postgres._url import PostgresUrl
from sealpoint_postgres.storage import PostgresStorage
from sealpoint_testing.conformance.storage import StorageConformance
from tests.postgres_server import PostgresServer


class TestPostgresConformance(StorageConformance):
    """Every sentence of the contract, in a schema of its own for each test."""

    @pytest.fixture(autouse=True)
    def _schema(self, postgres: PostgresServer) -> Iterator[None]:
        self._server = postgres
        self._name = postgres.new_schema()
        yield
        postgres.drop_schema(self._name)

    def open(self, place: Path) -> Storage:  # noqa: ARG002
        """The same schema each time."""
        url = PostgresUrl.parse(self._server.url(schema=self._name))
        return PostgresStorage(url, create=True, password=lambda: self._server.password)

    def test_others_wait_for_who_is_alone(self, tmp_path: Path) -> None:
        """Until the append or the end of the block; other threads go on, and reads do."""
        thread, first, second = bytes(16), Record(b"first", b"", None), Record(b"second", b"", None)

        def append(storage: Storage, record: Record) -> bool:
            try:
                storage.append(thread, 1, [record], blobs={})
            except HeadMoved:
                return False
            return True

        with (
            closing(self.open(tmp_path)) as storage,
            closing(self.open(tmp_path)) as other,
            ThreadPoolExecutor() as pool,
        ):
            storage.append(thread, 0, [first], blobs={})
            with storage.alone(thread):
                pending = pool.submit(append, other, second)
                other.append(bytes([1] * 16), 0, [first], blobs={})
                sleep(0.2)
                waited = not pending.done()
                seen = [seq for seq, _ in storage.scan(thread, 0)]
                won = append(storage, first)
            lost = not pending.result(timeout=20)
            with storage.alone(thread):
                pass
            other.append(thread, 2, [second], blobs={})
            stored = [seq for seq, _ in storage.scan(thread, 0)]

        assert waited
        assert seen == [0]
        assert won is lost  # who waits is awake a moment later, and hardly ever first
        assert stored == [0, 1, 2]
