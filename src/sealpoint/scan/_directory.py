# SPDX-License-Identifier: Apache-2.0
"""The end of a zip and its central directory: which members it says there are, and where.

Guarantees one reading: the end record stands at the very end, without a comment, on one disk; the
directory reaches from where it is said to begin to the end records, without a gap; every entry
was taken apart and none is left over. What the entries claim is not yet judged: `_zip.py` does.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_NAME_BYTES_MAX, MODEL_PICKLE_BYTES_MAX, MODEL_TENSORS_MAX

__all__ = ["HEADER_BYTES_MAX", "Directory", "Entry", "Read", "read_directory", "read_exactly"]

Read = Callable[[int, int], bytes]

HEADER_BYTES_MAX = 2 * MODEL_PICKLE_BYTES_MAX
"""All headers of one archive, the directory included."""

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_U16_MAX, _U32_MAX = 0xFFFF, 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the directory, as it was written."""

    name: str
    flags: int
    method: int
    modified: tuple[int, int]
    crc: int
    packed_bytes: int
    size: int
    offset: int
    plain: bool
    """No comment, no attributes, first disk, and no extra field but the one for 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """All entries in their order, and the bytes from the first of them to the end of the file."""

    entries: tuple[Entry, ...]
    offset: int
    data: bytes


def read_exactly(read: Read, offset: int, length: int, what: str) -> bytes:
    """`length` bytes at `offset`; a file that ends earlier is refused."""
    data = read(offset, length)
    if len(data) != length:
        raise ModelMalformed(
            f"{what}: expected {length} bytes at {offset}, found the end after {len(data)}"
        )
    return data


def read_directory(read: Read, size: int, what: str) -> Directory:
    """Read the end records and the central directory.

    Verification, in order: (1) the end record is the last of the file, without a comment; (2) one
    disk; (3) the 64-bit records agree with it where they are; (4) directory and end records adjoin,
    within bounds; (5) the directory consists of exactly its entries.

    Raises:
        ModelMalformed: One of these does not hold.
        ModelLimitExceeded: More members or bytes than a model file may have.
    """
    # (1) One place for the end record: a search backwards could be led to another one.
    if size < _END.size:
        raise ModelMalformed(f"{what}: expected the end of a zip, found a file of {size} bytes")
    end_at = size - _END.size
    end = read_exactly(read, end_at, _END.size, what)
    magic, disk, first_disk, here, count, length, offset, comment = _END.unpack(end)
    if magic != b"PK\x05\x06" or comment != 0:
        raise ModelMalformed(
            f"{what}: expected the file to end with the end record of a zip",
            hint="If it was cut short on its way, fetch or save it again.",
        )
    # (2) One disk.
    if disk != 0 or first_disk != 0 or here != count:
        raise ModelMalformed(f"{what}: expected a zip on one disk, found it split")
    # (3) Both end records.
    tail = b""
    locator_at = end_at - _LOCATOR.size
    if locator_at >= 0 and read_exactly(read, locator_at, 4, what) == b"PK\x06\x07":
        count, length, offset, tail = _wide(read, locator_at, (count, length, offset), what)
    elif count == _U16_MAX or _U32_MAX in (length, offset):
        raise ModelMalformed(f"{what}: expected the 64-bit end records of a zip, found none")
    # (4) Where it lies, before it is read.
    if count > MODEL_TENSORS_MAX or length > HEADER_BYTES_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected at most {MODEL_TENSORS_MAX} records in a directory of at most "
            f"{HEADER_BYTES_MAX} bytes, found {count} in {length}"
        )
    if count == 0 or offset + length != end_at - len(tail):
        raise ModelMalformed(f"{what}: expected the directory to fill the place before its end")
    data = read_exactly(read, offset, length, what)
    # (5) Its entries.
    return Directory(entries=_entries(data, count, what), offset=offset, data=data + tail + end)


def _wide(
    read: Read, locator_at: int, narrow: tuple[int, int, int], what: str
) -> tuple[int, int, int, bytes]:
    """Count, length and offset of the directory from the 64-bit records, and these records."""
    at = locator_at - _END64.size
    if at < 0:
        raise ModelMalformed(f"{what}: expected the 64-bit end record of a zip before its locator")
    tail = read_exactly(read, at, _END64.size + _LOCATOR.size, what)
    magic, rest, _made, _needed, disk, first, here, count, length, offset = _END64.unpack_from(tail)
    _, locator_disk, wide_at, disks = _LOCATOR.unpack_from(tail, _END64.size)
    whole = magic == b"PK\x06\x06" and rest == _END64.size - 12 and wide_at == at
    if not whole or disk != 0 or first != 0 or locator_disk != 0 or disks != 1 or here != count:
        raise ModelMalformed(f"{what}: expected a whole 64-bit end record of a zip on one disk")
    limits = (_U16_MAX, _U32_MAX, _U32_MAX)
    if narrow != tuple(map(min, (count, length, offset), limits)):
        raise ModelMalformed(f"{what}: expected both end records of the zip to say the same")
    return count, length, offset, tail


def _entries(data: bytes, count: int, what: str) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    at = 0
    for index in range(count):
        if at + _ENTRY.size > len(data):
            raise ModelMalformed(f"{what}: expected {count} records, found room for {index}")
        fields = _ENTRY.unpack_from(data, at)
        name_bytes, extra_bytes, comment_bytes = fields[10:13]
        name_at = at + _ENTRY.size
        extra_at = name_at + name_bytes
        at = extra_at + extra_bytes + comment_bytes
        if fields[0] != b"PK\x01\x02" or at > len(data):
            raise ModelMalformed(f"{what}: expected a directory entry for record {index}")
        if name_bytes > MODEL_NAME_BYTES_MAX:
            raise ModelLimitExceeded(
                f"{what}: expected names of at most {MODEL_NAME_BYTES_MAX} bytes, "
                f"found {name_bytes} for record {index}"
            )
        try:
            name = data[name_at:extra_at].decode("utf-8")
        except UnicodeDecodeError as exc:
            raise ModelMalformed(f"{what}: expected UTF-8 as the name of record {index}") from exc
        entries.append(_entry(fields, name, data[extra_at : extra_at + extra_bytes]))
    if at != len(data):
        raise ModelMalformed(
            f"{what}: expected {count} records in the directory, found {len(data) - at} bytes more"
        )
    return tuple(entries)


def _entry(fields: tuple[int, ...], name: str, extra: bytes) -> Entry:
    _, _, _, flags, method, time, date, crc, packed, size, _, _, comment, disk, inner = fields[:15]
    outer, offset = fields[15:]
    # The 64-bit field holds exactly the numbers that did not fit, in this order.
    wide = sum(number == _U32_MAX for number in (size, packed, offset))
    plain = comment == 0 and disk == 0 and inner == 0 and outer == 0
    if wide and len(extra) == 4 + 8 * wide and extra[:4] == struct.pack("<2H", 1, 8 * wide):
        numbers = list(struct.unpack(f"<{wide}Q", extra[4:]))
        size = numbers.pop(0) if size == _U32_MAX else size
        packed = numbers.pop(0) if packed == _U32_MAX else packed
        offset = numbers.pop(0) if offset == _U32_MAX else offset
    else:
        plain = plain and not wide and not extra
    return Entry(
        name=name,
        flags=flags,
        method=method,
        modified=(time, date),
        crc=crc,
        packed_bytes=packed,
        size=size,
        offset=offset,
        plain=plain,
    )
