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
from tests.attacks.gate.raid import Raid
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


def _warm(raid: Raid) -> Thread:
    """A handle that knows where everything lies, of a thread with a balance of 100."""
    warm = raid.thread()
    saved(warm, put({"balance": 0}, "1", world=_WORLD), put({"balance": 100}, "2"))
    warm.load()
    assert warm.adapter.snapshot() == raid.fresh().adapter.snapshot()
    return warm


def _other(raid: Raid) -> Thread:
    """Another worker, who goes on with the thread."""
    other = raid.fresh()
    other.resume(world=READ)
    return other


def _paid(raid: Raid) -> None:
    """The task that pays is done, and another one is not."""
    saved(_other(raid), results("paid", "2", "pay"), results("done", "2", "look"))


def _spent(raid: Raid) -> None:
    """All is spent, and the oldest state is given up: the newest entry is no checkpoint."""
    other = _other(raid)
    saved(other, put({"balance": 0}, "3"))
    other.prune(keep_last=2, compact=False)


def _asking(raid: Raid) -> None:
    """A task waits for somebody to answer."""
    saved(_other(raid), results(["?"], "2", "pay", question="pay 100?"))


_SCENES: dict[str, tuple[Callable[[Raid], None], Kind]] = {
    "results": (_paid, Kind.RESULTS),
    "the newest state": (_spent, Kind.CHECKPOINT),
    "a question": (_asking, Kind.RESULTS),
}
_every_scene = pytest.mark.parametrize(("scene", "kind"), _SCENES.values(), ids=_SCENES)


def _stripped(raid: Raid, since: int, kind: Kind) -> dict[int, Record | None]:
    """The records of a kind that were written since then, without their bodies."""
    return {
        seq: Record(row.header, row.seals, None, row.payload)
        for seq, row in raid.rows().items()
        if seq >= since and parse_header(row.header).kind is kind
    }


@_every_scene
@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS)
def test_a_body_that_is_gone_is_missed_by_who_has_read_before(
    raid: Raid, scene: Callable[[Raid], None], kind: Kind, way: Way
) -> None:
    """As by a new process, however it is asked: nothing is shown, released or written."""
    warm = _warm(raid)
    since = len(raid.rows())
    scene(raid)
    with raid.landing():
        raid.put(_stripped(raid, since, kind))
    before = len(raid.rows())

    assert raid.ending(lambda: way(raid.fresh())) is Missing
    assert raid.ending(lambda: way(warm)) is Missing
    assert len(raid.rows()) == before


@_every_scene
@pytest.mark.parametrize("way", _FIRST.values(), ids=_FIRST)
def test_a_body_that_is_back_is_read_by_who_has_missed_it(
    raid: Raid, scene: Callable[[Raid], None], kind: Kind, way: Way
) -> None:
    """Gone for a moment, and byte for byte as it was: from then on all read the same."""
    warm = _warm(raid)
    since = len(raid.rows())
    scene(raid)
    rows: dict[int, Record | None] = dict(raid.rows())
    with raid.landing():
        raid.put(_stripped(raid, since, kind))
    assert raid.ending(lambda: way(raid.fresh())) is Missing
    with suppress(Missing):
        way(warm)
    raid.put(rows)
    raid.sound()

    for read in _READS.values():
        assert _told(read(warm)) == _told(read(raid.fresh()))


def _told(found: Any) -> Any:
    return (found.state, found.results) if isinstance(found, Snapshot) else found


# ---------------------------------------------------------------------- the controls


def test_what_another_worker_wrote_is_read_by_who_has_read_before(raid: Raid) -> None:
    """The control: with all bodies there, the handle knows of results and of the newest state."""
    warm = _warm(raid)
    _paid(raid)

    assert [each.value for each in warm.adapter.snapshot().results] == ["paid", "done"]  # type: ignore[union-attr]
    assert warm.resume(world=READ).state == {"balance": 100}
    saved(warm, put({"balance": 0}, "3"))
    assert raid.fresh().load().state == {"balance": 0}
    raid.sound()


def test_a_question_of_another_worker_stops_who_has_read_before(raid: Raid) -> None:
    """The control: with all bodies there, nobody goes on without an approval."""
    warm = _warm(raid)
    _asking(raid)

    assert warm.question == ["pay 100?"]
    assert raid.ending(lambda: warm.resume(world=READ)) is NeedsApproval


def test_a_body_that_an_erasure_took_is_missed_by_nobody(raid: Raid) -> None:
    """The control: after an erasure the thread begins anew, for who has read before as well."""
    warm = _warm(raid)
    raid.thread("officer").erase(reason="as was asked for")
    raid.fresh().save({"balance": 5}, id="1", world=READ)

    assert warm.load().state == {"balance": 5}
    assert warm.adapter.snapshot().state == {"balance": 5}  # type: ignore[union-attr]
