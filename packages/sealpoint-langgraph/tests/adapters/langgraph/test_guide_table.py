# SPDX-License-Identifier: Apache-2.0
"""Every line of the table "What is protected now" is true, for each of its three columns.

A scenario names the line and the cells that it checks, as the page has them without links: whoever
changes a cell comes by here. It runs on real files, with `SqliteSaver` and with `SealedSaver`.
"""

import asyncio
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

from sealpoint.errors import Busy, NeedsApproval, Paused, ResumeRefused, RolledBack
from sealpoint.storage import Record
from sealpoint.world import World
from sealpoint_langgraph import declared_world, deliberately, guard, world_of
from tests.adapters.langgraph.columns import (
    Column,
    CrashingDesk,
    EditedStoreOfColumn,
    change_stock,
    crash_both,
)
from tests.attacks.langgraph.desks import FACES, Desk, State, config_of, run
from tests.attacks.langgraph.edited_store import ALARMS
from tests.attacks.langgraph.test_pauses import Line
from tests.attacks.langgraph.test_runs_at_once import Race
from tests.attacks.langgraph.test_stock_saver import Stock
from tests.repo._markdown import sections
from tests.repo._tree import PACKAGE, ROOT

_YES: Any = Command(resume="yes")
_SOLO = (PACKAGE / "gate" / "policies" / "solo.toml").read_bytes()
_NO_ANSWERS: Any = _SOLO.replace(b'answer = "record"', b'answer = "refuse"')
_OPERATIONS = ("edited", "inserted", "deleted", "moved")


class Scenario(NamedTuple):
    """A line of the table, and what shows that it is true."""

    cells: tuple[str, ...]
    check: Callable[[Column], None]


SCENARIOS: dict[str, Scenario] = {}


def line(name: str, *cells: str) -> Callable[[Callable[[Column], None]], Callable[[Column], None]]:
    """The scenario of a line, with what the page says in its three cells."""

    def keep(check: Callable[[Column], None]) -> Callable[[Column], None]:
        SCENARIOS[name] = Scenario(cells, check)
        return check

    return keep


# ---------------------------------------------------------------------- somebody has the bytes


def _seen(stock: Stock) -> Any:
    """What the stock saver shows, and what it does when it goes on."""
    with stock.graph() as graph:
        shown = graph.get_state(config_of())
        asked = [each.value for each in shown.interrupts]
        return shown.values, asked, graph.invoke(None, config_of())


