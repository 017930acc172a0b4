# SPDX-License-Identifier: Apache-2.0
"""Results of one branch are kept while another failed: who drops them has it run twice."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from sealpoint.ledger import Kind, parse_header
from sealpoint.storage import Record
from sealpoint_langgraph import SealedSaver
from tests.adapters.langgraph.stores import opened, path_of
from tests.attacks.langgraph.branches import Branches
from tests.attacks.langgraph.desks import EITHER_FACE, SHAPES, config_of, run
from tests.attacks.langgraph.edited_store import ALARMS, BACKENDS, ending
from tests.attacks.ledger.raw_editor import editor_of


def _writes(record: Record, word: bytes) -> bool:
    header = parse_header(record.header)
    return header.kind is Kind.RESULTS and word in (record.payload or b"")


def _is_done(record: Record) -> bool:
    return _writes(record, b"paid")


def _is_error(record: Record) -> bool:
    return _writes(record, b"__error__")


@pytest.mark.parametrize("face", EITHER_FACE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_dropped_results_are_noticed(tmp_path: Path, backend: str, shape: str, face: str) -> None:
    """Whatever of them is dropped, nothing runs; put back, only what failed runs again."""
    home, branches = tmp_path / "home", Branches(shape)
    with opened(backend, home) as store:
        branches.fail(branches.builder().compile(checkpointer=SealedSaver(store)), face)
        thread = bytes.fromhex(store.thread("t").id)
        assert store.verify().ok
    editor = editor_of(backend, path_of(backend, home))
    rows = editor.rows(thread)
    for dropped in (_is_done, _is_error, lambda record: _is_done(record) or _is_error(record)):
        kept = {seq: row for seq, row in rows.items() if not dropped(row)}
        assert len(kept) < len(rows), "the edit did not land"
        editor.put_rows(thread, kept)
        with opened(backend, home) as store:
            graph = branches.builder().compile(checkpointer=SealedSaver(store))
            found = ending(lambda: run(face, graph, None, config_of()))  # noqa: B023
        assert found is not None
        assert issubclass(found, ALARMS)
    assert branches.ran == ["pay"]
    editor.put_rows(thread, rows)
    with opened(backend, home) as store:
        graph = branches.builder().compile(checkpointer=SealedSaver(store))
        run(face, graph, None, config_of())

    assert branches.ran == ["pay", "tell"]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_stock_saver_pays_twice(tmp_path: Path, shape: str) -> None:
    """The control: without the rows of the finished branch, it runs again."""
    branches = Branches(shape)
    with closing(sqlite3.connect(tmp_path / "stock.db", check_same_thread=False)) as database:
        graph = branches.builder().compile(checkpointer=SqliteSaver(database))
        branches.fail(graph, "sync")
        found = database.execute("DELETE FROM writes WHERE channel <> '__resume__'")
        assert found.rowcount > 0, "the edit did not land"
        database.commit()
        graph.invoke(None, config_of())

    assert branches.ran.count("pay") == 2
