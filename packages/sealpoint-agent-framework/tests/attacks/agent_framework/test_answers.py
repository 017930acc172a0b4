# SPDX-License-Identifier: Apache-2.0
"""A request under the policy `strict`: what people approved happens once, and nothing else does."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from agent_framework import (
    Content,
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)

from sealpoint.errors import NeedsApproval, NotOwner, ResumeRefused, SealpointError, UsageError
from sealpoint.gate import Request
from sealpoint_agent_framework import guard
from tests.adapters.agent_framework.payments import Payment, Payments, asked_of
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.agent_framework.bureau import Bureau, Waiting


@tool
def shell(command: str) -> str:
    """Run a command."""
    return command


async def _streamed(stream: Any) -> Any:
    return [event async for event in stream]


_WAYS: dict[str, Callable[[Waiting], Any]] = {
    "in the same process": lambda at: at.workflow.run(responses={at.request: True}),
    "by its checkpoint": lambda at: at.workflow.run(**at.call()),
    "as a stream": lambda at: _streamed(at.workflow.run(**at.call(), stream=True)),
    "as a stream that goes on": lambda at: _streamed(
        at.workflow.run(responses={at.request: True}, stream=True)
    ),
}


@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS)
def test_nothing_runs_before_two_have_approved_and_then_it_runs_once(
    new_office: Bureau, payments: Payments, way: Callable[[Waiting], Any]
) -> None:
    """However the response is brought; one approval is not two, and none is good twice."""

    async def work() -> None:
        at = await new_office.waiting(payments)
        request = await new_office.request_for(way(at))
        new_office.approve(request, "ann")
        with pytest.raises(NeedsApproval):
            await way(at)
        assert payments.did == []
        new_office.approve(request, "bob")
        await way(at)
        paid = list(payments.did)
        assert [each for each in paid if "pays" in each] == ["pays 42 to ann: True"]
        for response in (True, False):
            with pytest.raises(SealpointError):
                await at.workflow.run(**at.call(response=response))
        assert payments.did == paid
        assert new_office.worker.verify().ok

    asyncio.run(work())


_OTHERS: dict[str, Callable[[Waiting], dict[str, Any]]] = {
    "the opposite": lambda at: at.call(response=False),
    "a number that is equal": lambda at: at.call(response=1),
    "a text that looks like it": lambda at: at.call(response="True"),
}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "for tools": {"function_invocation_kwargs": {"limit": 99_999}},
    "for clients": {"client_kwargs": {"temperature": 2}},
    "both": {"function_invocation_kwargs": {"a": 1}, "client_kwargs": {"a": 1}},
}


@pytest.mark.parametrize("other", _OTHERS.values(), ids=_OTHERS)
def test_another_response_than_the_approved_one_needs_its_own_approval(
    office: Bureau, payments: Payments, other: Callable[[Waiting], dict[str, Any]]
) -> None:
    """Approve A, do B: refused, and A can still be done."""

    async def work() -> None:
        at = await office.waiting(payments)
        request = await office.request_for(at.workflow.run(**at.call()))
        office.approve(request)
        with pytest.raises((NeedsApproval, ResumeRefused)) as refused:
            await at.workflow.run(**other(at))
        assert getattr(refused.value, "request", None) != request
        assert payments.did == []
        await at.workflow.run(**at.call())
        assert payments.did[-1] == "pays 42 to ann: True"

    asyncio.run(work())


def test_no_response_uses_up_no_approval_and_runs_nothing(
    new_office: Bureau, payments: Payments
) -> None:
    """A call without one only puts a workflow to the checkpoint: nothing is recorded or saved."""

    async def work() -> None:
        at = await new_office.waiting(payments)
        request = await new_office.request_for(at.workflow.run(**at.call()))
        new_office.approve(request)
        entries = new_office.worker.verify().entries
        for brought in ({}, *_ARGUMENTS.values()):
            if payments.shape == "function":  # it runs anew from its beginning
                with pytest.raises(NeedsApproval):
                    await at.workflow.run(checkpoint_id=at.checkpoint, **brought)
                entries = new_office.worker.verify().entries
            else:
                found = await at.workflow.run(checkpoint_id=at.checkpoint, **brought)
                assert asked_of(found) == at.request
            assert payments.did == []
            assert new_office.worker.verify().entries == entries
        await at.workflow.run(**at.call())
        assert payments.did[-1] == "pays 42 to ann: True"

    asyncio.run(work())


@pytest.mark.parametrize("shape", ["graph", "nested"])
def test_a_workflow_that_was_put_to_an_older_checkpoint_goes_on_from_there_by_approval(
    new_office: Bureau, shape: str
) -> None:
    """To look at it is free, and what comes next is judged as what it is."""

    async def work() -> None:
        payments = Payments(shape)
        at = await new_office.waiting(payments)
        new_office.approve(await new_office.request_for(at.workflow.run(**at.call())))
        await at.workflow.run(**at.call())
        paid = list(payments.did)
        entries = new_office.worker.verify().entries
        assert asked_of(await at.workflow.run(checkpoint_id=at.checkpoint)) == at.request
        assert new_office.worker.verify().entries == entries
        for call in ({"responses": {at.request: True}}, {"message": "bob"}):
            with pytest.raises(NeedsApproval, match="not the newest"):
                await at.workflow.run(**call)
        assert payments.did == paid

    asyncio.run(work())


@pytest.mark.parametrize("brought", _ARGUMENTS.values(), ids=_ARGUMENTS)
@pytest.mark.parametrize("shape", ["graph", "nested"])
def test_arguments_that_come_after_the_approval_are_not_approved(
    office: Bureau, shape: str, brought: dict[str, Any]
) -> None:
    """Neither more of them, nor others, nor fewer."""

    async def work() -> None:
        payments = Payments(shape)
        at = await office.waiting(payments)
        plain = await office.request_for(at.workflow.run(**at.call()))
        office.approve(plain)
        more = await office.request_for(at.workflow.run(**at.call(), **brought))
        assert more.id != plain.id
        assert payments.did == []

    asyncio.run(work())


def test_arguments_of_a_function_are_bound_whatever_their_names_are(office: Bureau) -> None:
    """Also one that is called like a part of what is bound."""

    async def work() -> None:
        payments = Payments("function")
        at = await office.waiting(payments)
        plain = await office.request_for(at.workflow.run(**at.call()))
        office.approve(plain)
        found = {plain.id}
        for name in ("amount", "input", "cancel", "arguments"):
            for value in (99_999, None):
                call = at.workflow.run(**at.call(), **{name: value})
                found.add((await office.request_for(call)).id)
        assert len(found) == 9
        assert payments.did == []

    asyncio.run(work())


def test_tools_of_the_call_are_judged_even_if_its_list_is_emptied(office: Bureau) -> None:
    """What the run would be given counts, and not what the caller's list says by then."""

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        plain = await office.request_for(at.workflow.run(**at.call()))
        office.approve(plain)
        tools = [shell]
        stream = at.workflow.run(**at.call(), tools=tools, stream=True)
        tools.clear()
        wider = await office.request_for(_streamed(stream))
        assert wider.id != plain.id
        assert any("shell" in reason for reason in wider.reasons)
        assert payments.did == []

    asyncio.run(work())


