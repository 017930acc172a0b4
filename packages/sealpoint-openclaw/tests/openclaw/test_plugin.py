# SPDX-License-Identifier: Apache-2.0
"""The plugin, run by a real Node against the real socket, and the folder that it is shipped in."""

import hashlib
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint.errors import GuardExposed
from sealpoint_openclaw import Guard
from sealpoint_openclaw._acts import ActLog
from sealpoint_openclaw._plugin_folder import require_readable, write_plugin_folder
from tests.openclaw.recorded_folder import Recorded
from tests.openclaw.test_gate import recorded_acts, serving

_NODE = shutil.which("node")
_LINES_MAX = 200
# One that every user may run; the environment of these tests may be root's alone.
_SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
_DRIVER = Path(__file__).with_name("plugin_driver.mjs")
_TOOL = {
    "hook": "before_tool_call",
    "event": {"toolName": "exec", "params": {"command": "echo ✓"}, "toolCallId": "c1"},
    "ctx": {"agentId": "main", "sessionKey": "agent:main:main", "runId": "r1"},
}
_RUN = {
    "hook": "before_agent_run",
    "event": {"prompt": "hello", "messages": []},
    "ctx": {"agentId": "main", "sessionKey": "agent:main:main", "runId": "r1", "trigger": "user"},
}

needs_node = pytest.mark.skipif(_NODE is None, reason="there is no node on this machine")


class Node:
    """A process of Node that has loaded the plugin."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def call(self, hook: dict[str, Any]) -> dict[str, Any]:
        """Call a hook; its result, and how long it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(hook)}\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))


