# SPDX-License-Identifier: Apache-2.0
"""What the encoding before found for its long lists, for the next one of the same thread.

A chat grows at its end. Every member is looked at each time, since any may have been edited in
place (`_casts`); but where the encoded members are, byte for byte, those of the encoding before,
they are cut into the same chunks with the same ids, and need not be joined, hashed and put again.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

# ---------------------------------------------------------------------- casts
# Objects that are met again: a chat is loaded and saved in every turn, and hardly changes.
#
# A *cast* is taken of an object when it is encoded: what is encoded is what the cast makes, so
# that they agree even if somebody changes the object meanwhile. It tells whether the object still
# says exactly that, so that the bytes can be used once more; and it makes another object of the
# bytes when they are decoded again. Bytes that were not written here find no cast.


_BYTES_MAX = 1024 * 1024


class Cast(Protocol):
    """What is known of one object."""

    def fits(self, value: Any) -> bool:
        """Whether the object that it was taken of is unchanged, in every part and every type."""
        ...

    def make(self) -> Any:
        """Another object that is equal to that one, and shares nothing with it that can change."""
        ...


Caster = Callable[[Any], Cast | None]
"""Takes a cast; None of an object whose changes it could not tell."""


def cast_of(value: Any, caster: Caster) -> Cast | None:
    """The cast of an object, or None."""
    try:
        return caster(value)
    except Exception:  # noqa: BLE001 - whatever it is, the rule says it better
        return None


class _Known(NamedTuple):
    value: Any
    kind: type
    cast: Cast
    data: bytes
    """The encoding, with its header."""


class Casts:
    """The casts of objects in the states of one thread, up to a bound."""

    __slots__ = ("_bytes", "_made_bytes", "_objects", "_payloads")

    def __init__(self) -> None:
        self._objects: dict[int, _Known] = {}
        self._payloads: dict[bytes, _Known] = {}
        self._bytes = self._made_bytes = 0

    def forget_objects(self) -> None:
        """A state is about to be loaded: objects of those before are not likely to be met again."""
        self._objects, self._made_bytes = {}, 0

    def data_of(self, value: Any) -> bytes | None:
        """The encoding of an object that has not changed since it was last seen here."""
        found = self._objects.get(id(value))
        if found is None or found.value is not value or type(value) is not found.kind:
            return None
        try:
            return found.data if found.cast.fits(value) else None
        except Exception:  # noqa: BLE001 - whatever it is, the rule says it better
            return None

    def value_of(self, payload: bytes) -> Any:
        """A new object of a payload, or None: then it is to be decoded."""
        found = self._payloads.get(payload)
        if found is None:
            return None
        value = found.cast.make()
        self._made_bytes += len(payload)
        if self._made_bytes <= _BYTES_MAX:
            self._objects[id(value)] = _Known(value, found.kind, found.cast, found.data)
        return value

    def note(self, value: Any, cast: Cast, payload: bytes, data: bytes) -> None:
        """What the cast of an object makes has been encoded."""
        self._bytes += len(payload)
        if self._bytes > _BYTES_MAX:
            # Most of it is of states that have gone; what is still there is met again soon.
            self._objects, self._payloads, self._bytes = {}, {}, len(payload)
        known = _Known(value, type(value), cast, data)
        self._objects[id(value)] = self._payloads[payload] = known


# ---------------------------------------------------------------------- memo


@dataclass(frozen=True, slots=True)
class CutList:
    """A long list, or one level of an index, as it was cut: where chunks end, and their ids."""

    parts: list[bytes]
    ends: list[int]
    ids: list[bytes]
    target: int
    seed: int

    def chunks_kept(self, parts: list[bytes]) -> int:
        """How many chunks begin a list that has these members now.

        The last chunk of the list before ended because the list did, so it is never among them.
        """
        kept = bisect_right(self.ends, _common(self.parts, parts))
        return min(kept, len(self.ends) - 1)


class TreeMemo:
    """Passed to `Registry.encode_tree` again and again, by one OS thread at a time.

    Args:
        again: Told the ids of blobs that the value still has. False: they have to be put again.
    """

    __slots__ = ("_before", "_now", "again", "casts")

    def __init__(self, again: Callable[[Sequence[bytes]], bool]) -> None:
        self.again = again
        self._before: list[CutList | None] = []
        self._now: list[CutList | None] = []
        self.casts = Casts()

    @property
    def was_long(self) -> bool:
        """Whether the value before had a list that was cut."""
        return bool(self._before)

    def begin(self) -> None:
        """A value is about to be encoded; what a failed one left is forgotten."""
        self._now = []

    def end(self) -> None:
        """The value has been encoded."""
        self._before, self._now = self._now, []

    def kept(self, parts: list[bytes], target: int, seed: int) -> tuple[list[int], list[bytes]]:
        """Where the chunks end that are as in the list that stood at this place before.

        Returns:
            Their ends, and their ids, which need not be put; none if it was cut in another way.
        """
        place = len(self._now)
        found = self._before[place] if place < len(self._before) else None
        if found is None or (found.target, found.seed) != (target, seed):
            return [], []
        count = found.chunks_kept(parts)
        if not count or not self.again(found.ids[:count]):
            return [], []
        return found.ends[:count], found.ids[:count]

    def remember(self, found: CutList | None, size_bytes: int) -> None:
        """Keep a list for the next encoding, unless it takes too much memory."""
        self._now.append(found if size_bytes <= _BYTES_MAX else None)


def _common(before: list[bytes], now: list[bytes]) -> int:
    """How many members both lists begin with."""
    low, high = 0, min(len(before), len(now))
    if before[:high] == now[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
