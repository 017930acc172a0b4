# SPDX-License-Identifier: Apache-2.0
"""The world of a graph: what it is able to do, as far as it can be seen without running it.

- `code`: for each function of a node (`node.agent: answer`), a branch, a reducer, a tool or a task,
  and of the application's own functions and classes that these use by name, the digest of its code
  and of what its names lead to.
- `runtime`: the versions of Python and of the frameworks.
- `tools`: each tool that a node can reach, with the description and the schema that a model sees.
- `model`: for each node the models that it can reach: class, name, settings from a closed list,
  the origin of the address, and digests of the tools bound to it.
- `prompts`: system messages and prompt templates that a node holds.
- `agents`: subgraphs, each a world of its own.
- `topology`: nodes, what triggers them, edges, branches, where the graph stops for people, and what
  it reads that nobody has sealed: a cache, a long-term memory, remote graphs.

Secrets are left out by construction: of a model only fields of the closed list are read, and only
plain texts and numbers of those. Two processes that run the same code give the same world.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import SystemMessage
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.tools import BaseTool
from langgraph.func import _TaskFunction
from langgraph.pregel import Pregel
from langgraph.pregel._write import ChannelWriteEntry
from pydantic.errors import PydanticUserError

from sealpoint.adapters._function_code import Frameworks, Memory
from sealpoint.adapters._world_parts import (
    Found,
    Kinds,
    Search,
    WorldDraft,
    attributes,
    json_digest,
    kind_of,
    model_of,
    plain_json,
    put,
    runtime_of,
)
from sealpoint.adapters.langgraph._unsealed import unsealed_of
from sealpoint.config import imported_name
from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import JSON, Tool, World

TASK = "task."
"""What the places of tasks of the functional API begin with."""

# Code of these counts by their versions, not function by function: see `FRAMEWORKS`.
_PACKAGES = (
    *("deepagents", "langchain", "langchain-core", "langgraph", "langgraph-checkpoint"),
    *("langgraph-prebuilt", "langsmith"),
)
_MODEL_NAMES = (
    *("model", "model_name", "model_id", "deployment_name", "azure_deployment"),
    *("temperature", "top_p", "top_k", "n", "seed", "stop", "stop_sequences", "max_tokens"),
    *("max_output_tokens", "max_completion_tokens", "max_tokens_to_sample", "num_ctx"),
    *("frequency_penalty", "presence_penalty", "reasoning_effort", "tool_choice"),
    *("parallel_tool_calls", "strict"),
)
_ADDRESSES = ("base_url", "openai_api_base", "anthropic_api_url", "azure_endpoint", "endpoint_url")


def world_of(
    graph: Pregel[Any, Any, Any, Any], *, extra: Mapping[str, JSON] | None = None
) -> World:
    """The world of a compiled graph or of an entrypoint of the functional API.

    Args:
        graph: The graph.
        extra: What else a person should be asked about when it changes, by name.

    Raises:
        UsageError: It is no compiled graph.
        WorldInvalid: It says more than a world can hold, or a name in it is taken.
    """
    if not isinstance(graph, Pregel):
        found = type(graph).__name__
        raise UsageError(
            f"graph: expected a compiled graph, found {found}", hint="Call .compile() first."
        )
    return _World(graph, [], Memory()).world(extra or {})


def world_again(graph: Pregel[Any, Any, Any, Any], before: Memory | None) -> tuple[World, Memory]:
    """The world of a graph that may have been looked at before, and what was found this time.

    Raises:
        WorldInvalid: It says more than a world can hold.
    """
    memory = Memory(before)
    return _World(graph, [], memory).world({}), memory


@cache
def _runtime() -> dict[str, str]:
    """Which frameworks run; what is installed later is not what was imported."""
    return runtime_of(_PACKAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model, and what it was bound with."""

    model: BaseLanguageModel[Any]
    bound: Mapping[str, Any]


def _find_graph(search: Search, found: Found) -> None:
    search.parts.graphs.append(found.value)


def _find_model(search: Search, found: Found) -> None:
    search.parts.models.append(Model(model=found.value, bound={}))


def _find_prompt(search: Search, found: Found) -> None:
    search.parts.prompts.append(found.value)


def _find_tool(search: Search, found: Found) -> None:
    """A tool, and what runs when it is called."""
    tool: BaseTool = found.value
    search.parts.tools.append(tool)
    place, package = f"tool.{tool.name}", FRAMEWORKS.package_of(type(tool))
    runs = [getattr(tool, "func", None), getattr(tool, "coroutine", None)]
    if any(runs):
        search.add(runs, place, package)
        return
    methods = (inspect.getattr_static(type(tool), name, None) for name in ("_run", "_arun"))
    own = [method for method in methods if FRAMEWORKS.package_of(method) not in FRAMEWORKS]
    search.add(own, place, package)
    search.enter(tool, place, found.package)


def _find_binding(search: Search, found: Found) -> None:
    bound: dict[str, Any] = {}
    inner = found.value
    while isinstance(inner, RunnableBindingBase):
        bound = {**inner.kwargs, **bound}
        inner = inner.bound
    if isinstance(inner, BaseLanguageModel):
        search.parts.models.append(Model(model=inner, bound=bound))
    else:
        search.add([inner], found.place, found.package)
    search.add([bound.get("tools")], found.place, found.package)


