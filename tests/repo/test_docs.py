# SPDX-License-Identifier: Apache-2.0
"""The reference is complete: every public name, error code, limit and verb has its sentence.

What is documented, and how a test finds it:

- a public name or setting: a line in docs/reference that names it as code and holds a sentence;
- an error: its class; `errors.py` of this folder makes errors.md from the classes;
- a limit: a line in limits.md that names it as code and holds a sentence;
- a verb: a section in cli.md whose title names the whole command, with a sentence and an example.
"""

import dataclasses
import functools
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import click
import pytest

import sealpoint
import sealpoint_agent_framework as agent_framework
import sealpoint_langgraph as langgraph
import sealpoint_models as models
from sealpoint import aio, api, audit, cli, errors, ids, limits
from sealpoint.config import Settings
from sealpoint.views import (
    changes,
    conversation,
    documents,
    masking,
    requests,
    tree,
    values,
    words,
)
from sealpoint_agent_framework._framework_types import WORKFLOW_TYPES
from sealpoint_langgraph._framework_types import FRAMEWORK_TYPES
from tests.repo._markdown import Section, holds_sentence, names, sections
from tests.repo._tree import REFERENCE, ROOT
from tests.repo.errors import PAGE, error_classes, page

_MODULES: tuple[ModuleType, ...] = (
    *(sealpoint, agent_framework, aio, api, audit, errors, ids, langgraph, limits, models),
    *(changes, conversation, documents, masking, requests, tree, values, words),
)
_PUBLIC = sorted({(module.__name__, name) for module in _MODULES for name in module.__all__})


def _methods(cls: type) -> list[str]:
    """List the public methods and properties that a class defines."""
    return sorted(
        name
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property | classmethod | staticmethod))
    )


