# SPDX-License-Identifier: Apache-2.0
"""A second verifier of chains, from docs/formats alone: the standard library and `cryptography`.

It takes bytes and raises an error for whatever is not genuine. Which error does not matter, only
that nothing else is believed. Nothing of Sealpoint is used here.
"""

import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.vectors import gate_verifier as gate
from tests.vectors import lanes_verifier as lanes
from tests.vectors.reading import (
    DIGEST,
    FAULTS,
    Fault,
    as_time,
    check_signature,
    parse,
    require,
    sha256,
)
from tests.vectors.roster_verifier import keeps_rights, read_key, read_roster

__all__ = [
    "FAULTS",
    "Blobs",
    "Fault",
    "Row",
    "Trust",
    "blob",
    "living",
    "policy_at",
    "require",
    "verify_store_chain",
    "verify_thread",
]

_TYPE = b"application/vnd.sealpoint.entry.v1+json"
_NUMBERS = {"v", "epoch", "gen", "seq", "fence", "pause", "owner", "roster"}
_LINKS = {"prev", "skip"}
_FIELDS = [
    *("v", "store", "epoch", "ns", "thread", "gen", "seq", "prev", "skip", "kind"),
    *("fence", "pause", "owner", "roster", "at", "by", "enc", "body"),
]
_BODIES: dict[str, tuple[list[str], list[str]]] = {
    "genesis": (["salt", "name", "owner"], []),
    "resume": (["salt", "owner", "basis"], gate.RESUME_FIELDS),
    **dict.fromkeys(("checkpoint", "held"), (["salt", "id", "root"], lanes.CHECKPOINT_FIELDS)),
    "erase": (["salt", "reason"], []),
    "adopt": (["salt", "reason"], []),
    "roster": (["salt", "roster"], ["reason", "positions"]),
    "restore": (["salt", "reason", "kept", "lost", "released"], ["paused"]),
    **gate.BODIES,
    **lanes.BODIES,
}
_TYPES = {
    "before": int,
    "prune": int,
    "basis": int,
    "fresh": list,
    "metadata": dict,
    **gate.TYPES,
    **lanes.TYPES,
}
_OWNED = {"genesis", "resume", "checkpoint", "prune", *lanes.OWNED}
_IN_SESSION = {"checkpoint", "held", "writes"}
_SETTLES = {
    "fence": {"genesis", "resume", "handoff", "erase"},
    "pause": {"genesis", "pause", "unpause", "erase"},
    "owner": {"genesis", "handoff", "erase"},
}
"""Which kinds each mark of a header is the position of."""
_ROLES = {
    **{key: {"writer"} for key in _OWNED},
    "erase": {"privacy"},
    "adopt": {"operator"},
    **gate.ROLES,
}


Row = tuple[bytes, bytes, bytes | None]
"""Header, seals and body."""
Blobs = Mapping[str, bytes]
"""What there is under a digest: not believed."""


class Trust(NamedTuple):
    """What a store chain says."""

    rosters: dict[int, dict[str, Any]]
    """By their positions."""
    restores: list[dict[str, Any]]


def _header(data: bytes) -> dict[str, Any]:
    header: dict[str, Any] = parse(data, 4096)
    require(list(header) == _FIELDS, "fields")
    for name, value in header.items():
        if name in _NUMBERS:
            require(type(value) is int and 0 <= value < 2**53, name)
        else:
            require(type(value) is str or (name in _LINKS and value is None), name)
    require(header["v"] == 3 and header["enc"] == "none", "version")
    as_time(header["at"])
    return header


