# SPDX-License-Identifier: Apache-2.0
"""The world of a workflow: what it is able to do, as far as it can be seen without running it.

- `code`: for each handler of an executor (`executor.writer: Writer.write`), each condition and
  selection of an edge, each tool, step and middleware, and for the application's own functions and
  classes that these use by name, the digest of its code and of what its names lead to.
- `runtime`: the versions of Python and of those packages of the framework that the workflow uses.
- `tools`: each tool of an agent, with the description and the schema that a model sees, and when
  somebody is asked before it is called; of a server, how it is started or where it is.
- `model`: for each agent its client: class, model, settings from a closed list, the origin of the
  address, and digests of its tools.
- `prompts`: instructions and descriptions of agents, and the prompts of what manages them.
- `agents`: workflows inside of executors, each a world of its own.
- `topology`: executors, edges, where a run begins, what it gives out, and the middleware and
  context providers of agents.

Secrets are left out by construction: of clients and of the framework's objects only fields of
closed lists are read, and of a server's environment only the names. Names that the framework draws
at random (of workflows, groups of edges, agents without a name) do not count: two processes that
build the same workflow give the same world.
"""

import functools
import json
import re
from abc import ABC
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from agent_framework import (
    AgentMiddleware,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    BaseAgent,
    BaseChatClient,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    Executor,
    FanOutEdgeGroup,
    FunctionalWorkflow,
    FunctionalWorkflowDefinition,
    FunctionMiddleware,
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

from sealpoint.adapters._function_code import Frameworks, Memory
from sealpoint.adapters._world_parts import (
    Found,
    Kinds,
    Parts,
    Search,
    WorldDraft,
    attributes,
    json_digest,
    kind_of,
    model_of,
    origin_of,
    put,
    runtime_of,
    settings_of,
)
from sealpoint.errors import UsageError, WorldInvalid
from sealpoint.world import JSON, World

_CORE = "agent_framework"
_PACKAGES = (
    *("a2a", "ag_ui", "anthropic", "azure_ai_search", "azure_contentunderstanding", "azure_cosmos"),
    *("azurefunctions", "bedrock", "chatkit", "claude", "copilotstudio", "declarative", "devui"),
    *("durabletask", "foundry", "foundry_hosting", "foundry_local", "gemini", "github_copilot"),
    *("hyperlight", "mem0", "mistral", "monty", "ollama", "openai", "orchestrations", "purview"),
    *("redis", "tools"),
)
_MODEL_NAMES = (
    *("model", "model_id", "ai_model_id", "deployment_name", "azure_deployment", "api_version"),
    *("temperature", "top_p", "top_k", "seed", "stop", "max_tokens", "max_output_tokens"),
    *("max_completion_tokens", "frequency_penalty", "presence_penalty", "reasoning_effort"),
    *("tool_choice", "allow_multiple_tool_calls", "store", "response_format"),
)
_ADDRESSES = ("base_url", "_base_url", "endpoint", "azure_endpoint", "project_endpoint", "host")
_EXECUTOR_SETTINGS = (
    *("allow_direct_output", "_propagate_request", "_context_mode", "_ensure_trailing_user_turn"),
    *("_max_rounds", "_retry_attempts", "_require_plan_signoff", "_is_start_agent"),
    *("_autonomous_mode", "_autonomous_mode_turn_limit"),
)
_MANAGER_SETTINGS = (
    *("max_stall_count", "max_reset_count", "max_round_count", "progress_ledger_retry_count"),
)
_MANAGER_PROMPTS = (
    *("task_ledger_facts_prompt", "task_ledger_plan_prompt", "task_ledger_full_prompt"),
    *("task_ledger_facts_update_prompt", "task_ledger_plan_update_prompt"),
    *("progress_ledger_prompt", "final_answer_prompt"),
)
_INVOCATION_SETTINGS = (
    *("enabled", "max_iterations", "max_function_calls", "max_duration_seconds"),
    *("max_consecutive_errors_per_request", "terminate_on_unknown_calls"),
    *("include_detailed_errors", "allow_concurrent_invocation"),
    "disable_approval_response_binding",
)
_TOOL_SETTINGS = ("approval_mode", "kind", "max_invocations", "max_invocation_exceptions")
_SERVER_SETTINGS = (
    *("approval_mode", "allowed_tools", "tool_name_prefix", "load_tools_flag", "load_prompts_flag"),
    *("use_progressive_disclosure", "always_load"),
)
_HOSTED = (
    *("type", "description", "parameters", "strict", "server_label", "server_description"),
    *("allowed_tools", "require_approval", "approval_mode", "vector_store_ids"),
)
"""Of a tool that a provider runs itself, what is told; of the rest only that it is there."""
_AROUND_CLIENT = ("chat_middleware", "function_middleware")
_DRAWN = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""A name that was drawn at random."""


def world_of(workflow: Any, *, extra: Mapping[str, JSON] | None = None) -> World:
    """The world of a workflow, built of executors or of functions.

    Args:
        workflow: The workflow.
        extra: What else a person should be asked about when it changes, by name.

    Raises:
        UsageError: It is no workflow.
        WorldInvalid: It says more than a world can hold, or a name in it is taken.
    """
    if not isinstance(workflow, _WORKFLOWS):
        found = type(workflow).__name__
        raise UsageError(
            f"workflow: expected a workflow, found {found}", hint="Call .build() first."
        )
    return _WorkflowWorld(workflow, [], Memory()).world(extra or {})


def world_again(workflow: Any, before: Memory | None, *, tools: Any = None) -> tuple[World, Memory]:
    """The world of a workflow that may have been looked at before, and what was found this time.

    Args:
        workflow: The workflow.
        before: What was found before.
        tools: Tools that one run brings along.

    Raises:
        WorldInvalid: It says more than a world can hold.
    """
    memory = Memory(before)
    found = _WorkflowWorld(workflow, [], memory)
    if tools is not None:
        found.add_tools(normalize_tools(tools))
    return found.world({}), memory


# ---------------------------------------------------------------------- the parts


class _OfFramework(ABC):  # noqa: B024 - nothing is derived from it
    """Objects of the framework's classes, and of classes that an application derives from them."""

    @classmethod
    def __subclasshook__(cls, kind: type) -> bool:
        return any(FRAMEWORKS.package_of(each) in FRAMEWORKS for each in kind.__mro__)


def _find_workflow(search: Search, found: Found) -> None:
    search.parts.graphs.append(found.value)


def _find_data(search: Search, found: Found) -> None:
    """What a run says, makes and keeps; that is judged as its state."""


def _find_executor(search: Search, found: Found) -> None:
    executor, place, package, _ = found
    fields = attributes(executor)
    for name in ("_handlers", "_response_handlers"):
        held = fields.get(name) or {}
        search.add([getattr(each, "__func__", each) for each in held.values()], place, _CORE)
    agent = fields.get("_agent")
    if agent is not None and not isinstance(agent, BaseAgent):
        # Whatever has the methods of an agent is one.
        search.parts.agents.append(agent)
        search.add_called([agent], place, _CORE)
    search.enter(executor, place, package)


def _find_agent(search: Search, found: Found) -> None:
    agent, place, package, _ = found
    search.parts.agents.append(agent)
    fields = attributes(agent)
    for each in ("middleware", "context_providers"):
        search.add_called(fields.get(each) or (), place, _CORE)
    search.add_called([fields.get("compaction_strategy"), fields.get("tokenizer")], place, _CORE)
    client = fields.get("client")
    if client is not None and not isinstance(client, BaseChatClient):
        _find_client(search, Found(client, place, package, own=False))
    search.enter(agent, place, package)


def _find_client(search: Search, found: Found) -> None:
    """A client of a model: what runs around it, and the code of an application's own one."""
    client, place, _, _ = found
    search.parts.models.append(client)
    fields = attributes(client)
    for each in _AROUND_CLIENT:
        search.add_called(fields.get(each) or (), place, _CORE)
    search.add_called([fields.get("compaction_strategy"), fields.get("tokenizer")], place, _CORE)
    search.add(_invocation(fields).get("additional_tools") or (), place, _CORE)
    _enter_own(search, client, place)


def _invocation(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a client calls tools by itself."""
    found = fields.get("function_invocation_configuration")
    return found if isinstance(found, Mapping) else {}


def _find_tool(search: Search, found: Found) -> None:
    tool, place = found.value, f"tool.{found.value.name}"
    search.parts.tools.append(tool)
    fields = attributes(tool)
    search.add_called([fields.get("func"), fields.get("result_parser")], place, _CORE)
    search.add_called([fields.get("_instance")], place, _CORE)
    _enter_own(search, tool, place)


def _find_server(search: Search, found: Found) -> None:
    tool, place = found.value, f"tool.{found.value.name}"
    search.parts.tools.append(tool)
    fields = attributes(tool)
    for each in ("parse_tool_results", "parse_prompt_results", "sampling_approval_callback"):
        search.add_called([fields.get(each)], place, _CORE)
    search.add_called([fields.get("_header_provider")], place, _CORE)
    _enter_own(search, tool, place)


def _enter_own(search: Search, value: Any, place: str) -> None:
    """Look into an object of a class that an application derived; the framework's is known."""
    if FRAMEWORKS.package_of(type(value)) not in FRAMEWORKS:
        search.enter(value, place, "")


def _find_step(search: Search, found: Found) -> None:
    step = found.value
    search.parts.objects.append(step)
    fields = attributes(step)
    search.add([fields.get("_func"), fields.get("_replay_key")], f"step.{step.name}", _CORE)


def _find_object(search: Search, found: Found) -> None:
    """A middleware, a provider, a manager: what it is filled with while it runs does not count."""
    if type(found.value) is InMemoryHistoryProvider:
        return  # the framework gives one to an agent when it first runs
    search.parts.objects.append(found.value)
    search.enter(found.value, found.place, found.package, remembered=True)


_WORKFLOWS = (Workflow, FunctionalWorkflow, FunctionalWorkflowDefinition)
_DATA = (
    *(Message, Content, AgentSession, SessionContext, AgentResponse, AgentResponseUpdate),
    *(ChatResponse, ChatResponseUpdate, ResponseStream, WorkflowCheckpoint, WorkflowEvent),
    *(WorkflowMessage, BaseMiddlewarePipeline),
)
_AROUND_AGENT = (AgentMiddleware, ChatMiddleware, FunctionMiddleware, ContextProvider)
FRAMEWORKS = Frameworks(_CORE, *(f"{_CORE}_{each}" for each in _PACKAGES))

KINDS = Kinds(
    noun="workflow",
    frameworks=FRAMEWORKS,
    forms=(
        (_WORKFLOWS, _find_workflow),
        (FunctionTool, _find_tool),
        (MCPTool, _find_server),
        (BaseChatClient, _find_client),
        (BaseAgent, _find_agent),
        (Executor, _find_executor),
        (StepWrapper, _find_step),
        (_DATA, _find_data),
        (_OfFramework, _find_object),
    ),
    objects=(),
    collected=(
        *_WORKFLOWS,
        BaseAgent,
        BaseChatClient,
        Executor,
        FunctionTool,
        MCPTool,
        StepWrapper,
    ),
    calls=("__call__", "run", "process", "before_run", "after_run", "get_response"),
)
"""How the objects of the framework are looked at."""


# ---------------------------------------------------------------------- the world


class _WorkflowWorld:
    """The world of one workflow, being put together."""

    def __init__(self, workflow: Any, above: list[Any], memory: Memory) -> None:
        self._workflow = workflow
        self._memory = memory
        self._around = [*above, workflow]
        self._draft = WorldDraft(memory)
        self._agents: dict[str, Any] = {}
        self._settings: dict[str, Any] = {}
        self._steps: set[str] = set()
        self._packages = {_CORE}
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

    def world(self, extra: Mapping[str, JSON]) -> World:
        if isinstance(self._workflow, Workflow):
            topology = self._graph()
        else:
            self._add("workflow", self._workflow._func, "workflow")  # noqa: SLF001
            topology = {"steps": dict.fromkeys(self._steps, True)}
        told = {"agents": self._agents, "settings": self._settings}
        topology |= {name: part for name, part in told.items() if part}
        return self._draft.world(
            topology=topology, runtime=_runtime(tuple(sorted(self._packages))), extra=extra
        )

    def _graph(self) -> dict[str, Any]:
        """Look at executors and edges, and say how they are connected."""
        workflow, executors = self._workflow, {}
        for given, executor in sorted(self._executors.items()):
            name = self._name(given)
            self._add(name, executor, f"executor.{name}")
            told = settings_of(attributes(executor), _EXECUTOR_SETTINGS)
            settings = {each.strip("_"): value for each, value in told.items()}
            executors[name] = {"kind": self._kind(executor), **settings}
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
        parts = KINDS.parts_of(runs, place, self._memory, called=True)
        self._draft.add_code(parts)
        for tool in parts.tools:
            self._add_tool(holder, tool)
        self._add_agents(holder, parts)
        for each in (runs, *parts.objects):
            self._add_texts(holder, each)
            if isinstance(each, StepWrapper):
                self._steps.add(each.name)
        for each in parts.objects:
            told = _settings(each)
            if told:
                kind = self._kind(each)
                put(self._settings, f"{holder}: {kind.rpartition('.')[2]}", {"kind": kind, **told})
        for workflow in parts.graphs:
            if not any(workflow is each for each in self._around):
                inner = _WorkflowWorld(workflow, self._around, self._memory)
                put(self._draft.agents, holder, inner.world({}))

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
        fields = {**own, **options}
        for name, value in attributes(own.get("client")).items():
            if name in _ADDRESSES:  # of the provider's own client, which keeps it as an object
                fields.setdefault(name, str(value))
        fields |= {name: _told(fields.get(name)) for name in ("tool_choice", "response_format")}
        made = model_of(self._kind(client), fields, _MODEL_NAMES, _ADDRESSES)
        told = (self._definition(tool) for tool in tools)
        parts = {
            "tools": {name: json_digest(definition) for name, definition, _ in told},
            "middleware": [
                self._kind(each) for name in _AROUND_CLIENT for each in own.get(name) or ()
            ],
            "function_invocation": settings_of(_invocation(own), _INVOCATION_SETTINGS),
        }
        return made | {name: part for name, part in parts.items() if part}

    def _add_texts(self, holder: str, value: Any) -> None:
        """Add the prompts that an object of the framework holds for the models that it asks."""
        fields = attributes(value)
        names: Iterable[str] = _MANAGER_PROMPTS
        if FRAMEWORKS.package_of(type(value)) in FRAMEWORKS:
            names = [each for each in fields if each.endswith(("prompt", "instructions"))]
        for name in names:
            self._add_prompt(f"{holder}: {name.strip('_')}", fields.get(name))

    def _add_hosted(self, holder: str, tools: Iterable[Any]) -> None:
        """Add tools that are no objects of the framework, which are found without this."""
        for tool in tools:
            if not isinstance(tool, FunctionTool | MCPTool | _OfFramework):
                self._add_tool(holder, tool)

    def _add_tool(self, holder: str, tool: Any) -> None:
        name, definition, launch = self._definition(tool)
        self._draft.add_tool(holder, name, definition, launch)

    def _definition(self, tool: Any) -> tuple[str, dict[str, Any], str | None]:
        """The name of a tool, what is told of it, and how it is started or reached."""
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
            plain = json.loads(self._name(json.dumps(_plain(told))))
        except (TypeError, ValueError) as exc:
            raise WorldInvalid(f"tool {name!r}: its definition cannot be written as JSON") from exc
        return self._name(name), plain, launch

    def _kind(self, value: Any) -> str:
        """The name of a function, or of an object's class; note which packages are used."""
        self._packages |= {
            package
            for package in map(FRAMEWORKS.package_of, type(value).__mro__)
            if package in FRAMEWORKS
        }
        named = FRAMEWORKS.reference_to(getattr(value, "__func__", value))
        return named or str(FRAMEWORKS.reference_to(type(value)))


def _settings(value: Any) -> dict[str, Any]:
    """How an object of the framework that runs around agents was set up: switches and bounds.

    Texts are left out, which may be secrets, and so is what it counts while it runs.
    """
    fields = attributes(value)
    if not isinstance(value, _AROUND_AGENT) or FRAMEWORKS.package_of(type(value)) not in FRAMEWORKS:
        return settings_of(fields, _MANAGER_SETTINGS)
    made: dict[str, Any] = {}
    for name, held in fields.items():
        if name.startswith("_"):
            continue
        if isinstance(held, Enum):
            made[name] = held.name
        elif type(held) is bool or (name.startswith("max_") and type(held) in (int, float)):
            made[name] = held
        elif name.startswith("allow") and isinstance(held, set | frozenset | list | tuple):
            made[name] = sorted(map(str, held))
    return made


@functools.cache
def _runtime(packages: tuple[str, ...]) -> dict[str, str]:
    """Which packages run; what is installed later is not what was imported."""
    names = (each.replace("_", "-") for each in packages)
    return runtime_of(f"{each}-core" if each == "agent-framework" else each for each in names)


def _function_definition(tool: FunctionTool) -> dict[str, Any]:
    try:
        schema = tool.parameters()
    except (PydanticUserError, TypeError, ValueError) as exc:
        raise WorldInvalid(f"tool {tool.name!r}: its arguments have no JSON schema") from exc
    told = settings_of(attributes(tool), _TOOL_SETTINGS)
    return {"description": tool.description, "inputSchema": schema, **told}


def _server_definition(tool: MCPTool) -> tuple[dict[str, Any], str | None]:
    fields = attributes(tool)
    told = {name: fields[name] for name in _SERVER_SETTINGS if fields.get(name) is not None}
    if fields.get("args"):
        told["args"] = json_digest([str(each) for each in fields["args"]])
    if fields.get("env"):
        told["env"] = sorted(fields["env"])
    launch = fields.get("command") or origin_of(fields.get("url"))
    kind = FRAMEWORKS.reference_to(type(tool))
    return {"kind": kind, "description": tool.description, **told}, launch


def _hosted_definition(tool: Mapping[str, Any]) -> tuple[str, dict[str, Any], str | None]:
    """A tool that is told to a provider as it is: what a closed list of its fields says."""
    inner = tool.get("function")
    fields = {**tool, **inner} if isinstance(inner, Mapping) else dict(tool)
    name = str(fields.get("name") or fields.get("server_label") or fields.get("type") or "tool")
    told = {key: fields[key] for key in _HOSTED if key in fields}
    rest = sorted(str(key) for key in fields if key not in (*_HOSTED, "name", "function"))
    return name, {**told, "also": rest} if rest else told, origin_of(fields.get("server_url"))


def _told(value: Any) -> Any:
    """A setting that may be a class or an object, by its name and the digest of what it says."""
    if isinstance(value, Mapping):
        return json_digest(_plain(value))
    if not isinstance(value, type):
        return value
    schema = getattr(value, "model_json_schema", None)
    try:
        return f"{kind_of(value)} {json_digest(schema())}" if schema else kind_of(value)
    except (PydanticUserError, TypeError, ValueError) as exc:
        raise WorldInvalid(f"response_format {kind_of(value)!r}: it has no JSON schema") from exc


def _plain(value: Any) -> Any:
    """A value as plain JSON: sets in order, and names of classes in place of what is none."""

    def plain(each: Any) -> Any:
        return sorted(map(str, each)) if isinstance(each, set | frozenset) else kind_of(each)

    return json.loads(json.dumps(value, default=plain))
