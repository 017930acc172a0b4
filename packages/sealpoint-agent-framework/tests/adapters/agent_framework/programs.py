# SPDX-License-Identifier: Apache-2.0
"""Workflows as people write them with the framework, one of each kind, with scripted models.

Each is made anew by its function, as a new process would. What answers a question is in `ANSWERS`.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Never

from agent_framework import (
    AgentExecutor,
    AgentExecutorRequest,
    AgentExecutorResponse,
    Content,
    Executor,
    Message,
    RunContext,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
    step,
    tool,
    workflow,
)
from agent_framework_orchestrations import (
    AgentRequestInfoResponse,
    ConcurrentBuilder,
    GroupChatBuilder,
    GroupChatRequestMessage,
    GroupChatState,
    HandoffAgentUserRequest,
    HandoffBuilder,
    MagenticBuilder,
    MagenticPlanReviewRequest,
    SequentialBuilder,
)
from agent_framework_orchestrations._base_group_chat_orchestrator import (
    GroupChatParticipantMessage,
    GroupChatResponseMessage,
)
from pydantic import BaseModel

from tests.adapters.agent_framework.scripted import Reply, agent, says

__all__ = ["PROGRAMS", "Bill", "Colour", "Decision", "Verdict", "answer_to"]


class Colour(Enum):
    """An enum of the application."""

    RED = "red"


@dataclass
class Bill:
    """What is asked about."""

    amount: int
    colours: tuple[Colour, ...] = (Colour.RED,)


@dataclass
class Decision:
    """What answers it."""

    approved: bool


class Verdict(BaseModel):
    """What an agent answers in."""

    good: bool


@tool(approval_mode="never_require")
def look_up(topic: str) -> str:
    """Find something out."""
    return f"{topic} is known"


@tool(approval_mode="always_require")
def pay(amount: int) -> str:
    """Move money."""
    return f"paid {amount}"


def _calls(name: str, arguments: dict[str, Any], then: str) -> Reply:
    """A model that calls a tool once, and then speaks."""

    def reply(messages: Sequence[Message]) -> Sequence[str | Content]:
        if any(each.type == "function_result" for said in messages for each in said.contents):
            return [then]
        return [Content.from_function_call("call-1", name, arguments=json.dumps(arguments))]

    return reply


def sequential() -> Any:
    """Three agents one after the other; the second uses a tool."""
    writer = agent("writer", says("a draft"))
    checker = agent("checker", _calls("look_up", {"topic": "it"}, "checked"), tools=[look_up])
    return SequentialBuilder(participants=[writer, checker, agent("editor", says("done"))]).build()


def sequential_with_question() -> Any:
    """Two agents, and a person is asked after each."""
    participants = [agent("writer", says("a draft", "better")), agent("editor", says("done"))]
    return SequentialBuilder(participants=participants).with_request_info().build()


def concurrent() -> Any:
    """Three agents at the same time, and what they said together."""
    names = ("ann", "bob", "cat")
    return ConcurrentBuilder(participants=[agent(each, says(f"{each}!")) for each in names]).build()


def group_chat() -> Any:
    """Two agents in turn, as a function says."""

    def choose(state: GroupChatState) -> str:
        return ("ann", "bob")[state.current_round % 2]

    participants = [agent("ann", says("one", "three")), agent("bob", says("two"))]
    return GroupChatBuilder(
        participants=participants, selection_func=choose, max_rounds=3, name="chat"
    ).build()


def group_chat_with_agent() -> Any:
    """Two agents in turn, as a third one says in a format."""

    def choose(messages: Sequence[Message]) -> Sequence[str]:
        spoken = {each.author_name for each in messages}
        nobody = "ann" if "ann" not in spoken else "bob" if "bob" not in spoken else None
        choice = {"terminate": nobody is None, "reason": "so", "next_speaker": nobody}
        return [json.dumps({**choice, "final_message": None if nobody else "that is all"})]

    participants = [agent("ann", says("one")), agent("bob", says("two"))]
    chair = agent("chair", choose)
    return GroupChatBuilder(participants=participants, orchestrator_agent=chair).build()


class Guest(Executor):
    """Takes part in a group chat without being an agent."""

    @handler
    async def heard(
        self,
        said: GroupChatParticipantMessage,
        ctx: WorkflowContext[GroupChatResponseMessage],
    ) -> None:
        """Listen."""

    @handler
    async def asked(
        self, _: GroupChatRequestMessage, ctx: WorkflowContext[GroupChatResponseMessage]
    ) -> None:
        """Speak."""
        await ctx.send_message(GroupChatResponseMessage(Message("user", ["welcome"])))


def group_chat_with_guest() -> Any:
    """An agent and somebody who is none, in turn."""

    def choose(state: GroupChatState) -> str:
        return ("guest", "ann")[state.current_round % 2]

    participants: list[Any] = [agent("ann", says("one", "two")), Guest(id="guest")]
    return GroupChatBuilder(participants=participants, selection_func=choose, max_rounds=3).build()


def handoff() -> Any:
    """An agent that hands over to another, who asks a person."""

    def advise(messages: Sequence[Message]) -> Sequence[str]:
        is_answered = any("here it is" in each.text for each in messages)
        return ["all clear" if is_answered else "tell me more"]

    named = {"require_per_service_call_history_persistence": True}
    expert = agent("expert", advise, **named)
    desk = agent("desk", _calls("handoff_to_expert", {}, "over"), **named)
    built = HandoffBuilder(participants=[desk, expert], name="desk").with_start_agent(desk)
    built.add_handoff(desk, [expert]).add_handoff(expert, [desk])
    return built.with_termination_condition(_is_clear).build()


def _is_clear(messages: list[Message]) -> bool:
    return any("all clear" in each.text for each in messages)


def magentic() -> Any:
    """A manager that plans, has its plan reviewed, has an agent work and ends."""
    return _magentic(done_after="worked")


def magentic_stalled() -> Any:
    """A manager that sees no progress, begins anew and has its new plan reviewed."""
    return _magentic(
        done_after="second thoughts",
        max_stall_count=0,
        task_ledger_facts_update_prompt="Think again: {task} {old_facts}",
    )


def _magentic(done_after: str, **named: Any) -> Any:
    def manage(messages: Sequence[Message]) -> Sequence[str]:
        asked = messages[-1].text
        if "JSON" not in asked:
            return ["second thoughts" if "Think again" in asked else "facts, plans and answers"]
        done = any(done_after in each.text for each in messages)
        answers = {
            "is_request_satisfied": done,
            "is_in_loop": False,
            "is_progress_being_made": not named,
            "next_speaker": "worker",
            "instruction_or_question": "work",
        }
        return [json.dumps({name: {"reason": "so", "answer": answers[name]} for name in answers})]

    return MagenticBuilder(
        participants=[agent("worker", says("worked"))],
        manager_agent=agent("manager", manage),
        enable_plan_review=True,
        **named,
    ).build()


class Clerk(Executor):
    """Asks a person about a bill."""

    def __init__(self) -> None:
        super().__init__(id="clerk")
        self.seen: list[Bill] = []

    @handler
    async def take(self, amount: int, ctx: WorkflowContext[Decision]) -> None:
        """Ask."""
        self.seen.append(Bill(amount))
        ctx.set_state("bills", {("first", amount): {Colour.RED}})
        await ctx.request_info(Bill(amount), Decision)
        await ctx.request_info("which one?", list[str] | None)  # type: ignore[arg-type]

    @response_handler
    async def decided(self, _: Bill, decision: Decision, ctx: WorkflowContext[Decision]) -> None:
        """Go on."""
        await ctx.send_message(decision)

    @response_handler
    async def named(
        self, _: str, names: list[str] | None, ctx: WorkflowContext[Decision, list[str]]
    ) -> None:
        """Give the answer back."""
        await ctx.yield_output(names or [])

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """What was seen."""
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """The same."""
        self.seen = state["seen"]


@executor(id="bank")
async def bank(decision: Decision, ctx: WorkflowContext[Never, str]) -> None:
    """Do it."""
    await ctx.yield_output(f"approved: {decision.approved}")


def human_in_the_loop() -> Any:
    """An executor that asks two questions, and one that acts on the answer."""
    clerk = Clerk()
    return WorkflowBuilder(start_executor=clerk, name="bills").add_edge(clerk, bank).build()


def tool_approval() -> Any:
    """An agent whose tool needs a person's word."""
    payer = AgentExecutor(agent("payer", _calls("pay", {"amount": 42}, "done"), tools=[pay]))
    return WorkflowBuilder(start_executor=payer, name="payer", output_from=[payer]).build()