def test_tools_of_the_call_come_on_top_of_a_declared_world(office: Bureau) -> None:
    """They do not take its place."""

    async def work() -> None:
        payments, world = Payments(), {"tools": ["look"], "model": {"name": "m"}}
        workflow = guard(payments.build(), office.storage, actor="dev", world=world)
        gate = workflow._sealpoint_gate
        assert gate.world(workflow, []) == gate.world(workflow)
        found = gate.world(workflow, [shell]).to_dict()
        assert found["model"] == {"name": "m"}
        assert [each["name"] for each in found["tools"]] == ["look", "shell"]

    asyncio.run(work())


def test_an_approval_is_not_good_for_the_next_question(office: Bureau) -> None:
    """The same amount and the same response, one turn later."""

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        first = await office.request_for(at.workflow.run(**at.call()))
        office.approve(first)
        await at.workflow.run(**at.call())
        request = asked_of(await at.workflow.run("ann"))
        payments.did.clear()
        second = await office.request_for(at.workflow.run(responses={request: True}))
        assert second.id != first.id
        assert second.approved_by == ()
        assert payments.did == []

    asyncio.run(work())


def test_a_denial_holds_for_every_way_to_bring_the_response(
    office: Bureau, payments: Payments
) -> None:
    """Also in another process."""

    async def work() -> None:
        at = await office.waiting(payments)
        request = await office.request_for(at.workflow.run(**at.call()))
        office._people["ann"].deny(request.id, reason="no")
        other = office.guarded(payments, office.another())
        calls: tuple[Callable[[], Any], ...] = (
            lambda: at.workflow.run(**at.call()),
            lambda: at.workflow.run(responses={at.request: True}),
            lambda: other.run(**at.call()),
        )
        for call in calls:
            with pytest.raises(ResumeRefused, match="denied"):
                await call()
        assert payments.did == []

    asyncio.run(work())


