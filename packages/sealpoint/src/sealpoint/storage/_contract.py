# SPDX-License-Identifier: Apache-2.0
"""What every storage backend promises.

A storage keeps bytes at positions. It never learns what an entry says, decides nothing about
trust and is itself not trusted: whatever it returns is verified by its caller. What it MUST get
right is order and durability, which no signature can repair. `sealpoint_testing.conformance`
tests every sentence below; `memory.py` is the reference implementation. What no storage may be
asked to write, because it could not be read again, is refused by the functions at the end, which
every backend calls before it touches anything.
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
        needs: Collection[bytes] = (),
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
        - Each blob in `needs` MUST be stored already, and stay so at least until the entries are
          there; if one is not, it MUST raise `Missing` and change nothing. They are blobs that
          the caller has put ahead, and somebody may have dropped them since. One that is given in
          `blobs` of the same call does not count as stored already.
        - `label` is a hint from a label to this thread (see `labelled`).

        Raises:
            HeadMoved: Another record lies at one of the positions.
            Missing: A blob that is needed is not stored.
            StorageUnavailable: The backend failed.
        """
        ...

    def alone(self, thread: bytes) -> AbstractContextManager[None]:
        """Keep others from appending to a thread until the block ends, or until the next `append`.

        For a caller that lost a position to somebody who appends all the time: what it reads in the
        block is the newest, and it gets the position after that. A backend MAY keep others from
        other threads as well, or do nothing. It MUST NOT let the caller wait for longer than an
        `append` may take. The caller MUST write to no other thread in the block.
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
        """Take bytes of a thread away that its entries have declared to be gone.

        - It MUST raise `HeadMoved` and change nothing if a record lies at `head + 1`: the caller
          decided by the entries up to `head`, and a newer one may need what is to go. With
          `head` -1 the caller saw no entry at all.
        - The records at `payloads` lose their payload, those at `bodies` their body and payload;
          header and seals of a record are never changed, and no record is removed. `label` no
          longer leads to this thread. What is absent already is no failure.
        - When it returns, the change MUST survive a crash and a power cut, and no method returns
          what was dropped. The bytes may still lie in the files until `compact`.
        - A failure or a crash in the middle MAY leave a part undone; calling it again MUST do the
          rest.

        Raises:
            HeadMoved: There is a newer entry.
            StorageUnavailable: The backend failed.
        """
        ...

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Take the record at a position away and all after it: a restore was accepted without them.

        - It MUST raise `HeadMoved` and change nothing unless there is a record at `seq` and it has
          exactly this header, or, for None, cannot be read: somebody else may have taken it away
          and saved there since.
        - Earlier records and all blobs stay as they are. A label that came with a record that goes
          MAY go with it.
        - When it returns, the change MUST survive a crash and a power cut. A crash in the middle
          MAY leave some of the records: then those that come first.

        Raises:
            HeadMoved: Another record lies there, or none.
            StorageUnavailable: The backend failed.
        """
        ...

    def compact(self) -> None:
        """Give freed space back, and leave nothing that was dropped in any file of the store.

        It MUST be safe at any time: what is not dropped stays, a crash in the middle loses
        nothing. It MAY take long, and MAY keep writers waiting meanwhile.
        """
        ...

    def read(self, thread: bytes, seq: int) -> Record | None:
        """The record at a position, or None."""
        ...

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:
        """The headers at several positions at once, to save time: of what `read` would return.

        Any MAY be left out; the caller then reads the records one by one.
        """
        ...

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """The records from `first` up to and with `last` (None: all), in order of position.

        The numbers MUST rise strictly, or fall, within what was asked for; a store that has them
        otherwise is `Edited`, and no scan goes round. Holes are not reported; the caller sees
        them in the numbers. Every call MUST see what was committed before it. Memory MUST NOT
        follow the length of the thread. Appending while a scan is under way MUST be possible;
        whether the scan sees it is left open.
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

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Digest and size in bytes of every blob of a thread, in the order of the digests.

        Memory MUST NOT follow their number, nor their sizes. Blobs that are put or dropped
        meanwhile may be left out or not.
        """
        ...

    def version(self) -> tuple[int, int, int] | None:
        """What is another value as soon as anything was committed, by whomever; None: unknown.

        As long as a handle gives the same value, every read MUST return what it returned before: a
        caller that has verified an entry then need not fetch it again. It need not see bytes that
        somebody changed beneath the backend. An `append` of this very handle MUST add one to the
        last number and leave the others, and every other commit MUST change it otherwise, so that
        who has appended knows whether anybody else has committed. A storage that cannot promise
        that, or not at this moment, MUST return None.
        """
        ...

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Every thread that has an entry, each once, in any order, with its last position.

        The position is a hint that proves nothing: whoever knows all threads reads anew those that
        have moved. It MAY be one before what is appended meanwhile, and is -1 where what lies there
        is no position; reading the thread then says what is wrong. It SHOULD take time by the
        number of threads, and not by that of entries.
        """
        ...

    def blob_threads(self) -> Iterator[bytes]:
        """Every thread that has a blob, each once: a crash may have left blobs of none."""
        ...

    def labelled(self, label: bytes) -> list[bytes]:
        """The threads that were appended with this label: a hint that proves nothing."""
        ...

    def close(self) -> None:
        """Release everything. Closing twice is allowed; any other call then is `UsageError`."""
        ...


# Before anything is touched: whatever passes can be found and read again.


def require_append(
    thread: bytes,
    seq: int,
    records: Sequence[Record],
    *,
    blobs: Mapping[bytes, bytes],
    needs: Collection[bytes] = (),
    label: bytes | None = None,
) -> None:
    """Refuse an append of what could not be read again.

    Raises:
        UsageError: It could not.
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
        UsageError: They could not.
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
    """Refuse to take away what cannot be there.

    Raises:
        UsageError: It cannot.
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
