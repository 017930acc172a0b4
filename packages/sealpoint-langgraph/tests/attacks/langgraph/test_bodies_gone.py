# SPDX-License-Identifier: Apache-2.0
"""A body that is taken away behind a graph that has shown or run the thread before.

Two processes work on one thread, as the pods of one service do. One of them has read the thread,
the other goes on with it, and then somebody takes away what the other wrote. A process that reads
the thread for the first time says `Missing`; the one that knows it as it was must say so as well.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from sealpoint.api import Store
from sealpoint.errors import Missing, NeedsApproval
from sealpoint.ledger import Kind, parse_header
from sealpoint.storage import Record
from sealpoint_langgraph import SealedSaver, guard
from tests.adapters.langgraph.stores import opened, path_of
from tests.attacks.langgraph.branches import Branches
from tests.attacks.langgraph.desks import EITHER_FACE, SHAPES, config_of, run
from tests.attacks.langgraph.edited_store import BACKENDS, ending
from tests.attacks.langgraph.office import Office
from tests.attacks.langgraph.wallet import Wallet
from tests.attacks.ledger.raw_editor import RawEditor, editor_of

_every_face = pytest.mark.parametrize("face", EITHER_FACE)


class _Thief:
    """Takes bodies away, and puts them back as they were."""

    def __init__(self, editor: RawEditor, thread: bytes) -> None:
        self._editor, self._thread = editor, thread
        self._known = len(editor.rows(thread))
        self._rows: dict[int, Record] = {}

    def take(self, kinds: set[Kind], holds: Callable[[Record], bool] = lambda _row: True) -> None:
        """Take the bodies of all entries of some kinds that were written since."""
        self._rows = self._editor.rows(self._thread)
        chosen = [
            seq
            for seq, row in self._rows.items()
            if seq >= self._known and parse_header(row.header).kind in kinds and holds(row)
        ]
        assert chosen, "the edit did not land"
        stripped = {
            seq: Record(row.header, row.seals, None, row.payload)
            for seq, row in self._rows.items()
            if seq in chosen
        }
        self._editor.put_rows(self._thread, self._rows | stripped)

    def put_back(self) -> None:
        """Put everything back."""
        self._editor.put_rows(self._thread, self._rows)

    def written(self) -> int:
        """How many entries there are."""
        return len(self._editor.rows(self._thread))


class Pods:
    """The processes of one service, each with a saver of its own."""

    def __init__(self, home: Path, backend: str) -> None:
        self._home, self._backend = home, backend
        self._open: list[Store] = []
        self._editor: RawEditor = editor_of(backend, path_of(backend, home))

    def saver(self) -> SealedSaver:
        """The saver of a new process."""
        self._open.append(opened(self._backend, self._home))
        return SealedSaver(self._open[-1])

    def thief(self) -> _Thief:
        """Somebody with the disk, who will take what is written from now on."""
        return _Thief(self._editor, bytes.fromhex(self._open[0].thread("t").id))

    def sound(self) -> None:
        """The control: whoever opens the store now finds it whole."""
        with opened(self._backend, self._home) as store:
            assert store.verify().ok

    def close(self) -> None:
        """End every process."""
        for store in self._open:
            store.close()


@pytest.fixture(params=BACKENDS)
def pods(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pods]:
    """A service on each backend."""
    made = Pods(tmp_path / "home", request.param)
    yield made
    made.close()


def _shown(face: str, graph: Any) -> Any:
    """What a graph shows of the thread."""
    if face == "sync":
        return graph.get_state(config_of()).values
    return asyncio.run(graph.aget_state(config_of())).values


# ---------------------------------------------------------------------- results


def _half_paid(pods: Pods, shape: str, face: str) -> tuple[Branches, Any, Any]:
    """One turn by a first process, half a turn by a second: the payment is made, and kept."""
    branches = Branches(shape)
    first, second = (branches.builder().compile(checkpointer=pods.saver()) for _ in range(2))
    branches.fails = False
    run(face, first, {"amount": 1}, config_of())
    _shown(face, first)
    branches.ran.clear()
    branches.fails = True
    return branches, first, second


@_every_face
@pytest.mark.parametrize("shape", SHAPES)
def test_a_payment_whose_result_is_gone_is_not_made_twice(
    pods: Pods, shape: str, face: str
) -> None:
    """The process that has shown the thread before misses the result, as a new one does."""
    branches, first, second = _half_paid(pods, shape, face)
    thief = pods.thief()
    branches.fail(second, face)
    pods.sound()
    thief.take({Kind.RESULTS}, lambda row: b"paid" in (row.payload or b""))
    cold = branches.builder().compile(checkpointer=pods.saver())

    assert ending(lambda: run(face, cold, None, config_of())) is Missing
    assert ending(lambda: run(face, first, None, config_of())) is Missing
    assert branches.ran == ["pay"]
    thief.put_back()
    run(face, first, None, config_of())
    assert branches.ran == ["pay", "tell"]


@_every_face
@pytest.mark.parametrize("shape", SHAPES)
def test_a_payment_whose_result_is_there_is_not_made_twice(
    pods: Pods, shape: str, face: str
) -> None:
    """The control: with all bodies there, only the branch that failed runs once more."""
    branches, first, second = _half_paid(pods, shape, face)
    branches.fail(second, face)
    run(face, first, None, config_of())

    assert branches.ran == ["pay", "tell"]
    pods.sound()


# ---------------------------------------------------------------------- states


def _spent(pods: Pods, face: str) -> tuple[Wallet, Any, _Thief]:
    """A first process knows a balance of 100, a second one has spent 70 of it and pruned."""
    wallet = Wallet()
    first, saver = wallet.graph(pods.saver()), pods.saver()
    run(face, first, {"balance": 100, "amount": 0}, config_of())
    assert _shown(face, first)["balance"] == 100
    thief = pods.thief()
    run(face, wallet.graph(saver), {"amount": 70}, config_of())
    thread = saver.store.thread("t")
    thread.prune(keep_last=len(list(thread.history())) - 1, compact=False)
    wallet.spent.clear()
    pods.sound()
    return wallet, first, thief


_ALL = {Kind.CHECKPOINT, Kind.RESULTS}


@_every_face
@pytest.mark.parametrize("kinds", [{Kind.CHECKPOINT}, _ALL], ids=["checkpoints", "everything"])
def test_an_older_state_is_neither_shown_nor_run_nor_signed(
    pods: Pods, kinds: set[Kind], face: str
) -> None:
    """What the second process spent is gone: the first does not go on as if it were not spent."""
    wallet, first, thief = _spent(pods, face)
    thief.take(kinds)
    before = thief.written()
    cold = wallet.graph(pods.saver())

    for graph in (cold, first):
        assert ending(lambda: _shown(face, graph)) is Missing  # noqa: B023
        assert ending(lambda: run(face, graph, {"amount": 5}, config_of())) is Missing  # noqa: B023
    assert wallet.spent == []
    assert thief.written() == before


@_every_face
def test_a_state_that_is_back_is_gone_on_from(pods: Pods, face: str) -> None:
    """Gone for a moment while the first process looks: it then reads what everybody reads."""
    wallet, first, thief = _spent(pods, face)
    thief.take(_ALL)
    ending(lambda: _shown(face, first))
    thief.put_back()
    cold = wallet.graph(pods.saver())

    assert _shown(face, cold)["balance"] == 30
    assert _shown(face, first)["balance"] == 30
    run(face, first, {"amount": 5}, config_of())
    assert wallet.spent == [(30, 5)]


@_every_face
def test_the_newest_state_is_gone_on_from(pods: Pods, face: str) -> None:
    """The control: with all bodies there, the first process goes on from what the second left."""
    wallet, first, _ = _spent(pods, face)
    run(face, first, {"amount": 5}, config_of())

    assert wallet.spent == [(30, 5)]
    assert _shown(face, first)["balance"] == 25
    pods.sound()


# ---------------------------------------------------------------------- questions


class _Large(TypedDict, total=False):
    amount: int


class Till:
    """A graph that asks before it pays more than ten."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def _pay(self, state: _Large) -> _Large:
        if state["amount"] <= 10 or interrupt({"pay": state["amount"]}) == "yes":
            self.paid.append(state["amount"])
        return {}

    def graph(self, saver: SealedSaver) -> Any:
        """The guarded graph on a saver."""
        built: Any = StateGraph(_Large)
        built.add_node("pay", self._pay)
        built.add_edge(START, "pay")
        return guard(built.compile(), saver, actor="dev")


