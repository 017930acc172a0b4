# SPDX-License-Identifier: Apache-2.0
"""`resume_waiting` of workflows: what people have answered or approved runs, once."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentExecutor, Content, Message, WorkflowBuilder, tool

from sealpoint.adapters.waiting_runs import ResumeCounts, RunOutcome
from sealpoint.errors import UsageError
from sealpoint.views.answer_forms import FieldKind, questions_of, read_answer
from sealpoint_agent_framework import guard, resume_waiting
from tests.adapters.agent_framework.payments import SHAPES, Payments
from tests.adapters.agent_framework.scripted import agent
from tests.adapters.agent_framework.stores import sealed
from tests.attacks.agent_framework.bureau import Bureau


@pytest.fixture
def bureau(tmp_path: Path) -> Iterator[Bureau]:
    """A team under a policy that records answers."""
    made = Bureau(tmp_path / "home", policy="solo")
    yield made
    made.close()


def _waiting(bureau: Bureau, shape: str) -> tuple[Payments, str]:
    """A workflow that asks about a payment, and its thread."""
    payments = Payments(shape)
    asyncio.run(_run(bureau, payments))
    (thread,) = bureau.worker.threads().names
    return payments, thread


async def _run(bureau: Bureau, payments: Payments) -> None:
    await bureau.guarded(payments).run("acme")


def _resumed(bureau: Bureau, payments: Payments) -> ResumeCounts:
    """What another process finds."""
    storage = bureau.another()
    workflow = guard(payments.build(), storage, actor="dev")
    return asyncio.run(resume_waiting(workflow, storage.store))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answered_run_goes_on_once(bureau: Bureau, shape: str) -> None:
    """In another process than the one that asked."""
    payments, thread = _waiting(bureau, shape)
    assert _resumed(bureau, payments).outcomes == {}
    handle = bureau.operator().thread(thread)
    questions = questions_of(handle.question)
    assert [each.form.kind for each in questions] == [FieldKind.CHOICE]
    filled = {each.form.name: "0" for each in questions}
    handle.answer(read_answer(questions, filled))
    assert _resumed(bureau, payments).ran == 1
    assert [each for each in payments.did if each.startswith("pays")] == ["pays 42 to acme: True"]
    assert _resumed(bureau, payments).outcomes == {}


class _Payer:
    """An agent whose tool waits for approval of the framework."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def build(self) -> Any:
        """The workflow, as a new process makes it."""

        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        def reply(messages: Sequence[Message]) -> Sequence[str | Content]:
            said = [each.type for message in messages for each in message.contents]
            if "function_result" in said:
                return ["Done."]
            return [Content.from_function_call("call-1", "pay", arguments='{"amount": 42}')]

        payer = AgentExecutor(agent("payer", reply, tools=[pay]))
        return WorkflowBuilder(start_executor=payer, name="payer").build()


@pytest.mark.parametrize(("said", "paid"), [("Yes", [42]), ("No", [])])
def test_a_call_that_waits_for_approval_is_a_yes_or_no(
    bureau: Bureau, said: str, paid: list[int]
) -> None:
    """The form has nothing else to fill in, and the framework takes what it gives."""
    payer = _Payer()
    asyncio.run(guard(payer.build(), sealed(bureau.worker), actor="dev").run("Pay it."))
    (thread,) = bureau.worker.threads().names
    handle = bureau.operator().thread(thread)
    (asked,) = questions_of(handle.question)
    (approved,) = (each for each in asked.form.fields if each.kind is FieldKind.CHOICE)
    words = [word for word, _ in approved.options]
    handle.answer(read_answer([asked], {approved.name: str(words.index(said))}))
    storage = bureau.another()
    counts = asyncio.run(resume_waiting(guard(payer.build(), storage, actor="dev"), storage.store))

    assert (approved.label, words) == ("Call pay", ["Yes", "No"])
    assert (counts.ran, payer.paid) == (1, paid)


def test_what_was_approved_runs_without_its_caller(tmp_path: Path) -> None:
    """It asks for approval first, and runs after it."""
    bureau = Bureau(tmp_path / "home")
    payments, thread = _waiting(bureau, "graph")
    handle = bureau.operator().thread(thread)
    (asked,) = questions_of(handle.question)
    handle.answer({"resume": {asked.id: True}})
    assert _resumed(bureau, payments).outcomes == {RunOutcome.NEEDS_APPROVAL: 1}
    (request,) = bureau.operator().requests().requests
    bureau.approve(request)
    assert _resumed(bureau, payments).ran == 1
    assert [each for each in payments.did if each.startswith("pays")] == ["pays 42 to acme: True"]
    bureau.close()


def test_a_thread_of_another_workflow_is_left_alone(bureau: Bureau) -> None:
    """Its answer stays for the workflow that asked."""
    _, thread = _waiting(bureau, "graph")
    handle = bureau.operator().thread(thread)
    (asked,) = questions_of(handle.question)
    handle.answer({"resume": {asked.id: True}})
    storage = bureau.another()
    other = guard(Payments().build("refunds"), storage, actor="dev")
    counts = asyncio.run(resume_waiting(other, storage.store))
    assert counts.outcomes == {RunOutcome.FOREIGN: 1}


def test_it_needs_the_guard_and_its_store(bureau: Bureau) -> None:
    """Neither an unguarded workflow nor another store."""
    workflow = bureau.guarded(Payments())
    for found, store in ((workflow, bureau.process()), (Payments().build(), bureau.worker)):
        with pytest.raises(UsageError, match="resume_waiting"):
            asyncio.run(resume_waiting(found, store))
