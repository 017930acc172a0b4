# SPDX-License-Identifier: Apache-2.0
r"""Names, numbers and times in words for people: the same on a terminal and in a browser.

No two different names look the same. A name is in quotes if its end would not be clear otherwise.
If it contains characters that look like others, such as a Cyrillic letter among Latin ones, its
spelling follows, with each of them as `\u{456}`. So no one pauses or approves the wrong thread by
mistake.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sealpoint.errors import IdMalformed
from sealpoint.ids import CheckpointId
from sealpoint.world import escape, quoted, visible

__all__ = [
    "Line",
    "Span",
    "Styled",
    "count_text",
    "exact_size_text",
    "short_hex",
    "short_id",
    "shown_name",
    "shown_words",
    "size_text",
    "when",
]

_KEY_PREFIX = "key:"
_ID_DIGITS = 12
_SIZE_UNITS = ("kB", "MB", "GB", "TB")
_SIZE_STEP = 1000
_ESCAPED = re.compile(r"(\\u\{[0-9a-f]{1,6}\})")


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with its role: `bad`, `good`, `heading`, `quiet` or `warning`."""

    text: str
    style: str = ""


Span = str | Styled
Line = Span | Sequence[Span]


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun; `many` if the plural is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def short_hex(text: str) -> str:
    """Return the first digits of an id or a hash, which every command accepts."""
    return text.removeprefix(_KEY_PREFIX)[:_ID_DIGITS]


def short_id(text: str) -> str:
    """Return an id that the caller chose unchanged; a random one as its first digits and dots."""
    try:
        return f"{CheckpointId.parse(text).short()}..."
    except IdMalformed:
        return text


def size_text(size_bytes: int) -> str:
    """Return a number of bytes in a form for people."""
    if size_bytes < _SIZE_STEP:
        return count_text(size_bytes, "byte")
    size, unit = size_bytes / _SIZE_STEP, 0
    while size >= _SIZE_STEP and unit + 1 < len(_SIZE_UNITS):
        size, unit = size / _SIZE_STEP, unit + 1
    return f"{size:,.1f} {_SIZE_UNITS[unit]}"


def exact_size_text(size_bytes: int) -> str:
    """Return a number of bytes in a form for people, and the exact number."""
    said, exact = size_text(size_bytes), count_text(size_bytes, "byte")
    return exact if said == exact else f"{said} ({exact})"


def when(time: datetime) -> str:
    """Return a time for people, in UTC, to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def shown_words(text: str) -> str:
    """Make text visible, except for parts that were made visible already."""
    return "".join(
        part if place % 2 else visible(part) for place, part in enumerate(_ESCAPED.split(text))
    )


_MARKS = ("P", "Sc", "Sk", "Sm")
_LATIN = "LATIN"
_LIKE_LATIN = frozenset({"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK", "LISU"})
"""Scripts with letters that look like Latin ones, by the prefix of their characters' names."""
_TWINS = frozenset(
    # Cyrillic, Greek and Armenian letters that can form words that look Latin.
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d"
    "\u0405\u0406\u0408\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03c7\u0391\u0392\u0395\u0396\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u0570\u0578\u057d\u0581\u0585"
)


def shown_name(name: str) -> str:
    """Return a name for a table or a sentence, with its spelling if it could be mistaken."""
    shown, spelled = quoted(name), escape(name, also=_doubtful(name))
    return shown if spelled in (name, shown) else f"{shown} ({spelled})"


def _doubtful(name: str) -> str:
    """Return the characters of a name that may be mistaken for others, in order."""
    if name.isascii():
        return ""
    found = set(filter(_is_odd, name))
    if not unicodedata.is_normalized("NFC", name):
        found |= set(filter(unicodedata.combining, name))
    letters = set(filter(str.isalpha, name))
    if _LATIN in map(_script, letters) or letters <= _TWINS:
        found |= {char for char in letters if _script(char) in _LIKE_LATIN}
    return "".join(sorted(found))


def _is_odd(char: str) -> bool:
    """Whether a character is a variant of a usual one, or a mark that is not on keyboards."""
    if char.isascii():
        return False
    category = unicodedata.category(char)
    return unicodedata.normalize("NFKC", char) != char or category.startswith(_MARKS)


def _script(char: str) -> str:
    """Return the first word of a letter's Unicode name, which is its script."""
    return unicodedata.name(char, "").partition(" ")[0]
