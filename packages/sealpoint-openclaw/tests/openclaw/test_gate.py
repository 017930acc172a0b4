# SPDX-License-Identifier: Apache-2.0
"""The socket of the guard: what it allows, what it refuses, and what it records.

The tests play the plugin over the real socket, from this process or from others.
"""

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import sealpoint
from sealpoint.errors import StorageUnavailable
from sealpoint_openclaw import Guard
from sealpoint_openclaw._acts import ActLog
from sealpoint_openclaw._gate_server import GateServer
from tests.openclaw.recorded_folder import Recorded

DIGEST = "0" * 64
RUN = {"kind": "run", "v": 1, "id": 1, "agent": "main", "session": "agent:main:main"} | {
    "run": "r1",
    "trigger": "user",
    "digest": DIGEST,
}
TOOL = {"kind": "tool", "v": 1, "id": 2, "agent": "main", "session": "agent:main:main"} | {
    "run": "r1",
    "call": "c1",
    "tool": "exec",
    "digest": DIGEST,
    "files": [],
}
MESSAGE = {"kind": "message", "v": 1, "agent": "main", "session": "agent:main:main"} | {
    "role": "user",
    "digest": DIGEST,
}

_CLIENT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect(sys.argv[1])
    sock.sendall(sys.argv[2].encode() + b"\\n")
    print(sock.makefile().readline(), flush=True)
"""


_SILENT = """
import socket, sys, time
socks = [socket.socket(socket.AF_UNIX) for _ in range(40)]
for sock in socks:
    sock.connect(sys.argv[1])
print("ready", flush=True)
time.sleep(60)
"""

_DEAF = """
import socket, sys, time
socks = [socket.socket(socket.AF_UNIX) for _ in range(12)]
for sock in socks:
    sock.connect(sys.argv[1])
    sock.setblocking(False)
for sock in socks:
    try:
        for _ in range(400):
            sock.send(sys.argv[2].encode())
    except OSError:
        pass
print("ready", flush=True)
time.sleep(60)
"""

# Its first process ends before the second one, which has the connection, asks.
_HEIR = """
import os, socket, sys, time
sock = socket.socket(socket.AF_UNIX)
first = os.fork()
if first == 0:
    sock.connect(sys.argv[1])
    number = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == number:
        time.sleep(0.01)
    time.sleep(0.2)
    print(number, flush=True)
    sys.stdin.readline()
    try:
        sock.sendall(sys.argv[2].encode())
        print(sock.makefile().readline(), flush=True)
    except OSError:
        print("closed", flush=True)
    os._exit(0)
os.waitpid(first, 0)
"""
_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def line(document: dict[str, Any]) -> bytes:
    """A line as the plugin spells it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class Plugin:
    """A connection of this process."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(path))
        self._answers = self.sock.makefile("rb")

    def say(self, *documents: dict[str, Any]) -> None:
        """Send lines in one piece."""
        self.sock.sendall(b"".join(line(each) for each in documents))

    def answer(self) -> dict[str, Any]:
        """The next answer; empty if the guard closed the connection."""
        text = self._answers.readline()
        return dict(json.loads(text)) if text else {}

    def ask(self, document: dict[str, Any]) -> dict[str, Any]:
        """Ask one question."""
        self.say(document)
        return self.answer()

    def close(self) -> None:
        """End the connection, as a process that dies."""
        self._answers.close()
        self.sock.close()


class Gate:
    """A server with a guard behind it."""

    def __init__(self, guard: Guard, acts: ActLog, path: Path) -> None:
        self.path = path
        self.fault: Exception | None = None
        self.plugins: list[Plugin] = []
        self._acts = acts
        self.server = GateServer(path, self._record, guard.refusal, os.geteuid())

    def _record(self, acts: list[dict[str, Any]]) -> None:
        if self.fault is not None:
            raise self.fault
        self._acts.record(acts)

    def plugin(self) -> Plugin:
        """A new connection."""
        self.plugins.append(Plugin(self.path))
        return self.plugins[-1]


@contextmanager
def serving(guard: Guard, acts: ActLog, pid: int) -> Iterator[Gate]:
    """A server that takes one process for the gateway; its path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="sealpoint-") as directory:
        gate = Gate(guard, acts, Path(directory) / "guard.sock")
        gate.server.listen()
        gate.server.serve(pid)
        try:
            yield gate
        finally:
            for each in gate.plugins:
                each.close()
            gate.server.close()


