# SPDX-License-Identifier: Apache-2.0
"""A store on a server, who may do anything to its tables, and every way to read.

The store logs in as the owner of the tables, who is no superuser, so that what hides rows from
logins hides them. Edits are made by that owner, or by the superuser of the server.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

import sealpoint
from sealpoint.api import admin
from tests.attacks.ledger.tampered_store import TamperedStore, Truth
from tests.attacks.postgres.table_edits import Row, TableEdit, contents, tables
from tests.postgres_server import shared_admin, shared_server

__all__ = ["EditedServer"]


class EditedServer(TamperedStore):
    """A store worth damaging, which can be put back into its first state at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = secrets.token_hex(6)
        self.schema, self.login, self._copy = f"s_{name}", f"owner_{name}", f"copy_{name}"
        self._password = secrets.token_hex(8)
        server = shared_admin()
        server.execute(f"CREATE ROLE {self.login} LOGIN PASSWORD '{self._password}'")
        server.execute(f"CREATE SCHEMA {self.schema} AUTHORIZATION {self.login}")
        self.url = shared_server().url(user=self.login, schema=self.schema)
        self.places["password"] = self._password

    @classmethod
    def furnished(cls, folder: Path) -> "EditedServer":
        """Two threads in several sessions, states of some blobs, two rosters."""
        made = cls(folder)
        made._furnish()
        return made

    def _furnish(self) -> None:
        self.disk.mkdir(parents=True)
        sealpoint.init(self.url, **self.places)
        self._session(0)
        office = admin(self.url, **self.places)
        office.keys.create("helper")
        rights: dict[str, Any] = {"roles": ["writer"], "namespaces": ["elsewhere"]}
        office.keys.add("helper", person="somebody", **rights)
        with self.editing() as server:
            self.older = contents(server)
        self._session(1)
        self.require_sound()
        (self.anchor,) = self.places["state_dir"].rglob("anchor.slots")
        self.anchored = self.anchor.read_bytes()
        self.first_truth: Truth = {name: list(saved) for name, saved in self.truth.items()}
        self._keep()

    def _session(self, number: int) -> None:
        with self.open() as store:
            for name, length in (("alpha", 60), ("beta", 2)):
                words = [f"{name} {place} " + "word " * 20 for place in range(length + number)]
                state = {"words": words, "step": number}
                self.save(store, name, state, id=f"{name[0]}-{number}", metadata={"step": number})

    @contextmanager
    def editing(self, *, as_owner: bool = False) -> Iterator[psycopg.Connection[Row]]:
        """Plain SQL in the schema, as the superuser or as the owner of the tables."""
        server = shared_admin()
        server.execute(f"SET search_path = {self.schema}")
        if as_owner:
            server.execute(f"SET ROLE {self.login}")
        try:
            yield server
        finally:
            server.execute("RESET ROLE")
            server.execute("RESET search_path")

    def _keep(self) -> None:
        with self.editing() as server:
            self._tables = [*tables(server)]
            server.execute(f"CREATE SCHEMA {self._copy}")
            for table in self._tables:
                server.execute(
                    f"CREATE TABLE {self._copy}.{table} (LIKE {table} INCLUDING ALL); "
                    f"INSERT INTO {self._copy}.{table} TABLE {table}"
                )

    def put_back_everything(self) -> None:
        """The schema as it was, and the anchor as it was."""
        script = [
            f"SET ROLE {self.login}; RESET ROLE; DROP SCHEMA {self.schema} CASCADE",
            f"CREATE SCHEMA {self.schema} AUTHORIZATION {self.login}",
        ]
        for table in self._tables:
            made, kept = f"{self.schema}.{table}", f"{self._copy}.{table}"
            script += [
                f"CREATE TABLE {made} (LIKE {kept} INCLUDING ALL)",
                f"INSERT INTO {made} TABLE {kept}",
                f"ALTER TABLE {made} OWNER TO {self.login}",
            ]
        server = shared_admin()
        with server.transaction():
            server.execute("; ".join(script).encode())
        self.anchor.write_bytes(self.anchored)
        self.truth = {name: list(saved) for name, saved in self.first_truth.items()}

    def landed(self, edit: TableEdit, *, as_owner: bool) -> bool:
        """Make an edit; False if the server refuses it."""
        with self.editing(as_owner=as_owner) as server:
            try:
                edit.make(server)
            except psycopg.Error:
                return False
        return True

    def remove(self) -> None:
        """Leave nothing on the server."""
        server = shared_admin()
        for schema in (self.schema, self._copy):
            server.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        server.execute(f"DROP OWNED BY {self.login}")
        server.execute(f"DROP ROLE {self.login}")
