# SPDX-License-Identifier: Apache-2.0
"""Pruning: which states go, that what is kept stays whole, and that nobody is held up by it."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from sealpoint import CheckpointRef
from sealpoint.errors import (
    Edited,
    HeadMoved,
    IdReused,
    NotOwner,
    NotTrusted,
    Pruned,
    ReadOnly,
    Superseded,
    UnknownCheckpoint,
    UnknownThread,
    UsageError,
)
from sealpoint.ledger import Kind, PruneBody, parse_body, parse_header
from sealpoint.world import World as RunWorld
from tests.deployment import Deployment, Opened
from tests.unit.store.retained import (
    check_whole,
    contents,
    enrolled,
    filled,
    kept_ids,
    needed,
    state_of,
    stored,
)

Rule = Callable[[Sequence[CheckpointRef]], dict[str, Any]]


def _newest_prune(store: Opened, name: str = "t") -> PruneBody:
    thread = store.thread(name)._state.chain.thread
    for _, record in store.storage.inner.scan(thread, 0, descending=True):
        header = parse_header(record.header)
        if header.kind is Kind.PRUNE:
            body: PruneBody = parse_body(Kind.PRUNE, header.body, record.body or b"")
            return body
    raise AssertionError


# ---------------------------------------------------------------------- which ones go

_RULES: dict[str, tuple[Rule, str]] = {
    "the last one": (lambda _: {"keep_last": 1}, "5"),
    "the last three": (lambda _: {"keep_last": 3}, "345"),
    "more than there are": (lambda _: {"keep_last": 99}, "012345"),
    "since a time": (lambda refs: {"keep_since": refs[4].time}, "45"),
    "since just after a time": (
        lambda refs: {"keep_since": refs[4].time + timedelta(microseconds=1)},
        "5",
    ),
    "since tomorrow": (lambda refs: {"keep_since": refs[5].time + timedelta(days=1)}, "5"),
    "by id": (lambda _: {"keep": ["c1", "c3"]}, "135"),
    "by reference": (lambda refs: {"keep": [refs[0]]}, "05"),
    "one id without a list": (lambda _: {"keep": "c2"}, "25"),
    "one reference without a list": (lambda refs: {"keep": refs[2]}, "25"),
    "the newest by id": (lambda _: {"keep": ["c5"]}, "5"),
    "any of several rules": (
        lambda refs: {"keep_last": 2, "keep_since": refs[3].time, "keep": ["c0", refs[0]]},
        "0345",
    ),
}


@pytest.mark.parametrize(("rule", "expected"), _RULES.values(), ids=_RULES)
def test_a_checkpoint_stays_if_any_rule_keeps_it(
    world: Deployment, rule: Rule, expected: str
) -> None:
    """The newest always stays; the others are listed without their state, and refuse to load."""
    store = world.open()
    refs = filled(store)
    done = store.thread("t").prune(**rule(refs))
    gone = [ref for ref in refs if ref.id.removeprefix("c") not in expected]

    assert kept_ids(store) == [f"c{number}" for number in expected]
    assert [ref.id for ref in done.pruned] == [ref.id for ref in reversed(gone)]
    assert all(ref.pruned for ref in done.pruned)
    assert done.entry == (8 if gone else None)
    assert (done.blobs > 0) == bool(gone)
    for reader in (store, world.open(None, read_only=True)):
        assert [ref.id for ref in reader.thread("t").history()] == [f"c{n}" for n in range(6)][::-1]
        for ref in gone:
            for name in (ref, ref.id):
                with pytest.raises(Pruned, match=f"entry {ref.seq} of thread 't'"):
                    reader.thread("t").load(name)
    check_whole(world)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({}, "say what to keep, with keep_last, keep_since or keep"),
        ({"keep": []}, "say what to keep"),
        ({"keep_last": 0}, "keep_last: expected 1 or more, found 0"),
        ({"keep_last": -1}, "found -1"),
        ({"keep_since": datetime(2026, 1, 1)}, "the time needs a zone"),  # noqa: DTZ001
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(
    world: Deployment, rule: dict[str, Any], why: str
) -> None:
    """Nothing is given up where nobody said what to keep."""
    store = world.open()
    filled(store, 2)
    before = contents(store)

    with pytest.raises(UsageError, match=why):
        store.thread("t").prune(**rule)
    assert contents(store) == before


def test_a_checkpoint_to_keep_must_be_there_with_its_state(world: Deployment) -> None:
    """A typing error must not cost the state that somebody wanted to keep."""
    store = world.open()
    filled(store, 4)

    with pytest.raises(UnknownCheckpoint, match="it has no checkpoint 'c9' with its state"):
        store.thread("t").prune(keep=["c1", "c9"])
    assert kept_ids(store) == ["c0", "c1", "c2", "c3"]
    store.thread("t").prune(keep=["c1"])
    with pytest.raises(UnknownCheckpoint, match="'c0'"):
        store.thread("t").prune(keep=["c0"])
    with pytest.raises(UnknownThread):
        store.thread("nobody").prune(keep_last=1)


def test_later_prunes_bring_nothing_back(world: Deployment) -> None:
    """Each prune says all that is gone so far, whatever it keeps itself."""
    store = world.open()
    filled(store, 14)  # positions 2 to 15
    thread = store.thread("t")
    thread.prune(keep=["c3", "c6"], keep_last=2)
    first = _newest_prune(store)
    thread.prune(keep=["c6"], keep_last=2)
    second = _newest_prune(store)
    filled(store, 3, first=14)
    thread.prune(keep_last=2, keep=["c6"])

    assert (first.before, first.kept) == (14, (5, 8))
    assert (second.before, second.kept) == (14, (8,)), "9 to 13 stay pruned though 5 is older"
    assert kept_ids(store) == ["c6", "c15", "c16"]
    assert _newest_prune(store).covers(5)
    check_whole(world)


def test_nothing_to_prune_records_nothing(world: Deployment) -> None:
    """A cron job that finds nothing leaves the thread as it is."""
    store = world.open()
    filled(store, 3)
    store.thread("t").prune(keep_last=2)
    before = contents(store)

    for _ in range(2):
        done = store.thread("t").prune(keep_last=2)
        assert (done.pruned, done.blobs, done.size_bytes, done.entry) == ((), 0, 0, None)
    assert contents(store) == before


def test_a_prune_records_its_reason(world: Deployment) -> None:
    """Whoever reads the chain later sees why."""
    store = world.open()
    filled(store, 2)
    store.thread("t").prune(keep_last=1, reason="thirty days are over")

    assert _newest_prune(store).reason == "thirty days are over"
    assert [event.code for event in world.events if event.seq == 4] == ["prune"]


# ---------------------------------------------------------------------- what stays whole


def test_what_states_share_is_kept_and_the_rest_is_freed(world: Deployment) -> None:
    """Blobs of kept states stay, down to the last one; blobs of the others alone are gone."""
    store = world.open()
    filled(store)
    before = stored(store)
    planned = store.thread("t").prune(keep_last=1, keep=["c2"], dry_run=True)
    done = store.thread("t").prune(keep_last=1, keep=["c2"])
    after = stored(store)

    assert set(after) < set(before)
    assert done.blobs == planned.blobs == len(before) - len(after)
    assert done.size_bytes == planned.size_bytes == sum(before.values()) - sum(after.values())
    assert set(after) == needed(world)
    check_whole(world)


@pytest.mark.parametrize("number", range(2))
def test_states_beside_their_entries_go_too(world: Deployment, number: int) -> None:
    """A small state that is not among the blobs is dropped like a large one."""
    store = world.open()
    thread = store.thread("t")
    refs = [thread.save({"small": place}) for place in range(4)]
    kept = refs[number]
    thread.prune(keep=[kept])
    payloads = [
        seq
        for seq, record in store.storage.inner.scan(thread._state.chain.thread, 0)
        if record.payload is not None
    ]

    assert payloads == [kept.seq, refs[-1].seq]
    assert thread.load(kept).state == {"small": number}
    assert world.open().verify().ok


def _large(place: int) -> RunWorld:
    return RunWorld(tools=["x" * 3000, f"tool {place}"])


def test_worlds_of_kept_checkpoints_stay(world: Deployment) -> None:
    """What a run was able to do is kept with its state, and goes with it."""
    store = world.open()
    thread = store.thread("t")
    refs = [thread.save(place, world=_large(place)) for place in range(3)]
    thread.prune(keep=[refs[0]])

    assert len(stored(store)) == 2
    for place in (0, 2):
        assert thread.load(refs[place]).world == _large(place).to_dict()


def test_many_blobs_are_swept_in_batches(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of fresh blobs that are blobs themselves, and more blobs than one batch takes."""
    monkeypatch.setattr("sealpoint.store._garbage_collection._BATCH", 7)
    store = world.open()
    thread = store.thread("t")
    states = [{"n": n, "text": [f"{n} {place} " * 30 for place in range(3000)]} for n in range(3)]
    refs = [thread.save(state) for state in states]
    done = thread.prune(keep=[refs[1]])

    assert done.blobs > 64
    assert store.storage.drops > done.blobs // 7
    for place in (1, 2):
        assert world.open().thread("t").load(refs[place]).state == states[place]
    assert world.open().verify().ok


