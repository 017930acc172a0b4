# SPDX-License-Identifier: Apache-2.0
"""The verbs of all parts."""

import click

from sealpoint.cli import main
from sealpoint.cli._app import VERBS


def test_the_verbs_of_the_help_are_there() -> None:
    """Every row of the table leads to a verb of that name."""
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}

    assert {name: None if verb is None else verb.name for name, verb in found.items()} == {
        name: name for rows in VERBS.values() for name in rows
    }
    assert main.get_command(context, "nothing") is None
