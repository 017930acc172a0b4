# SPDX-License-Identifier: Apache-2.0
"""Trying mutants: each in a child of its own, against the tests that run its lines.

A fault inside a function is put into a child of a session that is collected already, by giving the
function other code. A fault in what importing runs goes into a child that has not imported the
package yet. Tests that noticed a fault of the same function come first, then the quickest.
"""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from mutants._baseline import Baseline
from mutants._planting import Module, Mutant
from mutants._session import (
    Ended,
    Functions,
    Judge,
    Warm,
    forked,
    live_functions,
    pytest_arguments,
    started,
)
from mutants._targets import SOURCE, module_name

__all__ = ["FLAKY", "Budget", "Trial"]

FLAKY = "flaky.txt"
"""Where a worker names the test that failed without a fault."""

_STORAGES = re.compile(r"\b(?:sqlite|file)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much is asked for one mutant."""

    tests_s: float = 3.0
    """How long the tests take together, without a fault; the quickest are asked."""
    one_test_s: float = 0.5
    """A test that takes longer is not asked at first."""
    more_s: float = 30.0
    """The same for what has survived: now those beside the module come first, however slow."""
    limit_s: float = 5.0
    """A test that takes longer with a fault has noticed it, or five times as long as without."""


@dataclass(slots=True)
class Trial:
    """A worker's part of a run."""

    baseline: Baseline
    modules: dict[str, Module]
    budget: Budget
    folder: Path
    """For temporary files; nobody else uses it."""
    tell: Callable[[Mutant, Ended], None]
    _killers: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def run(self, mutants: Sequence[Mutant]) -> None:
        """Try every mutant and tell what became of it."""
        inside = [mutant for mutant in mutants if mutant.top == mutant.function]
        outside = [mutant for mutant in mutants if mutant.top != mutant.function]
        told = self.folder / "warm.jsonl"
        told.write_text("", encoding="utf-8")
        if inside:
            os.waitpid(started(lambda: self._run_warm(inside, told)), 0)
        found = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
        for place, state, test in found:
            mutant = inside[place]
            self._remember(mutant, (state, test))
            # What importing runs as well may be noticed by what it made.
            if state == "cannot" or (state == "survived" and self._is_by_import(mutant)):
                outside.append(mutant)
            else:
                self.tell(mutant, (state, test))
        for mutant in (*outside, *inside[len(found) :]):
            ended = self._cold(mutant)
            self._remember(mutant, ended)
            self.tell(mutant, ended)

    def _remember(self, mutant: Mutant, ended: Ended) -> None:
        if ended[0] == "killed" and ended[1]:
            near = (mutant.file, mutant.top or "")
            self._killers.setdefault(near, Counter())[ended[1]] += 1

    def _is_by_import(self, mutant: Mutant) -> bool:
        first, last = mutant.lines
        return not self.baseline.by_import(mutant.file).isdisjoint(range(first, last + 1))

    # ------------------------------------------------------------------ which tests

    def tests(self, mutant: Mutant, *, more: bool = False) -> list[str]:
        """The tests that are asked about a mutant, in their order; `more` if it has survived."""
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        everybody = mutant.top is None or (more and self._is_by_import(mutant))
        found = self.baseline.tests_of(mutant.file, None if everybody else lines)
        seconds = self.baseline.seconds
        killers = self._killers.get((mutant.file, mutant.top or ""), Counter[str]())
        home = f"tests/unit/{mutant.file.split('/', maxsplit=1)[0]}/"
        far = more or mutant.top is None
        found.sort(
            key=lambda test: (
                -killers[test],
                far and not _is_named(test, mutant),
                mutant.top is None and not test.startswith("tests/vectors/"),
                far and not test.startswith(home),
                seconds[test],
                test,
            )
        )
        return list(self._affordable(found, more=more))

    def _affordable(self, tests: Sequence[str], *, more: bool) -> Iterator[str]:
        left = self.budget.more_s if more else self.budget.tests_s
        for test in tests:
            cost = self.baseline.seconds[test]
            quick = more or cost <= self.budget.one_test_s
            if quick and cost <= left and not self._is_repeated(test):
                left -= cost
                yield test

    def _is_repeated(self, test: str) -> bool:
        """Whether it is the same test on another storage: what decides is above them all."""
        name, _, given = test.partition("[")
        in_memory = _STORAGES.sub("memory", given)
        return in_memory != given and f"{name}[{in_memory}" in self.baseline.seconds

    def _limit(self, tests: Sequence[str]) -> float:
        cost = sum(self.baseline.seconds.get(test, 0.0) for test in tests)
        return 4 * self.budget.limit_s + 3 * cost

    # ------------------------------------------------------------------ faults in functions

    def _run_warm(self, mutants: Sequence[Mutant], told: Path) -> None:
        """Collect every test that may be asked, then fork for each mutant."""
        files = sorted({test.split("::")[0] for test in self.baseline.seconds})

        def work(session: Warm) -> None:
            functions = live_functions(SOURCE / "sealpoint")
            gc.freeze()  # else every child copies what its collector looks at
            for place, mutant in enumerate(mutants):
                ended: Ended = "survived", ""
                asked: set[str] = set()
                for more in (False, True):
                    if ended[0] == "survived":
                        tests = [t for t in self.tests(mutant, more=more) if t not in asked]
                        asked.update(tests)
                        ended = forked(
                            partial(self._in_place, session, mutant, tests, functions),
                            limit_s=self._limit(tests),
                        )
                self._remember(mutant, ended)
                with told.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps([place, *ended]) + "\n")
            self._control(session)

        pytest.main(self._arguments(files), plugins=[Warm(work)])

    def _control(self, session: Warm) -> None:
        """Run those that noticed something once more, without any fault: they must pass."""
        killers = sorted({test for found in self._killers.values() for test in found})
        limits = {test: self._test_limit(test) for test in killers}
        state, test = forked(partial(session.first_failure, limits), limit_s=self._limit(killers))
        if state != "survived":
            (self.folder / FLAKY).write_text(f"{test}\n", encoding="utf-8")

    def _in_place(
        self, session: Warm, mutant: Mutant, tests: Sequence[str], functions: Functions
    ) -> str | None:
        module = self.modules[mutant.file]
        code = compile(module.changed(mutant), str(module.path), "exec")
        wanted = [each for each in _codes(code) if each.co_qualname == mutant.top]
        swapped = 0
        for each in wanted:
            for function in functions.get(
                (each.co_filename, each.co_qualname, each.co_firstlineno), ()
            ):
                if len(function.__code__.co_freevars) != len(each.co_freevars):
                    raise NotImplementedError
                function.__code__ = each
                swapped += 1
        if not swapped:
            raise NotImplementedError
        return session.first_failure({test: self._test_limit(test) for test in tests})

    def _test_limit(self, test: str) -> float:
        return max(self.budget.limit_s, 5 * self.baseline.seconds.get(test, 0.0))

    def _arguments(self, tests: Sequence[str]) -> list[str]:
        limit_s = max(map(self._test_limit, tests), default=self.budget.limit_s)
        made = pytest_arguments(self.folder / "tests", limit_s=limit_s)
        return [*made, *tests]

    # ---------------- what importing runs

    def _cold(self, mutant: Mutant) -> Ended:
        tests = self.tests(mutant, more=True)
        named = [test for test in tests if _is_named(test, mutant)]
        others = [test for test in tests if not _is_named(test, mutant)]
        ended: Ended = "survived", ""
        for some in (named, others):
            if some:
                work = partial(self._imported, mutant, some)
                ended = forked(work, limit_s=self._limit(some))
            if ended[0] != "survived":
                break
        if ended[0] == "cannot":
            raise RuntimeError(f"{mutant.file} in {mutant.function}: {ended[1]}")
        return ended

    def _imported(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        module = self.modules[mutant.file]
        code = compile(module.changed(mutant), str(module.path), "exec")
        sys.meta_path.insert(0, _Finder(module_name(module.path), module.path, code))
        judge = Judge()
        status = pytest.main(self._arguments(tests), plugins=[judge])
        if status == pytest.ExitCode.NO_TESTS_COLLECTED:
            raise RuntimeError("no test was found")
        if judge.failed is None and status != pytest.ExitCode.OK:
            return f"pytest ended with {status}"  # not even the settings could be imported
        return judge.failed


def _is_named(test: str, mutant: Mutant) -> bool:
    """Whether a test lies in a file that is named like the module."""
    stem = mutant.file.split("/_")[1].removesuffix(".py")
    return stem in test.split("::", maxsplit=1)[0].rsplit("/", maxsplit=1)[-1]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from other code."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name = name
        self._path = path
        self._code = code

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module, if it is this one."""
        del path, target
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the code that has the fault."""
        exec(self._code, module.__dict__)  # noqa: S102
