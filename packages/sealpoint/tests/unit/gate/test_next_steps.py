# SPDX-License-Identifier: Apache-2.0
"""A run that was decided about asks before its next step whether it may go on."""

from pathlib import Path

import pytest

from sealpoint.errors import Superseded
from tests.deployment import Deployment
from tests.unit.gate.team import READ, Team, lose_hold
from tests.unit.gate.test_runs import _save
from tests.unit.store.laned import saved

_MINE = "mine"


def test_a_run_goes_on_until_it_is_paused(memory: Team) -> None:
    """Requests and its own writes do not stop it; a pause does, also one that has ended by now."""
    memory.thread().save(1, id="1", world=READ)
    thread = memory.fresh()
    thread.adapter.begin(world=READ, token=_MINE)
    assert thread.adapter.may_go_on(_MINE)
    saved(thread, _save("2", "1", token=_MINE))
    assert thread.adapter.may_go_on(_MINE)
    operator = memory.fresh("operator")
    operator.pause("look at it")

    assert not thread.adapter.may_go_on(_MINE)
    operator.unpause("looked at it")
    assert not thread.adapter.may_go_on(_MINE)
    thread.adapter.end(_MINE)
    thread.adapter.begin(world=READ, token="next")  # noqa: S106
    assert thread.adapter.may_go_on("next")


def test_a_look_reads_nothing_while_nobody_else_has_committed(tmp_path: Path) -> None:
    """After writes of its own too; a pause of another process is met at once, and a load reads."""
    made = Deployment(tmp_path)
    team = Team(made)
    team.thread().save(1, id="1", world=READ)
    store = made.open("worker", gated=True)
    thread = store.thread("t")
    thread.adapter.begin(world=READ, token=_MINE)
    assert thread.adapter.may_go_on(_MINE)
    for name, parent in (("2", "1"), ("3", "2")):
        saved(thread, _save(name, parent, token=_MINE))
        store.storage.scanning.before = lambda: pytest.fail("it was read")
        assert thread.adapter.may_go_on(_MINE)
        store.storage.scanning.before = None
    team.thread("operator").pause("look at it")

    assert not thread.adapter.may_go_on(_MINE)
    made.close()


def test_a_run_that_begins_a_thread_goes_on(memory: Team) -> None:
    """Before its first write, when there is nothing to look at, and after it."""
    thread = memory.fresh()
    thread.adapter.begin(world=READ, token=_MINE)
    assert thread.adapter.may_go_on(_MINE)
    saved(thread, _save("1", None, token=_MINE))

    assert thread.adapter.may_go_on(_MINE)


@pytest.mark.parametrize("how", ["begin", "resume", "another process"])
def test_a_run_that_was_overtaken_does_not_go_on(memory: Team, how: str) -> None:
    """Whoever took the thread over, and before it has written anything."""
    memory.thread().save(1, id="1", world=READ)
    thread = memory.fresh()
    thread.adapter.begin(world=READ, token=_MINE)
    before = thread.adapter.may_go_on(_MINE)
    lose_hold(thread)
    if how == "begin":
        thread.adapter.begin(world=READ, token="other")  # noqa: S106
    elif how == "resume":
        thread.resume(world=READ)
    else:
        memory.fresh().resume(world=READ)
    kept = memory.everything()

    assert before
    with pytest.raises(Superseded, match="another run"):
        thread.adapter.may_go_on(_MINE)
    assert memory.everything() == kept
