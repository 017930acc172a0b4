# SPDX-License-Identifier: Apache-2.0
"""Messages and hints can be understood and followed, as far as a program can tell."""

import re
from collections.abc import Iterator

import click

from sealpoint import errors
from sealpoint.cli import main
from tests.cli.machine import verbs
from tests.repo.messages import all_messages

_VERBS = {" ".join(words): command for words, command in verbs(main)}

# What an installed package does not have.
_FILE_OF_THE_REPOSITORY = re.compile(r"\b(?:docs|tests|examples|benchmarks|fuzz)/|\w\.md\b")

# "found another" and the like, with nothing that says what was found.
_NOTHING_FOUND = re.compile(
    r"found (?:(?:an)?others?|none|more|neither|otherwise|something else|other bytes|the same)"
    r"(?:$|[,;.(])"
)


def _hints() -> Iterator[tuple[str, str]]:
    """Every hint with its place, those of classes first."""
    for name in errors.__all__:
        yield f"errors.{name}", getattr(errors, name).hint
    for message in all_messages():
        if message.own_hint:
            yield from ((str(message), hint) for hint in message.hints)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Every command in a text: its words, and what follows up to the end of its sentence."""
    for found in re.finditer(r"\bsealpoint ((?:[a-z][a-z-]*(?: |\b))+)([^.;]*)", text):
        words = found[1].split()
        rest = found[2].split("sealpoint ")[0]
        for length in range(min(2, len(words)), 0, -1):
            verb = " ".join(words[:length])
            if verb in _VERBS:
                yield verb, rest
                break
        else:
            yield words[0], rest


def test_the_list_has_every_error_that_is_raised() -> None:
    """Every class of the tree is raised somewhere, or is the parent of one that is."""
    raised = {message.error for message in all_messages()}
    silent = [
        name
        for name in errors.__all__
        if not any(issubclass(each, getattr(errors, name)) for each in raised)
    ]

    assert not silent
    assert len(all_messages()) > 800


def test_no_hint_names_a_file_that_is_not_installed() -> None:
    """A hint is for somebody who has the package, and not its repository."""
    found = [(place, hint) for place, hint in _hints() if _FILE_OF_THE_REPOSITORY.search(hint)]

    assert not found


def test_every_command_in_a_hint_exists() -> None:
    """`sealpoint VERB` in a hint is a verb, and the options after it are its own."""
    wrong = []
    for place, hint in _hints():
        for verb, rest in _commands(hint):
            command = _VERBS.get(verb)
            if command is None:
                wrong.append(f"{place}: no verb {verb!r}")
                continue
            known = {option for each in command.params for option in each.opts}
            wrong += [
                f"{place}: {verb} has no {option}"
                for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)
                if option not in known and not isinstance(command, click.Group)
            ]

    assert not wrong


def test_a_message_says_what_was_found() -> None:
    """Where something was found instead of what was expected, the message says what it was."""
    found = [str(each) for each in all_messages() if any(map(_NOTHING_FOUND.search, each.texts))]

    assert not found


def test_a_planted_fault_is_caught() -> None:
    """The patterns find what they look for, and leave plain sentences alone."""
    assert _FILE_OF_THE_REPOSITORY.search("as docs/models/from-torch-load.md says")
    assert _NOTHING_FOUND.search("pin: expected the one spelling of it, found another")
    assert not _NOTHING_FOUND.search("store: expected 3 entries, found none of the newer two")
    assert dict(_commands("Run sealpoint keys add NAME --role ROLE; then go on.")) == {
        "keys add": "NAME --role ROLE"
    }
