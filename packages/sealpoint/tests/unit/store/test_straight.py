# SPDX-License-Identifier: Apache-2.0
"""A save whose rights were checked once for its session writes what a save that checks them does.

Each story is told twice, with the same keys, clock and random bytes: once as it is, once with the
rights checked at every entry and every state encoded as a tree. What was stored, what the anchor
saw, what was told to listeners and what each call came back with, or was refused with, must be the
same.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sealpoint.errors import AnchorUnavailable, HeadMoved, SealpointError, StorageUnavailable
from sealpoint.signing import Role
from sealpoint.store import Outcome, _append_entries, _blobs
from sealpoint.store._append_entries import _admit, _grant
from tests.deployment import Deployment, Opened
from tests.ledgers import identity
from tests.unit.store.ended import end, expire
from tests.unit.store.laned import put, results

_LONG = {"messages": [{"text": "x" * 700, "number": number} for number in range(40)]}


class _Draws:
    """Random bytes that are the same in every telling."""

    def __init__(self) -> None:
        self._drawn = 0

    def __call__(self, size_bytes: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(b"%d" % self._drawn).digest(size_bytes)


class _Story:
    """A deployment with two workers of a pool, and what became of each call."""

    def __init__(self) -> None:
        self.world = Deployment()
        self.told: list[object] = []
        self.store = self.open()
        self.thread = self.store.thread("t")
        self.save(0)

    def open(self, who: str = "worker") -> Opened:
        return self.world.open(who)

    def call(self, call: Callable[[], object]) -> None:
        try:
            self.told.append(call())
        except SealpointError as error:
            self.told.append((type(error), str(error)))
        except KeyboardInterrupt:
            self.told.append(KeyboardInterrupt)

    def save(self, state: Any, **options: Any) -> None:
        self.call(lambda: self.thread.save(state, **options))

    def commit(self, *drafts: Any) -> None:
        self.call(lambda: [_told(each) for each in self.thread.adapter.commit(drafts)])

    def left(self) -> tuple[object, ...]:
        """Everything that can be seen from outside."""
        memory = self.world.memory
        return (
            self.told,
            dict(memory._records),
            dict(memory._blobs),
            dict(self.world.anchored._positions),
            self.world.events,
        )


def _told(outcome: Outcome) -> object:
    if isinstance(outcome, SealpointError):
        return type(outcome), str(outcome)
    return outcome


def _go_on(story: _Story) -> None:
    for number in range(1, 6):
        story.save({"number": number}, metadata={"step": number}, parent="p")
    story.save({"a": "question"}, question={"text": "go on?"})


def _grow_and_shrink(story: _Story) -> None:
    for state in ({"a": 1}, _LONG, _LONG, "x" * 2049, "x" * 2000, b"", [_LONG["messages"][0]]):
        story.save(state)
    story.save(_LONG["messages"])
    story.save(_LONG["messages"][:1])


def _groups(story: _Story) -> None:
    story.commit(put({"n": 1}, "c1"), results([("a", 1)], "c1"), results([("b", 2)], "c1", "other"))
    story.commit(results([("a", 3)], "c1"), put(_LONG, "c2", parent="c1"))
    story.commit(put({"n": 3}, "c3", parent="c2"), put({"n": 4}, "c4"), put({"n": 3}, "c3"))
    story.commit(put({"n": 5}, "in", lane="sub"), put({"n": 6}, "c6"))
    story.commit(put({1, 2}, "c7"), put(object(), "c8"), put({"n": 9}, "c9"))


def _names(story: _Story) -> None:
    story.save({"n": 1}, id="one")
    story.save({"n": 1}, id="one")
    story.save({"n": 2}, id="one")
    story.save({"n": 2})


def _not_allowed(story: _Story) -> None:
    story.save({"object": object()})
    story.save({"n": 1})


def _fenced(story: _Story) -> None:
    story.call(lambda: story.open().thread("t").load().state)
    story.call(lambda: story.open().thread("t").save({"other": 1}))
    for number in range(2):
        story.save({"number": number})
    story.call(lambda: story.thread.load().state)
    story.save({"number": 2})


def _moved_head(story: _Story) -> None:
    story.store.storage.appending.before = lambda: story.open().thread("t").save({"other": 1})
    story.save({"mine": 1})
    story.save({"mine": 2})


def _paused_meanwhile(story: _Story) -> None:
    operator = story.open("operator").thread("t")
    story.store.storage.appending.before = lambda: operator.pause("wait")
    story.save({"mine": 1})
    story.save({"mine": 2})
    story.call(lambda: operator.unpause("go"))
    story.save({"mine": 3})


def _position_of_nothing(story: _Story) -> None:
    story.store.storage.fail(HeadMoved("entry: it is there already"), after=False)
    story.save({"n": 1})
    story.save({"n": 2})


def _paused(story: _Story) -> None:
    operator = story.open("operator").thread("t")
    operator.load()
    operator.pause("wait")
    story.save({"n": 1})
    story.commit(put({"n": 2}, "c1", holds=True), results([("a", 1)], "c1", answers=True))
    operator.unpause("go")
    story.save({"n": 3})


def _another_owner(story: _Story) -> None:
    story.world.enrol(identity("other"))
    story.call(lambda: story.thread.handoff(to="other", reason="holiday"))
    story.save({"n": 1})


def _roster_changed(story: _Story) -> None:
    story.world.enrol(identity("other"))
    story.save({"n": 1})
    story.store.storage.appending.before = lambda: story.world.enrol(identity("third"))
    story.save({"n": 2})
    story.save({"n": 3})


def _revoked(story: _Story) -> None:
    end(story.world, "worker")
    story.save({"n": 1})


def _revoked_meanwhile(story: _Story) -> None:
    story.store.storage.appending.after = lambda: end(story.world, "worker")
    story.save({"n": 1})
    story.save({"n": 2})


def _expired(story: _Story) -> None:
    expire(story.world, "worker", story.world.clock.replace(year=story.world.clock.year + 1))
    story.save({"n": 1})
    expire(story.world, "worker", story.world.clock)
    story.save({"n": 2})


def _anchor_away(story: _Story) -> None:
    story.store.anchor.fail(AnchorUnavailable("anchor: gone"))
    story.save({"n": 1})
    story.save({"n": 2})
    story.store.anchor.fail(KeyboardInterrupt())
    story.save({"n": 3})
    story.save({"n": 4})


def _anchor_ahead(story: _Story) -> None:
    other = story.open()
    story.store.anchor.advancing.before = lambda: other.thread("t").load()
    story.save({"n": 1})
    story.store.anchor.advancing.before = lambda: other.thread("t").save({"other": 1})
    story.save({"n": 2})
    story.save({"n": 3})


def _anchor_behind(story: _Story) -> None:
    story.world.forget("t")
    story.save({"n": 1})
    story.call(lambda: story.thread.load().state)


def _disk_full(story: _Story) -> None:
    for after in (False, True):
        story.store.storage.fail(StorageUnavailable("disk is full"), after=after)
        story.save({"n": 1})
        story.save({"n": 2})


def _interrupted(story: _Story) -> None:
    for after in (False, True):
        story.store.storage.fail(KeyboardInterrupt(), after=after)
        story.save({"n": 1})
        story.save({"n": 2})


def _pruned(story: _Story) -> None:
    for number in range(4):
        story.save({"number": number})
    story.call(lambda: story.thread.prune(keep_last=1))
    story.save({"n": 4})
    story.call(lambda: story.thread.adapter.delete(reason="delete_thread"))
    story.save({"n": 5})


def _erased(story: _Story) -> None:
    story.world.enrol(identity("dpo", Role.PRIVACY))
    story.call(lambda: story.open("dpo").thread("t").erase(reason="asked for"))
    story.save({"n": 1})
    story.call(lambda: story.thread.load().state)
    story.save({"n": 2})


def _read_only(story: _Story) -> None:
    story.store = story.world.open(None, read_only=True)
    story.thread = story.store.thread("t")
    story.save({"n": 1})


_STORIES = {
    story.__name__.lstrip("_"): story
    for story in (
        *(_go_on, _grow_and_shrink, _groups, _names, _not_allowed, _fenced, _moved_head),
        *(_paused_meanwhile, _position_of_nothing, _paused, _another_owner, _roster_changed),
        *(_revoked, _revoked_meanwhile, _expired, _anchor_away, _anchor_ahead),
        *(_anchor_behind, _disk_full, _interrupted, _pruned, _erased, _read_only),
    )
}


class _Counted:
    """How often the rights that were found out for the session sufficed."""

    def __init__(self) -> None:
        self.times = 0

    def admit(self, *given: Any) -> Any:
        found = _admit(*given)
        self.times += found is not None
        return found


def _no_grant(*given: Any) -> Any:
    return replace(_grant(*given), writer=None)


def _both_ways(tell: Callable[[_Story], None]) -> tuple[_Story, _Story, int]:
    """A story as it goes, and the same with every step taken the long way."""
    counted = _Counted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.urandom", _Draws())
        patch.setattr(_append_entries, "_admit", counted.admit)
        straight = _Story()
        tell(straight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.urandom", _Draws())
        patch.setattr(_append_entries, "_grant", _no_grant)
        patch.setattr(_blobs.BlobCaches, "take_root", lambda *_given: None)
        long = _Story()
        tell(long)
    return straight, long, counted.times


@pytest.mark.parametrize("name", _STORIES)
def test_both_ways_write_the_same_and_refuse_the_same(name: str) -> None:
    """Stored bytes, the anchor, events, answers and refusals do not depend on the way."""
    straight, long, _ = _both_ways(_STORIES[name])

    for found, expected in zip(straight.left(), long.left(), strict=True):
        assert found == expected
    assert len(straight.told) > 1


def test_the_straight_way_is_taken() -> None:
    """Saves and groups in a session go straight on; without that the tests above say nothing."""
    *_, saves = _both_ways(_go_on)
    *_, groups = _both_ways(_groups)

    assert saves == 6
    assert groups >= 5


_STATES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=600),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@settings(max_examples=25, deadline=None)
@given(states=st.lists(_STATES, min_size=1, max_size=4))
def test_any_states_are_written_the_same(states: list[Any]) -> None:
    """Whatever is saved one after the other, the bytes do not depend on the way."""

    def tell(story: _Story) -> None:
        for state in states:
            story.save(state)
            story.commit(put(state, f"c{len(story.told)}"), results(state, "c"))

    straight, long, _ = _both_ways(tell)

    assert straight.left() == long.left()
