# SPDX-License-Identifier: Apache-2.0
"""The strict reading of torch's archives, also of those too large to make here."""

import itertools
import struct
from collections.abc import Callable

import pytest
import torch

from sealpoint.errors import ModelLimitExceeded, ModelMalformed, RecordCompressed
from sealpoint.limits import MODEL_NAME_BYTES_MAX, MODEL_TENSORS_MAX
from sealpoint_models.scan import read_archive
from sealpoint_models.scan._torch_zip import Archive
from tests.pt_files import archive, records_of, saved

_U32_MAX = 0xFFFFFFFF


def _read(data: bytes) -> Archive:
    return read_archive(lambda offset, length: data[offset : offset + length], len(data), "f")


def test_records_and_pieces_cover_the_file() -> None:
    """Pieces are all bytes but the elements of tensors, in order, and never touch."""
    data = saved([torch.ones(3), torch.empty(0), torch.ones(2)])
    found = _read(data)
    rebuilt = bytearray(len(data))
    for piece in found.pieces:
        rebuilt[piece.offset : piece.offset + len(piece.data)] = piece.data
    storages = [record for name, record in found.records.items() if name.startswith("data/")]
    for record in storages:
        elements = slice(record.offset, record.offset + record.size)
        assert rebuilt[elements] == b"\0" * record.size
        rebuilt[elements] = data[elements]

    assert rebuilt == data
    assert [record.size for record in storages] == [12, 0, 8]
    assert found.folder == "archive/"
    assert found.contents["version"] == b"3\n"
    for before, after in itertools.pairwise(found.pieces):
        assert before.offset + len(before.data) < after.offset


def test_contents_are_the_records() -> None:
    """What is not a storage is read with the structure."""
    data = saved({"a": 1})
    records = records_of(data)

    assert _read(data).contents == records


def test_file_that_ends_early_is_refused() -> None:
    """A reader that gives fewer bytes than the file has is not waited for."""
    data = saved(1)

    with pytest.raises(ModelMalformed, match="found the end after"):
        read_archive(lambda offset, length: data[offset : offset + length], len(data) + 22, "f")


@pytest.mark.parametrize("size", [0, 21])
def test_file_shorter_than_an_end_is_refused(size: int) -> None:
    """There is nothing to look for in it."""
    with pytest.raises(ModelMalformed, match=f"found a file of {size} bytes"):
        _read(b"\0" * size)


class _Sparse:
    """A file of which only the structure exists."""

    def __init__(self) -> None:
        self.size = 0
        self.parts: list[tuple[int, bytes]] = []

    def add(self, data: bytes, hole: int = 0) -> None:
        self.parts.append((self.size, data))
        self.size += len(data) + hole

    def read(self, offset: int, length: int) -> bytes:
        found = bytearray(max(min(length, self.size - offset), 0))
        for start, data in self.parts:
            low, high = max(start, offset), min(start + len(data), offset + length)
            if low < high:
                found[low - offset : high - offset] = data[low - start : high - start]
        return bytes(found)


def _large(sizes: list[int], *, extra: Callable[[bytes], bytes] = lambda wide: wide) -> _Sparse:
    """An archive with storages of these sizes, written by the rules of torch's zip writer."""
    file, directory = _Sparse(), b""
    names = ["data.pkl", *(f"data/{index}" for index in range(len(sizes))), "version"]
    for short, size in zip(names, [3, *sizes, 2], strict=True):
        name, at = f"archive/{short}".encode(), file.size
        numbers = [size, size] if size >= _U32_MAX else []
        numbers += [at] if at >= _U32_MAX else []
        wide = struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
        filler = -(at + 30 + len(name) + len(wide) + 4) % 64
        # The header is written before it is known how much will have been packed.
        padding = wide[:12] + bytes(8) + wide[20:] if size >= _U32_MAX else wide
        padding += b"FB" + struct.pack("<H", filler) + b"Z" * filler
        local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 0, 0x808, *[0] * 6, len(name), len(padding))
        content = b"\x80\x02." if size == 3 else b"3\n" if size == 2 else b""
        file.add(local + name + padding + content, 0 if content else size)
        layout = "<4sL2Q" if numbers else "<4s3L"
        file.add(struct.pack(layout, b"PK\x07\x08", 0, size, size))
        short_size, short_at = min(size, _U32_MAX), min(at, _U32_MAX)
        shown = extra(wide)
        directory += struct.pack(
            "<4s6H3L5H2L",
            *(b"PK\x01\x02", 0, 0, 0x808, 0, 0, 0, 0, short_size, short_size, len(name)),
            *(len(shown), 0, 0, 0, 0, short_at),
        )
        directory += name + shown
    at, count = file.size, len(names)
    file.add(directory)
    end64 = file.size
    file.add(struct.pack("<4sQ2H2L", b"PK\x06\x06", 44, 0x031E, 45, 0, 0))
    file.add(struct.pack("<4Q", count, count, len(directory), at))
    file.add(struct.pack("<4sLQL", b"PK\x06\x07", 0, end64, 1))
    narrow = min(at, _U32_MAX)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), narrow, 0)
    file.add(end)
    return file