@line(
    "a checkpoint, a pending write or an answer is edited, inserted, deleted or moved",
    "accepted",
    "rejected when loaded",
    "rejected when loaded",
)
def _edits(column: Column) -> None:
    changes = [
        (what, operation)
        for what in ("checkpoint", "pending write", "answer")
        for operation in _OPERATIONS
    ]
    if column.kind == "stock":
        stock = Stock(column.home / "stock.db", "root")
        stock.desk = CrashingDesk()
        with stock.graph() as graph:
            crash_both(stock, graph)
        with closing(sqlite3.connect(stock.path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        honest, genuine = stock.path.read_bytes(), _seen(stock)
        for what, operation in changes:
            for each in column.home.iterdir():
                each.unlink()
            stock.path.write_bytes(honest)
            change_stock(stock, what, operation)
            assert _seen(stock) != genuine, (what, operation)
        return
    edited = EditedStoreOfColumn(column.home / "home", column.kind)
    edited.desk = CrashingDesk()
    with edited.open() as store:
        crash_both(edited, edited.graph(store))
    for number, (what, operation) in enumerate(changes):
        with edited.landing():
            edited.change(what, operation)
            found = edited.endings(FACES[number % 2])
        assert all(error and issubclass(error, ALARMS) for error in found.values()), found


@line(
    "an older copy of the database is put back", "accepted", "rejected: `rolled-back`", "rejected"
)
def _older_copy(column: Column) -> None:
    if column.kind == "stock":
        stock = Stock(column.home / "stock.db", "root")
        older = stock.path.read_bytes()
        with stock.graph() as graph:
            graph.invoke(_YES, config_of())
        for beside in column.home.iterdir():
            beside.unlink()
        stock.path.write_bytes(older)
        assert stock.values() == stock.truth
        return
    edited = EditedStoreOfColumn(column.home / "home", column.kind)
    for face in FACES:
        with edited.landing():
            edited.roll_back()
            found = edited.endings(face)
        assert set(found.values()) == {RolledBack}


@line(
    "stored data names a class or a function to call",
    "called, unless the strict mode is on",
    "rejected: nothing is imported or called",
    "rejected",
)
def _calls(column: Column) -> None:
    called = column.home / "called"
    code = f"__import__('pathlib').Path({str(called)!r}).touch()"
    bomb = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("builtins", "eval", code))))
    if column.kind == "stock":
        stock = Stock(column.home / "stock.db", "root")
        with stock.raw() as database:
            sql = "UPDATE writes SET value = ?, type = 'msgpack' WHERE thread_id = 't'"
            database.execute(sql, (bomb,))
        strict = JsonPlusSerializer(allowed_msgpack_modules=None)  # as the strict mode makes it
        with closing(sqlite3.connect(stock.path, check_same_thread=False)) as database:
            SqliteSaver(database, serde=strict).get_tuple(config_of())
        assert not called.exists()
        stock.values()
        assert called.exists()
        return
    edited = EditedStoreOfColumn(column.home / "home", column.kind)
    for face in FACES:
        with edited.landing():
            seq, rows = edited.questions()[-1], edited.rows()
            row = rows[seq]
            edited.put({**rows, seq: Record(row.header, row.seals, row.body, bomb)})
            found = edited.endings(face)
        assert all(error and issubclass(error, ALARMS) for error in found.values()), found
    assert not called.exists()


# ---------------------------------------------------------------------- reading, and others


@line(
    "a page reads a thread (`get_state`, history, lists)",
    "a read",
    "a read: it writes and decides nothing",
    "the same",
)
def _looks(column: Column) -> None:
    if column.kind != "stock":
        column.begin("strict").waiting(Desk("subgraph"), "t")  # where a run would be judged
    graph, where = column.graph(Desk("subgraph").builder()), config_of()
    if column.kind == "stock":
        graph.invoke({"amount": 2}, where)
    before = column.contents()

    def look(config: Any) -> None:
        assert graph.get_state(config, subgraphs=True).interrupts
        assert list(graph.get_state_history(config))
        assert list(graph.checkpointer.list(config))
        assert list(graph.checkpointer.list(None))

    look(where)
    look({**where, "recursion_limit": 50})
    if column.kind != "stock":
        assert asyncio.run(graph.aget_state(where, subgraphs=True)).interrupts
    assert column.contents() == before

    if column.kind != "stock":
        column.begin()
    line_of_nodes = Line()
    graph = column.graph(line_of_nodes.builder())
    for face in column.faces:
        line_of_nodes.during = None
        run(face, graph, {"log": []}, where)
        line_of_nodes.ran.clear()
        line_of_nodes.during = _aside(lambda: graph.get_state({**where, "recursion_limit": 50}))
        run(face, graph, {"log": []}, where)
        assert line_of_nodes.ran == ["one", "two", "three", "four", "five"]
    if column.kind != "stock":
        assert len(column.resumes()) == 2 * len(FACES), "one for each run, and none for a look"


def _aside(call: Callable[[], object]) -> Callable[[], None]:
    """The same in an operating system thread of its own."""

    def aside() -> None:
        other = threading.Thread(target=call)
        other.start()
        other.join()

    return aside


class _Race(Race):
    def __init__(self) -> None:
        super().__init__("subgraph")
        self.ran: list[int] = []

    def _next(self, state: State) -> State:
        self.ran.append(state["amount"])
        return super()._next(state)