@pytest.fixture
def guard(recorded: Recorded) -> Iterator[Guard]:
    """A guard with an open store."""
    with recorded.guard() as guard:
        yield guard


@pytest.fixture
def acts(guard: Guard) -> ActLog:
    """The acts of a run."""
    return guard.acts(1)


@pytest.fixture
def gate(guard: Guard, acts: ActLog) -> Iterator[Gate]:
    """A gate that takes this process for the gateway."""
    with serving(guard, acts, os.getpid()) as gate:
        yield gate


def recorded_acts(guard: Guard) -> list[dict[str, Any]]:
    """All acts of the run, in order."""
    thread = guard.open_thread("openclaw/acts/1")
    groups = [thread.load(ref).state["acts"] for ref in thread.history()]
    return [act for group in reversed(groups) for act in group]


def test_an_allowed_call_is_recorded_before_it_is_answered(guard: Guard, gate: Gate) -> None:
    """So nothing that was allowed is missing after a crash."""
    plugin = gate.plugin()
    answers = [plugin.ask(RUN), plugin.ask(TOOL)]

    assert answers == [{"id": 1, "allow": True}, {"id": 2, "allow": True}]
    assert recorded_acts(guard) == [RUN, TOOL]


def test_what_arrives_together_is_recorded_in_order_in_one_group(guard: Guard, gate: Gate) -> None:
    """Messages have no answers of their own."""
    messages = [MESSAGE | {"digest": f"{number:064x}"} for number in range(50)]
    plugin = gate.plugin()
    plugin.say(*messages, TOOL)

    assert plugin.answer()["allow"] is True
    assert recorded_acts(guard) == [*messages, TOOL]


def test_what_a_dead_gateway_has_sent_is_still_recorded(guard: Guard, gate: Gate) -> None:
    """The bytes are in the kernel, and the guard reads them to their end."""
    plugin = gate.plugin()
    plugin.ask(RUN)
    plugin.say(*[MESSAGE] * 2000)
    plugin.close()
    gate.server.close(10)

    assert recorded_acts(guard)[1:] == [MESSAGE] * 2000


def test_a_pause_refuses_runs_and_calls_until_it_ends(recorded: Recorded, gate: Gate) -> None:
    """The answer says who paused it and why."""
    plugin = gate.plugin()
    with recorded.operator() as thread:
        thread.pause("an audit")
        refused = plugin.ask(TOOL)
        thread.unpause("done")

    assert refused["allow"] is False
    assert refused["reason"] == "operator paused OpenClaw: an audit"
    assert plugin.ask(TOOL)["allow"] is True


