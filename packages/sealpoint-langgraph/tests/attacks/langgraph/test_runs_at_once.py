# SPDX-License-Identifier: Apache-2.0
"""Two runs of one thread at once: the overtaken one is refused, and no state is a mixture."""

import threading
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from sealpoint.errors import Busy, HeadMoved, SealpointError, Superseded
from sealpoint_langgraph import SealedSaver, guard
from tests.adapters.langgraph.stores import opened
from tests.attacks.langgraph.desks import EITHER_FACE, State, config_of, run
from tests.attacks.langgraph.edited_store import BACKENDS

_SECONDS = 30


class Race:
    """A graph in which the slow run waits inside of its first node until the fast one is done."""

    def __init__(self, shape: str) -> None:
        self.shape = shape
        self._waits, self._goes = threading.Event(), threading.Event()

    def _first(self, state: State) -> State:
        if state["amount"] == 1:
            self._waits.set()
            assert self._goes.wait(_SECONDS)
        return {"log": [f"first {state['amount']}"]}

    def _next(self, state: State) -> State:
        return {"log": [f"next {state['amount']}"]}

    def builder(self) -> Any:
        """Two nodes, of which the second is a subgraph in the other shape."""
        built: Any = StateGraph(State)
        built.add_node("first", self._first)
        built.add_edge(START, "first")
        if self.shape == "subgraph":
            inner: Any = StateGraph(State)
            inner.add_node("next", self._next)
            inner.add_edge(START, "next")
            built.add_node("next", inner.compile())
        else:
            built.add_node("next", self._next)
        built.add_edge("first", "next")
        return built

    def endings(self, slow: Any, fast: Any, face: str, **options: Any) -> list[Any]:
        """How the slow run ends that the fast one overtakes, and how the fast one ends."""
        found: list[Any] = [None, None]

        def go(place: int, graph: Any) -> None:
            try:
                run(face, graph, {"amount": place + 1}, config_of(), **options)
            except SealpointError as error:
                found[place] = error

        thread = threading.Thread(target=go, args=(0, slow))
        thread.start()
        assert self._waits.wait(_SECONDS)
        try:
            go(1, fast)
        finally:
            self._goes.set()
            thread.join(_SECONDS)
        return found


