# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy are described by their type, shape and bytes, without numpy."""

import pickle
from typing import Any

import numpy as np
import pytest

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint_models.scan import ArrayMeaning, ArrayScalar, ArrayType, read_meaning, run_pickle

_ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "floats": np.arange(4, dtype="<f4"),
    "big-endian": np.arange(3, dtype=">i8"),
    "none at all": np.zeros((0, 3), dtype="u1"),
    "one without dimensions": np.array(1.5),
    "truths": np.array([True, False]),
    "columns first": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "texts": np.array(["a", "bcd"]),
    "byte strings": np.array([b"a", b"bcd"]),
    "days": np.array(["2024-01-01"], "M8[D]"),
    "durations": np.array([5], "m8[25us]"),
    "records": np.zeros(2, [("a", "<i4"), ("b", "<f8", (2, 3)), ("c", "U2")]),
    "complex": np.array([1 + 2j]),
}


def _read(data: bytes) -> Any:
    return read_meaning(run_pickle(data, "p"), storages={}, file_bytes=len(data), what="p")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("label", _ARRAYS)
def test_an_array_is_its_type_shape_and_bytes(label: str, protocol: int) -> None:
    """In every protocol that numpy writes it in."""
    array = _ARRAYS[label]
    found = _read(pickle.dumps(array, protocol))

    assert isinstance(found, ArrayMeaning)
    assert found.shape == array.shape
    assert found.data == array.tobytes("F" if found.is_fortran else "C")
    assert found.type.item_bytes == array.dtype.itemsize
    assert [name for name, _, _ in found.type.fields] == list(array.dtype.names or ())


def test_an_array_of_objects_has_its_values_as_symbols() -> None:
    """Each is read like any other value."""
    found = _read(pickle.dumps(np.array([None, "a", 3], object)))

    assert found.type.is_object
    assert found.symbols == (None, "a", 3)


def test_numbers_and_types_stand_for_themselves() -> None:
    """A scalar is its bytes, and a type its text."""
    scalar, kind = _read(pickle.dumps([np.float64(1.5), np.dtype("<i2")]))

    assert scalar == ArrayScalar(
        type=ArrayType(text="<f8", item_bytes=8), data=np.float64(1.5).tobytes()
    )
    assert kind == ArrayType(text="<i2", item_bytes=2)


def _changed(before: bytes, after: bytes) -> bytes:
    data = pickle.dumps(np.arange(4, dtype="<f4"), 2)
    assert data.count(before) == 1
    return data.replace(before, after)


@pytest.mark.parametrize(
    "data",
    [
        _changed(b"K\x04\x85", b"K\x05\x85"),
        _changed(b"K\x04\x85", b"J\xff\xff\xff\xff\x85"),
        _changed(b"X\x02\x00\x00\x00f4", b"X\x02\x00\x00\x00f8"),
        _changed(b"X\x02\x00\x00\x00f4", b"X\x02\x00\x00\x00O4"),
        _changed(b"X\x01\x00\x00\x00<", b"X\x01\x00\x00\x00|"),
        _changed(b"X\x01\x00\x00\x00<", b"X\x01\x00\x00\x00="),
        _changed(b"cnumpy\nndarray\n", b"cnumpy\ndtype\n"),
    ],
    ids=["longer", "negative", "wider", "objects", "no order", "an order of machines", "class"],
)
def test_an_array_that_does_not_fit_is_refused(data: bytes) -> None:
    """What numpy would have to guess, or to read beyond the bytes for."""
    with pytest.raises(ModelMalformed):
        _read(data)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        (b"f4", b"(K\x03X\x01\x00\x00\x00<NN]J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t"),
        (b"O8", b"(K\x03X\x01\x00\x00\x00|NNN(}\x91J\xff\xff\xff\xffK\x3ft"),
        (b"O8", b"(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ft"),
        (b"f4", b"(K\x04X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00}t"),
        (b"", b"(K\x04X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00}t"),
    ],
    ids=["fields without names", "a set for a size", "objects in an order", "metadata", "no name"],
)
def test_every_part_of_the_state_of_a_type_is_looked_at(name: bytes, state: bytes) -> None:
    """Also what makes no difference to the elements."""
    made = b"X" + len(name).to_bytes(4, "little") + name + b"\x89\x88\x87R"
    with pytest.raises(ModelMalformed):
        _read(b"\x80\x02cnumpy\ndtype\n" + made + state + b"b.")


def test_an_array_of_more_dimensions_than_there_are_is_refused() -> None:
    """Before anything is multiplied."""
    with pytest.raises(ModelLimitExceeded, match="dimensions"):
        _read(_changed(b"K\x04\x85", b"(" + b"K\x01" * 100 + b"t"))


def test_truths_are_0_or_1() -> None:
    """Another byte is neither, and whoever reads it decides what it is."""
    data = pickle.dumps(np.array([True, True]), 3)

    with pytest.raises(ModelMalformed, match="booleans of 0 or 1"):
        _read(data.replace(b"C\x02\x01\x01", b"C\x02\x01\x02"))
