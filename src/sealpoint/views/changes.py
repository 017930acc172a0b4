# SPDX-License-Identifier: Apache-2.0
"""What changed between two values, in words that people read.

Two values are the same exactly when their encodings are, so that a difference of type or of
order is never overlooked: what cannot be shown as a change of a part is shown as a change of
the whole. Lists are aligned: an item that came in between is one addition. Pure; nothing is
read or printed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from sealpoint.errors import EncodeError
from sealpoint.store import Loaded
from sealpoint.views.values import (
    ValueParts,
    ValueShape,
    key_step,
    parts_of,
    short_text,
    type_name,
)
from sealpoint.world import json_form

__all__ = ["Change", "compare", "compare_checkpoints"]

_VALUE_CHARS = 200
_DEPTH_MAX = 60
_SIMILAR_DEPTH_MAX = 3
_SIMILAR_CHARS = 200
_SIMILAR_LEAST = 0.5
# Aligning costs as much as there are pairs of equal items, and again for each run that differs;
# beyond these, items are compared by position.
_EQUAL_PAIRS_MAX = 20_000
_ALIGNED_MAX = 4_000 * 4_000
_PAIRED_MAX = 400
_CONTEXT_CHARS = 20

_Block = tuple[int, int, int, int]
_Pair = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between an older and a newer value."""

    kind: Literal["added", "changed", "removed"]
    path: str
    """Where it lies in the newer value; of something removed, where it lay in the older one."""
    path_before: str | None = None
    """Where it lay in the older value, if that is somewhere else."""
    old: str | None = None
    new: str | None = None
    note: str | None = None
    """What kind of change it is, where old and new do not tell."""

    def as_dict(self) -> dict[str, str | None]:
        """The JSON form."""
        return json_form(self)


def compare(
    old: Any, new: Any, encode: Callable[[Any], bytes], *, name: str = "state"
) -> list[Change]:
    """List what changed, in the order of the newer value, removed parts after those that stay.

    Args:
        old: The older value.
        new: The newer value.
        encode: Gives the same bytes for the same value alone, as `Registry.encode` does.
        name: What the value is called in paths.
    """
    return list(_Comparison(encode).changes(old, new, name, name, 0))


def compare_checkpoints(
    before: Loaded, after: Loaded, encode: Callable[[Any], bytes]
) -> list[Change]:
    """List what changed in the state, the metadata and the world of two checkpoints.

    Args:
        before: The older one.
        after: The newer one.
        encode: `Registry.encode` of the registry that both were loaded with.
    """
    return [
        *compare(before.state, after.state, encode, name="state"),
        *compare(before.metadata, after.metadata, encode, name="metadata"),
        *compare(before.world, after.world, encode, name="world"),
    ]


