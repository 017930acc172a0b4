# SPDX-License-Identifier: Apache-2.0
"""Finding references in bytes, wherever those are cut."""

import time
from collections import OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.codec import _msgpack as _scan
from sealpoint.codec._msgpack import ReferenceScan
from sealpoint.codec._wire_format import TIMESTAMP, Tag
from sealpoint.errors import BytesMalformed, DecodeError, DecodeLimitExceeded, UnknownType
from tests import strategies
from tests.application import Step, make_registry
from tests.arrays import ARRAYS, np, torch
from tests.effort import examples
from tests.wire import array, extension, mapping, text

REGISTRY = make_registry()
_BYTES_MAX = 1 << 16


def _reference(number: int, size: int = 46) -> bytes:
    """An extension that is a reference by its tag, which is all that a scan looks at."""
    return extension(Tag.REFERENCE, bytes((number,)) * size)


def _one_of_each() -> list[Any]:
    """Values of every tag, and plain ones with every kind of header."""
    return [
        *(None, True, 1, -1, 200, 70_000, -(1 << 40), 1 << 63, 1 << 70, 1.5, "", "a", "b" * 40),
        *("c" * 300, b"d", b"e" * 300, "\ud800", {1: 2}, (), (1, (2,)), {3}, frozenset({4}), 2j),
        *(datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2), date(2026, 1, 2)),  # noqa: DTZ001
        *(timedelta(5), Decimal("1.1"), Fraction(1, 3), UUID(int=1), PurePosixPath("/a")),
        *(deque([1], 3), OrderedDict(a=1), defaultdict(list, a=[1]), range(3), slice(1, 2)),
        *(Step("a", [1, 2]), {"k": [{}, []]}),
        *((np.arange(3), np.float32(0.5), torch.zeros(2)) if ARRAYS else ()),
        list(range(20)),
        {f"key {number}": number for number in range(20)},
    ]


def _between_references() -> tuple[bytes, list[bytes]]:
    """Values with a reference behind each, and the payloads that a scan must find."""
    values = _one_of_each()
    parts = [REGISTRY.encode(value) + _reference(place) for place, value in enumerate(values)]
    return b"".join(parts), [bytes((place,)) * 46 for place in range(len(values))]


def _scanned(*chunks: bytes) -> list[bytes]:
    scan = ReferenceScan(_BYTES_MAX)
    found = [payload for chunk in chunks for payload in scan.feed(chunk)]
    assert scan.is_between_objects()
    assert scan.state() == 0
    return found


def test_every_tag_is_opened_skipped_or_a_reference() -> None:
    """Each tag of the format has exactly one way to be stepped over."""
    special = {Tag.TYPED, Tag.REFERENCE, Tag.DEFAULT_DICT}
    ways = [*special, *_scan._VALUES, *_scan._FRAMED, *_scan._OPAQUE]

    assert sorted(ways) == sorted([*Tag, TIMESTAMP % 256])


def test_every_first_byte_has_its_length() -> None:
    """The table of steps gives the length of each object that has a fixed one, and 0 for others."""
    steps = _scan._STEPS

    assert [first for first in range(256) if not steps[first]] == [
        *(0xC1, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9),
        *(0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xDB),
    ]
    assert {first for first in range(256) if steps[first] == 1} == {
        *range(0xA1),
        *(0xC0, 0xC2, 0xC3),
        *range(0xE0, 0x100),
    }
    assert (steps[0xBF], steps[0xCB], steps[0xDC], steps[0xDF]) == (32, 9, 3, 5)
    assert all(
        bool(_scan._LONGER_THAN_ONE.match(bytes((first,)))) is (steps[first] != 1)
        for first in range(256)
    )


def test_references_are_found_behind_values_of_every_tag() -> None:
    """No value is stepped over too far or not far enough."""
    data, payloads = _between_references()

    assert _scanned(data) == payloads


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (array(b"\x01", b"\x02")[:-1], b""),
        (mapping(text("a"), b"\x01")[:-1], b""),
        (b"\x93\x01", b"\x02"),
        *((bytes((0xC7, 49, tag)), b"") for tag in sorted(_scan._VALUES)),
        (bytes((0xC7, 50, Tag.DEFAULT_DICT, 1)), b""),
        *((bytes((0xC7, 54, tag, 0, 3)) + b"\x91\xa1x", b"") for tag in sorted(_scan._FRAMED)),
        (bytes((0xC7, 62, Tag.TYPED, 1)) + b"n" + bytes(10) + b"\x91", b""),
        (b"\xc8\x00\x32\x06\x91", b""),
        (b"\xc9\x00\x00\x00\x32\x06\x91", b""),
    ],
    ids=lambda part: part.hex()[:16],
)
def test_a_reference_is_found_inside_every_container(before: bytes, after: bytes) -> None:
    """Lists, maps and every payload that can hold a value are opened."""
    assert _scanned(before + _reference(7) + after) == [bytes((7,)) * 46]


