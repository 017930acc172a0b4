# SPDX-License-Identifier: Apache-2.0
"""Handoffs that must be refused, each in the place of a genuine one, with the code of its error."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sealpoint.ledger import Body, Kind, encode_body
from sealpoint.signing import Action
from sealpoint.storage import Record
from tests.ledgers import NOW, SALT, ThreadLedger
from tests.unit.ledger.gating import (
    approve,
    break_glass,
    deny,
    handed_off,
    handoff,
    record,
    stated,
)

__all__ = ["handoff_cases"]

Case = tuple[str, int, str, str, Record]
"""The thread, how much of it comes first, the name, the code, the entry."""

_THREAD = "handed off"
_LATER = NOW + timedelta(days=1)


def handoff_cases(cut: Callable[[str, int], ThreadLedger]) -> Iterator[Case]:
    """Every case.

    Args:
        cut: Gives the first entries of a thread, to go on from.
    """
    yield from _by_owners(cut(_THREAD, 3))
    yield from _bound(cut(_THREAD, 3))
    yield from _approved(cut(_THREAD, 3))
    yield from _afterwards(cut)


def _by_owners(ledger: ThreadLedger) -> Iterator[Case]:
    def case(name: str, error: str, made: Record) -> Case:
        return _THREAD, 3, name, error, made

    for who in ("second", "operator", "ann", "auditor", "officer", "elsewhere", "mallory"):
        made = record(ledger, Kind.HANDOFF, signer=who)
        yield case(f"a handoff by {who}, without approval", "not-trusted", made)
    for to in ("nobody", "operator", "elsewhere", "mixed", "empty"):
        made = ledger.record(Kind.HANDOFF, handoff(to))
        yield case(f"a handoff to {to}", "not-trusted", made)
        made = handed_off(ledger, about=stated(ledger, to=to), owner=to)
        yield case(f"an approved handoff to {to}", "not-trusted", made)
    fence = record(ledger, Kind.HANDOFF, fence=1)
    yield case("a handoff that sets no fence", "not-trusted", fence)
    yield case("a handoff of another generation", "misplaced", record(ledger, Kind.HANDOFF, gen=1))
    empty = ledger.record(Kind.HANDOFF, Body(salt=SALT))
    yield case("a handoff without an owner", "edited", empty)
    data = encode_body(handoff())[:-1] + b',"attestations":[]}'
    yield case("a handoff with an empty list", "edited", ledger.record(Kind.HANDOFF, data))
    made = record(ledger, Kind.HANDOFF)
    yield case("a handoff without its body", "missing", replace(made, body=None))
    other = replace(made, body=encode_body(handoff("pods")))
    yield case("a handoff with another body", "edited", other)


def _bound(ledger: ThreadLedger) -> Iterator[Case]:
    """An operator's handoff whose approval is for something else."""
    checkpoint = stated(ledger).basis
    bindings: dict[str, dict[str, Any]] = {
        "a resume": {
            "action": Action.RESUME,
            "checkpoint": checkpoint,
            "release": "77" * 32,
            "to": None,
        },
        "another owner": {"to": "pods"},
        "another requester": {"requester": "marked"},
        "another store": {"store": "ff" * 16},
        "another namespace": {"ns": "billing"},
        "another thread": {"thread": "ff" * 16},
        "another epoch": {"epoch": 1},
        "another generation": {"gen": 1},
        "another basis": {"basis": "11" * 32},
    }
    for name, changes in bindings.items():
        made = handed_off(ledger, about=stated(ledger, **changes))
        yield _THREAD, 3, f"an approval for {name}", "misplaced", made
    late = handed_off(ledger, at=_LATER)
    yield _THREAD, 3, "an approval at its expiry", "misplaced", late
    about = stated(ledger, expires=NOW + timedelta(seconds=2))
    back = handed_off(ledger, about=about, at=NOW)
    yield _THREAD, 3, "an approval revived by the clock", "misplaced", back
    mine = handed_off(ledger, signer="second", about=stated(ledger, requester="second"))
    yield _THREAD, 3, "an approval for a writer who is not the owner", "not-trusted", mine


def _approved(ledger: ThreadLedger) -> Iterator[Case]:
    """An operator's handoff whose attestations do not count."""
    about, other = stated(ledger), stated(ledger, nonce="77" * 16)
    yes = approve(about, "ann")
    words = {
        "no approval": (),
        "a denial beside the approval": (*yes, *deny(about, "bob")),
        "a denial by the same person": (*yes, *deny(about, "ann")),
        "the requester's withdrawal": (*yes, *deny(about, "operator")),
        "the requester's own approval": approve(about, "operator-at-night"),
        "broken glass": break_glass(about, "marked"),
        "a writer's approval": approve(about, "second"),
        "an approval of another namespace": approve(about, "elsewhere"),
        "an approval by an expired key": approve(about, "late"),
        "an approval by a stranger": approve(about, "mallory"),
        "an approval of another statement": approve(other, "ann"),
        "an approval with another reason": (replace(yes[0], reason="read it twice"),),
        "an approval with another scheme": (replace(yes[0], scheme="none"),),
        "a denial turned into an approval": (replace(deny(about, "ann")[0], verdict="approve"),),
        "a proof in capitals": (replace(yes[0], proof=yes[0].proof.upper()),),
        "a proof by another key": (replace(yes[0], proof=approve(about, "bob")[0].proof),),
    }
    for name, attestations in words.items():
        made = handed_off(ledger, attestations)
        yield _THREAD, 3, name, "not-trusted", made
    for name, actor, yeses, noes in (
        ("an approval by the person it is asked for", "ann", ("ann",), ()),
        ("a withdrawal by the person it is asked for", "auditor", ("ann",), ("auditor",)),
        ("an approval of what is asked for nobody of the roster", "zoe", ("ann", "bob"), ()),
    ):
        about = stated(ledger, actor=actor)
        made = handed_off(ledger, (*approve(about, *yeses), *deny(about, *noes)), about=about)
        yield _THREAD, 3, name, "not-trusted", made


def _afterwards(cut: Callable[[str, int], ThreadLedger]) -> Iterator[Case]:
    """What old owners and spent approvals are worth."""
    given = cut(_THREAD, 7)
    given.writer, given.owner = "second", "worker"
    for kind in (Kind.RESUME, Kind.PRUNE, Kind.HANDOFF):
        made = given.record(kind, handoff() if kind is Kind.HANDOFF else None)
        yield _THREAD, 7, f"a late {kind} by the old owner", "not-trusted", made
    for fence in (4, 6):
        made = given.record(Kind.CHECKPOINT, fence=fence)
        name = f"a late checkpoint by the old owner under fence {fence}"
        yield _THREAD, 7, name, "not-trusted", made
    given.writer, given.owner = "worker", "pods"
    yield _THREAD, 7, "a resume in the old owner's name", "not-trusted", given.record(Kind.RESUME)
    unopened = given.record(Kind.CHECKPOINT)
    yield _THREAD, 7, "a checkpoint before the next session", "not-trusted", unopened
    spent = cut(_THREAD, 11)
    body = spent.records[10].body
    again = spent.record(Kind.HANDOFF, body, signer="operator")
    yield _THREAD, 11, "an approval spent twice", "misplaced", again