def test_metadata_times_and_writers_of_pruned_checkpoints_stay(world: Deployment) -> None:
    """Only states go; the history says as much as before."""
    store = world.open()
    refs = filled(store, 4)
    store.thread("t").prune(keep_last=1)
    found = list(world.open().thread("t").history())[::-1]

    for ref, listed in zip(refs, found, strict=True):
        assert (ref.id, ref.seq, ref.time, ref.writer, ref.metadata, ref.entry) == (
            *(listed.id, listed.seq, listed.time, listed.writer, listed.metadata, listed.entry),
        )


def test_a_pruned_state_is_refused_while_its_bytes_are_there(memory: Deployment) -> None:
    """The signed record decides, and not what happens to lie in the store."""
    store = memory.open()
    refs = filled(store, 2)
    blobs, record = memory.blobs("t"), memory.record("t", refs[0].seq)
    store.thread("t").prune(keep_last=1)
    memory.memory.put_blobs(memory.thread_id("t"), blobs)
    memory.put(memory.thread_id("t"), refs[0].seq, record)

    for reader in (store, memory.open()):
        with pytest.raises(Pruned):
            reader.thread("t").load(refs[0])
    assert memory.open().verify().ok


def test_an_id_stays_taken_after_its_state_is_gone(world: Deployment) -> None:
    """Repeating a pruned save changes nothing, and another state under its id is refused."""
    store = world.open()
    refs = filled(store, 3)
    store.thread("t").prune(keep_last=1)
    for reader in (store, world.open()):
        again = reader.thread("t").save(state_of(0), id="c0", metadata={"number": 0})
        with pytest.raises(IdReused):
            reader.thread("t").save(state_of(7), id="c0", metadata={"number": 0})

        assert (again.seq, again.entry, again.pruned) == (refs[0].seq, refs[0].entry, True)
    assert [ref.seq for ref in store.thread("t").history()] == [4, 3, 2]


