# SPDX-License-Identifier: Apache-2.0
"""JSON: checked and copied, frozen, and encoded in one way only.

A value that JSON or its encoder would change (a NaN, a key that is not text, half a surrogate pair)
is refused with its path. Bounds come before work: a value that is too deep, contains itself, or
repeats itself without end is refused as early as possible.
"""

import math
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from sealpoint.errors import SealpointError, WorldInvalid
from sealpoint.limits import JSON_DEPTH_MAX, WORLD_BYTES_MAX
from sealpoint.world._visible_text import quoted

JSON: TypeAlias = Any
"""A value of JSON: text, true, false, null, finite numbers of 64 bits, lists and mappings of them.

The value is checked at run time, because an exact type would reject values whose type a type
checker infers too broadly.
"""

_SHOWN_CHARS_MAX = 80
_SURROGATE = "expected text without lone surrogates, found one"
_SCALARS = frozenset({str, int, float, bool, type(None)})
_BEYOND = {int: "an integer beyond 64 bits", float: "a number that is not finite"}
_ENCODER = msgspec.json.Encoder(order="sorted")


def shown(name: str) -> str:
    """Return a name for an error message: visible, in quotes, and never long."""
    cut = name if len(name) <= _SHOWN_CHARS_MAX else f"{name[:_SHOWN_CHARS_MAX]}..."
    text = quoted(cut)
    return text if text.startswith('"') else f'"{text}"'


def encode_json(value: object) -> bytes:
    """Encode a plain value in its one spelling: keys in code point order, no spaces."""
    return _ENCODER.encode(value)


def decode_json(data: bytes) -> Any:
    """Read JSON in any spelling.

    Raises:
        WorldInvalid: It is too long, or not JSON.
    """
    check_size(data)
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise WorldInvalid(f"world: expected JSON, found {len(data)} bytes that are not") from exc


def name_text(value: object, path: str) -> str:
    """Check that a name is nonempty text, and return it.

    Raises:
        WorldInvalid: It is not.
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
    """Copy a JSON object into dicts, lists and scalars alone; return the copy and its depth.

    Raises:
        WorldInvalid: It is not a JSON object, or beyond the bounds; the message has the path.
    """
    if not isinstance(value, Mapping):
        raise WorldInvalid(f"{path}: expected an object, found {type(value).__name__}")
    copy = JsonCopy(bytes_max=WORLD_BYTES_MAX)
    try:
        return copy.copy(value), copy.depth
    except JsonFault as fault:
        raise WorldInvalid(fault.at(path)) from None


def named_object(value: object, path: str) -> tuple[dict[str, Any], int]:
    """Copy a JSON object whose keys are names; return the copy and its depth.

    Raises:
        WorldInvalid: It is not such an object, or beyond the bounds; the message has the path.
    """
    made, depth = plain_object(value, path)
    if "" in made:
        raise WorldInvalid(f"{path}: expected names that are text, found an empty one")
    return made, depth


def check_size(data: bytes) -> None:
    """Check the length of an encoding.

    Raises:
        WorldInvalid: It is too long.
    """
    if len(data) > WORLD_BYTES_MAX:
        raise WorldInvalid(f"world: expected at most {WORLD_BYTES_MAX} bytes, found {len(data)}")


def check_depth(depth: int, path: str) -> None:
    """Check the nesting depth of lists and objects.

    Raises:
        WorldInvalid: It is too deep.
    """
    if depth > JSON_DEPTH_MAX:
        raise WorldInvalid(f"{path}: {_too_deep(JSON_DEPTH_MAX)}")


def freeze(value: Any) -> Any:
    """Return an immutable copy of a plain value."""
    if type(value) is dict:
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if type(value) is list:
        return tuple(freeze(item) for item in value)
    return value


class JsonFault(Exception):
    """Why a value is not JSON; the stack adds the path as it unwinds."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.keys: list[object] = []

    def at(self, path: str) -> str:
        """Return the reason, with the path to the value."""
        place = "".join(f"[{_place(key)}]" for key in reversed(self.keys))
        return f"{path}{place}: {self.reason}"


