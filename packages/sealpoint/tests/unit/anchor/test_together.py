# SPDX-License-Identifier: Apache-2.0
"""A shared and a local anchor as one: which counts, who is written first, what follows when."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.anchor import RESERVED_SEQ, Holder, Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.anchor.paired import PairedAnchors, newer_position
from sealpoint.errors import AnchorUnavailable, Forked, UsageError
from tests.deployment import SimulatedAnchor

_SLOT = b"\x01" * 32


def _at(
    seq: int, *, thread: bytes = b"t" * 16, epoch: int = 0, entry: int | None = None
) -> Position:
    return Position(thread, epoch, 0, seq, bytes([(seq if entry is None else entry) % 256]) * 32)


def _marked(seq: int, fence: int, pause: int, owner: int, **more: Any) -> Position:
    """A position with marks; its owner's entry follows from the place of it."""
    marks = {"fence": fence, "pause": pause, "owner": owner, "owner_entry": bytes([owner]) * 32}
    return replace(_at(seq), **(marks | more))


class _Two:
    """Two anchors in memory, beside a store that shows everything, or nothing."""

    def __init__(self) -> None:
        self.shared = SimulatedAnchor(MemoryAnchor(), closes=True)
        self.local = SimulatedAnchor(MemoryAnchor(), closes=True)
        self.shown = True
        self.together = self._as_one(read_only=False)
        self.reading = self._as_one(read_only=True)

    def _as_one(self, *, read_only: bool) -> PairedAnchors:
        return PairedAnchors(self.shared, self.local, judge=self._judge, read_only=read_only)

    def _judge(self, _slot: bytes, local: Position, shared: Position) -> tuple[Position, bool]:
        return newer_position(local, shared), self.shown

    def hold(self, local: Position | None, shared: Position | None) -> None:
        """Let each hold something."""
        if local is not None:
            self.local.inner.create(_SLOT, local)
        if shared is not None:
            self.shared.inner.create(_SLOT, shared)

    def held(self) -> tuple[Position | None, Position | None]:
        """What each of them holds."""
        return self.local.inner.get(_SLOT), self.shared.inner.get(_SLOT)


@pytest.fixture
def two() -> _Two:
    """Two anchors that know nothing yet."""
    return _Two()


@pytest.mark.parametrize(
    ("local", "shared", "expected"),
    [
        (None, None, None),
        (_at(3), _at(3), _at(3)),
        (_at(3), _at(9), _at(9)),
        (_at(9), _at(3), _at(9)),
        (None, _at(9), _at(9)),
        (_at(9), None, _at(9)),
        (None, _at(RESERVED_SEQ), _at(RESERVED_SEQ)),
        (_at(9), _at(3, epoch=1), _at(3, epoch=1)),
        (_at(RESERVED_SEQ, thread=b"u" * 16), _at(9), _at(9)),
        (_at(9), _at(RESERVED_SEQ, thread=b"u" * 16), _at(9)),
    ],
)
def test_whichever_has_seen_more_counts(
    two: _Two, local: Position | None, shared: Position | None, expected: Position | None
) -> None:
    """The newer position is given and listed, by a reader that writes nothing as well."""
    two.hold(local, shared)

    assert two.reading.get(_SLOT) == expected
    assert dict(two.reading.slots()) == ({} if expected is None else {_SLOT: expected})
    assert two.held() == (local, shared)
    assert two.together.get(_SLOT) == expected
    assert two.held() == (local if shared is None or not shared.reserved else expected, shared)


@pytest.mark.parametrize(
    ("local", "shared"),
    [
        (_at(3), _at(3, entry=7)),
        (_at(3), _at(3, thread=b"u" * 16)),
        (_at(3), _at(9, thread=b"u" * 16)),
    ],
)
def test_different_histories_are_refused(two: _Two, local: Position, shared: Position) -> None:
    """Another entry at the same place, or another thread, is no memory of the same history."""
    two.hold(local, shared)

    with pytest.raises(Forked):
        two.together.get(_SLOT)
    with pytest.raises(Forked):
        two.together.create(_SLOT, _at(0))
    assert two.held() == (local, shared)
    assert dict(two.together.slots()) == {_SLOT: local}


def test_local_anchor_learns_nothing_that_the_store_does_not_show(two: _Two) -> None:
    """A shared anchor that an attacker wrote counts, and does not spoil the local one."""
    two.hold(_at(3), _at(90))
    two.shown = False

    assert two.together.get(_SLOT) == _at(90)
    two.together.confirm(_SLOT, _at(90))
    assert two.held() == (_at(3), _at(90))


