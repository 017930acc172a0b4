# SPDX-License-Identifier: Apache-2.0
"""The shape of a class: its kind, and the names and annotations of its fields.

Its digest of eight bytes is stored with every typed value, so that a class that changed without a
new version is noticed. A reader knows the names of the stored fields, which are in the value
itself. From the digest, it can tell whether they had the annotations that the class has now; and if
exactly one differs, which one.

The shape must not change if the meaning did not: `Optional[int]` and `int | None`, `List[int]` and
`list[int]`, a module that was renamed, and `from __future__ import annotations` all leave it
unchanged.

This module also describes how a class changed since a value of it was stored, in words and as the
code to write. It shows nothing of the stored values: only names of fields and members, which are
names in the application's code, and only if they are valid names.
"""

import hashlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sealpoint.errors import ShapeChanged

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


_SHOWN_CHARS_MAX = 60
_KINDS = {
    "attrs": "an attrs class",
    "dataclass": "a dataclass",
    "enum": "an Enum",
    "namedtuple": "a NamedTuple",
    "pair": "a class with encode= and decode=",
    "pydantic": "a pydantic model",
    "struct": "a msgspec.Struct",
}


def where_registry_goes(line: str) -> str:
    """Return a line that makes a rule, with the source and use of its `registry`."""
    return (
        f"{line}\nwhere registry = sealpoint.Registry(), and the store is opened with "
        "sealpoint.open_store(url, registry=registry)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """A rule as program text."""

    cls: type
    name: str
    version: int
    upgrade: Mapping[int, Callable[..., Any]]
    validate: bool
    is_pair: bool

    def _next(self) -> str:
        """Return the line that makes the rule of the next version."""
        steps = [f"{step}: {_function(each, step)}" for step, each in sorted(self.upgrade.items())]
        steps.append(f"{self.version}: {self.function}")
        more = ", encode=..., decode=..." if self.is_pair else ""
        more += ", validate=True" if self.validate else ""
        return (
            f'registry.allow({self.cls.__qualname__}, name="{self.name}", '
            f"version={self.version + 1}, upgrade={{{', '.join(steps)}}}{more})"
        )

    @property
    def function(self) -> str:
        """The name of the upgrade function from this version."""
        return f"from_v{self.version}"

    def changed(self, what: Iterable[str], upgrade: Iterable[str]) -> ShapeChanged:
        """Return the error that describes the change, with the complete upgrade code in its hint.

        Args:
            what: The changes, each in a few words.
            upgrade: The lines of the upgrade's body.
        """
        cls, top = self.cls, self.cls.__qualname__.partition(".")[0]
        known = cls.__module__ in ("__main__", "builtins") or "<locals>" in cls.__qualname__
        code = [
            "import sealpoint",
            *(() if known else (f"from {cls.__module__} import {top}",)),
            "",
            "",
            f"def {self.function}(fields):",
            *(f"    {line}" for line in upgrade),
            "",
            "",
            "registry = sealpoint.Registry()",
            self._next(),
            "store = sealpoint.open_store(url, registry=registry)",
        ]
        hint = (
            "Write this, correct what its comments ask for, and open the store with it. An adapter "
            "that allows types by itself keeps a rule that is there.\n\n"
        )
        return ShapeChanged(
            f"{self.name} version {self.version}: {cls.__qualname__} changed since it was stored: "
            + "; ".join(what),
            hint=hint + "\n".join(code),
        )


def _function(upgrade: Callable[..., Any], step: int) -> str:
    name = getattr(upgrade, "__name__", "")
    return name if name.isidentifier() else f"from_v{step}"


def fields_changed(
    text: RuleText,
    shape: ClassShape,
    names: tuple[str, ...],
    differing: tuple[str, ...] | None,
    without: tuple[str, ...],
) -> ShapeChanged:
    """Return the error for stored fields that do not fit the current class.

    Args:
        text: The rule.
        shape: The current shape of the class.
        names: The stored fields.
        differing: The fields that had another annotation, if known.
        without: New fields that have no default.
    """
    changes = _changes(shape, names, differing, without)
    return text.changed(changes, _upgrade_lines(shape, names, differing, without))


def _changes(
    shape: ClassShape,
    names: tuple[str, ...],
    differing: tuple[str, ...] | None,
    without: tuple[str, ...],
) -> Iterator[str]:
    """Describe the changes of the fields, each in a few words."""
    kept = list(filter(shape.fields.__contains__, names))
    gone = [name for name in names if name not in kept]
    if differing == ("",):
        yield _other_kind(shape)
    if gone:
        yield f"{_listed(gone)} went"
    if without:
        yield f"{_listed(without)} {'is' if len(without) == 1 else 'are'} new without a default"
    if differing is not None:
        yield from (
            f"{_listed([name])} had another annotation, now {shape.fields[name]}"
            for name in filter(kept.__contains__, differing)
        )
    elif gone and kept:
        yield "others may have had another annotation"
    elif kept:
        yield f"more than one of {_listed(kept)} had another annotation"


def _upgrade_lines(
    shape: ClassShape,
    names: tuple[str, ...],
    differing: tuple[str, ...] | None,
    without: tuple[str, ...],
) -> Iterator[str]:
    """Yield the body of the upgrade, with comments where its author must complete it."""
    yield f"# It gets the stored fields: {', '.join(map(_shown, names)) or 'none'}."
    yield "# It returns the fields of the class; those with a plain default may be left out,"
    yield "# but not those whose default is an object, or a default_factory, of your own."
    yield "return {"
    for name, annotation in shape.fields.items():
        if name in without:
            yield f'    "{name}": None,  # new: say which {annotation} it has'
        elif name in names:
            is_doubtful = differing is None or name in differing
            note = f"  # make it: {annotation}" if is_doubtful else ""
            yield f'    "{name}": fields["{name}"],{note}'
    yield "}"


def another_kind(text: RuleText, shape: ClassShape) -> ShapeChanged:
    """Return the error for a value stored by another kind of class, with another form."""
    upgrade = (
        "# It gets what was stored: the fields by name, or what encode= returned.",
        "# It returns what the class stores now, in the same way.",
        "return fields",
    )
    return text.changed([_other_kind(shape)], upgrade)


def member_gone(text: RuleText, member: str) -> ShapeChanged:
    """Return the error for a member that an enum does not have any more."""
    found: Any = text.cls
    now = next(iter(found.__members__), "NAME")
    upgrade = (
        f'# It gets {{"name": ...}} of the stored member, and returns that of one of {now}, ...',
        f'if fields.get("name") == "{_shown(member)}":',
        f'    return {{"name": "{now}"}}  # say which member it is now',
        "return fields",
    )
    return text.changed([f"the member {_listed([member])} went"], upgrade)


def _other_kind(shape: ClassShape) -> str:
    return f"it was of another kind and is {_KINDS[shape.kind]} now"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(_shown(name)) for name in names)


def _shown(name: object) -> str:
    """Return a name from stored data, if it can be a name in the application's code."""
    # Stored bytes may hold anything in the place of a name, including objects with their own
    # methods.
    if type(name) is not str or not name.isidentifier() or len(name) > _SHOWN_CHARS_MAX:
        return "(another)"
    return name
