# SPDX-License-Identifier: Apache-2.0
"""A team, the bodies of the gate's entries, and an operator's handoff with its approval.

Like `tests.ledgers` it makes genuine entries in which a test changes one thing.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sealpoint.errors import SealpointError
from sealpoint.ledger import (
    Body,
    ExpiryBody,
    HandoffBody,
    Kind,
    PauseBody,
    RequestBody,
    StoreChain,
    UnpauseBody,
    VerdictBody,
)
from sealpoint.signing import (
    Action,
    Attestation,
    Identity,
    Pool,
    Role,
    Statement,
    Verdict,
    attest,
)
from sealpoint.storage import Record
from tests.ledgers import NOW, SALT, ThreadLedger, identity, key, solo

__all__ = [
    "GATE_KINDS",
    "add",
    "approve",
    "begun",
    "body",
    "break_glass",
    "deny",
    "handed_off",
    "handoff",
    "people",
    "record",
    "refusal",
    "stated",
    "team",
]

_EXPIRES = NOW + timedelta(days=1)
_NONCE = "66" * 16

GATE_KINDS = {
    Kind.HANDOFF: "worker",
    Kind.PAUSE: "operator",
    Kind.UNPAUSE: "operator",
    Kind.REQUEST: "worker",
    Kind.APPROVAL: "ann",
    Kind.DENIAL: "ann",
    Kind.EXPIRY: "auditor",
    Kind.BREAK_GLASS: "marked",
}
"""Every kind of the gate, with somebody who may write it."""


def people() -> tuple[Identity, ...]:
    """Somebody for each role, and some who have it in a wrong way."""
    late = replace(identity("late", Role.APPROVER).keys[0], expires=NOW)
    return (
        identity("worker"),
        identity("second"),
        identity("operator", Role.OPERATOR),
        replace(identity("operator-at-night", Role.APPROVER), person="operator"),
        replace(identity("marked", Role.OPERATOR), break_glass=True),
        replace(identity("marked-writer"), break_glass=True),
        identity("ann", Role.APPROVER),
        identity("bob", Role.APPROVER),
        replace(identity("late", Role.APPROVER), keys=(late,)),
        identity("auditor", Role.AUDITOR),
        identity("officer", Role.PRIVACY),
        identity("elsewhere", *Role, namespaces=("billing",)),
    )


def team() -> StoreChain:
    """A store chain whose one roster has them, with pools of which one is as it should be."""
    pools = (
        Pool("pods", ("worker", "second")),
        Pool("mixed", ("worker", "operator")),
        Pool("scattered", ("worker", "elsewhere")),
        Pool("empty", ()),
    )
    return solo(*people(), pools=pools)


def begun(owner: str = "worker") -> ThreadLedger:
    """A thread of the team with a genesis, a session and a checkpoint, at entries 0 to 2."""
    return ThreadLedger(team(), owner=owner).begun()


def stated(ledger: ThreadLedger, **changes: Any) -> Statement:
    """What an operator asks for who wants the second writer to own the thread."""
    assert ledger.tip is not None
    fields: dict[str, Any] = {
        "store": ledger.place.store,
        "ns": ledger.place.ns,
        "thread": ledger.place.thread,
        "epoch": 0,
        "gen": ledger.gen,
        "basis": ledger.tip.basis[1].hex(),
        "action": Action.HANDOFF,
        "checkpoint": None,
        "release": None,
        "world_from": None,
        "world_to": None,
        "answer": None,
        "to": "second",
        "differences": (),
        "requester": "operator",
        "actor": None,
        "policy": None,
        "needed": 1,
        "nonce": _NONCE,
        "expires": _EXPIRES,
        "reason": "the worker is gone",
    }
    return Statement(**(fields | changes))


def approve(about: Statement, *names: str) -> tuple[Attestation, ...]:
    """The approvals by these people."""
    return tuple(attest(key(name), about.digest, Verdict.APPROVE, "read it") for name in names)


def deny(about: Statement, *names: str) -> tuple[Attestation, ...]:
    """The denials by these people."""
    return tuple(attest(key(name), about.digest, Verdict.DENY, "not today") for name in names)


def break_glass(about: Statement, *names: str) -> tuple[Attestation, ...]:
    """The words of these people, who let it pass without approvals."""
    return tuple(attest(key(name), about.digest, Verdict.BREAK_GLASS, "it burns") for name in names)


def handoff(owner: str = "second", **changes: Any) -> HandoffBody:
    """The body of an owner's handoff."""
    return replace(HandoffBody(salt=SALT, owner=owner, reason="holidays"), **changes)


def handed_off(
    ledger: ThreadLedger,
    attestations: Sequence[Attestation] | None = None,
    *,
    signer: str = "operator",
    about: Statement | None = None,
    owner: str = "second",
    **changes: Any,
) -> Record:
    """An operator's handoff, approved by Ann unless attestations are given."""
    statement = stated(ledger) if about is None else about
    words = approve(statement, "ann") if attestations is None else tuple(attestations)
    made = handoff(owner, statement=statement, attestations=words)
    return ledger.record(Kind.HANDOFF, made, signer=signer, **changes)


def body(ledger: ThreadLedger, kind: Kind) -> Body | None:
    """The body of an entry of the gate; None for the other kinds."""
    about = stated(ledger)
    bodies: dict[Kind, Body] = {
        Kind.HANDOFF: handoff(),
        Kind.PAUSE: PauseBody(salt=SALT, reason="look at this first"),
        Kind.UNPAUSE: UnpauseBody(salt=SALT, reason="all is well"),
        Kind.REQUEST: RequestBody(salt=SALT, statement=about, reasons=("an operator asks",)),
        Kind.APPROVAL: VerdictBody(salt=SALT, attestation=approve(about, "ann")[0]),
        Kind.DENIAL: VerdictBody(salt=SALT, attestation=deny(about, "ann")[0]),
        Kind.EXPIRY: ExpiryBody(salt=SALT, request=about.digest),
        Kind.BREAK_GLASS: VerdictBody(salt=SALT, attestation=break_glass(about, "marked")[0]),
    }
    return bodies.get(kind)


def record(ledger: ThreadLedger, kind: Kind, signer: str = "", **changes: Any) -> Record:
    """The next record of a kind, by somebody who may write it unless another is named."""
    usual = {**GATE_KINDS, Kind.ERASE: "officer", Kind.ADOPT: "operator"}.get(kind, "")
    made = None if ledger.tip is None else body(ledger, kind)
    return ledger.record(kind, made, signer=signer or usual, **changes)


def add(ledger: ThreadLedger, *kinds: Kind) -> ThreadLedger:
    """Let a thread follow to a next record of each of these kinds."""
    for kind in kinds:
        made = record(ledger, kind)
        ledger.tip = ledger.follow(made)
        ledger.records.append(made)
    return ledger


def refusal(ledger: ThreadLedger, made: Record) -> SealpointError:
    """What a record is refused with as the next of a thread."""
    try:
        ledger.follow(made)
    except SealpointError as error:
        return error
    raise AssertionError("it was believed")
