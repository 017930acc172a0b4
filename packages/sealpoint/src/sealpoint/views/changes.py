# SPDX-License-Identifier: Apache-2.0
"""The changes between two values, in words for people.

Two values are the same exactly if their encodings are, so that a difference of type or of order is
never missed: a change that cannot be shown in a part is shown as a change of the whole. Lists are
aligned: an inserted item is one addition. Masked values are compared as well, but the output only
says that they changed. Pure; nothing is read or printed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Literal, TypeVar

from sealpoint.errors import EncodeError
from sealpoint.store import CheckpointRef, Loaded
from sealpoint.views.masking import REVEALED, Masking
from sealpoint.views.values import (
    ValueParts,
    ValueShape,
    key_step,
    parts_of,
    short_text,
    type_name,
)
from sealpoint.world import World, WorldDiff, json_form, visible

__all__ = [
    "Change",
    "CheckpointDiff",
    "LineChange",
    "compare",
    "compare_checkpoints",
    "diff_checkpoints",
]

_VALUE_CHARS = 200
_DEPTH_MAX = 60
_SIMILAR_DEPTH_MAX = 3
_SIMILAR_CHARS = 100
_SIMILAR_LEAST = 0.5
# The cost of alignment grows with the number of pairs of equal items, for each run of differences.
# Beyond these limits, items are compared by position.
_EQUAL_PAIRS_MAX = 20_000
_ALIGNED_MAX = 4_000 * 4_000
_PAIRED_MAX = 400
_SIMILAR_MAX = 600
"""How many texts to compare in total, to find out which one became which."""
_CONTEXT_CHARS = 20
_LINE_CHARS = 4_000

_Block = tuple[int, int, int, int]
_Pair = tuple[int | None, int | None]
_Item = TypeVar("_Item", bytes, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between an older and a newer value."""

    kind: Literal["added", "changed", "removed"]
    path: str
    """The place in the newer value; for a removed part, the place in the older one."""
    path_before: str | None = None
    """The place in the older value, if it differs."""
    old: str | None = None
    new: str | None = None
    note: str | None = None
    """The kind of change, if old and new do not show it."""
    old_text: str | None = field(default=None, repr=False)
    """The complete older value, if it is a text."""
    new_text: str | None = field(default=None, repr=False)
    masked: bool = False
    """Whether the values are hidden."""

    def as_dict(self) -> dict[str, str | None]:
        """Return the JSON form, without the complete texts."""
        return json_form(self, "kind", "path", "path_before", "old", "new", "note")

    def shown(self) -> "Change":
        """Return the same for people, with unprintable characters made visible."""
        return replace(
            self,
            path=visible(self.path),
            path_before=self.path_before and visible(self.path_before),
            old=self.old and visible(self.old),
            new=self.new and visible(self.new),
        )

    def lines(self, *, context: int = 3, lines_max: int = 2_000) -> tuple["LineChange", ...]:
        """Return how a text changed, line by line; empty if it is not a text.

        Args:
            context: How many lines to show around each difference; the lines between are counted.
            lines_max: The maximum number of lines to show; the rest is counted.
        """
        if self.old_text is None and self.new_text is None:
            return ()
        olds, news = (
            [] if text is None else text.split("\n") for text in (self.old_text, self.new_text)
        )
        found = list(islice(_line_changes(olds, news, context), lines_max + 1))
        if len(found) <= lines_max:
            return tuple(found)
        told = found[:lines_max]
        left = len(olds) + len(news) - sum(each.weight for each in told)
        return (*told, LineChange(mark="left-out", count=left))


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """A line of a text that changed, with unprintable characters made visible."""

    mark: Literal["added", "removed", "same", "skipped", "left-out"]
    """`skipped` stands for hidden equal lines, `left-out` for the remaining lines of both texts."""
    text: str = ""
    count: int = 1
    """How many lines it represents."""

    @property
    def weight(self) -> int:
        """How many lines of the two texts it represents, taken together."""
        return self.count * (2 if self.mark in ("same", "skipped") else 1)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return json_form(self)