@pytest.mark.parametrize("local", [None, _at(RESERVED_SEQ), _at(3), _marked(3, 2, 1, 0)])
def test_local_anchor_follows_once_the_thread_was_judged(two: _Two, local: Position | None) -> None:
    """Reading moves nothing; the caller says up to where it has judged the thread."""
    seen = _marked(9, 5, 4, 0)
    two.hold(local, seen)
    assert two.together.get(_SLOT) == seen
    assert two.together.get_with_watched(_SLOT) == (None, seen)
    assert two.held() == (local, seen)
    two.reading.confirm(_SLOT, seen)
    assert two.held() == (local, seen)
    two.together.confirm(_SLOT, seen)

    assert two.held() == (seen, seen)


def test_confirming_never_takes_the_local_anchor_back(two: _Two) -> None:
    """What another process of the machine has seen since is kept, and another history is not."""
    two.hold(_at(9), _at(9))
    for seq in (3, 9):
        two.together.confirm(_SLOT, _at(seq))
        assert two.held() == (_at(9), _at(9))

    with pytest.raises(Forked):
        two.together.confirm(_SLOT, _at(12, thread=b"u" * 16))
    assert two.held() == (_at(9), _at(9))


@pytest.mark.parametrize(
    ("local", "shared", "expected"),
    [
        (_marked(5, 4, 3, 2), _marked(9, 1, 1, 0), _marked(9, 4, 3, 2)),
        (_marked(9, 1, 1, 0), _marked(5, 4, 3, 2), _marked(9, 4, 3, 2)),
        (_marked(5, 4, 0, 2), _marked(9, 1, 8, 7), _marked(9, 4, 8, 7)),
        (_marked(5, 4, 0, 2), _marked(5, 1, 3, 2), _marked(5, 4, 3, 2)),
        (_at(5), _marked(9, 8, 0, 0), _marked(9, 8, 0, 0)),
        (_marked(5, 4, 3, 2), _at(RESERVED_SEQ), _marked(5, 4, 3, 2)),
        # After a restore the marks of the epoch before it say nothing.
        (_marked(5, 4, 3, 2), _marked(3, 1, 1, 0, epoch=1), _marked(3, 1, 1, 0, epoch=1)),
        (
            _at(RESERVED_SEQ, thread=b"u" * 16),
            _marked(9, 8, 0, 0),
            _marked(9, 8, 0, 0),
        ),
    ],
)
def test_the_marks_of_both_count(
    two: _Two, local: Position, shared: Position, expected: Position
) -> None:
    """A pause that one of them has seen is not left out because the other went further."""
    two.hold(local, shared)

    assert two.together.get(_SLOT) == expected
    assert two.reading.get(_SLOT) == expected
    assert two.held() == (local, shared)


@pytest.mark.parametrize(("local", "shared"), [(5, 9), (9, 5), (5, 5)])
def test_different_entries_of_the_owner_are_two_histories(
    two: _Two, local: int, shared: int
) -> None:
    """Two handoffs at one position cannot both be the thread's."""
    two.hold(_marked(local, 4, 3, 2), _marked(shared, 4, 3, 2, owner_entry=b"x" * 32))

    with pytest.raises(Forked, match="they have seen different entries 2"):
        two.together.get(_SLOT)


def test_position_that_forgets_what_either_has_seen_is_not_written(two: _Two) -> None:
    """An advance that leaves out a pause is refused before anything is written."""
    held = _marked(5, 4, 3, 2)
    two.hold(held, held)

    with pytest.raises(UsageError, match="expected session, pause and owner"):
        two.together.advance(_SLOT, held, _marked(6, 4, 1, 2))
    assert two.held() == (held, held)


def test_shared_anchor_is_written_first(two: _Two) -> None:
    """If the shared one fails, nothing was written; if the local one does, it follows later."""
    down = AnchorUnavailable("down")
    two.together.create(_SLOT, _at(0))
    assert two.held() == (_at(0), _at(0))
    two.shared.fail(down)
    with pytest.raises(AnchorUnavailable):
        two.together.advance(_SLOT, _at(0), _at(1))
    assert two.held() == (_at(0), _at(0))
    two.local.fail(down)
    with pytest.raises(AnchorUnavailable):
        two.together.advance(_SLOT, _at(0), _at(1))
    assert two.held() == (_at(0), _at(1))

    assert two.together.get(_SLOT) == _at(1)
    assert two.held() == (_at(0), _at(1))
    two.together.confirm(_SLOT, _at(1))
    assert two.held() == (_at(1), _at(1))


