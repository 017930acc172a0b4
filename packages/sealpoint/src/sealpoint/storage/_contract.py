# SPDX-License-Identifier: Apache-2.0
"""The contract of every storage backend.

A storage keeps bytes at positions. It never learns the content of an entry, decides nothing about
trust and is itself not trusted: its caller verifies everything that it returns. It MUST guarantee
order and durability, which no signature can repair. `sealpoint_testing.conformance` tests every
sentence below; `memory.py` is the reference implementation. The functions at the end refuse writes
that could not be read again, and every backend calls them before it changes anything.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from sealpoint.errors import UsageError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)

THREAD_BYTES = 16
DIGEST_BYTES = 32
SEQ_MAX = 2**63 - 1


class Record(msgspec.Struct, frozen=True):
    """One entry as stored: unverified bytes.

    It is a struct and not a dataclass, because several are made for every save and load, and this
    takes a fifth of the time.
    """

    header: bytes
    seals: bytes
    body: bytes | None
    """None once the body has been erased."""
    payload: bytes | None = None
    """A small blob that only this entry names; it avoids a separate read of a blob."""


class Storage(Protocol):
    """Entries by thread and sequence number, blobs by thread and digest.

    A thread is 16 bytes, a digest and a label 32 bytes, a sequence number 0 or more. A write of
    other sizes, of a record beyond the bounds in `sealpoint.limits`, or of no record at all MUST be
    raised as `UsageError` and change nothing: it could not be read again.

    Every method MAY be called from any OS thread, and several processes MAY use one store at the
    same time (a backend that cannot says so in its docstring, as memory does). Failures of the
    backend itself MUST be raised as `StorageUnavailable`, with the cause chained; the call then
    took either full effect or none, and `read` afterwards shows which. A row that cannot be a
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
        needs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Create entries at `seq`, `seq + 1`, ... with the blobs they name: all or nothing.

        - Each position MUST be created only if it is absent. If every position already holds
          exactly these bytes, the call is a success and changes no entry, but still stores its
          blobs correctly. If any position holds other bytes, it MUST raise `HeadMoved` and change
          nothing. An erased body differs from the body.
        - When it returns, entries and blobs MUST survive a crash and a power cut. A blob MUST NOT
          become durable later than an entry of the same call.
        - Nothing is ever updated in place, except that a blob whose stored bytes differ from the
          given ones MUST be replaced: a caller that gives a blob does not rely on the stored one.
        - Each blob in `needs` MUST be stored already, and stay so at least until the entries are
          there; if one is not, it MUST raise `Missing` and change nothing. They are blobs that the
          caller has stored ahead, and another process may have dropped them since. A blob that is
          given in `blobs` of the same call does not count as stored already.
        - `label` is a hint from a label to this thread (see `labelled`).

        Raises:
            HeadMoved: Another record is at one of the positions.
            Missing: A needed blob is not stored.
            StorageUnavailable: The backend failed.
        """
        ...

    def alone(self, thread: bytes) -> AbstractContextManager[None]:
        """Keep others from appending to a thread until the block ends, or until the next `append`.

        It is for a caller that lost a position to a process that appends all the time: in the
        block, the caller reads the newest state, and gets the position after that. A backend MAY
        keep others from other threads as well, or do nothing. It MUST NOT let the caller wait for
        longer than an `append` may take. The caller MUST write to no other thread in the block.
        """
        ...

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them; orphans are legal."""
        ...

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Remove bytes of a thread that its entries have declared to be gone.

        - It MUST raise `HeadMoved` and change nothing if a record is at `head + 1`: the caller
          decided by the entries up to `head`, and a newer one may need the dropped bytes. With
          `head` -1 the caller saw no entry at all.
        - The records at `payloads` lose their payload, those at `bodies` their body and payload;
          header and seals of a record are never changed, and no record is removed. `label` no
          longer leads to this thread. Bytes that are already absent are not a failure.
        - When it returns, the change MUST survive a crash and a power cut, and no method returns
          dropped bytes. The bytes may still be in the files until `compact`.
        - A failure or a crash in the middle MAY leave a part undone; calling it again MUST do the
          rest.

        Raises:
            HeadMoved: There is a newer entry.
            StorageUnavailable: The backend failed.
        """
        ...

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Remove the record at a position and all after it: a restore was accepted without them.

        - It MUST raise `HeadMoved` and change nothing unless there is a record at `seq` and it has
          exactly this header, or, for None, cannot be read: another process may have removed it and
          saved there since.
        - Earlier records and all blobs do not change. A label that came with a removed record MAY
          be removed with it.
        - When it returns, the change MUST survive a crash and a power cut. A crash in the middle
          MAY leave some of the records: then the first ones.

        Raises:
            HeadMoved: Another record is there, or none.
            StorageUnavailable: The backend failed.
        """
        ...

    def compact(self) -> None:
        """Free space, and leave no dropped bytes in any file of the store.

        It MUST be safe at any time: bytes that are not dropped stay, and a crash in the middle
        loses nothing. It MAY take long, and MAY keep writers waiting during that time.
        """
        ...

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Return the record at a position, or None."""
        ...

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the headers at several positions at once, to save time, equal to those of `read`.

        Any header MAY be left out; the caller then reads the records one by one.
        """
        ...

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Yield the records from `first` to `last` inclusive (None: all), in order of position.

        The numbers MUST strictly rise, or fall, within the requested range; a store that has them
        in another order is `Edited`, and every scan ends. Holes are not reported; the caller sees
        them in the numbers. Every call MUST see everything committed before it. Memory MUST NOT
        grow with the length of the thread. Appending during a scan MUST be possible; whether the
        scan sees it is undefined.
        """
        ...

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Return the bytes stored under a digest, or None. The caller verifies them.

        Raises:
            Edited: More than `size_bytes_max` bytes are stored there.
        """
        ...

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Return several blobs at once, to save time, equal to those of `blob`.

        Any blob MAY be left out, and blobs of more than `size_bytes_max` bytes MUST be; the caller
        then reads them one by one.
        """
        ...

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield digest and size in bytes of every blob of a thread, in the order of the digests.

        Memory MUST NOT grow with their number, nor with their sizes. Blobs that are stored or
        dropped during the iteration may be left out or not.
        """
        ...

    def version(self) -> tuple[int, int, int] | None:
        """Return a value that changes with every commit, by any writer; None: unknown.

        As long as a handle returns the same value, every read MUST return the same as before, so a
        caller that has verified an entry need not fetch it again. The value need not reflect bytes
        that were changed without the backend. An `append` of this very handle MUST add one to the
        last number and leave the others, and every other commit MUST change the value in another
        way, so that the appending caller knows whether any other process has committed. A storage
        that cannot promise that, or not at this moment, MUST return None.
        """
        ...

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Yield every thread that has an entry, each once, in any order, with its last position.

        The position is an unproven hint: a caller that knows all threads reads again those that
        have moved. It MAY be one before a concurrent append, and is -1 if the stored value is not a
        position; reading the thread then reports the fault. The time SHOULD depend on the number of
        threads, and not on that of entries.
        """
        ...

    def blob_threads(self) -> Iterator[bytes]:
        """Yield every thread that has a blob, each once: after a crash it may have no entry."""
        ...

    def labelled(self, label: bytes) -> list[bytes]:
        """Return the threads that were appended with this label: an unproven hint."""
        ...

    def close(self) -> None:
        """Release everything. Closing twice is allowed; any other call then is `UsageError`."""
        ...


# Checks before any change: data that passes them can be found and read again.


def require_append(
    thread: bytes,
    seq: int,
    records: Sequence[Record],
    *,
    blobs: Mapping[bytes, bytes],
    needs: Collection[bytes] = (),
    label: bytes | None = None,
) -> None:
    """Refuse an append of data that could not be read again.

    Raises:
        UsageError: The data is invalid.
    """
    if blobs or type(thread) is not bytes or len(thread) != THREAD_BYTES:
        require_blobs(thread, blobs)
    if needs or label is not None:
        _require_names(needs, label)
    if not records:
        raise UsageError("append: there is no record to append")
    if not 0 <= seq <= SEQ_MAX - len(records):
        raise UsageError(f"position: expected 0 to {SEQ_MAX - len(records)}, found {seq}")
    for number, record in enumerate(records, start=seq):
        _require_record(number, record)


def require_blobs(thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
    """Refuse blobs that could not be found again.

    Raises:
        UsageError: A blob is invalid.
    """
    _require_size("thread", thread, THREAD_BYTES)
    for digest, data in blobs.items():
        _require_size("digest", digest, DIGEST_BYTES)
        if type(data) is not bytes:
            raise UsageError(f"blob {digest.hex()}: expected bytes, found {_shown(data)}")


def require_drop(
    thread: bytes,
    head: int,
    positions: Collection[int] = (),
    *,
    blobs: Collection[bytes] = (),
    label: bytes | None = None,
) -> None:
    """Refuse to remove data that cannot exist.

    Raises:
        UsageError: An argument is out of range.
    """
    _require_size("thread", thread, THREAD_BYTES)
    _require_names(blobs, label)
    for least, position in ((-1, head), *((0, seq) for seq in positions)):
        if not least <= position <= SEQ_MAX:
            raise UsageError(f"position: expected {least} to {SEQ_MAX}, found {position}")


def _require_record(number: int, record: Record) -> None:
    header, seals, body, payload = record.header, record.seals, record.body, record.payload
    if (
        type(header) is bytes
        and len(header) <= HEADER_BYTES_MAX
        and type(seals) is bytes
        and len(seals) <= SEALS_BYTES_MAX
        and (body is None or (type(body) is bytes and len(body) <= BODY_BYTES_MAX))
        and (payload is None or (type(payload) is bytes and len(payload) <= PAYLOAD_BYTES_MAX))
    ):
        return
    raise UsageError(
        f"entry {number}: expected at most {HEADER_BYTES_MAX} bytes of header, {SEALS_BYTES_MAX} "
        f"of seals, {BODY_BYTES_MAX} of body and {PAYLOAD_BYTES_MAX} of payload, found "
        f"{_shown(header)}, {_shown(seals)}, {_shown(body)} and {_shown(payload)}"
    )


def _require_names(digests: Collection[bytes], label: bytes | None) -> None:
    for digest in digests:
        _require_size("digest", digest, DIGEST_BYTES)
    if label is not None:
        _require_size("label", label, DIGEST_BYTES)


def _require_size(name: str, value: bytes, size_bytes: int) -> None:
    if type(value) is not bytes or len(value) != size_bytes:
        raise UsageError(f"{name}: expected {size_bytes} bytes, found {_shown(value)}")


def _shown(value: object) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else type(value).__name__
