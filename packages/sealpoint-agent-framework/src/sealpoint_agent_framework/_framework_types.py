# SPDX-License-Identifier: Apache-2.0
"""The framework's own types, which a workflow's checkpoint may hold without application rules.

Each has a rule with a name, a form of our own and a reason. Only exactly these classes are covered:
a subclass is an application's type and needs its own rule. Decoding checks the values of the
fields, sets them on a bare object and runs no code of the framework (`field_forms`). A type that an
object refers to is stored as a name of our own (`_type_references`).

Like in the framework's own serialization, one field is not stored: `raw_representation` of
contents, annotations, messages, responses and updates, which is a live object of a model's client.
It is None after loading.

The types of `agent_framework_orchestrations` are among them if that package is installed.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    WorkflowCheckpoint,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowEventSource,
    WorkflowInvocationKwargs,
    WorkflowMessage,
    WorkflowRunState,
)
from agent_framework._workflows._runner_context import MessageType
from agent_framework._workflows._workflow_executor import ExecutionContext

from sealpoint.adapters.field_forms import (
    REQUIRED,
    Fault,
    FieldForm,
    FieldKind,
    StoredAs,
    defaults_of,
    object_pair,
)
from sealpoint.codec import Registry
from sealpoint_agent_framework._type_references import TypeReferences

orchestrations: Any = None
with contextlib.suppress(ImportError):  # the package need not be there
    import agent_framework_orchestrations as orchestrations

_RAW = "raw_representation"

_TEXT = FieldKind(types=(str,))
_FLAG = FieldKind(types=(bool,))
_NUMBER = FieldKind(types=(int,))
_MAP = FieldKind(types=(dict, Mapping))
_TEXTS = FieldKind(types=(list, tuple), members=(str,))
_MAPS = FieldKind(types=(list, tuple), members=(Mapping,))


def _one(*types: type) -> FieldKind:
    return FieldKind(types=types)


def _each(*types: type) -> FieldKind:
    return FieldKind(types=(list, tuple), members=types)


def _by_name(*types: type) -> FieldKind:
    return FieldKind(types=(dict, Mapping), members=types)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowType:
    """One type of the framework that may be stored."""

    cls: type
    name: str
    """The name of its rule, which is in stored data and never changes."""
    reason: str
    """Why it may be stored, in one sentence."""
    defaults: Mapping[str, Any] | None = None
    """Its fields; without them, it is stored as the codec stores any enum or model."""
    kinds: Mapping[str, FieldKind] = field(default_factory=dict)
    stored_as: Callable[[TypeReferences], Mapping[str, StoredAs]] | None = None
    """The stored form of fields that refer to types or have a value that is not stored."""
    fault: Fault | None = None

    def allow(self, registry: Registry) -> None:
        """Add its rule to a registry."""
        form = self.form(registry)
        if form is None:
            registry.allow(self.cls, name=self.name)
            return
        encode, decode = object_pair(form)
        registry.allow(self.cls, name=self.name, encode=encode, decode=decode)

    def form(self, registry: Registry) -> FieldForm | None:
        """The form of its fields; None: as the codec stores any enum or model."""
        if self.defaults is None:
            return None
        return FieldForm(
            self.cls,
            self.defaults,
            kinds=self.kinds,
            stored_as=None if self.stored_as is None else self.stored_as(TypeReferences(registry)),
            dropped=(_RAW,),
            fault=self.fault,
        )


def _attributes(sample: Any, *required: str) -> dict[str, Any]:
    """The fields of a class that is not a dataclass, with the values of an empty object."""
    return {name: REQUIRED if name in required else item for name, item in vars(sample).items()}


# The types of fields on which the framework relies. A field that is not listed may hold anything.
_CONTENT: dict[str, FieldKind] = {
    **dict.fromkeys(("type", "text", "protected_data", "uri", "media_type", "message"), _TEXT),
    **dict.fromkeys(("error_code", "error_details", "call_id", "name", "exception", "id"), _TEXT),
    **dict.fromkeys(
        ("file_id", "vector_store_id", "image_id", "status", "stdout", "stderr"), _TEXT
    ),
    **dict.fromkeys(("tool_name", "server_name", "consent_link", "merge_mode"), _TEXT),
    **dict.fromkeys(("informational_only", "timed_out", "hosted"), _FLAG),
    **dict.fromkeys(("user_input_request", "approved"), _FLAG),
    **dict.fromkeys(("timeout_ms", "max_output_length", "exit_code"), _NUMBER),
    **dict.fromkeys(("usage_details", "additional_properties"), _MAP),
    **dict.fromkeys(("function_call", "screenshot"), _one(Content)),
    **dict.fromkeys(("actions", "annotations"), _MAPS),
    **dict.fromkeys(("pending_safety_checks", "acknowledged_safety_checks"), _MAPS),
    "arguments": _one(str, dict, Mapping),
    "commands": _TEXTS,
    "items": _each(Content),
    "inputs": _each(Content),
}
_MESSAGE: dict[str, FieldKind] = {
    **dict.fromkeys(("role", "author_name", "message_id"), _TEXT),
    "contents": _each(Content),
    "additional_properties": _MAP,
}
_RESPONSE: dict[str, FieldKind] = {
    **dict.fromkeys(("response_id", "agent_id", "conversation_id", "model"), _TEXT),
    **dict.fromkeys(("finish_reason", "_operation_state"), _TEXT),
    **dict.fromkeys(("usage_details", "additional_properties", "continuation_token"), _MAP),
    "messages": _each(Message),
    "_value_parsed": _FLAG,
}
_UPDATE: dict[str, FieldKind] = {
    **dict.fromkeys(("role", "author_name", "message_id", "merge_mode"), _TEXT),
    **{name: kind for name, kind in _RESPONSE.items() if kind in (_TEXT, _MAP)},
    "contents": _each(Content),
}
_EVENT: dict[str, FieldKind] = {
    **dict.fromkeys(("type", "executor_id", "_request_id", "_source_executor_id"), _TEXT),
    "origin": _one(WorkflowEventSource),
    "state": _one(WorkflowRunState),
    "details": _one(WorkflowErrorDetails),
    "iteration": _NUMBER,
}
_CHECKPOINT: dict[str, FieldKind] = {
    **dict.fromkeys(("workflow_name", "graph_signature_hash", "checkpoint_id"), _TEXT),
    **dict.fromkeys(("previous_checkpoint_id", "timestamp", "version"), _TEXT),
    **dict.fromkeys(("state", "metadata"), _MAP),
    "messages": _by_name(list),
    "pending_request_info_events": _by_name(WorkflowEvent),
    "iteration_count": _NUMBER,
}
_REQUEST = ("_request_id", "_source_executor_id", "_request_type", "_response_type")


def _event_fault(form: Mapping[str, Any]) -> str | None:
    """A request has an id, an executor that asked, and both of its types."""
    if form["type"] != "request_info":
        return None
    missing = [name for name in _REQUEST if form.get(name) is None]
    return f"field {missing[0]!r}: a request needs it" if missing else None


def _checkpoint_fault(form: Mapping[str, Any]) -> str | None:
    """Only requests wait for an answer, each under its own id."""
    pending = form.get("pending_request_info_events", {})
    for key, event in pending.items():
        found = vars(event)
        if found.get("type") != "request_info" or found.get("_request_id") != key:
            return (
                "field 'pending_request_info_events': expected requests by their ids, found an "
                "event that is not a request or has another id"
            )
    return None


def _event_types(references: TypeReferences) -> dict[str, StoredAs]:
    stored = StoredAs(encode=references.encode, decode=references.decode)
    return {"_request_type": stored, "_response_type": stored}


def _response_format(references: TypeReferences) -> dict[str, StoredAs]:
    encode, decode = references.encode_format, references.decode_format
    return {"_response_format": StoredAs(encode=encode, decode=decode)}


def _annotations(_: TypeReferences) -> dict[str, StoredAs]:
    def encode(annotations: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        if not any(_RAW in each for each in annotations):
            return annotations
        kept = ({key: each[key] for key in each if key != _RAW} for each in annotations)
        return tuple(kept) if isinstance(annotations, tuple) else list(kept)

    return {"annotations": StoredAs(encode=encode, decode=lambda annotations: annotations)}


_ENUMS = (
    WorkflowType(
        cls=MessageType,
        name="agent_framework.message-type",
        reason="Whether a message in flight is an answer: one of two words.",
    ),
    WorkflowType(
        cls=WorkflowEventSource,
        name="agent_framework.event-source",
        reason="Whether the framework or an executor made an event: one of two words.",
    ),
    WorkflowType(
        cls=WorkflowRunState,
        name="agent_framework.run-state",
        reason="How far a run is: a word.",
    ),
)
_CHAT = (
    WorkflowType(
        cls=Content,
        name="agent_framework.content",
        reason="A part of a message: text, data, a call and its result, which are data; an "
        "executor decides whether to make the call.",
        defaults=_attributes(Content("error"), "type"),
        kinds=_CONTENT,
        stored_as=_annotations,
    ),
    WorkflowType(
        cls=Message,
        name="agent_framework.message",
        reason="A message of a person, a model or a tool: a role and contents.",
        defaults=_attributes(Message("user"), "role"),
        kinds=_MESSAGE,
    ),
    WorkflowType(
        cls=AgentResponse,
        name="agent_framework.agent-response",
        reason="An agent's response: messages, and a value of an allowed type.",
        defaults=_attributes(AgentResponse()),
        kinds=_RESPONSE,
        stored_as=_response_format,
    ),
    WorkflowType(
        cls=ChatResponse,
        name="agent_framework.chat-response",
        reason="A model's response: messages, and a value of an allowed type.",
        defaults=_attributes(ChatResponse()),
        kinds=_RESPONSE,
        stored_as=_response_format,
    ),
    WorkflowType(
        cls=AgentResponseUpdate,
        name="agent_framework.agent-update",
        reason="A streamed part of what an agent answered.",
        defaults=_attributes(AgentResponseUpdate()),
        kinds=_UPDATE,
    ),
    WorkflowType(
        cls=ChatResponseUpdate,
        name="agent_framework.chat-update",
        reason="A streamed part of what a model answered.",
        defaults=_attributes(ChatResponseUpdate()),
        kinds=_UPDATE,
    ),
    WorkflowType(
        cls=AgentSession,
        name="agent_framework.session",
        reason="A conversation with an agent: two ids and what context providers keep in it.",
        defaults=_attributes(AgentSession(session_id="-"), "_session_id"),
        kinds={
            "_session_id": _TEXT,
            "service_session_id": _one(str, dict, Mapping),
            "state": _one(dict),
        },
    ),
)
_WORKFLOW = (
    WorkflowType(
        cls=WorkflowCheckpoint,
        name="agent_framework.checkpoint",
        reason="The checkpoint itself, and those of sub-workflows inside of it.",
        defaults=defaults_of(WorkflowCheckpoint),
        kinds=_CHECKPOINT,
        fault=_checkpoint_fault,
    ),
    WorkflowType(
        cls=WorkflowMessage,
        name="agent_framework.workflow-message",
        reason="A message between executors: allowed values, not yet delivered.",
        defaults=defaults_of(WorkflowMessage),
        kinds={
            "source_id": _TEXT,
            "target_id": _TEXT,
            "type": _one(MessageType),
            "trace_contexts": _MAPS,
            "source_span_ids": _TEXTS,
            "original_request_info_event": _one(WorkflowEvent),
        },
    ),
    WorkflowType(
        cls=WorkflowEvent,
        name="agent_framework.event",
        reason="A question that waits for an answer, or what else a run reported; the types in it "
        "are names.",
        defaults=_attributes(
            WorkflowEvent("request_info", origin=WorkflowEventSource.EXECUTOR), "type"
        ),
        kinds=_EVENT,
        stored_as=_event_types,
        fault=_event_fault,
    ),
    WorkflowType(
        cls=WorkflowErrorDetails,
        name="agent_framework.error-details",
        reason="The error of a run, as text.",
        defaults=defaults_of(WorkflowErrorDetails),
        kinds={
            **dict.fromkeys(("error_type", "message", "traceback", "executor_id"), _TEXT),
            "extra": _MAP,
        },
    ),
    WorkflowType(
        cls=WorkflowInvocationKwargs,
        name="agent_framework.invocation-kwargs",
        reason="The arguments of a caller for tools and clients of a run: allowed values by name.",
        defaults=defaults_of(WorkflowInvocationKwargs),
        kinds={"global_kwargs": _MAP, "executor_kwargs": _by_name(Mapping)},
    ),
    WorkflowType(
        cls=AgentExecutorRequest,
        name="agent_framework.executor-request",
        reason="Messages for an agent, and whether it is to answer.",
        defaults=defaults_of(AgentExecutorRequest),
        kinds={"messages": _each(Message), "should_respond": _FLAG},
    ),
    WorkflowType(
        cls=AgentExecutorResponse,
        name="agent_framework.executor-response",
        reason="An agent's response, with the conversation up to it.",
        defaults=defaults_of(AgentExecutorResponse),
        kinds={
            "executor_id": _TEXT,
            "agent_response": _one(AgentResponse),
            "full_conversation": _each(Message),
        },
    ),
    WorkflowType(
        cls=SubWorkflowRequestMessage,
        name="agent_framework.sub-workflow-request",
        reason="A question of a sub-workflow, for an executor above it.",
        defaults=defaults_of(SubWorkflowRequestMessage),
        kinds={"source_event": _one(WorkflowEvent), "executor_id": _TEXT},
    ),
    WorkflowType(
        cls=SubWorkflowResponseMessage,
        name="agent_framework.sub-workflow-response",
        reason="The answer to a question of a sub-workflow.",
        defaults=defaults_of(SubWorkflowResponseMessage),
        kinds={"source_event": _one(WorkflowEvent)},
    ),
    WorkflowType(
        cls=ExecutionContext,
        name="agent_framework.execution-context",
        reason="The state of a waiting sub-workflow in older versions: its questions.",
        defaults=defaults_of(ExecutionContext),
        kinds={
            "execution_id": _TEXT,
            "collected_responses": _one(dict),
            "expected_response_count": _NUMBER,
            "pending_requests": _by_name(WorkflowEvent),
        },
    ),
)


def _orchestration(
    name: str, cls: type, reason: str, kinds: Mapping[str, FieldKind]
) -> WorkflowType:
    return WorkflowType(
        cls=cls,
        name=f"agent_framework.orchestrations.{name}",
        reason=reason,
        defaults=defaults_of(cls),
        kinds=kinds,
    )


def _group_chat_types(package: Any) -> Iterator[WorkflowType]:
    """The messages and the state of orchestrators and participants."""
    yield _orchestration(
        "group-chat-request",
        package.GroupChatRequestMessage,
        "Asks a participant to speak: an instruction, and data about it.",
        {"additional_instruction": _TEXT, "metadata": _MAP},
    )
    yield _orchestration(
        "group-chat-message",
        package.GroupChatParticipantMessage,
        "A participant's message, for the others.",
        {"messages": _each(Message)},
    )
    yield _orchestration(
        "group-chat-response",
        package.GroupChatResponseMessage,
        "A participant's message, for the orchestrator.",
        {"message": _one(Message)},
    )
    yield _orchestration(
        "group-chat-state",
        package.GroupChatState,
        "The input for choosing the next speaker: the participants and the conversation.",
        {"current_round": _NUMBER, "participants": _MAP, "conversation": _each(Message)},
    )
    yield _orchestration(
        "state",
        package.OrchestrationState,
        "The state of an orchestrator: the conversation, the round and data about it.",
        {
            "conversation": _each(Message),
            "round_index": _NUMBER,
            "metadata": _MAP,
            "orchestrator_name": _TEXT,
            "task": _one(Message),
        },
    )
    yield WorkflowType(
        cls=package.AgentOrchestrationOutput,
        name="agent_framework.orchestrations.choice",
        reason="Whom an orchestrating agent chose to speak next, and why: texts.",
    )


def _question_types(package: Any) -> Iterator[WorkflowType]:
    """The questions of orchestrations to people, and their answers."""
    yield _orchestration(
        "handoff-request",
        package.HandoffAgentUserRequest,
        "A question to a person after an agent's turn: what the agent answered.",
        {"agent_response": _one(AgentResponse)},
    )
    yield _orchestration(
        "agent-answer",
        package.AgentRequestInfoResponse,
        "A person's answer to an agent: messages.",
        {"messages": _each(Message)},
    )
    yield _orchestration(
        "plan-request",
        package.MagenticPlanReviewRequest,
        "A plan that waits for a person's review.",
        {
            "plan": _one(Message),
            "current_progress": _one(package.MagenticProgressLedger, type(None)),
            "is_stalled": _FLAG,
        },
    )
    yield _orchestration(
        "plan-answer",
        package.MagenticPlanReviewResponse,
        "A person's review of a plan: messages.",
        {"review": _each(Message)},
    )


def _magentic_types(package: Any) -> Iterator[WorkflowType]:
    """The state and the messages of a magentic manager."""
    ledger, item = package.MagenticProgressLedger, package.MagenticProgressLedgerItem
    yield _orchestration(
        "progress",
        ledger,
        "A manager's view of the progress of a task: texts.",
        dict.fromkeys(defaults_of(ledger), _one(item)),
    )
    yield _orchestration(
        "progress-item",
        item,
        "One line of a manager's progress: an answer and its reason.",
        {"reason": _TEXT, "answer": _one(str, bool)},
    )
    yield _orchestration(
        "magentic-context",
        package.MagenticContext,
        "The input of a manager's decisions: the task, the chat and three counts.",
        {
            "task": _TEXT,
            "chat_history": _each(Message),
            "participant_descriptions": _by_name(str),
            **dict.fromkeys(("round_count", "stall_count", "reset_count"), _NUMBER),
        },
    )
    yield WorkflowType(
        cls=package.MagenticResetSignal,
        name="agent_framework.orchestrations.reset",
        reason="Tells participants to forget the chat; it holds nothing.",
        defaults={},
    )


def _installed_types() -> Iterator[WorkflowType]:
    yield from (*_ENUMS, *_CHAT, *_WORKFLOW)
    if orchestrations is not None:
        yield from _group_chat_types(orchestrations)
        yield from _question_types(orchestrations)
        yield from _magentic_types(orchestrations)


WORKFLOW_TYPES = tuple(_installed_types())
"""Every type of the framework that may be stored, each with the reason why."""


def allow_framework_types(registry: Registry) -> None:
    """Add a rule for each type of `WORKFLOW_TYPES` that the registry has none for.

    Raises:
        RuleInvalid: The registry has a rule of the same name for another class.
    """
    for each in WORKFLOW_TYPES:
        if registry.rule_of(each.cls) is None:
            each.allow(registry)
