# SPDX-License-Identifier: Apache-2.0
"""The blobs of one thread: a file for each, named by its digest.

They lie in `blobs/<first digit>/<digest>` of the thread's directory. Sixteen directories are few
enough for a save to sync those that it touches, and let the blobs be listed in order with a part
of the names of one in memory. It guarantees that a blob appears whole, is on the disk once
`put_blobs` returned, and is not read before its size was compared with a bound. It leaves to its
caller to hold the thread's lock for whatever writes, and whether bytes fit their digest.
"""

import heapq
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from sealpoint.errors import Edited, Missing
from sealpoint.storage._file_directory import Directory, Drafts, File

_BLOBS = "blobs"
_SHELVES = "0123456789abcdef"
_BEYOND = "g"
_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LISTED_MAX = 1024
_COMPARED_BYTES = 1024 * 1024


def read_blob(thread: Directory, digest: bytes, size_bytes_max: int) -> bytes | None:
    """The bytes of a blob, or None.

    Raises:
        Edited: It is larger than that, or no file.
    """
    name = digest.hex()
    with _Shelves(thread) as shelves:
        shelf = shelves.of(name)
        file = None if shelf is None else shelf.file(name)
        if file is None:
            return None
        with file:
            if file.size_bytes > size_bytes_max:
                raise Edited(
                    f"{file.path}: expected at most {size_bytes_max} bytes, found {file.size_bytes}"
                )
            return file.read(file.size_bytes)


def read_blobs(
    thread: Directory, digests: Sequence[bytes], size_bytes_max: int
) -> dict[bytes, bytes]:
    """Those of some blobs that are stored and not too large."""
    found: dict[bytes, bytes] = {}
    with _Shelves(thread) as shelves:
        for digest in digests:
            name = digest.hex()
            shelf = shelves.of(name)
            file = None if shelf is None else shelf.file(name)
            if file is not None:
                with file:
                    if file.size_bytes <= size_bytes_max:
                        found[digest] = file.read(file.size_bytes)
    return found


def put_blobs(thread: Directory, blobs: Mapping[bytes, bytes]) -> None:
    """Make blobs durable, in place of stored ones that differ."""
    with _Shelves(thread, writing=True) as shelves, Drafts(thread) as drafts:
        unsettled: dict[str, Directory] = {}
        for digest, data in blobs.items():
            name = digest.hex()
            shelf = shelves.made(name)
            try:
                file = shelf.file(name)
            except Edited:
                # Something else was put there; it is replaced like any other bytes.
                drafts.write(shelf, name, [data], replaces=True)
                continue
            if file is None:
                drafts.write(shelf, name, [data])
                continue
            with file:
                if not _is_same(file, data):
                    drafts.write(shelf, name, [data], replaces=True)
                elif not file.settled:
                    unsettled[name[0]] = shelf
        for shelf in unsettled.values():
            # Whoever wrote it may have crashed before its name was on the disk.
            shelf.sync()


def require_blobs(thread: Directory, needs: Collection[bytes]) -> None:
    """Refuse to go on without blobs that have been put ahead.

    Raises:
        Missing: One is not stored.
        Edited: Something else lies there.
    """
    with _Shelves(thread) as shelves:
        unsettled: dict[str, Directory] = {}
        for digest in needs:
            name = digest.hex()
            shelf = shelves.of(name)
            found = None if shelf is None else shelf.look(name)
            if found is None or shelf is None:
                raise Missing(
                    f"blob {name} of thread {thread.name}: expected it to be stored, found none"
                )
            if found.st_nlink > 1:
                unsettled[name[0]] = shelf
        for shelf in unsettled.values():
            shelf.sync()


def drop_blobs(thread: Directory, digests: Collection[bytes]) -> None:
    """Remove blobs; those that are not there are no failure."""
    with _Shelves(thread, writing=True) as shelves:
        for digest in digests:
            name = digest.hex()
            shelf = shelves.of(name)
            if shelf is not None:
                shelf.remove(name)
        # Also those in which nothing was removed: a crash may have come before the sync.
        shelves.sync()


def blobs_after(thread: Directory, after: str) -> tuple[list[tuple[bytes, int]], str | None]:
    """Some blobs with their sizes, in the order of digests.

    Args:
        thread: The directory of the thread.
        after: Where to begin: "", or what the call before returned.

    Returns:
        The blobs, and where the next call begins, or None when there are no more.
    """
    with _Shelves(thread) as shelves:
        for digit in _SHELVES:
            shelf = shelves.of(digit) if digit + _BEYOND > after else None
            if shelf is None:
                continue
            names = heapq.nsmallest(
                _LISTED_MAX, (name for name in _names(shelf, digit) if name > after)
            )
            if names:
                sizes = ((bytes.fromhex(name), shelf.size_bytes(name)) for name in names)
                found = [(digest, size) for digest, size in sizes if size is not None]
                return found, names[-1] if len(names) == _LISTED_MAX else digit + _BEYOND
    return [], None


def has_blobs(thread: Directory) -> bool:
    """Whether a thread has a blob."""
    with _Shelves(thread) as shelves:
        for digit in _SHELVES:
            shelf = shelves.of(digit)
            if shelf is not None and any(_names(shelf, digit)):
                return True
    return False


def remove_empty_shelves(thread: Directory) -> None:
    """Remove directories of blobs that have none."""
    with _Shelves(thread, writing=True) as shelves:
        shelves.remove_empty()


def _names(shelf: Directory, digit: str) -> Iterator[str]:
    return (name for name in shelf.names() if name[0] == digit and _NAME.fullmatch(name))


def _is_same(file: File, data: bytes) -> bool:
    """Whether a file holds exactly some bytes; one of another length is not read."""
    if file.size_bytes != len(data):
        return False
    for offset in range(0, len(data), _COMPARED_BYTES):
        part = data[offset : offset + _COMPARED_BYTES]
        if file.read(len(part), offset) != part:
            return False
    return True


class _Shelves:
    """The directories of a thread's blobs, each opened once; use it in a `with` block."""

    __slots__ = ("_blobs", "_shelves", "_thread", "_writing")

    def __init__(self, thread: Directory, *, writing: bool = False) -> None:
        self._thread = thread
        self._writing = writing
        self._blobs: Directory | None = None
        self._shelves: dict[str, Directory | None] = {}

    def of(self, name: str) -> Directory | None:
        """The directory of a blob, or None where there is none."""
        digit = name[0]
        if digit not in self._shelves:
            blobs, writing = self._blobs, self._writing
            self._shelves[digit] = None if blobs is None else blobs.child(digit, writing=writing)
        return self._shelves[digit]

    def made(self, name: str) -> Directory:
        """The directory of a blob for writing, made if there is none."""
        digit = name[0]
        shelf = self._shelves.get(digit)
        if shelf is None:
            if self._blobs is None:
                self._blobs = self._thread.made(_BLOBS)
            shelf = self._shelves[digit] = self._blobs.made(digit)
        return shelf

    def sync(self) -> None:
        """Wait until the names in all that were opened are on the disk."""
        for shelf in self._shelves.values():
            if shelf is not None:
                shelf.sync()

    def remove_empty(self) -> None:
        """Remove those that are empty."""
        if self._blobs is not None:
            for digit in _SHELVES:
                self._blobs.remove_empty(digit)
            self._thread.remove_empty(_BLOBS)

    def __enter__(self) -> Self:
        self._blobs = self._thread.child(_BLOBS, writing=self._writing)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for directory in (*self._shelves.values(), self._blobs):
            if directory is not None:
                directory.close()
