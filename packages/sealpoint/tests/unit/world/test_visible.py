# SPDX-License-Identifier: Apache-2.0
"""Text that hides nothing, and lines whose scripts keep to themselves."""

import re
import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from sealpoint.world import isolate, visible

_MARKED = re.compile("\u2068([^\u2068\u2069]*)\u2069")
_TEXTS = st.text(
    st.sampled_from(
        "ab 5,.'\"|:()->\n\u05d0\u05d1\u0628\u0665\u05b0\u0301\u202e\u2068\u2069\xe9\u6f22"
    )
)


def _turns(char: str) -> bool:
    return unicodedata.bidirectional(char) in ("R", "AL", "AN")


@given(_TEXTS)
def test_every_letter_from_right_to_left_is_in_a_piece(text: str) -> None:
    """And no letter from left to right is, nor an end of a line; nothing else is added."""
    line = "\n".join(visible(part) for part in text.split("\n"))
    made = isolate(line)
    pieces = _MARKED.findall(made)

    assert not any(_turns(char) for char in _MARKED.sub("", made))
    assert not any(unicodedata.bidirectional(char) == "L" for char in "".join(pieces))
    assert not any("\n" in piece or "  " in piece for piece in pieces)
    assert _MARKED.sub(r"\1", made) == line


def test_every_script_from_right_to_left_is_known() -> None:
    """Whatever this Python knows of, and a visible text can hold."""
    missed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if _turns(char := chr(code)) and char == visible(char) == isolate(char)
    ]

    assert missed == []


def test_other_lines_stay_as_they_are() -> None:
    """Marks are for lines that need them."""
    for line in ("", "plain", "\xfcber \u6f22\u5b57", "\xe9t\xe9 5"):
        assert isolate(line) == line


def test_pieces_end_where_a_text_may_end() -> None:
    """Two names in quotes or columns are two; a sign inside of a word is part of it."""
    name = "\u05d0\u05d1"

    assert isolate(f"'{name}', '{name}'") == f"'\u2068{name}\u2069', '\u2068{name}\u2069'"
    assert isolate(f"{name}  {name}") == f"\u2068{name}\u2069  \u2068{name}\u2069"
    assert isolate(f'{name}"{name} 5') == f'\u2068{name}"{name}\u2069 5'
    assert isolate(f"{name} - {name}!") == f"\u2068{name} - {name}\u2069!"
