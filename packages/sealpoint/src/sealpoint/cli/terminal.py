# SPDX-License-Identifier: Apache-2.0
"""Terminal output: the only file that prints.

Rules: results go to standard output; errors, notes and progress to standard error. `--json` prints
one JSON document and nothing else. Text from data is printed without its control characters, and
right-to-left letters do not reorder the text around them. A color never carries information that
the words do not. On a terminal, long lines are folded with their indentation; into a file or a
pipe, they are written unchanged, and `rich` is not even loaded.
"""

import errno
import json
import re
import shutil
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sealpoint.errors import SealpointError, UsageError
from sealpoint.views.words import Line, Span, Styled
from sealpoint.world import escape_unprintable, isolate, json_data

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = [
    "agree",
    "ask",
    "ask_hidden",
    "can_ask",
    "can_show",
    "columns",
    "json_text",
    "print_code",
    "print_columns",
    "print_document",
    "print_error",
    "print_fields",
    "print_json",
    "print_line",
    "print_lines",
    "print_note",
    "print_table",
    "print_text",
    "thread_progress",
    "working",
]

_T = TypeVar("_T")

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


def print_line(line: Line, *, hang: int = 0) -> None:
    """Print one line of a result.

    Args:
        line: Text, or pieces of it.
        hang: The additional indentation of folded text, in columns.
    """
    print_lines([line], hang=hang)


def print_lines(lines: Iterable[Line], *, hang: int = 2) -> None:
    """Print lines of a result; folding keeps leading spaces."""
    _print(lines, hang=hang, err=False)


def print_code(lines: Iterable[str]) -> None:
    """Print lines for copying: never folded."""
    for line in lines:
        _echo(_encodable(escape_unprintable(line), err=False))


def print_note(line: Line) -> None:
    """Print a note to standard error, in addition to the result."""
    _print([line], hang=2, err=True)


def print_fields(fields: Sequence[tuple[str, Span]]) -> None:
    """Print names and values, one pair a line, never folded: a value may be copied."""
    width = max((len(name) for name, _ in fields), default=0) + 2
    lines = [(Styled(f"{name:<{width}}", "quiet"), value) for name, value in fields]
    _print(lines, hang=None, err=False)


def print_text(text: str) -> None:
    """Print a document for another program, unchanged."""
    _echo(text, nl=False)


def print_document(data: bytes) -> None:
    """Print a file, byte by byte; on a terminal, with unprintable characters made visible."""
    if can_show():
        print_code(data.decode(errors="surrogateescape").removesuffix("\n").split("\n"))
    else:
        _echo(data, nl=False)


def print_json(document: Any) -> None:
    """Print one JSON document: plain data and records."""
    _echo(json_text(json_data(document)))


def json_text(document: Any) -> str:
    r"""Return a JSON document as text that every reader accepts.

    Half of a surrogate pair, as in the name of a file that is not UTF-8, is written as `\u{...}` in
    a string: JSON can express it, but strict readers would refuse the whole document.
    """
    text = json.dumps(document, indent=2, ensure_ascii=True)
    return _JSON_ESCAPE.sub(_whole, text) if "\\ud" in text else text


_JSON_ESCAPE = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|u(d[89a-f]..)|.)")


def _whole(escape: re.Match[str]) -> str:
    return escape[0] if escape[1] is None else f"\\\\u{{{escape[1]}}}"


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Span]]) -> None:
    """Print a table that never truncates a cell, without trailing spaces."""
    if can_show():
        lines = _terminal_table(headings, rows)
    else:
        cells = [headings, *([_plain(cell) for cell in row] for row in rows)]
        widths = [max(map(_cells, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                cell + " " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True)
            )
            for row in cells
        ]
    for line in lines:
        _echo(_encodable(line.rstrip(), err=False))


