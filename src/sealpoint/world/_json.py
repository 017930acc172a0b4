# SPDX-License-Identifier: Apache-2.0
"""The JSON of a world: checked, copied, frozen, and written in one way only.

What JSON or its encoder would change on the way (a NaN, a key that is no text, half a surrogate
pair) is refused with the path to it. Bounds come before work: a value that is too deep, holds
itself, or repeats itself without end is refused as soon as that is known.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from sealpoint.errors import WorldInvalid
from sealpoint.limits import JSON_DEPTH_MAX, WORLD_BYTES_MAX

# ---------------------------------------------------------------------- visible
# Text that cannot hide anything from the person who reads it.
#
# A tool, a prompt or a reason may be written by somebody who wants the reader to see something
# else: with controls that turn the direction of writing, with characters that print nothing, with
# an escape sequence for the terminal. They are shown as `\u{202e}`. Different texts stay
# different, and nothing is normalised: two spellings of a letter are two texts.
#
# Letters that are written from right to left are letters, and stay. A terminal that knows them
# would also turn the digits and signs around them, and a line that begins with one altogether; so
# whoever prints a line puts them between marks, with `isolate`, and what stands around them keeps
# its place.


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


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def visible(text: str) -> str:
    r"""The text in one line, with everything in it that does not show as `\u{...}`.

    Different texts stay different. Whoever wants lines splits the text first.
    """
    if text.isprintable() and text.isascii() and "\\" not in text:
        return text
    shown = escape(text)
    # What this Python takes for unprintable besides: such as what Unicode has not assigned.
    shown = "".join(char if char.isprintable() else _spell(char) for char in shown)
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


# ---------------------------------------------------------------------- json

JSON: TypeAlias = Any
"""A value of JSON: text, true, false, null, finite numbers of 64 bits, lists and mappings of them.

It is checked when it is given; types that say as much would refuse what type checkers infer."""

_SHOWN_CHARS_MAX = 80
_SURROGATE = "expected text without lone surrogates, found one"
_TOO_DEEP = f"expected at most {JSON_DEPTH_MAX} lists and objects in one another, found more"
_ENCODER = msgspec.json.Encoder(order="sorted")


def shown(name: str) -> str:
    """A name for an error message: visible, in quotes, and never long."""
    cut = name if len(name) <= _SHOWN_CHARS_MAX else f"{name[:_SHOWN_CHARS_MAX]}..."
    text = quoted(cut)
    return text if text.startswith('"') else f'"{text}"'


def encode_json(value: object) -> bytes:
    """The one spelling of a plain value: keys in the order of their code points, no spaces."""
    return _ENCODER.encode(value)


def decode_json(data: bytes) -> Any:
    """Read JSON, in whatever spelling.

    Raises:
        WorldInvalid: It is too long, or no JSON.
    """
    check_size(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise WorldInvalid("world: expected JSON, found other bytes") from exc


def name_text(value: object, path: str) -> str:
    """A name: text that is not empty.

    Raises:
        WorldInvalid: It is none.
    """
    if type(value) is not str:
        raise WorldInvalid(f"{path}: expected text, found {type(value).__name__}")
    if not value:
        raise WorldInvalid(f"{path}: expected text, found an empty one")
    if len(value) > WORLD_BYTES_MAX:
        raise WorldInvalid(
            f"{path}: expected at most {WORLD_BYTES_MAX} characters, found {len(value)}"
        )
    if not _is_text(value):
        raise WorldInvalid(f"{path}: {_SURROGATE}")
    return value


def plain_object(value: object, path: str) -> tuple[dict[str, Any], int]:
    """A copy of a JSON object, made of dicts, lists and scalars alone, and how deep it is.

    Raises:
        WorldInvalid: It is no JSON object, or beyond the bounds; the message has the path.
    """
    if not isinstance(value, Mapping):
        raise WorldInvalid(f"{path}: expected an object, found {type(value).__name__}")
    return _plain(value, path)


def named_object(value: object, path: str) -> tuple[dict[str, Any], int]:
    """A copy of a JSON object whose keys are names, and how deep it is.

    Raises:
        WorldInvalid: It is none, or beyond the bounds; the message has the path.
    """
    made, depth = plain_object(value, path)
    if "" in made:
        raise WorldInvalid(f"{path}: expected names that are text, found an empty one")
    return made, depth


def check_size(data: bytes) -> None:
    """Check how long an encoding is.

    Raises:
        WorldInvalid: It is too long.
    """
    if len(data) > WORLD_BYTES_MAX:
        raise WorldInvalid(f"world: expected at most {WORLD_BYTES_MAX} bytes, found {len(data)}")


def check_depth(depth: int, path: str) -> None:
    """Check how many lists and objects lie in one another.

    Raises:
        WorldInvalid: They are too many.
    """
    if depth > JSON_DEPTH_MAX:
        raise WorldInvalid(f"{path}: {_TOO_DEEP}")


def freeze(value: Any) -> Any:
    """The same plain value, such that nobody can change it."""
    if type(value) is dict:
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if type(value) is list:
        return tuple(freeze(item) for item in value)
    return value


def _plain(value: object, path: str) -> tuple[Any, int]:
    """A copy of a JSON value, made of dicts, lists and scalars alone, and how deep it is.

    Raises:
        WorldInvalid: It is no JSON value, or beyond the bounds; the message has the path.
    """
    copy = _Copy()
    try:
        return copy.value(value, 1), copy.depth
    except _Fault as fault:
        place = "".join(f"[{_place(key)}]" for key in reversed(fault.keys))
        raise WorldInvalid(f"{path}{place}: {fault.reason}") from None


class _Fault(Exception):
    """What is wrong with a value; the way to it is gathered while it is left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keys: list[object] = []


