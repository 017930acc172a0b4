# SPDX-License-Identifier: Apache-2.0
"""The tests that every anchor must pass, one for each promise of its contract.

Subclass `AnchorConformance` in a test module of your own, under a name that pytest collects, and
say how your anchor is opened:

```python
class TestMyAnchor(AnchorConformance):
    def open(self, place: Path) -> Anchor:
        return MyAnchor(place / "anchor")
```

Tests take pytest's `tmp_path`, a new empty directory each, and need nothing else of pytest. The
anchor's own tests cover the rest: power cuts, damage, other processes, and a run whose process ends
before the run.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from unittest import SkipTest

from msgspec.structs import replace

from sealpoint.anchor import RESERVED_SEQ, Anchor, Hold, Holder, Position
from sealpoint.errors import AnchorUnavailable, UsageError
from sealpoint.limits import NAME_BYTES_MAX
from sealpoint_testing.conformance._storage_handles import require

__all__ = ["AnchorConformance"]

_OS_THREADS = 8
_STEPS = 40
_JOIN_S = 120
_PAUSE_S = 0.00005
_RUNS = 10
_RUN_S = 0.001
_SINCE = datetime(2026, 5, 4, 3, 2, 1, 987_654, tzinfo=UTC)


class AnchorConformance:
    """The promises of an anchor as tests, for one way of opening it."""

    shared = True
    """Whether opening a place again gives a second handle on the same anchor."""
    many = 1200
    """How many slots the test of many slots makes: enough for an anchor to grow several times."""

    def open(self, place: Path) -> Anchor:
        """Open the anchor of a place, making it if it is not there yet."""
        raise NotImplementedError

    def test_absent_slot_is_none(self, tmp_path: Path) -> None:
        """A slot that nobody wrote is None, before and after others were written."""
        with self._opened(tmp_path) as anchor:
            before = anchor.get(_slot(1))
            anchor.create(_slot(2), _position(0))

            require(before is None, "get of an empty anchor: expected None")
            require(anchor.get(_slot(1)) is None, "get of an absent slot: expected None")

    def test_created_slot_holds_its_position(self, tmp_path: Path) -> None:
        """`create` and `get` return the created position, equal in every field."""
        largest = Position(
            *(b"\xff" * 16, 2**32 - 1, 2**32 - 1, 2**63 - 1, b"\xff" * 32),
            erased=True,
            fence=2**63 - 1,
            pause=2**63 - 1,
            owner=2**63 - 1,
            owner_entry=b"\xff" * 32,
            paused=True,
        )
        reserved = Position(b"t" * 16, 0, 0, RESERVED_SEQ, bytes(32))
        with self._opened(tmp_path) as anchor:
            for number, position in enumerate((_position(0), largest, reserved)):
                returned = anchor.create(_slot(number), position)

                require(returned == position, "create: expected the position that was given")
                require(anchor.get(_slot(number)) == position, "get: expected what create wrote")

    def test_create_leaves_a_present_slot_alone(self, tmp_path: Path) -> None:
        """Create returns what is there already, and it stays."""
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), _position(5))
            returned = anchor.create(_slot(1), _position(6))

            require(returned == _position(5), "create: expected what was there before")
            require(anchor.get(_slot(1)) == _position(5), "create: a present slot changed")

    def test_advance_replaces_what_was_expected(self, tmp_path: Path) -> None:
        """Advance writes when the slot holds what is expected, many times over."""
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), _position(0))
            for number in range(1, 20):
                returned = anchor.advance(_slot(1), _position(number - 1), _position(number))

                require(returned == _position(number), "advance: expected the new position")
                require(anchor.get(_slot(1)) == _position(number), "get: expected the new position")

    def test_advance_leaves_anything_else_alone(self, tmp_path: Path) -> None:
        """Advance changes nothing if any one field differs from what is expected."""
        held = _marked()
        others = (
            replace(held, thread=b"u" * 16),
            replace(held, epoch=2),
            replace(held, gen=5),
            replace(held, seq=4),
            replace(held, entry=b"f" * 32),
            replace(held, erased=True),
            replace(held, fence=4),
            replace(held, pause=3),
            replace(held, owner=2),
            replace(held, owner_entry=b"p" * 32),
            replace(held, paused=True),
        )
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), held)
            for other in others:
                later = replace(_position(70), thread=other.thread)
                returned = anchor.advance(_slot(1), other, later)

                require(returned == held, "advance: expected what the slot holds")
                require(anchor.get(_slot(1)) == held, "advance: wrote over something unexpected")

    def test_marks_that_go_down_are_refused(self, tmp_path: Path) -> None:
        """Advance refuses a position that forgets a session, a pause or an owner it holds."""
        held = _marked()
        later = replace(held, seq=9, entry=b"f" * 32)
        forgetting = {
            "session": replace(later, fence=2),
            "pause": replace(later, pause=1),
            "owner": replace(later, owner=0),
            "every mark": replace(later, fence=RESERVED_SEQ, pause=RESERVED_SEQ, owner=0),
            "entry of the owner": replace(later, owner_entry=b"p" * 32),
            "epoch": replace(later, epoch=held.epoch - 1),
        }
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), held)
            for what, position in forgetting.items():
                refused = _raises(UsageError, partial(anchor.advance, _slot(1), held, position))

                require(refused, f"advance that forgets the {what}: expected UsageError")
                require(anchor.get(_slot(1)) == held, "advance: forgot what it had recorded before")

    def test_another_thread_is_refused(self, tmp_path: Path) -> None:
        """Advance keeps a slot to its thread, in a later epoch too."""
        held = _marked()
        other = replace(held, thread=b"u" * 16, seq=9, entry=b"f" * 32)
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), held)
            for position in (other, replace(other, epoch=held.epoch + 1)):
                refused = _raises(UsageError, partial(anchor.advance, _slot(1), held, position))

                require(refused, "advance to another thread: expected UsageError")
                require(anchor.get(_slot(1)) == held, "advance: forgot the thread of the slot")

    def test_reserved_name_gives_way_to_another_thread(self, tmp_path: Path) -> None:
        """A name that was only reserved says nothing about entries."""
        reserved = Position(b"t" * 16, 0, 0, RESERVED_SEQ, bytes(32))
        other = Position(b"u" * 16, 0, 0, 0, b"e" * 32, fence=0, pause=0, owner=0)
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), reserved)
            returned = anchor.advance(_slot(1), reserved, other)

            require(returned == other, "advance of a reserved name: expected the new position")
            require(anchor.get(_slot(1)) == other, "get: expected the new position")

    def test_another_entry_in_the_same_place_is_refused(self, tmp_path: Path) -> None:
        """Advance does not move a slot sideways; a later epoch may have another entry there."""
        held = _marked()
        beside = replace(held, entry=b"f" * 32)
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), held)
            refused = _raises(UsageError, partial(anchor.advance, _slot(1), held, beside))
            kept = anchor.get(_slot(1))
            restored = replace(beside, epoch=held.epoch + 1)
            returned = anchor.advance(_slot(1), held, restored)

            require(refused, "advance to another entry in the same place: expected UsageError")
            require(kept == held, "advance: forgot the entry that it had recorded before")
            require(returned == restored, "advance to a later epoch: expected the new position")

    def test_pause_stays_what_it_was_under_the_same_mark(self, tmp_path: Path) -> None:
        """Advance refuses to say something else of the same pause; a later one may differ."""
        with self._opened(tmp_path) as anchor:
            for number, paused in enumerate((False, True)):
                held = replace(_marked(), paused=paused)
                later = replace(held, seq=9, entry=b"f" * 32, paused=not paused)
                settled = replace(later, pause=9)
                anchor.create(_slot(number), held)
                refused = _raises(UsageError, partial(anchor.advance, _slot(number), held, later))
                kept = anchor.get(_slot(number))
                returned = anchor.advance(_slot(number), held, settled)

                require(refused, "advance that says something else of a pause: expected UsageError")
                require(kept == held, "advance: forgot whether the thread is paused")
                require(returned == settled, "advance to a later pause: expected it")

    def test_same_entry_may_be_told_more_about(self, tmp_path: Path) -> None:
        """Marks that a writer had left out may rise in place."""
        held = _marked()
        full = replace(held, gen=2, fence=4, pause=5, paused=True, erased=True)
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), held)
            returned = anchor.advance(_slot(1), held, full)

            require(returned == full, "advance in place: expected the new position")
            require(anchor.get(_slot(1)) == full, "get: expected the new position")

    def test_marks_stay_rise_or_begin_again(self, tmp_path: Path) -> None:
        """Marks may stay or rise; in a later epoch, after a restore, they may be lower."""
        held = _marked()
        steps = (
            replace(held, seq=6, entry=b"f" * 32),
            replace(held, seq=7, entry=b"g" * 32, fence=7, pause=6, paused=True),
            replace(held, seq=8, entry=b"h" * 32, fence=8, pause=8, owner=8, owner_entry=b"h" * 32),
            replace(held, epoch=4, fence=0, pause=0, owner=0, owner_entry=b"i" * 32),
        )
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(1), held)
            for step in steps:
                returned = anchor.advance(_slot(1), held, step)

                require(returned == step, "advance: expected the new position")
                require(anchor.get(_slot(1)) == step, "get: expected the new position")
                held = step

    def test_advance_of_an_absent_slot_is_refused(self, tmp_path: Path) -> None:
        """Advance of a slot that is not there is AnchorUnavailable and makes none."""
        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(2), _position(0))
            refused = _raises(
                AnchorUnavailable,
                lambda: anchor.advance(_slot(1), _position(0), _position(1)),
            )

            require(refused, "advance of an absent slot: expected AnchorUnavailable")
            require(anchor.get(_slot(1)) is None, "advance of an absent slot made it")

    def test_slots_do_not_touch_each_other(self, tmp_path: Path) -> None:
        """Slots that differ in a single bit are different slots, and an advance moves only one."""
        first = _slot(1)
        slots = [first] + [
            bytes(byte ^ (bit if index == place else 0) for index, byte in enumerate(first))
            for place, bit in ((0, 1), (7, 128), (8, 1), (31, 1), (31, 128))
        ]
        with self._opened(tmp_path) as anchor:
            for number, slot in enumerate(slots):
                anchor.create(slot, _position(number))
            anchor.advance(slots[2], _position(2), _position(100))
            found = [anchor.get(slot) for slot in slots]

            expected = [_position(number) for number in (0, 1, 100, 3, 4, 5)]
            require(found == expected, "get: a slot holds what was written to another")

    def test_many_slots_are_all_kept_and_listed(self, tmp_path: Path) -> None:
        """Every slot is found and listed once with its newest position, however many there are."""
        expected: dict[bytes, Position] = {}
        with self._opened(tmp_path) as anchor:
            require(not list(anchor.slots()), "slots of an empty anchor: expected none")
            for number in range(self.many):
                anchor.create(_slot(number), _position(number))
                expected[_slot(number)] = _position(number)
                if number % 3 == 0:
                    anchor.advance(_slot(number), _position(number), _position(number + 1))
                    expected[_slot(number)] = _position(number + 1)
            listed = list(anchor.slots())

            require(len(listed) == len(expected), "slots: expected every slot exactly once")
            require(dict(listed) == expected, "slots: expected the newest position of every slot")
            for slot, position in expected.items():
                require(anchor.get(slot) == position, "get: a slot was lost among many")
            require(anchor.get(_slot(self.many)) is None, "get among many: expected None")

    def test_one_os_thread_wins_each_step(self, tmp_path: Path) -> None:
        """Of several OS threads that advance the same position, exactly one learns that it did."""
        with self._opened(tmp_path) as anchor:
            self._race([anchor] * _OS_THREADS)

    def test_one_os_thread_creates_a_slot(self, tmp_path: Path) -> None:
        """All of several OS threads that create the same slot receive the same position."""
        told: list[list[Position]] = []

        with self._opened(tmp_path) as anchor:

            def make(who: int) -> None:
                told.append([anchor.create(_slot(step), _position(who)) for step in range(_STEPS)])

            _run_together([partial(make, who) for who in range(_OS_THREADS)])
            held = [anchor.get(_slot(step)) for step in range(_STEPS)]

        require(len(told) == _OS_THREADS, "create: an OS thread received nothing")
        require(
            all(each == held for each in told), "create: OS threads received different positions"
        )

    def test_reads_are_whole_and_never_go_back(self, tmp_path: Path) -> None:
        """While a slot advances and others are made, readers see whole positions, never older."""
        done = threading.Event()

        with self._opened(tmp_path) as anchor:
            anchor.create(_slot(0), _position(0))

            def write() -> None:
                try:
                    for number in range(1, 400):
                        anchor.advance(_slot(0), _position(number - 1), _position(number))
                        anchor.create(_slot(number), _position(number))
                finally:
                    done.set()

            def read() -> None:
                newest = 0
                # Without a pause the readers would keep the writer from running at all.
                while not done.wait(_PAUSE_S):
                    found = anchor.get(_slot(0))
                    require(found is not None, "get: a slot vanished while it was written")
                    if found is not None:
                        require(found == _position(found.seq), "get: a mixture of two positions")
                        require(found.seq >= newest, "get: older than what was returned before")
                        newest = found.seq

            _run_together([write, read, read])

    def test_two_handles_are_one_anchor(self, tmp_path: Path) -> None:
        """A position written through one handle is read, compared and listed through another."""
        self._require_shared()
        with self._opened(tmp_path) as first, self._opened(tmp_path) as second:
            first.create(_slot(1), _position(0))
            seen = second.get(_slot(1))
            second.advance(_slot(1), _position(0), _position(1))
            late = first.advance(_slot(1), _position(0), _position(2))

            require(seen == _position(0), "get through another handle: expected what was created")
            require(late == _position(1), "advance: expected what the other handle wrote")
            require(first.get(_slot(1)) == _position(1), "get: expected the other handle's write")
            for number in range(2, self.many):
                (first, second)[number % 2].create(_slot(number), _position(number))
            require(dict(first.slots()) == dict(second.slots()), "slots: handles disagree")
            require(len(dict(first.slots())) == self.many - 1, "slots: expected every slot")

    def test_one_handle_wins_each_step(self, tmp_path: Path) -> None:
        """The compare and the write are one step over handles as well."""
        self._require_shared()
        with self._opened(tmp_path) as first, self._opened(tmp_path) as second:
            self._race([first, second] * (_OS_THREADS // 2))

    def test_opening_again_finds_everything(self, tmp_path: Path) -> None:
        """Positions written before close are there when the anchor is opened again."""
        self._require_shared()
        with self._opened(tmp_path) as anchor:
            for number in range(300):
                anchor.create(_slot(number), _position(number))
            anchor.advance(_slot(7), _position(7), _position(8))
            expected = dict(anchor.slots())
        with self._opened(tmp_path) as anchor:
            require(dict(anchor.slots()) == expected, "slots: opening again lost something")
            require(anchor.get(_slot(7)) == _position(8), "get: opening again went back")

    def test_one_run_at_a_time_has_a_thread(self, tmp_path: Path) -> None:
        """A second run learns who has the thread, through any handle."""
        with self._opened(tmp_path) as anchor:
            hold = _held(anchor, _slot(1), _holder("first"))
            again = anchor.hold(_slot(1), _holder("second"))

            require(again == _holder("first"), "hold of a held thread: expected who has it")
            if self.shared:
                with self._opened(tmp_path) as other:
                    found = other.hold(_slot(1), _holder("third"))
                    seen = other.holder(_slot(1))
                require(found == _holder("first"), "hold by another handle: expected who has it")
                require(seen == _holder("first"), "holder by another handle: expected who has it")
            hold.end()

    def test_run_that_ended_leaves_its_thread_to_the_next(self, tmp_path: Path) -> None:
        """After its end no run has the thread, and the next may, many times over."""
        with self._opened(tmp_path) as anchor:
            before = anchor.holder(_slot(1))
            require(before is None, "holder before any run: expected None")
            for number in range(5):
                hold = _held(anchor, _slot(1), _holder(f"worker {number}"))
                during = anchor.holder(_slot(1))
                hold.end()

                require(during == _holder(f"worker {number}"), "holder: expected whose run it is")
                require(anchor.holder(_slot(1)) is None, "holder after the end: expected None")

    def test_run_that_never_began_is_told_like_one_that_died(self, tmp_path: Path) -> None:
        """It keeps nobody from the thread, and the next that ends leaves nothing to tell."""
        with self._opened(tmp_path) as anchor:
            _held(anchor, _slot(1), _holder("first")).end(begun=False)
            found = anchor.holder(_slot(1))

            require(found is not None, "holder after a run that never began: expected one")
            require(found is None or not found.living, "holder: expected that no run lives")
            second = _held(anchor, _slot(1), _holder("second"))
            require(second.left, "left: expected that the run before it is reported")
            second.end()
            require(anchor.holder(_slot(1)) is None, "holder after the end: expected None")
            third = _held(anchor, _slot(1), _holder("third"))
            require(not third.left, "left after a run that ended: expected False")
            third.end()

    def test_run_that_is_taken_the_place_of_ends_nothing(self, tmp_path: Path) -> None:
        """A run that takes a thread has it alone; the end of the earlier run changes nothing."""
        with self._opened(tmp_path) as anchor:
            first = _held(anchor, _slot(1), _holder("first"))
            second = _held(anchor, _slot(1), _holder("second"), instead=True)
            first.end()

            require(anchor.holder(_slot(1)) == _holder("second"), "end: ended another's hold")
            late = anchor.hold(_slot(1), _holder("third"))
            require(late == _holder("second"), "hold instead: expected that the run has it")
            second.end()
            require(anchor.holder(_slot(1)) is None, "holder after the end: expected None")

    def test_run_that_ends_twice_does_not_end_the_next(self, tmp_path: Path) -> None:
        """Ending a second time raises nothing, and leaves the hold of the next run alone."""
        with self._opened(tmp_path) as anchor:
            first = _held(anchor, _slot(1), _holder("first"))
            first.end()
            first.end()
            second = _held(anchor, _slot(1), _holder("second"))
            first.end()

            require(anchor.holder(_slot(1)) == _holder("second"), "end: ended another's hold")
            late = anchor.hold(_slot(1), _holder("third"))
            require(late == _holder("second"), "end: gave the thread of another run away")
            second.end()

    def test_runs_of_other_threads_are_independent(self, tmp_path: Path) -> None:
        """Each thread has a run of its own, and the end of one leaves the others."""
        with self._opened(tmp_path) as anchor:
            holds = [
                _held(anchor, _slot(number), _holder(f"worker {number}")) for number in range(20)
            ]
            holds[3].end()
            found = [anchor.holder(_slot(number)) for number in range(21)]

            expected: list[Holder | None] = [_holder(f"worker {number}") for number in range(20)]
            expected[3] = None
            require(found == [*expected, None], "holder: runs of threads touch each other")
            for hold in holds:
                hold.end()

    def test_runs_and_positions_are_independent(self, tmp_path: Path) -> None:
        """A run neither needs nor creates a position, and positions advance during a run."""
        with self._opened(tmp_path) as anchor:
            hold = _held(anchor, _slot(1), _holder("worker"))
            require(anchor.get(_slot(1)) is None, "hold: made a position")
            require(not list(anchor.slots()), "hold: made a slot")
            anchor.create(_slot(1), _position(0))
            anchor.advance(_slot(1), _position(0), _position(1))

            require(anchor.holder(_slot(1)) == _holder("worker"), "advance: ended a hold")
            hold.end()
            require(anchor.get(_slot(1)) == _position(1), "end: changed the position")

    def test_holder_is_told_as_it_was_given(self, tmp_path: Path) -> None:
        """Identities of any characters and length, and times of any zone, come back equal."""
        named = ("", "w" * NAME_BYTES_MAX, '\x00\n"\\' * (NAME_BYTES_MAX // 4), "Zoë 🦭")
        times = (
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(2026, 5, 4, 3, 2, 1, 999_999, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            _SINCE.astimezone(timezone(timedelta(hours=-9, minutes=-30))),
        )
        with self._opened(tmp_path) as anchor:
            for number, holder in enumerate(map(Holder, named, times)):
                hold = _held(anchor, _slot(number), holder)

                require(anchor.holder(_slot(number)) == holder, "holder: expected what was given")
                hold.end()

    def test_what_cannot_be_a_holder_is_refused(self, tmp_path: Path) -> None:
        """An identity longer than a name, or no text, or a time without a zone, is a UsageError."""
        wrong = (
            Holder("w" * (NAME_BYTES_MAX + 1), _SINCE),
            Holder("\ud800", _SINCE),
            Holder("worker", _SINCE.replace(tzinfo=None)),
        )
        with self._opened(tmp_path) as anchor:
            for holder in wrong:
                refused = _raises(UsageError, partial(anchor.hold, _slot(1), holder))

                require(refused, "hold: expected UsageError")
                require(anchor.holder(_slot(1)) is None, "hold that was refused: it has the thread")
            for call in (partial(anchor.hold, b"short", _holder("w")), lambda: anchor.holder(b"")):
                require(_raises(UsageError, call), "a slot of another size: expected UsageError")

    def test_one_os_thread_gets_the_hold(self, tmp_path: Path) -> None:
        """Of several OS threads that begin a run at once one gets it, and the others its name."""
        with self._opened(tmp_path) as anchor:
            self._race_for_holds([anchor] * _OS_THREADS)

    def test_one_handle_gets_the_hold(self, tmp_path: Path) -> None:
        """The same over handles."""
        self._require_shared()
        with self._opened(tmp_path) as first, self._opened(tmp_path) as second:
            self._race_for_holds([first, second] * (_OS_THREADS // 2))

    def test_two_runs_never_overlap(self, tmp_path: Path) -> None:
        """While OS threads begin and end runs of one thread, no two have it at once."""
        running: list[int] = []

        with self._opened(tmp_path) as anchor:

            def work(who: int) -> None:
                for _ in range(_STEPS):
                    hold = anchor.hold(_slot(1), _holder(f"worker {who}"))
                    if isinstance(hold, Holder):
                        continue
                    running.append(who)
                    time.sleep(_RUN_S)  # others begin meanwhile
                    require(running == [who], "hold: two runs have one thread")
                    running.remove(who)
                    hold.end()

            _run_together([partial(work, who) for who in range(_OS_THREADS)])

            require(anchor.holder(_slot(1)) is None, "holder after all ended: expected None")

    def test_run_may_end_after_close(self, tmp_path: Path) -> None:
        """A hold that outlives the anchor it came from raises nothing when it ends."""
        anchor = self.open(tmp_path)
        hold = _held(anchor, _slot(1), _holder("worker"))
        anchor.close()
        hold.end()
        hold.end()

    def test_closed_anchor_refuses_every_call(self, tmp_path: Path) -> None:
        """After close, which may be repeated, every other call is a UsageError."""
        anchor = self.open(tmp_path)
        anchor.create(_slot(1), _position(0))
        anchor.close()
        anchor.close()
        calls: dict[str, Callable[[], object]] = {
            "get": lambda: anchor.get(_slot(1)),
            "create": lambda: anchor.create(_slot(1), _position(0)),
            "advance": lambda: anchor.advance(_slot(1), _position(0), _position(1)),
            "slots": lambda: list(anchor.slots()),
            "hold": lambda: anchor.hold(_slot(1), _holder("worker")),
            "holder": lambda: anchor.holder(_slot(1)),
        }
        for name, call in calls.items():
            require(_raises(UsageError, call), f"{name} after close: expected UsageError")

    @contextmanager
    def _opened(self, place: Path) -> Iterator[Anchor]:
        anchor = self.open(place)
        try:
            yield anchor
        finally:
            anchor.close()

    def _require_shared(self) -> None:
        if not self.shared:
            raise SkipTest("this anchor has no second handle")

    def _race(self, handles: list[Anchor]) -> None:
        """Let every handle try every step once it sees it, and count the wins that they report."""
        handles[0].create(_slot(0), _position(0))
        won: list[int] = []

        def climb(anchor: Anchor, who: int) -> None:
            held = anchor.get(_slot(0))
            while held is not None and held.seq < _STEPS:
                # The generation says who wrote a step; the store's numbers rise by one.
                mine = Position(held.thread, 1, who, held.seq + 1, _position(held.seq + 1).entry)
                found = anchor.advance(_slot(0), held, mine)
                if found == mine:
                    won.append(found.seq)
                held = found

        _run_together([partial(climb, anchor, who) for who, anchor in enumerate(handles)])
        require(sorted(won) == list(range(1, _STEPS + 1)), "advance: not one winner for each step")

    def _race_for_holds(self, handles: list[Anchor]) -> None:
        """Let every handle begin a run of every thread, and count who got it."""
        told: list[tuple[int, int, Hold | Holder]] = []

        def begin(anchor: Anchor, who: int) -> None:
            holder = _holder(f"worker {who}")
            told.extend((step, who, anchor.hold(_slot(step), holder)) for step in range(_RUNS))

        _run_together([partial(begin, anchor, who) for who, anchor in enumerate(handles)])
        for step in range(_RUNS):
            answers = {who: answer for number, who, answer in told if number == step}
            refused = [answer for answer in answers.values() if isinstance(answer, Holder)]
            winners = [who for who, answer in answers.items() if not isinstance(answer, Holder)]
            require(len(winners) == 1, "hold: expected that exactly one gets it")
            named = _holder(f"worker {winners[0]}")
            require(refused == [named] * (len(handles) - 1), "hold: expected who has it")
            for answer in answers.values():
                if not isinstance(answer, Holder):
                    answer.end()


def _slot(number: int) -> bytes:
    return hashlib.sha256(b"slot %d" % number).digest()


def _position(number: int) -> Position:
    """A position whose fields all but the thread follow from one number: a mixture shows."""
    entry = hashlib.sha256(b"entry %d" % number).digest()
    return Position(
        *(b"t" * 16, number // 7, number % 5, number, entry),
        erased=number % 2 == 1,
        fence=number,
        pause=number // 2,
        owner=number,
        owner_entry=entry[::-1],
        paused=number // 2 % 3 == 1,
    )


def _marked() -> Position:
    """A position whose marks are those of different entries."""
    return Position(
        *(b"t" * 16, 3, 4, 5, b"e" * 32), fence=3, pause=2, owner=1, owner_entry=b"o" * 32
    )


def _holder(who: str) -> Holder:
    return Holder(who, _SINCE)


def _held(anchor: Anchor, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold:
    """Begin a run of a thread that no run has, or instead of the one that has it."""
    hold = anchor.hold(slot, holder, instead=instead)
    if isinstance(hold, Holder):
        raise AssertionError(f"hold of a free thread: expected it, found that {hold.who} has it")  # noqa: TRY004
    return hold


def _raises(error: type[Exception], call: Callable[[], object]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def _run_together(calls: list[Callable[[], None]]) -> None:
    """Run calls in OS threads that start at once; fail with the first failure of any."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], None]) -> None:
        try:
            start.wait()
            call()
        except BaseException as exc:  # noqa: BLE001 - raised again below, in the test itself
            failures.append(exc)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_JOIN_S)
    if failures:
        raise failures[0]
    require(not any(thread.is_alive() for thread in threads), "OS threads wait for each other")
