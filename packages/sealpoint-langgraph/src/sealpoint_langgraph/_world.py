# SPDX-License-Identifier: Apache-2.0
"""The world of a graph: its capabilities, as far as they are visible without running it.

- `code`: every module of the application that holds the graph, with its definitions; the other
  modules of its packages are the rest of the `application`.
- `runtime`: the versions of Python, of the frameworks, and of the application's other imports.
- `tools`: each tool that a node can reach, with the description and the schema that a model sees,
  and its configuration.
- `permissions`: the tools that are called without approval.
- `model`: for each node the models that it can reach: class, settings, the origin of the address,
  and digests of the tools bound to it.
- `prompts`: system messages and prompt templates that a node holds, and files that were declared.
- `agents`: subgraphs, each with its own world.
- `topology`: nodes, their triggers, edges, branches, breakpoints, the functions of each node, the
  configuration of middleware and policies, and the unsealed sources of the graph: a cache, a
  long-term memory, remote graphs.

Two processes that run the same code give the same world.
"""

from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.tools import BaseTool
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph.func import _TaskFunction
from langgraph.pregel import Pregel
from langgraph.pregel._write import ChannelWrite, ChannelWriteEntry
from langgraph.types import Command, Send
from pydantic.errors import PydanticUserError

from sealpoint.adapters.object_search import (
    Found,
    Frameworks,
    Kinds,
    Memory,
    Search,
    attributes,
    class_module,
)
from sealpoint.adapters.world_parts import (
    WorldDraft,
    declared_files,
    json_digest,
    kind_of,
    model_settings,
    plain_setting,
    plain_value,
    put,
    settings_of,
)
from sealpoint.config import imported_name
from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import JSON, Tool, World
from sealpoint_langgraph._unsealed_inputs import unsealed_of

TASK = "task."
"""The prefix of the places of tasks of the functional API."""

_PLUMBING = (RunnableCallable, RunnableLambda, RunnableSeq, RunnableSequence, ChannelWrite)
"""The framework's connecting objects: they have no configuration."""
_SET_UP = ("deepagents.", "langchain.", "langgraph.prebuilt.", "langgraph.types")
"""The modules of the framework whose other objects are configured: middleware, policies."""
_FAKES = "langchain_core.language_models.fake"
"""Models for tests, which count their calls in their fields."""


def world_of(
    graph: Pregel[Any, Any, Any, Any],
    *,
    extra: Mapping[str, JSON] | None = None,
    files: Iterable[str | PurePath] = (),
) -> World:
    """The world of a compiled graph or of an entrypoint of the functional API.

    Args:
        graph: The graph.
        extra: Other values, by name, whose change needs approval.
        files: Data files of the application, such as prompts: files, and folders with all their
            files.

    Raises:
        UsageError: The graph is not compiled.
        WorldInvalid: The graph has more than a world can hold, or a name in it is taken.
    """
    if not isinstance(graph, Pregel):
        found = type(graph).__name__
        raise UsageError(
            f"graph: expected a compiled graph, found {found}", hint="Call .compile() first."
        )
    return _World(graph, [], Memory()).world(extra or {}, declared_files(files))


def world_again(
    graph: Pregel[Any, Any, Any, Any],
    before: Memory | None,
    files: Iterable[str | PurePath] = (),
    watched: Mapping[str, JSON] | None = None,
) -> tuple[World, Memory]:
    """The world of a graph that may have been analyzed before, and the results for next time.

    Args:
        graph: The graph.
        before: The results of the previous analysis.
        files: Data files of the application.
        watched: Values that the application watches.

    Raises:
        WorldInvalid: The graph has more than a world can hold, or a file does not exist.
    """
    memory = Memory(before)
    return _World(graph, [], memory).world(watched or {}, declared_files(files)), memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model, with the arguments that it was bound with."""

    model: BaseLanguageModel[Any]
    bound: Mapping[str, Any]


def _find_graph(search: Search, found: Found) -> None:
    search.parts.graphs.append(found.value)


def _find_model(search: Search, found: Found) -> None:
    search.note(type(found.value))
    search.parts.models.append(Model(model=found.value, bound={}))


def _find_prompt(search: Search, found: Found) -> None:
    search.parts.prompts.append(found.value)


def _find_data(search: Search, found: Found) -> None:
    """Messages and values of a run; the gate judges these as its state."""


def _find_tool(search: Search, found: Found) -> None:
    """A tool, and the code that runs when it is called."""
    tool: BaseTool = found.value
    search.parts.tools.append(tool)
    search.enter(tool, f"tool.{tool.name}")


def _find_object(search: Search, found: Found) -> None:
    """A middleware or a policy, without the values that it collects while it runs."""
    search.parts.objects.append(found.value)
    search.enter(found.value, found.place, remembered=True)


def _find_runnable(search: Search, found: Found) -> None:
    if type(found.value) not in _PLUMBING:
        search.parts.objects.append(found.value)
    search.enter(found.value, found.place)


def _find_binding(search: Search, found: Found) -> None:
    bound: dict[str, Any] = {}
    inner = found.value
    while isinstance(inner, RunnableBindingBase):
        search.parts.objects.append(inner)
        bound = {**inner.kwargs, **bound}
        inner = inner.bound
    if isinstance(inner, BaseLanguageModel):
        search.note(type(inner))
        search.parts.models.append(Model(model=inner, bound=bound))
    else:
        search.add([inner], found.place)
    search.add(bound.values(), found.place)
    search.add([found.value.config, found.value.config_factories], found.place)


def _find_task(search: Search, found: Found) -> None:
    """A task: the place of its function's definition, and the framework's name for it."""
    function = found.value.func
    module, given = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    name = getattr(function, "__qualname__", "") or type(function).__qualname__
    if given and name.rpartition(".")[2] != given:
        name = f"{name}.{given}"
    place = f"{TASK}{imported_name(module)}.{name}"
    search.add([function], place)
    search.add([found.value.retry_policy, found.value.cache_policy], place)


FRAMEWORKS = Frameworks(
    *("deepagents", "langchain", "langchain_core", "langgraph", "langsmith"),
    apart=(BaseLanguageModel, BasePromptTemplate, BaseTool, Runnable, SystemMessage),
)


class _SetUp(ABC):  # noqa: B024 - nothing is derived from it
    """Configured objects, of the framework's classes or of classes derived from them."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        public = (each for each in kind.__mro__ if not each.__name__.startswith("_"))
        return any(class_module(each).startswith(_SET_UP) for each in public)


