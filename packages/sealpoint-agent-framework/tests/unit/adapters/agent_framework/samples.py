# SPDX-License-Identifier: Apache-2.0
"""One object at least of every type of the framework, and when two are the same."""

from collections import OrderedDict
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
from agent_framework_orchestrations import (
    AgentOrchestrationOutput,
    AgentRequestInfoResponse,
    GroupChatRequestMessage,
    GroupChatState,
    HandoffAgentUserRequest,
    MagenticContext,
    MagenticPlanReviewRequest,
    MagenticPlanReviewResponse,
    MagenticProgressLedger,
    MagenticProgressLedgerItem,
    MagenticResetSignal,
    OrchestrationState,
)
from agent_framework_orchestrations._base_group_chat_orchestrator import (
    GroupChatParticipantMessage,
    GroupChatResponseMessage,
)

from sealpoint.codec import Registry
from sealpoint_agent_framework._framework_types import allow_framework_types
from tests.sameness import same

CALL = Content.from_function_call("call-1", "pay", arguments={"amount": 42}, id="fc-1")
ASKED = Content.from_function_approval_request("fc-1", CALL)

CONTENTS: tuple[Content, ...] = (
    Content.from_text("hello", annotations=[{"type": "citation", "url": "https://a.example"}]),
    Content.from_text(""),
    Content.from_text_reasoning(id="r1", text="because", protected_data="sealed"),
    Content.from_data(b"\x00\x01", "image/png", name="dot.png"),
    Content.from_uri("https://a.example/b.png", media_type="image/png"),
    Content.from_error(message="broken", error_code="E1", error_details="all of it"),
    Content.from_usage({"input_token_count": 3, "output_token_count": 4}),
    CALL,
    Content.from_function_call("call-2", "pay", arguments='{"amount": 42}', hosted=True),
    Content.from_function_result("call-1", result={"paid": True}, exception=None),
    Content.from_function_result("call-1", exception="refused"),
    ASKED,
    ASKED.to_function_approval_response(approved=True),
    Content.from_hosted_file("file-1", media_type="text/plain"),
    Content.from_hosted_vector_store("store-1"),
    Content.from_code_interpreter_tool_call(call_id="c", inputs=[Content.from_text("1 + 1")]),
    Content.from_code_interpreter_tool_result(call_id="c", outputs=[Content.from_text("2")]),
    Content("computer_tool_call", id="i", call_id="c", actions=[{"type": "click", "x": 1}]),
    Content("computer_tool_result", call_id="c", screenshot=Content.from_data(b"png", "image/png")),
    Content.from_image_generation_tool_call(image_id="img"),
    Content.from_image_generation_tool_result(image_id="img", outputs=Content.from_text("done")),
    Content.from_mcp_server_tool_call("c", "search", server_name="s", arguments={"q": "x"}),
    Content.from_mcp_server_tool_result("c", output=[Content.from_text("found")]),
    Content.from_oauth_consent_request("https://a.example/consent"),
    Content.from_search_tool_call("c", tool_name="web", arguments="{}"),
    Content.from_search_tool_result("c", tool_name="web", items=(Content.from_text("hit"),)),
    Content.from_shell_tool_call(call_id="c", commands=["ls"], timeout_ms=10),
    Content.from_shell_command_output(stdout="a", stderr="", exit_code=0, timed_out=False),
    Content.from_shell_tool_result(call_id="c", outputs=[Content.from_text("a")]),
)
"""Contents of every kind that the framework has."""

SAID = Message("user", ["hello"], author_name="ann", message_id="m1")
ANSWERED = Message("assistant", ["hi", CALL], additional_properties={"kind": {"deep": [1, None]}})
RESPONSE: AgentResponse[Any] = AgentResponse(
    messages=[ANSWERED],
    response_id="resp-1",
    agent_id="clerk",
    created_at="2026-01-02T03:04:05Z",
    finish_reason="stop",
    usage_details={"input_token_count": 3},
    additional_properties={"a": 1},
)
REQUEST = WorkflowEvent.request_info("r1", "clerk", {"amount": 42}, bool)
ITEM = MagenticProgressLedgerItem(reason="it is", answer=True)
LEDGER = MagenticProgressLedger(ITEM, ITEM, ITEM, ITEM, MagenticProgressLedgerItem("r", "ask"))

