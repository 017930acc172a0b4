# SPDX-License-Identifier: Apache-2.0
"""Walking through a value in Python, to say where in it something lies.

The slow way, for people: the native engine does not know paths, so they are found afterwards.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from sealpoint.codec._kinds import EnumKind, PairKind
from sealpoint.codec._rules import TypeRule
from sealpoint.errors import ValueNotAllowed

__all__ = ["ROOT", "find_path", "members_of", "walk"]

ROOT = "state"
_KEY_CHARS_MAX = 40
_PATH_CHARS_MAX = 200
_ATOMS = frozenset({type(None), bool, int, float, str, bytes})

_Rules = Mapping[type, TypeRule]


def _key_text(key: object, place: int) -> str:
    if type(key) is str and len(key) <= _KEY_CHARS_MAX:
        return f'["{key}"]' if key.isidentifier() else f"[{key!r}]"
    if type(key) in (int, bool, type(None)):
        return f"[{key!r}]"
    return f"[<key {place}>]"


def members_of(value: Any, rules: _Rules) -> Iterator[tuple[str, Any]]:
    """What a value directly holds, each with the piece of path that leads to it."""
    kind = type(value)
    rule = rules.get(kind)
    if rule is not None:
        yield from _fields_of(value, rule)
    elif kind in (list, tuple, deque):
        for place, member in enumerate(value):
            yield f"[{place}]", member
    elif kind in (set, frozenset):
        for place, member in enumerate(value):
            yield f"{{{place}}}", member
    elif kind in (dict, OrderedDict, defaultdict):
        for place, (key, member) in enumerate(value.items()):
            if type(key) is not str:
                yield f".<key {place}>", key
            yield _key_text(key, place), member
    elif kind is slice:
        yield from ((".start", value.start), (".stop", value.stop), (".step", value.step))


def _fields_of(value: Any, rule: TypeRule) -> Iterator[tuple[str, Any]]:
    if isinstance(rule.kind, EnumKind):
        return
    try:
        fields, *beside = rule.kind.take(value)
    except ValueNotAllowed:
        return
    if isinstance(rule.kind, PairKind):
        yield ".<encoded>", fields
        return
    for part in (fields, *beside):
        if type(part) is dict:
            for name, member in part.items():
                yield f".{name}", member


def walk(value: Any, rules: _Rules) -> Iterator[tuple[str, Any]]:
    """Every object in a value with its path, parents first; what holds others, once."""
    seen: set[int] = set()
    kept: list[Any] = []  # objects made on the way must live, or another would get their identity
    waiting: list[tuple[str, Any]] = [(ROOT, value)]
    while waiting:
        path, found = waiting.pop()
        if type(found) not in _ATOMS:
            if id(found) in seen:
                continue
            seen.add(id(found))
            kept.append(found)
        yield path, found
        waiting.extend(
            (path + step, member) for step, member in reversed(list(members_of(found, rules)))
        )


def find_path(value: Any, culprit: Any, rules: _Rules) -> str:
    """Where in a value an object lies, or else the first object of its type."""
    first_of_type = None
    for path, found in walk(value, rules):
        if found is culprit:
            return _shortened(path)
        if first_of_type is None and type(found) is type(culprit):
            first_of_type = path
    return _shortened(first_of_type or ROOT)


def _shortened(path: str) -> str:
    if len(path) <= _PATH_CHARS_MAX:
        return path
    return f"{path[: _PATH_CHARS_MAX // 2]} ... {path[-_PATH_CHARS_MAX // 2 :]}"
