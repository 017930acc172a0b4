# SPDX-License-Identifier: Apache-2.0
"""A model file that is open for reading: one descriptor, bytes read once, hashed as they are read.

The caller gets exactly the bytes that were hashed: they are read into our own memory, never mapped,
so later changes of the file have no effect. A file that is truncated during the read is refused.

The digest tree of a model file: pieces, tensors, the file. BLAKE3, a context for each level.

A tensor is cut into pieces of `PIECE_BYTES`, so that several workers can hash it while it is
read or written, in any order; its digest is that of its length and of the digests of its
pieces. The root is the digest of the header's digest and of all tensors', in the order of the
file. A tensor is verified without reading the others. `docs/formats/model-file.md` has the
details.

Tensors cut into pieces, and several OS threads that work on them at once.

Reading, writing and hashing leave the interpreter to others, so threads are enough.
"""

import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from sealpoint.errors import ModelMalformed, ModelUnreadable, UsageError
from sealpoint_models._optional_packages import require_blake3
from sealpoint_models.scan._safetensors import LENGTH_BYTES, Tensor, header_end

PIECE_BYTES = 8 << 20
"""The length of a piece; the last one of a tensor may be shorter. Part of the format."""

_ONE_FILE = (
    "Name one file in it. sealpoint scan PATH looks at all files of a folder, and sealpoint model "
    "seal and verify take a folder as a whole."
)
_HINTS = {
    errno.ENOENT: "See to the path: there is no such file, or its folder is missing.",
    errno.EISDIR: "Name a file, and not the folder for it.",
    errno.EACCES: "Let this user read the file, or write to its folder.",
    errno.EPERM: "Let this user read the file, or write to its folder.",
    errno.EROFS: "Save to a folder that can be written to.",
    errno.ENOSPC: "Make room on that disk, then do the same again: what was there before is whole.",
    errno.EDQUOT: "Make room on that disk, then do the same again: what was there before is whole.",
    errno.ELOOP: "Put the file itself there, and not a link: cp -rL FOLDER COPY makes such a copy.",
    errno.EFBIG: "Save to a disk, or under a limit, that takes a file of this size.",
}
_CONTEXT = "sealpoint 2026-11 model {} v1"
_PIECE, _TENSOR, _HEADER, _FILE, _FOLDER = map(
    _CONTEXT.format, ("piece", "tensor", "header", "file", "folder")
)


def _hasher(context: str) -> Any:
    return require_blake3()(derive_key_context=context)


def piece_hasher() -> Any:
    """Hashes one piece: `update` as often as there are bytes, then `digest`."""
    return _hasher(_PIECE)


def folder_hasher() -> Any:
    """Hashes the list of a folder."""
    return _hasher(_FOLDER)


def tensor_digest(size: int, pieces: Iterable[bytes]) -> bytes:
    """The digest of a tensor of `size` bytes from those of its pieces, in order."""
    hasher = _hasher(_TENSOR)
    hasher.update(size.to_bytes(8, "little"))
    for piece in pieces:
        hasher.update(piece)
    return bytes(hasher.digest())


def header_digest(raw: bytes) -> bytes:
    """The digest of a header with the length in front."""
    hasher = _hasher(_HEADER)
    hasher.update(raw)
    return bytes(hasher.digest())


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigests:
    """The digests of one file."""

    size: int
    """The length of the file."""
    header: bytes
    tensors: Mapping[str, bytes]
    """By name, in the order of the file."""

    @property
    def root(self) -> bytes:
        """The digest of the whole file."""
        hasher = _hasher(_FILE)
        hasher.update(self.header)
        for digest in self.tensors.values():
            hasher.update(digest)
        return bytes(hasher.digest())


Progress = Callable[[int, int], object]
"""Called with the number of bytes done so far, and their total."""

_STEP_BYTES = 1 << 20
WORKERS_MAX = 8
"""How many threads read, hash and write at once, on a machine with as many cores."""

_B = TypeVar("_B")
_R = TypeVar("_R")


class TensorPiece(NamedTuple):
    """A piece of a tensor."""

    tensor: Tensor
    at: int
    """Where it begins in the tensor."""
    size: int


class Destination(Protocol):
    """Where the bytes of tensors are read to. Several threads use it at once."""

    def room(self, piece: TensorPiece) -> memoryview:
        """Memory for a piece, which is read and hashed there."""

    def filled(self, piece: TensorPiece) -> None:
        """The piece is in the room that this thread was given last."""


class HostMemory:
    """Memory of this process, by the names of tensors."""

    def __init__(self, views: Mapping[str, memoryview]) -> None:
        self._views = views

    def room(self, piece: TensorPiece) -> memoryview:
        """The place of the piece in the memory of its tensor."""
        return self._views[piece.tensor.name][piece.at : piece.at + piece.size]

    def filled(self, piece: TensorPiece) -> None:
        """It is where it belongs."""


class Nowhere:
    """For bytes that are only hashed."""

    def __init__(self) -> None:
        self._own = threading.local()

    def room(self, piece: TensorPiece) -> memoryview:
        """Memory that is used again for the next piece."""
        room: memoryview | None = getattr(self._own, "room", None)
        if room is None or len(room) < piece.size:
            room = self._own.room = memoryview(bytearray(piece.size))
        return room[: piece.size]

    def filled(self, piece: TensorPiece) -> None:
        """It was hashed, and is not kept."""


