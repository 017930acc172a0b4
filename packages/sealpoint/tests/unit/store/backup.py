# SPDX-License-Identifier: Apache-2.0
"""Backups of a world's storage, put back row by row, also under processes that have it open."""

import shutil
import sqlite3
import tempfile
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any

from sealpoint.anchor import Position
from sealpoint.ledger import STORE_CHAIN
from sealpoint.store import (
    AcceptedRestore,
    Core,
    RestorePlan,
    accept_restore,
    plan_restore,
)
from tests.deployment import Deployment
from tests.ledgers import key
from tests.postgres_server import schema_of, shared_server

__all__ = [
    "Backup",
    "accepted",
    "check_goes_on",
    "lossy",
    "planned",
    "position_of",
    "saved",
]

_Tables = dict[str, list[tuple[Any, ...]]]

_COLUMNS = {
    "entries": "thread, seq, header, seals, body, payload",
    "blobs": "thread, digest, data",
    "labels": "thread, label",
}
_SERVER_COLUMNS = {**_COLUMNS, "entries": "thread, seq, head, body, payload"}
_ROSTER_PATH = Path("threads") / STORE_CHAIN.hex()[:2] / STORE_CHAIN.hex()


class Backup:
    """What the storage of a world held at some time.

    Args:
        world: The world.
    """

    def __init__(self, world: Deployment) -> None:
        self._world = world
        self._store = None if world.folder is None else world.folder / "store.db"
        self._is_directory = self._store is not None and self._store.is_dir()
        self._tables: _Tables = {}
        if self._is_directory:
            self._copy = self._copied()
        else:
            self._tables = self._read()

    def contents(self) -> object:
        """All of it, to be compared."""
        if not self._is_directory:
            return self._tables
        files = (path for path in self._copy.rglob("*") if path.is_file())
        return {str(path.relative_to(self._copy)): path.read_bytes() for path in files}

    def put_back(self, *, with_roster: bool = False) -> None:
        """Put it in the place of what is there.

        The store chain stays as it is now, as after a roster import, unless it is asked for.
        """
        if self._is_directory:
            self._put_files_back(with_roster=with_roster)
            return
        now = self._read()
        for table, rows in self._tables.items():
            if with_roster or table == "labels":
                self._write(table, rows)
            else:
                threads = [row for row in rows if row[0] != STORE_CHAIN]
                roster = [row for row in now[table] if row[0] == STORE_CHAIN]
                self._write(table, threads + roster)

    def _copied(self) -> Path:
        assert self._world.folder is not None
        assert self._store is not None
        copy = Path(tempfile.mkdtemp(dir=self._world.folder)) / "copy"
        shutil.copytree(self._store, copy)
        return copy

    def _put_files_back(self, *, with_roster: bool) -> None:
        """Everything below the directory itself, which stays the one that others have open."""
        assert self._store is not None
        now = self._copied()
        for part in ("threads", "labels"):
            shutil.rmtree(self._store / part)
            shutil.copytree(self._copy / part, self._store / part)
        if not with_roster:
            shutil.rmtree(self._store / _ROSTER_PATH)
            shutil.copytree(now / _ROSTER_PATH, self._store / _ROSTER_PATH)

    def _read(self) -> _Tables:
        memory = self._world.memory
        if self._store is None:
            return {
                "entries": [
                    (thread, seq, record)
                    for thread, rows in memory._records.items()
                    for seq, record in rows.items()
                ],
                "blobs": [(*place, blob) for place, blob in memory._blobs.items()],
                "labels": [(t, label) for label, found in memory._labels.items() for t in found],
            }
        if self._world.backend == "postgres":
            with shared_server().admin() as server:
                server.execute(f"SET search_path = {schema_of(self._store)}")
                return {
                    table: server.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608
                    for table, columns in _SERVER_COLUMNS.items()
                }
        with closing(sqlite3.connect(self._store)) as database:
            return {
                table: database.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608
                for table, columns in _COLUMNS.items()
            }

    def _write(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if self._store is None:
            self._write_memory(table, rows)
            return
        if self._world.backend == "postgres":
            columns = _SERVER_COLUMNS[table]
            places = ", ".join(["%s"] * len(columns.split(",")))
            with shared_server().admin() as server, server.transaction():
                server.execute(f"SET LOCAL search_path = {schema_of(self._store)}")
                server.execute(f"DELETE FROM {table}")  # noqa: S608 # a test
                put = f"INSERT INTO {table} ({columns}) VALUES ({places})"  # noqa: S608
                server.cursor().executemany(put, rows)
            return
        columns = _COLUMNS[table]
        places = ", ".join("?" * len(columns.split(",")))
        with closing(sqlite3.connect(self._store, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(f"DELETE FROM {table}")  # noqa: S608 # a test
            database.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)  # noqa: S608
            database.execute("COMMIT")

    def _write_memory(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        memory = self._world.memory
        if table == "entries":
            memory._records.clear()
            memory._positions.clear()
            for thread, seq, record in rows:
                memory._records.setdefault(thread, {})[seq] = record
            for thread, found in memory._records.items():
                memory._positions[thread] = sorted(found)
        elif table == "blobs":
            memory._blobs.clear()
            memory._digests.clear()
            memory._unsorted.clear()
            for thread, digest, blob in rows:
                memory._put(thread, {digest: blob})
        else:
            memory._labels.clear()
            for thread, label in rows:
                memory._labels.setdefault(label, {})[thread] = None


def planned(world: Deployment) -> RestorePlan:
    """The plan of a process that only looks."""
    return world.using(plan_restore, read_only=True)


def accepted(
    world: Deployment,
    plan: RestorePlan | None = None,
    *,
    release: bool | Collection[str] = False,
    **signers: Any,
) -> AcceptedRestore:
    """Accept the store as it is, or as a plan says; by the root unless others are named."""

    def accept(core: Core) -> AcceptedRestore:
        shown = plan_restore(core) if plan is None else plan
        who = signers or {"roots": [key("root")]}
        return accept_restore(core, shown, "disk died", release=release, **who)

    return world.using(accept)


def position_of(world: Deployment, name: str) -> Position:
    """What the anchor has for a name that it knows."""
    position = world.position(name)
    assert position is not None
    return position


def saved(world: Deployment, *names: str, count: int = 1, first: int = 0) -> None:
    """Save states in a process of their own; the first lies at position 2 of a new thread."""
    store = world.open()
    for name in names:
        thread = store.thread(name)
        for number in range(first, first + count):
            thread.save([name, number], id=f"c{number}")


def lossy(world: Deployment) -> Backup:
    """Threads `a` and `b` are in the backup, `a` went on, `d` came later; the backup is there."""
    saved(world, "a", "b", count=2)
    backup = Backup(world)
    saved(world, "a", first=2, count=2)
    saved(world, "d")
    backup.put_back()
    return backup


def check_goes_on(world: Deployment, *names: str) -> None:
    """A fresh process loads, saves and verifies."""
    store = world.open()
    for name in names:
        store.thread(name).save("later")
        assert store.thread(name).load().state == "later"
    report = store.verify()
    assert report.ok, report.findings
    assert store.threads().complete
