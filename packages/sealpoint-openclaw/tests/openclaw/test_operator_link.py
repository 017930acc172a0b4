# SPDX-License-Identifier: Apache-2.0
"""Approvals that people give here, and a gateway that stays suspended while it is paused.

A gateway of our own speaks the protocol over a real WebSocket.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic, sleep
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from sealpoint.errors import SealpointError
from sealpoint.gate import Request
from sealpoint_openclaw import Guard
from sealpoint_openclaw import _operator_link as link_module
from sealpoint_openclaw._gateway_client import (
    GatewayClient,
    GatewayLost,
    GatewayRefused,
    read_access,
)
from sealpoint_openclaw._operator_link import OperatorLink
from tests.openclaw.recorded_folder import Recorded

_TOKEN = "a-token"  # noqa: S105 - of a gateway that lives for a test
_EXEC = {
    "command": "rm -r reports",
    "cwd": "/home/ann/workspace",
    "resolvedPath": "/usr/bin/rm",
    "agentId": "main",
    "sessionKey": "agent:main:main",
    "allowedDecisions": ["allow-once", "allow-always", "deny"],
}
_PLUGIN = {"title": "Send mail", "description": "to bob@example.org", "pluginId": "mail"}
_SECONDS_MAX = 20


class Gateway:
    """What a gateway answers: approvals, and suspensions."""

    def __init__(self) -> None:
        self.waiting: dict[str, dict[str, dict[str, Any]]] = {"exec": {}, "plugin": {}}
        self.resolved: list[tuple[str, str, str]] = []
        self.suspended: list[str] = []
        self.calls: list[str] = []
        self.is_starting = False
        self._server = serve(self._handle, "127.0.0.1", 0)
        port = self._server.socket.getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """End the server and its connections."""
        self._server.shutdown()
        self._thread.join()

    def client(self) -> GatewayClient:
        """A connection to it."""
        return GatewayClient(self.url, _TOKEN)

    def _handle(self, socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "event", "event": "connect.challenge", "payload": {}}))
        try:
            for data in socket:
                call = json.loads(data)
                self.calls.append(call["method"])
                answer = {"type": "res", "id": call["id"]}
                try:
                    answer |= {"ok": True, "payload": self._answer(call["method"], call["params"])}
                except KeyError as error:
                    code = "UNAVAILABLE" if self.is_starting else "INVALID"
                    answer |= {"ok": False, "error": {"code": code, "message": str(error)}}
                socket.send(json.dumps(answer))
        except ConnectionClosed:
            pass

    def _answer(self, method: str, params: dict[str, Any]) -> Any:
        kind, _, rest = method.partition(".")
        match rest:
            case "approval.list":
                return [
                    {"id": each, "request": request, "approvalKind": kind}
                    for each, request in self.waiting[kind].items()
                ]
            case "approval.resolve":
                del self.waiting[kind][params["id"]]
                self.resolved.append((kind, params["id"], params["decision"]))
                return {"ok": True}
            case "suspend.prepare":
                self.suspended.append(params["requestId"])
                return {"status": "draining", "suspensionId": f"of-{params['requestId']}"}
            case "suspend.resume":
                self.suspended.append(params["suspensionId"])
                return {"ok": True}
            case "" if params["auth"]["token"] == _TOKEN and not self.is_starting:
                return {"type": "hello-ok"}
            case _:
                raise KeyError(method)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """A gateway."""
    gateway = Gateway()
    yield gateway
    gateway.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that looks every few milliseconds."""
    for name in ("_WAIT_SECONDS", "_RECONNECT_SECONDS", "_ASK_SECONDS", "_LIST_SECONDS"):
        monkeypatch.setattr(link_module, name, 0.02)


@contextmanager
def linked(guard: Guard, gateway: Gateway) -> Iterator[list[str]]:
    """A link to the gateway; what it says to the person at the terminal."""
    notes: list[str] = []
    link = OperatorLink(guard, guard.acts(1), gateway.client, notes.append)
    link.start()
    try:
        yield notes
    finally:
        link.close()


def until(condition: Callable[[], object]) -> None:
    """Wait for something that happens soon."""
    end = monotonic() + _SECONDS_MAX
    while not condition():
        assert monotonic() < end, "it did not happen"
        sleep(0.02)


def the_request(recorded: Recorded) -> Request:
    """The request that people see, as soon as it is there."""
    with recorded.settings().open_store(read_only=True) as store:
        until(lambda: store.requests().requests)
        (request,) = store.requests().requests
        return request


def decide(recorded: Recorded, person: str, request: Request, *, approve: bool = True) -> None:
    """Answer a request, as a person in a process of their own."""
    with recorded.settings().open_store(identity=person) as store:
        answer = store.approve if approve else store.deny
        answer(request.id, reason="I have read it")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("kind", "request_"), [("exec", _EXEC), ("plugin", _PLUGIN)])
