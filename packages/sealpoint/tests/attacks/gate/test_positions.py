# SPDX-License-Identifier: Apache-2.0
"""A checkpoint or a resume that names positions which were not there when it was written.

Whoever has a worker's key can sign one. By a rank that lies ahead it would be the newest for ever,
whatever honest workers save; by others, processes would read different things. Everybody refuses
it, however long they have had the thread open, and an audit names it and nothing else.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.errors import Misplaced
from sealpoint.gate import Thread
from sealpoint.ledger import CheckpointBody, Kind, ResumeBody
from sealpoint.storage import Record
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ
from tests.unit.store.laned import ids, put, results, saved

_WORLD = World.of(READ)
_STATE = b"\x81\xa4note\xa4evil"

_LIES: dict[str, dict[str, Any]] = {
    f"{field} {seq}": {field: seq}
    for field in ("again", "since", "prune")
    for seq in (-1, 5, 10**30)
}
_WAYS: dict[str, Callable[[Thread], Any]] = {
    "load": lambda thread: thread.load(),
    "release": lambda thread: thread.release(),
    "snapshot": lambda thread: thread.adapter.snapshot(),
    "snapshots": lambda thread: ids(thread, None),
    "history": lambda thread: list(thread.history()),
    "resume": lambda thread: thread.resume(world=READ),
    "prune": lambda thread: thread.prune(keep_last=1, compact=False),
}


def _slip(attacked: AttackedTeam, name: str = "evil", **fields: Any) -> None:
    """Write a checkpoint with a worker's key."""
    body = CheckpointBody(
        salt=attacked.salt, id=name, root=hashlib.sha256(_STATE).hexdigest(), **fields
    )
    made = attacked.forged(Kind.CHECKPOINT, body, "worker")
    attacked.append(Record(made.header, made.seals, made.body, _STATE))


def _scene(attacked: AttackedTeam) -> Thread:
    """A process that knows a thread of four entries and a fifth, which holds results."""
    warm = attacked.thread()
    saved(warm, put({"n": 1}, "1", world=_WORLD), put({"n": 2}, "2"), results("r", "2"))
    warm.adapter.snapshot()
    assert ids(warm, None) == ["2", "1"]
    return warm


@pytest.mark.parametrize("lie", _LIES.values(), ids=_LIES)
def test_a_checkpoint_of_a_position_that_is_not_before_it_is_refused(
    attacked: AttackedTeam, lie: dict[str, Any]
) -> None:
    """By who knows the thread and by who does not; `verify` names the entry of the liar."""
    warm = _scene(attacked)
    with attacked.landing():
        _slip(attacked, **lie)
    report = attacked.world.open(None, read_only=True).verify()

    for name, way in _WAYS.items():
        assert attacked.ending(lambda way=way: way(attacked.fresh())) is Misplaced, name  # type: ignore[misc]
        assert attacked.ending(lambda way=way: way(warm)) is Misplaced, name  # type: ignore[misc]
    assert [(finding.code, "entry 5:" in finding.message) for finding in report.findings] == [
        ("misplaced", True)
    ]


_AHEAD: dict[str, dict[str, Any]] = {
    f"{field} {seq}": {field: seq}
    for field in ("released", "decided")
    for seq in (-1, 5, 6, 10**30)
}


@pytest.mark.parametrize("buried", [False, True])
@pytest.mark.parametrize("lie", _AHEAD.values(), ids=_AHEAD)
def test_a_resume_of_a_position_that_is_not_before_it_is_refused(
    attacked: AttackedTeam, lie: dict[str, Any], *, buried: bool
) -> None:
    """By the same readers, also below a checkpoint of its session."""
    warm = _scene(attacked)
    basis = attacked.body(attacked.find(Kind.RESUME)).basis
    named: dict[str, Any] = {"checkpoint": "22" * 32, "release": "77" * 32}
    body = ResumeBody(salt=attacked.salt, owner="worker", basis=basis, **named, **lie)
    with attacked.landing():
        attacked.slip(Kind.RESUME, body, "worker")
        if buried:
            _slip(attacked)
    report = attacked.world.open(None, read_only=True).verify()

    for name, way in _WAYS.items():
        assert attacked.ending(lambda way=way: way(attacked.fresh())) is Misplaced, name  # type: ignore[misc]
        assert attacked.ending(lambda way=way: way(warm)) is Misplaced, name  # type: ignore[misc]
    assert attacked.ending(lambda: attacked.fresh().save({"n": 9}, world=READ)) is Misplaced
    assert [(finding.code, "entry 5:" in finding.message) for finding in report.findings] == [
        ("misplaced", True)
    ]


def test_who_names_what_is_no_prune_is_refused_by_all(attacked: AttackedTeam) -> None:
    """The position lies before it, and there is a checkpoint: nobody goes by that."""
    warm = _scene(attacked)
    _slip(attacked, prune=2)

    for name in ("load", "release", "snapshot", "resume"):
        assert attacked.ending(lambda name=name: _WAYS[name](attacked.fresh())) is Misplaced  # type: ignore[misc]
        assert attacked.ending(lambda name=name: _WAYS[name](warm)) is Misplaced  # type: ignore[misc]


def test_below_what_the_same_key_wrote_after_it_all_read_the_same(attacked: AttackedTeam) -> None:
    """A checkpoint after the lie is the newest for everybody, as far as anybody looks."""
    warm = _scene(attacked)
    _slip(attacked, again=10**9)
    _slip(attacked, "after")

    for thread in (warm, attacked.fresh()):
        assert thread.load().ref.id == thread.release().id == "after"
        snapshot = thread.adapter.snapshot()
        assert snapshot is not None
        assert snapshot.ref.id == "after"
        assert attacked.ending(lambda thread=thread: ids(thread, None)) is Misplaced  # type: ignore[misc]
    assert warm.release() == attacked.fresh().release()


def test_a_lie_about_prunes_accuses_no_honest_entry(attacked: AttackedTeam) -> None:
    """What a prune gave up is not missed because a later checkpoint names none or another."""
    worker = attacked.thread()
    saved(worker, put({"n": 1}, "1", world=_WORLD), put({"n": 2}, "2"))
    worker.prune(keep_last=1, compact=False)
    attacked.check_sound()
    _slip(attacked)
    (finding,) = attacked.world.open(None, read_only=True).verify().findings

    assert finding.code == "misplaced"
    assert "entry 5: expected it to name prune 4, found None" in finding.message


def test_positions_that_lie_before_are_read(attacked: AttackedTeam) -> None:
    """The control: a checkpoint that is saved again, after results and a prune."""
    warm = _scene(attacked)
    warm.prune(keep_last=2, compact=False)
    other = attacked.fresh()
    other.resume(world=READ)
    saved(other, results("early", "3", "task"), put({"n": 2.5}, "2"), put({"n": 3}, "3"))

    for thread in (warm, attacked.fresh()):
        assert thread.load().state == {"n": 3}
        snapshot = thread.adapter.snapshot("", "3")
        assert snapshot is not None
        assert [each.value for each in snapshot.results] == ["early"]
        assert ids(thread, None) == ["3", "2", "1"]
    attacked.check_sound()
