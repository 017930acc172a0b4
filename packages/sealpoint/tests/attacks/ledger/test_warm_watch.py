# SPDX-License-Identifier: Apache-2.0
"""A store that is edited under a watch which has verified every thread before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.api import StoreWatch
from sealpoint.errors import StorageUnavailable
from sealpoint.gate import ThreadPhase
from sealpoint.storage import Record
from tests.attacks.ledger.attacked_store import AttackedStore

_BACKENDS = ("memory", "sqlite", "file", "postgres")
_NAMES = ("alpha", "beta", "gamma")


@pytest.fixture(params=_BACKENDS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AttackedStore]:
    """Three threads of six checkpoints each."""
    made = AttackedStore.planned(tmp_path, request.param)
    for name in _NAMES:
        for number in range(6):
            made.save(name, number)
    yield made
    made.world.remove()


@pytest.fixture
def watch(scene: AttackedStore) -> StoreWatch:
    """A watch that has seen them all."""
    made = scene.world.open(None, read_only=True).watch()
    made.refresh()
    assert made.state.complete
    assert made.counts()[ThreadPhase.SAVED] == len(_NAMES)
    return made


def _found(watch: StoreWatch) -> dict[str, str | None]:
    """What does not verify, in the list and as findings alike."""
    page = watch.page(phase=ThreadPhase.UNREADABLE)
    listed = {each.name: each.code for each in page.threads}
    assert listed == {each.name: each.code for each in watch.findings()}
    assert watch.state.complete is not bool(listed)
    return listed


def _edited(record: Record) -> Record:
    return Record(
        record.header.replace(b"none", b"gone").replace(b'"kind"', b'"Kind"'),
        record.seals,
        record.body,
        record.payload,
    )


def test_newest_entries_that_were_deleted_are_found_by_the_next_refresh(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """A thread that ends earlier has moved, and ends before what the anchor has seen."""
    rows = scene.rows("beta")
    scene.editor.put_rows(scene.thread("beta"), {seq: rows[seq] for seq in list(rows)[:-1]})
    watch.refresh()

    assert _found(watch) == {"beta": "rolled-back"}
    assert [(each.thread, each.what, each.code) for each in watch.changes(0).events] == [
        ("beta", "finding", "rolled-back")
    ]
    assert watch.page().threads[0].name == "beta"
    assert "the anchor has seen" in (watch.thread("beta").reason or "")

    scene.editor.put_rows(scene.thread("beta"), rows)
    watch.refresh()
    assert _found(watch) == {}
    assert watch.changes(1).events[0].what == "verified"


def test_a_quick_refresh_verifies_what_has_moved_and_leaves_the_rest_to_the_next(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """An edit under a thread that goes on is met at once, and one that moves nothing by another."""
    for name in ("alpha", "beta"):
        rows = scene.rows(name)
        scene.editor.put_rows(scene.thread(name), {seq: rows[seq] for seq in list(rows)[:-1]})
    scene.save("gamma", 6)
    watch.refresh(quick=True)
    assert _found(watch) == {}
    assert [(each.thread, each.what) for each in watch.changes(0).events] == [
        ("gamma", "checkpoint")
    ]
    rows = scene.rows("gamma")
    scene.save("gamma", 7)
    scene.editor.put_rows(scene.thread("gamma"), rows)
    watch.refresh(quick=True)
    assert _found(watch) == {"gamma": "rolled-back"}

    watch.refresh()
    assert _found(watch) == dict.fromkeys(_NAMES, "rolled-back")


def test_what_a_quick_refresh_met_is_found_by_the_next_one_if_it_vanishes(
    scene: AttackedStore, watch: StoreWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was not asked where it ends, and is asked now."""
    monkeypatch.setattr("sealpoint.api._watched_threads.WATCH_PATROL_MAX", 0)
    scene.save("delta", 0)
    watch.refresh(quick=True)
    assert watch.thread("delta").phase is ThreadPhase.SAVED
    scene.editor.put_rows(scene.thread("delta"), {})
    watch.refresh()

    assert set(_found(watch)) == {"delta"}


