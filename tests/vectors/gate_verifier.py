# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that judges pauses, handoffs and what approvers sign.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

import re
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from tests.vectors.passkey_verifier import check_proof
from tests.vectors.reading import (
    DIGEST,
    FAULTS,
    as_time,
    check_signature,
    framed,
    require,
    sha256,
    spelled,
)

__all__ = [
    "BODIES",
    "FREE",
    "MOVES",
    "ON_RESERVED",
    "PAUSED",
    "RESUME_FIELDS",
    "ROLES",
    "TELLS_NO_TIME",
    "TYPES",
    "Spending",
    "Standing",
    "check_handoff",
    "judge",
]

_TYPE = b"application/vnd.sealpoint.statement.v1+json"
MOVES = {"resume", "checkpoint", "held", "writes", "prune", "hide", "handoff", "erase"}
"""The kinds that move the basis."""
ON_RESERVED = {
    *("genesis", "request", "approval", "denial", "break-glass", "expiry", "adopt"),
}
"""The kinds that a thread may hold whose name begins with `sealpoint:`."""
PAUSED = {"genesis", "resume", "checkpoint"}
"""The kinds that a pause stops: the time of a thread is theirs."""
TELLS_NO_TIME = {"request", "approval", "denial", "break-glass", "expiry"}
"""The kinds whose time does not count for the thread: anybody may write one."""
_ANYBODY = {"approver", "auditor", "operator", "privacy", "writer"}
ROLES: dict[str, set[str]] = {
    **{key: {"writer", "operator"} for key in ("genesis", "handoff", "request")},
    **{key: {"operator"} for key in ("pause", "unpause")},
    **dict.fromkeys(("approval", "denial", "break-glass", "expiry"), _ANYBODY),
}
_RELEASED = ["checkpoint", "release", "released", "world", "leaves", "decided"]
_DECIDED = ["policy", "rules", "request", "rollouts", "attestations", "answer", "actor"]
_RUN = ["held", "idempotent", "edits"]
RESUME_FIELDS = ["reason", *_RELEASED, *_DECIDED, *_RUN]
BODIES: dict[str, tuple[list[str], list[str]]] = {
    "handoff": (["salt", "owner", "reason"], ["statement", "attestations", "actor"]),
    "pause": (["salt", "reason"], ["actor"]),
    "unpause": (["salt", "reason"], ["actor"]),
    "request": (["salt", "statement"], ["reasons", "answer", "world", "differences"]),
    "approval": (["salt", "attestation"], ["actor"]),
    "denial": (["salt", "attestation"], ["actor"]),
    "expiry": (["salt", "request"], ["positions"]),
    "break-glass": (["salt", "attestation"], ["actor"]),
}
TYPES: dict[str, type] = {
    **dict.fromkeys(("statement", "attestation", "leaves"), dict),
    **dict.fromkeys(("attestations", "reasons", "rules", "rollouts", "differences"), list),
    "decided": int,
    **dict.fromkeys(_RUN, bool),
}
FREE = {
    "request": {"answer", "world"},
    **{key: {"question"} for key in ("checkpoint", "held", "writes")},
}
"""Fields of which the kind alone says what they may be."""

_STATEMENT = [
    *("v", "store", "ns", "thread", "epoch", "gen", "basis", "action", "checkpoint"),
    *("release", "world_from", "world_to", "answer", "to", "differences", "requester", "actor"),
    *("policy", "needed", "nonce", "expires", "reason"),
]
_DIGITS = {
    **dict.fromkeys(("store", "thread", "nonce"), 32),
    **dict.fromkeys(("basis", "checkpoint", "release", "world_from", "world_to"), 64),
    **dict.fromkeys(("answer", "policy"), 64),
}
_MAY_BE_NULL = {
    *("checkpoint", "release", "world_from", "world_to", "answer", "policy", "to", "actor"),
}
_BYTES = {"ns": 512, "requester": 512, "actor": 512, "to": 512, "reason": 4096}
_ATTESTATION = ["scheme", "credential", "statement", "verdict", "reason", "proof"]
_VERDICTS = {"approval": "approve", "denial": "deny", "break-glass": "break-glass"}
_DEPTH_MAX = 32
_DIGESTS = {
    "resume": ("checkpoint", "release", "world", "policy", "request", "answer"),
    "expiry": ("request", "positions"),
}