def test_neither_anchor_answers_for_the_other(two: _Two) -> None:
    """What one of them would say, were the other up, is not told while it is down."""
    two.hold(_at(3), _at(3))
    for anchor in (two.local, two.shared):

        def fail() -> None:
            raise AnchorUnavailable("down")

        anchor.getting.before = fail
        with pytest.raises(AnchorUnavailable):
            two.together.get(_SLOT)


def test_shared_anchor_that_was_put_back_tells_what_it_holds(two: _Two) -> None:
    """An advance from what only this machine saw is told the ancestor, and goes on from there."""
    two.hold(_at(9), _at(4))

    assert two.together.advance(_SLOT, _at(9), _at(10)) == _at(4)
    assert two.held() == (_at(9), _at(4))
    assert two.together.advance(_SLOT, _at(4), _at(10)) == _at(10)
    assert two.held() == (_at(10), _at(10))


def test_memory_that_is_ahead_stays_where_it_is(two: _Two) -> None:
    """An advance below what this machine has seen moves the shared anchor alone."""
    two.hold(_at(12), _at(4))

    assert two.together.advance(_SLOT, _at(4), _at(5)) == _at(5)
    assert two.held() == (_at(12), _at(5))
    assert two.together.get(_SLOT) == _at(12)


def test_slot_that_the_shared_anchor_lost_is_made_again(two: _Two) -> None:
    """By a create as by an advance, with what this machine has seen."""
    two.hold(_at(9), None)

    assert two.together.advance(_SLOT, _at(9), _at(10)) == _at(10)
    assert two.held() == (_at(10), _at(10))
    again = _Two()
    again.hold(_at(9), None)
    assert again.together.create(_SLOT, _at(0)) == _at(9)
    assert again.held() == (_at(9), _at(9))


def test_slot_that_neither_has_cannot_advance(two: _Two) -> None:
    """What nobody created is AnchorUnavailable, and is made by nobody."""
    with pytest.raises(AnchorUnavailable):
        two.together.advance(_SLOT, _at(0), _at(1))

    assert two.held() == (None, None)


def test_name_that_another_machine_took_is_told(two: _Two) -> None:
    """Of two machines that begin a name, the second is told the thread of the first."""
    two.shared.inner.create(_SLOT, _at(RESERVED_SEQ, thread=b"u" * 16))

    found = two.together.create(_SLOT, _at(RESERVED_SEQ))
    assert found == _at(RESERVED_SEQ, thread=b"u" * 16)
    assert two.held() == (found, found)


def test_both_are_closed_even_if_one_fails(two: _Two) -> None:
    """Closing goes on after a failure."""
    closed: list[str] = []

    class _Failing(MemoryAnchor):
        def close(self) -> None:
            closed.append("shared")
            raise AnchorUnavailable("down")

    class _Closing(MemoryAnchor):
        def close(self) -> None:
            closed.append("local")

    together = PairedAnchors(_Failing(), _Closing(), judge=two._judge)
    with pytest.raises(AnchorUnavailable):
        together.close()

    assert closed == ["shared", "local"]


def test_runs_are_those_of_the_shared_anchor(two: _Two) -> None:
    """A run has its thread on every machine that shares the anchor; the local one is not asked."""
    here, there = (Holder(name, datetime(2026, 5, 4, tzinfo=UTC)) for name in ("here", "there"))
    two.local.inner.hold(_SLOT, there)
    assert two.together.holder(_SLOT) is None
    hold = two.together.hold(_SLOT, here)
    assert not isinstance(hold, Holder)

    assert two.together.hold(_SLOT, there) == here
    assert two.shared.inner.hold(_SLOT, there) == here
    assert two.together.holder(_SLOT) == here
    hold.end()
    assert two.shared.inner.holder(_SLOT) is None
    assert two.local.inner.holder(_SLOT) == there


@pytest.mark.parametrize("local", [True, False])
def test_thread_counts_as_paused_where_the_two_disagree(two: _Two, local: bool) -> None:  # noqa: FBT001
    """Who lists slots reads no entries: of the same pause, the one that says so is believed."""
    two.hold(_marked(5, 1, 4, 0, paused=local), _marked(9, 1, 4, 0, paused=not local))

    assert dict(two.together.slots()) == {_SLOT: _marked(9, 1, 4, 0, paused=True)}
    assert two.together.get(_SLOT) == _marked(9, 1, 4, 0, paused=not local)


def test_later_pause_counts(two: _Two) -> None:
    """Of different pauses, the later one says whether the thread is paused."""
    two.hold(_marked(5, 1, 4, 0, paused=True), _marked(9, 1, 8, 0))

    assert dict(two.together.slots()) == {_SLOT: _marked(9, 1, 8, 0)}
