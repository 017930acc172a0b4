# SPDX-License-Identifier: Apache-2.0
"""The help of the command: what it loads, what it lists, and that it fits a terminal."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from sealpoint.cli import main
from sealpoint.cli._app import VERBS
from tests.cli.machine import Machine, verbs

_COLUMNS = 80
_LOADED = "import sys; print(*sorted(sys.modules), sep=chr(10), file=sys.stderr)"
_COMMAND = """
import sys
from sealpoint.cli import main
main(sys.argv[1:], standalone_mode=False, prog_name="sealpoint")
"""


def _modules(program: str, *arguments: str) -> set[str]:
    """The modules that a program has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{_LOADED}", *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stderr.split())


def _help(*words: str) -> str:
    result = CliRunner().invoke(main, [*words, "-h"], env={"COLUMNS": str(_COLUMNS)})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_importing_the_package_loads_no_other_module_of_it() -> None:
    """A worker pays for what it uses: names are loaded on their first use."""
    loaded = {name for name in _modules("import sealpoint") if name.startswith("sealpoint")}

    assert loaded == {"sealpoint"}


def test_opening_a_store_loads_neither_asyncio_nor_the_encryption_of_keys() -> None:
    """What takes long to load and is not needed stays out."""
    loaded = _modules("import sealpoint; sealpoint.open_store('memory:').close()")

    assert "sealpoint.store" in loaded
    assert not loaded & {
        *("asyncio", "click", "cryptography", "rich", "importlib.metadata"),
        *("sealpoint.aio", "sealpoint.cli", "sealpoint_models", "sealpoint_langgraph"),
    }


def test_the_help_loads_no_verb_and_nothing_of_the_store() -> None:
    """`sealpoint --help` reads a table."""
    loaded = _modules(_COMMAND, "--help")

    assert {name for name in loaded if name.startswith("sealpoint.")} == {
        *("sealpoint.cli", "sealpoint.cli._app", "sealpoint.cli.options", "sealpoint.errors"),
        *("sealpoint._parts", "sealpoint.durations"),
    }
    assert not loaded & {"rich", "msgspec", "nacl", "asyncio"}


def test_a_verb_loads_its_own_file_and_no_other_verb(machine: Machine) -> None:
    """`sealpoint threads` needs neither models nor the verbs that change keys."""
    loaded = _modules(_COMMAND, "threads", *machine.options)

    assert "sealpoint.cli._threads" in loaded
    assert not loaded & {
        *("asyncio", "cryptography", "importlib.metadata", "blake3", "torch"),
        *("sealpoint.aio", "sealpoint_models", "sealpoint_langgraph", "sealpoint_models.scan"),
        *("sealpoint.cli._keys", "sealpoint_models.cli._model", "sealpoint.cli._rollout"),
        *("sealpoint.api._admin", "sealpoint.api._offline_requests", "rich"),
    }


@pytest.mark.parametrize("package", ["sealpoint", "sealpoint.api"])
def test_a_name_that_is_loaded_late_is_the_one_that_type_checkers_see(package: str) -> None:
    """Each comes from where the package says that it does, and others are refused."""
    module = import_module(package)
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    said = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sealpoint")
        for alias in node.names
    }

    assert said.keys() | {"__version__"} >= set(module.__all__)
    for name, home in said.items():
        expected = getattr(import_module(home or ""), name)
        assert getattr(module, name) is expected, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


def test_each_verb_has_one_line_in_the_help() -> None:
    """No line of the table is folded or cut, and common options are explained here alone."""
    text = _help()

    for name, (_, words) in ((name, row) for rows in VERBS.values() for name, row in rows.items()):
        assert f"  {name:<14}  {words}\n" in text
    assert "SEALPOINT_STORE" in text


@pytest.mark.parametrize("words", [words for words, _ in verbs()], ids=" ".join)
def test_help_fits_eighty_columns_and_cuts_nothing(words: tuple[str, ...]) -> None:
    """Whoever reads the help of a verb reads whole sentences."""
    text = _help(*words)

    assert text.startswith("Usage: ")
    assert max(map(len, text.splitlines())) <= _COLUMNS
    assert "..." not in text.replace("]...", "").replace("PATH...", "").replace("ARGS", "")
    assert "\n  --state-dir" not in text.partition("Common options")[0]
