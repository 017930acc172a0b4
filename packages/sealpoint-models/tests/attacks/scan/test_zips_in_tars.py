# SPDX-License-Identifier: Apache-2.0
"""Tars that end with a zip: readers of zips that are given one find that zip, or another one.

A zip is read from its end, and what lies behind it is taken for nothing. Python adds what lies
before a zip to the offsets in it; torch does not, so that it looks for the directory elsewhere.
"""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import PurePath

import numpy as np
import pytest
import torch
from torch.package.package_importer import PackageImporter

from sealpoint_models.scan import ScanVerdict, scan_bytes
from tests.scan.assembler import tarred, zipped

_PNG = b"\x89PNG\r\n\x1a\n"
_END = struct.Struct("<4s4H2LH")
_HEADER_BYTES = 512
_DOCUMENT = b"a"


def _pt() -> bytes:
    packed = io.BytesIO()
    torch.save({"w": torch.ones(3)}, packed)
    return packed.getvalue()


def _npz() -> bytes:
    packed = io.BytesIO()
    np.savez_compressed(packed, w=np.ones(3))
    return packed.getvalue()


def _rules(data: bytes, name: str = "m.tar") -> list[tuple[str, str]]:
    """What is found, but that the texts and pictures around it are not models."""
    findings = scan_bytes(data, name).findings
    return [(each.rule, each.where) for each in findings if each.rule != "not-read"]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["run-7/ok.pt", "ok.npz", "ok.zip", f"{'a' * 90}/{'é' * 9}.zip"])
def test_a_tar_that_ends_with_a_zip_is_safe(name: str, form: int) -> None:
    """Archives of old runs are safe, packed or not, and a reader of zips finds what was judged."""
    data = {".pt": _pt, ".npz": _npz}.get(
        PurePath(name).suffix, lambda: zipped({"a.txt": _DOCUMENT})
    )()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as tar:
        for each in ("first.zip", name):
            member = tarfile.TarInfo(each)
            member.size, member.mtime = len(data), 1.5
            tar.addfile(member, io.BytesIO(data))
    held = packed.getvalue()
    inner, outer = zipfile.ZipFile(io.BytesIO(data)), zipfile.ZipFile(io.BytesIO(held))

    assert {each: outer.read(each) for each in outer.namelist()} == {
        each: inner.read(each) for each in inner.namelist()
    }
    with pytest.raises((RuntimeError, ValueError)):
        PackageImporter(io.BytesIO(held))
    assert _rules(held) == []
    assert _rules(gzip.compress(held), "m.tar.gz") == []


def test_a_tar_of_many_small_zips_is_safe() -> None:
    """However many of them end where readers of zips look."""
    data = zipped({"a.txt": _DOCUMENT})

    assert _rules(tarred({f"{number}.zip": data for number in range(100)})) == []


def _package(before: bytes) -> tuple[bytes, int, int]:
    """A picture at the beginning of a tar that holds a torch.package without its end record.

    With how many bytes its directory has, and where that begins in the tar.
    """
    packed = io.BytesIO(bytes(_HEADER_BYTES) + before)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("p/some.py", "number = 42\n")
        archive.writestr("p/.data/version", "6\n")
        archive.writestr("p/.data/extern_modules", "")
    data = packed.getvalue()
    *_, length, offset, _ = _END.unpack(data[-_END.size :])
    return data[_HEADER_BYTES : -_END.size], length, offset


def _run(data: bytes) -> object:
    """What the module in a package says, to which torch gives a name of its own."""
    return PackageImporter(io.BytesIO(data)).import_module("some").number


def _sized(names: list[str], offset: int) -> bytes:
    """A zip of texts whose directory lies at an offset."""
    headers = sum(30 + len(name) for name in names)
    members = dict.fromkeys(names, b"") | {names[0]: b"a" * (offset - headers)}
    return zipped(members)


def test_a_zip_whose_directory_is_another_one_to_torch_is_unsafe() -> None:
    """Where the offset of a judged zip leads to from the beginning of the tar counts, too."""
    picture, length, offset = _package(_PNG)
    harmless = _sized(["a" * 9, "b" * 15, "c" * 22], offset)
    data = tarred({"a.png": picture, "ok.zip": harmless})

    assert _END.unpack(harmless[-_END.size :])[5:7] == (length, offset)
    assert _run(data) == 42
    assert _rules(harmless, "ok.zip") == _rules(picture, "a.png") == []
    assert _rules(data) == [("two-formats", "")]


