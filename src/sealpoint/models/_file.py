# SPDX-License-Identifier: Apache-2.0
"""A model file that is open for reading: one descriptor, bytes read once, hashed as they are read.

What is handed on is what was hashed: bytes are read into memory of our own, never mapped, so
whoever changes the file afterwards changes nothing. A file that is cut short while it is read is
refused.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sealpoint.errors import ModelMalformed, ModelUnreadable, UsageError
from sealpoint.models._pieces import (
    Piece,
    Progress,
    batches_of,
    digests_of,
    in_parallel,
    move_piece,
    sizes,
)
from sealpoint.models._safetensors import LENGTH_BYTES, Tensor, header_end

__all__ = ["ReadFile", "unreadable"]


def unreadable(what: str, cause: Exception) -> ModelUnreadable:
    """The error for a file that the operating system refuses."""
    reason = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
    return ModelUnreadable(f"{what}: expected a file to read or write, found: {reason}")


class ReadFile:
    """A regular file, open for reading.

    Args:
        path: Where it is.

    Raises:
        ModelUnreadable: It cannot be opened, or is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.what = str(self.path)
        try:
            # Not blocking: a pipe in its place would otherwise be waited for.
            self.fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as exc:
            raise unreadable(self.what, exc) from exc
        found = os.fstat(self.fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(self.fd)
            other = "a directory" if stat.S_ISDIR(found.st_mode) else "something else"
            raise ModelUnreadable(f"{self.what}: expected a regular file, found {other}")
        self.size = found.st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def is_own(self, path: Path) -> bool:
        """Whether this file is the one at a path, by no link, ours, and under no other name."""
        found = os.fstat(self.fd)
        try:
            there = path.lstat()
        except OSError:
            return False
        return (
            (there.st_dev, there.st_ino) == (found.st_dev, found.st_ino)
            and found.st_nlink == 1
            and found.st_uid == os.geteuid()
        )

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes.

        Raises:
            ModelMalformed: The file ends before.
            ModelUnreadable: The disk fails.
        """
        memory = bytearray(length)
        self.read_into(memoryview(memory), offset)
        return bytes(memory)

    def read_into(self, memory: memoryview, offset: int) -> None:
        """Fill a piece of memory from a place in the file. Errors are those of `read`."""
        if self.fd < 0:
            raise UsageError(f"{self.what}: expected an open file, found it closed")
        done = 0
        while done < len(memory):
            try:
                count = os.preadv(self.fd, [memory[done:]], offset + done)
            except OSError as exc:
                raise unreadable(self.what, exc) from exc
            if count == 0:
                raise ModelMalformed(
                    f"{self.what}: expected bytes up to {offset + len(memory)}, found the end at "
                    f"{offset + done}"
                )
            done += count

    def read_header(self) -> bytes:
        """The bytes of a safetensors header, with the length in front, not looked at.

        Raises:
            ModelMalformed, ModelLimitExceeded: There is none, or it is too long.
        """
        prefix = self.read(0, min(LENGTH_BYTES, self.size))
        return self.read(0, header_end(prefix, self.size, self.what))

    def read_tensors(
        self,
        tensors: Iterable[Tensor],
        memory: Mapping[str, memoryview] | None,
        *,
        hashing: bool,
        progress: Progress | None = None,
    ) -> dict[str, bytes]:
        """Read tensors, and hash what is read.

        Args:
            tensors: Which.
            memory: Where the bytes of each go, by name; None: nowhere, they are only hashed.
            hashing: Whether digests are wanted.
            progress: Called now and then.

        Returns:
            The digest of each, by name; empty without `hashing`.
        """
        wanted = list(tensors)
        total = sum(tensor.size for tensor in wanted)
        done = 0
        digests: dict[tuple[str, int], bytes] = {}

        def read(batch: Sequence[Piece]) -> tuple[int, dict[tuple[str, int], bytes]]:
            found = {}
            for piece in batch:
                if memory is None:
                    part = memoryview(bytearray(piece.size))
                else:
                    part = memory[piece.tensor.name][piece.at : piece.at + piece.size]
                key = piece.tensor.name, piece.at
                found[key] = move_piece(piece, part, self.read_into, hashing=hashing)
            return sizes(batch), found

        for size, found in in_parallel(read, batches_of(wanted)):
            digests.update(found)
            done += size
            if progress is not None:
                progress(done, total)
        return digests_of(wanted, digests) if hashing else {}
