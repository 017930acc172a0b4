# SPDX-License-Identifier: Apache-2.0
"""Machines that share an anchor: one store, directories of their own, and somebody with the store.

The store is a SQLite file or a schema of PostgreSQL; the anchor lies in another database of the
same server, which whoever holds the store does not hold.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import sealpoint
from sealpoint import Admin, Store
from sealpoint.api import StoreFacts
from tests.postgres_server import PostgresServer

__all__ = ["Fleet", "FleetMachine"]

_TABLES = ("entries", "blobs", "labels")


class FleetMachine:
    """The directories of one machine."""

    def __init__(self, fleet: "Fleet", name: str) -> None:
        self.fleet = fleet
        self.name = name
        folder = fleet.folder / name
        folder.mkdir()
        self.directories: dict[str, Any] = {
            "config_dir": folder / "config",
            "state_dir": folder / "state",
        }

    @property
    def options(self) -> dict[str, Any]:
        """What every call of the library takes."""
        secret = self.fleet.server.password
        return {**self.directories, "password": secret, "anchor_password": secret}

    @property
    def admin(self) -> Admin:
        """What administers the store here."""
        return sealpoint.admin(self.fleet.url, **self.options)

    @property
    def facts(self) -> StoreFacts:
        """How the store stands here."""
        found = self.admin.doctor(quick=True).facts
        assert found is not None
        return found

    def init(self, *, shared: bool = True, **options: Any) -> None:
        """Make the store here."""
        anchor = self.fleet.anchor if shared else None
        sealpoint.init(self.fleet.url, anchor=anchor, **self.options, **options)

    def open(self, **options: Any) -> Store:
        """Open the store here."""
        return sealpoint.open_store(self.fleet.url, **{**self.options, **options})

    def save(self, *states: object, thread: str = "t", **options: Any) -> None:
        """Save some states, in a session of their own."""
        with self.open(**options) as store:
            for state in states:
                store.thread(thread).save(state)

    def load(self, thread: str = "t") -> object:
        """Load in a session of its own; no key is needed."""
        with self.open(read_only=True) as store:
            return store.thread(thread).load().state

    def pin(self) -> bytes:
        """The pin that this machine has."""
        (path,) = self.directories["config_dir"].rglob("pin.json")
        return bytes(path.read_bytes())

    def trust(self, other: "FleetMachine") -> None:
        """Import the pin from another machine."""
        self.admin.trust.import_pin(other.admin.trust.export_pin().encode())

    def join(self, other: "FleetMachine", **people: tuple[str, ...]) -> None:
        """Trust the store as another machine does, share its anchor, and have keys of its own."""
        self.trust(other)
        self.admin.anchor.join(self.fleet.anchor)
        for name, roles in people.items():
            public = self.admin.keys.create(name)
            other.admin.keys.add(
                name,
                person=name,
                roles=list(roles),
                namespaces=["*"],
                public=str(public),
            )

    def shown(self) -> dict[str | None, tuple[int | None, int | None]]:
        """By thread, what the anchor here and the shared one have seen."""
        return {each.name: (each.local, each.shared) for each in self.admin.anchor.positions()}


class Fleet:
    """A store and an anchor that several machines use."""

    def __init__(self, folder: Path, server: PostgresServer, scheme: str = "sqlite") -> None:
        self.folder = folder
        self.server = server
        self.schema = server.new_schema()
        self.anchor_schema = server.new_schema()
        self.anchor = server.url(schema=self.anchor_schema)
        (folder / "disk").mkdir()
        self.file = None if scheme == "postgresql" else folder / "disk" / "agents.db"
        self.url = server.url(schema=self.schema) if self.file is None else f"sqlite:///{self.file}"

    def machine(self, name: str) -> FleetMachine:
        """A machine that has nothing yet."""
        return FleetMachine(self, name)

    def password_file(self) -> Path:
        """A file with the password of both databases."""
        path = self.folder / "password"
        path.write_text(self.server.password)
        path.chmod(0o600)
        return path

    def on_anchor(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Do something to the database of the anchor."""
        return self._execute(self.anchor_schema, statement, values)

    def on_store(self, statement: str) -> None:
        """Do something to the store, as whoever holds it."""
        if self.file is None:
            self._execute(self.schema, statement, ())
        else:
            with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
                connection.execute(statement)

    def back_up(self, name: str = "kept") -> None:
        """Keep a copy of all rows."""
        if self.file is None:
            for table in _TABLES:
                self.on_store(f"DROP TABLE IF EXISTS {name}_{table}")
                self.on_store(f"CREATE TABLE {name}_{table} AS TABLE {table}")
            return
        copy = self.file.with_name(name)
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(self.file)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))

    def put_back(self, name: str = "kept") -> None:
        """Put a copy in the place of all rows, under everybody's hands."""
        if self.file is None:
            for table in _TABLES:
                self.on_store(f"TRUNCATE {table}")
                self.on_store(f"INSERT INTO {table} TABLE {name}_{table}")
            return
        with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
            connection.execute("ATTACH ? AS kept", (str(self.file.with_name(name)),))
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                connection.execute(f"DELETE FROM main.{table}")  # noqa: S608
                connection.execute(f"INSERT INTO main.{table} SELECT * FROM kept.{table}")  # noqa: S608
            connection.execute("COMMIT")

    def close(self) -> None:
        """Remove what lies on the server."""
        for name in (self.schema, self.anchor_schema):
            self.server.drop_schema(name)

    def _execute(
        self, schema: str, statement: str, values: tuple[object, ...]
    ) -> list[tuple[Any, ...]]:
        with self.server.admin() as connection:
            connection.execute(f"SET search_path = {schema}".encode())
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []


def declared(machine: FleetMachine) -> Any:
    """What the files of a machine say about a shared anchor."""
    (path,) = machine.directories["config_dir"].rglob("anchor.json")
    return json.loads(path.read_text())