@contextmanager
def loaded(folder: Path, socket_path: Path) -> Iterator[Node]:
    """A Node with the plugin of a folder, which asks at a socket."""
    write_plugin_folder(folder, ("openclaw", "run"))
    (folder / "plugin" / "guard.json").write_text(json.dumps({"socket": str(socket_path)}))
    with subprocess.Popen(
        [_NODE or "node", str(_DRIVER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Node(process)
        finally:
            process.kill()


@pytest.fixture
def guard(recorded: Recorded) -> Iterator[Guard]:
    """A guard with an open store."""
    with recorded.guard() as guard:
        yield guard


@pytest.fixture
def acts(guard: Guard) -> ActLog:
    """The acts of a run."""
    return guard.acts(1)


# ---------------------------------------------------------------------- the plugin


@needs_node
def test_the_plugin_passes_what_the_guard_allows(
    guard: Guard, acts: ActLog, tmp_path: Path
) -> None:
    """The guard records names and digests, and no content."""
    with serving(guard, acts, os.getpid()) as gate, loaded(tmp_path, gate.path) as node:
        run, tool = node.call(_RUN), node.call(_TOOL)

    digest = hashlib.sha256('{"command":"echo ✓"}'.encode()).hexdigest()
    assert run["result"] == {"outcome": "pass"}
    assert tool["result"] is None
    assert [act["kind"] for act in recorded_acts(guard)] == ["run", "tool"]
    assert recorded_acts(guard)[1] == {
        "kind": "tool",
        "v": 1,
        "id": 2,
        "agent": "main",
        "session": "agent:main:main",
        "run": "r1",
        "call": "c1",
        "tool": "exec",
        "digest": digest,
        "files": [],
    }


@needs_node
@pytest.mark.parametrize(
    ("event", "files"),
    [
        ({"params": {"path": "MEMORY.md", "content": "tea"}}, ["MEMORY.md"]),
        (
            {"params": {"patch": "..."}, "derivedPaths": ["/w/a.md", "/w/b.md"]},
            ["/w/a.md", "/w/b.md"],
        ),
        ({"params": {"path": ["a", "b"]}, "derivedPaths": [""]}, []),
        ({"derivedPaths": ["a"] * 20}, ["a"] * 16),
    ],
)
def test_the_plugin_reports_the_files_that_a_call_names(
    guard: Guard, acts: ActLog, tmp_path: Path, event: dict[str, Any], files: list[str]
) -> None:
    """As OpenClaw derives them from a patch, or as the arguments say."""
    call = _TOOL | {"event": event | {"toolName": "write", "toolCallId": "c1"}}
    with serving(guard, acts, os.getpid()) as gate, loaded(tmp_path, gate.path) as node:
        node.call(call)

    assert recorded_acts(guard)[0]["files"] == files


@needs_node
def test_the_plugin_shows_why_the_guard_refuses(
    recorded: Recorded, guard: Guard, acts: ActLog, tmp_path: Path
) -> None:
    """In the gateway's words for a blocked run and a blocked call."""
    with recorded.operator() as thread:
        thread.pause("an audit")
    with serving(guard, acts, os.getpid()) as gate, loaded(tmp_path, gate.path) as node:
        run, tool = node.call(_RUN), node.call(_TOOL)

    words = "Sealpoint: operator paused OpenClaw: an audit"
    assert run["result"] == {"outcome": "block", "reason": words, "message": words}
    assert tool["result"] == {"block": True, "blockReason": words}


@needs_node
def test_what_is_nested_too_deeply_for_a_digest_is_blocked(
    guard: Guard, acts: ActLog, tmp_path: Path
) -> None:
    """A hook that throws would let it pass; the report of such a message is left out."""
    message = {"hook": "before_message_write", "event": {"message": "DEEP"}, "ctx": {}}
    tool = _TOOL | {"event": {"toolName": "exec", "params": "DEEP", "toolCallId": "c1"}}
    run = _RUN | {"event": {"prompt": "DEEP"}}
    with serving(guard, acts, os.getpid()) as gate, loaded(tmp_path, gate.path) as node:
        assert node.process.stdin is not None
        assert node.process.stdout is not None
        deep = "[" * 100_000 + "]" * 100_000
        for hook in (message, tool, run):
            node.process.stdin.write(json.dumps(hook).replace('"DEEP"', deep) + "\n")
        node.process.stdin.flush()
        results = [json.loads(node.process.stdout.readline())["result"] for _ in range(3)]
        later = node.call(_TOOL)["result"]

    reason = "Sealpoint: the guard cannot be asked: the arguments are too deep or long."
    assert results == [
        None,
        {"block": True, "blockReason": reason},
        {"outcome": "block", "reason": reason, "message": reason},
    ]
    assert later is None


@needs_node
def test_without_a_guard_the_plugin_refuses_everything(tmp_path: Path) -> None:
    """Within 5 seconds, with a sentence that says so."""
    with loaded(tmp_path, tmp_path / "none.sock") as node:
        run, tool = node.call(_RUN), node.call(_TOOL)

    words = "the guard does not answer (it is not running). Nothing runs until it does."
    assert words in run["result"]["reason"]
    assert words in tool["result"]["blockReason"]
    assert max(run["ms"], tool["ms"]) < 5000


@needs_node
def test_a_guard_that_hangs_refuses_everything(guard: Guard, acts: ActLog, tmp_path: Path) -> None:
    """The plugin waits 4 seconds."""
    with serving(guard, acts, os.getpid()) as gate:
        silent = gate.path.with_name("silent.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(silent))
            listener.listen()
            with loaded(tmp_path, silent) as node:
                tool = node.call(_TOOL)

    assert "no answer in 4 seconds" in tool["result"]["blockReason"]
    assert tool["ms"] < 5000


@needs_node
def test_the_plugin_refuses_when_the_guard_ends_and_passes_when_it_is_back(
    guard: Guard, acts: ActLog, tmp_path: Path
) -> None:
    """It connects again by itself."""
    with serving(guard, acts, os.getpid()) as gate, loaded(tmp_path, gate.path) as node:
        before = node.call(_TOOL)
        gate.server.close()
        without = node.call(_TOOL)
        again = type(gate)(guard, acts, gate.path)
        again.server.listen()
        again.server.serve(os.getpid())
        after = node.call(_TOOL)
        again.server.close()

    assert before["result"] is None
    assert without["result"]["block"] is True
    assert after["result"] is None


@needs_node
def test_messages_and_acts_reach_the_guard_in_order(
    guard: Guard, acts: ActLog, tmp_path: Path
) -> None:
    """A message that the process hands over is recorded even if it dies at once."""
    message = {"role": "user", "content": "pay 1e21 \ud800 \u2028", "timestamp": 1.5}
    with serving(guard, acts, os.getpid()) as gate:
        with loaded(tmp_path, gate.path) as node:
            node.call(_RUN)
            node.call(
                {
                    "hook": "cron_changed",
                    "event": {"action": "added", "jobId": "j1", "job": {"name": "secret"}},
                    "ctx": {},
                }
            )
            node.call(
                {
                    "hook": "before_message_write",
                    "event": {"message": message, "sessionKey": "agent:main:main"},
                    "ctx": {"agentId": "main"},
                }
            )
            node.process.kill()
        gate.server.close(10)

    text = '{"role":"user","content":"pay 1e21 \\ud800 \u2028","timestamp":1.5}'
    (run, act, wrote) = recorded_acts(guard)
    assert run["kind"] == "run"
    assert (act["name"], act["facts"]) == ("cron_changed", {"action": "added", "jobId": "j1"})
    assert wrote["digest"] == hashlib.sha256(text.encode()).hexdigest()


@needs_node
def test_the_plugin_is_valid_javascript(tmp_path: Path) -> None:
    """As Node checks a module, and short enough to be read at once."""
    write_plugin_folder(tmp_path, ("openclaw", "run"))
    path = tmp_path / "plugin" / "index.js"
    checked = subprocess.run([_NODE or "node", "--check", str(path)], check=False, timeout=60)

    assert checked.returncode == 0
    assert len(path.read_text("utf-8").splitlines()) <= _LINES_MAX


# ---------------------------------------------------------------------- its folder


def test_the_folder_of_the_plugin_can_be_read_and_not_written(tmp_path: Path) -> None:
    """By the gateway's user; the configuration names the folder that the plugin is in."""
    write_plugin_folder(tmp_path / "gate", ("openclaw", "run"))
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "gate").rglob("*")}
    patch = json.loads((tmp_path / "gate" / "openclaw-patch.json").read_text())

    assert modes == {0o644, 0o755}
    assert patch["plugins"]["load"]["paths"] == [str(tmp_path / "gate" / "plugin")]


def test_an_edited_plugin_is_written_again(tmp_path: Path) -> None:
    """Each start writes the plugin of the installed version."""
    write_plugin_folder(tmp_path, ("openclaw", "run"))
    path = tmp_path / "plugin" / "index.js"
    text = path.read_text()
    path.write_text("export default {}")
    write_plugin_folder(tmp_path, ("openclaw", "run"))

    assert path.read_text() == text


def test_a_folder_that_the_gateway_cannot_enter_is_refused(tmp_path: Path) -> None:
    """Otherwise OpenClaw would start without the plugin, and say so in its log only."""
    (tmp_path / "closed").mkdir(mode=0o700)
    write_plugin_folder(tmp_path / "closed" / "gate", ("openclaw", "run"))
    with pytest.raises(GuardExposed, match="cannot enter this directory"):
        require_readable(tmp_path / "closed" / "gate", os.getuid() + 1)


# ---------------------------------------------------------------------- under `run`

_GATEWAY = """
import json, os, socket, sys, time
from pathlib import Path
folder, out = Path(sys.argv[1]), Path(sys.argv[2])
line = {"kind": "tool", "v": 1, "id": 1, "agent": "main", "session": "s", "run": "r", "call": "c"}
line |= {"tool": "exec", "digest": "0" * 64, "files": []}
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect(json.loads((folder / "plugin" / "guard.json").read_text())["socket"])
    sock.sendall(json.dumps(line, separators=(",", ":")).encode() + b"\\n")
    answer = json.loads(sock.makefile().readline())
status = dict(text.split(":", 1) for text in Path(f"/proc/{os.getppid()}/status").open())
out.write_text(json.dumps({
    "answer": answer,
    "uid": os.getuid(),
    "sealpoint": sorted(name for name in os.environ if name.startswith("SEALPOINT_")),
    "folder": os.environ["OPENCLAW_STATE_DIR"],
    "rights": status["CapEff"].strip(),
}))
sys.exit(int(sys.argv[3]))
"""


def _run(recorded: Recorded, gate: Path, out: Path, status: int = 0) -> dict[str, Any]:
    """Run a gateway that asks once, under `sealpoint openclaw run`; what it saw."""
    settings = recorded.settings()
    config = settings.config_dir / "config.toml"
    lines = [
        f"gate = {json.dumps(str(gate))}" if text.startswith("gate = ") else text
        for text in config.read_text().splitlines()
    ]
    config.write_text("\n".join(lines))
    words = ["--config-dir", settings.config_dir, "--state-dir", settings.state_dir, "--gateway"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sealpoint", "openclaw", "run", *map(str, words), "--"),
            *(_SYSTEM_PYTHON, "-c", _GATEWAY, str(gate), str(out), str(status)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"SEALPOINT_STORE": settings.store},
    )
    assert done.returncode == status, done.stderr
    return dict(json.loads(out.read_text()))


@pytest.fixture
def gate() -> Iterator[Path]:
    """A folder for the plugin, short enough for a socket and open to all."""
    path = Path("/tmp") / f"sealpoint-gate-{os.getpid()}"  # noqa: S108
    path.mkdir()
    yield path
    shutil.rmtree(path)


def test_run_answers_the_gateway_that_it_starts(recorded: Recorded, gate: Path) -> None:
    """And hands it the folder, and none of the guard's own settings."""
    saw = _run(recorded, gate, recorded.home / "out", status=3)

    assert saw["answer"] == {"id": 1, "allow": True}
    assert saw["sealpoint"] == []
    assert saw["folder"] == str(recorded.folder)
    assert not (gate / "guard.sock").exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or sys.platform != "linux", reason="only root starts processes of others"
)
def test_run_starts_the_gateway_as_the_owner_of_its_folder(tmp_path: Path, gate: Path) -> None:
    """And keeps only the rights to read files and to signal processes."""
    recorded = Recorded.of(tmp_path)
    nobody = pwd.getpwnam("nobody")
    recorded.give_to(nobody.pw_uid)
    with tempfile.TemporaryDirectory(prefix="sealpoint-", dir="/tmp") as out:
        os.chown(out, nobody.pw_uid, -1)
        saw = _run(recorded, gate, Path(out) / "saw")

    assert saw["answer"] == {"id": 1, "allow": True}
    assert saw["uid"] == nobody.pw_uid
    assert int(saw["rights"], 16) == (1 << 2) | (1 << 5)
    with recorded.guard() as guard:
        assert guard.verify().differences == ()


def _invoke(words: Sequence[object]) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_init_writes_the_plugin_and_says_how_to_load_it(recorded: Recorded) -> None:
    """For OpenClaw itself, and for service managers."""
    home = recorded.home / "second"
    for name in ("config", "state"):
        (home / name).mkdir(mode=0o700, parents=True)
    places = ["--config-dir", home / "config", "--state-dir", home / "state"]
    said = _invoke(
        [
            *("openclaw", "init", "--same-user", "--folder", recorded.folder, *places),
            *("--store", f"sqlite:///{home}/store/seals.db"),
        ]
    )

    gate = home / "store" / "gate"
    assert f"openclaw config patch --file {gate / 'openclaw-patch.json'}" in said.replace("\n", "")
    assert "CapabilityBoundingSet=" in (gate / "openclaw.service").read_text()
    assert os.access(gate / "openclaw-guarded", os.X_OK)
