# SPDX-License-Identifier: Apache-2.0
"""The world of a workflow names what it can do, the same in every process, and holds no secret."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    AgentSession,
    FunctionalWorkflow,
    FunctionTool,
    MCPStreamableHTTPTool,
    RunContext,
    WorkflowBuilder,
    step,
    workflow,
)
from agent_framework_orchestrations import (
    ConcurrentBuilder,
    GroupChatBuilder,
    HandoffBuilder,
    MagenticBuilder,
    SequentialBuilder,
)
from pydantic import create_model

from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import LeafClass, World
from sealpoint_agent_framework._world import world_again, world_of
from tests.adapters.agent_framework import clerks
from tests.cpu_time import CpuTime

_CLERKS = Path(clerks.__file__)
_LOOKS = 25
_LOOK_SECONDS_MAX = 0.02
_WorldAfter = Callable[..., World]


@pytest.fixture
def world_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_WorldAfter]:
    """The world of a program after some of its text was replaced, each time in a new file."""

    def made(*changes: tuple[str, str]) -> World:
        text = _CLERKS.read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "sp_clerks.py").write_text(text, encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(folder))
            sys.modules.pop("sp_clerks", None)
            return world_of(importlib.import_module("sp_clerks").serve())

    yield made
    sys.modules.pop("sp_clerks", None)


def test_a_comment_or_another_format_is_the_same_world(world_after: _WorldAfter) -> None:
    """What a formatter or a comment changes is nothing that anybody is asked about."""
    edited = world_after(
        ("        if len(message)", "        # Long ones.\n        if len(message)"),
        ('return f"paid {amount}"', 'return (\n        f"paid {amount}"\n    )'),
    )

    assert edited == world_after()


_CODE, _TOOLS, _MODEL = LeafClass.CODE, LeafClass.TOOLS, LeafClass.MODEL
_PROMPTS, _TOPOLOGY = LeafClass.PROMPTS, LeafClass.TOPOLOGY
_CHANGES: dict[str, tuple[str, str, set[LeafClass], str]] = {
    "a handler": (
        "await ctx.request_info(message, str)",
        "await ctx.request_info(message[:5], str)",
        {_CODE},
        "~ code sp_clerks: Clerk.read",
    ),
    "a response handler": (
        'f"{request}: {answer}"',
        "answer",
        {_CODE},
        "~ code sp_clerks: Clerk.answered",
    ),
    "what a handler uses": (
        "return 40",
        "return 4000",
        {_CODE},
        "~ code sp_clerks: limit",
    ),
    "a function executor": (
        "message.upper()",
        "message.lower()",
        {_CODE},
        "~ code sp_clerks: file",
    ),
    "a condition": (
        "return bool(message)",
        "return True",
        {_CODE},
        "~ code sp_clerks: is_order",
    ),
    "a case": (
        '"done" in message',
        '"" in message',
        {_CODE},
        "~ code sp_clerks: is_done",
    ),
    "a middleware": (
        "    del context\n",
        "    context.metadata.clear()\n",
        {_CODE},
        "~ code sp_clerks: audit",
    ),
    "a context provider": (
        "Be brief.",
        "Be long.",
        {_CODE},
        "~ code sp_clerks: Memo.before_run",
    ),
    "a tool's code": (
        'f"paid {amount}"',
        'f"paid {amount * 2}"',
        {_CODE},
        "~ code sp_clerks: pay",
    ),
    "a tool's description": (
        "Move money.",
        "Move any money.",
        {_CODE, _TOOLS, _MODEL},
        '~ tool pay: description "Move money." -> "Move any money."',
    ),
    "a tool's schema": (
        "amount: int",
        "amount: float",
        {_CODE, _TOOLS, _MODEL},
        "~ tool pay: inputSchema/properties/amount/type integer -> number",
    ),
    "nobody is asked": (
        'approval_mode="always_require"',
        'approval_mode="never_require"',
        {_CODE, _TOOLS, _MODEL, LeafClass.PERMISSIONS},
        "~ tool pay: approval_mode always_require -> never_require",
    ),
    "no tool": ("            pay,\n", "", {_CODE, _MODEL, _TOPOLOGY}, "- tool pay"),
    "a hosted tool": (
        '"type": "web_search"',
        '"type": "code_interpreter"',
        {_TOOLS, _MODEL, LeafClass.PERMISSIONS},
        "+ tool code_interpreter",
    ),
    "a server": (
        "serve-files",
        "serve-all",
        {_TOOLS},
        "~ tool files: launch serve-files -> serve-all",
    ),
    "instructions": (
        "You write letters.",
        "You write checks.",
        {_PROMPTS},
        '~ prompt writer "You write letters." -> "You write checks."',
    ),
    "a model": (
        "scripted-1",
        "scripted-2",
        {_MODEL},
        "~ model writer: model scripted-1 -> scripted-2",
    ),
    "a setting": ("0.5", "1.5", {_MODEL}, "~ model writer: temperature 0.5 -> 1.5"),
    "an address": (
        "@models.example",
        "@other.example",
        {_CODE, _MODEL},
        "~ model writer: base_url https://models.example:8443 -> https://other.example:8443",
    ),
    "an edge": (
        "builder.add_edge(file, desk)",
        "builder.add_edge(file, desk).add_edge(file, writer)",
        {_TOPOLOGY},
        '~ topology edges: + "file -> writer"',
    ),
    "no condition": (
        ", condition=is_order",
        "",
        {_CODE, _TOPOLOGY},
        '~ topology runs: - "edge.clerk -> file"',
    ),
    "no middleware": (
        "[audit]",
        "[]",
        {_CODE, _TOPOLOGY},
        "~ topology agents: - writer/middleware",
    ),
    "iterations": (
        "max_iterations=50",
        "max_iterations=99",
        {_TOPOLOGY},
        "~ topology max_iterations 50 -> 99",
    ),
    "the workflow inside": (
        "stamped",
        "signed",
        {_CODE},
        "~ code sp_clerks: stamp",
    ),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_a_change_is_named_in_its_class(world_after: _WorldAfter, change: str) -> None:
    """Other tools, instructions, models and edges are told, and always the module."""
    old, new, differs, line = _CHANGES[change]
    diff = world_after().diff(world_after((old, new)))

    assert diff.differs == differs | {_CODE}, diff.lines()
    assert line in diff.lines()


def test_no_secret_gets_into_a_world() -> None:
    """Keys, passwords in addresses, environments and what a provider alone is told stay out."""
    told = json.dumps({**world_of(clerks.serve()).to_dict(), "code": None})

    assert "models.example" in told
    assert '"KEY"' in told
    assert "secret" not in told


def test_a_tool_that_is_added_after_the_first_look_is_found() -> None:
    """A workflow is looked at again at each run, because anybody in the process can change it."""
    workflow = clerks.build()
    before, memory = world_again(workflow, None)
    agent: Any = workflow.executors["writer"].agent  # type: ignore[attr-defined]
    agent.default_options["tools"].append(FunctionTool(name="shell", func=clerks.limit))
    agent.middleware.append(clerks.is_order)
    after, _ = world_again(workflow, memory)

    lines = before.diff(after).lines()
    assert {"+ tool shell", '+ permission "call shell without asking"'} <= set(lines)
    assert "executor.writer" in "".join(each for each in lines if each.startswith("~ topology"))


def test_tools_that_one_run_brings_along_are_told() -> None:
    """They are given to every agent."""
    workflow = clerks.build()
    before, memory = world_again(workflow, None)
    after, _ = world_again(workflow, memory, tools=[clerks.limit, {"type": "computer"}])

    assert before.diff(after).lines() == (
        '+ permission "call computer without asking"',
        '+ permission "call limit without asking"',
        "+ tool computer",
        "+ tool limit",
        "~ topology runs: + tool.limit",
    )


def _agent(name: str | None, **named: Any) -> Agent:
    instructions = named.pop("instructions", f"You are {name}.")
    named.setdefault("tools", [clerks.pay])
    return Agent(clerks.Chat("scripted-1"), instructions, name=name, **named)


def _participants(**named: Any) -> list[Agent]:
    return [_agent("ann", **named), _agent("bob", **named)]


def _choose(state: Any) -> str:
    return "ann" if state else "bob"


def _stop(messages: Any) -> bool:
    return len(messages) > 3


def _join(results: Any) -> str:
    return str(len(results))


def _handoff(start: Agent, other: Agent) -> HandoffBuilder:
    built = HandoffBuilder(participants=[start, other], termination_condition=_stop)
    return built.with_start_agent(start)


_ORCHESTRATIONS: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "sequential": (lambda: SequentialBuilder(participants=_participants()), set()),
    "concurrent": (
        lambda: ConcurrentBuilder(participants=_participants()).with_aggregator(_join),
        {"_join"},
    ),
    "group chat": (
        lambda: GroupChatBuilder(
            participants=_participants(), selection_func=_choose, termination_condition=_stop
        ),
        {
            "_choose",
            "_stop",
        },
    ),
    "managed group chat": (
        lambda: GroupChatBuilder(
            participants=_participants(), orchestrator_agent=_agent("boss"), max_rounds=3
        ),
        set(),
    ),
    "handoff": (
        lambda: _handoff(*_participants(require_per_service_call_history_persistence=True)),
        {"_stop"},
    ),
    "magentic": (
        lambda: MagenticBuilder(
            participants=_participants(), manager_agent=_agent("boss"), final_answer_prompt="End."
        ),
        set(),
    ),
}


@pytest.mark.parametrize("name", _ORCHESTRATIONS)
def test_orchestrations_are_seen_with_agents_tools_and_managers(name: str) -> None:
    """What the framework's builders make is looked through like what an application connects."""
    make, code = _ORCHESTRATIONS[name]
    world = world_of(make().build())
    assert world.code is not None
    assert world.model is not None
    agents = {"ann", "bob"} | ({"boss"} if name in {"managed group chat", "magentic"} else set())

    assert world == world_of(make().build())
    assert agents == set(world.model)
    assert {each: f"You are {each}." for each in agents}.items() <= world.prompts.items()
    assert "pay" in {tool.name for tool in world.tools}
    runs: Any = world.topology.get("runs", {})
    told = {each.rpartition(".")[2] for names in runs.values() for each in names}
    assert code <= told, runs
    assert {"agent-framework-core", "agent-framework-orchestrations"} <= set(world.runtime)


