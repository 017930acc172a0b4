# SPDX-License-Identifier: Apache-2.0
"""Values of a question, a call or an answer as complete text.

No two different JSON values have the same text, and no name of a field can imitate another field.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sealpoint.codec import UntypedValue
from sealpoint.views.conversation import fields_of, parsed_arguments
from sealpoint.views.masking import Masking
from sealpoint.views.values import json_fault, render, type_name, untyped_json, value_lines
from sealpoint.world import visible

__all__ = [
    "TextField",
    "brief",
    "hide",
    "is_cut",
    "is_object",
    "is_same",
    "is_text",
    "label_of",
    "labels_of",
    "line_of",
    "lines_of",
    "named_values",
    "plain_of",
    "shorten",
    "text_field",
    "words_of",
]

_TEXT_CHARS_MAX = 500_000
_CUT = re.compile(r" \.\.\. and [\d,]+ more characters: sealpoint show THREAD --full --untyped\Z")
_MORE = re.compile(r": |[(]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """A named value and its lines."""

    name: str
    """Empty for a value without a name."""
    lines: tuple[str, ...]
    """Empty if there is no value."""
    style: str = ""
    """As `Styled.style`; `warning` marks a value that a difference names."""


def text_field(label: str, value: Any, style: str = "") -> TextField:
    """Return a value as a field with complete lines."""
    return TextField(name=label, lines=lines_of(value), style=style)


def label_of(name: str) -> str:
    """Return the name of a field; in quotes, as JSON has it, if it could be read as more."""
    is_plain = name == name.strip() and not name.startswith('"') and _MORE.search(name) is None
    return visible(name if name and is_plain else json.dumps(name, ensure_ascii=False))


def labels_of(names: Sequence[str]) -> list[str]:
    """Return a different label for each of some names; those that occur again have a number."""
    counts = Counter(names)
    return [
        f"{label_of(name)} ({number})" if counts[name] > 1 else label_of(name)
        for number, name in enumerate(names, 1)
    ]


def named_values(value: Any) -> dict[str, Any]:
    """Return the members of a value by their labels; a value without members has the label ""."""
    fields = fields_of(value)
    if not fields:
        return {"": value}
    kind = {} if type(value) is dict else {"(type)": type_name(value)}
    return kind | {label_of(name): each for name, each in fields.items()}


def lines_of(value: Any) -> tuple[str, ...]:
    """Return a complete value in lines; a text that reads as another value is in quotes."""
    if isinstance(value, str):
        lines = value.split("\n")
        if _reads_otherwise(value, lines):
            return (visible(json.dumps(value, ensure_ascii=False)),)
        return tuple(map(visible, lines))
    if type(value) is list and value and all(map(_is_one_line, value)):
        return tuple(f"- {visible(each)}" for each in value)
    with suppress(ValueError, TypeError, RecursionError):
        plain = untyped_json(value)
        if json_fault(plain) is None:
            return tuple(value_lines(plain))
    return tuple(map(visible, render(value, name="value", everything=True)))


def _reads_otherwise(text: str, lines: Sequence[str]) -> bool:
    """Whether the lines of a text are those of another value: JSON, a list, or another object."""
    if not text or text.startswith("value: ") or all(each.startswith("- ") for each in lines):
        return True
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False


def is_same(one: Any, other: Any) -> bool:
    """Whether two values have the same text, whatever the order of their keys."""
    with suppress(ValueError, TypeError, RecursionError):
        texts = [json.dumps(untyped_json(each), sort_keys=True) for each in (one, other)]
        return texts[0] == texts[1]
    return lines_of(one) == lines_of(other)


def is_text(value: Any) -> bool:
    """Whether a value is a string, and of no class that is derived from it."""
    return type(value) is str


def _is_one_line(value: Any) -> bool:
    return type(value) is str and "\n" not in value


def words_of(value: Any) -> str:
    """Return a complete value in one line; a text without quotes, to look for in another."""
    return " ".join(value.split()) if isinstance(value, str) else line_of(value)


def line_of(value: Any) -> str:
    """Return a complete value in one line."""
    return " ".join(each.strip() for each in lines_of(value))


def brief(value: Any) -> str:
    """Return the start of a value in one line."""
    return shorten(line_of(value), 80)


def shorten(text: str, chars_max: int) -> str:
    """Return the start of a text."""
    return text if len(text) <= chars_max else f"{text[:chars_max]} …"


def hide(value: Any, masking: Masking) -> Any:
    """Return a value without its secrets, as a person sees it who does not approve it."""
    if not masking.names:
        return value
    fields = fields_of(value)
    if fields:
        kept = {
            key: "(hidden)" if masking.hides(key) else hide(each, masking)
            for key, each in fields.items()
        }
        return replace(value, fields=kept) if type(value) is UntypedValue else kept
    return [hide(each, masking) for each in value] if type(value) is list else value


def is_object(value: Any) -> bool:
    """Whether a value of an approver's JSON stands for an object."""
    if type(value) is not dict or value.keys() != {"$object"}:
        return False
    return type(value["$object"]) is dict and isinstance(value["$object"].get("text"), str)


def is_cut(value: Any) -> bool:
    """Whether a value of an approver's JSON is only the start of a text; see `plain_of`."""
    return is_object(value) and _CUT.search(value["$object"]["text"]) is not None


def plain_of(value: Any) -> Any:
    """Return a value of an approver's JSON with the objects in it as their fields."""
    if is_object(value):
        held = value["$object"]
        return _object(str(held.get("type")), held["text"])
    if type(value) is dict:
        return {key: plain_of(each) for key, each in value.items()}
    return [plain_of(each) for each in value] if type(value) is list else value


def _object(name: str, text: str) -> Any:
    """Return an object by its text, which is JSON or what Python would write; else the text."""
    if len(text) > _TEXT_CHARS_MAX:
        return text
    fields = parsed_arguments(text)
    if type(fields) is dict:
        return UntypedValue(name=name, version=1, fields=fields)
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return _read_node(ast.parse(text, mode="eval").body, text)
    return text


def _read_node(node: ast.expr, text: str) -> Any:
    """Return what an expression stands for; nothing of it is executed."""
    match node:
        case ast.Constant(value=value) if type(value) in (str, int, float, bool, type(None)):
            return value
        case ast.List(elts=members) | ast.Tuple(elts=members):
            return [_read_node(each, text) for each in members]
        case ast.Dict(keys=keys, values=values):
            names = [key.value for key in keys if isinstance(key, ast.Constant)]
            if len({*filter(is_text, names)}) == len(keys):
                pairs = zip(names, values, strict=True)
                return {name: _read_node(each, text) for name, each in pairs}
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[_, *_] as given):
            named = {each.arg: each.value for each in given if each.arg is not None}
            if len(named) == len(given):
                fields = {key: _read_node(each, text) for key, each in named.items()}
                return UntypedValue(name=name, version=1, fields=fields)
        case _:
            pass
    return ast.get_source_segment(text, node) or ""
