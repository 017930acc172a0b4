# SPDX-License-Identifier: Apache-2.0
"""The columns of the guide's table, on real files: stock saver, bare saver, guarded graph."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from sealpoint.errors import ResumeRefused
from sealpoint.ledger import Kind
from sealpoint_langgraph import SealedSaver, deliberately, guard
from tests.attacks.langgraph.desks import FACES, Desk, State, config_of
from tests.attacks.langgraph.edited_store import EditedStore
from tests.attacks.langgraph.office import Office
from tests.attacks.langgraph.test_stock_saver import Stock

__all__ = ["Column", "CrashingDesk", "EditedStoreOfColumn", "change_stock", "crash_both"]


class Column:
    """One column of the table: graphs on a saver of its kind, on real files."""

    def __init__(self, kind: str, home: Path) -> None:
        self.kind, self.home = kind, home
        self.faces = FACES if kind != "stock" else FACES[:1]
        self._closing: list[Any] = []
        self._office: Office | None = None

    def begin(self, policy: str = "solo") -> Office:
        """Make a store under a policy; the stock saver has neither."""
        self._office = Office(self.home / f"sealed-{len(self._closing)}", policy=policy)
        self._closing.append(self._office)
        return self._office

    def close(self) -> None:
        """End every process."""
        for each in self._closing:
            each.close()

    @property
    def office(self) -> Office:
        """Everybody's process."""
        return self._office or self.begin()

    def saver(self, *, process: bool = False, **options: Any) -> Any:
        """A saver, of a process of its own if that is asked for."""
        if self.kind == "stock":
            database = sqlite3.connect(self.home / "stock.db", check_same_thread=False)
            self._closing.append(database)
            return SqliteSaver(database)
        return SealedSaver(self.office.process() if process else self.office.worker, **options)

    def graph(self, built: Any, saver: Any = None, **options: Any) -> Any:
        """A graph, or what makes one, as the column has it."""
        saver = saver or self.saver()
        if self.kind == "guard":
            return guard(built.compile(), saver, actor="dev", **options)
        return built.compile(checkpointer=saver)

    def contents(self) -> Any:
        """All that is stored, and the anchor."""
        if self.kind == "stock":
            with closing(sqlite3.connect(self.home / "stock.db")) as database:
                return list(database.iterdump())
        state = sorted((self.office.home / "state").rglob("*"))
        files = [path.read_bytes() for path in state if path.is_file()]
        return self.office.editor.raw(), files

    def resumes(self, thread: str = "t") -> list[str]:
        """What the audit has about who went on."""
        return [each.summary for each in self.office.worker.audit(thread=thread, kind="resume")]

    def refuses(
        self,
        graph: Any,
        desk: Desk,
        told: str,
        call: Callable[..., object],
        *given: Any,
        **named: Any,
    ) -> None:
        """It is refused for this reason and nothing comes of it; with a guard, before any node."""
        before, shown, begun = self.office.kinds("t"), graph.get_state(config_of()), self.resumes()
        desk.ran.clear()
        with pytest.raises(ResumeRefused) as refused:
            call(*given, **named)

        assert told in refused.value.message
        assert (graph.get_state(config_of()), self.resumes()) == (shown, begun)
        if self.kind == "guard":
            assert (desk.ran, self.office.kinds("t")) == ([], before)


class CrashingDesk(Desk):
    """Crashes when it has its answer: question, answer and checkpoint are all still pending."""

    crashes = True

    def _ask(self, state: State) -> State:
        found = super()._ask(state)
        if self.crashes:
            raise ZeroDivisionError
        return found


class EditedStoreOfColumn(EditedStore):
    """A store that somebody reaches into, with a guard or without."""

    def __init__(self, home: Path, kind: str) -> None:
        self.kind = kind
        super().__init__(home, "sqlite", "root")

    def graph(self, store: Any) -> Any:
        """The graph with a saver of its own."""
        if self.kind == "bare":
            return super().graph(store)
        return guard(self.desk.builder().compile(), SealedSaver(store), actor="dev")

    def change(self, what: str, operation: str) -> None:
        """Do something to the newest checkpoint, question or answer of the thread."""
        newest = {
            "checkpoint": self.head(),
            "pending write": self.questions()[-1],
            "answer": self.find(Kind.RESULTS, answers=True)[-1],
        }
        seq, rows = newest[what], self.rows()
        if operation == "edited":
            self.rewritten(seq, state=["forged"])
        elif operation == "inserted":
            body = self.body(seq)
            self.append(self.forged(self.header(seq).kind, body, rows[seq].payload or b"", None))
        elif operation == "deleted":
            self.put({place: row for place, row in rows.items() if place != seq})
        else:
            self.put({**rows, seq: self.rows("other")[seq]})


def change_stock(stock: Stock, what: str, operation: str) -> None:
    """The same for the stock saver; an answer that is inserted is one for the task itself."""
    head = stock.head()[0]
    if what == "checkpoint":
        if operation in ("edited", "inserted"):
            named = None if operation == "edited" else "ffffffff-ffff-6fff-bfff-ffffffffffff"
            stock.rewrite(lambda found: found["channel_values"].update(amount=9_999), named)
            return
        stock.sql(f"DELETE FROM checkpoints WHERE checkpoint_id = '{head}'")  # noqa: S608
        if operation == "moved":
            stock.sql("DELETE FROM checkpoints WHERE thread_id = 't'")
            stock.sql("UPDATE checkpoints SET thread_id = 't' WHERE thread_id = 'other'")
        return
    channel = "__interrupt__" if what == "pending write" else "__resume__"
    mine = f"WHERE thread_id = 't' AND channel = '{channel}' AND checkpoint_id = '{head}'"
    other = "checkpoint_id = (SELECT max(checkpoint_id) FROM writes WHERE thread_id = 'other')"
    theirs = f"thread_id = 'other' AND channel = '{channel}' AND {other}"
    if operation == "inserted":
        with closing(sqlite3.connect(stock.path)) as database:
            sql = "SELECT task_id FROM writes WHERE channel = '__interrupt__' AND checkpoint_id = ?"
            (asking,) = database.execute(sql, (head,)).fetchone()
        added = ("log", ["forged"]) if what == "pending write" else ("__resume__", ["forged"])
        nobody = "00000000-0000-0000-0000-000000000000"
        stock.write(nobody if what == "pending write" else asking, 7, *added)
    elif operation == "edited":
        stock.sql(
            f"UPDATE writes SET (type, value) = (SELECT type, value FROM writes WHERE {theirs}) "  # noqa: S608
            + mine
        )
    else:
        stock.sql(f"DELETE FROM writes {mine}")  # noqa: S608
        if operation == "moved":
            stock.sql(
                f"UPDATE writes SET thread_id = 't', checkpoint_id = '{head}' WHERE {theirs}"  # noqa: S608
            )


def crash_both(made: Any, graph: Any) -> None:
    """Let both threads crash with different answers."""
    for name, answer in (("t", "no"), ("other", "yes")):
        with pytest.raises(ZeroDivisionError):
            graph.invoke(Command(resume=answer), deliberately(config_of(name), "it will crash"))
    made.desk.crashes = False
    made.desk.ran.clear()
