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
- `topology`: nodes, what triggers them, edges, branches, and where the graph stops for people.

Secrets are left out by construction: of a model only fields of the closed list are read, and only
plain texts and numbers of those. Two processes that run the same code give the same world.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import SystemMessage
from langchain_core.tools import BaseTool
from langgraph.pregel import Pregel
from langgraph.pregel._write import ChannelWriteEntry
from pydantic.errors import PydanticUserError

from sealpoint.adapters.langgraph._function_code import Memory, joined_digest
from sealpoint.adapters.langgraph._graph_parts import Model, Parts, parts_of
from sealpoint.config import code_of, imported_name
from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import JSON, Code, Tool, World

_PACKAGES = (
    *("langchain", "langchain-core", "langgraph", "langgraph-checkpoint", "langgraph-prebuilt"),
)
_NAMES = ("model", "model_name", "model_id", "deployment_name", "azure_deployment")
_SETTINGS = (
    *("temperature", "top_p", "top_k", "n", "seed", "stop", "stop_sequences", "max_tokens"),
    *("max_output_tokens", "max_completion_tokens", "max_tokens_to_sample", "num_ctx"),
    *("frequency_penalty", "presence_penalty", "reasoning_effort", "tool_choice"),
    *("parallel_tool_calls", "strict"),
)
_ADDRESSES = ("base_url", "openai_api_base", "anthropic_api_url", "azure_endpoint", "endpoint_url")
_LIST_MAX = 64


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
    made = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for package in _PACKAGES:
        try:
            version = code_of(package).version
        except WorldInvalid:
            continue  # not all of them are needed
        if version is not None:
            made[package] = version
    return made


class _World:
    """The world of one graph, being put together."""

    def __init__(self, graph: Any, above: list[Any], memory: Memory) -> None:
        self._graph = graph
        self._memory = memory
        self._around = [*above, graph]
        self._code: dict[str, set[str]] = {}
        self._tools: dict[str, Tool] = {}
        self._bound: dict[str, dict[str, Any]] = {}
        self._models: dict[str, Any] = {}
        self._prompts: dict[str, str] = {}
        self._agents: dict[str, World] = {}

    def world(self, extra: Mapping[str, JSON]) -> World:
        for name, node in self._graph.nodes.items():
            runs = [node.bound, node.mapper, *node.writers]
            self._add(name, parts_of(runs, f"node.{name}", self._memory))
        for start, branches in _branches(self._graph).items():
            for name, branch in branches.items():
                self._add(start, parts_of(branch.path, f"branch.{start}.{name}", self._memory))
        for name, channel in self._graph.channels.items():
            operator = getattr(channel, "operator", None)
            if operator is not None:
                self._add(name, parts_of(operator, f"channel.{name}", self._memory))
        for name, definition in self._bound.items():
            # Mostly a node has the tool itself, and a model is told the same of it.
            if name not in self._tools:
                self._tools[name] = Tool(name, definition)
        return World(
            code=Code(
                modules={place: joined_digest(sorted(each)) for place, each in self._code.items()},
            ),
            tools=self._tools.values(),
            model=self._models,
            prompts=self._prompts,
            agents=self._agents,
            topology=_topology(self._graph),
            runtime=_runtime(),
            extra=extra,
        )

    def _add(self, node: str, parts: Parts) -> None:
        for place, digests in parts.code.items():
            self._code.setdefault(place, set()).update(digests)
        for tool in parts.tools:
            self._add_tool(node, tool.name, _definition(tool))
        for model in parts.models:
            bound = _bound_tools(model.bound.get("tools"))
            self._bound |= bound
            _put(self._models, node, _model(model, bound))
        for prompt in parts.prompts:
            _put(self._prompts, node, _prompt_text(prompt))
        for graph in parts.graphs:
            if not any(graph is each for each in self._around):
                _put(self._agents, node, _World(graph, self._around, self._memory).world({}))

    def _add_tool(self, node: str, name: str, definition: dict[str, Any]) -> None:
        made = Tool(name, definition)
        if name in self._tools and self._tools[name] != made:
            # Another tool of the same name, in another node.
            made = Tool(f"{name} of {node}", definition)
        self._tools[made.name] = made


def _put(into: dict[str, Any], name: str, value: Any) -> None:
    """Put a value under a name that is free: `agent`, `agent 2`, and so on; each value once."""
    place, number = name, 1
    while place in into:
        if into[place] == value:
            return
        number += 1
        place = f"{name} {number}"
    into[place] = value


def _topology(graph: Any) -> dict[str, Any]:
    builder = getattr(graph, "builder", None)
    nodes = {
        name: {
            "triggers": dict.fromkeys(node.triggers, True),
            "writes": _writes(node.writers),
            "kind": _kind(node.bound),
        }
        for name, node in graph.nodes.items()
    }
    made: dict[str, Any] = {
        "nodes": nodes,
        "channels": {name: _kind(channel) for name, channel in graph.channels.items()},
        "interrupt_before": _stops(graph.interrupt_before_nodes),
        "interrupt_after": _stops(graph.interrupt_after_nodes),
    }
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


def _kind(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    return f"{imported_name(kind.__module__)}.{kind.__qualname__}"


def _definition(tool: BaseTool) -> dict[str, Any]:
    """What a model is told of a tool, and whether its result ends the run."""
    made = {"description": tool.description, "inputSchema": _json_schema(tool)}
    return {**made, "return_direct": True} if tool.return_direct else made


def _json_schema(tool: BaseTool) -> Any:
    try:
        schema: Any = tool.tool_call_schema
        if isinstance(schema, dict):
            return _plain(schema)
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
            found[str(name)] = _plain({key: told[key] for key in told if key != "name"})
    return found


def _model(found: Model, tools: Mapping[str, Any]) -> dict[str, Any]:
    """A model: its class, and what a closed list of its fields says in plain values."""
    made: dict[str, Any] = {"class": _kind(found.model)}
    fields = {**_fields(found.model), **found.bound}
    for name in (*_NAMES, *_SETTINGS):
        value = fields.get(name)
        if value is not None and _is_plain(value):
            made[name] = list(value) if isinstance(value, tuple) else value
    for name in _ADDRESSES:
        origin = _origin(fields.get(name))
        if origin is not None:
            made[name] = origin
    if tools:
        made["tools"] = {name: _digest(definition) for name, definition in tools.items()}
    return made


def _fields(model: Any) -> dict[str, Any]:
    found = getattr(model, "__dict__", None)
    return dict(found) if isinstance(found, dict) else {}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) <= _LIST_MAX and all(type(item) is str for item in value)
    return type(value) in (str, int, float, bool)


def _origin(address: Any) -> str | None:
    """Where a model is reached, without the rest of the address, which may hold a secret."""
    if type(address) is not str:
        return None
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else None


def _plain(value: Any) -> Any:
    """A value as plain JSON, with the names of classes in place of what is none."""
    return json.loads(json.dumps(value, default=_kind))


def _digest(value: Any) -> str:
    return joined_digest([json.dumps(value, sort_keys=True)])


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
