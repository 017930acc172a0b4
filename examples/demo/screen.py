# SPDX-License-Identifier: Apache-2.0
"""How the demo talks: scenes, and lines that begin with who speaks. No colour unless a terminal."""

from textwrap import wrap

from rich.console import Console
from rich.text import Text

from sealpoint import SealpointError

COLUMNS = 80
LABEL = 12
STYLES = {"refused": "bold green", "ACCEPTED": "bold red", "hint": "dim", "bank": "yellow"}
console = Console(highlight=False, soft_wrap=True)


def scene(title: str) -> None:
    console.print()
    console.print(Text(f"{title} ".ljust(COLUMNS, "-"), style="bold"))


def say(label: str, text: str) -> None:
    """Print a line, folded under itself."""
    lines = wrap(text, COLUMNS - LABEL, break_on_hyphens=False)
    console.print(Text.assemble((f"  {label:<{LABEL - 2}}", STYLES.get(label, "dim")), lines[0]))
    for line in lines[1:]:
        console.print(Text(" " * LABEL + line))


def tell(text: str) -> None:
    """Print a sentence of the story."""
    for line in wrap(text, COLUMNS, break_on_hyphens=False):
        console.print(Text(line))


def quote(text: str) -> None:
    """Print what a command printed, as it is."""
    for line in text.splitlines():
        console.print(Text(f"  | {line}".rstrip()))


def refused(error: SealpointError) -> None:
    """Print an error as a person sees it."""
    say("refused", f"{error.code}: {error.message}")
    say("hint", error.hint)