def batches_of(tensors: Iterable[Tensor]) -> Iterator[list[TensorPiece]]:
    """The pieces of tensors; small ones together, so that a job is worth its while."""
    batch: list[TensorPiece] = []
    total = 0
    for tensor in tensors:
        for at in range(0, tensor.size, PIECE_BYTES):
            piece = TensorPiece(tensor, at, min(PIECE_BYTES, tensor.size - at))
            if batch and total + piece.size > PIECE_BYTES:
                yield batch
                batch, total = [], 0
            batch.append(piece)
            total += piece.size
    if batch:
        yield batch


def move_piece(
    piece: TensorPiece,
    memory: memoryview,
    move: Callable[[memoryview, int], None],
    *,
    hashing: bool,
) -> bytes:
    """Read or write a piece, and hash the bytes while they are in the processor's cache.

    Args:
        piece: The piece.
        memory: Its bytes, or the memory for them.
        move: Reads or writes some memory from or to a place in the file.
        hashing: Whether a digest is wanted.

    Returns:
        The digest; empty without `hashing`.
    """
    offset = piece.tensor.begin + piece.at
    if not hashing:
        move(memory, offset)
        return b""
    hasher = piece_hasher()
    for at in range(0, piece.size, _STEP_BYTES):
        step = memory[at : at + _STEP_BYTES]
        move(step, offset + at)
        hasher.update(step)
    return bytes(hasher.digest())


def digests_of(
    tensors: Iterable[Tensor], digests: Mapping[tuple[str, int], bytes]
) -> dict[str, bytes]:
    """The digests of tensors from those of their pieces, by name and place."""
    return {
        tensor.name: tensor_digest(
            tensor.size, (digests[tensor.name, at] for at in range(0, tensor.size, PIECE_BYTES))
        )
        for tensor in tensors
    }


def in_parallel(work: Callable[[_B], _R], batches: Iterable[_B]) -> Iterator[_R]:
    """Do a piece of work for each batch, a few ahead; the results in order.

    The first failure ends it: what has not begun is not done. One batch alone needs no thread.
    """
    rest = iter(batches)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    workers = min(WORKERS_MAX, os.cpu_count() or 1)
    pending: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(workers, "sealpoint-models") as pool:
        try:
            for batch in chain(first, rest):
                pending.append(pool.submit(work, batch))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def sizes(batch: Sequence[TensorPiece]) -> int:
    """How many bytes the pieces of a batch have together."""
    return sum(piece.size for piece in batch)


def unreadable(what: str, cause: Exception) -> ModelUnreadable:
    """The error for a file that the operating system refuses."""
    reason = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
    hint = _HINTS.get(cause.errno or 0) if isinstance(cause, OSError) else None
    return ModelUnreadable(f"{what}: expected a file to read or write, found: {reason}", hint=hint)


class ReadFile:
    """A regular file, open for reading.

    Args:
        path: Where it is.
        within: The descriptor of its directory: the last part of the path is opened there, and
            a link is not followed.

    Raises:
        ModelUnreadable: It cannot be opened, or is not a regular file.
    """

    def __init__(self, path: str | os.PathLike[str], *, within: int | None = None) -> None:
        self.path = Path(path)
        self.what = str(self.path)
        # Not blocking: the open would otherwise wait for a pipe in its place.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            if within is None:
                self.fd = os.open(self.path, flags)
            else:
                self.fd = os.open(self.path.name, flags | os.O_NOFOLLOW, dir_fd=within)
        except (OSError, ValueError) as exc:
            raise unreadable(self.what, exc) from exc
        found = os.fstat(self.fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(self.fd)
            folder = stat.S_ISDIR(found.st_mode)
            other = "a directory" if folder else "something else"
            raise ModelUnreadable(
                f"{self.what}: expected a regular file, found {other}",
                hint=_ONE_FILE if folder else None,
            )
        self.size = found.st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Closing twice is allowed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def is_own(self, path: Path) -> bool:
        """Whether this file is the one at a path: no link, owned by us, and with no other name."""
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
        """The bytes of a safetensors header, with the length in front, unchecked.

        Raises:
            ModelMalformed, ModelLimitExceeded: There is none, or it is too long.
        """
        prefix = self.read(0, min(LENGTH_BYTES, self.size))
        return self.read(0, header_end(prefix, self.size, self.what))

    def read_tensors(
        self,
        tensors: Iterable[Tensor],
        memory: Destination,
        *,
        hashing: bool,
        progress: Progress | None = None,
    ) -> dict[str, bytes]:
        """Read tensors, and hash the bytes.

        Args:
            tensors: The tensors.
            memory: The destination of their bytes.
            hashing: Whether digests are wanted.
            progress: Called occasionally.

        Returns:
            The digest of each, by name; empty without `hashing`.
        """
        wanted = list(tensors)
        total = sum(tensor.size for tensor in wanted)
        done = 0
        digests: dict[tuple[str, int], bytes] = {}

        def read(batch: Sequence[TensorPiece]) -> tuple[int, dict[tuple[str, int], bytes]]:
            found = {}
            for piece in batch:
                room = memory.room(piece)
                key = piece.tensor.name, piece.at
                found[key] = move_piece(piece, room, self.read_into, hashing=hashing)
                memory.filled(piece)
            return sizes(batch), found

        for size, found in in_parallel(read, batches_of(wanted)):
            digests.update(found)
            done += size
            if progress is not None:
                progress(done, total)
        return digests_of(wanted, digests) if hashing else {}
