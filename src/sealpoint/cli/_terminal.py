# SPDX-License-Identifier: Apache-2.0
"""What people see: the only file that prints.

Rules: results go to standard output, errors, notes and progress to standard error; `--json` prints
one JSON document and nothing else; text that comes from data never brings control characters
along, and letters from right to left turn nothing around them; a colour never says anything that
the words do not. On a terminal long lines are folded with their indentation; into a file or a pipe
they are written as they are.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from sealpoint.errors import SealpointError
from sealpoint.world import isolate

__all__ = [
    "Line",
    "Styled",
    "ask",
    "ask_hidden",
    "can_ask",
    "can_show",
    "columns",
    "confirm",
    "print_code",
    "print_document",
    "print_error",
    "print_fields",
    "print_json",
    "print_line",
    "print_lines",
    "print_note",
    "print_table",
    "print_text",
    "visible",
    "working",
]

_STYLES = {
    "": "",
    "bad": "bold red",
    "good": "green",
    "heading": "bold",
    "quiet": "dim",
    "warning": "yellow",
}
_COLUMNS_LEAST = 20
_PATIENCE_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with what it is for people: `bad`, `good`, `heading`, `quiet` or `warning`."""

    text: str
    style: str = ""


Span = str | Styled
Line = Span | Sequence[Span]


def visible(text: str) -> str:
    """The text with every character that does not print made visible."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def print_line(line: Line, *, hang: int = 0) -> None:
    """Print one line of a result.

    Args:
        line: Text, or pieces of it.
        hang: By how many columns what is folded stands further in than the line itself.
    """
    print_lines([line], hang=hang)


def print_lines(lines: Iterable[Line], *, hang: int = 2) -> None:
    """Print lines of a result; leading spaces are kept when they are folded."""
    _print(lines, hang=hang, err=False)


def print_code(lines: Iterable[str]) -> None:
    """Print lines that are to be copied: never folded."""
    for line in lines:
        click.echo(_encodable(visible(line), err=False))


def print_note(line: Line) -> None:
    """Say something beside the result, on standard error."""
    _print([line], hang=2, err=True)


def print_fields(fields: Sequence[tuple[str, Span]]) -> None:
    """Print names and values, one pair a line, never folded: a value may be copied."""
    width = max((len(name) for name, _ in fields), default=0) + 2
    lines = [(Styled(f"{name:<{width}}", "quiet"), value) for name, value in fields]
    _print(lines, hang=None, err=False)


def print_text(text: str) -> None:
    """Print a document that another program will read, exactly as it is."""
    click.echo(text, nl=False)


def print_document(data: bytes) -> None:
    """Print a file, byte by byte; on a terminal, with what does not print made visible."""
    if can_show():
        print_code(data.decode(errors="surrogateescape").removesuffix("\n").split("\n"))
    else:
        click.echo(data, nl=False)


def print_json(document: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=True))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Span]]) -> None:
    """Print a table that never cuts a cell off, without spaces at the end of lines."""
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(_text([cell], overflow="fold") for cell in row))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(_encodable(line.rstrip(), err=False))


def print_error(error: SealpointError, *, as_json: bool) -> None:
    """Print an error to standard error: message, then hint; or its JSON form."""
    if as_json:
        click.echo(json.dumps({"error": error.as_dict()}, indent=2), err=True)
        return
    first, *code = error.hint.split("\n")
    _print(
        [
            (Styled("sealpoint: ", "bad"), str(error), Styled(f" [{error.code}]", "quiet")),
            (Styled("hint: ", "heading"), first),
        ],
        hang=2,
        err=True,
    )
    # Lines to be copied: never folded.
    _print(code, hang=None, err=True)


def columns() -> int:
    """How wide the output is."""
    return Console().width


def can_ask() -> bool:
    """Whether there is somebody at a terminal to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def can_show() -> bool:
    """Whether a result is printed on a terminal, where somebody may read it."""
    return sys.stdout.isatty()


def ask(question: str) -> str:
    """Ask for a word; nothing is a word too."""
    shown = _encodable(visible(question), err=True)
    answer: str = click.prompt(shown, default="", show_default=False, err=True)
    return answer.strip()


