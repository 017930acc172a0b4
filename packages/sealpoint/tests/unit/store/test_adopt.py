# SPDX-License-Identifier: Apache-2.0
"""Adoption: the one way back into an anchor that was lost, recorded and never around a slot."""

from typing import Any

import msgspec
import pytest

from sealpoint.anchor import Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import (
    Edited,
    Forked,
    Misplaced,
    Missing,
    NotTrusted,
    Pruned,
    SealpointError,
    Unanchored,
    UsageError,
)
from sealpoint.ledger import STORE_CHAIN, AdoptBody, Kind, parse_body, parse_header
from sealpoint.signing import Role
from sealpoint.storage import Record
from sealpoint.store import adopt_store_chain, adopt_thread, unanchored_threads
from tests.deployment import Deployment, SimulatedAnchor
from tests.ledgers import identity
from tests.unit.store.retained import enrolled, filled


def _lost(world: Deployment) -> None:
    """The anchor forgets everything."""
    world.anchored._positions.clear()


def _adopt_all(world: Deployment, who: str = "operator") -> list[str]:
    core = world.core(who)
    adopt_store_chain(core, "the disk died")
    names = unanchored_threads(core)
    for name, thread in names:
        adopt_thread(core, name, thread, "the disk died")
    return [name for name, _ in names]


@pytest.fixture
def lost(memory: Deployment) -> Deployment:
    """Two threads of some length, and an anchor that knows nothing."""
    store = memory.open()
    for name in ("b", "a"):
        for number in range(3):
            store.thread(name).save([name, number], id=f"c{number}")
    _lost(memory)
    return memory


def test_a_lost_anchor_refuses_everything(lost: Deployment) -> None:
    """Neither opening nor an open store goes on."""
    with pytest.raises(Unanchored):
        lost.open()
    with pytest.raises(Unanchored):
        lost.open(None, read_only=True)


def test_an_open_store_refuses_once_the_anchor_is_gone(memory: Deployment) -> None:
    """A store that was open when the anchor was lost does not go on from memory."""
    store = memory.open()
    store.thread("t").save(1)
    _lost(memory)

    for call in (
        store.thread("t").load,
        lambda: store.thread("t").save(2),
        store.threads,
        store.verify,
    ):
        with pytest.raises(Unanchored):
            call()


def test_adoption_restores_reading_and_writing(lost: Deployment) -> None:
    """After it everything is as it was, and the next save goes on."""
    assert _adopt_all(lost) == ["a", "b"]
    store = lost.open()

    assert store.threads().names == ("a", "b")
    assert store.thread("a").load().state == ["a", 2]
    assert [ref.id for ref in store.thread("b").history()] == ["c2", "c1", "c0"]
    assert store.thread("a").save("on").seq == 7
    assert store.verify().ok
    assert unanchored_threads(lost.core("operator")) == []


def test_adoption_is_recorded_in_every_chain(lost: Deployment) -> None:
    """Who took it in, and why, stays in the chain itself."""
    _adopt_all(lost)
    records: list[Record] = [lost.memory._records[STORE_CHAIN][1]]
    records += [lost.record(name, 5) for name in ("a", "b")]

    for record in records:
        header = parse_header(record.header)
        body: AdoptBody = parse_body(Kind.ADOPT, header.body, record.body or b"")
        assert header.kind is Kind.ADOPT
        assert body.reason == "the disk died"
    assert {event.code for event in lost.events} >= {"adopted"}


def test_a_known_store_chain_is_left_alone(memory: Deployment) -> None:
    """Adopting what the anchor knows writes nothing."""
    core = memory.core("operator")

    assert adopt_store_chain(core, "again") is False
    assert core.storage.read(STORE_CHAIN, 1) is None


def test_a_taken_slot_is_never_touched(memory: Deployment) -> None:
    """A store that is behind its anchor cannot be adopted away."""
    store = memory.open()
    store.thread("t").save(1)
    thread, position = memory.thread_id("t"), memory.position("t")
    memory.put(thread, 2, None)

    with pytest.raises(Forked, match="the anchor knows a thread in its place already"):
        adopt_thread(memory.core("operator"), "t", thread, "make it go away")
    assert memory.position("t") == position
    assert unanchored_threads(memory.core("operator")) == []


