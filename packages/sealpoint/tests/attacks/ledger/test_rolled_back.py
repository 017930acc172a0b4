# SPDX-License-Identifier: Apache-2.0
"""An older copy, another history, or a mixture of both."""

import sqlite3
from typing import Any

import pytest

from sealpoint.api import admin
from sealpoint.errors import Forked, ListIncomplete, Missing, RolledBack, SealpointError
from tests.attacks.ledger.insider import Insider, key_of, replace
from tests.attacks.ledger.tampered_store import WORLD, Saved, TamperedStore, refused


def _grow(scene: TamperedStore, *names: str) -> None:
    with scene.open() as store:
        for name in names:
            scene.save(store, name, {"note": f"{name} went on"}, id=f"{name}-later")


def test_an_older_copy_of_the_whole_store_is_refused(scene: TamperedStore) -> None:
    """All of it genuine, nothing out of place, one checkpoint short."""
    older = scene.copy_of_the_store()
    _grow(scene, "alpha")
    scene.require_sound()
    scene.put_back(older)
    found = refused(scene.read())

    assert {found[read] for read in found if "alpha" in read} == {RolledBack}
    assert found["threads"] is ListIncomplete
    assert not [read for read in found if "beta" in read], "beta did not move meanwhile"


def test_an_older_copy_cannot_be_written_on(scene: TamperedStore) -> None:
    """Going on from a restored backup would be a second history."""
    older = scene.copy_of_the_store()
    _grow(scene, "alpha")
    scene.put_back(older)

    with scene.open() as store, pytest.raises(RolledBack):
        store.thread("alpha").save({"note": "going on"}, world=WORLD)
    assert refused(scene.read())["load alpha"] is RolledBack


def test_an_older_copy_stays_refused_until_the_newest_is_back(scene: TamperedStore) -> None:
    """Trying again does not help, and the right copy heals everything."""
    older = scene.copy_of_the_store()
    _grow(scene, "alpha", "beta")
    newest = scene.copy_of_the_store()
    for _ in range(3):
        scene.put_back(older)
        assert refused(scene.read())["load alpha"] is RolledBack
        assert refused(scene.read(read_only=True))["load beta"] is RolledBack
    scene.put_back(newest)
    assert not refused(scene.read())


def test_an_older_copy_under_an_open_store_is_refused(scene: TamperedStore) -> None:
    """The rows are taken back one by one while a worker has the store open."""
    with scene.open() as store:
        thread = store.thread("alpha")
        ref = thread.save({"note": "newest"}, world=WORLD)
        with scene.raw() as database:
            database.execute("DELETE FROM entries WHERE seq >= ?", (ref.seq - 1,))
        with pytest.raises(RolledBack):
            thread.load()
        with pytest.raises(RolledBack):
            list(thread.history())


def test_a_store_that_always_serves_the_same_head_is_noticed(scene: TamperedStore) -> None:
    """Frozen for one reader while another writes: the anchor that both share tells."""
    frozen = scene.copy_of_the_store()
    for round_ in range(3):
        newest = scene.copy_of_the_store()
        scene.put_back(newest)
        with scene.open() as store:
            scene.save(store, "alpha", {"round": round_}, id=f"round-{round_}")
        newest = scene.copy_of_the_store()
        scene.put_back(frozen)
        assert refused(scene.read())["load alpha"] is RolledBack
        scene.put_back(newest)
    assert not refused(scene.read())


def test_heads_of_different_times_do_not_mix(scene: TamperedStore) -> None:
    """The newest rows of one thread with the older rows of another."""
    older = scene.copy_of_the_store()
    _grow(scene, "alpha", "beta")
    alpha = scene.thread_id("alpha")
    with scene.raw() as database:
        rows = database.execute("SELECT * FROM entries WHERE thread = ?", (alpha,)).fetchall()
        blobs = database.execute("SELECT * FROM blobs WHERE thread = ?", (alpha,)).fetchall()
    scene.require_sound()
    scene.put_back(older)

    def edit(database: sqlite3.Connection) -> None:
        for table, found in (("entries", rows), ("blobs", blobs)):
            places = ", ".join("?" * len(found[0]))
            for row in found:
                sql = f"INSERT OR IGNORE INTO {table} VALUES ({places})"  # noqa: S608
                database.execute(sql, (None, *row[1:]))

    scene.commit(edit)
    found = refused(scene.read())

    assert {found[read] for read in found if "beta" in read} == {RolledBack}
    assert not [read for read in found if "alpha" in read]


