# SPDX-License-Identifier: Apache-2.0
"""The JSON of a world: checked, copied, frozen, and written in one way only.

What JSON or its encoder would change on the way (a NaN, a key that is no text, half a surrogate
pair) is refused with the path to it. Bounds come before work: a value that is too deep, holds
itself, or repeats itself without end is refused as soon as that is known.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from sealpoint.errors import WorldInvalid
from sealpoint.limits import JSON_DEPTH_MAX, WORLD_BYTES_MAX
from sealpoint.world._visible import quoted

__all__ = [
    "JSON",
    "check_depth",
    "check_size",
    "decode_json",
    "encode_json",
    "freeze",
    "name_text",
    "named_object",
    "plain_object",
    "shown",
]

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
