# SPDX-License-Identifier: Apache-2.0
r"""Names as people are shown them: no two that differ look the same.

A name is in quotes if one could not see where it ends. If it holds characters that may be taken
for others, such as a Cyrillic letter among Latin ones, its spelling stands beside it, with each of
them as `\u{456}`: nobody pauses or approves another thread than the one that is meant.
"""

import unicodedata

from sealpoint.world import escape, quoted

__all__ = ["shown_name"]

_MARKS = ("P", "Sc", "Sk", "Sm")
_LATIN = "LATIN"
_LIKE_LATIN = frozenset({"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK", "LISU"})
"""Scripts with letters that look like Latin ones, as the names of their characters begin."""

_TWINS = frozenset(
    # Cyrillic, Greek and Armenian letters that words which look Latin can be made of.
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u0391\u0392\u0395\u0396\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0570\u0578\u057d\u0581\u0585"
)


def shown_name(name: str) -> str:
    """A name for a table or a sentence, with its spelling where it could be taken for another."""
    shown, spelled = quoted(name), escape(name, also=_doubtful(name))
    return shown if spelled in (name, shown) else f"{shown} ({spelled})"


def _doubtful(name: str) -> str:
    """The characters of a name that may be taken for others, in order."""
    if name.isascii():
        return ""
    found = {char for char in name if _is_odd(char)}
    if not unicodedata.is_normalized("NFC", name):
        found |= {char for char in name if unicodedata.combining(char)}
    letters = {char for char in name if char.isalpha()}
    if _LATIN in map(_script, letters) or letters <= _TWINS:
        found |= {char for char in letters if _script(char) in _LIKE_LATIN}
    return "".join(sorted(found))


def _is_odd(char: str) -> bool:
    """Whether a character is another form of a usual one, or a mark that is not on keyboards."""
    if char.isascii():
        return False
    category = unicodedata.category(char)
    return unicodedata.normalize("NFKC", char) != char or category.startswith(_MARKS)


def _script(char: str) -> str:
    """The first word of what Unicode calls a letter, which is its script."""
    return unicodedata.name(char, "").partition(" ")[0]
