# SPDX-License-Identifier: Apache-2.0
"""Files of joblib whose arrays are other bytes to one reader than to another.

What the other one finds there is a harmless call, which shows that it would run anything.
"""

import io
import pickle
import struct
import time
import zlib
from collections import OrderedDict
from pathlib import Path

import joblib  # type: ignore[import-untyped]
import pytest

from sealpoint_models.scan import ScanVerdict, scan_bytes, scan_path
from tests.scan.assembler import stack_name, text

_WRAPPER = stack_name("joblib.numpy_pickle", "NumpyArrayWrapper")
_HIDDEN = b"0" + stack_name("collections", "OrderedDict") + b")R."
"""To whoever gets here: drop what was read, and make something else the value."""


def _dtype(kind: str, flags: int) -> bytes:
    made = stack_name("numpy", "dtype") + text(kind) + b"\x89\x88\x87R"
    least = b"J\xff\xff\xff\xff"
    return made + b"(K\x03" + text("|") + b"NNN" + 2 * least + b"K" + bytes([flags]) + b"tb"


_BYTES, _OBJECTS = _dtype("u1", 0), _dtype("O8", 0x3F)


def _array(
    count: int, elements: bytes, *, made: bytes = _WRAPPER + b")\x81", **other: bytes
) -> bytes:
    """A pickle with one array, as joblib before 1.2 wrote it: nothing is before its elements."""
    attributes = {
        "subclass": stack_name("numpy", "ndarray"),
        "shape": b"K" + bytes([count]) + b"\x85",
        "order": text("C"),
        "dtype": _BYTES,
        "allow_mmap": b"\x89",
        **other,
    }
    state = b"".join(text(key) + value for key, value in attributes.items())
    return b"\x80\x04" + made + b"}(" + state + b"ub" + elements + b"."


def test_an_array_without_padding_is_safe() -> None:
    """What joblib before 1.2 wrote is data."""
    data = _array(4, b"\x80\x93c\x00")

    assert joblib.load(io.BytesIO(data)).tolist() == [128, 147, 99, 0]
    assert scan_bytes(data, "m.joblib").verdict is ScanVerdict.SAFE


@pytest.mark.parametrize(
    "made",
    [
        stack_name("copyreg", "__newobj__") + _WRAPPER + b"\x85R",
        stack_name("copyreg", "_reconstructor")
        + _WRAPPER
        + stack_name("builtins", "object")
        + b"N\x87R",
    ],
    ids=["a new object", "an object of protocol 0"],
)
def test_an_array_that_is_made_by_another_function_is_not_safe(made: bytes) -> None:
    """Joblib takes elements from the file whoever made what stands for the array."""
    literal = b"B" + struct.pack("<I", len(_HIDDEN))
    data = _array(len(literal), literal + _HIDDEN + b"0", made=made)

    assert joblib.load(io.BytesIO(data)) == OrderedDict()
    assert scan_bytes(data, "m.joblib").verdict is not ScanVerdict.SAFE


@pytest.mark.parametrize(
    "elements",
    [
        _HIDDEN,
        b"0ccollections\nOrderedDict\n)R.",
        b"0(icollections\nOrderedDict\n.",
        b"0I 1\n0Nr\0\0\0\0Nr\0\0\0\0" + b"00" + _HIDDEN[1:],
    ],
    ids=["on the stack", "on lines", "an instance", "after what Python does not write"],
)
def test_elements_that_are_opcodes_without_joblib_are_unsafe(elements: bytes) -> None:
    """Python's own unpickler goes on with the elements of an array that has no padding."""
    data = _array(len(elements), elements)

    assert joblib.load(io.BytesIO(data)).tobytes() == elements
    assert pickle.loads(data) == OrderedDict()
    assert [finding.rule for finding in scan_bytes(data, "m.pkl").findings] == ["two-formats"]


def test_elements_that_import_a_module_without_joblib_are_unsafe() -> None:
    """A module is imported although it has nothing of the name that stands there."""
    report = scan_bytes(_array(8, b"cthis\n%\n"), "m.pkl")

    assert [finding.rule for finding in report.findings] == ["two-formats"]


def test_opcodes_without_joblib_that_reach_over_the_elements_are_unsafe() -> None:
    """An element is an opcode that takes what follows for its argument, up to a text."""
    literal = b"B" + struct.pack("<I", len(_HIDDEN)) + _HIDDEN
    data = _array(3, b"0C\x05" + literal + b"\x86")

    assert pickle.loads(data) == OrderedDict()
    assert [finding.rule for finding in scan_bytes(data, "m.pkl").findings] == ["two-formats"]


