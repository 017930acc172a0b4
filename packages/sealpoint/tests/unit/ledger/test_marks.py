# SPDX-License-Identifier: Apache-2.0
"""A header names the session, the pause and the owner in force, and nobody leaves one out."""

from typing import Any

import pytest
from msgspec.structs import replace

from sealpoint.errors import Missing, NotTrusted
from sealpoint.ledger import KINDS, RESERVED, Kind, Marks, OwnerEntry, parse_header
from sealpoint.storage import Record
from tests.ledgers import ThreadLedger, genesis_body
from tests.unit.ledger.gating import add, begun, record, refusal, team

_SETTLING = {
    "fence": {Kind.GENESIS, Kind.RESUME, Kind.HANDOFF, Kind.ERASE},
    "pause": {Kind.GENESIS, Kind.PAUSE, Kind.UNPAUSE, Kind.ERASE},
    "owner": {Kind.GENESIS, Kind.HANDOFF, Kind.ERASE},
}
_WORDS = {"fence": "session", "pause": "pause", "owner": "owner"}
_ON_RESERVED = {
    *(Kind.GENESIS, Kind.REQUEST, Kind.APPROVAL, Kind.DENIAL, Kind.BREAK_GLASS),
    *(Kind.EXPIRY, Kind.ADOPT),
}


def _lived() -> ThreadLedger:
    """A thread that was paused at 3, unpaused at 4, handed off at 5 and erased at 9."""
    ledger = add(begun(), Kind.PAUSE, Kind.UNPAUSE, Kind.HANDOFF)
    ledger.writer = ledger.owner = "second"
    add(ledger, Kind.RESUME, Kind.CHECKPOINT, Kind.REQUEST, Kind.ERASE)
    ledger.writer = ledger.owner = "worker"
    return add(ledger, Kind.GENESIS, Kind.RESUME, Kind.PAUSE)


def test_marks_are_the_newest_entries_that_settle_something() -> None:
    """Each is the position of its own newest entry, this one included, in every header."""
    headers = [parse_header(made.header) for made in _lived().records]

    for name, kinds in _SETTLING.items():
        newest = [
            max(below.seq for below in headers[: header.seq + 1] if below.kind in kinds)
            for header in headers
        ]
        assert [getattr(header, name) for header in headers] == newest
    assert [Marks.of(header) for header in headers] == [
        *[(0, 0, 0), (1, 0, 0), (1, 0, 0), (1, 3, 0), (1, 4, 0), (5, 4, 5), (6, 4, 5), (6, 4, 5)],
        *[(6, 4, 5), (9, 9, 9), (10, 10, 10), (11, 10, 10), (11, 12, 10)],
    ]


def test_the_tip_has_the_entry_that_says_whose_the_thread_is() -> None:
    """A genesis, a handoff or an erasure, by its position and its hash."""
    ledger, seen = ThreadLedger(team()), []
    for made in _lived().records:
        ledger.tip = ledger.follow(made)
        ledger.records.append(made)
        owner = ledger.tip.owner
        assert owner == OwnerEntry(
            owner.seq, ledger.verify(ledger.records[owner.seq], owner.seq).hash
        )
        seen.append(owner.seq)

    assert seen == [0] * 5 + [5] * 4 + [9, 10, 10, 10]


@pytest.mark.parametrize(
    ("before", "kind", "changes", "found", "right"),
    [
        ((Kind.PAUSE,), Kind.REQUEST, {"pause": 0}, 0, 3),
        ((Kind.PAUSE,), Kind.CHECKPOINT, {"pause": 0}, 0, 3),
        ((Kind.PAUSE,), Kind.RESUME, {"pause": 0}, 0, 3),
        ((Kind.PAUSE, Kind.UNPAUSE), Kind.HELD, {"pause": 3}, 3, 4),
        ((Kind.PAUSE,), Kind.UNPAUSE, {"pause": 3}, 3, 4),
        ((), Kind.PAUSE, {"pause": 0}, 0, 3),
        ((), Kind.CHECKPOINT, {"pause": 3}, 3, 0),
        ((), Kind.ERASE, {"pause": 0}, 0, 3),
        ((Kind.HANDOFF,), Kind.REQUEST, {"owner": 0}, 0, 3),
        ((Kind.HANDOFF,), Kind.RESUME, {"owner": 0}, 0, 3),
        ((), Kind.HANDOFF, {"owner": 0}, 0, 3),
        ((), Kind.ERASE, {"owner": 0}, 0, 3),
        ((), Kind.PAUSE, {"owner": 3}, 3, 0),
        ((Kind.RESUME,), Kind.CHECKPOINT, {"fence": 1}, 1, 3),
        ((Kind.HANDOFF,), Kind.CHECKPOINT, {"fence": 1}, 1, 3),
    ],
)
def test_a_mark_that_does_not_follow_is_refused(
    before: tuple[Kind, ...], kind: Kind, changes: dict[str, Any], found: int, right: int
) -> None:
    """A pause, a handoff or a session is not left out, and none is made up."""
    ledger = add(begun(), *before)
    (name,) = changes
    error = refusal(ledger, record(ledger, kind, **changes))

    assert type(error) is NotTrusted
    assert (
        f"it names entry {found} for the {_WORDS[name]} in force, and that is entry {right}"
    ) in str(error)


