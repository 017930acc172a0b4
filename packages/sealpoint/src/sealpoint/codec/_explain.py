# SPDX-License-Identifier: Apache-2.0
"""Explaining a value: every type in it, whether it may be saved, and the line that allows it.

This module also walks a value in Python to find the path of an object in it. It is slow and meant
for people: the native engine does not know paths, so they are found afterwards.
"""

import functools
import re
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sealpoint.codec._arrays import find_encoder
from sealpoint.codec._builtin_types import BUILTINS, PLAIN_REASONS
from sealpoint.codec._class_kinds import EnumKind, PairKind
from sealpoint.codec._encode import Encoding
from sealpoint.codec._type_rules import TypeRule, is_rule_name, make_rule
from sealpoint.errors import EncodeError, RuleInvalid
from sealpoint.limits import Limits

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
    """Yield the direct content of a value, each with the step of the path that leads to it."""
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
        fields, *beside = rule.kind.to_body(value)
    except EncodeError:
        return
    if isinstance(rule.kind, PairKind):
        yield ".<encoded>", fields
        return
    for part in (fields, *beside):
        if type(part) is dict:
            for name, member in part.items():
                yield f".{name}", member


def walk(value: Any, rules: _Rules) -> Iterator[tuple[str, Any]]:
    """Yield every object in a value with its path, parents first; each container once."""
    seen: set[int] = set()
    kept: list[Any] = []  # temporary objects must stay alive, or another object would get their id
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
    """Return the path of an object in a value, or else of the first object of its type."""
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


