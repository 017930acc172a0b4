# SPDX-License-Identifier: Apache-2.0
"""The guard's socket: answers the gates of the plugin, and records what it reports, in order.

One operating system thread serves all connections. Lines that arrive together are recorded
together, and a question is answered only after it was recorded. So what is allowed is in the ledger
first, and under load one write to the disk serves many questions.

Only the gateway that the guard started is answered with yes. The kernel says which process is at
the other end, and the first of the gateway's processes that connects holds the start until it ends.
Everybody can reach the socket; others are answered that the guard did not start them.
"""

import os
import selectors
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from sealpoint.errors import SealpointError, UsageError
from sealpoint_openclaw._plugin_lines import (
    LINE_BYTES_MAX,
    AskRun,
    AskTool,
    Hello,
    MalformedLine,
    PluginLine,
    Question,
    answer,
    parse_line,
)

PATH_BYTES_MAX = 107
"""The longest path of a socket that the kernel stores."""

_CONNECTIONS_MAX = 16
_READ_BYTES = 1 << 16
_UNRECORDED_MAX = 10_000
_WAIT_SECONDS = 1.0
_SEND_SECONDS = 1.0
_PARENTS_MAX = 64
_CREDENTIALS = struct.Struct("3i")
_STRANGER = (
    "this gateway was not started by its guard, so nobody has verified its state; start it with: "
    "sealpoint openclaw run -- openclaw gateway"
)

Record = Callable[[list[dict[str, Any]]], None]
"""Records acts in order, or raises."""


class _Connection:
    """A process that has connected."""

    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.buffer = b""


class GateServer:
    """Serves the plugin of one gateway, until it is closed.

    Args:
        path: Where the socket is made; an older one is replaced.
        record: Records acts; called from the thread of the server only.
        refusal: Why nothing may run now; None if it may. It raises what makes it unknown.
    """

    def __init__(self, path: Path, record: Record, refusal: Callable[[], str | None]) -> None:
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise UsageError(
                f"{path}: the path of a socket has at most {PATH_BYTES_MAX} bytes",
                hint="Name a shorter directory: sealpoint openclaw init --gate DIR",
            )
        self._path = path
        self._record = record
        self._refusal = refusal
        self._selector = selectors.DefaultSelector()
        self._connections: set[_Connection] = set()
        self._unrecorded: list[dict[str, Any]] = []
        self._child: int | None = None
        self._ticket: int | None = None
        self._until: float | None = None
        self._thread = threading.Thread(target=self._serve, name="sealpoint-gate", daemon=True)
        self.greeted = False
        """Whether the plugin of the gateway has connected."""
        self.lost = False
        """Whether reports of the plugin could not be recorded, or were malformed."""

    # ------------------------------------------------------------------ from other threads

    def listen(self) -> None:
        """Make the socket, so that processes can connect."""
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._path.chmod(0o666)  # the kernel says who connects
        self._listener.listen(_CONNECTIONS_MAX)
        self._listener.setblocking(False)  # noqa: FBT003 - the name of the argument is `flag`
        self._wake_read, self._wake_write = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)

    def serve(self, pid: int) -> None:
        """Begin to answer; `pid` is the process that the guard has started."""
        self._child = pid
        self._thread.start()

    def close(self, seconds: float = 0.0) -> None:
        """Record what the ended gateway has reported, for some seconds at most, and end."""
        if self._thread.is_alive():
            self._until = monotonic() + seconds
            self._wake_write.send(b".")
            self._thread.join()
        for connection in list(self._connections):
            self._drop(connection)
        self._path.unlink(missing_ok=True)
        for each in (self._listener, self._wake_read, self._wake_write):
            each.close()
        self._selector.close()

    # ------------------------------------------------------------------ the server's thread

    def _serve(self) -> None:
        while True:
            questions: list[tuple[_Connection, Question]] = []
            for key, _ in self._selector.select(_WAIT_SECONDS):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wake_read:
                    self._wake_read.recv(_READ_BYTES)
                else:
                    questions += self._read(key.data)
            self._answer(questions)
            if self._until is not None and (not self._has_gateway() or monotonic() >= self._until):
                return

    def _has_gateway(self) -> bool:
        return any(connection.pid == self._ticket for connection in self._connections)

    def _accept(self) -> None:
        with suppress(OSError):
            sock, _ = self._listener.accept()
            pid, _, _ = _CREDENTIALS.unpack(
                sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            if len(self._connections) >= _CONNECTIONS_MAX:
                sock.close()
                return
            sock.settimeout(_SEND_SECONDS)
            connection = _Connection(sock, pid)
            self._connections.add(connection)
            self._selector.register(sock, selectors.EVENT_READ, connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._selector.unregister(connection.sock)
            connection.sock.close()

    def _read(self, connection: _Connection) -> list[tuple[_Connection, Question]]:
        """Take what has arrived; return the questions in it."""
        try:
            data = connection.sock.recv(_READ_BYTES)
        except OSError:
            data = b""
        *lines, connection.buffer = (connection.buffer + data).split(b"\n")
        questions = []
        is_gateway = self._is_gateway(connection.pid)
        try:
            for each in lines:
                line = parse_line(each)
                if isinstance(line, AskRun | AskTool):
                    questions.append((connection, line))
                if is_gateway:
                    self._note(line)
            if len(connection.buffer) > LINE_BYTES_MAX:
                raise MalformedLine
        except MalformedLine:
            self.lost = self.lost or is_gateway
            data = b""
        if not data:
            self._drop(connection)
        return questions

    def _note(self, line: PluginLine) -> None:
        if isinstance(line, Hello):
            self.greeted = True
        else:
            self._unrecorded.append(msgspec.to_builtins(line))

    def _is_gateway(self, pid: int) -> bool:
        """Whether a process holds the start; the first of the gateway's processes takes it."""
        if self._ticket != pid and (self._ticket is None or not _exists(self._ticket)):
            if self._child is None or not _descends(pid, self._child):
                return False
            self._ticket = pid
        return self._ticket == pid

    def _answer(self, questions: list[tuple[_Connection, Question]]) -> None:
        refusal = self._record_all()
        if refusal is None and questions:
            try:
                refusal = self._refusal()
            except SealpointError as error:
                refusal = f"the guard cannot decide: {error.message}"
        for connection, question in questions:
            said = refusal if self._is_gateway(connection.pid) else _STRANGER
            try:
                connection.sock.sendall(answer(question, said))
            except OSError:
                self._drop(connection)

    def _record_all(self) -> str | None:
        """Record what was reported; return why nothing may run if that fails."""
        if not self._unrecorded:
            return None
        try:
            self._record(self._unrecorded)
        except SealpointError as error:
            if len(self._unrecorded) > _UNRECORDED_MAX:
                self._unrecorded, self.lost = [], True
            return f"the guard cannot record what happens: {error.message}"
        self._unrecorded = []
        return None


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process is another one, or was started by it or by what it started."""
    for _ in range(_PARENTS_MAX):
        if pid == ancestor:
            return True
        try:
            text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return False
        # The second field is the name in parentheses, which may have spaces of its own.
        pid = int(text.rpartition(")")[2].split()[1])
        if pid <= 1:
            return False
    return False
