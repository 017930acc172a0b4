# SPDX-License-Identifier: Apache-2.0
"""Long values are in memory once: where they are saved from, and where they are loaded to."""

import contextlib
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.codec import TreeMemo
from sealpoint.codec._wire_format import BlobId
from sealpoint.errors import BytesMalformed
from sealpoint.store._blobs import blob_digest
from tests.arrays import ARRAYS, needs_arrays, np, torch
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


def _array(data: bytes) -> Any:
    return np.frombuffer(data, "f4").reshape(-1, 1000)


def _tensor(data: bytes) -> Any:
    return torch.frombuffer(bytearray(data), dtype=torch.int16)


_ARRAYS: list[Callable[[bytes], Any]] = [_array, _tensor, lambda data: [_array(data)]]
_KINDS = [bytes, bytearray, memoryview, *(_ARRAYS if ARRAYS else ())]


@pytest.mark.parametrize("kind", _KINDS)
def test_a_long_value_is_loaded_into_memory_once(kind: Callable[[bytes], Any]) -> None:
    """Its chunks are let go of as they are joined."""
    blobs = Blobs()
    root = _REGISTRY.encode_tree({"file": kind(random.Random(1).randbytes(_SIZE))}, blobs.put)  # noqa: S311

    assert _peak_bytes(lambda: _REGISTRY.decode_tree(root, blobs.get)) < 1.2 * _SIZE


@pytest.mark.parametrize("kind", _KINDS)
def test_a_long_value_is_saved_without_a_copy(kind: Callable[[bytes], Any]) -> None:
    """No more than a few chunks of it are in memory beside it, the second time too."""
    state = {"file": kind(random.Random(1).randbytes(_SIZE))}  # noqa: S311
    memo = TreeMemo(lambda _names: True)

    for _ in range(2):
        peak = _peak_bytes(lambda: _REGISTRY.encode_tree(state, blob_digest, memo=memo))
        assert peak < 0.1 * _SIZE


@needs_arrays
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_array_of_another_length_than_its_chunks_takes_no_memory(library: str) -> None:
    """That the shape asks for more than is there is known before memory is asked for."""
    make: Callable[[int], Any] = {"numpy": np, "torch": torch}[library].arange
    blobs = Blobs()
    root = _REGISTRY.encode_tree({"numbers": make(25_600)}, blobs.put)
    lie = blobs.put(blobs.get(root).replace(b"\x91\xcd\x64\x00", b"\x91\xcd\xff\xff"))

    with pytest.raises(BytesMalformed, match="array: expected 524280 bytes, found 204800 bytes"):
        _REGISTRY.decode_tree(lie, blobs.get)
    assert _peak_bytes(lambda: _refused(lie, blobs)) < 100_000


def _refused(root: BlobId, blobs: Blobs) -> bool:
    with contextlib.suppress(BytesMalformed):
        _REGISTRY.decode_tree(root, blobs.get)
    return True
