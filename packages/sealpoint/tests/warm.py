# SPDX-License-Identifier: Apache-2.0
"""Runs `sealpoint` and other programs in processes forked from one that has all imported.

The tests run hundreds of them, and starting Python for each takes most of the time. What one of
them sees is the same: its own process, directory, environment, arguments and file descriptors.
What is about starting Python itself, about what is imported when, or about the program that is
`__main__`, starts Python.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["PROCESSES", "run_command", "start_command"]

PROCESSES = multiprocessing.get_context("forkserver")
"""Starts what runs a function: a test that preloaded something else would do so for all."""
PROCESSES.set_forkserver_preload(["tests.warm_imports"])


class _Descriptor:
    """An open file that is given to the process, under whatever number it has there."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _detached, (DupFd(self._descriptor),)


def _detached(given: Any) -> int:
    descriptor: int = given.detach()
    return descriptor


def start_command(
    words: Sequence[str],
    directory: Path,
    environment: dict[str, str],
    channels: tuple[int, int, int],
) -> BaseProcess:
    """Start `sealpoint ...`, or `python` with a file, `-c` and a program, or `-m` and a module.

    Args:
        words: The command.
        directory: Where it runs.
        environment: All of its environment.
        channels: What it reads from, prints to, and prints errors to.
    """
    process = PROCESSES.Process(
        target=_command,
        args=(list(words), str(directory), environment, *map(_Descriptor, channels)),
    )
    process.start()
    return process


def run_command(
    words: Sequence[str],
    directory: Path,
    environment: dict[str, str],
    seconds_max: float,
    *,
    apart: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command, as `start_command` does, to its end; there is nothing for it to read.

    Args:
        words: The command.
        directory: Where it runs.
        environment: All of its environment.
        seconds_max: How long it may take.
        apart: Keep what it prints on its two channels apart.
    """
    with (
        Path(os.devnull).open(encoding="utf-8") as nothing,
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        told = errors if apart else output
        channels = nothing.fileno(), output.fileno(), told.fileno()
        child = start_command(words, directory, environment, channels)
        child.join(seconds_max)
        if child.exitcode is None:
            child.kill()
            raise subprocess.TimeoutExpired(list(words), seconds_max)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(
            list(words), child.exitcode, output.read(), errors.read() if apart else None
        )


def _command(words: list[str], directory: str, environment: dict[str, str], *channels: int) -> None:
    """Be the command."""
    os.setsid()  # it has no terminal but the one that it may be given
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error")
    for number, descriptor in enumerate(channels):
        os.dup2(descriptor, number)
    for descriptor in channels:
        os.close(descriptor)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8")
    if paths := environment.get("PYTHONPATH"):
        sys.path[:0] = paths.split(os.pathsep)
    status = 0
    try:
        _run(words, directory)
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _run(words: list[str], directory: str) -> None:
    if words[0] == "sealpoint":
        sys.argv = words
        import_module("sealpoint.cli").main()
        return
    sys.argv = words[1:]
    sys.path.insert(0, directory)
    match words[1:]:
        case ["-c", program, *_]:
            main = sys.modules["__main__"] = ModuleType("__main__")
            sys.argv = ["-c", *words[3:]]
            exec(compile(program, "<string>", "exec"), vars(main))  # noqa: S102 (a test's own)
        case ["-m", module, *_]:
            sys.argv = words[2:]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case _:
            runpy.run_path(words[1], run_name="__main__")