@pytest.fixture
def waiting(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Office, Till, Any, _Thief]]:
    """Under `strict`: the first process has paid 1, and a second one waits for an answer."""
    office, till = Office(tmp_path / "home", backend=request.param), Till()
    first, second = till.graph(office.saver), till.graph(SealedSaver(office.process()))
    first.invoke({"amount": 1}, config_of())
    assert not first.get_state(config_of()).interrupts
    thief = _Thief(office.editor, bytes.fromhex(office.worker.thread("t").id))
    second.invoke({"amount": 50}, config_of())
    assert till.paid == [1]
    yield office, till, first, thief
    office.close()


@_every_face
@pytest.mark.parametrize("waiting", BACKENDS, indirect=True)
def test_a_question_that_is_gone_lets_no_turn_pass(
    waiting: tuple[Office, Till, Any, _Thief], face: str
) -> None:
    """Nobody was asked: the first process misses the question, as a new one does."""
    office, till, first, thief = waiting
    thief.take({Kind.RESULTS})
    before = thief.written()
    cold = till.graph(SealedSaver(office.process()))

    for graph in (cold, first):
        assert ending(lambda: run(face, graph, {"amount": 2}, config_of())) is Missing  # noqa: B023
    assert ending(lambda: office.worker.thread("t").question) is Missing
    assert till.paid == [1]
    assert thief.written() == before


@_every_face
@pytest.mark.parametrize("waiting", BACKENDS, indirect=True)
def test_a_question_that_is_there_stops_the_next_turn(
    waiting: tuple[Office, Till, Any, _Thief], face: str
) -> None:
    """The control: with all bodies there, a new turn over the question needs approval."""
    office, till, first, _ = waiting

    assert ending(lambda: run(face, first, {"amount": 2}, config_of())) is NeedsApproval
    assert till.paid == [1]
    assert office.worker.verify().ok