KINDS = Kinds(
    noun="graph",
    frameworks=FRAMEWORKS,
    forms=(
        (Pregel, _find_graph),
        (BaseTool, _find_tool),
        (BaseLanguageModel, _find_model),
        ((SystemMessage, BasePromptTemplate), _find_prompt),
        (RunnableBindingBase, _find_binding),
        (_TaskFunction, _find_task),
        ((BaseMessage, Command, Send), _find_data),
        (Runnable, _find_runnable),
        (_SetUp, _find_object),
    ),
    collected=(
        *(BaseLanguageModel, BasePromptTemplate, BaseTool, Pregel, Runnable, SystemMessage),
        _TaskFunction,
    ),
)
"""The analysis of each kind of framework object."""


class _World:
    """The world of one graph, while it is built."""

    def __init__(self, graph: Any, above: list[Any], memory: Memory) -> None:
        self._graph = graph
        self._memory = memory
        self._around = [*above, graph]
        self._bound: dict[str, dict[str, Any]] = {}
        self._asked: set[str] = set()
        self._draft = WorldDraft(memory, FRAMEWORKS)

    def world(self, extra: Mapping[str, JSON], files: Mapping[str, str] | None = None) -> World:
        graph, draft = self._graph, self._draft
        for package in ("langgraph", "langchain_core"):
            draft.add_package(package)
        for name, node in graph.nodes.items():
            policies = [node.retry_policy, node.cache_policy, getattr(node, "timeout", None)]
            self._add(name, [node.bound, node.mapper, *node.writers, policies], f"node.{name}")
        for start, branches in _branches(graph).items():
            for name, branch in branches.items():
                self._add(start, branch.path, f"branch.{start}.{name}")
        for name, channel in graph.channels.items():
            operator = getattr(channel, "operator", None)
            if operator is not None:
                self._add(name, operator, f"channel.{name}")
        held = [graph.config, graph.retry_policy, graph.cache_policy, *_schemas(graph)]
        self._add("graph", held, "graph")
        for name, definition in self._bound.items():
            # Usually a node has the tool itself, with the same description for the model.
            if name not in draft.tools:
                draft.tools[name] = Tool(name, definition)
        draft.unasked = {tool for tool in draft.tools if tool not in self._asked}
        inner = len(self._around) > 1
        return draft.world(topology=_topology(graph), extra=extra, files=files, inner=inner)

    def _add(self, node: str, runs: Any, place: str) -> None:
        draft, parts = self._draft, KINDS.parts_of(runs, place, self._memory)
        draft.add_parts(parts)
        for tool in parts.tools:
            draft.add_tool(node, self._memory.value_once(tool, partial(_tool, tool)))
        for model in parts.models:
            bound = _bound_tools(model.bound.get("tools"))
            self._bound |= bound
            put(draft.models, node, _model(model, bound, self._memory))
        for prompt in parts.prompts:
            put(draft.prompts, node, _prompt_text(prompt))
        for each in parts.objects:
            draft.add_settings(node, each)
            asks = attributes(each).get("interrupt_on")
            if isinstance(asks, dict):
                self._asked |= {str(name) for name, asked in asks.items() if asked}
        for graph in parts.graphs:
            if not any(graph is each for each in self._around):
                inner = _World(graph, self._around, self._memory)
                draft.add_inner(node, inner.world({}), inner._draft)


