# SPDX-License-Identifier: Apache-2.0
"""The hook for pre-commit and the guide for CI say what the command does."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from sealpoint.cli import main
from sealpoint_models.cli._scan import REFUSED_STATUS
from sealpoint_models.scan._format_detection import EXPECTED, MODEL_SUFFIXES
from tests.repo._markdown import blocks
from tests.repo._tree import ROOT
from tests.scan.assembler import PAYLOAD, pickle

_HOOK = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
_NOT_TAKEN = {".dat", ".data", ".model", ".mdl", ".p", ".z"}
"""Endings that other files of a repository have, too."""
_GUIDE = (ROOT / "docs" / "guides" / "scan-in-ci.md").read_text(encoding="utf-8")


def test_the_hook_calls_a_verb_that_is_there() -> None:
    """The entry of the hook is the command, with a verb of it, and then only names."""
    program, verb, _ = _HOOK["entry"].split()

    assert program == "sealpoint"
    assert main.get_command(click.Context(main), verb) is not None


@pytest.mark.parametrize("name", ["--exclude=m.pkl", "--sarif=m.pkl", "-h.pkl"])
def test_a_file_that_is_called_as_an_option_is_scanned(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pre-commit appends names as they are: none of them is taken for an option of the command."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(PAYLOAD)
    Path("good.pkl").write_bytes(pickle(b"}"))
    result = CliRunner().invoke(main, [*_HOOK["entry"].split()[1:], "good.pkl", name])

    assert result.exit_code == REFUSED_STATUS
    assert f"dangerous  {name} " in result.stdout
    assert len(list(tmp_path.iterdir())) == 2


def test_the_hook_takes_files_of_models_and_leaves_others() -> None:
    """Names of model files in small and large letters match, and source files do not."""
    takes = re.compile(_HOOK["files"]).search

    assert all(takes(f"a/m{suffix}") for suffix in (*EXPECTED, ".pt", ".CKPT", ".tar.gz"))
    assert not any(takes(f"m{suffix}") for suffix in _NOT_TAKEN)
    assert all(takes(f"m{suffix}") for suffix in MODEL_SUFFIXES - _NOT_TAKEN)
    assert not any(takes(name) for name in ("a.py", "README.md", "notes.txt", "pt/a.json"))


def test_the_guide_is_yaml_that_names_the_hook_and_the_options() -> None:
    """Every block of the guide is YAML; the hook has its id there, and each option is one."""
    found = [block for block in blocks(_GUIDE) if block.language == "yaml"]
    for block in found:
        assert YAML(typ="safe").load(block.text)
    command = main.get_command(click.Context(main), "scan")
    assert command is not None
    options = {name for each in command.params for name in each.opts}

    assert f"- id: {_HOOK['id']}" in _GUIDE
    assert set(re.findall(r"--[a-z]+(?:-[a-z]+)*", _GUIDE)) <= options
    assert len(found) == 3
