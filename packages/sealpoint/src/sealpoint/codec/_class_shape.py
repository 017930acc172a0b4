# SPDX-License-Identifier: Apache-2.0
"""The shape of a class: its kind, and the names and annotations of its fields.

Its digest of eight bytes is stored with every typed value, so that a class that changed without a
new version is noticed. A reader knows the names of the stored fields, which are in the value
itself. From the digest, it can tell whether they had the annotations that the class has now; and if
exactly one differs, which one.

The shape must not change if the meaning did not: `Optional[int]` and `int | None`, `List[int]` and
`list[int]`, a module that was renamed, and `from __future__ import annotations` all leave it
unchanged.
"""

import hashlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SHAPE_BYTES = 8

_MODULUS = (1 << 32) - 5
"""A prime, so that division by every weight except 0 is possible."""
_SUM_BYTES = 4
_KIND = ""
"""The field name that stands for the kind of the class."""


@dataclass(frozen=True, slots=True)
class ClassShape:
    """The shape of a class.

    The digest is two sums modulo a prime, over the kind and every field: of the *mark* of each
    annotation, and of these marks times the *weight* of the field's place and name. If one mark
    differs, the sums are off by d and by the weight times d, so a division gives the weight.
    """

    kind: str
    """`dataclass`, `pydantic`, `attrs`, `namedtuple`, `enum`, `struct` or `pair`."""
    fields: Mapping[str, str]
    """The text of each field's annotation, in declared order."""
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        sums = self._sums(self.fields)
        digest = b"".join(each.to_bytes(_SUM_BYTES, "big") for each in sums)
        object.__setattr__(self, "digest", digest)

    @classmethod
    def of(cls, kind: str, annotations: Mapping[str, Any]) -> "ClassShape":
        """Make the shape of a kind of class with these fields."""
        return cls(kind, {name: annotation_text(hint) for name, hint in annotations.items()})

    def _sums(self, names: Iterable[str]) -> tuple[int, int]:
        """Return the sums of fields that were stored in this order, ignoring removed fields."""
        marks = weighted = 0
        for place, name in enumerate((_KIND, *names)):
            text = self.fields.get(name) if place else self.kind
            if text is not None:
                mark = _number(text)
                marks += mark
                weighted += mark * _weight(place, name)
        return marks % _MODULUS, weighted % _MODULUS

    def differing(self, digest: bytes, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return which stored fields had another annotation, including removed fields.

        Args:
            digest: The stored digest.
            names: The stored fields, in their order.

        Returns:
            Their names, with `""` for another kind of class; None if they cannot be determined
            because there is more than one.
        """
        stored = digest[:_SUM_BYTES], digest[_SUM_BYTES:]
        expected = self._sums(names)
        off, weighted = (
            (int.from_bytes(found, "big") - each) % _MODULUS
            for found, each in zip(stored, expected, strict=True)
        )
        gone = tuple(name for name in names if name not in self.fields)
        if not off and not weighted:
            return gone
        for place, name in enumerate((_KIND, *names)):
            if weighted == off * _weight(place, name) % _MODULUS:
                return (name,) if gone in ((), (name,)) else None
        return None


def _weight(place: int, name: str) -> int:
    return _number(f"{place} {name}")


def _number(text: str) -> int:
    data = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(data[:SHAPE_BYTES], "big") % _MODULUS


def resolved_annotations(cls: type) -> dict[str, Any]:
    """Return a class's annotations, with the names that its own module can resolve."""
    found: dict[str, Any] = {}
    try:
        for base in reversed(cls.__mro__):
            found.update(inspect.get_annotations(base))
        found.update(typing.get_type_hints(cls))
    except (NameError, TypeError, AttributeError, SyntaxError):
        pass  # a name only a type checker can see: use the source text as the annotation
    return found


def _named(value: Any) -> str:
    return getattr(value, "__name__", None) or getattr(value, "_name", None) or repr(value)


def _union(value: Any) -> str:
    return "|".join(map(annotation_text, typing.get_args(value)))


def annotation_text(annotation: Any) -> str:
    """Return one text for each meaning of an annotation, without module names."""
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
