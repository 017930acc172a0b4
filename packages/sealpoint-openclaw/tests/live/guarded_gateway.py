# SPDX-License-Identifier: Apache-2.0
"""The gateway of the live demo, with a list of the false alarms of its guard.

Every start that the guard refuses is an alarm: it is noted with all that differs, and accepted, so
that one long run finds every kind.
"""

import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from examples.demo.live_gateway import LiveGateway, Refused
from tests.openclaw.recorded_folder import Recorded

_COMMAND_SECONDS = 300
_STEP = {
    "pipeline": [{"name": "exec", "args": {"shell": "ls"}}],
    "resumeAtIndex": 0,
    "items": [],
    "prompt": "Continue?",
}


@dataclass(slots=True)
class GuardedGateway(LiveGateway):
    """A gateway whose guard must not refuse anything."""

    alarms: list[str] = field(default_factory=list)
    """What the guard refused although nobody did anything wrong."""

    @property
    def recorded(self) -> Recorded:
        """The folder, for edits."""
        return Recorded(self.home, folder=self.folder)

    @property
    def step(self) -> Path:
        """A step of a workflow of Lobster that waits for an approval."""
        return self.home / "lobster" / "pipeline_resume_1.json"

    def make(self) -> None:
        """Make it, with a folder of Lobster elsewhere."""
        self.step.parent.mkdir()
        self.step.write_text(json.dumps(_STEP), encoding="utf-8")
        self.others = (f"lobster={self.step.parent}",)
        LiveGateway.make(self)

    @property
    def child(self) -> int:
        """The number of the gateway's process, which its guard has started."""
        assert self.process is not None
        pid = self.process.pid
        # The guard starts the gateway from its first thread.
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        return int(child)

    def kill(self) -> int:
        """Kill the gateway alone, and return the status of its guard."""
        os.kill(self.child, signal.SIGKILL)
        return self.wait()

    def crash(self) -> None:
        """Kill guard and gateway, as a power cut does."""
        assert self.process is not None
        child = self.child
        self.process.kill()
        os.kill(child, signal.SIGKILL)
        self.wait()

    def begin(self) -> None:
        """Start the gateway under the guard; note an alarm."""
        try:
            self.start()
        except Refused as refused:
            self._note(f"start: {refused}")
            self.start()

    def noted_command(self, *words: str, reason: str | None = None) -> int:
        """Run a command of OpenClaw under the guard; return its status, or note an alarm."""
        status = self.command(*words, reason=reason)
        self._note_differences(f"guarded {words}")
        return status

    def command_without_guard(self, *words: str) -> int:
        """Run a command of OpenClaw as a user who forgot the guard does; note an alarm."""
        done = subprocess.run(
            [*self.openclaw, *words],
            env=self.environment,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_COMMAND_SECONDS,
        )
        self._note_differences(f"{words}")
        return done.returncode

    def differs(self) -> list[str]:
        """List what differs from the newest seal."""
        found = json.loads(self.sealpoint("diff", "--json"))
        return [
            f"{each['concern']}: {each['place']} {each['row']} {each['change']}"
            for each in found["differences"]
        ]

    def _note_differences(self, what: str) -> None:
        if self.differs():
            self._note(what)

    def _note(self, what: str) -> None:
        """Note an alarm with all that differs, and accept it."""
        self.alarms.append("\n  ".join((what, *self.differs())))
        self.sealpoint("accept", "--reason", "a false alarm")
