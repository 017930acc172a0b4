# SPDX-License-Identifier: Apache-2.0
"""The application's types that a graph names.

A type that a schema, the return annotation of a tool or the response format of an agent names is
the application's own statement that it belongs to the state (`declared_types`).

Nothing is imported to find a type, and stored data takes no part in it.
"""

import inspect
import sys
import types
import typing
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import typing_extensions
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.channels import UntrackedValue
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from sealpoint.adapters.declared_types import (
    BUILT_IN_TYPES,
    UNIONS,
    allow_declared,
    annotations_of,
    can_have_rule,
    find_types,
    types_in,
)
from sealpoint.adapters.object_search import Parts
from sealpoint.codec import Registry, allow_line, is_builtin
from sealpoint.errors import RuleInvalid, TypeNotAllowed, UsageError
from sealpoint_langgraph._framework_types import FRAMEWORK_TYPES
from sealpoint_langgraph._world import KINDS, TASK

_AGENT_PACKAGES = frozenset({"langchain", "langgraph"})
"""The packages of the functions that create agents."""
_ARTIFACT = 1
"""The index of the artifact in the return value of such a tool."""

_ALLOWED_ALREADY = BUILT_IN_TYPES | {each.cls for each in FRAMEWORK_TYPES}


def allow_types(registry: Registry, found: Iterable[type]) -> list[str]:
    """Add a rule for each type that neither the framework nor the registry already covers.

    Returns:
        The names of the rules that were added.

    Raises:
        RuleInvalid: As of `allow_declared`.
    """
    return allow_declared(registry, (cls for cls in found if cls not in _ALLOWED_ALREADY))


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
            raise RuleInvalid(f"allowlist entry {pair!r}: no loaded module has such a class")
    return [cls for cls in found if cls not in _ALLOWED_ALREADY]


def _resolved(pair: Any) -> type | None:
    if not isinstance(pair, tuple) or not all(isinstance(part, str) for part in pair) or not pair:
        raise RuleInvalid(f"allowlist entry {pair!r}: it is not a pair of a module and a name")
    value: Any = sys.modules.get(pair[0])
    for name in ".".join(pair[1:]).split("."):
        # The lookup runs no code of the module or the class.
        value = getattr(value, "__dict__", {}).get(name)
    return value if isinstance(value, type) else None


def is_allowed_already(cls: type) -> bool:
    """Whether a type needs no rule: built in, of an array library, or the framework's."""
    return cls in _ALLOWED_ALREADY or is_builtin(cls)


def graph_types(graph: Any, named: Iterable[type] = ()) -> list[type]:
    """The application's types that a graph and its subgraphs name.

    Args:
        graph: A `StateGraph`, a compiled graph, or an entrypoint of the functional API. Of the
            latter the annotations count, and those of the tasks that it uses by name.
        named: More types, which the graph does not name; those in their fields are found.

    Raises:
        UsageError: The value is none of these, or a named type is not a type.
    """
    return find_types(_schemas(graph, []), named, _is_data)


def graphs_within(graph: Any) -> Iterator[tuple[Any, Parts]]:
    """A graph and its subgraphs, each with the parts of its nodes."""
    waiting, seen = [graph], dict[int, Any]()
    while waiting:
        each = waiting.pop(0)
        if id(each) not in seen:
            seen[id(each)] = each
            parts = _parts(each)
            yield each, parts
            waiting.extend(parts.graphs)


def artifacts_of(parts: Parts) -> Iterator[tuple[str, Any]]:
    """For each tool that returns an artifact, its name and its declared artifact type."""
    for tool in parts.tools:
        if tool.response_format != "content_and_artifact":
            continue
        for returned in _returns(tool):
            members = typing_extensions.get_args(returned)
            if typing_extensions.get_origin(returned) is tuple and len(members) == _ARTIFACT + 1:
                yield tool.name, members[_ARTIFACT]


def _is_data(cls: type) -> bool:
    """Whether a type is the application's: not allowed already, and not part of the machinery."""
    machinery = issubclass(cls, Runnable) or cls.__module__.partition(".")[0] == "langgraph"
    return cls not in _ALLOWED_ALREADY and not machinery


