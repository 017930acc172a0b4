# SPDX-License-Identifier: Apache-2.0
"""`--graph` of `sealpoint rollout` and `resume`: the framework is told by what the object is."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

import sealpoint_langgraph as langgraph
from sealpoint.cli import main
from sealpoint.world import World
from sealpoint_agent_framework import SealedCheckpointStorage, guard, world_of
from tests.adapters.agent_framework import clerks
from tests.cli.machine import Machine

_HERE = sys.modules[__name__]


class _State(TypedDict, total=False):
    text: str


def _answer(state: _State) -> _State:
    return state


builder = StateGraph(_State).add_node("answer", _answer).add_edge(START, "answer")
graph: Any = builder.compile()
workflow = clerks.build()
number = 42


def _world(name: str) -> Result:
    return CliRunner().invoke(main, ["rollout", "world", "--graph", f"{__name__}:{name}"])


def _written(result: Result) -> World:
    return World.from_dict(json.loads(result.stdout))


def test_the_world_of_a_workflow_is_written() -> None:
    """A workflow, and a function that makes one, have the world that the adapter finds."""
    made, called = _world("workflow"), _world("clerks.build")

    assert made.exit_code == called.exit_code == 0, made.output
    assert _written(made) == world_of(workflow)
    assert called.stdout == made.stdout


def test_the_world_of_a_graph_is_written() -> None:
    """A graph is told from a workflow."""
    made = _world("graph")

    assert made.exit_code == 0, made.output
    assert _written(made) == langgraph.world_of(graph)


def test_a_guarded_workflow_has_the_world_that_it_declares(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the gate is told is what is planned with."""
    with machine.open() as store:
        storage = SealedCheckpointStorage(store)
        guarded = guard(clerks.build(), storage, actor="worker", world={"tools": ["declared"]})
        monkeypatch.setattr(_HERE, "guarded", guarded, raising=False)
        declared = _written(_world("guarded"))
        monkeypatch.setattr(_HERE, "guarded", guard(clerks.build(), storage, actor="worker"))
        found = _written(_world("guarded"))

    assert [tool.name for tool in declared.tools] == ["declared"]
    assert found == world_of(workflow)


def test_a_resume_is_judged_with_what_would_run(machine: Machine) -> None:
    """Without the workflow the dry run says how to name it; with two worlds it is wrong usage."""
    with machine.open() as store:
        store.thread("t").save({}, world=world_of(workflow))
    named = ("--graph", f"{__name__}:workflow")
    without = machine.run("resume", "t")

    assert (without.exit_code, "--graph MODULE:OBJECT" in without.stdout) == (70, True)
    assert machine.done("resume", "t", *named).startswith("ALLOWED: ")
    assert machine.refused("resume", "t", *named, "--world", "-") == (2, "usage")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("number", ("a graph or workflow of a framework that has an adapter, found int",)),
        ("_HERE", ("a graph or workflow of a framework that has an adapter, found module",)),
        ("builder", ("expected a compiled graph, found StateGraph", "hint: Call .compile() first")),
        (
            "clerks.WorkflowBuilder.__init__",
            ("calling it to make what runs raised TypeError", "hint:"),
        ),
    ],
)
def test_what_is_neither_is_refused(name: str, words: tuple[str, ...]) -> None:
    """The message names what either framework has."""
    refused = _world(name)

    assert refused.exit_code == 2
    assert all(each in refused.output for each in words), refused.output


def test_a_rollout_of_a_workflow_is_planned(machine: Machine) -> None:
    """What differs between the world of a thread and that of the new workflow is told."""
    with machine.open() as store:
        store.thread("letters").save({"step": 1}, world=world_of(clerks.build()))
    shown = machine.done("rollout", "plan", "--graph", f"{clerks.__name__}:serve")

    assert "1 thread: 0 in this world already" in shown
    assert "+ tool files" in shown
    assert "1 thread: 1 in this world already" in machine.done(
        "rollout", "plan", "--graph", f"{clerks.__name__}:build"
    )


def test_no_framework_is_imported_to_tell_them_apart(tmp_path: Path) -> None:
    """An application without a framework plans without one."""
    (tmp_path / "app.py").write_text("import sealpoint\nWORLD = sealpoint.World(tools=['read'])\n")
    program = (
        "import sys\n"
        "from sealpoint.cli import main\n"
        "main(['rollout', 'world', '--graph', 'app:WORLD'], standalone_mode=False)\n"
        "print({'langgraph', 'langchain_core', 'agent_framework'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.endswith("set()\n")
