# SPDX-License-Identifier: Apache-2.0
"""The timeline of a thread: what is on its pages, and what they cost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpoint.api import StoreWatch
from sealpoint.audit import TimelineEntry
from sealpoint.errors import UnknownThread, UsageError
from tests.attacks.ledger.raw_editor import editor_of
from tests.deployment import Deployment
from tests.unit.gate.team import READ, SHELL, Team


@pytest.fixture(params=["sqlite", "file", "postgres"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team whose store is kept in each of the backends."""
    made = Deployment(tmp_path, backend=request.param)
    yield Team(made)
    made.remove()


@pytest.fixture
def memory() -> Iterator[Team]:
    """A team whose store is in memory, for what no backend can change."""
    made = Deployment()
    yield Team(made)
    made.close()


def _watch(team: Team) -> StoreWatch:
    return team.world.open(None, read_only=True).watch()


def _all(watch: StoreWatch, name: str = "t", limit: int = 3) -> list[TimelineEntry]:
    """Every entry, page by page."""
    found: list[TimelineEntry] = []
    while len(found) < watch.timeline(name).total:
        page = watch.timeline(name, offset=len(found), limit=limit)
        assert page.finding is None
        assert page.entries
        found += page.entries
    return found


def _worked(team: Team) -> None:
    """A thread on which everything happened that can."""
    thread = team.thread()
    thread.save({"n": 1}, id="c1", world=READ)
    thread.save({"n": 2}, id="c2", world=READ, parent="c1")
    thread.save({"n": 3}, id="c3", world=READ, parent="c1")
    request = team.ask()
    team.approve(request)
    team.thread("operator").pause(reason="a look", actor="ann")
    team.thread("operator").unpause(reason="looked")
    team.thread().resume(world=SHELL)
    team.thread().save({"n": 4}, id="c4", world=SHELL)
    team.thread().prune(keep_last=1, reason="space")


def test_pages_say_what_the_trail_says_newest_first(team: Team) -> None:
    """Whatever the size of a page, and of every entry the facts beside the words."""
    _worked(team)
    watch = _watch(team)
    trail = list(team.world.open(None, read_only=True).audit(thread="t"))
    for limit in (1, 3):
        assert [each.record for each in reversed(_all(watch, limit=limit))] == trail
    found = _all(watch, limit=50)
    assert [each.record for each in reversed(found)] == trail

    facts = {(each.record.kind, each.record.seq): each for each in found}
    by_kind = {kind: each.facts for (kind, _), each in sorted(facts.items(), reverse=True)}
    assert by_kind["genesis"] == {"name": "t", "owner": "worker"}
    assert by_kind["pause"] == {"reason": "a look"}
    assert by_kind["approval"]["verdict"] == "approve"
    assert by_kind["approval"]["request"] == by_kind["request"]["request"]
    assert by_kind["request"]["action"] == "resume"
    saved = [each for each in reversed(found) if each.record.kind == "checkpoint"]
    assert [each.facts["id"] for each in saved] == ["c1", "c2", "c3", "c4"]
    assert [each.facts.get("parent") for each in saved[1:3]] == ["c1", "c1"]
    assert [each.given_up for each in saved] == ["pruned", "pruned", "pruned", ""]
    paused = next(each.record for each in found if each.record.kind == "pause")
    assert (paused.by, paused.actor) == ("operator", "ann")


def test_a_session_that_wrote_nothing_is_told_so(memory: Team) -> None:
    """Also where the page begins right at its resume, and where entries of others follow."""
    memory.thread().save(1, world=READ)
    memory.fresh().resume(world=READ)
    memory.thread("operator").pause(reason="now")
    watch = _watch(memory)
    trail = list(memory.world.open(None, read_only=True).audit(thread="t"))

    for limit in (1, 2, 10):
        assert [each.record for each in reversed(_all(watch, limit=limit))] == trail
    assert "not known to be released" in trail[-2].summary


def test_what_was_erased_is_told_and_not_shown(memory: Team) -> None:
    """The erasure says why; a new generation begins after it."""
    memory.thread().save({"secret": 1}, id="the first", world=READ)
    memory.store("officer").thread("t").erase(reason="as was asked for")
    watch = _watch(memory)
    page = watch.timeline("t")
    assert page.entries[0].facts == {"reason": "as was asked for"}
    assert {each.given_up for each in page.entries[1:]} == {"erased"}
    memory.fresh().save({"n": 1}, id="c2", world=READ)
    page = watch.timeline("t")

    assert page.finding is None
    assert page.entries[0].generation == 1
    assert [each.given_up for each in page.entries if each.generation == 0 and each.facts] == [""]
    assert "the first" not in str(page)


def test_a_page_costs_the_same_wherever_it_lies(memory: Team) -> None:
    """It is reached by skipping links, not by walking there."""
    for number in range(400):
        memory.thread().save({"n": number}, world=READ)
    store = memory.world.open(None, read_only=True)
    watch = store.watch()
    for offset in (0, 200, 390):
        store.storage.read_positions.clear()
        page = watch.timeline("t", offset=offset, limit=10)

        assert page.total == 402
        assert [each.record.seq for each in page.entries] == list(
            range(401 - offset, 391 - offset, -1)
        )
        assert len(store.storage.read_positions) < 150
    assert watch.timeline("t", offset=402).entries == ()
    for offset, limit in ((-1, 1), (0, 0), (0, 1001)):
        with pytest.raises(UsageError):
            watch.timeline("t", offset=offset, limit=limit)
    with pytest.raises(UnknownThread):
        watch.timeline("nobody")


def test_a_cut_in_the_middle_is_met_by_the_page_that_comes_to_it(team: Team) -> None:
    """What lies above it is told, and the page says that it goes no further, and why."""
    for number in range(40):
        team.thread().save({"n": number}, world=READ)
    watch = _watch(team)
    assert team.world.folder is not None
    editor = editor_of(team.world.backend, team.world.folder / "store.db")
    thread = team.world.thread_id("t")
    rows = editor.rows(thread)
    editor.put_rows(thread, {seq: row for seq, row in rows.items() if seq != 20})

    assert watch.timeline("t", limit=10).finding is None
    page = watch.timeline("t", offset=15, limit=20)
    assert page.finding is not None
    assert page.finding.code == "missing"
    assert [each.record.seq for each in page.entries] == [26, 25, 24, 23, 22, 21]


def test_a_thread_that_was_cut_off_is_told_as_far_as_it_verifies(team: Team) -> None:
    """Its end is not what the anchor has seen: it is walked from its first entry on."""
    for number in range(10):
        team.thread().save({"n": number}, world=READ)
    watch = _watch(team)
    assert team.world.folder is not None
    editor = editor_of(team.world.backend, team.world.folder / "store.db")
    thread = team.world.thread_id("t")
    editor.put_rows(thread, {seq: row for seq, row in editor.rows(thread).items() if seq < 8})
    page = watch.timeline("t", offset=2, limit=3)

    assert page.finding is not None
    assert page.finding.code == "rolled-back"
    assert page.total == 8
    assert [each.record.seq for each in page.entries] == [5, 4, 3]
