# SPDX-License-Identifier: Apache-2.0
r"""Text that cannot hide anything from the person who reads it.

A tool, a prompt or a reason may be written by somebody who wants the reader to see something
else: with controls that turn the direction of writing, with characters that print nothing, with
an escape sequence for the terminal. They are shown as `\u{202e}`. Different texts stay
different, and nothing is normalised: two spellings of a letter are two texts.

Letters that are written from right to left are letters, and stay. A terminal that knows them
would also turn the digits and signs around them, and a line that begins with one altogether; so
whoever prints a line puts them between marks, with `isolate`, and what stands around them keeps
its place.
"""

import re
import unicodedata
from collections.abc import Iterator

# Written out, so that the name of a leaf does not depend on the Unicode version of the reader:
# controls, spaces but the plain one, direction and format controls, fillers and other blanks,
# variation selectors, tags, surrogates, private use.
_UNSEEN = (
    "\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
)
# A backslash that would begin what looks like an escape is one itself, so that none is forged.
_HIDDEN = re.compile(rf"[{_UNSEEN}]|\\(?=u\{{)")
_ESCAPE = re.compile(r"\\u\{([0-9a-f]{1,6})\}")
_PLAIN = re.compile(r'[^ ",]*[^ ",:]')
# The blocks that Unicode keeps for scripts from right to left, what is not assigned yet included.
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATE, _POP = "\u2068", "\u2069"
# What may stand between two words of one sentence, and does not part two texts of a line.
_JOINS = frozenset("0123456789%+,-.;!?\u2010\u2011\u2012\u2013\u2014\u2026")
_INNER = frozenset("\"'\u2018\u2019\u201c\u201d")


def _spell(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


def escape(text: str, also: str = "") -> str:
    r"""The text with its unseen characters, and those of `also`, as `\u{...}`.

    The result is the same everywhere, and `unescape` gives the text back.
    """
    made = _HIDDEN.sub(lambda match: _spell(match[0]), text)
    for char in also:
        made = made.replace(char, _spell(char))
    return made


def escape_unprintable(text: str) -> str:
    r"""The text with every character that does not print as `\u{...}`.

    Of what `visible` gave it changes nothing, so that it may be the last look at a line.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spell(char) for char in text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def visible(text: str) -> str:
    r"""The text in one line, with everything in it that does not show as `\u{...}`.

    Different texts stay different. Whoever wants lines splits the text first.
    """
    if text.isprintable() and text.isascii() and "\\" not in text:
        return text
    # What this Python takes for unprintable besides: such as what Unicode has not assigned.
    shown = escape_unprintable(escape(text))
    # A mark at the beginning would change the character before the text.
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = _spell(shown[0]) + shown[1:]
    return shown


def quoted(text: str) -> str:
    """The text made visible, and in quotes if one could not see where it ends."""
    shown = visible(text)
    if _PLAIN.fullmatch(shown):
        return shown
    return f'"{shown.replace(chr(34), _spell(chr(34)))}"'


def isolate(line: str) -> str:
    """The line with each piece of writing from right to left between marks of its own.

    Every such letter is in a piece, and no letter from left to right is. What stands outside of the
    pieces keeps its order, and so do the pieces, whatever they say. It is for the last moment
    before a line is printed, after `visible`, which leaves no mark of anybody else in it.
    """
    if line.isascii() or not _RIGHT_TO_LEFT.search(line):
        return line
    made, done = [], 0
    for start, end in _pieces(line):
        made += [line[done:start], _ISOLATE, line[start:end], _POP]
        done = end
    return "".join((*made, line[done:]))


def _pieces(line: str) -> Iterator[tuple[int, int]]:
    """Where the pieces begin and end: words, and what joins them, but not two spaces or a quote."""
    start = end = None
    for place, char in enumerate(line):
        if _RIGHT_TO_LEFT.match(char):
            start, end = place if start is None else start, place + 1
        elif start is not None and end is not None and not _joins(line, place):
            yield start, end
            start = end = None
    if start is not None and end is not None:
        yield start, end


def _joins(line: str, place: int) -> bool:
    char, before, after = line[place], line[place - 1], line[place + 1 : place + 2]
    if char == " ":
        return before != " "
    if char in _INNER:
        # A sign inside of a word, as in some abbreviations: our own have a letter on one side.
        return bool(_RIGHT_TO_LEFT.match(before) and _RIGHT_TO_LEFT.match(after))
    return char in _JOINS or unicodedata.category(char).startswith("M")
