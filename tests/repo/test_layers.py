# SPDX-License-Identifier: Apache-2.0
"""The layers of the package hold, and the contract that says so bites."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo._tree import ROOT, SOURCE

_CONTRACT = ".importlinter"
_LAYERS = [
    "(__main__)",
    "cli",
    "console | testing",
    "views",
    "(adapters) | (models)",
    "aio",
    "api",
    "config",
    "(gate) | audit",
    "store",
    "ledger | storage | anchor",
    "(scan)",
    "codec | signing | (world)",
    "ids | disk | _parts | _postgres",
    "_postgres_url",
    "errors | limits | pickled_types",
]


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the tree at `root`, whatever is installed."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--config", str(root / _CONTRACT)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy sources and contract to a place where they may be damaged."""
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / _CONTRACT, tmp_path)
    return tmp_path


def test_layers_hold() -> None:
    """Import-linter finds nothing in the tree."""
    result = _lint(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


def test_contract_is_one_exhaustive_list_of_layers() -> None:
    """There is one contract, it covers every module, and it lists the layers of the design."""
    parser = configparser.ConfigParser()
    parser.read_string((ROOT / _CONTRACT).read_text(encoding="utf-8"))
    contracts = [name for name in parser.sections() if name.startswith("importlinter:contract:")]

    assert len(contracts) == 1
    contract = parser[contracts[0]]
    assert contract["type"] == "layers"
    assert contract["containers"].split() == ["sealpoint"]
    assert contract["exhaustive"] == "true"
    assert "ignore_imports" not in contract
    assert "exhaustive_ignores" not in contract
    assert contract["layers"].strip().splitlines() == _LAYERS


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("errors.py", "import sealpoint.ids"),
        ("errors.py", "import sealpoint.limits"),
        ("ids.py", "from sealpoint.codec import Registry"),
        ("codec/__init__.py", "import sealpoint.cli"),
    ],
)
def test_forbidden_import_is_caught(copy: Path, module: str, line: str) -> None:
    """An import that points up, or sideways where siblings are apart, fails the contract."""
    damaged = copy / "src" / "sealpoint" / module
    with damaged.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")

    result = _lint(copy)

    assert result.returncode == 1
    assert "BROKEN" in result.stdout


def test_module_without_a_layer_is_caught(copy: Path) -> None:
    """A new top-level module fails the contract until it has its place in it."""
    (copy / "src" / "sealpoint" / "extra.py").write_text('"""Nowhere."""\n', encoding="utf-8")

    result = _lint(copy)

    assert result.returncode == 1
    assert "extra" in result.stdout