@pytest.mark.parametrize(
    "sizes", [[100], [3 << 30, 3 << 30, 8], [5 << 30, 8], [5 << 30, 6 << 30], [_U32_MAX]]
)
def test_archive_beyond_four_gibibytes_is_read(sizes: list[int]) -> None:
    """Sizes and places of 64 bits stand in extra fields, and long descriptors follow."""
    file = _large(sizes)
    found = read_archive(file.read, file.size, "f")

    assert [found.records[f"data/{index}"].size for index in range(len(sizes))] == sizes


@pytest.mark.parametrize(
    "change",
    [
        lambda wide: wide[:-1] + b"\xff" if wide else wide,
        lambda wide: wide + b"\1\0\0\0" if wide else wide,
        lambda _wide: b"",
        lambda wide: b"\2" + wide[1:] if wide else wide,
    ],
    ids=["another number", "twice", "none", "another field"],
)
def test_wrong_field_of_64_bits_is_refused(change: Callable[[bytes], bytes]) -> None:
    """The field is exactly the numbers that did not fit."""
    file = _large([5 << 30, 8], extra=change)

    with pytest.raises(ModelMalformed):
        read_archive(file.read, file.size, "f")


def _patched(at: int, data: bytes, *, mark: bytes = b"PK\x05\x06") -> bytes:
    """An honest file with other bytes at a distance from the last mark."""
    whole = bytearray(saved(1))
    start = whole.rindex(mark) + at
    whole[start : start + len(data)] = data
    return bytes(whole)


@pytest.mark.parametrize(
    "data",
    [
        _patched(0, b"XX"),
        _patched(20, b"\1"),
        _patched(4, b"\1"),
        _patched(0, b"XX", mark=b"PK\x06\x07"),
        _patched(0, b"XX", mark=b"PK\x06\x06"),
        _patched(4, b"\xff", mark=b"PK\x06\x06"),
        _patched(16, b"\1", mark=b"PK\x06\x06"),
        _patched(16, b"\2", mark=b"PK\x06\x07"),
        _patched(40, b"\1", mark=b"PK\x06\x06"),
        _patched(0, b"XX", mark=b"PK\x01\x02"),
        _patched(28, b"\xff", mark=b"PK\x01\x02"),
        _patched(46, b"\xff", mark=b"PK\x01\x02"),
        _patched(32, b"\1", mark=b"PK\x01\x02"),
        b"\0" * 8 + b"PK\x06\x07" + b"\0" * 16 + saved(1)[-22:],
    ],
    ids=[
        *("no end", "comment", "disk", "no locator", "no wide end", "wide length", "wide disk"),
        *("disks", "wide size", "no entry", "long name", "name not UTF-8", "entry comment"),
        "wide end before the file",
    ],
)
def test_directory_that_does_not_add_up_is_refused(data: bytes) -> None:
    """Every number of the end records and the directory is compared."""
    with pytest.raises(ModelMalformed, match=r"^f: "):
        _read(data)


@pytest.mark.parametrize("name", ["version", "data/0"])
def test_record_that_reaches_into_the_directory_is_refused(name: str) -> None:
    """Whether it is read or only passed over."""
    records = {"data.pkl": b"\x80\x02N.", name: b"3\n"}
    data = archive(records, changes={name: {"size": 5000, "packed": 5000}})

    with pytest.raises(ModelMalformed, match="to end before the directory"):
        _read(data)


@pytest.mark.parametrize("name", ["version", "data/0"])
def test_record_that_is_cut_off_by_the_directory_is_refused(name: str) -> None:
    """Its header or descriptor has no room."""
    records = {"data.pkl": b"\x80\x02N.", name: b"3" * 16}
    whole = archive(records)
    start = whole.index(b"PK\x01\x02")
    for cut in (1, 17, 40, 100):
        data = whole[: start - cut] + whole[start:]
        at = data.rindex(b"PK\x06\x06")
        data = data[: at + 48] + struct.pack("<Q", start - cut) + data[at + 56 :]
        data = data[: at + 64] + struct.pack("<Q", at) + data[at + 72 : -6]
        data += struct.pack("<LH", start - cut, 0)

        with pytest.raises(ModelMalformed, match=r"^f: record "):
            _read(data)


