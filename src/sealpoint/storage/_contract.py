# SPDX-License-Identifier: Apache-2.0
"""What every storage backend promises.

A storage keeps bytes at positions. It never learns what an entry says, decides nothing about
trust and is itself not trusted: whatever it returns is verified by its caller. What it MUST get
right is order and durability, which no signature can repair. `sealpoint.testing.conformance`
tests every sentence below; `memory.py` is the reference implementation.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

__all__ = ["Record", "Storage"]


class Record(msgspec.Struct, frozen=True):
    """One entry as it lies in the store: unverified bytes.

    A struct and not a dataclass: several are made for every save and load, and this takes a fifth
    of the time.
    """

    header: bytes
    seals: bytes
    body: bytes | None
    """None once the body has been erased."""
    payload: bytes | None = None
    """A small blob that only this entry names; it spares a look-up among the blobs."""


class Storage(Protocol):
    """Entries by thread and sequence number, blobs by thread and digest.

    A thread is 16 bytes, a digest and a label 32 bytes, a sequence number 0 or more. A write of
    other sizes, of a record beyond the bounds in `sealpoint.limits`, or of no record at all MUST
    be raised as `UsageError` and change nothing: it could not be read again.

    Every method MAY be called from any OS thread, and several processes MAY use one store at the
    same time (a backend that cannot says so in its docstring, as memory does). Failures of the
    backend itself MUST be raised as `StorageUnavailable`, with the cause chained; the call then
    either took full effect or none, and `read` afterwards tells which. A row that cannot be a
    record (another type, or larger than the bounds in `sealpoint.limits` allow) MUST be raised as
    `Edited`, before it is brought into memory.
    """

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        label: bytes | None = None,
    ) -> None:
        """Create entries at `seq`, `seq + 1`, ... with the blobs they name: all or nothing.

        - Each position MUST be created only if it is absent. If every position holds exactly
          these bytes already, the call is a success and changes no entry, and its blobs are made
          good all the same; if any position holds other bytes, it MUST raise `HeadMoved` and
          change nothing. A body that was erased is other bytes than the body.
        - When it returns, entries and blobs MUST survive a crash and a power cut. A blob MUST NOT
          become durable later than an entry of the same call.
        - Nothing is ever updated in place, except that a blob whose stored bytes differ from the
          given ones MUST be replaced: a caller that gives a blob does not rely on the stored one.
        - `label` is a hint from a label to this thread (see `labelled`).

        Raises:
            HeadMoved: Another record lies at one of the positions.
            StorageUnavailable: The backend failed.
        """
        ...

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them; orphans are legal."""
        ...

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position, or None."""
        ...

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last` (None: all), in order of position.

        Holes are not reported; the caller sees them in the numbers. Every call MUST see what was
        committed before it. Memory MUST NOT follow the length of the thread. Appending while a
        scan is under way MUST be possible; whether the scan sees it is left open.
        """
        ...

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """The bytes stored under a digest, or None. The caller verifies them.

        Raises:
            Edited: More than `size_bytes_max` bytes are stored there.
        """
        ...

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Several blobs at once, to save time: what `blob` would return for some of the digests.

        Any MAY be left out, those of more than `size_bytes_max` bytes MUST be; the caller then
        asks for them one by one.
        """
        ...

    def threads(self) -> Iterator[bytes]:
        """Every thread that has an entry, each once, in any order."""
        ...

    def labelled(self, label: bytes) -> list[bytes]:
        """The threads that were appended with this label: a hint that proves nothing."""
        ...

    def close(self) -> None:
        """Release everything. Closing twice is allowed; any other call then is `UsageError`."""
        ...
