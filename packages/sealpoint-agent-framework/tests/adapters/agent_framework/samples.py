# SPDX-License-Identifier: Apache-2.0
"""Workflows as the framework's samples have them, each with what its user says to it.

Nothing in them knows a storage. `build` makes everything anew, as a process does that has just
begun; what must not be done twice is written down outside.
"""

import asyncio
import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Never

from agent_framework import (
    AgentExecutor,
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    Case,
    Content,
    Default,
    Executor,
    Message,
    RunContext,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
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
    HandoffBuilder,
    MagenticBuilder,
    MagenticPlanReviewRequest,
    SequentialBuilder,
    StandardMagenticManager,
)

from tests.adapters.agent_framework.outside import Outside, agent, call

__all__ = ["SAMPLES", "Sample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A workflow, and what its user does with it."""

    build: Callable[[Outside], Any]
    inputs: tuple[Any, ...]
    """What the user says, one after the other, each when the one before is done with."""
    answer: Callable[[Any], Any] = str
    """What the user answers to what the workflow asks."""
    types: tuple[type, ...] = ()
    """What no annotation names."""
    as_agent: bool = False
    """Whether the user talks to it as to an agent, which tells nothing of a run that is resumed."""
    side_by_side: bool = False
    """Whether it saves while other parts of it are at work, which a death then interrupts."""


def _last(messages: Sequence[Message]) -> str:
    return messages[-1].text


def _echo(prefix: str) -> Callable[[Sequence[Message]], str]:
    return lambda messages: f"{prefix} {_last(messages)}"


# ---------------------------------------------------------------------- sequential, concurrent


class _Summary(Executor):
    """Ends a chain with a line that is no model's."""

    @handler
    async def sum_up(
        self, found: AgentExecutorResponse, ctx: WorkflowContext[Never, AgentResponse]
    ) -> None:
        said = [f"{each.role}: {each.text}" for each in found.full_conversation]
        await ctx.yield_output(AgentResponse(messages=[Message("assistant", [" / ".join(said)])]))


def _sequential(outside: Outside) -> Any:
    writer = agent(outside, "writer", _echo("A slogan for"))
    editor = agent(outside, "editor", _echo("Shorter:"))
    return SequentialBuilder(
        name="sequential", participants=[writer, editor, _Summary(id="summary")]
    ).build()


def _reviewed(outside: Outside) -> Any:
    writer = agent(outside, "writer", _echo("Draft of"))
    editor = agent(outside, "editor", _echo("Edited:"))
    built = SequentialBuilder(name="reviewed", participants=[writer, editor])
    return built.with_request_info(agents=["editor"]).build()


def _review(asked: Any) -> AgentRequestInfoResponse:
    if "brief" in asked.agent_response.text:
        return AgentRequestInfoResponse.approve()
    return AgentRequestInfoResponse.from_strings(["be brief"])


def _concurrent(outside: Outside) -> Any:
    names = ("researcher", "marketer", "lawyer")
    return ConcurrentBuilder(
        name="concurrent", participants=[agent(outside, name, _echo(name)) for name in names]
    ).build()


# ---------------------------------------------------------------------- group chat


def _group_chat(outside: Outside) -> Any:
    names = ("poet", "critic")

    def next_speaker(state: Any) -> str:
        return names[state.current_round % 2]

    return GroupChatBuilder(
        name="group-chat",
        participants=[agent(outside, name, _echo(name)) for name in names],
        selection_func=next_speaker,
        max_rounds=4,
    ).build()


def _chaired(outside: Outside) -> Any:
    """A group chat in which an agent says who speaks next."""

    def chair(messages: Sequence[Message]) -> str:
        said = {each.author_name for each in messages}
        for name in ("analyst", "coder"):
            if name not in said:
                return json.dumps({"terminate": False, "reason": "new", "next_speaker": name})
        return json.dumps({"terminate": True, "reason": "done", "final_message": "We are done."})

    return GroupChatBuilder(
        name="chaired",
        participants=[agent(outside, name, _echo(name)) for name in ("analyst", "coder")],
        orchestrator_agent=agent(outside, "chair", chair),
    ).build()


# ---------------------------------------------------------------------- handoff


def _handoff(outside: Outside) -> Any:
    @tool(approval_mode="always_require")
    def refund(order: str) -> str:
        """Pay an order back."""
        outside.did(f"pays {order} back")
        return f"paid {order} back"

    def triage(messages: Sequence[Message]) -> Any:
        if "refund" in _last(messages):
            return call("handoff_to_refunds")
        return "What is it about?"

    def refunds(messages: Sequence[Message]) -> Any:
        if any(part.type == "function_result" for part in messages[-1].contents):
            return "Your order is paid back."
        order = re.search(r"order (\d+)", " ".join(each.text for each in messages))
        return call("refund", order=order[1]) if order else "Which order is it?"

    front = agent(outside, "triage", triage, require_per_service_call_history_persistence=True)
    back = agent(
        outside,
        "refunds",
        refunds,
        tools=[refund],
        require_per_service_call_history_persistence=True,
    )
    built = HandoffBuilder(
        name="handoff",
        participants=[front, back],
        termination_condition=lambda said: "paid back" in said[-1].text,
    )
    return built.with_start_agent(front).add_handoff(front, [back]).build()


def _customer(asked: Any) -> Any:
    if isinstance(asked, Content):
        return asked.to_function_approval_response(approved=True)
    said = asked.agent_response.text
    return [Message("user", ["I want a refund." if "about" in said else "It is order 17."])]


# ---------------------------------------------------------------------- magentic


def _ledger(**said: Any) -> str:
    fields = {
        "is_request_satisfied": False,
        "is_in_loop": False,
        "is_progress_being_made": True,
        "next_speaker": "researcher",
        "instruction_or_question": "Look it up.",
        **said,
    }
    return json.dumps({name: {"reason": "so", "answer": item} for name, item in fields.items()})


def _magentic(outside: Outside) -> Any:
    """A manager whose plan is reviewed, that stalls once, and comes to an end."""

    def manage(messages: Sequence[Message]) -> str:
        texts = [each.text for each in messages]
        if "JSON" in texts[-1]:
            if any("the number is 7" in text for text in texts):
                return _ledger(is_request_satisfied=True)
            if not any("Plan again" in text for text in texts):
                return _ledger(is_progress_being_made=False)
            return _ledger()
        if "final answer" in texts[-1].lower() or "FINAL ANSWER" in texts[-1]:
            return "It is seven."
        if any("more care" in text for text in texts):
            return "Plan again, with care."
        return f"A plan of {len(texts)}."

    manager = StandardMagenticManager(agent(outside, "manager", manage), max_stall_count=0)
    built = MagenticBuilder(
        name="magentic",
        participants=[
            agent(outside, "researcher", lambda _: "the number is 7", description="Looks up."),
            agent(outside, "coder", _echo("coded"), description="Writes code."),
        ],
        manager=manager,
        enable_plan_review=True,
    )
    return built.build()


def _review_plan(asked: MagenticPlanReviewRequest) -> Any:
    if asked.is_stalled and "Plan again" not in asked.plan.text:
        return asked.revise("Take more care.")
    return asked.approve()


# ---------------------------------------------------------------------- human in the loop


class _Verdict(Enum):
    HIGHER = "higher"
    LOWER = "lower"
    RIGHT = "right"


@dataclass
class _Guess:
    """What the user is asked about."""

    number: int
    tried: tuple[int, ...] = ()


class _Guesser(Executor):
    """Guesses a number by asking, and keeps its bounds in a state of its own."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(id="guesser")
        self._outside = outside
        self._low, self._high = 1, 100

    @handler
    async def begin(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("topic", text)
        await self._ask((), ctx)

    async def _ask(self, tried: tuple[int, ...], ctx: WorkflowContext[Any, Any]) -> None:
        number = (self._low + self._high) // 2
        self._outside.did(f"guesses {number}")
        await ctx.request_info(_Guess(number, tried), _Verdict)

    @response_handler
    async def told(
        self, asked: _Guess, verdict: _Verdict, ctx: WorkflowContext[_Guess, str]
    ) -> None:
        self._outside.did(f"is told {verdict.value} of {asked.number}")
        if verdict is _Verdict.RIGHT:
            await ctx.send_message(asked)
            return
        if verdict is _Verdict.HIGHER:
            self._low = asked.number + 1
        else:
            self._high = asked.number - 1
        await self._ask((*asked.tried, asked.number), ctx)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"bounds": (self._low, self._high)}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self._low, self._high = state["bounds"]


class _Teller(Executor):
    @handler
    async def tell(self, guess: _Guess, ctx: WorkflowContext[Never, str]) -> None:
        topic = ctx.get_state("topic")
        await ctx.yield_output(f"{topic}: {guess.number} after {list(guess.tried)}")


def _guessing(outside: Outside) -> Any:
    guesser, teller = _Guesser(outside), _Teller(id="teller")
    return (
        WorkflowBuilder(start_executor=guesser, name="guessing").add_edge(guesser, teller).build()
    )


def _judge(asked: _Guess) -> _Verdict:
    if asked.number == 37:
        return _Verdict.RIGHT
    return _Verdict.HIGHER if asked.number < 37 else _Verdict.LOWER


def _approved_tools(outside: Outside) -> Any:
    """An agent in a graph whose tool may only be called when somebody agrees."""

    @tool(approval_mode="always_require")
    def wire(amount: int) -> str:
        """Send money."""
        outside.did(f"wires {amount}")
        return f"wired {amount}"

    def voice(messages: Sequence[Message]) -> Any:
        if any(part.type == "function_result" for part in messages[-1].contents):
            return "The money is on its way."
        return call("wire", amount=42)

    clerk = AgentExecutor(agent(outside, "clerk", voice, tools=[wire]))
    end = _Summary(id="summary")
    built = WorkflowBuilder(start_executor=clerk, name="approved-tools", output_from=[end])
    return built.add_edge(clerk, end).build()


def _agree(asked: Content) -> Content:
    return asked.to_function_approval_response(approved=True)


# ---------------------------------------------------------------------- graphs


@dataclass
class _Order:
    """What is worked on, as the application models it."""

    text: str
    lines: list[str]


class _Splitter(Executor):
    @handler
    async def split(self, text: str, ctx: WorkflowContext[_Order]) -> None:
        ctx.set_state("first", text.split(maxsplit=1)[0])
        await ctx.send_message(_Order(text, text.split()))


class _Worker(Executor):
    def __init__(self, outside: Outside, name: str) -> None:
        super().__init__(id=name)
        self._outside = outside

    @handler
    async def work(self, order: _Order, ctx: WorkflowContext[_Order]) -> None:
        self._outside.did(f"{self.id} works on {order.text}")
        await ctx.send_message(_Order(f"{order.text}, {self.id}", [*order.lines, self.id]))


class _Joiner(Executor):
    @handler
    async def join(self, orders: list[_Order], ctx: WorkflowContext[_Order]) -> None:
        lines = sorted({line for order in orders for line in order.lines})
        await ctx.send_message(_Order(f"{ctx.get_state('first')} {len(orders)}", lines))


class _Ending(Executor):
    @handler
    async def end(self, order: _Order, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{self.id}: {order.text} {order.lines}")


def _is_long(order: Any) -> bool:
    return len(order.lines) > 4


def _fan_in(outside: Outside) -> Any:
    """Two ways of unlike length that meet, so that one waits in the edge, and a choice after."""
    start, join = _Splitter(id="split"), _Joiner(id="join")
    quick, slow, slower = (_Worker(outside, name) for name in ("quick", "slow", "slower"))
    long, short = _Ending(id="long"), _Ending(id="short")
    built = WorkflowBuilder(start_executor=start, name="fan-in")
    built.add_fan_out_edges(start, [quick, slow]).add_edge(slow, slower)
    built.add_fan_in_edges([quick, slower], join)
    built.add_switch_case_edge_group(
        join, [Case(condition=_is_long, target=long), Default(target=short)]
    )
    return built.build()


# ---------------------------------------------------------------------- sub-workflows


@dataclass
class _Quota:
    """What a workflow inside asks the one around it, or whoever is outside."""

    what: str
    amount: int


class _Asker(Executor):
    def __init__(self, outside: Outside) -> None:
        super().__init__(id="asker")
        self._outside = outside

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        self._outside.did(f"asks for {text}")
        for amount in (3, 300):
            await ctx.request_info(_Quota(text, amount), bool)

    @response_handler
    async def told(
        self,
        asked: _Quota,
        ok: bool,  # noqa: FBT001 (the framework's signature)
        ctx: WorkflowContext[Never, str],
    ) -> None:
        self._outside.did(f"is told {ok} for {asked.amount}")
        await ctx.yield_output(f"{asked.what} {asked.amount}: {ok}")


class _Office(Executor):
    """Answers small requests itself, and asks outside about large ones."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(id="office")
        self._outside = outside
        self._asked: dict[str, SubWorkflowRequestMessage] = {}

    @handler
    async def begin(self, order: _Order, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(order.text, target_id="inner")

    @handler
    async def asked(
        self, found: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
    ) -> None:
        quota: _Quota = found.source_event.data
        if quota.amount < 10:
            self._outside.did(f"allows {quota.amount} by itself")
            await ctx.send_message(found.create_response(data=True), target_id="inner")
            return
        self._asked[quota.what] = found
        await ctx.request_info(quota, bool)

    @response_handler
    async def told(
        self,
        asked: _Quota,
        ok: bool,  # noqa: FBT001 (the framework's signature)
        ctx: WorkflowContext[SubWorkflowResponseMessage],
    ) -> None:
        found = self._asked.pop(asked.what)
        await ctx.send_message(found.create_response(data=ok), target_id="inner")

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"asked": dict(self._asked)}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self._asked = dict(state["asked"])


def _inner(outside: Outside) -> Any:
    return WorkflowBuilder(start_executor=_Asker(outside), name="inner").build()


class _Printer(Executor):
    @handler
    async def tell(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"told {text}")


def _inside(outside: Outside) -> Any:
    """What is asked inside goes through to the outside."""
    inner = WorkflowExecutor(_inner(outside), id="inner", propagate_request=True)
    printer = _Printer(id="printer")
    built = WorkflowBuilder(start_executor=inner, name="sub-workflow", output_from=[printer])
    return built.add_edge(inner, printer).build()


def _intercepted(outside: Outside) -> Any:
    """What is asked inside is answered by the workflow around, or asked again from there."""
    inner, office = WorkflowExecutor(_inner(outside), id="inner"), _Office(outside)
    printer = _Printer(id="printer")
    built = WorkflowBuilder(start_executor=office, name="intercepted", output_from=[printer])
    return built.add_edge(office, inner).add_edge(inner, office).add_edge(inner, printer).build()


# ---------------------------------------------------------------------- functional


def _functional(outside: Outside) -> Any:
    with warnings.catch_warnings(action="ignore"):  # the framework calls them experimental
        return _pipeline(outside)


def _pipeline(outside: Outside) -> Any:
    @step(name="fetch", replay_key=lambda topic: topic)
    async def fetch(topic: str) -> _Order:
        outside.did(f"fetches {topic}")
        return _Order(topic, [topic.upper()])

    @step(name="check", replay_key=lambda order, by: f"{by}: {order.text}")
    async def check(order: _Order, by: str) -> str:
        outside.did(f"{by} checks {order.text}")
        return f"{by} saw {order.lines[0]}"

    @step(name="publish", replay_key=lambda text: text)
    async def publish(text: str) -> str:
        outside.did(f"publishes {text}")
        return f"published {text}"

    @workflow(name="functional")
    async def pipeline(topic: str, ctx: RunContext) -> str:
        order = await fetch(topic)
        first = await check(order, "ann")
        both = [first, await check(order, "bob")]
        ctx.set_state("checked", both)
        ok = await ctx.request_info(_Quota(topic, len(both)), bool)
        return await publish(f"{', '.join(both)}: {ok}")

    return pipeline.build()


def _parallel_steps(outside: Outside) -> Any:
    with warnings.catch_warnings(action="ignore"):  # the framework calls them experimental
        return _gathering(outside)


def _gathering(outside: Outside) -> Any:
    @step(name="look", replay_key=lambda place: place)
    async def look(place: str) -> int:
        outside.did(f"looks at {place}")
        return len(place)

    async def gathers(text: str) -> int:
        return sum(await asyncio.gather(*(look(place) for place in text.split())))

    return workflow(name="parallel-steps")(gathers).build()


# ---------------------------------------------------------------------- as an agent


class _Desk(Executor):
    """Takes what is said, and hands it on with a number that it keeps."""

    @handler
    async def take(
        self, messages: list[Message], ctx: WorkflowContext[AgentExecutorRequest]
    ) -> None:
        turn = ctx.get_state("turn", 0) + 1
        ctx.set_state("turn", turn)
        told = Message("user", [f"{turn}. {messages[-1].text}"])
        await ctx.send_message(AgentExecutorRequest(messages=[told], should_respond=True))


def _conversation(outside: Outside) -> Any:
    def voice(messages: Sequence[Message]) -> str:
        return f"heard {len(messages)}, the last {_last(messages)}"

    desk = _Desk(id="desk")
    helper = AgentExecutor(agent(outside, "helper", voice))
    built = WorkflowBuilder(start_executor=desk, name="conversation", output_from=[helper])
    return built.add_edge(desk, helper).build()


def _said(text: str) -> list[Message]:
    return [Message("user", [text])]


SAMPLES: dict[str, Sample] = {
    "sequential": Sample(build=_sequential, inputs=("an electric bicycle",)),
    "reviewed": Sample(build=_reviewed, inputs=("a speech",), answer=_review),
    "concurrent": Sample(build=_concurrent, inputs=("a new kettle",)),
    "group-chat": Sample(build=_group_chat, inputs=("the sea",)),
    "chaired": Sample(build=_chaired, inputs=("sort a list",)),
    "handoff": Sample(build=_handoff, inputs=("hello",), answer=_customer),
    "magentic": Sample(build=_magentic, inputs=("Find the number.",), answer=_review_plan),
    "guessing": Sample(build=_guessing, inputs=("a number",), answer=_judge),
    "approved-tools": Sample(build=_approved_tools, inputs=("send it",), answer=_agree),
    "fan-in": Sample(build=_fan_in, inputs=("tea milk sugar", "salt", "oil and vinegar")),
    "sub-workflow": Sample(
        build=_inside, inputs=("disk",), answer=lambda asked: asked.amount < 100
    ),
    "intercepted": Sample(build=_intercepted, inputs=(_Order("disk", []),), answer=lambda _: False),
    "functional": Sample(
        build=_functional, inputs=("news",), answer=lambda _: True, types=(_Quota,)
    ),
    "parallel-steps": Sample(
        build=_parallel_steps, inputs=("here there everywhere",), side_by_side=True
    ),
    "multi-turn": Sample(build=_conversation, inputs=tuple(map(_said, ("one", "two", "three")))),
    "as-agent": Sample(build=_conversation, inputs=("one", "two", "three"), as_agent=True),
}
