# SPDX-License-Identifier: Apache-2.0
"""What a handle remembers of the states that it last saved or loaded, lane by lane.

Only what was proven is remembered: blobs by their digests, and encodings of what they hold. Nothing
of it says what is newest, so a handle that remembers reads what one that does not reads.
"""

from sealpoint.codec import TreeMemo

__all__ = ["BlobCache", "BlobCaches"]

_LANES_MAX = 8


class BlobCache:
    """What is remembered of the newest state of a lane."""

    __slots__ = ("known", "memo", "seen")

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        """Blobs of the newest checkpoint: those that a save may leave out."""
        self.seen: list[tuple[bytes, bytes]] = []
        """Blobs of the state, up to a megabyte, with their digests: what they hold is proven, so
        a save or load need not hash or fetch it again."""
        self.memo = TreeMemo(lambda _names: False)


class BlobCaches:
    """The caches of the lanes that were used last."""

    def __init__(self) -> None:
        self._all: dict[str, BlobCache] = {}

    def of(self, lane: str) -> BlobCache:
        """The cache of a lane, which is the youngest from here on."""
        cache = self._all.pop(lane, None)
        if cache is None:
            cache = BlobCache()
            while len(self._all) >= _LANES_MAX:
                del self._all[next(iter(self._all))]
        self._all[lane] = cache
        return cache

    def known_but(self, lane: str) -> tuple[set[bytes], ...]:
        """What the newest checkpoints of the other lanes hold."""
        return tuple(cache.known for name, cache in self._all.items() if name != lane)

    def lose_known(self) -> None:
        """Somebody else has saved: nothing may be left out any more."""
        for cache in self._all.values():
            cache.known = set()

    def forget(self) -> None:
        """Let go of everything."""
        self._all = {}
