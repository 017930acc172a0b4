# SPDX-License-Identifier: Apache-2.0
"""A second verifier of chains, from docs/formats alone: the standard library and `cryptography`.

It takes bytes and raises an error for whatever is not genuine. Which error does not matter, only
that nothing else is believed. Nothing of Sealpoint is used here.
"""

import hashlib
import json
import re
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["FAULTS", "Fault", "verify_store_chain", "verify_thread"]

_TYPE = b"application/vnd.sealpoint.entry.v1+json"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
_NUMBERS = {"v", "epoch", "gen", "seq", "fence", "roster"}
_LINKS = {"prev", "skip"}
_FIELDS = [
    *("v", "store", "epoch", "ns", "thread", "gen", "seq", "prev", "skip", "kind", "fence"),
    *("roster", "at", "by", "enc", "body"),
]
_BODIES: dict[str, tuple[list[str], list[str]]] = {
    "genesis": (["salt", "name", "owner"], []),
    "resume": (["salt", "owner", "basis"], ["reason"]),
    "checkpoint": (
        ["salt", "id", "root"],
        ["fresh", "fresh_list", "parent", "metadata", "world"],
    ),
    "adopt": (["salt", "reason"], []),
    "roster": (["salt", "roster"], ["reason"]),
}
_ROLES = {"genesis": "writer", "resume": "writer", "checkpoint": "writer", "adopt": "operator"}
_SMALL_ORDER = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_PRIME = 2**255 - 19


class Fault(Exception):
    """Something that is not as the specification says."""


FAULTS = (Fault, InvalidSignature, ValueError, KeyError, TypeError, RecursionError)

Row = tuple[bytes, bytes, bytes]


def _require(holds: object, what: str) -> None:
    if not holds:
        raise Fault(what)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _parse(data: bytes, bytes_max: int) -> Any:
    """JSON in its one spelling; numbers with a fraction are left as they are spelled."""
    _require(len(data) <= bytes_max, "bound")
    value = json.loads(data.decode(), parse_float=_Spelled, parse_constant=_refuse)
    again = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    again = re.sub(r'"\\u0000([-+.eE\d]+)"', r"\1", again)
    _require(again.encode() == data, "one spelling")
    return value