def test_two_people_approve_and_openclaw_is_answered_once(
    team: Recorded, gateway: Gateway, kind: str, request_: dict[str, Any]
) -> None:
    """One approval is not enough, and the answer is allow-once, never more."""
    gateway.waiting[kind]["a-1"] = request_
    with team.guard() as guard, linked(guard, gateway):
        request = the_request(team)
        decide(team, "ann", request)
        sleep(0.2)
        assert gateway.resolved == []
        decide(team, "bob", request)
        until(lambda: gateway.resolved)
        sleep(0.2)

    assert gateway.resolved == [(kind, "a-1", "allow-once")]


@pytest.mark.usefixtures("quick")
def test_people_are_shown_all_of_the_question(team: Recorded, gateway: Gateway) -> None:
    """Command, folder, program, agent and conversation first, and then all that OpenClaw says."""
    gateway.waiting["exec"]["a-1"] = _EXEC
    with team.guard() as guard, linked(guard, gateway):
        the_request(team)
        question = guard.open_thread("openclaw/approvals/a-1").question

    assert question == {
        "command": "rm -r reports",
        "folder": "/home/ann/workspace",
        "program": "/usr/bin/rm",
        "agent": "main",
        "conversation": "agent:main:main",
        "request": _EXEC,
    }


@pytest.mark.usefixtures("quick")
def test_a_denial_denies(team: Recorded, gateway: Gateway) -> None:
    """One person is enough."""
    gateway.waiting["exec"]["a-1"] = _EXEC
    with team.guard() as guard, linked(guard, gateway):
        decide(team, "ann", the_request(team), approve=False)
        until(lambda: gateway.resolved)

    assert gateway.resolved == [("exec", "a-1", "deny")]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seconds", [0.02, 60.0], ids=["listed", "not listed again"])