def compare(
    old: Any,
    new: Any,
    encode: Callable[[Any], bytes],
    *,
    name: str = "state",
    masking: Masking = REVEALED,
) -> Iterator[Change]:
    """Yield the changes, in the order of the newer value, and then the removed parts.

    The comparison is lazy: a caller that takes only the first changes pays only for these.

    Args:
        old: The older value.
        new: The newer value.
        encode: Returns the same bytes only for the same value, as `Registry.encode` does.
        name: The name of the value in paths.
        masking: The names of hidden values.
    """
    return _Comparison(encode, masking).changes(old, new, name, name, 0)


def compare_checkpoints(
    before: Loaded, after: Loaded, encode: Callable[[Any], bytes], *, masking: Masking = REVEALED
) -> Iterator[Change]:
    """Yield the changes in the state, the metadata and the world of two checkpoints.

    Args:
        before: The older one.
        after: The newer one.
        encode: `Registry.encode` of the registry that both were loaded with.
        masking: The names of hidden values.
    """
    yield from compare(before.state, after.state, encode, name="state", masking=masking)
    yield from compare(before.metadata, after.metadata, encode, name="metadata", masking=masking)
    yield from compare(before.world, after.world, encode, name="world", masking=masking)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDiff:
    """The changes from one checkpoint of a thread to another."""

    before: CheckpointRef
    after: CheckpointRef
    changes: tuple[Change, ...]
    """The changes in the state, the metadata and the world."""
    complete: bool
    """Whether these are all of them."""
    world: WorldDiff | None
    """The change of the run's capabilities, leaf by leaf; None if a checkpoint declared none."""

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes of each kind."""
        found = Counter(str(change.kind) for change in self.changes)
        return {kind: found[kind] for kind in ("changed", "added", "removed")}


def diff_checkpoints(
    before: Loaded,
    after: Loaded,
    encode: Callable[[Any], bytes],
    *,
    masking: Masking = REVEALED,
    changes_max: int | None = None,
) -> CheckpointDiff:
    """Return the changes between two checkpoints, including the run's capabilities.

    Args:
        before: The older one.
        after: The newer one.
        encode: `Registry.encode` of the registry that both were loaded with.
        masking: The names of hidden values.
        changes_max: The maximum number of changes to find; None: all of them.
    """
    world = None
    if before.world is not None and after.world is not None:
        world = World.from_dict(before.world).diff(World.from_dict(after.world))
    found = compare_checkpoints(before, after, encode, masking=masking)
    return CheckpointDiff(
        before=before.ref,
        after=after.ref,
        changes=tuple(islice(found, changes_max)),
        complete=next(found, None) is None,
        world=world,
    )


class _Comparison:
    def __init__(self, encode: Callable[[Any], bytes], masking: Masking) -> None:
        self._encode_saved = encode
        self._masking = masking
        self._similar_left = _SIMILAR_MAX

    def _encode(self, value: Any) -> bytes:
        """Return the bytes of a value; an object that cannot be saved only equals itself."""
        try:
            return self._encode_saved(value)
        except EncodeError:
            return f"at {id(value)}".encode()

    def _text(self, value: Any) -> str:
        return short_text(value, _VALUE_CHARS, self._masking)

    def _came(self, path: str, value: Any, *, hidden: bool = False) -> Change:
        if hidden:
            return _masked("added", path)
        text = value if type(value) is str else None
        return Change(kind="added", path=path, new=self._text(value), new_text=text)

    def _went(self, path: str, value: Any, *, hidden: bool = False) -> Change:
        if hidden:
            return _masked("removed", path)
        text = value if type(value) is str else None
        return Change(kind="removed", path=path, old=self._text(value), old_text=text)

    def changes(self, old: Any, new: Any, before: str, path: str, depth: int) -> Iterator[Change]:
        if self._encode(old) == self._encode(new):
            return
        if type(old) is not type(new):
            note = f"{type_name(old)} became {type_name(new)}"
            yield self._changed(old, new, before, path, note)
            return
        parts = parts_of(old), parts_of(new)
        found = False
        for change in self._within(*parts, before, path, depth):
            found = True
            yield change
        if found:
            return
        if parts[1].shape is ValueShape.LEAF:
            yield self._changed(old, new, before, path, None)
        else:
            yield self._changed(old, new, before, path, "changed in a part that is not shown")

    def _within(
        self, old: ValueParts, new: ValueParts, before: str, path: str, depth: int
    ) -> Iterator[Change]:
        """Yield the changes in the parts of two values."""
        if depth < _DEPTH_MAX:
            match new.shape:
                case ValueShape.SEQUENCE:
                    yield from self._sequence(old, new, before, path, depth)
                case ValueShape.MAPPING | ValueShape.RECORD:
                    yield from self._named(old, new, before, path, depth)
                case ValueShape.SET:
                    yield from self._members(old, new, before, path)
                case ValueShape.LEAF:
                    pass

    # ------------------------------------------------------------------ by name

    def _named(
        self, old: ValueParts, new: ValueParts, before: str, path: str, depth: int
    ) -> Iterator[Change]:
        """Compare dicts by key, and records by field."""
        had = {self._key(key): (key, member) for key, member in old.members}
        has = {self._key(key): (key, member) for key, member in new.members}
        for name, (key, member) in has.items():
            step = key_step(new.shape, key)
            if name not in had:
                yield self._came(path + step, member, hidden=self._masking.hides(key))
            elif not self._masking.hides(key):
                yield from self.changes(had[name][1], member, before + step, path + step, depth + 1)
            elif self._encode(had[name][1]) != self._encode(member):
                yield _masked("changed", path + step)
        for name, (key, member) in had.items():
            if name not in has:
                at = before + key_step(old.shape, key)
                yield self._went(at, member, hidden=self._masking.hides(key))
        if [*filter(has.__contains__, had)] != [*filter(had.__contains__, has)]:
            yield Change(kind="changed", path=path, note="the order of its keys")

    def _key(self, key: Any) -> str | bytes:
        return key if type(key) is str else self._encode(key)

    def _members(
        self, old: ValueParts, new: ValueParts, before: str, path: str
    ) -> Iterator[Change]:
        """Compare sets by member, in the order of their encodings, since sets have no order."""
        had = {self._encode(member): member for _, member in old.members}
        has = {self._encode(member): member for _, member in new.members}
        for name in sorted(has.keys() - had.keys()):
            yield Change(kind="added", path=path, new=self._text(has[name]), note="member")
        for name in sorted(had.keys() - has.keys()):
            yield Change(kind="removed", path=before, old=self._text(had[name]), note="member")

    # ------------------------------------------------------------------ by place

    def _sequence(
        self, old: ValueParts, new: ValueParts, before: str, path: str, depth: int
    ) -> Iterator[Change]:
        had = [member for _, member in old.members]
        has = [member for _, member in new.members]
        keys = [self._encode(member) for member in had], [self._encode(member) for member in has]
        for block in _unequal(*keys):
            for place, other in self._paired(had, has, block):
                was, now = f"{before}[{place}]", f"{path}[{other}]"
                if place is None:
                    yield self._came(now, has[other or 0])
                elif other is None:
                    yield self._went(was, had[place])
                else:
                    yield from self.changes(had[place], has[other], was, now, depth + 1)

    def _paired(self, had: list[Any], has: list[Any], block: _Block) -> Iterator[_Pair]:
        """Yield which items of two runs are one changed item; the others were added or removed."""
        first, last, start, end = block
        olds, news = range(first, last), range(start, end)
        most = min(_PAIRED_MAX, self._similar_left)
        if len(olds) == len(news) or not olds or not news or len(olds) * len(news) > most:
            shared = min(len(olds), len(news))
            yield from zip(olds[:shared], news[:shared], strict=True)
            yield from ((place, None) for place in olds[shared:])
            yield from ((None, place) for place in news[shared:])
            return
        yield from _alike_in_order(
            olds, news, lambda place, other: self._similar(had[place], has[other], 0)
        )

    def _changed(self, old: Any, new: Any, before: str, path: str, note: str | None) -> Change:
        both = type(old) is str and type(new) is str
        texts = _windows(old, new) if both else (self._text(old), self._text(new))
        if texts[0] == texts[1] and note is None:
            note = "changed in a part that is not shown"
        return Change(
            kind="changed",
            path=path,
            path_before=None if before == path else before,
            old=texts[0],
            new=texts[1],
            note=note,
            old_text=old if both else None,
            new_text=new if both else None,
        )

    def _similar(self, old: Any, new: Any, depth: int) -> float:
        """Return how similar two values are, from 0 to 1."""
        if type(old) is not type(new):
            return 0.0
        if type(old) is str:
            self._similar_left -= 1
            return SequenceMatcher(
                None, old[:_SIMILAR_CHARS], new[:_SIMILAR_CHARS], autojunk=False
            ).ratio()
        if self._encode(old) == self._encode(new):
            return 1.0
        parts = parts_of(old), parts_of(new)
        if (
            parts[0].shape not in (ValueShape.MAPPING, ValueShape.RECORD)
            or depth >= _SIMILAR_DEPTH_MAX
        ):
            return 0.0
        had = {self._key(key): member for key, member in parts[0].members}
        has = {self._key(key): member for key, member in parts[1].members}
        shared = sum(self._similar(had[key], has[key], depth + 1) for key in had if key in has)
        return shared / (len(had.keys() | has.keys()) or 1)


def _unequal(had: Sequence[_Item], has: Sequence[_Item]) -> Iterator[_Block]:
    """Yield the runs in which two lists differ, each with its bounds in both."""
    shortest = min(len(had), len(has))
    first = 0
    while first < shortest and had[first] == has[first]:
        first += 1
    tail = 0
    while tail < shortest - first and had[-1 - tail] == has[-1 - tail]:
        tail += 1
    last, end = len(had) - tail, len(has) - tail
    olds, news = had[first:last], has[first:end]
    counts = Counter(olds), Counter(news)
    pairs = sum(count * counts[1][key] for key, count in counts[0].items())
    if pairs > _EQUAL_PAIRS_MAX or len(olds) * len(news) > _ALIGNED_MAX:
        yield first, last, first, end
        return
    matcher = SequenceMatcher(None, olds, news, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            yield first + i1, first + i2, first + j1, first + j2


def _alike_in_order(
    olds: range, news: range, similar: Callable[[int, int], float]
) -> Iterator[_Pair]:
    """Pair each newer item with the next similar older one; the others were added or removed."""
    waiting = list(olds)
    for new in news:
        old = next((place for place in waiting if similar(place, new) >= _SIMILAR_LEAST), None)
        while old is not None and waiting[0] != old:
            yield waiting.pop(0), None
        yield (None if old is None else waiting.pop(0)), new
    yield from ((place, None) for place in waiting)


def _windows(old: str, new: str) -> tuple[str, str]:
    """Return two texts, starting shortly before their first difference."""
    start = 0
    if max(len(old), len(new)) > _VALUE_CHARS:
        pairs = enumerate(zip(old, new, strict=False))
        shortest = min(len(old), len(new))
        same = next((place for place, (one, other) in pairs if one != other), shortest)
        start = max(0, same - _CONTEXT_CHARS)
    opening = f"{start:,} characters, then " if start else ""
    before, after = (short_text(text[start:], _VALUE_CHARS) for text in (old, new))
    return opening + before, opening + after


def _masked(kind: Literal["added", "changed", "removed"], path: str) -> Change:
    return Change(kind=kind, path=path, note="masked", masked=True)


def _line_changes(olds: Sequence[str], news: Sequence[str], context: int) -> Iterator[LineChange]:
    """Yield the lines of two texts that differ, with some context."""
    done = 0
    for first, last, start, end in _unequal(olds, news):
        yield from _equal_lines(olds[done:first], context, begins=not done, ends=False)
        yield from (_line("removed", text) for text in olds[first:last])
        yield from (_line("added", text) for text in news[start:end])
        done = last
    yield from _equal_lines(olds[done:], context, begins=not done, ends=True)


def _equal_lines(
    lines: Sequence[str], context: int, *, begins: bool, ends: bool
) -> Iterator[LineChange]:
    """Yield the context lines of a part that is equal, and the number of the others."""
    head, tail = (0 if begins else context), (0 if ends else context)
    if len(lines) <= head + tail:
        yield from (_line("same", text) for text in lines)
        return
    yield from (_line("same", text) for text in lines[:head])
    yield LineChange(mark="skipped", count=len(lines) - head - tail)
    yield from (_line("same", text) for text in lines[len(lines) - tail :])


def _line(mark: Literal["added", "removed", "same"], text: str) -> LineChange:
    more = len(text) - _LINE_CHARS
    shown = visible(text[:_LINE_CHARS])
    return LineChange(
        mark=mark, text=f"{shown} ... and {more:,} more characters" if more > 0 else shown
    )
