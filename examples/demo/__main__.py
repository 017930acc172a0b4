# SPDX-License-Identifier: Apache-2.0
"""The demo that `make demo` runs: the same agent and the same attacks, on two checkpointers.

Nothing is staged: agents run, people sign, databases are changed, and what is printed is what
happened. The model is scripted, so neither a network nor a key is needed.
"""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attacks
from agent import INVOICES, build, tools_of
from bank import Bank
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from pages import scene_pages
from screen import console, refused, say, scene, tell
from team import (
    DISK,
    FOLDER,
    PLACE,
    SEALED,
    URL,
    approve,
    scene_audit,
    scene_look,
    set_up,
    show_request,
    yesterday,
)

import sealpoint
from sealpoint import Request, SealpointError
from sealpoint.errors import NeedsApproval
from sealpoint_langgraph import SealedSaver, guard

STOCK = DISK / "stock.db"
YES = {"approved": True}

# ---------------------------------------------------------------- the application


@contextmanager
def sealed_agent(bank: Bank, *, with_sweep: bool = False) -> Iterator[Any]:
    """The agent in a new process, so to say: with a sealed store, behind the gate."""
    with sealpoint.open_store(URL, **PLACE) as store:
        graph = build(tools_of(bank, with_sweep=with_sweep)).compile()
        yield guard(graph, SealedSaver(store), actor="clerk")


@contextmanager
def stock_agent(bank: Bank, *, with_sweep: bool = False) -> Iterator[Any]:
    """The same with the stock saver."""
    with SqliteSaver.from_conn_string(str(STOCK)) as saver:
        yield build(tools_of(bank, with_sweep=with_sweep)).compile(checkpointer=saver)


def begin(agent: Any, name: str) -> None:
    agent.invoke({"messages": [("user", INVOICES[name])]}, _config(name))


def restart(agent: Any, name: str) -> None:
    """Go on with what was saved, as after a crash; nobody is shown anything."""
    agent.invoke(None, _config(name))


def show_and_answer(agent: Any, name: str) -> str:
    """Show the clerk what the agent asks, pass on the answer, yes, and say what was shown."""
    (question,) = agent.get_state(_config(name)).interrupts
    agent.invoke(Command(resume=YES), _config(name))
    return str(question.value["pay"])


def _config(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


# ---------------------------------------------------------------- the scenes


def scene_pause(bank: Bank) -> Request:
    scene("1. An agent that moves money stops for people")
    say("user", INVOICES["invoice-17"])
    with sealed_agent(bank) as agent:
        begin(agent, "invoice-17")
        (question,) = agent.get_state(_config("invoice-17")).interrupts
    say("agent", f"calls the tool pay, which asks: {question.value}")
    shutil.copy(SEALED, yesterday(SEALED))  # somebody keeps a copy of the file, for later
    say("clerk", "answers yes. By the policy `strict`, two others have to agree:")
    error = _asked(bank, "invoice-17")
    refused(error)
    return error.request


def scene_approve(bank: Bank, request: Request) -> None:
    scene("2. What the approvers see")
    show_request(request)
    for name, found in approve(request):
        say(name, f"approves with a key of their own: {len(found.approved_by)} of {found.needed}")
    with sealed_agent(bank) as agent:
        show_and_answer(agent, "invoice-17")
    say("clerk", "makes the same call again, which passes now, once:")
    bank.tell([])


def scene_attack(bank: Bank) -> None:
    scene("3. Somebody who can write to the database attacks")
    with sealed_agent(bank) as agent:
        begin(agent, "invoice-18")
    tell("Invoice 18 waits for an answer: 180.00 EUR to globex.")
    shutil.copy(SEALED, newest := FOLDER / "sealed-newest.db")
    paid = list(bank.transfers)
    for attack in ATTACKS:
        console.print(f"\n{attack.title}")
        attack.on_sealed(SEALED)
        if attack.new_tool:
            people = [name for name, _ in approve(_asked(bank, attack.thread).request)]
            say("clerk", f"answers yes; {' and '.join(people)} approve; then the code changes.")
        try:
            with sealed_agent(bank, with_sweep=attack.new_tool) as agent:
                attack.then(agent, attack.thread)
            sys.exit(f"NOT REFUSED: {attack.title}")
        except SealpointError as error:
            refused(error)
        if not attack.new_tool:
            shutil.copy(newest, SEALED)
    bank.tell(paid)
    console.print("\nAnd with the database and the code as they were approved:")
    with sealed_agent(bank) as agent:
        show_and_answer(agent, "invoice-18")
    bank.tell(paid)


def scene_stock(bank: Bank) -> None:
    scene("4. The same attacks on langgraph's SqliteSaver")
    with stock_agent(bank) as agent:
        begin(agent, "invoice-17")
    shutil.copy(STOCK, yesterday(STOCK))
    with stock_agent(bank) as agent:
        show_and_answer(agent, "invoice-17")
        begin(agent, "invoice-18")
    tell("Invoice 17 is paid, the clerk said yes. Invoice 18 waits for an answer.")
    shutil.copy(STOCK, newest := FOLDER / "stock-newest.db")
    paid = list(bank.transfers)
    for attack in ATTACKS:
        console.print(attack.title)
        shutil.copy(newest, STOCK)
        bank.transfers[:] = paid
        attack.on_stock(STOCK)
        with stock_agent(bank, with_sweep=attack.new_tool) as agent:
            shown = attack.then(agent, attack.thread)
        say("ACCEPTED", f"the clerk was asked for {shown}" if shown else "nobody was asked")
        bank.tell(paid)


# ---------------------------------------------------------------- what the scenes share


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What is done to a database, and what the application does next without knowing of it."""

    title: str
    thread: str = "invoice-18"
    on_sealed: Callable[[Path], object] = lambda _: None
    on_stock: Callable[[Path], object] = lambda _: None
    then: Callable[[Any, str], str | None]
    new_tool: bool = False


def _roll_back(database: Path) -> None:
    shutil.copy(yesterday(database), database)


ATTACKS = (
    Attack(
        title="A forged approval: a row that says yes. Then the worker restarts.",
        on_sealed=attacks.forge_sealed_approval,
        on_stock=attacks.forge_stock_approval,
        then=restart,
    ),
    Attack(
        title="An edited amount: 980.00 in the saved call, still 180.00 in the question.",
        on_sealed=attacks.edit_sealed_amount,
        on_stock=attacks.edit_stock_amount,
        then=show_and_answer,
    ),
    Attack(
        title="A rollback: yesterday's copy of the file, with invoice 17 not yet paid.",
        thread="invoice-17",
        on_sealed=_roll_back,
        on_stock=_roll_back,
        then=show_and_answer,
    ),
    Attack(
        title="A new tool at resume: the code of the worker has sweep_account now.",
        then=show_and_answer,
        new_tool=True,
    ),
)


def _asked(bank: Bank, name: str) -> NeedsApproval:
    """Answer yes, which needs the approval of others, and give that error."""
    with sealed_agent(bank) as agent:
        try:
            show_and_answer(agent, name)
        except NeedsApproval as error:
            return error
    sys.exit(f"NOT REFUSED: an answer in {name} that nobody approved")


def main() -> None:
    sealed_bank, stock_bank = Bank(), Bank()
    tell("Sealpoint demo: one agent, two checkpointers, the same attacks.")
    set_up()
    request = scene_pause(sealed_bank)
    scene_approve(sealed_bank, request)
    scene_attack(sealed_bank)
    scene_stock(stock_bank)
    scene_audit()
    scene_look("invoice-18  # the refused tool")
    scene_pages()


if __name__ == "__main__":
    main()
