# SPDX-License-Identifier: Apache-2.0
"""What lies between the opcodes of a file of joblib is opcodes to who does not know joblib."""

import pytest

from sealpoint_models.scan import ScanVerdict, scan_bytes
from tests.pt_files import call, dictionary, integer, named, text, tupled
from tests.scan.assembler import PAYLOAD
from tests.scan.assembler import text as short_text

# Calls of what stands in the memo: to Python's unpickler, in that of the outer pickle.
_CALLS = b"h\x00h\x01h\x02h\x03\x86R\x85R."
_OBJECTS = (
    b"\x80\x04"
    + b"".join(
        each + b"\x940"
        for each in (
            *(named("builtins", "bytearray"), named("_codecs", "encode")),
            *(text("a"), text("latin1")),
        )
    )
    + _CALLS
)


def _array(kind: str, count: int, elements: bytes, function: bytes) -> bytes:
    """A file of joblib with one array, whose pickle remembers a function and a payload as text."""
    is_object = kind == "O8"
    flags = integer(63 if is_object else 0)
    state = (integer(3), text("|"), b"N", b"N", b"N", integer(-1), integer(-1), flags)
    attributes = {
        "subclass": named("numpy", "ndarray"),
        "shape": tupled(integer(count)),
        "order": text("C"),
        "dtype": call("numpy", "dtype", text(kind), b"\x89", b"\x88") + tupled(*state) + b"b",
        "allow_mmap": b"\x89" if is_object else b"\x88",
    }
    payload = (PAYLOAD + bytes(len(PAYLOAD) % 2)).decode("utf-16-le")
    held = (function, named("_codecs", "encode"), text(payload), text("utf-16-le"))
    remembered = b"".join(each + b"q" + bytes([at]) + b"0" for at, each in enumerate(held))
    wrapper = named("joblib.numpy_pickle", "NumpyArrayWrapper") + b")\x81"
    told = dictionary(*((text(key), value) for key, value in attributes.items()))
    return b"\x80\x03" + remembered + wrapper + told + b"b" + elements + b"."


_LOAD = named("torch.storage", "_load_from_bytes")
_HARMLESS = named("builtins", "bytearray")


@pytest.mark.parametrize(
    ("kind", "elements"), [("u1", _CALLS), ("O8", _OBJECTS)], ids=["elements", "objects"]
)
def test_what_loads_bytes_is_not_called_by_the_content_of_an_array(
    kind: str, elements: bytes
) -> None:
    """The same file is safe if it does not name what runs the bytes that it is given."""
    count = 1 if kind == "O8" else len(elements)
    control = scan_bytes(_array(kind, count, elements, _HARMLESS), "m.joblib")
    report = scan_bytes(_array(kind, count, elements, _LOAD), "m.joblib")

    assert control.findings == ()
    assert report.verdict is ScanVerdict.DANGEROUS
    assert {each.rule for each in report.findings} == {"two-formats"}


def test_names_in_an_array_of_objects_do_not_come_from_the_memo() -> None:
    """Python's unpickler has the texts of the outer pickle there, and so another name."""
    inner = b"\x80\x04" + b"".join(
        short_text(each) + b"\x940" for each in ("fractions", "Fraction", "1/2")
    )
    recalled = _array("O8", 1, inner + b"h\x00h\x01\x93h\x02\x85R.", text("os"))
    written = inner + b"h\x00" + short_text("Fraction") + b"\x94\x93h\x02\x85R."

    assert scan_bytes(_array("O8", 1, written, text("os")), "m.joblib").findings == ()
    assert [each.rule for each in scan_bytes(recalled, "m.joblib").findings] == ["two-formats"]
