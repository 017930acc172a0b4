# SPDX-License-Identifier: Apache-2.0
"""A guarded graph is the graph, in every respect that the framework and its users know."""

import asyncio
import gc
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, StateUpdate, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from sealpoint.errors import SealpointError, TypeNotAllowed, UsageError
from sealpoint_langgraph import SealedSaver, deliberately, guard
from tests.adapters.langgraph.stores import opened


def _added(left: list[str], right: list[str]) -> list[str]:
    return [*left, *right]


class State(TypedDict, total=False):
    """What the graphs work on."""

    log: Annotated[list[str], _added]


def _where(thread: str = "t", **fields: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **fields}}


@pytest.fixture
def saver(tmp_path: Path) -> Any:
    """A saver on a store of one person."""
    with opened("sqlite", tmp_path / "home") as store:
        yield SealedSaver(store)


def _line(*nodes: Any, schema: Any = State) -> Any:
    """A graph of nodes, one after the other."""
    built: Any = StateGraph(schema)
    built.add_sequence([(f"n{place}", node) for place, node in enumerate(nodes)])
    built.add_edge(START, "n0")
    return built


def _made(built: Any, saver: SealedSaver, kind: str) -> Any:
    if kind == "guarded":
        return guard(built.compile(), saver, actor="dev")
    return built.compile(checkpointer=saver)


KINDS = pytest.mark.parametrize("kind", ["guarded", "bare"])


# ---------------------------------------------------------------------- what it is


def test_it_is_of_the_class_of_the_graph(saver: SealedSaver) -> None:
    """Also after `with_config`, and it tells its subgraphs."""
    inner = _line(lambda _: {"log": ["inner"]}).compile()
    graph = guard(_line(inner).compile(), saver, actor="dev")
    other = graph.with_config({"recursion_limit": 7})

    for each in (graph, other):
        assert isinstance(each, CompiledStateGraph)
        assert [name for name, _ in each.get_subgraphs()] == ["n0"]
        assert each.invoke({"log": []}, _where())["log"][-1] == "inner"


def test_without_a_thread_it_is_a_value_error(saver: SealedSaver) -> None:
    """The framework raises one, which callers catch; ours is one too."""
    graph = guard(_line(lambda _: {}).compile(), saver, actor="dev")
    for config in (None, {"configurable": {"user": "x"}}):
        for error in (ValueError, UsageError):
            with pytest.raises(error, match="thread_id"):
                graph.invoke({}, config)
        with pytest.raises(ValueError, match="thread_id"):
            asyncio.run(graph.ainvoke({}, config))


class Typed(BaseModel):
    """A state that is a model."""

    amount: int = 0


def test_typed_output_is_typed(saver: SealedSaver) -> None:
    """Events of the second version carry the model, also after `with_config`."""
    graph = guard(_line(lambda _: {"amount": 5}, schema=Typed).compile(), saver, actor="dev")
    saver.store.registry.allow(Typed, name="typed")
    for each in (graph, graph.with_config({"recursion_limit": 9})):
        found = each.invoke({"amount": 1}, _where(), version="v2")
        assert isinstance(found.value, Typed)


def test_a_stream_that_is_closed_stops_at_once(saver: SealedSaver) -> None:
    """The node that runs is cancelled before `aclose` returns."""
    ended: list[str] = []

    async def first(_state: State) -> State:
        return {"log": ["first"]}

    async def slow(_state: State) -> State:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return {}

    async def work() -> None:
        graph = guard(_line(first, slow).compile(), saver, actor="dev")
        stream = graph.astream({"log": []}, _where())
        async for _ in stream:
            break
        await stream.aclose()
        ended.append("closed")

    asyncio.run(work())

    assert ended in (["cancelled", "closed"], ["closed"])


