# SPDX-License-Identifier: Apache-2.0
"""A bare saver that refuses a run or an edit keeps nothing of it that the next run would use."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from sealpoint.errors import ResumeRefused, SealpointError, UsageError
from sealpoint_langgraph import SealedSaver
from sealpoint_langgraph._configuration import CheckpointTarget
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, State, config_of, run
from tests.deployment import Deployment
from tests.unit.gate.team import Team, policy

_STRICT = policy(
    "strict",
    older_checkpoint="refuse",
    tools="refuse",
    permissions="refuse",
    model="refuse",
    prompts="refuse",
    topology="refuse",
    code="refuse",
    application="refuse",
    runtime="refuse",
    other="refuse",
    narrower_world="refuse",
    first_world="refuse",
    missing_world="refuse",
    answer="refuse",
    unknown_outcome="refuse",
    old_age="refuse",
    after_restore="refuse",
)
"""Nobody is asked, and nothing passes that is not ordinary."""


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SealedSaver]:
    """A saver under a policy that takes no answers and no edits."""
    world = Deployment(tmp_path, backend="sqlite")
    crew = Team(world, _STRICT)
    yield SealedSaver(crew.store())
    world.close()


def _waiting(saver: SealedSaver, desk: Desk) -> Any:
    graph = desk.builder().compile(checkpointer=saver)
    graph.invoke({"amount": 5}, config_of())
    assert graph.get_state(config_of()).interrupts
    desk.ran.clear()
    return graph


@pytest.mark.parametrize("as_node", ["ask", "plan", None])
def test_a_refused_edit_answers_nothing(saver: SealedSaver, as_node: str | None) -> None:
    """An edit puts what it writes in the name of the task that waits, before its checkpoint."""
    desk = Desk()
    graph = _waiting(saver, desk)
    before = graph.get_state(config_of())
    with pytest.raises(ResumeRefused):
        graph.update_state(config_of(), {"amount": 666}, as_node=as_node)
    assert graph.get_state(config_of()) == before
    with pytest.raises(ResumeRefused):
        graph.invoke(None, config_of())

    assert "pay" not in desk.ran
    assert graph.get_state(config_of()).interrupts


_BROUGHT: dict[str, Any] = {
    "an answer": Command(resume="yes"),
    "a jump": Command(goto="pay"),
    "an update and a jump": Command(update={"amount": 666}, goto="pay"),
}


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("value", _BROUGHT.values(), ids=_BROUGHT)
def test_nothing_of_a_refused_command_is_kept(
    saver: SealedSaver, value: Any, durability: Any, face: str
) -> None:
    """Its nodes may have run, but the thread is where it was."""
    graph = _waiting(saver, Desk())
    before = graph.get_state(config_of())
    with pytest.raises(SealpointError):
        run(face, graph, value, config_of(), durability=durability)

    assert graph.get_state(config_of()) == before
    assert saver.store.verify().ok


@pytest.mark.parametrize("around", [None, "memory"])
def test_a_graph_around_it_opens_no_door(saver: SealedSaver, around: str | None) -> None:
    """A node of a graph that is not on the store calls one that is, under the same thread."""
    graph = _waiting(saver, Desk())
    before = graph.get_state(config_of())
    calls: tuple[Any, ...] = (
        lambda: graph.invoke(Command(resume="yes"), config_of()),
        lambda: graph.update_state(config_of(), {"amount": 666}, as_node="ask"),
        lambda: graph.invoke(None, before.parent_config),
    )
    for call in calls:
        outer: Any = StateGraph(State)
        outer.add_node("call", lambda _, call=call: call() and {})
        outer.add_edge(START, "call")
        router = outer.compile(checkpointer=None if around is None else InMemorySaver())
        with pytest.raises(SealpointError):
            router.invoke({"amount": 1}, config_of())

    assert graph.get_state(config_of()) == before


def test_two_names_for_one_subgraph_are_refused() -> None:
    """A map and an id that disagree would be judged as one and run as the other."""
    named: Any = {
        "checkpoint_ns": "desk:x",
        "checkpoint_id": "1",
        "checkpoint_map": {"desk:x": "2"},
    }
    with pytest.raises(UsageError, match="two checkpoints"):
        CheckpointTarget.of(config_of(**named))

    assert CheckpointTarget.of(config_of(**(named | {"checkpoint_id": "2"}))).inner == {
        "desk:x": "2"
    }
