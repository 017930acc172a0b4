# SPDX-License-Identifier: Apache-2.0
"""The code of a function is what its definition says, wherever it stands and however it looks."""

import functools
import importlib
import linecache
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from langgraph.graph import add_messages
from langgraph.prebuilt import tools_condition

from sealpoint.adapters._function_code import Frameworks

Load = Callable[[str], ModuleType]

_FRAMEWORKS = Frameworks("langgraph")
code_name, package_of = _FRAMEWORKS.code_name, _FRAMEWORKS.package_of
function_digest = _FRAMEWORKS.function_digest


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Imports programs, each from a file of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[str] = []

    def imported(text: str) -> ModuleType:
        made.append(f"sp_code_{len(made)}")
        (tmp_path / f"{made[-1]}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(made[-1])

    yield imported
    for name in made:
        del sys.modules[name]
    linecache.clearcache()


_PLAIN = "def f(a, b=1):\n    '''Adds.'''\n    return a + b\n"
_FORMS = {
    "comments": (
        _PLAIN,
        "# Why.\n\ndef f(a, b=1):  # so\n    '''Adds.'''\n    return a + b  # now\n",
    ),
    "format": (_PLAIN, 'def f(\n    a,\n    b=1,\n):\n    """Adds."""\n\n    return (a + b)\n'),
    "place": (_PLAIN, f"x = 1\n\n\n{_PLAIN}"),
    "method": (
        "class C:\n    def f(self):\n        return '''\na'''\n\nf = C.f",
        "class C:\n  x = 1\n  def f(self):\n    return '\\na'\n\nf = C.f",
    ),
    "decorated": (
        "def d(g): return g\n@d\ndef f(): return 1",
        "def d(g): return g\n@d  # kept\n\ndef f():\n\n  return 1",
    ),
    "lambda": ("f = lambda a: a + 1", "x = 2\nf = (\n    lambda a: (a\n      + 1)\n)"),
    "first of two": ("f, g = lambda: 1, lambda: 2", "f, g = (lambda: 1), lambda: 3"),
    "second of two": ("g, f = lambda: 1, lambda: 2", "g, f = lambda: 9, lambda: 2"),
    "second call": (
        "x = [(lambda: 1)(), lambda: 2]\nf = x[1]",
        "x = [(lambda: 3)(), lambda: 2]\nf = x[1]",
    ),
    "inner": ("f = (lambda: lambda a: a)()", "f = (lambda b=1: lambda a: a)()"),
    "async": ("async def f(x):\n await x", "async def f( x ):\n\n    await (x)"),
    "generator": ("def f():\n yield 1", "def f():\n\n    yield (1)"),
}
_CHANGES = {
    "body": (_PLAIN, _PLAIN.replace("a + b", "a - b")),
    "docstring": (_PLAIN, _PLAIN.replace("Adds", "Sums")),
    "default": (_PLAIN, _PLAIN.replace("b=1", "b=2")),
    "annotation": (_PLAIN, _PLAIN.replace("b=1", "b: int=1")),
    "result": (_PLAIN, _PLAIN.replace("):", ") -> int:")),
    "name": (_PLAIN, _PLAIN.replace("f(", "g(") + "f = g"),
    "decorator": (
        f"def d(n): return lambda g: g\n@d(1)\n{_PLAIN}",
        f"def d(n): return lambda g: g\n@d(2)\n{_PLAIN}",
    ),
    "lambda": ("f = lambda a: a + 1", "f = lambda a: a + 2"),
    "lambda default": ("f = lambda a=1: a", "f = lambda a=2: a"),
    "first of two": ("f, g = lambda: 1, lambda: 2", "f, g = lambda: 3, lambda: 2"),
    "second of two": ("g, f = lambda: 1, lambda: 2", "g, f = lambda: 1, lambda: 3"),
    "same text twice": ("f, g = lambda: 1, lambda: 2", "g, f = lambda: 1, lambda: 2"),
    "outer": ("f = lambda: lambda a: a", "f = lambda: lambda a: b"),
    "inner": ("f = (lambda: lambda a: a)()", "f = (lambda: lambda a: -a)()"),
    "closure": (
        "def m():\n def f(): return 1\n return f\nf = m()",
        "def m():\n def f(): return 2\n return f\nf = m()",
    ),
}


@pytest.mark.parametrize(("one", "other"), _FORMS.values(), ids=_FORMS)
def test_how_a_function_is_written_does_not_count(one: str, other: str, load: Load) -> None:
    """Comments, formatting, and what stands before or beside it leave its code alone."""
    assert function_digest(load(one).f) == function_digest(load(other).f)


@pytest.mark.parametrize(("one", "other"), _CHANGES.values(), ids=_CHANGES)
def test_what_a_function_says_counts(one: str, other: str, load: Load) -> None:
    """Its body, docstring, defaults, annotations, decorators and name do."""
    assert function_digest(load(one).f) != function_digest(load(other).f)


def test_lambdas_that_cannot_be_told_apart_count_by_what_was_compiled(tmp_path: Path) -> None:
    """Without columns in compiled code, lambdas in a line count with it: swapped, they differ."""
    found = {}
    for name, text in {
        "plain": "f, g = lambda: 1, lambda: 2",
        "formatted": "f, g = (lambda: 1), lambda: 2  # same",
        "changed": "f, g = lambda: 1, lambda: 3",
        "swapped": "f, g = lambda: 2, lambda: 1",
    }.items():
        (tmp_path / f"{name}.py").write_text(
            f"{text}\n"
            "from sealpoint.adapters._function_code import Frameworks\n"
            "function_digest = Frameworks().function_digest\n"
            "print(function_digest(f), function_digest(g))\n"
        )
        done = subprocess.run(
            [sys.executable, "-X", "no_debug_ranges", f"{name}.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        found[name] = done.stdout.split()

    assert found["plain"] == found["formatted"]
    assert found["plain"][0] != found["changed"][0]
    assert found["plain"] == found["swapped"][::-1]
    assert found["plain"][0] != found["plain"][1]


def _made(text: str) -> FunctionType:
    space: dict[str, Any] = {}
    exec(text, space)  # noqa: S102 - the way an interactive session defines functions
    return space["f"]  # type: ignore[no-any-return]


def test_code_without_source_is_told_by_what_was_compiled() -> None:
    """Functions that have no source file differ by what they do, not by where they stand."""
    one = _made("def f(x): return x in {'a', 'b'}")

    assert function_digest(one) == function_digest(_made("\n\ndef f(x): return x in {'a','b'}"))
    assert function_digest(one) != function_digest(_made("def f(x): return x in {'a', 'c'}"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def f(a, b): return a", "def f(a, *, b): return a"),
        ("def f(a): return a", "def f(*a): return a"),
        ("def f(a): return a", "async def f(a): return a"),
        ("def f(a):\n try: a()\n except E: pass", "def f(a):\n a()\n try: pass\n except E: pass"),
    ],
)
def test_what_was_compiled_counts_altogether(one: str, other: str) -> None:
    """How it is called and where its handlers begin is part of compiled code."""
    assert function_digest(_made(one)) != function_digest(_made(other))


def test_code_without_source_is_the_same_in_every_process() -> None:
    """The order of a set, which differs between processes, does not show."""
    program = (
        "from sealpoint.adapters._function_code import Frameworks\n"
        "function_digest = Frameworks().function_digest\n"
        'exec(\'def f(x): return x in {"a", "b", "c"}, lambda: x\')\n'
        "print(function_digest(f))\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(found) == 1


def test_a_file_that_is_too_deep_counts_by_what_was_compiled(load: Load) -> None:
    """A file that has no tree to read is no error."""
    text = f"x = lambda a: a{'.b' * 600}\n\n\ndef f(a):\n    return a\n"

    assert function_digest(load(text).f) == function_digest(load(f"# moved\n{text}").f)
    assert function_digest(load(text).f) != function_digest(load(text.replace("n a", "n 1")).f)


def test_a_framework_counts_by_name() -> None:
    """The version of the framework says what its functions do."""
    condition: Any = tools_condition
    reducer: Any = add_messages

    assert code_name("branch.a", condition) == "branch.a"
    assert code_name("node.a", _made) == "node.a: _made"  # type: ignore[arg-type]
    assert function_digest(condition) != function_digest(reducer)


def test_a_wrapper_around_a_framework_is_the_applications() -> None:
    """It takes over the module's name of what it wraps, and hides its code by that no more."""

    @functools.wraps(tools_condition)
    def one(*args: Any) -> Any:
        return tools_condition(*args)

    @functools.wraps(tools_condition)
    def other(*_: Any) -> Any:
        return "tools"

    assert one.__module__ == tools_condition.__module__
    assert package_of(one) == package_of(_made)
    assert code_name("branch.a", one) == "branch.a: tools_condition"  # type: ignore[arg-type]
    assert function_digest(one) != function_digest(other)  # type: ignore[arg-type]
