# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that judges prunes, payloads and blobs of a verified thread.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tests.vectors.lanes_verifier import STATES, gives_up, hides
from tests.vectors.verifier import Blobs, Row, blob, living, require

__all__ = ["verify_retained"]


def verify_retained(
    rows: list[Row],
    payloads: Mapping[int, bytes],
    blobs: Blobs,
    walk: Callable[[bytes, dict[bytes, bytes]], object],
) -> list[int]:
    """The entries of a verified thread that still have their payload, all of it.

    Args:
        rows: The entries.
        payloads: What lies beside them, by their positions.
        blobs: The blobs of the thread.
        walk: Reads a tree, given the digest of its root and the blobs that there are.
    """
    prune: dict[str, Any] | None = None
    place, newest, holding = None, -1, {}
    for seq, kind, body in living(rows):
        if kind in {"prune", "hide"}:
            _require_more(kind, body, prune, seq)
            require(body.get("earlier") == place, "the one before")
            last = newest < 0 or (gives_up(body, newest) and not hides(body, newest))
            require(not last or (kind == "hide" and newest < 0), "what is kept")
            place, prune = seq, body
        elif kind in STATES:
            require(body.get("prune") == place, "the newest prune")
            newest, holding[seq] = seq, body
        elif kind == "writes":
            holding[seq] = body
    lives = [seq for seq in holding if not gives_up(prune, seq)]
    for seq in lives:
        body = holding[seq]
        there = dict(blobs) | ({body["root"]: payloads[seq]} if seq in payloads else {})
        listed = blob(there, body["fresh_list"]) if "fresh_list" in body else b""
        fresh = [listed[at : at + 32].hex() for at in range(0, len(listed), 32)]
        for name in (body["root"], *body.get("fresh", []), *fresh, body.get("world")):
            require(name is None or blob(there, name) is not None, "a blob")
        if place is not None and seq < place:
            tree = {bytes.fromhex(name): data for name, data in there.items()}
            walk(bytes.fromhex(body["root"]), tree)
    return lives


def _require_more(kind: str, body: dict[str, Any], before: dict[str, Any] | None, seq: int) -> None:
    """Hold a prune or hide to the one before it, and to what was there."""
    ends = [body["before"], *(last + 1 for _, last in body.get("hidden", []))]
    require(max(ends) <= seq, "what is yet to come")
    require(before is None or body["before"] >= before["before"], "a lower bound")
    there = [at for at in range(seq) if gives_up(before, at) and not gives_up(body, at)]
    shown = [at for at in range(seq) if hides(before, at) and not hides(body, at)]
    require(not there and not shown, "what was given up")
    same = body.get("hidden", []) == ([] if before is None else before.get("hidden", []))
    require(kind == "hide" or same, "a prune that deletes")