def _wide_end(count: int, length: int, offset: int) -> bytes:
    """An end record of 64 bits."""
    return struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, offset)


def test_a_zip_whose_wide_end_is_another_one_to_torch_is_unsafe() -> None:
    """Torch reads the end record of 64 bits where a zip says, and that is in another member."""
    picture, length, offset = _package(_PNG)
    at = offset + length
    picture += _wide_end(3, length, offset)
    narrow = _sized(["a.txt"], at - 46 - 5)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at, 1)
    harmless = narrow[:at] + _wide_end(1, 46 + 5, at - 46 - 5) + locator + narrow[at:]
    data = tarred({"a.png": picture, "ok.zip": harmless})

    assert _run(data) == 42
    assert _rules(harmless, "ok.zip") == _rules(picture, "a.png") == []
    assert _rules(data) == [("two-formats", "")]


def test_a_zip_whose_directory_is_that_of_another_zip_to_torch_is_unsafe() -> None:
    """Both zips of a tar are judged, but not what the one is with the offsets of the other."""
    first = _sized(["a.txt"], 2000)
    second = _sized(["b.txt"], _HEADER_BYTES + 2000)

    assert _rules(tarred({"a.zip": first, "b.zip": second})) == [("two-formats", "")]
    assert _rules(tarred({"b.zip": second, "a.zip": first})) == []


def test_a_zip_with_offsets_of_the_tar_is_unsafe() -> None:
    """It is none by itself: members of it may lie before it."""
    picture, length, offset = _package(_PNG)
    end = _END.pack(b"PK\5\6", 0, 0, 3, 3, length, offset, 0)
    data = tarred({"a.zip": b"PK\3\4" + picture[4:] + end})

    assert ("two-formats", "") in _rules(data)


@pytest.mark.parametrize("comment", [0, 1], ids=["no comment", "a comment up to the end"])
@pytest.mark.parametrize("place", ["in a picture", "behind a long name"])
def test_an_end_of_a_zip_elsewhere_in_a_tar_is_unsafe(place: str, comment: int) -> None:
    """A zip that was judged makes no other end of a zip good, before or behind it."""
    picture, length, _ = _package(_PNG)
    filler = {"ok.zip": zipped({"a.txt": _DOCUMENT})}

    def tar(end: bytes) -> bytes:
        if place == "in a picture":
            return tarred({"a.png": picture, "b.png": _PNG + end, **filler})
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            long = tarfile.TarInfo("././@LongLink")
            long.type, name = b"L", b"b.txt\0" + end
            for member, data in (
                (tarfile.TarInfo("a.png"), picture),
                (tarfile.TarInfo("ok.zip"), filler["ok.zip"]),
                (long, name),
                (tarfile.TarInfo("b.txt"), b""),
            ):
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        return packed.getvalue()

    mark = b"PK\5\6".ljust(_END.size, b"\xff")
    shape = tar(mark)
    at = shape.index(mark)
    back = at - (_HEADER_BYTES + len(picture) - length)
    behind = (len(shape) - at - _END.size) * comment
    data = tar(_END.pack(b"PK\5\6", 0, 0, 3, 3, back, 0, behind))

    assert len(data) == len(shape)
    assert _rules(data) == [("two-formats", "")]


def test_a_zip_at_the_end_of_a_comment_is_unsafe() -> None:
    """A zip that has a comment has two ends to some readers, inside of a tar as elsewhere."""
    inner = zipped({"a.txt": _DOCUMENT})
    data = tarred({"a.zip": zipped({"b.txt": _DOCUMENT}, comment=inner)})

    assert scan_bytes(data, "m.tar").verdict is ScanVerdict.DANGEROUS


def test_a_tar_of_torch_that_ends_with_a_zip_is_unsafe() -> None:
    """Its members are what torch makes of them, and no archives."""
    parts = dict.fromkeys(["sys_info", "pickle", "storages"], b"\x80\x02N.")
    data = tarred({**parts, "tensors": zipped({"a.txt": _DOCUMENT})})

    assert ("two-formats", "") in _rules(data)
