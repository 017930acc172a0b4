# SPDX-License-Identifier: Apache-2.0
"""The examples are short and work."""

import os
from pathlib import Path

import pytest

from tests.repo._tree import ROOT, shown
from tests.warm import run_command

_EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_EXAMPLE_LINES_MAX = 79
_APPLICATION_LINES_MAX = 150
_APPLICATIONS = ("08_fastapi.py",)
_COLUMNS_MAX = 80
_SECONDS_MAX = 120

_every_example = pytest.mark.parametrize("path", _EXAMPLES, ids=shown)


def test_there_are_examples() -> None:
    """The examples are numbered for reading; the demos are a folder, tested in tests/stories."""
    first = ["01_quickstart.py", "02_langgraph.py", "03_agent_framework.py"]
    assert [path.name for path in _EXAMPLES][:3] == first


@_every_example
def test_example_is_short(path: Path) -> None:
    """An example has fewer than 80 lines, and a whole application at most 150."""
    lines_max = _APPLICATION_LINES_MAX if path.name in _APPLICATIONS else _EXAMPLE_LINES_MAX
    assert len(path.read_text(encoding="utf-8").splitlines()) <= lines_max


@_every_example
def test_example_runs(path: Path, tmp_path: Path) -> None:
    """An example exits with status 0, says something in 80 columns, and warns about nothing."""
    words = ["python", str(path)]
    result = run_command(words, tmp_path, dict(os.environ), _SECONDS_MAX, apart=True)

    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert not [line for line in result.stdout.splitlines() if len(line) > _COLUMNS_MAX]
