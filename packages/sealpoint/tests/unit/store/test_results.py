# SPDX-License-Identifier: Apache-2.0
"""Results: what tasks add to a checkpoint, before it is there or after."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sealpoint.errors import Edited, EncodeError, Missing, NotTrusted, Superseded, UsageError
from sealpoint.ledger import CheckpointBody, Kind, Origin, parse_body, parse_header
from sealpoint.storage import Record
from sealpoint.store import Key
from tests.deployment import Deployment
from tests.ledgers import NOW
from tests.unit.store.laned import (
    added,
    check_verified,
    cold,
    everywhere,
    put,
    refused,
    results,
    saved,
    tasks,
    values,
)
from tests.unit.store.retained import enrolled, state_of


def _checkpoint(world: Deployment, seq: int) -> CheckpointBody:
    with_body = world.open().storage.inner.read(world.thread_id("t"), seq)
    assert with_body is not None
    assert with_body.body is not None
    header = parse_header(with_body.header)
    assert header.kind is Kind.CHECKPOINT
    body: CheckpointBody = parse_body(header.kind, header.body, with_body.body)
    return body


def test_results_are_shown_with_their_checkpoint(world: Deployment) -> None:
    """In the order they were added, with whose they are and what they wait for."""
    store = world.open()
    saved(
        store.thread("t"),
        put(1, "1"),
        results({"x": 1}, "1", "a", path="~pull, a"),
        results([2], "1", "b", question={"pay": 5}),
        results("yes", "1", "c", answers=True),
    )

    for thread in everywhere(world, store):
        found = thread.adapter.snapshot()
        assert found is not None
        assert [(each.task, each.path, each.value) for each in found.results] == [
            ("a", "~pull, a", {"x": 1}),
            ("b", "", [2]),
            ("c", "", "yes"),
        ]
        assert [each.question for each in found.results] == [None, {"pay": 5}, None]
        assert [each.answers for each in found.results] == [False, False, True]
        assert [each.ref.seq for each in found.results] == [3, 4, 5]
    check_verified(world)


def test_results_of_one_checkpoint_are_not_those_of_the_next(world: Deployment) -> None:
    """Each has its own, whichever is asked for."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"), results("for one", "1"), put(2, "2"))
    saved(store.thread("t"), results("late", "1"))

    for thread in everywhere(world, store):
        assert values(thread) == []
        assert values(thread, "", "1") == ["for one", "late"]


def test_results_may_come_before_their_checkpoint(world: Deployment) -> None:
    """The checkpoint says where the first of them lies; until then nobody is shown them."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"))
    (first,) = added(store.thread("t"), results("early", "2", "a"))
    assert cold(world).adapter.snapshot("", "2") is None
    (_, seq) = added(store.thread("t"), results("early too", "2", "b"), put(2, "2"))
    saved(store.thread("t"), results("late", "2", "c"))

    assert _checkpoint(world, seq).since == first
    for thread in everywhere(world, store):
        assert tasks(thread, "", "2") == ["a", "b", "c"]
    check_verified(world)


def test_results_come_before_several_checkpoints(world: Deployment) -> None:
    """Others of the lane may lie in between, in the first group of the thread too."""
    store = world.open()
    saved(store.thread("t"), results("early", "2"), put(1, "1"), put(2, "2"))
    saved(store.thread("t"), results("early", "5"), put(3, "3"), put(4, "4"), put(5, "5"))

    for thread in everywhere(world, store):
        assert values(thread, "", "2") == ["early"]
        assert values(thread, "", "5") == ["early"]


def test_a_checkpoint_without_early_results_says_nothing(world: Deployment) -> None:
    """Its field is not written, and neither are those of lanes and copies."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"), results("x", "1"), put(2, "2"))
    body = _checkpoint(world, 4)

    assert (body.since, body.again, body.lane, body.origin) == (None, None, "", None)


@pytest.mark.parametrize("who", ["same handle", "another"])
def test_superseding_keeps_all_results(world: Deployment, who: str) -> None:
    """Those from before it was there, those added since, and those added later."""
    store = world.open()
    saved(store.thread("t"), put(0, "0"), results("before", "1"))
    saved(store.thread("t"), put(1, "1"), results("after", "1"))
    thread = store.thread("t") if who == "same handle" else world.open().thread("t")
    saved(thread, put(11, "1"), results("later", "1"))
    saved(world.open().thread("t"), put(111, "1"))

    for reader in (thread, cold(world), world.open().thread("t")):
        assert reader.adapter.snapshot("", "1").state == 111  # type: ignore[union-attr]
        assert values(reader, "", "1") == ["before", "after", "later"]


def test_a_warm_reader_sees_what_a_cold_one_sees(world: Deployment) -> None:
    """Results that no checkpoint's stretch reaches are shown to nobody, known or not."""
    first, second = world.open(), world.open()
    saved(first.thread("t"), results("of a session that ended", "2"), put(1, "1"))
    second.thread("t").load()
    saved(second.thread("t"), put(2, "2"))

    assert values(first.thread("t"), "", "2") == values(cold(world), "", "2")


