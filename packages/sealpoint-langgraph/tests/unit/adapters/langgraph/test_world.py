# SPDX-License-Identifier: Apache-2.0
"""The world of a graph names what it can do, the same in every process, and holds no secret."""

import functools
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langsmith import traceable
from pydantic import BaseModel, SecretStr

from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import LeafClass, World, WorldDiff
from sealpoint_langgraph._world import KINDS, world_again, world_of


class State(TypedDict):
    """The state of the graphs here."""

    text: str


class Scripted(GenericFakeChatModel):
    """A model with a name, settings and four secrets."""

    model_name: str = "scripted-1"
    temperature: float = 0.5
    api_key: SecretStr = SecretStr("secret-1")
    openai_api_key: str = "secret-2"
    base_url: str = "https://user:secret-3@models.example:8443/v1?key=secret-4"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Bind tools in the form of a provider."""
        told = [
            {"type": "function", "function": {"name": each.name, "description": each.description}}
            for each in tools
        ]
        return self.bind(tools=told, api_key="secret-5", **kwargs)


def _model(**settings: Any) -> Scripted:
    return Scripted(messages=iter([AIMessage("x")]), **settings)


def _tool(name: str = "pay", description: str = "Move money.", kind: type = int) -> BaseTool:
    def run(amount: Any) -> str:
        return str(amount)

    run.__annotations__["amount"] = kind
    return StructuredTool.from_function(run, name=name, description=description)


def _graph(node: Any, *tools: BaseTool, name: str = "work", **compiled: Any) -> Any:
    builder = StateGraph(State).add_node(name, node).add_edge(START, name)
    if tools:
        builder.add_node("tools", ToolNode(list(tools))).add_edge(name, "tools")
    return builder.compile(**compiled)


def _echo(state: State) -> State:
    return state


def _other_echo(state: State) -> State:
    return {"text": state["text"] + "!"}


def _diff(before: Any, after: Any) -> WorldDiff:
    return world_of(before).diff(world_of(after))


def test_the_same_graph_has_the_same_world() -> None:
    """Building a graph twice gives worlds without a difference."""
    assert _diff(_graph(_echo, _tool()), _graph(_echo, _tool())).same


def test_another_function_in_a_node_is_named() -> None:
    """Which function runs in a node counts, also where both are in one module."""
    diff = _diff(_graph(_echo), _graph(_other_echo))

    assert diff.differs == {LeafClass.TOPOLOGY}
    assert diff.lines() == (
        f"~ topology runs: - node.work/{__name__}._echo, + node.work/{__name__}._other_echo",
    )


def test_one_more_tool_is_named() -> None:
    """A tool that was added widens the world, and the more if nobody is asked about it."""
    diff = _diff(_graph(_echo, _tool()), _graph(_echo, _tool(), _tool("shell_exec")))

    assert diff.differs == {LeafClass.PERMISSIONS, LeafClass.TOOLS, LeafClass.TOPOLOGY}
    assert diff.lines() == (
        '+ permission "call shell_exec without asking"',
        "+ tool shell_exec",
        "~ topology runs: + tool.shell_exec",
    )


def test_another_description_of_a_tool_is_named() -> None:
    """What a model is told of a tool is part of the world."""
    diff = _diff(_graph(_echo, _tool()), _graph(_echo, _tool(description="Move any money.")))

    assert "~ tool pay: description" in " ".join(diff.lines())


def test_another_schema_of_a_tool_is_named() -> None:
    """The arguments of a tool are part of the world."""
    diff = _diff(_graph(_echo, _tool()), _graph(_echo, _tool(kind=str)))

    assert "~ tool pay: inputSchema/properties/amount/type integer -> string" in diff.lines()


def test_edges_and_stops_are_named() -> None:
    """A graph that no longer stops for people before its tools is another one."""
    one = _graph(_echo, _tool(), interrupt_before=["tools"])
    diff = _diff(one, _graph(_echo, _tool()))

    assert diff.differs == {LeafClass.PERMISSIONS}
    assert diff.lines() == ("~ topology interrupt_before: - tools",)


@pytest.mark.parametrize("hidden", ["closure", "default", "method", "partial", "global", "list"])
def test_tools_and_models_are_found_wherever_a_node_keeps_them(
    hidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closures, defaults, objects, partials, globals and lists are looked through."""
    bound = _model().bind_tools([_tool("search", "Look.")])

    class Agent:
        def __init__(self) -> None:
            self.model = bound

        def run(self, state: State) -> Any:
            return self.model.invoke(state["text"])

    def closure(state: State) -> Any:
        return bound.invoke(state["text"])

    def default(state: State, kept: Any = bound) -> Any:
        return kept.invoke(state["text"])

    def partly(kept: Any, state: State) -> Any:
        return kept.invoke(state["text"])

    def listed(state: State, kept: Any = ({"a": [bound]},)) -> Any:
        return kept[0]["a"][0].invoke(state["text"])

    monkeypatch.setattr(sys.modules[__name__], "KEPT", bound, raising=False)
    nodes: dict[str, Any] = {
        "closure": closure,
        "default": default,
        "method": Agent().run,
        "partial": functools.partial(partly, bound),
        "global": _uses_global,
        "list": listed,
    }
    world = world_of(_graph(nodes[hidden]))

    assert [each.name for each in world.tools] == ["search"]
    assert world.model is not None
    assert world.model["work"]["model_name"] == "scripted-1"
    assert set(world.model["work"]["tools"]) == {"search"}


