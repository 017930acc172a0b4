# SPDX-License-Identifier: Apache-2.0
"""Bytes that would run code in the hands of the framework's serializer, and commands in a state."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send

from sealpoint.errors import TypeNotAllowed
from sealpoint.ledger import Kind
from sealpoint.storage import Record
from sealpoint_langgraph import SealedSaver
from tests.adapters.langgraph.stores import opened
from tests.attacks.langgraph.desks import EITHER_FACE, FACES, State, config_of, run
from tests.attacks.langgraph.edited_store import ALARMS, PLACES, EditedStore


class _Planted:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def _bombs(marker: Path) -> Iterator[bytes]:
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    for tag, call in (
        (0, ("builtins", "eval", code)),
        (1, ("builtins", "eval", (code,))),
        (2, ("subprocess", "Popen", {"args": ["touch", str(marker)]})),
        (5, ("subprocess", "Popen", {"args": ["touch", str(marker)]}, "model_validate_json")),
    ):
        bomb = ormsgpack.Ext(tag, ormsgpack.packb(call))
        yield ormsgpack.packb(bomb)
        yield ormsgpack.packb([[-4, "__resume__", bomb]])
        yield ormsgpack.packb({"channel_values": {"amount": bomb}, "v": 4})
    yield pickle.dumps(_Planted(marker))


@pytest.fixture(
    scope="module",
    params=PLACES,
)
def edited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> EditedStore:
    """A store of each backend, whose question is asked by the graph or by a subgraph."""
    return EditedStore(tmp_path_factory.mktemp("edited") / "home", *request.param)


def _in_payloads(row: Record, bomb: bytes) -> Record:
    return Record(row.header, row.seals, row.body, bomb if row.payload is not None else None)


def _in_bodies(row: Record, bomb: bytes) -> Record:
    return Record(row.header, row.seals, bomb, row.payload)


def _in_headers(row: Record, bomb: bytes) -> Record:
    return Record(bomb, row.seals, row.body, row.payload)


def _in_seals(row: Record, bomb: bytes) -> Record:
    return Record(row.header, bomb, row.body, row.payload)


@pytest.mark.parametrize("place", [_in_payloads, _in_bodies, _in_headers, _in_seals])
def test_nothing_that_is_stored_runs(
    edited: EditedStore, tmp_path: Path, place: Callable[[Record, bytes], Record]
) -> None:
    """Each bomb in the newest entries: refused on every way, and no file was created."""
    marker = tmp_path / "ran"
    newest = edited.find(Kind.CHECKPOINT)[-1]
    with edited.landing():
        rows = edited.rows()
        bombs = list(_bombs(marker))
        for number, bomb in enumerate(bombs[:: 2 if place is _in_payloads else 6]):
            edited.put({s: place(row, bomb) if s >= newest - 1 else row for s, row in rows.items()})
            found = edited.endings(FACES[number % 2])
            for error in found.values():
                assert error is not None
                assert issubclass(error, ALARMS)

    assert not marker.exists()


def test_the_control_bombs_are_live(tmp_path: Path) -> None:
    """The framework's serializer sets them off, by default."""
    marker = tmp_path / "ran"
    bombs = list(_bombs(marker))
    JsonPlusSerializer().loads_typed(("msgpack", bombs[0]))
    assert marker.exists()
    marker.unlink()
    pickle.loads(bombs[-1])

    assert marker.exists()


_HIDDEN: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda found: found,
    "in a list": lambda found: [[found]],
    "in a dict": lambda found: {"deep": {"er": found}},
    "in a tuple": lambda found: ("x", (found,)),
}


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("hide", _HIDDEN.values(), ids=_HIDDEN)
@pytest.mark.parametrize("steers", [Send("pay", {"amount": 9_999}), Command(goto="pay")])
def test_what_steers_a_graph_is_not_saved_as_data(
    tmp_path: Path, steers: Any, hide: Callable[[Any], Any], face: str
) -> None:
    """A `Send` or `Command` in the state, in the input or in a result is refused at save."""

    def keep(_state: State) -> Any:
        return {"log": [hide(steers)]}

    built: Any = StateGraph(State)
    built.add_node("keep", keep)
    built.add_node("pay", keep)
    built.add_edge(START, "keep")
    with opened("sqlite", tmp_path / "home") as store:
        graph = built.compile(checkpointer=SealedSaver(store))
        with pytest.raises(TypeNotAllowed, match="steers the graph"):
            run(face, graph, {"amount": 1}, config_of("result"))
        with pytest.raises(TypeNotAllowed, match="steers the graph"):
            run(face, graph, {"log": [hide(steers)]}, config_of("input"))
        assert store.verify().ok


@pytest.mark.parametrize("face", EITHER_FACE)
def test_a_task_that_an_edge_makes_is_saved(tmp_path: Path, face: str) -> None:
    """The control: where the framework itself puts a `Send` it is kept, and runs once."""
    ran: list[Any] = []

    def pay(state: State) -> State:
        ran.append(state)
        return {"log": ["pay"]}

    built: Any = StateGraph(State)
    built.add_node("plan", lambda _: {"log": ["plan"]})
    built.add_node("pay", pay)
    built.add_edge(START, "plan")
    built.add_conditional_edges("plan", lambda _: [Send("pay", {"amount": 7})], ["pay"])
    with opened("sqlite", tmp_path / "home") as store:
        graph = built.compile(checkpointer=SealedSaver(store), interrupt_before=["pay"])
        run(face, graph, {"amount": 1}, config_of())
        assert ran == []
        run(face, graph, None, config_of())

    assert ran == [{"amount": 7}]
