# SPDX-License-Identifier: Apache-2.0
"""What the encoding before found for its long lists, for the next one of the same thread.

A chat grows at its end. Every member is looked at each time, since any may have been edited in
place (`_objects`); but where the encoded members are, byte for byte, those of the encoding before,
they are cut into the same chunks with the same ids, and need not be joined, hashed and put again.

Objects that are met again: a chat is loaded and saved in every turn, and hardly changes.

A *memo* is taken of an object when it is encoded: what is encoded is what the memo makes, so
that they agree even if somebody changes the object meanwhile. It tells whether the object still
says exactly that, so that the bytes can be used once more; and it makes another object of the
bytes when they are decoded again. Bytes that were not written here find no memo.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sealpoint.codec._chunks import ByteCuts
from sealpoint.limits import STATE_MEMORY_BYTES_MAX

_BYTES_MAX = STATE_MEMORY_BYTES_MAX // 4


class ObjectMemo(Protocol):
    """What is known of one object."""

    def matches(self, value: Any) -> bool:
        """Whether the object that it was taken of is unchanged, in every part and every type."""
        ...

    def rebuild(self) -> Any:
        """Another object that is equal to that one, and shares nothing with it that can change."""
        ...


MemoMaker = Callable[[Any], ObjectMemo | None]
"""Takes a memo; None of an object whose changes it could not tell."""


def memo_of(value: Any, memo_maker: MemoMaker) -> ObjectMemo | None:
    """The memo of an object, or None."""
    try:
        return memo_maker(value)
    except Exception:  # noqa: BLE001 - whatever it is, the rule says it better
        return None


class _KnownObject(NamedTuple):
    value: Any
    kind: type
    memo: ObjectMemo
    data: bytes
    """The encoding, with its header."""


class ObjectMemos:
    """The objects of objects in the states of one thread, up to a bound."""

    __slots__ = ("_bytes", "_made_bytes", "_objects", "_payloads")

    def __init__(self) -> None:
        self._objects: dict[int, _KnownObject] = {}
        self._payloads: dict[bytes, _KnownObject] = {}
        self._bytes = self._made_bytes = 0

    @property
    def size_bytes(self) -> int:
        """About what they take in memory: payloads, and the objects that were made of them."""
        return self._bytes * 2 + min(self._made_bytes, _BYTES_MAX)

    def forget_objects(self) -> None:
        """A state is about to be loaded: objects of those before are not likely to be met again."""
        self._objects, self._made_bytes = {}, 0

    def data_of(self, value: Any) -> bytes | None:
        """The encoding of an object that has not changed since it was last seen here."""
        found = self._objects.get(id(value))
        if found is None or found.value is not value or type(value) is not found.kind:
            return None
        try:
            return found.data if found.memo.matches(value) else None
        except Exception:  # noqa: BLE001 - whatever it is, the rule says it better
            return None

    def value_of(self, payload: bytes) -> Any:
        """A new object of a payload, or None: then it is to be decoded."""
        found = self._payloads.get(payload)
        if found is None:
            return None
        value = found.memo.rebuild()
        self._made_bytes += len(payload)
        if self._made_bytes <= _BYTES_MAX:
            self._objects[id(value)] = _KnownObject(value, found.kind, found.memo, found.data)
        return value

    def note(self, value: Any, memo: ObjectMemo, payload: bytes, data: bytes) -> None:
        """What the memo of an object makes has been encoded."""
        self._bytes += len(payload)
        if self._bytes > _BYTES_MAX:
            # Most of it is of states that have gone; what is still there is met again soon.
            self._objects, self._payloads, self._bytes = {}, {}, len(payload)
        known = _KnownObject(value, type(value), memo, data)
        self._objects[id(value)] = self._payloads[payload] = known


@dataclass(frozen=True, slots=True)
class ChunkedList:
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

    __slots__ = (
        "_before",
        "_now",
        "_now_bytes",
        "again",
        "byte_cuts",
        "objects",
        "size_bytes",
        "was_long",
    )

    def __init__(self, again: Callable[[Sequence[bytes]], bool]) -> None:
        self.again = again
        self._before: list[ChunkedList | None] = []
        self._now: list[ChunkedList | None] = []
        self._now_bytes = 0
        self.size_bytes = 0
        """What it takes in memory."""
        self.objects = ObjectMemos()
        self.byte_cuts = ByteCuts()
        self.was_long = False
        """Whether the value before had a list that was cut."""

    def begin(self) -> None:
        """A value is about to be encoded; what a failed one left is forgotten."""
        self._now, self._now_bytes = [], 0
        self.byte_cuts.begin()

    def end(self) -> None:
        """The value has been encoded."""
        self._before, self._now = self._now, []
        self.byte_cuts.end()
        self.size_bytes = self._now_bytes + self.objects.size_bytes + self.byte_cuts.size_bytes
        self.was_long = bool(self._before)

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

    def remember(self, found: ChunkedList | None, size_bytes: int) -> None:
        """Keep a list for the next encoding, unless it takes too much memory."""
        kept = found if self._now_bytes + size_bytes <= _BYTES_MAX else None
        self._now.append(kept)
        self._now_bytes += 0 if kept is None else size_bytes


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
