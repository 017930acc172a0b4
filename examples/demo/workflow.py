# SPDX-License-Identifier: Apache-2.0
"""The workflow of the demo: an agent reads an invoice, and it is paid after a person said yes.

Written as for any storage. The model of its agent is scripted.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Never

from agent_framework import (
    Agent,
    AgentExecutorResponse,
    BaseChatClient,
    ChatResponse,
    CheckpointStorage,
    Executor,
    FunctionInvocationLayer,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from bank import Bank

NAME = "payments"
INVOICES = {
    "invoice-17": "Invoice 17 of acme: 42.00 EUR.",
    "invoice-18": "Invoice 18 of globex: 42.00 EUR.",
}


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A chat client that needs no network: it says who is to be paid, and how much."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], **_: Any
    ) -> Awaitable[ChatResponse]:  # type: ignore[override]
        async def answer() -> ChatResponse:
            *_, to, amount, currency = messages[-1].text.rstrip(".").replace(":", "").split()
            return ChatResponse(messages=[Message("assistant", [f"{amount} {currency} to {to}"])])

        return answer()


class Cashier(Executor):
    """Pays what the agent read, after a person said yes."""

    def __init__(self, bank: Bank) -> None:
        super().__init__(id="cashier")
        self._bank = bank

    @handler
    async def ask(self, read: AgentExecutorResponse, ctx: WorkflowContext[Never, str]) -> None:
        """Keep what is to be paid, and ask."""
        payment = read.agent_response.text
        ctx.set_state("payment", payment)
        await ctx.request_info(f"Pay {payment}?", bool)

    @response_handler
    async def pay(self, question: str, answer: bool, ctx: WorkflowContext[Never, str]) -> None:  # noqa: FBT001 (the framework's signature)
        """Do what the answer says."""
        payment = str(ctx.get_state("payment"))
        if answer:
            self._bank.transfers.append(payment)
        await ctx.yield_output(f"{question} {answer}")


def build(bank: Bank, storage: CheckpointStorage | None = None) -> Workflow:
    """The workflow, as each process makes it anew."""
    reader = Agent(ScriptedClient(), "Say who is to be paid, and how much.", name="reader")
    builder = WorkflowBuilder(start_executor=reader, name=NAME, checkpoint_storage=storage)
    return builder.add_edge(reader, Cashier(bank)).build()
