# SPDX-License-Identifier: Apache-2.0
"""Every MUST of `sealpoint.storage.Storage`, as tests that any backend can inherit.

```python
class TestMyStorage(StorageConformance):
    def open(self, place: Path) -> Storage:
        return MyStorage(place / "store", create=True)
```

The backend's own tests cover crashes and power cuts, failures of the backend, edited rows, and
processes. A failed claim is an `AssertionError`.
"""

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path

from sealpoint.errors import Edited, HeadMoved, UsageError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage import Record, Storage
from sealpoint_testing.conformance._storage_compact import StorageCompaction
from sealpoint_testing.conformance._storage_drops import StorageDrops, StorageTruncation
from sealpoint_testing.conformance._storage_handles import (
    LABEL,
    OTHER_THREAD,
    SIZE_BYTES_MAX,
    THREAD,
    StorageHandles,
    named,
    opened,
    record_of,
    require,
    require_raises,
)

__all__ = ["StorageConformance"]


class StorageConformance(StorageHandles, StorageDrops, StorageTruncation, StorageCompaction):
    """All tests; a subclass overrides `open`, and sets `shared` to False if it must.

    Attributes:
        shared: Whether opening a place again, at the same time or later, leads to the same store.
        many_blobs: How many blobs the test of memory stores.
    """

    shared: bool = True
    many_blobs: int = 3000

    def open(self, place: Path) -> Storage:
        """Open the store in an empty directory, making it the first time."""
        raise NotImplementedError

    def test_new_store_is_empty(self, tmp_path: Path) -> None:
        """Nothing is found where nothing was written, and nothing of it is an error."""
        with opened(self, tmp_path) as storage:
            require(storage.read(THREAD, 0) is None, "a position without entry reads as None")
            require(storage.headers(THREAD, [0, 1]) == {}, "nor has it a header")
            require(not list(storage.scan(THREAD, 0)), "an empty thread scans as nothing")
            require(storage.blob(THREAD, LABEL, 1) is None, "an absent blob is None")
            require(storage.blobs(THREAD, [LABEL], 1) == {}, "an absent blob is left out")
            require(not list(storage.heads()), "a new store has no threads")
            require(not list(storage.stored_blobs(THREAD)), "nor blobs")
            require(not list(storage.blob_threads()), "nor threads with blobs")
            require(storage.labelled(LABEL) == [], "an unused label has no threads")

    def test_entry_is_read_back_as_it_was_written(self, tmp_path: Path) -> None:
        """Every part comes back bit by bit, also empty, absent and at its bound."""
        records = [
            record_of("plain"),
            Record(b"", b"", b""),
            Record(b"\x00\xff", b"\x00", None),
            Record(b"h" * HEADER_BYTES_MAX, b"s" * SEALS_BYTES_MAX, b"b" * BODY_BYTES_MAX),
            Record(b"h", b"s", b"b", b""),
            Record(b"h", b"s", None, b"\x00\xff"),
            Record(b"h", b"s", b"b", b"p" * PAYLOAD_BYTES_MAX),
        ]
        with opened(self, tmp_path) as storage:
            for seq, record in enumerate(records):
                storage.append(THREAD, seq, [record], blobs={})

            for seq, record in enumerate(records):
                require(storage.read(THREAD, seq) == record, f"record {seq} comes back as it was")
            require(list(storage.scan(THREAD, 0)) == list(enumerate(records)), "and in a scan")
            require(storage.read(OTHER_THREAD, 0) is None, "another thread is not touched")

    def test_same_bytes_again_are_a_success(self, tmp_path: Path) -> None:
        """Repeating an append changes nothing and succeeds."""
        records = [record_of("0"), Record(b"1", b"1", None)]
        with opened(self, tmp_path) as storage:
            for _ in range(2):
                storage.append(THREAD, 0, records, blobs=named(b"blob"), label=LABEL)

            require(list(storage.scan(THREAD, 0)) == list(enumerate(records)), "both, once")
            require(storage.labelled(LABEL) == [THREAD], "the label names the thread once")

    def test_other_bytes_move_nothing(self, tmp_path: Path) -> None:
        """Other bytes at a taken position are HeadMoved: no entry, blob or label is changed."""
        first = Record(b"header", b"seals", b"body", b"payload")
        loser = named(b"blob of the loser")
        others = [
            Record(b"other", first.seals, first.body, first.payload),
            Record(first.header, b"other", first.body, first.payload),
            Record(first.header, first.seals, b"other", first.payload),
            Record(first.header, first.seals, None, first.payload),
            Record(first.header, first.seals, first.body, b"other"),
            Record(first.header, first.seals, first.body, None),
        ]
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [first], blobs={})
            for other in others:
                require_raises(
                    HeadMoved,
                    lambda other=other: storage.append(  # type: ignore[misc]
                        THREAD, 0, [other], blobs=loser, label=LABEL
                    ),
                )

            require(list(storage.scan(THREAD, 0)) == [(0, first)], "the entry is as it was")
            require(
                storage.blob(THREAD, next(iter(loser)), SIZE_BYTES_MAX) is None,
                "a refused append writes no blob",
            )
            require(storage.labelled(LABEL) == [], "a refused append leaves no label")

    def test_refused_append_replaces_no_blob(self, tmp_path: Path) -> None:
        """A blob that was there keeps its bytes when the append that gave others is refused."""
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("first")], blobs={LABEL: b"kept"})
            require_raises(
                HeadMoved,
                lambda: storage.append(THREAD, 0, [record_of("other")], blobs={LABEL: b"given"}),
            )

            require(storage.blob(THREAD, LABEL, SIZE_BYTES_MAX) == b"kept", "blob as it was")

    def test_who_is_alone_has_the_next_position(self, tmp_path: Path) -> None:
        """An append in the block is durable when it returns, and the block leaves nothing held."""
        with opened(self, tmp_path) as storage:
            with storage.alone(THREAD):
                require(storage.read(THREAD, 0) is None, "reads continue")
                storage.append(THREAD, 0, [record_of("0")], blobs=named(b"blob"))
                storage.append(THREAD, 1, [record_of("1")], blobs={})
            with storage.alone(THREAD):
                pass
            storage.append(THREAD, 2, [record_of("2")], blobs={})
            for first, blobs in ((3, {}), (5, named(b"more"))):
                group = [record_of(str(first)), record_of(str(first + 1))]
                with storage.alone(THREAD):
                    storage.append(THREAD, first, group, blobs=blobs)

            found = [seq for seq, _ in storage.scan(THREAD, 0)]
            require(found == [0, 1, 2, 3, 4, 5, 6], "all of them are there")

    def test_group_is_written_whole_or_not_at_all(self, tmp_path: Path) -> None:
        """A taken position anywhere in a group keeps all of the group out."""
        group = [record_of(str(number)) for number in range(3)]
        with opened(self, tmp_path) as storage:
            for taken in range(3):
                thread = bytes([taken]) * 16
                storage.append(thread, taken, [record_of("taken")], blobs={})
                require_raises(
                    HeadMoved,
                    lambda thread=thread: storage.append(  # type: ignore[misc]
                        thread, 0, group, blobs=named(b"blob")
                    ),
                )

                require(
                    list(storage.scan(thread, 0)) == [(taken, record_of("taken"))],
                    f"no part of a group is written when its position {taken} is taken",
                )

    def test_group_that_is_there_in_part_is_completed(self, tmp_path: Path) -> None:
        """Positions that hold the same bytes already do not stop the rest of a group."""
        group = [record_of(str(number)) for number in range(4)]
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 1, group[1:2], blobs={})
            storage.append(THREAD, 0, group, blobs=named(b"blob"))

            require(list(storage.scan(THREAD, 0)) == list(enumerate(group)), "the whole group")

    def test_threads_do_not_share_positions_or_blobs(self, tmp_path: Path) -> None:
        """The same position and digest in another thread are another place."""
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("one")], blobs={LABEL: b"one"})
            storage.append(OTHER_THREAD, 0, [record_of("two")], blobs={})

            require(storage.read(THREAD, 0) == record_of("one"), "the first thread's entry")
            require(storage.read(OTHER_THREAD, 0) == record_of("two"), "the second thread's")
            require(
                storage.blob(OTHER_THREAD, LABEL, SIZE_BYTES_MAX) is None,
                "a blob belongs to one thread",
            )

    def test_headers_together_are_those_of_the_records(self, tmp_path: Path) -> None:
        """Of any number that are asked for, those that come are right; what is absent does not."""
        group = [record_of(str(number)) for number in range(300)]
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, group, blobs={})
            storage.append(OTHER_THREAD, 0, [record_of("other")], blobs={})

            for count in (0, 1, 2, 127, 128, 129, 300):
                asked = [*range(count), 299, 300, 2**40]
                found = storage.headers(THREAD, asked)
                require(set(found) <= {*range(count), 299}, "only what was asked for and is there")
                require(all(group[seq].header == found[seq] for seq in found), "the right bytes")
            found = storage.headers(OTHER_THREAD, [0, 1])
            require(found in ({}, {0: record_of("other").header}), "a header is of one thread")

    def test_given_blob_replaces_a_stored_one_that_differs(self, tmp_path: Path) -> None:
        """A caller that gives a blob does not rely on the stored one, however it is given."""
        with opened(self, tmp_path) as storage:
            for number, data in enumerate([b"first", b"other", b"", b"longer than before"]):
                storage.put_blobs(THREAD, {LABEL: data})
                require(storage.blob(THREAD, LABEL, SIZE_BYTES_MAX) == data, "put_blobs")
                storage.append(
                    THREAD, number, [record_of(str(number))], blobs={LABEL: data + b" appended"}
                )
                require(
                    storage.blob(THREAD, LABEL, SIZE_BYTES_MAX) == data + b" appended", "append"
                )

    def test_repeated_append_makes_its_blobs_good(self, tmp_path: Path) -> None:
        """An append whose entry is there already still leaves every blob as it was given."""
        blobs = named(b"one", b"two")
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("0")], blobs={next(iter(blobs)): b"damaged"})
            storage.append(THREAD, 0, [record_of("0")], blobs=blobs)

            for digest, blob in blobs.items():
                require(storage.blob(THREAD, digest, SIZE_BYTES_MAX) == blob, "blob as given")

    def test_blobs_may_come_before_any_entry(self, tmp_path: Path) -> None:
        """An orphan is legal, is found, and does not make a thread; no blobs are legal too."""
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, {})
            storage.put_blobs(THREAD, {LABEL: b"orphan"})

            require(storage.blob(THREAD, LABEL, 6) == b"orphan", "an orphan is found")
            require(not list(storage.heads()), "a thread is one that has an entry")

    def test_blob_beyond_the_bound_is_refused(self, tmp_path: Path) -> None:
        """A blob of exactly the bound is returned, one byte more is Edited."""
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, {LABEL: b"12345678"})

            require(storage.blob(THREAD, LABEL, 8) == b"12345678", "within its bound")
            require_raises(Edited, lambda: storage.blob(THREAD, LABEL, 7))
            require_raises(Edited, lambda: storage.blob(THREAD, LABEL, 0))

    def test_blobs_together_are_what_each_would_be_alone(self, tmp_path: Path) -> None:
        """Of any number that are asked for, those that come are right; what is absent does not."""
        stored = named(*(f"blob {number}".encode() for number in range(300)), b"")
        absent = list(named(b"nobody stored this"))
        given = next(iter(stored))
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, stored)
            storage.put_blobs(OTHER_THREAD, {given: b"of another thread"})

            for count in (0, 1, 2, 127, 128, 129, len(stored)):
                asked = [*list(stored)[:count], *absent, *list(stored)[:2]]
                found = storage.blobs(THREAD, asked, SIZE_BYTES_MAX)
                require(set(found) <= set(asked) - set(absent), "only what was asked for")
                require(all(stored[digest] == found[digest] for digest in found), "the right bytes")
            found = storage.blobs(OTHER_THREAD, list(stored), SIZE_BYTES_MAX)
            require(set(found) <= {given}, "a blob belongs to one thread")

    def test_blobs_together_leave_large_ones_out(self, tmp_path: Path) -> None:
        """A blob one byte over the bound is left out without an error: `blob` reports why."""
        blobs = named(b"1234567", b"12345678", b"123456789")
        with opened(self, tmp_path) as storage:
            storage.put_blobs(THREAD, blobs)

            for bytes_max in (0, 7, 8, 9):
                found = storage.blobs(THREAD, list(blobs), bytes_max)
                require(all(len(blob) <= bytes_max for blob in found.values()), "within the bound")
                require(all(blobs[digest] == found[digest] for digest in found), "the right bytes")

    def test_blobs_together_follow_a_replacement(self, tmp_path: Path) -> None:
        """A blob that was replaced is returned with its new bytes, or not at all."""
        with opened(self, tmp_path) as storage:
            for data in (b"first", b"other"):
                storage.put_blobs(THREAD, {LABEL: data})
                found = storage.blobs(THREAD, [LABEL], SIZE_BYTES_MAX)
                require(found.get(LABEL, data) == data, "the newest bytes")

    def test_large_blob_comes_back(self, tmp_path: Path) -> None:
        """Five megabytes are stored like five bytes."""
        data = hashlib.shake_256(b"large").digest(5 * 1024 * 1024)
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("0")], blobs={LABEL: data})

            require(storage.blob(THREAD, LABEL, SIZE_BYTES_MAX) == data, "five megabytes")

    def test_scan_gives_ranges_in_order_and_leaves_holes_out(self, tmp_path: Path) -> None:
        """Every range comes back in either order, both ends included."""
        numbers = [*range(100), *range(150, 250), 1000, 2**32 + 1]
        ranges = [(0, None), (0, 0), (99, 150), (100, 149), (249, 2**40), (2**33, None), (5, 4)]
        with opened(self, tmp_path) as storage:
            # Not in order: position, not time, decides.
            for number in numbers[100:] + numbers[:100]:
                storage.append(THREAD, number, [record_of(str(number))], blobs={})
            storage.append(OTHER_THREAD, 5, [record_of("other thread")], blobs={})

            for first, last in ranges:
                within = [n for n in numbers if first <= n and (last is None or n <= last)]
                expected = [(number, record_of(str(number))) for number in within]
                found = list(storage.scan(THREAD, first, last))
                require(found == expected, f"scan from {first} to {last}")
                found = list(storage.scan(THREAD, first, last, descending=True))
                require(found == expected[::-1], f"scan from {first} to {last}, descending")

    def test_appending_during_a_scan_is_possible(self, tmp_path: Path) -> None:
        """A scan under way neither blocks an append nor loses what was there before it."""
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of(str(n)) for n in range(200)], blobs={})
            for descending in (False, True):
                scan = storage.scan(THREAD, 0, 199, descending=descending)
                found = list(itertools.islice(scan, 3))
                end = 1000 + descending
                storage.append(THREAD, end, [record_of("during")], blobs=named(b"during"))
                found += list(scan)

                numbers = [number for number, _ in found]
                require(sorted(numbers) == list(range(200)), "everything from before")
                require(storage.read(THREAD, end) is not None, "the append took effect")

    def test_call_sees_what_was_committed_before_it(self, tmp_path: Path) -> None:
        """Reads through any handle follow every append at once."""
        with opened(self, tmp_path) as storage:
            for number in range(50):
                storage.append(THREAD, number, [record_of(str(number))], blobs={})
                found = list(storage.scan(THREAD, number))
                require(found == [(number, record_of(str(number)))], "a scan sees the append")
                require(storage.read(THREAD, number) is not None, "a read sees the append")

    def test_threads_are_listed_once_each(self, tmp_path: Path) -> None:
        """Every thread with an entry is listed, whatever its positions and number."""
        expected = {bytes([number]) * 16 for number in range(100)}
        with opened(self, tmp_path) as storage:
            for thread in expected:
                storage.append(thread, 7, [record_of("a"), record_of("b")], blobs={})
            found = list(storage.heads())

            require(len(found) == len(expected), "each once")
            require(set(found) == {(thread, 8) for thread in expected}, "each of them, and its end")

    def test_heads_follow_what_is_appended_and_taken_away(self, tmp_path: Path) -> None:
        """The last position of a thread is that of its newest record, whatever else is stored."""
        with opened(self, tmp_path) as storage:
            for number in range(40):
                storage.append(THREAD, number, [record_of(str(number))], blobs={})
                require(dict(storage.heads()) == {THREAD: number}, "the newest record")
            storage.append(OTHER_THREAD, 0, [record_of("0")], blobs={})
            storage.drop(THREAD, 39, bodies=[39], payloads=[38])
            require(dict(storage.heads()) == {THREAD: 39, OTHER_THREAD: 0}, "a drop moves nothing")
            storage.truncate(THREAD, 17, record_of("17").header)
            require(dict(storage.heads()) == {THREAD: 16, OTHER_THREAD: 0}, "what is left")
            storage.truncate(THREAD, 0, record_of("0").header)
            require(dict(storage.heads()) == {OTHER_THREAD: 0}, "no record, no thread")

    def test_label_leads_to_its_threads(self, tmp_path: Path) -> None:
        """A label names every thread it was appended with; an append without it adds nothing."""
        other_label = bytes(32)
        with opened(self, tmp_path) as storage:
            storage.append(THREAD, 0, [record_of("0")], blobs={}, label=LABEL)
            storage.append(OTHER_THREAD, 0, [record_of("0")], blobs={}, label=LABEL)
            storage.append(THREAD, 1, [record_of("1")], blobs={}, label=other_label)
            storage.append(bytes(16), 0, [record_of("0")], blobs={})

            require(sorted(storage.labelled(LABEL)) == [THREAD, OTHER_THREAD], "two threads")
            require(storage.labelled(other_label) == [THREAD], "a second label")

    def test_call_that_could_not_be_read_back_is_refused(self, tmp_path: Path) -> None:
        """Sizes and positions outside the contract are UsageError and change nothing."""
        good = [record_of("good")]
        with opened(self, tmp_path) as storage:
            calls: list[Callable[[], object]] = [
                lambda: storage.append(b"short", 0, good, blobs={}),
                lambda: storage.append(THREAD, -1, good, blobs={}),
                lambda: storage.append(THREAD, 0, [], blobs={}),
                lambda: storage.append(THREAD, 0, good, blobs={b"short": b""}),
                lambda: storage.append(THREAD, 0, good, blobs={}, label=b"short"),
                lambda: storage.put_blobs(b"short", {LABEL: b""}),
                lambda: storage.put_blobs(THREAD, {b"short": b""}),
            ]
            for large in (
                Record(b"h" * (HEADER_BYTES_MAX + 1), b"", b""),
                Record(b"", b"s" * (SEALS_BYTES_MAX + 1), b""),
                Record(b"", b"", b"b" * (BODY_BYTES_MAX + 1)),
                Record(b"", b"", b"", b"p" * (PAYLOAD_BYTES_MAX + 1)),
            ):
                records = [*good, large]
                calls.append(
                    lambda records=records: storage.append(  # type: ignore[misc]
                        THREAD, 0, records, blobs={LABEL: b""}
                    )
                )
            for call in calls:
                require_raises(UsageError, call)

            require(not list(storage.heads()), "no entry was written")
            require(storage.blob(THREAD, LABEL, 1) is None, "no blob was written")
