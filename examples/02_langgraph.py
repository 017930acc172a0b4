# SPDX-License-Identifier: Apache-2.0
"""A LangGraph agent with sealed checkpoints: five lines more, and a run that survives its process.

The first run reads an invoice and stops with a question. The second one, which could be another
process on another day, finds the question, brings the answer and goes on.
"""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import sealpoint  # (1)
from sealpoint_langgraph import SealedSaver, guard  # (2)

CONFIG: Any = {"configurable": {"thread_id": "invoice-7"}}


@dataclass
class Invoice:
    vendor: str
    amount: Decimal


class State(TypedDict, total=False):
    invoice: Invoice
    paid: bool


def read(_: State) -> State:
    print("  read   an invoice came in")
    return {"invoice": Invoice("acme", Decimal("250.00"))}


def pay(state: State) -> State:
    answer = interrupt(f"Pay {state['invoice'].amount} to {state['invoice'].vendor}?")
    print(f"  pay    was told {answer!r}")
    return {"paid": answer == "yes"}


builder = StateGraph(State)
builder.add_sequence([read, pay])
builder.add_edge(START, "read")


def run(url: str, **place: Path) -> None:
    with sealpoint.open_store(url, **place) as store:  # (3)
        saver = SealedSaver.for_graph(builder, store)  # (4) allows the types of its state: Invoice
        graph = guard(builder.compile(), saver, actor="clerk")  # (5)

        state = graph.get_state(CONFIG)
        if not state.interrupts:
            graph.invoke({}, CONFIG)
            print(f"  asked  {graph.get_state(CONFIG).interrupts[0].value}")
        else:
            print(f"  found  {state.interrupts[0].value}")
            print(f"  ended  paid: {graph.invoke(Command(resume='yes'), CONFIG)['paid']}")


with TemporaryDirectory() as disk, TemporaryDirectory() as home:  # keys and anchor lie apart
    there = f"sqlite:///{disk}/agents.db"
    places = {"config_dir": Path(home, "config"), "state_dir": Path(home, "state")}
    sealpoint.init(there, **places)  # once: keys, trust pin, store and anchor
    for number in (1, 2):
        print(f"Run {number}:")
        run(there, **places)
    with sealpoint.open_store(there, read_only=True, **places) as store:
        print("On record, each entry signed and verified:")
        for record in store.audit(thread="invoice-7"):
            print(f"  {record.seq:>2}  {record.kind:<10}  by {record.by}")
