# SPDX-License-Identifier: Apache-2.0
"""Genuine entries where they were not written."""

import sqlite3
from pathlib import Path

import pytest

from sealpoint.errors import Misplaced, Missing, NotTrusted, Tampered
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, contents, entry_rows, refused

_SET = "UPDATE entries SET header = ?, seals = ?, body = ? WHERE thread = ? AND seq = ?"
_PAYLOAD = "SELECT payload FROM entries WHERE thread = ? AND seq = ?"


def _copy(
    database: sqlite3.Connection, source: tuple[bytes, int], target: tuple[bytes, int]
) -> None:
    """Put everything that an entry consists of into another's slot."""
    row = entry_rows(database, source[0])[source[1]]
    database.execute(_SET, (*row, *target))
    (payload,) = database.execute(_PAYLOAD, source).fetchone()
    database.execute(
        "UPDATE entries SET payload = ? WHERE thread = ? AND seq = ?", (payload, *target)
    )
    database.execute(
        "INSERT OR IGNORE INTO blobs (thread, digest, data) "
        "SELECT ?, digest, data FROM blobs WHERE thread = ?",
        (target[0], source[0]),
    )


@pytest.mark.parametrize(("one", "two"), [(2, 3), (3, 5), (5, 6), (1, 4), (0, 6)])
def test_exchanged_entries_are_refused(scene: TamperedStore, one: int, two: int) -> None:
    """Two genuine entries of one thread in each other's place, by content or by column."""
    thread = scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        sql = "UPDATE entries SET seq = ? WHERE thread = ? AND seq = ?"
        for to, at in ((100, one), (one, two), (two, 100)):
            database.execute(sql, (to, thread, at))

    found = refused(scene.after(edit))

    assert found["history alpha"] is Misplaced
    assert two != 6 or "load alpha" in found
    assert not [read for read in found if "beta" in read]


@pytest.mark.parametrize("older", [2, 3, 5])
def test_an_older_checkpoint_over_the_newest_is_refused(scene: TamperedStore, older: int) -> None:
    """What was true once is not true now: the position is part of what was signed."""
    thread = scene.thread_id("alpha")
    found = refused(scene.after(lambda db: _copy(db, (thread, older), (thread, 6))))

    assert found["load alpha"] is Misplaced
    assert found["history alpha"] is Misplaced


def test_an_older_checkpoint_after_the_newest_is_refused(scene: TamperedStore) -> None:
    """Appended as if it were the next one."""
    thread = scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "INSERT INTO entries (thread, seq, header, seals, body, payload) "
            "SELECT thread, 7, header, seals, body, payload FROM entries "
            "WHERE thread = ? AND seq = 2",
            (thread,),
        )

    assert refused(scene.after(edit))["load alpha"] is Misplaced


@pytest.mark.parametrize("seq", [2, 6])
def test_another_thread_s_entry_is_refused(scene: TamperedStore, seq: int) -> None:
    """An entry of beta in alpha's place, with its blobs: thread and name are signed."""
    alpha, beta = scene.thread_id("alpha"), scene.thread_id("beta")
    found = refused(scene.after(lambda db: _copy(db, (beta, seq), (alpha, seq))))

    assert found["history alpha"] is Misplaced
    assert found[f"load alpha a-{0 if seq == 2 else 3}"] is Misplaced
    assert not [read for read in found if "beta" in read]


def test_exchanged_threads_are_refused(scene: TamperedStore) -> None:
    """All rows of two threads under each other's id: the ids inside do not agree."""
    alpha, beta = scene.thread_id("alpha"), scene.thread_id("beta")

    def edit(database: sqlite3.Connection) -> None:
        for table in ("entries", "blobs"):
            sql = f"UPDATE {table} SET thread = ? WHERE thread = ?"  # noqa: S608
            for to, at in ((bytes(15) + b"x", alpha), (alpha, beta), (beta, bytes(15) + b"x")):
                database.execute(sql, (to, at))

    found = refused(scene.after(edit))

    assert found["load alpha"] is Misplaced
    assert found["load beta"] is Misplaced


def test_an_entry_of_another_namespace_is_refused(scene: TamperedStore) -> None:
    """The same name in another namespace of the same store is another thread."""
    with scene.open(namespace="other") as store:
        store.thread("alpha").save({"note": "of another tenant"}, world=WORLD)
    with scene.raw() as database:
        rows = database.execute("SELECT thread, body FROM entries WHERE seq = 0").fetchall()
    both = [thread for thread, body in rows if b'"name":"alpha"' in body]
    with scene.open() as store:
        store.thread("alpha").load()
    (other,) = [thread for thread in both if len(entry_rows_of(scene, thread)) == 3]
    (own,) = [thread for thread in both if thread != other]

    def edit(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM entries WHERE thread = ? AND seq > 2", (own,))
        for seq in range(3):
            _copy(database, (other, seq), (own, seq))

    scene.commit(edit)
    found = refused(scene.read())

    assert issubclass(found["load alpha"], Tampered) or found["load alpha"].code == "rolled-back"
    assert "load beta" not in found


def entry_rows_of(scene: TamperedStore, thread: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """The entries of a thread."""
    with scene.raw() as database:
        return entry_rows(database, thread)


def test_another_store_in_the_place_of_this_one_is_refused(
    scene: TamperedStore, tmp_path: Path
) -> None:
    """A whole genuine store of the same user, with threads of the same names."""
    other = TamperedStore.make(tmp_path / "elsewhere")
    with other.open() as store:
        for name in scene.truth:
            store.thread(name).save({"note": "another store"})
    scene.require_sound()
    scene.put_back({scene.path.name: other.path.read_bytes()})
    found = refused(scene.read())

    assert set(found.values()) == {Misplaced}
    assert "open" in found


def test_a_thread_of_another_store_is_refused(scene: TamperedStore, tmp_path: Path) -> None:
    """Entries of another store under the id of a thread of this one."""
    other = TamperedStore.make(tmp_path / "elsewhere")
    with other.open() as store:
        for number in range(5):
            store.thread("alpha").save({"note": number}, world=WORLD)
    with other.raw() as database:
        rows = contents(database)["entries"]
    theirs, mine = other.thread_id("alpha"), scene.thread_id("alpha")

    def edit(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM entries WHERE thread = ?", (mine,))
        for row in rows:
            if row[1] == theirs:
                database.execute(
                    "INSERT INTO entries (thread, seq, header, seals, body, payload) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (mine, *row[2:]),
                )

    found = refused(scene.after(edit))

    # Their keys are not in this store's roster; were they, the store's id would not agree.
    assert found["load alpha"] in {NotTrusted, Misplaced}
    assert found["history alpha"] in {NotTrusted, Misplaced}
    assert Missing not in found.values()
