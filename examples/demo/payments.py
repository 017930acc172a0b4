# SPDX-License-Identifier: Apache-2.0
"""An application whose agent pays: its page, and the worker that resumes what people let pass.

The page only asks and shows. People answer and approve in the console, with their passkeys; the
worker's `resume_waiting` then runs the payment.
"""

import itertools
import re
import secrets
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import uvicorn
from agent import build, tools_of
from bank import Bank
from langchain_core.messages import AIMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from team import APPROVERS, PLACE, URL

import sealpoint
from sealpoint.adapters.waiting_runs import ResumeCounts
from sealpoint.gate import ThreadPhase
from sealpoint.signing import Passkey
from sealpoint_langgraph import SealedSaver, guard, resume_waiting

FORM = {
    "type": "object",
    "properties": {"approved": {"type": "boolean", "title": "Pay it"}},
    "required": ["approved"],
}
PAGE = Path(__file__).with_name("payments.html")
LOOKS_EVERY_S = 0.5
PASSKEYS_MAX = 20
POLICY = "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; connect-src 'self'"


class Payments:
    """The agent, its payments and its worker. Use it in a `with` block."""

    def __init__(self) -> None:
        self.bank = Bank()
        self._open = ExitStack()
        self.store = self._open.enter_context(sealpoint.open_store(URL, **PLACE))
        graph = build(tools_of(self.bank, form=FORM)).compile()
        self._agent = guard(graph, SealedSaver(self.store), actor="clerk")
        self._asked: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._stop = threading.Event()
        self._worker = threading.Thread(target=self._resume_in_loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._worker.is_alive():
            self._worker.join()
        self._open.close()

    def ask(self, amount: str, to: str) -> str:
        """Have the agent ask for a payment; return the name of the thread."""
        name = f"payment-{next(self._numbers)}"
        self._asked[name] = f"{amount} EUR to {to}"
        self._agent.invoke({"messages": [("user", f"Pay {self._asked[name]}.")]}, _config(name))
        return name

    def resume(self) -> ResumeCounts:
        """Resume what waits, once."""
        return resume_waiting(self._agent, self.store)

    def start_worker(self) -> None:
        """Resume what waits, until the end."""
        self._worker.start()

    def _resume_in_loop(self) -> None:
        resume_waiting(self._agent, self.store, every=LOOKS_EVERY_S, stop=self._stop)

    def status(self) -> list[dict[str, str]]:
        """Where each payment stands, newest first, with the page of the console for its people."""
        threads = {each.name: each for each in self.store.overview()}
        requests = {each.thread: each.id for each in self.store.requests().requests}
        found = []
        for name, text in reversed(self._asked.items()):
            thread = threads.get(name)
            row = {"name": name, "text": text, "phase": "running", "page": ""}
            if thread is not None and thread.phase is ThreadPhase.SAVED:
                row["phase"] = self._outcome(name)
            elif thread is not None:
                row["phase"] = str(thread.phase)
                row["page"] = {
                    ThreadPhase.NEEDS_ANSWER: f"/threads/{thread.id}/answer",
                    ThreadPhase.NEEDS_APPROVAL: f"/requests/{requests.get(name, '')}",
                }.get(thread.phase, f"/threads/{thread.id}")
            found.append(row)
        return found

    def _outcome(self, name: str) -> str:
        """What the agent says at its end."""
        state = self._agent.get_state(_config(name))
        messages = state.values.get("messages", [])
        if state.next or not messages or not isinstance(messages[-1], AIMessage):
            return "running"
        return "paid" if "Paid." in messages[-1].text else "not paid"


class Passkeys:
    """The passkeys that people make in the console. This demo holds the root key, and adds them."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, Passkey]] = {}
        self._added: dict[str, str] = {}

    def note(self, name: str, passkey: Passkey) -> None:
        """Remember one that was made: the console calls this."""
        if name in APPROVERS and len(self._made) < PASSKEYS_MAX:
            self._made[passkey.id.raw.hex()] = (name, passkey)

    def add(self, digits: str) -> None:
        """Add one to the roster: its person keeps the rights that they have."""
        name, passkey = self._made.pop(digits)
        sealpoint.admin(URL, **PLACE).keys.add(name, passkey=passkey)
        self._added[name] = passkey.id.short()

    def status(self) -> dict[str, Any]:
        """Who has one, and which wait to be added."""
        made = [
            {"name": name, "digits": digits, "fingerprint": passkey.id.short()}
            for digits, (name, passkey) in self._made.items()
        ]
        people = [{"name": name, "fingerprint": self._added.get(name, "")} for name in APPROVERS]
        return {"made": made, "people": people}


def application(payments: Payments, passkeys: Passkeys, *, key: str, console: str) -> Starlette:
    """The page of the application. Its address has a key, so other sites cannot post to it."""

    def page(_: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = PAGE.read_text(encoding="utf-8").replace("NONCE", nonce)
        headers = {
            "content-security-policy": POLICY.format(nonce),
            "referrer-policy": "no-referrer",
        }
        return HTMLResponse(text.replace("CONSOLE", console), headers=headers)

    def status(_: Request) -> Response:
        return JSONResponse(
            {
                "payments": payments.status(),
                "account": payments.bank.transfers,
                **passkeys.status(),
            }
        )

    async def ask(request: Request) -> Response:
        told = await request.json()
        amount, to = str(told.get("amount")), str(told.get("to"))
        if not re.fullmatch(r"\d{1,6}\.\d\d", amount, re.ASCII):
            return JSONResponse({"error": "Type an amount such as 42.00."}, 400)
        if not re.fullmatch(r"\w{1,40}", to, re.ASCII):
            return JSONResponse({"error": "Type one word, such as initech."}, 400)
        threading.Thread(target=payments.ask, args=(amount, to)).start()
        return JSONResponse({}, 202)

    async def add(request: Request) -> Response:
        passkeys.add((await request.json())["digits"])
        return JSONResponse({})

    return Starlette(
        routes=[
            Route(f"/{key}/", page),
            Route(f"/{key}/status", status),
            Route(f"/{key}/payments", ask, methods=["POST"]),
            Route(f"/{key}/passkeys", add, methods=["POST"]),
        ]
    )


def serve(app: Starlette, port: int) -> None:
    """Serve a page on this machine alone, until Ctrl-C."""
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


def _config(name: str) -> Any:
    return {"configurable": {"thread_id": name}}
