# SPDX-License-Identifier: Apache-2.0
"""One session of pytest that is collected once and then forked for every mutant."""

import gc
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType

import pytest
from hypothesis import Phase, settings

__all__ = [
    "Ended",
    "Functions",
    "Judge",
    "Warm",
    "forked",
    "live_functions",
    "pytest_arguments",
    "started",
]

_MEMORY_BYTES_MAX = 8 << 30
_POLL_S = 0.002
KILLED, SURVIVED, CANNOT = 0, 10, 11
"""How a child ends; anything else is a fault that brought the process down."""

Functions = dict[tuple[str, str, int], list[FunctionType]]
"""The functions that there are, by file, qualified name and first line."""

Ended = tuple[str, str]
"""What has become of a mutant: `killed`, `survived`, `timeout` or `cannot`, and by which test."""


def pytest_arguments(temporary: Path, *, limit_s: float) -> list[str]:
    """The command line of every session: in order, in this process, without a cache."""
    return [
        *("-q", "-s", "-x", "--no-header", "--no-summary", "-o", "addopts="),
        *("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("-p", "timeout", "-p", "no:langsmith_plugin"),  # as in pyproject.toml
        *("--import-mode=importlib", "-m", "not soak"),
        # Its plugin is imported before the session, so that children need not.
        *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
        *("--timeout", str(limit_s), "--basetemp", str(temporary)),
    ]


def use_quick_hypothesis() -> None:
    """A failing example is enough: nobody reads the smallest one."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings.get_profile("sealpoint"), phases=phases)
    settings.load_profile("mutants")


class Judge:
    """Notices the first test that fails."""

    def __init__(self) -> None:
        self.failed: str | None = None

    def pytest_collection(self) -> None:
        """The settings of Hypothesis, before a test module takes them."""
        use_quick_hypothesis()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember who failed."""
        if report.failed and self.failed is None:
            slow = "Timeout" in str(report.longrepr)[-400:]
            self.failed = ("timeout " if slow else "") + report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported any more has noticed as well."""
        if report.failed and self.failed is None:
            self.failed = report.nodeid or "collection"


class Warm(Judge):
    """Takes the place of running the tests: does `work` while everything is collected."""

    def __init__(self, work: Callable[["Warm"], None]) -> None:
        super().__init__()
        self._work = work
        self._items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Do the work instead."""
        self._items = {item.nodeid: item for item in session.items}
        gc.collect()
        self._work(self)
        return True

    def first_failure(self, tests: Mapping[str, float]) -> str | None:
        """Run some tests, each with its limit in seconds, up to the first that fails."""
        items = [self._items[test] for test in tests if test in self._items]
        for item, following in zip(items, [*items, None][1:], strict=True):
            item.add_marker(pytest.mark.timeout(tests[item.nodeid]), append=False)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed is not None:
                return self.failed
        return None


def live_functions(folder: Path) -> Functions:
    """Every function that was compiled from a file below a folder."""
    found: Functions = {}
    for each in gc.get_objects():
        # Not isinstance, which asks objects that answer with a warning.
        if type(each) is FunctionType and each.__code__.co_filename.startswith(str(folder)):
            code = each.__code__
            key = code.co_filename, code.co_qualname, code.co_firstlineno
            found.setdefault(key, []).append(each)
    return found


def started(work: Callable[[], None]) -> int:
    """Begin something in a child of this process; it ends with status 1 if that raises."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        os._exit(status)


def forked(work: Callable[[], str | None], *, limit_s: float) -> Ended:
    """Do something in a child of this process.

    Args:
        work: Says which test has failed, or None; what it raises itself is no answer.
        limit_s: How long it may take.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _work_and_exit(work, writing)
    os.close(writing)
    deadline = time.monotonic() + limit_s
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    if not ended or said.startswith("timeout "):
        return "timeout", said.removeprefix("timeout ")
    names = {SURVIVED: "survived", CANNOT: "cannot"}
    return names.get(os.waitstatus_to_exitcode(status), "killed"), said


def _work_and_exit(work: Callable[[], str | None], writing: int) -> None:
    status = KILLED
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        failed = work()
        os.write(writing, (failed or "").encode())
        status = SURVIVED if failed is None else KILLED
    except BaseException as error:  # noqa: BLE001
        # Not noticed by a test: nothing is known about the fault.
        os.write(writing, f"{type(error).__name__} outside a test".encode())
        status = CANNOT
    finally:
        os._exit(status)
