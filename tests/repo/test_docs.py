# SPDX-License-Identifier: Apache-2.0
"""The reference is complete: every public name, error code, limit and verb has its sentence.

What is documented, and how a test finds it:

- a public name or setting: a line in docs/reference that names it as code and holds a sentence;
- an error: its class; `errors.py` of this folder makes errors.md from the classes;
- a limit: a line in limits.md that names it as code and holds a sentence;
- a verb: a section in cli.md whose title names the whole command, with a sentence and an example.
"""

import dataclasses
import inspect
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


def _reference(page: str) -> str:
    return (REFERENCE / page).read_text(encoding="utf-8")


def _has_line(text: str, word: str) -> bool:
    """Tell whether one line of a text names a word as code and says something about it."""
    return any(names(line, word) and holds_sentence(line) for line in text.splitlines())


def _titled(page: str, word: str) -> Section:
    """Find the one section of a page whose title names a word as code."""
    found = [section for section in sections(_reference(page)) if names(section.title, word)]
    assert len(found) == 1, f"{page}: {len(found)} sections titled `{word}`, expected one"
    return found[0]


@pytest.mark.parametrize(("module", "name"), _PUBLIC)
def test_public_name_is_in_the_reference(module: str, name: str) -> None:
    """Every public name has a line in the reference that says what it is."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.md"))]

    assert any(_has_line(page, name) for page in pages), f"{module}.{name}"


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
def test_method_is_in_the_reference(name: str) -> None:
    """Every public method of what users hold has a line in the API reference that explains it."""
    assert _has_line(_reference("api.md"), name)


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
        assert _has_line(_reference("settings.md"), name), name


@pytest.mark.parametrize(("module", "name"), _PUBLIC)
def test_public_name_has_a_docstring(module: str, name: str) -> None:
    """Every public class, function and method says what it does where it is defined."""
    holder = next(found for found in _MODULES if found.__name__ == module)
    value = getattr(holder, name)
    if inspect.isclass(value):
        members = [value, *(getattr(value, method) for method in _methods(value))]
    elif callable(value):
        members = [value]
    else:
        members = []

    assert not [member for member in members if not inspect.getdoc(member)]


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


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(limits.Limits)])
def test_limit_is_in_the_reference(field: str) -> None:
    """Every limit has a line in the reference that says what it bounds."""
    assert _has_line(_reference("limits.md"), field)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(limits.Limits)])
def test_limit_is_listed_with_its_default(field: str) -> None:
    """The line of a limit in the reference gives the default that the code has."""
    default = getattr(limits.Limits(), field)
    lines = [line for line in _reference("limits.md").splitlines() if names(line, field)]

    assert any(str(default) in line.replace(",", "").replace("_", "") for line in lines), default


@pytest.mark.parametrize("words", [words for words, _ in _LEAVES])
def test_verb_is_in_the_reference(words: str) -> None:
    """Every verb has a section with a sentence and an example that names it."""
    section = _titled("cli.md", words)

    assert holds_sentence(section.prose)
    assert any(words in block.text for block in section.blocks)


@pytest.mark.parametrize(("words", "command"), _VERBS, ids=[words for words, _ in _VERBS])
def test_verb_and_its_options_have_help(words: str, command: click.Command) -> None:
    """Every verb, group and option says what it does, and the reference names every option."""
    assert command.help, words
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{words} {parameter.opts[0]}"
            assert any(names(_reference("cli.md"), option) for option in parameter.opts)


@pytest.mark.parametrize("number", range(1, 10))
def test_guarantee_says_whether_it_holds(number: int) -> None:
    """Each of the nine guarantees of the threat model is marked as holding now or planned."""
    text = (ROOT / "docs" / "security" / "threat-model.md").read_text(encoding="utf-8")
    found = [part for part in sections(text) if part.title.startswith(f"G{number}. ")]

    assert len(found) == 1
    assert found[0].prose.strip().startswith(("**Holds now", "**Planned", "**Partly"))
