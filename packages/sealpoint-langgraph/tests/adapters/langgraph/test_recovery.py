# SPDX-License-Identifier: Apache-2.0
"""What cannot be read costs nothing: an attack that is refused leaves the way on as it was."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from sealpoint.errors import Edited
from sealpoint_langgraph import SealedSaver, guard
from tests.adapters.langgraph.stores import opened

_CONFIG: Any = {"configurable": {"thread_id": "invoice-7"}}


class _State(TypedDict):
    amount: str
    paid: str


def _pay(state: _State) -> dict[str, str]:
    return {"paid": state["amount"] if interrupt("pay?") else "nothing"}


def _graph() -> Any:
    builder = StateGraph(_State)
    builder.add_node("pay", _pay)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", END)
    return builder.compile()


def test_an_edited_state_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    """The good copy of the file goes on afterwards: the refused call has written nothing."""
    home = tmp_path / "home"
    with opened("sqlite", home) as store:
        guard(_graph(), SealedSaver(store), actor="clerk").invoke({"amount": "250.00"}, _CONFIG)
    file = home / "disk" / "agents.db"
    good = file.read_bytes()
    with closing(sqlite3.connect(file)) as database, database:
        for table, column in (("entries", "payload"), ("blobs", "data")):
            database.execute(
                f"UPDATE {table} SET {column} = "  # noqa: S608 (the names stand above)
                f"CAST(replace({column}, '250.00', '950.00') AS BLOB)"
            )
    assert file.read_bytes() != good
    with opened("sqlite", home) as store:
        graph = guard(_graph(), SealedSaver(store), actor="clerk")
        with pytest.raises(Edited):
            graph.invoke(Command(resume=True), _CONFIG)
    file.write_bytes(good)
    with opened("sqlite", home) as store:
        graph = guard(_graph(), SealedSaver(store), actor="clerk")

        assert graph.invoke(Command(resume=True), _CONFIG)["paid"] == "250.00"
        assert store.verify().ok
