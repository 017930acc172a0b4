# SPDX-License-Identifier: Apache-2.0
"""The shape digest: a short hash of a class's field names and annotations.

It travels with every typed value, so that a class that changed without a new version is refused
instead of half-built. It must not change when the meaning did not: `Optional[int]` and
`int | None`, `List[int]` and `list[int]`, a module that was renamed, and
`from __future__ import annotations` all leave it alone.
"""

import hashlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["SHAPE_BYTES", "annotation_text", "resolved_annotations", "shape_digest"]

SHAPE_BYTES = 8


def shape_digest(kind: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """Digest a kind of type and its fields' names and annotation texts, in order."""
    digest = hashlib.sha256()
    for text in (kind, *(part for field in fields for part in field)):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big") + data)
    return digest.digest()[:SHAPE_BYTES]


def resolved_annotations(cls: type) -> dict[str, Any]:
    """A class's annotations with names resolved where the class's own module can resolve them."""
    found: dict[str, Any] = {}
    try:
        for base in reversed(cls.__mro__):
            found.update(inspect.get_annotations(base))
        found.update(typing.get_type_hints(cls))
    except (NameError, TypeError, AttributeError, SyntaxError):
        pass  # a name only a type checker can see: the source text is then the annotation
    return found


def _named(value: Any) -> str:
    return getattr(value, "__name__", None) or getattr(value, "_name", None) or repr(value)


def _union(value: Any) -> str:
    return "|".join(map(annotation_text, typing.get_args(value)))


def annotation_text(annotation: Any) -> str:
    """One text for one meaning, without module names."""
    if isinstance(annotation, str):
        return "".join(annotation.split())
    if isinstance(annotation, typing.ForwardRef):
        return "".join(annotation.__forward_arg__.split())
    if annotation is None or annotation is types.NoneType:
        return "None"
    if annotation is Ellipsis:
        return "..."
    if isinstance(annotation, list):  # the arguments of a Callable
        return f"[{','.join(map(annotation_text, annotation))}]"
    origin = typing.get_origin(annotation)
    special: dict[Any, Callable[[Any], str]] = {
        typing.Union: _union,
        types.UnionType: _union,
        typing.Literal: lambda value: f"Literal[{','.join(map(repr, typing.get_args(value)))}]",
        typing.Annotated: lambda value: annotation_text(value.__origin__),
    }
    if origin in special:
        return special[origin](annotation)
    if origin is None:
        return _named(annotation)
    arguments = ",".join(map(annotation_text, typing.get_args(annotation)))
    return f"{_named(origin)}[{arguments}]"
