# SPDX-License-Identifier: Apache-2.0
"""The file of a local anchor: its format, and how to search, write and copy its slots.

A table reports a slot as absent only if every slot on the path to the free slot is genuine: a
damaged key is `AnchorUnavailable`, never an unknown thread. Reads use a shared memory map without a
lock. Writes use system calls, so that a full disk causes an error and does not kill the process.
`local.py` decides who may write, and when.

All integers are little-endian. The file is a header of 4096 bytes and `capacity` slots of 512, each
in one sector of a disk: after a power failure, a slot is as it was at one moment.

Header, at offset 0:

| Offset | Bytes | Field |
|---|---|---|
| 0 | 8 | magic, `SEALANCH` |
| 8 | 4 | version, 2 |
| 12 | 4 | zeros |
| 16 | 16 | store id |
| 32 | 8 | capacity: how many slots, a power of two, 256 or more |
| 40 | 16 | code over bytes 0 to 40 |
| 64 | 1 | superseded: not 0 while and after a larger file replaces this one |
| 72 | 8 | used: the approximate number of slots in use; a hint that only decides when to count |
| 80 | 4016 | zeros, not read |

Slot number `i`, at offset 4096 + 512 * i:

| Offset | Bytes | Field |
|---|---|---|
| 0 | 32 | slot key; zeros: the slot is free, regardless of the rest |
| 32 | 176 | copy A |
| 208 | 176 | copy B |
| 384 | 128 | zeros, not read |

Copy:

| Offset | Bytes | Field |
|---|---|---|
| 0 | 8 | counter, from 1; 0: never written |
| 8 | 4 | epoch |
| 12 | 4 | generation |
| 16 | 8 | sequence number, signed; -1: reserved |
| 24 | 16 | thread id |
| 40 | 32 | hash of the entry |
| 72 | 8 | newest session entry, signed; -1: none |
| 80 | 8 | newest pause entry, signed; -1: none |
| 88 | 8 | newest owner entry, signed; -1: none |
| 96 | 32 | hash of the newest owner entry |
| 128 | 1 | flags: 1 erased, 2 paused; no other bit is known |
| 129 | 31 | zeros |
| 160 | 16 | code over the slot key and bytes 0 to 160 of the copy |

A code is BLAKE2b with the secret as its key, 16 bytes long, over the store id and then the bytes
named above; the personalization is `sealpoint/header` for the header and `sealpoint/anchor` for a
copy. A slot key belongs in slot `first 8 bytes mod capacity`, or else in the next free slot after
it, with wraparound at the end. Slots are never freed. An interrupted insertion leaves a slot whose
key ends in a zero byte, whose copy A has counter 1 and sequence number -1, whose copy B is zeros,
and of which no copy is valid. Such a slot is free.
"""

import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from struct import Struct

from sealpoint import disk
from sealpoint.anchor._contract import RESERVED_SEQ, Position
from sealpoint.disk import FILE, refusing
from sealpoint.errors import AnchorUnavailable, DirectoryUnusable

CAPACITY_MIN = 256
HEADER_BYTES = 4096
SLOT_BYTES = 512
PIECE_BYTES = 256 * SLOT_BYTES
"""How many bytes of slots to compare at once with the verified copy."""
KEY_BYTES = 32
FREE = bytes(KEY_BYTES)
SUPERSEDED_AT = 64
USED_AT = 72
USED = Struct("<Q")

COPIES = (32, 208)
"""The offsets of the two copies of a slot."""

_COPY_A, _COPY_B = COPIES
_BODY_AT = 8
_CODE_AT = 160
_COPY_BYTES = 176
_CODE_BYTES = 16

_MAGIC = b"SEALANCH"
_VERSION = 2
_HEADER = Struct("<8sI4x16sQ")
_BODY = Struct("<IIq16s32sqqq32sB31x")
_COUNTED = Struct("<QIIq16s32sqqq32sB31x")
_COUNTER = Struct("<Q")
_COUNTERS = Struct("<32xQ168xQ")
_ERASED = 1
_PAUSED = 2


def home_of(slot: bytes) -> int:
    """Return a slot's number before the modulo by the capacity: keys are uniform already."""
    home: int = _COUNTER.unpack_from(slot)[0]
    return home


def position_of(raw: bytes, start: int) -> Position:
    """Return the position in the verified copy of a slot that begins at `start`.

    Raises:
        AnchorUnavailable: The copy is genuine but has a flag that this version does not know.
    """
    epoch, gen, seq, thread, entry, fence, pause, owner, owner_entry, flags = _BODY.unpack_from(
        raw, start + _BODY_AT
    )
    if flags > _ERASED | _PAUSED:
        raise AnchorUnavailable(f"anchor slot: expected flags 0 to 3, found {flags}")
    return Position(
        thread,
        epoch,
        gen,
        seq,
        entry,
        bool(flags & _ERASED),
        fence,
        pause,
        owner,
        owner_entry,
        bool(flags & _PAUSED),
    )


