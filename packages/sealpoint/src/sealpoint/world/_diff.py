# SPDX-License-Identifier: Apache-2.0
r"""The differences between two worlds, by class, and whether the later one can only do less.

A change counts as more unless it is known to be less: only removing a tool, a permission or a whole
sub-agent makes a world narrower. Every difference is in one of the two sets, `differs` or
`narrower`, and no class is in both.

This module also splits a world into leaves, the units that can differ, each with a unique name. A
name is `KIND.NAME`, after `agent.NAME/` for each enclosing sub-agent. NAME is escaped, so that no
two leaves share a name and a name hides nothing: `agent.a\u{2f}b/tool.search`.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Any

from sealpoint.errors import WorldInvalid
from sealpoint.ids import Digest
from sealpoint.world._json import encode_json
from sealpoint.world._tool import tool_fields
from sealpoint.world._visible_text import escape, quoted, unescape

_AGENT = "agent."
_MODULE = "module."
_CODE = "code"
_CODE_FIELDS = ("version", "revision")


@unique
class LeafClass(StrEnum):
    """The subject of a leaf; each leaf has one class, also a leaf of a sub-agent."""

    TOOLS = "tools"
    """The tools that the run can call, with everything that describes them."""
    PERMISSIONS = "permissions"
    """The allowed actions, and where the run stops for people."""
    MODEL = "model"
    PROMPTS = "prompts"
    TOPOLOGY = "topology"
    """The order of steps, and the sub-agents."""
    CODE = "code"
    """The application's modules that define the run, and the modules that these lead to."""
    APPLICATION = "application"
    """The other modules of the application."""
    RUNTIME = "runtime"
    """Versions of the interpreter, frameworks and packages."""
    OTHER = "other"
    """Anything else that the application put into its world."""


_CLASSES = {
    "tool": LeafClass.TOOLS,
    "permission": LeafClass.PERMISSIONS,
    "model": LeafClass.MODEL,
    "prompt": LeafClass.PROMPTS,
    "agent": LeafClass.TOPOLOGY,
    "topology": LeafClass.TOPOLOGY,
    _CODE: LeafClass.CODE,
    "application": LeafClass.APPLICATION,
    "runtime": LeafClass.RUNTIME,
    "extra": LeafClass.OTHER,
}
"""The class of each kind of leaf, apart from `_STOPS`."""

_STOPS = frozenset({("topology", "interrupt_before"), ("topology", "interrupt_after")})
"""Where a run stops for people. That it asks nobody there any more is a permission, although
frameworks describe it with the order of steps."""


_NAMED_KINDS = {
    "model": "model",
    "prompt": "prompts",
    "topology": "topology",
    "runtime": "runtime",
}