def judge(kind: str, body: dict[str, Any]) -> None:
    """What a body of the gate may not say, whoever signed it."""
    named = [body[name] for name in _DIGESTS.get(kind, ()) if name in body]
    require(all(map(DIGEST.fullmatch, named)), "digests")
    require(kind != "resume" or ("checkpoint" in body) == ("release" in body), "release")
    named_without = "checkpoint" not in body and {"released", "decided"} & body.keys()
    require(kind != "resume" or not named_without, "positions without a checkpoint")
    require(not any(body.get(name) is False for name in _RUN), "written default")
    texts = [*body.get("rules", []), *body.get("reasons", [])]
    require(all(type(text) is str for text in texts), "texts")
    require(kind != "request" or type(body.get("world", {})) is dict, "world")
    for each in body.get("differences", []):
        _judge_shown(each)
    if "statement" in body:
        _judge_statement(body["statement"])
    _judge_rollouts(body.get("rollouts", []))
    for each in body.get("attestations", []):
        _judge_attestation(each)
        if kind == "resume":
            _judge_form(each)
    if kind in _VERDICTS:
        _judge_attestation(body["attestation"])
        says = _VERDICTS[kind]
        require(body["attestation"]["verdict"] == says, "another verdict")
        _judge_form(body["attestation"])
    for name in ("metadata", "question", "answer"):
        require(_depth(body.get(name)) <= _DEPTH_MAX, "depth")


def _judge_statement(fields: dict[str, Any]) -> None:
    require(list(fields) == _STATEMENT and fields["v"] == 4, "statement")
    for name in ("epoch", "gen"):
        require(type(fields[name]) is int and 0 <= fields[name] < 2**53, name)
    for name in _DIGITS.keys() | _BYTES.keys():
        text = fields[name]
        if text is None:
            require(name in _MAY_BE_NULL, name)
        elif name in _DIGITS:
            require(re.fullmatch("[0-9a-f]*", text) and len(text) == _DIGITS[name], name)
        else:
            require(1 <= len(text.encode()) <= _BYTES[name], name)
    require(type(fields["needed"]) is int and 0 <= fields["needed"] <= 16, "needed")
    as_time(fields["expires"])
    action, released = fields["action"], ("release", "world_from", "world_to", "answer")
    if action == "resume":
        require(None not in (fields["checkpoint"], fields["release"]), "resume")
        require(fields["to"] is None and fields["differences"] == [], "resume")
        return
    require([fields[each] for each in released] == [None] * 4, "only a resume releases")
    if action == "rollout":
        require(fields["to"] is None and fields["checkpoint"] is None, "rollout")
        _judge_differences(fields["differences"])
        return
    require(action == "handoff" and fields["to"] is not None, "handoff")
    require(fields["differences"] == [], "handoff")


def _judge_rollouts(rollouts: list[Any]) -> None:
    """The statements of the rollouts that a resume uses, each once and in order."""
    for each in rollouts:
        require(type(each) is dict, "rollout")
        _judge_statement(each)
    digests = [sha256(spelled(each)) for each in rollouts]
    require(len(rollouts) <= 4, "rollouts")
    require(all(one < other for one, other in pairwise(digests)), "sorted")


def _judge_shown(difference: Any) -> None:
    """A leaf with its value before and after, each in a list of one, or an empty list."""
    require(type(difference) is list and len(difference) == 3, "difference")
    leaf, *sides = difference
    require(type(leaf) is str, "leaf")
    require(all(type(each) is list and len(each) <= 1 for each in sides), "values")
    require(all(_depth(value) <= _DEPTH_MAX for each in sides for value in each), "depth")


def _judge_differences(differences: list[Any]) -> None:
    """What a rollout accepts: leaves with digests before and after, each once and in order."""
    require(1 <= len(differences) <= 1024, "differences")
    for each in differences:
        require(type(each) is list and len(each) == 3, "difference")
        leaf, *sides = each
        require(type(leaf) is str and leaf != "", "leaf")
        require(sides[0] != sides[1], "two values")
        digests = [side for side in sides if side is not None]
        require(all(type(side) is str and DIGEST.fullmatch(side) for side in digests), "digests")
    order = [tuple(part or "" for part in each) for each in differences]
    require(all(one < other for one, other in pairwise(order)), "sorted")


def _judge_attestation(fields: dict[str, Any]) -> None:
    require(list(fields) == _ATTESTATION, "attestation")
    require(all(type(text) is str for text in fields.values()), "texts")
    require(fields["verdict"] in _VERDICTS.values(), "verdict")


def _judge_form(fields: dict[str, str]) -> None:
    """What a relayed word must look like, before anybody asks whether it is true."""
    require(all(DIGEST.fullmatch(fields[name]) for name in ("credential", "statement")), "digits")
    require(1 <= len(fields["reason"].encode()) <= 4096, "reason")
    require(re.fullmatch("([0-9a-f]{2}){0,2048}", fields["proof"]), "proof")


