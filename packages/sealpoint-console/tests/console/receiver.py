# SPDX-License-Identifier: Apache-2.0
"""A real receiver of webhooks on this machine, which can be told how to answer."""

import base64
import hmac
import json
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

__all__ = ["Got", "Receiver", "SlowServer", "new_secret", "verify", "wait_until"]

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True, slots=True)
class Got:
    """One request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def document(self) -> dict[str, Any]:
        """Its body."""
        found: dict[str, Any] = json.loads(self.body)
        return found


def _take(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(204)
    handler.end_headers()


class Receiver:
    """A server that keeps what it gets. Use it in a `with` block.

    Args:
        answer: How it answers; else it takes everything.
        context: For TLS.
        port: Else any.
    """

    def __init__(
        self,
        answer: Answer | None = None,
        *,
        context: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.got: list[Got] = []
        self.answer: Answer = answer or _take
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.got.append(Got(self.path, headers, body, time.monotonic()))
                receiver.answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A sender that hangs up is what some tests are about."""

        self._server = Server(("127.0.0.1", port), Handler)
        scheme = "http"
        if context is not None:
            scheme = "https"
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.url = f"{scheme}://localhost:{self.port}/hook?room=7"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def ids(self) -> list[str]:
        """The ids of what arrived, in order."""
        return [got.headers["webhook-id"] for got in self.got]


class SlowServer:
    """A server that takes connections and says what it is told to, a byte at a time, or nothing."""

    def __init__(self, words: bytes = b"", pause_s: float = 0.05) -> None:
        self._words, self._pause_s = words, pause_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
        self.connections = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        self._listening.settimeout(0.05)
        held = []
        while not self._ended.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                continue
            self.connections += 1
            held.append(connection)
            try:
                for number in range(len(self._words)):
                    connection.sendall(self._words[number : number + 1])
                    if self._ended.wait(self._pause_s):
                        break
            except OSError:
                continue
        for connection in held:
            connection.close()


def new_secret(path: Path) -> str:
    """A file with a new secret."""
    secret = base64.b64encode(secrets.token_bytes(32)).decode()
    path.write_text(f"{secret}\n")
    path.chmod(0o600)
    return secret


def verify(got: Got, secret: str) -> bool:
    """Whether a request is signed with a secret, as docs/console/notifications.md has it."""
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    mac = base64.b64encode(hmac.digest(base64.b64decode(secret), signed, "sha256")).decode()
    return f"v1,{mac}" in got.headers["webhook-signature"].split()


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something to become true."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come about in time"
        time.sleep(0.005)
