# SPDX-License-Identifier: Apache-2.0
"""The world of a workflow: its capabilities, as far as they are visible without running it.

- `code`: every module of the application that holds the workflow, with its definitions; the other
  modules of its packages are the rest of the `application`.
- `runtime`: the versions of Python, of the framework's packages, and of the other imports.
- `tools`: each tool of an agent, with the description and the schema that a model sees, and its
  configuration; of a server, its start command or its address.
- `permissions`: the tools that are called without approval.
- `model`: for each agent its client: class, model, settings, the origin of the address, and digests
  of its tools.
- `prompts`: instructions and descriptions of agents, the prompts of their managers, and files that
  were declared.
- `agents`: workflows inside executors, each with its own world.
- `topology`: executors, edges, the start and the outputs of a run, the functions of each executor,
  the middleware and context providers of agents with their configuration, and the unsealed sources
  that agents read.

Names that the framework draws at random (of workflows, groups of edges, agents without a name) do
not count: two processes that build the same workflow give the same world. Of a server's environment
the world has only the names.
"""

import json
import re
from abc import ABC
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    BaseAgent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Executor,
    FanOutEdgeGroup,
    FunctionalWorkflow,
    FunctionalWorkflowDefinition,
    FunctionTool,
    InMemoryHistoryProvider,
    Message,
    ResponseStream,
    SessionContext,
    StepWrapper,
    SwitchCaseEdgeGroup,
    Workflow,
    WorkflowCheckpoint,
    WorkflowEvent,
    WorkflowMessage,
    normalize_tools,
)
from agent_framework._mcp import MCPTool
from agent_framework._middleware import BaseMiddlewarePipeline
from agent_framework._workflows._edge import InternalEdgeGroup
from pydantic.errors import PydanticUserError

from sealpoint.adapters.object_search import (
    Found,
    Frameworks,
    Kinds,
    Memory,
    Parts,
    Search,
    attributes,
)
from sealpoint.adapters.unsealed_inputs import UNSEALED
from sealpoint.adapters.world_parts import (
    WorldDraft,
    declared_files,
    json_digest,
    kind_of,
    model_settings,
    origin_of,
    plain_setting,
    plain_value,
    put,
    settings_of,
)
from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import JSON, Tool, World
from sealpoint_agent_framework._unsealed_inputs import unsealed_of

_CORE = "agent_framework"
_PACKAGES = (
    *("a2a", "ag_ui", "anthropic", "azure_ai_search", "azure_contentunderstanding", "azure_cosmos"),
    *("azurefunctions", "bedrock", "chatkit", "claude", "copilotstudio", "declarative", "devui"),
    *("durabletask", "foundry", "foundry_hosting", "foundry_local", "gemini", "github_copilot"),
    *("hyperlight", "mem0", "mistral", "monty", "ollama", "openai", "orchestrations", "purview"),
    *("redis", "tools"),
)
_ADDRESSES = ("base_url", "_base_url", "endpoint", "azure_endpoint", "project_endpoint", "host")
"""The attributes in which the clients of providers keep the address."""
_TOLD_APART = frozenset({"instructions", "response_format", "tool_choice", "tools"})
_TOLD_ALIKE = ("response_format", "tool_choice")
_OF_TOOL = frozenset({"description", "func", "input_model", "name"})
"""The fields of a tool that its schema covers or whose functions are listed."""
_OF_SERVER = frozenset({"args", "command", "description", "name", "url"})
_AROUND_CLIENT = ("chat_middleware", "function_middleware")
_DRAWN = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""A name that was drawn at random."""


def world_of(
    workflow: Any,
    *,
    extra: Mapping[str, JSON] | None = None,
    files: Iterable[str | PurePath] = (),
) -> World:
    """The world of a workflow, built of executors or of functions.

    Args:
        workflow: The workflow.
        extra: Other values, by name, whose change needs approval.
        files: Data files of the application, such as prompts: files, and folders with all their
            files.

    Raises:
        UsageError: The value is not a workflow.
        WorldInvalid: The workflow has more than a world can hold, or a name in it is taken.
    """
    if not isinstance(workflow, _WORKFLOWS):
        found = type(workflow).__name__
        raise UsageError(
            f"workflow: expected a workflow, found {found}", hint="Call .build() first."
        )
    return _WorkflowWorld(workflow, [], Memory()).world(extra or {}, declared_files(files))


def world_again(
    workflow: Any,
    before: Memory | None,
    *,
    tools: Any = None,
    files: Iterable[str | PurePath] = (),
    watched: Mapping[str, JSON] | None = None,
) -> tuple[World, Memory]:
    """The world of a workflow that may have been analyzed before, and the results for next time.

    Args:
        workflow: The workflow.
        before: The results of the previous analysis.
        tools: Tools among the arguments of one run.
        files: Data files of the application.
        watched: Values that the application watches.

    Raises:
        WorldInvalid: The workflow has more than a world can hold, or a file does not exist.
    """
    memory = Memory(before)
    found = _WorkflowWorld(workflow, [], memory)
    if tools is not None:
        found.add_tools(normalize_tools(tools))
    return found.world(watched or {}, declared_files(files)), memory


# ---------------------------------------------------------------------- the parts


class _OfFramework(ABC):  # noqa: B024 - nothing is derived from it
    """Objects of the framework's classes, and of classes that an application derives from them."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return any(map(FRAMEWORKS.has_class, kind.__mro__))


