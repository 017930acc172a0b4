# SPDX-License-Identifier: Apache-2.0
"""Which tensors share memory, and what of it is written.

Tensors whose bytes overlap are one *region*, and one tensor of the file. Where one of them covers
the region, the file holds that one, and the others are views of it; otherwise the file holds the
bytes as they lie, and all of them are views. A tensor that shares with nobody is written in the
order of its indices, whatever its order in memory. Nothing else of a storage is written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

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
    by_storage: dict[tuple[str, int], list[Held]] = {}
    for one in held:
        if one.size == 0:
            regions.append([one])
        else:
            key = str(one.tensor.device), one.tensor.untyped_storage().data_ptr()
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
    for one in region:
        covers = one.size == end - begin and one.tensor.is_contiguous()
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
        source=lambda: raw_bytes(torch, tensor, name),
    )


def _flat(region: list[Held], span: tuple[int, int], torch: Any, name: str) -> Entry:
    """An entry that is the memory of the tensors as it lies."""
    begin, end = span
    first, dtype = region[0].tensor, region[0].node.dtype
    if any(one.node.dtype != dtype for one in region):
        dtype = "uint8"
        before = begin % _GRAIN
        begin -= before
        for one in region:
            one.node.offset = before + (one.node.offset or 0)
    carrier = CARRIERS[dtype]
    count = (end - begin) // carrier.item_bytes

    def source() -> memoryview:
        memory = view_of(torch, first, torch.uint8, begin, ((end - begin,), (1,)))
        return raw_bytes(torch, memory, name)

    shape = (count, 2) if carrier.pair else (count,)
    return Entry(name=name, element=carrier.element, shape=shape, source=source)
