# SPDX-License-Identifier: Apache-2.0
"""Questions of agents inside a web application: FastAPI, LangGraph and a sealed store.

POST /payments starts an agent that asks before it pays. GET /questions lists what waits, POST
/questions/{thread} answers, and a background task resumes what was answered. A policy may ask for
approvals first: then the task asks for them, and resumes when people have approved.

The application signs each answer with a key that it holds. That proves that this application gave
the answer, and nobody can change it later; who controls the application can answer in its name. A
passkey proves more: `thread.prepare_answer(answer, person=...)` makes the statement, the browser of
the person signs its digest, and `thread.record_answer(statement, answer, attestation)` checks that.

    sealpoint init sqlite:////srv/agents.db
    export SEALPOINT_STORE=sqlite:////srv/agents.db BANK=/srv/bank.db
    uvicorn --app-dir examples --factory 08_fastapi:make
"""

import asyncio
import os
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel, Field

import sealpoint
from sealpoint.errors import Moved, SealpointError
from sealpoint.gate import ThreadPhase
from sealpoint.views.answer_forms import questions_of, read_answer
from sealpoint_langgraph import SealedSaver, guard, resume_waiting

YES_OR_NO = {"approved": {"type": "boolean", "title": "Pay it"}}
FORM = {"type": "object", "properties": YES_OR_NO, "required": ["approved"]}


class Payment(BaseModel):
    amount: int = Field(gt=0)
    to: str = Field(pattern=r"^\w{1,40}$")


class State(TypedDict, total=False):
    amount: int
    to: str
    paid: bool


def graph_of(bank: Path) -> Any:
    """The agent. Its bank pays each thread once, so that the node may be repeated."""

    def pay(state: State, config: RunnableConfig) -> State:
        answer = interrupt({"pay": state["amount"], "to": state["to"]}, response_schema=FORM)
        if answer["approved"]:
            row = (config["configurable"]["thread_id"], state["amount"], state["to"])
            with closing(sqlite3.connect(bank)) as database, database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS payments (id PRIMARY KEY, amount, to_)"
                )
                database.execute("INSERT OR IGNORE INTO payments VALUES (?, ?, ?)", row)
        return {"paid": answer["approved"]}

    return StateGraph(State).add_node("pay", pay).add_edge(START, "pay").compile()


def make(url: str | None = None, bank: Path | None = None, **place: Path) -> FastAPI:
    """The application, for the store that the environment names."""
    url, bank = url or os.environ["SEALPOINT_STORE"], bank or Path(os.environ["BANK"])

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        stop = threading.Event()
        with (
            sealpoint.open_store(url, **place) as store,
            sealpoint.open_store(url, identity="operator", **place) as desk,
        ):
            agent = guard(graph_of(bank), SealedSaver(store), actor="web", idempotent=["pay"])
            worker = asyncio.create_task(
                asyncio.to_thread(resume_waiting, agent, store, every=0.2, stop=stop)
            )
            app.state.agent, app.state.store, app.state.desk = agent, store, desk
            yield {}
            stop.set()
            await worker

    app = FastAPI(lifespan=lifespan)

    @app.exception_handler(SealpointError)
    def refused(_: object, error: SealpointError) -> JSONResponse:
        told = {"code": error.code, "message": error.message, "hint": error.hint}
        return JSONResponse(told, 409 if isinstance(error, Moved) else 400)

    @app.post("/payments", status_code=201)
    def ask(payment: Payment) -> dict[str, str]:
        thread = f"payment-{uuid.uuid4().hex}"
        app.state.agent.invoke(payment.model_dump(), {"configurable": {"thread_id": thread}})
        return {"thread": thread}

    @app.get("/questions")
    def questions() -> list[dict[str, Any]]:
        store, found = app.state.store, []
        for each in store.overview():
            if each.phase is ThreadPhase.NEEDS_ANSWER:
                (asked,) = questions_of(store.thread(each.name).question)
                fields = asdict(asked.form)["fields"]
                found.append({"thread": each.name, "asks": asked.value, "fields": fields})
        return found

    @app.post("/questions/{thread}", status_code=202)
    def answer(thread: str, filled: dict[str, str]) -> dict[str, str]:
        asking = app.state.desk.thread(thread)
        given = asking.answer(read_answer(questions_of(asking.question), filled))
        return {"answer": given.id, "person": given.person}

    @app.get("/payments/{thread}")
    def status(thread: str) -> dict[str, Any]:
        found = [each for each in app.state.store.overview() if each.name == thread]
        if not found:
            raise HTTPException(404)
        state = app.state.agent.get_state({"configurable": {"thread_id": thread}})
        return {"phase": found[0].phase, "paid": state.values.get("paid")}

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as disk, TemporaryDirectory() as home:
        store_url = f"sqlite:///{disk}/agents.db"
        places = {"config_dir": Path(home, "config"), "state_dir": Path(home, "state")}
        sealpoint.init(store_url, **places)
        with TestClient(make(store_url, Path(disk, "bank.db"), **places)) as client:
            name = client.post("/payments", json={"amount": 42, "to": "initech"}).json()["thread"]
            (waiting,) = client.get("/questions").json()
            print(f"it asks   {waiting['asks']}")
            field = waiting["fields"][0]
            print(f"a person  answers {field['label']!r} with {field['options'][0][0]}")
            client.post(f"/questions/{name}", json={field["name"]: "0"}).raise_for_status()
            while client.get(f"/payments/{name}").json()["paid"] is None:
                threading.Event().wait(0.1)
            print(f"it ends   {client.get(f'/payments/{name}').json()}")
