# SPDX-License-Identifier: Apache-2.0
"""The part of the storage suite about what goes: `drop`, and blobs that an append needs.

`storage.py` is the address to import from.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Barrier
from time import sleep

from sealpoint.errors import HeadMoved, Missing, UsageError
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
    require_raises,
)

_RACES = 40
_MANY = 1000


class StorageDrops:
    """The tests that are about dropping and needing."""

    def test_append_takes_the_blobs_that_it_needs(self: StorageSuite, tmp_path: Path) -> None:
        """Blobs that were put ahead or came with an earlier entry may be needed, in any number."""
        ahead = named(*(f"blob {number}".encode() for number in range(_MANY)), b"")
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, ahead)
            storage.append(THREAD, 0, [record_of("0")], blobs={LABEL: b"earlier"}, needs=[])
            storage.append(THREAD, 1, [record_of("1")], blobs={}, needs=set(ahead))
            storage.append(THREAD, 2, [record_of("2")], blobs=named(b"new"), needs=[LABEL, LABEL])

            require([seq for seq, _ in storage.scan(THREAD, 0)] == [0, 1, 2], "all are there")
            require(_has(storage, THREAD, *named(b"new")), "and the blob that was given")

    def test_append_without_a_blob_that_it_needs_changes_nothing(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """One absent blob among many is Missing: no entry, blob or label is written."""
        ahead = named(*(f"blob {number}".encode() for number in range(_MANY)))
        given = named(b"given")
        (absent,) = named(b"nobody stored this")
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, {**ahead, LABEL: b"kept"})
            storage.put_blobs(OTHER_THREAD, {absent: b"of another thread"})
            for needs in ([absent], [*ahead, absent], [absent, *ahead], {absent}):
                for records in ([record_of("0")], [record_of("0"), record_of("1")]):
                    for blobs in ({}, {**given, LABEL: b"other"}):
                        _require_missing(storage, records, blobs, needs)

            require(not list(storage.heads()), "no entry is written")
            require(not _has(storage, THREAD, *given), "no blob is written")
            require(storage.blob(THREAD, LABEL, 9) == b"kept", "no blob is replaced")
            require(storage.labelled(LABEL) == [], "no label is written")

    def test_blob_of_the_same_call_is_not_stored_already(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """A blob that an append gives cannot be one that it needs: that one was put ahead."""
        given = named(b"given")
        with opened(self, tmp_path) as storage:
            _require_missing(storage, [record_of("0")], given, list(given))

            require(storage.read(THREAD, 0) is None, "no entry is written")
            require(not _has(storage, THREAD, *given), "no blob is written")

    def test_needed_blob_and_a_drop_exclude_each_other(self: StorageSuite, tmp_path: Path) -> None:
        """Of an append that needs a blob and a drop of it at the same time one has an effect."""
        with opened(self, tmp_path) as one, opened_again(self, tmp_path, one) as two:
            for number in range(_RACES):
                thread, start = number.to_bytes(16, "big"), Barrier(2)
                one.append(thread, 0, [record_of("0")], blobs={LABEL: b"needed"})
                # Each goes first in half of the races, by more or less.
                late_s = number // 2 % 8 * 0.0002
                waits_s = (late_s, 0) if number % 2 else (0, late_s)
                with ThreadPoolExecutor(2) as pool:
                    appending = pool.submit(_needing, one, thread, start, waits_s[0])
                    dropping = pool.submit(_dropping, two, thread, start, waits_s[1])
                appended, dropped = appending.result(), dropping.result()

                require(appended != dropped, "one of the two has an effect")
                require((one.read(thread, 1) is not None) == appended, "the entry, if it won")
                require(_has(two, thread, LABEL) == appended, "the blob, if the entry won")

    def test_dropped_parts_are_gone_and_the_rest_stays(self: StorageSuite, tmp_path: Path) -> None:
        """Payloads go alone, bodies with their payload; headers, seals and records stay."""
        records = [_full(number) for number in range(6)]
        blobs = named(*(f"blob {number}".encode() for number in range(6)), b"")
        gone = set(list(blobs)[:4])
        with opened(self, tmp_path) as storage:
            for thread in (THREAD, OTHER_THREAD):
                storage.append(thread, 0, records, blobs=blobs, label=LABEL)
            storage.drop(THREAD, 5, payloads=[1, 4], bodies=[2, 4], blobs=gone)

            expected = [
                records[0],
                Record(records[1].header, records[1].seals, records[1].body),
                Record(records[2].header, records[2].seals, None),
                records[3],
                Record(records[4].header, records[4].seals, None),
                records[5],
            ]
            for seq, record in enumerate(expected):
                require(storage.read(THREAD, seq) == record, f"record {seq}, read")
            require(list(storage.scan(THREAD, 0)) == list(enumerate(expected)), "in a scan")
            for digest, data in blobs.items():
                kept = None if digest in gone else data
                require(storage.blob(THREAD, digest, SIZE_BYTES_MAX) == kept, "one blob")
            together = storage.blobs(THREAD, list(blobs), SIZE_BYTES_MAX)
            require(not gone & set(together), "several blobs")
            stored = {digest for digest, _ in storage.stored_blobs(THREAD)}
            require(stored == set(blobs) - gone, "the list of blobs")
            require(THREAD in storage.labelled(LABEL), "a label that was not named stays")
            require(THREAD in dict(storage.heads()), "the thread still has its entries")
            others = list(storage.scan(OTHER_THREAD, 0))
            require(others == list(enumerate(records)), "the entries of another thread stay")
            require(_has(storage, OTHER_THREAD, *blobs), "the blobs of another thread stay")

    def test_dropped_label_no_longer_leads_to_the_thread(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """A label is dropped for one thread; other labels and other threads keep theirs."""
        other_label = bytes(32)
        with opened(self, tmp_path) as storage:
            for thread in (THREAD, OTHER_THREAD):
                storage.append(thread, 0, [record_of("0")], blobs={}, label=LABEL)
            storage.append(THREAD, 1, [record_of("1")], blobs={}, label=other_label)
            storage.drop(THREAD, 1, label=LABEL)

            require(storage.labelled(LABEL) == [OTHER_THREAD], "the other thread alone")
            require(storage.labelled(other_label) == [THREAD], "the other label")

    def test_drop_behind_a_newer_entry_changes_nothing(self: StorageSuite, tmp_path: Path) -> None:
        """A record right after the head is HeadMoved: every body, payload, blob, label stays."""
        records = [_full(number) for number in range(4)]
        blobs = named(b"one", b"two")
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, records, blobs=blobs, label=LABEL)
            for head in (-1, 0, 1, 2):
                require_raises(
                    HeadMoved,
                    lambda head=head: storage.drop(  # type: ignore[misc]
                        THREAD, head, payloads=[0], bodies=[1], blobs=list(blobs), label=LABEL
                    ),
                )
                require_raises(
                    HeadMoved,
                    lambda head=head: storage.drop(THREAD, head),  # type: ignore[misc]
                )

            require(list(storage.scan(THREAD, 0)) == list(enumerate(records)), "the entries")
            require(_has(storage, THREAD, *blobs), "the blobs")
            require(storage.labelled(LABEL) == [THREAD], "the label")

    def test_what_is_absent_is_dropped_without_an_error(self: StorageSuite, tmp_path: Path) -> None:
        """A drop may be repeated, may name what never was, and may name nothing."""
        record = _full(0)
        with opened(self, tmp_path) as storage:
            storage.drop(THREAD, -1)
            storage.drop(
                OTHER_THREAD, 7, payloads=[0, 7], bodies=[3, 2**40], blobs=[LABEL], label=LABEL
            )
            storage.append(THREAD, 0, [record], blobs={LABEL: b"blob"}, label=LABEL)
            for _ in range(2):
                storage.drop(THREAD, 0, payloads=[0, 0], blobs=[LABEL, LABEL], label=LABEL)
                storage.drop(THREAD, 0, bodies=[0, 0, 5], payloads=[0], blobs={LABEL})
                storage.drop(THREAD, 9)

            erased = Record(record.header, record.seals, None)
            require(list(storage.scan(THREAD, 0)) == [(0, erased)], "header and seals stay")
            require([*dict(storage.heads())] == [THREAD], "a drop makes no thread")

    def test_blobs_of_a_thread_without_entries_are_dropped(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """A drop with a head of -1 removes the blobs of a thread that crashed before it began."""
        orphans = named(b"one", b"two")
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, orphans)
            storage.drop(THREAD, -1, blobs=list(orphans))

            require(not list(storage.stored_blobs(THREAD)), "no blob is left")
            require(not list(storage.blob_threads()), "the thread has no blob")

    def test_dropped_bytes_are_other_bytes(self: StorageSuite, tmp_path: Path) -> None:
        """The record as it was cannot be appended again once a part of it has been dropped."""
        records = [_full(number) for number in range(3)]
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, records, blobs={LABEL: b"kept"})
            storage.drop(THREAD, 2, payloads=[0], bodies=[1])
            for seq in (0, 1):
                require_raises(
                    HeadMoved,
                    lambda seq=seq: storage.append(  # type: ignore[misc]
                        THREAD, seq, [records[seq]], blobs={LABEL: b"given"}
                    ),
                )
            left = [record for _, record in storage.scan(THREAD, 0)]
            storage.append(THREAD, 0, left, blobs={})

            require(left[2] == records[2], "what was not dropped")
            require(left[0].payload is None, "the payload does not come back")
            require(left[1].body is None, "the body does not come back")
            require(storage.blob(THREAD, LABEL, 9) == b"kept", "a refused append changes nothing")

    def test_dropped_blob_may_be_stored_again(self: StorageSuite, tmp_path: Path) -> None:
        """A drop is about what is stored now; the same bytes may come again, in either way."""
        blobs = named(b"blob", bytes(100_000))
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("0")], blobs=blobs)
            storage.drop(THREAD, 0, blobs=list(blobs))
            storage.put_blobs(THREAD, blobs)
            put = _has(storage, THREAD, *blobs)
            storage.drop(THREAD, 0, blobs=list(blobs))
            storage.append(THREAD, 1, [record_of("1")], blobs=blobs)

            require(put, "by putting it")
            for digest, data in blobs.items():
                require(storage.blob(THREAD, digest, SIZE_BYTES_MAX) == data, "with an entry")

    def test_many_parts_are_dropped_at_once(self: StorageSuite, tmp_path: Path) -> None:
        """The number of positions and blobs of one drop has no bound."""
        blobs = named(*(f"blob {number}".encode() for number in range(_MANY)))
        with opened(self, tmp_path) as storage:
            records = [_full(number) for number in range(_MANY)]
            storage.append(THREAD, 0, records, blobs=blobs)
            half = _MANY // 2
            storage.drop(
                THREAD, _MANY - 1, payloads=range(half), bodies=range(half, _MANY), blobs=blobs
            )

            for seq, record in storage.scan(THREAD, 0):
                require(record.payload is None, f"payload {seq}")
                require((record.body is None) == (seq >= half), f"body {seq}")
            require(not list(storage.stored_blobs(THREAD)), "the blobs")

    def test_scan_goes_on_over_a_drop(self: StorageSuite, tmp_path: Path) -> None:
        """A scan under way neither blocks a drop nor misses a record; no part comes back later."""
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [_full(number) for number in range(200)], blobs={})
            gone = range(100)
            for descending in (False, True):
                scan = storage.scan(THREAD, 0, descending=descending)
                found = list(islice(scan, 3))
                storage.drop(THREAD, 199, bodies=gone)
                found += list(scan)

                numbers = [number for number, _ in found]
                require(sorted(numbers) == list(range(200)), "every record")
                require(all(r.body for n, r in found if n not in gone), "what was not dropped")
            require(all(r.body is None for _, r in storage.scan(THREAD, 0, 99)), "a new scan")

    def test_drop_is_seen_through_every_handle(self: StorageSuite, tmp_path: Path) -> None:
        """A second handle, and one that is opened later, find nothing of what was dropped."""
        with opened(self, tmp_path) as one:
            one.append(THREAD, 0, [_full(0)], blobs={LABEL: b"blob"}, label=LABEL)
            with opened_again(self, tmp_path, one) as two:
                before = two.read(THREAD, 0)
                one.drop(THREAD, 0, bodies=[0], blobs=[LABEL], label=LABEL)

                require(before == _full(0), "it was there before")
                _require_gone(two)
            with opened_again(self, tmp_path, one) as later:
                _require_gone(later)

    def test_drop_that_cannot_be_meant_is_refused(self: StorageSuite, tmp_path: Path) -> None:
        """Sizes and positions outside the contract are UsageError and change nothing."""
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [_full(0)], blobs={LABEL: b"blob"}, label=LABEL)
            calls: list[Callable[[], object]] = [
                lambda: storage.drop(b"short", 0, bodies=[0]),
                lambda: storage.drop(THREAD, -2, bodies=[0]),
                lambda: storage.drop(THREAD, 0, bodies=[0, -1]),
                lambda: storage.drop(THREAD, 0, bodies=[0], payloads=[-1]),
                lambda: storage.drop(THREAD, 0, bodies=[0], blobs=[LABEL, b"short"]),
                lambda: storage.drop(THREAD, 0, bodies=[0], label=b"short"),
                lambda: storage.append(THREAD, 1, [_full(1)], blobs={}, needs=[b"short"]),
                lambda: storage.append(THREAD, 1, [_full(1)], blobs={}, needs=[LABEL, b""]),
            ]
            for call in calls:
                require_raises(UsageError, call)

            require(list(storage.scan(THREAD, 0)) == [(0, _full(0))], "the entry stays whole")
            require(storage.blob(THREAD, LABEL, 9) == b"blob", "the blob stays")
            require(storage.labelled(LABEL) == [THREAD], "the label stays")


def _full(number: int) -> Record:
    """Make a record that has a payload too."""
    record = record_of(str(number))
    return Record(record.header, record.seals, record.body, f"payload {number}".encode())


def _has(storage: Storage, thread: bytes, *digests: bytes) -> bool:
    return all(storage.blob(thread, digest, SIZE_BYTES_MAX) is not None for digest in digests)


def _needing(storage: Storage, thread: bytes, start: Barrier, wait_s: float) -> bool:
    """Whether an append that needs a blob has an effect."""
    start.wait()
    sleep(wait_s)
    try:
        storage.append(thread, 1, [record_of("1")], blobs={}, needs=[LABEL])
    except Missing:
        return False
    return True


def _dropping(storage: Storage, thread: bytes, start: Barrier, wait_s: float) -> bool:
    """Whether a drop of the same blob has an effect."""
    start.wait()
    sleep(wait_s)
    try:
        storage.drop(thread, 0, blobs=[LABEL])
    except HeadMoved:
        return False
    return True


def _require_missing(
    storage: Storage,
    records: list[Record],
    blobs: dict[bytes, bytes],
    needs: list[bytes] | set[bytes],
) -> None:
    require_raises(
        Missing,
        lambda: storage.append(THREAD, 0, records, blobs=blobs, needs=needs, label=LABEL),
    )


def _require_gone(storage: Storage) -> None:
    record = storage.read(THREAD, 0)
    require(record == Record(_full(0).header, _full(0).seals, None), "the body and the payload")
    require(not _has(storage, THREAD, LABEL), "the blob")
    require(not list(storage.stored_blobs(THREAD)), "the list of blobs")
    require(storage.labelled(LABEL) == [], "the label")


_GROUPS = (3, 1, 2, 1, 40, 1, 1)
_TOTAL = sum(_GROUPS)
_TRUNCATE_RACES = 20


class StorageTruncation:
    """The tests that are about taking records away."""

    def test_truncated_records_are_gone_and_the_rest_stays(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """Whatever the appends were, all from the position on goes, and what is before stays."""
        with opened(self, tmp_path) as storage:
            for cut in range(_TOTAL):
                thread = cut.to_bytes(16, "big")
                records = _fill(storage, thread)
                storage.truncate(thread, cut, records[cut].header)

                kept = list(enumerate(records[:cut]))
                require(list(storage.scan(thread, 0)) == kept, f"up to {cut}, in a scan")
                down = list(storage.scan(thread, 0, descending=True))
                require(down == kept[::-1], f"up to {cut}, downwards")
                for seq, record in enumerate(records):
                    found = storage.read(thread, seq)
                    require(found == (record if seq < cut else None), f"record {seq}, read")

    def test_truncated_positions_may_be_written_again(self: StorageSuite, tmp_path: Path) -> None:
        """The place is free for other records, one by one and together."""
        with opened(self, tmp_path) as storage:
            records = _fill(storage, THREAD)
            storage.truncate(THREAD, 4, records[4].header)
            other = [record_of(f"other {number}") for number in range(3)]
            storage.append(THREAD, 4, other[:1], blobs={})
            storage.append(THREAD, 5, other[1:], blobs={})

            expected = list(enumerate([*records[:4], *other]))
            require(list(storage.scan(THREAD, 0)) == expected, "the new ones after the old ones")

    def test_truncating_leaves_all_else(self: StorageSuite, tmp_path: Path) -> None:
        """Blobs stay, and other threads; a thread without records is listed no more."""
        with opened(self, tmp_path) as storage:
            for thread in (THREAD, OTHER_THREAD):
                _fill(storage, thread)
                storage.append(thread, _TOTAL, [record_of("l")], blobs={LABEL: b"b"}, label=LABEL)
            storage.truncate(THREAD, 0, record_of("0").header)

            require([*dict(storage.heads())] == [OTHER_THREAD], "threads with records")
            require(len(list(storage.scan(OTHER_THREAD, 0))) == _TOTAL + 1, "another thread")
            require(set(storage.blob_threads()) == {THREAD, OTHER_THREAD}, "blobs")
            require(OTHER_THREAD in storage.labelled(LABEL), "labels")

    def test_another_record_is_not_truncated(self: StorageSuite, tmp_path: Path) -> None:
        """Without a record of this header there, it is HeadMoved and nothing changes."""
        with opened(self, tmp_path) as storage:
            records = _fill(storage, THREAD)
            calls: list[Callable[[], object]] = [
                lambda: storage.truncate(THREAD, 4, records[3].header),
                lambda: storage.truncate(THREAD, 4, b""),
                lambda: storage.truncate(THREAD, 4, None),
                lambda: storage.truncate(THREAD, _TOTAL, records[-1].header),
                lambda: storage.truncate(THREAD, _TOTAL, b""),
                lambda: storage.truncate(THREAD, _TOTAL, None),
                lambda: storage.truncate(OTHER_THREAD, 0, records[0].header),
            ]
            for call in calls:
                require_raises(HeadMoved, call)

            require(list(storage.scan(THREAD, 0)) == list(enumerate(records)), "all stay")

    def test_truncation_takes_what_lies_beyond_a_hole(self: StorageSuite, tmp_path: Path) -> None:
        """Records after a position that has none go as well."""
        with opened(self, tmp_path) as storage:
            for number in (0, 1, 5, 900):
                storage.append(THREAD, number, [record_of(str(number))], blobs={})
            storage.truncate(THREAD, 1, record_of("1").header)

            require(list(storage.scan(THREAD, 0)) == [(0, record_of("0"))], "only the first stays")

    def test_truncation_that_cannot_be_meant_is_refused(self: StorageSuite, tmp_path: Path) -> None:
        """Sizes and positions outside the contract are UsageError."""
        with opened(self, tmp_path) as storage:
            _fill(storage, THREAD)
            require_raises(UsageError, lambda: storage.truncate(b"short", 0, b""))
            require_raises(UsageError, lambda: storage.truncate(THREAD, -1, b""))

            require(len(list(storage.scan(THREAD, 0))) == _TOTAL, "all stay")

    def test_truncation_and_an_append_exclude_each_other(
        self: StorageSuite, tmp_path: Path
    ) -> None:
        """Of two who truncate the same record one succeeds; what is saved there then stays."""
        with opened(self, tmp_path) as one, opened_again(self, tmp_path, one) as two:
            for number in range(_TRUNCATE_RACES):
                thread, start = number.to_bytes(16, "big"), Barrier(2)
                records = _fill(one, thread)
                with ThreadPoolExecutor(2) as pool:
                    racers = [
                        pool.submit(_replaces, storage, thread, records[5].header, start)
                        for storage in (one, two)
                    ]
                wins = [racer.result() for racer in racers]

                require(sum(wins) == 1, "one of them")
                found = list(two.scan(thread, 5))
                require(found == [(5, record_of("new"))], "what the winner saved")

    def test_truncation_is_seen_through_every_handle(self: StorageSuite, tmp_path: Path) -> None:
        """A second handle finds nothing of what went, also in a scan that is under way."""
        with opened(self, tmp_path) as one, opened_again(self, tmp_path, one) as two:
            records = _fill(one, THREAD)
            scan = two.scan(THREAD, 0)
            first = list(islice(scan, 2))
            one.truncate(THREAD, 3, records[3].header)
            rest = list(scan)

            require(first == list(enumerate(records[:2])), "what was read before")
            require([*first, *rest] == list(enumerate(records))[: 2 + len(rest)], "in order")
            require(two.read(THREAD, 3) is None, "another handle")
            require(list(two.scan(THREAD, 0)) == list(enumerate(records[:3])), "a new scan")


def _fill(storage: Storage, thread: bytes) -> list[Record]:
    """Append records in groups of several sizes."""
    records = [record_of(str(number)) for number in range(_TOTAL)]
    first = 0
    for size in _GROUPS:
        storage.append(thread, first, records[first : first + size], blobs={})
        first += size
    return records


def _replaces(storage: Storage, thread: bytes, header: bytes, start: Barrier) -> bool:
    """Whether a truncation has an effect; if so, something is saved in its place."""
    start.wait()
    try:
        storage.truncate(thread, 5, header)
    except HeadMoved:
        return False
    storage.append(thread, 5, [record_of("new")], blobs={})
    return True
