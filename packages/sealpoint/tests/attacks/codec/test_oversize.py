# SPDX-License-Identifier: Apache-2.0
"""Lengths, shapes and numbers that ask for more than is there are refused before they are used."""

import struct
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ormsgpack
import pytest

from sealpoint import Limits, Registry
from sealpoint.errors import BytesMalformed, DecodeError, DecodeLimitExceeded, EncodeLimitExceeded
from sealpoint.limits import BLOB_BYTES_LEAST
from tests.application import make_registry
from tests.arrays import needs_arrays
from tests.blobs import Blobs
from tests.cpu_time import CpuTime
from tests.wire import array, extension

REGISTRY = make_registry()
_NO_GRADIENT = False
_LENGTHS = [
    *(b"\xc4\xff", b"\xc5\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xd9\xff", b"\xda\xff\xff"),
    *(b"\xdb\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xde\xff\xff"),
    *(b"\xdf\xff\xff\xff\xff", b"\xc7\xff\x06", b"\xc8\xff\xff\x06", b"\xc9\xff\xff\xff\xff\x06"),
    *(b"\x9f", b"\x8f", b"\xbf", b"\xd4\x06", b"\xd8\x10", b"\xcf", b"\xcb", b"\xc7", b"\xc9"),
]


def _header(*parts: Any) -> bytes:
    data = ormsgpack.packb(list(parts))
    return len(data).to_bytes(2, "big") + data


@pytest.mark.parametrize("header", _LENGTHS, ids=bytes.hex)
@pytest.mark.parametrize("tag", [None, 1, 5, 6, 7, 15, 19, 21, 22, 32, 34])
def test_a_huge_declared_length_is_refused_at_once(header: bytes, tag: int | None) -> None:
    """Every length form with more declared than there is, alone and inside of extensions."""
    bodies = [header, header + b"\xc0", header + bytes(100), b"\x91" + header, b"\x92\xc0" + header]

    with CpuTime() as cpu_time:
        for body in bodies:
            if tag is None and body.startswith((b"\xc7\xff", b"\xbf")) and len(body) > 255:
                continue
            with pytest.raises(DecodeError):
                REGISTRY.decode(body if tag is None else extension(tag, body))

    assert cpu_time.seconds < 1


@pytest.mark.parametrize("tag", [32, 34])
@pytest.mark.parametrize(
    "shape",
    [
        *([1 << 62], [1 << 40], [1 << 32, 1 << 32], [0, 1 << 62], [1 << 20, 1 << 20, 0]),
        *([1] * 33, [1] * 60_000, [0] * 33, [-1], [-1, -8], [1.0], ["8"], [True], [[8]], [None]),
        *([(1 << 64) - 1], [1 << 63], None, 8, "8", {"0": 8}, [2, 2, 2, 2], [7], [9]),
    ],
    ids=lambda shape: str(shape)[:24],
)
def test_an_array_shape_that_does_not_fit_its_bytes_is_refused(tag: int, shape: Any) -> None:
    """Shapes are whole numbers whose product is the length; nothing is allocated to find out."""
    element = ["|u1"] if tag == 32 else ["uint8"]
    flags = [] if tag == 32 else [False]

    with CpuTime() as cpu_time:
        for raw in (b"\xc4\x08" + bytes(8), b"\xc6\0\0\0\x08" + bytes(8)):
            with pytest.raises(DecodeError):
                REGISTRY.decode(extension(tag, _header(*element, shape, *flags) + raw))

    assert cpu_time.seconds < 1


