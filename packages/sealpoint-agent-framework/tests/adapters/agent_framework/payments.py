# SPDX-License-Identifier: Apache-2.0
"""A workflow that asks before it pays, as a graph, with a workflow inside, and as a function."""

import warnings
from dataclasses import dataclass, field
from typing import Any

from agent_framework import (
    Executor,
    FunctionalWorkflow,
    RunContext,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    response_handler,
    step,
    workflow,
)

__all__ = ["SHAPES", "Payment", "Payments", "asked_of"]

SHAPES = ("graph", "nested", "function")


@dataclass
class Payment:
    """What somebody is asked about."""

    amount: int
    to: str


@dataclass
class Payments:
    """Makes workflows, and keeps what all of them did."""

    shape: str = "graph"
    amount: int = 42
    did: list[str] = field(default_factory=list)

    def build(self, name: str = "payments", **named: Any) -> Any:
        """A workflow, as a new process makes it."""
        if self.shape == "function":
            with warnings.catch_warnings(action="ignore"):  # the framework calls them experimental
                return self._function(name)
        start, bank = _Clerk(self), _Bank(self)
        built = WorkflowBuilder(start_executor=start, name=name, **named)
        if self.shape == "nested":
            inner = WorkflowBuilder(start_executor=start, name="clerks", output_from=[start])
            around = WorkflowExecutor(inner.build(), id="office", propagate_request=True)
            built = WorkflowBuilder(start_executor=around, name=name, **named)
            return built.add_edge(around, bank).build()
        return built.add_edge(start, bank).build()

    def _function(self, name: str) -> FunctionalWorkflow:
        @step(name="look", replay_key=lambda _: "look")
        async def look(to: str) -> str:
            self.did.append(f"looks at {to}")
            return to

        @step(name="pay", replay_key=lambda _: "pay")
        async def pay(text: str) -> str:
            self.did.append(f"pays {text}")
            return f"paid {text}"

        @workflow(name=name)
        async def payments(to: str, ctx: RunContext) -> str | None:
            found = await look(to)
            ok = await ctx.request_info(Payment(self.amount, found), bool)
            return await pay(f"{self.amount} to {found}: {ok}")

        return payments.build()


class _Clerk(Executor):
    def __init__(self, owner: Payments) -> None:
        super().__init__(id="clerk")
        self._owner = owner

    @handler
    async def take(self, to: str, ctx: WorkflowContext[str, str]) -> None:
        self._owner.did.append(f"looks at {to}")
        await ctx.request_info(request_data=Payment(self._owner.amount, to), response_type=bool)

    @response_handler
    async def answered(
        self,
        request: Payment,
        ok: bool,  # noqa: FBT001 (the framework's signature)
        ctx: WorkflowContext[str, str],
    ) -> None:
        told = f"{request.amount} to {request.to}: {ok}"
        self._owner.did.append(f"heard {ok}")
        if self._owner.shape == "nested":
            await ctx.yield_output(told)
        else:
            await ctx.send_message(told)


class _Bank(Executor):
    def __init__(self, owner: Payments) -> None:
        super().__init__(id="bank")
        self._owner = owner

    @handler
    async def pay(self, text: str, ctx: WorkflowContext[None, str]) -> None:
        self._owner.did.append(f"pays {text}")
        await ctx.yield_output(f"paid {text}")


def asked_of(result: Any) -> str:
    """The id of the one request that a run ended with."""
    (event,) = result.get_request_info_events()
    return str(event.request_id)


def is_graph(made: Any) -> bool:
    """Whether it was made by a builder."""
    return isinstance(made, Workflow)
