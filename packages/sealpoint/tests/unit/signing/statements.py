# SPDX-License-Identifier: Apache-2.0
"""Statements, people and their words, the same in every run."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sealpoint.signing import (
    Action,
    Attestation,
    Cutoff,
    Identity,
    Role,
    Roster,
    RosterDocument,
    RosterKey,
    Statement,
    Tally,
    Verdict,
    attest,
    count,
)
from tests.unit.signing.samples import STORE, signer

NOW = datetime(2026, 1, 1, tzinfo=UTC)

_FIELDS: dict[str, Any] = {
    "store": STORE.raw.hex(),
    "ns": "default",
    "thread": bytes(range(16, 32)).hex(),
    "epoch": 0,
    "gen": 0,
    "basis": "11" * 32,
    "action": Action.RESUME,
    "checkpoint": "22" * 32,
    "release": "77" * 32,
    "world_from": "33" * 32,
    "world_to": "44" * 32,
    "answer": None,
    "to": None,
    "differences": (),
    "requester": "worker",
    "actor": None,
    "policy": "55" * 32,
    "needed": 1,
    "nonce": "66" * 16,
    "expires": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "reason": "the new release can read invoices",
}
_HANDOFF: dict[str, Any] = {
    "action": Action.HANDOFF,
    "release": None,
    "world_from": None,
    "world_to": None,
    "to": "pods",
}
_ROLLOUT: dict[str, Any] = {
    "action": Action.ROLLOUT,
    "checkpoint": None,
    "release": None,
    "world_from": None,
    "world_to": None,
    "differences": (("tool.pay", None, "44" * 32), ("tool.pay", "33" * 32, "44" * 32)),
}


def statement(**changes: Any) -> Statement:
    """A request to resume, with some fields changed."""
    return Statement(**(_FIELDS | changes))


def handoff(**changes: Any) -> Statement:
    """A request to hand off, with some fields changed."""
    return statement(**(_HANDOFF | changes))


def rollout(**changes: Any) -> Statement:
    """A request for a rollout, with some fields changed."""
    return statement(**(_ROLLOUT | changes))


def person(
    name: str,
    *numbers: int,
    who: str | None = None,
    roles: tuple[Role, ...] = (Role.APPROVER,),
    namespaces: tuple[str, ...] = ("default",),
    expires: datetime | None = None,
    break_glass: bool = False,
) -> Identity:
    """An approver with the keys of these numbers; its person is its name unless one is given."""
    keys = tuple(RosterKey("ed25519", str(signer(number).public), expires) for number in numbers)
    return Identity(name, who or name, roles, namespaces, keys, break_glass)


WORKER = person("worker", 1, roles=(Role.WRITER,))


def roster(*identities: Identity, cutoffs: tuple[Cutoff, ...] = ()) -> Roster:
    """A roster of the worker, whose key is the first, and of these."""
    return Roster(RosterDocument((WORKER, *identities), cutoffs=cutoffs), seq=7)


def approve(number: int, about: Statement | None = None, reason: str = "read it") -> Attestation:
    """The approval by the key of this number."""
    return attest(signer(number), (about or statement()).digest, Verdict.APPROVE, reason)


def break_glass(
    number: int, about: Statement | None = None, reason: str = "it burns"
) -> Attestation:
    """The word of the key of this number, which lets a statement pass without approvals."""
    return attest(signer(number), (about or statement()).digest, Verdict.BREAK_GLASS, reason)


def deny(number: int, about: Statement | None = None, reason: str = "not today") -> Attestation:
    """The denial by the key of this number."""
    return attest(signer(number), (about or statement()).digest, Verdict.DENY, reason)


def tally(attestations: Iterable[Attestation], by: Roster, about: Statement | None = None) -> Tally:
    """Count at the usual time."""
    return count(attestations, statement=about or statement(), roster=by, now=NOW)
