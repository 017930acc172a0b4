# SPDX-License-Identifier: Apache-2.0
r"""What differs between two worlds, in which classes, and where the later one can only do less.

What is not known to be less counts as more: only a tool, a permission or a whole sub-agent that
is gone makes a world narrower. Every difference is in one of the two sets, `differs` or
`narrower`, and no class is in both.

The leaves of a world: what can differ, each with a name of its own.

A name is `KIND.NAME`, after `agent.NAME/` for each sub-agent on the way. NAME is escaped, so
that two leaves never have one name and a name hides nothing: `agent.a\u{2f}b/tool.search`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any

from sealpoint.world._json import encode_json
from sealpoint.world._tool import tool_fields
from sealpoint.world._visible import escape, quoted, unescape

_AGENT = "agent."
_MODULE = "module."
_CODE = "code"
_CODE_FIELDS = ("version", "revision")


@unique
class LeafClass(StrEnum):
    """What a leaf is about; each leaf has one class, also one of a sub-agent."""

    TOOLS = "tools"
    """What the run can call, with all that is told of it."""
    PERMISSIONS = "permissions"
    MODEL = "model"
    PROMPTS = "prompts"
    TOPOLOGY = "topology"
    """How steps follow each other, and which sub-agents there are."""
    CODE = "code"
    """The modules of the application that hold the run, and those that they lead to."""
    APPLICATION = "application"
    """Its other modules."""
    RUNTIME = "runtime"
    """Versions of what it runs on: the interpreter, frameworks, packages."""
    OTHER = "other"
    """Whatever else the application put into its world."""


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
"""The class of each kind of leaf."""


_NAMED_KINDS = {
    "model": "model",
    "prompt": "prompts",
    "topology": "topology",
    "runtime": "runtime",
}


def leaves_of(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of a world in its plain form, in no order."""
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
        # One leaf says that it is there, even if it can do nothing.
        path = f"{prefix}{_AGENT}{escape(name, also='/')}"
        made[path] = {}
        made |= leaves_of(agent, f"{path}/")
    for kind, key in _NAMED_KINDS.items():
        for name, value in rest.pop(key, {}).items():
            made[f"{prefix}{kind}.{escape(name)}"] = value
    made |= {f"{prefix}extra.{escape(name)}": value for name, value in rest.items()}
    return made


def split_leaf(leaf: str) -> tuple[tuple[str, ...], str, str]:
    """The leaves of the sub-agents around a leaf, outermost first; its kind; its escaped name."""
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
    """The class of a leaf: that of its own kind, whatever sub-agents are around it."""
    return _CLASSES[split_leaf(leaf)[1]]


def leaf_words(leaf: str) -> str:
    """The name of a leaf for people: `tool shell_exec`, `agent researcher / prompt system`."""
    around, kind, name = split_leaf(leaf)
    words = [f"agent {_shown(agent.rpartition('/')[2].removeprefix(_AGENT))}" for agent in around]
    if kind == _CODE and name.startswith(_MODULE):
        words.append(f"{kind} {_module_words(name.removeprefix(_MODULE))}")
    else:
        words.append(f"{kind} {_shown(name)}")
    return " / ".join(words)


def _module_words(name: str) -> str:
    if name in _CODE_FIELDS:
        # A module that is called like one of our own fields is not taken for it.
        return f"module {name}"
    # The place of a function, and its name: `node.answer: answer`. Each by itself shows where it
    # ends, so that neither can pretend to be the other.
    place, colon, function = unescape(name).partition(": ")
    return f"{quoted(place)}: {quoted(function)}" if place and colon else _shown(name)


def _shown(name: str) -> str:
    return quoted(unescape(name))


_NARROWED = frozenset({"agent", "permission", "tool"})
MODULES = frozenset({LeafClass.APPLICATION, LeafClass.CODE})
"""The classes whose leaves are modules, told by digests."""
_TEXTUAL = MODULES | {LeafClass.RUNTIME}
_ABSENT: Any = object()
_ARROW = "->"
_SHORT_CHARS_MAX = 40
_REVISION = re.compile("[0-9a-f]{40}")
_REVISION_CHARS = 12
# What a number, true, false or null looks like.
_NO_TEXT = re.compile("-?[0-9][0-9.eE+-]*|true|false|null")


