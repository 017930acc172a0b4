# SPDX-License-Identifier: Apache-2.0
"""Lists of positions, one for each thread, which the store chain names by their digests.

Cutoffs of revoked keys, restores and changes of policy each name such a list. It is fetched when an
entry is judged by it, through a function that the caller provides; only its digest makes it
trusted.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

from sealpoint.errors import (
    Edited,
    Missing,
    NotTrusted,
)
from sealpoint.limits import POSITION_LIST_BYTES_MAX

Fetch = Callable[[bytes], bytes | None]
"""Returns the blob of the store chain that has a digest, or None."""

_THREAD_BYTES = 16
_SEQ_BYTES = 8
_HASH_BYTES = 32
_LINE_BYTES = _THREAD_BYTES + _SEQ_BYTES + _HASH_BYTES


class PositionList:
    """A list of positions, one for each thread: 16 bytes thread, 8 position, 32 hash.

    It stays in bytes: 100,000 threads take 5.6 MB and no objects.

    Raises:
        NotTrusted: The bytes are not such a list, with the threads in order and each once.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        if len(data) > POSITION_LIST_BYTES_MAX or len(data) % _LINE_BYTES:
            raise NotTrusted(
                f"list of positions: expected lines of {_LINE_BYTES} bytes, at most "
                f"{POSITION_LIST_BYTES_MAX} in all, found {len(data)} bytes"
            )
        self.data = data
        before = b""
        for thread in self.threads():
            if thread <= before:
                raise NotTrusted(
                    "list of positions: expected threads in rising order, found another order"
                )
            before = thread

    @classmethod
    def of(cls, positions: Iterable[tuple[bytes, int, bytes]]) -> "PositionList":
        """Make the list of these threads, positions and hashes, given in any order."""
        lines = [
            thread + seq.to_bytes(_SEQ_BYTES, "big") + entry for thread, seq, entry in positions
        ]
        return cls(b"".join(sorted(lines)))

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the list, which identifies it."""
        return hashlib.sha256(self.data).digest()

    def __len__(self) -> int:
        return len(self.data) // _LINE_BYTES

    def threads(self) -> Iterator[bytes]:
        """Yield the threads, in order."""
        for place in range(0, len(self.data), _LINE_BYTES):
            yield self.data[place : place + _THREAD_BYTES]

    def position(self, thread: bytes) -> tuple[int, bytes] | None:
        """Return the last position that counts in a thread and its hash; None if none does."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            place = middle * _LINE_BYTES
            found = self.data[place : place + _THREAD_BYTES]
            if found == thread:
                entry = place + _THREAD_BYTES + _SEQ_BYTES
                seq = int.from_bytes(self.data[place + _THREAD_BYTES : entry], "big")
                return seq, self.data[entry : entry + _HASH_BYTES]
            if found < thread:
                low = middle + 1
            else:
                high = middle
        return None


class PositionLists:
    """Lists by their digests, with a cache of the last used ones, up to a bound in bytes.

    Args:
        fetch: Fetches the lists; without it there are none.
    """

    __slots__ = ("_fetch", "_kept", "_kept_bytes", "_lock")

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch
        self._kept: OrderedDict[str, PositionList] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def get(self, digest: str) -> PositionList:
        """Return a list, proven by its digest.

        Raises:
            Missing: It does not exist.
            Edited: The store has other bytes.
            NotTrusted: The bytes have the digest that the root signed, but are not a list.
        """
        with self._lock:
            found = self._kept.get(digest)
            if found is not None:
                self._kept.move_to_end(digest)
                return found
        name = bytes.fromhex(digest)
        data = None if self._fetch is None else self._fetch(name)
        if data is None:
            raise Missing(f"list of positions {digest[:12]}: it is missing from the store")
        if hashlib.sha256(data).digest() != name:
            raise Edited(f"list of positions {digest[:12]}: the store has bytes of another hash")
        return self._keep(digest, PositionList(data))

    def _keep(self, digest: str, made: PositionList) -> PositionList:
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = made
                self._kept_bytes += len(made.data)
            while self._kept_bytes > POSITION_LIST_BYTES_MAX:
                _, dropped = self._kept.popitem(last=False)
                self._kept_bytes -= len(dropped.data)
        return made
