# SPDX-License-Identifier: Apache-2.0
"""Code that hides beside the sources of a package: what an import would load is other code."""

import py_compile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from sealpoint.config import code_of
from sealpoint.world import Code


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a package that an import finds."""
    made = tmp_path / "sp_hidden"
    made.mkdir()
    (made / "__init__.py").write_text("")
    (made / "tools.py").write_text("def run(x): return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return made


def _code() -> Code:
    return code_of(modules=["sp_hidden"])


@pytest.mark.parametrize(
    "name",
    [
        "plugin.pyc",
        "__pycache__/plugin.pyc",
        *(f"tools{suffix}" for suffix in EXTENSION_SUFFIXES),
    ],
)
def test_a_compiled_module_is_other_code(package: Path, name: str) -> None:
    """A module without source, or one that hides the source beside it, is told by its bytes."""
    before = _code()
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_bytes(b"one")
    added = _code()
    (package / name).write_bytes(b"two")

    assert len({before.modules["sp_hidden"], added.modules["sp_hidden"]}) == 2
    assert _code() not in (before, added)


def test_what_python_caches_is_no_other_code(package: Path) -> None:
    """A package that ran once is the package that it was."""
    before = _code()
    py_compile.compile(str(package / "tools.py"))

    assert list((package / "__pycache__").iterdir())
    assert _code() == before
