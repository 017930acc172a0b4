# SPDX-License-Identifier: Apache-2.0
"""The hook for pre-commit and the guide for CI say what the command does."""

import re

import click
from ruamel.yaml import YAML

from sealpoint.cli import main
from sealpoint.scan._formats import EXPECTED, MODEL_SUFFIXES
from tests.repo._markdown import blocks
from tests.repo._tree import ROOT

_HOOK = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]
_NOT_TAKEN = {".dat", ".data", ".model", ".mdl", ".p", ".z"}
"""Endings that other files of a repository have, too."""
_GUIDE = (ROOT / "docs" / "guides" / "scan-in-ci.md").read_text(encoding="utf-8")


def test_the_hook_calls_a_verb_that_is_there() -> None:
    """The entry of the hook is the command, with a verb of it."""
    program, verb = _HOOK["entry"].split()

    assert program == "sealpoint"
    assert main.get_command(click.Context(main), verb) is not None


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
    assert set(re.findall(r"--[a-z]+", _GUIDE)) <= options
    assert len(found) == 3