def _ask_elsewhere(gate: Gate, document: dict[str, Any]) -> dict[str, Any]:
    """The answer that another process, which this one has started, is given."""
    asked = subprocess.run(
        [sys.executable, "-c", _CLIENT, str(gate.path), line(document).decode().strip()],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return dict(json.loads(asked.stdout))


def test_a_gateway_that_the_guard_did_not_start_is_refused(guard: Guard, acts: ActLog) -> None:
    """With a sentence that says how to start it; what it reports is not recorded."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        with serving(guard, acts, other.pid) as gate:
            plugin = gate.plugin()
            plugin.say(MESSAGE)
            answer = plugin.ask(TOOL)
        other.kill()

    assert answer["allow"] is False
    assert "sealpoint openclaw run -- openclaw gateway" in answer["reason"]
    with pytest.raises(sealpoint.errors.UnknownThread):
        recorded_acts(guard)


def test_a_start_serves_one_process(guard: Guard, gate: Gate) -> None:
    """A command that an agent runs is a process of the gateway's too, and may not report."""
    plugin = gate.plugin()
    plugin.ask(RUN)
    other = _ask_elsewhere(gate, TOOL)

    assert other["allow"] is False
    assert plugin.ask(TOOL)["allow"] is True
    assert recorded_acts(guard) == [RUN, TOOL]


def test_a_child_of_the_started_command_may_be_the_gateway(gate: Gate) -> None:
    """As where a wrapper starts it."""
    assert _ask_elsewhere(gate, RUN)["allow"] is True


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"{}\n",
        b'{"kind":"eval","v":1}\n',
        line(RUN | {"v": 2}),
        line(RUN | {"id": 0}),
        line(RUN | {"digest": "x" * 64}),
        line(RUN | {"session": "x" * 201}),
        line(RUN | {"more": ""}),
        line(dict(reversed(RUN.items()))),
        line(RUN).replace(b":", b": "),
        line(RUN)[:-2] + b',"run":"r2"}\n',
        b"[" * 5000 + b"\n",
        b'{"kind":"run"' + b" " * 20_000,
    ],
    ids=range(13),
)
def test_a_malformed_line_ends_the_connection(gate: Gate, data: bytes) -> None:
    """Nothing of it is recorded or answered, and other connections go on."""
    plugin = gate.plugin()
    plugin.sock.sendall(data)

    assert plugin.answer() == {}
    assert gate.plugin().ask(TOOL)["allow"] is True
    assert gate.server.lost


def test_nothing_runs_while_acts_cannot_be_recorded(guard: Guard, gate: Gate) -> None:
    """What was reported meanwhile is recorded as soon as that is possible."""
    gate.fault = StorageUnavailable("the disk is full")
    plugin = gate.plugin()
    plugin.say(MESSAGE)
    refused = plugin.ask(TOOL)
    gate.fault = None

    assert refused["allow"] is False
    assert "cannot record what happens: the disk is full" in refused["reason"]
    assert plugin.ask(RUN)["allow"] is True
    assert recorded_acts(guard) == [MESSAGE, TOOL, RUN]


@pytest.mark.parametrize("fault", [OSError("no space"), MemoryError(), ValueError()], ids=repr)
def test_no_error_ends_the_thread_that_records(gate: Gate, fault: Exception) -> None:
    """Of whatever kind: nothing runs, and what was reported is recorded later."""
    gate.fault = fault
    plugin = gate.plugin()
    refused = plugin.ask(TOOL)
    gate.fault = None

    assert f"cannot record what happens: {type(fault).__name__}" in refused["reason"]
    assert plugin.ask(RUN)["allow"] is True


def test_connections_that_say_nothing_do_not_keep_the_gateway_out(gate: Gate) -> None:
    """Their number is bounded, and the gateway's connections do not count."""
    plugin = gate.plugin()
    plugin.ask(RUN)
    with subprocess.Popen(
        [sys.executable, "-c", _SILENT, str(gate.path)], stdout=subprocess.PIPE
    ) as silent:
        assert silent.stdout is not None
        silent.stdout.readline()
        answers = [plugin.ask(TOOL)["allow"], gate.plugin().ask(TOOL)["allow"]]
        silent.kill()

    assert answers == [True, True]


def test_processes_that_do_not_read_do_not_make_the_gateway_wait(gate: Gate) -> None:
    """Each is answered once, as far as it reads."""
    plugin = gate.plugin()
    plugin.ask(RUN)
    with subprocess.Popen(
        [sys.executable, "-c", _DEAF, str(gate.path), line(TOOL).decode()], stdout=subprocess.PIPE
    ) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        start = monotonic()
        plugin.ask(TOOL)
        waited = monotonic() - start
        deaf.kill()

    assert waited < 1


