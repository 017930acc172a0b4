# SPDX-License-Identifier: Apache-2.0
"""A real OpenClaw gateway under `sealpoint openclaw run`, with the plugin, as one user.

The folder of the installation has `node` and `openclaw`, as npm installs them. The gateway is
reached on this machine only, its HOME is a directory of its own, and its model is a stand-in.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sealpoint_openclaw._gateway_client import (
    GatewayClient,
    GatewayLost,
    GatewayRefused,
    read_access,
)

INSTALL = """\
    npm install --prefix DIR/node node@24
    npm install --prefix DIR/openclaw openclaw@2026.9.6"""

_READY_SECONDS = 300
_STOP_SECONDS = 400
_TURN_SECONDS = 300
_TOKEN = "a-token-of-this-gateway"  # noqa: S105 - of a gateway that only its own program reaches
_QUIET = {
    "OPENCLAW_DISABLE_BONJOUR": "1",
    "OPENCLAW_EXEC_SHELL_SNAPSHOT": "0",
    "OPENCLAW_NO_AUTO_UPDATE": "1",
    "OPENCLAW_NO_RESPAWN": "1",
    "OPENCLAW_SKIP_CHANNELS": "1",
    "NO_COLOR": "1",
}


class Refused(Exception):
    """The guard has not started the gateway; the text is what it said."""


@dataclass(slots=True)
class LiveGateway:
    """A gateway, its folder and its guard, below one directory.

    Args:
        installed: The folder with `node` and `openclaw`.
        home: An empty directory.
        model_port: Where the model answers.
    """

    installed: Path
    home: Path
    model_port: int
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    client: GatewayClient | None = None
    others: tuple[str, ...] = ()
    """Folders elsewhere, as `init --also` takes them."""
    unfinished: list[str] = field(default_factory=list)
    """Turns that did not end well."""

    @property
    def folder(self) -> Path:
        """OpenClaw's folder."""
        return self.home / ".openclaw"

    @property
    def log(self) -> Path:
        """What the gateway and the guard print."""
        return self.home / "printed.log"

    @property
    def gateway_log(self) -> Path:
        """The gateway's own log."""
        return self.home / "gateway.log"

    @property
    def openclaw(self) -> list[str]:
        """The command that starts OpenClaw."""
        node = self.installed / "node/node_modules/node/bin/node"
        program = self.installed / "openclaw/node_modules/openclaw/openclaw.mjs"
        return [str(node), str(program)]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the gateway and its guard: nothing of this machine's user."""
        node = Path(self.openclaw[0]).parent
        kept = {key: os.environ[key] for key in ("LANG", "TMPDIR") if key in os.environ}
        return kept | _QUIET | {"HOME": str(self.home), "PATH": f"{node}{os.pathsep}{os.defpath}"}

    # ------------------------------------------------------------------ setting up

    def make(self) -> None:
        """Let OpenClaw make its folder, make the guard, and load its plugin."""
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self.folder.mkdir(mode=0o700)
        settings = self.folder / "openclaw.json"
        settings.write_text(json.dumps(self._settings(), indent=2), encoding="utf-8")
        settings.chmod(0o600)
        self._start([*self.openclaw, "gateway"])
        self.stop()
        self.sealpoint(
            *("init", "--folder", self.folder, "--same-user"),
            *(word for each in self.others for word in ("--also", each)),
            *("--gate", self.home / "gate"),
            *("--store", f"sqlite:///{self.home / 'store' / 'seals.db'}"),
        )
        patch = str(self.home / "gate" / "openclaw-patch.json")
        status = self.command("config", "patch", "--file", patch, reason="the plugin of the guard")
        assert status == 0

    def _settings(self) -> dict[str, Any]:
        model = {
            "id": "stand-in",
            "name": "Stand-in",
            "reasoning": False,
            "input": ["text"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": 128000,
            "maxTokens": 8192,
        }
        provider = {
            "baseUrl": f"http://127.0.0.1:{self.model_port}/v1",
            "apiKey": "none",
            "api": "openai-completions",
            "models": [model],
        }
        return {
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": self.port,
                "auth": {"mode": "token", "token": _TOKEN},
            },
            "logging": {"file": str(self.gateway_log)},
            "models": {"mode": "merge", "providers": {"local": provider}},
            "agents": {
                "defaults": {
                    "model": {"primary": "local/stand-in"},
                    "heartbeat": {"every": "0m"},
                    # A short conversation can be compacted, and to what the stand-in says of it.
                    "compaction": {"keepRecentTokens": 200, "qualityGuard": {"enabled": False}},
                }
            },
            "tools": {"exec": {"security": "allowlist", "ask": "on-miss"}},
        }

    # ------------------------------------------------------------------ verbs

    def words(self, *verb: object) -> list[str]:
        """Return the command line of a verb of this guard."""
        name, *rest = map(str, verb)
        directories = ["--config-dir", f"{self.home}/config", "--state-dir", f"{self.home}/state"]
        return [sys.executable, "-m", "sealpoint", "openclaw", name, *directories, *rest]

    def sealpoint(self, *verb: object) -> str:
        """Run a verb that succeeds, and return its output."""
        done = self._ran(self.words(*verb))
        assert done.returncode == 0, f"{verb}: {done.stdout}{done.stderr}"
        return done.stdout

    def command(self, *words: str, reason: str | None = None) -> int:
        """Run a command of OpenClaw under the guard, and return its status."""
        given = [] if reason is None else ["--reason", reason]
        return self._ran(self.words("run", *given, "--", *self.openclaw, *words)).returncode

    def _ran(self, words: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603 (our own commands)
            words,
            env=self.environment,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_STOP_SECONDS,
        )

    # ------------------------------------------------------------------ start and stop

    def start(self, *options: str) -> None:
        """Start the gateway under the guard, and wait until it takes calls.

        Raises:
            Refused: The guard did not start it, or it ended.
        """
        self._start(self.words("run", *options, "--", *self.openclaw, "gateway"))

    def _start(self, words: list[str]) -> None:
        begins = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 (our own commands)
                words, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        until = time.monotonic() + _READY_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                self.process = None
                raise Refused(self.log.read_bytes()[begins:].decode(errors="replace"))
            try:
                self.client = GatewayClient(*read_access(self.folder))
                return
            except (GatewayLost, GatewayRefused):
                time.sleep(0.5)
        self.end()
        raise AssertionError(f"not ready in {_READY_SECONDS} seconds; see {self.log}")

    def stop(self) -> int:
        """Stop guard and gateway in an orderly way, and return the guard's status."""
        assert self.process is not None
        self.process.terminate()
        return self.wait()

    def end(self) -> None:
        """Leave nothing running, whatever happened."""
        if self.process is not None:
            self.stop()

    def wait(self) -> int:
        """Wait until guard and gateway have ended, and return the guard's status."""
        assert self.process is not None
        if self.client is not None:
            self.client.close()
            self.client = None
        process, self.process = self.process, None
        return process.wait(_STOP_SECONDS)

    # ------------------------------------------------------------------ work

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the gateway; a lost connection is made again."""
        until = time.monotonic() + _TURN_SECONDS
        while True:
            try:
                if self.client is None:
                    self.client = GatewayClient(*read_access(self.folder))
                return self.client.call(method, params)
            except GatewayLost:
                if self.client is not None:
                    self.client.close()
                self.client = None
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    def send(self, message: str, *, conversation: str = "main") -> str:
        """Send a message, and return the id of its run."""
        answer = self.call(
            "chat.send",
            sessionKey=f"agent:main:{conversation}",
            message=message,
            idempotencyKey=os.urandom(8).hex(),
        )
        return str(answer["runId"])

    def turn(self, message: str, *, conversation: str = "main") -> None:
        """Send a message, allow what OpenClaw asks, and wait for the end of the turn."""
        run = self.send(message, conversation=conversation)
        answer: dict[str, Any] = {"status": "timeout"}
        until = time.monotonic() + _TURN_SECONDS
        while time.monotonic() < until:
            for asked in self.call("exec.approval.list"):
                self.call("exec.approval.resolve", id=asked["id"], decision="allow-once")
            answer = self.call("agent.wait", runId=run, timeoutMs=1000)
            if answer.get("status") == "ok":
                return
            if answer.get("status") != "timeout":
                break
        self.unfinished.append(f"{message}: {json.dumps(answer)[:300]}")

    # ------------------------------------------------------------------ copies

    def copy_to(self, target: Path) -> None:
        """Copy the folder of the stopped gateway."""
        shutil.copytree(self.folder, target, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))

    def put_back(self, source: Path) -> None:
        """Bring a copy of the folder into its place."""
        shutil.rmtree(self.folder)
        shutil.copytree(source, self.folder, symlinks=True)