def structured() -> Any:
    """An agent that answers in a format, for an executor that reads it."""
    judge = agent("judge", says('{"good": true}'), default_options={"response_format": Verdict})

    @executor(id="reader")
    async def reader(said: AgentExecutorResponse, ctx: WorkflowContext[Never, Verdict]) -> None:
        verdict: Any = said.agent_response.value
        await ctx.yield_output(verdict)

    first = AgentExecutor(judge)
    return WorkflowBuilder(start_executor=first, name="judge").add_edge(first, reader).build()


class Starter(Executor):
    """Hands a bill to the workflow inside, and answers its question by itself."""

    @handler
    async def begin(self, amount: int, ctx: WorkflowContext[int]) -> None:
        """Begin."""
        await ctx.send_message(amount)

    @handler
    async def asked(
        self,
        request: SubWorkflowRequestMessage,
        ctx: WorkflowContext[SubWorkflowResponseMessage],
    ) -> None:
        """Answer what is known, and ask a person the rest."""
        if isinstance(request.source_event.data, Bill):
            answer = request.create_response(Decision(approved=True))
            await ctx.send_message(answer, target_id=request.executor_id)
        else:
            await ctx.request_info(request, list[str] | None)  # type: ignore[arg-type]

    @response_handler
    async def answered(
        self,
        request: SubWorkflowRequestMessage,
        names: list[str] | None,
        ctx: WorkflowContext[SubWorkflowResponseMessage],
    ) -> None:
        """Hand the answer on."""
        answer = request.create_response(names)
        await ctx.send_message(answer, target_id=request.executor_id)

    @handler
    async def ended(self, told: str | list[str], ctx: WorkflowContext[Never, str]) -> None:
        """End."""
        await ctx.yield_output(f"above: {told}")