def print_columns(
    items: Sequence[_T], columns: Mapping[str, Callable[[_T], Span]], optional: Collection[str]
) -> None:
    """Print a table with a row for each item; omit an optional column if it is `-` for all."""
    cells = {heading: [cell(item) for item in items] for heading, cell in columns.items()}
    shown = {
        heading: column
        for heading, column in cells.items()
        if heading not in optional or set(column) != {"-"}
    }
    print_table(list(shown), list(zip(*shown.values(), strict=True)))


def _terminal_table(headings: Sequence[str], rows: Sequence[Sequence[Span]]) -> list[str]:
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.table import Table  # noqa: PLC0415

    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(_text([cell], overflow="fold") for cell in row))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def _plain(span: Span) -> str:
    return escape_unprintable(span if isinstance(span, str) else span.text)


def _cells(text: str) -> int:
    """Return the number of columns of a text."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - only for letters that may be wide

    return cell_len(text)


def print_error(error: SealpointError, *, as_json: bool) -> None:
    """Print an error to standard error: message, then hint; or its JSON form."""
    if as_json:
        _echo(json_text({"error": error.as_dict()}), err=True)
        return
    first, *code = error.hint.split("\n")
    _print(
        [
            (Styled("sealpoint: ", "bad"), error.message, Styled(f" [{error.code}]", "quiet")),
            (Styled("hint: ", "heading"), first),
        ],
        hang=2,
        err=True,
    )
    # Lines for copying: never folded.
    _print(code, hang=None, err=True)


def columns() -> int:
    """Return the width of the output."""
    return shutil.get_terminal_size().columns


def can_ask() -> bool:
    """Whether there is a terminal to ask a question on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def can_show() -> bool:
    """Whether results are printed on a terminal, where a person may read them."""
    return sys.stdout.isatty()


def ask(question: str) -> str:
    """Ask for a word, which may be empty."""
    shown = _encodable(escape_unprintable(question), err=True)
    answer: str = click.prompt(shown, default="", show_default=False, err=True)
    return answer.strip()


def agree(question: str, done: str, *, yes: bool, as_json: bool, dry_run: bool = True) -> None:
    """Continue only after agreement, by `--yes` or on a terminal; otherwise end the command.

    Args:
        question: The question.
        done: The planned action, as a participle: `pruned`.
        yes: Whether `--yes` was given.
        as_json: Whether the output is for a program, which cannot answer.
        dry_run: Whether the verb has `--dry-run`, for the hint.

    Raises:
        UsageError: There is no terminal to ask on.
    """
    if yes:
        return
    if as_json or not can_ask():
        look = f"See what would be {done} with --dry-run, then give --yes."
        raise UsageError(
            f"nothing was {done}: this needs --yes, or a terminal to ask on",
            hint=look if dry_run else "Run it on a terminal, or give --yes.",
        )
    if not click.confirm(
        _encodable(escape_unprintable(question), err=True), default=False, err=True
    ):
        print_note(f"Nothing was {done}.")
        click.get_current_context().exit(1)


def ask_hidden(question: str, *, again: str | None = None) -> str:
    """Ask for a secret; typed text is not displayed.

    Args:
        question: The question.
        again: The second question, repeated until both answers are the same; None asks once.
    """
    for bar in _bars:
        bar.hide()
    answer: str = click.prompt(
        _encodable(escape_unprintable(question), err=True),
        hide_input=True,
        confirmation_prompt=False if again is None else again,
        err=True,
    )
    for bar in _bars:
        bar.progress.start()
    return answer


@dataclass(frozen=True, slots=True)
class _Bar:
    """A progress bar, and the timer that shows it if the work takes a while."""

    progress: Any
    timer: threading.Timer

    def hide(self) -> None:
        # Once the bar is removed, the timer has either been canceled or has finished.
        self.timer.cancel()
        self.timer.join()
        self.progress.stop()


_bars: list[_Bar] = []  # of the work in progress; a question hides them