@pytest.mark.parametrize("warm", [False, True])
def test_results_come_from_the_verified_chain_alone(memory: Deployment, *, warm: bool) -> None:
    """A row that is gone is missing, and one that was slipped in or edited is refused."""
    store = memory.open()
    saved(store.thread("t"), put(1, "1"))
    (seq,) = added(store.thread("t"), results("real", "1"))
    saved(store.thread("t"), put(2, "2"))
    reader = memory.open(None, read_only=True).thread("t")
    if warm:
        assert values(reader, "", "1") == ["real"]
    thread, record = memory.thread_id("t"), memory.record("t", seq)
    memory.put(thread, seq, None)

    with pytest.raises(Missing):
        values(reader, "", "1")
    memory.put(thread, seq, Record(record.header, record.seals, b"{}", record.payload))
    with pytest.raises(Edited):
        values(cold(memory), "", "1")
    memory.put(thread, seq, Record(record.header, record.seals, record.body, b"other"))
    with pytest.raises(Edited):
        values(reader, "", "1")
    memory.put(thread, seq, record)
    assert values(reader, "", "1") == ["real"]


def test_results_are_checked_like_states(world: Deployment) -> None:
    """What the registry does not allow is refused, and nothing is written."""
    store = world.open()
    saved(store.thread("t"), put(1, "1"))
    (outcome,) = store.thread("t").adapter.commit([results(object(), "1")])

    assert isinstance(outcome, EncodeError)
    assert store.storage.groups == [3]


@pytest.mark.parametrize("field", ["checkpoint", "task", "path", "lane"])
def test_names_of_results_have_bounds(field: str) -> None:
    """Whatever they are called goes into the ledger, so it is checked first."""
    options: dict[str, Any] = {"checkpoint": "1", "task": "t", field: "x" * 5000}
    with pytest.raises(UsageError):
        results(1, **options)


def test_results_share_what_their_checkpoint_holds(world: Deployment) -> None:
    """A task that hands a whole state on stores it no second time."""
    store = world.open()
    saved(store.thread("t"), put(state_of(1), "1"))
    before = len(store.storage.given)
    saved(store.thread("t"), results(state_of(1), "1"))

    assert len(store.storage.given) <= before + 1
    assert values(cold(world)) == [state_of(1)]


def test_results_begin_a_session(world: Deployment) -> None:
    """A handle whose first entry they are takes the thread over as a save does."""
    first, second = world.open(), world.open()
    saved(first.thread("t"), put(1, "1"))
    saved(second.thread("t"), results("mine", "1"))
    (outcome,) = first.thread("t").adapter.commit([results("late", "1")])

    assert isinstance(outcome, Superseded)
    assert second.storage.groups == [2]
    assert values(cold(world)) == ["mine"]


def test_results_of_somebody_else_are_refused(world: Deployment) -> None:
    """They are the owner's, as checkpoints are."""
    enrolled(world)
    saved(world.open().thread("t"), put(1, "1"))

    assert refused(world.open("other").thread("t").adapter.commit([results(1, "1")])) == [
        "not-owner"
    ]
    officer = world.open("officer").thread("t").adapter.commit([results(1, "1")])
    assert isinstance(officer[0], NotTrusted)


def test_a_snapshot_does_not_let_a_lost_handle_go_on(world: Deployment) -> None:
    """Only a load does: reading beside a run must not arm it again."""
    first, second = world.open(), world.open()
    saved(first.thread("t"), put(1, "1"))
    saved(second.thread("t"), put(2, "2"))
    for _ in range(2):
        assert first.thread("t").adapter.snapshot().state == 2  # type: ignore[union-attr]
        assert refused(first.thread("t").adapter.commit([put(3, "3")])) == ["superseded"]
    first.thread("t").load()

    assert refused(first.thread("t").adapter.commit([put(3, "3")])) == [None]


def test_pruned_checkpoints_take_their_results_along(world: Deployment) -> None:
    """Those of kept checkpoints stay, and so do those whose checkpoint is still to come."""
    store, cron = world.open(), world.open()
    thread = store.thread("t")
    saved(thread, put(state_of(0), "0"), results([state_of(0), "r0"], "0"))
    saved(thread, put(state_of(1), "1"), results([state_of(1), "r1"], "1"))
    saved(thread, put(1, "1", "sub"), results("inner", "1", lane="sub"), results("early", "2"))
    pruned = cron.thread("t").prune(keep_last=1)
    saved(thread, put(2, "2"))

    assert [(ref.lane, ref.id) for ref in pruned.pruned] == [("", "0")]
    for reader in (thread, cron.thread("t"), cold(world)):
        assert reader.adapter.snapshot("", "0") is None
        assert values(reader, "", "1") == [[state_of(1), "r1"]]
        assert values(reader, "", "2") == ["early"]
        assert values(reader, "sub") == ["inner"]
    check_verified(world)
    assert cron.gc(dry_run=True).blobs == 0


