# SPDX-License-Identifier: Apache-2.0
"""Runs `sealpoint` and programs of pages in processes forked from one that has all imported.

A page has dozens of them, and starting Python for each takes most of the time. What one of them
sees is the same: its own process, directory, environment, arguments and file descriptors.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

__all__ = ["run_command"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["sealpoint.cli", "sealpoint.models", "torch", "numpy"])


def run_command(
    words: list[str],
    directory: Path,
    environment: dict[str, str],
    seconds_max: float,
    *,
    apart: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `sealpoint ...` or `python FILE ...`.

    Args:
        words: The command.
        directory: Where it runs.
        environment: All of its environment.
        seconds_max: How long it may take.
        apart: Keep what it prints on its two channels apart.
    """
    with (
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as output,
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as errors,
    ):
        channels = output.name, errors.name if apart else output.name
        child = _CONTEXT.Process(
            target=_command, args=(words, str(directory), environment, channels)
        )
        child.start()
        child.join(seconds_max)
        if child.exitcode is None:
            child.kill()
            raise subprocess.TimeoutExpired(words, seconds_max)
        printed = output.read(), errors.read() if apart else None
        return subprocess.CompletedProcess(words, child.exitcode, *printed)


def _command(
    words: list[str], directory: str, environment: dict[str, str], channels: tuple[str, str]
) -> None:
    """Be the command."""
    from sealpoint.cli import main  # noqa: PLC0415 (in the child alone)

    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for channel, name in enumerate(channels, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), channel)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    status = 0
    try:
        if words[0] == "sealpoint":
            sys.argv = words
            main()
        else:
            sys.argv = words[1:]
            sys.path.insert(0, directory)
            runpy.run_path(words[1], run_name="__main__")
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