def _schemas(graph: Any, above: list[Any]) -> Iterator[Any]:
    """Every annotation of the values that a graph stores."""
    if not isinstance(graph, StateGraph | Pregel):
        found = type(graph).__name__
        raise UsageError(f"graph: expected a StateGraph or a compiled graph, found {found}")
    if any(graph is each for each in above):
        return
    builder = _builder_of(graph)
    runnables = [] if builder is None else [node.runnable for node in builder.nodes.values()]
    if isinstance(graph, Pregel):
        runnables += [node.bound for node in graph.nodes.values()]
    yield from _written_schemas(graph, builder)
    parts = KINDS.parts_of(runnables, "node")
    for place, function in parts.functions:
        # Tasks and entrypoints have no other schema than their annotations.
        if place.startswith(TASK) or builder is None:
            yield from annotations_of(function).values()
    yield from chain.from_iterable(map(_returns, parts.tools))
    yield from _response_formats(runnables)
    for subgraph in parts.graphs:
        yield from _schemas(subgraph, [*above, graph])


def _builder_of(graph: Any) -> Any:
    """The builder of a graph, which a compiled graph may still have."""
    return graph if isinstance(graph, StateGraph) else getattr(graph, "builder", None)


def _written_schemas(graph: Any, builder: Any) -> Iterator[Any]:
    """The schemas that an author declared for a graph, its channels, nodes and branches."""
    if builder is not None:
        yield from (builder.state_schema, builder.input_schema, builder.output_schema)
        yield builder.context_schema
        yield from builder.schemas
        yield from (node.input_schema for node in builder.nodes.values())
        for branches in builder.branches.values():
            yield from (branch.input_schema for branch in branches.values())
    if isinstance(graph, Pregel):
        yield graph.context_schema
    for channel in graph.channels.values():
        yield getattr(channel, "ValueType", None)
        yield getattr(channel, "UpdateType", None)


def _parts(graph: Any) -> Parts:
    """The parts of the nodes of a graph."""
    builder = _builder_of(graph)
    if builder is not None:
        return KINDS.parts_of([node.runnable for node in builder.nodes.values()], "node")
    return KINDS.parts_of([node.bound for node in graph.nodes.values()], "node")


def _returns(tool: BaseTool) -> Iterator[Any]:
    """The declared return types of the functions of a tool."""
    functions = [getattr(tool, "func", None), getattr(tool, "coroutine", None)]
    if not any(functions):
        functions = [type(tool)._run, type(tool)._arun]  # noqa: SLF001 (what a tool defines)
    for function in functions:
        returned = annotations_of(function).get("return")
        if returned is not None:
            yield returned


def _response_formats(runnables: Iterable[Any]) -> Iterator[Any]:
    """The response formats of prebuilt agents, which their functions hold in closures.

    The search covers functions of the framework only: there, a variable of that name has this
    meaning.
    """
    waiting, seen = list(runnables), dict[int, Any]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if isinstance(each, types.FunctionType):
            if each.__module__.partition(".")[0] not in _AGENT_PACKAGES:
                continue
            for name, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True):
                held = _content(cell)
                if name.endswith("response_format"):
                    yield from _formats(held)
                elif isinstance(held, types.FunctionType):
                    waiting.append(held)
        elif isinstance(each, Runnable):
            waiting.extend(
                held
                for held in (*vars(each).values(), *getattr(each, "steps", ()))
                if isinstance(held, types.FunctionType | Runnable)
            )


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # nothing was put into it yet


def _formats(held: Any) -> Iterator[Any]:
    """The schema of a response format: itself, behind a prompt, or in a strategy."""
    if isinstance(held, tuple):
        held = held[-1]
    yield held if isinstance(held, type) else getattr(held, "schema", held)


# Checks, before anything runs, of the types that a graph declares it will store.
#
# A type that no rule allows is refused when it is saved, which is after the node or the tool that
# created it has run. The annotations of channels and artifacts are known earlier. Where an
# annotation allows only objects of a type that cannot be saved, that is an error; where such an
# object may never occur (an empty list, a None, a type that only needs its rule), it is a warning.


