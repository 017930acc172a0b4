# SPDX-License-Identifier: Apache-2.0
"""The guard as an operator of its gateway: approvals that people give here, and pauses.

When OpenClaw asks whether a command or an act of a plugin may run, the guard asks the people of its
store, as for any other answer: the question is a checkpoint of a thread of its own, people approve
`allow-once` by the policy, and the resume that this allows is recorded before OpenClaw is answered.
Each approval is used once, for exactly the question that people were shown: it is compared again
before the answer, and a question that has changed under its id is denied. A denial is `deny`.
Under a policy that asks nobody for answers, OpenClaw's own users answer.

While the gateway is paused, the guard also keeps it suspended, so that it admits no new work. The
suspension ends by itself after two minutes without the guard; the gate of the plugin holds on.
"""

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, TypeGuard

from sealpoint.errors import NeedsApproval, ResumeRefused, SealpointError
from sealpoint.gate import Outcome, Thread
from sealpoint_openclaw._acts import ActLog
from sealpoint_openclaw._gateway_client import GatewayClient, GatewayLost, GatewayRefused
from sealpoint_openclaw._guard import Guard

_KINDS = ("exec", "plugin")
_ALLOW, _DENY = "allow-once", "deny"
_WAIT_SECONDS = 1.0
_RECONNECT_SECONDS = 3.0
_ASK_SECONDS = 2.0
_LIST_SECONDS = 30.0
_RENEW_SECONDS = 30.0
_ID_LETTERS_MAX = 64
# How people call the fields that they should read first.
_FIRST = {
    "command": "command",
    "title": "title",
    "description": "description",
    "cwd": "folder",
    "resolvedPath": "program",
    "pluginId": "plugin",
    "agentId": "agent",
    "sessionKey": "conversation",
}

Connect = Callable[[], GatewayClient]


@dataclass(slots=True, kw_only=True)
class _Question:
    """An approval that OpenClaw waits for."""

    kind: str
    request: Mapping[str, Any]
    """The request that people see."""
    thread: Thread
    decision: str | None = None
    """The decision of people, until OpenClaw has taken it."""


