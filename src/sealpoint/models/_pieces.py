# SPDX-License-Identifier: Apache-2.0
"""Tensors cut into pieces, and several OS threads that work on them at once.

Reading, writing and hashing leave the interpreter to others, so threads are enough.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from sealpoint.models._digests import PIECE_BYTES, piece_hasher, tensor_digest
from sealpoint.models._safetensors import Tensor

__all__ = [
    "Piece",
    "Progress",
    "batches_of",
    "digests_of",
    "in_parallel",
    "move_piece",
    "sizes",
]

Progress = Callable[[int, int], object]
"""Called with how many bytes are done, and how many there are."""

_STEP_BYTES = 1 << 20
_WORKERS_MAX = 8

_B = TypeVar("_B")
_R = TypeVar("_R")


class Piece(NamedTuple):
    """A piece of a tensor."""

    tensor: Tensor
    at: int
    """Where it begins in the tensor."""
    size: int


def batches_of(tensors: Iterable[Tensor]) -> Iterator[list[Piece]]:
    """The pieces of tensors; small ones together, so that a job is worth its while."""
    batch: list[Piece] = []
    total = 0
    for tensor in tensors:
        for at in range(0, tensor.size, PIECE_BYTES):
            piece = Piece(tensor, at, min(PIECE_BYTES, tensor.size - at))
            if batch and total + piece.size > PIECE_BYTES:
                yield batch
                batch, total = [], 0
            batch.append(piece)
            total += piece.size
    if batch:
        yield batch


def move_piece(
    piece: Piece, memory: memoryview, move: Callable[[memoryview, int], None], *, hashing: bool
) -> bytes:
    """Read or write a piece, and hash what was moved while it is in the processor's cache.

    Args:
        piece: Which.
        memory: Its bytes, or where they go.
        move: Reads or writes some memory from or to a place in the file.
        hashing: Whether a digest is wanted.

    Returns:
        The digest; empty without `hashing`.
    """
    offset = piece.tensor.begin + piece.at
    if not hashing:
        move(memory, offset)
        return b""
    hasher = piece_hasher()
    for at in range(0, piece.size, _STEP_BYTES):
        step = memory[at : at + _STEP_BYTES]
        move(step, offset + at)
        hasher.update(step)
    return bytes(hasher.digest())


def digests_of(
    tensors: Iterable[Tensor], digests: Mapping[tuple[str, int], bytes]
) -> dict[str, bytes]:
    """The digests of tensors from those of their pieces, by name and place."""
    return {
        tensor.name: tensor_digest(
            tensor.size, (digests[tensor.name, at] for at in range(0, tensor.size, PIECE_BYTES))
        )
        for tensor in tensors
    }


def in_parallel(work: Callable[[_B], _R], batches: Iterable[_B]) -> Iterator[_R]:
    """Do a piece of work for each batch, a few ahead; the results in order.

    The first failure ends it: what has not begun is not done. One batch alone needs no thread.
    """
    rest = iter(batches)
    first = list(islice(rest, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    workers = min(_WORKERS_MAX, os.cpu_count() or 1)
    pending: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(workers, "sealpoint-models") as pool:
        try:
            for batch in chain(first, rest):
                pending.append(pool.submit(work, batch))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def sizes(batch: Sequence[Piece]) -> int:
    """How many bytes the pieces of a batch have together."""
    return sum(piece.size for piece in batch)
