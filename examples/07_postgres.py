# SPDX-License-Identifier: Apache-2.0
"""Two machines, one LangGraph agent: a store in PostgreSQL, and an anchor that both ask.

Each machine has directories of its own, and what one has seen holds for the other at its next
call, such as a pause.

    python examples/07_postgres.py postgresql://you@localhost/agents postgresql://you@localhost/anchor

In production store and anchor have logins of their own: `sealpoint provision postgres`. Passwords
come from the files that SEALPOINT_STORE_PASSWORD_FILE and SEALPOINT_ANCHOR_PASSWORD_FILE name.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph

import sealpoint
from sealpoint_langgraph import SealedSaver, guard

CONFIG: Any = {"configurable": {"thread_id": "chat-1"}}


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [("ai", f"That was message {len(state['messages'])}.")]}


builder = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")


def say(url: str, text: str, place: dict[str, Any], identity: str) -> None:
    with sealpoint.open_store(url, identity=identity, **place) as store:
        graph = guard(builder.compile(), SealedSaver.for_graph(builder, store), actor=identity)
        try:
            said = graph.invoke({"messages": [("user", text)]}, CONFIG)["messages"][-1].text
        except sealpoint.SealpointError as error:
            said = f"REFUSED {error.message.partition(' refused: ')[2]}"
    print(f"  {identity:<8}", shorten(said, 68, placeholder="..."))


def place_of(home: str, machine: str) -> dict[str, Any]:
    return {"config_dir": Path(home, machine, "config"), "state_dir": Path(home, machine, "state")}


def main(url: str, anchor: str) -> None:
    with TemporaryDirectory() as home:
        here, there = place_of(home, "here"), place_of(home, "there")
        sealpoint.init(url, anchor=anchor, **here)

        # The other machine: the pin, the shared anchor, and a key that the root enters here.
        pin = sealpoint.admin(url, **here).trust.export_pin().encode()
        other = sealpoint.admin(url, **there)
        other.trust.import_pin(pin)
        other.anchor.join(anchor)
        key = other.keys.create("worker-2")
        admin, rights = sealpoint.admin(url, **here), {"namespaces": ["default"]}
        admin.keys.add("worker-2", public=str(key), person="owner", roles=["writer"], **rights)
        admin.roster.set_pool("pods", ["worker", "worker-2"])  # both may go on with a thread

        print("Two machines, one conversation:")
        say(url, "Hello.", here, "worker")
        say(url, "Hello again.", there, "worker-2")
        print("Somebody pauses the thread here:")
        with sealpoint.open_store(url, identity="operator", **here) as store:
            store.thread("chat-1").pause(reason="a closer look")
        say(url, "Go on.", there, "worker-2")


if len(sys.argv) == 3:
    main(sys.argv[1], sys.argv[2])
else:
    print("It needs the URLs of two databases, for the store and for the anchor:")
    print("  python examples/07_postgres.py postgresql://you@localhost/agents \\")
    print("      postgresql://you@localhost/anchor")
