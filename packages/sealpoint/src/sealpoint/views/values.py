# SPDX-License-Identifier: Apache-2.0
"""The content of a loaded value, and its text in one line, for display and comparison.

Whatever its type, a value is a leaf, a sequence, a mapping, a set or a record of named fields.
Texts made here are for people: they may be cut, and then say by how much. No code parses them.
"""

import dataclasses
import json
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum, StrEnum
from itertools import islice
from typing import Any

import msgspec

from sealpoint.adapters import framework_packages
from sealpoint.codec import Registry, UntypedValue
from sealpoint.views.masking import MASKED, REVEALED, Masked, Masking
from sealpoint.world import JsonCopy, JsonFault, visible

__all__ = [
    "ValueParts",
    "ValueShape",
    "counted",
    "json_fault",
    "json_lines",
    "key_step",
    "leaf_text",
    "parts_of",
    "render",
    "short_text",
    "shown_registry",
    "type_name",
    "untyped_json",
    "value_lines",
    "whole_text",
]

_NESTED_CHARS_LEAST = 12
_INT_BITS_MAX = 8192
_MORE = " ... and "
_UNSET = object()


class ValueShape(StrEnum):
    """The kind of a value, for a reader."""

    LEAF = "leaf"
    MAPPING = "mapping"
    RECORD = "record"
    SEQUENCE = "sequence"
    SET = "set"


@dataclass(frozen=True, slots=True)
class ValueParts:
    """The members of a value, each with its key, field name or position; read one by one."""

    shape: ValueShape
    held: Collection[Any]
    """The container itself; for a record, its fields by name."""
    masking: Masking = REVEALED

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.held)

    @property
    def members(self) -> Iterator[tuple[Any, Any]]:
        """All members in order; a set has no order."""
        return self.slice(0, self.size)

    def slice(self, start: int, stop: int) -> Iterator[tuple[Any, Any]]:
        """Yield the members from one position to another."""
        if isinstance(self.held, dict):
            for key, member in islice(self.held.items(), start, stop):
                yield key, MASKED if self.masking.hides(key) else member
        elif self.shape is ValueShape.SET:
            yield from ((None, member) for member in islice(self.held, start, stop))
        elif isinstance(self.held, deque):
            yield from enumerate(islice(self.held, start, stop), start)
        elif isinstance(self.held, list | tuple):
            yield from enumerate(self.held[start:stop], start)


_LEAF = ValueParts(ValueShape.LEAF, ())
# Most values have one of these types and need no further check.
_PLAIN_LEAVES = frozenset({type(None), bool, bytes, float, int, str})
_PLAIN_SHAPES: dict[type, ValueShape] = {
    dict: ValueShape.MAPPING,
    list: ValueShape.SEQUENCE,
    tuple: ValueShape.SEQUENCE,
}
_WORDS = {
    ValueShape.LEAF: ("part", "parts"),
    ValueShape.MAPPING: ("key", "keys"),
    ValueShape.RECORD: ("field", "fields"),
    ValueShape.SEQUENCE: ("item", "items"),
    ValueShape.SET: ("member", "members"),
}


def parts_of(value: Any, masking: Masking = REVEALED) -> ValueParts:
    """Return the direct content of a value; `MASKED` replaces hidden members."""
    kind = type(value)
    if kind in _PLAIN_LEAVES or isinstance(value, Enum):
        return _LEAF
    if kind in _PLAIN_SHAPES:
        return ValueParts(_PLAIN_SHAPES[kind], value, masking)
    fields = value.fields if kind is UntypedValue else _fields_of(value)
    if fields is not None:
        return ValueParts(ValueShape.RECORD, fields, masking)
    if isinstance(value, list | tuple | deque):
        return ValueParts(ValueShape.SEQUENCE, value, masking)
    if isinstance(value, set | frozenset):
        return ValueParts(ValueShape.SET, value, masking)
    if isinstance(value, dict):
        return ValueParts(ValueShape.MAPPING, value, masking)
    return _LEAF


