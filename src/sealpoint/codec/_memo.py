# SPDX-License-Identifier: Apache-2.0
"""What the encoding before found for its long lists, for the next one of the same thread.

A chat grows at its end. Every member is looked at each time, since any may have been edited in
place (`_casts`); but where the encoded members are, byte for byte, those of the encoding before,
they are cut into the same chunks with the same ids, and need not be joined, hashed and put again.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sealpoint.codec._casts import Casts

__all__ = ["CutList", "TreeMemo"]

_BYTES_MAX = 1024 * 1024


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
