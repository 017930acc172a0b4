# SPDX-License-Identifier: Apache-2.0
"""Machines that share an anchor and have one of their own each: what the store has to show."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.anchor import Anchor, Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import AnchorUnavailable, Forked, NotTrusted, RolledBack, Unanchored
from sealpoint.store import accept_restore, plan_restore
from tests.deployment import Deployment, Opened, SimulatedAnchor
from tests.ledgers import key


class _PairedAnchor(SimulatedAnchor):
    """An anchor that answers for two slots at once, and counts how often it is asked."""

    def __init__(self, inner: Anchor, *, closes: bool) -> None:
        super().__init__(inner, closes=closes)
        self.trips: list[str] = []

    def get(self, slot: bytes) -> Position | None:
        """Read a slot."""
        self.trips.append("get")
        return super().get(slot)

    def get_both(self, first: bytes, second: bytes) -> tuple[Position | None, Position | None]:
        """Read two slots."""
        self.trips.append("get_both")
        return super().get(first), super().get(second)

    def advance_and_get(
        self, slot: bytes, expected: Position, position: Position, other: bytes
    ) -> tuple[Position, Position | None]:
        """Move a slot on, and read another."""
        self.trips.append("advance_and_get")
        return self.advance(slot, expected, position), super().get(other)


class _Fleet:
    """One store, one anchor that all ask, and machines with memories of their own."""

    def __init__(self, kind: type[SimulatedAnchor]) -> None:
        self.kind = kind
        self.world = Deployment()
        self.shared = self.world.anchored
        self.memories: dict[str, MemoryAnchor] = {}

    def parts(self, machine: str) -> dict[str, Any]:
        """The anchors of a machine, as arguments."""
        memory = self.memories.setdefault(machine, MemoryAnchor())
        return {
            "anchor": SimulatedAnchor(memory, closes=False),
            "shared_anchor": self.kind(self.shared, closes=False),
        }

    def open(self, machine: str, **changes: Any) -> Opened:
        """The store, in a new process of a machine."""
        return self.world.open(**{**self.parts(machine), **changes})  # who= is the identity

    def save(self, machine: str, *values: int, thread: str = "t") -> None:
        """Save some states one after the other."""
        handle = self.open(machine).thread(thread)
        for value in values:
            handle.save(value)

    def load(self, machine: str, thread: str = "t", **changes: Any) -> object:
        """Load in a new process."""
        return self.open(machine, **changes).thread(thread).load().state

    def held(self, machine: str, thread: str = "t") -> tuple[int | None, int | None]:
        """How far the memory of a machine, and the shared anchor, have seen a thread."""
        slot = self.world.slot(thread)
        found = (self.memories[machine].get(slot), self.shared.get(slot))
        return tuple(None if each is None else each.seq for each in found)  # type: ignore[return-value]

    def store(self) -> Any:
        """A copy of all that the storage holds."""
        return copy.deepcopy({name: getattr(self.world.memory, name) for name in _HELD_BY_STORAGE})

    def put_store_back(self, held: Any) -> None:
        """Let the storage hold an earlier copy."""
        for name, value in copy.deepcopy(held).items():
            setattr(self.world.memory, name, value)

    def anchor(self) -> dict[bytes, Position]:
        """A copy of the shared anchor."""
        return dict(self.shared._positions)

    def put_anchor_back(self, held: dict[bytes, Position]) -> None:
        """Let the shared anchor hold an earlier copy."""
        self.shared._positions = dict(held)


_HELD_BY_STORAGE = ("_records", "_positions", "_blobs", "_digests", "_unsorted", "_labels")


@pytest.fixture(params=[SimulatedAnchor, _PairedAnchor], ids=["one-slot", "two-slots"])
def fleet(request: pytest.FixtureRequest) -> Iterator[_Fleet]:
    """A store that two machines will use, asking for one slot each time, or for two at once."""
    made = _Fleet(request.param)
    yield made
    made.world.close()


def test_new_machine_knows_what_the_others_know(fleet: _Fleet) -> None:
    """An empty memory hides nothing: the first look at a thread is as good as any other's."""
    fleet.save("one", 1, 2)

    assert fleet.load("two") == 2
    assert fleet.held("two") == fleet.held("one")


def test_machine_that_was_off_follows(fleet: _Fleet) -> None:
    """What others did meanwhile is accepted, and remembered from then on."""
    fleet.save("one", 1)
    fleet.load("two")
    fleet.save("one", 2, 3)

    assert fleet.load("two") == 3
    assert fleet.held("two") == fleet.held("one")


def test_rollback_is_seen_by_a_machine_that_never_looked(fleet: _Fleet) -> None:
    """The store is put back to before a save that only another machine ever saw."""
    fleet.save("one", 1)
    held = fleet.store()
    fleet.save("one", 2)
    fleet.put_store_back(held)

    for machine in ("two", "one"):
        with pytest.raises(RolledBack):
            fleet.load(machine)
    assert fleet.memories["two"].get(fleet.world.slot("t")) is None