def test_a_slot_taken_meanwhile_is_not_overwritten(lost: Deployment) -> None:
    """Somebody enters another position between looking and writing: it stays."""
    core = lost.core("operator")
    adopt_store_chain(core, "moved")
    thread = dict(unanchored_threads(core))["a"]
    other = Position(b"o" * 16, 0, 0, 0, b"h" * 32)
    anchor = core.anchor
    assert isinstance(anchor, SimulatedAnchor)
    anchor.creating.before = lambda: lost.anchored.create(lost.slot("a"), other)

    with pytest.raises(Forked):
        adopt_thread(core, "a", thread, "moved")
    assert lost.position("a") == other


@pytest.mark.parametrize("who", ["worker", "stranger", "limited"])
def test_only_an_operator_of_everything_adopts_a_store(memory: Deployment, who: str) -> None:
    """A writer, a stranger and an operator of one namespace are refused, and nothing is written."""
    memory.enrol(identity("limited", Role.OPERATOR, namespaces=("billing",)))
    entries = len(memory.memory._records[STORE_CHAIN])
    _lost(memory)

    with pytest.raises(NotTrusted):
        adopt_store_chain(memory.core(who), "mine now")
    assert len(memory.memory._records[STORE_CHAIN]) == entries
    assert memory.anchored._positions == {}


@pytest.mark.parametrize("who", ["worker", "stranger"])
def test_only_an_operator_adopts_a_thread(lost: Deployment, who: str) -> None:
    """Not even the owner takes its thread in."""
    adopt_store_chain(lost.core("operator"), "moved")
    core = lost.core(who)
    thread = dict(unanchored_threads(core))["a"]

    with pytest.raises(NotTrusted, match=r"needs role operator|is not in roster|key"):
        adopt_thread(core, "a", thread, "mine now")
    assert lost.position("a") is None
    assert lost.memory._records[thread].keys() == set(range(5))


def _edited(record: Record, **changes: Any) -> Record:
    return msgspec.structs.replace(record, **changes)


def test_nothing_tampered_is_adopted(lost: Deployment) -> None:
    """Every entry is verified from the first one on: a chain with one bad entry stays outside."""
    core = lost.core("operator")
    adopt_store_chain(core, "moved")
    thread = dict(unanchored_threads(core))["a"]
    rows = dict(lost.memory._records[thread])
    changes: list[tuple[int, Record | None, type[SealpointError]]] = [
        (2, None, Missing),
        (1, _edited(rows[1], header=rows[1].header[:-1] + b" }"), Edited),
        (1, _edited(rows[1], body=rows[0].body), Edited),
        (3, _edited(rows[3], seals=rows[2].seals), SealpointError),
        (3, rows[2], Misplaced),
        (0, None, SealpointError),
        (0, rows[2], SealpointError),
    ]

    for seq, changed, error in changes:
        lost.put(thread, seq, changed)
        with pytest.raises(error):
            adopt_thread(core, "a", thread, "moved")
        assert lost.position("a") is None
        lost.put(thread, seq, rows[seq])
    assert adopt_thread(core, "a", thread, "moved") == 5


def test_a_thread_is_adopted_under_its_own_name_alone(lost: Deployment) -> None:
    """The name is in the signed genesis; calling the thread otherwise is refused."""
    core = lost.core("operator")
    adopt_store_chain(core, "moved")
    found = dict(unanchored_threads(core))

    with pytest.raises(Misplaced, match="its genesis has another name"):
        adopt_thread(core, "a", found["b"], "moved")
    with pytest.raises(Missing):
        adopt_thread(core, "a", b"x" * 16, "moved")
    assert lost.position("a") is None


def test_a_tampered_store_chain_is_not_adopted(lost: Deployment) -> None:
    """The store chain is verified from the pin before it is taken in."""
    record = lost.memory._records[STORE_CHAIN][0]
    lost.put(STORE_CHAIN, 0, _edited(record, body=b"{}"))

    with pytest.raises(Edited):
        adopt_store_chain(lost.core("operator"), "moved")
    assert lost.anchored._positions == {}


