# SPDX-License-Identifier: Apache-2.0
"""An agent that asks before it pays, and workers that resume it until they are killed."""

import os
import signal
import sqlite3
import threading
import time
import traceback
from contextlib import closing
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

import sealpoint
from sealpoint.api import Store
from sealpoint_langgraph import SealedSaver, guard, resume_waiting
from tests.warm import PROCESSES

__all__ = ["Bank", "MortalWorker", "config_of", "guarded"]

_PATIENCE_S = 60.0
_LIFE_S = 1.5
_LOOK_STARTS = 5
"""A worker lives at random up to so many times as long as it took to start, and a bit."""
_TRANSFER_S = 0.02
_EVERY_S = 0.05
_CHANCE = SystemRandom()


class Bank:
    """A bank that pays each invoice at most once, and counts how often it was asked to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with closing(self._connect()) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS payments (invoice PRIMARY KEY, amount)")
            database.execute("CREATE TABLE IF NOT EXISTS transfers (invoice)")

    def pay(self, invoice: str, amount: int) -> None:
        """Pay an invoice. The worker is killed when it has paid every third one, the first time."""
        time.sleep(_CHANCE.uniform(0, _TRANSFER_S))
        with closing(self._connect()) as database, database:
            database.execute("INSERT OR IGNORE INTO payments VALUES (?, ?)", (invoice, amount))
            database.execute("INSERT INTO transfers VALUES (?)", (invoice,))
        if self.ends_worker(invoice) and self.transfers()[invoice] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(_CHANCE.uniform(0, _TRANSFER_S))

    @staticmethod
    def ends_worker(invoice: str) -> bool:
        """Whether the first payment of an invoice ends the worker."""
        return int(invoice.rpartition("-")[2]) % 3 == 0

    def payments(self) -> dict[str, int]:
        """The amount of each invoice that was paid."""
        with closing(self._connect()) as database:
            return dict(database.execute("SELECT invoice, amount FROM payments").fetchall())

    def transfers(self) -> dict[str, int]:
        """How often it was asked to pay each invoice."""
        with closing(self._connect()) as database:
            query = "SELECT invoice, count(*) FROM transfers GROUP BY invoice"
            return dict(database.execute(query).fetchall())

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_PATIENCE_S)


class _State(TypedDict, total=False):
    amount: int
    paid: bool


def config_of(invoice: str) -> RunnableConfig:
    """The configuration of the thread of an invoice."""
    return {"configurable": {"thread_id": invoice}}


def guarded(store: Store, bank: Bank, *, idempotent: bool) -> Any:
    """The agent behind the gate."""

    def pay(state: _State, config: RunnableConfig) -> _State:
        amount = state["amount"]
        if not interrupt({"pay": amount}, response_schema={"type": "boolean"}):
            return {"paid": False}
        bank.pay(config["configurable"]["thread_id"], amount)
        return {"paid": True}

    builder: Any = StateGraph(_State)
    builder.add_node("pay", pay)
    builder.add_node("report", lambda _: {})
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "report")
    names = ("pay", "report") if idempotent else ()
    return guard(builder.compile(), SealedSaver(store), actor="worker", idempotent=names)


class MortalWorker:
    """A place where one worker runs after the other: each is killed at a random moment."""

    def __init__(self, url: str, place: dict[str, Any], bank: Path, *, idempotent: bool) -> None:
        self._errors = bank.with_suffix(".errors")
        self._work = partial(_work, url, place, bank, self._errors, idempotent=idempotent)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self.killed = 0
        """How many workers were killed."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether another worker comes after each that is killed."""
        return self._thread.is_alive()

    def end(self) -> None:
        """Kill the last one."""
        self._ended.set()
        self._thread.join(_PATIENCE_S)

    def _repeat(self) -> None:
        while not self._ended.is_set():
            receiver, sender = PROCESSES.Pipe(duplex=False)
            process = PROCESSES.Process(target=self._work, args=(sender,))
            begun = time.monotonic()
            process.start()
            sender.close()
            with receiver:
                receiver.poll(_PATIENCE_S)
            # On a busy machine a worker needs longer for its first look at all threads.
            started_s = time.monotonic() - begun
            process.join(_CHANCE.uniform(0, _LIFE_S + _LOOK_STARTS * started_s))
            process.kill()
            process.join(_PATIENCE_S)
            # Two OS threads that wait for processes may take each other's exit statuses, so that
            # none is left: a worker that ends by itself has written why.
            assert not self._errors.exists(), self._errors.read_text("utf-8")
            process.close()
            self.killed += 1


def _work(
    url: str,
    place: dict[str, Any],
    bank: Path,
    errors: Path,
    started: Any,
    *,
    idempotent: bool,
) -> None:
    try:
        with sealpoint.open_store(url, **place) as store:
            graph = guarded(store, Bank(bank), idempotent=idempotent)
            started.send("started")
            resume_waiting(graph, store, every=_EVERY_S)
    finally:
        errors.write_text(traceback.format_exc(), "utf-8")