def test_archive_with_narrow_end_records_is_read() -> None:
    """Where nothing needs 64 bits, the records for them may be missing."""
    data = saved({"a": 1})
    narrow = data[: data.rindex(b"PK\x06\x06")] + data[-22:]

    assert _read(narrow).contents == _read(data).contents


def test_numbers_that_need_wide_records_are_refused_without_them() -> None:
    """The narrow record says that it is not enough."""
    data = saved({"a": 1})
    end = bytearray(data[-22:])
    end[8:12] = b"\xff" * 4

    with pytest.raises(ModelMalformed, match="the 64-bit end records of a zip are missing"):
        _read(data[: data.rindex(b"PK\x06\x06")] + bytes(end))


@pytest.mark.parametrize("change", [-1, 1])
def test_directory_has_exactly_its_entries(change: int) -> None:
    """One fewer or one more than there are is refused."""
    data = bytearray(saved(1))
    count = data[-14]
    data[-14:-10] = struct.pack("<2H", *[count + change] * 2)
    at = data.rindex(b"PK\x06\x06")
    data[at + 24 : at + 40] = struct.pack("<2Q", *[count + change] * 2)

    with pytest.raises(ModelMalformed, match="records"):
        _read(bytes(data))


def test_padding_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers are held in memory, so there is a bound for all of them together."""
    monkeypatch.setattr("sealpoint_models.scan._torch_zip._PADDING_BYTES_MAX", 100)

    with pytest.raises(ModelLimitExceeded, match="more than 100 bytes of padding"):
        _read(saved([torch.ones(1) for _ in range(9)]))


def test_too_many_records_are_refused_before_they_are_read() -> None:
    """The count is compared before the directory is."""
    data = bytearray(saved(1))
    at = data.rindex(b"PK\x06\x06")
    data[at + 24 : at + 40] = struct.pack("<2Q", MODEL_TENSORS_MAX + 1, MODEL_TENSORS_MAX + 1)
    data[-14:-10] = b"\xff" * 4

    with pytest.raises(ModelLimitExceeded, match=f"at most {MODEL_TENSORS_MAX} records"):
        _read(bytes(data))


def test_long_name_is_refused() -> None:
    """Names are bounded."""
    with pytest.raises(ModelLimitExceeded, match=f"at most {MODEL_NAME_BYTES_MAX} bytes"):
        _read(archive({"data.pkl": b"\x80\x02N."}, folder="x" * 3000))


@pytest.mark.parametrize("folder", ["..", ".", "a\\b", "a\nb", "\x7f", ""])
def test_folder_that_is_no_plain_name_is_refused(folder: str) -> None:
    """Whoever unpacks an accepted archive stays where it is."""
    with pytest.raises(ModelMalformed, match="expected records in one folder"):
        _read(archive({"data.pkl": b"\x80\x02N.", "version": b"3\n"}, folder=folder))


@pytest.mark.parametrize("name", ["data/a", "data/", "data/1/2", "data/-1", "DATA/0", "../x", "x"])
def test_record_that_torch_does_not_write_is_refused(name: str) -> None:
    """Storages have numbers; all other names are known."""
    with pytest.raises(ModelMalformed, match=r"expected only records that torch.save writes"):
        _read(archive({"data.pkl": b"\x80\x02N.", name: b"x"}))


def test_archive_without_a_pickle_is_refused() -> None:
    """There is nothing to load."""
    with pytest.raises(ModelMalformed, match=r"the record 'data\.pkl' is missing"):
        _read(archive({"version": b"3\n"}))


def test_large_note_is_refused() -> None:
    """The small records are small."""
    with pytest.raises(ModelLimitExceeded, match="record 'version': expected at most 64 bytes"):
        _read(archive({"data.pkl": b"\x80\x02N.", "version": b"3" * 65}))


def test_compression_is_told_before_anything_else() -> None:
    """Every method but none is compression."""
    data = archive({"data.pkl": b"x"}, changes={"data.pkl": {"method": 8, "flags": 1}})

    with pytest.raises(RecordCompressed, match="found compression method 8"):
        _read(data)
