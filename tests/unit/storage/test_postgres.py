# SPDX-License-Identifier: Apache-2.0
"""The PostgreSQL backend, on a real server: the conformance suite, and what is its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint._postgres_url import PostgresUrl
from sealpoint.storage import Storage
from sealpoint.storage.postgres import PostgresStorage
from sealpoint.testing.conformance.storage import StorageConformance
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
