# SPDX-License-Identifier: Apache-2.0
"""What each test runs without any fault: its lines of the targets, and how long it takes.

It is measured in a process of its own and kept under `build/`, by the digest of each test file;
a change of anything else than a test file makes all of it stale.
"""

import hashlib
import json
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import coverage
import pytest

from mutants._session import pytest_arguments, started
from mutants._targets import LEFT_OUT, ROOT, SOURCE, TESTS, target_files

__all__ = ["Baseline", "read_baseline"]

_Known = dict[str, dict[str, Any]]
"""By test file: its digest, and what is known of its tests, as JSON holds it."""

_BY_IMPORT = ""
"""What the lines belong to that no test runs, but importing does."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Which tests run which lines."""

    seconds: dict[str, float]
    """How long each test takes; those that do not pass are not there."""
    lines: dict[str, dict[str, frozenset[int]]]
    """For each test the lines that it runs, by file."""
    failed: tuple[str, ...]
    _runners: dict[str, dict[int, list[str]]] = field(default_factory=dict, init=False)
    """By file and line, the tests that run it."""

    def __post_init__(self) -> None:
        for test, files in self.lines.items():
            if test in self.seconds:
                for file, numbers in files.items():
                    into = self._runners.setdefault(file, {})
                    for number in numbers:
                        into.setdefault(number, []).append(test)

    def by_import(self, file: str) -> frozenset[int]:
        """The lines that importing runs, or making the list of all tests."""
        return self.lines.get(_BY_IMPORT, {}).get(file, frozenset())

    def tests_of(self, file: str, lines: range | None) -> list[str]:
        """The tests that run some of these lines, or all tests where no lines are given.

        What importing makes is used without running a line of the file that it stands in.
        """
        if lines is None:
            return list(self.seconds)
        ran = self._runners.get(file, {})
        return sorted({test for line in lines for test in ran.get(line, ())})


class _Recorder:
    """Switches the context of the measurement from test to test."""

    def __init__(self, tool: coverage.Coverage) -> None:
        self._tool = tool
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._tool.switch_context(item.nodeid)
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.perf_counter() - began
            self._tool.switch_context(_BY_IMPORT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


def read_baseline(folder: Path) -> Baseline:
    """The baseline, from `folder` as far as it is not stale."""
    kept = folder / "baseline.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    everything, files = _everything_else(), _test_files()
    known: _Known = found.get("tests", {}) if (found.get("everything") == everything) else {}
    stale = [name for name, digest in files.items() if known.get(name, {}).get("of") != digest]
    if stale or set(known) - set(files):
        fresh = _measured(stale, folder) if stale else {}
        known = {name: entry for name, entry in known.items() if name in files} | {
            name: {"of": files[name], **fresh.get(name, {})} for name in stale
        }
        kept.write_text(json.dumps({"everything": everything, "tests": known}), encoding="utf-8")
    return _joined(known)


def _joined(known: _Known) -> Baseline:
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, frozenset[int]]] = {}
    failed: list[str] = []
    for entry in known.values():
        seconds |= entry.get("seconds", {})
        failed += entry.get("failed", [])
        for test, files in entry.get("lines", {}).items():
            into = lines.setdefault(test, {})
            for file, numbers in files.items():
                into[file] = into.get(file, frozenset()) | frozenset(numbers)
    return Baseline(seconds, lines, tuple(failed))


def _test_files() -> dict[str, str]:
    """Every test file that is asked, with its digest."""
    named = [ROOT / name for name in TESTS]
    found = [
        path for name in named for path in (name.rglob("test_*.py") if name.is_dir() else [name])
    ]
    files = sorted(path for path in found if path.name not in LEFT_OUT)
    return {path.relative_to(ROOT).as_posix(): _digest([path]) for path in files}


def _everything_else() -> str:
    others = [
        path
        for folder in (ROOT / "tests", *ROOT.glob("packages/*/tests"))
        for path in folder.rglob("*.py")
        if not path.name.startswith("test_") and path.parent.name != "mutants"
    ]
    return _digest([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.toml"), *others])


def _digest(paths: list[Path]) -> str:
    made = hashlib.sha256()
    for path in sorted(paths):
        made.update(hashlib.sha256(path.read_bytes()).digest())
    return made.hexdigest()


def _measured(files: list[str], folder: Path) -> _Known:
    """Run some test files in a child, and say what their tests did."""
    result = folder / "measured.json"
    result.unlink(missing_ok=True)
    child = started(lambda: _measure_into(result, files, folder))
    os.waitpid(child, 0)
    made: _Known = json.loads(result.read_text(encoding="utf-8"))
    return made


def _measure(files: list[str], folder: Path) -> _Known:
    targets = target_files()
    tool = coverage.Coverage(
        data_file=None, config_file=False, include=[str(path) for path in targets], branch=False
    )
    recorder = _Recorder(tool)
    tool.start()
    arguments = pytest_arguments(folder / "baseline", limit_s=300)
    pytest.main([*arguments, "--maxfail=0", *files], plugins=[recorder])
    tool.stop()
    data = tool.get_data()
    package = SOURCE / "sealpoint"
    made: _Known = {name: {"seconds": {}, "failed": [], "lines": {}} for name in files}
    for test, seconds in recorder.seconds.items():
        if test not in recorder.failed:
            made[test.split("::")[0]]["seconds"][test] = seconds
        else:
            made[test.split("::")[0]]["failed"].append(test)
    for path in targets:
        file = path.relative_to(package).as_posix()
        for number, contexts in data.contexts_by_lineno(str(path)).items():
            for test in contexts:
                into = made[test.split("::")[0] if test else files[0]]["lines"]
                into.setdefault(test, {}).setdefault(file, []).append(number)
    return made


def _measure_into(result: Path, files: list[str], folder: Path) -> None:
    result.write_text(json.dumps(_measure(files, folder)), encoding="utf-8")