def confirm(question: str) -> bool:
    """Ask a question that is answered with yes or no; no answer is no."""
    return click.confirm(_encodable(visible(question), err=True), default=False, err=True)


def ask_hidden(question: str, *, again: str | None = None) -> str:
    """Ask for something that nobody may see; what is typed is not shown.

    Args:
        question: What to ask.
        again: What to ask a second time, until both answers are the same; None asks once.
    """
    for bar in _bars:
        bar.hide()
    answer: str = click.prompt(
        _encodable(visible(question), err=True),
        hide_input=True,
        confirmation_prompt=False if again is None else again,
        err=True,
    )
    for bar in _bars:
        bar.progress.start()
    return answer


@dataclass(frozen=True, slots=True)
class _Bar:
    """A progress bar, and the timer that shows it if it takes a while."""

    progress: Progress
    timer: threading.Timer

    def hide(self) -> None:
        # The timer has either never fired or is done when the bar is taken away.
        self.timer.cancel()
        self.timer.join()
        self.progress.stop()


_bars: list[_Bar] = []  # of the work that goes on; a question takes them away while it is asked


@contextmanager
def working(description: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show that something goes on, on a terminal and only if it takes a while.

    Yields:
        A function to be told how much is done, of how much, and what to say about it.
    """
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda _done, _total, _text: None
        return
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[counted]}", markup=False),
        console=console,
        transient=True,
    )
    task = progress.add_task(visible(description), total=None, counted="")
    bar = _Bar(progress, threading.Timer(_PATIENCE_SECONDS, progress.start))
    bar.timer.start()
    _bars.append(bar)

    def report(done: int, total: int, text: str) -> None:
        progress.update(task, completed=done, total=total or None, counted=visible(text))

    try:
        yield report
    finally:
        _bars.remove(bar)
        bar.hide()


def _print(lines: Iterable[Line], *, hang: int | None, err: bool) -> None:
    """Print lines; folded where `hang` says how far in the rest of a line is to stand."""
    console = Console(stderr=err, highlight=False)
    for line in lines:
        spans = [line] if isinstance(line, str | Styled) else line
        text = _text(spans)
        if console.is_terminal:
            with console.capture() as captured:
                for folded in _folded(text, console, hang):
                    console.print(folded, soft_wrap=True)
            shown = captured.get().rstrip("\n")
        else:
            shown = text.plain
        click.echo(_encodable(shown, err=err), err=err)


def _text(spans: Sequence[Span], *, overflow: Any = None) -> Text:
    text = Text(overflow=overflow)
    for span in spans:
        styled = Styled(span) if isinstance(span, str) else span
        text.append(visible(styled.text), style=_STYLES[styled.style])
    return text


def _folded(text: Text, console: Console, hang: int | None) -> Iterator[Text]:
    """The lines that a text takes on a terminal, each as far in as its beginning."""
    further = _leading(text) + (hang or 0)
    narrow = console.width - further < _COLUMNS_LEAST
    if hang is None or narrow or text.cell_len <= console.width:
        yield text
        return
    first = text.wrap(console, console.width, overflow="fold")[0]
    yield first
    rest = text[len(first.plain) :]
    for part in rest[_leading(rest) :].wrap(console, console.width - further, overflow="fold"):
        yield Text(" " * further) + part


def _leading(text: Text) -> int:
    return len(text.plain) - len(text.plain.lstrip(" "))


def _encodable(text: str, *, err: bool) -> str:
    """What the stream cannot encode, made visible as well, and each script in its own direction."""
    encoding = (sys.stderr if err else sys.stdout).encoding or "utf-8"
    shown = isolate(text)
    try:
        return shown.encode(encoding).decode(encoding)
    except UnicodeEncodeError:
        # A stream that has no marks is not given letters that need them.
        parts = (char if char == isolate(char) else _spelt(char) for char in text)
        return "".join(parts).encode(encoding, "backslashreplace").decode(encoding)


def _spelt(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode()