@line(
    "a second worker resumes the same thread",
    "both continue",
    "one continues; the other is `superseded` or refused at its next save",
    "the first continues; the other is `busy` before anything runs",
)
def _second_worker(column: Column) -> None:
    for face in column.faces:
        if column.kind != "stock":
            column.begin()
        race = _Race()
        slow, fast = (column.graph(race.builder(), column.saver(process=True)) for _ in "ab")
        slow.invoke({"amount": 0}, config_of())
        ended = race.endings(slow, fast, face)
        log = fast.get_state(config_of()).values["log"]
        if column.kind == "stock":
            assert ended == [None, None]
            assert race.ran == [0, 2, 1]
            return
        (lost,) = (error for error in ended if error is not None)
        kept = 1 if ended[0] is None else 2
        assert lost.code in ("superseded", "head-moved", "resume-refused", "busy")
        assert f"next {kept}" in log
        assert f"next {3 - kept}" not in log
        if column.kind == "guard":
            assert isinstance(ended[1], Busy)
            assert race.ran == [0, 1], "nothing of it runs"


# ---------------------------------------------------------------------- who decides, and when


def _waiting(column: Column, shape: str = "root") -> tuple[Desk, Any]:
    desk = Desk(shape)
    graph = column.graph(desk.builder())
    graph.invoke({"amount": 2}, config_of())
    desk.ran.clear()
    return desk, graph


@line(
    "a run begins, or an edit",
    "no check",
    "the policy decides at the first write; nodes may have run by then",
    "the policy decides before any node runs",
)
def _begins(column: Column) -> None:
    if column.kind != "stock":
        column.begin(_NO_ANSWERS)
    desk, graph = _waiting(column)
    where, turn = config_of(), {"amount": 3}
    if column.kind == "stock":
        graph.update_state(where, {"amount": 4}, as_node="plan")
        graph.invoke(turn, where)
        assert desk.ran == ["plan"]
        return
    for face in FACES:
        column.refuses(graph, desk, "question", run, face, graph, turn, where)
        column.refuses(graph, desk, "question", run, face, graph, turn, where, durability="exit")
        assert desk.ran == (["plan"] if column.kind == "bare" else [])
    column.refuses(graph, desk, "question", graph.update_state, where, turn, as_node="plan")


@line(
    "an older checkpoint, of the graph or of a subgraph",
    "no check",
    "the same rule for both, at the first write",
    "the same rule for both, before any node runs",
)
def _older_checkpoints(column: Column) -> None:
    desk, graph = _waiting(column, "subgraph")
    _goes_on_from_older(column, desk, graph, None, graph.get_state(config_of()).parent_config)
    assert desk.ran == ["plan"]

    waits = graph.get_state(config_of(), subgraphs=True).tasks[0].state.config
    inner = graph.update_state(waits, {"amount": 3}, as_node="__start__")
    graph.update_state(inner, {"amount": 4}, as_node="__start__")
    _goes_on_from_older(column, desk, graph, _YES, inner)
    assert desk.ran == ["asked", "pay", "end"]


def _goes_on_from_older(column: Column, desk: Desk, graph: Any, value: Any, where: Any) -> None:
    if column.kind != "stock":
        for face in FACES:
            column.refuses(graph, desk, "is not the newest", run, face, graph, value, where)
        where = deliberately(where, "once more")
    desk.ran.clear()
    graph.invoke(value, where)
    if column.kind != "stock":
        assert "rules older-checkpoint" in column.resumes()[-1]


@line(
    "an answer (`Command(resume=...)`)",
    "no check",
    "the policy decides whether an answer is allowed, but does not see which one",
    "the decision covers the exact answer, and approvers see it",
)
def _answers(column: Column) -> None:
    if column.kind == "stock":
        desk, graph = _waiting(column)
        graph.invoke(_YES, config_of())
        assert desk.ran == ["asked", "pay", "end"]
        return
    column.begin(_NO_ANSWERS)
    desk, graph = _waiting(column)
    for face in FACES:
        column.refuses(graph, desk, "question", run, face, graph, _YES, config_of())
    column.begin()
    for answer, face in (("yes", "sync"), ("no", "async")):
        desk, graph = _waiting(column)
        run(face, graph, Command(resume=answer), config_of())
        assert desk.ran == ["asked", "pay", "end"]
    assert "rules answer" in column.resumes()[-1]
    if column.kind == "bare":
        assert not any("; answer " in each for each in column.resumes())
        return
    bound = [
        found for each in column.resumes() for found in re.findall("; answer ([0-9a-f]+)", each)
    ]
    assert len(set(bound)) == 2
    office = column.begin("strict")
    graph = office.waiting(desk, "t")
    request = office.asked(lambda: graph.invoke(_YES, config_of()))
    other = office.asked(lambda: graph.invoke(Command(resume="no"), config_of()))
    office.approve(request)
    assert (request.answer, other.answer) == ({"resume": "yes"}, {"resume": "no"})
    with pytest.raises(NeedsApproval):
        graph.invoke(Command(resume="no"), config_of())
    assert desk.ran == []
    graph.invoke(_YES, config_of())
    assert desk.ran == ["asked", "pay", "end"]


