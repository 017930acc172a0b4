# SPDX-License-Identifier: Apache-2.0
"""What differs between two worlds, in which classes, and where the later one can only do less.

What is not known to be less counts as more: only a tool, a permission or a whole sub-agent that
is gone makes a world narrower. Every difference is in one of the two sets, `differs` or
`narrower`, and no class is in both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sealpoint.world._json import encode_json
from sealpoint.world._leaves import LeafClass, class_of, leaf_words, split_leaf
from sealpoint.world._tool import tool_fields
from sealpoint.world._visible import quoted

__all__ = ["LeafChange", "WorldDiff", "compare"]

_NARROWED = frozenset({"agent", "permission", "tool"})


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
                words = f"{leaf_words(change.leaf)}{_parts_words(change)}"
                yield change.leaf_class, f"{mark} {words}"


def compare(before: dict[str, Any], after: dict[str, Any]) -> WorldDiff:
    """What differs between the leaves of two worlds."""
    changed = []
    for leaf in sorted(before.keys() & after.keys()):
        one, other = before[leaf], after[leaf]
        if not _is_equal(one, other):
            parts = _tool_parts(one, other) if split_leaf(leaf)[1] == "tool" else _parts(one, other)
            changed.append(LeafChange(leaf, one, other, parts))
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


def _parts_words(change: LeafChange) -> str:
    return f": {', '.join(map(quoted, change.parts))}" if change.parts else ""


def _is_equal(one: Any, other: Any) -> bool:
    # As bytes: Python takes 1, 1.0 and True for equal, and 0.0 and -0.0.
    return encode_json(one) == encode_json(other)


def _tool_parts(one: Any, other: Any) -> tuple[str, ...]:
    if isinstance(one, list) or isinstance(other, list):
        return _parts(tool_fields(one), tool_fields(other))
    return _parts(one, other)


def _parts(one: Any, other: Any) -> tuple[str, ...]:
    found: list[str] = []
    _collect(one, other, (), found)
    return tuple(sorted(found))


def _collect(one: Any, other: Any, at: tuple[str, ...], found: list[str]) -> None:
    """Descend as long as both sides are of one shape, and note where they part."""
    if isinstance(one, list) and isinstance(other, list):
        one, other = (dict(zip(map(str, range(len(v))), v, strict=True)) for v in (one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            token = (*at, key.replace("~", "~0").replace("/", "~1"))
            if key in one and key in other:
                _collect(one[key], other[key], token, found)
            else:
                found.append("/".join(token))
    elif at and not _is_equal(one, other):
        found.append("/".join(at))
