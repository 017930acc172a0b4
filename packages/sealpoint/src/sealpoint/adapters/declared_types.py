# SPDX-License-Identifier: Apache-2.0
"""The application's types, as far as its own declarations name them.

An application declares types to a framework, in a schema, an annotation or a response format. With
that it states that the type belongs to the state. Sealpoint allows such a type under a name made of
its module and its qualified name:

    shop.models.Plan         -> app.shop.models.plan
    shop.models.Plan.Step    -> app.shop.models.plan.step

The main program gets the name that it would have as a module, so `import agent` can read what
`python agent.py` stored. Names are in lower case, with `-` for every character other than letters,
digits, `_`, `-` and `.`; a name of more than 100 characters ends in a digest instead of its tail.
To rename or change such a class later, write a rule for it under the stored name: types that
already have a rule keep it.

The search imports nothing and ignores stored data. The adapter defines which declarations exist.
"""

import dataclasses
import hashlib
import re
import types
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import typing_extensions

from sealpoint.codec import BUILTINS, PLAIN_REASONS, Registry
from sealpoint.config import imported_name
from sealpoint.errors import RuleInvalid, UsageError

__all__ = [
    "BUILT_IN_TYPES",
    "UNIONS",
    "allow_declared",
    "annotations_of",
    "can_have_rule",
    "find_types",
    "rule_name",
    "rule_name_of",
    "types_in",
]

_NAME_CHARS_MAX = 100
_DIGEST_CHARS = 16
UNIONS = (typing.Union, types.UnionType)
"""The origins of the two spellings of a union."""
_OTHER = re.compile(r"[^a-z0-9_.-]")

BUILT_IN_TYPES = frozenset(
    {*(kind for builtin in BUILTINS for kind in builtin.types), *PLAIN_REASONS}
)
"""Types that need no rule."""


def rule_name(cls: type) -> str:
    """The name under which a declared type is stored."""
    return rule_name_of(cls.__module__, cls.__qualname__)


def rule_name_of(module: str, qualname: str) -> str:
    """Return the stored name of a type, given its module and its qualified name."""
    exact = f"{imported_name(module)}.{qualname}"
    parts = (part or "-" for part in _OTHER.sub("-", exact.lower()).split("."))
    name = f"app.{'.'.join(parts)}"
    if len(name) <= _NAME_CHARS_MAX:
        return name
    digest = hashlib.sha256(exact.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: _NAME_CHARS_MAX - _DIGEST_CHARS - 1]}-{digest}"


def allow_declared(registry: Registry, found: Iterable[type]) -> list[str]:
    """Add a rule for each type that the registry has no rule for.

    Returns:
        The names of the added rules.

    Raises:
        RuleInvalid: A type needs functions of its own for a rule, or another type has its name.
    """
    there = {rule.name: rule.cls for rule in registry.rules}
    added: list[str] = []
    for cls in found:
        if cls in there.values() or cls in BUILT_IN_TYPES:
            continue
        name = rule_name(cls)
        if name in there:
            raise _same_name(name, there[name], cls)
        registry.allow(cls, name=name)
        there[name] = cls
        added.append(name)
    return added


def _same_name(name: str, one: type, other: type) -> RuleInvalid:
    """The error for two types that would be stored under one name."""
    exact = [f"{each.__module__}.{each.__qualname__}" for each in (one, other)]
    hint = (
        f"Give one of them a rule with a name of its own, before the saver or the storage is made: "
        f'registry.allow({other.__qualname__}, name="{name}-2")\nwhere registry = '
        "sealpoint.Registry(), and the store is opened with "
        "sealpoint.open_store(url, registry=registry)"
    )
    modules = one.__module__, other.__module__
    if modules[0] != modules[1] and len(set(map(imported_name, modules))) == 1:
        hint = (
            "The started program is imported a second time, so that its classes are there twice. "
            "Put the types into a module of their own, and import them from there."
        )
    return RuleInvalid(
        f"rule {name!r}: two types have this name, {exact[0]} and {exact[1]}",
        hint=hint,
    )