@pytest.mark.parametrize("name", _SETTLING)
@pytest.mark.parametrize("kind", sorted(kind for kind in Kind if KINDS[kind].on_threads))
def test_a_kind_settles_what_the_table_says(name: str, kind: Kind) -> None:
    """The mark is its own position, or else that of the entry before it."""
    marks = Marks(3, 5, 2).after(kind, 9)
    before = {"fence": 3, "pause": 5, "owner": 2}

    assert getattr(marks, name) == (9 if kind in _SETTLING[name] else before[name])


# ---------------------------------------------------------------------- reserved threads


def _book(name: str = f"{RESERVED}rollouts") -> ThreadLedger:
    """A thread that an operator began under a name."""
    ledger = ThreadLedger(team(), writer="operator", owner="operator")
    ledger.add(Kind.GENESIS, genesis_body("operator", name))
    return ledger


def _attempt(ledger: ThreadLedger, kind: Kind) -> Record:
    """The next record of a kind, by a person who has the role for it."""
    usual = {Kind.HANDOFF: "operator", Kind.REQUEST: "operator"}
    signer = usual.get(kind, "worker" if KINDS[kind].by_owner else "")
    return record(ledger, kind, signer=signer)


@pytest.mark.parametrize(
    "kind", sorted({kind for kind in Kind if KINDS[kind].on_threads} - _ON_RESERVED)
)
def test_a_reserved_thread_refuses_every_other_kind(kind: Kind) -> None:
    """It holds requests and the answers to them: no state, no pause, no handoff, no erasure."""
    error = refusal(_book(), _attempt(_book(), kind))

    assert type(error) is NotTrusted
    assert "has no place on a thread that holds requests and no state" in str(error)
    assert "sealpoint keys revoke" in error.hint


def test_a_reserved_thread_holds_what_it_is_for() -> None:
    """Requests, verdicts, expiries and adoptions follow one another after the genesis."""
    ledger = _book()
    for kind in sorted(_ON_RESERVED - {Kind.GENESIS}):
        made = _attempt(ledger, kind)
        ledger.tip = ledger.follow(made)
        ledger.records.append(made)

    assert ledger.tip is not None
    assert ledger.tip.owner == OwnerEntry(
        0, ledger.verify(ledger.records[0], 0).hash, reserved=True
    )


def test_a_reserved_thread_has_one_genesis() -> None:
    """It is never erased, so no second generation begins."""
    error = refusal(_book(), _book().record(Kind.GENESIS, genesis_body("operator")))

    assert "a genesis after an erasure" in str(error)


@pytest.mark.parametrize("name", ["sealpoint", "Sealpoint:rollouts", "x-sealpoint:rollouts", "s:"])
def test_other_names_reserve_nothing(name: str) -> None:
    """Only the beginning of a name counts, letter by letter."""
    ledger = ThreadLedger(team())
    ledger.add(Kind.GENESIS, genesis_body("worker", name))

    assert not ledger.follow(ledger.record(Kind.RESUME)).owner.reserved


def test_a_reserved_thread_without_its_name_is_not_believed() -> None:
    """Without the body of its genesis nobody knows what it may hold, so its head is refused."""
    ledger = ThreadLedger(team(), writer="operator", owner="operator")
    made = ledger.record(Kind.GENESIS, genesis_body("operator", f"{RESERVED}rollouts"))
    ledger.tip = ledger.follow(replace(made, body=None))
    ledger.records.append(made)
    add(ledger, Kind.ADOPT)

    with pytest.raises(Missing, match="its body is missing"):
        ledger.tip.require_owner()
