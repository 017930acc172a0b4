# SPDX-License-Identifier: Apache-2.0
"""The groups of the file backend: their bytes, their places, and any way in which they overlap."""

import hashlib
import os
import random
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import Edited, HeadMoved, SealpointError
from sealpoint.limits import (
    BODY_BYTES_MAX,
    HEADER_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    SEALS_BYTES_MAX,
)
from sealpoint.storage import Record, Storage
from sealpoint.storage.file import FileStorage
from sealpoint.storage.memory import MemoryStorage
from tests.unit.storage.file_places import DIGEST, RECORD, THREAD, group_path, record_of

_LAST = 2**63 - 1


@pytest.fixture(autouse=True)
def _power_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about durability, and syncs take their time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store lies."""
    return tmp_path / "store"


@pytest.fixture
def storage(store: Path) -> Iterator[FileStorage]:
    """A new store."""
    with closing(FileStorage(store, create=True)) as storage:
        yield storage


def test_bytes_of_a_group_are_frozen(store: Path, storage: FileStorage) -> None:
    """The format in docs/formats/storage.md, byte for byte: stores in the field have it."""
    records = [Record(b"head", b"se", b"", None), Record(b"h", b"s", None, b"pay")]
    storage.append(THREAD, 14, records, blobs={})
    path = store / (
        "threads/00/000102030405060708090a0b0c0d0e0f/01/000000000000000e-000000000000000f"
    )

    assert path.read_bytes() == (
        b"sealpoint group 1\n"
        b"\x00\x02"
        b"\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x00\xff\xff\xff\xff"
        b"\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff\x00\x00\x00\x03"
        b"headse"
        b"hspay"
    )


@pytest.mark.parametrize(
    ("first", "last", "place"),
    [
        (0, 0, "01/0000000000000000-0000000000000000"),
        (15, 15, "01/000000000000000f-000000000000000f"),
        (15, 16, "02/1/000000000000000f-0000000000000010"),
        (255, 258, "03/1/0/00000000000000ff-0000000000000102"),
        (50_000, 50_000, "04/c/3/5/000000000000c350-000000000000c350"),
        (_LAST - 1, _LAST - 1, "10/7/" + "f/" * 14 + "7ffffffffffffffe-7ffffffffffffffe"),
    ],
)
def test_places_of_groups_are_frozen(
    store: Path, storage: FileStorage, first: int, last: int, place: str
) -> None:
    """A group lies by the digits of its last position."""
    storage.append(THREAD, first, [RECORD] * (last - first + 1), blobs={})

    assert (store / "threads/00" / THREAD.hex() / place).is_file()
    assert group_path(store, first, last).is_file()


def test_append_costs_one_file(store: Path, storage: FileStorage) -> None:
    """All records of an append are in one file, so that they appear at once."""
    storage.append(THREAD, 0, [record_of(n) for n in range(4096)], blobs={})
    storage.append(THREAD, 4096, [record_of(4096)], blobs={})
    files = [path for path in (store / "threads").rglob("*") if path.is_file()]

    assert sorted(files) == sorted([group_path(store, 0, 4095), group_path(store, 4096, 4096)])
    for number in (0, 1, 255, 2048, 4095, 4096):
        assert storage.read(THREAD, number) == record_of(number)
    assert storage.read(THREAD, 4097) is None
    assert [n for n, _ in storage.scan(THREAD, 4000, 4097)] == list(range(4000, 4097))
    assert [n for n, _ in storage.scan(THREAD, 4090, descending=True)] == [
        *(4096, 4095, 4094, 4093, 4092, 4091, 4090)
    ]


def test_overlapping_appends_complete_each_other(store: Path, storage: FileStorage) -> None:
    """Fresh positions on both sides of a group become one file, and the inner one goes."""
    records = [record_of(number) for number in range(40)]
    storage.append(THREAD, 14, records[14:18], blobs={})
    storage.append(THREAD, 25, records[25:26], blobs={})
    storage.append(THREAD, 10, records[10:30], blobs={})
    storage.append(THREAD, 28, records[28:33], blobs={})
    storage.append(THREAD, 0, records[:11], blobs={})
    files = {path.name for path in (store / "threads").rglob("*-*")}

    assert list(storage.scan(THREAD, 0)) == list(enumerate(records[:33]))
    spans = [(0, 9), (10, 29), (30, 32)]
    assert files == {f"{first:016x}-{last:016x}" for first, last in spans}


@pytest.mark.parametrize("seed", range(12))
def test_any_overlapping_appends_are_as_in_memory(storage: FileStorage, seed: int) -> None:
    """Appends, drops and reads in any order do what the reference implementation does."""
    draw = random.Random(seed)  # noqa: S311 # which calls
    memory = MemoryStorage()
    versions = 2 if seed % 2 else 1
    for _ in range(60):
        seq = draw.choice(
            [draw.randrange(40), draw.randrange(230, 300), draw.randrange(4080, 4120)]
        )
        records = [
            Record(b"%d" % (seq + n), b"%d" % draw.randrange(versions), b"body", b"payload")
            for n in range(draw.choice([1, 1, 2, 3, 20]))
        ]
        blobs = {hashlib.sha256(b"%d" % draw.randrange(9)).digest(): draw.randbytes(5)}
        head = draw.choice([seq, 500, 5000])
        numbers = [draw.randrange(4200) for _ in range(5)] + list(range(seq, seq + 9))
        changes: list[tuple[str, dict[str, Any]]] = [
            ("append", {"seq": seq, "records": records, "blobs": blobs}),
            ("append", {"seq": seq, "records": records, "blobs": {}, "needs": list(blobs)}),
            (
                "drop",
                {"head": head, "bodies": numbers[:7], "payloads": numbers[7:], "blobs": blobs},
            ),
            ("truncate", {"seq": seq, "header": b"%d" % seq}),
        ]
        ((name, arguments),) = draw.choices(changes, (4, 4, 4, 1))

        assert _outcome(storage, name, arguments) == _outcome(memory, name, arguments)
        low, high = sorted((draw.randrange(4200), draw.randrange(4200)))
        for backwards in (False, True):
            for first, last in ((0, None), (low, high)):
                assert list(storage.scan(THREAD, first, last, descending=backwards)) == list(
                    memory.scan(THREAD, first, last, descending=backwards)
                )
        for number in (seq - 1, seq, seq + len(records), low, high):
            assert storage.read(THREAD, number) == memory.read(THREAD, number)
        assert list(storage.stored_blobs(THREAD)) == list(memory.stored_blobs(THREAD))


def _outcome(storage: Storage, name: str, arguments: dict[str, Any]) -> str:
    try:
        calls: dict[str, Callable[..., None]] = {
            "append": storage.append,
            "drop": storage.drop,
            "truncate": storage.truncate,
        }
        calls[name](THREAD, **arguments)
    except SealpointError as exc:
        return exc.code
    return "done"


def test_group_that_a_crash_left_inside_another_is_read_once(
    store: Path, storage: FileStorage
) -> None:
    """Order and number of records are right before the inner group goes, and drops reach both."""
    records = [record_of(number) for number in range(300)]
    inner = [(7, 7), (250, 260)]
    for first, last in inner:
        storage.append(THREAD, first, records[first : last + 1], blobs={})
    left = {path: path.read_bytes() for path in (group_path(store, *span) for span in inner)}
    storage.append(THREAD, 1, records[1:299], blobs={})
    for path, data in left.items():
        assert not path.exists()
        path.write_bytes(data)
        path.chmod(0o600)

    expected = list(enumerate(records))[1:299]
    for low, high in ((0, 400), (7, 7), (2, 255), (255, 400), (8, 249), (8, 250)):
        within = [(number, record) for number, record in expected if low <= number <= high]
        assert list(storage.scan(THREAD, low, high)) == within
        assert list(storage.scan(THREAD, low, high, descending=True)) == within[::-1]
    with pytest.raises(HeadMoved):
        storage.append(THREAD, 0, [RECORD] * 5, blobs={})
    storage.drop(THREAD, 298, bodies=[7, 255])
    contents = [path.read_bytes() for path in (*left, group_path(store, 1, 298))]
    assert not [data for data in contents if b"body 7payload" in data or b"body 255" in data]
    assert [n for n, record in storage.scan(THREAD, 0) if record.body is None] == [7, 255]


def test_truncated_group_keeps_its_first_records(store: Path, storage: FileStorage) -> None:
    """A position inside a group cuts it in two; what stays is a group of its own."""
    records = [record_of(number) for number in range(40)]
    storage.append(THREAD, 0, records[:20], blobs={})
    for number in range(20, 40):
        storage.append(THREAD, number, records[number : number + 1], blobs={})
    with pytest.raises(HeadMoved):
        storage.truncate(THREAD, 7, b"another header")
    with pytest.raises(HeadMoved):
        storage.truncate(THREAD, 40, None)
    storage.truncate(THREAD, 7, records[7].header)
    files = {path.name for path in (store / "threads").rglob("*-*")}

    assert list(storage.scan(THREAD, 0)) == list(enumerate(records[:7]))
    assert files == {group_path(store, 0, 6).name}
    storage.append(THREAD, 7, [RECORD], blobs={})
    assert storage.read(THREAD, 7) == RECORD


def test_record_that_cannot_be_read_is_truncated(store: Path, storage: FileStorage) -> None:
    """A damaged group goes when whoever asks for it says that it is damaged."""
    for number in range(3):
        storage.append(THREAD, number, [RECORD], blobs={})
    group_path(store, 1, 1).write_bytes(b"damaged")
    with pytest.raises(HeadMoved):
        storage.truncate(THREAD, 1, RECORD.header)
    storage.truncate(THREAD, 1, None)

    assert list(storage.scan(THREAD, 0)) == [(0, RECORD)]


def test_every_length_of_a_group_is_refused_but_its_own(store: Path, storage: FileStorage) -> None:
    """A group that was cut off or made longer is Edited, wherever it was cut."""
    storage.append(THREAD, 0, [RECORD, record_of(1)], blobs={})
    path = group_path(store, 0, 1)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(Edited):
            storage.read(THREAD, 0)
    path.write_bytes(data + b"\0")

    calls: list[Callable[[], object]] = [
        lambda: storage.read(THREAD, 1),
        lambda: list(storage.scan(THREAD, 0)),
        lambda: storage.append(THREAD, 1, [RECORD], blobs={}),
        lambda: storage.drop(THREAD, 1, bodies=[0]),
    ]
    for call in calls:
        with pytest.raises(Edited, match=f"expected {len(data)} bytes, found {len(data) + 1}"):
            call()


def test_every_changed_byte_is_refused_or_seen_in_its_place(
    store: Path, storage: FileStorage
) -> None:
    """A changed byte of the framing is Edited; one of a part changes that part alone."""
    records = [RECORD, record_of(1)]
    storage.append(THREAD, 0, records, blobs={})
    path = group_path(store, 0, 1)
    data = path.read_bytes()
    framing = len(b"sealpoint group 1\n") + 2
    refused = 0
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            found = [record for _, record in storage.scan(THREAD, 0)]
        except Edited:
            refused += 1
            continue
        assert at >= framing + 32, at
        assert found != records

    assert refused >= framing + 32


@pytest.mark.parametrize(
    ("part", "bytes_max"),
    [(0, HEADER_BYTES_MAX), (1, SEALS_BYTES_MAX), (2, BODY_BYTES_MAX), (3, PAYLOAD_BYTES_MAX)],
)
def test_part_beyond_its_bound_is_not_read(
    store: Path, storage: FileStorage, part: int, bytes_max: int
) -> None:
    """One byte more than the bound is Edited, although the file really has it."""
    storage.append(THREAD, 0, [RECORD], blobs={})
    lengths = [0, 0, 0, 0]
    lengths[part] = bytes_max + 1
    table = b"".join(length.to_bytes(4, "big") for length in lengths)
    path = group_path(store, 0, 0)
    path.write_bytes(b"sealpoint group 1\n\x00\x01" + table + bytes(bytes_max + 1))

    with pytest.raises(Edited, match=f"expected at most {bytes_max} bytes of"):
        storage.read(THREAD, 0)


def test_header_and_seals_cannot_be_absent(store: Path, storage: FileStorage) -> None:
    """Only a body and a payload can have been taken away."""
    storage.append(THREAD, 0, [RECORD], blobs={})
    path = group_path(store, 0, 0)
    for part in (0, 1):
        lengths = [b"\0\0\0\0"] * 4
        lengths[part] = b"\xff\xff\xff\xff"
        path.write_bytes(b"sealpoint group 1\n\x00\x01" + b"".join(lengths))
        with pytest.raises(Edited):
            storage.read(THREAD, 0)


def test_gigantic_files_are_not_brought_into_memory(store: Path, storage: FileStorage) -> None:
    """A terabyte in the place of a group or a blob is refused with a few bytes read."""
    storage.append(THREAD, 0, [RECORD], blobs={DIGEST: b"blob"})
    blob = next((store / "threads").rglob(DIGEST.hex()))
    for path in (group_path(store, 0, 0), blob):
        with path.open("r+b") as file:
            file.truncate(2**40)
    tracemalloc.start()
    try:
        with pytest.raises(Edited):
            storage.read(THREAD, 0)
        with pytest.raises(Edited):
            list(storage.scan(THREAD, 0))
        with pytest.raises(Edited, match=f"found {2**40}"):
            storage.blob(THREAD, DIGEST, 16 * 1024 * 1024)
        left_out = storage.blobs(THREAD, [DIGEST], 16 * 1024 * 1024)
        storage.put_blobs(THREAD, {DIGEST: b"blob"})
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert left_out == {}
    assert storage.blob(THREAD, DIGEST, 9) == b"blob"
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize(
    "name",
    [
        "0000000000000001-0000000000000000",
        "0000000000000000-0000000000000010",
        "ffffffffffffffff-0000000000000000",
    ],
)
def test_name_that_cannot_be_a_group_is_refused(
    store: Path, storage: FileStorage, name: str
) -> None:
    """Positions out of order, or in the wrong directory, are Edited."""
    storage.append(THREAD, 0, [RECORD], blobs={})
    path = group_path(store, 0, 0)
    shutil.copyfile(path, path.with_name(name))

    with pytest.raises(Edited, match=f"expected the names of groups, found {name}"):
        list(storage.scan(THREAD, 0))


def test_too_wide_a_group_is_refused(store: Path, storage: FileStorage) -> None:
    """A name that claims more records than one append can have is Edited."""
    storage.append(THREAD, 4096, [RECORD], blobs={})
    path = group_path(store, 4096, 4096)
    path.rename(path.with_name("0000000000000000-0000000000001000"))

    with pytest.raises(Edited, match="expected the names of groups"):
        storage.read(THREAD, 4096)


def test_more_groups_than_there_can_be_are_refused(store: Path, storage: FileStorage) -> None:
    """A directory stuffed with names is Edited before they fill the memory."""
    storage.append(THREAD, 4096, [RECORD], blobs={})
    for number in range(1100):
        group_path(store, 2000 + number, 4096).touch()

    with pytest.raises(Edited, match="more than 1024 groups"):
        list(storage.scan(THREAD, 0))


def test_foreign_names_are_passed_over(store: Path, storage: FileStorage) -> None:
    """What a file manager or a backup leaves is neither read nor removed."""
    storage.append(THREAD, 300, [RECORD], blobs={DIGEST: b"blob"}, label=DIGEST)
    directories = [path for path in store.rglob("*") if path.is_dir()]
    foreign = [
        directory / name
        for directory in (store, *directories)
        for name in (".DS_Store", "0 copy", "zz", "0" * 63, "\N{FULLWIDTH DIGIT ONE}", "00\n")
    ]
    for path in foreign:
        path.touch(mode=0o600)
    storage.compact()

    assert list(storage.scan(THREAD, 0)) == [(300, RECORD)]
    assert list(storage.stored_blobs(THREAD)) == [(DIGEST, 4)]
    assert list(dict(storage.heads())) == list(storage.blob_threads()) == [THREAD]
    assert storage.labelled(DIGEST) == [THREAD]
    assert all(path.exists() for path in foreign)


def test_directory_of_digits_that_begin_with_zero_is_passed_over(
    store: Path, storage: FileStorage
) -> None:
    """One position has one place; a copy in another is not read."""
    storage.append(THREAD, 5, [RECORD], blobs={})
    path = group_path(store, 5, 5)
    other = path.parent.with_name("02") / "0" / path.name
    other.parent.mkdir(parents=True)
    path.rename(other)

    assert storage.read(THREAD, 5) is None
    assert not list(storage.scan(THREAD, 0))


def test_memory_does_not_follow_the_length_of_a_thread(storage: FileStorage) -> None:
    """Scanning many entries, or a group of large ones, holds a batch at a time."""
    large = Record(b"h", b"s", bytes(100_000))
    for place in range(0, 1200, 300):
        storage.append(THREAD, place, [large] * 300, blobs={})
    tracemalloc.start()
    try:
        for backwards in (False, True):
            assert sum(1 for _ in storage.scan(THREAD, 0, descending=backwards)) == 1200
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 120 * 100_000