def _fields_of(value: Any) -> dict[str, Any] | None:
    """Return the fields of a dataclass, pydantic or attrs class, NamedTuple, Struct or slice."""
    kind: Any = type(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return dict(zip(kind._fields, value, strict=True))
    if hasattr(kind, "__pydantic_fields__") and not dataclasses.is_dataclass(kind):
        extra = value.__pydantic_extra__
        return {**value.__dict__, **(extra if isinstance(extra, Mapping) else {})}
    names = _field_names(value, kind)
    if names is None:
        return None
    found = {name: getattr(value, name, _UNSET) for name in names}
    return {name: member for name, member in found.items() if member is not _UNSET}


def _field_names(value: Any, kind: Any) -> Sequence[str] | None:
    if isinstance(value, slice):
        return ("start", "stop", "step")
    if isinstance(value, msgspec.Struct):
        return list(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is not None:
        return [field.name for field in attributes]
    if kind.__repr__ is object.__repr__ and hasattr(value, "__dict__"):
        # Its text would be an address, which means nothing and differs each time.
        return [name for name, member in vars(value).items() if member is not None]
    return None


def type_name(value: Any) -> str:
    """Return the type of a value, with its module unless it is built in."""
    kind = type(value)
    if kind is UntypedValue:
        return str(value.name)
    if kind is Masked:
        return "masked"
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def shown_registry(registry: Registry, *, untyped: bool) -> Registry:
    """Copy a registry for viewing states, so that no code of a framework runs.

    Args:
        registry: The known types; the application's own, or an empty registry.
        untyped: Whether to show every other type as plain data, or only the types of frameworks.
    """
    beginnings = [""] if untyped else [f"{name}." for name in framework_packages()]
    return registry.showing_untyped(*beginnings)


def untyped_json(value: Any) -> Any:
    """Return the value with each object of an unknown type as its type and fields."""
    if type(value) is UntypedValue:
        return {"type": value.name, "fields": untyped_json(value.fields)}
    if type(value) is list:
        return [untyped_json(each) for each in value]
    if type(value) is dict:
        return {key: untyped_json(each) for key, each in value.items()}
    return value


def counted(parts: ValueParts) -> str:
    """Return the size of a value in words: `3 items`."""
    one, many = _WORDS[parts.shape]
    return f"{parts.size:,} {one if parts.size == 1 else many}"


def key_step(shape: ValueShape, key: Any) -> str:
    """Return the step of a path that leads to a member."""
    if shape is ValueShape.RECORD:
        return f".{key}"
    if shape is ValueShape.SET:
        return "{...}"
    if type(key) is str:
        return f"[{json.dumps(key, ensure_ascii=False)}]"
    return f"[{short_text(key, 40)}]"


def short_text(value: Any, chars_max: int = 72, masking: Masking = REVEALED) -> str:
    """Return a value in about one line, with a count of the omitted rest."""
    parts = parts_of(value, masking)
    if parts.shape is ValueShape.LEAF:
        return leaf_text(value, chars_max)
    opening, closing = _brackets(value, parts.shape)
    if parts.size and chars_max <= _NESTED_CHARS_LEAST:
        return f"{opening}{counted(parts)}{closing}"
    texts: list[str] = []
    used = len(opening) + len(closing)
    for place, (key, member) in enumerate(parts.members):
        text = _label(parts.shape, key) + short_text(member, max(chars_max // 2, 1), masking)
        if texts and used + len(text) > chars_max:
            texts.append(f"{_MORE.lstrip()}{parts.size - place:,} more")
            break
        texts.append(text)
        used += len(text) + 2
    comma = "," if type(value) is tuple and parts.size == 1 else ""
    return f"{opening}{', '.join(texts)}{comma}{closing}"


def _label(shape: ValueShape, key: Any) -> str:
    if shape is ValueShape.RECORD:
        return f"{key}="
    if shape is ValueShape.MAPPING:
        return f"{short_text(key, 40)}: "
    return ""


def _brackets(value: Any, shape: ValueShape) -> tuple[str, str]:
    kind = type(value)
    if kind is list:
        return "[", "]"
    if kind is tuple:
        return "(", ")"
    if kind is dict or (kind is set and value):
        return "{", "}"
    name = value.name if kind is UntypedValue else kind.__qualname__
    if shape is ValueShape.SEQUENCE:
        return f"{name}([", "])"
    if shape is ValueShape.RECORD or not value:
        return f"{name}(", ")"
    return f"{name}({{", "})"


def whole_text(value: Any, chars_max: int, masking: Masking = REVEALED) -> str | None:
    """Return a complete value in one line, or None if it does not fit."""
    parts = parts_of(value, masking)
    if parts.shape is ValueShape.LEAF:
        text = leaf_text(value, chars_max)
        return text if len(text) <= chars_max and _MORE not in text else None
    opening, closing = _brackets(value, parts.shape)
    if type(value) is tuple and parts.size == 1:
        closing = f",{closing}"
    left = chars_max - len(opening) - len(closing)
    texts: list[str] = []
    for key, member in parts.members:
        label = _label(parts.shape, key)
        inner = whole_text(member, left - len(label), masking) if left > 0 else None
        if inner is None or _MORE in label:
            return None
        texts.append(label + inner)
        left -= len(label) + len(inner) + 2
    return f"{opening}{', '.join(texts)}{closing}"


def leaf_text(value: Any, chars_max: int) -> str:
    """Return a value without members in about this length, with a count of the omitted rest."""
    shown = max(chars_max, 2 * _NESTED_CHARS_LEAST)
    for kinds, text_of in _LEAVES:
        if isinstance(value, kinds):
            return text_of(value, shown)
    if type(value).__module__.partition(".")[0] in ("numpy", "torch"):
        return _array_text(value, shown)
    return _cut(_printed(value), shown, "characters")


def _cut(text: str, shown: int, unit: str) -> str:
    """Cut a text, but only if that makes it shorter."""
    rest = f"{_MORE}{len(text) - shown:,} more {unit}"
    return text if len(text) <= shown + len(rest) else text[:shown] + rest


def _printed(value: Any) -> str:
    """Return the `repr` of a value, in one line. The code of application types may fail."""
    try:
        return " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 (application code may raise anything; then there is no text)
        return f"<{type(value).__qualname__} without a text>"


def _str_text(text: str, shown: int) -> str:
    rest = f"{_MORE}{len(text) - shown:,} more characters"
    if len(text) <= shown + len(rest):
        return json.dumps(text, ensure_ascii=False)
    return json.dumps(text[:shown], ensure_ascii=False) + rest


def _int_text(value: int, shown: int) -> str:
    # Python refuses to print an int of thousands of digits in decimal.
    printed = repr(value) if value.bit_length() <= _INT_BITS_MAX else hex(value)
    return _cut(printed, shown, "digits")


def _bytes_text(value: bytes, shown: int) -> str:
    if len(value) <= shown:
        return repr(value)
    return f"{value[:shown]!r}{_MORE}{len(value) - shown:,} more bytes"


def _enum_text(value: Enum, _shown: int) -> str:
    return f"{type(value).__qualname__}.{value.name}" if value.name else _printed(value)


def _time_text(value: date | time, _shown: int) -> str:
    zone = getattr(getattr(value, "tzinfo", None), "key", None)
    beside = (f" {zone}" if zone else "") + (" fold=1" if getattr(value, "fold", 0) else "")
    return f"{type(value).__qualname__}({value.isoformat()}{beside})"


def _array_text(value: Any, shown: int) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not shape or dtype is None:
        return _cut(_printed(value), shown, "characters")
    text = f"{type(value).__qualname__} {dtype} of shape {tuple(int(n) for n in shape)}"
    size = math.prod(int(length) for length in shape)
    if size > shown:
        return f"{text}{_MORE}its {size:,} elements"
    return f"{text}: {_printed(value.tolist())}"


_LEAVES: tuple[tuple[Any, Callable[[Any, int], str]], ...] = (
    (Enum, _enum_text),
    (bool, lambda value, _shown: repr(value)),
    (str, _str_text),
    (int, _int_text),
    (bytes, _bytes_text),
    (datetime, _time_text),
    (date, _time_text),
    (time, _time_text),
)


# A state as lines for people: every value with its type, nested values indented.
#
# A line that omits something counts it, unless everything is requested. The lines of a text with
# several lines have a bar before them, so that no text can imitate a part of the tree.


_LINE_CHARS = 64
_MEMBERS_SHOWN = 40
_TEXT_LINES_SHOWN = 12
_TEXT_CHARS_SHOWN = 600
_DEPTH_MAX = 100
_EVERYTHING = 1 << 60


def render(
    value: Any, *, name: str = "state", everything: bool = False, masking: Masking = REVEALED
) -> Iterator[str]:
    """Yield the lines that show a value.

    Args:
        value: The value.
        name: Its name.
        everything: Omit nothing.
        masking: The names of hidden values.
    """
    yield from _Rendering(masking, everything=everything).lines(name, value, 0)


class _Rendering:
    def __init__(self, masking: Masking, *, everything: bool) -> None:
        self._masking = masking
        self._members_max = _EVERYTHING if everything else _MEMBERS_SHOWN
        self._text_lines_max = _EVERYTHING if everything else _TEXT_LINES_SHOWN
        self._text_chars_max = _EVERYTHING if everything else _TEXT_CHARS_SHOWN

    def lines(self, label: str, value: Any, depth: int) -> Iterator[str]:
        opening = f"{'  ' * depth}{label}: "
        if type(value) is str and "\n" in value:
            yield from self._text(opening, value, depth)
            return
        parts = parts_of(value, self._masking)
        if parts.shape is ValueShape.LEAF:
            yield opening + short_text(value, self._text_chars_max)
            return
        line = whole_text(value, _LINE_CHARS, self._masking)
        if line is not None:
            yield opening + line
            return
        yield f"{opening}{type_name(value)}, {counted(parts)}"
        if depth >= _DEPTH_MAX:
            yield f"{'  ' * (depth + 1)}... nested deeper than can be shown"
            return
        for place, (key, member) in enumerate(parts.members):
            if place >= self._members_max:
                yield f"{'  ' * (depth + 1)}... and {parts.size - place:,} more"
                return
            yield from self.lines(_row_label(parts.shape, key), member, depth + 1)

    def _text(self, opening: str, value: str, depth: int) -> Iterator[str]:
        """Yield a text of several lines, each after a bar."""
        lines = value.split("\n")
        yield f"{opening}str, {len(lines):,} lines"
        for place, line in enumerate(lines):
            if place >= self._text_lines_max:
                yield f"{'  ' * (depth + 1)}... and {len(lines) - place:,} more lines"
                return
            shown = line[: self._text_chars_max]
            more = len(line) - len(shown)
            rest = f" ... and {more:,} more characters" if more else ""
            yield f"{'  ' * (depth + 1)}| {shown}{rest}"


def _row_label(shape: ValueShape, key: Any) -> str:
    if shape is ValueShape.MAPPING:
        return short_text(key)
    return "-" if shape is ValueShape.SET else key_step(shape, key)


# JSON values: in documents, and for people.


_JSON_DEPTH_MAX = 500
"""The nesting depth that Python's own JSON reader and writer support, with a margin."""


def json_fault(value: Any) -> str | None:
    """Return where and why JSON cannot express a state without loss, or None if it can."""
    try:
        JsonCopy(exact=True, wide=True, depth_max=_JSON_DEPTH_MAX).copy(value)
    except JsonFault as fault:
        return fault.at("state")
    return None


def json_lines(value: Any, indent: str) -> list[str]:
    """Return a JSON value for people: as `value_lines`, each line indented."""
    return [f"{indent}{line}" for line in value_lines(value)]


def value_lines(value: Any) -> list[str]:
    """Return a value as indented JSON; a text of several lines has a bar before each line."""
    if isinstance(value, str) and "\n" in value:
        return [f"| {visible(line)}" for line in value.split("\n")]
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return [_indented(line) for line in text.split("\n")]


def _indented(line: str) -> str:
    """Make a line of JSON visible, except for its leading spaces, which come from `json`."""
    text = line.lstrip(" ")
    return line[: len(line) - len(text)] + visible(text)