def test_a_pruned_name_can_be_saved_anew(world: Deployment) -> None:
    """What was given up does not come back with it, and its absence is no alarm."""
    store = world.open()
    saved(store.thread("t"), put(0, "0"), results("gone", "0"), put(1, "1"))
    store.thread("t").prune(keep_last=1)
    saved(store.thread("t"), put("anew", "0"))

    for thread in everywhere(world, store):
        assert thread.adapter.snapshot("", "0").state == "anew"  # type: ignore[union-attr]
        assert values(thread, "", "0") == []
    assert cold(world).adapter.snapshot().ref.id == "1"  # type: ignore[union-attr]
    check_verified(world)


def test_a_prune_keeps_the_newest_by_rank_and_the_last_written(world: Deployment) -> None:
    """An older one that was saved once more is not the newest; who wrote it counts on it."""
    store, cron = world.open(), world.open()
    thread = store.thread("t")
    saved(thread, put("zero", "0"), put(state_of(1), "1"), put("two", "2"))
    saved(thread, put({**state_of(1), "more": 1}, "1"))
    pruned = cron.thread("t").prune(keep_last=1)
    saved(thread, put({**state_of(1), "more": 2}, "3"))

    assert [ref.id for ref in pruned.pruned] == ["0"]
    assert cold(world).adapter.snapshot("", "2").state == "two"  # type: ignore[union-attr]
    assert cold(world).load().state == {**state_of(1), "more": 2}
    check_verified(world)


def test_copies_say_what_they_are_copies_of(world: Deployment) -> None:
    """The origin is in the sealed body, and makes no difference to what is read."""
    store = world.open()
    origin = Origin(thread="ab" * 16, entry="cd" * 32, at=NOW)
    (seq, _) = added(store.thread("t"), put(1, "1", origin=origin), results(2, "1", origin=origin))

    assert _checkpoint(world, seq).origin == origin
    assert values(cold(world)) == [2]


def test_the_time_of_an_origin_is_sealed_in_utc(world: Deployment) -> None:
    """One instant has one spelling, whatever the zone of the caller."""
    there = timezone(timedelta(hours=2))
    origin = Origin(thread="ab" * 16, entry="cd" * 32, at=NOW.astimezone(there))
    (seq,) = added(world.open().thread("t"), put(1, "1", origin=origin))

    assert cold(world).load().state == 1
    found = _checkpoint(world, seq).origin
    assert found is not None
    assert (found.at, found.at.tzinfo) == (NOW, UTC)
    check_verified(world)


_BAD_ORIGINS: dict[str, Any] = {
    "no origin": "a text",
    "no time": Origin(thread="ab" * 16, entry="cd" * 32, at=None),  # type: ignore[arg-type]
    "a time without a zone": Origin(thread="ab" * 16, entry="cd" * 32, at=NOW.replace(tzinfo=None)),
    "a time before the first": Origin(
        thread="ab" * 16,
        entry="cd" * 32,
        at=datetime.min.replace(tzinfo=timezone(timedelta(hours=2))),
    ),
    "a thread in upper case": Origin(thread="AB" * 16, entry="cd" * 32, at=NOW),
    "a thread with its prefix": Origin(thread="thread:" + "ab" * 16, entry="cd" * 32, at=NOW),
    "no thread": Origin(thread=None, entry="cd" * 32, at=NOW),  # type: ignore[arg-type]
    "a short entry": Origin(thread="ab" * 16, entry="cd" * 31, at=NOW),
    "an entry with a line after it": Origin(thread="ab" * 16, entry="cd" * 32 + "\n", at=NOW),
}


@pytest.mark.parametrize("origin", _BAD_ORIGINS.values(), ids=_BAD_ORIGINS)
def test_an_origin_that_no_reader_takes_is_never_signed(origin: Any) -> None:
    """The draft is refused: once it was signed, nobody could read the thread any more."""
    with pytest.raises(UsageError, match="origin"):
        put(1, "1", origin=origin)
    with pytest.raises(UsageError, match="origin"):
        results(1, "1", origin=origin)


def test_an_erasure_takes_results_as_well(world: Deployment) -> None:
    """Nothing of them is left, and a new generation knows nothing of them."""
    enrolled(world)
    store = world.open()
    saved(store.thread("t"), put(1, "1"), results("secret", "1"))
    world.open("officer").thread("t").erase(reason="asked for")
    assert store.thread("t").adapter.snapshot() is None
    assert store.thread("t").adapter.delete([Key("", "1")]) is None
    assert refused(store.thread("t").adapter.commit([put(1, "1")])) == ["superseded"]
    fresh = world.open()
    saved(fresh.thread("t"), put(2, "1"))

    for thread in everywhere(world, fresh):
        assert thread.adapter.snapshot().state == 2  # type: ignore[union-attr]
        assert values(thread) == []
    check_verified(world)
