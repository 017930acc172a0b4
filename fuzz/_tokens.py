# SPDX-License-Identifier: Apache-2.0
"""An encoding as a tree of tokens that can be changed anywhere and written again.

Reading never fails: what does not follow the format becomes a token of its own bytes. Extension
payloads are opened by their tag (labels, frames, prefixes), so that a mutation reaches inside.
Every token keeps its bytes; a change costs the way up to the root and nothing else. This module
shares no code with the package: a fault there must not hide here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final

__all__ = ["REFERENCE_BYTES", "Kind", "Token", "atom", "header", "parse", "replaced", "walked"]

_TOKENS_MAX = 3000
_DEPTH_MAX = 60
_NESTED_TAGS: Final = frozenset({4, 5, 6, 7, 8, 15, 19, 20, 22, 23})
_FRAMED_TAGS: Final = frozenset({32, 33, 34})
_TYPED, _REFERENCE, _DEFAULT_DICT = 1, 2, 21
REFERENCE_BYTES: Final = 14
_HEAD_BYTES = 11

_FIXED = {
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
}
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_COUNTED = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_SIZED_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}


class Kind(IntEnum):
    """How a token's first bytes follow from what it holds."""

    ATOM = 0  # no members: a scalar, a text, a byte string, or junk
    AS_IS = 1  # a prefix that is written as it stands, also where it lies about the members
    ARRAY = 2
    MAP = 3
    EXTENSION = 4
    FRAME = 5  # two bytes of length, then the members


_AS_IS = int(Kind.AS_IS)
_LENGTHS = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}


class Token:
    """One token; never changed once made."""

    __slots__ = ("kind", "members", "prefix", "raw", "size", "tag")

    def __init__(
        self, kind: Kind, tag: int = 0, prefix: bytes = b"", members: tuple["Token", ...] = ()
    ) -> None:
        self.raw: bytes
        self.size: int
        self.kind = kind
        self.tag = tag
        self.prefix = prefix
        self.members = members
        size = 1
        body = prefix
        if members:
            body += b"".join([member.raw for member in members])
            for member in members:
                size += member.size
        self.raw = body if kind <= _AS_IS else header(kind, tag, members, len(body)) + body
        self.size = size

    def having(self, members: Iterable["Token"]) -> "Token":
        """The same token with other members."""
        return Token(self.kind, self.tag, self.prefix, tuple(members))


def atom(raw: bytes) -> Token:
    """A token of bytes that are not looked into."""
    return Token(Kind.ATOM, 0, raw)