@pytest.fixture
def store_of(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Opens the store of a backend once more."""
    made: list[Any] = []

    def opens(backend: str) -> Any:
        made.append(opened(backend, tmp_path / "home"))
        return made[-1]

    yield opens
    for store in made:
        store.close()


def _check(graph: Any, store: Any, ended: list[Any]) -> None:
    (winner,) = (place + 1 for place, error in enumerate(ended) if error is None)
    lost = ended[2 - winner]
    # A run that was overtaken before its first write says what it goes on from, which is older.
    assert isinstance(lost, Superseded | HeadMoved) or "not the newest" in str(lost)
    found = graph.get_state(config_of()).values["log"]
    assert found[-2:] == [f"first {winner}", f"next {winner}"]
    assert not {f"first {3 - winner}", f"next {3 - winner}"} & set(found)
    assert next(iter(graph.get_state_history(config_of()))).values["log"] == found
    assert store.verify().ok


_SAVERS = ("one saver", "two savers", "two processes")


# Nothing tells a first checkpoint without a parent from one that is put by hand.
_BOTH_GO_ON = [(savers, "bare", "new", "exit") for savers in _SAVERS[:2]]
_CASES = [
    case
    for case in product(_SAVERS, ("bare", "guarded"), ("new", "old"), ("sync", "async", "exit"))
    if case not in _BOTH_GO_ON
]


@pytest.mark.usefixtures("unseen_runs")
@pytest.mark.parametrize(("savers", "kind", "age", "durability"), _CASES)
def test_the_overtaken_run_is_refused(
    store_of: Callable[[str], Any], savers: str, kind: str, age: str, durability: str
) -> None:
    """Whichever saver, store or process each of them has, also if the thread is new."""
    race, store = Race("subgraph"), store_of("sqlite")
    first = SealedSaver(store)
    second = first
    if savers == "two savers":
        second = SealedSaver(store)
    elif savers == "two processes":
        store = store_of("sqlite")
        second = SealedSaver(store)

    def graph(saver: SealedSaver) -> Any:
        if kind == "guarded":
            return guard(race.builder().compile(), saver, actor="dev")
        return race.builder().compile(checkpointer=saver)

    slow, fast = graph(first), graph(second)
    if age == "old":
        slow.invoke({"amount": 0}, config_of())

    ended = race.endings(slow, fast, "sync", durability=durability)

    _check(fast, store, ended)
    # A bare saver decides at the first write, so what the slow one had on its way may come first.
    assert ended[1] is None or kind == "bare"


@pytest.mark.parametrize(("savers", "age"), list(product(_SAVERS, ("new", "old"))))
def test_a_second_run_does_nothing_while_the_first_one_lives(
    store_of: Callable[[str], Any], savers: str, age: str
) -> None:
    """It is told before its first node, and the first one goes on."""
    race, store = Race("subgraph"), store_of("sqlite")
    other = store_of("sqlite") if savers == "two processes" else store
    first = SealedSaver(store)
    second = first if savers == "one saver" else SealedSaver(other)
    slow, fast = (guard(race.builder().compile(), saver, actor="dev") for saver in (first, second))
    if age == "old":
        slow.invoke({"amount": 0}, config_of())

    ended = race.endings(slow, fast, "sync")

    assert ended[0] is None
    assert isinstance(ended[1], Busy)
    assert slow.get_state(config_of()).values["log"][-2:] == ["first 1", "next 1"]
    assert store.verify().ok


@pytest.mark.parametrize("case", _BOTH_GO_ON)
def test_two_first_runs_that_save_at_their_end_both_go_on(
    store_of: Callable[[str], Any], case: tuple[str, ...]
) -> None:
    """A known limit of a bare saver in one process, as with the stock savers; both are recorded."""
    race, store = Race("subgraph"), store_of("sqlite")
    first = SealedSaver(store)
    second = SealedSaver(store) if case[0] == "two savers" else first
    slow, fast = (race.builder().compile(checkpointer=saver) for saver in (first, second))

    assert race.endings(slow, fast, "sync", durability="exit") == [None, None]
    assert len(list(store.audit(thread="t", kind="resume"))) == 2
    assert store.verify().ok


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("face", EITHER_FACE)
def test_the_overtaken_run_is_refused_by_either_face(
    store_of: Callable[[str], Any], backend: str, face: str
) -> None:
    """Event loops of their own, in OS threads of their own, on either backend."""
    race, store = Race("subgraph"), store_of(backend)
    graph = race.builder().compile(checkpointer=SealedSaver(store))

    ended = race.endings(graph, graph, face)

    _check(graph, store, ended)


def test_the_control_mixes_both_runs() -> None:
    """The framework's own saver lets both go on; the slower one is the newest in the end."""
    race = Race("root")
    graph = race.builder().compile(checkpointer=InMemorySaver())
    ended = race.endings(graph, graph, "sync")

    assert ended == [None, None]
    assert graph.get_state(config_of()).values["log"] == ["first 1", "next 1"]


def test_of_an_edit_and_a_run_only_one_goes_on(store_of: Callable[[str], Any]) -> None:
    """A state that somebody edits meanwhile is not overwritten by the run that did not see it."""
    race, store = Race("root"), store_of("sqlite")
    graph = race.builder().compile(checkpointer=SealedSaver(store))
    graph.invoke({"amount": 0}, config_of())

    class Edit:
        def invoke(self, *_: Any) -> None:
            graph.update_state(config_of(), {"log": ["edited"]})

    lost, refused = race.endings(graph, Edit(), "sync")
    last = graph.get_state(config_of()).values["log"][-1]

    if refused is None:
        assert isinstance(lost, Superseded)
        assert last == "edited"
    else:
        assert lost is None
        assert last == "next 1"
    assert store.verify().ok