def test_a_copy_with_edits_is_an_edit(saver: SealedSaver) -> None:
    """`__copy__` takes updates of its own, which are no values of the state."""
    graph = guard(
        _line(lambda _: {"log": ["a"]}, lambda _: {"log": ["b"]}).compile(), saver, actor="dev"
    )
    graph.invoke({"log": []}, _where())
    newest = graph.get_state(_where()).config
    told = [StateUpdate(values={"log": ["c"]}, as_node="n1")]
    older = graph.get_state(newest).parent_config
    graph.update_state(deliberately(older, "once more"), told, as_node="__copy__")

    assert graph.get_state(_where()).values["log"] == ["a", "c"]


# ---------------------------------------------------------------------- inside of its own nodes


@KINDS
@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_node_may_look_at_its_own_thread(saver: SealedSaver, kind: str, face: str) -> None:
    """With the configuration that it was given, or with one of its own."""
    seen: list[Any] = []

    def look(_state: State, config: RunnableConfig) -> State:
        seen.extend(
            (
                graph.get_state(_where()).values,
                graph.get_state(config).values,
                len(list(graph.get_state_history(_where()))),
            )
        )
        return {"log": ["looked"]}

    graph = _made(_line(lambda _: {"log": ["a"]}, look, lambda _: {"log": ["b"]}), saver, kind)
    if face == "sync":
        found = graph.invoke({"log": []}, _where())
    else:
        found = asyncio.run(graph.ainvoke({"log": []}, _where()))

    assert found["log"] == ["a", "looked", "b"]
    assert len(seen) == 3


@KINDS
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_node_may_edit_its_own_thread(saver: SealedSaver, kind: str, durability: str) -> None:
    """It writes a branch, and the run goes on from where it stood, as with the stock savers."""

    def edit(_state: State) -> State:
        graph.update_state(_where(), {"log": ["edited"]}, as_node="n0")
        return {"log": ["b"]}

    built = _line(lambda _: {"log": ["a"]}, edit, lambda _: {"log": ["c"]})
    graph = _made(built, saver, kind)
    found = graph.invoke({"log": []}, _where(), durability=durability)

    assert found["log"] == ["a", "b", "c"]
    assert graph.get_state(_where()).values["log"] == ["a", "b", "c"]
    graph.invoke({"log": ["next"]}, _where())
    assert saver.store.verify().ok


@KINDS
def test_a_node_may_run_a_graph_on_its_own_thread(saver: SealedSaver, kind: str) -> None:
    """The run around it goes on, and so does the next one."""
    calls: list[str] = []

    def call(state: State) -> State:
        if "inner" not in state.get("log", []):
            calls.append("call")
            graph.invoke({"log": ["inner"]}, _where())
        return {"log": ["called"]}

    graph = _made(_line(call, lambda _: {"log": ["after"]}), saver, kind)
    found = graph.invoke({"log": []}, _where())

    assert calls == ["call"]
    assert found["log"] == ["called", "after"]
    graph.invoke({"log": ["inner"]}, _where())
    assert saver.store.verify().ok


# ---------------------------------------------------------------------- what is refused is told


class Odd:
    """A type that nobody allows."""


class Held(TypedDict, total=False):
    """A state with room for anything."""

    value: Any


@KINDS
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_refused_save_of_a_subgraph_is_told_although_it_asks(
    saver: SealedSaver, kind: str, durability: str
) -> None:
    """The framework drops the error of a subgraph that ends with a question; the run does not."""
    inner: Any = StateGraph(Held)
    inner.add_sequence([("odd", lambda _: {"value": Odd()}), ("ask", lambda _: interrupt("yes?"))])
    inner.add_edge(START, "odd")
    graph = _made(_line(inner.compile(), schema=Held), saver, kind)

    with pytest.raises(TypeNotAllowed, match="Odd"):
        graph.invoke({"value": 1}, _where(), durability=durability)
    allowed = _made(_line(lambda _: {"value": 2}, schema=Held), saver, kind)
    assert allowed.invoke({"value": 1}, _where("other")) == {"value": 2}, "and nobody else"


