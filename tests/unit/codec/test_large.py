# SPDX-License-Identifier: Apache-2.0
"""Long values are in memory once: where they are saved from, and where they are loaded to."""

import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.codec import TreeMemo
from sealpoint.store._blobs import blob_digest
from tests.blobs import Blobs

_REGISTRY = Registry()
_SIZE = 6_000_000


def _peak_bytes(call: Callable[[], Any]) -> int:
    """The most memory that a call took, with what it returns."""
    tracemalloc.start()
    try:
        kept = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del kept
    return peak


def test_a_long_byte_string_is_loaded_into_memory_once() -> None:
    """Its chunks are let go of as they are joined."""
    blobs = Blobs()
    root = _REGISTRY.encode_tree({"file": random.Random(1).randbytes(_SIZE)}, blobs.put)  # noqa: S311

    assert _peak_bytes(lambda: _REGISTRY.decode_tree(root, blobs.get)) < 1.2 * _SIZE


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_long_byte_string_is_saved_without_a_copy(kind: Callable[[bytes], Any]) -> None:
    """No more than a few chunks of it are in memory beside it, the second time too."""
    state = {"file": kind(random.Random(1).randbytes(_SIZE))}  # noqa: S311
    memo = TreeMemo(lambda _names: True)

    for _ in range(2):
        peak = _peak_bytes(lambda: _REGISTRY.encode_tree(state, blob_digest, memo=memo))
        assert peak < 0.1 * _SIZE
