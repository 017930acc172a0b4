# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks.house` counts, and the page on architecture names real files."""

import ast
import re

from benchmarks import house
from tests.repo._tree import ROOT

_FILE = re.compile(r"`((?:\w+/)*_?\w+\.py)`")


def test_code_is_what_is_left_without_documentation() -> None:
    """Docstrings, comments and blank lines are not code."""
    text = '"""Doc."""\n\n# why\ndef f():\n    """Doc\n    again."""\n    return 1\n'

    assert house.code_lines(text, ast.parse(text)) == 2


def test_every_part_is_counted() -> None:
    """Each distribution has lines, and imports none of the others but as it declares."""
    counted = {part.name: house.part_lines(part).total() for part in house.parts()}

    assert len(counted) == 8
    assert min(counted.values()) > 100
    assert not house.imports_across_walls(house.parts()[0])


def test_calls_are_counted() -> None:
    """A call of a Python function counts, and those that it makes in turn."""

    def inner() -> None:
        pass

    def outer() -> None:
        inner()
        inner()

    assert house.count_calls(outer) == house.Calls(3, 0)


def test_the_architecture_names_files_that_exist() -> None:
    """Every source file that the page on architecture names is there."""
    text = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
    here = {f"/{path.relative_to(ROOT)}" for path in ROOT.glob("packages/*/src/**/*.py")}
    named = _FILE.findall(text)

    assert named
    assert not {name for name in named if not any(path.endswith(f"/{name}") for path in here)}