def test_an_approval_that_has_expired_is_none(
    office: Bureau, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A month later people are asked anew."""

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        request = await office.request_for(at.workflow.run(**at.call()))
        office.approve(request)
        core = office.worker.thread(at.thread)._state.core
        now = core.now
        monkeypatch.setattr(core, "now", lambda *given: now(*given) + timedelta(days=31))
        again = await office.request_for(at.workflow.run(**at.call()))
        assert again.id != request.id
        assert payments.did == []

    asyncio.run(work())


def test_another_identity_cannot_use_what_was_approved_for_the_worker(
    office: Bureau, payments: Payments
) -> None:
    """It is another's thread, and another's request."""

    async def work() -> None:
        at = await office.waiting(payments)
        office.approve(await office.request_for(at.workflow.run(**at.call())))
        with office.process("clerk") as store:
            other = office.guarded(payments, sealed(store))
            with pytest.raises(NotOwner):
                await other.run(**at.call())
        assert payments.did == []

    asyncio.run(work())


def test_who_the_caller_says_it_is_decides_nothing(office: Bureau) -> None:
    """The actor is for the record: calling oneself an approver approves nothing."""

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        posing = guard(payments.build(), at.storage, actor="ann")
        request = await office.request_for(posing.run(**at.call()))
        assert request.approved_by == ()
        assert payments.did == []

    asyncio.run(work())


def test_cancelling_a_request_needs_approval_of_its_own(office: Bureau) -> None:
    """An approval of a response is none for making the request go away, nor the other way round."""

    async def work() -> None:
        payments = Payments()
        at = await office.waiting(payments)
        office.approve(await office.request_for(at.workflow.run(**at.call())))
        cancel = await office.request_for(at.workflow.cancel_pending_requests([at.request]))
        assert payments.did == []
        office.approve(cancel)
        await at.workflow.cancel_pending_requests([at.request])
        with pytest.raises((SealpointError, ValueError)):
            await at.workflow.run(**at.call())
        assert payments.did == []

    asyncio.run(work())


def test_an_agent_made_of_the_workflow_goes_through_the_gate(office: Bureau) -> None:
    """`as_agent` is another face of the same run."""
    did: list[str] = []

    class Desk(Executor):
        @handler
        async def take(self, _messages: list[Message], ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info(request_data=Payment(42, "ann"), response_type=str)

        @response_handler
        async def answered(
            self, request: Payment, answer: str, ctx: WorkflowContext[str, str]
        ) -> None:
            did.append(f"pays {request.amount}: {answer}")
            await ctx.yield_output(answer)

    async def work() -> None:
        built = WorkflowBuilder(start_executor=Desk(id="desk"), name="chats").build()
        agent = guard(built, office.storage, actor="dev").as_agent()
        first = await agent.run("pay ann")
        (asked,) = (each for message in first.messages for each in message.contents)
        answer = Message("user", [Content.from_function_result(asked.call_id or "", result="yes")])
        with pytest.raises(NeedsApproval) as refused:
            await agent.run(answer)
        assert did == []
        office.approve(cast("Request", refused.value.request))
        await agent.run(answer)
        assert did == ["pays 42: yes"]

    asyncio.run(work())


def test_an_agent_goes_on_from_a_checkpoint_in_another_process(office: Bureau) -> None:
    """The framework puts the workflow to the checkpoint first, and answers then: that is judged."""
    did: list[str] = []

    class Desk(Executor):
        @handler
        async def take(self, _messages: list[Message], ctx: WorkflowContext[str, str]) -> None:
            did.append("takes")
            await ctx.request_info(request_data=Payment(42, "ann"), response_type=str)

        @response_handler
        async def answered(
            self, request: Payment, answer: str, ctx: WorkflowContext[str, str]
        ) -> None:
            did.append(f"pays {request.amount}: {answer}")
            await ctx.yield_output(answer)

    def agent_of(storage: Any) -> Any:
        built = WorkflowBuilder(start_executor=Desk(id="desk"), name="chats").build()
        return guard(built, storage, actor="dev").as_agent()

    async def work() -> None:
        first = await agent_of(office.storage).run("pay ann")
        (asked,) = (each for message in first.messages for each in message.contents)
        answer = Message("user", [Content.from_function_result(asked.call_id, result="yes")])
        latest = await office.storage.get_latest(workflow_name="chats")
        assert latest is not None

        def goes_on() -> Any:
            own = office.another()
            return agent_of(own).run(
                answer, checkpoint_id=latest.checkpoint_id, checkpoint_storage=own
            )

        office.approve(await office.request_for(goes_on()))
        assert did == ["takes"]
        assert (await goes_on()).text == "yes"
        assert did == ["takes", "pays 42: yes"]
        with pytest.raises((NeedsApproval, SealpointError)):
            await goes_on()
        assert did == ["takes", "pays 42: yes"]

    asyncio.run(work())


def test_people_are_shown_the_call_that_a_tool_asks_for(office: Bureau) -> None:
    """Which tool, with what, and what is said to it: the same in every process, so it passes."""
    did: list[str] = []
    call = Content.from_function_call("c1", "transfer", arguments={"amount": 99_999, "to": "eve"})

    class Teller(Executor):
        @handler
        async def take(self, _text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info(Content.from_function_approval_request("r1", call), Content)

        @response_handler
        async def answered(
            self, _asked: Content, said: Content, ctx: WorkflowContext[str, str]
        ) -> None:
            did.append(f"approved: {said.approved}")
            await ctx.yield_output("done")

    def guarded(storage: Any) -> Any:
        built = WorkflowBuilder(start_executor=Teller(id="teller"), name="tells").build()
        return guard(built, storage, actor="dev")

    async def work() -> None:
        request = asked_of(await guarded(office.storage).run("ann"))
        latest = await office.storage.get_latest(workflow_name="tells")
        assert latest is not None
        thread = await office.storage.thread_of(latest.checkpoint_id)
        (question,) = office.worker.thread(thread).question
        asked_for = question["value"]["function_call"]
        assert asked_for["arguments"] == {"amount": 99_999, "to": "eve"}

        def answer() -> Any:
            asked = Content.from_function_approval_request("r1", call)
            responses = {request: asked.to_function_approval_response(approved=True)}
            return guarded(office.another()).run(
                checkpoint_id=latest.checkpoint_id, responses=responses
            )

        found = await office.request_for(answer())
        said = found.answer["resume"][request]["$object"]["text"]
        assert "name='transfer'" in said
        assert said.endswith("approved=True)")
        office.approve(found)
        await answer()
        assert did == ["approved: True"]

    asyncio.run(work())


def test_a_function_answers_no_question_before_it_is_asked(office: Bureau) -> None:
    """Nobody could have been shown what they approve."""

    async def work() -> None:
        payments = Payments("function")
        at = await office.waiting(payments)
        with pytest.raises(UsageError, match="no request 'auto::1' waits"):
            await at.workflow.run(
                checkpoint_id=at.checkpoint, responses={at.request: True, "auto::1": True}
            )
        assert payments.did == []

    asyncio.run(work())
