# SPDX-License-Identifier: Apache-2.0
"""The part of the storage suite about what is stored: lists of blobs, and `compact`.

`storage.py` is the address to import from. Where a backend keeps its bytes in files under the
place it was given, they are searched for what was dropped; what a backend keeps elsewhere its own
tests have to search.
"""

import hashlib
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import sleep

from sealpoint.errors import HeadMoved
from sealpoint.storage import Record, Storage
from sealpoint_testing.conformance._storage_handles import (
    LABEL,
    OTHER_THREAD,
    SIZE_BYTES_MAX,
    THREAD,
    StorageSuite,
    named,
    opened,
    opened_again,
    record_of,
    require,
)

_MIB = 1024 * 1024
_MARK_BYTES = 24


class StorageCompaction:
    """The tests that are about lists of blobs and about compacting."""

    def test_stored_blobs_are_listed_with_their_sizes(self: StorageSuite, tmp_path: Path) -> None:
        """Every blob of a thread comes once, in the order of digests, with its exact size."""
        first, last = bytes(32), b"\xff" * 32
        blobs = named(*(bytes(number * 7) for number in range(400)), bytes(3 * _MIB))
        blobs |= {first: b"first", last: b"", first[:-1] + b"\x01": b"second"}
        with opened(self, tmp_path) as storage:
            storage.put_blobs(OTHER_THREAD, named(b"of another thread"))
            storage.put_blobs(THREAD, blobs)
            storage.append(THREAD, 0, [record_of("0")], blobs={first: b"replaced"})
            found = list(storage.stored_blobs(THREAD))

            blobs[first] = b"replaced"
            expected = [(digest, len(blobs[digest])) for digest in sorted(blobs)]
            require(found == expected, "all of them, in order, each with its size")
            require(not list(storage.stored_blobs(bytes(16))), "none of an unknown thread")

    def test_blobs_may_come_and_go_while_they_are_listed(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """A list under way neither blocks a writer nor loses what stays; its order holds."""
        stay = named(*(f"stay {number}".encode() for number in range(500)))
        come = named(*(f"come {number}".encode() for number in range(500)))
        go = named(*(f"go {number}".encode() for number in range(500)))
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("0")], blobs={**stay, **go})
            listing = storage.stored_blobs(THREAD)
            found = list(islice(listing, 3))
            storage.put_blobs(THREAD, come)
            storage.drop(THREAD, 0, blobs=list(go))
            storage.compact()
            found += list(listing)

            digests = [digest for digest, _ in found]
            require(digests == sorted(set(digests)), "in order, each once")
            require(set(stay) <= set(digests), "what stays is listed")
            require(set(digests) <= {*stay, *come, *go}, "and nothing else")

    def test_memory_does_not_follow_the_blobs_that_are_listed(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """Neither many blobs nor a large one are in memory while they are listed."""
        large = hashlib.shake_256(b"large").digest(8 * _MIB)
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, named(*(str(n).encode() for n in range(self.many_blobs))))
            storage.put_blobs(THREAD, {LABEL: large})
            list(storage.stored_blobs(OTHER_THREAD))
            tracemalloc.start()
            try:
                count = sum(1 for _ in storage.stored_blobs(THREAD))
                _, peak_bytes = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()

            require(count == self.many_blobs + 1, "all of them are listed")
            require(peak_bytes < 45 * self.many_blobs, "memory stays below a list of digests")

    def test_threads_with_blobs_are_listed_once_each(self: StorageSuite, tmp_path: Path) -> None:
        """A thread is listed as long as it has a blob, whether or not it has an entry."""
        threads = [bytes([number]) * 16 for number in range(0, 256, 5)]
        bare, emptied = b"bare thread 0123", b"thread emptied 0"
        with opened(self, tmp_path) as storage:
            before = list(storage.blob_threads())
            for thread in [*threads, emptied]:
                storage.put_blobs(thread, named(b"one", b"two", b""))
            storage.append(threads[3], 0, [record_of("0")], blobs=named(b"three"))
            storage.append(bare, 0, [record_of("0")], blobs={})
            storage.drop(emptied, -1, blobs=list(named(b"one", b"two", b"")))
            found = list(storage.blob_threads())

            require(before == [], "a new store has none")
            require(len(found) == len(set(found)), "each once")
            require(set(found) == set(threads), "each that has a blob, and no other")
            require(
                set(dict(storage.heads())) == {threads[3], bare}, "threads are those with entries"
            )

    def test_compacting_changes_nothing_that_is_stored(self: StorageSuite, tmp_path: Path) -> None:
        """Entries, blobs and labels are the same before and after, in any state of the store."""
        blobs = named(b"", b"small", bytes(200_000))
        records = [Record(b"h%d" % n, b"s", b"b%d" % n, b"p" * (n * 50)) for n in range(100)]
        with opened(self, tmp_path) as storage:
            storage.compact()
            for thread in (THREAD, OTHER_THREAD):
                storage.append(thread, 0, records, blobs=blobs, label=LABEL)
            storage.put_blobs(bytes(16), named(b"orphan"))
            storage.drop(THREAD, 99, payloads=range(50), bodies=range(20), blobs=named(b"small"))
            before = _content(storage)
            for _ in range(2):
                storage.compact()
                require(_content(storage) == before, "as it was before")
            storage.append(THREAD, 100, [record_of("after")], blobs=named(b"small"))
            with opened_again(self, tmp_path, storage) as other:
                require(_content(other) == _content(storage), "for another handle too")
                require(other.read(THREAD, 100) == record_of("after"), "and writing continues")

    def test_nothing_dropped_is_left_in_any_file(self: StorageSuite, tmp_path: Path) -> None:
        """After compacting, no file holds a run of bytes that was dropped; the rest is there."""
        kept, gone = _Marks("kept"), _Marks("gone")
        label, total = hashlib.sha256(b"gone").digest(), 30
        with opened(self, tmp_path) as storage, opened_again(self, tmp_path, storage) as other:
            digests: list[bytes] = []
            for number in range(total):
                storage.append(OTHER_THREAD, number, [kept.record()], blobs=kept.blobs(number))
                blobs = gone.blobs(number)
                storage.append(THREAD, number, [gone.record()], blobs=blobs, label=label)
                digests += blobs
                if number in (3, 10, 17):
                    # Some go early, so that what comes later is written over and between them.
                    storage.drop(THREAD, number, bodies=range(number), blobs=digests)
                    list(other.scan(THREAD, 0))
            storage.drop(THREAD, total - 1, bodies=range(total), blobs=digests, label=label)
            storage.compact()
            content = _files(tmp_path)

            require(gone.found(content) == [], "no file holds what was dropped")
            spelled = content.lower()
            for digest in (*digests, label):
                require(digest not in content, "nor a digest or label of it")
                require(digest.hex().encode() not in spelled, "nor in its name")
            bodies = b"".join(record.body or b"" for _, record in other.scan(OTHER_THREAD, 0))
            require(len(kept.found(bodies)) == total, "what was not dropped is there")

    def test_compacting_gives_space_back(self: StorageSuite, tmp_path: Path) -> None:
        """The files of a store follow what is stored, not what ever was."""
        small, large = bytes(16), hashlib.shake_256(b"large")
        with opened(self, tmp_path) as storage:
            blobs = named(*(large.digest(_MIB - n) for n in range(8)))
            storage.append(THREAD, 0, [record_of("0")], blobs=blobs)
            storage.append(THREAD, 1, [record_of("1")], blobs=named(small))
            full_bytes = len(_files(tmp_path))
            storage.drop(THREAD, 1, blobs=list(blobs)[1:])
            storage.compact()
            left_bytes = len(_files(tmp_path))

        if full_bytes >= 8 * _MIB - 64:  # otherwise it keeps its bytes elsewhere
            require(left_bytes < 2 * _MIB, "one megabyte of eight was left to be stored")

    def test_compacting_is_safe_while_others_read_and_write(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """OS threads that append, drop and read during it lose nothing and see only whole data."""
        total = 150
        with opened(self, tmp_path) as storage, opened_again(self, tmp_path, storage) as other:

            def write() -> None:
                for number in range(total):
                    blobs = named(bytes([number]) * 3000)
                    other.append(THREAD, number, [record_of(str(number))], blobs=blobs)
                    if number % 3 == 0:
                        with suppress(HeadMoved):
                            other.drop(THREAD, number, bodies=[number], blobs=blobs)

            def read() -> bool:
                whole = True
                for _ in range(total):
                    found = list(other.scan(THREAD, 0))
                    whole &= [seq for seq, _ in found] == list(range(len(found)))
                return whole

            with ThreadPoolExecutor(2) as pool:
                writer, reader = pool.submit(write), pool.submit(read)
                while not (writer.done() and reader.done()):
                    storage.compact()
                    sleep(0.005)  # somebody else's turn
                writer.result()
                require(reader.result(), "a reader sees whole entries in order")
            for number, record in storage.scan(THREAD, 0):
                (digest,) = named(bytes([number]) * 3000)
                stored = storage.blob(THREAD, digest, SIZE_BYTES_MAX)
                dropped = number % 3 == 0
                require((record.body is None) == dropped, f"body {number}")
                require((stored is None) == dropped, f"blob {number}")
            require(storage.read(THREAD, total - 1) is not None, "every entry is there")


class _Marks:
    """Bytes that occur nowhere else, and a search for any of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: list[tuple[str, bytes]] = []

    def record(self) -> Record:
        """Make a record with a body and a payload of such bytes."""
        return Record(b"header", b"seals", self._new("body", 300), self._new("payload", 500))

    def blobs(self, number: int) -> dict[bytes, bytes]:
        """Make a blob that shares a page with others, one about as large as a page, and more."""
        return named(
            self._new("small blob", 100 + number),
            self._new("blob of a page", 4000 + number),
            self._new("large blob", 20_000 + number),
        )

    def found(self, content: bytes) -> list[str]:
        """Name the marks that occur."""
        return [name for name, mark in self._made if mark in content]

    def _new(self, what: str, size_bytes: int) -> bytes:
        """Make bytes with a mark at the end of each 1000 of them, and at their own end."""
        data = bytearray()
        while len(data) < size_bytes:
            name = f"{self._name} {what} {len(self._made)}"
            mark = hashlib.sha256(name.encode()).digest()[:_MARK_BYTES]
            self._made.append((name, mark))
            part_bytes = min(1000, size_bytes - len(data))
            data += bytes(part_bytes - _MARK_BYTES if part_bytes > _MARK_BYTES else 0) + mark
        return bytes(data)


def _files(place: Path) -> bytes:
    """Everything in the files under a place, with the names of the files."""
    content = bytearray()
    for each in sorted(place.rglob("*")):
        content += str(each.relative_to(place)).encode()
        if each.is_file():
            with suppress(FileNotFoundError):
                content += each.read_bytes()
    return bytes(content)


def _content(storage: Storage) -> list[object]:
    """Everything that the methods of a storage give."""
    content: list[object] = [sorted(storage.heads()), sorted(storage.blob_threads())]
    for thread in (THREAD, OTHER_THREAD, bytes(16)):
        content.append(list(storage.scan(thread, 0)))
        for digest, size_bytes in storage.stored_blobs(thread):
            content.append((digest, size_bytes, storage.blob(thread, digest, SIZE_BYTES_MAX)))
    content.append(sorted(storage.labelled(LABEL)))
    return content
