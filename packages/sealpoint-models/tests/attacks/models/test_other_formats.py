# SPDX-License-Identifier: Apache-2.0
"""Files that torch would hand to an older or another loader.

CVE-2025-32434 ran code through the loaders for tar files and TorchScript. The stream of torch
before 1.6 still loads with torch, and its storages need not be there; here they have to be.
"""

import bz2
import gzip
import io
import lzma
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from sealpoint.errors import FormatRefused, ModelMalformed, RecordMismatch
from tests.pt_files import archive, ours, saved, stock, storage, tensor

_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def _legacy_without_storage(count: int) -> bytes:
    """A stream that declares a storage of so many floats, and lists none to be read."""
    # The parts of a reference are of the older form: they end with the metadata of a view.
    held = storage("FloatStorage", "0", count).removesuffix(b"tQ") + b"NtQ"
    version = b"X\x10\x00\x00\x00protocol_versionM\xe9\x03"
    machine = b"\x80\x02}(X\x0d\x00\x00\x00little_endian\x88" + version + b"u."
    head = _MAGIC + b"\x80\x02M\xe9\x03." + machine
    return head + b"\x80\x02" + tensor(held, [count], [1]) + b"." + b"\x80\x02]."


def test_stream_without_its_storage_is_refused() -> None:
    """Torch gives 16 MB of memory as it was left by somebody else, for 200 bytes; here nothing."""
    data = _legacy_without_storage(1 << 22)

    assert len(data) < 300
    assert stock(data).untyped_storage().nbytes() == 1 << 24
    with pytest.raises(RecordMismatch, match="expected a record for storage '0'"):
        ours(data)


def _stream(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def test_honest_stream_loads() -> None:
    """The control: what torch before 1.6 wrote is read by the same rules."""
    data = _stream({"a": torch.ones(2), "b": "text"})

    assert ours(data)["a"].tolist() == stock(data)["a"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda data: data + b"\0", ModelMalformed),
        (lambda data: data[:-1], RecordMismatch),
        (lambda data: data[:-16] + b"\xff" * 7 + b"\x7f" + data[-8:], RecordMismatch),
        (lambda data: data[:-16] + b"\xff" * 8 + data[-8:], RecordMismatch),
        (lambda data: data[:-16] + b"\x01" + b"\0" * 7 + data[-8:], ModelMalformed),
        (lambda data: data.replace(b"little_endian", b"little_finger"), ModelMalformed),
        (lambda data: data.replace(b"M\xe9\x03.", b"M\xea\x03."), ModelMalformed),
        (lambda data: data.replace(b"X\x05\0\0\0shortq\x05", b"]q\x05"), ModelMalformed),
        (lambda data: data.replace(b"shortq\x05K\x02", b"shortq\x05N"), ModelMalformed),
    ],
    ids=[
        *("a byte more", "a byte less", "too long", "negative", "too short", "machine", "version"),
        *("a size without a name", "a size that is no number"),
    ],
)
def test_stream_that_does_not_add_up_is_refused(
    change: Callable[[bytes], bytes], error: type[Exception]
) -> None:
    """Every byte belongs to the pickles or to one storage."""
    with pytest.raises(error):
        ours(change(_stream(torch.ones(2))))


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archived:
        for name in ("model.pt", "notes"):
            archived.addfile(tarfile.TarInfo(name))
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.ones(2))
    return file.getvalue()


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones(2))
    return file.getvalue()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_refused(tmp_path: Path) -> None:
    """A TorchScript archive is a program; the check comes before its compressed records."""
    path = tmp_path / "script.pt"
    script: Any = torch.jit.script(torch.nn.Linear(2, 2))
    script.save(str(path))

    with pytest.raises(FormatRefused, match="found a TorchScript archive, which is a program"):
        ours(path.read_bytes())


_OTHERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "tar": (_tar, "a tar archive"),
    "npz": (_npz, r"a numpy \.npz archive"),
    "npy": (_npy, r"a numpy \.npy file"),
    "not a pickle": (lambda: b"Iam text\n", "no format that is known"),
    "gzip": (lambda: gzip.compress(saved(1)), "a gzip file"),
    "bzip2": (lambda: bz2.compress(saved(1)), "a bzip2 file"),
    "xz": (lambda: lzma.compress(saved(1)), "an xz file"),
    "lzma": (lambda: lzma.compress(saved(1), lzma.FORMAT_ALONE), "an lzma file"),
    "7z": (lambda: b"7z\xbc\xaf\x27\x1c" + b"\0" * 40, "a 7z archive"),
    "zstd": (lambda: b"\x28\xb5\x2f\xfd" + b"\0" * 40, "a zstd file"),
    "lz4": (lambda: b"\x04\x22\x4d\x18" + b"\0" * 40, "an lz4 file"),
    "zlib": (lambda: b"\x78\x9c" + b"\0" * 40, "a zlib stream"),
    "hdf5": (lambda: b"\x89HDF\r\n\x1a\n" + b"\0" * 40, "an HDF5 file"),
    "gguf": (lambda: b"GGUF" + b"\0" * 40, "a GGUF file"),
    "tflite": (lambda: b"\x1c\0\0\0TFL3" + b"\0" * 40, "a TFLite file"),
    "torch.export": (lambda: _zip_of("p/archive_format"), r"a torch\.export archive"),
    "onnx": (lambda: b"\x08\x09\x12\x07pytorch", "an ONNX file"),
    "safetensors": (lambda: save({"a": torch.ones(2)}), "a safetensors file"),
    "keras": (lambda: _zip_of("config.json"), "a Keras archive"),
    "torch.package": (lambda: _zip_of("p/.data/extern_modules"), r"a torch\.package archive"),
    "code": (lambda: archive({"data.pkl": b"", "code/a.py": b"x"}), "a TorchScript archive"),
    "empty zip": (lambda: b"PK\x05\x06" + b"\0" * 18, "an empty zip"),
    "empty": (lambda: b"", "an empty file"),
    "pointer": (lambda: b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
    "page": (lambda: b"<!DOCTYPE html><html>", "a web page"),
    "text": (lambda: b"hello", "no format that is known"),
    "prefix": (lambda: b"MZ" + saved(1), "no format that is known"),
}


def _zip_of(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archived:
        archived.writestr(name, struct.pack("<q", 1))
    return file.getvalue()


@pytest.mark.parametrize("protocol", range(6))
def test_bare_pickle_is_read_as_data(protocol: int) -> None:
    """A pickle is a program; what is read of it is what it says."""
    assert ours(pickle.dumps({"a": [1, "b"]}, protocol)) == {"a": [1, "b"]}


@pytest.mark.parametrize(("make", "found"), _OTHERS.values(), ids=_OTHERS)
def test_other_format_is_refused_by_its_name(make: Callable[[], bytes], found: str) -> None:
    """The message says what the file looks like, and the hint what to do."""
    with pytest.raises(FormatRefused, match=f"found {found}") as caught:
        ours(make())

    assert caught.value.hint
