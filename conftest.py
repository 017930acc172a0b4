# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests, and what a run took.

Hypothesis runs without deadlines, so that a busy machine fails nothing. Examples are the same in
every run; `make soak` and the fuzz programs look for new ones.

Temporary directories lie in memory where there is enough of it: stores sync whatever they write,
and no test can see whether a disk did so. What a power cut leaves is shown by tests/faults, which
know what was synced. `make soak` waits for the disk.
"""

import gc
import os
import shutil
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from sealpoint.anchor import Holder
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.gate._last_session import NOBODY, LastSession
from tests.effort import SOAKING, examples, leave_to_soak
from tests.postgres_server import PostgresServer, end_shared_server, shared_server

# For the verbs of every part.
pytest_plugins = ("tests.cli.fixtures", "tests.faults.fixtures")

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a directory of its own there
_IN_MEMORY_BYTES_MIN = 4 << 30
_SLOWEST_FILES = 10
_STARTED_S = time.monotonic()

settings.register_profile(
    "sealpoint",
    max_examples=examples(100),
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("sealpoint")


def _has_room_in_memory() -> bool:
    if not (_IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK)):
        return False
    return shutil.disk_usage(_IN_MEMORY).free >= _IN_MEMORY_BYTES_MIN


if not SOAKING and _has_room_in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The PostgreSQL server of this process, started when the first test asks."""
    return shared_server()


def pytest_unconfigure() -> None:
    """Leave no server behind."""
    end_shared_server()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose the parameters of a daily run, before `-m` selects by marks."""
    leave_to_soak(items)


def pytest_collection_finish() -> None:
    """Keep the collector off everything that was imported: it lives as long as the process."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests ran, how long that took, and which files took longest."""
    files: defaultdict[str, float] = defaultdict(float)
    tests = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                files[report.nodeid.partition("::")[0]] += report.duration
                tests += report.when == "call"
    if tests == 0:
        return
    took = time.monotonic() - _STARTED_S
    terminalreporter.section("what it took")
    terminalreporter.line(f"{tests:,} tests in {took / 60:.1f} minutes; the slowest files:")
    slowest = sorted(files.items(), key=lambda file: -file[1])[:_SLOWEST_FILES]
    for name, seconds in slowest:
        terminalreporter.line(f"{seconds:8.1f} s  {name}")


@pytest.fixture
def unseen_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers not see each other's runs, as those do not whose machines share no anchor."""

    def hold(_: LastSession, who: str, now: datetime) -> Any:
        return MemoryAnchor().hold(b"\x01" * 32, Holder(who, now))

    monkeypatch.setattr(LastSession, "hold", hold)
    monkeypatch.setattr(LastSession, "look", lambda _: NOBODY)
