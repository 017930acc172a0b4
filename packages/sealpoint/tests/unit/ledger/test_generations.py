# SPDX-License-Identifier: Apache-2.0
"""Prunes and erasures in a thread's chain: who may write what after them, with bodies gone."""

from typing import Any

import pytest

from sealpoint.errors import Edited, Misplaced, Missing, NotTrusted, SealpointError
from sealpoint.ledger import Kind, begin, encode_body, read_fence
from sealpoint.signing import Pool, Role
from sealpoint.storage import Record
from tests.ledgers import ThreadLedger, genesis_body, identity, resume_body, solo

_TEAM = solo(
    identity("worker", keys=("worker", "spare")),
    identity("other"),
    identity("officer", Role.PRIVACY),
    identity("operator", Role.OPERATOR),
    identity("pod-1"),
    identity("pod-2"),
    pools=[Pool("pods", ("pod-1", "pod-2"))],
)
_BEGINNING = (Kind.GENESIS, Kind.RESUME, Kind.CHECKPOINT)


def _begun() -> ThreadLedger:
    return ThreadLedger(_TEAM).begun()


def _erased() -> ThreadLedger:
    """A thread of entries 0 to 2 that was erased at entry 3."""
    ledger = _begun()
    ledger.add(Kind.ERASE, signer="officer")
    return ledger


def _regenerated() -> ThreadLedger:
    """The same with a second generation, at entries 4 to 6."""
    ledger = _erased()
    for kind in _BEGINNING:
        ledger.add(kind)
    return ledger


def _refused(ledger: ThreadLedger, record: Record, error: type[SealpointError], why: str) -> None:
    with pytest.raises(error, match=why) as caught:
        ledger.follow(record)

    assert caught.type is error


# ---------------------------------------------------------------------- prunes


def test_a_prune_touches_no_session() -> None:
    """It names the fence in force, and the session goes on behind it."""
    ledger = _begun()
    ledger.add(Kind.PRUNE)
    ledger.add(Kind.CHECKPOINT)
    tip = ledger.tip

    assert tip is not None
    assert (tip.fence.seq, tip.fence.is_session, tip.entry.header.gen) == (1, True, 0)


def test_a_prune_needs_no_session_of_its_writer() -> None:
    """The owner's other key, and another member of the pool, may prune beside the session."""
    ledger = _begun()
    ledger.add(Kind.PRUNE, signer="spare")
    ledger.add(Kind.CHECKPOINT)
    pods = ThreadLedger(_TEAM, writer="pod-1", owner="pods").begun()
    pods.add(Kind.PRUNE, signer="pod-2")
    pods.add(Kind.CHECKPOINT)
    early = ThreadLedger(_TEAM)
    early.add(Kind.GENESIS)
    early.add(Kind.PRUNE)

    for each, seq in ((ledger, 4), (pods, 4), (early, 1)):
        assert each.tip is not None
        assert each.tip.entry.seq == seq


# ---------------------------------------------------------------------- erasures


def test_an_erasure_ends_the_session_and_the_ownership() -> None:
    """It is its own fence; nobody owns a thread that holds nothing."""
    tip = _erased().tip

    assert tip is not None
    assert (tip.fence.seq, tip.fence.owner) == (3, None)
    assert tip.fence.erased
    assert not tip.fence.is_session
    tip.require_owner()


@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.RESUME, Kind.PRUNE, Kind.ERASE, Kind.ADOPT])
@pytest.mark.parametrize("gen", [0, 1])
def test_only_a_genesis_follows_an_erasure(kind: Kind, gen: int) -> None:
    """Nothing goes on from a thread that holds nothing, in its old generation or its next."""
    ledger = _erased()
    signer = {Kind.ERASE: "officer", Kind.ADOPT: "operator"}.get(kind, "worker")
    record = ledger.record(kind, signer=signer, gen=gen)

    _refused(ledger, record, Misplaced, "expected a genesis after an erasure and nowhere else")


@pytest.mark.parametrize("gen", [0, 2, 7])
def test_generations_are_counted_one_by_one(gen: int) -> None:
    """A genesis after an erasure is of the next generation and of no other."""
    ledger = _erased()

    _refused(ledger, ledger.record(Kind.GENESIS, gen=gen), Misplaced, f"generation 1, found {gen}")


def test_a_new_generation_goes_on_at_the_next_position() -> None:
    """Same thread, linked to the erasure, with an owner and sessions of its own."""
    ledger = _regenerated()
    tip = ledger.tip

    assert tip is not None
    assert (tip.entry.seq, tip.entry.header.gen) == (6, 1)
    assert (tip.fence.seq, tip.fence.owner, tip.fence.is_session) == (5, "worker", True)
    for gen in (0, 2):
        record = ledger.record(Kind.CHECKPOINT, gen=gen)
        _refused(ledger, record, Misplaced, f"expected generation 1, found {gen}")


def test_another_owner_may_begin_a_generation() -> None:
    """Whoever may write in the namespace; the owner before has no say any more."""
    ledger = _erased()
    ledger.owner = "other"
    for kind in _BEGINNING:
        ledger.add(kind, signer="other")

    record = ledger.record(Kind.RESUME, resume_body("other"))
    _refused(ledger, record, NotTrusted, "expected owner 'other', found 'worker'")


_GENESIS: dict[str, tuple[dict[str, Any], type[SealpointError], str]] = {
    "another fence": ({"fence": 3}, NotTrusted, "names entry 3 for the session in force"),
    "another pause": ({"pause": 3}, NotTrusted, "names entry 3 for the pause in force"),
    "another owner": ({"owner": 3}, NotTrusted, "names entry 3 for the owner in force"),
    "no previous hash": ({"prev": None}, Misplaced, "expected the links"),
    "no skip hash": ({"skip": None}, Misplaced, "expected the links"),
}


