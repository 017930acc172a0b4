# SPDX-License-Identifier: Apache-2.0
"""What changed about a class since a value of it was stored, in words and as the code to write.

Nothing of the stored values is shown: only names of fields and members, which are names in the
application's code, and those only as far as they can be such names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sealpoint.codec._shape import Shape
from sealpoint.errors import ShapeChanged

__all__ = ["RuleText", "another_kind", "fields_changed", "member_gone", "where_registry_goes"]

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
    """A line that makes a rule, and where its `registry` comes from and goes."""
    return (
        f"{line}\nwhere registry = sealpoint.Registry(), and the store is opened with "
        "sealpoint.open_store(url, registry=registry)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """A rule as it would be written in a program."""

    cls: type
    name: str
    version: int
    upgrade: Mapping[int, Callable[..., Any]]
    validate: bool
    is_pair: bool

    def _next(self) -> str:
        """The line that makes the rule of the next version."""
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
        """What the upgrade from this version is called."""
        return f"from_v{self.version}"

    def changed(self, what: Iterable[str], upgrade: Iterable[str]) -> ShapeChanged:
        """The error that says what changed, with the whole code that upgrades in its hint.

        Args:
            what: What changed, each in a few words.
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
    shape: Shape,
    names: tuple[str, ...],
    differing: tuple[str, ...] | None,
    without: tuple[str, ...],
) -> ShapeChanged:
    """The error for stored fields that do not make an object of the class as it is.

    Args:
        text: The rule.
        shape: What the class looks like now.
        names: The stored fields.
        differing: Which of them had another annotation, if that can be told.
        without: New fields that have no default.
    """
    kept = [name for name in names if name in shape.fields]
    gone = [name for name in names if name not in shape.fields]
    doubtful = kept if differing is None else [name for name in differing if name in kept]

    def what() -> Iterator[str]:
        if differing == ("",):
            yield _other_kind(shape)
        if gone:
            yield f"{_listed(gone)} went"
        if without:
            yield f"{_listed(without)} {'is' if len(without) == 1 else 'are'} new without a default"
        if differing is None and gone and kept:
            yield "others may have had another annotation"
        elif differing is None and kept:
            yield f"more than one of {_listed(kept)} had another annotation"
        elif differing is not None:
            for name in doubtful:
                yield f"{_listed([name])} had another annotation, now {shape.fields[name]}"

    def upgrade() -> Iterator[str]:
        yield f"# It gets the stored fields: {', '.join(map(_shown, names)) or 'none'}."
        yield "# It returns the fields of the class; those with a plain default may be left out,"
        yield "# but not those whose default is an object, or a default_factory, of your own."
        yield "return {"
        for name in shape.fields:
            if name in without:
                yield f'    "{name}": None,  # new: say which {shape.fields[name]} it has'
            elif name in doubtful:
                note = f"  # make it: {shape.fields[name]}"
                yield f'    "{name}": fields["{name}"],{note}'
            elif name in kept:
                yield f'    "{name}": fields["{name}"],'
        yield "}"

    return text.changed(what(), upgrade())


def another_kind(text: RuleText, shape: Shape) -> ShapeChanged:
    """The error for a value that was stored of another kind of class, whose form is another."""
    upgrade = (
        "# It gets what was stored: the fields by name, or what encode= returned.",
        "# It returns what the class stores now, in the same way.",
        "return fields",
    )
    return text.changed([_other_kind(shape)], upgrade)


def member_gone(text: RuleText, member: str) -> ShapeChanged:
    """The error for a member that an enum does not have any more."""
    found: Any = text.cls
    now = next(iter(found.__members__), "NAME")
    upgrade = (
        f'# It gets {{"name": ...}} of the stored member, and returns that of one of {now}, ...',
        f'if fields.get("name") == "{_shown(member)}":',
        f'    return {{"name": "{now}"}}  # say which member it is now',
        "return fields",
    )
    return text.changed([f"the member {_listed([member])} went"], upgrade)


def _other_kind(shape: Shape) -> str:
    return f"it was of another kind and is {_KINDS[shape.kind]} now"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(_shown(name)) for name in names)


def _shown(name: object) -> str:
    """A name from stored data, if it can be one of the application's code."""
    # Stored bytes may hold anything in the place of a name, also what has methods of its own.
    if type(name) is not str or not name.isidentifier() or len(name) > _SHOWN_CHARS_MAX:
        return "(another)"
    return name
