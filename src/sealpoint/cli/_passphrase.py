# SPDX-License-Identifier: Apache-2.0
"""Passphrases on the command line: from the environment, or asked for on a terminal.

No option takes one: what stands on a command line is in the history of the shell and in the list
of processes. What is typed is not shown, and a new passphrase is typed twice.
"""

from collections.abc import Callable

import click

from sealpoint.cli._terminal import ask_hidden, can_ask
from sealpoint.config import environment_passphrase, read_passphrase_file
from sealpoint.errors import KeyLocked

__all__ = [
    "NEW_FILE_OPTION",
    "asked_passphrase",
    "first_passphrase",
    "next_passphrase",
    "passphrase_option",
]

NEW_FILE_OPTION = "--new-passphrase-file"
_VARIABLES = "set SEALPOINT_PASSPHRASE or SEALPOINT_PASSPHRASE_FILE"

passphrase_option = click.option(
    "--passphrase",
    "encrypt",
    is_flag=True,
    help="Encrypt under a passphrase, which the environment names or a terminal is asked for.",
)
"""`--passphrase`, on every verb that makes keys."""


def asked_passphrase(name: str) -> str:
    """The passphrase of a key that is there.

    Raises:
        KeyLocked: The environment names none, and there is no terminal to ask on.
    """
    found = environment_passphrase()
    return _ask("Passphrase of", f"key {name!r}", _VARIABLES) if found is None else found


def first_passphrase(thing: str) -> Callable[[str], str]:
    """What gives the passphrase of new keys: one for all that are made, asked for once.

    Args:
        thing: What is made, for the question.
    """
    chosen: list[str] = []

    def choose(_: str) -> str:
        if not chosen:
            found = environment_passphrase()
            chosen.append(_ask_new(thing, _VARIABLES) if found is None else found)
        return chosen[0]

    return choose


def next_passphrase(path: str | None) -> Callable[[str], str]:
    """What gives the next passphrase of a key: from a file, or asked for.

    Never from the environment, which names the passphrase that the key has now.
    """

    def choose(name: str) -> str:
        if path is not None:
            return read_passphrase_file(path, NEW_FILE_OPTION)
        return _ask_new(f"key {name!r}", f"give {NEW_FILE_OPTION}")

    return choose


def _ask_new(thing: str, other_way: str) -> str:
    return _ask("New passphrase of", thing, other_way, again="The same again")


def _ask(question: str, thing: str, other_way: str, *, again: str | None = None) -> str:
    if not can_ask():
        raise KeyLocked(
            f"{thing}: expected a passphrase, or a terminal to ask for it on, found neither",
            hint=f"Run it on a terminal, or {other_way}.",
        )
    return ask_hidden(f"{question} {thing}", again=again)
