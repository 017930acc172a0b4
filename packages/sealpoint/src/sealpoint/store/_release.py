# SPDX-License-Identifier: Apache-2.0
"""A release: exactly the state that a resume from a checkpoint would execute.

It is one immutable value, made only here, from the index of a verified chain. The gate decides on
it, a statement binds its digest, people see it, the released state is read from it, the resume
entry records its digest, and an audit makes it again and compares. Making it reads no clock and
writes nothing. The gate decides whether it may run, and `_thread_reader.py` reads the state. The
format is docs/formats/release.md.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from sealpoint.ledger import Origin, PruneBody
from sealpoint.store._checkpoint_index import (
    CheckpointIndex,
    CheckpointPlace,
    Gone,
    Key,
    ResultPlace,
)
from sealpoint.world import json_form

_encode_json = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingResult:
    """Results of a task that the run would treat as done, or an answer that it would use."""

    task: str
    path: str
    """The position of the task in the program."""
    seq: int
    entry: str
    """The hash of the entry that holds them."""
    question: Any = field(hash=False)
    """The question that the task waits for a person to answer."""
    answers: bool
    """Whether they are an answer that a person gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedLane:
    """Another line of work, such as a subgraph's, that was written to since."""

    lane: str
    id: str
    """The id of its newest checkpoint."""
    seq: int
    entry: str
    held: bool
    results: tuple[PendingResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A checkpoint or results removed since a session saved, which the run would have used.

    It is a checkpoint that was newer than the remaining ones; or results of a task, whose
    checkpoint remains.
    """

    lane: str
    id: str
    """The id of the checkpoint."""
    seq: int
    entry: str
    task: str | None
    """The task of the results; None: the checkpoint itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Exactly the state that would be executed, with its position on its thread."""

    digest: str
    """The SHA-256 of all of it, in hexadecimal, which statements bind and resumes record."""
    thread: str
    """The thread's id in hexadecimal."""
    gen: int
    basis: str
    """The hash of the newest entry that changes what a resume would mean."""
    fence: int
    """The session under which it was made; under another one it is no longer this release."""
    session: int
    """The session in which the checkpoint was saved."""
    id: str
    """The id of the checkpoint."""
    lane: str
    seq: int
    entry: str
    held: bool
    """Whether a pause held the checkpoint back."""
    newest: bool
    """Whether it is the newest of the thread."""
    rank: int
    time: datetime
    """When the state was first saved; for a copy, when the original was saved."""
    origin: Origin | None
    """The original that it is a copy of."""
    copied: bool
    """Whether it was copied since a session last saved a new checkpoint."""
    world: str | None
    """The digest of the run's capabilities at the save, if they were declared."""
    question: Any = field(hash=False)
    """The question that the run waits for a person to answer."""
    results: tuple[PendingResult, ...]
    """The counted results that were added to the checkpoint, in order of addition."""
    lanes: tuple[ReleasedLane, ...]
    deleted: tuple[Deleted, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return json_form(
            self,
            *("digest", "id", "lane", "seq", "entry", "held", "newest", "time", "origin", "copied"),
            *("world", "question", "results", "lanes", "deleted", "fence", "basis"),
        )


class ReleasePosition(NamedTuple):
    """The position of a thread when a release is made."""

    thread: str
    gen: int
    basis: str
    fence: int
    resumed: int
    """The resume of the newest session that saved a new checkpoint in the main lane; -1: none.

    A session that saved none settles no deletion and no copy before it.
    """
    removals: PruneBody | None
    """The prune or delete in force now."""
    removals_before: PruneBody | None
    """The prune or delete in force at that resume."""


def make_release(
    index: CheckpointIndex, target: CheckpointPlace, release_position: ReleasePosition
) -> Release:
    """Make the release of a checkpoint.

    Args:
        index: The index of the verified chain, up to the thread's position.
        target: The checkpoint.
        release_position: The thread's position.
    """
    gone = _gone(release_position.removals)
    newest = index.newest("", gone)
    results = _results(index, target.key, target.since, gone)
    lanes = tuple(
        ReleasedLane(
            lane=place.key.lane,
            id=place.key.id,
            seq=place.seq,
            entry=place.entry.hex(),
            held=place.held,
            results=_results(index, place.key, place.since, gone),
        )
        for place in index.lanes_after(target.rank, gone)
        if place.key.lane != target.key.lane
    )
    deleted = _deleted(index, target, release_position)
    question = _question(target, results)
    is_newest = newest is not None and newest.entry == target.entry
    copied = target.origin is not None and target.seq > release_position.resumed
    document = {
        "v": 1,
        "thread": release_position.thread,
        "gen": release_position.gen,
        "basis": release_position.basis,
        "checkpoint": target.entry.hex(),
        "held": target.held,
        "newest": is_newest,
        "world": target.world,
        "origin": target.origin,
        "copied": copied,
        "question": question,
        "results": [each.entry for each in results],
        "lanes": [[each.lane, each.entry, [r.entry for r in each.results]] for each in lanes],
        "deleted": [each.entry for each in deleted],
    }
    return Release(
        digest=sha256(_encode_json(document)).hexdigest(),
        thread=release_position.thread,
        gen=release_position.gen,
        basis=release_position.basis,
        fence=release_position.fence,
        session=target.session,
        id=target.key.id,
        lane=target.key.lane,
        seq=target.seq,
        entry=target.entry.hex(),
        held=target.held,
        newest=is_newest,
        rank=target.rank,
        time=target.at if target.origin is None else min(target.at, target.origin.at),
        origin=target.origin,
        copied=copied,
        world=target.world,
        question=question,
        results=results,
        lanes=lanes,
        deleted=deleted,
    )


def _gone(removals: PruneBody | None) -> Gone:
    return (lambda _seq: False) if removals is None else removals.covers


def _results(index: CheckpointIndex, key: Key, since: int, gone: Gone) -> tuple[PendingResult, ...]:
    return tuple(
        pending_result(place) for place in index.results(key, since) if not gone(place.seq)
    )


def pending_result(place: ResultPlace) -> PendingResult:
    """Return the results at a place, in the form for runs and people."""
    return PendingResult(
        task=place.task,
        path=place.path,
        seq=place.seq,
        entry=place.entry.hex(),
        question=place.question,
        answers=place.answers,
    )


def _question(target: CheckpointPlace, results: Iterable[PendingResult]) -> Any:
    """Return the question that the checkpoint, or tasks that continue from it, wait for.

    Results may be there before their checkpoint. No run waits for their questions: it continues
    from a checkpoint that exists, and its tasks ask again.
    """
    if target.question is not None:
        return target.question
    waiting = {each.task: each.question for each in results if not each.answers}
    return [question for question in waiting.values() if question is not None] or None


def _deleted(
    index: CheckpointIndex, target: CheckpointPlace, release_position: ReleasePosition
) -> tuple[Deleted, ...]:
    """Return the entries that were removed since a session saved, and would count otherwise."""
    now, before = release_position.removals, release_position.removals_before
    if now is None or now is before:
        return ()
    gone, was_gone = _gone(now), _gone(before)
    found: list[Deleted] = []
    newest = index.newest("", gone)
    low = target.rank if newest is None else newest.rank
    hidden = now.newly_deleted(before)
    # For a lane that is completely gone, only checkpoints saved after the target count: nothing
    # depends on work that had finished before.
    ranks_left: dict[str, int] = {}
    for place in index.saved_after(low if hidden is None else min(low, hidden - 1)):
        if not gone(place.seq) or was_gone(place.seq):
            continue
        lane = place.key.lane
        if lane not in ranks_left:
            left = index.newest(lane, gone)
            ranks_left[lane] = target.rank if left is None else left.rank
        if place.rank > ranks_left[lane]:
            found.append(_deleted_at(place, None))
    names = {(each.lane, each.id) for each in found}
    found += (
        _deleted_at(each, each.task)
        for each in _results_then(index, target, was_gone)
        if gone(each.seq) and each.key not in names
    )
    return tuple(sorted(found, key=lambda each: each.seq))


def _results_then(
    index: CheckpointIndex, target: CheckpointPlace, was_gone: Gone
) -> Iterator[ResultPlace]:
    """Yield the results that were pending at the resume that settled, or were added since."""
    lanes = index.lanes_after(target.rank, was_gone)
    for place in (target, *(each for each in lanes if each.key.lane != target.key.lane)):
        yield from (
            each for each in index.results(place.key, place.since) if not was_gone(each.seq)
        )


def _deleted_at(place: CheckpointPlace | ResultPlace, task: str | None) -> Deleted:
    lane, name = place.key
    return Deleted(lane=lane, id=name, seq=place.seq, entry=place.entry.hex(), task=task)
