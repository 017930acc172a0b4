# SPDX-License-Identifier: Apache-2.0
"""A saver without a guard, under the policy `solo`: all works, and what is unusual wants a why."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Command

from sealpoint.api import Store
from sealpoint.errors import NeedsApproval, ResumeRefused, Superseded, UsageError
from sealpoint_langgraph import SealedSaver, deliberately, guard
from sealpoint_langgraph._configuration import TICKET
from tests.adapters.langgraph.stores import opened
from tests.attacks.langgraph.desks import EITHER_FACE, Desk, config_of, run
from tests.attacks.langgraph.office import Office


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of one person."""
    with opened("sqlite", tmp_path / "home") as found:
        yield found


@pytest.mark.parametrize("face", EITHER_FACE)
def test_ordinary_work_goes_on_without_a_word(store: Store, desk: Desk, face: str) -> None:
    """Turns, questions, answers, and edits of the newest checkpoint."""
    graph = desk.builder().compile(checkpointer=SealedSaver(store))
    for amount in (1, 2):
        run(face, graph, {"amount": amount}, config_of())
        assert run(face, graph, None, config_of())["__interrupt__"]
        run(face, graph, Command(resume="yes"), config_of())
    graph.update_state(config_of(), {"amount": 3})

    assert desk.ran == ["plan", "asked", "pay", "end"] * 2
    assert store.verify().ok


@pytest.mark.parametrize("face", EITHER_FACE)
def test_an_older_checkpoint_wants_a_reason(store: Store, desk: Desk, face: str) -> None:
    """Refused at its first write, with the hint, and nothing is kept; with a reason it passes."""
    graph = desk.builder().compile(checkpointer=SealedSaver(store))
    graph.invoke({"amount": 1}, config_of())
    graph.invoke(Command(resume="yes"), config_of())
    desk.ran.clear()
    newest = graph.get_state(config_of())
    older = newest.parent_config
    named = older["configurable"]
    by_map: Any = {
        "configurable": {
            "thread_id": "t",
            "checkpoint_ns": "",
            "checkpoint_map": {"": named["checkpoint_id"]},
        }
    }
    for where in (older, by_map):
        with pytest.raises(ResumeRefused) as refused:
            run(face, graph, None, where)
        assert "deliberately(" in str(refused.value.hint)
    with pytest.raises(ResumeRefused):
        graph.update_state(older, {"amount": 3})
    assert graph.get_state(config_of()) == newest
    desk.ran.clear()
    run(face, graph, None, deliberately(older, "the receipt was lost"))

    assert desk.ran == ["end"]
    assert store.verify().ok


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("values", [None, [({"amount": 3}, "plan")]], ids=["as it is", "edited"])
def test_a_copy_of_a_checkpoint_takes_the_reason_of_its_call(
    store: Store, desk: Desk, values: Any, face: str
) -> None:
    """The framework puts a copy with the configuration of the parent, which had no reason."""
    graph = desk.builder().compile(checkpointer=SealedSaver(store))
    graph.invoke({"amount": 1}, config_of())
    graph.invoke(Command(resume="yes"), config_of())
    history = list(graph.get_state_history(config_of()))
    for where in (config_of(), history[1].config):
        with pytest.raises(ResumeRefused, match="not the newest"):
            graph.update_state(where, values, as_node="__copy__")
        meant = deliberately(where, "look at it again")
        if face == "sync":
            copied = graph.update_state(meant, values, as_node="__copy__")
        else:
            copied = asyncio.run(graph.aupdate_state(meant, values, as_node="__copy__"))
        assert graph.get_state(config_of()).config == copied
        assert "sealpoint" not in repr(copied)

    assert store.verify().ok


@pytest.mark.parametrize("face", EITHER_FACE)
def test_a_cycle_of_parents_ends(store: Store, face: str) -> None:
    """A checkpoint is put again under its own child, and a delta channel is put together."""
    saver, parent = SealedSaver(store), None
    for name in ("1", "2", "1"):
        checkpoint: Any = {**empty_checkpoint(), "id": name}
        where = deliberately(config_of(checkpoint_ns="", checkpoint_id=parent), "in a circle")
        saver.put(where, checkpoint, {"source": "loop", "step": 0}, {})
        saver.put_writes(config_of(checkpoint_id=name), [("log", name)], f"task {name} of {parent}")
        parent = name
    where = config_of(checkpoint_id="2")
    if face == "sync":
        found = saver.get_delta_channel_history(config=where, channels=["log"])
    else:
        found = asyncio.run(saver.aget_delta_channel_history(config=where, channels=["log"]))

    assert {write[2] for write in found["log"]["writes"]} == {"1"}


