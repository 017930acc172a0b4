# SPDX-License-Identifier: Apache-2.0
"""Letters from right to left in what people and agents write: our own words keep their order.

A terminal turns such letters, which is right, and the digits and signs between them as well, which
are often ours: an amount beside a name, the columns of a table, the arrow between two of them.
"""

import re
from pathlib import Path

import pytest

from sealpoint.world import isolate, visible
from tests.attacks.world.bidi import as_seen
from tests.cli.team import READ, ask, make_team

_NAMES = ("\u05d0\u05d1\u05d2", "\u0634\u0643\u0631", "\u05d0\u05d1 5", "5 \u05d0\u05d1", "\u0665")
_OTHER = "\u05e9\u05ea"
_LINES: dict[str, str] = {
    "a number after a name": "{0} 5 7",
    "columns": "{0}  5  {1}  7",
    "an arrow": "'{0}' -> '{1}'",
    "a value": '"{0}": 5, "{1}": 7',
    "a list of numbers": "| {0}: 1, 2, 3",
    "a name first": "{0} approved, {1} denied",
    "brackets": "{0} (5) {1}",
}


def _parts(line: str, *names: str) -> str:
    """A line without the names that were put into it: only what is ours."""
    for name in names:
        line = line.replace(name, "_").replace(as_seen(name), "_")
    return line


@pytest.mark.parametrize("name", _NAMES, ids=ascii)
@pytest.mark.parametrize("line", _LINES.values(), ids=_LINES)
def test_what_is_ours_keeps_its_place(line: str, name: str) -> None:
    """Whatever the name is, the line around it is seen as it was written."""
    written = line.format(visible(name), _OTHER)
    seen = as_seen(isolate(written))

    assert re.findall(r"[A-Za-z]+|->|[|:()]", seen) == re.findall(
        r"[A-Za-z]+|->|[|:()]", line.format("", "")
    )
    if "5" not in name:
        assert _parts(seen, name, _OTHER) == line.format("_", "_")


@pytest.mark.parametrize("line", _LINES.values(), ids=_LINES)
def test_the_control_turns_the_line(line: str) -> None:
    """Without the marks a terminal shows the same lines in another order."""
    written = line.format(_NAMES[0], _OTHER)

    assert _parts(as_seen(written), _NAMES[0], _OTHER) != line.format("_", "_")


def test_a_sentence_stays_a_sentence() -> None:
    """Words, numbers and commas of one text are turned as one, as whoever wrote it reads them."""
    words = ("\u05d0\u05d1\u05d2", "500", "\u05d3\u05d4", "\u05d5\u05d6")
    sentence = f"{words[0]} {words[1]} {words[2]}, {words[3]}"

    assert isolate(f"| {sentence}.") == f"| \u2068{sentence}\u2069."
    assert as_seen(sentence) == f"{words[3][::-1]} ,{words[2][::-1]} 500 {words[0][::-1]}"


_MARKED = re.compile("\u2068[^\u2068\u2069]*\u2069")
_LETTER = re.compile("[\u0590-\u08ff]")


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_no_verb_prints_such_letters_outside_of_marks(tmp_path: Path, *, terminal: bool) -> None:
    """Thread, tool, question, answer, reason: on a terminal and in a pipe; JSON has them plain."""
    team, text = make_team(tmp_path), "\u05d0\u05d1 5 \u05d2\u05d3 pay \u05d4"
    with team.open() as store:
        store.thread(_OTHER).save(
            {"note": text}, world=READ, question={text: text}, metadata={"note": text}
        )
    world = {"tools": [{"name": "read"}, {"name": text, "description": text}]}
    request = ask(team, _OTHER, world=world, answer={text: [text]}, reason=text)

    def printed(*arguments: str) -> str:
        if terminal:
            pytest.importorskip("pty")
            return team.at_a_terminal(*arguments, columns=100)[1]
        return team.run(*arguments).stdout

    shown = [
        printed("requests"),
        printed("requests", request),
        printed("show", _OTHER),
        printed("log", _OTHER),
        printed("threads"),
        printed("audit"),
        printed("resume", _OTHER),
    ]

    for each in shown:
        assert _LETTER.search(each), each
        assert not _LETTER.search(_MARKED.sub("", each)), each
    assert not _MARKED.search(team.run("threads", "--json").stdout)


def test_marks_of_somebody_else_are_made_visible(tmp_path: Path) -> None:
    """So a name with marks is not the name without them."""
    team = make_team(tmp_path)
    plain, marked = f"x {_OTHER}", f"x \u2068{_OTHER}\u2069"
    with team.open() as store:
        store.thread("t").save(1, world=READ)
    shown = [
        team.done("requests", ask(team, answer=name, reason="why")) for name in (plain, marked)
    ]

    assert "\\u{2068}" in shown[1]
    assert "\\u{2068}" not in shown[0]
