# SPDX-License-Identifier: Apache-2.0
"""What differs between two worlds, and whether the later one can do more.

What is not known to be less counts as more: only a tool, a permission or a whole sub-agent that
is gone makes a world narrower. Code is told apart, because other code can be asked about by
another rule.
"""

from dataclasses import dataclass
from typing import Any

from sealpoint.world._json import encode_json
from sealpoint.world._leaves import CODE, leaf_words, split_leaf
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
    def code_changed(self) -> bool:
        """Whether code differs, of a sub-agent or of the run itself."""
        return any(map(_is_code, (*self.added, *self.removed, *self.changed)))

    @property
    def narrowing(self) -> bool:
        """Whether something but code differs, and all of it is what the run can no longer do."""
        return not self._wider() and not all(map(_is_code, self.removed))

    @property
    def widening(self) -> bool:
        """Whether something but code was added, or changed in a way not known to be less."""
        return self._wider()

    def lines(self) -> tuple[str, ...]:
        """The differences for people, one in a line, complete and with nothing hidden in them."""
        return (
            *(f"+ {leaf_words(change.leaf)}" for change in self.added),
            *(f"- {leaf_words(change.leaf)}" for change in self.removed),
            *(f"~ {leaf_words(change.leaf)}{_parts_words(change)}" for change in self.changed),
        )

    def _wider(self) -> bool:
        if not all(map(_is_code, (*self.added, *self.changed))):
            return True
        gone = {change.leaf for change in self.removed}
        for change in self.removed:
            around, kind, _ = split_leaf(change.leaf)
            # What belonged to a sub-agent that is gone went with it.
            if kind not in _NARROWED and kind != CODE and gone.isdisjoint(around):
                return True
        return False


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


def _is_code(change: LeafChange) -> bool:
    return split_leaf(change.leaf)[1] == CODE


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
