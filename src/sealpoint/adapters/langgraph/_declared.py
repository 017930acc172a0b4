# SPDX-License-Identifier: Apache-2.0
"""What a graph declares that it will store: checked before anything has run.

A type that nothing allows is refused when it is saved, which is after the node or the tool that
made it has run. What channels and artifacts are annotated with is known earlier. Where an
annotation leaves no other way than an object of a type that cannot be saved, that is an error;
where it may be that there never is such an object (an empty list, a None, a type that only needs
its rule), it is a warning.
"""

import inspect
import typing
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typing_extensions
from langgraph.channels import UntrackedValue

from sealpoint.adapters.langgraph._schemas import (
    UNIONS,
    artifacts_of,
    can_have_rule,
    graphs_within,
    is_allowed_already,
    types_in,
)
from sealpoint.codec import Registry, allow_line
from sealpoint.errors import TypeNotAllowed

__all__ = ["TypesNotAllowedWarning", "check_declared"]

_WHERE = (
    "where registry = sealpoint.Registry(), before the store is opened with "
    "sealpoint.open_store(url, registry=registry). A channel that need not be saved can be "
    "Annotated[..., UntrackedValue]."
)
_OPEN = (object, type)
"""Classes that say nothing about an object."""


class TypesNotAllowedWarning(UserWarning):
    """A graph declares types that cannot be saved as things are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """A type that would be refused."""

    place: str
    cls: type
    certain: bool

    def __str__(self) -> str:
        return f"{self.place}: {self.cls.__module__}.{self.cls.__qualname__}"


def check_declared(graph: Any, registry: Registry) -> None:
    """Say what a graph declares that cannot be saved.

    Args:
        graph: A graph, compiled or not.
        registry: The rules as they are now.

    Raises:
        TypeNotAllowed: A channel, or the artifact of a tool, can hold nothing that can be saved.
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
        raise TypeNotAllowed(f"graph: expected types that can be saved, found {told}", hint=hint)
    warnings.warn(
        f"graph: some types would be refused when they are saved: {told}\n{hint}",
        TypesNotAllowedWarning,
        stacklevel=3,
    )


def _declared(graph: Any) -> Iterator[tuple[str, Any]]:
    """What is stored of a graph, as far as it says so: channels, and artifacts of tools."""
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
    """What a value may be, as a whole."""
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
    """Whether an annotation with this class means objects of it, and not of some class below."""
    return not (
        cls in _OPEN
        or inspect.isabstract(cls)
        or getattr(cls, "_is_protocol", False)
        or cls.__module__ in ("typing", "typing_extensions", "collections.abc")
        or typing_extensions.is_typeddict(cls)
    )


def _may_be_saved(cls: type, rules: set[type]) -> bool:
    """Whether a class, or one below it, is allowed as things are."""
    if cls in rules or is_allowed_already(cls):
        return True
    below: list[type] = type.__subclasses__(cls)
    return any(_may_be_saved(each, rules) for each in below)


def _could_be_saved(cls: type) -> bool:
    """Whether a class, or one below it, only lacks the simplest rule."""
    below: list[type] = type.__subclasses__(cls)
    return can_have_rule(cls) or any(map(_could_be_saved, below))