def _body(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    require(sha256(data) == header["body"], "body digest")
    body: dict[str, Any] = parse(data, 1 << 20)
    required, optional = _BODIES[header["kind"]]
    require(list(body)[: len(required)] == required, "body fields")
    rest = list(body)[len(required) :]
    require(rest == [name for name in optional if name in rest], "body fields")
    free = gate.FREE.get(header["kind"], set())
    require(not any(body[name] is None for name in rest), "written default")
    require(not any(body[name] == [] for name in {*rest} - free), "written default")
    for name in body.keys() - {"roster", "kept"} - free:
        is_position = (header["kind"], name) == ("resume", "released")
        require(type(body[name]) is (int if is_position else _TYPES.get(name, str)), name)
    _judge(header["kind"], body)
    lanes.judge_positions(header, body)
    return body


def _judge(kind: str, body: dict[str, Any]) -> None:
    """What a body may not say, whoever signed it."""
    if kind in {"prune", "hide"}:
        places = [-1, *body.get("kept", []), body["before"]]
        require(all(type(place) is int for place in places), "positions")
        require(all(one < two for one, two in itertools.pairwise(places)), "rising positions")
    state = ("root", "fresh_list", "world")
    lists = {"restore": ("kept", "lost", "released", "paused"), "roster": ("positions",)}
    names = {**lists, "checkpoint": state, "held": state}
    named = [body[name] for name in names.get(kind, ()) if name in body]
    require(all(DIGEST.fullmatch(each) for each in (*named, *body.get("fresh", []))), "digests")
    gate.judge(kind, body)
    lanes.judge(kind, body)


def _seals(data: bytes) -> dict[str, bytes]:
    pairs = parse(data, 8192)
    seals = {key: bytes.fromhex(signature) for key, signature in pairs}
    require(1 <= len(seals) == len(pairs) <= 16, "seals")
    require(all(re.fullmatch("[0-9a-f]{64}", key) for key in seals), "key id")
    require(all(seals[key].hex() == signature for key, signature in pairs), "signature")
    return seals


def _check(key: Ed25519PublicKey, signature: bytes, raw: bytes) -> None:
    check_signature(key, signature, _TYPE, raw)


def _is_quorum(
    roster: dict[str, Any], header: dict[str, Any], seals: dict[str, bytes], raw: bytes
) -> bool:
    """Whether a restore has the persons that the newest roster asks for."""
    persons = set()
    for key_id in seals.keys() & roster["keys"].keys():
        (person, key), expires = roster["keys"][key_id], roster["expires"][key_id]
        alive = expires is None or as_time(header["at"]) < as_time(expires)
        if alive and "operator" in person["roles"] and "*" in person["namespaces"]:
            _check(key, seals[key_id], raw)
            persons.add(person["person"])
    return 0 < int(roster["quorum"]) <= len(persons)


def _skip(seq: int) -> int:
    """A position is a sum of steps of 2^k - 1, each the longest that fits: all but the last."""
    step = 2 ** ((seq + 1).bit_length() - 1) - 1
    return step + _skip(seq - step) if step < seq else 0


def verify_store_chain(pin: dict[str, Any], rows: list[Row]) -> Trust:
    """Every roster and every restore, if the chain is genuine."""
    store = pin["store"].removeprefix("store:")
    roots = dict(read_key(key) for key in pin["root"]["keys"])
    rosters, restores = trust = Trust({}, [])
    hashes: list[str] = []
    for seq, (raw, sealed, data) in enumerate(rows):
        header, newest = _header(raw), max(rosters, default=0)
        kind, epoch = header["kind"], len(restores) + (header["kind"] == "restore")
        links = (hashes[seq - 1], hashes[_skip(seq)]) if seq else (None, None)
        place = [header[name] for name in ("store", "ns", "thread", "seq", "epoch", "gen")]
        require(place == [store, "", "0" * 32, seq, epoch, 0], "place")
        require([header[name] for name in _SETTLES] == [0, 0, 0], "marks")
        require((header["prev"], header["skip"], header["roster"]) == (*links, newest), "links")
        seals = _seals(sealed)
        require(next(iter(seals)) == header["by"], "first seal")
        if kind == "adopt":
            person, key = rosters[newest]["keys"][header["by"]]
            require("operator" in person["roles"] and "*" in person["namespaces"], "operator")
            require(len(seals) == 1, "one seal")
            _check(key, seals[header["by"]], raw)
        else:
            require(kind in {"roster", "restore"}, "kind")
            if kind != "restore" or not _is_quorum(rosters[newest], header, seals, raw):
                signed = [key for key in seals if key in roots]
                for each in signed:
                    _check(roots[each], seals[each], raw)
                require(len(signed) >= pin["root"]["threshold"], "threshold")
        require(data is not None, "body")
        body = _body(header, data or b"")
        if kind == "roster":
            roster = read_roster(body["roster"])
            require(not rosters or keeps_rights(roster, rosters[newest]), "rights")
            require(rosters or "positions" not in body, "nothing was there")
            same = not rosters or roster["policies"] == rosters[newest]["policies"]
            require(same or "positions" in body, "a change of policy without positions")
            rosters[seq] = roster | {"positions": body.get("positions"), "epoch": len(restores)}
        elif kind == "restore":
            restores.append(body)
        hashes.append(sha256(raw))
    require(rosters and max(rosters) >= pin["roster"], "a roster")
    return trust


def _listed(lists: Blobs, name: str) -> dict[str, tuple[int, str]]:
    """The position and the hash for each thread of a list."""
    data = blob(lists, name)
    require(len(data) % 56 == 0 and len(data) <= 1 << 26, "lines")
    lines = [data[place : place + 56] for place in range(0, len(data), 56)]
    require(all(one[:16] < two[:16] for one, two in itertools.pairwise(lines)), "order")
    return {each[:16].hex(): (int.from_bytes(each[16:24]), each[24:].hex()) for each in lines}


def blob(blobs: Blobs, name: str) -> bytes:
    """The blob of this digest, if it is there."""
    require(sha256(blobs[name]) == name, "blob")
    return blobs[name]


def _counts(header: dict[str, Any], entry: str, trust: Trust, lists: Blobs) -> None:
    """Refuse what a restore cut off."""
    require(header["epoch"] <= len(trust.restores), "an epoch that has not begun")
    for restore in trust.restores[header["epoch"] :]:
        last, kept = _listed(lists, restore["kept"])[header["thread"]]
        require(header["seq"] <= last and (header["seq"] != last or entry == kept), "kept")
    if header["kind"] in {"genesis", "resume", "checkpoint"}:
        restores = trust.restores[: header["epoch"]]
        for number, restore in enumerate(restores):
            if "paused" not in restore:
                continue
            lines = [_listed(lists, restore["paused"])]
            lines += [_listed(lists, later["kept"]) for later in restores[number + 1 :]]
            ends = [line[header["thread"]][0] for line in lines if header["thread"] in line]
            paused = len(ends) == len(lines) and header["pause"] <= min(ends)
            require(not paused, "a pause that a restore lost")


def policy_at(trust: Trust, lists: Blobs, header: dict[str, Any]) -> str | None:
    """The digest of the policy that judges an entry."""
    answer: dict[str, str] = {}
    for _, group in itertools.groupby(
        sorted(trust.rosters), key=lambda seq: trust.rosters[seq]["policies"]
    ):
        rosters = {seq: trust.rosters[seq] for seq in group}
        listed = [each for each in rosters.values() if each["positions"] is not None]
        binds = min(rosters) <= header["roster"] or header["epoch"] > listed[-1]["epoch"]
        if not binds:
            last = _listed(lists, listed[-1]["positions"]).get(header["thread"])
            binds = last is None or header["seq"] > last[0]
        answer = rosters[min(rosters)]["policies"] if binds else answer
    return answer.get(header["ns"], answer.get("*"))


def is_cut(trust: Trust, lists: Blobs, thread: str, basis: int, since: int) -> bool:
    """Whether a thread whose newest resume is of an epoch was cut since, and not released."""
    for restore in reversed(trust.restores[since:]):
        if thread in _listed(lists, restore["lost"]):
            kept = _listed(lists, restore["kept"]).get(thread)
            released = _listed(lists, restore["released"]).get(thread)
            return released is None or released != kept or basis > released[0]
    return False


def verify_thread(
    pin: dict[str, Any],
    trust: Trust,
    place: dict[str, str],
    rows: list[Row],
    lists: Blobs | None = None,
) -> list[str]:
    """The hash of every entry, if the chain is genuine and has every body that it must have."""
    hashes: list[str] = []
    owner: str | None = None
    session, newest, epoch, gen, erased, reserved = "", 0, 0, -1, True, False
    began: str | None = None
    marks = dict.fromkeys(_SETTLES, 0)
    standing, time = gate.Standing(), None
    for seq, (raw, sealed, data) in enumerate(rows):
        header, seals = _header(raw), _seals(sealed)
        kind, by, roster = header["kind"], header["by"], trust.rosters[header["roster"]]
        require(list(seals) == [by], "one seal")
        person, key = roster["keys"][by]
        _check(key, seals[by], raw)
        spaces = person["namespaces"]
        require(_ROLES[kind] & set(person["roles"]), "role")
        require(header["ns"] in spaces or "*" in spaces, "namespace")
        at = as_time(header["at"])
        silent = kind in gate.TELLS_NO_TIME
        now = at if time is None else time if silent else max(at, time)
        expires = roster["expires"][by]
        require(expires is None or now < as_time(expires), "an expired key")
        if not silent:
            time = at if kind in gate.PAUSED else now
        found = [header[name] for name in ("store", "ns", "thread", "seq")]
        expected = [pin["store"].removeprefix("store:"), place["namespace"], place["thread"]]
        require(found == [*expected, seq], "place")
        _counts(header, sha256(raw), trust, lists or {})
        links = (hashes[seq - 1], hashes[_skip(seq)]) if seq else (None, None)
        require((header["prev"], header["skip"]) == links, "links")
        require(header["roster"] >= newest and header["epoch"] >= epoch, "roster or epoch")
        newest, epoch = header["roster"], header["epoch"]
        require((kind == "genesis") == erased, "genesis")
        gen, erased = gen + erased, kind == "erase"
        require(header["gen"] == gen, "generation")
        require(standing.follow(kind, seq, sha256(raw)), "paused")
        marks |= {name: seq for name, kinds in _SETTLES.items() if kind in kinds}
        require(all(header[name] == marks[name] for name in marks), "marks")
        if kind == "genesis":
            name = "" if data is None else _body(header, data)["name"]
            reserved = name.startswith("sealpoint:")
        require(not reserved or kind in gate.ON_RESERVED, "a reserved thread")
        said = owner
        if kind == "genesis" or (kind == "resume" and owner is not None):
            said = None if data is None else _body(header, data)["owner"]
        if kind == "handoff" and owner is not None:
            asked = gate.Spending(header, person, owner, standing.before, now)
            said = None if data is None else gate.check_handoff(_body(header, data), asked, roster)
        owner = said if kind in {"genesis", "handoff"} else owner
        if kind in _OWNED and owner is not None:
            members = roster["pools"].get(owner, set())
            require(person["name"] == owner or person["name"] in members, "owner")
        require(kind not in _IN_SESSION or session == by, "session")
        require(said in {None, owner}, "another owner")
        owner = None if erased else said
        if kind in _SETTLES["fence"]:
            session = by if kind == "resume" else ""
            began = None if data is None or not session else _body(header, data).get("world")
        if kind in {"checkpoint", "held"} and data is not None and owner is not None:
            require(_body(header, data).get("world") == began, "the world of the session")
        hashes.append(sha256(raw))
    lanes.judge_tables(living(rows))
    lanes.judge_ranks(living(rows))
    return hashes


def living(rows: list[Row]) -> list[tuple[int, str, dict[str, Any]]]:
    """Position, kind and body of every entry from the newest erasure on: none may be gone."""
    headers = [_header(raw) for raw, _, _ in rows]
    first = max((header["seq"] for header in headers if header["kind"] == "erase"), default=0)
    living = []
    for header, (_, _, data) in list(zip(headers, rows, strict=True))[first:]:
        require(data is not None, "a body that nobody erased")
        living.append((header["seq"], header["kind"], _body(header, data or b"")))
    return living
