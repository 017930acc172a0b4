# SPDX-License-Identifier: Apache-2.0
"""How large the house is, and how it is built: `python -m benchmarks.house` counts it.

Ends with status 1 if a figure is beyond its bar. A line of code is one that is no docstring, no
comment and not blank. The cyclomatic number counts branches, loops, handlers, conditions in
comprehensions and each further operand of `and` and `or`. Files that a save or a load passes
through are traced, on a handle that has saved and loaded before.
"""

import ast
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sealpoint

__all__ = ["Figure", "figures", "main"]

_SOURCE = Path(sealpoint.__file__).resolve().parent
# Before there was a database; what one needs (ADR 0025); the console and what it shows (ADR 0026);
# model files in the wild, with a reader for each format, and a file each for what is in one, for
# turning one into another, and for the verbs of both; distributed checkpoints (ADR 0027); the pages
# of the console by subject, and the description of its API; the rules that every reader applies,
# and how they are applied from the head (ADR 0028); runs that have a thread (ADR 0030).
_MODULES_MAX = 220 + 20 + 40 + 33 + 8 + 3 + 3 + 3
_CODE_LINES_MAX = 32_000
_DEPTH_MAX = 2
_METHODS_MAX = 25
_CYCLOMATIC_MAX = 12
_SAVE_FILES_MAX = 22
_LOAD_FILES_MAX = 18
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.match_case)


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing that was counted: how much there is, how much there may be, and what is beyond."""

    name: str
    found: int
    bar: int
    beyond: tuple[str, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the figure is within its bar."""
        return self.found <= self.bar


def figures() -> Iterator[Figure]:
    """Count everything."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(_SOURCE.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    classes = [
        (path, node)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    yield Figure("modules", len(trees), _MODULES_MAX)
    yield Figure(
        "lines of code",
        sum(code_lines(text, trees[path]) for path, text in texts.items()),
        _CODE_LINES_MAX,
    )
    yield _depth([node for _, node in classes])
    yield _largest(
        "methods of a class",
        _METHODS_MAX,
        {f"{_name(path)} {node.name}": len(_methods(node)) for path, node in classes},
    )
    yield _largest("cyclomatic number of a function", _CYCLOMATIC_MAX, dict(_functions(trees)))
    named = Counter(node.name for _, node in classes)
    twice = tuple(sorted(name for name, count in named.items() if count > 1))
    yield Figure("names that several classes have", len(twice), 0, twice)
    saved, loaded = trace()
    yield Figure("files that a warm save passes through", len(saved), _SAVE_FILES_MAX, saved)
    yield Figure("files that a warm load passes through", len(loaded), _LOAD_FILES_MAX, loaded)


def code_lines(text: str, tree: ast.Module) -> int:
    """How many lines of a file are code."""
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node):
            first = node.body[0]
            said.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    return sum(bool(line) and line[0] != "#" and number not in said for number, line in lines)


def cyclomatic_number(function: _Function) -> int:
    """How many ways lead through a function, those inside of it included."""
    found = 1
    for node in ast.walk(function):
        if isinstance(node, _BRANCHES):
            found += 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
    return found


def trace() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The files of ours that a save and a load pass through, on a handle that did both before."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        data = place / "data"
        data.mkdir()
        where: dict[str, Any] = {"config_dir": place / "config", "state_dir": place / "state"}
        url = f"sqlite:///{data / 'agents.db'}"
        sealpoint.init(url, **where)
        with sealpoint.open_store(url, **where) as store:
            thread = store.thread("t")
            for number in range(3):
                thread.save({"number": number})
                thread.load()
            return _traced(lambda: thread.save({"number": 3})), _traced(thread.load)


def _traced(call: Callable[[], object]) -> tuple[str, ...]:
    found: set[str] = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    ours = (Path(name) for name in found if name.startswith(str(_SOURCE)))
    return tuple(sorted(map(_name, ours)))


def _name(path: Path) -> str:
    return str(path.relative_to(_SOURCE))


def _methods(node: ast.ClassDef) -> list[_Function]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]


def _functions(trees: dict[Path, ast.Module]) -> Iterator[tuple[str, int]]:
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{_name(path)}:{node.lineno} {node.name}", cyclomatic_number(node)


def _depth(classes: list[ast.ClassDef]) -> Figure:
    """The longest line of our own classes, exceptions left aside: their tree is their meaning."""
    above = {
        node.name: [each.id for each in node.bases if isinstance(each, ast.Name)]
        for node in classes
    }

    def height(name: str) -> int:
        return 1 + max((height(each) for each in above[name] if each in above), default=0)

    heights = {name: height(name) for name in above if not _is_error(name, above)}
    return _largest("depth of our own classes", _DEPTH_MAX, heights)


def _is_error(name: str, above: dict[str, list[str]]) -> bool:
    return name == "SealpointError" or any(
        _is_error(each, above) for each in above.get(name, ()) if each != name
    )


def _largest(name: str, bar: int, counted: dict[str, int]) -> Figure:
    beyond = sorted((each for each in counted.items() if each[1] > bar), key=lambda each: -each[1])
    return Figure(name, max(counted.values()), bar, tuple(f"{n}: {count}" for n, count in beyond))


def main() -> int:
    """Print every figure, and what is beyond its bar.

    Returns:
        0 if every bar is met, else 1.
    """
    counted = list(figures())
    for figure in counted:
        sign = "ok" if figure.met else "OVER"
        sys.stdout.write(f"{sign:5} {figure.found:7,} of {figure.bar:,}  {figure.name}\n")
        if not figure.met:
            sys.stdout.writelines(f"        {line}\n" for line in figure.beyond)
    return 0 if all(figure.met for figure in counted) else 1


if __name__ == "__main__":
    sys.exit(main())
