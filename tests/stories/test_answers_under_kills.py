# SPDX-License-Identifier: Apache-2.0
"""People answer and approve in a console while the workers are killed: each answer counts once.

The console really listens, and passkeys sign. Two workers run in processes of their own, and are
killed with SIGKILL at random moments and right after payments.
"""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from sealpoint import Request
from sealpoint.gate import Status, shipped_policy
from tests.attacks.console.passkeys import answer_to, give_passkey
from tests.console.scene import Scene, Served
from tests.effort import in_soak
from tests.stories.paying_worker import Bank, MortalWorker, config_of, guarded
from tests.unit.signing.authenticator import Authenticator

_POLICY = shipped_policy("strict").replace(b'\nanswer = "approve 2"', b'\nanswer = "approve 1"')
_WORKERS = 2
_SECONDS_MAX = 3_600
_every_count = pytest.mark.parametrize("count", [8, in_soak(200)])


class Person:
    """Somebody with a passkey, in a browser without a screen."""

    def __init__(self, served: Served, name: str, number: int) -> None:
        self._passkey = Authenticator(number, origin=served.origin)
        give_passkey(served.scene, name, self._passkey)
        self.client = served.client(name)

    def sign(self, page: str, path: str, **fields: str) -> httpx.Response | None:
        """Open a page, fill in its form, and touch the authenticator; None if it has no form."""
        text = _patiently(lambda: self.client.get(page)).text
        ticket = re.search(r'data-answer.*?name="ticket" value="([^"]+)"', text, re.DOTALL)
        if ticket is None:
            return None
        form = {"ticket": ticket[1], "reason": "as agreed", **fields}
        begun = _patiently(lambda: self.client.post(f"{path}/answer/begin", json=form))
        if begun.status_code != httpx.codes.OK:
            return begun
        options = begun.json()
        signed = {
            "ticket": options["ticket"],
            **answer_to(self._passkey, options["challenge"]),
        }
        headers = {"accept": "application/json"}
        return _patiently(lambda: self.client.post(f"{path}/answer", json=signed, headers=headers))


class Office:
    """A console, two people, two workers who are killed again and again, and a bank."""

    def __init__(self, served: Served, folder: Path, count: int, *, idempotent: bool) -> None:
        self._served, self._scene = served, served.scene
        self.invoices = [f"invoice-{number}" for number in range(count)]
        self.bank, self._idempotent = Bank(folder / "bank.db"), idempotent
        self.store, self._running = self._scene.open(), self.invoices
        self._watch = self.store.watch()
        self._graph = guarded(self.store, self.bank, idempotent=idempotent)
        for number, invoice in enumerate(self.invoices):
            self._graph.invoke({"amount": number}, config_of(invoice))
        self._people = {
            name: Person(served, name, number) for number, name in enumerate(("ann", "bob"), 1)
        }
        self._workers = [
            MortalWorker(
                self._scene.url, self._scene.place, folder / "bank.db", idempotent=idempotent
            )
            for _ in range(_WORKERS)
        ]

    def close(self) -> None:
        """Let everybody go."""
        for worker in self._workers:
            worker.end()
        for person in self._people.values():
            person.client.close()
        self.store.close()

    @property
    def killed(self) -> int:
        """How many workers were killed."""
        return sum(worker.killed for worker in self._workers)

    def answer_all(self) -> None:
        """Ann answers each question; bob approves what is asked in the meantime."""
        self._served.seen()
        for invoice in self.invoices:
            page = f"/threads/{self.store.thread(invoice).id}"
            answered = self._people["ann"].sign(f"{page}/answer", page, **{"answer-0": "0"})
            assert answered is not None
            assert answered.status_code == httpx.codes.OK, answered.text
            self._approve(self.open_requests())

    def approve_until(self, done: Callable[[dict[str, Request]], bool]) -> None:
        """Bob approves what a worker asks for, until something holds of what is open."""
        deadline = time.monotonic() + _SECONDS_MAX
        while not done(requests := self.open_requests()):
            assert time.monotonic() < deadline, (self.unfinished(), requests)
            assert all(worker.is_alive for worker in self._workers)
            self._approve(requests)
            time.sleep(0.05)

    def unfinished(self) -> list[str]:
        """The invoices whose runs have not come to their end."""
        self._running = [
            each for each in self._running if self._graph.get_state(config_of(each)).next
        ]
        return self._running

    def open_requests(self) -> dict[str, Request]:
        """What waits for approval, by the invoice."""
        self._watch.refresh()
        return {
            each.thread: each
            for each in self._watch.requests().requests
            if each.status is Status.OPEN
        }

    def _approve(self, requests: dict[str, Request]) -> None:
        """Approve the answers of ann; what asks about an interrupted run is left alone."""
        wanted = [each for each in requests.values() if not asks_about_outcome(each)]
        if wanted:
            self._served.seen()
        for request in wanted:
            page = f"/requests/{request.id}"
            done = self._people["bob"].sign(page, page, verdict="approve")
            # The next run of a worker may have moved the thread since bob has read the list.
            if done is not None:
                assert done.status_code in (httpx.codes.OK, httpx.codes.CONFLICT), done.text


def asks_about_outcome(request: Request) -> bool:
    """Whether people are asked if the work of an interrupted run is to be repeated."""
    return request.needed > 1


def _patiently(call: Callable[[], httpx.Response]) -> httpx.Response:
    while (found := call()).status_code == httpx.codes.TOO_MANY_REQUESTS:
        time.sleep(1)
    return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A console of a team in which one other person approves an answer."""
    with Scene(tmp_path / "scene", policy=_POLICY).make().serving() as found:
        yield found


@_every_count
def test_each_answer_has_one_effect(served: Served, tmp_path: Path, count: int) -> None:
    """The paying node is idempotent: what died is repeated, and nothing is paid twice."""
    office = Office(served, tmp_path, count, idempotent=True)
    try:
        office.answer_all()
        office.approve_until(lambda _: not office.unfinished())
    finally:
        office.close()
    expected: dict[str, Any] = {name: place for place, name in enumerate(office.invoices)}
    with served.scene.open() as store:
        waiting = store.requests()
        report = store.verify()

    assert office.killed > 0
    assert office.bank.payments() == expected
    # A worker that died when it had paid was followed by another, which asked the bank again.
    assert all(office.bank.transfers()[each] > 1 for each in expected if Bank.ends_worker(each))
    assert (waiting.answers, waiting.requests) == ((), ())
    assert report.ok, report.findings


@_every_count
def test_nothing_is_paid_twice(served: Served, tmp_path: Path, count: int) -> None:
    """The paying node is not idempotent: people are asked about each run that died."""
    office = Office(served, tmp_path, count, idempotent=False)
    try:
        office.answer_all()
        office.approve_until(
            lambda requests: all(
                each in requests and asks_about_outcome(requests[each])
                for each in office.unfinished()
            )
        )
        asked = office.unfinished()
    finally:
        office.close()
    paid = office.bank.transfers()
    with served.scene.open() as store:
        report = store.verify()

    assert set(paid.values()) == {1}
    assert set(asked) >= set(filter(Bank.ends_worker, office.invoices))
    assert set(office.invoices) == paid.keys() | set(asked)
    assert report.ok, report.findings
