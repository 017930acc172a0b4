# SPDX-License-Identifier: Apache-2.0
"""How large each part is, and how long the ways through it are: `python -m benchmarks.house`.

A line of code is one that is not a docstring, not a comment and not blank. Calls are counted with
`sys.setprofile`, on handles that have saved and loaded before: calls of Python functions, those of
libraries too. These figures describe; none of them is a bar.
"""

import ast
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import sealpoint

__all__ = ["Calls", "LongFunction", "code_lines", "count_calls", "main", "part_lines", "parts"]

_ROOT = Path(__file__).resolve().parent.parent
_LONG_LINES = 50
_WARM_CALLS = 3
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class LongFunction(NamedTuple):
    """A function that does not fit on a screen."""

    place: str
    lines: int


class Calls(NamedTuple):
    """How many Python functions a call calls: all, and those of our parts."""

    all: int
    ours: int


def parts() -> list[Path]:
    """The folders of our distributions, the core first."""
    return sorted((_ROOT / "packages").iterdir(), key=lambda path: (len(path.name), path.name))


def code_lines(text: str, tree: ast.Module) -> int:
    """How many lines of a file are code."""
    documented: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | _Function) and ast.get_docstring(node):
            first = node.body[0]
            documented.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    return sum(bool(line) and line[0] != "#" and number not in documented for number, line in lines)


def part_lines(part: Path) -> Counter[str]:
    """The lines of code of a part, by its packages."""
    counted: Counter[str] = Counter()
    for path, text, tree in _sources(part):
        inside = path.relative_to(part / "src").parts
        counted[".".join(inside[:2]) if len(inside) > 2 else inside[0]] += code_lines(text, tree)
    return counted


def long_functions(part: Path) -> Iterator[LongFunction]:
    """The functions of a part that are longer than a screen."""
    for path, _, tree in _sources(part):
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > _LONG_LINES:
                    place = f"{path.relative_to(part / 'src')}:{node.lineno} {node.name}"
                    yield LongFunction(place, lines)


def imports_across_walls(part: Path) -> Counter[str]:
    """How often a part imports from each of the others."""
    own = next((part / "src").iterdir()).name
    modules = {next((other / "src").iterdir()).name for other in parts()} - {own}
    counted: Counter[str] = Counter()
    for _, _, tree in _sources(part):
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            counted.update(name.split(".")[0] for name in names if name.split(".")[0] in modules)
    return counted


def _sources(part: Path) -> Iterator[tuple[Path, str, ast.Module]]:
    for path in sorted((part / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path, text, ast.parse(text)


# ------------------------------------------------------------------ calls


def count_calls(call: Callable[[], object]) -> Calls:
    """Count what a call calls, on this OS thread and on those that it starts."""
    folders = tuple(str(part / "src") for part in parts())
    counted = {True: 0, False: 0}

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            counted[frame.f_code.co_filename.startswith(folders)] += 1

    import threading  # noqa: PLC0415 # its profile is set before and after

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Calls(counted[True] + counted[False], counted[True])


@contextmanager
def _store(registry: Any = None) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        data = place / "data"
        data.mkdir()
        where: dict[str, Any] = {"config_dir": place / "config", "state_dir": place / "state"}
        url = f"sqlite:///{data / 'agents.db'}"
        sealpoint.init(url, **where)
        with sealpoint.open_store(url, registry=registry, **where) as store:
            yield store


def save_and_load() -> tuple[Calls, Calls]:
    """A warm save of a small state, and a warm load of it."""
    with _store() as store:
        thread = store.thread("t")
        for number in range(_WARM_CALLS):
            thread.save({"number": number})
            thread.load()
        return count_calls(lambda: thread.save({"number": -1})), count_calls(thread.load)


class _State(TypedDict):
    number: int


def langgraph_turn() -> Calls:
    """A turn of a graph of one node, after others."""
    from langgraph.graph import END, START, StateGraph  # noqa: PLC0415 # takes seconds

    from sealpoint_langgraph import SealedSaver  # noqa: PLC0415 # the same

    graph: Any = StateGraph(_State)
    graph.add_node("add", lambda state: {"number": state["number"] + 1})
    graph.add_edge(START, "add")
    graph.add_edge("add", END)
    with _store() as store:
        app = graph.compile(checkpointer=SealedSaver(store))
        config = {"configurable": {"thread_id": "t"}}
        for number in range(_WARM_CALLS):
            app.invoke({"number": number}, config)
        return count_calls(lambda: app.invoke({"number": 0}, config))


# ------------------------------------------------------------------ the report


def _report() -> Iterator[str]:
    total = 0
    for part in parts():
        lines = part_lines(part)
        total += lines.total()
        yield f"{lines.total():8,}  {part.name}"
        yield from (f"{count:14,}  {name}" for name, count in lines.most_common())
    yield f"{total:8,}  lines of code in all parts"
    yield ""
    for part in parts():
        for other, count in sorted(imports_across_walls(part).items()):
            yield f"{count:8,}  imports of {other} in {part.name}"
    yield ""
    for found in sorted((each for part in parts() for each in long_functions(part)), key=_lines):
        yield f"{found.lines:8,}  lines in {found.place}"
    yield ""
    saved, loaded = save_and_load()
    turn = langgraph_turn()
    for name, calls in (("save", saved), ("load", loaded), ("LangGraph turn", turn)):
        yield f"{calls.all:8,}  Python calls of a warm {name}, {calls.ours:,} of them ours"


def _lines(found: LongFunction) -> int:
    return -found.lines


def main() -> None:
    """Print every figure."""
    for line in _report():
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
