# SPDX-License-Identifier: Apache-2.0
"""A store in a directory of plain files, for several OS threads and processes of one machine.

It guarantees the contract of `Storage`: an append is one file that is on the disk before it has its
name, and whether its positions were free is decided under the lock of the thread, together with the
blobs it needs. Readers take no lock: files are whole when they appear, and are never written to
again. Every file and directory is checked when it is opened, and sizes before bytes are brought
into memory. It refuses directories that are not exactly a store (`_file_root.py`), and files that
others could have changed (`_file_directory.py`). The caller must check whether bytes are genuine.
It is not for network file systems, whose locks and syncs promise less.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from sealpoint.errors import HeadMoved, ReadOnly, StorageUnavailable, UsageError
from sealpoint.storage._contract import (
    DIGEST_BYTES,
    SEQ_MAX,
    THREAD_BYTES,
    Record,
    require_append,
    require_blobs,
    require_drop,
)
from sealpoint.storage._file_blobs import (
    blobs_after,
    drop_blobs,
    first_shard,
    put_blobs,
    read_blob,
    read_blobs,
    require_stored,
)
from sealpoint.storage._file_directory import Directory
from sealpoint.storage._file_entries import (
    BATCH_RECORDS,
    RECORDS_MAX,
    drop_parts,
    fresh_positions,
    has_header,
    last_position,
    read_batch,
    read_record,
    truncate_records,
    write_records,
)
from sealpoint.storage._file_root import (
    Failures,
    StoreRoot,
    create_root,
    drop_label,
    labelled_threads,
    put_label,
)
from sealpoint.storage._file_threads import (
    compact_thread,
    create_thread,
    has_locks,
    locked_thread,
    open_thread,
    threads_after,
)

__all__ = ["FileStorage"]

_C = TypeVar("_C")
_T = TypeVar("_T")


class FileStorage:
    """A storage in a directory; see `Storage` for the promises of each method.

    The directory may be used by several processes at once, and by both sides of a fork. One call
    appends at most 4096 records. A crash or a failure in the middle of `drop` may leave a part of
    it undone, which repeating it completes: the entries already declare the dropped bytes to be
    gone.

    Args:
        path: The directory.
        create: Make it, for its owner alone, if it does not exist, and a store in it if it is
            empty.
        read_only: Never write; another process may.
        wait_seconds_max: How long a call waits for another writer of the same thread.
        group: The number of the group whose members share the directory; without it, it belongs to
            this user alone.

    Raises:
        SchemaUnknown: The directory is not a store, or has an unknown version.
        DirectoryUnusable: It is not a directory, belongs to another user, or others can write in
            it.
        Edited: An object in it is of another kind, belongs to another user, or others can write to
            it.
        StorageUnavailable: It does not exist, cannot be made, or this system has no file locks.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = False,
        read_only: bool = False,
        wait_seconds_max: float = 30.0,
        group: int | None = None,
    ) -> None:
        if create and read_only:
            raise UsageError(f"store {path}: expected create or read_only, found both")
        if not has_locks():
            raise StorageUnavailable(
                f"store {path}: expected POSIX file locks, found a system without the fcntl module"
            )
        self._path = Path(os.path.abspath(path))  # noqa: PTH100 # resolve() would follow links
        self._read_only = read_only
        self._wait_seconds_max = wait_seconds_max
        self._closed = False
        self._failures = Failures(self._path)
        with self._failures:
            if create:
                create_root(self._path, wait_seconds_max, group)
            self._root = StoreRoot(self._path, read_only=read_only, group=group)

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        needs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Create entries with the blobs they name; at most 4096 of them.

        Raises:
            HeadMoved: Another record is at one of the positions.
            Missing: A needed blob is not stored.
            Edited: The data at one of the positions cannot be a record.
            StorageUnavailable: The file system failed; nothing was changed, or `read` shows it.
        """
        require_append(thread, seq, records, blobs=blobs, needs=needs, label=label)
        if len(records) > RECORDS_MAX:
            raise UsageError(f"append: expected 1 to {RECORDS_MAX} records, found {len(records)}")
        with (
            self._failures,
            self._writing() as root,
            create_thread(root, thread, self._wait_seconds_max) as directory,
        ):
            # (1) All checks that may refuse the call, before anything is changed.
            fresh = fresh_positions(directory, seq, records)
            if needs:
                require_stored(directory, needs)
            # (2) Blobs and label on the disk, then the one file that completes the append.
            if blobs:
                put_blobs(directory, blobs)
            if label is not None:
                put_label(root, directory, label, seq)
            if fresh:
                write_records(directory, seq, records, fresh)

    def alone(self, thread: bytes) -> nullcontext[None]:  # noqa: ARG002 # as `Storage` has it
        """Do nothing: the positions of a thread are taken one by one."""
        return nullcontext()

    def put_blobs(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        """Make blobs durable ahead of the entry that will name them."""
        require_blobs(thread, blobs)
        with self._failures, self._writing() as root:
            if blobs:
                with create_thread(root, thread, self._wait_seconds_max) as directory:
                    put_blobs(directory, blobs)

    def drop(
        self,
        thread: bytes,
        head: int,
        *,
        payloads: Sequence[int] = (),
        bodies: Sequence[int] = (),
        blobs: Collection[bytes] = (),
        label: bytes | None = None,
    ) -> None:
        """Remove bytes of a thread, unless there is a newer entry.

        Raises:
            HeadMoved: There is a newer entry.
            StorageUnavailable: The file system failed; repeating the call completes it.
        """
        require_drop(thread, head, (*payloads, *bodies), blobs=blobs, label=label)
        with (
            self._failures,
            self._writing() as root,
            locked_thread(root, thread, self._wait_seconds_max) as directory,
        ):
            if directory is not None:
                if head < SEQ_MAX and read_record(directory, head + 1) is not None:
                    raise HeadMoved(
                        f"entry {head + 1} of thread {thread.hex()}: expected no record, found one"
                    )
                drop_parts(directory, bodies=bodies, payloads=payloads)
                drop_blobs(directory, blobs)
            if label is not None:
                drop_label(root, thread, label)

    def truncate(self, thread: bytes, seq: int, header: bytes | None) -> None:
        """Remove the record at a position and all after it, the last ones first.

        Raises:
            HeadMoved: The record there has another header, or there is none.
            StorageUnavailable: The file system failed; repeating the call completes it.
        """
        require_drop(thread, -1, (seq,))
        with (
            self._failures,
            self._writing() as root,
            locked_thread(root, thread, self._wait_seconds_max) as directory,
        ):
            if directory is None or not has_header(directory, seq, header):
                raise HeadMoved(
                    f"entry {seq} of thread {thread.hex()}: the record that is to go is gone "
                    "already, or is another one"
                )
            truncate_records(directory, seq)

    def compact(self) -> None:
        """Remove the remains of crashes; dropped bytes are already gone from all other files."""
        after: str | None = ""
        while after is not None:
            with self._failures, self._writing() as root:
                threads, after = threads_after(root, after, lambda _directory: True)
                for thread, _ in threads:
                    compact_thread(root, thread, self._wait_seconds_max)

    def read(self, thread: bytes, seq: int) -> Record | None:
        """Return the record at a position, or None."""
        with self._reading(thread) as directory:
            if directory is None or not 0 <= seq <= SEQ_MAX:
                return None
            return read_record(directory, seq)

    def headers(self, thread: bytes, seqs: Sequence[int]) -> dict[int, bytes]:  # noqa: ARG002
        """Return none of them, because reading a header here means reading its record."""
        self._require_open()
        return {}

    def scan(
        self, thread: bytes, first: int, last: int | None = None, *, descending: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Yield the records from `first` to `last` inclusive, in order of position.

        They are read in batches of at most 32, the first before this returns; nothing is open
        between batches.
        """
        bounds = max(0, first), SEQ_MAX if last is None else min(last, SEQ_MAX)
        return _paged(partial(self._batch, thread, backwards=descending), bounds)

    def _batch(
        self, thread: bytes, bounds: tuple[int, int], *, backwards: bool
    ) -> tuple[list[tuple[int, Record]], tuple[int, int] | None]:
        """Return some records, and the bounds of those after them."""
        low, high = bounds
        with self._reading(thread) as directory:
            if directory is None or low > high:
                return [], None
            batch = read_batch(directory, low, high, backwards=backwards)
        if len(batch) < BATCH_RECORDS:
            return batch, None
        end = batch[-1][0]
        return batch, ((low, end - 1) if backwards else (end + 1, high))

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Return the bytes stored under a digest, or None.

        Raises:
            Edited: More than `size_bytes_max` bytes, or not a file, are stored there.
        """
        with self._reading(thread) as directory:
            if directory is None or len(digest) != DIGEST_BYTES:
                return None
            return read_blob(directory, digest, size_bytes_max)

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Return those of the blobs that are stored and not too large."""
        with self._reading(thread) as directory:
            if directory is None:
                return {}
            known = [digest for digest in digests if len(digest) == DIGEST_BYTES]
            return read_blobs(directory, known, size_bytes_max)

    def stored_blobs(self, thread: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield digest and size in bytes of every blob of a thread, in the order of the digests."""
        return _paged(partial(self._blobs_after, thread), "")

    def _blobs_after(self, thread: bytes, after: str) -> tuple[list[tuple[bytes, int]], str | None]:
        with self._reading(thread) as directory:
            return ([], None) if directory is None else blobs_after(directory, after)

    def version(self) -> None:
        """Return None: a directory does not show whether its files are unchanged."""
        self._require_open()

    def heads(self) -> Iterator[tuple[bytes, int]]:
        """Yield every thread that has an entry, each once, in the order of their bytes."""
        return _paged(partial(self._threads_after, last_position), "")

    def blob_threads(self) -> Iterator[bytes]:
        """Yield every thread that has a blob, each once, in the order of their bytes."""
        found = _paged(partial(self._threads_after, first_shard), "")
        return (thread for thread, _ in found)

    def _threads_after(
        self, look: Callable[[Directory], _T | None], after: str
    ) -> tuple[list[tuple[bytes, _T]], str | None]:
        with self._failures, self._opened() as root:
            return threads_after(root, after, look)

    def labelled(self, label: bytes) -> list[bytes]:
        """Return the threads that were appended with this label.

        Raises:
            Edited: More than 4096 threads carry it.
        """
        with self._failures, self._opened() as root:
            return labelled_threads(root, label) if len(label) == DIGEST_BYTES else []

    def close(self) -> None:
        """Refuse every later call. Closing twice is allowed."""
        self._closed = True

    @contextmanager
    def _reading(self, thread: bytes) -> Iterator[Directory | None]:
        """Open the directory of a thread, or None if it does not exist."""
        with self._failures, self._opened() as root:
            directory = open_thread(root, thread) if len(thread) == THREAD_BYTES else None
            if directory is None:
                yield None
            else:
                with directory:
                    yield directory

    def _opened(self) -> Directory:
        self._require_open()
        return self._root.open()

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError(f"store {self._path}: expected it open, found it closed")

    def _writing(self) -> Directory:
        root = self._opened()
        if self._read_only:
            root.close()
            raise ReadOnly(f"store {self._path}: expected one opened for writing, found read_only")
        return root


def _paged(page: Callable[[_C], tuple[list[_T], _C | None]], start: _C) -> Iterator[_T]:
    """Yield all items page by page; the first page is read before this returns."""
    return _pages(page, *page(start))


def _pages(
    page: Callable[[_C], tuple[list[_T], _C | None]], found: list[_T], after: _C | None
) -> Iterator[_T]:
    yield from found
    while after is not None:
        found, after = page(after)
        yield from found