@dataclass(frozen=True, slots=True)
class LeafChange:
    """One leaf that differs.

    `before` is None for one that was added, `after` for one that was removed. `parts` are JSON
    pointers, without the first slash, to what differs inside of a leaf that changed; there are
    none if the leaf as a whole is another value.
    """

    leaf: str
    before: Any = None
    after: Any = None
    parts: tuple[str, ...] = ()

    @property
    def leaf_class(self) -> LeafClass:
        """What the leaf is about."""
        return class_of(self.leaf)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldDiff:
    """Every leaf that differs between a world and a later one, each list sorted by leaf."""

    added: tuple[LeafChange, ...] = ()
    removed: tuple[LeafChange, ...] = ()
    changed: tuple[LeafChange, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the two worlds are equal."""
        return not (self.added or self.removed or self.changed)

    @property
    def differs(self) -> frozenset[LeafClass]:
        """The classes in which something was added, or changed in a way not known to be less."""
        gone = {change.leaf for change in self.removed}
        other = (change for change in self.removed if not _is_less(change.leaf, gone))
        return frozenset(change.leaf_class for change in (*self.added, *self.changed, *other))

    @property
    def narrower(self) -> frozenset[LeafClass]:
        """The classes in which something is only gone, with what belonged to it."""
        return frozenset(change.leaf_class for change in self.removed) - self.differs

    def lines(self, leaf_class: LeafClass | None = None) -> tuple[str, ...]:
        """The differences for people, one in a line, complete and with nothing hidden in them.

        Args:
            leaf_class: Only those of one class.
        """
        return tuple(
            line for found, line in self._lines() if leaf_class is None or found is leaf_class
        )

    def by_class(self) -> dict[LeafClass, tuple[str, ...]]:
        """The lines of each class in which something differs, in the order of the classes."""
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


def compare(before: dict[str, Any], after: dict[str, Any]) -> WorldDiff:
    """What differs between the leaves of two worlds."""
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
    """Whether a run can do less without a leaf; what belonged to a sub-agent went with it."""
    around, kind, _ = split_leaf(leaf)
    return kind in _NARROWED or not gone.isdisjoint(around)


def _compared(leaf: str, one: Any, other: Any) -> tuple[Any, Any]:
    """What decides whether a leaf differs: of a module its digest, with or without definitions."""
    if class_of(leaf) not in MODULES:
        return one, other
    digests = (each.get("") if isinstance(each, dict) else each for each in (one, other))
    return next(digests), next(digests)


def _is_equal(one: Any, other: Any) -> bool:
    # As bytes: Python takes 1, 1.0 and True for equal, and 0.0 and -0.0.
    return encode_json(one) == encode_json(other)


def _parts(leaf: str, one: Any, other: Any) -> dict[str, tuple[Any, Any]]:
    """What differs inside of a leaf: where, and the two values there, sorted by where."""
    if split_leaf(leaf)[1] == "tool" and (isinstance(one, list) or isinstance(other, list)):
        one, other = tool_fields(one), tool_fields(other)
    found: dict[str, tuple[Any, Any]] = {}
    _collect(one, other, (), found)
    return dict(sorted(found.items()))


def _collect(one: Any, other: Any, at: tuple[str, ...], found: dict[str, tuple[Any, Any]]) -> None:
    """Descend as long as both sides are of one shape, and note where they part."""
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
    """What became of a leaf that changed, as far as it is short: ` 1.2.0 -> 1.2.20`."""
    # Nothing but text is in leaves of these, which then needs no quotes to be told from a number.
    textual = change.leaf_class in _TEXTUAL
    if not change.parts:
        one, other = change.before, change.after
        return _from_to(*(_revisions(one, other) if textual else (one, other)), textual=textual)
    parts = _parts(change.leaf, change.before, change.after)
    if change.leaf_class in MODULES:
        return _definition_words(parts)
    return ": " + ", ".join(_part_words(part, *values) for part, values in parts.items())


def _definition_words(parts: dict[str, tuple[Any, Any]]) -> str:
    """What a module defines otherwise: `pay, + refund, - old`; digests tell people nothing."""
    told = []
    for part, (one, other) in parts.items():
        mark = "- " if other is _ABSENT else "+ " if one is _ABSENT else ""
        if part:
            told.append(f"{mark}{quoted(part)}")
    return f": {', '.join(told)}" if told else ""


def _part_words(part: str, one: Any, other: Any) -> str:
    """One part: `+ NAME VALUE`, `- NAME`, `NAME FROM -> TO`, or its name where that is long.

    How many words there are says which it is, so that no name and no value forges another.
    """
    name = quoted(part)
    if other is _ABSENT:
        return f"- {name}"
    if one is _ABSENT:
        value = None if other is True else _short(other, textual=False)  # true: it is there
        return f"+ {name}" if value is None else f"+ {name} {value}"
    return f"{name}{_from_to(one, other, textual=False)}"


def _from_to(one: Any, other: Any, *, textual: bool) -> str:
    before, after = _short(one, textual=textual), _short(other, textual=textual)
    return "" if before is None or after is None else f" {before} -> {after}"


def _short(value: Any, *, textual: bool) -> str | None:
    """A value for people as one word or in quotes; None if it is long, or has lines or parts."""
    if isinstance(value, list | dict) or (type(value) is str and "\n" in value):
        return None
    if type(value) is str:
        # Long texts are not made visible only to be dropped.
        shown = quoted(value[: _SHORT_CHARS_MAX + 1])
        if shown == _ARROW or (not textual and _NO_TEXT.fullmatch(shown)):
            shown = f'"{shown}"'
    else:
        shown = encode_json(value).decode()
    return shown if len(shown) <= _SHORT_CHARS_MAX else None


def _revisions(one: Any, other: Any) -> tuple[Any, Any]:
    """Two revisions of a repository as people know them, if that tells them apart; else as is."""
    both = type(one) is str and type(other) is str
    if both and _REVISION.fullmatch(one) and _REVISION.fullmatch(other):
        cut = one[:_REVISION_CHARS], other[:_REVISION_CHARS]
        return cut if cut[0] != cut[1] else (one, other)
    return one, other