def _start_as(number: int, words: list[str]) -> "subprocess.Popen[str]":
    """Start a program until its process has a number that was used before."""
    for _ in range(100):
        _LAST_PID.write_text(str(number - 1), "ascii")
        process = subprocess.Popen(
            [sys.executable, "-c", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if process.pid == number:
            return process
        process.communicate("")
    pytest.fail(f"no process got the number {number}")


@pytest.mark.skipif(not os.access(_LAST_PID, os.W_OK), reason="root says which number is next")
def test_a_number_that_is_used_again_is_another_process(gate: Gate) -> None:
    """A process connects and ends, another has its connection, and the gateway its number."""
    with subprocess.Popen(
        [sys.executable, "-c", _HEIR, str(gate.path), line(TOOL).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as heir:
        assert heir.stdout is not None
        assert heir.stdin is not None
        number = int(heir.stdout.readline())
        words = [f"{_CLIENT}\ninput()", str(gate.path), line(RUN).decode().strip()]
        gateway = _start_as(number, words)
        assert gateway.stdout is not None
        allowed = json.loads(gateway.stdout.readline())
        heir.stdin.write("\n")
        heir.stdin.flush()
        refused = heir.stdout.readline()
        gateway.communicate("")

    assert allowed["allow"] is True
    assert '"allow":true' not in refused


def test_only_the_user_of_the_gateway_reaches_the_socket(gate: Gate) -> None:
    """Nobody else can fill the queue of those who connect."""
    found = gate.path.stat()

    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_uid == os.geteuid()


def test_a_path_that_is_too_long_for_a_socket_is_refused(guard: Guard, acts: ActLog) -> None:
    """Before anything starts, with the option that helps."""
    with pytest.raises(sealpoint.errors.UsageError, match="at most 107 bytes"):
        GateServer(Path("/tmp") / ("x" * 120), acts.record, guard.refusal, 0)  # noqa: S108


# ---------------------------------------------------------------------- pauses and seals


def test_a_paused_gateway_does_not_start(recorded: Recorded) -> None:
    """Neither by this guard nor by a new one."""
    with recorded.operator() as thread:
        thread.pause("an audit")
    with (
        recorded.guard() as guard,
        pytest.raises(sealpoint.errors.ResumeRefused, match="paused"),
        guard.running(),
    ):
        pytest.fail("it started")


def test_a_gateway_that_stops_during_a_pause_raises_no_alarm(recorded: Recorded) -> None:
    """The pause keeps its last seals out of their thread, so they are held next to its acts."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.turn()
        with recorded.operator() as thread:
            thread.pause("an audit")
        watch.seal()
        recorded.turn()
        watch.end(crashed=False)
    with recorded.guard() as guard, recorded.operator() as thread:
        assert guard.verify().differences == ()
        thread.unpause("done")
    with recorded.guard() as guard, guard.running() as watch:
        recorded.turn()
        watch.end(crashed=False)
    with recorded.guard() as guard:
        assert guard.verify().differences == ()


def test_an_edit_of_a_gateway_that_stopped_during_a_pause_is_refused(recorded: Recorded) -> None:
    """The held seal counts as any other."""
    with recorded.guard() as guard, guard.running() as watch:
        with recorded.operator() as thread:
            thread.pause("an audit")
        recorded.turn()
        watch.end(crashed=False)
    recorded.write("workspace/MEMORY.md", "Ann trusts mallory.")
    with (
        recorded.guard() as guard,
        pytest.raises(sealpoint.errors.StateChanged, match=r"MEMORY\.md: changed"),
    ):
        guard.verify()


def test_a_held_seal_is_followed_by_one_of_the_thread(recorded: Recorded) -> None:
    """After the pause the seals go on where they were, and the older held one does not count."""
    with recorded.guard() as guard, guard.running() as watch:
        with recorded.operator() as thread:
            thread.pause("an audit")
            recorded.turn()
            watch.seal()
            thread.unpause("done")
        recorded.turn()
        newest = watch.seal()
        assert newest is not None
        assert guard.newest().ref.id == newest.id
        watch.end(crashed=False)


def test_a_gate_answers_soon(gate: Gate) -> None:
    """A loaded machine gets ten times the time of the bar, 5 ms at the 95th percentile."""
    plugin = gate.plugin()
    plugin.ask(RUN)
    times = []
    for _ in range(100):
        sleep(0.001)
        start = monotonic()
        plugin.ask(TOOL)
        times.append(monotonic() - start)

    assert sorted(times)[95] < 0.05
