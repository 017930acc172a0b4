# SPDX-License-Identifier: Apache-2.0
"""Values whose comparison or construction costs the square of their size are refused first."""

import random
from dataclasses import dataclass
from decimal import Decimal

import pytest

from sealpoint import Registry
from sealpoint.errors import DecodeLimitExceeded, EncodeLimitExceeded
from tests.cpu_time import CpuTime
from tests.wire import array, extension

_PRIME = (1 << 61) - 1


def _keys() -> list[bytes]:
    """Ints of 64 KiB, each with Decimals of the same hash."""
    registry, source = Registry(), random.Random(3)  # noqa: S311
    keys = []
    for _ in range(15):
        number = source.getrandbits(8 * 65_530)
        keys.append(registry.encode(number))
        keys.extend(registry.encode(Decimal(number % _PRIME + k * _PRIME)) for k in range(15))
    return keys


@pytest.mark.parametrize("tag", [7, 8, 20])
def test_large_ints_beside_decimals_of_their_hash_are_refused_at_once(tag: int) -> None:
    """One comparison of such a pair takes half a second; 1 MB of them took minutes."""
    keys = _keys()
    members = keys if tag != 20 else [part for key in keys for part in (key, b"\xc0")]

    with CpuTime() as cpu_time, pytest.raises(DecodeLimitExceeded, match="key_int_bytes_max"):
        Registry().decode(extension(tag, array(*members)))

    assert cpu_time.seconds < 1


def test_large_ints_inside_keys_are_refused_too() -> None:
    """Tuples, slices and application types compare what they hold."""
    registry = Registry()

    @registry.allow(name="key")
    @dataclass(frozen=True)
    class Key:
        number: int

    large = 1 << 20_000
    for key in (large, (1, (large,)), Key(large), frozenset({large})):
        with pytest.raises(EncodeLimitExceeded, match="key_int_bytes_max"):
            registry.encode({key: 1})
    assert registry.decode(registry.encode({1 << 2000: 1})) == {1 << 2000: 1}


def test_ranges_of_large_parts_are_refused_both_ways() -> None:
    """A range divides its parts to know its length."""
    registry = Registry()
    parts = array(b"\x00", registry.encode(1 << 400_000), registry.encode(1 << 200_000))

    with pytest.raises(EncodeLimitExceeded, match="range_part_bytes_max"):
        registry.encode(range(0, 1 << 400_000, 1 << 200_000))
    with pytest.raises(DecodeLimitExceeded, match="range_part_bytes_max"):
        registry.decode(extension(22, parts))


def test_a_long_tuple_in_many_frozensets_is_looked_at_once() -> None:
    """Members of a frozenset are not checked again by every set around it."""
    data = extension(6, array(*[b"\x01"] * 900_000))
    for _ in range(22):
        data = extension(8, array(data))
    with CpuTime() as cpu_time:
        Registry().decode(data)

    assert cpu_time.seconds < 1
