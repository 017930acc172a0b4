# SPDX-License-Identifier: Apache-2.0
"""The application of examples/08_fastapi.py keeps its questions and answers when it is killed."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import sealpoint
from tests.console.scene import until

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_SECONDS_MAX = 120


class Application:
    """The application on a store, in a process of its own that listens."""

    def __init__(self, folder: Path, policy: str) -> None:
        disk = folder / "disk"
        disk.mkdir()
        self.url, self._bank = f"sqlite:///{disk / 'agents.db'}", disk / "bank.db"
        self.place: dict[str, Any] = {
            "config_dir": folder / "config",
            "state_dir": folder / "state",
        }
        sealpoint.init(self.url, policy=policy, **self.place)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=_SECONDS_MAX)
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {"STORE": self.url, **{name.upper(): at for name, at in self.place.items()}}
        environment = {f"SEALPOINT_{name}": str(text) for name, text in settings.items()}
        served = ("--factory", "08_fastapi:make", "--port", str(self._port))
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "--app-dir", str(_EXAMPLES), *served],
                env={**os.environ, **environment, "BANK": str(self._bank)},
                stdout=log,
                stderr=log,
            )
        until(self._answers, _SECONDS_MAX)

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            return self.client.get("/openapi.json").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def kill_and_restart(self) -> None:
        """Kill it in the middle of what it does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.start()

    def close(self) -> None:
        """Stop it, as a service is stopped."""
        self._process.terminate()
        self._process.wait(_SECONDS_MAX)
        self.client.close()

    def ask(self, amount: int) -> str:
        """Have the agent ask for a payment."""
        answer = self.client.post("/payments", json={"amount": amount, "to": "initech"})
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["thread"])

    def answer(self, thread: str) -> httpx.Response:
        """Answer yes, as the form says."""
        (found,) = (each for each in self.questions() if each["thread"] == thread)
        return self.client.post(f"/questions/{thread}", json={found["fields"][0]["name"]: "0"})

    def questions(self) -> list[dict[str, Any]]:
        """What waits for an answer."""
        found: list[dict[str, Any]] = self.client.get("/questions").json()
        return found

    def status(self, thread: str) -> dict[str, Any]:
        """Where a payment stands."""
        found: dict[str, Any] = self.client.get(f"/payments/{thread}").json()
        return found

    def payments(self) -> list[int]:
        """The amounts that the bank has paid."""
        with closing(sqlite3.connect(self._bank)) as database:
            return [row[0] for row in database.execute("SELECT amount FROM payments")]


@pytest.fixture
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Application]:
    """The application under a policy, the first time it is started."""
    made = Application(tmp_path, request.param)
    yield made
    made.close()


@pytest.mark.parametrize("application", ["solo"], indirect=True)
def test_answers_survive_kills_and_each_payment_is_made_once(application: Application) -> None:
    """It is killed with a question open, and again right after the answers."""
    threads = [application.ask(amount) for amount in (42, 43, 44)]
    application.kill_and_restart()
    assert {each["thread"] for each in application.questions()} == set(threads)
    assert application.questions()[0]["fields"][0]["label"] == "Pay it"
    for thread in threads:
        assert application.answer(thread).status_code == httpx.codes.ACCEPTED
    application.kill_and_restart()
    until(lambda: all(application.status(each)["paid"] for each in threads), _SECONDS_MAX)

    assert application.questions() == []
    assert sorted(application.payments()) == [42, 43, 44]
    with sealpoint.open_store(application.url, read_only=True, **application.place) as store:
        assert store.verify().ok


@pytest.mark.parametrize("application", ["strict"], indirect=True)
def test_what_needs_approval_is_resumed_when_people_have_approved(
    application: Application,
) -> None:
    """The application has no code for it; a second answer to the same question is refused."""
    admin = sealpoint.admin(application.url, **application.place)
    for name in ("ann", "bob"):
        admin.keys.create(name)
        admin.keys.add(name, person=name, roles=["approver"], namespaces=["*"])
    thread = application.ask(42)
    form = {application.questions()[0]["fields"][0]["name"]: "0"}
    bad = application.client.post(f"/questions/{thread}", json={})
    assert (bad.status_code, bad.json()["code"]) == (httpx.codes.BAD_REQUEST, "usage")
    application.answer(thread).raise_for_status()
    again = application.client.post(f"/questions/{thread}", json=form)
    assert (again.status_code, again.json()["code"]) == (httpx.codes.CONFLICT, "moved")
    until(lambda: application.status(thread)["phase"] == "waits for approval", _SECONDS_MAX)
    for name in ("ann", "bob"):
        with sealpoint.open_store(application.url, identity=name, **application.place) as store:
            (request,) = store.requests().requests
            store.approve(request.id, reason="as agreed")
    until(lambda: application.status(thread)["paid"], _SECONDS_MAX)

    assert application.payments() == [42]
