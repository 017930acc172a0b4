# SPDX-License-Identifier: Apache-2.0
"""Trying mutants: each in a child of its own, against the tests that run its lines.

A fault inside a function is put into a child of a session that is collected already, by giving the
function other code. A fault in what importing runs goes into a child that has not imported the
package yet. Tests that noticed a fault of the same function come first, then the quickest.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from mutants._baseline import Baseline
from mutants._planting import Module, Mutant
from mutants._session import Ended, Functions, Judge, Warm, forked, live_functions, pytest_arguments
from mutants._targets import SOURCE, module_name

__all__ = ["Budget", "Trial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much is asked for one mutant."""

    tests_s: float = 12.0
    """How long the tests take together, without a fault; the quickest are asked."""
    one_test_s: float = 2.0
    """A test that takes longer is not asked."""
    limit_s: float = 8.0
    """A test that takes longer with a fault has noticed it."""


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
        again: list[Mutant] = []
        inside = [mutant for mutant in mutants if not self._is_by_import(mutant)]
        outside = [mutant for mutant in mutants if self._is_by_import(mutant)]
        told = self.folder / "warm.jsonl"
        told.write_text("", encoding="utf-8")
        if inside:
            forked(lambda: self._run_warm(inside, told), limit_s=float(24 * 3600))
        found = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
        for place, state, test in found:
            self._tell(inside[place], (state, test), again)
        for mutant in (*outside, *again, *inside[len(found) :]):
            self._tell(mutant, self._cold(mutant), [])

    def _tell(self, mutant: Mutant, ended: Ended, again: list[Mutant]) -> None:
        if ended[0] == "cannot":
            again.append(mutant)
            return
        self._remember(mutant, ended)
        self.tell(mutant, ended)

    def _remember(self, mutant: Mutant, ended: Ended) -> None:
        if ended[0] == "killed" and ended[1]:
            near = (mutant.file, mutant.top or "")
            self._killers.setdefault(near, Counter())[ended[1]] += 1

    def _is_by_import(self, mutant: Mutant) -> bool:
        if mutant.top is None or mutant.function != mutant.top:
            return True
        first, last = mutant.lines
        return not self.baseline.by_import(mutant.file).isdisjoint(range(first, last + 1))

    # ------------------------------------------------------------------ which tests

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that are asked about a mutant, in their order."""
        lines = range(mutant.lines[0], mutant.lines[1] + 1)
        found = self.baseline.tests_of(mutant.file, lines if mutant.top is not None else None)
        seconds = self.baseline.seconds
        killers = self._killers.get((mutant.file, mutant.top or ""), Counter[str]())
        home = f"tests/unit/{mutant.file.split('/', maxsplit=1)[0]}/"
        by_import = self._is_by_import(mutant)
        found.sort(
            key=lambda test: (
                -killers[test],
                by_import and not test.startswith(home),
                seconds[test],
                test,
            )
        )
        return list(self._affordable(found))

    def _affordable(self, tests: Sequence[str]) -> Iterator[str]:
        left = self.budget.tests_s
        for test in tests:
            cost = self.baseline.seconds[test]
            if cost <= self.budget.one_test_s and cost <= left:
                left -= cost
                yield test

    def _limit(self, tests: Sequence[str]) -> float:
        cost = sum(self.baseline.seconds[test] for test in tests)
        return 60.0 + 5 * cost

    # ------------------------------------------------------------------ faults in functions

    def _run_warm(self, mutants: Sequence[Mutant], told: Path) -> str | None:
        """Collect every test that may be asked, then fork for each mutant."""
        files = sorted({test.split("::")[0] for mutant in mutants for test in self.tests(mutant)})

        def work(session: Warm) -> None:
            functions = live_functions(SOURCE / "sealpoint")
            for place, mutant in enumerate(mutants):
                tests = self.tests(mutant)
                ended = forked(
                    lambda mutant=mutant, tests=tests: self._in_place(  # type: ignore[misc]
                        session, mutant, tests, functions
                    ),
                    limit_s=self._limit(tests),
                )
                self._remember(mutant, ended)
                with told.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps([place, *ended]) + "\n")

        pytest.main(self._arguments(files), plugins=[Warm(work)])
        return None

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
        return session.first_failure(tests)

    def _arguments(self, tests: Sequence[str]) -> list[str]:
        made = pytest_arguments(self.folder / "tests", limit_s=self.budget.limit_s)
        return [*made, *tests]

    # ---------------- what importing runs

    def _cold(self, mutant: Mutant) -> Ended:
        tests = self.tests(mutant)
        home = [test for test in tests if test.startswith("tests/unit/")][:400]
        others = [test for test in tests if test not in frozenset(home)]
        ended: Ended = "survived", ""
        for some in (home, others):
            if some:
                ended = forked(
                    lambda some=some: self._imported(mutant, some),  # type: ignore[misc]
                    limit_s=self._limit(some),
                )
            if ended[0] != "survived":
                break
        return ended

    def _imported(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        module = self.modules[mutant.file]
        code = compile(module.changed(mutant), str(module.path), "exec")
        sys.meta_path.insert(0, _Finder(module_name(module.path), module.path, code))
        judge = Judge()
        status = pytest.main(self._arguments(tests), plugins=[judge])
        if judge.failed is None and status != pytest.ExitCode.OK:
            return f"pytest ended with {status}"
        return judge.failed


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
