# SPDX-License-Identifier: Apache-2.0
"""Every backend passes the one suite, and the suite fails a backend that breaks a promise."""

import inspect
from pathlib import Path
from unittest import SkipTest

import pytest

from sealpoint.errors import SealpointError
from sealpoint.storage import Storage
from sealpoint.storage.memory import MemoryStorage
from sealpoint.storage.sqlite import SqliteStorage
from sealpoint_testing.conformance.storage import StorageConformance
from tests.conformance import broken


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


def _suite_of(backend: type[MemoryStorage | SqliteStorage]) -> StorageConformance:
    class Suite(StorageConformance):
        shared = issubclass(backend, SqliteStorage)

        def open(self, place: Path) -> Storage:
            if issubclass(backend, SqliteStorage):
                return backend(place / "store.db", create=True)
            return backend()

    return Suite()


@pytest.mark.parametrize(
    ("backend", "test"),
    [
        (broken.Overwriting, "test_other_bytes_move_nothing"),
        (broken.Overwriting, "test_one_of_many_racers_wins_each_position"),
        (broken.Overwriting, "test_dropped_bytes_are_other_bytes"),
        (broken.BlobsFirst, "test_refused_append_replaces_no_blob"),
        (broken.BlobsFirst, "test_append_without_a_blob_that_it_needs_changes_nothing"),
        (broken.BlobsFirst, "test_blob_of_the_same_call_is_not_stored_already"),
        (broken.KeepingBlobs, "test_given_blob_replaces_a_stored_one_that_differs"),
        (broken.Unbounded, "test_blob_beyond_the_bound_is_refused"),
        (broken.UnboundedTogether, "test_blobs_together_leave_large_ones_out"),
        (broken.MixedHeaders, "test_headers_together_are_those_of_the_records"),
        (broken.MixedUp, "test_blobs_together_are_what_each_would_be_alone"),
        (broken.ForgetfulOfPayloads, "test_entry_is_read_back_as_it_was_written"),
        (broken.ForgetfulOfPayloads, "test_other_bytes_move_nothing"),
        (broken.NeverClosed, "test_closed_storage_is_not_used"),
        (broken.Needless, "test_append_without_a_blob_that_it_needs_changes_nothing"),
        (broken.LookingAhead, "test_needed_blob_and_a_drop_exclude_each_other"),
        (broken.Headless, "test_drop_behind_a_newer_entry_changes_nothing"),
        (broken.Headless, "test_needed_blob_and_a_drop_exclude_each_other"),
        (broken.Headless, "test_drop_that_cannot_be_meant_is_refused"),
        (broken.KeepingPayloads, "test_dropped_parts_are_gone_and_the_rest_stays"),
        (broken.RemovingRecords, "test_dropped_parts_are_gone_and_the_rest_stays"),
        (broken.RemovingRecords, "test_scan_goes_on_over_a_drop"),
        (broken.RemovingLabels, "test_dropped_label_no_longer_leads_to_the_thread"),
        (broken.Strict, "test_what_is_absent_is_dropped_without_an_error"),
        (broken.Remembering, "test_dropped_blob_may_be_stored_again"),
        (broken.Unordered, "test_stored_blobs_are_listed_with_their_sizes"),
        (broken.Unordered, "test_blobs_may_come_and_go_while_they_are_listed"),
        (broken.AllAtOnce, "test_memory_does_not_follow_the_blobs_that_are_listed"),
        (broken.FirstPositions, "test_heads_follow_what_is_appended_and_taken_away"),
        (broken.OnlyWithEntries, "test_threads_with_blobs_are_listed_once_each"),
        (broken.OnlyWithEntries, "test_blobs_of_a_thread_without_entries_are_dropped"),
        (broken.Unasked, "test_another_record_is_not_truncated"),
        (broken.Unasked, "test_truncation_and_an_append_exclude_each_other"),
        (broken.OneOnly, "test_truncated_records_are_gone_and_the_rest_stays"),
        (broken.OneOnly, "test_truncation_takes_what_lies_beyond_a_hole"),
        (broken.Collecting, "test_compacting_changes_nothing_that_is_stored"),
        (broken.NothingNew, "test_version_is_another_after_every_commit"),
        (broken.NothingNew, "test_version_counts_the_appends_of_its_handle"),
        (broken.OthersCounted, "test_version_counts_the_appends_of_its_handle"),
        (broken.NeverCompact, "test_nothing_dropped_is_left_in_any_file"),
        (broken.NeverCompact, "test_compacting_gives_space_back"),
    ],
)
def test_broken_backend_fails_the_suite(
    backend: type[MemoryStorage | SqliteStorage], test: str, tmp_path: Path
) -> None:
    """The suite notices a backend that breaks a promise, in the test that is about it."""
    with pytest.raises((AssertionError, SealpointError)):
        getattr(_suite_of(backend), test)(tmp_path)


def test_reference_fails_nothing_when_run_without_a_runner(tmp_path: Path) -> None:
    """The suite needs no pytest: its methods take a directory and raise."""
    ran = 0
    for name, test in inspect.getmembers(_suite_of(MemoryStorage), inspect.ismethod):
        if name.startswith("test_"):
            ran += 1
            try:
                test(tmp_path)
            except SkipTest:
                continue

    assert ran > 40