def test_a_question_that_changes_under_its_id_is_denied(
    team: Recorded, gateway: Gateway, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People approved another one: also if it changed after the guard listed it last."""
    monkeypatch.setattr(link_module, "_LIST_SECONDS", seconds)
    gateway.waiting["exec"]["a-1"] = _EXEC | {"command": "ls"}
    with team.guard() as guard, linked(guard, gateway):
        request = the_request(team)
        gateway.waiting["exec"]["a-1"] = _EXEC
        for person in ("ann", "bob"):
            with suppress(SealpointError):  # the guard may have ended the request already
                decide(team, person, request)
        until(lambda: gateway.resolved)

    assert gateway.resolved == [("exec", "a-1", "deny")]


@pytest.mark.usefixtures("quick")
def test_no_error_ends_the_link(team: Recorded, gateway: Gateway) -> None:
    """Of whatever kind: it says so once, and tries again."""
    faults = [ValueError("of another kind"), ValueError("of another kind")]

    def connect() -> GatewayClient:
        if faults:
            raise faults.pop()
        return gateway.client()

    gateway.waiting["exec"]["a-1"] = _EXEC
    notes: list[str] = []
    with team.guard() as guard:
        link = OperatorLink(guard, guard.acts(1), connect, notes.append)
        link.start()
        try:
            the_request(team)
        finally:
            link.close()

    assert notes == ["Approvals of OpenClaw are not answered here: of another kind"]


@pytest.mark.usefixtures("quick")
def test_a_question_that_was_answered_elsewhere_ends_the_request(
    team: Recorded, gateway: Gateway
) -> None:
    """Nobody approves it any more."""
    gateway.waiting["exec"]["a-1"] = _EXEC
    with team.guard() as guard, linked(guard, gateway):
        the_request(team)
        gateway.waiting["exec"].clear()
        with team.settings().open_store(read_only=True) as store:
            until(lambda: not store.requests().requests)

    assert gateway.resolved == []


@pytest.mark.usefixtures("quick")
def test_a_guard_that_starts_again_asks_again_and_answers_once(
    team: Recorded, gateway: Gateway
) -> None:
    """The request of before counts: the question is the same."""
    gateway.waiting["exec"]["a-1"] = _EXEC
    with team.guard() as guard, linked(guard, gateway):
        request = the_request(team)
        decide(team, "ann", request)
    with team.guard() as guard, linked(guard, gateway):
        decide(team, "bob", the_request(team))
        until(lambda: gateway.resolved)

    assert gateway.resolved == [("exec", "a-1", "allow-once")]


@pytest.mark.usefixtures("quick")
def test_people_may_approve_while_no_guard_runs(team: Recorded, gateway: Gateway) -> None:
    """The next guard answers by their approvals."""
    gateway.waiting["exec"]["a-1"] = _EXEC
    with team.guard() as guard, linked(guard, gateway):
        request = the_request(team)
    decide(team, "ann", request)
    decide(team, "bob", request)
    with team.guard() as guard, linked(guard, gateway):
        until(lambda: gateway.resolved)

    assert gateway.resolved == [("exec", "a-1", "allow-once")]


@pytest.mark.usefixtures("quick")
def test_a_policy_that_asks_nobody_leaves_the_answer_to_openclaw(
    recorded: Recorded, gateway: Gateway
) -> None:
    """The guard itself never approves anything."""
    gateway.waiting["exec"]["a-1"] = _EXEC
    with recorded.guard() as guard, linked(guard, gateway):
        until(lambda: gateway.calls.count("exec.approval.list") > 5)

    assert gateway.resolved == []


@pytest.mark.usefixtures("quick")
def test_a_question_that_cannot_be_shown_is_denied(team: Recorded, gateway: Gateway) -> None:
    """Nobody approves what nobody was shown."""
    gateway.waiting["exec"]["a-1"] = _EXEC | {"command": "x" * 5_000_000}
    with team.guard() as guard, linked(guard, gateway) as notes:
        until(lambda: gateway.resolved)

    assert gateway.resolved == [("exec", "a-1", "deny")]
    assert notes


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("identity", ["../x", "", "a" * 65, "é", None, 7, ["a"]])
def test_an_id_that_is_no_id_is_ignored(team: Recorded, gateway: Gateway, identity: Any) -> None:
    """It would be a part of the name of a thread."""
    gateway.waiting["exec"] = {"a-1": _EXEC}
    with team.guard() as guard, linked(guard, gateway):
        listed = gateway._answer
        gateway._answer = lambda method, params: (  # type: ignore[method-assign]
            [{"id": identity, "request": _EXEC}, {"id": "a-2", "request": 7}, 7, None]
            if method == "exec.approval.list"
            else listed(method, params)
        )
        until(lambda: gateway.calls.count("exec.approval.list") > 5)
        with team.settings().open_store(read_only=True) as store:
            asked = store.requests().requests

    assert [each.thread for each in asked] in ([], ["openclaw/approvals/a-1"])
    assert gateway.resolved == []


@pytest.mark.usefixtures("quick")
def test_a_paused_gateway_is_kept_suspended(
    recorded: Recorded, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One suspension, renewed under one name, and ended with the pause."""
    monkeypatch.setattr(link_module, "_RENEW_SECONDS", 0.02)
    with recorded.guard() as guard, recorded.operator() as thread, linked(guard, gateway):
        thread.pause("an audit")
        until(lambda: len(gateway.suspended) > 3)
        thread.unpause("done")
        until(lambda: gateway.suspended[-1].startswith("of-"))

    *renewed, ended = gateway.suspended
    assert set(renewed) == {ended.removeprefix("of-")}


@pytest.mark.usefixtures("quick")
def test_a_gateway_that_starts_is_waited_for(team: Recorded, gateway: Gateway) -> None:
    """Without a word: each start takes a while."""
    gateway.is_starting = True
    gateway.waiting["exec"]["a-1"] = _EXEC
    with team.guard() as guard, linked(guard, gateway) as notes:
        until(lambda: len(gateway.calls) > 3)
        gateway.is_starting = False
        the_request(team)

    assert notes == []


@pytest.mark.usefixtures("quick")
def test_a_gateway_is_reached_when_it_takes_calls(team: Recorded, gateway: Gateway) -> None:
    """Not while it starts or migrates, so the guard does not say that its plugin is missing."""
    gateway.is_starting = True
    with team.guard() as guard:
        link = OperatorLink(guard, guard.acts(1), gateway.client, list[str]().append)
        link.start()
        until(lambda: len(gateway.calls) > 3)
        before = link.reached_at
        gateway.is_starting = False
        until(lambda: link.reached_at <= monotonic())
        link.close()

    assert before == inf


# ---------------------------------------------------------------------- the client


def test_a_wrong_token_is_refused(gateway: Gateway) -> None:
    """With what the gateway answers."""
    with pytest.raises(GatewayRefused, match="INVALID"):
        GatewayClient(gateway.url, "another")


def test_a_gateway_that_is_not_there_is_lost() -> None:
    """So that the link tries again."""
    with pytest.raises(GatewayLost):
        GatewayClient("ws://127.0.0.1:9", _TOKEN)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", '{"gateway": 7}', '{"gateway": {"auth": {"token": {"source": "env"}}}}'),
        *(
            f'{{"gateway": {{"port": {port}, "auth": {{"token": "t"}}}}}}'
            for port in ("-1", "0", "70000", "1" + "0" * 30)
        ),
    ],
)
def test_a_configuration_without_a_plain_token_gives_no_access(
    recorded: Recorded, text: str
) -> None:
    """The guard then leaves approvals to OpenClaw."""
    recorded.write("openclaw.json", text)
    with pytest.raises(GatewayLost):
        read_access(recorded.folder)


def test_port_and_token_are_those_of_the_gateway(recorded: Recorded) -> None:
    """As openclaw.json has them."""
    recorded.write("openclaw.json", '{"gateway": {"port": 7, "auth": {"token": "t"}}}')

    assert read_access(recorded.folder) == ("ws://127.0.0.1:7", "t")