class _Spelled(str):
    """A number as it is spelled, behind a mark that no text in this place has."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        return super().__new__(cls, "\0" + text)


def _refuse(text: str) -> None:
    raise Fault(text)


def _header(data: bytes) -> dict[str, Any]:
    header: dict[str, Any] = _parse(data, 4096)
    _require(list(header) == _FIELDS, "fields")
    for name, value in header.items():
        if name in _NUMBERS:
            _require(type(value) is int and 0 <= value < 2**53, name)
        else:
            _require(type(value) is str or (name in _LINKS and value is None), name)
    _require(header["v"] == 1 and header["enc"] == "none", "version")
    _require(_TIME.fullmatch(header["at"]) and not header["at"].endswith(".000000Z"), "time")
    return header


def _body(header: dict[str, Any], data: bytes) -> dict[str, Any]:
    _require(_sha256(data) == header["body"], "body digest")
    body: dict[str, Any] = _parse(data, 1 << 20)
    required, optional = _BODIES[header["kind"]]
    _require(list(body)[: len(required)] == required, "body fields")
    rest = list(body)[len(required) :]
    _require(rest == [name for name in optional if name in rest], "body fields")
    _require(not any(body[name] in (None, []) for name in rest), "written default")
    return body


def _key(text: str) -> tuple[str, Ed25519PublicKey]:
    raw = bytes.fromhex(text)
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    weak = {0, 1, _PRIME - 1, _SMALL_ORDER, _PRIME - _SMALL_ORDER}
    _require(raw.hex() == text and len(raw) == 32 and y < _PRIME and y not in weak, "key")
    return _sha256(raw), Ed25519PublicKey.from_public_bytes(raw)


def _seals(data: bytes) -> dict[str, bytes]:
    pairs = _parse(data, 8192)
    seals = {key: bytes.fromhex(signature) for key, signature in pairs}
    _require(1 <= len(seals) == len(pairs) <= 16, "seals")
    _require(all(re.fullmatch("[0-9a-f]{64}", key) for key in seals), "key id")
    _require(all(seals[key].hex() == signature for key, signature in pairs), "signature")
    return seals


def _check(key: Ed25519PublicKey, signature: bytes, raw: bytes) -> None:
    key.verify(signature, b"DSSEv1 %d %b %d %b" % (len(_TYPE), _TYPE, len(raw), raw))


def _roster(document: dict[str, Any]) -> dict[str, Any]:
    """The identities by name and by key, and the pools."""
    people = {each["name"]: each for each in document["identities"]}
    pools = {pool["name"]: set(pool["members"]) for pool in document["pools"]}
    keys = {}
    for person in people.values():
        for each in person["keys"]:
            key_id, key = _key(each["public"])
            _require(each["scheme"] == "ed25519" and each["expires"] is None, "scheme")
            _require(key_id not in keys, "a key twice")
            keys[key_id] = (person, key)
    _require(len(people) == len(document["identities"]), "a name twice")
    _require(len(pools) == len(document["pools"]) and not pools.keys() & people.keys(), "pools")
    _require(all(members <= people.keys() for members in pools.values()), "members")
    _require(document["cuts"] == [], "cuts")
    return {"people": people, "keys": keys, "pools": pools}


def _covers(now: dict[str, Any], before: dict[str, Any]) -> bool:
    for name, old in before["people"].items():
        new = now["people"][name]
        spaces = set(new["namespaces"])
        if not (
            set(old["roles"]) <= set(new["roles"])
            and {key["public"] for key in old["keys"]} <= {key["public"] for key in new["keys"]}
            and ("*" in spaces or set(old["namespaces"]) <= spaces)
        ):
            return False
    return all(members <= now["pools"][name] for name, members in before["pools"].items())


def verify_store_chain(pin: dict[str, Any], rows: list[Row]) -> dict[int, dict[str, Any]]:
    """Every roster by its position, if the chain is genuine."""
    store = pin["store"].removeprefix("store:")
    roots = dict(_key(key) for key in pin["root"]["keys"])
    rosters: dict[int, dict[str, Any]] = {}
    hashes: list[str] = []
    for seq, (raw, sealed, data) in enumerate(rows):
        header, newest = _header(raw), max(rosters, default=0)
        links = (hashes[seq - 1], hashes[seq & (seq - 1)]) if seq else (None, None)
        place = [header[name] for name in ("store", "ns", "thread", "seq", "epoch", "gen", "fence")]
        _require(place == [store, "", "0" * 32, seq, 0, 0, 0], "place")
        _require((header["prev"], header["skip"], header["roster"]) == (*links, newest), "links")
        seals = _seals(sealed)
        _require(next(iter(seals)) == header["by"], "first seal")
        if header["kind"] == "roster":
            signed = [key for key in seals if key in roots]
            for key in signed:
                _check(roots[key], seals[key], raw)
            _require(len(signed) >= pin["root"]["threshold"], "threshold")
            roster = _roster(_body(header, data)["roster"])
            _require(not rosters or _covers(roster, rosters[newest]), "rights")
            rosters[seq] = roster
        else:
            _require(header["kind"] == "adopt", "kind")
            person, key = rosters[newest]["keys"][header["by"]]
            _require("operator" in person["roles"] and "*" in person["namespaces"], "operator")
            _check(key, seals[header["by"]], raw)
            _body(header, data)
        hashes.append(_sha256(raw))
    _require(rosters and max(rosters) >= pin["roster"], "a roster")
    return rosters


def verify_thread(
    pin: dict[str, Any], rosters: dict[int, dict[str, Any]], place: dict[str, str], rows: list[Row]
) -> list[str]:
    """The hash of every entry, if the chain is genuine."""
    hashes: list[str] = []
    owner, fence, session, newest = "", 0, "", 0
    for seq, (raw, sealed, data) in enumerate(rows):
        header, seals = _header(raw), _seals(sealed)
        kind, by, roster = header["kind"], header["by"], rosters[header["roster"]]
        _require(list(seals) == [by], "one seal")
        person, key = roster["keys"][by]
        _check(key, seals[by], raw)
        spaces = person["namespaces"]
        _require(_ROLES[kind] in person["roles"], "role")
        _require(header["ns"] in spaces or "*" in spaces, "namespace")
        found = [header[name] for name in ("store", "ns", "thread", "seq", "epoch", "gen")]
        expected = [pin["store"].removeprefix("store:"), place["namespace"], place["thread"]]
        _require(found == [*expected, seq, 0, 0], "place")
        links = (hashes[seq - 1], hashes[seq & (seq - 1)]) if seq else (None, None)
        _require((header["prev"], header["skip"]) == links, "links")
        _require((kind == "genesis") == (seq == 0), "genesis")
        _require(header["roster"] >= newest, "roster")
        newest = header["roster"]
        body = _body(header, data)
        _require(seq == 0 or body.get("owner", owner) == owner, "owner")
        owner = body.get("owner", owner)
        sets_fence = kind in {"genesis", "resume"}
        _require(header["fence"] == (seq if sets_fence else fence), "fence")
        if kind != "adopt":
            members = roster["pools"].get(owner, set())
            _require(person["name"] == owner or person["name"] in members, "owner")
        _require(kind != "checkpoint" or session == by, "session")
        if sets_fence:
            fence, session = seq, by if kind == "resume" else ""
        hashes.append(_sha256(raw))
    return hashes
