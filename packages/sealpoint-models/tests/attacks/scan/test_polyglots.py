# SPDX-License-Identifier: Apache-2.0
"""Files that begin as something harmless, and that a loader of models reads as something else."""

import io
import json
import pickle
import struct
import tarfile
import time
import zipfile
import zlib

import numpy as np
import pytest
import torch
from torch.package.package_importer import PackageImporter

from sealpoint_models.scan import ScanVerdict, scan_bytes

_GIF = b"GIF89a\x01\x01\x01"
"""To an unpickler: a float, and what follows are opcodes."""
_CALL = b"cbuiltins\nlen\n(]tR"
_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, 2)[2:]


@pytest.mark.parametrize(
    "opcodes",
    [
        pytest.param(_CALL + b".", id="called at once"),
        pytest.param(b"Nb" + _CALL + b".", id="after a state that sets nothing"),
        pytest.param(b"0" + _MAGIC + b"M\xe9\x03.}." + _CALL + b".].", id="in a stream of torch"),
        pytest.param(b"(]ibuiltins\nlenX", id="by a line that the file ends"),
        pytest.param(b"cthis\nd\n.", id="by an import"),
        pytest.param(b"cthis\n%\n", id="by an import of what has no such name"),
        pytest.param(b"cthisX", id="by an import that the file ends"),
        pytest.param(b"(ithis\n(\n", id="by an import for an instance"),
        pytest.param(b"\x8c\x04this\x8c\x01d\x93.", id="by an import of names on the stack"),
        pytest.param(b"\x95\x02" + bytes(7) + b"C\x05" + _CALL[:5] + b".", id="behind a frame"),
    ],
)
def test_a_picture_that_a_loader_reads_as_a_pickle_is_unsafe(opcodes: bytes) -> None:
    """Whatever the opcodes do first, a picture whose opcodes import something is not safe."""
    report = scan_bytes(_GIF + opcodes, "model.pt")

    rules = [finding.rule for finding in report.findings]
    assert rules == ["two-formats", "format-unknown"]


def test_a_text_whose_last_line_is_called_is_not_safe() -> None:
    """The unpickler that is written in Python calls what the end of a file ends."""
    report = scan_bytes(b"(]ibuiltins\nlenX", "notes.txt")

    assert report.verdict is not ScanVerdict.SAFE


def _tar(first: bytes, field: str) -> bytes:
    """A tar whose first header begins with other bytes, with its checksum in one of the forms."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("first", "pickle"):
            member = tarfile.TarInfo(name)
            member.size = len(_CALL)
            tar.addfile(member, io.BytesIO(_CALL))
    data = bytearray(packed.getvalue())
    data[:100] = first.ljust(100, b"\x00")
    data[148:156] = b" " * 8
    total = sum(data[:512])
    signed = total - 256 * sum(byte > 127 for byte in data[:512])
    data[148:156] = {
        "signed": b"%06o\x00 " % signed,
        "filled": b"%06o\x00!" % total,
        "binary": b"\x80" + total.to_bytes(7, "big"),
        "plus": b"+%05o\x00 " % total,
        "separator": b"\x1c%06o\x00" % total,
    }[field]
    return bytes(data)


@pytest.mark.parametrize("field", ["signed", "filled", "binary", "plus", "separator"])
def test_a_picture_that_is_a_tar_to_python_is_unsafe(field: str) -> None:
    """A tar is one in every spelling of its checksum that Python's own reader takes."""
    data = _tar(b"\x89PNG\r\n\x1a\n", field)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        names = tar.getnames()
    report = scan_bytes(data, "model.pt")

    assert names[1] == "pickle"
    rules = [finding.rule for finding in report.findings]
    assert rules == ["two-formats", "format-unknown"]