@contextmanager
def working(description: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show on a terminal that work is in progress, but only if it takes a while.

    Yields:
        A function that takes the finished amount, the total amount, and a text to show.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total, _text: None
        return
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if console.is_dumb_terminal:
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
    task = progress.add_task(escape_unprintable(description), total=None, counted="")
    bar = _Bar(progress, threading.Timer(_PATIENCE_SECONDS, progress.start))
    bar.timer.start()
    _bars.append(bar)

    def report(done: int, total: int, text: str) -> None:
        progress.update(task, completed=done, total=total or None, counted=escape_unprintable(text))

    try:
        yield report
    finally:
        _bars.remove(bar)
        bar.hide()


def thread_progress(report: Callable[[int, int, str], None]) -> Callable[[int, int], None]:
    """Return a progress function for a call that counts finished threads."""
    return lambda done, total: report(done, total, f"{done:,} of {total:,} threads")


def _echo(text: str | bytes, *, nl: bool = True, err: bool = False) -> None:
    try:
        click.echo(text, nl=nl, err=err)
    except OSError as exc:
        if err or exc.errno == errno.EPIPE:  # the reader is gone: click ends the command
            raise
        raise UsageError(
            f"standard output: expected a place that can be written, found: {exc.strerror}",
            hint="Make room there, or send the output elsewhere. Earlier changes stay.",
        ) from exc


def _print(lines: Iterable[Line], *, hang: int | None, err: bool) -> None:
    """Print lines; `hang` is the additional indentation of folded text, None turns folding off."""
    terminal = (sys.stderr if err else sys.stdout).isatty()
    for line in lines:
        spans = [line] if isinstance(line, str | Styled) else line
        shown = _styled(spans, hang, err=err) if terminal else "".join(map(_plain, spans))
        _echo(_encodable(shown, err=err), err=err)


def _styled(spans: Sequence[Span], hang: int | None, *, err: bool) -> str:
    from rich.console import Console  # noqa: PLC0415 - only on a terminal

    console = Console(stderr=err, highlight=False)
    with console.capture() as captured:
        for folded in _folded(_text(spans), console, hang):
            console.print(folded, soft_wrap=True)
    return captured.get().rstrip("\n")


def _text(spans: Sequence[Span], *, overflow: Any = None) -> "Text":
    from rich.text import Text  # noqa: PLC0415 - only on a terminal

    text = Text(overflow=overflow)
    for span in spans:
        styled = Styled(span) if isinstance(span, str) else span
        text.append(escape_unprintable(styled.text), style=_STYLES[styled.style])
    return text


def _folded(text: "Text", console: "Console", hang: int | None) -> Iterator["Text"]:
    """Yield the lines of a text on a terminal, each indented like its beginning."""
    further = _leading(text) + (hang or 0)
    narrow = console.width - further < _COLUMNS_LEAST
    if hang is None or narrow or text.cell_len <= console.width:
        yield text
        return
    first = text.wrap(console, console.width, overflow="fold")[0]
    yield first
    rest = text[len(first.plain) :]
    for part in rest[_leading(rest) :].wrap(console, console.width - further, overflow="fold"):
        yield _text([" " * further]) + part


def _leading(text: "Text") -> int:
    return len(text.plain) - len(text.plain.lstrip(" "))


def _encodable(text: str, *, err: bool) -> str:
    """Make unencodable characters visible too, and isolate right-to-left text."""
    encoding = (sys.stderr if err else sys.stdout).encoding or "utf-8"
    shown = isolate(text)
    try:
        return shown.encode(encoding).decode(encoding)
    except UnicodeEncodeError:
        # If the stream cannot encode isolation marks, escape the letters that need them.
        parts = (char if char == isolate(char) else _spelt(char) for char in text)
        return "".join(parts).encode(encoding, "backslashreplace").decode(encoding)


def _spelt(char: str) -> str:
    return char.encode("ascii", "backslashreplace").decode()