def sub_workflow() -> Any:
    """A workflow inside, whose questions the one above answers, or passes on."""
    start, inside = Starter(id="start"), WorkflowExecutor(human_in_the_loop(), id="inside")
    built = WorkflowBuilder(start_executor=start, name="above")
    return built.add_edge(start, inside).add_edge(inside, start).build()


def sub_workflow_propagated() -> Any:
    """A workflow inside, whose questions go to a person."""
    inside = WorkflowExecutor(human_in_the_loop(), id="inside", propagate_request=True)
    ending = Starter(id="ending")
    return WorkflowBuilder(start_executor=inside, name="above").add_edge(inside, ending).build()


def custom_agents() -> Any:
    """Executors around agents, which ask them with messages; one collects what several send."""
    writer = AgentExecutor(agent("writer", says("a draft")))
    critic = AgentExecutor(agent("critic", says("no good")))

    @executor(id="begin")
    async def begin(topic: str, ctx: WorkflowContext[AgentExecutorRequest]) -> None:
        await ctx.send_message(AgentExecutorRequest([Message("user", [topic])]))

    @executor(id="end")
    async def end(said: list[AgentExecutorResponse], ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(", ".join(sorted(each.agent_response.text for each in said)))

    built = WorkflowBuilder(start_executor=begin, name="custom")
    built.add_fan_out_edges(begin, [writer, critic]).add_fan_in_edges([writer, critic], end)
    return built.build()


def functional() -> Any:
    """A function that is a workflow, with steps, which asks a person."""
    with warnings.catch_warnings(action="ignore"):  # the framework calls them experimental

        @step(name="look", replay_key=str)
        async def look(amount: int) -> Bill:
            return Bill(amount)

        @workflow(name="functional")
        async def bills(amount: int, ctx: RunContext) -> str | None:
            bill = await look(amount)
            ctx.set_state("bill", bill)
            decision = await ctx.request_info(bill, Decision)
            return f"{bill.amount}: {decision.approved}"

        return bills.build()


PROGRAMS: dict[str, tuple[Callable[[], Any], Any]] = {
    each.__name__: (each, message)
    for each, message in (
        (sequential, "write"),
        (sequential_with_question, "write"),
        (concurrent, "write"),
        (group_chat, "talk"),
        (group_chat_with_agent, "talk"),
        (group_chat_with_guest, "talk"),
        (handoff, "help"),
        (magentic, "work"),
        (magentic_stalled, "work"),
        (human_in_the_loop, 42),
        (tool_approval, "pay"),
        (structured, "judge"),
        (sub_workflow, 42),
        (sub_workflow_propagated, 42),
        (custom_agents, "write"),
        (functional, 42),
    )
}
"""How each is made, and what it is given first."""


def answer_to(request: Any) -> Any:
    """What a person says to a question."""
    if isinstance(request, Bill):
        return Decision(approved=True)
    if isinstance(request, Content):
        return request.to_function_approval_response(approved=True)
    if isinstance(request, HandoffAgentUserRequest):
        return HandoffAgentUserRequest.create_response("here it is")
    if isinstance(request, MagenticPlanReviewRequest):
        return request.approve()
    if isinstance(request, AgentExecutorResponse):
        better = [] if "better" in request.agent_response.text else ["make it better"]
        is_writer = request.executor_id == "writer"
        return AgentRequestInfoResponse.from_strings(better if is_writer else [])
    return ["this one"]