def can_have_rule(cls: type) -> bool:
    """Whether a rule can be made for a type without functions of its own."""
    try:
        Registry().allow(cls, name="app.type")
    except RuleInvalid:
        return False
    return True


def find_types(
    annotations: Iterable[Any], named: Iterable[type], is_data: Callable[[type], bool]
) -> list[type]:
    """Find the application's types that declarations name, including those nested in fields.

    Args:
        annotations: The annotations that the application declared.
        named: More types that the application did not declare; types in their fields are included.
        is_data: Whether a type belongs to the application and not to a framework.

    Raises:
        UsageError: An item of `named` is not a type.
    """
    search = _TypeSearch()
    own = list(named)
    for each in own:
        if not isinstance(each, type):
            raise UsageError(f"types: expected classes, found {type(each).__name__}")
        search.look(each)
    for annotation in annotations:
        search.look(annotation)
    found = [cls for cls in search.found if is_data(cls) and can_have_rule(cls)]
    # A type that the caller named stays, even if no rule can be made for it: an error says so
    # later.
    return [*dict.fromkeys((*own, *found))]


def types_in(annotation: Any) -> list[type]:
    """Return every class that an annotation names, outermost first, without those in its fields."""
    found: dict[type, None] = {}
    waiting = [annotation]
    while waiting:
        each = waiting.pop(0)
        inside = _arguments(each)
        if isinstance(each, type) and not inside:
            found[each] = None
        waiting.extend(inside)
    return list(found)


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function; an empty dict if they cannot be resolved."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}  # a name that only a type checker can see


def _arguments(annotation: Any) -> list[Any]:
    """Return the parts of an annotation; an empty list if it is a class."""
    arguments = list(typing_extensions.get_args(annotation))
    origin = typing_extensions.get_origin(annotation)
    if origin is typing.Annotated:
        return arguments[:1]
    if origin is typing.Literal:
        return [type(each) for each in arguments]
    if origin in UNIONS:
        return arguments
    if origin is not None:
        return [origin, *arguments]
    if hasattr(annotation, "__supertype__"):  # a NewType
        return [annotation.__supertype__]
    if isinstance(annotation, typing_extensions.TypeAliasType):
        return [annotation.__value__]
    if isinstance(annotation, typing.TypeVar):
        return [annotation.__bound__, *annotation.__constraints__]
    return annotation if isinstance(annotation, list) else []  # the arguments of a Callable


class _TypeSearch:
    """A search for the types that annotations name, including nested ones."""

    def __init__(self) -> None:
        self.found: dict[type, None] = {}
        self._seen: dict[int, Any] = {}

    def look(self, annotation: Any) -> None:
        waiting = [annotation]
        while waiting:
            each = waiting.pop()
            if id(each) not in self._seen:
                self._seen[id(each)] = each
                waiting.extend(self._inside(each))

    def _inside(self, annotation: Any) -> Iterable[Any]:
        return _arguments(annotation) or (
            self._of_class(annotation) if isinstance(annotation, type) else []
        )

    def _of_class(self, cls: Any) -> Iterable[Any]:
        if typing_extensions.is_typeddict(cls):
            return _hints(cls)
        named_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
        declares = ("__pydantic_fields__", "__attrs_attrs__", "__struct_fields__")
        if named_tuple or dataclasses.is_dataclass(cls) or any(hasattr(cls, n) for n in declares):
            self.found[cls] = None
            return _hints(cls)
        if issubclass(cls, Enum):
            self.found[cls] = None
        return []


def _hints(cls: type) -> Iterable[Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True).values()
    except (NameError, TypeError, AttributeError, SyntaxError):
        fields = getattr(cls, "model_fields", {}).values()
        return [field.annotation for field in fields]