def _verbs(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    """Walk the command line, groups before what they hold."""
    yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in sorted(command.list_commands(context)):
            child = command.get_command(context, name)
            assert child is not None, name
            yield from _verbs(child, (*words, name))


_ERRORS = list(error_classes())
_VERBS = list(_verbs(cli.main, ("sealpoint",)))
_LEAVES = [(words, command) for words, command in _VERBS if not isinstance(command, click.Group)]


@functools.cache
def _reference(page: str) -> str:
    return (REFERENCE / page).read_text(encoding="utf-8")


@functools.cache
def _telling_lines(page: str) -> list[str]:
    """The lines of a page of the reference that hold a sentence."""
    return [line for line in _reference(page).splitlines() if holds_sentence(line)]


def _has_line(page: str, word: str) -> bool:
    """Tell whether one line of a page names a word as code and says something about it."""
    return any(word in line and names(line, word) for line in _telling_lines(page))


def _titled(page: str, word: str) -> Section:
    """Find the one section of a page whose title names a word as code."""
    found = [section for section in sections(_reference(page)) if names(section.title, word)]
    assert len(found) == 1, f"{page}: {len(found)} sections titled `{word}`, expected one"
    return found[0]


def test_public_names_are_in_the_reference() -> None:
    """Every public name has a line in the reference that says what it is."""
    pages = [path.name for path in sorted(REFERENCE.glob("*.md"))]
    missing = [
        f"{module}.{name}"
        for module, name in _PUBLIC
        if not any(_has_line(page, name) for page in pages)
    ]

    assert len(_PUBLIC) > 100
    assert not missing


def test_methods_are_in_the_reference() -> None:
    """Every public method of what users hold has a line in the API reference that explains it."""
    methods = [
        f"{cls}.{name}"
        for cls, kind in (
            *(
                (cls, getattr(sealpoint, cls))
                for cls in ("Registry", "Store", "Thread", "TrustPin")
            ),
            ("ModelFile", models.ModelFile),
        )
        for base in kind.__mro__[:-1]
        for name in _methods(base)
    ]

    assert methods
    assert not [name for name in methods if not _has_line("api.md", name)]


@pytest.mark.parametrize(
    ("page", "allowed"),
    [("langgraph-types.md", FRAMEWORK_TYPES), ("agent-framework-types.md", WORKFLOW_TYPES)],
)
def test_every_type_of_a_framework_is_listed_with_its_reason(page: str, allowed: Any) -> None:
    """The page on types has a row for each that an adapter allows, with its name and its reason."""
    text = _reference(page)
    rows = [line for line in text.splitlines() if line.startswith("| ")]

    for each in allowed:
        end = f".{each.cls.__name__}` | `{each.name}` | {each.reason} |"
        assert any(row.endswith(end) for row in rows), each.name


def test_every_setting_is_in_the_reference() -> None:
    """Every key of config.toml and every environment variable has a line in settings.md."""
    found = [field.name for field in dataclasses.fields(Settings)]

    for name in [*found, *(f"SEALPOINT_{name.upper()}" for name in found)]:
        assert _has_line("settings.md", name), name


def test_public_names_have_docstrings() -> None:
    """Every public class, function and method says what it does where it is defined."""
    silent = [
        f"{module.__name__}: {member}"
        for module in _MODULES
        for name in module.__all__
        for member in _members(getattr(module, name))
        if not inspect.getdoc(member)
    ]

    assert not silent


def _members(value: Any) -> list[Any]:
    """A class and its methods, or a function; of other values nothing."""
    if inspect.isclass(value):
        return [value, *(getattr(value, method) for method in _methods(value))]
    return [value] if callable(value) else []


def test_errors_page_is_made_from_the_classes() -> None:
    """The page of errors is the one that the classes make; `--write` writes it."""
    assert page().splitlines() == PAGE.read_text(encoding="utf-8").splitlines()


def test_every_error_has_its_own_code() -> None:
    """Codes are unique, and every class has its own code and a hint of one sentence or more."""
    codes = [error.code for error in _ERRORS]

    assert len(codes) == len(set(codes))
    assert not [error for error in _ERRORS if "code" not in vars(error)]
    assert not [error for error in _ERRORS if not error.hint.endswith(".") or "\n" in error.hint]


def test_public_errors_are_the_whole_tree() -> None:
    """Every class of the exception tree is public, and nothing else is."""
    assert {error.__name__ for error in _ERRORS} == set(errors.__all__)


def test_limits_are_in_the_reference() -> None:
    """Every limit has a line in the reference that says what it bounds, with its default."""
    lines = _reference("limits.md").splitlines()
    fields = [field.name for field in dataclasses.fields(limits.Limits)]
    defaults = {name: str(getattr(limits.Limits(), name)) for name in fields}
    listed = {
        name
        for name, default in defaults.items()
        for line in lines
        if names(line, name) and default in line.replace(",", "").replace("_", "")
    }

    assert not [name for name in fields if not _has_line("limits.md", name)]
    assert not set(fields) - listed


def test_verbs_are_in_the_reference() -> None:
    """Every verb has a section with a sentence and an example that names it."""
    found = {words: _titled("cli.md", words) for words, _ in _LEAVES}

    assert found
    assert not [words for words, section in found.items() if not holds_sentence(section.prose)]
    assert not [
        words
        for words, section in found.items()
        if not any(words in block.text for block in section.blocks)
    ]


def test_verbs_and_their_options_have_help() -> None:
    """Every verb, group and option says what it does, and the reference names every option."""
    options = [
        (f"{words} {option.opts[0]}", option)
        for words, command in _VERBS
        for option in command.params
        if isinstance(option, click.Option)
    ]

    assert not [words for words, command in _VERBS if not command.help]
    assert not [name for name, option in options if not option.help]
    assert not [name for name, option in options if not _names_option(*option.opts)]


@functools.cache
def _names_option(*spellings: str) -> bool:
    return any(names(_reference("cli.md"), each) for each in spellings)


def test_guarantees_say_whether_they_hold() -> None:
    """Each of the nine guarantees of the threat model is marked as holding now or planned."""
    text = (ROOT / "docs" / "security" / "threat-model.md").read_text(encoding="utf-8")
    titled = [part for part in sections(text) if re.match(r"G\d+\. ", part.title)]
    prose = {part.title.partition(". ")[0]: part.prose.strip() for part in titled}
    said = ("**Holds now", "**Planned", "**Partly")

    assert len(titled) == len(prose)
    assert set(prose) == {f"G{number}" for number in range(1, 10)}
    assert not [name for name, text in prose.items() if not text.startswith(said)]