def _uses_global(state: State) -> Any:
    return KEPT.invoke(state["text"])  # type: ignore[name-defined] # noqa: F821


def test_model_name_settings_and_origin_are_told() -> None:
    """Another model, setting or address is another world, and says which."""
    one, other = _model(), _model(model_name="scripted-2", temperature=1.0)
    diff = _diff(_graph(one.bind()), _graph(other.bind()))
    world = world_of(_graph(one.bind()))

    assert diff.lines() == (
        "~ model work: model_name scripted-1 -> scripted-2, temperature 0.5 -> 1.0",
    )
    assert world.model is not None
    assert world.model["work"]["base_url"] == "https://models.example:8443"


def test_a_graph_that_is_looked_at_again_says_what_it_says_now() -> None:
    """Settings that were changed in place are told, also where Python calls both equal."""
    bound: Any = _model().bind(top_p=1)
    graph = _graph(bound)
    first, memory = world_again(graph, None)
    same, memory = world_again(graph, memory)
    values = (1, True, 1.0, 0.5)
    worlds = []
    for value in values:
        bound.kwargs["top_p"] = value
        world, memory = world_again(graph, memory)
        worlds.append(world.encode())

    assert same is first
    assert worlds == [world_of(_graph(_model().bind(top_p=value))).encode() for value in values]
    assert len(set(worlds)) == len(values)


def test_what_an_application_counts_in_its_model_is_no_setting() -> None:
    """Fields of its own are told as they were when the graph was first looked at."""
    model = _model(temperature=0.25)
    graph = _graph(model.bind())
    first, memory = world_again(graph, None)
    object.__setattr__(model, "temperature", 7.5)
    later, _ = world_again(graph, memory)

    assert first.diff(later).lines() == ()
    assert "0.25" in str(first.model)


def test_no_secret_gets_into_a_world() -> None:
    """Keys in fields, secret fields, bound arguments and addresses are left out."""
    model = _model()
    bound = model.bind_tools([_tool()], temperature=0.1)
    api_key = "secret-6"

    def node(state: State, key: str = "secret-7") -> Any:
        return bound.invoke(state["text"] + api_key + key)

    encoded = world_of(_graph(node, _tool())).encode()

    assert b"scripted-1" in encoded
    assert b"secret-" not in encoded


def test_prompts_are_told() -> None:
    """System messages and the fixed texts of templates are prompts of their node."""
    system = SystemMessage("Be careful.")
    template = ChatPromptTemplate.from_messages([("system", "You pay {who}."), ("human", "{x}")])

    def node(state: State) -> Any:
        return [system, template.invoke({"who": "ann", "x": state["text"]})]

    world = world_of(_graph(node))

    assert sorted(world.prompts.values()) == ["Be careful.", "You pay {who}.\n{x}"]


def test_a_subgraph_is_a_world_of_its_own() -> None:
    """As a node or called by one, a subgraph's tools are named with it."""
    inner = _graph(_echo, _tool("shell_exec"), name="inner")

    def calls(state: State) -> Any:
        return inner.invoke(state)

    for node in (inner, calls):
        world = world_of(_graph(node))

        assert "agent.work/tool.shell_exec" in world.leaves()
        assert world.tools == ()


@tool
def _lookup(key: str) -> str:
    """Look a key up."""
    return _total(key)


def _total(key: str) -> str:
    return key * 2


@task
def _pay(amount: int) -> str:
    return str(_lookup.invoke({"key": str(amount)}))