@line(
    "the policy requires approvals (`team`, `strict`)",
    "no check",
    "refuses every run and edit before any node; reads work",
    "requests approvals",
)
def _people(column: Column) -> None:
    if column.kind == "stock":
        desk, graph = _waiting(column)
        graph.invoke(_YES, config_of())
        assert desk.ran == ["asked", "pay", "end"]
        return
    desk, office = Desk(), column.begin("strict")
    guarded, graph = office.waiting(desk, "t"), column.graph(desk.builder())
    edit = {"amount": 3}
    for face in FACES:
        for name, value in (("t", _YES), ("t", None), ("t", edit), ("new", edit)):
            if column.kind == "bare":
                column.refuses(graph, desk, "approvals", run, face, graph, value, config_of(name))
                assert desk.ran == []
            elif name == "t":
                office.asked(lambda: run(face, graph, value, config_of()))  # noqa: B023
    if column.kind == "bare":
        column.refuses(
            graph, desk, "approvals", graph.update_state, config_of(), edit, as_node="plan"
        )
        assert graph.get_state(config_of()) == guarded.get_state(config_of())
        assert list(graph.get_state_history(config_of()))
    else:
        office.asked(lambda: graph.update_state(config_of(), edit, as_node="plan"))
    assert desk.ran == []


@line(
    "other code or tools than at the checkpoint",
    "not noticed",
    "compared if you pass a `world`",
    "compared at each run: `world_of(graph)` or the `world` that you pass",
)
def _worlds(column: Column) -> None:
    desk = Desk()
    one, two = desk.builder(), desk.builder("more")
    old, other = (world_of(built.compile()) for built in (one, two))
    # Another topology is recorded by this policy; one more tool is asked about.
    new = World.from_dict({**other.to_dict(), "tools": [{"name": "more"}]})
    if column.kind != "guard":
        for graph, value in ((column.graph(one), {"amount": 2}), (column.graph(two), _YES)):
            graph.invoke(value, config_of())
        assert desk.ran[-2:] == ["end", "more"], "not noticed, without a world"
    if column.kind == "stock":
        return
    column.begin()

    def made(built: Any, world: Any) -> Any:
        if column.kind == "bare":
            return column.graph(built, column.saver(world=world))
        return column.graph(built, world=world)

    graph = made(one, old)
    graph.invoke({"amount": 2}, config_of())
    for face in FACES:
        column.refuses(graph, desk, "+ tool more", run, face, made(two, new), _YES, config_of())
    if column.kind == "guard":
        assert declared_world(made(two, None)) == other, "that of the graph itself"
    made(two, old).invoke(_YES, config_of())
    assert desk.ran[-2:] == ["end", "more"], "the world that is given stands for whatever runs"


# ---------------------------------------------------------------------- stopping, and the record


