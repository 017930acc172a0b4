# SPDX-License-Identifier: Apache-2.0
r"""Text that cannot hide anything from the person who reads it.

An attacker may write a tool, a prompt or a reason so that the reader sees something else: with
controls that reverse the writing direction, with invisible characters, or with an escape sequence
for the terminal. Such characters are shown as `\u{202e}`. Different texts stay different, and
nothing is normalized: two spellings of a letter are two texts.

Right-to-left letters are letters, and stay. However, a terminal that supports them would also
reverse the digits and signs around them, and all of a line that begins with one. So the code that
prints a line encloses them in isolation marks, with `isolate`, and the text around them keeps its
place.
"""

import re
import unicodedata
from collections.abc import Iterator

# Written out, so that the name of a leaf does not depend on the Unicode version of the reader:
# controls, spaces other than the plain one, direction and format controls, fillers and other
# blanks, variation selectors, tags, surrogates, private use.
_UNSEEN = (
    "\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U0010ffff"
)
# Also escape a backslash that begins what looks like an escape, so that no escape can be forged.
_HIDDEN = re.compile(rf"[{_UNSEEN}]|\\(?=u\{{)")
_ESCAPE = re.compile(r"\\u\{([0-9a-f]{1,6})\}")
_PLAIN = re.compile(r'[^ ",]*[^ ",:]')
# The blocks that Unicode reserves for right-to-left scripts, including unassigned characters.
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATE, _POP = "\u2068", "\u2069"
# Characters that may join two words of one sentence, and that do not separate two texts.
_JOINS = frozenset("0123456789%+,-.;!?\u2010\u2011\u2012\u2013\u2014\u2026")
_INNER = frozenset("\"'\u2018\u2019\u201c\u201d")


def _spell(char: str) -> str:
    return f"\\u{{{ord(char):x}}}"


def escape(text: str, also: str = "") -> str:
    r"""Return the text with its invisible characters, and those of `also`, as `\u{...}`.

    The result is the same on every system, and `unescape` restores the text.
    """
    made = _HIDDEN.sub(lambda match: _spell(match[0]), text)
    for char in also:
        made = made.replace(char, _spell(char))
    return made


def escape_unprintable(text: str) -> str:
    r"""Return the text with every unprintable character as `\u{...}`.

    It does not change the output of `visible`, so it can be the last step before a line is printed.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spell(char) for char in text)


def unescape(text: str) -> str:
    """Return the original text of `escape`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def visible(text: str) -> str:
    r"""Return the text in one line, with everything in it that is not visible as `\u{...}`.

    Different texts stay different. To keep lines, split the text first.
    """
    if text.isprintable() and text.isascii() and "\\" not in text:
        return text
    # This also escapes what this version of Python considers unprintable, such as characters
    # unassigned in Unicode.
    shown = escape_unprintable(escape(text))
    # A combining mark at the beginning would change the character before the text.
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = _spell(shown[0]) + shown[1:]
    return shown


def quoted(text: str) -> str:
    """Return the text made visible, and in quotes if its end would not be clear otherwise."""
    shown = visible(text)
    if _PLAIN.fullmatch(shown):
        return shown
    return f'"{shown.replace(chr(34), _spell(chr(34)))}"'


def isolate(line: str) -> str:
    """Return the line with each piece of right-to-left text in its own isolation marks.

    Every right-to-left letter is in a piece, and no left-to-right letter is. The text outside the
    pieces keeps its order, and so do the pieces, whatever they contain. Use this as the last step
    before a line is printed, after `visible`, which removes any marks in the original text.
    """
    if line.isascii() or not _RIGHT_TO_LEFT.search(line):
        return line
    made, done = [], 0
    for start, end in _pieces(line):
        made += [line[done:start], _ISOLATE, line[start:end], _POP]
        done = end
    return "".join((*made, line[done:]))


def _pieces(line: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each piece: words and the characters that join them."""
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
        # A quote inside a word, as in some abbreviations; our own quotes have a letter on one side
        # only.
        return bool(_RIGHT_TO_LEFT.match(before) and _RIGHT_TO_LEFT.match(after))
    return char in _JOINS or unicodedata.category(char).startswith("M")
