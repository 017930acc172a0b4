# SPDX-License-Identifier: Apache-2.0
"""The plugin that pytest loads into a run of the framework's tests (`-p`).

It keeps those tests that take the in-memory saver or no fixture, has the saver swapped, and writes
one line of JSON for each test: how it ended, why it failed, which of our parts it used, and the
processor time that it took.
"""

import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.langgraph_suite._causes import cause_of
from benchmarks.langgraph_suite._stores import Stores
from benchmarks.langgraph_suite._swap import Swap

__all__ = ["pytest_addoption", "pytest_configure"]

_FIXTURES = ("sync_checkpointer", "async_checkpointer")
_MEMORY = "memory"


def pytest_addoption(parser: pytest.Parser) -> None:
    """What the run is told by its command line."""
    group = parser.getgroup("suite")
    group.addoption("--suite-saver", choices=("stock", "sealed", "peer"), default="stock")
    group.addoption("--suite-policy", default="allow")
    group.addoption("--suite-server", default="")
    group.addoption("--suite-guard", action="store_true")
    group.addoption("--suite-reason", action="store_true")
    group.addoption("--suite-fixtures-only", action="store_true")
    group.addoption("--suite-record", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Take over what the tests use, before any of them is imported."""
    option = config.option
    stores = Stores(option.suite_policy, option.suite_server)
    swap = None
    if option.suite_saver != "stock":
        swap = Swap(
            stores,
            sealed=option.suite_saver == "sealed",
            fixtures_only=option.suite_fixtures_only,
            guarded=option.suite_guard,
            reason=option.suite_reason,
        )
        swap.install()
    config.pluginmanager.register(_Recorder(option, stores, swap), "suite-recorder")


class _Recorder:
    """Writes down how each test went."""

    def __init__(self, option: Any, stores: Stores, swap: Swap | None) -> None:
        self._path: Path = option.suite_record
        self._fixtures_only: bool = option.suite_fixtures_only
        self._stores = stores
        self._swap = swap
        self._line: dict[str, Any] = {}
        self._seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what tests other savers of the framework."""
        kept = [item for item in items if self._is_wanted(item)]
        left = [item for item in items if not self._is_wanted(item)]
        items[:] = kept
        config.hook.pytest_deselected(items=left)

    def _is_wanted(self, item: pytest.Item) -> bool:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        savers = [parameters[name] for name in _FIXTURES if name in parameters]
        return all(saver == _MEMORY for saver in savers) and bool(savers or not self._fixtures_only)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Begin and end the record of a test."""
        self._stores.begin()
        self._line = {"test": item.nodeid, "outcome": "passed"}
        self._seconds = {}
        guards = self._swap.guards if self._swap is not None else 0
        try:
            return (yield)
        finally:
            start = time.process_time()
            self._stores.close()
            self._seconds["close"] = time.process_time() - start
            self._line["savers"] = self._stores.made
            self._line["types"] = sorted(self._stores.allowed)
            self._line["guards"] = (self._swap.guards if self._swap is not None else 0) - guards
            self._line["cpu_s"] = self._seconds
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self._line) + "\n")

    def pytest_unconfigure(self) -> None:
        """Leave nothing behind."""
        self._stores.end()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """Time it."""
        return (yield from self._timed("setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Time it."""
        return (yield from self._timed("call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Time it."""
        return (yield from self._timed("teardown"))

    def _timed(self, phase: str) -> Generator[None, object, object]:
        start = time.process_time()
        try:
            return (yield)
        finally:
            self._seconds[phase] = time.process_time() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note how a phase of a test ended."""
        report = yield
        if report.outcome == "skipped" and self._line["outcome"] == "passed":
            self._line["outcome"] = "skipped"
        elif report.outcome == "failed" and self._line["outcome"] != "failed":
            self._line["outcome"] = "failed"
            if call.excinfo is not None:
                cause = cause_of(call.excinfo.value, self._stores.refused)
                self._line |= {"cause": cause.name, "line": cause.line, "ours": cause.ours}
        return report
