# SPDX-License-Identifier: Apache-2.0
"""How much does a small change write? The blob tree beside writing the whole state each time."""

import hashlib
from collections.abc import Iterator
from typing import Any

from benchmarks._measure import Result
from benchmarks._states import messages, registry

__all__ = ["experiments"]

_MESSAGES = 400
_MESSAGE_BYTES = 1024
_LONG_LIST = 10_000


class _Blobs:
    """A blob store that counts what is new to it."""

    def __init__(self) -> None:
        self._blobs: dict[bytes, bytes] = {}
        self.written_bytes = 0

    def put(self, blob: bytes) -> bytes:
        name = hashlib.sha256(blob).digest()
        if name not in self._blobs:
            self._blobs[name] = blob
            self.written_bytes += len(blob)
        return name

    def get(self, name: Any) -> bytes:
        return self._blobs[name]


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield _growing()
    yield _inserting()


def _growing() -> Result:
    ours, blobs = registry(), _Blobs()
    history = messages(_MESSAGES, _MESSAGE_BYTES)
    content = sum(len(message["content"]) for message in history)
    whole = 0
    root: Any = None
    for count in range(1, _MESSAGES + 1):
        state = {"messages": history[:count]}
        root = ours.encode_tree(state, blobs.put)
        whole += len(ours.encode(state))
    if ours.decode_tree(root, blobs.get) != {"messages": history}:
        raise AssertionError("the tree does not give the state back")
    return Result(
        question=f"a list of 1 KB messages growing one by one to {_MESSAGES}",
        ours=f"{blobs.written_bytes:,} bytes",
        peer=f"whole states {whole:,} bytes ({whole / content:.0f} x)",
        figure=blobs.written_bytes / content,
        unit="x its content written",
        bar=3.0,
        at_least=False,
    )


def _inserting() -> Result:
    ours, blobs = registry(), _Blobs()
    history = messages(_LONG_LIST + 1, _MESSAGE_BYTES)
    new = history.pop()
    ours.encode_tree(history, blobs.put)
    before = blobs.written_bytes
    history.insert(_LONG_LIST // 2, new)
    ours.encode_tree(history, blobs.put)
    written = blobs.written_bytes - before
    return Result(
        question=f"inserting one element in the middle of {_LONG_LIST:,}",
        ours=f"{written:,} bytes",
        peer=f"whole list {len(ours.encode(history)):,} bytes",
        figure=written / 1024,
        unit="KB written",
        bar=64.0,
        at_least=False,
    )
