# SPDX-License-Identifier: Apache-2.0
"""The blobs of one thread: a file for each, named by its digest.

A blob is stored in `blobs/<first digit>/<digest>` of the thread's directory. Sixteen directories
are few enough for a save to sync those that it changes, and allow listing the blobs in order with
part of the names of one directory in memory. The module guarantees that a blob appears whole, is on
the disk once `put_blobs` has returned, and is not read before its size was compared with a bound.
The caller must hold the thread's lock for every write, and check that bytes match their digest.
"""

import heapq
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Self

from sealpoint.errors import Edited, Missing
from sealpoint.storage._file_directory import Directory, Drafts, File

_BLOBS = "blobs"
_SHARDS = "0123456789abcdef"
_BEYOND = "g"
_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LISTED_MAX = 1024
_COMPARED_BYTES = 1024 * 1024


def read_blob(thread: Directory, digest: bytes, size_bytes_max: int) -> bytes | None:
    """Return the bytes of a blob, or None.

    Raises:
        Edited: It is larger than that, or not a file.
    """
    name = digest.hex()
    with _Shards(thread) as shards:
        shard = shards.of(name)
        file = None if shard is None else shard.file(name)
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
    """Return those of some blobs that are stored and not too large."""
    found: dict[bytes, bytes] = {}
    with _Shards(thread) as shards:
        for digest in digests:
            name = digest.hex()
            shard = shards.of(name)
            file = None if shard is None else shard.file(name)
            if file is not None:
                with file:
                    if file.size_bytes <= size_bytes_max:
                        found[digest] = file.read(file.size_bytes)
    return found


def put_blobs(thread: Directory, blobs: Mapping[bytes, bytes]) -> None:
    """Make blobs durable, and replace stored ones that differ."""
    with _Shards(thread, writing=True) as shards, Drafts(thread) as drafts:
        not_durable: dict[str, Directory] = {}
        for digest, data in blobs.items():
            name = digest.hex()
            shard = shards.open_or_create(name)
            try:
                file = shard.file(name)
            except Edited:
                # Something other than a file is there; it is replaced like different bytes.
                drafts.write(shard, name, [data], replaces=True)
                continue
            if file is None:
                drafts.write(shard, name, [data])
                continue
            with file:
                if not _is_same(file, data):
                    drafts.write(shard, name, [data], replaces=True)
                elif not file.is_durable:
                    not_durable[name[0]] = shard
        for shard in not_durable.values():
            # Its writer may have crashed before the name was on the disk.
            shard.sync()


def require_stored(thread: Directory, needs: Collection[bytes]) -> None:
    """Refuse to continue without blobs that have been stored ahead.

    Raises:
        Missing: A blob is not stored.
        Edited: Something other than a file is there.
    """
    with _Shards(thread) as shards:
        not_durable: dict[str, Directory] = {}
        for digest in needs:
            name = digest.hex()
            shard = shards.of(name)
            found = None if shard is None else shard.look(name)
            if found is None or shard is None:
                raise Missing(f"blob {name} of thread {thread.name}: it is missing")
            if found.st_nlink > 1:
                not_durable[name[0]] = shard
        for shard in not_durable.values():
            shard.sync()


def drop_blobs(thread: Directory, digests: Collection[bytes]) -> None:
    """Remove blobs; missing ones are not a failure."""
    with _Shards(thread, writing=True) as shards:
        for digest in digests:
            name = digest.hex()
            shard = shards.of(name)
            if shard is not None:
                shard.remove(name)
        # Sync all directories, because a crash may have come before an earlier sync.
        shards.sync()


def blobs_after(thread: Directory, after: str) -> tuple[list[tuple[bytes, int]], str | None]:
    """Return some blobs with their sizes, in the order of digests.

    Args:
        thread: The directory of the thread.
        after: Where to begin: "", or the second result of the previous call.

    Returns:
        The blobs, and where the next call begins, or None when there are no more.
    """
    with _Shards(thread) as shards:
        for digit in _SHARDS:
            shard = shards.of(digit) if digit + _BEYOND > after else None
            if shard is None:
                continue
            names = heapq.nsmallest(
                _LISTED_MAX, (name for name in _names(shard, digit) if name > after)
            )
            if names:
                sizes = ((bytes.fromhex(name), shard.size_bytes(name)) for name in names)
                found = [(digest, size) for digest, size in sizes if size is not None]
                return found, names[-1] if len(names) == _LISTED_MAX else digit + _BEYOND
    return [], None


def first_shard(thread: Directory) -> str | None:
    """Return the first digit of the name of some blob of the thread; None if it has no blob."""
    with _Shards(thread) as shards:
        for digit in _SHARDS:
            shard = shards.of(digit)
            if shard is not None and any(_names(shard, digit)):
                return digit
    return None


def remove_empty_shards(thread: Directory) -> None:
    """Remove empty directories of blobs."""
    with _Shards(thread, writing=True) as shards:
        shards.remove_empty()


def _names(shard: Directory, digit: str) -> Iterator[str]:
    return (name for name in shard.names() if name[0] == digit and _NAME.fullmatch(name))


def _is_same(file: File, data: bytes) -> bool:
    """Whether a file holds exactly some bytes; a file of another length is not read."""
    if file.size_bytes != len(data):
        return False
    for offset in range(0, len(data), _COMPARED_BYTES):
        part = data[offset : offset + _COMPARED_BYTES]
        if file.read(len(part), offset) != part:
            return False
    return True


class _Shards:
    """The directories of a thread's blobs, each opened once; use it in a `with` block."""

    __slots__ = ("_blobs", "_shards", "_thread", "_writing")

    def __init__(self, thread: Directory, *, writing: bool = False) -> None:
        self._thread = thread
        self._writing = writing
        self._blobs: Directory | None = None
        self._shards: dict[str, Directory | None] = {}

    def of(self, name: str) -> Directory | None:
        """Return the directory of a blob, or None if it does not exist."""
        digit = name[0]
        if digit not in self._shards:
            blobs, writing = self._blobs, self._writing
            self._shards[digit] = None if blobs is None else blobs.child(digit, writing=writing)
        return self._shards[digit]

    def open_or_create(self, name: str) -> Directory:
        """Return the directory of a blob for writing, made if it does not exist."""
        digit = name[0]
        shard = self._shards.get(digit)
        if shard is None:
            if self._blobs is None:
                self._blobs = self._thread.open_or_create(_BLOBS)
            shard = self._shards[digit] = self._blobs.open_or_create(digit)
        return shard

    def sync(self) -> None:
        """Wait until the names in all opened directories are on the disk."""
        for shard in self._shards.values():
            if shard is not None:
                shard.sync()

    def remove_empty(self) -> None:
        """Remove the empty directories."""
        if self._blobs is not None:
            for digit in _SHARDS:
                self._blobs.remove_empty(digit)
            self._thread.remove_empty(_BLOBS)

    def __enter__(self) -> Self:
        self._blobs = self._thread.child(_BLOBS, writing=self._writing)
        return self

    def __exit__(self, *_: object) -> None:
        for directory in (*self._shards.values(), self._blobs):
            if directory is not None:
                directory.close()
