# SPDX-License-Identifier: Apache-2.0
"""The layers of the core and the walls between the parts hold, and their contracts bite."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo._tree import PARTS, ROOT

_CONTRACT = ".importlinter"
_LAYERS = [
    "(__main__)",
    "cli",
    "views",
    "adapters",
    "aio",
    "api",
    "config",
    "gate | audit",
    "store",
    "ledger | storage | anchor",
    "codec | signing | world",
    "ids | disk | _parts",
    "errors | limits | durations | pickled_types",
]
_NEEDED = ("tests/__init__.py", "tests/repo/part_contract.py", "docs/reference/parts.md", _CONTRACT)


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the tree at `root`, whatever is installed."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    sources = [str(root / "packages" / name / "src") for name in PARTS]
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--config", str(root / _CONTRACT)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sources, str(root)])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy sources and contracts to a place where they may be damaged."""
    for name in PARTS:
        source = Path("packages") / name / "src"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / source, tmp_path / source, ignore=ignored)
    for file in _NEEDED:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def test_layers_and_walls_hold() -> None:
    """Import-linter finds nothing in the tree."""
    result = _lint(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


def test_contract_covers_every_module_of_the_core_and_every_part() -> None:
    """The layers of the core are those of the design, and no import is excused."""
    parser = configparser.ConfigParser()
    parser.read_string((ROOT / _CONTRACT).read_text(encoding="utf-8"))
    layers = parser["importlinter:contract:layers"]

    assert parser["importlinter"]["root_packages"].split() == sorted(PARTS.values())
    assert layers["containers"].split() == ["sealpoint"]
    assert layers["exhaustive"] == "true"
    assert layers["layers"].strip().splitlines() == _LAYERS
    for name in parser.sections():
        assert "ignore_imports" not in parser[name]
        assert "exhaustive_ignores" not in parser[name]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sealpoint/errors.py", "import sealpoint.ids"),
        ("sealpoint/errors.py", "import sealpoint.limits"),
        ("sealpoint/ids.py", "from sealpoint.codec import Registry"),
        ("sealpoint/codec/__init__.py", "import sealpoint.cli"),
        ("sealpoint/api/__init__.py", "import sealpoint_console"),
        ("sealpoint_langgraph/__init__.py", "import sealpoint_models"),
        ("sealpoint_agent_framework/__init__.py", "import sealpoint_console"),
        ("sealpoint_langgraph/__init__.py", "from sealpoint.store import _thread_writer"),
        ("sealpoint_models/__init__.py", "import sealpoint.aio"),
    ],
)
def test_forbidden_import_is_caught(copy: Path, module: str, line: str) -> None:
    """An import that points up, across a wall, or at what the contract for parts leaves out."""
    top = module.partition("/")[0]
    damaged = copy / "packages" / top.replace("_", "-") / "src" / module
    with damaged.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")

    result = _lint(copy)

    assert result.returncode == 1
    assert "BROKEN" in result.stdout


def test_module_without_a_layer_is_caught(copy: Path) -> None:
    """A new top-level module fails the contract until it has its place in it."""
    new = copy / "packages" / "sealpoint" / "src" / "sealpoint" / "extra.py"
    new.write_text('"""Nowhere."""\n', encoding="utf-8")

    result = _lint(copy)

    assert result.returncode == 1
    assert "extra" in result.stdout
