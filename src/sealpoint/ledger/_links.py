# SPDX-License-Identifier: Apache-2.0
"""The links of a chain.

Entry `n` names the hash of entry `n - 1` (prev) and of entry `n & (n - 1)` (skip): `n` without
its lowest set bit. Following skips wherever they do not overshoot leads from any entry to any
older one in a number of steps that grows with the square of the logarithm, so descent from a
verified head is proven without reading the whole thread.

A *spine* holds the hashes along the skips from an entry down to genesis: exactly those that the
next entries will have to name. It is at most 53 hashes long.
"""

import hashlib
from typing import Self

__all__ = ["Spine", "link_hash", "next_link", "skip_seq"]


def link_hash(header: bytes) -> bytes:
    """What an entry is called by the entries after it: the SHA-256 of its header bytes alone."""
    return hashlib.sha256(header).digest()


def skip_seq(seq: int) -> int:
    """The position that the skip link of `seq` names."""
    return seq & (seq - 1)


def next_link(seq: int, target: int) -> int:
    """The next position on the way from `seq` down to `target`."""
    skipped = skip_seq(seq)
    return skipped if skipped >= target else seq - 1


class Spine:
    """The hashes that the entries after `seq` will name."""

    __slots__ = ("_hashes",)

    def __init__(self, hashes: dict[int, bytes]) -> None:
        self._hashes = hashes

    @classmethod
    def begin(cls, entry: bytes) -> Self:
        """The spine of a thread of one entry."""
        return cls({0: entry})

    def hash_at(self, seq: int) -> bytes:
        """The hash of an entry on the spine."""
        return self._hashes[seq]

    def grown(self, seq: int, entry: bytes) -> "Spine":
        """The spine once the entry `seq` follows."""
        below = skip_seq(seq)
        hashes = {place: digest for place, digest in self._hashes.items() if place <= below}
        hashes[seq] = entry
        return Spine(hashes)
