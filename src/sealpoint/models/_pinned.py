# SPDX-License-Identifier: Apache-2.0
"""A file as it was checked: structure from memory, only tensor elements from the disk.

Guarantees that whoever reads the view sees the structure that was checked, byte for byte, even when
somebody writes to the file in between: checking and loading cannot be given different files. What
can still change are the elements of tensors, which are numbers and decide nothing. Elements are
read straight into the buffer of the reader; nothing is mapped.
"""

import bisect
import io
from collections.abc import Sequence
from typing import Any

from sealpoint.errors import ModelUnreadable
from sealpoint.scan import Piece

__all__ = ["PinnedView", "read_at"]


def read_at(file: io.FileIO, offset: int, length: int, what: str) -> bytes:
    """The bytes of a file at an offset; fewer only where the file ends.

    Raises:
        ModelUnreadable: The file cannot be read.
    """
    data = bytearray()
    try:
        file.seek(offset)
        while len(data) < length and (part := file.read(length - len(data))):
            data += part
    except OSError as exc:
        raise ModelUnreadable(f"{what}: expected to read it, found {exc.strerror}") from exc
    return bytes(data)


class PinnedView(io.RawIOBase):
    """A file to read and seek in, whose structure cannot change any more."""

    def __init__(self, file: io.FileIO, size: int, pieces: Sequence[Piece], what: str) -> None:
        """Make a view.

        Args:
            file: The open file, unbuffered; nobody else moves in it while the view is read.
            size: Of the file.
            pieces: All bytes but the elements of tensors, in order.
            what: The file, for messages.
        """
        super().__init__()
        self._file = file
        self._size = size
        self._pieces = pieces
        self._starts = [piece.offset for piece in pieces]
        self._what = what
        self._at = 0
        self.fault: ModelUnreadable | None = None
        """Why a read failed: torch's reader does not keep the error that it was given."""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Say where the next read begins."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, wholly unless the file ends before.

        Raises:
            ModelUnreadable: Elements of a tensor cannot be read any more.
        """
        target = memoryview(buffer).cast("B")
        total = max(min(len(target), self._size - self._at), 0)
        done = 0
        while done < total:
            done += self._some(target[done:total], self._at + done)
        self._at += total
        return total

    def _some(self, target: memoryview, at: int) -> int:
        """Fill the beginning of a buffer, from the one place where these bytes are."""
        index = bisect.bisect_right(self._starts, at) - 1
        piece = self._pieces[index]
        inside = at - piece.offset
        if inside < len(piece.data):
            part = memoryview(piece.data)[inside : inside + len(target)]
            target[: len(part)] = part
            return len(part)
        # Elements reach up to the next piece; the last piece reaches to the end of the file.
        length = min(len(target), self._starts[index + 1] - at)
        try:
            self._file.seek(at)
            count = self._file.readinto(target[:length])
            found = "its end"
        except OSError as exc:
            count, found = 0, str(exc.strerror)
        if not count:
            self.fault = ModelUnreadable(
                f"{self._what}: expected {length} bytes at {at}, found {found}"
            )
            raise self.fault
        return count
