# SPDX-License-Identifier: Apache-2.0
"""Two writers of one thread, and one id for two things."""

import threading
from collections.abc import Callable

import pytest

from sealpoint.errors import Edited, HeadMoved, IdReused, SealpointError, Superseded
from tests.attacks.ledger.tampered_store import WORLD, Saved, TamperedStore, refused


def test_two_sessions_cannot_both_go_on(scene: TamperedStore) -> None:
    """The later session wins; the earlier worker is refused until it has loaded again."""
    with scene.open() as one, scene.open() as two:
        scene.save(one, "alpha", {"by": "one"}, id="one")
        two.thread("alpha").load()
        scene.save(two, "alpha", {"by": "two"}, id="two")
        for _ in range(3):
            with pytest.raises((Superseded, HeadMoved)):
                one.thread("alpha").save({"by": "one again"}, world=WORLD)
        one.thread("alpha").load()
        scene.save(one, "alpha", {"by": "one again"}, id="three")

    assert not refused(scene.read())


def test_of_many_writers_at_once_each_save_is_in_the_history_or_refused(
    scene: TamperedStore,
) -> None:
    """Six workers race; what was acknowledged is there, once, and nothing else is."""
    saved: list[Saved] = []
    lost: list[SealpointError] = []
    lock = threading.Lock()
    start = threading.Barrier(6)

    def work(worker: int) -> None:
        with scene.open() as store:
            start.wait()
            for turn in range(6):
                state = {"worker": worker, "turn": turn}
                try:
                    ref = store.thread("alpha").save(state, id=f"w{worker}-{turn}", world=WORLD)
                except (HeadMoved, Superseded) as error:
                    lost.append(error)
                    store.thread("alpha").load()
                else:
                    with lock:
                        saved.append(Saved(ref, state, WORLD))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    scene.truth["alpha"] += sorted(saved, key=lambda each: each.ref.seq)

    assert len(saved) + len(lost) == 36
    assert len({each.ref.seq for each in saved}) == len(saved)
    assert not refused(scene.read())


def _edited_then_healed(scene: TamperedStore, act: Callable[[], object]) -> None:
    """Edit the newest body, let a worker meet it, and take the edit back."""
    sql = "UPDATE entries SET body = ? WHERE number = (SELECT max(number) FROM entries)"
    with scene.raw() as database:
        (body,) = database.execute(
            "SELECT body FROM entries ORDER BY number DESC LIMIT 1"
        ).fetchone()
        database.execute(sql, (body[:-1],))
    with pytest.raises((Edited, Superseded)):
        act()
    with scene.raw() as database:
        database.execute(sql, (body,))


def test_a_passing_edit_does_not_make_a_worker_forget_that_it_lost(scene: TamperedStore) -> None:
    """An edit that fails the worker's look at others' entries must not let it write over them."""
    with scene.open() as one, scene.open() as two:
        late = one.thread("gamma")
        scene.save(one, "gamma", {"by": "one"}, id="g-0")
        two.thread("gamma").load()
        scene.save(two, "gamma", {"by": "two"}, id="g-1")
        _edited_then_healed(scene, lambda: late.save({"by": "one, too late"}, world=WORLD))
        for _ in range(2):
            with pytest.raises((Superseded, HeadMoved)):
                late.save({"by": "one, too late"}, id="g-1", world=WORLD)

    assert not refused(scene.read())


def test_a_passing_edit_does_not_hide_a_checkpoint_from_an_open_store(scene: TamperedStore) -> None:
    """What could not be read once is found by its id as soon as it can be."""
    with scene.open() as one, scene.open() as two:
        scene.save(one, "gamma", {"by": "one"}, id="g-0")
        scene.save(two, "gamma", {"by": "two"}, id="g-1")
        late = one.thread("gamma")
        _edited_then_healed(scene, late.load)

        assert late.load("g-1").state == {"by": "two"}
        with pytest.raises(IdReused):
            late.save({"by": "somebody else"}, id="g-1", world=WORLD)


def test_an_id_is_one_thing_only(scene: TamperedStore) -> None:
    """Saving the same again gives the checkpoint that is there; anything else is refused."""
    with scene.open() as store:
        thread = store.thread("gamma")
        first = thread.save({"paid": 1}, id="payment", metadata={"to": "a"}, world={"tool": "pay"})
        # Where none is declared, it is that of the session.
        for again in ({"tool": "pay"}, None):
            same = thread.save({"paid": 1}, id="payment", metadata={"to": "a"}, world=again)
            assert same == first
        for state, metadata, world in (
            ({"paid": 2}, {"to": "a"}, {"tool": "pay"}),
            ({"paid": 1}, {"to": "b"}, {"tool": "pay"}),
            ({"paid": 1}, {"to": "a"}, {"tool": "other"}),
            ({"paid": True}, {"to": "a"}, {"tool": "pay"}),
        ):
            with pytest.raises(IdReused):
                thread.save(state, id="payment", metadata=metadata, world=world)

    with scene.open() as store, pytest.raises(IdReused):
        store.thread("gamma").save({"paid": 3}, id="payment", world={"tool": "pay"})


def test_an_id_does_not_become_free_when_its_entry_is_hidden(scene: TamperedStore) -> None:
    """Without the entry of an id, a save under it is refused: no index says that it is free."""
    with scene.open() as store:
        store.thread("alpha").save({"paid": 1}, id="payment", world=WORLD)
        store.thread("alpha").save({"paid": 1}, id="receipt", world=WORLD)
    scene.commit(
        lambda database: database.execute(
            "DELETE FROM entries WHERE instr(CAST(body AS TEXT), '\"payment\"')"
        )
    )

    with scene.open() as store, pytest.raises(SealpointError) as caught:
        store.thread("alpha").save({"paid": 2}, id="payment", world=WORLD)
    assert caught.value.code == "missing"
