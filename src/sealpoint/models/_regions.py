# SPDX-License-Identifier: Apache-2.0
"""Which tensors share memory, and what of it is written.

Tensors whose bytes overlap are one *region*, and one tensor of the file. Where one of them covers
the region, the file holds that one, and the others are views of it; otherwise the file holds the
bytes as they lie, and all of them are views. A tensor that shares with nobody is written in the
order of its indices, whatever its order in memory. Nothing else of a storage is written: where the
bytes of a region belong to none of its tensors, the file has zeros.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sealpoint.errors import ValueNotAllowed
from sealpoint.models._draft import Source
from sealpoint.models._elements import CARRIERS
from sealpoint.models._memory import extent, is_permuted, raw_bytes, view_of
from sealpoint.models._nodes import TensorNode

__all__ = ["Entry", "Held", "place"]

_GRAIN = 16
"""What views of several types begin at a multiple of: the widest element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A tensor of the file that is about to be written."""

    name: str
    element: str
    shape: tuple[int, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class Held:
    """A dense tensor of the state, with the node that stands for it."""

    name: str
    tensor: Any
    node: TensorNode

    @property
    def size(self) -> int:
        """What its elements take."""
        return int(self.tensor.numel() * self.tensor.element_size())

    @property
    def begin(self) -> int:
        """Where its bytes begin in its storage."""
        return int(self.tensor.storage_offset() * self.tensor.element_size())

    @property
    def end(self) -> int:
        """Where they end."""
        reach = extent(self.tensor.shape, self.tensor.stride())
        return self.begin + reach * int(self.tensor.element_size())

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Tensors of one storage with the same geometry are the same tensor.

        The step along a side of 1 leads nowhere, and torch leaves it to chance.
        """
        pairs = zip(self.tensor.shape, self.tensor.stride(), strict=True)
        steps = tuple(step for side, step in pairs if side != 1)
        return self.node.dtype, self.begin, self.tensor.shape, steps


def place(held: Iterable[Held], torch: Any, named: Callable[[str], str]) -> list[Entry]:
    """Give every node its place in the file.

    Args:
        held: The dense tensors of a state, in order.
        torch: The module.
        named: Gives each entry a name of its own, from the one it would like.
    """
    regions: list[list[Held]] = []
    by_storage: dict[tuple[str, int, int], list[Held]] = {}
    for one in held:
        if one.size == 0:
            regions.append([one])
        else:
            storage = one.tensor.untyped_storage()
            key = str(one.tensor.device), storage.data_ptr(), storage.nbytes()
            by_storage.setdefault(key, []).append(one)
    for sharing in by_storage.values():
        regions += _overlapping(sharing)
    return [_entry(region, torch, named(region[0].name)) for region in regions]


def _overlapping(sharing: list[Held]) -> list[list[Held]]:
    regions: list[list[Held]] = []
    end = -1
    for one in sorted(sharing, key=lambda one: one.begin):
        if one.begin >= end:
            regions.append([])
        regions[-1].append(one)
        end = max(end, one.end)
    return regions


def _entry(region: list[Held], torch: Any, name: str) -> Entry:
    begin, end = region[0].begin, max(one.end for one in region)
    for one in region:
        one.node.entry = name
        one.node.offset = one.begin - begin
        one.node.shape = list(one.tensor.shape)
        one.node.stride = list(one.tensor.stride())
    alone = len({one.geometry for one in region}) == 1
    # Views begin at a multiple of their elements, which a wider one may not do in a narrower one.
    fit = all((one.begin - begin) % one.tensor.element_size() == 0 for one in region)
    for one in region:
        covers = fit and one.size == end - begin and one.tensor.is_contiguous()
        # A tensor alone may have gaps, which are not written; one that repeats elements may not.
        if covers or (alone and one.size <= end - begin):
            return _whole(one, region, torch, name)
    return _flat(region, (begin, end), torch, name)


def _whole(chosen: Held, region: list[Held], torch: Any, name: str) -> Entry:
    """An entry that is one of the tensors."""
    tensor, carrier = chosen.tensor, CARRIERS[chosen.node.dtype]
    shape = tuple(tensor.shape)
    in_order = tensor.is_contiguous() or not is_permuted(shape, tensor.stride())
    for one in region:
        if one.geometry == chosen.geometry:
            one.node.offset = one.node.shape = None
            one.node.stride = None if in_order else list(tensor.stride())
    return Entry(
        name=name,
        element=carrier.element,
        shape=(*shape, 2) if carrier.pair else shape,
        source=lambda: _checked(raw_bytes(torch, tensor), region, torch, name),
    )


def _flat(region: list[Held], span: tuple[int, int], torch: Any, name: str) -> Entry:
    """An entry that is the memory of the tensors as it lies."""
    begin, end = span
    dtype = region[0].node.dtype
    if any(one.node.dtype != dtype for one in region):
        dtype = "uint8"
        before = begin % _GRAIN
        begin -= before
        for one in region:
            one.node.offset = before + (one.node.offset or 0)
    carrier = CARRIERS[dtype]
    count = (end - begin) // carrier.item_bytes

    def source() -> memoryview:
        memory = torch.zeros(end - begin, dtype=torch.uint8, device="cpu")
        for one in region:
            _copy(torch, one.tensor, memory, one.begin - begin)
        return _checked(memoryview(memory.numpy()), region, torch, name)

    shape = (count, 2) if carrier.pair else (count,)
    return Entry(name=name, element=carrier.element, shape=shape, source=source)


def _copy(torch: Any, tensor: Any, memory: Any, at: int) -> None:
    """Copy the elements of a tensor to where they lie, and nothing of what is between them."""
    for dimension, (side, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if side > 1 and step == 0:
            tensor = tensor.narrow(dimension, 0, 1)  # the same element again
    geometry = tensor.shape, tensor.stride()
    target = view_of(torch, memory, tensor.dtype, at // tensor.element_size(), geometry)
    target.copy_(tensor)


def _checked(memory: memoryview, region: list[Held], torch: Any, name: str) -> memoryview:
    """The bytes of an entry; a reader looks at all of them if one of its views is of booleans."""
    if not memory or all(one.node.dtype != "bool" for one in region):
        return memory
    if torch.frombuffer(memory, dtype=torch.uint8).max() > 1:
        raise ValueNotAllowed(
            f"tensor {name}: expected booleans of 0 or 1 in memory that booleans share"
        )
    return memory
