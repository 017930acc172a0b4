# SPDX-License-Identifier: Apache-2.0
"""Entries removed from the middle, the end, or altogether."""

import sqlite3

import pytest

from sealpoint.errors import (
    Edited,
    ListIncomplete,
    Missing,
    RolledBack,
    SchemaUnknown,
)
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused

_DELETE = "DELETE FROM entries WHERE thread = ? AND seq "


@pytest.mark.parametrize("seq", range(6))
def test_a_hole_is_noticed_by_whoever_lists(scene: TamperedStore, seq: int) -> None:
    """Any entry but the newest is gone: a listing says so, and so does every way past it."""
    thread = scene.thread_id("alpha")
    found = refused(scene.after(lambda database: database.execute(f"{_DELETE} = {seq}", (thread,))))

    assert found["history alpha"] is Missing
    assert seq < 2 or "find alpha" in found, "the way to the oldest checkpoint, entry 2"
    assert seq not in (0, 4) or "load alpha" in found, (
        "the way to the genesis, which names the owner"
    )
    assert not [read for read in found if "beta" in read]


@pytest.mark.parametrize("kept", range(1, 7))
def test_a_shortened_thread_is_refused(scene: TamperedStore, kept: int) -> None:
    """Whatever remains is a genuine beginning: the anchor knows that there was more."""
    thread = scene.thread_id("alpha")
    sql = f"{_DELETE} >= {kept}"
    found = refused(scene.after(lambda database: database.execute(sql, (thread,))))

    reads = [read for read in found if "alpha" in read]
    assert {found[read] for read in reads} == {RolledBack}
    assert len(reads) == 7
    assert found["threads"] is ListIncomplete


def test_a_thread_that_is_gone_is_refused(scene: TamperedStore) -> None:
    """It never turns into an unknown thread that a save would begin anew."""
    thread = scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        for table in ("entries", "blobs", "labels"):
            database.execute(f"DELETE FROM {table} WHERE thread = ?", (thread,))  # noqa: S608

    found = refused(scene.after(edit))

    assert {error for read, error in found.items() if "alpha" in read} == {RolledBack}
    assert found["threads"] is ListIncomplete
    with scene.open() as store, pytest.raises(RolledBack):
        store.thread("alpha").save({"anew": True}, world=WORLD)


def test_emptied_tables_are_refused(scene: TamperedStore) -> None:
    """Without the store chain there is nothing to begin with."""
    found = refused(scene.after(lambda database: database.execute("DELETE FROM entries")))

    assert set(found.values()) == {RolledBack}
    assert "open" in found


@pytest.mark.parametrize("table", ["entries", "blobs", "labels"])
def test_a_dropped_table_is_refused(scene: TamperedStore, table: str) -> None:
    """A store with fewer tables is not opened, and not repaired."""
    found = refused(scene.after(lambda database: database.execute(f"DROP TABLE {table}")))

    assert set(found.values()) == {Edited}
    assert "open" in found


def test_a_store_that_is_gone_is_refused(scene: TamperedStore) -> None:
    """No file, an empty file, and a file of something else: none of them is a new store."""
    scene.require_sound()
    scene.put_back({})
    assert set(refused(scene.read()).values()) == {RolledBack}
    scene.put_back({scene.path.name: b""})
    assert set(refused(scene.read()).values()) == {SchemaUnknown}
    scene.put_back({scene.path.name: b"something else entirely" * 1000})
    assert set(refused(scene.read()).values()) == {SchemaUnknown}