def test_entrypoints_tasks_and_functions_are_told() -> None:
    """Of the functional API the tasks count, their tools, and what all of them call."""

    @entrypoint()
    def flow(amount: int) -> str:
        return _pay(amount).result()

    world = world_of(flow)
    module, code = __name__, world.code
    flow_name = "test_entrypoints_tasks_and_functions_are_told.<locals>.flow"

    assert [each.name for each in world.tools] == ["_lookup"]
    assert world.topology["runs"] == {
        "node.flow": {f"{module}.{flow_name}": True},
        f"task.{module}._pay": {f"{module}._pay": True},
        "tool._lookup": {f"{module}._lookup": True},
    }
    assert code is not None
    assert {"", "_lookup", "_pay", "_total"} <= set(code.to_dict()["modules"][module])


def test_two_tools_of_one_name_are_both_told() -> None:
    """A tool of the same name in another node hides nothing."""
    builder = StateGraph(State)
    builder.add_node("a", ToolNode([_tool()])).add_node("b", ToolNode([_tool(kind=str)]))
    builder.add_edge(START, "a").add_edge("a", "b")

    assert [each.name for each in world_of(builder.compile()).tools] == ["pay", "pay of b"]


def test_a_class_based_tool_is_told_with_its_code() -> None:
    """A tool that is a class of the application has code too."""

    class Shell(BaseTool):
        name: str = "shell"
        description: str = "Run."

        def _run(self, command: str) -> str:
            return command

    world = world_of(_graph(_echo, Shell()))

    assert world.code is not None
    assert __name__ in world.code.modules
    assert world.tools[0].definition["inputSchema"]["required"] == ("command",)


def test_a_decorator_runs_in_its_node() -> None:
    """A wrapper that calls itself like what it wraps is told apart all the same."""

    def doubled(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(state: State) -> Any:
            return function(function(state))

        return wrapper

    diff = _diff(_graph(_echo), _graph(doubled(_echo)))
    wrapper = f"{__name__}.{doubled.__qualname__}.<locals>.wrapper"

    assert diff.lines() == (f"~ topology runs: + node.work/{wrapper}",)


def test_a_traced_node_is_told_by_its_own_code_and_the_tracer_by_its_version() -> None:
    """No function of the package that traces is looked through, and its version counts."""

    @traceable
    def answer(state: State) -> State:
        return state

    world = world_of(_graph(answer))

    assert world.code is not None
    assert not [name for name in world.code.modules if "langsmith" in name]
    assert world.runtime["langsmith"] == version("langsmith")


def test_extra_is_kept_and_cannot_replace_the_topology() -> None:
    """What the application adds is told beside what the graph says."""
    world = world_of(_graph(_echo), extra={"region": "eu"})

    assert world.extra["region"] == "eu"
    assert "edges" in world.topology
    with pytest.raises(WorldInvalid, match="topology"):
        world_of(_graph(_echo), extra={"topology": {}})


def test_what_is_no_compiled_graph_is_refused() -> None:
    """A builder has no world yet."""
    with pytest.raises(UsageError, match="compiled graph"):
        world_of(StateGraph(State))  # type: ignore[arg-type]


def test_a_search_without_end_is_refused() -> None:
    """A node that holds too much to look through is an error, not half a world."""
    held = [[number] for number in range(30_000)]

    def node(state: State) -> Any:
        return held, state

    with pytest.raises(WorldInvalid, match="holds more than"):
        KINDS.parts_of(node, "node.work")


def test_a_library_that_an_application_uses_is_not_looked_through() -> None:
    """What it does, the version of Python or of its distribution says."""

    def closing(call: Any) -> Any:
        return lambda state: call(state["text"])

    world = world_of(_graph(closing(json.dumps)))
    assert world.code is not None

    assert not {"json", "langgraph", "pytest"} & set(world.code.modules)
    assert {"langgraph", "pydantic", "python", "pytest"} <= set(world.runtime)


def test_a_tool_without_a_schema_is_refused() -> None:
    """Arguments that have no JSON schema cannot be shown to anybody."""

    class Arguments(BaseModel, arbitrary_types_allowed=True):
        raw: FunctionType

    broken = StructuredTool.from_function(
        repr, name="raw", description="Raw.", args_schema=Arguments
    )

    with pytest.raises(WorldInvalid, match="raw"):
        world_of(_graph(_echo, broken))


_AGENT = """
from typing import TypedDict

from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode


class State(TypedDict):
    text: str


def total(text):
    return text * 2


def answer(state: State) -> State:
    return {"text": total(state["text"])}


@tool
def pay(amount: int) -> str:
    '''Move money.'''
    return str(amount)


builder = StateGraph(State)
builder.add_node("answer", answer).add_node("tools", ToolNode([pay]))
graph = builder.add_edge(START, "answer").add_edge("answer", "tools").compile()
"""


@pytest.fixture
def world_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    """The world of a program after some of its text was replaced, each time in a new file."""

    def made(*changes: tuple[str, str]) -> World:
        text = _AGENT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "sp_agent.py").write_text(text)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(folder))
            sys.modules.pop("sp_agent", None)
            return world_of(importlib.import_module("sp_agent").graph)

    yield made
    sys.modules.pop("sp_agent", None)


