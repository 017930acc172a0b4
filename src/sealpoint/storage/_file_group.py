# SPDX-License-Identifier: Apache-2.0
"""The bytes of a group: the records of one append, in one file.

    `sealpoint group 1` and a newline
                                  18 bytes, the kind and version of the file
    number of records             2 bytes, big endian
    for each record               header, seals, body, payload: the length of each, 4 bytes, big
                                  endian; ff ff ff ff where there is none
    the records                   header, seals, body, payload of each, one after the other

It guarantees that a group is read only if its lengths are within `sealpoint.limits` and add up to
the size of the file, and that no more is brought into memory than was asked for. It refuses
everything else as `Edited`. It leaves to its caller whether the bytes are genuine.
"""

import itertools
import struct
from collections.abc import Iterator, Sequence

from sealpoint.errors import Edited, UsageError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage._contract import Record
from sealpoint.storage._file_directory import File

__all__ = ["RECORDS_MAX", "Group", "encode_group", "require_bounds"]

RECORDS_MAX = 4096
"""Records in one group."""

_MAGIC = b"sealpoint group 1\n"
_HEAD = struct.Struct(f">{len(_MAGIC)}sH")
_LENGTHS = struct.Struct(">IIII")
_NONE = 0xFFFF_FFFF
_BOUNDS = (HEADER_BYTES_MAX, SEALS_BYTES_MAX, BODY_BYTES_MAX, PAYLOAD_BYTES_MAX)
_NAMES = ("header", "seals", "body", "payload")
_MAY_BE_ABSENT = (False, False, True, True)
# What is read at once, if the lengths do not take more: all of a small group.
_FIRST_BYTES = 64 * 1024
_JOINED_BYTES_MAX = 1024 * 1024


def require_bounds(number: int, record: Record) -> None:
    """Refuse a record that would not be read again.

    Raises:
        UsageError: A part is too large, absent or no bytes.
    """
    for name, value, bytes_max, absent in zip(
        _NAMES, _parts(record), _BOUNDS, _MAY_BE_ABSENT, strict=True
    ):
        if value is None and absent:
            continue
        if type(value) is not bytes or len(value) > bytes_max:
            found = f"{len(value)} bytes" if type(value) is bytes else type(value).__name__
            raise UsageError(
                f"{name} of entry {number}: expected at most {bytes_max} bytes, found {found}"
            )


def encode_group(records: Sequence[Record]) -> list[bytes]:
    """The bytes of a group, in pieces to be written one after the other."""
    parts = [_parts(record) for record in records]
    lengths = [
        _LENGTHS.pack(*(_NONE if part is None else len(part) for part in four)) for four in parts
    ]
    pieces = [_HEAD.pack(_MAGIC, len(records)), *lengths]
    pieces += [part for part in itertools.chain.from_iterable(parts) if part]
    if sum(map(len, pieces)) <= _JOINED_BYTES_MAX:
        return [b"".join(pieces)]
    return pieces


class Group:
    """An open group whose lengths have been checked.

    Args:
        file: The open file.
        count: How many records it has to hold.

    Raises:
        Edited: It is no group, or one of other records.
    """

    __slots__ = ("_ends", "_file", "_first", "_lengths")

    def __init__(self, file: File, count: int) -> None:
        self._file = file
        start = _HEAD.size + count * _LENGTHS.size
        self._first = file.read(min(file.size_bytes, max(start, _FIRST_BYTES)))
        if len(self._first) < start or self._first[: _HEAD.size] != _HEAD.pack(_MAGIC, count):
            raise Edited(f"{file.path}: expected a group of {count} records, found other bytes")
        self._lengths = list(_LENGTHS.iter_unpack(self._first[_HEAD.size : start]))
        self._ends = list(
            itertools.accumulate(map(self._checked_bytes, self._lengths), initial=start)
        )
        if self._ends[-1] != file.size_bytes:
            raise Edited(f"{file.path}: expected {self._ends[-1]} bytes, found {file.size_bytes}")

    def records(self, start: int, stop: int) -> list[Record]:
        """The records from number `start` in the group up to and without `stop`."""
        first, last = self._ends[start], self._ends[stop]
        if last <= len(self._first):
            data, offset = self._first, first
        else:
            data, offset = self._file.read(last - first, first), 0
        found = []
        for lengths in self._lengths[start:stop]:
            parts: list[bytes | None] = []
            for length in lengths:
                if length == _NONE:
                    parts.append(None)
                else:
                    parts.append(data[offset : offset + length])
                    offset += length
            header, seals, body, payload = parts
            found.append(Record(header or b"", seals or b"", body, payload))
        return found

    def without(self, bodies: frozenset[int], payloads: frozenset[int]) -> Iterator[bytes] | None:
        """The bytes of the group without the bodies and payloads of the records of these numbers.

        One record at a time is in memory.

        Returns:
            None if there is nothing to take away.
        """
        lengths = [
            (
                header,
                seals,
                _NONE if number in bodies else body,
                _NONE if number in bodies or number in payloads else payload,
            )
            for number, (header, seals, body, payload) in enumerate(self._lengths)
        ]
        if lengths == self._lengths:
            return None
        return self._pieces(lengths)

    def _pieces(self, lengths: list[tuple[int, int, int, int]]) -> Iterator[bytes]:
        yield _HEAD.pack(_MAGIC, len(lengths))
        for four in lengths:
            yield _LENGTHS.pack(*four)
        for number, (_, _, body, payload) in enumerate(lengths):
            (record,) = self.records(number, number + 1)
            yield record.header + record.seals
            if record.body is not None and body != _NONE:
                yield record.body
            if record.payload is not None and payload != _NONE:
                yield record.payload

    def _checked_bytes(self, lengths: tuple[int, ...]) -> int:
        """How many bytes a record takes."""
        total = 0
        for name, length, bytes_max, absent in zip(
            _NAMES, lengths, _BOUNDS, _MAY_BE_ABSENT, strict=True
        ):
            if length == _NONE and absent:
                continue
            if length > bytes_max:
                raise Edited(
                    f"{self._file.path}: expected at most {bytes_max} bytes of {name}, "
                    f"found {length}"
                )
            total += length
        return total


def _parts(record: Record) -> tuple[bytes | None, ...]:
    return record.header, record.seals, record.body, record.payload
