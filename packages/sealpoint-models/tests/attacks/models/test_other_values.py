# SPDX-License-Identifier: Apache-2.0
"""Pickles that would be another value to Python or numpy than to us, and numbers that cost time."""

import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint_models import load_checkpoint
from sealpoint_models.scan import ScanVerdict, scan_bytes


def _load(data: bytes, folder: Path) -> Any:
    path = folder / "model.pkl"
    path.write_bytes(data)
    return load_checkpoint(path, safe=True)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x80\x02c__builtin__\nset\n](K\x01K\x02e\x85\x81.", id="set"),
        pytest.param(b"\x80\x03cbuiltins\nbytearray\nC\x03abc\x85\x81.", id="bytearray"),
        pytest.param(
            b"\x80\x02ccopy_reg\n__newobj__\n(c__builtin__\nset\n]K\x01atR.", id="by a function"
        ),
    ],
)
def test_what_is_made_without_its_init_is_not_filled(data: bytes, tmp_path: Path) -> None:
    """A set or bytearray that Python would leave empty is refused, not filled."""
    assert not pickle.loads(data)  # plain types only
    assert scan_bytes(data, "model.pkl").verdict is ScanVerdict.DANGEROUS
    with pytest.raises(ModelMalformed):
        _load(data, tmp_path)


def test_an_ordered_dict_has_the_order_of_python(tmp_path: Path) -> None:
    """What it was given comes before what was put into it."""
    data = b"\x80\x02ccollections\nOrderedDict\n]](K\x01K\x01ea\x85R(K\x02K\x02u."

    assert list(_load(data, tmp_path)) == list(pickle.loads(data)) == [1, 2]


class _Written:
    """Is pickled as a call of something with arguments, and a state."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return self._parts


def _array(name: str, state: tuple[Any, ...], data: bytes) -> bytes:
    """An array of one element, whose type has this name and state."""
    kind = _Written(np.dtype, (name, False, True), state)
    empty = np.empty(0).__reduce__()
    return pickle.dumps(_Written(*empty[:2], (1, (1,), kind, False, data)))


_F8 = np.dtype("f8")


@pytest.mark.parametrize(
    ("name", "state", "size"),
    [
        pytest.param("f8", (3, "<", None, None, None, -1, -1, 3), 8, id="numbers as pointers"),
        pytest.param("V8", (3, "|", None, None, None, 8, 1, 3), 8, id="bytes as pointers"),
        pytest.param("V8", (3, "|", None, None, None, 8, 0, 0), 8, id="aligned to nothing"),
        pytest.param(
            "V8", (3, "|", (_F8, (1000,)), None, None, 8, 8, 0), 8000, id="longer than itself"
        ),
        pytest.param(
            "V8", (3, "|", None, ("a",), {"a": (_F8, 0)}, 8, 1, 27), 8, id="a record of pointers"
        ),
        pytest.param("V8", (3, "|", None, None, {"a": (_F8, 0)}, 8, 1, 0), 8, id="nameless fields"),
        pytest.param("S8", (4, "|", None, None, None, 8, 1, 0, 1), 8, id="with metadata"),
    ],
)
def test_a_type_of_arrays_says_nothing_that_numpy_would_believe(
    name: str, state: tuple[Any, ...], size: int, tmp_path: Path
) -> None:
    """Flags and sizes with which numpy takes bytes for pointers, or reads beyond, are refused."""
    data = _array(name, state, bytes(size))

    assert scan_bytes(data, "model.pkl").verdict is ScanVerdict.DANGEROUS
    with pytest.raises(ModelMalformed):
        _load(data, tmp_path)


@pytest.mark.parametrize(
    "dtype",
    [
        *("f8", ">i4", "U3", "S4", "V8", "M8[25s]", "O", "?"),
        np.dtype([("a", "f4"), ("b", "i8", (2, 3))], align=True),
        np.dtype([("a", "U3"), ("b", [("c", "M8[s]")])]),
    ],
)
def test_types_of_arrays_that_numpy_writes_are_read(dtype: Any, tmp_path: Path) -> None:
    """Every kind of type comes back as it was."""
    array = np.zeros(3, dtype)
    loaded = _load(pickle.dumps(array), tmp_path)

    assert loaded.dtype == array.dtype
    assert str(loaded) == str(array)


def _long(bits: int) -> bytes:
    return pickle.dumps((1 << bits) - 1, 2)[2:-1]


_SLOW = {
    "fraction": b"cfractions\nFraction\nq\x00" + _long(16000) + _long(15999) + b"\x86q\x0100(",
    "range": b"cbuiltins\nrange\nq\x00K\x00" + _long(1 << 24) + b"K\x01\x87q\x0100(",
}


@pytest.mark.parametrize("kind", _SLOW)
def test_a_number_is_not_made_again_and_again_out_of_long_ones(kind: str) -> None:
    """Calls that share long arguments are refused before they cost anything."""
    data = b"\x80\x02" + _SLOW[kind] + b"h\x00h\x01R0" * 1000 + b"1N."
    begun = time.process_time()
    report = scan_bytes(data, "model.pkl")

    assert time.process_time() - begun < 1
    assert report.verdict is ScanVerdict.DANGEROUS


def test_a_long_int_is_no_key(tmp_path: Path) -> None:
    """An int is hashed anew by each dict that it is a key of."""
    data = b"\x80\x02" + _long(1 << 24) + b"q\x000(" + b"}h\x00Ns0" * 1000 + b"1N."

    with pytest.raises(ModelLimitExceeded):
        _load(data, tmp_path)
