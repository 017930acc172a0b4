# SPDX-License-Identifier: Apache-2.0
"""The control of the attacks: the framework's own saver takes the same edits, and acts on them.

What makes an edit succeed is told by the nodes that ran and by what is shown. The payloads are
harmless; those that would run code create an empty file.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, Send

from tests.attacks.langgraph.desks import SHAPES, Desk, config_of

_NOBODY = "00000000-0000-0000-0000-000000000000"
_PACK = JsonPlusSerializer().dumps_typed


class Stock:
    """The graph of the attacks on `SqliteSaver`: paid once, and waits for the second answer."""

    def __init__(self, path: Path, shape: str) -> None:
        self.path, self.desk = path, Desk(shape)
        with self.graph() as graph:
            for name in ("t", "other"):
                graph.invoke({"amount": 1}, config_of(name))
                graph.invoke(Command(resume="yes"), config_of(name))
                graph.invoke({"amount": 2 if name == "t" else 7}, config_of(name))
        self.desk.ran.clear()
        self.truth = self.values()

    @contextmanager
    def graph(self) -> Iterator[Any]:
        """The graph, as a new process has it."""
        with closing(sqlite3.connect(self.path, check_same_thread=False)) as database:
            yield self.desk.builder().compile(checkpointer=SqliteSaver(database))

    def values(self) -> Any:
        """What the thread shows."""
        with self.graph() as graph:
            return graph.get_state(config_of()).values

    def go_on(self) -> list[str]:
        """What runs if the thread goes on without an answer."""
        with self.graph() as graph:
            graph.invoke(None, config_of())
        return self.desk.ran

    @contextmanager
    def raw(self) -> Iterator[sqlite3.Connection]:
        """Plain SQL, which has to change something."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            before = database.total_changes
            yield database
            assert database.total_changes > before, "the edit did not land"

    def head(self) -> tuple[Any, ...]:
        """The newest row of the root."""
        sql = (
            "SELECT checkpoint_id, type, checkpoint, metadata FROM checkpoints "
            "WHERE thread_id = 't' AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
        )
        with closing(sqlite3.connect(self.path)) as database:
            return tuple(database.execute(sql).fetchone())

    def write(self, task: str, index: int, channel: str, value: Any) -> None:
        """Add a pending write to the newest checkpoint."""
        kind, data = _PACK(value)
        with self.raw() as database:
            database.execute(
                "INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, "
                "idx, channel, type, value) VALUES ('t', '', ?, ?, ?, ?, ?, ?)",
                (self.head()[0], task, index, channel, kind, data),
            )

    def rewrite(self, change: Callable[[dict[str, Any]], object], name: str | None = None) -> None:
        """Change the newest checkpoint, or make another of it."""
        found, _, data, metadata = self.head()
        checkpoint = ormsgpack.unpackb(data)
        change(checkpoint)
        with self.raw() as database:
            database.execute(
                "INSERT OR REPLACE INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, "
                "parent_checkpoint_id, type, checkpoint, metadata) "
                "VALUES ('t', '', ?, ?, 'msgpack', ?, ?)",
                (
                    name or found,
                    found,
                    ormsgpack.packb(checkpoint | {"id": name or found}),
                    metadata,
                ),
            )

    def sql(self, statement: str) -> None:
        """Run a statement."""
        with self.raw() as database:
            database.execute(statement)


@pytest.fixture(params=SHAPES)
def stock(request: pytest.FixtureRequest, tmp_path: Path) -> Stock:
    """The control, whose question is asked by the graph or by a subgraph."""
    made = Stock(tmp_path / "stock.db", request.param)
    assert made.go_on() == [], "it waits, before the edit"
    made.desk.ran.clear()
    return made


def test_a_forged_answer_pays(stock: Stock) -> None:
    """One row is somebody's approval."""
    stock.write(_NOBODY, -4, "__resume__", "yes")

    assert stock.go_on() == ["asked", "pay", "end"]


def test_an_old_answer_pays_once_more(stock: Stock) -> None:
    """So is the row of the first turn, put on the second."""
    with stock.raw() as database:
        database.execute(
            "UPDATE writes SET checkpoint_id = ? WHERE thread_id = 't' AND task_id = ?",
            (stock.head()[0], _NOBODY),
        )

    assert "pay" in stock.go_on()


def test_a_deleted_question_is_not_shown(stock: Stock) -> None:
    """Nobody is told that somebody should look."""
    stock.sql("DELETE FROM writes WHERE thread_id = 't' AND channel = '__interrupt__'")
    with stock.graph() as graph:
        shown = graph.get_state(config_of())

    assert shown.interrupts == ()