def _find_workflow(search: Search, found: Found) -> None:
    search.parts.graphs.append(found.value)


def _find_data(search: Search, found: Found) -> None:
    """Messages and values of a run; the gate judges these as its state."""


def _find_agent(search: Search, found: Found) -> None:
    search.parts.agents.append(found.value)
    client = attributes(found.value).get("client")
    if client is not None and not isinstance(client, BaseChatClient):
        search.parts.models.append(client)
    search.enter(found.value, found.place)


def _find_executor(search: Search, found: Found) -> None:
    agent = attributes(found.value).get("_agent")
    if agent is not None and not isinstance(agent, BaseAgent):
        search.parts.agents.append(agent)  # whatever has the methods of an agent is one
    search.enter(found.value, found.place)


def _find_client(search: Search, found: Found) -> None:
    """A client of a model: the code around it, and the values in an application's own one."""
    client, place = found.value, found.place
    search.parts.models.append(client)
    fields = attributes(client)
    around = (*_AROUND_CLIENT, "compaction_strategy", "tokenizer")
    search.add([fields.get(each) for each in around], place)
    search.add([_invocation(fields).get("additional_tools")], place)
    _enter_own(search, client, place)


def _invocation(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a client calls tools by itself."""
    found = fields.get("function_invocation_configuration")
    return found if isinstance(found, Mapping) else {}


def _find_tool(search: Search, found: Found) -> None:
    tool, place = found.value, f"tool.{found.value.name}"
    search.parts.tools.append(tool)
    fields = attributes(tool)
    given = ("func", "result_parser", "_instance", "parse_tool_results", "parse_prompt_results")
    search.add([fields.get(each) for each in given], place)
    asks = ("sampling_approval_callback", "_header_provider")
    search.add([fields.get(each) for each in asks], place)
    _enter_own(search, tool, place)


def _enter_own(search: Search, value: Any, place: str) -> None:
    """Analyze an object of a class that an application derived; the framework's is known."""
    search.note(type(value))
    if not FRAMEWORKS.has_class(type(value)):
        search.enter(value, place)


def _find_step(search: Search, found: Found) -> None:
    step = found.value
    search.parts.objects.append(step)
    fields = attributes(step)
    search.add([fields.get("_func"), fields.get("_replay_key")], f"step.{step.name}")


def _find_object(search: Search, found: Found) -> None:
    """A middleware, a provider, a manager, without the values that it collects while it runs."""
    if type(found.value) is InMemoryHistoryProvider:
        return  # the framework gives one to an agent when it first runs
    search.parts.objects.append(found.value)
    search.enter(found.value, found.place, remembered=True)


_WORKFLOWS = (Workflow, FunctionalWorkflow, FunctionalWorkflowDefinition)
_DATA = (
    *(Message, Content, AgentSession, SessionContext, AgentResponse, AgentResponseUpdate),
    *(ChatResponse, ChatResponseUpdate, ResponseStream, WorkflowCheckpoint, WorkflowEvent),
    *(WorkflowMessage, BaseMiddlewarePipeline),
)
FRAMEWORKS = Frameworks(
    *(_CORE, *(f"{_CORE}_{each}" for each in _PACKAGES)),
    apart=(BaseAgent, BaseChatClient, Executor, FunctionTool, MCPTool, *_WORKFLOWS),
)

KINDS = Kinds(
    noun="workflow",
    frameworks=FRAMEWORKS,
    forms=(
        (_WORKFLOWS, _find_workflow),
        ((FunctionTool, MCPTool), _find_tool),
        (BaseChatClient, _find_client),
        (BaseAgent, _find_agent),
        (Executor, _find_executor),
        (StepWrapper, _find_step),
        (_DATA, _find_data),
        (_OfFramework, _find_object),
    ),
    collected=(
        *_WORKFLOWS,
        BaseAgent,
        BaseChatClient,
        Executor,
        FunctionTool,
        MCPTool,
        StepWrapper,
    ),
)
"""The analysis of each kind of framework object."""


# ---------------------------------------------------------------------- the world


class _WorkflowWorld:
    """The world of one workflow, while it is built."""

    def __init__(self, workflow: Any, above: list[Any], memory: Memory) -> None:
        self._workflow = workflow
        self._memory = memory
        self._around = [*above, workflow]
        self._draft = WorldDraft(memory, FRAMEWORKS)
        self._draft.add_package(_CORE)
        self._agents: dict[str, Any] = {}
        self._unsealed: dict[str, Any] = {}
        self._steps: set[str] = set()
        drawn = (each for name in self._executors for each in _DRAWN.findall(name))
        self._drawn = {each: f"unnamed {n}" for n, each in enumerate(dict.fromkeys(drawn), 1)}

    @property
    def _executors(self) -> dict[str, Executor]:
        return self._workflow.executors if isinstance(self._workflow, Workflow) else {}

    def _name(self, text: str) -> str:
        """A text, with the place of an executor where a name was drawn for it."""
        if not self._drawn:
            return text
        return _DRAWN.sub(lambda found: self._drawn.get(found[0], found[0]), text)

    def add_tools(self, tools: Iterable[Any]) -> None:
        """Add tools that every agent is given."""
        tools = list(tools)
        self._add("run", tools, "run")
        self._add_hosted("run", tools)

    def world(self, extra: Mapping[str, JSON], files: Mapping[str, str] | None = None) -> World:
        if isinstance(self._workflow, Workflow):
            topology = self._graph()
        else:
            self._add("workflow", self._workflow._func, "workflow")  # noqa: SLF001
            topology = {"steps": dict.fromkeys(self._steps, True)}
        told = {"agents": self._agents, UNSEALED: self._unsealed}
        topology |= {name: part for name, part in told.items() if part}
        inner = len(self._around) > 1
        return self._draft.world(topology=topology, extra=extra, files=files, inner=inner)

    def _graph(self) -> dict[str, Any]:
        """Analyze executors and edges, and describe their connections."""
        workflow, executors = self._workflow, {}
        for given, executor in sorted(self._executors.items()):
            name = self._name(given)
            self._add(name, executor, f"executor.{name}")
            executors[name] = {"kind": self._kind(executor), **self._settings(executor)}
        edges: dict[str, Any] = {}
        for group in workflow.edge_groups:
            if not isinstance(group, InternalEdgeGroup):  # each executor has one, to itself
                self._add_edges(edges, group)
        outputs = workflow._output_designation  # noqa: SLF001 - it has no other name
        return {
            "executors": executors,
            "edges": edges,
            "start": self._name(workflow.start_executor_id),
            "outputs": "all" if outputs.outputs is None else self._names(outputs.outputs),
            "intermediate_outputs": self._names(outputs.intermediates),
            "max_iterations": workflow.max_iterations,
        }

    def _names(self, given: Iterable[str]) -> dict[str, bool]:
        return dict.fromkeys((self._name(each) for each in given), True)

    def _add_edges(self, edges: dict[str, Any], group: Any) -> None:
        selects = getattr(group, "selection_func", None)
        targets = [self._name(each) for each in group.target_executor_ids]
        if selects is None and isinstance(group, FanOutEdgeGroup):
            targets.sort()  # all of them are sent to, and some builders keep them in a set
        sources = [self._name(each) for each in group.source_executor_ids]
        number, joined = 1, f"{', '.join(sources)} -> {', '.join(targets)}"
        name = joined
        while name in edges:
            number += 1
            name = f"{joined} ({number})"
        edges[name] = {"kind": self._kind(group)}
        if isinstance(group, SwitchCaseEdgeGroup):
            for number, case in enumerate(group.cases, 1):
                told = getattr(case, "condition_name", "otherwise")
                edges[name][f"case {number}"] = f"{told} -> {self._name(case.target_id)}"
                condition = attributes(case).get("_condition")
                self._add(sources[0], condition, f"edge.{name}, case {number}")
        elif selects is not None:
            edges[name]["selects"] = group.selection_func_name
            self._add(sources[0], selects, f"edge.{name}")
        for edge in group.edges:
            if edge.has_condition:
                edges[name]["condition"] = edge.condition_name
                self._add(sources[0], attributes(edge)["_condition"], f"edge.{name}")

    def _add(self, holder: str, runs: Any, place: str) -> None:
        parts = KINDS.parts_of(runs, place, self._memory)
        self._draft.add_parts(parts)
        for tool in parts.tools:
            self._add_tool(holder, tool)
        self._add_agents(holder, parts)
        for each in parts.objects:
            if isinstance(each, StepWrapper):
                self._steps.add(each.name)
            else:
                self._draft.add_settings(holder, each)
        for workflow in parts.graphs:
            if not any(workflow is each for each in self._around):
                inner = _WorkflowWorld(workflow, self._around, self._memory)
                self._draft.add_inner(holder, inner.world({}), inner._draft)
                for each, held in inner._unsealed.items():
                    for called, what in held.items():
                        put(self._unsealed.setdefault(each, {}), f"{holder}: {called}", what)

    def _settings(self, value: Any) -> dict[str, Any]:
        """The configuration of an object, without random names."""
        told = settings_of(value, FRAMEWORKS)
        made: dict[str, Any] = json.loads(self._name(json.dumps(told)))
        return made

    def _add_agents(self, holder: str, parts: Parts) -> None:
        for agent in parts.agents:
            self._add_agent(holder, agent)
        clients = [attributes(agent).get("client") for agent in parts.agents]
        for client in parts.models:
            if not any(client is each for each in clients):
                put(self._draft.models, holder, self._model(client, {}, ()))

    def _add_agent(self, holder: str, agent: Any) -> None:
        fields = attributes(agent)
        name = self._name(getattr(agent, "name", None) or holder)
        given = fields.get("default_options")
        options: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        tools = [*(options.get("tools") or ()), *(fields.get("mcp_tools") or ())]
        self._add_hosted(name, tools)
        if fields.get("client") is not None:
            put(self._draft.models, name, self._model(fields["client"], options, tools))
        self._add_prompt(name, options.get("instructions"))
        self._add_prompt(f"{name}: description", getattr(agent, "description", None))
        made: dict[str, Any] = {"kind": self._kind(agent)}
        for each in ("middleware", "context_providers"):
            held = (it for it in fields.get(each) or () if type(it) is not InMemoryHistoryProvider)
            kinds = [self._kind(value) for value in held]
            made |= {each: kinds} if kinds else {}
        put(self._agents, name, made)
        for each, called, what in unsealed_of(name, agent):
            put(self._unsealed.setdefault(each, {}), called, what)

    def _add_prompt(self, name: str, text: Any) -> None:
        if isinstance(text, Mapping):
            for key, value in text.items():
                self._add_prompt(f"{name} {key}", value)
        elif isinstance(text, list | tuple):
            for each in text:
                self._add_prompt(name, each)
        elif isinstance(text, str):
            put(self._draft.prompts, name, text)

    def _model(
        self, client: Any, options: Mapping[str, Any], tools: Iterable[Any]
    ) -> dict[str, Any]:
        own = attributes(client)
        given = {name: each for name, each in options.items() if name not in _TOLD_APART}
        made = model_settings(client, given, FRAMEWORKS, self._memory)
        made |= {name: _setting_label(options[name]) for name in _TOLD_ALIKE if name in options}
        made["class"] = self._kind(client)
        for name, value in {**attributes(own.get("client")), **own}.items():
            origin = origin_of(str(value)) if name in _ADDRESSES else None
            made |= {} if origin is None else {name.strip("_"): origin}
        told = (self._definition(tool) for tool in tools)
        parts = {
            "tools": {name: json_digest(definition) for name, definition, _ in told},
            "middleware": [
                self._kind(each) for name in _AROUND_CLIENT for each in own.get(name) or ()
            ],
            "function_invocation": plain_setting(dict(_invocation(own)), FRAMEWORKS),
        }
        return made | {name: part for name, part in parts.items() if part}

    def _add_hosted(self, holder: str, tools: Iterable[Any]) -> None:
        """Add tools that are not objects of the framework, which the analysis of objects misses."""
        for tool in tools:
            if not isinstance(tool, FunctionTool | MCPTool | _OfFramework):
                self._add_tool(holder, tool)

    def _add_tool(self, holder: str, tool: Any) -> None:
        name, definition, launch = self._definition(tool)
        called = self._draft.add_tool(holder, Tool(name, definition, launch))
        if getattr(tool, "approval_mode", None) != "always_require":
            self._draft.unasked.add(called)

    def _definition(self, tool: Any) -> tuple[str, dict[str, Any], str | None]:
        """The name of a tool, its description for the model, and how to start or reach it."""
        launch = None
        if isinstance(tool, FunctionTool):
            name, told = tool.name, _function_definition(tool)
        elif isinstance(tool, MCPTool):
            name, told, launch = tool.name, *_server_definition(tool)
        elif isinstance(tool, Mapping):
            name, told, launch = _hosted_definition(tool)
        else:
            name, told = str(getattr(tool, "name", None) or kind_of(tool)), {"kind": kind_of(tool)}
        self._kind(tool)
        try:
            plain = json.loads(self._name(json.dumps(plain_value(told))))
        except (TypeError, ValueError) as exc:
            raise WorldInvalid(f"tool {name!r}: its definition cannot be written as JSON") from exc
        return self._name(name), plain, launch

    def _kind(self, value: Any) -> str:
        """The name of a function, or of an object's class; note which packages are used."""
        for package in map(FRAMEWORKS.package_of, type(value).__mro__):
            if package in FRAMEWORKS:
                self._draft.add_package(package)
        named = FRAMEWORKS.reference_to(getattr(value, "__func__", value))
        return named or str(FRAMEWORKS.reference_to(type(value)))


def _function_definition(tool: FunctionTool) -> dict[str, Any]:
    try:
        schema = tool.parameters()
    except (PydanticUserError, TypeError, ValueError) as exc:
        raise WorldInvalid(f"tool {tool.name!r}: its arguments have no JSON schema") from exc
    told = settings_of(tool, FRAMEWORKS)
    settings = {name: each for name, each in told.items() if name not in _OF_TOOL}
    return {**settings, "description": tool.description, "inputSchema": schema}


def _server_definition(tool: MCPTool) -> tuple[dict[str, Any], str | None]:
    fields, told = attributes(tool), settings_of(tool, FRAMEWORKS)
    told = {name: each for name, each in told.items() if name not in _OF_SERVER}
    if fields.get("args"):
        told["args"] = json_digest([str(each) for each in fields["args"]])
    launch = fields.get("command") or origin_of(fields.get("url"))
    kind = FRAMEWORKS.reference_to(type(tool))
    return {**told, "kind": kind, "description": tool.description}, launch


def _hosted_definition(tool: Mapping[str, Any]) -> tuple[str, dict[str, Any], str | None]:
    """A tool that the provider receives unchanged."""
    inner = tool.get("function")
    fields = {**tool, **inner} if isinstance(inner, Mapping) else dict(tool)
    name = str(fields.get("name") or fields.get("server_label") or fields.get("type") or "tool")
    told = {key: value for key, value in fields.items() if key not in ("name", "function")}
    return name, plain_setting(told, FRAMEWORKS), origin_of(fields.get("server_url"))


def _setting_label(value: Any) -> Any:
    """A setting that may be a class or an object, by its name and the digest of its content."""
    if isinstance(value, Mapping):
        return json_digest(plain_value(value))
    if not isinstance(value, type):
        return value
    schema = getattr(value, "model_json_schema", None)
    try:
        return f"{kind_of(value)} {json_digest(schema())}" if schema else kind_of(value)
    except (PydanticUserError, TypeError, ValueError) as exc:
        raise WorldInvalid(f"response_format {kind_of(value)!r}: it has no JSON schema") from exc