_WHERE = (
    "where registry = sealpoint.Registry(), before the store is opened with "
    "sealpoint.open_store(url, registry=registry). A channel that need not be saved can be "
    "Annotated[..., UntrackedValue]."
)
_OPEN = (object, type)
"""Classes that carry no information about an object."""


class TypesNotAllowedWarning(UserWarning):
    """A graph declares types that the current rules cannot save."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """A type that would be refused."""

    place: str
    cls: type
    certain: bool

    def __str__(self) -> str:
        return f"{self.place}: {self.cls.__module__}.{self.cls.__qualname__}"


def check_declared(graph: Any, registry: Registry) -> None:
    """Report the declared types of a graph that cannot be saved.

    Args:
        graph: A graph, compiled or not.
        registry: The current rules.

    Raises:
        TypeNotAllowed: Every possible value of a channel, or of the artifact of a tool, is of a
            type that cannot be saved.
    """
    rules = {rule.cls for rule in registry.rules}
    found = [
        each
        for place, annotation in _declared(graph)
        for each in _refused(place, annotation, rules)
    ]
    if not found:
        return
    certain = [each for each in found if each.certain]
    lines = dict.fromkeys(allow_line(each.cls) for each in certain or found)
    told = "; ".join(dict.fromkeys(map(str, certain or found)))
    hint = "\n".join(("Write:", *lines, _WHERE))
    if certain:
        raise TypeNotAllowed(
            f"graph: its state holds types that cannot be saved: {told}", hint=hint
        )
    warnings.warn(
        f"graph: some types would be refused when they are saved: {told}\n{hint}",
        TypesNotAllowedWarning,
        stacklevel=3,
    )


def _declared(graph: Any) -> Iterator[tuple[str, Any]]:
    """The declared stored values of a graph: channels, and artifacts of tools."""
    for each, parts in graphs_within(graph):
        for name, channel in each.channels.items():
            if isinstance(channel, UntrackedValue) or name.startswith("__"):
                continue  # never saved, or the framework's own
            annotation = getattr(channel, "ValueType", None)
            if annotation is not None:
                yield f"channel {name!r}", annotation
        for tool, annotation in artifacts_of(parts):
            yield f"artifact of the tool {tool!r}", annotation


def _refused(place: str, annotation: Any, rules: set[type]) -> Iterator[_Refused]:
    def is_refused(cls: type) -> bool:
        return _says_something(cls) and not _may_be_saved(cls, rules)

    whole = list(_alternatives(annotation))
    certain = all(
        isinstance(each, type) and is_refused(each) and not _could_be_saved(each) for each in whole
    )
    for cls in filter(is_refused, types_in(annotation)):
        yield _Refused(place=place, cls=cls, certain=certain and cls in whole)


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The possible types of a value, as a whole."""
    origin = typing_extensions.get_origin(annotation)
    if origin is typing.Annotated or origin in (
        typing_extensions.Required,
        typing_extensions.NotRequired,
    ):
        yield from _alternatives(typing_extensions.get_args(annotation)[0])
    elif origin in UNIONS:
        for each in typing_extensions.get_args(annotation):
            yield from _alternatives(each)
    else:
        yield annotation if origin is None else origin


def _says_something(cls: type) -> bool:
    """Whether an annotation with this class means its own instances, not those of a subclass."""
    return not (
        cls in _OPEN
        or inspect.isabstract(cls)
        or getattr(cls, "_is_protocol", False)
        or cls.__module__ in ("typing", "typing_extensions", "collections.abc")
        or typing_extensions.is_typeddict(cls)
    )


def _may_be_saved(cls: type, rules: set[type]) -> bool:
    """Whether a class, or a subclass of it, is allowed by the current rules."""
    if cls in rules or is_allowed_already(cls):
        return True
    below: list[type] = type.__subclasses__(cls)
    return any(_may_be_saved(each, rules) for each in below)


def _could_be_saved(cls: type) -> bool:
    """Whether a class, or a subclass of it, lacks only the simplest rule."""
    below: list[type] = type.__subclasses__(cls)
    return can_have_rule(cls) or any(map(_could_be_saved, below))
