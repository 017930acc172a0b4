# SPDX-License-Identifier: Apache-2.0
"""Copying a store to another backend, byte for byte: records, blobs and labels.

Nothing is verified here, and nothing is signed: the caller verifies both sides. An interrupted copy
can be continued, because repeating an append that was already made is a success. If the target has
data that the source does not, the copy is refused, and that data is never removed.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sealpoint.errors import Missing, SealpointError, StoreExists
from sealpoint.ledger import STORE_CHAIN
from sealpoint.storage import Record, Storage
from sealpoint.store._genesis import claimed_name
from sealpoint.store._names import label_of
from sealpoint.store._store_parts import Core

_RECORDS_AT_ONCE = 64
_BLOBS_BYTES_MAX = 8 * 1024 * 1024


@dataclass(slots=True, kw_only=True)
class CopiedStore:
    """The totals of a copy, without data that an earlier copy had already written."""

    threads: int = 0
    threads_total: int = 0
    entries: int = 0
    """How many entries were written."""
    blobs: int = 0
    """How many blobs were written."""
    bytes: int = 0
    """The total size of the written entries and blobs."""
    left_out: int = 0
    """Blobs whose bytes do not match their name: no entry can need one."""


def copy_store(
    core: Core, target: Storage, progress: Callable[[CopiedStore], object] | None = None
) -> CopiedStore:
    """Copy everything in the storage of a store.

    Args:
        core: The store.
        target: The target, which is empty or holds a part of the same store.
        progress: Called with the totals so far, after each thread.

    Raises:
        StoreExists: The target holds other data.
        StorageUnavailable: Either side failed; the copy can be started again.
    """
    source = core.storage
    threads = [STORE_CHAIN, *(each for each, _ in source.heads() if each != STORE_CHAIN)]
    threads += sorted({*source.blob_threads()} - {*threads})
    known = set(threads)
    for thread in (*dict(target.heads()), *target.blob_threads()):
        if thread not in known:
            raise _other(thread)
    done = CopiedStore(threads_total=len(threads))
    for thread in threads:
        _copy_blobs(source, target, thread, done)
        _copy_records(core, target, thread, done)
        done.threads += 1
        if progress is not None:
            progress(done)
    return done


def _copy_records(core: Core, target: Storage, thread: bytes, done: CopiedStore) -> None:
    source, first = core.storage, 0
    for seq, record in target.scan(thread, 0, descending=True):
        if source.read(thread, seq) != record:
            raise _other(thread)
        first = seq + 1
        break
    label = _label(core, thread) if first == 0 and thread != STORE_CHAIN else None
    for place, records in _runs(source.scan(thread, first)):
        target.append(thread, place, records, blobs={}, label=label)
        label = None
        done.entries += len(records)
        done.bytes += sum(map(_size, records))


def _runs(found: Iterator[tuple[int, Record]]) -> Iterator[tuple[int, list[Record]]]:
    """Yield consecutive records in groups, with the position of the first."""
    run: list[Record] = []
    first = 0
    for seq, record in found:
        if run and (seq != first + len(run) or len(run) == _RECORDS_AT_ONCE):
            yield first, run
            run = []
        if not run:
            first = seq
        run.append(record)
    if run:
        yield first, run


def _copy_blobs(source: Storage, target: Storage, thread: bytes, done: CopiedStore) -> None:
    there = {digest for digest, _ in target.stored_blobs(thread)}
    batch: dict[bytes, bytes] = {}
    size_bytes = 0
    for digest, size in source.stored_blobs(thread):
        if digest in there:
            continue
        data = source.blob(thread, digest, size)
        if data is None or hashlib.sha256(data).digest() != digest:
            done.left_out += 1
            continue
        batch[digest] = data
        size_bytes += len(data)
        if size_bytes >= _BLOBS_BYTES_MAX:
            target.put_blobs(thread, batch)
            done.blobs, done.bytes = done.blobs + len(batch), done.bytes + size_bytes
            batch, size_bytes = {}, 0
    if batch:
        target.put_blobs(thread, batch)
        done.blobs, done.bytes = done.blobs + len(batch), done.bytes + size_bytes


def _label(core: Core, thread: bytes) -> bytes | None:
    """Return the hint from a thread's name to it; None if the name was erased."""
    try:
        namespace, name = claimed_name(core.storage, thread)
    except Missing:
        return None  # blobs of a thread that has no entry
    return label_of(core.store.raw, namespace, name) if name else None


def _size(record: Record) -> int:
    parts = (record.header, record.seals, record.body, record.payload)
    return sum(len(part) for part in parts if part is not None)


def _other(thread: bytes) -> SealpointError:
    return StoreExists(
        f"thread {thread.hex()[:12]}: the target holds something that is not of this store",
        hint="Choose an empty place, or finish the move that was begun there with the same source.",
    )