def test_many_arrays_without_padding_are_not_each_followed_to_the_end() -> None:
    """Elements that are opcodes up to the end of the file are more work than a file may ask for."""
    first = _array(1, b"N")[2:-1].replace(b")\x81}", b"\x94)\x81}\x94")
    again = b"0h\x00)\x81h\x01bN"
    begun = time.process_time()
    report = scan_bytes(b"\x80\x04" + first + again * 50_000 + b".", "m.pkl")

    assert time.process_time() - begun < 4
    assert report.verdict is ScanVerdict.UNREADABLE


def test_an_array_of_objects_that_may_be_mapped_is_not_safe() -> None:
    """With `mmap_mode`, joblib takes bytes of the file for the addresses of the objects."""
    inner = pickle.dumps([1], 4)

    assert scan_bytes(_array(1, inner, dtype=_OBJECTS), "m.joblib").verdict is ScanVerdict.SAFE
    report = scan_bytes(_array(1, inner, dtype=_OBJECTS, allow_mmap=b"\x88"), "m.joblib")
    assert report.verdict is not ScanVerdict.SAFE


def test_a_text_that_joblib_unpacks_is_not_safe(tmp_path: Path) -> None:
    """Joblib before 0.10 packed in a way of which the first bytes, or all of them, can be text."""
    opcodes = b"ccollections\nOrderedDict\n(tR.".ljust(0x7F3D)
    # Blocks of zlib that are not packed, of a length that is text with and without all bits turned.
    parts = [b"(=\x7f\xc2\x80" + each for each in (opcodes, *[b" " * len(opcodes)] * 2)]
    content = b"".join(each[5:] for each in parts)
    end = b"\x01\x00\x00\xff\xff" + struct.pack(">I", zlib.adler32(content))
    data = b"ZF" + hex(len(content)).ljust(19).encode() + b"x^" + b"".join(parts) + end

    path = tmp_path / "model"
    path.write_bytes(data)

    with pytest.warns(DeprecationWarning, match="less than 0.10"):
        assert joblib.load(path) == OrderedDict()
    assert [finding.rule for finding in scan_path(path).findings] == ["not-opened"]


_NAMED_ARRAY = b"cjoblib.numpy_pickle\nNumpyArrayWrapper\nq\x00"


def _arrays(state: dict[str, bytes], count: int, element: bytes, tail: bytes = b"") -> bytes:
    """A pickle with many arrays, all of which share one state."""
    attributes = {
        "subclass": stack_name("numpy", "ndarray"),
        "shape": b"K\x01\x85",
        "order": text("C"),
        "dtype": _BYTES,
        "allow_mmap": b"\x89",
        **state,
    }
    said = b"}(" + b"".join(text(key) + value for key, value in attributes.items()) + b"uq\x01"
    arrays = (b"h\x00)\x81h\x01b" + element) * count
    return b"\x80\x04(" + _NAMED_ARRAY + said + b"1(" + arrays + tail + b"t."


_RECORDS = (
    stack_name("numpy", "dtype") + text("V8") + b"\x89\x88\x87R(K\x03(" + b"N" * 9000 + b"ttb"
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_arrays({"dtype": _RECORDS}, 20_000, b"F" * 8), id="types of many values"),
        pytest.param(
            _arrays({f"{number}": b"N" for number in range(20_000)}, 5000, b"F"),
            id="states of many attributes",
        ),
        pytest.param(
            b"\x80\x04(ca\nb\nq\x00("
            + b"N" * 300_000
            + b"tq\x011("
            + b"h\x00h\x01RNb" * 5000
            + b"t.",
            id="calls with many arguments",
        ),
        pytest.param(
            _arrays({}, 10_000, b"F", b"B" + struct.pack("<I", 5_000_000) + b"!" * 5_000_000),
            id="elements that begin a long line",
        ),
    ],
)
def test_what_arrays_share_is_counted_for_each_of_them(data: bytes) -> None:
    """Arrays that share a type, a state, arguments or a line are judged in a bounded time."""
    began = time.process_time()
    report = scan_bytes(data, "m.joblib")

    assert report.verdict is not ScanVerdict.SAFE
    assert time.process_time() - began < 3 * 2.0