def write_worlds() -> None:
    """Write the digests of the worlds of this module; run in processes of their own."""
    made = {name: make().build() for name, (make, _) in _ORCHESTRATIONS.items()}
    unnamed = SequentialBuilder(participants=[_agent(None), _agent(None)]).build()
    for name, each in {**made, "clerks": clerks.serve(), "unnamed": unnamed}.items():
        sys.stdout.write(f"{name} {world_of(each).digest}\n")


def test_two_processes_give_the_same_worlds() -> None:
    """Names that are drawn at random, and hashes that differ between processes, do not show."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", f"import {__name__} as it; it.write_worlds()"],
            cwd=Path(__file__).parents[5],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    found = [process.communicate()[0].splitlines() for process in started]

    assert found[0] == found[1]
    assert len(found[0]) == len(_ORCHESTRATIONS) + 2


def test_the_started_program_has_the_world_that_it_has_when_it_is_imported(
    tmp_path: Path, world_after: _WorldAfter
) -> None:
    """Functions and classes of `__main__` are named as in any other process."""
    program = tmp_path / "sp_clerks.py"
    program.write_bytes(_CLERKS.read_bytes())
    done = subprocess.run([sys.executable, str(program)], capture_output=True, check=True)

    assert World.decode(done.stdout).diff(world_after()).lines() == ()


async def _run(workflow: Any, message: str) -> list[Any]:
    result = await workflow.run(message)
    return list(result.get_outputs())


def test_a_run_leaves_the_world_as_it_was() -> None:
    """What executors and agents keep of a run is its state, and not what they are able to do."""
    workflow = clerks.build()
    before, memory = world_again(workflow, None)
    outputs = asyncio.run(_run(workflow, "an order"))
    after, _ = world_again(workflow, memory)

    assert outputs[-1] == "done"
    assert before.diff(after).lines() == ()
    assert world_of(workflow) == before


@pytest.mark.parametrize("name", ["sequential", "concurrent", "group chat", "handoff"])
def test_a_run_leaves_the_world_of_an_orchestration_as_it_was(name: str) -> None:
    """Rounds, conversations and turns are state."""
    workflow = _ORCHESTRATIONS[name][0]().build()
    before, memory = world_again(workflow, None)
    asyncio.run(_run(workflow, "an order"))
    after, _ = world_again(workflow, memory)

    assert before.diff(after).lines() == ()
    assert world_of(workflow) == before


def test_what_manages_agents_is_told() -> None:
    """Prompts of a manager, and the tools by which agents hand over, are in the world."""
    magentic = world_of(_ORCHESTRATIONS["magentic"][0]().build())
    handoff = world_of(_ORCHESTRATIONS["handoff"][0]().build())

    assert magentic.prompts["magentic_orchestrator: final_answer_prompt"] == "End."
    assert {"handoff_to_ann", "handoff_to_bob"} <= {tool.name for tool in handoff.tools}


def test_agents_without_a_name_are_told_by_their_place() -> None:
    """The framework draws a name for them, anew each time that they are made."""
    built = [
        world_of(SequentialBuilder(participants=[_agent(None), _agent(None)]).build())
        for _ in range(2)
    ]

    assert built[0] == built[1]
    assert {"unnamed 1", "unnamed 2"} <= set(built[0].model or ())


def _function(text: str) -> FunctionalWorkflow:
    with warnings.catch_warnings(action="ignore"):  # the framework calls them experimental

        @step(name="look")
        async def look(to: str) -> str:
            return f"{text} {to}"

        @workflow(name="pays")
        async def pays(to: str, ctx: RunContext) -> str:
            await ctx.request_info(clerks.limit(), bool)
            return await look(to)

        return pays.build()


def test_a_functional_workflow_is_told_with_its_steps() -> None:
    """The function, its steps and what they use are looked at."""
    world = world_of(_function("looks at"))
    assert world.code is not None

    assert world == world_of(_function("looks at"))
    assert world.topology["steps"] == {"look": True}
    runs: Any = world.topology["runs"]
    assert runs["step.look"] == {f"{__name__}._function.<locals>.look": True}
    assert runs["workflow"] == {f"{__name__}._function.<locals>.pays": True}
    assert {__name__, clerks.__name__} <= set(world.code.modules)


def test_a_server_is_told_by_its_origin_and_what_is_allowed() -> None:
    """Of an address the path, the name and the password stay out."""
    server = MCPStreamableHTTPTool(
        "books",
        "https://ann:secret-1@books.example/secret-2?key=secret-3",
        allowed_tools=["search", "read"],
        approval_mode="always_require",
        static_headers={"Authorization": "secret-4"},
        header_provider=_headers,
    )
    built = SequentialBuilder(participants=[_agent("ann", tools=[server])]).build()
    (tool,) = world_of(built).tools

    assert tool.launch == "https://books.example"
    assert tool.definition["allowed_tools"] == ("search", "read")
    assert tool.definition["approval_mode"] == "always_require"
    told = world_of(built).to_dict()
    assert "secret" not in json.dumps({**told, "code": None})
    assert f"{__name__}._headers" in told["topology"]["runs"]["tool.books"]


class _Duck:
    """An agent that is derived from nothing, and asks another one."""

    id, name, description = "duck", "duck", "Quacks."

    def __init__(self, asked: Agent) -> None:
        self.asked = asked

    def run(self, *_: Any, **__: Any) -> Any:
        """Ask."""
        return self.asked.run("?")

    def create_session(self, **_: Any) -> AgentSession:
        """Begin."""
        return AgentSession()

    def get_session(self, *_: Any, **__: Any) -> AgentSession:
        """Go on."""
        return AgentSession()


class _Longer:
    """A condition that is an object."""

    def __call__(self, message: Any) -> bool:
        return len(message) > 1


def _chain(first: Any, second: Any, **edge: Any) -> World:
    builder = WorkflowBuilder(start_executor=first).add_edge(first, second, **edge)
    return world_of(builder.build())


def test_whatever_the_framework_calls_is_told() -> None:
    """Agents of no known class, conditions that are objects, and an agent that is a tool count."""
    inner = _agent("inner", tools=[_agent("deep", description="Deep.").as_tool()])
    duck: Any = _Duck(inner)
    world = _chain(clerks.file, AgentExecutor(duck), condition=_Longer())
    assert world.code is not None

    assert {"inner": "You are inner.", "deep": "You are deep."}.items() <= world.prompts.items()
    assert {"deep", "pay"} == {tool.name for tool in world.tools}
    assert __name__ in world.code.modules


def test_a_workflow_that_is_an_agent_is_a_world_of_its_own() -> None:
    """So are functional workflows."""
    inner = SequentialBuilder(participants=_participants()).build()
    with warnings.catch_warnings(action="ignore"):
        function: Any = _function("looks at").as_agent(name="looks")
    world = _chain(AgentExecutor(inner.as_agent(name="letters")), AgentExecutor(function))

    for name, held in {"letters": inner, "looks": _function("looks at")}.items():
        told = world_of(held).to_dict()
        # The code of all of them is that of the application.
        del told["code"], told["runtime"]
        assert world.agents[name].to_dict() == told


def test_what_stands_around_an_agent_is_told_with_its_switches() -> None:
    """The framework's own middleware has no code to compare; how it is set up counts."""

    def told(**switches: Any) -> World:
        with warnings.catch_warnings(action="ignore"):  # the framework calls it experimental
            security = importlib.import_module("agent_framework.security")
            policy = security.PolicyEnforcementFunctionMiddleware(**switches)
        return _chain(clerks.file, _agent("ann", middleware=[policy]))

    kind = "agent_framework.PolicyEnforcementFunctionMiddleware"
    around = told(allow_untrusted_tools={"pay", "look"}, block_on_violation=True)
    agents: Any = around.topology["agents"]
    loose = told(allow_untrusted_tools={"pay", "look"}, block_on_violation=False)
    line = '+ "ann: PolicyEnforcementFunctionMiddleware/block_on_violation" false'

    assert agents["ann"]["middleware"] == (kind,)
    assert around.diff(loose).lines() == (f"~ topology settings: {line}",)


