# SPDX-License-Identifier: Apache-2.0
"""The part of the storage suite about `truncate`: records that a restore was accepted without.

`storage.py` is the address to import from.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from threading import Barrier

from sealpoint.errors import HeadMoved, UsageError
from sealpoint.storage import Record, Storage
from sealpoint.testing.conformance._require import require
from sealpoint.testing.conformance._storage_drops import StorageDrops
from sealpoint.testing.conformance._storage_handles import (
    LABEL,
    OTHER_THREAD,
    THREAD,
    record_of,
    require_raises,
)

__all__ = ["StorageTruncation"]

_GROUPS = (3, 1, 2, 1, 40, 1, 1)
_TOTAL = sum(_GROUPS)
_RACES = 20


class StorageTruncation(StorageDrops):
    """The tests that are about taking records away."""

    def test_truncated_records_are_gone_and_the_rest_stays(self, tmp_path: Path) -> None:
        """Whatever the appends were, all from the position on goes, and what is before stays."""
        with self.opened(tmp_path) as storage:
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

    def test_truncated_positions_may_be_written_again(self, tmp_path: Path) -> None:
        """The place is free for other records, one by one and together."""
        with self.opened(tmp_path) as storage:
            records = _fill(storage, THREAD)
            storage.truncate(THREAD, 4, records[4].header)
            other = [record_of(f"other {number}") for number in range(3)]
            storage.append(THREAD, 4, other[:1], blobs={})
            storage.append(THREAD, 5, other[1:], blobs={})

            expected = list(enumerate([*records[:4], *other]))
            require(list(storage.scan(THREAD, 0)) == expected, "the new ones after the old ones")

    def test_truncating_leaves_all_else(self, tmp_path: Path) -> None:
        """Blobs stay, and other threads; a thread without records is listed no more."""
        with self.opened(tmp_path) as storage:
            for thread in (THREAD, OTHER_THREAD):
                _fill(storage, thread)
                storage.append(thread, _TOTAL, [record_of("l")], blobs={LABEL: b"b"}, label=LABEL)
            storage.truncate(THREAD, 0, record_of("0").header)

            require(list(storage.threads()) == [OTHER_THREAD], "threads with records")
            require(len(list(storage.scan(OTHER_THREAD, 0))) == _TOTAL + 1, "another thread")
            require(set(storage.blob_threads()) == {THREAD, OTHER_THREAD}, "blobs")
            require(OTHER_THREAD in storage.labelled(LABEL), "labels")

    def test_another_record_is_not_truncated(self, tmp_path: Path) -> None:
        """Without a record of this header there, it is HeadMoved and nothing changes."""
        with self.opened(tmp_path) as storage:
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

    def test_truncation_takes_what_lies_beyond_a_hole(self, tmp_path: Path) -> None:
        """Records after a position that has none go as well."""
        with self.opened(tmp_path) as storage:
            for number in (0, 1, 5, 900):
                storage.append(THREAD, number, [record_of(str(number))], blobs={})
            storage.truncate(THREAD, 1, record_of("1").header)

            require(list(storage.scan(THREAD, 0)) == [(0, record_of("0"))], "only the first stays")

    def test_truncation_that_cannot_be_meant_is_refused(self, tmp_path: Path) -> None:
        """Sizes and positions outside the contract are UsageError."""
        with self.opened(tmp_path) as storage:
            _fill(storage, THREAD)
            require_raises(UsageError, lambda: storage.truncate(b"short", 0, b""))
            require_raises(UsageError, lambda: storage.truncate(THREAD, -1, b""))

            require(len(list(storage.scan(THREAD, 0))) == _TOTAL, "all stay")

    def test_truncation_and_an_append_exclude_each_other(self, tmp_path: Path) -> None:
        """Of two who truncate the same record one succeeds; what is saved there then stays."""
        with self.opened(tmp_path) as one, self._second(tmp_path, one) as two:
            for number in range(_RACES):
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

    def test_truncation_is_seen_through_every_handle(self, tmp_path: Path) -> None:
        """A second handle finds nothing of what went, also in a scan that is under way."""
        with self.opened(tmp_path) as one, self._second(tmp_path, one) as two:
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
