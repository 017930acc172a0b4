# SPDX-License-Identifier: Apache-2.0
"""The started program has the name that it would have as a module."""

import runpy
import sys
from pathlib import Path

import pytest

from sealpoint.config import imported_name

_PROGRAM = """
from sealpoint.config import imported_name


def function(): ...


name = imported_name(function.__module__)
"""


def test_an_imported_module_keeps_its_name() -> None:
    """Only the started program has another."""
    assert imported_name("sealpoint.config") == "sealpoint.config"
    assert imported_name("main") == "main"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with programs, where an import looks first."""
    (tmp_path / "sp_shop").mkdir()
    for file in ("sp_agent.py", "sp_shop/__init__.py", "sp_shop/__main__.py", "sp_shop/tools.py"):
        (tmp_path / file).write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("file", "name"), [("sp_agent.py", "sp_agent"), ("sp_shop/tools.py", "tools")]
)
def test_a_program_that_is_started_as_a_file_is_named_by_it(
    file: str, name: str, path: Path
) -> None:
    """`python sp_agent.py` is the module `sp_agent`."""
    assert runpy.run_path(str(path / file), run_name="__main__")["name"] == name


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("module", "name"),
    [("sp_agent", "sp_agent"), ("sp_shop.tools", "sp_shop.tools"), ("sp_shop", "sp_shop.__main__")],
)
def test_a_program_that_is_started_by_its_name_keeps_it(module: str, name: str) -> None:
    """`python -m sp_shop.tools` is the module `sp_shop.tools`."""
    found = runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.modules.pop("sp_shop", None)

    assert found["name"] == name


def test_a_program_without_a_file_stays_main(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interactive session has no other name."""
    monkeypatch.setitem(sys.modules, "__main__", type(sys)("__main__"))

    assert imported_name("__main__") == "__main__"