class OperatorLink:
    """Keeps a connection to the gateway, in an operating system thread of its own.

    Args:
        guard: The guard of the gateway.
        acts: The acts of the run, in which decisions are recorded.
        connect: Opens a connection.
        note: Is given a sentence for the person at the terminal.
    """

    def __init__(
        self, guard: Guard, acts: ActLog, connect: Connect, note: Callable[[str], None]
    ) -> None:
        self._guard = guard
        self._acts = acts
        self._connect = connect
        self._note = note
        self._questions: dict[str, _Question] = {}
        self._left: set[str] = set()
        self._request = f"sealpoint-{secrets.token_hex(8)}"
        self._suspension: str | None = None
        self._renew_at = 0.0
        self.reached_at = inf
        """When the gateway first answered, by the monotonic clock."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sealpoint-operator", daemon=True)

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def close(self) -> None:
        """End the connection. Questions that are open stay open in OpenClaw."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    # ------------------------------------------------------------------ its thread

    def _run(self) -> None:
        refused = ""
        while not self._ended.is_set():
            try:
                client = self._connect()
                self.reached_at = min(self.reached_at, monotonic())
                try:
                    self._serve(client)
                finally:
                    client.close()
            except GatewayLost:
                pass
            except Exception as error:  # noqa: BLE001 - a thread that ends would answer nothing
                if (str(error) or type(error).__name__) != refused:
                    refused = str(error) or type(error).__name__
                    self._note(f"Approvals of OpenClaw are not answered here: {refused}")
            self._ended.wait(_RECONNECT_SECONDS)

    def _serve(self, client: GatewayClient) -> None:
        list_at = ask_at = 0.0
        while not self._ended.is_set():
            now = monotonic()
            self._follow_pause(client, now)
            if self._suspension is None and now >= list_at:
                self._list(client)
                list_at = now + _LIST_SECONDS
            if self._suspension is None and now >= ask_at:
                for identity in list(self._questions):
                    self._ask(client, identity)
                ask_at = monotonic() + _ASK_SECONDS
            event = client.event(_WAIT_SECONDS)
            if event is not None and event.partition(".")[0] in _KINDS:
                list_at = 0.0

    # ------------------------------------------------------------------ approvals

    def _waiting(self, client: GatewayClient) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Return the kind and the request of each question that OpenClaw waits for, by its id."""
        waiting: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for kind in _KINDS:
            listed = client.call(f"{kind}.approval.list", {})
            for each in listed if isinstance(listed, list) else []:
                found = each if isinstance(each, dict) else {}
                identity, request = found.get("id"), found.get("request")
                if _is_plain(identity) and isinstance(request, dict):
                    waiting[identity] = kind, request
        return waiting

    def _list(self, client: GatewayClient) -> None:
        """Bring the questions up to date with those that OpenClaw waits for."""
        waiting = self._waiting(client)
        for identity, (kind, request) in waiting.items():
            question = self._questions.get(identity)
            if question is not None and (kind, request) != (question.kind, question.request):
                question.decision = _DENY  # nobody was shown this one
            elif question is None and identity not in self._left:
                self._take(identity, kind, request)
        for identity in self._questions.keys() - waiting.keys():
            self._close(identity, "answered in OpenClaw, or expired")
        self._left &= waiting.keys()

    def _take(self, identity: str, kind: str, request: Mapping[str, Any]) -> None:
        """Put a new question to people, unless the policy asks nobody."""
        thread = self._guard.open_thread(f"{self._guard.thread.name}/approvals/{identity}")
        shown = {name: request[key] for key, name in _FIRST.items() if request.get(key)}
        shown["request"] = dict(request)
        question = _Question(kind=kind, request=request, thread=thread)
        try:
            # A guard that has started again finds the question that people may have answered.
            if thread.question != shown:
                thread.save({"approval": identity}, metadata={"approval": kind}, question=shown)
            decision = thread.judge(world=None, answer=_ALLOW)
        except SealpointError as error:
            # Nobody is asked about what nobody was shown.
            self._note(f"OpenClaw is answered {_DENY}: {error.message}")
            question.decision = _DENY
        else:
            # People may have approved already, if the guard has started again.
            if decision.outcome is Outcome.ALLOW and not decision.needed:
                self._left.add(identity)
                self._end(identity, thread, "left to the users of OpenClaw")
                return
        self._questions[identity] = question

    def _ask(self, client: GatewayClient, identity: str) -> None:
        """Answer OpenClaw if people have decided; the answer is recorded before."""
        question = self._questions[identity]
        if question.decision is None:
            try:
                question.thread.resume(world=None, answer=_ALLOW)
            except NeedsApproval:
                return
            except ResumeRefused:
                question.decision = _DENY
            else:
                question.decision = _ALLOW
        if self._waiting(client).get(identity) != (question.kind, question.request):
            question.decision = _DENY
        answer = {"id": identity, "decision": question.decision}
        try:
            client.call(f"{question.kind}.approval.resolve", answer)
            came = f"answered {question.decision}"
        except GatewayRefused as error:
            came = f"not answered {question.decision}: {error}"
        self._close(identity, came)

    def _close(self, identity: str, came: str) -> None:
        self._end(identity, self._questions.pop(identity).thread, came)

    def _end(self, identity: str, thread: Thread, came: str) -> None:
        """Record how a question ended, so that nothing more can be approved about it."""
        self._acts.record([{"kind": "approval", "v": 1, "id": identity, "outcome": came}])
        try:
            thread.save({"approval": identity, "outcome": came})
        except SealpointError as error:
            self._note(f"approval {identity}: {error.message}")

    # ------------------------------------------------------------------ pauses

    def _follow_pause(self, client: GatewayClient, now: float) -> None:
        """Keep the gateway suspended as long as it is paused."""
        if self._guard.refusal() is None:
            if self._suspension is not None:
                client.call("gateway.suspend.resume", {"suspensionId": self._suspension})
                self._suspension = None
                self._renew_at = 0.0
        elif now >= self._renew_at:
            answer = client.call(
                "gateway.suspend.prepare", {"requestId": self._request, "drain": True}
            )
            self._suspension = answer.get("suspensionId") if isinstance(answer, dict) else None
            self._renew_at = now + _RENEW_SECONDS


def _is_plain(identity: object) -> TypeGuard[str]:
    """Whether an id can be a part of the name of a thread."""
    return (
        isinstance(identity, str)
        and len(identity) <= _ID_LETTERS_MAX
        and identity.replace("-", "").isalnum()
        and identity.isascii()
    )