_REASONS = {kind: builtin.reason for builtin in reversed(BUILTINS) for kind in builtin.types}
_REASONS |= PLAIN_REASONS
_ARRAY_REASON = "raw bytes with checked type, shape and length"
_CODE = (
    type,
    types.BuiltinFunctionType,
    types.CodeType,
    types.CoroutineType,
    types.FunctionType,
    types.GeneratorType,
    types.MethodType,
    types.ModuleType,
    functools.partial,
)
_RESOURCE_MODULES = frozenset(
    {
        *("_asyncio", "_io", "_queue", "_socket", "_thread", "asyncio", "concurrent"),
        *("multiprocessing", "queue", "selectors", "socket", "sqlite3", "ssl"),
        *("subprocess", "threading"),
    }
)
_CONTAINERS = (tuple, set, frozenset, dict, list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeUse:
    """One type in a value."""

    type_name: str
    """Module and qualified name."""
    allowed: bool
    """Whether its values can be saved."""
    count: int
    """The number of its objects in the value."""
    path: str
    """The path of the first one, or of the first that cannot be saved."""
    detail: str
    """Why it is allowed; or the line to write, or what is wrong with the value."""

    def as_dict(self) -> dict[str, str | int | bool]:
        """Return the JSON form."""
        return {
            "type": self.type_name,
            "allowed": self.allowed,
            "count": self.count,
            "path": self.path,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Every type in a value, those that are not allowed first."""

    types: tuple[TypeUse, ...]
    fault: str | None
    """The limit that prevents saving the value although every type in it is allowed."""

    @property
    def allowed(self) -> bool:
        """Whether the whole value can be saved as it is."""
        return self.fault is None and all(use.allowed for use in self.types)

    @property
    def lines(self) -> tuple[str, ...]:
        """The necessary changes, one line each: for a missing rule, the exact line to write."""
        lines = [use.detail for use in self.types if not use.allowed]
        return tuple(lines if self.fault is None else [*lines, self.fault])

    def __str__(self) -> str:
        lines = [
            f"{'allowed' if use.allowed else 'REFUSED'}  {use.type_name}  x{use.count}  "
            f"{use.path}  {use.detail}"
            for use in self.types
        ]
        return "\n".join(lines if self.fault is None else [*lines, f"REFUSED  {self.fault}"])


def _type_name(kind: type) -> str:
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return module + kind.__qualname__


def _suggested_name(kind: type) -> str:
    module = str(kind.__module__).rpartition(".")[2].strip("_") or "app"
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__)
    name = re.sub(r"[^a-z0-9_.]+", "", f"{module}.{snake}".lower())[:100]
    return name if is_rule_name(name) else "app.type"


def _trial_rule(kind: type, *, validate: bool = False) -> TypeRule | None:
    """Return the rule that the suggested line would make."""
    try:
        return make_rule(
            kind,
            name=_suggested_name(kind),
            version=1,
            upgrade=None,
            encode=None,
            decode=None,
            validate=validate,
        )
    except RuleInvalid:
        return None


def is_builtin(kind: type) -> bool:
    """Whether values of a type are saved without a rule."""
    return kind in _REASONS or find_encoder(kind) is not None


def allow_line(kind: type) -> str:
    """Return the exact line that allows a type, or advice for a type that no line can allow."""
    if issubclass(kind, _CODE) or str(kind.__module__).partition(".")[0] in _RESOURCE_MODULES:
        return (
            f"{_type_name(kind)} is code or an open resource, which cannot be saved: "
            "save what finds it again, such as a name"
        )
    functions = ", encode=..., decode=..."
    if _trial_rule(kind) is not None:
        functions = ""
    elif _trial_rule(kind, validate=True) is not None:
        functions = ", validate=True"
    line = f'registry.allow({kind.__qualname__}, name="{_suggested_name(kind)}"{functions})'
    top = kind.__qualname__.partition(".")[0]
    if kind.__module__ in ("__main__", "builtins") or "<locals>" in kind.__qualname__:
        return line
    return f"{line}  # from {kind.__module__} import {top}"


def explain(value: Any, rules: Mapping[type, TypeRule], limits: Limits) -> Explanation:
    """Walk a value once and list its types, also inside those that no rule allows yet."""
    known = _RulesAndTrials(rules)
    uses: dict[type, TypeUse] = {}
    for path, found in walk(value, known):
        kind = type(found)
        use = uses.get(kind) or _first_use(kind, path, rules)
        fault = _value_fault(found, rules, limits) if use.allowed else None
        uses[kind] = replace(
            use,
            allowed=use.allowed and fault is None,
            count=use.count + 1,
            path=use.path if fault is None else path,
            detail=fault or use.detail,
        )
    ordered = sorted(uses.values(), key=lambda use: (use.allowed, use.type_name))
    fault = None
    if all(use.allowed for use in ordered):
        try:
            Encoding(rules, limits).run(value)
        except EncodeError as exc:
            fault = f"{exc.message} ({exc.hint})"
    return Explanation(types=tuple(ordered), fault=fault)


class _RulesAndTrials(dict[type, TypeRule]):
    """The rules, and for other types the suggested rule, to look inside them."""

    def __init__(self, rules: Mapping[type, TypeRule]) -> None:
        super().__init__(rules)
        self._without: set[type] = set()

    def get(self, kind: type, default: Any = None) -> Any:
        if kind not in self and kind not in self._without:
            trial = None if kind in _REASONS or find_encoder(kind) else _trial_rule(kind)
            if trial is None:
                self._without.add(kind)
            else:
                self[kind] = trial
        return super().get(kind, default)


def _first_use(kind: type, path: str, rules: Mapping[type, TypeRule]) -> TypeUse:
    rule = rules.get(kind)
    if rule is not None:
        allowed, detail = True, f"rule {rule.name} version {rule.version}"
    elif kind in _REASONS:
        allowed, detail = True, _REASONS[kind]
    elif find_encoder(kind) is not None:
        allowed, detail = True, _ARRAY_REASON
    else:
        allowed, detail = False, allow_line(kind)
    return TypeUse(type_name=_type_name(kind), allowed=allowed, count=0, path=path, detail=detail)


def _value_fault(value: Any, rules: Mapping[type, TypeRule], limits: Limits) -> str | None:
    """Return what prevents saving this one object of an allowed type, ignoring its members."""
    rule = rules.get(type(value))
    try:
        if rule is not None:
            rule.kind.to_body(value)
        elif type(value) not in _CONTAINERS:
            _Shallow(rules, limits).run(value)
        elif type(value) is not list and type(value) is not tuple:
            Encoding(rules, limits).bounds.check_keys(
                list(value), in_set=isinstance(value, set | frozenset)
            )
    except EncodeError as exc:
        return f"{exc.message} ({exc.hint})"
    return None


class _Shallow(Encoding):
    """An encoding that accepts any member."""

    __slots__ = ()

    def pack(self, value: Any) -> bytes:
        return super().pack(value) if type(value) in (bytes, memoryview) else b"\xc0"