@line(
    "an operator pauses the thread",
    "no such thing",
    "its next save ends the run; nodes may have run by then",
    "stops before the next node or task",
)
def _pauses(column: Column) -> None:
    if column.kind == "stock":
        assert not any("pause" in name for name in dir(column.saver()))
        return
    for face in FACES:
        for durability in ("sync", "async", "exit"):
            nodes, name = Line(), f"{face}-{durability}"
            graph = column.graph(nodes.builder())
            graph.invoke({"log": []}, config_of(name))
            nodes.ran.clear()
            operator = column.office.operator().thread(name)
            nodes.during = lambda: operator.pause("look at it")  # noqa: B023
            with pytest.raises(Paused):
                run(face, graph, {"log": []}, config_of(name), durability=durability)
            if column.kind == "guard":
                assert nodes.ran == ["one", "two"]
            elif durability == "exit":
                assert nodes.ran == ["one", "two", "three", "four", "five"]
            shown = graph.get_state(config_of(name))
            with pytest.raises(ResumeRefused if column.kind == "guard" else Paused):
                run(face, graph, {"log": ["more"]}, config_of(name))
            assert graph.get_state(config_of(name)) == shown
    if column.kind == "guard":
        _pauses_tasks(column)


def _pauses_tasks(column: Column) -> None:
    began: list[str] = []

    @task
    def work(name: str) -> str:
        began.append(name)
        if name == "two":
            column.office.operator().thread("tasks").pause("look at it")
        return name

    @entrypoint(checkpointer=column.saver())
    def flow(_given: str) -> str:
        interrupt("begin?")
        return "".join(work(name).result() for name in ("one", "two", "three"))

    graph = guard(flow, column.saver(), actor="dev")
    graph.invoke("x", config_of("tasks"))
    with pytest.raises(Paused):
        graph.invoke(_YES, config_of("tasks"))
    assert began == ["one", "two"]


@line(
    "who resumed, when and why",
    "not recorded",
    "recorded with the first entry of the run",
    "recorded before the first node runs; in a new thread, with its first entry",
)
def _record(column: Column) -> None:
    nodes, where = Line(), config_of()
    graph = column.graph(nodes.builder())
    graph.invoke({"log": []}, where)
    older = graph.get_state(where).parent_config
    if column.kind == "stock":
        graph.invoke(None, older)
        found = list(graph.get_state_history(where))
        assert not any({"actor", "reason", "by"} & each.metadata.keys() for each in found)
        return
    kinds = column.office.kinds("t")
    assert kinds[:3] == ["genesis", "resume", "checkpoint"]
    during: list[list[str]] = []
    nodes.before = lambda: during.append(column.resumes())
    for face in FACES:
        begun, kinds = len(column.resumes()), column.office.kinds("t")
        first = list(graph.get_state_history(where))[-1].config
        run(face, graph, None, deliberately(first, f"{face} again"), durability="exit")
        assert column.office.kinds("t")[len(kinds) :][0] == "resume"
        (*_, last) = column.office.worker.audit(thread="t", kind="resume")
        assert (last.by, last.time is not None) == ("worker", True)
        assert f"reason given: {face} again" in last.summary
        assert ("for dev, as the caller claims" in last.summary) == (column.kind == "guard")
        assert len(during.pop()) == begun + (column.kind == "guard")


# ---------------------------------------------------------------------- the page


def _table() -> dict[str, tuple[str, ...]]:
    """The lines of the table, without links."""
    page = (ROOT / "docs" / "reference" / "langgraph.md").read_text(encoding="utf-8")
    (section,) = (each for each in sections(page) if each.title == "What is protected")
    rows = [line for line in section.prose.splitlines() if line.startswith("|")]
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", each) for each in rows]
    cells = [tuple(cell.strip() for cell in each.strip("|").split("|")) for each in plain]
    assert cells[0][1:] == ("the stock savers", "`SealedSaver` alone", "with `guard`")
    return {name: tuple(found) for name, *found in cells[2:]}


def test_every_line_has_a_scenario_and_every_scenario_a_line() -> None:
    """Nothing is promised that nobody tries, and nothing is tried that the page does not say."""
    assert list(_table()) == list(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_checks_what_the_page_says(name: str) -> None:
    """A cell that says something else now wants another look at its scenario."""
    assert _table().get(name) == SCENARIOS[name].cells


@pytest.fixture(params=["stock", "bare", "guard"])
def column(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Column]:
    """A column of the table."""
    made = Column(request.param, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cell_is_true(column: Column, name: str) -> None:
    """The scenario of the line, for the column."""
    SCENARIOS[name].check(column)
