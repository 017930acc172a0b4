# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that makes releases, and compares what resumes record of them.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

from copy import copy
from typing import Any

from tests.vectors.gate_verifier import MOVES
from tests.vectors.lanes_verifier import STATES, Body, Living, gives_up, hides
from tests.vectors.reading import parse, require, sha256, spelled
from tests.vectors.verifier import Row, living

__all__ = ["release_document", "verify_releases"]

Checkpoint = tuple[int, Body]
"""Its position and its body."""


def release_document(rows: list[Row], target: int) -> bytes:
    """What a resume of the checkpoint at this position would release, after these entries.

    Args:
        rows: The entries of a verified thread.
        target: The position of a checkpoint of the newest generation, which was not given up.
    """
    headers = [parse(raw, 4096) for raw, _, _ in rows]
    settled = _settled(headers, living(rows))
    there = _Thread(living(rows), target, settled)
    basis = max((each["seq"] for each in headers if each["kind"] in MOVES), default=0)

    def entries(positions: list[int]) -> list[str]:
        return [sha256(rows[seq][0]) for seq in positions]

    fields = {
        "basis": sha256(rows[basis][0]),
        "checkpoint": sha256(rows[target][0]),
        "copied": "origin" in there.target[1] and target > settled,
        "deleted": entries(there.deleted()),
        "gen": headers[-1]["gen"],
        "held": headers[target]["kind"] == "held",
        "lanes": [
            [lane, sha256(rows[seq][0]), entries(results)] for lane, seq, results in there.lanes()
        ],
        "newest": there.newest("") == there.target,
        "origin": _ordered(there.target[1].get("origin")),
        "question": _ordered(there.question()),
        "results": entries(there.results(there.target)),
        "thread": headers[0]["thread"],
        "v": 1,
        "world": there.target[1].get("world"),
    }
    return spelled(fields)


def verify_releases(rows: list[Row]) -> int:
    """How many resumes of the newest generation record a release, if it is what lay there."""
    hashes = [sha256(raw) for raw, _, _ in rows]
    found = 0
    for seq, kind, body in living(rows):
        if kind == "resume" and "release" in body:
            document = release_document(rows[:seq], hashes.index(body["checkpoint"]))
            require(sha256(document) == body["release"], "another release")
            found += 1
    return found


def _settled(headers: list[Any], entries: Living) -> int:
    """The resume of the newest session that saved something new in the main lane."""
    saved = [
        headers[seq]["fence"]
        for seq, kind, body in entries
        if kind == "checkpoint" and "again" not in body and not body.get("lane")
    ]
    return max(saved, default=-1)


class _Thread:
    """The newest generation of a thread, as one checkpoint of it sees it."""

    def __init__(self, entries: Living, target: int, settled: int) -> None:
        self._entries = entries
        self._gone = self._given_up(len(entries) + entries[0][0])
        self._gone_before = self._given_up(settled)
        self._named: dict[tuple[str, str], Checkpoint] = {}
        """Of each name the checkpoint of the highest position, given up or not."""
        for seq, kind, body in entries:
            if kind in STATES:
                self._named[_name(body)] = (seq, body)
        self.target: Checkpoint = next(
            (seq, body) for seq, kind, body in entries if seq == target and kind in STATES
        )
        require(not gives_up(self._gone, target), "given up")

    def _given_up(self, end: int) -> Body | None:
        """What the newest prune or hide below a position says."""
        found = [body for seq, kind, body in self._entries if kind in _GIVES_UP and seq < end]
        return found[-1] if found else None

    def newest(self, lane: str) -> Checkpoint | None:
        """The newest checkpoint of a lane."""
        left = [
            each
            for (where, _), each in self._named.items()
            if where == lane and not gives_up(self._gone, each[0])
        ]
        return max(left, key=lambda each: (_rank(each), each[1]["id"]), default=None)

    def results(self, checkpoint: Checkpoint) -> list[int]:
        """The results of a checkpoint."""
        since = checkpoint[1].get("since", _rank(checkpoint))
        return [
            seq
            for seq, body in self._writes()
            if _name(body) == _name(checkpoint[1]) and seq >= since
        ]

    def _writes(self) -> list[tuple[int, Body]]:
        return [
            (seq, body)
            for seq, kind, body in self._entries
            if kind == "writes" and not gives_up(self._gone, seq)
        ]

    def _then(self) -> "_Thread":
        """The same with only that given up which was at the resume that settled."""
        then = copy(self)
        then._gone = self._gone_before
        return then

    def pending(self) -> set[int]:
        """The results that a run would take."""
        return set(self.results(self.target)).union(*(results for _, _, results in self.lanes()))

    def lanes(self) -> list[tuple[str, int, list[int]]]:
        """The other lanes in which something was written since."""
        states = [(seq, body) for seq, kind, body in self._entries if kind in STATES]
        busy = {
            body.get("lane", "")
            for seq, body in (*states, *self._writes())
            if seq > _rank(self.target)
        }
        found = [(lane, self.newest(lane)) for lane in sorted(busy - {_name(self.target[1])[0]})]
        return [(lane, each[0], self.results(each)) for lane, each in found if each is not None]

    def question(self) -> Any:
        """What the run waits for."""
        said = self.target[1]
        if "question" in said:
            return said["question"]
        own, bodies = self.results(self.target), dict(self._writes())
        waiting: dict[str, Any] = {}
        for body in (bodies[at] for at in own):
            if "answers" not in body:
                waiting[body["task"]] = body.get("question")
        return [each for each in waiting.values() if each is not None] or None

    def deleted(self) -> list[int]:
        """What was given up since the last resume, and would count otherwise."""
        if self._gone is self._gone_before:
            return []
        rank, left = _rank(self.target), self.newest("")
        bound = rank if left is None else _rank(left)
        for seq in range(self._entries[-1][0] + 1):
            if hides(self._gone, seq) and not hides(self._gone_before, seq):
                bound = min(bound, seq - 1)
        found, names = [], set()
        for (lane, name), each in self._named.items():
            if gives_up(self._gone, each[0]) and not gives_up(self._gone_before, each[0]):
                left = self.newest(lane)
                above = rank if left is None else _rank(left)
                if each[0] > bound and _rank(each) > above:
                    found.append(each[0])
                    names.add((lane, name))
        bodies = {seq: body for seq, _, body in self._entries}
        lost = {seq for seq in self._then().pending() if gives_up(self._gone, seq)}
        return sorted((*found, *(seq for seq in lost if _name(bodies[seq]) not in names)))


_GIVES_UP = {"prune", "hide"}


def _name(body: Body) -> tuple[str, str]:
    """What names a checkpoint: its lane and its id. Results say of which they are."""
    return body.get("lane", ""), body["checkpoint"] if "checkpoint" in body else body["id"]


def _rank(checkpoint: Checkpoint) -> int:
    return int(checkpoint[1].get("again", checkpoint[0]))


def _ordered(value: Any) -> Any:
    """The same with the fields of every object in the order of their names."""
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value