# ---------------------------------------------------------------------- beside a worker


def test_a_session_goes_on_after_somebody_else_pruned(world: Deployment) -> None:
    """The worker is told nothing, opens no new session, and what it saves is whole."""
    worker, cron = world.open(), world.open()
    filled(worker, 4)
    cron.thread("t").prune(keep_last=1)
    refs = filled(worker, 2, first=4)

    assert worker.storage.groups == [3, 1, 1, 1, 1, 1]
    assert [ref.seq for ref in refs] == [7, 8]
    assert kept_ids(cron) == ["c3", "c4", "c5"]
    check_whole(world)


def test_a_prune_in_the_middle_of_a_save_is_let_pass(world: Deployment) -> None:
    """A save that lost its place to a prune is linked anew and repeated."""
    worker, cron = world.open(), world.open()
    filled(worker, 4)
    worker.storage.appending.before = lambda: cron.thread("t").prune(keep_last=1)
    (ref,) = filled(worker, 1, first=4)

    assert ref.seq == 7
    assert kept_ids(worker) == ["c3", "c4"]
    check_whole(world)


def test_saves_in_the_middle_of_a_prune_are_kept(
    world: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often somebody saves before a batch is dropped, nothing of it goes."""
    monkeypatch.setattr("sealpoint.store._garbage_collection._BATCH", 4)
    worker, cron = world.open(), world.open()
    filled(worker, 4)
    numbers = iter(range(4, 9))

    def save() -> None:
        number = next(numbers, None)
        if number is not None:
            filled(worker, 1, first=number)
            cron.storage.dropping.before = save

    cron.storage.dropping.before = save
    done = cron.thread("t").prune(keep_last=1)

    assert [ref.id for ref in done.pruned] == ["c2", "c1", "c0"]
    assert kept_ids(cron) == ["c3", "c4", "c5", "c6", "c7", "c8"]
    assert cron.gc(dry_run=True).blobs == 0
    check_whole(world)


def test_two_prunes_at_once_agree(world: Deployment) -> None:
    """The one that comes second decides anew; both are recorded, and nothing is brought back."""
    one, two = world.open(), world.open()
    filled(one, 6)
    one.storage.appending.before = lambda: two.thread("t").prune(keep_last=3)
    done = one.thread("t").prune(keep_last=2, keep=["c4"])

    assert [ref.id for ref in done.pruned] == ["c3"]
    assert kept_ids(one) == ["c4", "c5"]
    check_whole(world)


def test_a_prune_during_the_sweep_of_another_is_no_damage(world: Deployment) -> None:
    """A sweep that no longer finds what it took to be living looks again."""
    one, two = world.open(), world.open()
    filled(one, 6)
    one.thread("t").load()

    def prune() -> None:
        two.thread("t").prune(keep_last=1)

    one.storage.fetching.before = prune
    one.thread("t").prune(keep_last=4)

    assert kept_ids(one) == ["c5"]
    check_whole(world)


def test_pruning_ends_no_session_of_ones_own(world: Deployment) -> None:
    """A worker may prune between its saves."""
    store = world.open()
    filled(store, 3)
    store.thread("t").prune(keep_last=1)
    filled(store, 2, first=3)

    assert store.storage.groups == [3, 1, 1, 1, 1, 1]
    check_whole(world)


def test_whoever_had_loaded_may_still_save(world: Deployment) -> None:
    """A prune changes nothing about what is newest, so a reader need not look again."""
    worker, reader = world.open(), world.open()
    filled(worker, 3)
    reader.thread("t").load()
    worker.thread("t").prune(keep_last=1)

    assert filled(reader, 1, first=3)[0].seq == 7
    check_whole(world)


def test_pruning_shows_nobody_the_newest_state(world: Deployment) -> None:
    """A handle that was overtaken is still refused after it has pruned."""
    old, new = world.open(), world.open()
    filled(old, 2)
    filled(new, 2, first=2)
    old.thread("t").prune(keep_last=1)

    with pytest.raises((Superseded, HeadMoved)):
        old.thread("t").save("lost")
    assert kept_ids(old) == ["c3"]


def test_a_load_during_a_prune_is_no_alarm(world: Deployment) -> None:
    """Somebody saves and prunes while a reader fetches: the reader is given the newest."""
    worker, reader = world.open(), world.open()
    refs = filled(worker, 3)

    def overtake() -> None:
        filled(worker, 1, first=3)
        worker.thread("t").prune(keep_last=1)

    reader.storage.fetching.before = overtake
    assert reader.thread("t").load().state == state_of(3)
    reader = world.open()
    reader.storage.fetching.before = lambda: worker.thread("t").save("newest")
    with pytest.raises(Pruned):
        reader.thread("t").load(refs[1])


def test_a_position_that_no_read_shows_does_not_hold_a_prune_up(memory: Deployment) -> None:
    """A damaged index that refuses the append and shows nothing there ends in an error."""
    store = memory.open()
    filled(store, 2)

    def refuse() -> None:
        raise HeadMoved("entry 4: it is there already")

    store.storage.appending.before = refuse
    with pytest.raises(Edited, match="another entry was first, and does not have it"):
        store.thread("t").prune(keep_last=1)


# ---------------------------------------------------------------------- who may, and dry runs


def test_only_the_owner_prunes(world: Deployment) -> None:
    """Another writer, an operator and the privacy officer are refused, and nothing goes."""
    enrolled(world)
    filled(world.open(), 3)
    before = contents(world.open())

    for who, error in (("other", NotOwner), ("operator", NotTrusted), ("officer", NotTrusted)):
        with pytest.raises(error):
            world.open(who).thread("t").prune(keep_last=1)
    assert contents(world.open()) == before


def test_a_store_for_reading_is_not_pruned(world: Deployment) -> None:
    """Neither an entry nor a sweep is written, whether or not there is something to give up."""
    filled(world.open(), 3)
    store = world.open(None, read_only=True)
    before = contents(store)

    for count in (1, 9):
        with pytest.raises(ReadOnly):
            store.thread("t").prune(keep_last=count)
        store.thread("t").prune(keep_last=count, dry_run=True)
    assert contents(store) == before
    assert store.storage.drops == 0


def test_a_dry_run_says_what_would_go_and_changes_nothing(world: Deployment) -> None:
    """It gives the checkpoints, blobs and bytes that the prune after it gives."""
    store = world.open()
    filled(store, 4)
    before = contents(store)
    planned = store.thread("t").prune(keep_last=2, dry_run=True)
    assert contents(store) == before
    done = store.thread("t").prune(keep_last=2)

    assert planned.entry is None
    assert not any(ref.pruned for ref in planned.pruned)
    assert [ref.id for ref in planned.pruned] == [ref.id for ref in done.pruned] == ["c1", "c0"]
    assert (planned.blobs, planned.size_bytes) == (done.blobs, done.size_bytes)


@pytest.mark.parametrize("compact", [False, True])
def test_compacting_can_be_left_for_later(
    world: Deployment,
    compact: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Files are made smaller unless that is left out."""
    store = world.open()
    filled(store, 3)
    store.thread("t").prune(keep_last=1, compact=compact)

    assert store.storage.compactions == int(compact)
