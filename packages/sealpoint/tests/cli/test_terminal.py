# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows: folded lines, colours beside words, progress that goes away."""

import io
import re
import sys
import time

import pytest

from sealpoint.cli.terminal import print_line, print_lines, print_table, working
from sealpoint.world import escape_unprintable
from tests.cli.machine import Machine

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢", "plain ü 漢"),
        ("\x1b[31m", "\\u{1b}[31m"),
        ("a\nb\r", "a\\u{a}b\\u{d}"),
        ("\u202e", "\\u{202e}"),
        ("\ud800", "\\u{d800}"),
        ("\U000e0001", "\\u{e0001}"),
    ],
)
def test_what_does_not_print_is_made_visible(text: str, shown: str) -> None:
    """Text that prints stays as it is."""
    assert escape_unprintable(text) == shown


def test_a_stream_without_marks_gets_no_letters_that_need_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hebrew has an encoding of its own, in which nothing can be isolated."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="iso8859-8")
    monkeypatch.setattr("sys.stdout", stream)
    print_line("name \u05d0\u05d1 5 \xd7 \u6f22")
    stream.flush()

    assert stream.buffer.getvalue() == "name \\u05d0\\u05d1 5 \xd7 \\u6f22\n".encode("iso8859-8")


def test_lines_into_a_pipe_are_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever searches them finds them whole."""
    print_line("word " * 100)
    print_lines(["x" * 500])

    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [500, 500]


def test_a_table_never_cuts_a_cell_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a pipe every row is one line, whole; on a terminal a cell too wide is folded."""
    print_table(("name", "note"), [("x" * 90, "y" * 90), ("漢", "z")])
    piped = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("name", "note"), [("x" * 90, "y" * 90)])
    printed = capsys.readouterr().out

    assert piped.splitlines()[1:] == [f"{'x' * 90}  {'y' * 90}", f"漢{' ' * 88}  z"]
    assert (printed.count("x"), printed.count("y")) == (90, 90)
    assert max(map(len, printed.splitlines()[1:])) <= 100


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_gets_colours_and_folded_lines(machine: Machine, columns: int) -> None:
    """No line is wider than the terminal, and the words are all there without the colours."""
    pytest.importorskip("pty")
    text = "a sentence of the state that is longer than a terminal is wide " * 3
    with machine.open() as store:
        store.thread("t").save({"text": text})
    status, printed = machine.at_a_terminal("show", "t", columns=columns)
    plain = _COLOUR.sub("", printed)
    folded = plain[plain.index("state: ") : plain.index("metadata: ")]

    assert status == 0
    assert _COLOUR.search(printed)
    assert max(map(len, folded.splitlines())) <= columns
    assert text.split() == folded.replace('"', " ").split()[-len(text.split()) :]


def test_progress_is_only_for_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    """Into a file or a pipe nothing of it is written, however long it takes."""
    with working("doing something") as report:
        report(1, 2, "1 of 2")
        time.sleep(0.6)

    assert capsys.readouterr() == ("", "")


def test_progress_shows_what_takes_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal the bar appears after a moment on standard error, and not before."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with working("quick"):
        pass

    assert capsys.readouterr() == ("", "")
    with working("doing something") as report:
        report(1_000, 2_000, "1,000 of 2,000")
        time.sleep(0.8)
    out, err = capsys.readouterr()
    assert out == ""
    assert "doing something" in err
    assert "1,000 of 2,000" in err


def test_verify_at_a_terminal_ends_with_its_summary(machine: Machine) -> None:
    """Whatever progress was shown is taken away again."""
    pytest.importorskip("pty")
    machine.done("save", "t", stdin="1")
    status, printed = machine.at_a_terminal("verify")

    assert status == 0
    assert _COLOUR.sub("", printed).endswith("All good: 4 entries verified.\n")