def test_save_in_a_session_notices_what_another_machine_saw(fleet: _Fleet) -> None:
    """What it wrote beside that stands nowhere: the save is refused, and so is every load."""
    handle = fleet.open("one").thread("t")
    handle.save(1)
    held = fleet.store()
    fleet.open("two", who="operator").thread("t").pause("it looks odd")
    fleet.put_store_back(held)

    with pytest.raises(Forked):
        handle.save(2)
    for machine in ("one", "two"):
        with pytest.raises(Forked):
            fleet.load(machine)


def test_thread_that_was_taken_away_is_missed_by_a_new_machine(fleet: _Fleet) -> None:
    """A machine that never saw a thread does not take its name for a free one."""
    held = fleet.store()
    fleet.save("one", 1)
    fleet.put_store_back(held)

    with pytest.raises(RolledBack):
        fleet.load("two")
    with pytest.raises(RolledBack):
        fleet.save("two", 7)


def test_store_and_shared_anchor_put_back_together_are_noticed_by_who_saw_more(
    fleet: _Fleet,
) -> None:
    """One failover may lose both; the machine that was told more still refuses."""
    fleet.save("one", 1)
    held, anchored = fleet.store(), fleet.anchor()
    fleet.save("one", 2)
    fleet.put_store_back(held)
    fleet.put_anchor_back(anchored)

    with pytest.raises(RolledBack):
        fleet.load("one")
    assert fleet.load("two") == 1


def test_machine_that_remembers_another_history_refuses_however_far_it_went_on(
    fleet: _Fleet,
) -> None:
    """After a failover that lost both, others went on; what the machine saw is not below that."""
    fleet.save("one", 1)
    held, anchored = fleet.store(), fleet.anchor()
    fleet.save("one", 2)
    fleet.put_store_back(held)
    fleet.put_anchor_back(anchored)
    fleet.save("two", 3, 4, 5, 6)
    seen = fleet.memories["one"].get(fleet.world.slot("t"))

    for read_only in (False, True):
        with pytest.raises(Forked):
            fleet.load("one", read_only=read_only)
    assert fleet.memories["one"].get(fleet.world.slot("t")) == seen
    assert fleet.load("two") == 6


def test_shared_anchor_that_was_put_back_is_brought_forward(fleet: _Fleet) -> None:
    """The store lost nothing: a machine that saw more goes on, and its save teaches the others."""
    fleet.save("one", 1)
    anchored = fleet.anchor()
    fleet.save("one", 2)
    fleet.put_anchor_back(anchored)

    assert fleet.load("one") == 2
    fleet.save("one", 3)
    assert fleet.held("one")[0] == fleet.held("one")[1]
    assert fleet.load("two") == 3


def test_load_by_anybody_brings_the_shared_anchor_forward(fleet: _Fleet) -> None:
    """A machine without a memory of it finds the store further, verifies it, and says so."""
    fleet.save("one", 1)
    anchored = fleet.anchor()
    fleet.save("one", 2)
    newest = fleet.held("one")
    fleet.put_anchor_back(anchored)

    assert fleet.load("two") == 2
    assert fleet.held("two") == newest


def test_thread_that_the_shared_anchor_lost_is_made_known_again(fleet: _Fleet) -> None:
    """A machine that knows it goes on; to one that does not it is unanchored until then."""
    empty = fleet.anchor()
    fleet.save("one", 1)
    fleet.put_anchor_back(empty)

    with pytest.raises(Unanchored):
        fleet.load("two")
    fleet.save("one", 2)
    assert fleet.load("two") == 2


def test_save_stands_when_either_anchor_fails(fleet: _Fleet) -> None:
    """The error carries the checkpoint, and the next load finds it and brings both in step."""
    fleet.save("one", 1)
    for name in ("anchor", "shared_anchor"):
        parts = fleet.parts("one")
        store = fleet.world.open(**parts)
        handle = store.thread("t")
        handle.load()
        parts[name].fail(AnchorUnavailable("down"))
        with pytest.raises(AnchorUnavailable) as caught:
            handle.save(name)

        assert caught.value.ref is not None
        assert fleet.load("one") == name
        assert fleet.held("one")[0] == fleet.held("one")[1]


def test_restore_that_nobody_accepted_is_no_way_around_a_memory(fleet: _Fleet) -> None:
    """Whoever writes the shared anchor cannot claim an epoch to make an older state look newer."""
    fleet.save("one", 1)
    held = fleet.store()
    old = fleet.shared.get(fleet.world.slot("t"))
    assert old is not None
    fleet.save("one", 2)
    fleet.put_store_back(held)
    claimed = Position(old.thread, 9, old.gen, old.seq, old.entry)
    fleet.shared._positions[fleet.world.slot("t")] = claimed

    with pytest.raises(NotTrusted, match="accepted restores"):
        fleet.load("one")