def test_a_thread_that_vanishes_is_found_by_its_name(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """The anchor still knows it, and the watch still knows how it is called."""
    scene.editor.put_rows(scene.thread("alpha"), {})
    watch.refresh()

    assert set(_found(watch)) == {"alpha"}
    assert _found(watch)["alpha"] in ("rolled-back", "missing")


def test_an_edited_newest_entry_is_found_in_a_while(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """Nothing has moved by its number, but a few threads are compared at each refresh, in turn."""
    rows = scene.rows("gamma")
    last = max(rows)
    scene.editor.put_rows(scene.thread("gamma"), {**rows, last: _edited(rows[last])})
    for _ in range(2):
        watch.refresh()

    assert set(_found(watch)) == {"gamma"}
    scene.editor.put_rows(scene.thread("gamma"), rows)
    watch.refresh()
    assert _found(watch) == {}


def test_a_newest_entry_without_its_body_is_found_in_a_while(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """Its header alone does not say what it says."""
    rows = scene.rows("gamma")
    last = max(rows)
    bare = Record(rows[last].header, rows[last].seals, None, rows[last].payload)
    scene.editor.put_rows(scene.thread("gamma"), {**rows, last: bare})
    for _ in range(2):
        watch.refresh()

    assert _found(watch) == {"gamma": "missing"}


def test_a_newest_entry_with_other_seals_is_found_in_a_while(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """Without its signature nobody else would believe it."""
    rows = scene.rows("gamma")
    last = max(rows)
    sealed = rows[last]
    bare = Record(sealed.header, rows[last - 1].seals, sealed.body, sealed.payload)
    scene.editor.put_rows(scene.thread("gamma"), {**rows, last: bare})
    for _ in range(2):
        watch.refresh()

    assert _found(watch) == {"gamma": "forged"}


def test_what_is_mended_and_then_cut_again_is_found_by_the_next_refresh(
    scene: AttackedStore, watch: StoreWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had a finding is known by where it lies now, not by where it lay then."""
    monkeypatch.setattr("sealpoint.api._watched_threads.WATCH_PATROL_MAX", 0)
    rows = scene.rows("beta")
    cut = {seq: rows[seq] for seq in list(rows)[:-1]}
    scene.editor.put_rows(scene.thread("beta"), cut)
    watch.refresh()
    scene.editor.put_rows(scene.thread("beta"), rows)
    watch.refresh()
    assert _found(watch) == {}
    scene.editor.put_rows(scene.thread("beta"), cut)
    watch.refresh()

    assert _found(watch) == {"beta": "rolled-back"}


def test_planted_entries_are_refused(scene: AttackedStore, watch: StoreWatch) -> None:
    """Those of another thread, and copies of its own, at any distance behind the newest."""
    for name, distance in (("alpha", 1), ("beta", 40)):
        rows = scene.rows(name)
        last = max(rows)
        scene.editor.put_rows(scene.thread(name), {**rows, last + distance: rows[last]})
    planted = list(scene.rows("gamma").values())
    scene.world.open().storage.inner.append(bytes(range(16)), 0, planted, blobs={})
    watch.refresh()

    assert _found(watch) == {"alpha": "misplaced", "beta": "missing"}
    assert watch.page().total == len(_NAMES)


def test_a_thread_that_was_cut_in_the_middle_is_left_to_a_full_verification(
    scene: AttackedStore, watch: StoreWatch
) -> None:
    """What lies below an entry that did not move is not read again by a watch."""
    rows = scene.rows("beta")
    scene.editor.put_rows(scene.thread("beta"), {s: r for s, r in rows.items() if s != 3})
    watch.refresh()
    report = scene.world.open(None, read_only=True).verify()

    assert _found(watch) == {}
    assert [each.code for each in report.findings if each.refuses] == ["missing"]


def test_an_unanchored_thread_is_told_from_a_missing_one(tmp_path: Path) -> None:
    """The anchor forgets a name: the thread is genuine, and nobody knows how new it is."""
    scene = AttackedStore.planned(tmp_path, "memory")
    scene.save("alpha", 0)
    scene.save("beta", 0)
    watch = scene.world.open(None, read_only=True).watch()
    watch.refresh()
    scene.world.forget("beta")
    watch.refresh()

    assert _found(watch) == {"beta": "unanchored"}
    assert watch.thread("alpha").phase is ThreadPhase.SAVED
    scene.world.close()


def test_an_unanchored_thread_that_is_taken_away_is_shown_no_more(tmp_path: Path) -> None:
    """What is in neither store nor anchor is forgotten, though nothing else has moved."""
    scene = AttackedStore.planned(tmp_path, "memory")
    scene.save("alpha", 0)
    scene.save("beta", 0)
    thread = scene.thread("beta")
    scene.world.forget("beta")
    watch = scene.world.open(None, read_only=True).watch()
    watch.refresh()
    assert _found(watch) == {"beta": "unanchored"}
    scene.editor.put_rows(thread, {})
    watch.refresh()

    assert _found(watch) == {}
    scene.world.close()


def test_an_unanchored_thread_that_was_hidden_is_found_in_a_while(tmp_path: Path) -> None:
    """Bytes that were no thread are made one in their place."""
    scene = AttackedStore.planned(tmp_path, "memory")
    scene.save("alpha", 0)
    scene.save("beta", 0)
    thread, rows = scene.thread("beta"), scene.rows("beta")
    scene.editor.put_rows(thread, {**rows, 0: _edited(rows[0])})
    scene.world.forget("beta")
    watch = scene.world.open(None, read_only=True).watch()
    watch.refresh()
    assert _found(watch) == {}
    scene.editor.put_rows(thread, rows)
    for _ in range(2):
        watch.refresh()

    assert _found(watch) == {"beta": "unanchored"}
    scene.world.close()


def test_what_a_refresh_found_that_was_broken_off_is_compared_again(tmp_path: Path) -> None:
    """It is put back as it was before, so that nothing has moved since the last that ended."""
    scene = AttackedStore.planned(tmp_path, "memory")
    for name in _NAMES:
        scene.save(name, 0)
    thread, slot = scene.thread("alpha"), scene.world.slot("alpha")
    rows, position = scene.rows("alpha"), scene.world.anchored._positions.pop(slot)
    scene.editor.put_rows(thread, {})
    store = scene.world.open(None, read_only=True)
    watch = store.watch()
    watch.refresh()
    assert watch.page().total == len(_NAMES) - 1
    scene.save("beta", 1)
    scene.editor.put_rows(thread, rows)
    scene.world.anchored._positions[slot] = position

    looks = watch._threads.bring_up_to_date()
    while slot not in watch._threads._known or watch._threads._known[slot].look is None:
        next(looks)
    del looks
    scene.editor.put_rows(thread, {})
    del scene.world.anchored._positions[slot]
    watch.refresh(quick=True)

    assert [each.name for each in watch.page(by_name=True).threads] == ["beta", "gamma"]
    assert watch.thread("beta").checkpoint == "beta-1"
    scene.world.close()


def test_a_thread_that_has_two_slots_is_shown_once(tmp_path: Path) -> None:
    """As it is under the slot of its name; a quick refresh meets it there, and so does the next."""
    scene = AttackedStore.planned(tmp_path, "memory")
    scene.save("alpha", 0)
    positions = scene.world.anchored._positions
    positions[scene.world.slot("other")] = positions[scene.world.slot("alpha")]
    watch = scene.world.open(None, read_only=True).watch()
    watch.refresh()
    scene.save("alpha", 1)
    watch.refresh(quick=True)
    watch.refresh()

    assert [each.checkpoint for each in watch.page().threads] == ["alpha-1"]
    scene.world.close()


def test_an_anchor_that_is_behind_is_no_damage_and_stays_behind(tmp_path: Path) -> None:
    """A watch reads: it does not bring the anchor to what it has verified."""
    scene = AttackedStore.planned(tmp_path, "memory")
    scene.save("alpha", 0)
    behind = scene.world.position("alpha")
    scene.save("alpha", 1)
    assert behind is not None
    scene.world.anchored._positions[scene.world.slot("alpha")] = behind
    # Even one that was opened to write.
    store = scene.world.open()
    watch = store.watch()
    for _ in range(3):
        watch.refresh()

    assert watch.state.complete
    assert watch.thread("alpha").checkpoint == "alpha-1"
    assert scene.world.position("alpha") == behind
    assert store.anchor.writes == 0
    scene.world.close()


def test_a_store_that_nobody_can_reach_is_no_finding(scene: AttackedStore) -> None:
    """What was known stays shown, and that it is older is said; then it goes on."""
    store = scene.world.open(None, read_only=True)
    watch = store.watch()
    watch.refresh()
    before = watch.state.refreshed

    def fail() -> None:
        raise StorageUnavailable("store: gone for lunch")

    scene.save("alpha", 6)
    store.storage.listing.before = fail
    with pytest.raises(StorageUnavailable):
        watch.refresh()

    assert watch.findings() == ()
    assert watch.state.failure is not None
    assert watch.state.failure.code == "storage-unavailable"
    assert not watch.state.complete
    assert watch.state.refreshed == before
    assert watch.page().total == len(_NAMES)
    watch.refresh()
    assert watch.state.failure is None
    assert watch.thread("alpha").checkpoint == "alpha-6"
