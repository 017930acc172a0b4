# SPDX-License-Identifier: Apache-2.0
"""Files that torch would hand to an older or another loader.

CVE-2025-32434 ran code through the loaders for tar files and TorchScript. The stream of torch
before 1.6 still loads, and its storages need not be there.
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

from sealpoint.errors import FormatRefused
from tests.pt_files import archive, ours, saved, stock, storage, tensor

_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def _legacy_without_storage(count: int) -> bytes:
    """A stream that declares a storage of so many floats, and lists none to be read."""
    # The parts of a reference are of the older form: they end with the metadata of a view.
    held = storage("FloatStorage", "0", count).removesuffix(b"tQ") + b"NtQ"
    head = _MAGIC + b"\x80\x02M\xe9\x03." + b"\x80\x02}(X\x0d\x00\x00\x00little_endian\x88u."
    return head + b"\x80\x02" + tensor(held, [count], [1]) + b"." + b"\x80\x02]."


def test_stream_without_its_storage_is_refused() -> None:
    """Torch gives 16 MB of memory as it was left by somebody else, for 200 bytes; here nothing."""
    data = _legacy_without_storage(1 << 22)

    assert len(data) < 300
    assert stock(data).untyped_storage().nbytes() == 1 << 24
    with pytest.raises(FormatRefused, match=r"m\.pt: .*found a torch stream of before torch 1\.6"):
        ours(data)


def test_honest_stream_is_refused_too() -> None:
    """An older file has to be saved anew, whoever wrote it."""
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file, _use_new_zipfile_serialization=False)

    assert stock(file.getvalue())["a"].tolist() == [1, 1]
    with pytest.raises(FormatRefused) as caught:
        ours(file.getvalue())
    assert caught.value.hint is not None
    assert "save it again" in caught.value.hint


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archived:
        for name in ("storages", "tensors", "pickle"):
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
    "pickle 2": (lambda: pickle.dumps({"a": 1}, 2), "a bare pickle"),
    "pickle 5": (lambda: pickle.dumps({"a": 1}, 5), "a bare pickle"),
    "pickle 0": (lambda: pickle.dumps({"a": 1}, 0), "what may be a pickle of an old protocol"),
    "gzip": (lambda: gzip.compress(saved(1)), "a gzip file"),
    "bzip2": (lambda: bz2.compress(saved(1)), "a bzip2 file"),
    "xz": (lambda: lzma.compress(saved(1)), "an xz file"),
    "lzma": (lambda: lzma.compress(saved(1), lzma.FORMAT_ALONE), "an lzma file"),
    "7z": (lambda: b"7z\xbc\xaf\x27\x1c" + b"\0" * 40, "a 7z archive"),
    "zstd": (lambda: b"\x28\xb5\x2f\xfd" + b"\0" * 40, "a zstd file"),
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


@pytest.mark.parametrize(("make", "found"), _OTHERS.values(), ids=_OTHERS)
def test_other_format_is_refused_by_its_name(make: Callable[[], bytes], found: str) -> None:
    """The message says what the file looks like, and the hint what to do."""
    with pytest.raises(FormatRefused, match=f"found {found}") as caught:
        ours(make())

    assert caught.value.hint