def _find_task(search: Search, found: Found) -> None:
    """A task: where its function is defined, and what the framework calls it."""
    function = found.value.func
    module, given = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    name = getattr(function, "__qualname__", "") or type(function).__qualname__
    if given and name.rpartition(".")[2] != given:
        name = f"{name}.{given}"
    search.add([function], f"{TASK}{imported_name(module)}.{name}", found.package)


FRAMEWORKS = Frameworks("deepagents", "langchain", "langchain_core", "langgraph", "langsmith")

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
    ),
    objects=(Runnable,),
    collected=(
        *(BaseLanguageModel, BasePromptTemplate, BaseTool, Pregel, Runnable, SystemMessage),
        _TaskFunction,
    ),
    calls=("__call__", "invoke", "ainvoke"),
)
"""How the objects of the framework are looked at."""


class _World:
    """The world of one graph, being put together."""

    def __init__(self, graph: Any, above: list[Any], memory: Memory) -> None:
        self._graph = graph
        self._memory = memory
        self._around = [*above, graph]
        self._bound: dict[str, dict[str, Any]] = {}
        self._draft = WorldDraft(memory)

    def world(self, extra: Mapping[str, JSON]) -> World:
        for name, node in self._graph.nodes.items():
            self._add(name, [node.bound, node.mapper, *node.writers], f"node.{name}")
        for start, branches in _branches(self._graph).items():
            for name, branch in branches.items():
                self._add(start, branch.path, f"branch.{start}.{name}")
        for name, channel in self._graph.channels.items():
            operator = getattr(channel, "operator", None)
            if operator is not None:
                self._add(name, operator, f"channel.{name}")
        for name, definition in self._bound.items():
            # Mostly a node has the tool itself, and a model is told the same of it.
            if name not in self._draft.tools:
                self._draft.tools[name] = Tool(name, definition)
        return self._draft.world(topology=_topology(self._graph), runtime=_runtime(), extra=extra)

    def _add(self, node: str, runs: Any, place: str) -> None:
        draft, parts = self._draft, KINDS.parts_of(runs, place, self._memory)
        draft.add_code(parts)
        for tool in parts.tools:
            draft.add_tool(node, tool.name, _definition(tool))
        for model in parts.models:
            bound = _bound_tools(model.bound.get("tools"))
            self._bound |= bound
            put(draft.models, node, _model(model, bound))
        for prompt in parts.prompts:
            put(draft.prompts, node, _prompt_text(prompt))
        for graph in parts.graphs:
            if not any(graph is each for each in self._around):
                put(draft.agents, node, _World(graph, self._around, self._memory).world({}))


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
    if builder is not None:
        joined = (("+".join(sorted(starts)), end) for starts, end in builder.waiting_edges)
        made["edges"] = {f"{start} -> {end}": True for start, end in (*builder.edges, *joined)}
        made["branches"] = {
            f"{start}: {name}": dict.fromkeys(map(str, (branch.ends or {}).values()), True)
            for start, branches in _branches(graph).items()
            for name, branch in branches.items()
        }
    return made


def _writes(writers: Iterable[Any]) -> dict[str, bool]:
    """The channels that a node always writes: its edges, also if nobody told the builder."""
    entries = (entry for each in writers for entry in getattr(each, "writes", ()))
    return {entry.channel: True for entry in entries if isinstance(entry, ChannelWriteEntry)}


def _branches(graph: Any) -> Mapping[str, Mapping[str, Any]]:
    builder = getattr(graph, "builder", None)
    return {} if builder is None else builder.branches


def _stops(nodes: Any) -> dict[str, bool]:
    return dict.fromkeys([nodes] if isinstance(nodes, str) else nodes or (), True)


def _definition(tool: BaseTool) -> dict[str, Any]:
    """What a model is told of a tool, and whether its result ends the run."""
    made = {"description": tool.description, "inputSchema": _json_schema(tool)}
    return {**made, "return_direct": True} if tool.return_direct else made


def _json_schema(tool: BaseTool) -> Any:
    try:
        schema: Any = tool.tool_call_schema
        if isinstance(schema, dict):
            return plain_json(schema)
        told = getattr(schema, "model_json_schema", None) or schema.schema
        return told()
    except (PydanticUserError, TypeError, ValueError) as exc:
        raise WorldInvalid(f"tool {tool.name!r}: its arguments have no JSON schema") from exc


def _bound_tools(tools: Any) -> dict[str, dict[str, Any]]:
    """The definitions in what a model was bound with, in whatever form its provider has."""
    found: dict[str, dict[str, Any]] = {}
    for place, tool in enumerate(tools if isinstance(tools, list | tuple) else ()):
        if isinstance(tool, BaseTool):
            found[tool.name] = _definition(tool)
        elif isinstance(tool, Mapping):
            inner = tool.get("function")
            told = inner if isinstance(inner, Mapping) else tool
            name = told.get("name") or tool.get("type") or f"tool {place}"
            found[str(name)] = plain_json({key: told[key] for key in told if key != "name"})
    return found


def _model(found: Model, tools: Mapping[str, Any]) -> dict[str, Any]:
    """A model, with what it was bound with, and digests of its tools."""
    fields = {**attributes(found.model), **found.bound}
    made = model_of(kind_of(found.model), fields, _MODEL_NAMES, _ADDRESSES)
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
