# SPDX-License-Identifier: Apache-2.0
"""Runs of pytest over a checkout of the framework, each in a process of its own, and what they say.

The checkout's own `tests` package is the one that is found, and its environment is that of this
interpreter: with `LANGGRAPH_STRICT_MSGPACK` set or removed, without services that would need
containers.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Outcome", "Plan", "SuiteError", "missing_packages", "run"]

_ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = ("tests/test_delta_channel_benchmark.py", "tests/test_prune_postgres.py")
"""A benchmark, and tests of a server that is not there."""
_NEEDED = {
    "aiosqlite": "langgraph-checkpoint-sqlite",
    "Crypto": "pycryptodome",
    "langgraph.checkpoint.postgres": "langgraph-checkpoint-postgres",
    "psycopg": "psycopg[binary]",
    "psycopg_pool": "psycopg-pool",
    "pytest_mock": "pytest-mock",
    "pytest_timeout": "pytest-timeout",
    "redis": "redis",
    "syrupy": "syrupy",
    "xdist": "pytest-xdist",
}
_TEST_SECONDS_MAX = 180
_TAIL_CHARS = 4000


class SuiteError(Exception):
    """The tests could not be run at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run of the tests swaps."""

    saver: str = "stock"
    """`stock`, `sealed` or `peer`."""
    policy: str = "allow"
    guard: bool = False
    strict: bool = False
    reason: bool = False
    fixtures_only: bool = False
    server: str = ""
    """The URL of a PostgreSQL server for stores of ours, which else are SQLite files; its password
    is in the environment."""

    @property
    def options(self) -> list[str]:
        """The command line of the plugin."""
        flags = {"guard": self.guard, "reason": self.reason, "fixtures-only": self.fixtures_only}
        return [
            *("--suite-saver", self.saver, "--suite-policy", self.policy),
            *("--suite-server", self.server),
            *(f"--suite-{name}" for name, on in flags.items() if on),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one test went."""

    test: str
    outcome: str
    cause: str = ""
    line: str = ""
    ours: bool = False
    """Whether an error of ours ended it."""
    savers: int = 0
    guards: int = 0
    types: Sequence[str] = ()
    cpu_s: dict[str, float] = field(default_factory=dict)


def missing_packages() -> list[str]:
    """What these tests need and is not installed."""
    return sorted(package for name, package in _NEEDED.items() if not _is_there(name))


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def run(
    checkout: Path, plan: Plan, *, jobs: int = 1, chosen: Iterable[str] = ("tests",)
) -> list[Outcome]:
    """Run tests of a checkout.

    Args:
        checkout: An unpacked source distribution.
        plan: What is swapped.
        jobs: How many processes.
        chosen: Files or tests.

    Raises:
        SuiteError: pytest could not collect the tests, or was interrupted.
    """
    with tempfile.TemporaryDirectory(prefix="suite-") as name:
        home = Path(name)
        record, arguments = home / "record.jsonl", home / "chosen"
        arguments.write_text("".join(f"{each}\n" for each in chosen), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-p", "benchmarks.langgraph_suite._plugin"),
            *("-q", "--no-header", "--tb=no", "-o", "addopts=--strict-markers"),
            *("-p", "no:randomly", "-p", "no:cacheprovider", "-n", str(jobs if jobs > 1 else 0)),
            *("--timeout", str(_TEST_SECONDS_MAX), "--basetemp", str(home / "temporary")),
            *("--suite-record", str(record), *plan.options),
            *(f"--ignore={path}" for path in _LEFT_OUT),
            f"@{arguments}",
        ]
        done = subprocess.run(  # noqa: S603
            command,
            cwd=checkout,
            env=_environment(plan, home),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        # 0 and 1: every test has passed, or some have failed.
        if done.returncode not in (0, 1) or not record.exists():
            raise SuiteError(f"pytest ended with {done.returncode}:\n{done.stdout[-_TAIL_CHARS:]}")
        lines = record.read_text(encoding="utf-8").splitlines()
    return [Outcome(**json.loads(line)) for line in lines]


def _environment(plan: Plan, home: Path) -> dict[str, str]:
    found: dict[str, Any] = dict(os.environ)
    found.pop("LANGGRAPH_STRICT_MSGPACK", None)
    if plan.strict:
        found["LANGGRAPH_STRICT_MSGPACK"] = "true"
    # The stores of tests go where the run is, and the code is that of this repository.
    path = [*map(str, _ROOT.glob("packages/*/src")), str(_ROOT), found.get("PYTHONPATH", "")]
    return {
        **found,
        "NO_DOCKER": "true",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "TMPDIR": str(home),
    }
