# SPDX-License-Identifier: Apache-2.0
"""The guard's socket: answers the gates of the plugin, and records what it reports, in order.

One operating system thread serves all connections. Lines that arrive together are recorded
together, and a question is answered only after it was recorded. So what is allowed is in the ledger
first, and under load one write to the disk serves many questions.

Only the gateway that the guard started is answered with yes. The kernel says which process is at
the other end, and the first of the gateway's processes that connects holds the start until it ends.
A process is its number and the time of its start, because the kernel gives numbers again.
The socket belongs to the gateway's user. Its other processes are answered once that the guard did
not start them; they neither hold connections that the gateway needs nor make it wait.
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
from typing import Any, TypeAlias

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
# Of /proc/PID/stat, counted from the state, which is its third field.
_PARENT, _START = 1, 19
_STRANGER = (
    "this gateway was not started by its guard, so nobody has verified its state; start it with: "
    "sealpoint openclaw run -- openclaw gateway"
)

Record = Callable[[list[dict[str, Any]]], None]
"""Records acts in order, or raises."""


_Process: TypeAlias = tuple[int, int]
"""The number of a process, and when it started."""


class _Connection:
    """A process that has connected; None: it had ended before that was seen."""

    def __init__(self, sock: socket.socket, process: _Process | None) -> None:
        self.sock = sock
        self.process = process
        self.buffer = b""


class GateServer:
    """Serves the plugin of one gateway, until it is closed.

    Args:
        path: Where the socket is made; an older one is replaced.
        record: Records acts; called from the thread of the server only.
        refusal: Why nothing may run now; None if it may. It raises what makes it unknown.
        user: The uid of the gateway.
    """

    def __init__(
        self, path: Path, record: Record, refusal: Callable[[], str | None], user: int
    ) -> None:
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise UsageError(
                f"{path}: the path of a socket has at most {PATH_BYTES_MAX} bytes",
                hint="Name a shorter directory: sealpoint openclaw init --gate DIR",
            )
        self._path = path
        self._record = record
        self._refusal = refusal
        self._user = user
        self._selector = selectors.DefaultSelector()
        self._connections: set[_Connection] = set()
        self._unrecorded: list[dict[str, Any]] = []
        self._child: int | None = None
        self._ticket: _Process | None = None
        self._until: float | None = None
        self._thread = threading.Thread(target=self._serve, name="sealpoint-gate", daemon=True)
        self.greeted = False
        """Whether the plugin of the gateway has connected."""
        self.lost = False
        """Whether reports of the plugin could not be recorded, or were malformed."""

    # ------------------------------------------------------------------ from other threads

    def listen(self) -> None:
        """Make the socket, so that processes of the gateway's user can connect.

        Raises:
            UsageError: The guard may not give it to that user.
        """
        self._path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._path.chmod(0o600)
        try:
            os.chown(self._path, self._user, -1)
        except OSError as exc:
            self._listener.close()
            raise UsageError(
                f"{self._path}: the guard cannot give its socket to uid {self._user}: "
                f"{exc.strerror}",
                hint="Let the guard have CAP_CHOWN, as in the unit that init writes.",
            ) from exc
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
        return any(self._holds_start(connection) for connection in self._connections)

    def _holds_start(self, connection: _Connection) -> bool:
        return connection.process is not None and connection.process == self._ticket

    def _accept(self) -> None:
        with suppress(OSError):
            sock, _ = self._listener.accept()
            pid, uid, _ = _CREDENTIALS.unpack(
                sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            )
            others = [each for each in self._connections if not self._holds_start(each)]
            if uid not in {self._user, os.geteuid()} or (
                len(self._connections) >= _CONNECTIONS_MAX and not others
            ):
                sock.close()
                return
            if len(self._connections) >= _CONNECTIONS_MAX:
                self._drop(others[0])
            sock.settimeout(_SEND_SECONDS)
            connection = _Connection(sock, _process(pid))
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
        is_gateway = self._is_gateway(connection)
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

    def _is_gateway(self, connection: _Connection) -> bool:
        """Whether a process holds the start; the first of the gateway's processes takes it."""
        process = connection.process
        if process is None or self._child is None:
            return False
        if self._ticket is None or (process != self._ticket and not _runs(self._ticket)):
            if not _runs(process) or not _descends(process[0], self._child):
                return False
            self._ticket = process
        return process == self._ticket

    def _answer(self, questions: list[tuple[_Connection, Question]]) -> None:
        refusal = self._record_all()
        if refusal is None and questions:
            try:
                refusal = self._refusal()
            except Exception as error:  # noqa: BLE001 - a thread that ends would record nothing
                refusal = f"the guard cannot decide: {_why(error)}"
        for connection, question in questions:
            is_gateway = self._is_gateway(connection)
            try:
                if not is_gateway:
                    connection.sock.settimeout(0)  # the gateway waits for nobody who does not read
                connection.sock.sendall(answer(question, refusal if is_gateway else _STRANGER))
            except OSError:
                is_gateway = False
            if not is_gateway:
                self._drop(connection)

    def _record_all(self) -> str | None:
        """Record what was reported; return why nothing may run if that fails."""
        if not self._unrecorded:
            return None
        try:
            self._record(self._unrecorded)
        except Exception as error:  # noqa: BLE001 - a thread that ends would record nothing
            if len(self._unrecorded) > _UNRECORDED_MAX:
                self._unrecorded, self.lost = [], True
            return f"the guard cannot record what happens: {_why(error)}"
        self._unrecorded = []
        return None


def _why(error: Exception) -> str:
    return error.message if isinstance(error, SealpointError) else type(error).__name__


def _stat(pid: int) -> list[str]:
    """Return what the kernel says of a process, from its state on; nothing if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    # The second field is the name in parentheses, which may have spaces of its own.
    return text.rpartition(")")[2].split()


def _process(pid: int) -> _Process | None:
    fields = _stat(pid)
    return (pid, int(fields[_START])) if fields else None


def _runs(process: _Process) -> bool:
    return _process(process[0]) == process


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process is another one, or was started by it or by what it started."""
    for _ in range(_PARENTS_MAX):
        if pid == ancestor:
            return True
        fields = _stat(pid)
        if not fields:
            return False
        pid = int(fields[_PARENT])
        if pid <= 1:
            return False
    return False