def test_positions_that_never_were_do_not_spoil_a_memory(fleet: _Fleet) -> None:
    """A shared anchor that claims too much is refused, and once it is mended all is as before."""
    fleet.save("one", 1)
    slot = fleet.world.slot("t")
    true = fleet.shared.get(slot)
    assert true is not None
    fleet.shared._positions[slot] = Position(true.thread, 0, 0, 10**6, b"x" * 32)

    for machine in ("one", "two"):
        with pytest.raises(RolledBack):
            fleet.load(machine)
    fleet.shared._positions[slot] = true
    for machine in ("one", "two"):
        assert fleet.load(machine) == 1


def test_another_store_chain_is_refused_by_who_remembers(fleet: _Fleet) -> None:
    """A roster that only one machine has seen cannot be taken back from it, with anchor or not."""
    fleet.save("one", 1)
    held, anchored = fleet.store(), fleet.anchor()
    world = fleet.world
    world.anchored = fleet.shared
    world.change(lambda document: document)
    fleet.load("one")
    fleet.put_store_back(held)
    fleet.put_anchor_back(anchored)

    with pytest.raises(RolledBack):
        fleet.load("one")


def test_accepted_restore_holds_for_both_anchors(fleet: _Fleet) -> None:
    """What was lost by store and shared anchor is accepted once, and every machine goes on."""
    fleet.save("one", 1)
    held, anchored = fleet.store(), fleet.anchor()
    fleet.save("one", 2, 3, 4, 5, 6)
    fleet.load("three")
    fleet.put_store_back(held)
    fleet.put_anchor_back(anchored)
    with pytest.raises(RolledBack):
        fleet.load("one")
    core = fleet.world.core("operator", **fleet.parts("one"))
    plan = plan_restore(core, None)
    assert [each.lost > 0 for each in plan.losses] == [True]
    accept_restore(core, plan, "failover", release=True, roots=[key("root")], operators=[])

    for machine in ("one", "two"):
        assert fleet.load(machine) == 1
    fleet.save("two", 7)
    for machine in ("one", "three"):
        assert fleet.load(machine) == 7
        assert fleet.held(machine)[0] == fleet.held(machine)[1]


def test_reader_that_writes_nothing_is_judged_by_both(fleet: _Fleet) -> None:
    """Reading alone leaves the memory of a machine where it is, and misses nothing."""
    fleet.save("one", 1)
    fleet.load("two")
    before = fleet.held("two")
    fleet.save("one", 2)

    assert fleet.load("two", read_only=True) == 2
    assert fleet.held("two")[0] == before[0]


def test_shared_anchor_is_asked_once_for_a_load_and_twice_for_a_save() -> None:
    """Whoever is at the other end of a network is not asked for the same again within a call."""
    fleet = _Fleet(_PairedAnchor)
    parts = fleet.parts("one")
    handle = fleet.world.open(**parts).thread("t")
    handle.save(1)
    trips = parts["shared_anchor"].trips
    trips.clear()
    handle.save(2)
    assert trips == ["get", "advance_and_get"]
    trips.clear()
    handle.load()

    assert trips == ["get_both"]
    fleet.world.close()


def test_roster_that_changed_while_a_save_was_written_is_met(fleet: _Fleet) -> None:
    """What came along with the advance is newer than what the save began with."""
    parts = fleet.parts("one")
    store = fleet.world.open(**parts)
    handle = store.thread("t")
    handle.save(1)
    before = store.core.trust()
    parts["shared_anchor"].advancing.before = lambda: fleet.world.change(lambda roster: roster)
    handle.save(2)

    assert store.core._chain.seq == before.seq + 1


def test_plan_of_a_restore_has_the_pause_that_either_anchor_has_seen(fleet: _Fleet) -> None:
    """A shared anchor that was put back to before the pause does not take it out of the plan."""
    fleet.save("one", 1, 2)
    shared = fleet.anchor()
    store = fleet.store()
    fleet.open("one", who="operator", gated=True).thread("t").pause("stop")
    fleet.put_store_back(store)
    fleet.put_anchor_back(shared)
    core = fleet.open("one", read_only=True).core
    plan = plan_restore(core, None)

    assert [(each.paused, each.loses_pause) for each in plan.losses] == [(True, True)]
    assert plan.released(release=True) == ()


def test_slots_have_the_higher_marks_of_both(fleet: _Fleet) -> None:
    """A member who moves the shared anchor past a pause does not hide it from who plans."""
    fleet.save("one", 1)
    fleet.open("one", who="operator", gated=True).thread("t").pause("stop")
    slot = fleet.world.slot("t")
    seen = fleet.shared.get(slot)
    assert seen is not None
    moved = replace(seen, seq=seen.seq + 1, entry=b"m" * 32, pause=0, paused=False)
    fleet.shared._positions[slot] = moved
    found = dict(fleet.open("one", read_only=True).core.anchor.slots())[slot]

    assert (found.seq, found.pause, found.paused) == (moved.seq, seen.pause, True)
