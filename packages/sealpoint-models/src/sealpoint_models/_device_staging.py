# SPDX-License-Identifier: Apache-2.0
"""Reading a file onto an accelerator: while one piece is copied, the next is read and hashed.

Each worker has two buffers that the accelerator can read by itself. A piece is read into one of
them, hashed there, and copied from there: so the accelerator gets exactly the hashed bytes, even if
the file changes during the read. A buffer is reused only after its content has arrived.

This module does not verify. Its callers return tensors only after comparing their digests.
"""

import threading
from collections.abc import Mapping
from typing import Any

from sealpoint_models._file_reader import PIECE_BYTES, TensorPiece

_BUFFERS = 2


class DeviceMemory:
    """Memory on a CUDA device that a file is read into, a piece at a time, by several threads.

    Args:
        torch: The module.
        memory: A tensor of bytes on the device for each tensor of the file, by name.
        device: Where they are.
    """

    def __init__(self, torch: Any, memory: Mapping[str, Any], device: Any) -> None:
        self._torch = torch
        self._memory = memory
        self._device = device
        # The memory may have belonged to something that the device still works on.
        self._before = torch.cuda.current_stream(device)
        self._own = threading.local()
        self._lanes: list[_Lane] = []

    def room(self, piece: TensorPiece) -> memoryview:
        """Where the bytes of a piece are read to."""
        return self._lane().room(piece.size)

    def filled(self, piece: TensorPiece) -> None:
        """Start the copy of a piece from its buffer."""
        target = self._memory[piece.tensor.name][piece.at : piece.at + piece.size]
        self._lane().send(target)

    def finish(self) -> None:
        """Wait until everything has arrived."""
        for lane in self._lanes:
            lane.stream.synchronize()

    def _lane(self) -> "_Lane":
        lane: _Lane | None = getattr(self._own, "lane", None)
        if lane is None:
            lane = self._own.lane = _Lane(self._torch, self._device, self._before)
            self._lanes.append(lane)
        return lane


class _Lane:
    """The buffers of one thread, and the order in which they are copied."""

    def __init__(self, torch: Any, device: Any, before: Any) -> None:
        self._torch = torch
        self.stream = torch.cuda.Stream(device)
        self.stream.wait_stream(before)
        self._buffers = [
            torch.empty(PIECE_BYTES, dtype=torch.uint8, device="cpu", pin_memory=True)
            for _ in range(_BUFFERS)
        ]
        self._views = [memoryview(buffer.numpy()) for buffer in self._buffers]
        self._arrived = [torch.cuda.Event() for _ in range(_BUFFERS)]
        self._which = 0
        self._begin = self._end = 0

    def room(self, size: int) -> memoryview:
        """Memory for the next piece; at most a piece has `PIECE_BYTES`."""
        if self._end + size > PIECE_BYTES:
            self._arrived[self._which].record(self.stream)
            self._which = (self._which + 1) % _BUFFERS
            self._arrived[self._which].synchronize()
            self._end = 0
        self._begin, self._end = self._end, self._end + size
        return self._views[self._which][self._begin : self._end]

    def send(self, target: Any) -> None:
        """Copy the content of the last buffer, without waiting for it."""
        with self._torch.cuda.stream(self.stream):
            target.copy_(self._buffers[self._which][self._begin : self._end], non_blocking=True)