class JsonCopy:
    """One copy of a JSON value in progress.

    Args:
        exact: Accept only dicts and lists, which keep their type; otherwise accept any mapping, and
            also tuples.
        wide: Also accept integers of any size and lone surrogates, which Python can read back.
        bytes_max: The maximum size in bytes.
        depth_max: The maximum nesting depth of lists and objects.
    """

    __slots__ = ("_bytes_max", "_depth_max", "_exact", "_left", "_wide", "depth")

    def __init__(
        self,
        *,
        exact: bool = False,
        wide: bool = False,
        bytes_max: int = sys.maxsize,
        depth_max: int = JSON_DEPTH_MAX,
    ) -> None:
        self._exact = exact
        self._wide = wide
        self._bytes_max = self._left = bytes_max
        self._depth_max = depth_max
        self.depth = 0
        """The depth reached."""

    def copy(self, value: object, depth: int = 1) -> Any:
        """Copy a value into dicts, lists and scalars alone.

        Raises:
            JsonFault: It is not a JSON value, or beyond the bounds.
        """
        kind = type(value)
        if kind in _SCALARS:
            self._check_scalar(value, kind)
            return value
        is_object = self._is_object(value, kind) if kind is not dict else True
        self._left -= 1
        if depth > self.depth or self._left < 0:
            self._descend(depth)
        made: dict[Any, Any] = {}
        for key, item in value.items() if is_object else enumerate(value):  # type: ignore[attr-defined, arg-type]
            if is_object:
                self._check_key(key)
            try:
                if type(item) in _SCALARS:
                    self._check_scalar(item, type(item))
                    made[key] = item
                else:
                    made[key] = self.copy(item, depth + 1)
            except JsonFault as fault:
                fault.keys.append(key)
                raise
        return made if is_object else list(made.values())

    def _check_key(self, key: object) -> None:
        if type(key) is not str:
            raise JsonFault(f"expected keys that are text, found {type(key).__name__}")
        if not key.isascii() or self._left <= len(key) + 2:
            self._check_scalar(key, str)
        else:
            self._left -= len(key) + 2

    def _is_object(self, value: object, kind: type) -> bool:
        """Whether a value other than a dict is an object, and not a list."""
        if kind is list or (not self._exact and isinstance(value, list | tuple)):
            return False
        if self._exact or not isinstance(value, Mapping):
            raise _not_json(value)
        return True

    def _descend(self, depth: int) -> None:
        if self._left < 0:
            raise self._too_long()
        if depth > self._depth_max:
            raise JsonFault(_too_deep(self._depth_max))
        self.depth = depth

    def _too_long(self) -> JsonFault:
        return JsonFault(f"the world has more than {self._bytes_max} bytes")

    def _check_scalar(self, value: Any, kind: type) -> None:
        if kind is str:
            self._left -= len(value) + 2
            if not (self._wide or value.isascii() or _is_text(value)):
                raise JsonFault(_SURROGATE)
        else:
            self._left -= 1
            if kind is int:
                if not (self._wide or -(2**63) <= value < 2**64):
                    raise _not_json(value)
            elif kind is float and not math.isfinite(value):
                raise _not_json(value)
        if self._left < 0:
            raise self._too_long()


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


def _too_deep(depth_max: int) -> str:
    return f"it has more than {depth_max} lists and objects in one another"


def _not_json(value: object) -> JsonFault:
    found = _BEYOND.get(type(value), type(value).__name__)
    return JsonFault(
        f"expected a JSON value, found {found} "
        "(text, true, false, null, finite numbers of 64 bits, lists and objects)"
    )


def json_data(value: Any) -> Any:
    """Plain data with records in it as plain data alone: times are text that ends in Z."""
    return msgspec.to_builtins(value, enc_hook=_other_data)


def json_form(record: Any, *names: str) -> dict[str, Any]:
    """Return the JSON form of a record: its fields in order, times as text, tuples as lists.

    Args:
        record: A dataclass or a struct.
        names: Only these fields and properties, in this order; without any, all fields.
    """
    form: dict[str, Any] = json_data(
        {name: getattr(record, name) for name in names} if names else record
    )
    return form


def _other_data(value: Any) -> Any:
    return value.as_dict() if isinstance(value, SealpointError) else str(value)