def test_a_reason_that_is_blank_is_none(store: Store) -> None:
    """Whoever means it can say why."""
    desk = Desk()
    graph = desk.builder().compile(checkpointer=SealedSaver(store))
    graph.invoke({"amount": 1}, config_of())
    older = graph.get_state(config_of()).parent_config
    with pytest.raises(UsageError, match="reason"):
        graph.invoke(None, deliberately(older, "  "))


def test_a_pass_is_worth_nothing_after_its_run(office: Office, thread: str) -> None:
    """A node, or whoever reads its configuration, keeps the pass and uses it without the guard."""
    desk, stolen = Desk(), dict[str, Any]()
    built = desk.builder()

    def spy(_state: Any, config: Any) -> dict[str, Any]:
        stolen.update(config["configurable"])
        return {}

    spy.__annotations__["config"] = "RunnableConfig"
    built.add_node("spy", spy)
    built.add_edge("plan", "spy")
    graph = guard(built.compile(), office.saver, actor="dev")
    graph.invoke({"amount": 2}, config_of(thread))
    assert TICKET in stolen, "there was something to steal"
    desk.ran.clear()
    bare = built.compile(checkpointer=office.saver)
    where = config_of(thread, **{TICKET: stolen[TICKET]})
    values: tuple[Any, ...] = (None, Command(resume="yes"), {"amount": 3})
    for value in values:
        with pytest.raises(ResumeRefused):
            bare.invoke(value, where)
        with pytest.raises(NeedsApproval):
            graph.invoke(value, where)
    with pytest.raises(Superseded):
        bare.update_state(where, {"amount": 3}, as_node="plan")

    assert desk.ran == []


@pytest.mark.parametrize("mode", ["checkpoints", "debug", "tasks", "updates", "values", "messages"])
def test_no_pass_is_streamed(office: Office, desk: Desk, thread: str, mode: str) -> None:
    """What a run streams is often sent on to a browser."""
    graph = office.guarded(desk)
    events = list(graph.stream({"amount": 2}, config_of(thread), stream_mode=mode))

    assert "sealpoint" not in repr(events)


def _calling(graph: Any) -> Any:
    def node(state: Any) -> Any:
        return graph.invoke(state)

    return node


def test_a_guarded_graph_inside_of_another_is_gated_by_that_one(
    office: Office, thread: str
) -> None:
    """As a node, called by a node, or called by a node with a thread of its own."""
    desk = Desk()
    inner = office.guarded(desk)
    for name, node in (("node", inner), ("called", _calling(inner))):
        built: Any = type(desk.builder())(desk.builder().state_schema)
        built.add_node("inner", node)
        built.set_entry_point("inner")
        where = config_of(f"{thread}-{name}")
        guarded = guard(built.compile(), office.saver, actor="dev")
        assert guarded.invoke({"amount": 2}, where)["__interrupt__"]
        desk.ran.clear()
        request = office.asked(lambda: guarded.invoke(Command(resume="yes"), where))  # noqa: B023
        with office.process() as store:
            bare = built.compile(checkpointer=SealedSaver(store))
            with pytest.raises(ResumeRefused):
                bare.invoke(Command(resume="yes"), where)
        assert desk.ran == []
        office.approve(request)
        guarded.invoke(Command(resume="yes"), where)
        assert desk.ran == ["asked", "pay", "end"]


def test_a_guarded_graph_that_a_node_calls_on_its_own_thread_is_gated(
    office: Office, thread: str
) -> None:
    """The outer run has no say over another thread."""
    desk = Desk()
    inner = office.waiting(desk, f"{thread}-inner")
    built: Any = type(desk.builder())(desk.builder().state_schema)
    built.add_node(
        "call", lambda _: inner.invoke(Command(resume="yes"), config_of(f"{thread}-inner"))
    )
    built.set_entry_point("call")
    outer = guard(built.compile(), office.saver, actor="dev")
    with pytest.raises(NeedsApproval):
        outer.invoke({"amount": 2}, config_of(thread))

    assert desk.ran == []
