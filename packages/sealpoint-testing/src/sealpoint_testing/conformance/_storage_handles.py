# SPDX-License-Identifier: Apache-2.0
"""The part of the storage suite about handles: closing, reopening, sharing and racing.

Also what all parts need: how a store is opened, and how a test says, without any test framework,
that a promise was broken. `storage.py` is the address to import from.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Protocol
from unittest import SkipTest

from sealpoint.errors import HeadMoved, SealpointError, UsageError
from sealpoint.storage import Record, Storage


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Fail a test with the promise that was broken.

    Raises:
        AssertionError: The condition does not hold.
    """
    if not condition:
        raise AssertionError(message)


THREAD = bytes(range(16))
OTHER_THREAD = bytes(range(1, 17))
LABEL = bytes(range(32))
SIZE_BYTES_MAX = 16 * 1024 * 1024
_RACERS = 8
_RACED_POSITIONS = 25
_SHARED_POSITIONS = 20


def require_raises(expected: type[SealpointError], call: Callable[[], object]) -> None:
    """Fail the test unless a call raises exactly this error."""
    try:
        call()
    except expected:
        return
    raise AssertionError(f"expected {expected.__name__}, found no error")


def record_of(text: str) -> Record:
    """Make a record that is like no other."""
    return Record(f"header {text}".encode(), f"seals {text}".encode(), f"body {text}".encode())


def named(*blobs: bytes) -> dict[bytes, bytes]:
    """Name blobs by their digests."""
    return {hashlib.sha256(blob).digest(): blob for blob in blobs}


class StorageSuite(Protocol):
    """The attributes and methods that the mixed-in parts of the suite need from the class."""

    shared: bool
    """Whether opening a place again, at the same time or later, leads to the same store."""
    many_blobs: int
    """How many blobs the test of memory stores."""

    def open(self, place: Path) -> Storage:
        """Open the store in an empty directory, making it the first time."""
        ...


@contextmanager
def opened(suite: StorageSuite, place: Path) -> Iterator[Storage]:
    """The store of a place, closed at the end of the block."""
    storage = suite.open(place)
    try:
        yield storage
    finally:
        storage.close()


@contextmanager
def opened_again(suite: StorageSuite, place: Path, first: Storage) -> Iterator[Storage]:
    """A second handle on the store of a first one, or that one where there is only one."""
    if not suite.shared:
        yield first
        return
    with opened(suite, place) as storage:
        yield storage


def _changes(storage: Storage) -> list[Callable[[], object]]:
    """One of each kind of commit; at the end there is no entry."""
    blobs = named(b"one", b"two")
    return [
        lambda: storage.append(THREAD, 0, [record_of("0")], blobs={}),
        lambda: storage.append(THREAD, 1, [record_of("1")], blobs=blobs),
        lambda: storage.drop(THREAD, 1, bodies=[0], blobs=list(blobs)),
        lambda: storage.put_blobs(OTHER_THREAD, blobs),
        lambda: storage.drop(OTHER_THREAD, -1, blobs=list(blobs)),
        lambda: storage.truncate(THREAD, 0, record_of("0").header),
    ]