def test_the_highest_id_becomes_the_head(stock: Stock) -> None:
    """Newest is what sorts last."""
    stock.rewrite(
        lambda found: found["channel_values"].update(amount=9_999),
        "ffffffff-ffff-6fff-bfff-ffffffffffff",
    )

    assert stock.values()["amount"] == 9_999


def test_deleted_rows_are_an_older_thread(stock: Stock) -> None:
    """What is missing was never there."""
    for _ in range(2):
        with stock.raw() as database:
            database.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (stock.head()[0],))

    assert stock.values() != stock.truth


def test_another_parent_is_believed(stock: Stock) -> None:
    """The history tells what the row tells."""
    stock.sql("UPDATE checkpoints SET parent_checkpoint_id = 'none' WHERE thread_id = 't'")
    with stock.graph() as graph:
        (parent,) = {
            each.parent_config["configurable"]["checkpoint_id"]
            for each in graph.get_state_history(config_of())
        }

    assert parent == "none"


def test_another_amount_is_paid(stock: Stock) -> None:
    """The state is whatever lies there."""
    stock.rewrite(lambda found: found["channel_values"].update(amount=9_999))

    assert stock.values()["amount"] == 9_999


def test_what_was_seen_can_be_unseen(stock: Stock) -> None:
    """The node that waits is taken for done: its question is skipped."""
    node = "ask" if stock.desk.shape == "root" else "desk"
    channel = f"branch:to:{node}"
    with stock.graph() as graph:
        assert graph.get_state(config_of()).next == (node,)
    stock.rewrite(
        lambda found: found["versions_seen"][node].update(
            {channel: found["channel_versions"][channel]}
        )
    )
    with stock.graph() as graph:
        shown = graph.get_state(config_of())

    assert shown.next == ()


def test_a_jump_in_the_state_is_made(stock: Stock) -> None:
    """Any node runs that a channel names."""

    def jump(found: dict[str, Any]) -> None:
        found["channel_values"]["branch:to:end"] = None
        found["channel_versions"]["branch:to:end"] = "9" * 32
        found["updated_channels"] = ["branch:to:end"]

    stock.rewrite(jump)

    assert "end" in stock.go_on()


def test_a_task_in_the_results_runs_with_its_arguments(stock: Stock) -> None:
    """A `Send` in a pending write names a node and what it is given."""
    stock.write(_NOBODY, 0, "__pregel_tasks", Send("end", {"amount": 9_999}))
    stock.write(_NOBODY, -4, "__resume__", "yes")
    with stock.graph() as graph:
        found = graph.invoke(None, config_of())

    assert "end 9999" in found["log"]


def test_rows_of_another_thread_are_taken(stock: Stock) -> None:
    """The thread is a column like any other."""
    stock.sql("DELETE FROM checkpoints WHERE thread_id = 't'")
    stock.sql("UPDATE checkpoints SET thread_id = 't' WHERE thread_id = 'other'")

    assert stock.values()["amount"] == 7


def test_other_metadata_is_believed(stock: Stock) -> None:
    """Who ran it, and how far, is what the row says."""
    stock.sql(
        "UPDATE checkpoints SET metadata = json_set(metadata, '$.step', 99, '$.source', 'input', "
        "'$.run_id', 'mine', '$.user_id', 'root')"
    )
    with stock.graph() as graph:
        found = graph.get_state(config_of()).metadata

    assert {found["step"], found["source"], found["run_id"]} == {99, "input", "mine"}


def test_an_older_copy_is_an_older_thread(tmp_path: Path) -> None:
    """A restored file is not told from the newest."""
    stock = Stock(tmp_path / "stock.db", "root")
    older = stock.path.read_bytes()
    with stock.graph() as graph:
        graph.invoke(Command(resume="yes"), config_of())
    for beside in tmp_path.iterdir():
        beside.unlink()
    stock.path.write_bytes(older)

    assert stock.values() == stock.truth


def test_stored_bytes_run_code(tmp_path: Path) -> None:
    """The file that is created stands for anything."""
    stock, marker = Stock(tmp_path / "stock.db", "root"), tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    bomb = ormsgpack.packb(("builtins", "eval", code))
    with stock.raw() as database:
        database.execute(
            "UPDATE writes SET value = ?, type = 'msgpack' WHERE thread_id = 't'",
            (ormsgpack.packb(ormsgpack.Ext(0, bomb)),),
        )
    stock.values()

    assert marker.exists()