def test_a_tar_without_a_first_name_is_a_tar() -> None:
    """A header that begins with a zero is one to Python."""
    data = _tar(b"", "signed")
    report = scan_bytes(data, "model.bin")

    assert report.format == "tar"
    assert report.verdict is ScanVerdict.DANGEROUS


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.AREGTYPE])
def test_a_file_of_a_tar_that_is_called_like_a_folder_is_refused(kind: bytes) -> None:
    """Readers differ in whether its content is skipped, or is the members that follow."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo("folder/")
        member.type, member.size = kind, 512
        tar.addfile(member, io.BytesIO(b"a" * 512))
    report = scan_bytes(packed.getvalue(), "data.tar")

    assert [finding.rule for finding in report.findings] == ["archive-irregular"]


@pytest.mark.parametrize("weights", ["model.weights.h5", "model.weights.npz", "model.weights.json"])
def test_a_keras_archive_is_one_whatever_its_weights_are(weights: str) -> None:
    """The configuration is judged in every form in which Keras keeps weights beside it."""
    packed = io.BytesIO()
    config = {"class_name": "Lambda", "module": "keras.layers", "config": {}}
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr(weights, b"{}")
    report = scan_bytes(packed.getvalue(), "model.zip")

    assert report.format == "keras"
    assert report.verdict is ScanVerdict.DANGEROUS


_LAMBDA = {"class_name": "Lambda", "module": "keras.layers", "config": {}}


@pytest.mark.parametrize("config", [_LAMBDA, {"a": [_LAMBDA]}])
@pytest.mark.parametrize("name", ["config.json", "models/Config.json"])
def test_the_configuration_of_keras_in_a_folder_is_judged(name: str, config: object) -> None:
    """Keras builds a model of the configuration in a folder before it looks for weights."""
    report = scan_bytes(json.dumps(config).encode(), name)

    assert [finding.rule for finding in report.findings] == ["keras-code"]


@pytest.mark.parametrize(
    "text", ['{"class_name": "Lambda"}', '{"a": 1, "a": {"module": "x"}}', "{", "# a comment"]
)
def test_the_configuration_of_something_else_is_text(text: str) -> None:
    """What Keras would make nothing of is not held to its rules."""
    report = scan_bytes(text.encode(), "config.json")

    assert (report.format, report.verdict) == ("text", ScanVerdict.NOT_READ)


def test_a_member_of_a_zip_that_has_two_names_is_refused() -> None:
    """Python since 3.12 takes the name in an extra field: Keras reads another configuration."""
    packed = io.BytesIO()
    other = zipfile.ZipInfo("assets/words.json")
    field = struct.pack("<BL", 1, zlib.crc32(other.filename.encode())) + b"config.json"
    other.extra = struct.pack("<2H", 0x7075, len(field)) + field
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("metadata.json", b"{}")
        archive.writestr("config.json", b"{}")
        archive.writestr(other, b'{"class_name": "Lambda", "module": "keras.layers"}')
    report = scan_bytes(packed.getvalue(), "model.keras")

    assert "archive-irregular" in {finding.rule for finding in report.findings}


def test_many_ends_of_zips_are_not_looked_at_one_by_one() -> None:
    """Members full of what ends a zip take no time, and are not safe."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(50):
            archive.writestr(f"{number}.png", b"\x89PNG\r\n\x1a\n" + b"PK\x05\x06" * 16384)
    begun = time.process_time()
    report = scan_bytes(packed.getvalue(), "pictures.zip")

    assert time.process_time() - begun < 1
    assert {finding.rule for finding in report.findings} == {"two-formats"}


def _package(before: bytes = b"", folder: str = "p/.data") -> bytes:
    """A torch.package archive behind other bytes, with the source of one module."""
    packed = io.BytesIO(before)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("p/some.py", "number = 42\n")
        archive.writestr(f"{folder}/version", "6\n")
        archive.writestr(f"{folder}/extern_modules", "")
    return packed.getvalue()


def _run(data: bytes) -> object:
    """What the module in a package says, to which torch gives a name of its own."""
    return PackageImporter(io.BytesIO(data)).import_module("some").number


