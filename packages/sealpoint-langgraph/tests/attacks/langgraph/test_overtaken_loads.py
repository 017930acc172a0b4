# SPDX-License-Identifier: Apache-2.0
"""Another worker goes on between a decision and what is loaded by it.

People approved an answer to one question. Before the run that carries it has loaded anything, or
before a subgraph of it has, another worker answers that question, and the graph asks the next one.
The approved answer must not answer that: the run was overtaken, and stops before it pays.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from sealpoint.errors import NeedsApproval, RequestClosed, Superseded, UnknownRequest
from sealpoint.store import Event
from sealpoint_langgraph import SealedSaver, guard
from tests.attacks.langgraph.desks import EITHER_FACE, State, config_of, run
from tests.attacks.langgraph.edited_store import ending
from tests.attacks.langgraph.office import Office

_SMALL, _LARGE = 5, 5_000_000
_ATTEMPTS = 5
_SECONDS = 60
_YES: Any = Command(resume="yes")


class Till:
    """A graph that asks before each of two payments; they may lie in subgraphs of subgraphs.

    Args:
        depth: In how many.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self.paid: list[int] = []
        self.before_inner: list[Callable[[], object]] = []
        """Done before the innermost subgraph is loaded."""

    def _payment(self, amount: int) -> Any:
        def pay(_state: State) -> State:
            if interrupt({"pay": amount}) == "yes":
                self.paid.append(amount)
            return {"log": [f"asked about {amount}"]}

        return pay

    def _payments(self) -> Any:
        built: Any = StateGraph(State)
        built.add_node("first", self._payment(_SMALL))
        built.add_node("second", self._payment(_LARGE))
        built.add_edge(START, "first")
        built.add_edge("first", "second")
        return built

    def _around(self, inner: Any, *, innermost: bool) -> Any:
        """A graph with a node that runs another graph."""

        def call(state: State) -> State:
            if innermost:
                for hook in list(self.before_inner):
                    hook()
            found: State = inner.invoke(state)
            return {"log": found["log"]}

        built: Any = StateGraph(State)
        built.add_node("call", call)
        built.add_edge(START, "call")
        return built

    def graph(self, saver: SealedSaver) -> Any:
        """The guarded graph on a saver."""
        built = self._payments()
        for level in range(self._depth):
            built = self._around(built.compile(), innermost=level == 0)
        return guard(built.compile(), saver, actor="dev")


class Counter:
    """A till under the policy `strict`, with a run whose answer was approved; another worker."""

    def __init__(self, home: Path, backend: str, depth: int) -> None:
        self.till = Till(depth)
        self._armed: Callable[[], object] | None = None
        self.office = Office(home, backend=backend)
        mine = self.office.process(on_event=self._event)
        self.graph = self.till.graph(SealedSaver(mine))
        self._others = self.till.graph(SealedSaver(self.office.process()))
        self.graph.invoke({"amount": 0}, config_of())
        self.office.approve(self.office.asked(lambda: self.graph.invoke(_YES, config_of())))

    def _event(self, event: Event) -> None:
        if event.code == "session-opened" and self._armed is not None:
            self._armed()

    def after_decision(self) -> None:
        """Let the other worker go on as soon as the decision is recorded."""
        self._armed = self._go_on

    def before_inner_load(self) -> None:
        """Let the other worker go on when all but the innermost subgraph is loaded."""
        self.till.before_inner.append(self._go_on)

    def _go_on(self) -> None:
        """The other worker answers the first question, with approval, and the second is asked."""
        self._armed = None
        self.till.before_inner.clear()
        failed: list[BaseException] = []

        def answer() -> None:
            # A thread of its own: whatever runs in one has no configuration of another run.
            no: Any = Command(resume="no")
            try:
                for _ in range(_ATTEMPTS):
                    # What the first worker still writes in the background voids a request.
                    with suppress(NeedsApproval, RequestClosed, UnknownRequest):
                        request = self.office.asked(lambda: self._others.invoke(no, config_of()))
                        self.office.approve(request)
                        self._others.invoke(no, config_of())
                        return
                raise AssertionError("the first worker kept on writing")
            except BaseException as error:  # noqa: BLE001 # told where it counts
                failed.append(error)

        thread = threading.Thread(target=answer)
        thread.start()
        thread.join(_SECONDS)
        assert not thread.is_alive()
        assert failed == []

    def asked(self) -> list[Any]:
        """What the thread waits for, as a new process sees it."""
        with self.office.process() as store:
            graph = self.till.graph(SealedSaver(store))
            return [each.value for each in graph.get_state(config_of()).interrupts]


def _places(*depths: int) -> list[Any]:
    return [
        pytest.param(
            (backend, depth),
            id=f"{backend}-{depth}",
            marks=[] if backend == "sqlite" else [pytest.mark.soak],
        )
        for backend in ("sqlite", "file", "postgres")
        for depth in depths
    ]


@pytest.fixture(params=_places(0, 1, 2))
def counter(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Counter]:
    """The questions are asked by the graph, by a subgraph, or by a subgraph of one."""
    made = Counter(tmp_path / "home", *request.param)
    yield made
    made.office.close()


@pytest.mark.usefixtures("unseen_runs")
@pytest.mark.parametrize("face", EITHER_FACE)
def test_an_approved_answer_is_not_given_to_the_next_question(counter: Counter, face: str) -> None:
    """Between the recorded decision and the load: the run that was overtaken pays nothing."""
    counter.after_decision()

    assert ending(lambda: run(face, counter.graph, _YES, config_of())) is Superseded
    assert counter.till.paid == []
    assert counter.asked() == [{"pay": _LARGE}]


@pytest.mark.usefixtures("unseen_runs")
@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("counter", _places(1, 2), indirect=True)
def test_an_approved_answer_is_not_given_to_the_next_question_of_a_subgraph(
    counter: Counter, face: str
) -> None:
    """Between the load of the graph and that of its innermost subgraph: the same."""
    counter.before_inner_load()

    assert ending(lambda: run(face, counter.graph, _YES, config_of())) is Superseded
    assert counter.till.paid == []
    assert counter.asked() == [{"pay": _LARGE}]


@pytest.mark.parametrize("face", EITHER_FACE)
def test_an_approved_answer_is_given_to_its_question(counter: Counter, face: str) -> None:
    """The control: where nobody else goes on, the small payment is made, and the next is asked."""
    run(face, counter.graph, _YES, config_of())

    assert counter.till.paid == [_SMALL]
    assert counter.asked() == [{"pay": _LARGE}]
    assert counter.office.worker.verify().ok