def test_an_older_store_chain_is_refused(scene: TamperedStore) -> None:
    """The thread is the newest, the roster is not."""
    older = _roster_rows(scene)
    _add_helper(scene)
    scene.require_sound()

    def edit(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM entries WHERE thread = zeroblob(16) AND seq >= ?", (older,))

    found = refused(scene.after(edit))

    assert set(found.values()) == {RolledBack}
    assert "open" in found


def _roster_rows(scene: TamperedStore) -> int:
    with scene.raw() as database:
        sql = "SELECT count(*) FROM entries WHERE thread = zeroblob(16)"
        (count,) = database.execute(sql).fetchone()
    return int(count)


def _add_helper(scene: TamperedStore) -> None:
    admin(scene.url, **scene.places).keys.create("helper")
    rights: dict[str, Any] = {"roles": ["writer"], "namespaces": ["*"]}
    admin(scene.url, **scene.places).keys.add("helper", person="another", **rights)


@pytest.mark.parametrize("seq", [3, 5, 6])
def test_a_second_genuine_history_is_a_fork(scene: TamperedStore, seq: int) -> None:
    """The owner's own key signed two entries for one position: one of them was anchored."""
    insider = Insider(scene, "alpha")
    record = insider.checkpoint(key_of(scene, "worker"), seq)

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "DELETE FROM entries WHERE thread = ? AND seq > ?", (insider.thread, max(seq, 6))
        )
        replace(database, insider.thread, seq, record)

    found = refused(scene.after(edit))

    assert found["history alpha"] is Forked
    assert seq != 6 or "load alpha" in found


def test_two_clients_cannot_be_given_two_heads(scene: TamperedStore) -> None:
    """One of two heads of the same length went through the anchor; the other is refused."""
    before = scene.copy_of_the_store()
    with scene.open() as store:
        ours = store.thread("alpha").save({"note": "ours"}, id="next", world=WORLD)
    mine = scene.copy_of_the_store()
    anchored = _anchor_bytes(scene)
    # The other client's view, made where the anchor had not seen the first one yet.
    scene.put_back(before)
    insider = Insider(scene, "alpha")
    theirs = insider.checkpoint(key_of(scene, "worker"))
    scene.put_back(mine)

    def edit(database: sqlite3.Connection) -> None:
        database.execute(
            "DELETE FROM entries WHERE thread = ? AND seq > ?", (insider.thread, insider.next_seq)
        )
        replace(database, insider.thread, insider.next_seq, theirs)

    scene.truth["alpha"].append(Saved(ours, {"note": "ours"}, WORLD))
    found = refused(scene.after(edit))

    assert {error for read, error in found.items() if "alpha" in read} <= {RolledBack, Forked}
    assert issubclass(found["load alpha"], SealpointError)
    assert _anchor_bytes(scene) == anchored, "the anchor follows no other history"


def _anchor_bytes(scene: TamperedStore) -> bytes:
    (anchor,) = scene.places["state_dir"].rglob("anchor.slots")
    return bytes(anchor.read_bytes())


def test_a_hole_above_an_older_copy_is_noticed(scene: TamperedStore) -> None:
    """A worker that was open while rows were taken back writes on: nobody is told a lie."""
    with scene.open() as store:
        scene.save(store, "alpha", {"note": "one"}, id="one")
        with scene.raw() as database:
            thread = scene.truth["alpha"][-1].ref.seq
            database.execute("DELETE FROM entries WHERE seq = ?", (thread,))
        scene.save(store, "alpha", {"note": "two"}, id="two")
    found = refused(scene.read())

    assert found["history alpha"] is Missing
    assert found["load alpha one"] is Missing
    assert found.get("load alpha", Missing) is Missing, "nothing else than what was acknowledged"
