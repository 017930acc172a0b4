# SPDX-License-Identifier: Apache-2.0
"""Values in the form that approvers see and that statements bind: plain JSON.

No two different values have the same JSON. A value without a plain form appears under `$object`,
with its type, the digest of its sealed form and its text. A dict key that is spelled like that,
with any number of dollar signs, gets one more dollar sign, so that no dict can imitate an object.

The text lists what would be sealed, field by field. The `repr` of a class would not do: it may omit
something important or differ between processes. A pydantic model is shown as its own JSON if that
JSON is complete.
"""

import json
from collections import deque
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sealpoint.codec import Registry, UntypedValue
from sealpoint.errors import DecodeError, EncodeError, SealpointError
from sealpoint.limits import QUESTION_BYTES_MAX, Limits
from sealpoint.store import plain_value

_OBJECT = "$object"
_LEVELS_MAX = 16
"""How deep the conversion enters dicts and lists; the surrounding structure also needs levels."""
_CHAR_BYTES_MAX = 16
"""The maximum length of one character after Python and then JSON have escaped it."""


def to_display_json(value: Any, registry: Registry) -> Any:
    """Return a value in the form that people see.

    Raises:
        TypeNotAllowed: It holds a type that the registry does not allow.
    """
    if not _is_plain(value):
        registry.encode(value)  # the error gives the path of the value that is not allowed
    return _shown(value, registry, 0)


def question_to_display_json(
    value: Any, registry: Registry, *, bytes_max: int = QUESTION_BYTES_MAX
) -> Any:
    """Return the same for a question; of a question that is too long, only the start of its text.

    A value whose type is not allowed appears as its type name only: saving it fails anyway, with
    the path.
    """
    try:
        shown = to_display_json(value, registry)
    except EncodeError:
        return {_OBJECT: {"type": type(value).__qualname__}}
    if len(json.dumps(shown)) <= bytes_max:
        return shown
    found = _object(value, registry)
    whole: str = found[_OBJECT]["text"]
    part = whole[: bytes_max // _CHAR_BYTES_MAX]
    more = f"{len(whole) - len(part):,} more characters"
    found[_OBJECT]["text"] = f"{part} ... and {more}: sealpoint show THREAD --full --untyped"
    return found


def _shown(value: Any, registry: Registry, level: int) -> Any:
    if level < _LEVELS_MAX:
        if type(value) is dict and all(type(key) is str and _is_plain(key) for key in value):
            return {_escaped(key): _shown(item, registry, level + 1) for key, item in value.items()}
        if type(value) is list:
            return [_shown(item, registry, level + 1) for item in value]
    if type(value) not in (dict, list) and _is_plain(value):
        return value
    return _object(value, registry)


def _object(value: Any, registry: Registry) -> dict[str, dict[str, str]]:
    sealed = registry.encode(value)
    return {
        _OBJECT: {
            "type": type(value).__qualname__,
            "sha256": sha256(sealed).hexdigest(),
            "text": _own_json(value) or _text(_untyped(sealed, value, registry), registry),
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


def _own_json(value: Any) -> str | None:
    """Return the JSON of a pydantic model, unless that JSON omits or changes something."""
    if callable(getattr(type(value), "model_dump_json", None)):
        with suppress(ValueError, TypeError):  # such as a text that is not valid Unicode
            text = str(value.model_dump_json())
            return text if _is_lossless(json.loads(text), value) else None
    return None


def _is_lossless(told: Any, value: Any) -> bool:
    """Whether JSON holds everything that a value holds, unchanged; False if that is uncertain.

    A model may exclude fields, or serialize them in another form.
    """
    if type(told) is dict:
        held = value if type(value) is dict else _attributes(value)
        return (
            held is not None
            and held.keys() <= told.keys()
            and all(_is_lossless(told[name], item) for name, item in held.items())
        )
    if type(told) is list:
        return (
            type(value) is list and len(told) == len(value) and all(map(_is_lossless, told, value))
        )
    return type(told) is type(value) and told == value


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return everything that an object holds; None if that is unknown."""
    held = getattr(value, "__dict__", None)
    if held is None or getattr(value, "__pydantic_private__", None):
        return None
    return {**held, **(getattr(value, "__pydantic_extra__", None) or {})}


def _untyped(sealed: bytes, value: Any, registry: Registry) -> Any:
    """Decode a value without the application's types, so that every process shows the same."""
    try:
        return _untyped_reader(registry.limits).decode(sealed)
    except DecodeError:  # such as keys that are hashable only as the application's type
        return value


@lru_cache(maxsize=8)
def _untyped_reader(limits: Limits) -> Registry:
    return Registry(limits=limits).showing_untyped("")


def _text(value: Any, registry: Registry) -> str:
    """Return a value with its fields, as Python would write it."""

    def texts(values: Any) -> list[str]:
        return [_text(each, registry) for each in values]

    kind = type(value)
    rule = registry.rule_of(kind)
    if rule is not None:
        value, kind = (
            UntypedValue.of(rule.name, rule.version, rule.kind.to_body(value)),
            UntypedValue,
        )
    if kind is UntypedValue:
        return _typed_text(value, texts(value.fields.values()), registry)
    if isinstance(value, dict):
        pairs = zip(texts(value), texts(value.values()), strict=True)
        return _called(kind, dict, f"{{{', '.join(f'{key}: {text}' for key, text in pairs)}}}")
    if isinstance(value, set | frozenset) and value:
        return _called(kind, set, f"{{{', '.join(sorted(texts(value)))}}}")
    if isinstance(value, tuple):
        return f"({', '.join(texts(value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list | deque):
        return _called(kind, list, f"[{', '.join(texts(value))}]")
    return repr(bytes(value) if kind is memoryview else value)


def _typed_text(value: UntypedValue, texts: list[str], registry: Registry) -> str:
    rule = registry.rule_named(value.name)
    name = value.name if rule is None else rule.cls.__qualname__
    # A model may hold extra fields, whose names could be written so that two values look the same.
    keys = [key if key.isidentifier() else repr(key) for key in value.fields]
    return f"{name}({', '.join(map('='.join, zip(keys, texts, strict=True)))})"


def _called(kind: type, plain: type, text: str) -> str:
    return text if kind is plain else f"{kind.__name__}({text})"
