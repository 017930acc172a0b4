# SPDX-License-Identifier: Apache-2.0
"""The end of a key: which of its entries are still believed.

A cut of the newest roster names a list, by its digest: for every thread that the key wrote, the
last position that counts and the hash of the entry there. Position decides, and never the time
that an entry claims. Lists stay bytes: 100,000 threads take 5.6 MB and no objects. They are
fetched when an entry by a cut key is met, through a function that the caller brings; what it
returns is believed by its digest alone.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

import msgspec

from sealpoint.errors import Edited, Misplaced, Missing, NotTrusted
from sealpoint.ledger._entry import Header
from sealpoint.limits import POSITION_LIST_BYTES_MAX

Fetch = Callable[[bytes], bytes | None]
"""Gives the blob of the store chain that has a digest, or None."""

_THREAD_BYTES = 16
_SEQ_BYTES = 8
_HASH_BYTES = 32
_LINE_BYTES = _THREAD_BYTES + _SEQ_BYTES + _HASH_BYTES


class PositionList:
    """A list of positions, one for each thread: 16 bytes thread, 8 position, 32 hash.

    Raises:
        NotTrusted: The bytes are no such list, in the order of the threads and each once.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        if len(data) > POSITION_LIST_BYTES_MAX or len(data) % _LINE_BYTES:
            raise NotTrusted(
                f"cut: expected lines of {_LINE_BYTES} bytes, at most {POSITION_LIST_BYTES_MAX} in "
                f"all, found {len(data)} bytes"
            )
        self.data = data
        before = b""
        for thread in self.threads():
            if thread <= before:
                raise NotTrusted("cut: expected threads in rising order, found another order")
            before = thread

    @classmethod
    def of(cls, positions: Iterable[tuple[bytes, int, bytes]]) -> "PositionList":
        """The list of these threads, positions and hashes, given in any order."""
        lines = [
            thread + seq.to_bytes(_SEQ_BYTES, "big") + entry for thread, seq, entry in positions
        ]
        return cls(b"".join(sorted(lines)))

    @property
    def digest(self) -> bytes:
        """What the list is called."""
        return hashlib.sha256(self.data).digest()

    def __len__(self) -> int:
        return len(self.data) // _LINE_BYTES

    def threads(self) -> Iterator[bytes]:
        """The threads, in order."""
        for place in range(0, len(self.data), _LINE_BYTES):
            yield self.data[place : place + _THREAD_BYTES]

    def position(self, thread: bytes) -> tuple[int, bytes] | None:
        """The last position that counts in a thread and the hash there; None if none does."""
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
    """Lists by their digests; those that were used last are kept, up to a bound in bytes.

    Args:
        fetch: Where they come from; without it there are none.
    """

    __slots__ = ("_fetch", "_kept", "_kept_bytes", "_lock")

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch
        self._kept: OrderedDict[str, PositionList] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def get(self, digest: str) -> PositionList:
        """A list, proven by its digest.

        Raises:
            Missing: It is not there.
            Edited: Other bytes are there.
            NotTrusted: It is what the root signed, and no list.
        """
        with self._lock:
            found = self._kept.get(digest)
            if found is not None:
                self._kept.move_to_end(digest)
                return found
        name = bytes.fromhex(digest)
        data = None if self._fetch is None else self._fetch(name)
        if data is None:
            raise Missing(f"store chain: expected the cut {digest[:12]}, found none")
        if hashlib.sha256(data).digest() != name:
            raise Edited(f"store chain: expected the cut {digest[:12]}, found other bytes")
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


# ---------------------------------------------------------------------- restores
# Accepted restores: where one epoch ended, and what of it still counts.
#
# A restore lists, for every thread that was there, the newest entry that stays. Entries of
# earlier epochs count up to there and no further: those that were lost are genuine in every other
# respect, and must not come back by themselves. It also lists the threads it cut that may go on
# all the same: each from exactly the entry that it kept, and not after a later restore.


class Restore(msgspec.Struct, frozen=True):
    """One restore, as the store chain records it."""

    seq: int
    """Its position on the store chain."""
    kept: str
    """The digest of the list of what stays."""
    lost: str
    """The digest of the list of what the anchor had seen and is gone."""
    released: str
    """The digest of the list of the cut threads that may go on from the entry that stays."""

    @property
    def lists(self) -> tuple[str, str, str]:
        """The digests of its lists."""
        return self.kept, self.lost, self.released


class Restores(msgspec.Struct, frozen=True):
    """Every restore of a store, oldest first: the first one ended epoch 0."""

    all: tuple[Restore, ...] = ()

    @property
    def epoch(self) -> int:
        """The epoch that entries are written in now."""
        return len(self.all)

    def then(self, restore: Restore) -> "Restores":
        """These, and one more."""
        return Restores((*self.all, restore))

    def check(self, header: Header, entry: bytes, lists: PositionLists) -> None:
        """Judge an entry of a thread by its epoch.

        Args:
            header: Its header.
            entry: Its hash.
            lists: Where the lists come from.

        Raises:
            Misplaced: A restore cut it off, or it names an epoch that has not begun.
            Missing, Edited: A list is not there, or is another.
        """
        where = f"entry {header.seq} of thread {header.thread[:12]}"
        if header.epoch > self.epoch:
            raise Misplaced(f"{where}: expected epoch {self.epoch}, found {header.epoch}")
        thread = bytes.fromhex(header.thread)
        for restore in self.all[header.epoch :]:
            last = lists.get(restore.kept).position(thread)
            if last is None or header.seq > last[0] or (header.seq == last[0] and entry != last[1]):
                stays = "nothing" if last is None else f"entries up to {last[0]}"
                raise Misplaced(
                    f"{where}: expected of epoch {header.epoch} {stays}, as the restore in entry "
                    f"{restore.seq} of the store chain says, found another"
                )

    def cuts_off(
        self,
        thread: bytes,
        lists: PositionLists,
        *,
        basis: int,
        since: int,
        until: int | None = None,
    ) -> bool:
        """Whether a restore cut a thread, and did not release it as it is now.

        The newest restore that cut it decides: what an earlier one released, it did not know.

        Args:
            thread: Its id.
            lists: Where the lists come from.
            basis: The position of the newest entry that changes what a resume would mean: a
                release is for the thread as it was kept, and for nothing that came after it.
            since: The epoch in which it was last executed.
            until: The epoch to judge in; without it, the one in force.

        Raises:
            Missing, Edited: A list is not there, or is another.
        """
        for restore in reversed(self.all[since:until]):
            if lists.get(restore.lost).position(thread) is not None:
                released = lists.get(restore.released).position(thread)
                kept = lists.get(restore.kept).position(thread)
                return released is None or released != kept or basis > released[0]
        return False

    def kept(self, thread: bytes, lists: PositionLists) -> tuple[int, bytes] | None:
        """The newest entry of a thread that the newest restore kept; None if it kept nothing."""
        return lists.get(self.all[-1].kept).position(thread)