def _topology(graph: Any) -> dict[str, Any]:
    builder = getattr(graph, "builder", None)
    nodes = {
        name: {
            "triggers": dict.fromkeys(node.triggers, True),
            "writes": _writes(node.writers),
            "kind": kind_of(node.bound),
        }
        for name, node in graph.nodes.items()
    }
    made: dict[str, Any] = {
        "nodes": nodes,
        "channels": {name: kind_of(channel) for name, channel in graph.channels.items()},
        "interrupt_before": _stops(graph.interrupt_before_nodes),
        "interrupt_after": _stops(graph.interrupt_after_nodes),
    }
    unsealed = unsealed_of(graph)
    if unsealed:
        made["unsealed"] = unsealed
    config = plain_setting({**(graph.config or {}), "callbacks": None}, FRAMEWORKS)
    made |= {"config": config} if config else {}
    if graph.step_timeout is not None:
        made["step_timeout"] = graph.step_timeout
    if builder is not None:
        joined = (("+".join(sorted(starts)), end) for starts, end in builder.waiting_edges)
        made["edges"] = {f"{start} -> {end}": True for start, end in (*builder.edges, *joined)}
        made["branches"] = {
            f"{start}: {name}": {str(said): end for said, end in (branch.ends or {}).items()}
            for start, branches in _branches(graph).items()
            for name, branch in branches.items()
        }
    return made


def _writes(writers: Iterable[Any]) -> dict[str, bool]:
    """The channels that a node always writes: its edges, also if the builder omitted them."""
    entries = (entry for each in writers for entry in getattr(each, "writes", ()))
    return {entry.channel: True for entry in entries if isinstance(entry, ChannelWriteEntry)}


def _branches(graph: Any) -> Mapping[str, Mapping[str, Any]]:
    builder = getattr(graph, "builder", None)
    return {} if builder is None else builder.branches


def _schemas(graph: Any) -> list[Any]:
    """The classes of its state, whose validators run."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return [graph.context_schema]
    nodes = (node.input_schema for node in builder.nodes.values())
    return [graph.context_schema, *builder.schemas, *nodes]


def _stops(nodes: Any) -> dict[str, bool]:
    return dict.fromkeys([nodes] if isinstance(nodes, str) else nodes or (), True)


_TOLD = frozenset({"args_schema", "coroutine", "description", "func", "name"})
"""The fields of a tool that its schema covers or whose functions are listed."""


def _tool(tool: BaseTool) -> Tool:
    return Tool(tool.name, _definition(tool))


def _definition(tool: BaseTool) -> dict[str, Any]:
    """The description of a tool for a model, and its configuration."""
    told = settings_of(tool, FRAMEWORKS)
    settings = {name: each for name, each in told.items() if name not in _TOLD}
    return {**settings, "description": tool.description, "inputSchema": _json_schema(tool)}


def _json_schema(tool: BaseTool) -> Any:
    try:
        schema: Any = tool.tool_call_schema
        if isinstance(schema, dict):
            return plain_value(schema)
        told = getattr(schema, "model_json_schema", None) or schema.schema
        return told()
    except (PydanticUserError, TypeError, ValueError) as exc:
        raise WorldInvalid(f"tool {tool.name!r}: its arguments have no JSON schema") from exc


def _bound_tools(tools: Any) -> dict[str, dict[str, Any]]:
    """The definitions in the arguments of a bound model, in the form of each provider."""
    found: dict[str, dict[str, Any]] = {}
    for place, tool in enumerate(tools if isinstance(tools, list | tuple) else ()):
        if isinstance(tool, BaseTool):
            found[tool.name] = _definition(tool)
        elif isinstance(tool, Mapping):
            inner = tool.get("function")
            told = inner if isinstance(inner, Mapping) else tool
            name = told.get("name") or tool.get("type") or f"tool {place}"
            found[str(name)] = plain_value({key: told[key] for key in told if key != "name"})
    return found


def _model(found: Model, tools: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """A model, with what it was bound with, and digests of its tools."""
    bound = {name: value for name, value in found.bound.items() if name != "tools"}
    made = model_settings(found.model, bound, FRAMEWORKS, memory)
    for each in type(found.model).__mro__:
        if class_module(each).startswith(_FAKES):
            made = {name: made[name] for name in made if name not in each.__annotations__}
    made["class"] = kind_of(found.model)
    if tools:
        made["tools"] = {name: json_digest(definition) for name, definition in tools.items()}
    return made


def _prompt_text(prompt: Any) -> str:
    if isinstance(prompt, SystemMessage):
        return str(prompt.text)
    return "\n".join(_template_texts(prompt))


def _template_texts(template: Any) -> Iterable[str]:
    """The fixed texts of a prompt template, in order."""
    if isinstance(template, str):
        yield template
    elif isinstance(template, list | tuple):
        for each in template:
            yield from _template_texts(each)
    else:
        for name in ("messages", "prompt", "template", "content"):
            value = getattr(template, name, None)
            if value is not None:
                yield from _template_texts(value)
