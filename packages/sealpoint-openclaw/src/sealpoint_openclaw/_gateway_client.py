# SPDX-License-Identifier: Apache-2.0
"""A client of a gateway's WebSocket, for the process that guards it: protocol 4, on this machine.

The guard reads port and token where the gateway does, in openclaw.json. Every frame is bounded, and
what is not a frame of the protocol ends the connection.
"""

import json
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from sealpoint import __version__

_CONFIG_BYTES_MAX = 4 << 20
_FRAME_BYTES_MAX = 8 << 20
_SECONDS = 10.0
_PORT = 18789
_PORT_MAX = 65535
_SCOPES = ["operator.read", "operator.approvals", "operator.admin"]
_CAPABILITIES = ["approvals", "exec-approvals", "plugin-approvals"]


class GatewayLost(Exception):
    """The gateway cannot be reached, or the connection has ended."""


class GatewayRefused(Exception):
    """The gateway has answered a call with an error."""


def read_access(folder: Path) -> tuple[str, str]:
    """Return the address of the gateway of a folder, and its token.

    Raises:
        GatewayLost: The configuration is not plain JSON, or holds no token.
    """
    try:
        with (folder / "openclaw.json").open("rb") as file:
            settings = json.loads(file.read(_CONFIG_BYTES_MAX))["gateway"]
        token = settings["auth"]["token"]
        found = settings.get("port", _PORT)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise GatewayLost("openclaw.json: expected gateway.auth.token in plain JSON") from exc
    if type(token) is not str or type(found) is not int or not 0 < found <= _PORT_MAX:
        raise GatewayLost("openclaw.json: expected a port and a token as plain values")
    return f"ws://127.0.0.1:{found}", token


class GatewayClient:
    """An open connection; calls and events are for one operating system thread.

    Raises:
        GatewayLost: The gateway cannot be reached, or is still starting.
        GatewayRefused: It does not accept the token.
    """

    def __init__(self, url: str, token: str) -> None:
        self._open = ExitStack()
        self._last = 0
        self._events: deque[str] = deque()
        try:
            self._socket: ClientConnection = self._open.enter_context(
                connect(url, max_size=_FRAME_BYTES_MAX, open_timeout=_SECONDS, proxy=None)
            )
        except (OSError, WebSocketException) as exc:
            raise GatewayLost(f"{url}: {exc}") from exc
        try:
            self._receive(_SECONDS)  # the challenge, which only devices answer
            self.call(
                "connect",
                {
                    "minProtocol": 4,
                    "maxProtocol": 4,
                    "role": "operator",
                    "scopes": _SCOPES,
                    "caps": _CAPABILITIES,
                    "client": {
                        "id": "gateway-client",
                        "version": __version__,
                        "platform": "linux",
                        "mode": "backend",
                    },
                    "auth": {"token": token},
                },
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._open.close()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Call a method, and return what it answers.

        Raises:
            GatewayRefused: The answer is an error.
            GatewayLost: There is no answer, or the gateway takes no calls now.
        """
        self._last += 1
        frame = {"type": "req", "id": str(self._last), "method": method, "params": params}
        try:
            self._socket.send(json.dumps(frame))
        except WebSocketException as exc:
            raise GatewayLost(str(exc)) from exc
        while True:
            answer = self._receive(_SECONDS)
            if answer is None:
                raise GatewayLost(f"{method}: no answer in {_SECONDS:.0f} seconds")
            if answer.get("type") == "res" and answer.get("id") == str(self._last):
                if answer.get("ok") is True:
                    return answer.get("payload")
                error = answer.get("error")
                found = error if isinstance(error, dict) else {}
                said = f"{found.get('code')}: {found.get('message')}"
                if found.get("code") == "UNAVAILABLE":  # it starts, stops or is suspended
                    raise GatewayLost(said)
                raise GatewayRefused(said)

    def event(self, seconds: float) -> str | None:
        """Wait for the next event, and return its name; None if there is none in time.

        Raises:
            GatewayLost: The connection has ended.
        """
        if not self._events:
            self._receive(seconds)
        return self._events.popleft() if self._events else None

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        try:
            frame = json.loads(self._socket.recv(seconds))
        except TimeoutError:
            return None
        except (WebSocketException, OSError, ValueError, RecursionError) as exc:
            raise GatewayLost(str(exc)) from exc
        if not isinstance(frame, dict):
            raise GatewayLost("the gateway sent something that is not a frame")
        if frame.get("type") == "event":
            self._events.append(str(frame.get("event")))
        return frame
