# SPDX-License-Identifier: Apache-2.0
"""An agent of Microsoft Agent Framework whose tool asks first: killed, attacked, resumed."""

import asyncio
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

import agent_framework as af

import sealpoint
from sealpoint_agent_framework import SealedCheckpointStorage, guard

logging.getLogger("agent_framework").setLevel(logging.ERROR)


class ScriptedClient(af.FunctionInvocationLayer[Any], af.BaseChatClient[Any]):  # no network
    def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        async def answer() -> af.ChatResponse:
            last = messages[-1].contents[-1]
            call = af.Content.from_function_call("1", "pay", arguments={"to": "acme", "eur": 42})
            said = last.result if last.type == "function_result" else call
            return af.ChatResponse(messages=[af.Message("assistant", [said])])

        return answer()


@af.tool(approval_mode="always_require")
def pay(to: str, eur: int) -> str:
    """Move money."""
    return f"Paid {eur} EUR to {to}."


async def work(database: str) -> None:
    clerk = af.Agent(ScriptedClient(), "You pay invoices.", name="clerk", tools=[pay])
    workflow = af.WorkflowBuilder(start_executor=clerk, name="payments").build()
    with sealpoint.open_store(f"sqlite:///{database}") as store:
        storage = SealedCheckpointStorage(store, thread="invoice-7")
        workflow = guard(workflow, storage, actor="clerk")
        latest = await storage.get_latest(workflow_name="payments")  # verified, then decoded
        if latest is None:
            (asked,) = (await workflow.run("Pay invoice 7.")).get_request_info_events()
            print(f"  asks: pay {asked.data.function_call.arguments}? And is killed.", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        ((request, asked),) = latest.pending_request_info_events.items()
        yes = {request: asked.data.to_function_approval_response(approved=True)}
        result = await workflow.run(checkpoint_id=latest.checkpoint_id, responses=yes)
        print(f"  ends: {result.get_outputs()[0].text}")


def edit(database: str, *words: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE blobs SET data = CAST(replace(data, ?, ?) AS BLOB)", words)


if sys.argv[1:]:
    sys.exit(asyncio.run(work(sys.argv[1])))
with TemporaryDirectory() as disk, TemporaryDirectory() as home:  # keys and anchor lie apart
    os.environ |= {"SEALPOINT_CONFIG_DIR": f"{home}/keys", "SEALPOINT_STATE_DIR": f"{home}/anchor"}
    sealpoint.init(f"sqlite:///{(file := f'{disk}/agents.db')}")
    print("A process begins:", flush=True)
    subprocess.run([sys.executable, __file__, file], check=False)  # noqa: S603
    print("Somebody edits the vendor in the database, and another process goes on:")
    edit(file, "acme", "evil")
    try:
        asyncio.run(work(file))
        sys.exit("NOT REFUSED")
    except af.WorkflowCheckpointException as error:
        print(fill(f"  refused: {error}", 80, subsequent_indent="  "))
    print("With the right bytes back, it brings the answer, yes:")
    edit(file, "evil", "acme")
    asyncio.run(work(file))
