# SPDX-License-Identifier: Apache-2.0
"""What people see: the only file that prints.

Rules: results go to standard output, errors and hints to standard error; `--json` prints one
JSON document and nothing else; text that comes from data never brings control characters along.
"""

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sealpoint.errors import SealpointError

__all__ = ["print_error", "print_json", "print_line", "print_table", "visible"]


def visible(text: str) -> str:
    """The text with every character that does not print made visible."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def print_line(text: str) -> None:
    """Print one line of a result."""
    click.echo(visible(text))


def print_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=True))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that never cuts a cell off, without spaces at the end of lines."""
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(visible(cell), overflow="fold") for cell in row))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def print_error(error: SealpointError, *, as_json: bool) -> None:
    """Print an error to standard error: message, then hint; or its JSON form."""
    if as_json:
        click.echo(json.dumps({"error": error.as_dict()}, indent=2), err=True)
        return
    click.echo(f"sealpoint: {visible(str(error))} [{error.code}]", err=True)
    click.echo(f"hint: {visible(error.hint)}", err=True)
