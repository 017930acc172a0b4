# SPDX-License-Identifier: Apache-2.0
"""The device of loaded tensors: `map_location`, with the semantics of `torch.load`.

The memory layout of a tensor's elements: whole-number arithmetic, and the bytes themselves.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sealpoint.errors import ModelError, ModelMalformed, UsageError

MapLocation = Any
"""A device or its name, a mapping of names, a function of a storage and a name, or None."""

# torch keeps 8 bits of the number: to it, cuda:256 is cuda:0.
_NAME = re.compile(r"[a-z]{1,16}(:(0|[1-9][0-9]?|1[01][0-9]|12[0-7]))?")

_KINDS = ("cpu", "cuda", "mps", "mtia", "xla", "xpu")
"""The devices that data may name by itself. For other names torch imports a module of the name."""


class Placing:
    """Moves memory to its device.

    Args:
        torch: The module.
        map_location: The caller's request; None: the original place of each tensor.
        what: The name of the file, for messages.

    Raises:
        UsageError: The request is not a place.
    """

    def __init__(self, torch: Any, map_location: MapLocation, what: str) -> None:
        self._torch = torch
        self._what = what
        self._move: Callable[[Any, str], Any]
        self.cuda: Any = None
        """The CUDA device of everything, if the request names one that this process has."""
        if map_location is None:
            self._move = self._back
        elif isinstance(map_location, dict):
            self._move = lambda memory, saved: (
                self._to(memory, map_location[saved])
                if saved in map_location
                else self._back(memory, saved)
            )
        elif isinstance(map_location, str | torch.device):
            try:
                device = torch.device(map_location)
            except RuntimeError as exc:
                raise UsageError(
                    f"map_location: expected a device, found {map_location!r}"
                ) from exc
            self._move = lambda memory, _saved: self._to(memory, device)
            if device.type == "cuda" and (device.index or 0) < torch.cuda.device_count():
                self.cuda = device
        elif callable(map_location):
            self._move = lambda memory, saved: self._by(map_location, memory, saved)
        else:
            raise UsageError(
                "map_location: expected a device, a mapping, a function or None, found "
                f"{type(map_location).__name__}"
            )

    def __call__(self, memory: Any, saved: str) -> Any:
        """Memory, on its device.

        Args:
            memory: A tensor of bytes that fills its storage.
            saved: The device that it was saved from.

        Raises:
            ModelError: This machine has no such device, or not enough memory on it.
        """
        return self._move(memory, saved)

    def _back(self, memory: Any, saved: str) -> Any:
        """Memory, on the device that the file names."""
        if saved.partition(":")[0] not in _KINDS:
            raise self._refusal(saved)
        return self._to(memory, saved)

    def _to(self, memory: Any, device: Any) -> Any:
        try:
            return memory.to(device)
        except (RuntimeError, AssertionError, ImportError) as exc:
            raise self._refusal(device) from exc

    def _refusal(self, device: Any) -> ModelError:
        return ModelError(
            f"{self._what}: expected device {str(device)!r} to take a tensor, found that it does "
            "not",
            hint='Load with map_location="cpu", and move what is needed.',
        )

    def _by(self, function: Any, memory: Any, saved: str) -> Any:
        placed = function(memory.untyped_storage(), saved)
        if placed is None:
            return self._back(memory, saved)
        bytes_ = self._torch.empty(0, dtype=self._torch.uint8, device=placed.device)
        return bytes_.set_(placed, 0, (placed.nbytes(),), (1,))

    @staticmethod
    def checked(device: object, what: str) -> str:
        """The name of a device, from data.

        Raises:
            ModelMalformed: It is not such a name.
        """
        if type(device) is not str or not _NAME.fullmatch(device):
            raise ModelMalformed(f"{what}: expected the name of a device")
        return device


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """The distance between the first and the last element of a tensor, both counted."""
    if 0 in shape:
        return 0
    return 1 + sum((side - 1) * step for side, step in zip(shape, stride, strict=True))


def is_permuted(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements have no gaps or overlaps, with the dimensions in another order."""
    step = 1
    for dimension_step, side in sorted(zip(stride, shape, strict=True)):
        if side != 1:
            if dimension_step != step:
                return False
            step *= side
    return 0 not in shape


def view_of(torch: Any, memory: Any, dtype: Any, offset: int, geometry: tuple[Any, Any]) -> Any:
    """A tensor of its own over the storage of another one.

    Args:
        torch: The module.
        memory: A tensor that fills its storage.
        dtype: The element type.
        offset: Where it begins, in elements.
        geometry: Shape and stride.
    """
    tensor = torch.empty(0, dtype=dtype, device=memory.device)
    return tensor.set_(memory.untyped_storage(), offset, *geometry)


def raw_bytes(torch: Any, tensor: Any) -> memoryview:
    """The bytes of a tensor in the order of its indices, in the memory of the processor."""
    dense = tensor.contiguous().cpu()
    if dense.numel() == 0:
        return memoryview(b"")
    start = dense.storage_offset() * dense.element_size()
    size = dense.numel() * dense.element_size()
    raw = view_of(torch, dense, torch.uint8, start, ((size,), (1,)))
    return memoryview(raw.numpy())
