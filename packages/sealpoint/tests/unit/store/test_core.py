# SPDX-License-Identifier: Apache-2.0
"""The store chain of an open store: followed, compared with the anchor, never turned back."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from sealpoint.anchor import Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    Forked,
    HeadMoved,
    KeyMissing,
    Missing,
    NotTrusted,
    RolledBack,
    SealpointError,
)
from sealpoint.ledger import STORE_CHAIN, StoreChain, parse_header
from sealpoint.storage import Record
from sealpoint.store import append_roster
from sealpoint.store._names import store_slot
from tests.deployment import Deployment, SimulatedAnchor
from tests.ledgers import identity, key, pin, roster


def _slot_of(world: Deployment) -> bytes:
    return store_slot(world.secret)


def test_a_new_roster_is_followed_by_every_open_store(world: Deployment) -> None:
    """Each store sees it with its next call, and the anchor with it."""
    stores = [world.open(), world.open("second")]
    world.enrol(identity("second"))

    for store in stores:
        assert store.core.trust().roster.seq == 1
    assert stores[1].thread("t").save(1).writer == "second"


def test_a_roster_that_the_anchor_has_not_seen_is_entered(memory: Deployment) -> None:
    """A roster is in force once it is in the store: the anchor catches up when it is needed."""
    core = memory.core("worker")
    append_roster(
        core, core.trust(), roster(*memory.people, identity("second")), [key("root")], reason="new"
    )
    anchored = memory.anchored.get(_slot_of(memory))
    assert anchored is not None

    assert anchored.seq == 0
    assert core.trust().roster.seq == 0
    assert memory.open().core.trust().roster.seq == 1
    caught_up = memory.anchored.get(_slot_of(memory))
    assert caught_up is not None
    assert caught_up.seq == 1


def test_an_entry_of_a_newer_roster_renews_trust(memory: Deployment) -> None:
    """A thread's entry may name a roster that came after the anchor was looked at."""
    reader = memory.open(None, read_only=True)
    reader.core.trust()
    stale = memory.anchored.get(_slot_of(memory))
    memory.enrol(identity("second"))
    memory.open("second").thread("t").save(1)
    newer = memory.anchored.get(_slot_of(memory))
    assert stale is not None
    assert newer is not None
    memory.turn_anchor(_slot_of(memory), stale)

    assert reader.thread("t").load().ref.writer == "second"


def test_a_missing_roster_is_a_rollback(memory: Deployment) -> None:
    """A store that lacks what the anchor has seen of its chain is refused for everything."""
    memory.enrol(identity("second"))
    memory.open().thread("t").save(1)
    memory.put(STORE_CHAIN, 1, None)

    with pytest.raises(RolledBack, match="store chain: expected 2 entries"):
        memory.open()
    memory.put(STORE_CHAIN, 0, None)
    with pytest.raises(RolledBack):
        memory.open()


def test_a_pin_demands_its_roster(memory: Deployment) -> None:
    """A pin that believes no roster before the next one refuses an older store."""
    memory.enrol(identity("second"))

    assert memory.open(pin=pin(roster_seq_min=1)).core.trust().roster.seq == 1
    with pytest.raises(RolledBack, match="expected roster 2 or later, which the pin names"):
        memory.open(pin=pin(roster_seq_min=2))


def test_another_pin_trusts_nothing_here(memory: Deployment) -> None:
    """With another root or another store id, nothing in this store is believed."""
    with pytest.raises(NotTrusted):
        memory.open(pin=pin("mallory"))


def test_an_edited_store_chain_is_refused(memory: Deployment) -> None:
    """Every part of every entry of the chain is checked when the store is opened."""
    record = memory.memory._records[STORE_CHAIN][0]

    for changed in (
        Record(record.header, record.seals, b"{}"),
        Record(record.header[:-1] + b" }", record.seals, record.body),
        Record(record.header, b"[]", record.body),
    ):
        memory.put(STORE_CHAIN, 0, changed)
        with pytest.raises(Edited):
            memory.open()
    memory.put(STORE_CHAIN, 0, Record(record.header, record.seals, None))
    with pytest.raises(SealpointError):
        memory.open()


def test_a_hole_in_the_store_chain_is_missing(memory: Deployment) -> None:
    """An entry that is not the next one is not taken for it."""
    memory.enrol(identity("second"))
    memory.enrol(identity("third"))
    memory.put(STORE_CHAIN, 1, None)

    with pytest.raises(Missing, match="expected entry 1, found entry 2"):
        memory.open()


def test_another_chain_than_the_anchored_is_a_fork(memory: Deployment) -> None:
    """The root signed two rosters for one position; the anchor has seen one of them."""
    memory.enrol(identity("second"))
    other = Deployment()
    other.enrol(identity("third"))
    memory.put(STORE_CHAIN, 0, other.memory._records[STORE_CHAIN][0])
    memory.put(STORE_CHAIN, 1, other.memory._records[STORE_CHAIN][1])

    with pytest.raises(Forked, match="store chain entry 1"):
        memory.open()
    other.close()


