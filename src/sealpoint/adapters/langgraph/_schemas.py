# SPDX-License-Identifier: Apache-2.0
"""The application's types, as far as a graph's schemas name them.

A type that a schema names is the application's own statement that it belongs to the state. It is
allowed under a name that is made of its module and its qualified name:

    shop.models.Plan         -> app.shop.models.plan
    shop.models.Plan.Step    -> app.shop.models.plan.step

in lower case, with `-` for every other character than letters, digits, `_`, `-` and `.`; a name
of more than 100 characters ends in a digest instead of its tail. To rename or change such a class
later, make its rule yourself under the stored name and with a new version: types that have a rule
are left alone.

Nothing is imported to find a type, and stored data takes no part in it.
"""

import dataclasses
import hashlib
import re
import sys
import types
import typing
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from typing import Any

import typing_extensions
from langchain_core.runnables import Runnable
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from sealpoint.adapters.langgraph._parts import TASK, parts_of
from sealpoint.adapters.langgraph._types import FRAMEWORK_TYPES
from sealpoint.codec import BUILTINS, PLAIN_REASONS, Registry
from sealpoint.errors import RuleInvalid, UsageError

__all__ = ["allow_types", "rule_name", "schema_types", "types_of_allowlist"]

_NAME_CHARS_MAX = 100
_DIGEST_CHARS = 16
_OTHER = re.compile(r"[^a-z0-9_.-]")

_ALLOWED_ALREADY = frozenset(
    {
        *(each.cls for each in FRAMEWORK_TYPES),
        *(kind for builtin in BUILTINS for kind in builtin.types),
        *PLAIN_REASONS,
    }
)


def rule_name(cls: type) -> str:
    """The name under which a type of a schema is stored."""
    exact = f"{cls.__module__}.{cls.__qualname__}"
    parts = (part or "-" for part in _OTHER.sub("-", exact.lower()).split("."))
    name = f"app.{'.'.join(parts)}"
    if len(name) <= _NAME_CHARS_MAX:
        return name
    digest = hashlib.sha256(exact.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: _NAME_CHARS_MAX - _DIGEST_CHARS - 1]}-{digest}"


def allow_types(registry: Registry, found: Iterable[type]) -> list[str]:
    """Add a rule for each type that the registry has none for.

    Returns:
        The names of the rules that were added.

    Raises:
        RuleInvalid: No rule can be made for a type without functions of its own, or its name is
            that of another type.
    """
    there = {rule.cls for rule in registry.rules} | _ALLOWED_ALREADY
    added: list[str] = []
    for cls in found:
        if cls not in there:
            registry.allow(cls, name=rule_name(cls))
            there.add(cls)
            added.append(rule_name(cls))
    return added


def types_of_allowlist(pairs: Collection[Any], *, strict: bool = True) -> list[type]:
    """The application's types that the framework names to `with_allowlist`.

    Only modules that are loaded already are looked at.

    Args:
        pairs: Modules and names, `("shop.models", "Plan")`, or the types themselves.
        strict: Whether a name that cannot be found is an error; if not, it is left out, and a
            value of that type is refused when it is saved.

    Raises:
        RuleInvalid: There is no such class in a loaded module.
    """
    found: dict[type, None] = {}
    for pair in pairs:
        cls = pair if isinstance(pair, type) else _resolved(pair)
        if cls is not None and (strict or can_have_rule(cls)):
            found[cls] = None
        elif strict:
            raise RuleInvalid(
                f"allowlist entry {pair!r}: expected a class of a module that is loaded, found none"
            )
    return [cls for cls in found if cls not in _ALLOWED_ALREADY]


def _resolved(pair: Any) -> type | None:
    if not isinstance(pair, tuple) or not all(isinstance(part, str) for part in pair) or not pair:
        raise RuleInvalid(f"allowlist entry {pair!r}: expected a module and a name")
    value: Any = sys.modules.get(pair[0])
    for name in ".".join(pair[1:]).split("."):
        # Looked up without running anything of the module's or the class's own.
        value = getattr(value, "__dict__", {}).get(name)
    return value if isinstance(value, type) else None


def can_have_rule(cls: type) -> bool:
    """Whether a type can be allowed without functions of its own."""
    try:
        Registry().allow(cls, name="app.type")
    except RuleInvalid:
        return False
    return True


def schema_types(graph: Any) -> list[type]:
    """The application's types in the schemas of a graph and of its subgraphs.

    Args:
        graph: A `StateGraph`, a compiled graph, or an entrypoint of the functional API. Of the
            latter the annotations count, and those of the tasks that it uses by name.

    Raises:
        UsageError: It is none of these.
    """
    search = _Search()
    for schema in _schemas(graph, []):
        search.look(schema)
    return [cls for cls in search.found if _is_data(cls) and can_have_rule(cls)]


def _is_data(cls: type) -> bool:
    """Whether a type is the application's: not allowed already, and no part of the machinery."""
    machinery = issubclass(cls, Runnable) or cls.__module__.partition(".")[0] == "langgraph"
    return cls not in _ALLOWED_ALREADY and not machinery


def _schemas(graph: Any, above: list[Any]) -> Iterator[Any]:
    """Every annotation that says what a graph stores."""
    if not isinstance(graph, StateGraph | Pregel):
        found = type(graph).__name__
        raise UsageError(f"graph: expected a StateGraph or a compiled graph, found {found}")
    if any(graph is each for each in above):
        return
    builder = graph if isinstance(graph, StateGraph) else getattr(graph, "builder", None)
    runnables = []
    if builder is not None:
        yield from (builder.state_schema, builder.input_schema, builder.output_schema)
        yield builder.context_schema
        yield from builder.schemas
        for node in builder.nodes.values():
            yield node.input_schema
            runnables.append(node.runnable)
        for branches in builder.branches.values():
            yield from (branch.input_schema for branch in branches.values())
    if isinstance(graph, Pregel):
        yield graph.context_schema
        runnables.extend(node.bound for node in graph.nodes.values())
    for channel in graph.channels.values():
        yield getattr(channel, "ValueType", None)
        yield getattr(channel, "UpdateType", None)
    parts = parts_of(runnables, "node")
    for place, function in parts.functions:
        # Tasks and entrypoints have no other schema than their annotations.
        if place.startswith(TASK) or builder is None:
            yield from _signature(function)
    for subgraph in parts.graphs:
        yield from _schemas(subgraph, [*above, graph])


def _signature(function: types.FunctionType) -> Iterable[Any]:
    try:
        return typing.get_type_hints(function, include_extras=True).values()
    except (NameError, TypeError, AttributeError, SyntaxError):
        return ()  # a name that only a type checker can see


class _Search:
    """The types that annotations name, also inside of one another."""

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
        arguments = typing_extensions.get_args(annotation)
        origin = typing_extensions.get_origin(annotation)
        if origin is typing.Annotated:
            return arguments[:1]
        if origin is typing.Literal:
            return [type(each) for each in arguments]
        if origin is not None:
            return [origin, *arguments]
        if hasattr(annotation, "__supertype__"):  # a NewType
            return [annotation.__supertype__]
        if isinstance(annotation, typing_extensions.TypeAliasType):
            return [annotation.__value__]
        if isinstance(annotation, typing.TypeVar):
            return [annotation.__bound__, *annotation.__constraints__]
        if isinstance(annotation, list):  # the arguments of a Callable
            return annotation
        return self._of_class(annotation) if isinstance(annotation, type) else []

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
