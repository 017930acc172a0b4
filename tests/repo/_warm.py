# SPDX-License-Identifier: Apache-2.0
"""Runs `sealpoint` commands in processes that are forked from one which has it imported already.

A page has dozens of commands, and starting Python for each takes most of the time. What a command
sees is the same: its own process, directory, environment, arguments and file descriptors.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

__all__ = ["run_command"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["sealpoint.cli"])


def run_command(
    words: list[str], directory: Path, environment: dict[str, str], seconds_max: float
) -> subprocess.CompletedProcess[str]:
    """Run a command; what it prints on both channels comes back together."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        child = _CONTEXT.Process(
            target=_command, args=(words, str(directory), environment, output.name)
        )
        child.start()
        child.join(seconds_max)
        if child.exitcode is None:
            child.kill()
            raise subprocess.TimeoutExpired(words, seconds_max)
        return subprocess.CompletedProcess(words, child.exitcode, output.read(), None)


def _command(words: list[str], directory: str, environment: dict[str, str], output: str) -> None:
    """Be the command."""
    from sealpoint.cli import main  # noqa: PLC0415 (in the child alone)

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error")
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    sys.argv = words
    status = 0
    try:
        main()
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
