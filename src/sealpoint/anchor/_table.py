# SPDX-License-Identifier: Apache-2.0
"""One file of a local anchor, open: found slots, written copies, and a larger file made of it.

A table never answers that a slot is absent unless every slot on the way to the free one is
genuine: a damaged key is `AnchorUnavailable`, never an unknown thread. It is read through a shared
map without any lock; it is written with system calls, so that a full disk is an error and not the
end of the process. Who may write, and when, is left to `local.py`.
"""

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sealpoint.anchor._directory import open_file
from sealpoint.anchor._slots import (
    CAPACITY_MIN,
    COPIES,
    FREE,
    HEADER_BYTES,
    KEY_BYTES,
    SLOT_BYTES,
    SUPERSEDED_AT,
    USED,
    USED_AT,
    Seal,
    counter_of,
    home_of,
)
from sealpoint.errors import AnchorUnavailable

__all__ = ["Table", "open_table", "write_table"]

_COPY_A, _COPY_B = COPIES
_ZEROS = bytes(1 << 20)


class Table:
    """An open file whose header has been verified. It owns its descriptor."""

    __slots__ = ("capacity", "descriptor", "identity", "map", "place", "seal")

    def __init__(self, descriptor: int, seal: Seal, place: Path) -> None:
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
        """Whether a larger file takes or took the place of this one."""
        return self.map[SUPERSEDED_AT] != 0

    def mark(self, *, superseded: bool) -> None:
        """Tell every process that has this file open whether it is superseded."""
        self._write(b"\x01" if superseded else b"\x00", SUPERSEDED_AT)

    @property
    def crowded(self) -> bool:
        """Whether one more slot would fill more than three fifths, as far as the hint goes."""
        used: int = USED.unpack_from(self.map, USED_AT)[0]
        return (used + 1) * 5 > self.capacity * 3

    def find(self, slot: bytes) -> int:
        """Where a slot lies; 0 if a free slot was met first or there is none."""
        table = self.map
        offset = HEADER_BYTES + home_of(slot) % self.capacity * SLOT_BYTES
        key = table[offset : offset + KEY_BYTES]
        # Nearly every slot lies where it belongs: that case is spared the walk below.
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
        """Where a slot that is absent would be written; 0 if the table is full."""
        table = self.map
        for offset in self._walk(home_of(slot)):
            if table[offset : offset + KEY_BYTES] == FREE or self.seal.is_torn(self.raw(offset)):
                return offset
        return 0

    def is_absent(self, slot: bytes) -> bool:
        """Whether every slot up to the first free one is genuine, and none is this one.

        Only while no writer can be at work is False more than a doubt.
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
        """A slot's bytes and where its newest copy begins; only while no writer is at work.

        Raises:
            AnchorUnavailable: Both copies are invalid.
        """
        raw = self.raw(offset)
        start = self.seal.newest(slot, raw)
        if not start:
            raise self.damaged(offset)
        return raw, start

    def require_absent(self, slot: bytes) -> None:
        """Refuse to call a slot absent because of damage; only while no writer is at work.

        Raises:
            AnchorUnavailable: A slot on the way is damaged.
        """
        if not self.is_absent(slot):
            raise self.damaged(0)

    def raw(self, offset: int) -> bytes:
        """The bytes of the slot at an offset, read once."""
        return self.map[offset : offset + SLOT_BYTES]

    def offsets(self) -> Iterator[int]:
        """The offset of every slot that is taken."""
        table = self.map
        for offset in range(HEADER_BYTES, HEADER_BYTES + self.capacity * SLOT_BYTES, SLOT_BYTES):
            taken = table[offset : offset + KEY_BYTES] != FREE
            if taken and not self.seal.is_torn(self.raw(offset)):
                yield offset

    def insert(self, slot: bytes, offset: int, body: bytes) -> None:
        """Write a slot that is absent: the copy first, so that a key never stands alone.

        A key of which only a part could be written is taken back. Where that fails as well, the
        slot counts as free all the same.
        """
        self._write(self.seal.copy(slot, 1, body), offset + _COPY_A)
        try:
            self._write(slot, offset)
        except BaseException:
            with suppress(OSError, AnchorUnavailable):
                self._write(FREE, offset)
            raise
        self.count(USED.unpack_from(self.map, USED_AT)[0] + 1)

    def rewrite(self, offset: int) -> None:
        """Write a slot again as it is, so that the next sync takes it to the disk."""
        self._write(self.raw(offset), offset)

    def overwrite(
        self, slot: bytes, offset: int, raw: bytes, start: int, body: bytes
    ) -> tuple[bytes, int]:
        """Write the copy of a slot that is not the newest, and make it the newest.

        Returns:
            The slot's bytes from now on, and where that copy begins.
        """
        copy = self.seal.copy(slot, counter_of(raw, start) + 1, body)
        other = _COPY_B if start == _COPY_A else _COPY_A
        self._write(copy, offset + other)
        return raw[:other] + copy + raw[other + len(copy) :], other

    def count(self, used: int) -> None:
        """Write the hint how many slots are taken."""
        self._write(USED.pack(used), USED_AT)

    def damaged(self, offset: int) -> AnchorUnavailable:
        """The error for a slot without a valid copy; offset 0: on the way to an absent one."""
        where = f"slot at byte {offset}" if offset else "a slot on the way to another"
        return AnchorUnavailable(
            f"anchor file {self.place}: {where}: expected a valid copy, found none"
        )

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
    seal: Seal,
    *,
    read_only: bool,
    group: int | None = None,
) -> Table:
    """Open the file of an anchor, at a cost that does not depend on how much is in it.

    Raises:
        AnchorUnavailable: It is no anchor of this store under this secret, or not whole.
        DirectoryUnusable: It is not safely this user's own.
        OSError: It cannot be opened or read.
    """
    descriptor = open_file(directory, within, name, read_only=read_only, group=group)
    try:
        return Table(descriptor, seal, directory / name)
    except BaseException:
        os.close(descriptor)
        raise


def write_table(
    within: int,
    name: str,
    seal: Seal,
    grown_from: Table | None = None,
    *,
    group: int | None = None,
) -> None:
    """Write a whole file that nobody has open yet, and let it reach the disk.

    Args:
        within: The directory.
        name: A name for the file until it is finished; what has it already is a left-over.
        seal: Makes the codes.
        grown_from: Every slot of it is kept, in a file twice as large; None for an empty file.
            Its slots have been verified.
        group: The group whose members share the file, if they do.
    """
    capacity = CAPACITY_MIN if grown_from is None else grown_from.capacity * 2
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=within)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, mode=0o600, dir_fd=within)
    try:
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            left = HEADER_BYTES + capacity * SLOT_BYTES
            if group is not None:
                os.fchown(descriptor, -1, group)
                os.fchmod(descriptor, 0o660)  # nosec B103 (the group was declared)
            # Every block is written, not left as a hole, so that the disk cannot be full later.
            while left:
                left -= file.write(_ZEROS[:left])
            with mmap.mmap(descriptor, 0) as table:
                header = seal.header(capacity)
                table[: len(header)] = header
                if grown_from is not None:
                    used = _copy_slots(grown_from, table, capacity)
                    table[USED_AT : USED_AT + USED.size] = USED.pack(used)
                table.flush()
            os.fsync(descriptor)
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