@pytest.mark.parametrize("reason", ["", " \n"])
def test_a_reason_is_required(lost: Deployment, reason: str) -> None:
    """Whoever vouches for a store says why."""
    core = lost.core("operator")

    with pytest.raises(UsageError, match="a reason is needed"):
        adopt_store_chain(core, reason)
    with pytest.raises(UsageError, match="a reason is needed"):
        adopt_thread(core, "a", b"x" * 16, reason)


def test_threads_of_other_namespaces_are_left_out(memory: Deployment) -> None:
    """Each namespace is adopted on its own."""
    memory.open().thread("t").save(1)
    memory.open(namespace="billing").thread("u").save(1)
    _lost(memory)
    core = memory.core("operator", namespace="billing")
    adopt_store_chain(core, "moved")

    assert [name for name, _ in unanchored_threads(core)] == ["u"]


def test_a_second_machine_adopts_and_both_go_on() -> None:
    """Two anchors share a store: each knows what it has seen, and neither is disturbed."""
    world = Deployment()
    here = world.open()
    here.thread("t").save(1)
    anchor = SimulatedAnchor(MemoryAnchor(), closes=False)
    core = world.core("operator", anchor=anchor)
    adopt_store_chain(core, "a second machine")
    adopt_thread(core, "t", world.thread_id("t"), "a second machine")
    there = world.open(anchor=anchor)

    assert there.thread("t").load().state == 1
    assert there.thread("t").save(2).seq == 5
    assert here.thread("t").load().state == 2
    assert here.thread("t").save(3).seq == 7
    assert there.thread("t").load().state == 3
    world.close()


def test_an_interrupted_adoption_is_repeated(lost: Deployment) -> None:
    """An entry that was written before the anchor failed does no harm to the next attempt."""
    core = lost.core("operator")
    adopt_store_chain(core, "moved")
    thread = dict(unanchored_threads(core))["a"]
    anchor = core.anchor
    assert isinstance(anchor, SimulatedAnchor)

    def interrupt() -> None:
        raise KeyboardInterrupt

    anchor.creating.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        adopt_thread(core, "a", thread, "moved")

    assert adopt_thread(core, "a", thread, "moved again") == 6
    assert lost.open().thread("a").load().state == ["a", 2]


def test_pruned_threads_and_new_generations_are_adopted(memory: Deployment) -> None:
    """What was given up is given up under the new anchor too; an erased thread has no name left."""
    enrolled(memory)
    for name in ("pruned", "erased", "anew"):
        filled(memory.open(), 3, name=name)
    memory.open().thread("pruned").prune(keep_last=1)
    for name in ("erased", "anew"):
        memory.open("officer").thread(name).erase(reason="x")
    filled(memory.open(), 2, name="anew")
    _lost(memory)

    assert _adopt_all(memory) == ["anew", "pruned"]
    store = memory.open()
    assert [ref.id for ref in store.thread("anew").history()] == ["c1", "c0"]
    with pytest.raises(Pruned):
        store.thread("pruned").load("c0")
    assert [finding.code for finding in store.verify().findings] == ["unanchored"]


def test_a_planted_entry_in_the_place_of_a_later_genesis_is_no_thread(memory: Deployment) -> None:
    """Another kind, and a genesis of another thread, name nothing."""
    enrolled(memory)
    for name in ("t", "u"):
        filled(memory.open(), 1, name=name)
        memory.open("officer").thread(name).erase(reason="x")
        filled(memory.open(), 1, name=name)
    thread, genuine = memory.thread_id("t"), memory.record("t", 4)
    planted = memory.record("u", 4)
    _lost(memory)
    memory.put(thread, 4, planted)

    assert [name for name, _ in unanchored_threads(memory.core("operator"))] == ["u"]
    memory.put(thread, 4, genuine)
    assert [name for name, _ in unanchored_threads(memory.core("operator"))] == ["t", "u"]
