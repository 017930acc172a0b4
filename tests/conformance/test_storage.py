# SPDX-License-Identifier: Apache-2.0
"""Every backend passes the one suite, and the suite fails a backend that breaks a promise."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import SkipTest

import pytest

from sealpoint.errors import SealpointError
from sealpoint.storage import Record, Storage
from sealpoint.storage.memory import MemoryStorage
from sealpoint.storage.sqlite import SqliteStorage
from sealpoint.testing.conformance.storage import StorageConformance


class TestMemoryStorage(StorageConformance):
    """The reference implementation, which lives in one handle."""

    shared = False

    def open(self, place: Path) -> Storage:
        """Make a new one."""
        del place
        return MemoryStorage()


class TestSqliteStorage(StorageConformance):
    """The SQLite backend."""

    def open(self, place: Path) -> Storage:
        """Open the one file of a directory."""
        return SqliteStorage(place / "store.db", create=True)


class _Overwriting(MemoryStorage):
    """Breaks the first promise: the later append wins."""

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        label: bytes | None = None,
    ) -> None:
        """Forget what lies at the positions, then append."""
        for number in range(seq, seq + len(records)):
            if self._records.get(thread, {}).pop(number, None) is not None:
                self._positions[thread].remove(number)
        super().append(thread, seq, records, blobs=blobs, label=label)


class _BlobsFirst(MemoryStorage):
    """Breaks all-or-nothing: the blobs of a refused append stay."""

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        label: bytes | None = None,
    ) -> None:
        """Write the blobs in a step of their own."""
        self.put_blobs(thread, blobs)
        super().append(thread, seq, records, blobs=blobs, label=label)


class _KeepingBlobs(MemoryStorage):
    """Breaks replacement: the first bytes under a digest stay."""

    def _put(self, thread: bytes, blobs: Mapping[bytes, bytes]) -> None:
        super()._put(thread, {d: b for d, b in blobs.items() if (thread, d) not in self._blobs})


class _Unbounded(MemoryStorage):
    """Breaks the bound: a blob comes back however large it is."""

    def blob(self, thread: bytes, digest: bytes, size_bytes_max: int) -> bytes | None:
        """Ignore the bound."""
        del size_bytes_max
        return super().blob(thread, digest, 2**40)


class _UnboundedTogether(MemoryStorage):
    """Breaks the bound of several blobs: the large ones come along."""

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Ignore the bound."""
        del size_bytes_max
        return super().blobs(thread, digests, 2**40)


class _MixedUp(MemoryStorage):
    """Breaks the naming of several blobs: each comes under the digest of its neighbour."""

    def blobs(
        self, thread: bytes, digests: Sequence[bytes], size_bytes_max: int
    ) -> dict[bytes, bytes]:
        """Shift the bytes by one place."""
        found = super().blobs(thread, digests, size_bytes_max)
        data = list(found.values())
        return dict(zip(found, data[1:] + data[:1], strict=True))


class _ForgetfulOfPayloads(MemoryStorage):
    """Breaks the record: what lies beside an entry is not kept."""

    def append(
        self,
        thread: bytes,
        seq: int,
        records: Sequence[Record],
        *,
        blobs: Mapping[bytes, bytes],
        label: bytes | None = None,
    ) -> None:
        """Leave the payloads out."""
        bare = [Record(record.header, record.seals, record.body) for record in records]
        super().append(thread, seq, bare, blobs=blobs, label=label)


class _NeverClosed(MemoryStorage):
    """Breaks closing: it goes on after it."""

    def close(self) -> None:
        """Do nothing."""


def _failed_tests(broken: type[MemoryStorage], place: Path) -> set[str]:
    """Run the whole suite over a backend and name the tests that fail."""

    class Suite(StorageConformance):
        shared = False

        def open(self, place: Path) -> Storage:
            del place
            return broken()

    suite = Suite()
    failed = set()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_"):
            try:
                test(place)
            except SkipTest:
                continue
            except (AssertionError, SealpointError):
                failed.add(name)
    return failed


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (_Overwriting, "test_other_bytes_move_nothing"),
        (_Overwriting, "test_one_of_many_racers_wins_each_position"),
        (_BlobsFirst, "test_refused_append_replaces_no_blob"),
        (_KeepingBlobs, "test_given_blob_replaces_a_stored_one_that_differs"),
        (_Unbounded, "test_blob_beyond_the_bound_is_refused"),
        (_UnboundedTogether, "test_blobs_together_leave_large_ones_out"),
        (_MixedUp, "test_blobs_together_are_what_each_would_be_alone"),
        (_ForgetfulOfPayloads, "test_entry_is_read_back_as_it_was_written"),
        (_ForgetfulOfPayloads, "test_other_bytes_move_nothing"),
        (_NeverClosed, "test_closed_storage_is_not_used"),
    ],
)
def test_broken_backend_fails_the_suite(
    broken: type[MemoryStorage], test: str, tmp_path: Path
) -> None:
    """The suite notices a backend that breaks a promise, in the test that is about it."""
    failed = _failed_tests(broken, tmp_path)

    assert test in failed


def test_reference_fails_nothing_when_run_without_a_runner(tmp_path: Path) -> None:
    """The suite needs no pytest: its methods take a directory and raise."""
    assert not _failed_tests(MemoryStorage, tmp_path)
