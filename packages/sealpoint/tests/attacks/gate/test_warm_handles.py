# SPDX-License-Identifier: Apache-2.0
"""A body that is taken away behind a handle that has read the thread before.

A process that reads the thread for the first time says `Missing`. One that knows the thread as it
was must say so as well: it may neither show nor release what is left, and once the body is back it
reads what everybody reads.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from sealpoint.errors import Missing, NeedsApproval
from sealpoint.gate import Thread
from sealpoint.ledger import Kind, parse_header
from sealpoint.storage import Record
from sealpoint.store import Snapshot
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, results, saved, written

_WORLD = World.of(READ)

Way = Callable[[Thread], Any]
_READS: dict[str, Way] = {
    "load": lambda thread: thread.load(),
    "snapshot": lambda thread: thread.adapter.snapshot(),
    "question": lambda thread: thread.question,
    "judge": lambda thread: thread.judge(world=READ),
}
_RUNS: dict[str, Way] = {
    "resume": lambda thread: thread.resume(world=READ),
    "begin": lambda thread: thread.adapter.begin(world=READ),
    "run": lambda thread: written(thread, World.of(READ)),
    "load and save": lambda thread: (thread.load(), thread.save({"balance": 95}, world=READ)),
}
_WAYS = _READS | _RUNS
_FIRST = {name: _WAYS[name] for name in ("load", "snapshot", "resume")}
"""What meets the gap first: the others rest on what these leave behind."""


def _warm(attacked: AttackedTeam) -> Thread:
    """A handle that knows where everything lies, of a thread with a balance of 100."""
    warm = attacked.thread()
    saved(warm, put({"balance": 0}, "1", world=_WORLD), put({"balance": 100}, "2"))
    warm.load()
    assert warm.adapter.snapshot() == attacked.fresh().adapter.snapshot()
    return warm


def _other(attacked: AttackedTeam) -> Thread:
    """Another worker, who goes on with the thread."""
    other = attacked.fresh()
    other.resume(world=READ)
    return other


def _paid(attacked: AttackedTeam) -> None:
    """The task that pays is done, and another one is not."""
    saved(_other(attacked), results("paid", "2", "pay"), results("done", "2", "look"))


def _spent(attacked: AttackedTeam) -> None:
    """All is spent, and the oldest state is given up: the newest entry is no checkpoint."""
    other = _other(attacked)
    saved(other, put({"balance": 0}, "3"))
    other.prune(keep_last=2, compact=False)


def _asking(attacked: AttackedTeam) -> None:
    """A task waits for somebody to answer."""
    saved(_other(attacked), results(["?"], "2", "pay", question="pay 100?"))


_SCENES: dict[str, tuple[Callable[[AttackedTeam], None], Kind]] = {
    "results": (_paid, Kind.RESULTS),
    "the newest state": (_spent, Kind.CHECKPOINT),
    "a question": (_asking, Kind.RESULTS),
}
_every_scene = pytest.mark.parametrize(("scene", "kind"), _SCENES.values(), ids=_SCENES)


def _stripped(attacked: AttackedTeam, since: int, kind: Kind) -> dict[int, Record | None]:
    """The records of a kind that were written since then, without their bodies."""
    return {
        seq: Record(row.header, row.seals, None, row.payload)
        for seq, row in attacked.rows().items()
        if seq >= since and parse_header(row.header).kind is kind
    }


@_every_scene
@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS)
def test_a_body_that_is_gone_is_missed_by_who_has_read_before(
    attacked: AttackedTeam, scene: Callable[[AttackedTeam], None], kind: Kind, way: Way
) -> None:
    """As by a new process, however it is asked: nothing is shown, released or written."""
    warm = _warm(attacked)
    since = len(attacked.rows())
    scene(attacked)
    with attacked.landing():
        attacked.put(_stripped(attacked, since, kind))
    before = len(attacked.rows())

    assert attacked.ending(lambda: way(attacked.fresh())) is Missing
    assert attacked.ending(lambda: way(warm)) is Missing
    assert len(attacked.rows()) == before


@_every_scene
@pytest.mark.parametrize("way", _FIRST.values(), ids=_FIRST)
def test_a_body_that_is_back_is_read_by_who_has_missed_it(
    attacked: AttackedTeam, scene: Callable[[AttackedTeam], None], kind: Kind, way: Way
) -> None:
    """Gone for a moment, and byte for byte as it was: from then on all read the same."""
    warm = _warm(attacked)
    since = len(attacked.rows())
    scene(attacked)
    rows: dict[int, Record | None] = dict(attacked.rows())
    with attacked.landing():
        attacked.put(_stripped(attacked, since, kind))
    assert attacked.ending(lambda: way(attacked.fresh())) is Missing
    with suppress(Missing):
        way(warm)
    attacked.put(rows)
    attacked.sound()

    for read in _READS.values():
        assert _told(read(warm)) == _told(read(attacked.fresh()))


def _told(found: Any) -> Any:
    return (found.state, found.results) if isinstance(found, Snapshot) else found


# ---------------------------------------------------------------------- the controls


def test_what_another_worker_wrote_is_read_by_who_has_read_before(attacked: AttackedTeam) -> None:
    """The control: with all bodies there, the handle knows of results and of the newest state."""
    warm = _warm(attacked)
    _paid(attacked)

    assert [each.value for each in warm.adapter.snapshot().results] == ["paid", "done"]  # type: ignore[union-attr]
    assert warm.resume(world=READ).state == {"balance": 100}
    saved(warm, put({"balance": 0}, "3"))
    assert attacked.fresh().load().state == {"balance": 0}
    attacked.sound()


def test_a_question_of_another_worker_stops_who_has_read_before(attacked: AttackedTeam) -> None:
    """The control: with all bodies there, nobody goes on without an approval."""
    warm = _warm(attacked)
    _asking(attacked)

    assert warm.question == ["pay 100?"]
    assert attacked.ending(lambda: warm.resume(world=READ)) is NeedsApproval


def test_a_body_that_an_erasure_took_is_missed_by_nobody(attacked: AttackedTeam) -> None:
    """The control: after an erasure the thread begins anew, for who has read before as well."""
    warm = _warm(attacked)
    attacked.thread("officer").erase(reason="as was asked for")
    attacked.fresh().save({"balance": 5}, id="1", world=READ)

    assert warm.load().state == {"balance": 5}
    assert warm.adapter.snapshot().state == {"balance": 5}  # type: ignore[union-attr]
