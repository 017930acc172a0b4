# SPDX-License-Identifier: Apache-2.0
"""Counting objects without building them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint import Registry
from sealpoint.codec._bounds import DECODING, Bounds
from sealpoint.codec._msgpack import count_nodes
from sealpoint.errors import DecodeLimitExceeded
from sealpoint.limits import Limits
from tests import strategies
from tests.application import make_registry
from tests.effort import examples
from tests.wire import array, extension, mapping, text

_MANY = 1 << 30
REGISTRY = make_registry()


@pytest.mark.parametrize(
    ("data", "nodes"),
    [
        (b"\xc0", 1),
        (b"\x90", 1),
        (b"\x93\x01\x02\x03", 4),
        (b"\x81\xa1a\x01", 3),
        (b"\xc4\x05hello", 1),
        (b"\xd9\x05hello", 1),
        (b"\xcb" + bytes(8), 1),
        (b"\xcf" + bytes(8), 1),
        (array(b"\x01", b"\x02"), 3),
        (mapping(text("a"), b"\x01"), 3),
        (extension(16, bytes(16)), 1),
        (extension(6, b"\x92\x01\x02"), 4),
        (extension(32, bytes(300)), 1),
        (extension(21, b"\x00\x92\x01\x02"), 4),
    ],
    ids=lambda data: data.hex()[:20] if isinstance(data, bytes) else str(data),
)
def test_each_object_is_counted_once(data: bytes, nodes: int) -> None:
    """Containers, their members and extensions count; opaque payloads count as one."""
    assert count_nodes(data, _MANY) == nodes


@given(strategies.values())
@settings(max_examples=examples(300))
def test_the_count_is_between_one_and_the_bytes(value: Any) -> None:
    """No value has more objects than bytes."""
    data = REGISTRY.encode(value)

    assert 1 <= count_nodes(data, _MANY) <= len(data)


@given(st.recursive(st.integers() | st.text() | st.binary(), st.lists, max_leaves=20))
def test_the_count_of_plain_lists_is_exact(value: Any) -> None:
    """For lists and scalars the count is that of the objects."""
    assert count_nodes(Registry().encode(value), _MANY) == _objects(value)


def _objects(value: Any) -> int:
    return 1 + sum(map(_objects, value)) if isinstance(value, list) else 1


@given(st.binary(max_size=200))
def test_counting_ends_on_any_bytes(data: bytes) -> None:
    """Bytes that are no encoding are counted without an error."""
    assert 0 <= count_nodes(data, _MANY) <= len(data) + 1


def test_counting_stops_beyond_the_bound() -> None:
    """The count need not be finished to know that it is too large."""
    assert count_nodes(b"\x91\xc2" * 500_000, 10) > 10


def test_a_budget_adds_up_over_parts() -> None:
    """Parts of a value share one budget, and bytes that cannot exceed it are not counted."""
    bounds = Bounds({}, Limits(value_nodes_max=100), DECODING)
    bounds.check_nodes([b"\xc4\x20" + bytes(32)] * 2)
    bounds.check_whole(b"\xc4\xff" + bytes(255))
    bounds.check_nodes([b"\x00" * 90])

    with pytest.raises(DecodeLimitExceeded, match="value_nodes_max"):
        bounds.check_nodes([b"\x00" * 90])