def test_a_command_in_a_send_is_refused_with_what_to_do(saver: SealedSaver) -> None:
    """It would steer the graph from inside of the data."""
    built: Any = StateGraph(State)
    built.add_node("a", lambda _: {})
    built.add_node("b", lambda _: {})
    built.add_edge(START, "a")
    built.add_conditional_edges("a", lambda _: [Send("b", Command(goto="a"))], ["b"])
    graph = built.compile(checkpointer=saver)

    with pytest.raises(TypeNotAllowed, match="in a Send") as refused:
        graph.invoke({}, _where())
    assert "Send(node, data)" in str(refused.value.hint)


# ---------------------------------------------------------------------- the order of a list


def test_a_list_is_in_the_order_of_the_ids(saver: SealedSaver) -> None:
    """Whatever was put first, as with the stock savers."""
    graph = _line(lambda _: {"log": ["a"]}).compile(checkpointer=saver)
    graph.invoke({"log": []}, _where("old"))
    found = list(saver.list(_where("old")))
    for each in found:
        into = _where("new", checkpoint_ns="")
        if each.parent_config is not None:
            into["configurable"]["checkpoint_id"] = each.parent_config["configurable"][
                "checkpoint_id"
            ]
        saver.put(deliberately(into, "moved"), each.checkpoint, each.metadata, {})
    ids = [each.checkpoint["id"] for each in saver.list(_where("new"))]

    assert ids == [each.checkpoint["id"] for each in found]
    assert ids == sorted(ids, reverse=True)


def test_two_threads_at_once_are_two_runs(saver: SealedSaver) -> None:
    """The control: what one run is refused says nothing of another thread."""
    graph = _line(lambda _: {"log": ["a"]}).compile(checkpointer=saver)
    errors: list[SealpointError] = []

    def go(name: str) -> None:
        try:
            for _ in range(3):
                graph.invoke({"log": []}, _where(name))
        except SealpointError as error:
            errors.append(error)

    threads = [threading.Thread(target=go, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert errors == []


# ---------------------------------------------------------------------- answers that did nothing


def _questions(names: tuple[str, ...], ran: list[str]) -> Any:
    """A graph whose nodes ask something at the same time."""
    built: Any = StateGraph(State)

    def asking(name: str) -> Any:
        def node(_: State) -> State:
            answer = interrupt(name)
            ran.append(name)
            return {"log": [answer]}

        return node

    for name in names:
        built.add_node(name, asking(name))
        built.add_edge(START, name)
    return built


def test_an_answer_that_the_framework_refuses_is_not_asked_about(saver: SealedSaver) -> None:
    """It says that it cannot tell which question is answered, and nothing has run."""
    ran: list[str] = []
    graph = guard(_questions(("a", "b"), ran).compile(), saver, actor="dev")
    graph.invoke({"log": []}, _where())
    with pytest.raises(RuntimeError, match="specify the interrupt id"):
        graph.invoke(Command(resume="yes"), _where())
    assert not ran
    waiting = graph.get_state(_where()).interrupts
    graph.invoke(Command(resume={each.id: "yes" for each in waiting}), _where())

    assert sorted(ran) == ["a", "b"]
    assert saver.store.verify().ok


@pytest.mark.parametrize("closes", [True, False])
def test_a_stream_that_ends_between_two_steps_is_not_asked_about(
    saver: SealedSaver,
    closes: bool,  # noqa: FBT001
) -> None:
    """Nothing of the run was at work: what the answer let happen is saved, and no more."""
    paid: list[str] = []

    async def ask(_: State) -> State:
        return {"log": [interrupt("pay?")]}

    async def pay(_: State) -> State:
        paid.append("paid")
        return {"log": ["paid"]}

    graph = guard(_line(ask, pay).compile(), saver, actor="dev")

    async def go() -> None:
        await graph.ainvoke({"log": []}, _where())
        stream = graph.astream(Command(resume="yes"), _where(), stream_mode="updates")
        async for _ in stream:
            break
        if closes:
            await stream.aclose()
        del stream
        gc.collect()
        await asyncio.sleep(0.05)
        await graph.ainvoke(None, _where())

    asyncio.run(go())

    assert paid == ["paid"]
    assert saver.store.verify().ok
