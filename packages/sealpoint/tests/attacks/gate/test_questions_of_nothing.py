# SPDX-License-Identifier: Apache-2.0
"""A question that is added to a checkpoint which nobody has saved, or which is not resumed from.

No task of the run waits for it. It must not stand before the next run, nor in what people approve:
whoever wrote it would decide what they are asked.
"""

from collections.abc import Callable

import pytest

from sealpoint.errors import NeedsApproval
from sealpoint.gate import shipped_policy
from sealpoint.ledger import Kind
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.laned import put, results, saved

_ASKED = "pay mallory?"


@pytest.fixture(autouse=True)
def _worked(attacked: AttackedTeam) -> None:
    attacked.apply(shipped_policy("strict"))
    saved(attacked.thread(), put({"n": 1}, "c1", world=World.of(READ)), put({"n": 2}, "c2"))


def _by_a_stranger(attacked: AttackedTeam, checkpoint: str) -> None:
    attacked.thread().handoff(to="spare", reason="hold this for me")
    attacked.go_on("spare", world=READ)
    saved(attacked.thread("spare"), results("r", checkpoint, question=_ASKED))
    attacked.thread("spare").handoff(to="worker", reason="yours again")


def _by_a_colleague(attacked: AttackedTeam, checkpoint: str) -> None:
    attacked.pool("pods", "worker", "spare")
    attacked.thread().handoff(to="pods", reason="shared")
    attacked.thread("spare").resume(world=READ)
    saved(attacked.thread("spare"), results("r", checkpoint, question=_ASKED))


_WAYS = pytest.mark.parametrize("ask", [_by_a_stranger, _by_a_colleague])


@pytest.mark.parametrize("checkpoint", ["never", "c1"])
@_WAYS
def test_a_question_of_another_checkpoint_blocks_no_run(
    attacked: AttackedTeam, ask: Callable[[AttackedTeam, str], None], checkpoint: str
) -> None:
    """The next run is an ordinary one, and an audit makes the same release."""
    ask(attacked, checkpoint)
    release = attacked.fresh().release()

    assert release.question is None
    assert attacked.fresh().question is None
    assert attacked.fresh().judge(world=READ).ordinary
    assert attacked.fresh().resume(world=READ).state == {"n": 2}
    assert attacked.newest(Kind.RESUME).rules == ()
    attacked.check_sound()


@_WAYS
def test_it_is_no_part_of_what_people_approve(
    attacked: AttackedTeam, ask: Callable[[AttackedTeam, str], None]
) -> None:
    """They are asked for the wider world, and for nothing else."""
    ask(attacked, "never")
    request = attacked.ask(world=SHELL)

    assert attacked.fresh("ann").release_of(request).question is None
    assert not any("question" in reason for reason in request.reasons)
    attacked.approve(request)
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    attacked.check_sound()


def test_a_question_of_the_checkpoint_itself_is_asked(attacked: AttackedTeam) -> None:
    """The control: a task of the run waits for it."""
    _by_a_colleague(attacked, "c2")

    assert attacked.fresh().question == [_ASKED]
    with pytest.raises(NeedsApproval, match="a question is pending"):
        attacked.fresh().resume(world=READ)