def test_any_cut_leaves_the_references_as_they_are() -> None:
    """Wherever bytes are cut in two, and byte by byte, the same references are found."""
    data, payloads = _between_references()

    assert _scanned(*(data[place : place + 1] for place in range(len(data)))) == payloads
    for place in range(1, len(data)):
        assert _scanned(data[:place], data[place:]) == payloads


def test_a_header_is_not_looked_at_wherever_it_is_cut() -> None:
    """Labels of typed values and headers of arrays are stepped over by their lengths alone."""
    framed = extension(Tag.ARRAY, b"\x01\x05" + b"\xc1" * 0x105 + _reference(1))
    typed = extension(Tag.TYPED, b"\x09" + b"\xc1" * 19 + _reference(2))
    data = framed + typed

    for place in range(1, len(data)):
        assert _scanned(data[:place], data[place:]) == [b"\1" * 46, b"\2" * 46]


def test_a_state_is_all_that_the_next_chunk_needs() -> None:
    """Another scan that takes a state up finds what the first would have found."""
    data, payloads = _between_references()

    for place in range(1, len(data)):
        first, second = ReferenceScan(_BYTES_MAX), ReferenceScan(_BYTES_MAX)
        second.feed(_reference(1, 5000)[:100])  # it forgets what it was in before
        found = first.feed(data[:place])
        state = first.state()
        assert state is not None
        second.go_on_from(state)
        assert [*found, *second.feed(data[place:])] == payloads
        assert second.is_between_objects()


def test_a_long_reference_is_put_together_but_is_no_state() -> None:
    """What is held of a long reference is not remembered, and is found in small pieces too."""
    data = _reference(3, 5000)
    scan = ReferenceScan(_BYTES_MAX)

    found = [scan.feed(data[place : place + 7]) for place in range(0, 4200, 7)]
    assert not any(found)
    assert scan.state() is None
    assert not scan.is_between_objects()
    assert scan.feed(data[4200:]) == [bytes((3,)) * 5000]


def test_a_long_reference_in_small_pieces_costs_no_more_than_its_bytes() -> None:
    """Pieces are put together once, not again for every piece."""
    data = _reference(3, 1 << 20)
    scan = ReferenceScan(1 << 20)
    began = time.thread_time()

    found = [payload for at in range(0, len(data), 16) for payload in scan.feed(data[at : at + 16])]

    assert found == [bytes((3,)) * (1 << 20)]
    assert time.thread_time() - began < 1.5


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\xc1", BytesMalformed),
        (b"\x91\xc1", BytesMalformed),
        (extension(0, b"a"), UnknownType),
        (extension(25, b"a"), UnknownType),
        (extension(0xFE, b"a"), UnknownType),
        (extension(Tag.TUPLE, b""), BytesMalformed),
        (extension(Tag.DEFAULT_DICT, b"\1"), BytesMalformed),
        (extension(Tag.TYPED, bytes(11)), BytesMalformed),
        (extension(Tag.TYPED, b"\x20" + bytes(30)), BytesMalformed),
        (extension(Tag.ARRAY, b"\xff\xff" + bytes(30)), BytesMalformed),
        (extension(Tag.REFERENCE, bytes(_BYTES_MAX + 1)), DecodeLimitExceeded),
        (b"\xc9\xff\xff\xff\xff\x02", DecodeLimitExceeded),
    ],
    ids=lambda part: part.hex()[:16] if isinstance(part, bytes) else part.code,
)
def test_what_the_format_does_not_have_is_refused(data: bytes, error: type[DecodeError]) -> None:
    """Unknown tags, payloads without their value and endless references are refused."""
    with pytest.raises(error):
        ReferenceScan(_BYTES_MAX).feed(data)


def test_an_unknown_tag_is_refused_where_it_would_be_skipped_too() -> None:
    """A tag of a later format is refused also behind others, since it could hold references."""
    with pytest.raises(UnknownType, match="found 40"):
        _scanned(REGISTRY.encode(_one_of_each()) + extension(40, _reference(1)))


@given(st.binary(max_size=300), st.integers(1, 20))
@settings(max_examples=examples(300))
def test_any_bytes_end_in_an_error_or_a_state(data: bytes, size: int) -> None:
    """Bytes that are no encoding give one of our errors, or references, at any cut."""
    scan = ReferenceScan(_BYTES_MAX)

    try:
        found = [p for at in range(0, len(data), size) for p in scan.feed(data[at : at + size])]
    except DecodeError:
        return
    assert sum(map(len, found)) <= len(data)


@given(strategies.values(), st.lists(st.integers(0, 1 << 16), max_size=6))
@settings(max_examples=examples(300))
def test_any_value_is_stepped_over_to_its_end(value: Any, cuts: list[int]) -> None:
    """A flat encoding holds no references, and a scan ends with it, wherever it is cut."""
    data = REGISTRY.encode(value)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})

    assert not _scanned(*(data[a:b] for a, b in pairwise(places)))