@pytest.mark.parametrize("seq", [0, 1])
def test_an_anchor_that_moves_elsewhere_while_it_is_followed_is_a_fork(
    memory: Deployment, seq: int
) -> None:
    """What the anchor holds after a lost swap is compared with the chain like any other."""
    store = memory.open()
    memory.enrol(identity("second"))
    anchored = memory.anchored.get(_slot_of(memory))
    assert anchored is not None
    chain = store.core.renewed_trust()
    first = Position(STORE_CHAIN, 0, 0, 0, chain.hashes[0])
    memory.turn_anchor(_slot_of(memory), first)
    elsewhere = Position(STORE_CHAIN, 0, 0, seq, b"e" * 32)
    store.anchor.advancing.before = lambda: memory.turn_anchor(_slot_of(memory), elsewhere)

    with pytest.raises(Forked):
        store.core.renewed_trust()
    with pytest.raises(Forked):
        store.thread("t").save(1)


def test_an_anchor_that_moves_on_while_it_is_followed_is_followed(memory: Deployment) -> None:
    """Two stores meet a new roster at once: the slower one accepts what the faster entered."""
    store = memory.open()
    core = memory.core("worker")
    append_roster(core, core.trust(), roster(*memory.people, identity("second")), [key("root")])
    store.anchor.advancing.before = lambda: memory.core("worker").renewed_trust()

    assert store.core.renewed_trust().seq == 1


def test_enough_root_keys_are_needed_to_write_a_roster(memory: Deployment) -> None:
    """Keys that are none of the root's do not count, and nothing is written without enough."""
    core = memory.core("worker")

    for signers in ([], [key("worker")], [key("mallory"), key("operator")]):
        with pytest.raises(KeyMissing, match="1 of its keys are needed here, found 0"):
            append_roster(core, core.trust(), roster(*memory.people), signers)
    assert core.storage.read(STORE_CHAIN, 1) is None


def test_a_roster_is_judged_before_it_is_written(memory: Deployment) -> None:
    """What every reader would refuse is refused by the writer."""
    core = memory.core("worker")

    with pytest.raises(NotTrusted, match="lost a right without a cutoff"):
        append_roster(core, core.trust(), roster(identity("worker")), [key("root")])
    assert core.storage.read(STORE_CHAIN, 1) is None


def test_two_rosters_do_not_share_a_position(memory: Deployment) -> None:
    """Of two writers of the store chain one is told that the head has moved."""
    one, two = memory.core("worker"), memory.core("worker")
    before = one.trust()
    append_roster(two, two.trust(), roster(*memory.people, identity("second")), [key("root")])

    with pytest.raises(HeadMoved):
        append_roster(one, before, roster(*memory.people, identity("third")), [key("root")])


def test_the_store_chain_enters_an_anchor_once(memory: Deployment) -> None:
    """Whoever finds the slot taken by another chain does not overwrite it."""
    anchor = SimulatedAnchor(MemoryAnchor(), closes=False)
    core = memory.core("worker", anchor=anchor)
    other = Position(STORE_CHAIN, 0, 0, 0, b"o" * 32)
    anchor.creating.before = lambda: anchor.inner.create(_slot_of(memory), other)

    with pytest.raises(AnchorUnavailable, match="the anchor has a position for it already"):
        core.anchor_store_chain()
    assert anchor.get(_slot_of(memory)) == other


def test_a_store_without_a_chain_has_no_roster(memory: Deployment) -> None:
    """An empty store is refused by the pin alone."""
    core = memory.core("worker", pin=pin())
    memory.put(STORE_CHAIN, 0, None)

    with pytest.raises(NotTrusted, match="store chain: it has no roster"):
        core.verified_store_chain()
    assert StoreChain(pin()).seq == -1


def test_time_is_the_later_of_clock_and_thread(memory: Deployment) -> None:
    """Effective time is in UTC and never before what the thread already has."""
    late = datetime(2030, 1, 1, tzinfo=UTC)
    zone = timezone(timedelta(hours=5))
    core = memory.core("worker", now=lambda: datetime(2029, 1, 1, 5, tzinfo=zone))

    assert core.now() == datetime(2029, 1, 1, tzinfo=UTC)
    assert core.now().tzinfo is UTC
    assert core.now(late) == late
    assert core.now(datetime(2001, 1, 1, tzinfo=UTC)) == core.now()


def test_a_writer_that_no_roster_knows_is_shown_by_its_key(memory: Deployment) -> None:
    """The name of a writer is looked up in the roster that its entry names."""
    core = memory.open().core
    memory.open().thread("t").save(1)
    header = parse_header(memory.record("t", 2).header)

    assert core.writer(header) == "worker"
    changed: tuple[dict[str, Any], ...] = ({"roster": 9}, {"by": "ab" * 32})
    for changes in changed:
        unknown = msgspec.structs.replace(header, **changes)
        assert core.writer(unknown) == unknown.by