def test_a_comment_or_another_format_is_the_same_world(
    world_after: Callable[..., World],
) -> None:
    """What a formatter or a comment changes is nothing that anybody is asked about."""
    edited = world_after(
        ("def answer", "# How it answers.\ndef answer"),
        (
            '    return {"text": total(state["text"])}',
            "    # twice\n    return {'text': (total(state['text']))}",
        ),
        ("    return text * 2", "\n    return (\n        text * 2  # two\n    )"),
    )

    assert edited == world_after()


def test_code_has_the_digests_that_checkpoints_were_saved_with(
    world_after: Callable[..., World],
) -> None:
    """A release of Sealpoint does not change the code of an application."""
    code = world_after().code
    assert code is not None

    assert code.to_dict() == {"modules": {"sp_agent": _FROZEN}}


_FROZEN = {
    "": "dbf71e5483a030ab85b3d6bbd1e2f2893ac1e25a086ca9453e2655cba4bec755",
    "State": "8aeae8f0882e",
    "total": "4532fff964bc",
    "answer": "2d9e172e3852",
    "pay": "c9d6de40f7f0",
}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("text * 2", "text * 3", ("~ code sp_agent: total",)),
        ("total(state", "str(state", ("~ code sp_agent: answer",)),
        ("return str(amount)", "return repr(amount)", ("~ code sp_agent: pay",)),
        ("builder = State", "LIMIT = 5\nbuilder = State", ("~ code sp_agent",)),
        ("text: str\n", "text: str\n    count: int\n", ("~ code sp_agent: State",)),
    ],
)
def test_the_changed_function_is_named(
    world_after: Callable[..., World], old: str, new: str, lines: tuple[str, ...]
) -> None:
    """Other code is told with its module and what differs in that."""
    diff = world_after().diff(world_after((old, new)))
    code = tuple(line for line in diff.lines() if line.startswith("~ code"))

    assert LeafClass.CODE in diff.differs
    assert code == lines


def test_the_docstring_of_a_tool_is_told_as_tool_and_code(
    world_after: Callable[..., World],
) -> None:
    """It is what a model reads of the tool, and part of the function."""
    diff = world_after().diff(world_after(("Move money.", "Move any money.")))

    assert diff.differs == {LeafClass.CODE, LeafClass.TOOLS}
    told = 'description "Move money." -> "Move any money."'
    assert diff.lines() == (
        "~ code sp_agent: pay",
        f"~ tool pay: {told}, inputSchema/{told}",
    )


def test_versions_are_told_of_all_that_the_application_uses() -> None:
    """The framework, what it requires, and what the application imports."""
    world = world_of(_graph(_echo))
    told = ("langgraph", "langchain-core", "langsmith", "pydantic")

    assert {name: world.runtime[name] for name in told} == {name: version(name) for name in told}
    assert world.runtime["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"


def test_the_started_program_has_the_world_that_it_has_when_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions and types of `__main__` are named as in any other process."""
    write = "    from sealpoint_langgraph import world_of\n"
    write += "    sys.stdout.buffer.write(world_of(graph).encode())\n"
    program = tmp_path / "sp_started.py"
    program.write_text(f"import sys\n{_AGENT}\nif __name__ == '__main__':\n{write}")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    imported = world_of(importlib.import_module("sp_started").graph)
    del sys.modules["sp_started"]

    assert World.decode(done.stdout) == imported


_PROGRAM = Path(__file__).with_name("program.py")


def test_two_processes_give_the_same_world() -> None:
    """Hashes that differ between processes leave the world alone."""
    started = [
        subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    found = [process.communicate()[0] for process in started]

    assert found[0] == found[1]
    assert len(World.decode(found[0]).tools) == 2
