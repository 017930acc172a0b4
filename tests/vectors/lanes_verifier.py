# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that knows lanes, results and deletions, and what they show.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

import hashlib
import itertools
import re
from typing import Any

from tests.vectors.reading import DIGEST, ID, as_time, require

__all__ = [
    "BODIES",
    "CHECKPOINT_FIELDS",
    "OWNED",
    "STATES",
    "TYPES",
    "Body",
    "Living",
    "gives_up",
    "hides",
    "judge",
    "judge_positions",
    "judge_ranks",
    "judge_tables",
    "shown",
]

CHECKPOINT_FIELDS = [
    *("fresh", "fresh_list", "parent", "metadata", "world", "prune", "question", "lane"),
    *("again", "since", "origin", "ids"),
]
_RESULTS = ["lane", "path", "fresh", "fresh_list", "question", "answers", "origin"]
_GIVEN_UP = ["kept", "reason", "hidden", "earlier"]
STATES = {"checkpoint", "held"}
BODIES: dict[str, tuple[list[str], list[str]]] = {
    "writes": (["salt", "checkpoint", "task", "root"], _RESULTS),
    **dict.fromkeys(("prune", "hide"), (["salt", "before"], _GIVEN_UP)),
}
OWNED = {"held", "writes", "hide"}
TYPES: dict[str, type] = {
    **dict.fromkeys(("again", "since", "earlier"), int),
    "answers": bool,
    **dict.fromkeys(("origin", "ids"), dict),
    "hidden": list,
}

Body = dict[str, Any]
Living = list[tuple[int, str, Body]]


def judge(kind: str, body: Body) -> None:
    """What a body of frameworks may not say, whoever signed it."""
    if kind in {*STATES, "writes"}:
        require(not any(body.get(name) in ("", False) for name in TYPES), "written default")
        require("" not in (body.get("lane"), body.get("path")), "written default")
        if "origin" in body:
            origin = body["origin"]
            require(list(origin) == ["thread", "entry", "at"], "origin")
            require(ID.fullmatch(origin["thread"]) and DIGEST.fullmatch(origin["entry"]), "origin")
            as_time(origin["at"])
        if "ids" in body:
            table = body["ids"]
            require(list(table) == ["first", "prints"] and type(table["first"]) is int, "table")
            require(re.fullmatch("([0-9a-f]{8})+", table["prints"]), "prints")
    if kind == "writes":
        named = [body["root"], *([body["fresh_list"]] if "fresh_list" in body else [])]
        require(all(map(DIGEST.fullmatch, named)), "digests")
    if kind in {"prune", "hide"}:
        ends = [-1]
        for first, last in body.get("hidden", []):
            require(type(first) is int and type(last) is int, "positions")
            ends += [first, last + 1]
        require(all(one < two for one, two in itertools.pairwise(ends)), "stretches")
        require(body.get("earlier", 0) >= 0, "a position")


def judge_positions(header: dict[str, Any], body: Body) -> None:
    """A checkpoint or a resume names only what lies before it."""
    if header["kind"] == "resume":
        named = [body[name] for name in ("released", "decided") if name in body]
        require(all(0 <= seq < header["seq"] for seq in named), "positions")
    if header["kind"] in STATES:
        named = [body[name] for name in ("again", "since", "prune") if name in body]
        require(all(0 <= seq < header["seq"] for seq in named), "positions")
        if "since" in body:
            require(body["since"] <= body.get("again", header["seq"]), "results behind the rank")
            require("again" in body or body["since"] > header["fence"], "results of long ago")
        if "ids" in body:
            first, count = body["ids"]["first"], len(body["ids"]["prints"]) // 8
            require(first >= 0 and first + count == header["seq"], "a table that ends before it")


def judge_tables(living: Living) -> None:
    """Every table of ids says what the entries of its generation say."""
    prints: dict[int, str] = {}
    for seq, kind, body in living:
        if kind == "genesis":
            prints.clear()
        prints[seq] = "0" * 8
        if kind in STATES:
            digest = hashlib.sha256(f"{body['id']}\0{body.get('lane', '')}".encode()).digest()
            prints[seq] = (int.from_bytes(digest[:4]) | 1 << 31).to_bytes(4).hex()
            if "ids" in body:
                before = (prints.get(at, "") for at in range(body["ids"]["first"], seq))
                require(body["ids"]["prints"] == "".join(before), "another table")


def judge_ranks(living: Living) -> None:
    """A checkpoint that supersedes another keeps its rank, and where its results begin."""
    places: dict[tuple[str, str], tuple[int, int]] = {}
    for seq, kind, body in living:
        if kind == "genesis":
            places.clear()
        if kind in STATES:
            name = body.get("lane", ""), body["id"]
            rank: int = body.get("again", seq)
            place = rank, body.get("since", rank)
            require("again" not in body or places.get(name, place) == place, "another rank")
            places[name] = place


def hides(body: Body | None, seq: int) -> bool:
    """Whether a prune or hide says that this was deleted."""
    return body is not None and any(one <= seq <= two for one, two in body.get("hidden", []))


def gives_up(body: Body | None, seq: int) -> bool:
    """Whether it says that this has lost its payload."""
    if body is None:
        return False
    return hides(body, seq) or (seq < body["before"] and seq not in body.get("kept", []))


def shown(living: Living) -> dict[str, list[list[Any]]]:
    """By lane, the newest first: id and position of each checkpoint, and those of its results."""
    newest = next((body for _, kind, body in reversed(living) if kind in {"prune", "hide"}), None)
    named: dict[tuple[str, str], tuple[int, Body]] = {}
    for seq, kind, body in living:
        if kind in STATES:
            named[body.get("lane", ""), body["id"]] = (seq, body)
    ranked: list[tuple[int, str, str, int, Body]] = sorted(
        (
            (body.get("again", seq), lane, name, seq, body)
            for (lane, name), (seq, body) in named.items()
            if not gives_up(newest, seq)
        ),
        key=lambda each: each[0],
        reverse=True,
    )
    found: dict[str, list[list[Any]]] = {}
    for rank, lane, name, seq, body in ranked:
        results = [
            at
            for at, kind, result in living
            if kind == "writes"
            and (result.get("lane", ""), result["checkpoint"]) == (lane, name)
            and at >= body.get("since", rank)
            and not gives_up(newest, at)
        ]
        found.setdefault(lane, []).append([name, seq, results])
    return found
