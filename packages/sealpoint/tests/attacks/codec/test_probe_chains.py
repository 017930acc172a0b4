# SPDX-License-Identifier: Apache-2.0
"""Keys of different hashes whose probe sequences run together cost little; numpy finds them."""

import contextlib

import pytest

from sealpoint import Registry
from sealpoint.errors import DecodeLimitExceeded
from tests.cpu_time import CpuTime
from tests.wire import array, extension

pytest.importorskip("numpy")

from tests.attacks.codec.probe_chains import chained_keys


def test_keys_of_different_hashes_with_one_probe_chain_end_within_a_second() -> None:
    """Hashes that all differ, but whose keys each walk past all earlier ones, cost little."""
    registry = Registry()
    keys = chained_keys(bits=14, count=10_000)
    unit = extension(5, array(*(part for key in keys for part in (registry.encode(key), b"\x00"))))
    data = array(*[unit] * 10)
    assert len(set(map(hash, keys))) == len(keys)
    assert len(data) <= 1_000_000

    with CpuTime() as cpu_time, contextlib.suppress(DecodeLimitExceeded):
        registry.decode(data)

    assert cpu_time.seconds < 1
