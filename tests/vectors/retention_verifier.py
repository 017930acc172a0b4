# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that judges prunes, payloads and blobs of a verified thread.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tests.vectors.verifier import Blobs, Row, blob, living, require

__all__ = ["verify_retained"]


def _gives_up(prune: dict[str, Any] | None, seq: int) -> bool:
    return prune is not None and seq < prune["before"] and seq not in prune.get("kept", [])


def verify_retained(
    rows: list[Row],
    payloads: Mapping[int, bytes],
    blobs: Blobs,
    walk: Callable[[bytes, dict[bytes, bytes]], object],
) -> list[int]:
    """The checkpoints of a verified thread that still have their state, all of it.

    Args:
        rows: The entries.
        payloads: What lies beside them, by their positions.
        blobs: The blobs of the thread.
        walk: Reads a tree, given the digest of its root and the blobs that there are.
    """
    prune: dict[str, Any] | None = None
    place, newest, checkpoints = None, -1, {}
    for seq, kind, body in living(rows):
        if kind == "prune":
            gone = [kept for kept in body.get("kept", []) if _gives_up(prune, kept)]
            require(prune is None or body["before"] >= prune["before"], "a lower bound")
            require(body["before"] <= seq, "what is yet to come")
            require(newest >= 0 and not gone and not _gives_up(body, newest), "what is kept")
            place, prune = seq, body
        elif kind == "checkpoint":
            require(body.get("prune") == place, "the newest prune")
            newest, checkpoints[seq] = seq, body
    lives = [seq for seq in checkpoints if not _gives_up(prune, seq)]
    for seq in lives:
        body = checkpoints[seq]
        there = dict(blobs) | ({body["root"]: payloads[seq]} if seq in payloads else {})
        listed = blob(there, body["fresh_list"]) if "fresh_list" in body else b""
        fresh = [listed[at : at + 32].hex() for at in range(0, len(listed), 32)]
        for name in (body["root"], *body.get("fresh", []), *fresh, body.get("world")):
            require(name is None or blob(there, name) is not None, "a blob")
        if place is not None and seq < place:
            tree = {bytes.fromhex(name): data for name, data in there.items()}
            walk(bytes.fromhex(body["root"]), tree)
    return lives
