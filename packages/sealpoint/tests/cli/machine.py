# SPDX-License-Identifier: Apache-2.0
"""A machine that runs the command: a store, and directories of its own for keys and anchor."""

import json
import os
import select
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

import sealpoint
from sealpoint import Registry, Store
from sealpoint.cli import main
from sealpoint.errors import ExtraMissing
from tests.warm import start_command

_SECONDS_MAX = 60


def verbs(
    command: click.Command = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every verb of the parts that are installed with its words, groups before what they hold."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            try:
                child = command.get_command(context, name)
            except ExtraMissing:
                continue
            assert child is not None
            yield from verbs(child, (*words, name))


@dataclass(frozen=True)
class Machine:
    """Where the store lies, and the machine's own directory."""

    path: Path
    home: Path

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        """The store."""
        return f"sqlite:///{self.path}"

    @property
    def options(self) -> list[str]:
        """The options that every verb of a store takes."""
        return ["--store", self.url, *self.directories]

    @property
    def directories(self) -> list[str]:
        """The options that say where keys and anchor lie."""
        return ["--config-dir", str(self.home / "config"), "--state-dir", str(self.home / "state")]

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Result:
        """Run a verb on the store; it must end, and without a traceback."""
        result = CliRunner().invoke(main, [*arguments, *self.options], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        assert "Traceback" not in result.output
        assert "\x1b" not in result.output
        return result

    def done(self, *arguments: str, stdin: str | bytes | None = None) -> str:
        """Run a verb that must succeed, and return what it printed."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str, stdin: str | bytes | None = None) -> Any:
        """Run a verb that must succeed with `--json`, and return the document."""
        return json.loads(self.done(*arguments, "--json", stdin=stdin))

    def refused(self, *arguments: str, stdin: str | bytes | None = None) -> tuple[int, str]:
        """Run a verb that must fail, in words and as JSON; return its status and its code."""
        words = self.run(*arguments, stdin=stdin)
        document = self.run(*arguments, "--json", stdin=stdin)
        error = json.loads(document.stderr)["error"]
        assert document.stdout == ""
        assert words.exit_code == document.exit_code == error["exit_status"] != 0
        assert words.stderr.startswith("sealpoint: ")
        assert f"[{error['code']}]" in words.stderr
        assert f"hint: {error['hint']}" in words.stderr
        return words.exit_code, error["code"]

    def apart(self, *arguments: str) -> str:
        """Run a verb that must fail without a store being named, and return its hint."""
        result = CliRunner().invoke(main, [*arguments, *self.directories, "--json"])
        assert result.exit_code != 0
        return str(json.loads(result.stderr)["error"]["hint"])

    def open(self, registry: Registry | None = None) -> Store:
        """The store, as a program of this machine opens it."""
        return sealpoint.open_store(
            self.url,
            registry=registry,
            config_dir=self.home / "config",
            state_dir=self.home / "state",
        )

    def sql(self, statement: str, parameters: Iterable[Any] = ()) -> list[Any]:
        """Do what somebody who holds the database can do."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(statement, tuple(parameters)).fetchall()

    def at_a_terminal(
        self, *arguments: str, answer: str = "", columns: int = 80
    ) -> tuple[int, str]:
        """Run a verb in a process with a terminal; return its status and all it printed."""
        # Windows has no such module, and these tests are skipped there.
        import fcntl  # noqa: PLC0415
        import pty  # noqa: PLC0415
        import struct  # noqa: PLC0415
        import termios  # noqa: PLC0415

        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
        process = start_command(
            ["sealpoint", *arguments, *self.options],
            Path.cwd(),
            {**environment, "TERM": "xterm-256color"},
            (theirs, theirs, theirs),
        )
        os.close(theirs)
        if answer:
            os.write(ours, answer.encode())
        printed = _everything(ours)
        os.close(ours)
        process.join(_SECONDS_MAX)
        assert process.exitcode is not None
        return process.exitcode, printed.decode().replace("\r\n", "\n")


def _everything(descriptor: int) -> bytes:
    """Read a terminal until the other side is gone."""
    printed = b""
    end = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < end:
        if select.select([descriptor], [], [], 1)[0]:
            try:
                data = os.read(descriptor, 65536)
            except OSError:
                return printed
            if not data:
                return printed
            printed += data
    raise TimeoutError