class StorageHandles:
    """The tests that are about handles."""

    def test_closed_storage_is_not_used(self: StorageSuite, tmp_path: Path) -> None:
        """Closing twice is allowed; any other call afterwards is UsageError."""
        storage = self.open(tmp_path)
        storage.append(THREAD, 0, [record_of("0")], blobs={})
        storage.close()
        storage.close()

        calls: list[Callable[[], object]] = [
            lambda: storage.append(THREAD, 1, [record_of("1")], blobs={}),
            lambda: storage.put_blobs(THREAD, {LABEL: b""}),
            lambda: storage.read(THREAD, 0),
            lambda: storage.headers(THREAD, [0]),
            lambda: list(storage.scan(THREAD, 0)),
            lambda: storage.blob(THREAD, LABEL, 1),
            lambda: storage.blobs(THREAD, [LABEL], 1),
            lambda: list(storage.stored_blobs(THREAD)),
            storage.version,
            lambda: list(storage.heads()),
            lambda: list(storage.blob_threads()),
            lambda: storage.labelled(LABEL),
            lambda: storage.drop(THREAD, 0, bodies=[0]),
            lambda: storage.truncate(THREAD, 0, record_of("0").header),
            storage.compact,
        ]
        for call in calls:
            require_raises(UsageError, call)

    def test_one_of_many_racers_wins_each_position(self: StorageSuite, tmp_path: Path) -> None:
        """Eight OS threads after the same positions: one append each succeeds, whole."""
        start = Barrier(_RACERS)
        handles = [self.open(tmp_path)]
        handles += [self.open(tmp_path) if self.shared else handles[0] for _ in range(_RACERS - 1)]

        def race(racer: int) -> list[int]:
            won = []
            start.wait()
            for number in range(_RACED_POSITIONS):
                record = record_of(f"{number} of {racer}")
                try:
                    handles[racer].append(THREAD, number, [record], blobs=named(record.header))
                except HeadMoved:
                    continue
                won.append(number)
            return won

        try:
            with ThreadPoolExecutor(_RACERS) as pool:
                wins = list(pool.map(race, range(_RACERS)))
            stored = dict(handles[0].scan(THREAD, 0))
            for racer, won in enumerate(wins):
                for number in won:
                    record = record_of(f"{number} of {racer}")
                    require(stored[number] == record, "the winner's record is there")
                    (digest,) = named(record.header)
                    require(
                        handles[racer].blob(THREAD, digest, SIZE_BYTES_MAX) == record.header,
                        "the winner's blob is there",
                    )
        finally:
            for handle in handles:
                handle.close()

        won_at = sorted(itertools.chain.from_iterable(wins))
        require(won_at == list(range(_RACED_POSITIONS)), "each position is won exactly once")

    def test_readers_are_not_disturbed_by_a_writer(self: StorageSuite, tmp_path: Path) -> None:
        """OS threads that read while another appends see only whole entries, without holes."""
        total = 100
        with opened(self, tmp_path) as storage:

            def read_all() -> bool:
                whole = True
                for _ in range(total):
                    found = list(storage.scan(THREAD, 0))
                    whole &= found == [(n, record_of(str(n))) for n in range(len(found))]
                return whole

            with ThreadPoolExecutor(3) as pool:
                readers = [pool.submit(read_all) for _ in range(2)]
                for number in range(0, total, 2):
                    group = [record_of(str(number)), record_of(str(number + 1))]
                    storage.append(THREAD, number, group, blobs=named(b"blob"))

                require(all(reader.result() for reader in readers), "whole entries in order")

    def test_everything_survives_close_and_reopening(self: StorageSuite, tmp_path: Path) -> None:
        """Everything that was written before a close is there after it."""
        if not self.shared:
            raise SkipTest("this storage has no second handle")
        records = [record_of(str(number)) for number in range(3)]
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, records, blobs={LABEL: b"blob"}, label=LABEL)
            storage.put_blobs(OTHER_THREAD, {LABEL: b"orphan"})
        with opened(self, tmp_path) as storage:
            require(list(storage.scan(THREAD, 0)) == list(enumerate(records)), "entries")
            require(storage.blob(THREAD, LABEL, 9) == b"blob", "blobs")
            require(storage.blob(OTHER_THREAD, LABEL, 9) == b"orphan", "orphans")
            require([*dict(storage.heads())] == [THREAD], "threads")
            require(storage.labelled(LABEL) == [THREAD], "labels")
            require_raises(
                HeadMoved, lambda: storage.append(THREAD, 0, [record_of("other")], blobs={})
            )

    def test_version_is_another_after_every_commit(self: StorageSuite, tmp_path: Path) -> None:
        """The version changes with every commit of any handle, and only with a commit."""
        with opened(self, tmp_path) as storage, opened_again(self, tmp_path, storage) as other:
            if storage.version() is None:
                raise SkipTest("this storage cannot tell")
            for change in (*_changes(storage), *_changes(other)):
                before = storage.version()
                require(storage.version() == before, "a look changes nothing")
                list(storage.scan(THREAD, 0))
                require(storage.version() == before, "nor does a read")
                change()
                require(storage.version() != before, "a commit shows before anything is read")

    def test_version_counts_the_appends_of_its_handle(self: StorageSuite, tmp_path: Path) -> None:
        """A handle that has appended sees in the version whether another has committed since."""
        with opened(self, tmp_path) as storage, opened_again(self, tmp_path, storage) as other:
            before = storage.version()
            if before is None:
                raise SkipTest("this storage cannot tell")
            storage.append(THREAD, 0, [record_of("0")], blobs={})
            storage.append(THREAD, 1, [record_of("1"), record_of("2")], blobs=named(b"one"))
            connection, others, own = before
            require(storage.version() == (connection, others, own + 2), "one for each append")
            other.append(THREAD, 3, [record_of("3")], blobs={})
            require(storage.version() != (connection, others, own + 3), "none for that of others")

    def test_second_handle_is_the_same_store(self: StorageSuite, tmp_path: Path) -> None:
        """Two handles on one place see each other's appends at once and exclude each other."""
        if not self.shared:
            raise SkipTest("this storage has no second handle")
        with opened(self, tmp_path) as one, opened(self, tmp_path) as two:
            for number in range(_SHARED_POSITIONS):
                writer, reader = (one, two) if number % 2 else (two, one)
                writer.append(THREAD, number, [record_of(str(number))], blobs={})
                require(reader.read(THREAD, number) == record_of(str(number)), "seen at once")
                require_raises(
                    HeadMoved,
                    lambda reader=reader, number=number: reader.append(  # type: ignore[misc]
                        THREAD, number, [record_of("other")], blobs={}
                    ),
                )
            one.close()

            require(
                len(list(two.scan(THREAD, 0))) == _SHARED_POSITIONS, "closing one leaves the other"
            )