@pytest.mark.parametrize(("changes", "error", "why"), _GENESIS.values(), ids=_GENESIS)
def test_a_later_genesis_is_linked_like_any_entry(
    changes: dict[str, Any], error: type[SealpointError], why: str
) -> None:
    """It begins a generation and not a chain."""
    ledger = _erased()

    _refused(ledger, ledger.record(Kind.GENESIS, **changes), error, why)


def test_a_later_genesis_is_judged_like_the_first() -> None:
    """Its writer gives the thread to itself alone, and its body must be its own."""
    ledger = _erased()
    record = ledger.record(Kind.GENESIS)
    other = encode_body(genesis_body("other"))

    _refused(ledger, ledger.record(Kind.GENESIS, genesis_body("other")), NotTrusted, "found 'wo")
    _refused(ledger, Record(record.header, record.seals, other), Edited, "expected the one with")
    tip = ledger.follow(Record(record.header, record.seals, None))
    with pytest.raises(Missing, match="entry 4 of"):
        tip.require_owner()


def test_a_later_genesis_begins_no_chain() -> None:
    """A chain whose first entries were cut away has no beginning, generation or not."""
    ledger = _regenerated()
    record = ledger.records[4]
    entry = ledger.verify(record, 4)

    with pytest.raises(Misplaced, match="expected a genesis"):
        begin(entry, record.body, _TEAM)
    first = ThreadLedger(_TEAM)
    _refused(first, first.record(Kind.GENESIS, gen=1), Misplaced, "expected a genesis")


# ---------------------------------------------------------------------- with bodies gone


def test_a_chain_verifies_with_everything_before_an_erasure_gone() -> None:
    """Headers and signatures are enough; what the erasure says itself is not needed either."""
    ledger = _regenerated()

    for gone in ((0, 1, 2), (0,), (1,), (2,), (0, 1, 2, 3)):
        found = ledger.forget(*gone)
        assert found.tip is not None
        assert ledger.tip is not None
        assert (found.tip.entry, found.tip.fence) == (ledger.tip.entry, ledger.tip.fence)
        found.tip.require_owner()


def test_a_chain_verifies_through_several_erasures() -> None:
    """Each generation is judged by its own bodies, as far as they are there."""
    ledger = _regenerated()
    ledger.add(Kind.ERASE, signer="officer")
    for kind in _BEGINNING:
        ledger.add(kind)
    found = ledger.forget(*range(7))

    assert found.tip is not None
    assert (found.tip.entry.seq, found.tip.entry.header.gen) == (10, 2)
    assert found.tip.fence.owner == "worker"
    found.tip.require_owner()


@pytest.mark.parametrize("gone", [0, 1])
def test_a_missing_owner_is_not_made_up_for_by_a_later_body(gone: int) -> None:
    """Whoever made the body go missing could be the one who wrote the later one."""
    ledger = _begun()
    ledger.add(Kind.RESUME)
    ledger.add(Kind.CHECKPOINT)
    found = ledger.forget(gone)
    assert found.tip is not None

    assert found.tip.fence.owner is None
    with pytest.raises(Missing, match="its body is missing"):
        found.tip.require_owner()


def test_a_thread_whose_owner_is_unknown_cannot_be_taken_over() -> None:
    """Another writer goes on after a body that was taken away: it ends in Missing all the same."""
    ledger = _begun().forget(1)
    ledger.owner = "other"
    for kind in (Kind.RESUME, Kind.CHECKPOINT):
        ledger.add(kind, signer="other")
    assert ledger.tip is not None

    assert ledger.tip.fence.owner is None
    with pytest.raises(Missing):
        ledger.tip.require_owner()


def test_only_an_erasure_makes_a_missing_body_right() -> None:
    """The same chain, once an identity with the privacy role has erased it."""
    ledger = _begun().forget(0, 1)
    ledger.add(Kind.ERASE, signer="officer")
    assert ledger.tip is not None
    ledger.tip.require_owner()

    for kind in _BEGINNING:
        ledger.add(kind)
    ledger.tip.require_owner()
    assert ledger.tip.fence.owner == "worker"


def test_a_session_is_held_to_its_key_even_where_the_owner_is_unknown() -> None:
    """What can still be judged without bodies is judged: roles, fences and sessions."""
    ledger = _begun().forget(0, 1)

    record = ledger.record(Kind.CHECKPOINT, signer="other")
    _refused(ledger, record, NotTrusted, "expected the key that opened session 1")
    record = ledger.record(Kind.CHECKPOINT, fence=0)
    _refused(ledger, record, NotTrusted, "names entry 0 for the session .* and that is entry 1")


def test_an_edited_body_is_no_missing_one() -> None:
    """Only a body that is gone is let pass: other bytes in its place are Edited at once."""
    ledger = _begun()
    record = ledger.record(Kind.RESUME)

    for body in (b"", b"{}", encode_body(resume_body("worker", 9))):
        _refused(ledger, Record(record.header, record.seals, body), Edited, "expected the one with")


def test_the_fence_of_an_erasure_is_read_without_its_body() -> None:
    """That the thread was erased is in the header, which stays."""
    ledger = _erased()
    entry = ledger.verify(ledger.records[3], 3)
    assert ledger.tip is not None

    for body in (ledger.records[3].body, None):
        assert read_fence(entry, body) == ledger.tip.fence
