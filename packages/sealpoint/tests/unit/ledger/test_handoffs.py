# SPDX-License-Identifier: Apache-2.0
"""A thread is given away by its owner, or by an operator who carries another person's approval."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import Edited, Misplaced, Missing, NotTrusted
from sealpoint.ledger import Kind, StoreChain, check_handoff, encode_body
from sealpoint.signing import Action, Attestation
from sealpoint.storage import Record
from tests.ledgers import NOW, ThreadLedger, pin
from tests.unit.ledger.gating import (
    add,
    approve,
    begun,
    deny,
    handed_off,
    handoff,
    record,
    refusal,
    stated,
)


def _given(ledger: ThreadLedger, made: Record) -> ThreadLedger:
    """The thread once a handoff follows it."""
    ledger.tip = ledger.follow(made)
    ledger.records.append(made)
    return ledger


def _owner(ledger: ThreadLedger) -> str | None:
    assert ledger.tip is not None
    return ledger.tip.fence.owner


# ---------------------------------------------------------------------- by the owner


@pytest.mark.parametrize("to", ["second", "worker", "pods"])
def test_the_owner_gives_the_thread_away(to: str) -> None:
    """To a writer, to itself, or to a pool of writers; no approval is asked for."""
    ledger = begun()
    _given(ledger, ledger.record(Kind.HANDOFF, handoff(to)))

    assert ledger.tip is not None
    assert (ledger.tip.fence.owner, ledger.tip.fence.seq) == (to, 3)
    assert not ledger.tip.fence.is_session
    assert ledger.tip.basis == (3, ledger.tip.entry.hash)


@pytest.mark.parametrize("who", ["worker", "second"])
def test_a_member_gives_away_what_its_pool_owns(who: str) -> None:
    """A pool owns as its members do."""
    ledger = begun("pods")

    assert _owner(_given(ledger, ledger.record(Kind.HANDOFF, handoff("worker"), signer=who)))


@pytest.mark.parametrize("to", ["nobody", "operator", "elsewhere", "mixed", "scattered", "empty"])
def test_nobody_takes_a_thread_who_could_not_write_it(to: str) -> None:
    """Not an unknown name, not another role or namespace, not a pool with such a member or none."""
    ledger = begun()
    error = refusal(ledger, ledger.record(Kind.HANDOFF, handoff(to)))
    about = stated(ledger, to=to)
    approved = refusal(ledger, handed_off(ledger, about=about, owner=to))
    for each in (error, approved):
        assert type(each) is NotTrusted
        assert "expected a writer or a pool of writers as the next owner" in str(each)


@pytest.mark.parametrize("kind", [Kind.RESUME, Kind.CHECKPOINT, Kind.PRUNE, Kind.HANDOFF])
def test_the_old_owner_writes_nothing_more(kind: Kind) -> None:
    """A late write is refused although the key is valid."""
    ledger = add(begun(), Kind.HANDOFF)

    assert type(refusal(ledger, record(ledger, kind))) is NotTrusted


def test_a_handoff_ends_the_session_of_the_same_owner_too() -> None:
    """Whoever kept the thread begins a session of its own."""
    ledger = begun()
    _given(ledger, ledger.record(Kind.HANDOFF, handoff("worker")))
    for fence in (1, 3):
        made = ledger.record(Kind.CHECKPOINT, fence=fence)
        assert type(refusal(ledger, made)) is NotTrusted
    add(ledger, Kind.RESUME, Kind.CHECKPOINT)


def test_the_new_owner_goes_on() -> None:
    """It resumes and saves; a resume that names the old owner is refused."""
    ledger = add(begun(), Kind.HANDOFF)
    ledger.writer = "second"
    old = ledger.record(Kind.RESUME)
    ledger.owner = "second"

    assert type(refusal(ledger, old)) is NotTrusted
    assert _owner(add(ledger, Kind.RESUME, Kind.CHECKPOINT)) == "second"


def test_a_handoff_sets_the_fence() -> None:
    """One that names the fence before it is refused."""
    ledger = begun()

    assert type(refusal(ledger, record(ledger, Kind.HANDOFF, fence=1))) is NotTrusted


# ---------------------------------------------------------------------- by an operator


def test_an_operator_needs_the_approval_of_another_person() -> None:
    """With it in the body of the entry every reader believes the handoff."""
    ledger = begun()

    assert _owner(_given(ledger, handed_off(ledger))) == "second"


@pytest.mark.parametrize("who", ["operator", "second", "ann", "elsewhere"])
def test_without_an_approval_nobody_else_gives_a_thread_away(who: str) -> None:
    """No operator, no other writer, no approver, nobody of another namespace."""
    ledger = begun()

    assert type(refusal(ledger, record(ledger, Kind.HANDOFF, signer=who))) is NotTrusted


def test_a_writer_is_no_operator_even_with_an_approval() -> None:
    """The approval that it carries names it as the one who asks; that does not help."""
    ledger = begun()
    made = handed_off(ledger, signer="second", about=stated(ledger, requester="second"))
    error = refusal(ledger, made)

    assert type(error) is NotTrusted
    assert "expected owner 'worker', or an operator with approval, found 'second'" in str(error)


def test_a_member_of_the_owning_pool_who_is_no_writer_needs_approval() -> None:
    """Owning is for writers: an operator in the pool is an operator."""
    ledger = begun("mixed")

    assert type(refusal(ledger, record(ledger, Kind.HANDOFF, signer="operator"))) is NotTrusted
    assert _owner(_given(ledger, handed_off(ledger))) == "second"


_CHECKPOINT = "22" * 32


_RESUME = {"action": Action.RESUME, "checkpoint": _CHECKPOINT, "release": "77" * 32, "to": None}


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("action", _RESUME),
        ("new owner", {"to": "pods"}),
        ("requester", {"requester": "marked"}),
        ("store", {"store": "ff" * 16}),
        ("namespace", {"ns": "billing"}),
        ("thread", {"thread": "ff" * 16}),
        ("epoch", {"epoch": 1}),
        ("generation", {"gen": 1}),
        ("basis", {"basis": "11" * 32}),
    ],
)
def test_an_approval_for_something_else_is_refused(what: str, changes: dict[str, Any]) -> None:
    """Every binding is compared with the entry that spends it."""
    ledger = begun()
    error = refusal(ledger, handed_off(ledger, about=stated(ledger, **changes)))

    assert type(error) is Misplaced
    assert f"expected an approval for {what} " in str(error)


@pytest.mark.parametrize("kind", [Kind.CHECKPOINT, Kind.PRUNE, Kind.RESUME])
def test_an_approval_ends_with_its_basis(kind: Kind) -> None:
    """Once the thread has gone on, the approver saw another thread."""
    ledger = begun()
    about = stated(ledger)
    add(ledger, kind)

    assert "for basis" in str(refusal(ledger, handed_off(ledger, about=about)))


def test_an_approval_outlives_what_people_say() -> None:
    """Requests, verdicts and pauses in between leave it as it is."""
    ledger = begun()
    about = stated(ledger)
    add(ledger, Kind.REQUEST, Kind.PAUSE, Kind.APPROVAL, Kind.UNPAUSE)

    assert _owner(_given(ledger, handed_off(ledger, about=about))) == "second"


def test_an_approval_is_spent_once() -> None:
    """The handoff moves the basis, so the same approval fits no second one."""
    ledger = begun()
    about = stated(ledger)
    _given(ledger, handed_off(ledger, about=about))

    assert "for basis" in str(refusal(ledger, handed_off(ledger, about=about)))


def test_an_expired_approval_is_refused() -> None:
    """At the very time of its expiry it is over; a microsecond before it is not."""
    ledger = begun()
    about, at = stated(ledger), NOW + timedelta(days=1)
    error = refusal(ledger, handed_off(ledger, about=about, at=at))
    ledger.follow(handed_off(ledger, about=about, at=at - timedelta(microseconds=1)))

    assert type(error) is Misplaced
    assert "found one that has expired" in str(error)


def test_turning_the_clock_back_revives_no_approval() -> None:
    """The time of the entry before it counts, where that is later."""
    ledger = begun()
    about = stated(ledger, expires=NOW + timedelta(seconds=2))
    error = refusal(ledger, handed_off(ledger, about=about, at=NOW))

    assert type(error) is Misplaced
    assert "found one that has expired" in str(error)


def _words(ledger: ThreadLedger, case: str) -> tuple[Attestation, ...]:
    about, other = stated(ledger), stated(ledger, nonce="77" * 16)
    approved = approve(about, "ann")
    return {
        "none": (),
        "denied": (*approved, *deny(about, "bob")),
        "withdrawn": (*approved, *deny(about, "operator")),
        "the requester's own": approve(about, "operator-at-night"),
        "a writer's": approve(about, "second"),
        "of another namespace": approve(about, "elsewhere"),
        "by an expired key": approve(about, "late"),
        "by a stranger": approve(about, "mallory"),
        "for another statement": approve(other, "ann"),
        "forged": (replace(approved[0], reason="read it twice"),),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        *("none", "denied", "withdrawn", "the requester's own", "a writer's", "by a stranger"),
        *("of another namespace", "by an expired key", "for another statement", "forged"),
    ],
)
def test_what_does_not_count_does_not_approve(case: str) -> None:
    """The words in the body are counted as the gate counts them."""
    ledger = begun()
    error = refusal(ledger, handed_off(ledger, _words(ledger, case)))

    assert type(error) is NotTrusted
    assert "nobody else than the requester has approved it" in str(error)


# ---------------------------------------------------------------------- what cannot be read


def test_a_handoff_without_its_body_leaves_the_owner_unknown() -> None:
    """It is an alarm while the thread lives, and right once the thread was erased."""
    ledger = add(begun(), Kind.HANDOFF)
    gone = ledger.forget(3)
    assert gone.tip is not None
    with pytest.raises(Missing, match="entry 3"):
        gone.tip.require_owner()
    add(gone, Kind.ERASE)

    assert gone.tip is not None
    gone.tip.require_owner()


def test_an_owner_who_is_unknown_stays_so_after_a_handoff() -> None:
    """Whoever made the genesis go missing does not name the owner by a handoff."""
    ledger = add(begun(), Kind.HANDOFF).forget(0)

    assert _owner(ledger) is None


def test_another_body_than_the_handoff_names_is_refused() -> None:
    """Also one that says the same in another spelling."""
    ledger = begun()
    made = record(ledger, Kind.HANDOFF)
    other = replace(made, body=encode_body(handoff("pods")))

    assert type(refusal(ledger, other)) is Edited


def test_a_handoff_under_an_unknown_roster_is_refused() -> None:
    """It is asked again where a handoff is judged, whoever verified the entry before."""
    ledger = begun()
    made = record(ledger, Kind.HANDOFF)
    entry = ledger.verify(made)
    with pytest.raises(NotTrusted, match="expected a roster of the store chain, found 0"):
        check_handoff(
            entry,
            made.body,
            owner="worker",
            basis="11" * 32,
            now=NOW,
            chain=StoreChain(pin()),
        )