SAMPLES: tuple[Any, ...] = (
    *CONTENTS,
    SAID,
    ANSWERED,
    Message("tool", list(CONTENTS)),
    RESPONSE,
    AgentResponse(messages=SAID, value={"a": 1}, response_format={"type": "object"}),
    AgentResponse(response_format=AgentOrchestrationOutput),
    AgentResponse(value=AgentOrchestrationOutput(terminate=False, reason="no", next_speaker="b")),
    AgentOrchestrationOutput(terminate=True, reason="done"),
    ChatResponse(messages=[SAID, ANSWERED], conversation_id="c", model="m"),
    AgentResponseUpdate(contents=[CALL], role="assistant", merge_mode="append"),
    AgentResponseUpdate(additional_properties={}),
    ChatResponseUpdate(contents=[Content.from_text("h")], role="assistant", model="m"),
    AgentSession(session_id="s1", service_session_id="remote-1"),
    *(*MessageType, *WorkflowEventSource, *WorkflowRunState),
    REQUEST,
    WorkflowEvent.request_info("r2", "clerk", [SAID], list[str]),
    WorkflowEvent.status(WorkflowRunState.IDLE),
    WorkflowEvent.failed(WorkflowErrorDetails("ValueError", "no", extra={"a": 1})),
    WorkflowEvent("output", data=RESPONSE, executor_id="clerk"),
    WorkflowEvent.superstep_started(3),
    WorkflowErrorDetails("ValueError", "no"),
    WorkflowMessage(data=SAID, source_id="a"),
    WorkflowMessage(
        data=True,
        source_id="internal:clerk",
        target_id="clerk",
        type=MessageType.RESPONSE,
        trace_contexts=[{"traceparent": "00-1"}],
        source_span_ids=["1"],
        original_request_info_event=REQUEST,
    ),
    WorkflowInvocationKwargs(global_kwargs={"a": 1}, executor_kwargs={"clerk": {"b": 2}}),
    AgentExecutorRequest([SAID]),
    AgentExecutorRequest([SAID, ANSWERED], should_respond=False),
    AgentExecutorResponse("clerk", RESPONSE, [SAID, ANSWERED]),
    SubWorkflowRequestMessage(source_event=REQUEST, executor_id="sub"),
    SubWorkflowResponseMessage(data=True, source_event=REQUEST),
    ExecutionContext("e1", {"r0": 1}, 2, {"r1": REQUEST}),
    WorkflowCheckpoint("bills", "hash"),
    WorkflowCheckpoint(
        "bills",
        "hash",
        previous_checkpoint_id="before",
        messages={"a": [WorkflowMessage(data=SAID, source_id="a")], "b": []},
        state={"_executor_state": {"clerk": {"cache": [SAID]}}, "keys": {("a", 1): {1, 2}}},
        pending_request_info_events={"r1": REQUEST},
        iteration_count=3,
        metadata={"owner": "ann"},
    ),
    GroupChatRequestMessage("be brief", {"a": 1}),
    GroupChatParticipantMessage([SAID]),
    GroupChatResponseMessage(SAID),
    GroupChatState(1, OrderedDict(a="first", b="second"), [SAID]),
    OrchestrationState([SAID], 2, "chat", {"a": 1}, SAID),
    HandoffAgentUserRequest(RESPONSE),
    AgentRequestInfoResponse([SAID]),
    MagenticPlanReviewRequest(SAID, None, is_stalled=False),
    MagenticPlanReviewRequest(SAID, LEDGER, is_stalled=True),
    MagenticPlanReviewResponse([]),
    LEDGER,
    ITEM,
    MagenticContext("task", [SAID], {"a": "first"}, 1, 2, 3),
    MagenticResetSignal(),
)


def registry() -> Registry:
    """The framework's own types and no other."""
    allowed = Registry()
    allow_framework_types(allowed)
    return allowed


def same_parts(one: Any, other: Any) -> bool:
    """Whether two values are the same all the way down, live objects of clients left aside."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_parts, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_parts(one[key], other[key]) for key in one)
    if (attributes := _attributes(one)) is not None:
        return same_parts(attributes, _attributes(other))
    return same(one, other)


def _attributes(value: Any) -> dict[str, Any] | None:
    """What an object of the framework holds, but for what is not stored."""
    if type(value) is WorkflowCheckpoint:
        return value.to_dict()
    if type(value).__module__.partition(".")[0] not in _PACKAGES or not hasattr(value, "__dict__"):
        return None
    left_out = ("raw_representation", "__orig_class__")
    return {name: item for name, item in sorted(vars(value).items()) if name not in left_out}


_PACKAGES = ("agent_framework", "agent_framework_orchestrations")