def _depth(value: Any) -> int:
    """How many lists and objects lie in one another."""
    if not isinstance(value, dict | list):
        return 0
    items = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, items), default=0)


class Standing:
    """Whether a thread is paused, and its basis."""

    def __init__(self) -> None:
        self.before: str | None = None
        """The basis that the newest entry found."""
        self._basis: str | None = None
        self._paused = False

    def follow(self, kind: str, seq: int, entry: str) -> bool:
        """Go on to an entry; whether it may be there."""
        if self._paused and kind in PAUSED:
            return False
        if not self._paused and kind == "held":
            return False
        self.before = self._basis
        if not seq or kind in MOVES:
            self._basis = entry
        if kind in {"pause", "unpause", "erase"}:
            self._paused = kind == "pause"
        return True


class Spending(NamedTuple):
    """Who gives a thread away, and when."""

    header: dict[str, Any]
    person: dict[str, Any]
    owner: str
    basis: str | None
    now: datetime


def check_handoff(body: dict[str, Any], by: Spending, roster: dict[str, Any]) -> str:
    """The next owner, unless the wrong people gave the thread away."""
    namespace, people, pools = by.header["ns"], roster["people"], roster["pools"]
    takers = pools.get(body["owner"], {body["owner"]})
    require(takers, "an empty pool")
    require(all(_may(people[name], "writer", namespace) for name in takers), "who takes it")
    name = by.person["name"]
    owns = name == by.owner or name in pools.get(by.owner, set())
    if owns and _may(by.person, "writer", namespace):
        return str(body["owner"])
    require(_may(by.person, "operator", namespace), "an operator")
    statement = body["statement"]
    for what, bound in {
        **{each: by.header[each] for each in ("store", "ns", "thread", "epoch", "gen")},
        "action": "handoff",
        "to": body["owner"],
        "requester": name,
        "basis": by.basis,
    }.items():
        require(statement[what] == bound, what)
    require(by.now < as_time(statement["expires"]), "expired")
    require(_is_approved(body.get("attestations", []), statement, roster, by.now), "approval")
    return str(body["owner"])


def _may(person: dict[str, Any], role: str, namespace: str) -> bool:
    return role in person["roles"] and _covers(person, namespace)


def _covers(person: dict[str, Any], namespace: str) -> bool:
    return bool({namespace, "*"} & set(person["namespaces"]))


def _is_approved(
    attestations: list[dict[str, Any]],
    statement: dict[str, Any],
    roster: dict[str, Any],
    now: datetime,
) -> bool:
    """Whether another person has approved, and nobody denied who may."""
    asks = {roster["people"].get(statement["requester"], {}).get("person")}
    if statement["actor"] is not None:
        persons = {each["person"] for each in roster["people"].values()}
        asks.add(statement["actor"] if statement["actor"] in persons else None)
    said: dict[str, set[str]] = {"approve": set(), "deny": set()}
    for each in attestations:
        person, expires = _signer(each, statement, roster)
        if person is None or (expires is not None and now >= as_time(expires)):
            continue
        if each["verdict"] == "break-glass":
            continue  # for a resume alone
        own = person["person"] in asks
        approver = _may(person, "approver", statement["ns"])
        if each["verdict"] == "deny":
            counts = approver or (own and _covers(person, statement["ns"]))
        else:
            counts = approver and None not in asks and not own
        if counts:
            said[each["verdict"]].add(person["person"])
    return bool(said["approve"]) and not said["deny"]


def _signer(
    attestation: dict[str, Any], statement: dict[str, Any], roster: dict[str, Any]
) -> tuple[dict[str, Any] | None, str | None]:
    """Whoever said this to the statement, and until when the key is good; None: nobody."""
    named = attestation["credential"]
    scheme = "webauthn" if named in roster["passkeys"] else "ed25519"
    held = roster["passkeys" if scheme == "webauthn" else "keys"].get(named)
    about = sha256(spelled(statement))
    if held is None or attestation["scheme"] != scheme or attestation["statement"] != about:
        return None, None
    require(1 <= len(attestation["reason"].encode()) <= 4096, "reason")
    signed = {name: attestation[name] for name in ("statement", "verdict", "reason")}
    person, key = held
    try:
        proof = bytes.fromhex(attestation["proof"])
        if scheme == "webauthn":
            check_proof(key, proof, framed(_TYPE, spelled(signed)))
        else:
            check_signature(key, proof, _TYPE, spelled(signed))
    except FAULTS:
        return None, None
    if proof.hex() != attestation["proof"]:
        return None, None
    return person, roster["expires"][named]
