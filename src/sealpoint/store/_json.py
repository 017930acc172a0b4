# SPDX-License-Identifier: Apache-2.0
"""Metadata and worlds: JSON objects, kept exactly.

What JSON or its encoder would change on the way (a NaN, a tuple, a key that is no text) is
refused when it is saved, with the path to it, instead of coming back as something else.
"""

import math
from collections.abc import Mapping
from typing import Any

from sealpoint.errors import ValueNotAllowed
from sealpoint.limits import JSON_DEPTH_MAX

__all__ = ["plain_object", "plain_value"]


def _refused(message: str) -> ValueNotAllowed:
    return ValueNotAllowed(message, hint="Metadata and worlds are JSON: turn the value into that.")


def plain_object(value: object, what: str) -> dict[str, Any]:
    """A JSON object of its own: a copy, so that later edits of the caller's do not matter.

    Raises:
        ValueNotAllowed: The value is not a mapping of JSON values; the message has the path.
    """
    if not isinstance(value, Mapping):
        raise _refused(f"{what}: expected a mapping, found {type(value).__name__}")
    return _object(dict(value), what, 1)


def plain_value(value: object, what: str) -> Any:
    """Any JSON value of its own.

    Raises:
        ValueNotAllowed: The value is not one; the message has the path.
    """
    return _value(value, what, 0)


def _object(value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
    if depth > JSON_DEPTH_MAX:
        raise _refused(f"{path}: expected at most {JSON_DEPTH_MAX} levels")
    made = {}
    for key, item in value.items():
        if type(key) is not str:
            raise _refused(f"{path}: expected keys of type str, found {type(key).__name__}")
        made[_text(key, path)] = _value(item, f"{path}[{key!r}]", depth)
    return made


def _value(value: Any, path: str, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, path)
    if kind is int and -(2**63) <= value < 2**64:
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is dict:
        return _object(value, path, depth + 1)
    if kind is list:
        if depth >= JSON_DEPTH_MAX:
            raise _refused(f"{path}: expected at most {JSON_DEPTH_MAX} levels")
        return [_value(item, f"{path}[{place}]", depth + 1) for place, item in enumerate(value)]
    raise _refused(
        f"{path}: expected a JSON value, found {kind.__name__} "
        "(text, true, false, null, finite numbers of 64 bits, lists and dicts)"
    )


def _text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise _refused(f"{path}: expected text without lone surrogates") from exc
    return text