class _Comparison:
    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode_saved = encode

    def _encode(self, value: Any) -> bytes:
        """The bytes of a value; what an object holds beside what is saved of it equals itself."""
        try:
            return self._encode_saved(value)
        except EncodeError:
            return f"at {id(value)}".encode()

    def changes(self, old: Any, new: Any, before: str, path: str, depth: int) -> Iterator[Change]:
        if self._encode(old) == self._encode(new):
            return
        if type(old) is not type(new):
            note = f"{type_name(old)} became {type_name(new)}"
            yield _changed(old, new, before, path, note)
            return
        parts = parts_of(old), parts_of(new)
        within: list[Change] = []
        if depth < _DEPTH_MAX:
            match parts[1].shape:
                case ValueShape.SEQUENCE:
                    within = list(self._sequence(*parts, before, path, depth))
                case ValueShape.MAPPING | ValueShape.RECORD:
                    within = list(self._named(*parts, before, path, depth))
                case ValueShape.SET:
                    within = list(self._members(*parts, before, path))
                case ValueShape.LEAF:
                    pass
        if within:
            yield from within
        elif parts[1].shape is ValueShape.LEAF:
            yield _changed(old, new, before, path, None)
        else:
            yield _changed(old, new, before, path, "changed in a part that is not shown")

    # ------------------------------------------------------------------ by name

    def _named(
        self, old: ValueParts, new: ValueParts, before: str, path: str, depth: int
    ) -> Iterator[Change]:
        """Dicts by key, records by field."""
        had = {self._key(key): (key, member) for key, member in old.members}
        has = {self._key(key): (key, member) for key, member in new.members}
        for name, (key, member) in has.items():
            step = key_step(new.shape, key)
            if name in had:
                yield from self.changes(had[name][1], member, before + step, path + step, depth + 1)
            else:
                yield Change(kind="added", path=path + step, new=_text(member))
        for name, (key, member) in had.items():
            if name not in has:
                yield Change(
                    kind="removed", path=before + key_step(old.shape, key), old=_text(member)
                )
        if [name for name in had if name in has] != [name for name in has if name in had]:
            yield Change(kind="changed", path=path, note="the order of its keys")

    def _key(self, key: Any) -> str | bytes:
        return key if type(key) is str else self._encode(key)

    def _members(
        self, old: ValueParts, new: ValueParts, before: str, path: str
    ) -> Iterator[Change]:
        """Sets by member, in the order of their texts: a set has none of its own."""
        had = {self._encode(member): member for _, member in old.members}
        has = {self._encode(member): member for _, member in new.members}
        for text in sorted(_text(has[name]) for name in has.keys() - had.keys()):
            yield Change(kind="added", path=path, new=text, note="member")
        for text in sorted(_text(had[name]) for name in had.keys() - has.keys()):
            yield Change(kind="removed", path=before, old=text, note="member")

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
                    yield Change(kind="added", path=now, new=_text(has[other or 0]))
                elif other is None:
                    yield Change(kind="removed", path=was, old=_text(had[place]))
                else:
                    yield from self.changes(had[place], has[other], was, now, depth + 1)

    def _paired(self, had: list[Any], has: list[Any], block: _Block) -> Iterator[_Pair]:
        """Which items of two runs are one item that changed; the others came or went."""
        first, last, start, end = block
        olds, news = range(first, last), range(start, end)
        if len(olds) == len(news) or not olds or not news or len(olds) * len(news) > _PAIRED_MAX:
            shared = min(len(olds), len(news))
            yield from zip(olds[:shared], news[:shared], strict=True)
            yield from ((place, None) for place in olds[shared:])
            yield from ((None, place) for place in news[shared:])
            return
        yield from _alike_in_order(
            olds, news, lambda place, other: self._similar(had[place], has[other], 0)
        )

    def _similar(self, old: Any, new: Any, depth: int) -> float:
        """How alike two values are, from 0 to 1."""
        if type(old) is not type(new):
            return 0.0
        if type(old) is str:
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


def _unequal(had: Sequence[bytes], has: Sequence[bytes]) -> Iterator[_Block]:
    """The runs in which two lists differ, each with its bounds in both."""
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
    """Pair each newer item with the next older one that is like it; the others came or went."""
    waiting = list(olds)
    for new in news:
        old = next((place for place in waiting if similar(place, new) >= _SIMILAR_LEAST), None)
        while old is not None and waiting[0] != old:
            yield waiting.pop(0), None
        yield (None if old is None else waiting.pop(0)), new
    yield from ((place, None) for place in waiting)


def _text(value: Any) -> str:
    return short_text(value, _VALUE_CHARS)


def _changed(old: Any, new: Any, before: str, path: str, note: str | None) -> Change:
    if type(old) is str and type(new) is str:
        texts = _windows(old, new)
    else:
        texts = _text(old), _text(new)
    if texts[0] == texts[1] and note is None:
        note = "changed in a part that is not shown"
    return Change(
        kind="changed",
        path=path,
        path_before=None if before == path else before,
        old=texts[0],
        new=texts[1],
        note=note,
    )


def _windows(old: str, new: str) -> tuple[str, str]:
    """Two texts from shortly before they first differ."""
    if max(len(old), len(new)) <= _VALUE_CHARS:
        return _text(old), _text(new)
    same = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        same += 1
    start = max(0, same - _CONTEXT_CHARS)
    if start == 0:
        return _text(old), _text(new)
    opening = f"{start:,} characters, then "
    return opening + _text(old[start:]), opening + _text(new[start:])