class SlotSeal:
    """The authentication codes of one store's anchor.

    Args:
        key: The secret, 32 bytes.
        store: The store's id, 16 bytes.
    """

    __slots__ = ("_copy", "_header", "_store")

    def __init__(self, key: bytes, store: bytes) -> None:
        # Hashing key and store once and copying that state halves the time of a code.
        self._copy = hashlib.blake2b(
            store, key=key, digest_size=_CODE_BYTES, person=b"sealpoint/anchor"
        )
        self._header = hashlib.blake2b(
            store, key=key, digest_size=_CODE_BYTES, person=b"sealpoint/header"
        )
        self._store = store

    def header(self, capacity: int) -> bytes:
        """Return the authenticated beginning of a file."""
        fields = _HEADER.pack(_MAGIC, _VERSION, self._store, capacity)
        code = self._header.copy()
        code.update(fields)
        return fields + code.digest()

    def capacity_of(self, header: bytes, size_bytes: int) -> int:
        """Return the capacity in a header, after every check of the header.

        Raises:
            ValueError: With the expected and the found value.
        """
        # (1) The header is long enough.
        if len(header) < HEADER_BYTES:
            raise ValueError(f"expected a header of {HEADER_BYTES} bytes, found {len(header)}")
        magic, version, store, capacity = _HEADER.unpack_from(header)
        # (2) The format is ours, in a version that we know.
        if magic != _MAGIC:
            raise ValueError(
                "expected the file of a local anchor, found a file that begins otherwise"
            )
        if version != _VERSION:
            raise ValueError(f"expected version {_VERSION}, found version {version}")
        # (3) The file belongs to this store.
        if store != self._store:
            raise ValueError(
                f"expected the anchor of store {self._store.hex()}, found that of {store.hex()}"
            )
        # (4) The header was written under this secret: the same bytes come out again.
        genuine = self.header(capacity)
        if not compare_digest(genuine, header[: len(genuine)]):
            raise ValueError(
                "expected a header written under the secret in slots.key, found "
                "one written under another secret or changed"
            )
        # (5) The file is complete.
        expected = HEADER_BYTES + capacity * SLOT_BYTES
        if capacity < CAPACITY_MIN or capacity & (capacity - 1) or size_bytes != expected:
            raise ValueError(f"expected {expected} bytes of file, found {size_bytes}")
        return int(capacity)

    def copy(self, slot: bytes, counter: int, position: Position) -> bytes:
        """Return one copy, ready to be written."""
        counted = _COUNTED.pack(
            counter,
            position.epoch,
            position.gen,
            position.seq,
            position.thread,
            position.entry,
            position.fence,
            position.pause,
            position.owner,
            position.owner_entry,
            _ERASED * position.erased | _PAUSED * position.paused,
        )
        code = self._copy.copy()
        code.update(slot + counted)
        return counted + code.digest()

    def newest_if_clear(self, slot: bytes, raw: bytes) -> int:
        """Return the offset of the newest copy, or 0 if a writer may be working on the slot.

        This checks only one code. That is enough if the two counters are neighbors: a copy that is
        no longer the newest is accepted only if the other one looks like its predecessor. But that
        other copy was written later, and no mixture of its counter with the counters written over
        it has the low byte of that predecessor.
        """
        first, second = _COUNTERS.unpack_from(raw)
        if first - second == 1:
            start = _COPY_A
        elif second - first == 1:
            start = _COPY_B
        else:
            return 0
        return start if self._holds(slot, raw, start) else 0

    def newest(self, slot: bytes, raw: bytes) -> int:
        """Return the offset of the valid copy with the highest counter, or 0 if both are invalid.

        Call this only while no writer can be working on the slot.
        """
        first, second = _COUNTERS.unpack_from(raw)
        order = (_COPY_A, _COPY_B) if first >= second else (_COPY_B, _COPY_A)
        return next((start for start in order if self._holds(slot, raw, start)), 0)

    def is_torn(self, raw: bytes) -> bool:
        """Whether a slot is the remainder of an insertion that could not write the whole key.

        The key then ends in zeros, and the insertion was for a reserved name: forgetting it loses
        nothing. Anything else without a valid copy is damage.
        """
        return (
            not raw[KEY_BYTES - 1]
            and _COUNTERS.unpack_from(raw) == (1, 0)
            and raw[_COPY_B : _COPY_B + _COPY_BYTES] == bytes(_COPY_BYTES)
            and _BODY.unpack_from(raw, _COPY_A + _BODY_AT)[2] == RESERVED_SEQ
            and not self.newest(raw[:KEY_BYTES], raw)
        )

    def _holds(self, slot: bytes, raw: bytes, start: int) -> bool:
        middle = start + _CODE_AT
        code = self._copy.copy()
        code.update(slot + raw[start:middle])
        return compare_digest(code.digest(), raw[middle : start + _COPY_BYTES])