class _Copy:
    """One copy under way: how many bytes it may still take, and how deep it went."""

    __slots__ = ("_left", "depth")

    def __init__(self) -> None:
        self._left = WORLD_BYTES_MAX
        self.depth = 0

    def value(self, value: object, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value)
        self._spend(1)
        if value is None or kind is bool:
            return value
        if kind is dict or isinstance(value, Mapping):
            self._descend(depth)
            return self._object(value, depth + 1)  # type: ignore[arg-type]
        if isinstance(value, list | tuple):
            self._descend(depth)
            return self._list(value, depth + 1)
        if (kind is int and -(2**63) <= value < 2**64) or (  # type: ignore[operator]
            kind is float and math.isfinite(value)  # type: ignore[arg-type]
        ):
            return value
        raise _Fault(
            f"expected a JSON value, found {_kind(value)} "
            "(text, true, false, null, finite numbers of 64 bits, lists and objects)"
        )

    def _object(self, value: Mapping[Any, object], depth: int) -> dict[str, Any]:
        made = {}
        for key, item in value.items():
            if type(key) is not str:
                raise _Fault(f"expected keys that are text, found {type(key).__name__}")
            try:
                self._text(key)
                made[key] = self.value(item, depth)
            except _Fault as fault:
                fault.keys.append(key)
                raise
        return made

    def _list(self, value: list[object] | tuple[object, ...], depth: int) -> list[Any]:
        made = []
        for item in value:
            try:
                made.append(self.value(item, depth))
            except _Fault as fault:
                fault.keys.append(len(made))
                raise
        return made

    def _text(self, text: Any) -> str:
        self._spend(len(text) + 2)
        if not _is_text(text):
            raise _Fault(_SURROGATE)
        return text  # type: ignore[no-any-return]

    def _descend(self, depth: int) -> None:
        if depth > self.depth:
            self.depth = depth
            if depth > JSON_DEPTH_MAX:
                raise _Fault(_TOO_DEEP)

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _Fault(f"expected a world of at most {WORLD_BYTES_MAX} bytes, found more")


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(key: object) -> str:
    return shown(key) if type(key) is str else str(key)


def _kind(value: object) -> str:
    if type(value) is int:
        return "an integer beyond 64 bits"
    if type(value) is float:
        return "a number that is not finite"
    return type(value).__name__
