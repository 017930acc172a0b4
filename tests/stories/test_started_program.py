# SPDX-License-Identifier: Apache-2.0
"""A thread that a started program wrote is read by whoever imports that program, and back."""

import os
import subprocess
import sys
from pathlib import Path

_AGENT = """
import sys
from dataclasses import dataclass
from typing import TypedDict

from langgraph.graph import START, StateGraph

import sealpoint
from sealpoint_langgraph import SealedSaver


@dataclass
class Invoice:
    number: str


class State(TypedDict, total=False):
    invoices: list[Invoice]


def add(state):
    found = state.get("invoices", [])
    return {"invoices": [*found, Invoice(str(len(found)))]}


builder = StateGraph(State)
builder.add_node("add", add)
builder.add_edge(START, "add")


def turn():
    with sealpoint.open_store(sys.argv[1]) as store:
        graph = builder.compile(checkpointer=SealedSaver.for_graph(builder, store))
        print(graph.invoke({}, {"configurable": {"thread_id": "t"}})["invoices"])


if __name__ == "__main__":
    turn()
"""


def test_one_thread_is_read_by_the_program_started_and_imported(tmp_path: Path) -> None:
    """`python agent.py`, `python -m agent` and `import agent` go on with one thread in turn."""
    for name in ("code", "store"):
        (tmp_path / name).mkdir()
    (tmp_path / "code" / "agent.py").write_text(_AGENT)
    url = f"sqlite:///{tmp_path / 'store' / 'agents.db'}"
    environment = {
        **os.environ,
        "SEALPOINT_CONFIG_DIR": str(tmp_path / "config"),
        "SEALPOINT_STATE_DIR": str(tmp_path / "state"),
    }
    said = [
        subprocess.run(
            [sys.executable, *arguments, url],
            cwd=tmp_path / "code",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for arguments in (
            ["-c", "import sys, sealpoint; sealpoint.init(sys.argv[1])"],
            ["agent.py"],
            ["-m", "agent"],
            ["-c", "import agent; agent.turn()"],
            ["agent.py"],
        )
    ]

    assert [line.count("Invoice(") for line in said] == [0, 1, 2, 3, 4]