@pytest.mark.parametrize("said", [0, 0xFFFFFFFF])
def test_a_picture_that_ends_as_a_zip_of_64_bits_is_unsafe(said: int) -> None:
    """Torch and Python take the directory from the 64-bit record, whatever the end record says."""
    data = _package(b"\x89PNG\r\n\x1a\n")
    at = len(data) - 22
    _, _, _, _, count, length, offset, _ = struct.unpack("<4s4H2LH", data[at:])
    narrow = said & 0xFFFF
    data = data[:at] + b"".join(
        (
            struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, offset),
            struct.pack("<4sLQL", b"PK\6\7", 0, at, 1),
            struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, narrow, narrow, said, said, 0),
        )
    )

    assert _run(data) == 42
    assert zipfile.is_zipfile(io.BytesIO(data))
    assert [each.rule for each in scan_bytes(data, "a.png").findings] == ["two-formats"]


def test_a_picture_that_is_a_zip_far_from_its_end_is_unsafe() -> None:
    """Torch looks for the end of a zip in more bytes than a comment may have."""
    data = _package(b"\x89PNG\r\n\x1a\n" + bytes(10_000)) + bytes(67_000)

    assert _run(data) == 42
    assert [each.rule for each in scan_bytes(data, "a.png").findings] == ["two-formats"]


def test_a_package_of_torch_is_one_in_large_letters() -> None:
    """To torch, the names of records are the same in large and in small letters."""
    data = _package(folder="p/.DATA")

    assert _run(data) == 42
    assert scan_bytes(data, "model.zip").format == "torch-package"


def test_a_file_of_torch_in_large_letters_is_judged_as_one() -> None:
    """A value in an archive with other names than torch writes is not one of any archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/DATA.PKL", pickle.dumps([42], 2))
        archive.writestr("a/version", "3\n")

    assert torch.load(io.BytesIO(packed.getvalue()), weights_only=False) == [42]
    report = scan_bytes(packed.getvalue(), "model.pt")
    assert (report.format, report.verdict) == ("torch-zip", ScanVerdict.DANGEROUS)


# ---------------------------------------------------------------------- HDF5 behind something else


_SIGN = b"\x89HDF\r\n\x1a\n"


def _behind(front: bytes, block: int) -> bytes:
    """What readers of HDF5 take for it: its sign, behind a block of the user's."""
    assert len(front) <= block
    return front.ljust(block, b"\x00") + _SIGN + bytes(2048)


_HEADER = b'{"__metadata__":{}}'
_FRONTS = {
    "logo.png": b"\x89PNG\r\n\x1a\n",
    "model.safetensors": struct.pack("<Q", len(_HEADER)) + _HEADER,
    "train.parquet": b"PAR1",
    "model": b"a text, and nothing more\n",
    "model.gguf": b"GGUF" + struct.pack("<IQQ", 3, 0, 0),
    "model.npy": b"",
}


@pytest.mark.parametrize("name", _FRONTS)
@pytest.mark.parametrize("block", [512, 1024, 2048, 1 << 20])
def test_hdf5_behind_something_else_is_unsafe(name: str, block: int) -> None:
    """Its readers look for it there, and Keras 2 asks them, whatever a file is called (A04)."""
    front = _FRONTS[name]
    if name == "model.npy":
        packed = io.BytesIO()
        np.save(packed, np.zeros(4, dtype="<f8"))
        front = packed.getvalue()
    data = _behind(front, block)

    assert "two-formats" in {finding.rule for finding in scan_bytes(data, name).findings}


def test_the_sign_of_hdf5_anywhere_else_says_nothing() -> None:
    """A tensor may hold any bytes."""
    data = bytearray(_tensors(4096))
    for at in (511, 513, 768, 1536, 3000):
        data[at : at + 8] = _SIGN

    assert scan_bytes(bytes(data), "model.safetensors").verdict is ScanVerdict.SAFE


def _tensors(size: int) -> bytes:
    entry = {"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    header = json.dumps(entry).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)