_COPY_A, _COPY_B = COPIES
_ZEROS = bytes(1 << 20)


class Table:
    """An open file with a verified header. It owns its descriptor."""

    __slots__ = ("capacity", "descriptor", "identity", "map", "place", "seal")

    def __init__(self, descriptor: int, seal: SlotSeal, place: Path) -> None:
        status = os.fstat(descriptor)
        try:
            self.capacity = seal.capacity_of(os.pread(descriptor, HEADER_BYTES, 0), status.st_size)
        except ValueError as exc:
            raise AnchorUnavailable(f"anchor file {place}: {exc}") from exc
        self.map = mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ)
        self.descriptor = descriptor
        self.identity = (status.st_dev, status.st_ino)
        self.place = place
        self.seal = seal

    @property
    def superseded(self) -> bool:
        """Whether a larger file is replacing or has replaced this one."""
        return self.map[SUPERSEDED_AT] != 0

    def mark(self, *, superseded: bool) -> None:
        """Mark for every process that has this file open whether it is superseded."""
        self._write(b"\x01" if superseded else b"\x00", SUPERSEDED_AT)

    @property
    def crowded(self) -> bool:
        """Whether one more slot would fill more than three fifths, going by the hint."""
        used: int = USED.unpack_from(self.map, USED_AT)[0]
        return (used + 1) * 5 > self.capacity * 3

    def find(self, slot: bytes) -> int:
        """Return the offset of a slot; 0 if a free slot came first or the table is full."""
        table = self.map
        offset = HEADER_BYTES + home_of(slot) % self.capacity * SLOT_BYTES
        key = table[offset : offset + KEY_BYTES]
        # Nearly every slot is at its home offset; this check avoids the walk below.
        if key == slot:
            return offset
        for offset in self._walk(home_of(slot)):
            key = table[offset : offset + KEY_BYTES]
            if key == slot:
                return offset
            if key == FREE:
                break
        return 0

    def find_free(self, slot: bytes) -> int:
        """Return the offset for writing an absent slot; 0 if the table is full."""
        table = self.map
        for offset in self._walk(home_of(slot)):
            if table[offset : offset + KEY_BYTES] == FREE or self.seal.is_torn(self.raw(offset)):
                return offset
        return 0

    def is_absent(self, slot: bytes) -> bool:
        """Whether every slot up to the first free one is genuine, and none of them is this one.

        False is certain only while no writer can be working on the file.
        """
        for offset in self._walk(home_of(slot)):
            raw = self.raw(offset)
            key = raw[:KEY_BYTES]
            if key == FREE:
                return True
            if key == slot or not (self.seal.newest(key, raw) or self.seal.is_torn(raw)):
                return False
        return True

    def newest(self, slot: bytes, offset: int) -> tuple[bytes, int]:
        """Return a slot's bytes and the offset of its newest copy; only while no writer is working.

        Raises:
            AnchorUnavailable: Both copies are invalid.
        """
        raw = self.raw(offset)
        start = self.seal.newest(slot, raw)
        if not start:
            raise self.damaged(offset)
        return raw, start

    def require_absent(self, slot: bytes) -> None:
        """Refuse to report a slot as absent because of damage; only while no writer is working.

        Raises:
            AnchorUnavailable: A slot on the path is damaged.
        """
        if not self.is_absent(slot):
            raise self.damaged(0)

    def raw(self, offset: int) -> bytes:
        """Return the bytes of the slot at an offset, read once."""
        return self.map[offset : offset + SLOT_BYTES]

    def offsets(self) -> Iterator[int]:
        """Yield the offset of every slot in use."""
        table = self.map
        for offset in range(HEADER_BYTES, HEADER_BYTES + self.capacity * SLOT_BYTES, SLOT_BYTES):
            taken = table[offset : offset + KEY_BYTES] != FREE
            if taken and not self.seal.is_torn(self.raw(offset)):
                yield offset

    def pieces(self) -> Iterator[int]:
        """Yield the offset of every piece of `PIECE_BYTES`."""
        return iter(range(HEADER_BYTES, HEADER_BYTES + self.capacity * SLOT_BYTES, PIECE_BYTES))

    def insert(self, slot: bytes, offset: int, position: Position) -> None:
        """Write an absent slot: the copy first, so that there is never a key without a copy.

        If the key could be written only in part, this clears it. If clearing fails as well, the
        slot still counts as free.
        """
        self._write(self.seal.copy(slot, 1, position), offset + _COPY_A)
        try:
            self._write(slot, offset)
        except BaseException:
            with suppress(OSError, AnchorUnavailable):
                self._write(FREE, offset)
            raise
        self.count(USED.unpack_from(self.map, USED_AT)[0] + 1)

    def rewrite(self, offset: int) -> None:
        """Write a slot again unchanged, so that the next sync brings it to the disk."""
        self._write(self.raw(offset), offset)

    def overwrite(
        self, slot: bytes, offset: int, raw: bytes, start: int, position: Position
    ) -> tuple[bytes, int]:
        """Write the copy of a slot that is not the newest, which makes it the newest.

        Returns:
            The slot's new bytes, and the offset of that copy.
        """
        counter: int = _COUNTER.unpack_from(raw, start)[0]
        copy = self.seal.copy(slot, counter + 1, position)
        other = _COPY_B if start == _COPY_A else _COPY_A
        self._write(copy, offset + other)
        return raw[:other] + copy + raw[other + _COPY_BYTES :], other

    def count(self, used: int) -> None:
        """Write the hint about the number of slots in use."""
        self._write(USED.pack(used), USED_AT)

    def damaged(self, offset: int) -> AnchorUnavailable:
        """Return the error for a slot without a valid copy; offset 0: on the path to another."""
        where = f"slot at byte {offset}" if offset else "a slot on the way to another"
        return AnchorUnavailable(f"anchor file {self.place}: {where}: both copies are damaged")

    def _walk(self, home: int) -> Iterator[int]:
        first = HEADER_BYTES + home % self.capacity * SLOT_BYTES
        yield from range(first, HEADER_BYTES + self.capacity * SLOT_BYTES, SLOT_BYTES)
        yield from range(HEADER_BYTES, first, SLOT_BYTES)

    def _write(self, data: bytes, offset: int) -> None:
        done = 0
        while done < len(data):
            written = os.pwrite(self.descriptor, data[done:], offset + done)
            if not written:
                raise AnchorUnavailable(
                    f"anchor file {self.place}: expected to write {len(data)} bytes, wrote {done}"
                )
            done += written


