# SPDX-License-Identifier: Apache-2.0
"""How a class changed since a value of it was stored, in words and as the code to write.

It shows nothing of the stored values: only names of fields and members, which are names in the
application's code, and only if they are valid names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sealpoint.codec._class_shape import ClassShape
from sealpoint.errors import ShapeChanged

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