def test_how_a_client_calls_tools_is_told() -> None:
    """Its bounds and switches, its middleware, and tools that it alone knows."""

    def told(**changes: Any) -> World:
        agent = _agent("ann")
        client: Any = agent.client
        client.function_invocation_configuration |= changes
        client.function_middleware.append(clerks.audit)
        return _chain(clerks.file, agent)

    before = told()
    tool = FunctionTool(name="hidden", func=clerks.limit)
    diff = before.diff(told(disable_approval_response_binding=True, additional_tools=[tool]))

    assert {"+ tool hidden", '+ permission "call hidden without asking"'} <= set(diff.lines())
    assert any("disable_approval_response_binding" in line for line in diff.lines())
    assert f"{clerks.__name__}.audit" in before.to_dict()["topology"]["runs"]["executor.ann"]


def test_a_tool_without_a_schema_is_refused() -> None:
    """A world that could not tell a tool would be half a world."""
    made = create_model("Made", call=(Callable[[], int], ...))
    tool = FunctionTool(name="odd", func=clerks.limit, input_model=made)

    with pytest.raises(WorldInvalid, match="tool 'odd'"):
        _chain(clerks.file, _agent("ann", tools=[tool]))


def test_a_second_look_is_cheap() -> None:
    """A workflow is looked at before every run: sources and schemas are read once."""
    workflow = clerks.serve()
    _, memory = world_again(workflow, None)
    with CpuTime() as cpu_time:
        for _ in range(_LOOKS):
            _, memory = world_again(workflow, memory)

    assert cpu_time.seconds / _LOOKS < _LOOK_SECONDS_MAX


def _headers(named: dict[str, Any]) -> dict[str, str]:
    return {"number": str(len(named))}


def test_what_is_no_workflow_is_refused() -> None:
    """A builder has no world yet."""
    with pytest.raises(UsageError, match="expected a workflow") as refused:
        world_of(WorkflowBuilder(start_executor=clerks.stamp))

    assert "build()" in str(refused.value.hint)


def test_extra_is_kept_and_cannot_replace_the_topology() -> None:
    """What the application adds stands beside what was found."""
    found = world_of(clerks.build(), extra={"region": "eu"})

    assert found.extra["region"] == "eu"
    with pytest.raises(WorldInvalid):
        world_of(clerks.build(), extra={"topology": {}})
