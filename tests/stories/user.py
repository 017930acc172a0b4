# SPDX-License-Identifier: Apache-2.0
"""A user of the machine with a uid of their own, in a process that runs commands as them.

`User` starts one and talks to it. The process begins as root, because the interpreter may lie where
nobody else can read it; it runs every verb once in a directory of its own, so that all is imported,
then gives up root for good and does what a line of JSON says.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import sealpoint
from sealpoint.cli import main

__all__ = ["User"]

_ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------------- in its own process


def _run(arguments: list[str], stdin: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, arguments, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return {"status": result.exit_code, "out": result.stdout, "err": result.stderr}


def _import_everything(kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "store").mkdir()
        options = ["--store", f"{kind}:///{folder}/store/agents"]
        options += ["--config-dir", f"{folder}/config", "--state-dir", f"{folder}/state"]
        for verb in (
            ["init"],
            ["init"],
            ["save", "t"],
            ["load", "t"],
            ["threads"],
            ["requests"],
            ["verify"],
            ["doctor"],
            ["keys", "list"],
            ["keys", "new", "k"],
            ["trust", "export"],
            ["anchor", "show"],
        ):
            _run([*verb, *options], "[1]")
        _run(["threads", *options, "--json"], "")


def _main(uid: int, groups: list[int]) -> None:
    for kind in ("sqlite", "file"):
        _import_everything(kind)
    os.setgroups(groups)
    os.setgid(uid)
    os.setuid(uid)
    os.umask(0o022)
    os.chdir(os.environ["HOME"])
    for line in sys.stdin:
        arguments, stdin = json.loads(line)
        sys.stdout.write(json.dumps(_run(arguments, stdin)) + "\n")
        sys.stdout.flush()


# ---------------------------------------------------------------------- in that of the story


class User:
    """Somebody with a uid and a home, and perhaps some groups.

    Args:
        name: The identity whose key they sign with.
        uid: Theirs, and the number of their own group.
        home: Their directory, which becomes theirs.
        url: The store they use.
        state: Where their anchor lies.
        groups: The numbers of the groups they are members of.
    """

    def __init__(
        self, name: str, uid: int, *, home: Path, url: str, state: Path, groups: tuple[int, ...]
    ) -> None:
        self.uid, self.home, self.url, self.state = uid, home, url, state
        home.mkdir()
        os.chown(home, uid, uid)
        paths = [str(Path(sealpoint.__file__).parents[1]), str(_ROOT)]
        kept = {each: os.environ[each] for each in ("PATH", "LANG") if each in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.stories.user", str(uid), json.dumps(groups)],
            cwd=_ROOT,
            env={
                **kept,
                "HOME": str(home),
                "PYTHONPATH": os.pathsep.join(paths),
                "SEALPOINT_STATE_DIR": str(state),
                "SEALPOINT_IDENTITY": name,
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Run a command on the store: its status, and what it printed and told."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps([[*arguments, "--store", self.url], stdin])
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        told = self._process.stdout.readline()
        assert told, "the process has ended"
        found = json.loads(told)
        return found["status"], found["out"], found["err"]

    def done(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed."""
        status, printed, told = self.run(*arguments, stdin=stdin)
        assert status == 0, f"{arguments}: {told}"
        return printed

    def json(self, *arguments: str, stdin: str = "") -> Any:
        """The document that a command prints."""
        return json.loads(self.done(*arguments, "--json", stdin=stdin))

    def end(self) -> None:
        """Let the process end by itself."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0


if __name__ == "__main__":
    _main(int(sys.argv[1]), json.loads(sys.argv[2]))
