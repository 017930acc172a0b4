# SPDX-License-Identifier: Apache-2.0
"""Files of numpy and joblib become files of ours, and nothing in them is run."""

import gzip
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch

from sealpoint.errors import GlobalNotAllowed, ModelError, ModelMalformed, ValueNotAllowed
from sealpoint_models import convert_checkpoint, load_checkpoint
from tests.scan.assembler import PAYLOAD, zipped
from tests.training import same_state

_ARRAYS: dict[str, Any] = {
    "numbers": np.arange(12.0).reshape(3, 4),
    "columns": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
    "texts": np.array(["a", "bc"]),
    "moments": np.array(["2026-01-01"], dtype="M8[D]"),
    "records": np.zeros(3, [("x", "f4"), ("y", "i2", (2, 2))]),
    "booleans": np.array([True, False]),
    "empty": np.zeros((0, 3)),
    "one": np.array(1.5),
}


def _npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _converted(data: bytes, folder: Path, **options: Any) -> Any:
    source, target = folder / "old", folder / "new.safetensors"
    source.write_bytes(data)
    convert_checkpoint(source, target, force=True, **options)
    return load_checkpoint(target)


@pytest.mark.parametrize("name", _ARRAYS)
def test_an_array_of_numpy_is_converted(name: str, tmp_path: Path) -> None:
    """Type, shape and elements stay what they are."""
    assert same_state(_converted(_npy(_ARRAYS[name]), tmp_path), _ARRAYS[name])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_of_numpy_are_converted(save: Any, tmp_path: Path) -> None:
    """Each array comes by its name."""
    buffer = io.BytesIO()
    save(buffer, **_ARRAYS)

    assert same_state(_converted(buffer.getvalue(), tmp_path), _ARRAYS)


@pytest.mark.parametrize("compress", [0, 3, *((kind, 3) for kind in ("gzip", "bz2", "xz", "lzma"))])
def test_files_of_joblib_are_converted(compress: Any, tmp_path: Path) -> None:
    """Arrays between opcodes are found in every compression, and the rest is plain data."""
    records = np.zeros(3, [("x", "f4"), ("y", "i2")])
    arrays = [records if name == "records" else each for name, each in _ARRAYS.items()]
    state = {"arrays": arrays, "name": "ridge", "again": _ARRAYS["numbers"], "n": None}
    buffer = io.BytesIO()
    joblib.dump(state, buffer, compress=compress)

    assert same_state(_converted(buffer.getvalue(), tmp_path), state)


@pytest.mark.parametrize("compress", [0, 3])
def test_tensors_in_files_of_joblib_are_converted(compress: int, tmp_path: Path) -> None:
    """Beside arrays and among objects: each brings its storage, and shares it with nobody."""
    state: dict[str, Any] = {
        "tensor": torch.arange(6.0).view(2, 3).t(),
        "array": np.arange(3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    buffer = io.BytesIO()
    joblib.dump(state, buffer, compress=compress)
    found = _converted(buffer.getvalue(), tmp_path)

    assert same_state(found["array"], state["array"])
    assert torch.equal(found["tensor"], state["tensor"])
    assert type(found["parameter"]) is torch.nn.Parameter


def test_a_packed_pickle_is_converted(tmp_path: Path) -> None:
    """A pickle in a stream needs no joblib to have written it."""
    assert _converted(gzip.compress(pickle.dumps({"epoch": 3})), tmp_path) == {"epoch": 3}


@pytest.mark.parametrize("unknown", ["refuse", "inert"])
def test_arrays_of_objects_are_refused_or_dropped(unknown: str, tmp_path: Path) -> None:
    """A file of ours holds no objects: the path is named, and dropping is for the caller to say."""
    held = {"objects": np.array([1, "a", None], dtype=object), "numbers": np.arange(3)}
    buffer = io.BytesIO()
    joblib.dump(held, buffer)
    with pytest.raises(ValueNotAllowed, match="objects"):
        _converted(buffer.getvalue(), tmp_path, unknown=unknown)

    assert same_state(
        _converted(buffer.getvalue(), tmp_path, unknown="drop"), {"numbers": held["numbers"]}
    )


def _joblib() -> bytes:
    buffer = io.BytesIO()
    joblib.dump(np.arange(4), buffer)
    return buffer.getvalue()


def _objects_npy(payload: bytes) -> bytes:
    whole = _npy(np.array([None], dtype=object))
    return whole[: whole.index(b"\x80\x04")] + payload


@pytest.mark.parametrize(
    "data",
    [
        _objects_npy(PAYLOAD),
        zipped({"a.npy": _npy(np.arange(3)), "b.npy": _objects_npy(PAYLOAD)}),
        gzip.compress(PAYLOAD, mtime=0),  # the name of the test is made of it
        _joblib().replace(b"\x8c\x05dtype", b"\x8c\x05dtyqe"),
        _joblib()[:-8],
        _joblib() + PAYLOAD,
        _npy(np.arange(3))[:-1],
        _npy(np.arange(3)).replace(b"False", b"99999"),
        _npy(np.array([True]))[:-1] + b"\x02",
        zipped({"a.npy": _npy(np.arange(3)), "b.txt": b"x"}),
        zipped({"a.npy": _npy(np.arange(3))}, method=zipfile.ZIP_DEFLATED)[:-30],
        # What stands for an array, made by a call that nothing lies behind.
        b"\x80\x02ccopyreg\n__newobj__\ncjoblib.numpy_pickle\nNumpyArrayWrapper\n\x85R}b.",
    ],
    ids=[
        "objects.npy",
        "objects in npz",
        "packed pickle",
        "joblib with another word",
        "joblib cut off",
        "joblib and a pickle",
        "npy cut off",
        "npy with another word",
        "npy of no boolean",
        "npz with a text",
        "npz cut off",
        "a wrapper that is called",
    ],
)
def test_what_is_damaged_or_calls_is_refused(data: bytes, tmp_path: Path) -> None:
    """Payloads in every place, cut and changed files: refused, and nothing was written or run."""
    with pytest.raises(ModelError):
        _converted(data, tmp_path)

    assert {each.name for each in tmp_path.iterdir()} == {"old"}


def test_names_in_a_file_of_joblib_are_listed_or_inert(tmp_path: Path) -> None:
    """A class that no table knows is refused with its name, and is data where that is said."""
    buffer = io.BytesIO()
    joblib.dump({"path": joblib.memory.MemorizedFunc, "weights": np.ones(2)}, buffer)
    with pytest.raises(GlobalNotAllowed, match=r"joblib\.memory\.MemorizedFunc"):
        _converted(buffer.getvalue(), tmp_path)
    found = _converted(buffer.getvalue(), tmp_path, unknown="inert")

    assert found["path"].type == "joblib.memory.MemorizedFunc"
    assert found["weights"].tolist() == [1, 1]
    with pytest.raises(ModelMalformed):
        _converted(b"\x93NUMPY\x01\x00", tmp_path)
