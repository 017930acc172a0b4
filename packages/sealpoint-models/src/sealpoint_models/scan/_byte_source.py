# SPDX-License-Identifier: Apache-2.0
"""Bytes under analysis: of a file, of a part of it, or of its unpacked content.

A `Source` is read piece by piece, so that a file of many gigabytes costs no memory. A `Budget` is
shared by everything that is opened inside one file: unpacked bytes and members. Nothing is unpacked
beyond it, and nothing is written to a disk.
"""

import struct
from dataclasses import dataclass, field
from typing import Any

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import (
    SCAN_MEMBER_BYTES_LEAST,
    SCAN_MEMBERS_LEAST,
    SCAN_MEMBERS_MAX,
    SCAN_RATIO_MAX,
    SCAN_UNPACKED_BYTES_LEAST,
    SCAN_UNPACKED_BYTES_MAX,
)
from sealpoint_models.scan._pickle_machine import Work
from sealpoint_models.scan._torch_zip import Read

_AHEAD_BYTES = 1 << 16
_STEP_COST = 64
_TEMPLATE_CHARS_MAX = 1 << 17


@dataclass(frozen=True, slots=True)
class Source:
    """A number of bytes, and a function to read them."""

    read: Read
    size: int

    @classmethod
    def of(cls, data: bytes | memoryview) -> "Source":
        """Bytes in memory."""
        return cls(lambda offset, length: bytes(data[offset : offset + length]), len(data))

    def window(self, offset: int, size: int) -> "Source":
        """A part inside it."""
        read = self.read

        def part(at: int, length: int) -> bytes:
            return read(offset + at, max(min(length, size - at), 0))

        return Source(part, size)

    def whole(self, most: int, what: str) -> bytes:
        """All of it, if it is not too long.

        Raises:
            ModelLimitExceeded: It is longer than `most`.
            ModelMalformed: It ends before its end.
        """
        if self.size > most:
            raise ModelLimitExceeded(f"{what}: expected at most {most} bytes, found {self.size}")
        data = self.read(0, self.size)
        if len(data) != self.size:
            raise ModelMalformed(
                f"{what}: expected {self.size} bytes, found the end after {len(data)}"
            )
        return data


@dataclass(slots=True)
class Budget:
    """The budget of one file."""

    packed: int
    """The length of the file that contains everything else."""
    unpacked: int = 0
    members: int = 0
    template_chars: int = 0
    work: Work = field(init=False)
    """The budget of all pickles in it."""

    def __post_init__(self) -> None:
        self.work = Work.of(self.packed)

    @property
    def room(self) -> int:
        """The number of bytes that may still be unpacked."""
        by_ratio = max(self.packed * SCAN_RATIO_MAX, SCAN_UNPACKED_BYTES_LEAST)
        return min(SCAN_UNPACKED_BYTES_MAX, by_ratio) - self.unpacked

    def unpack(self, length: int, what: str) -> None:
        """Count bytes that were unpacked.

        Raises:
            ModelLimitExceeded: All together are too many, or far more than the file has.
        """
        if length > self.room:
            raise ModelLimitExceeded(
                f"{what}: expected at most {self.room + self.unpacked} bytes in all when it is "
                f"unpacked, found at least {self.unpacked + length}"
            )
        self.unpacked += length

    def template(self, length: int, what: str) -> None:
        """Count a template that is to be judged.

        Raises:
            ModelLimitExceeded: All together are longer than those of any model.
        """
        self.template_chars += length
        if self.template_chars > _TEMPLATE_CHARS_MAX:
            raise ModelLimitExceeded(
                f"{what}: expected at most {_TEMPLATE_CHARS_MAX} characters of templates in all, "
                f"found at least {self.template_chars}"
            )

    def member(self, what: str, count: int = 1) -> None:
        """Count further members of an archive.

        Raises:
            ModelLimitExceeded: There are too many for a file of this size.
        """
        self.members += count
        most = min(SCAN_MEMBERS_MAX, SCAN_MEMBERS_LEAST + self.packed // SCAN_MEMBER_BYTES_LEAST)
        if self.members > most:
            raise ModelLimitExceeded(
                f"{what}: expected at most {most} members in all archives together, for a file of "
                f"{self.packed} bytes"
            )

    def step(self, count: int, what: str) -> None:
        """Count opcodes that were followed in a possible pickle.

        Raises:
            ModelLimitExceeded: They are too many for a file of this size.
        """
        self.work.left -= _STEP_COST * count
        if self.work.left < 0:
            raise ModelLimitExceeded(self.work.fault(what))


@dataclass(slots=True)
class Cursor:
    """A position in a source, moved forward by each read."""

    source: Source
    what: str
    at: int = 0
    _ahead: bytes = field(default=b"", repr=False)
    _ahead_at: int = 0

    @property
    def rest(self) -> int:
        """The number of remaining bytes."""
        return self.source.size - self.at

    def fault(self, expected: str) -> ModelMalformed:
        """An error that names this position."""
        return ModelMalformed(f"{self.what}: expected {expected}, at byte {self.at}")

    def take(self, length: int) -> bytes:
        """The next bytes.

        Raises:
            ModelMalformed: There are fewer.
        """
        if length > self.rest:
            raise self.fault(f"{length} bytes more")
        begin = self.at - self._ahead_at
        if begin < 0 or begin + length > len(self._ahead):
            self._ahead = self.source.read(self.at, max(length, _AHEAD_BYTES))
            self._ahead_at, begin = self.at, 0
        data = self._ahead[begin : begin + length]
        if len(data) != length:
            raise self.fault(f"{length} bytes more")
        self.at += length
        return data

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The next numbers."""
        return layout.unpack(self.take(layout.size))

    def skip(self, length: int) -> None:
        """Skip bytes, which have to exist."""
        if length > self.rest:
            raise self.fault(f"{length} bytes more")
        self.at += length


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Something inside of a container."""

    name: str
    source: Source
    offset: int = 0
    """The position in a tar."""