@pytest.mark.parametrize(
    "element",
    [
        *("|O", "O", "object", "<f16", "|V8", "<i3", "|S9999999999", "<U999999999", "i4", "=i4"),
        *("<M8[ns]junk", "<M8[generic]", "U", "S", "<f8,<f8", "(2,2)<i4", "{'names':[]}", "", "T"),
        *([["a", "|O", []]], [["a", "<i4", [1 << 40]]], [["a", "<i4", [-1]]], [["a"]], [], [[]]),
        *([["a", "<i4", []], ["a", "<i4", []]], [["a", [["b", "|O", []]], []]], 7, None, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("tag", [32, 33])
def test_an_element_type_outside_of_the_grammar_is_refused(tag: int, element: Any) -> None:
    """Objects, pointers, padding and numpy's own mini language never reach numpy."""
    header = _header(element, [1]) if tag == 32 else _header(element)

    for raw in (b"\xc4\x08" + bytes(8), b"\xc4\x00", b"\xc4\x10" + bytes(16)):
        with pytest.raises(DecodeError):
            REGISTRY.decode(extension(tag, header + raw))


@pytest.mark.parametrize(
    "element",
    [
        "object",
        "float",
        "Tensor",
        "load",
        "__class__",
        "quint8",
        "complex32",
        "",
        None,
        7,
        ["int8"],
    ],
    ids=str,
)
def test_a_tensor_type_outside_of_the_table_is_refused(element: Any) -> None:
    """The name of an element type is looked up in a closed table only."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(extension(34, _header(element, [8], _NO_GRADIENT) + b"\xc4\x08" + bytes(8)))


@needs_arrays
def test_a_boolean_array_of_other_bytes_is_refused() -> None:
    """Memory that is no boolean, and a character beyond Unicode, do not become array elements."""
    hostile = [
        extension(32, _header("|b1", [1]) + b"\xc4\x01\x02"),
        extension(33, _header("|b1") + b"\xc4\x01\xff"),
        extension(32, _header([["a", "|b1", []]], [1]) + b"\xc4\x01\x07"),
        extension(32, _header("<U1", [1]) + b"\xc4\x04\xff\xff\xff\x7f"),
        extension(34, _header("bool", [1], _NO_GRADIENT) + b"\xc4\x01\x02"),
        extension(34, _header("int8", [1], not _NO_GRADIENT) + b"\xc4\x01\x02"),
    ]

    for data in hostile:
        with pytest.raises(BytesMalformed):
            REGISTRY.decode(data)


def test_a_giant_int_is_refused() -> None:
    """Whole numbers beyond int_bytes_max are refused both ways, just below it they pass."""
    size = REGISTRY.limits.int_bytes_max

    assert REGISTRY.decode(extension(3, b"\x7f" + bytes(size - 1))) == 0x7F << 8 * (size - 1)
    with pytest.raises(DecodeLimitExceeded, match="int_bytes_max"):
        REGISTRY.decode(extension(3, b"\x7f" + bytes(size)))
    with pytest.raises(EncodeLimitExceeded, match="int_bytes_max"):
        REGISTRY.encode(1 << 8 * size)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\0" * 8 + b"\x01", b"\0" * 20, b"\xff" * 9])
def test_an_int_that_is_not_in_its_shortest_form_is_refused(data: bytes) -> None:
    """A whole number has one form."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(extension(3, data))


@pytest.mark.parametrize(
    "text",
    [
        *("1E+2000001", "1E-2000001", "1E+999999999999999999", "9" * 5000, "0." + "1" * 4097),
        *("NaN" + "1" * 5000, "1E+99999999999999999999999"),
    ],
    ids=lambda text: text[:16],
)
def test_a_giant_decimal_is_refused(text: str) -> None:
    """Digits and exponents beyond the limits are refused in time."""
    with CpuTime() as cpu_time, pytest.raises(DecodeError):
        REGISTRY.decode(extension(14, text.encode()))

    assert cpu_time.seconds < 0.5


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1_0", "+1", "\u0661", "1e5", "inf", "nan", "01", "0x1", "1E5", "--1"]
)
def test_a_decimal_that_python_would_print_otherwise_is_refused(text: str) -> None:
    """Only the text that Decimal itself prints is read."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(extension(14, text.encode()))


@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [(1, 0), (2, 4), (1, -2), (0, 2), (-2, 2), ("1", 2), (1.0, 2), (True, 2), (None, 1)],
)
def test_a_fraction_that_is_not_in_lowest_terms_is_refused(
    numerator: Any, denominator: Any
) -> None:
    """A fraction has one form, and no zero below."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(extension(15, ormsgpack.packb([numerator, denominator])))


def test_a_giant_fraction_is_refused_both_ways() -> None:
    """Parts beyond fraction_part_bytes_max are refused before their divisor is looked for."""
    size = REGISTRY.limits.fraction_part_bytes_max
    big = extension(3, b"\x7f" + bytes(size))

    with pytest.raises(DecodeLimitExceeded, match="fraction_part_bytes_max"):
        REGISTRY.decode(extension(15, array(big, b"\x01")))
    with pytest.raises(EncodeLimitExceeded, match="fraction_part_bytes_max"):
        REGISTRY.encode(Fraction(1, 1 << 8 * size))


@pytest.mark.parametrize(
    "parts",
    [
        *((-1_000_000_000, 0, 0), (1_000_000_000, 0, 0), (0, 86_400, 0), (0, 0, 1_000_000)),
        *((0, 0xFFFFFFFF, 0), (0, 0, 0xFFFFFFFF), (-(1 << 31), 0, 0), ((1 << 31) - 1, 1, 1)),
    ],
)
def test_a_timedelta_beyond_its_extremes_is_refused(parts: tuple[int, int, int]) -> None:
    """Durations are normalised and bounded; the extremes themselves pass."""
    with pytest.raises(DecodeError):
        REGISTRY.decode(extension(13, struct.pack(">iII", *parts)))
    for extreme in (timedelta.min, timedelta.max):
        assert REGISTRY.decode(REGISTRY.encode(extreme)) == extreme


@pytest.mark.parametrize(
    "fields",
    [
        (0, 1, 1, 0, 0, 0, 0),
        (10000, 1, 1, 0, 0, 0, 0),
        (2024, 13, 1, 0, 0, 0, 0),
        (2024, 2, 30, 0, 0, 0, 0),
        (2024, 1, 1, 24, 0, 0, 0),
        (2024, 1, 1, 0, 60, 0, 0),
        (2024, 1, 1, 0, 0, 60, 0),
        (2024, 1, 1, 0, 0, 0, 1000000),
        (2024, 1, 1, 0, 0, 0, 1 << 30),
    ],
)
def test_a_calendar_field_out_of_range_is_refused(fields: tuple[int, ...]) -> None:
    """Every field of a time is checked."""
    packed = struct.pack(">HBBBBBI", *fields)

    for data in (packed, packed + b"u", packed + b"o" + bytes(8), packed[:-1], packed + b"zX"):
        with pytest.raises(DecodeError):
            REGISTRY.decode(extension(10, data))


@pytest.mark.parametrize(
    "payload",
    [
        bytes(5),
        b"",
        bytes(3),
        b"\xff" * 12,
        struct.pack(">Iq", 0, 1 << 60),
        b"\xff" * 8,
        struct.pack(">Iq", 0, -(1 << 60)),
        struct.pack(">Iq", 2000000000, 0),
    ],
    ids=bytes.hex,
)
def test_a_timestamp_out_of_range_is_refused(payload: bytes) -> None:
    """MessagePack's own timestamps are read only where they are times."""
    for data in (extension(255, payload), array(extension(255, payload))):
        with pytest.raises(DecodeError):
            REGISTRY.decode(data)


def test_infinities_and_nan_are_floats_and_nothing_else() -> None:
    """Special floats come through as floats; as lengths, counts or steps they are refused."""
    infinity, nan = struct.pack(">Bd", 0xCB, float("inf")), struct.pack(">Bd", 0xCB, float("nan"))

    assert REGISTRY.decode(infinity) == float("inf")
    assert REGISTRY.decode(nan) != REGISTRY.decode(nan)
    for special in (infinity, nan):
        for tag, payload in [
            (22, array(special, b"\x01", b"\x01")),
            (19, array(special, array())),
            (15, array(special, b"\x01")),
        ]:
            with pytest.raises(DecodeError):
                REGISTRY.decode(extension(tag, payload))


def test_a_value_beyond_the_byte_limit_is_refused_both_ways() -> None:
    """value_bytes_max bounds flat encodings and what a tree expands to."""
    small = Registry(limits=Limits(value_bytes_max=1000))
    blobs = Blobs()
    root = Registry().encode_tree(bytes(50_000), blobs.put)

    with pytest.raises(EncodeLimitExceeded, match="value_bytes_max"):
        small.encode(bytes(1000))
    with pytest.raises(DecodeLimitExceeded, match="value_bytes_max"):
        small.decode(bytes(1001))
    with pytest.raises(DecodeLimitExceeded, match="value_bytes_max"):
        small.decode_tree(root, blobs.get)
    with pytest.raises(EncodeLimitExceeded, match="value_bytes_max"):
        small.encode_tree(bytes(50_000), Blobs().put)


def test_a_value_beyond_the_node_limit_is_refused() -> None:
    """value_nodes_max bounds the objects that are built, flat and from a tree."""
    small = Registry(limits=Limits(value_nodes_max=1000))
    blobs = Blobs()
    root = Registry().encode_tree([[n] for n in range(20_000)], blobs.put)

    assert small.decode(Registry().encode([0] * 900)) == [0] * 900
    assert small.decode(Registry().encode(bytes(100_000))) == bytes(100_000)
    with pytest.raises(DecodeLimitExceeded, match="value_nodes_max"):
        small.decode(Registry().encode([0] * 1001))
    with pytest.raises(DecodeLimitExceeded, match="value_nodes_max"):
        small.decode_tree(root, blobs.get)


def test_a_blob_or_index_beyond_the_limits_is_refused() -> None:
    """blob_bytes_max and tree_levels_max bound what a forged tree can ask for."""
    blobs = Blobs()
    huge = blobs.put(bytes(70_000))
    deep = blobs.put(extension(2, b"\x04\xff" + bytes(4) + (9).to_bytes(8, "big") + huge))
    small = Registry(limits=Limits(blob_bytes_max=BLOB_BYTES_LEAST))

    with pytest.raises(DecodeLimitExceeded, match="blob_bytes_max"):
        small.decode_tree(huge, blobs.get)
    with pytest.raises(DecodeLimitExceeded, match="tree_levels_max"):
        REGISTRY.decode_tree(deep, blobs.get)


def test_the_decimal_limits_are_the_same_both_ways() -> None:
    """What the encoder refuses for its size, the decoder refuses too; what it writes is read."""
    widest = Decimal("1" * 4096)

    assert REGISTRY.decode(REGISTRY.encode(widest)) == widest
    for value in (
        Decimal("1" * 4097),
        Decimal((0, (1,), 2_000_001)),
        Decimal((0, (1,), -2_000_001)),
    ):
        with pytest.raises(EncodeLimitExceeded):
            REGISTRY.encode(value)