def leaves_of(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the leaves of a world in its plain form, in no order."""
    rest = dict(data)
    code = rest.pop("code", {})
    made = {f"{prefix}code.{name}": code[name] for name in _CODE_FIELDS if name in code}
    for name, digest in code.get("modules", {}).items():
        made[f"{prefix}code.{_MODULE}{escape(name)}"] = digest
    for name, digest in code.get("application", {}).items():
        made[f"{prefix}application.{escape(name)}"] = digest
    for tool in rest.pop("tools", []):
        name = tool[0] if isinstance(tool, list) else tool["name"]
        made[f"{prefix}tool.{escape(name)}"] = tool
    for name in rest.pop("permissions", []):
        made[f"{prefix}permission.{escape(name)}"] = True
    for name, agent in rest.pop("agents", {}).items():
        # This leaf records that the sub-agent exists, even if it can do nothing.
        path = f"{prefix}{_AGENT}{escape(name, also='/')}"
        made[path] = {}
        made |= leaves_of(agent, f"{path}/")
    for kind, key in _NAMED_KINDS.items():
        for name, value in rest.pop(key, {}).items():
            made[f"{prefix}{kind}.{escape(name)}"] = value
    made |= {f"{prefix}extra.{escape(name)}": value for name, value in rest.items()}
    return made


def split_leaf(leaf: str) -> tuple[tuple[str, ...], str, str]:
    """Split a leaf into the leaves of its enclosing sub-agents, its kind, and its name."""
    around: list[str] = []
    start = 0
    while leaf.startswith(_AGENT, start):
        end = leaf.find("/", start)
        if end < 0:
            break
        around.append(leaf[:end])
        start = end + 1
    kind, _, name = leaf[start:].partition(".")
    return tuple(around), kind, name


def class_of(leaf: str) -> LeafClass:
    """Return the class of a leaf: that of its own kind, regardless of enclosing sub-agents."""
    _, kind, name = split_leaf(leaf)
    return LeafClass.PERMISSIONS if (kind, name) in _STOPS else _CLASSES[kind]


def leaf_subject(leaf: str) -> tuple[tuple[str, ...], str, str]:
    """Return the enclosing sub-agents of a leaf, its kind and its name, for people."""
    around, kind, name = split_leaf(leaf)
    agents = tuple(_shown(agent.rpartition("/")[2].removeprefix(_AGENT)) for agent in around)
    if kind == _CODE and name.startswith(_MODULE):
        return agents, kind, _module_words(name.removeprefix(_MODULE))
    return agents, kind, _shown(name)


def leaf_words(leaf: str) -> str:
    """Return a leaf's name for people: `tool shell_exec`, `agent researcher / prompt system`."""
    agents, kind, name = leaf_subject(leaf)
    return " / ".join((*(f"agent {each}" for each in agents), f"{kind} {name}"))


def _module_words(name: str) -> str:
    if name in _CODE_FIELDS:
        # Distinguish a module that has the same name as one of our own fields.
        return f"module {name}"
    # The place of a function, and its name: `node.answer: answer`. Each is quoted separately, so
    # that neither can imitate the other.
    place, colon, function = unescape(name).partition(": ")
    return f"{quoted(place)}: {quoted(function)}" if place and colon else _shown(name)


def _shown(name: str) -> str:
    return quoted(unescape(name))


_NARROWED = frozenset({"agent", "permission", "tool"})
MODULES = frozenset({LeafClass.APPLICATION, LeafClass.CODE})
"""The classes whose leaves are modules, represented by digests."""
_TEXTUAL = MODULES | {LeafClass.RUNTIME}
_ABSENT: Any = object()
_ARROW = "->"
_SHORT_CHARS_MAX = 40
_REVISION = re.compile("[0-9a-f]{40}")
_REVISION_CHARS = 12
# The text forms of a number, true, false and null.
_NO_TEXT = re.compile("-?[0-9][0-9.eE+-]*|true|false|null")


@dataclass(frozen=True, slots=True)
class LeafChange:
    """One leaf that differs.

    `before` is None for an added leaf, `after` for a removed one. `parts` are JSON pointers,
    without the first slash, to the differences inside a changed leaf; it is empty if the value as a
    whole differs.
    """

    leaf: str
    before: Any = None
    after: Any = None
    parts: tuple[str, ...] = ()

    @property
    def leaf_class(self) -> LeafClass:
        """The subject of the leaf."""
        return class_of(self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldDiff:
    """Every leaf that differs between a world and a later one, each list sorted by leaf."""

    added: tuple[LeafChange, ...] = ()
    removed: tuple[LeafChange, ...] = ()
    changed: tuple[LeafChange, ...] = ()
    _gone: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The removed leaves that `without` left out."""

    @classmethod
    def of_values(
        cls, found: Iterable[tuple[str, Collection[Any], Collection[Any]]]
    ) -> "WorldDiff":
        """Return the differences of leaves that are given with their values.

        Args:
            found: The leaf, its value before and its value after; each is a list of one value, or
                an empty list where the leaf is absent. A leaf may occur with several values.

        Raises:
            WorldInvalid: A name is not one of a leaf.
        """
        added, removed, changed = [], [], []
        for leaf, before, after in found:
            if split_leaf(leaf)[1] not in _CLASSES:
                raise WorldInvalid(f"difference: expected the name of a leaf, found {leaf[:64]!r}")
            if not before:
                added += [LeafChange(leaf, after=each) for each in after]
            elif not after:
                removed += [LeafChange(leaf, before=each) for each in before]
            else:
                one, other = next(iter(before)), next(iter(after))
                changed.append(LeafChange(leaf, one, other, tuple(_parts(leaf, one, other))))
        return cls(added=tuple(added), removed=tuple(removed), changed=tuple(changed))

    def values(self) -> Iterator[tuple[LeafChange, tuple[Any, ...], tuple[Any, ...]]]:
        """Yield each change with the values before and after; empty where the leaf is absent."""
        yield from ((each, (), (each.after,)) for each in self.added)
        yield from ((each, (each.before,), ()) for each in self.removed)
        yield from ((each, (each.before,), (each.after,)) for each in self.changed)

    @property
    def less(self) -> frozenset[str]:
        """The leaves whose removal only takes something away from the run."""
        gone = {change.leaf for change in self.removed} | self._gone
        return frozenset(each.leaf for each in self.removed if _is_less(each.leaf, gone))

    def without(self, leaves: Collection[str]) -> "WorldDiff":
        """Return the differences without those of some leaves."""

        def rest(changes: tuple[LeafChange, ...]) -> tuple[LeafChange, ...]:
            return tuple(each for each in changes if each.leaf not in leaves)

        return WorldDiff(
            added=rest(self.added),
            removed=rest(self.removed),
            changed=rest(self.changed),
            _gone=self._gone | {each.leaf for each in self.removed if each.leaf in leaves},
        )

    @property
    def same(self) -> bool:
        """Whether the two worlds are equal."""
        return not (self.added or self.removed or self.changed)

    @property
    def differs(self) -> frozenset[LeafClass]:
        """The classes in which something was added, or changed and is not known to be less."""
        less = self.less
        other = (change for change in self.removed if change.leaf not in less)
        return frozenset(change.leaf_class for change in (*self.added, *self.changed, *other))

    @property
    def narrower(self) -> frozenset[LeafClass]:
        """The classes in which things were only removed, including what belonged to them."""
        return frozenset(change.leaf_class for change in self.removed) - self.differs

    def lines(self, leaf_class: LeafClass | None = None) -> tuple[str, ...]:
        """Return the differences for people, one per line, complete and with nothing hidden.

        Args:
            leaf_class: Only those of one class.
        """
        return tuple(
            line for found, line in self._lines() if leaf_class is None or found is leaf_class
        )

    def by_class(self) -> dict[LeafClass, tuple[str, ...]]:
        """Return the lines of each class with differences, in the order of the classes."""
        made: dict[LeafClass, tuple[str, ...]] = {}
        lines = list(self._lines())
        for leaf_class in LeafClass:
            told = tuple(line for found, line in lines if found is leaf_class)
            if told:
                made[leaf_class] = told
        return made

    def _lines(self) -> Iterator[tuple[LeafClass, str]]:
        for mark, changes in (("+", self.added), ("-", self.removed), ("~", self.changed)):
            for change in changes:
                told = _change_words(change) if mark == "~" else ""
                yield change.leaf_class, f"{mark} {leaf_words(change.leaf)}{told}"


def value_digest(value: Any) -> str:
    """Return the SHA-256 of the encoding of a leaf's value, in hexadecimal."""
    return Digest.of(encode_json(value)).raw.hex()


def compare(before: dict[str, Any], after: dict[str, Any]) -> WorldDiff:
    """Return the differences between the leaves of two worlds."""
    changed = []
    for leaf in sorted(before.keys() & after.keys()):
        one, other = before[leaf], after[leaf]
        if not _is_equal(*_compared(leaf, one, other)):
            changed.append(LeafChange(leaf, one, other, tuple(_parts(leaf, one, other))))
    return WorldDiff(
        added=tuple(
            LeafChange(leaf, after=after[leaf]) for leaf in sorted(after.keys() - before.keys())
        ),
        removed=tuple(
            LeafChange(leaf, before=before[leaf]) for leaf in sorted(before.keys() - after.keys())
        ),
        changed=tuple(changed),
    )


def _is_less(leaf: str, gone: set[str]) -> bool:
    """Whether a run can do less without a leaf; this includes the leaves of a removed sub-agent."""
    around, kind, _ = split_leaf(leaf)
    return kind in _NARROWED or not gone.isdisjoint(around)


def _compared(leaf: str, one: Any, other: Any) -> tuple[Any, Any]:
    """Return the values to compare: for a module its digest, with or without definitions."""
    if class_of(leaf) not in MODULES:
        return one, other
    digests = (each.get("") if isinstance(each, dict) else each for each in (one, other))
    return next(digests), next(digests)


def _is_equal(one: Any, other: Any) -> bool:
    # Compare bytes: Python treats 1, 1.0 and True as equal, and also 0.0 and -0.0.
    return encode_json(one) == encode_json(other)


def _parts(leaf: str, one: Any, other: Any) -> dict[str, tuple[Any, Any]]:
    """Return the differences inside a leaf: the two values by their place, sorted by place."""
    if split_leaf(leaf)[1] == "tool" and (isinstance(one, list) or isinstance(other, list)):
        one, other = tool_fields(one), tool_fields(other)
    found: dict[str, tuple[Any, Any]] = {}
    _collect(one, other, (), found)
    return dict(sorted(found.items()))


def _collect(one: Any, other: Any, at: tuple[str, ...], found: dict[str, tuple[Any, Any]]) -> None:
    """Descend while both sides have the same shape, and record where they differ."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = (dict(zip(map(str, range(len(v))), v, strict=True)) for v in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            token = (*at, key.replace("~", "~0").replace("/", "~1"))
            if key in one and key in other:
                _collect(one[key], other[key], token, found)
            else:
                found["/".join(token)] = (one.get(key, _ABSENT), other.get(key, _ABSENT))
    elif at and not _is_equal(one, other):
        found["/".join(at)] = (one, other)


def _change_words(change: LeafChange) -> str:
    """Describe how a leaf changed if the description is short: ` 1.2.0 -> 1.2.20`."""
    # These leaves contain only text, so quotes are not needed to distinguish text from a number.
    textual = change.leaf_class in _TEXTUAL
    if not change.parts:
        one, other = change.before, change.after
        return _from_to(*(_revisions(one, other) if textual else (one, other)), textual=textual)
    parts = _parts(change.leaf, change.before, change.after)
    if change.leaf_class in MODULES:
        return _definition_words(parts)
    return ": " + ", ".join(_part_words(part, *values) for part, values in parts.items())


def _definition_words(parts: dict[str, tuple[Any, Any]]) -> str:
    """List the definitions that differ: `pay, + refund, - old`; digests would not help people."""
    told = []
    for part, (one, other) in parts.items():
        mark = "- " if other is _ABSENT else "+ " if one is _ABSENT else ""
        if part:
            told.append(f"{mark}{quoted(part)}")
    return f": {', '.join(told)}" if told else ""


def _part_words(part: str, one: Any, other: Any) -> str:
    """Describe one part: `+ NAME VALUE`, `- NAME`, `NAME FROM -> TO`, or just its name if long.

    The number of words distinguishes these forms, so that no name or value can imitate another.
    """
    name = quoted(part)
    if other is _ABSENT:
        return f"- {name}"
    if one is _ABSENT:
        value = None if other is True else _short(other, textual=False)  # true only marks presence
        return f"+ {name}" if value is None else f"+ {name} {value}"
    return f"{name}{_from_to(one, other, textual=False)}"


def _from_to(one: Any, other: Any, *, textual: bool) -> str:
    before, after = _short(one, textual=textual), _short(other, textual=textual)
    return "" if before is None or after is None else f" {before} -> {after}"


def _short(value: Any, *, textual: bool) -> str | None:
    """Return a value as one word or quoted; None if it is long, or has lines or parts."""
    if isinstance(value, list | dict) or (type(value) is str and "\n" in value):
        return None
    if type(value) is str:
        # Escape only a prefix: a long text is dropped anyway.
        shown = quoted(value[: _SHORT_CHARS_MAX + 1])
        if shown == _ARROW or (not textual and _NO_TEXT.fullmatch(shown)):
            shown = f'"{shown}"'
    else:
        shown = encode_json(value).decode()
    return shown if len(shown) <= _SHORT_CHARS_MAX else None


def _revisions(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two revisions in short form if that distinguishes them; otherwise unchanged."""
    both = type(one) is str and type(other) is str
    if both and _REVISION.fullmatch(one) and _REVISION.fullmatch(other):
        cut = one[:_REVISION_CHARS], other[:_REVISION_CHARS]
        return cut if cut[0] != cut[1] else (one, other)
    return one, other
