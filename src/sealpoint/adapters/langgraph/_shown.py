# SPDX-License-Identifier: Apache-2.0
"""Values of a graph as people are shown them, and as a statement binds them: plain JSON.

No two different values have the same JSON. What has no plain form is told by its type, the digest
of its sealed form and its text, under `$object`; a key of a dict that is spelt like that, with any
number of dollars, is told with one more of them, so that no dict can stand for an object.
"""

from hashlib import sha256
from typing import Any

from langgraph.types import Interrupt
from pydantic import BaseModel

from sealpoint.codec import Registry
from sealpoint.errors import EncodeError, SealpointError
from sealpoint.store import plain_value

__all__ = ["shown", "shown_question"]

_OBJECT = "$object"
_LEVELS_MAX = 16
"""How deep dicts and lists are looked into: what stands around them needs levels of its own."""


def shown(value: Any, registry: Registry) -> Any:
    """A value as JSON; different values are told differently.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    if not _is_plain(value):
        registry.encode(value)  # says where in it something is not allowed
    return _shown(value, registry, 0)


def shown_question(value: Any, registry: Registry) -> Any:
    """What interrupts wait for, as JSON."""
    found = value if isinstance(value, list | tuple) else [value]
    return [
        {"id": each.id, "value": _shown_or_type(each.value, registry)}
        if isinstance(each, Interrupt)
        else {"value": _shown_or_type(each, registry)}
        for each in found
    ]


def _shown(value: Any, registry: Registry, level: int) -> Any:
    if level < _LEVELS_MAX:
        if type(value) is dict and all(type(key) is str and _is_plain(key) for key in value):
            return {_escaped(key): _shown(item, registry, level + 1) for key, item in value.items()}
        if type(value) is list:
            return [_shown(item, registry, level + 1) for item in value]
    if type(value) not in (dict, list) and _is_plain(value):
        return value
    return {
        _OBJECT: {
            "type": type(value).__qualname__,
            "sha256": sha256(registry.encode(value)).hexdigest(),
            "text": _text(value),
        }
    }


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") and f"${key.lstrip('$')}" == _OBJECT else key


def _is_plain(value: Any) -> bool:
    try:
        plain_value(value, "value")
    except SealpointError:
        return False
    return True


def _shown_or_type(value: Any, registry: Registry) -> Any:
    try:
        return shown(value, registry)
    except EncodeError:
        # The save itself fails because of it, with the path.
        return {_OBJECT: {"type": type(value).__qualname__}}


def _text(value: Any) -> str:
    if isinstance(value, BaseModel):
        try:
            return value.model_dump_json()
        except ValueError:
            pass  # such as a text that is no Unicode
    return repr(value)
