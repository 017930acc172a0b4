# SPDX-License-Identifier: Apache-2.0
"""A worker that pays when somebody says yes, with either framework, in a process of its own.

What it does outside is a line in a file. It may die right after that, or wait there until a file is
made: so a test can have a second worker come at any moment.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from agent_framework import (
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

import sealpoint_agent_framework as agent_framework
import sealpoint_langgraph as langgraph
from sealpoint.api import Store
from sealpoint.errors import SealpointError
from tests.faults.places import Place
from tests.warm import PROCESSES

__all__ = ["FRAMEWORKS", "THREAD", "Another", "Bank", "Worker", "told"]

FRAMEWORKS = ("langgraph", "agent-framework")
THREAD = "invoice-7"
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class Bank:
    """What lies outside: payments, and when the bank answers."""

    directory: str
    dies: bool = False
    """Whether the worker is killed when it has paid."""
    waits: bool = False
    """Whether the bank answers only when it is told to."""

    def pay(self) -> None:
        """Move the money, which nobody can take back."""
        with (Path(self.directory) / "bank.log").open("a", encoding="utf-8") as log:
            log.write("paid\n")
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        deadline = time.monotonic() + _PATIENCE_S
        while self.waits and not (Path(self.directory) / "answers").exists():
            assert time.monotonic() < deadline, "nobody told the bank to answer"
            time.sleep(0.005)

    def answer(self) -> None:
        """Let the bank answer."""
        (Path(self.directory) / "answers").touch()

    @property
    def paid(self) -> int:
        """How often the money was moved."""
        log = Path(self.directory) / "bank.log"
        return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0

    def wait_for_payment(self, times: int = 1) -> None:
        """Wait until it was moved so often."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.paid < times:
            assert time.monotonic() < deadline, "nothing was paid"
            time.sleep(0.005)


class _State(TypedDict, total=False):
    text: str


def _graph(bank: Bank) -> Any:
    def ask(_: _State) -> _State:
        return {"text": str(interrupt("pay 100?"))}

    def pay(state: _State) -> _State:
        bank.pay()
        return {"text": f"paid after {state['text']}"}

    builder: Any = StateGraph(_State)
    builder.add_node("ask", ask)
    builder.add_node("pay", pay)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "pay")
    builder.add_edge("pay", END)
    return builder.compile()


class _Clerk(Executor):
    def __init__(self) -> None:
        super().__init__(id="clerk")

    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.request_info(request_data=text, response_type=str)

    @response_handler
    async def answered(self, request: str, said: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{request} {said}")


class _Payer(Executor):
    def __init__(self, bank: Bank) -> None:
        super().__init__(id="pay")
        self._bank = bank

    @handler
    async def pay(self, text: str, ctx: WorkflowContext[None, str]) -> None:
        # The framework has one event loop: others of this process go on meanwhile.
        await asyncio.to_thread(self._bank.pay)
        await ctx.yield_output(f"paid after {text}")


def _workflow(bank: Bank) -> Workflow:
    clerk, payer = _Clerk(), _Payer(bank)
    built = WorkflowBuilder(start_executor=clerk, name="payments", output_from=[payer])
    return built.add_edge(clerk, payer).build()


@dataclass(frozen=True)
class Worker:
    """One worker: which framework, and what the bank does with it."""

    framework: str
    bank: Bank
    idempotent: tuple[str, ...] = ()

    def ask(self, store: Store) -> Any:
        """Run until somebody is asked."""
        return self._call(store, None, None)

    def answer(self, store: Store, deliberate: str | None = None) -> Any:
        """Say yes."""
        return self._call(store, "yes", deliberate)

    def answer_and_leave(self, store: Store) -> bool:
        """Say yes in an event loop, and go away while the bank is asked; whether that was so."""

        async def call() -> bool:
            run = asyncio.create_task(self._begun(store, "yes", None))
            await asyncio.to_thread(self.bank.wait_for_payment)
            run.cancel()
            await asyncio.wait([run])
            # The loop ends when the thread has that asks the bank.
            self.bank.answer()
            return run.cancelled()

        return asyncio.run(call())

    def _call(self, store: Store, answer: str | None, deliberate: str | None) -> Any:
        return asyncio.run(self._begun(store, answer, deliberate))

    async def _begun(self, store: Store, answer: str | None, deliberate: str | None) -> Any:
        if self.framework == "langgraph":
            return await self._in_graph(store, answer, deliberate)
        return await self._in_workflow(store, answer, deliberate)

    async def _in_graph(self, store: Store, answer: str | None, deliberate: str | None) -> Any:
        saver = langgraph.SealedSaver(store)
        graph = langgraph.guard(_graph(self.bank), saver, actor="clerk", idempotent=self.idempotent)
        config: Any = {"configurable": {"thread_id": THREAD}}
        if deliberate is not None:
            config = langgraph.deliberately(config, deliberate)
        given: Any = {"text": ""} if answer is None else Command(resume=answer)
        return await graph.ainvoke(given, config)

    async def _in_workflow(self, store: Store, answer: str | None, deliberate: str | None) -> Any:
        storage = agent_framework.SealedCheckpointStorage(store, thread=THREAD)
        workflow: Any = agent_framework.guard(
            _workflow(self.bank), storage, actor="clerk", idempotent=self.idempotent
        )
        if answer is None:
            return await workflow.run("pay 100?", deliberate=deliberate)
        newest = await storage.get_latest(workflow_name="payments")
        assert newest is not None
        asked = dict.fromkeys(newest.pending_request_info_events, answer)
        # Where the answer was taken in already, the run goes on from there.
        named = {"responses": asked} if asked else {}
        return await workflow.run(
            checkpoint_id=newest.checkpoint_id, deliberate=deliberate, **named
        )


def told(call: Callable[[], Any]) -> str:
    """What became of a call: `done`, or the code of the error."""
    try:
        call()
    except SealpointError as error:
        return error.code
    return "done"


class Another:
    """A worker in another process."""

    def __init__(
        self, place: Place, worker: Worker, verb: str, deliberate: str | None = None
    ) -> None:
        self._receiver, sender = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(
            target=_work, args=(place, worker, verb, deliberate, sender)
        )
        self._process.start()
        sender.close()

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def ended(self) -> str | int | None:
        """What it said, or if it said nothing its exit status."""
        try:
            assert self._receiver.poll(_PATIENCE_S), "it says nothing"
            found: str | int | None = self._receiver.recv()
        except EOFError:
            found = None
        self._process.join(_PATIENCE_S)
        found = self._process.exitcode if found is None else found
        self._process.close()
        self._receiver.close()
        return found


def _work(place: Place, worker: Worker, verb: str, deliberate: str | None, sender: Any) -> None:
    with closing(place.open()) as store:
        if verb == "ask":
            sender.send(told(lambda: worker.ask(store)))
        else:
            sender.send(told(lambda: worker.answer(store, deliberate)))