def header(kind: Kind, tag: int, members: Sequence[Token], size: int, *, off: int = 0) -> bytes:
    """The shortest header for a token; `off` makes it lie about the count or length by as much."""
    if kind is Kind.FRAME:
        return ((size + off) % (1 << 16)).to_bytes(2, "big")
    if kind is Kind.EXTENSION:
        size = max(size + off, 0)
        fixed = _LENGTHS.get(size)
        if fixed is not None:
            return bytes((fixed, tag))
        if size < 1 << 8:
            return bytes((0xC7, size, tag))
        if size < 1 << 16:
            return b"\xc8" + size.to_bytes(2, "big") + bytes((tag,))
        return b"\xc9" + (size % (1 << 32)).to_bytes(4, "big") + bytes((tag,))
    is_map = kind is Kind.MAP
    count = max((len(members) // 2 if is_map else len(members)) + off, 0)
    if count < 16:
        return bytes(((0x80 if is_map else 0x90) | count,))
    if count < 1 << 16:
        return (b"\xde" if is_map else b"\xdc") + count.to_bytes(2, "big")
    return (b"\xdf" if is_map else b"\xdd") + (count % (1 << 32)).to_bytes(4, "big")


def parse(data: bytes) -> Token:
    """The tokens of a whole input, below one root that adds no bytes of its own."""
    reader = _Reader(data)
    return Token(Kind.AS_IS, 0, b"", tuple(reader.many(0, len(data), 0)))


class _Reader:
    """One pass over an input, with a bound on how many tokens it makes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _TOKENS_MAX

    def many(self, place: int, end: int, depth: int, count: int = -1) -> list[Token]:
        """The tokens from `place` on: `count` of them, or all up to `end`."""
        found: list[Token] = []
        while place < end and len(found) != count:
            token, place = self._one(place, end, depth)
            found.append(token)
        return found

    def _one(self, place: int, end: int, depth: int) -> tuple[Token, int]:
        data = self._data
        self._left -= 1
        if self._left < 0 or depth > _DEPTH_MAX:
            return atom(data[place:end]), end
        first = data[place]
        if first in _FIXED:
            stop = place + 1 + _FIXED[first]
        elif 0xA0 <= first <= 0xBF:
            stop = place + 1 + (first & 31)
        elif first in _SIZED:
            width = _SIZED[first]
            stop = place + 1 + width + int.from_bytes(data[place + 1 : place + 1 + width], "big")
        elif first in _FIXED_EXTENSIONS or first in _SIZED_EXTENSIONS:
            return self._extension(place, end, depth)
        elif first in _COUNTED or 0x80 <= first <= 0x9F:
            return self._container(place, end, depth)
        else:
            stop = place + 1
        stop = min(stop, end)
        return atom(data[place:stop]), stop

    def _container(self, place: int, end: int, depth: int) -> tuple[Token, int]:
        data = self._data
        first = data[place]
        width = _COUNTED.get(first, 0)
        start = min(place + 1 + width, end)
        count = int.from_bytes(data[place + 1 : start], "big") if width else first & 15
        is_map = first in (0xDE, 0xDF) or first < 0x90
        wanted = count * 2 if is_map else count
        members = self.many(start, end, depth + 1, wanted)
        stop = start + sum([len(member.raw) for member in members])
        token = Token(Kind.MAP if is_map else Kind.ARRAY, 0, b"", tuple(members))
        if len(members) != wanted or token.raw != data[place:stop]:
            token = Token(Kind.AS_IS, 0, data[place:start], tuple(members))
        return token, stop

    def _extension(self, place: int, end: int, depth: int) -> tuple[Token, int]:
        data = self._data
        first = data[place]
        width = _SIZED_EXTENSIONS.get(first, 0)
        start = place + 2 + width
        size = _FIXED_EXTENSIONS.get(first) or int.from_bytes(data[place + 1 : start - 1], "big")
        stop = start + size
        if stop > end:
            return atom(data[place:end]), end
        tag = data[start - 1]
        prefix, members = self._payload(tag, start, stop, depth + 1)
        token = Token(Kind.EXTENSION, tag, prefix, members)
        if token.raw != data[place:stop]:
            token = Token(Kind.AS_IS, 0, data[place:start] + prefix, members)
        return token, stop

    def _payload(
        self, tag: int, start: int, stop: int, depth: int
    ) -> tuple[bytes, tuple[Token, ...]]:
        """What of a payload is written as it stands, and the tokens in the rest."""
        data = self._data
        fixed = stop - start
        if tag in _NESTED_TAGS:
            fixed = 0
        elif tag == _TYPED and start < stop:
            fixed = min(_HEAD_BYTES + data[start], fixed)
        elif tag == _DEFAULT_DICT:
            fixed = min(1, fixed)
        elif tag in _FRAMED_TAGS and fixed >= 2:
            length = int.from_bytes(data[start : start + 2], "big")
            if start + 2 + length <= stop:
                inner = self.many(start + 2, start + 2 + length, depth)
                rest = self.many(start + 2 + length, stop, depth)
                return b"", (Token(Kind.FRAME, 0, b"", tuple(inner)), *rest)
        return data[start : start + fixed], tuple(self.many(start + fixed, stop, depth))


def walked(root: Token) -> Iterator[Token]:
    """Every token, parents first."""
    yield root
    for member in root.members:
        yield from walked(member)


def replaced(root: Token, number: int, change: Callable[[Token], Sequence[Token]]) -> Token:
    """The tree with what `change` makes of the token of that number (not the root) in its place."""
    number -= 1
    members = root.members
    for place, member in enumerate(members):
        if number < member.size:
            made = (replaced(member, number, change),) if number else change(member)
            return root.having((*members[:place], *made, *members[place + 1 :]))
        number -= member.size
    return root