def open_table(
    directory: Path,
    within: int,
    name: str,
    seal: SlotSeal,
    *,
    read_only: bool,
    group: int | None = None,
) -> Table:
    """Open the file of an anchor, in time that does not depend on its size.

    Raises:
        AnchorUnavailable: It is not a complete anchor of this store under this secret.
        DirectoryUnusable: Other users could change it.
        OSError: It cannot be opened or read.
    """
    place = directory / name
    with refusing(DirectoryUnusable, place, f"anchor file {place}"):
        descriptor, _ = disk.open_safe(
            name, FILE, within=within, group=group, writable=not read_only
        )
    try:
        return Table(descriptor, seal, place)
    except BaseException:
        os.close(descriptor)
        raise


def write_table(
    within: int,
    name: str,
    seal: SlotSeal,
    grown_from: Table | None = None,
    *,
    group: int | None = None,
) -> None:
    """Write a complete file that nobody has open yet, and sync it to the disk.

    Args:
        within: The directory.
        name: The temporary name of the file; an existing file of this name is a leftover.
        seal: Makes the codes.
        grown_from: The table to copy into a file twice as large, with every slot; the slots have
            been verified. None: an empty file.
        group: The group that shares the file, if any.
    """
    capacity = CAPACITY_MIN if grown_from is None else grown_from.capacity * 2
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=within)
    descriptor = disk.new_file(name, within=within, group=group)
    try:
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            left = HEADER_BYTES + capacity * SLOT_BYTES
            # Write every block instead of leaving holes, so that the disk cannot be full later.
            while left:
                left -= file.write(_ZEROS[:left])
            with mmap.mmap(descriptor, 0) as table:
                header = seal.header(capacity)
                table[: len(header)] = header
                if grown_from is not None:
                    used = _copy_slots(grown_from, table, capacity)
                    table[USED_AT : USED_AT + USED.size] = USED.pack(used)
                table.flush()
            disk.sync(descriptor)
    except BaseException:
        os.unlink(name, dir_fd=within)
        raise


def _copy_slots(old: Table, new: mmap.mmap, capacity: int) -> int:
    used = 0
    for offset in old.offsets():
        raw = old.raw(offset)
        number = home_of(raw) % capacity
        place = HEADER_BYTES + number * SLOT_BYTES
        while new[place : place + KEY_BYTES] != FREE:
            number = (number + 1) % capacity
            place = HEADER_BYTES + number * SLOT_BYTES
        new[place : place + SLOT_BYTES] = raw
        used += 1
    return used
