# SPDX-License-Identifier: Apache-2.0
"""Changing the structure of a model file: nodes with other fields, in other places and nodes."""

import dataclasses
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, cast

from fuzz._model_sketch import Part, Sketch
from fuzz._model_words import DTYPES, NAMES, Words
from sealpoint_models._structure_nodes import (
    ArrayNode,
    CounterNode,
    DeviceNode,
    DtypeNode,
    InertNode,
    NamespaceNode,
    Node,
    QuantizedNode,
    SizeNode,
    SparseNode,
    StateDictNode,
    TensorNode,
)
from sealpoint_models.scan import contiguous_stride
from sealpoint_models.scan._safetensors import ARRAYS, CARRIERS, ELEMENT_BITS

__all__ = ["TreeChanger"]

_SLOTS_MAX = 400
_NODES: tuple[type, ...] = Node.__args__
_INDICES = (
    *((0, 1), (0, 2), (0, 0), (1, 0), (0, 1, 2), (0, 1, 1, 2), (2, 1, 0), (0, 5), (-1, 0)),
    *((0, 1 << 40), (0, 1 << 62), (0, -(1 << 63)), (0, 2, 4), (1, 3, 1, 3)),
)
_Slot = tuple[Any, Any, Any]
"""A container, a place in it, and what is there."""


def _fields(node: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(node)]


def _slots(root: list[Any]) -> list[_Slot]:
    """Every place of a structure that can be changed."""
    found: list[_Slot] = []
    waiting: list[Any] = [root]
    while waiting and len(found) < _SLOTS_MAX:
        value = waiting.pop()
        for key, member in _members(value):
            if not isinstance(value, tuple):
                found.append((value, key, member))
            waiting.append(member)
    return found


def _members(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, list | tuple | deque):
        yield from enumerate(value)
    elif isinstance(value, dict | OrderedDict | defaultdict):
        yield from list(value.items())
    elif isinstance(value, _NODES):
        yield from ((name, getattr(value, name)) for name in _fields(value))


def _put(slot: _Slot, value: Any) -> None:
    container, key, _ = slot
    if isinstance(container, _NODES):
        setattr(container, key, value)
    else:
        container[key] = value


class TreeChanger:
    """Changes structures, and adds the entries that new nodes need.

    Args:
        rng: Where all choices come from.
        words: Where values come from.
    """

    def __init__(self, rng: random.Random, words: Words) -> None:
        self._rng = rng
        self._words = words
        self._changes = (
            *(self._other_value, self._other_value, self._wrapped, self._moved, self._moved),
            *(self._view, self._view, self._view, self._permuted, self._retyped, self._added),
            *(self._added, self._sparse, self._quantized, self._removed, self._flag, self._array),
            *(self._other_node, self._many, self._index, self._tied),
        )

    def changed(self, root: list[Any], sketch: Sketch) -> None:
        """Change a structure, which is the one member of a list, and its sketch."""
        for _ in range(self._rng.choice((1, 1, 1, 2, 2, 3, 5))):
            self._rng.choice(self._changes)(root, sketch)

    # Anywhere.

    def _slot(self, root: list[Any], *kinds: type) -> _Slot | None:
        slots = _slots(root)
        if kinds:
            slots = [slot for slot in slots if type(slot[2]) in kinds]
        return self._rng.choice(slots) if slots else None

    def _other_value(self, root: list[Any], _sketch: Sketch) -> None:
        slot = self._slot(root)
        if slot is not None:
            _put(slot, self._words.atom())

    def _wrapped(self, root: list[Any], _sketch: Sketch) -> None:
        slot = self._slot(root, *(_NODES if self._rng.random() < 0.6 else ()))
        if slot is not None:
            _put(slot, self._words.wrapped(slot[2]))

    def _moved(self, root: list[Any], _sketch: Sketch) -> None:
        """Put what stands somewhere somewhere else, too."""
        target, source = self._slot(root), self._slot(root)
        if target is not None and source is not None:
            try:
                _put(target, _copied(source[2], 0))
            except RecursionError:
                return

    def _removed(self, root: list[Any], _sketch: Sketch) -> None:
        slot = self._slot(root)
        if slot is not None and isinstance(slot[0], list | dict) and slot[0] is not root:
            del slot[0][slot[1]]

    def _many(self, root: list[Any], _sketch: Sketch) -> None:
        """A node again and again, each a little different."""
        slot = self._slot(root, TensorNode, ArrayNode, QuantizedNode, SparseNode)
        if slot is None:
            return
        copies = [_copied(slot[2], 0) for _ in range(self._rng.choice((2, 3, 20, 60)))]
        for number, node in enumerate(copies):
            if type(node) is TensorNode and type(node.stride) is list:
                node.stride[-1:] = [number]
        _put(slot, copies)

    def _other_node(self, root: list[Any], _sketch: Sketch) -> None:
        slot = self._slot(root)
        words, rng = self._words, self._rng
        if slot is not None:
            made = (
                SizeNode(sides=words.numbers()),
                DtypeNode(name=rng.choice((*DTYPES, words.atom()))),
                DeviceNode(name=words.atom()),
                CounterNode(counts=rng.choice(({"a": 1}, {1: slot[2]}, words.atom()))),
                StateDictNode(items=OrderedDict(a=slot[2]), metadata=words.atom()),
                NamespaceNode(
                    kind=rng.choice(("argparse", "types", words.atom())),
                    attributes=rng.choice([{"a": slot[2]}, cast("Any", {1: 2}), words.atom()]),
                ),
                InertNode(
                    type=rng.choice(("os.system", words.atom())),
                    made=rng.choice(("name", "call", "object", words.atom())),
                    arguments=rng.choice(((), (slot[2],), words.atom())),
                    keywords=words.atom(),
                    state=slot[2],
                    items=rng.choice(([], [1], words.atom())),
                    pairs=rng.choice([[], [(1, 2)], cast("Any", [3]), words.atom()]),
                ),
            )
            _put(slot, rng.choice(made))

    # Tensors.

    def _view(self, root: list[Any], sketch: Sketch) -> None:
        """A view that fits, or very nearly."""
        rng = self._rng
        slot = self._slot(root, TensorNode)
        if slot is None:
            return
        node = slot[2]
        part = next((part for part in sketch.parts if part.name == node.entry), None)
        width = CARRIERS[node.dtype].item_bytes if _known(node.dtype) else 1
        left = (part.fitted().size if part else 8) // width
        offset = rng.randrange(left + 1) if rng.random() < 0.5 else 0
        left -= offset
        shape, stride = [], []
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3))):
            step = rng.choice((0, 1, 1, 1, 2, 3, rng.randrange(max(left, 0) + 2)))
            side = rng.randrange(max(left, 1) // max(step, 1) + 2)
            side = rng.choice((side, side, 0, 1, 1 << 20, 1 << 62)) if step == 0 else side
            left -= max(side - 1, 0) * step
            shape.append(side)
            stride.append(step)
        node.shape, node.stride, node.offset = shape, stride, offset * width
        if rng.random() < 0.15:
            node.offset = rng.choice((node.offset + 1, self._words.number(), None))
        if rng.random() < 0.15:
            setattr(node, rng.choice(("shape", "stride")), self._words.numbers())

    def _permuted(self, root: list[Any], sketch: Sketch) -> None:
        """A whole entry whose dimensions lie in another order."""
        rng = self._rng
        slot = self._slot(root, TensorNode)
        if slot is None:
            return
        node = slot[2]
        part = next((part for part in sketch.parts if part.name == node.entry), None)
        shape = list(part.fitted().shape) if part else [2, 2]
        if _known(node.dtype) and CARRIERS[node.dtype].pair:
            shape = shape[:-1]
        places = list(range(len(shape)))
        rng.shuffle(places)
        in_order = contiguous_stride([shape[place] for place in places])
        stride = [in_order[places.index(place)] for place in range(len(shape))]
        for place, side in enumerate(shape):
            if side == 1 and rng.random() < 0.5:
                stride[place] = self._words.number()
        node.offset = node.shape = None
        node.stride = stride if rng.random() < 0.9 else self._words.numbers()

    def _retyped(self, root: list[Any], sketch: Sketch) -> None:
        """Another type for a node, and often for the entry with it."""
        rng = self._rng
        slot = self._slot(root, TensorNode)
        if slot is None:
            return
        node = slot[2]
        node.dtype = rng.choice(DTYPES)
        if rng.random() < 0.7:
            for place, part in enumerate(sketch.parts):
                if part.name == node.entry:
                    carrier = CARRIERS[node.dtype]
                    shape = (*part.shape[:-1], 2) if carrier.pair else part.shape
                    sketch.parts[place] = dataclasses.replace(
                        part, element=carrier.element, shape=shape
                    )

    def _flag(self, root: list[Any], _sketch: Sketch) -> None:
        slot = self._slot(root, TensorNode, SparseNode)
        if slot is not None:
            names = [name for name in _fields(slot[2]) if type(getattr(slot[2], name)) is bool]
            for name in names:
                setattr(slot[2], name, self._rng.random() < 0.5)

    def _index(self, root: list[Any], sketch: Sketch) -> None:
        """Other whole numbers in an entry that sparse tensors may take for indices."""
        slot = self._slot(root, SparseNode)
        inside = slot[2].indices if slot is not None else None
        if type(inside) is list and inside:
            node = self._rng.choice(inside)
            for place, part in enumerate(sketch.parts):
                if type(node) is TensorNode and part.name == node.entry:
                    data = _packed(self._rng.choice(_INDICES), ELEMENT_BITS[part.element] // 8)
                    sketch.parts[place] = dataclasses.replace(part, data=data)

    def _tied(self, root: list[Any], sketch: Sketch) -> None:
        """A node over an entry that is another one's."""
        slot = self._slot(root, TensorNode, ArrayNode)
        if slot is not None and sketch.parts:
            slot[2].entry = self._rng.choice(sketch.parts).name

    # New ones, with entries.

    def _entry(self, sketch: Sketch, element: str, shape: Sequence[int], data: bytes) -> str:
        taken = {part.name for part in sketch.parts}
        rng = self._rng
        name = rng.choice(NAMES[:5]) if rng.random() < 0.9 else rng.choice(NAMES)
        while name in taken:
            name += "#"
        sketch.parts.append(Part(name=name, element=element, shape=tuple(shape), data=data))
        return name

    def _new(self, sketch: Sketch, dtype: str, shape: Sequence[int], data: bytes) -> TensorNode:
        carrier = CARRIERS[dtype]
        shape = (*shape, 2) if carrier.pair else shape
        node = self._words.tensor(self._entry(sketch, carrier.element, shape, data), dtype)
        node.device = "cpu"
        node.requires_grad = node.requires_grad and ("float" in dtype or "complex" in dtype)
        return node

    def _small(self) -> list[int]:
        return [self._rng.randrange(4) for _ in range(self._rng.choice((0, 1, 2, 2, 3)))]

    def _place(self, root: list[Any], node: Any) -> None:
        slot = self._slot(root)
        if slot is None or self._rng.random() < 0.3:
            root[0] = [root[0], node]
        else:
            _put(slot, [slot[2], node])

    def _added(self, root: list[Any], sketch: Sketch) -> None:
        dtype = self._rng.choice(DTYPES)
        self._place(root, self._new(sketch, dtype, self._small(), self._rng.randbytes(8)))

    def _array(self, root: list[Any], sketch: Sketch) -> None:
        dtype, element = self._rng.choice(list(ARRAYS.items()))
        data = self._rng.choice((b"\0\1", self._rng.randbytes(8)))
        name = self._entry(sketch, element, self._small(), data)
        self._place(root, ArrayNode(entry=name, dtype=dtype))

    def _sparse(self, root: list[Any], sketch: Sketch) -> None:
        rng = self._rng
        dtype = rng.choice(("int64", "int64", "int64", "int32", "int8", "float32"))
        nodes = []
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            numbers = rng.choice(_INDICES)
            data = _packed(numbers, CARRIERS[dtype].item_bytes)
            shape = rng.choice(((1, len(numbers)), (len(numbers),), (2, len(numbers) // 2)))
            nodes.append(self._new(sketch, dtype, shape, data))
        sides = [rng.randrange(5), *self._small()[:2]]
        values = self._new(sketch, rng.choice(("float32", *DTYPES)), sides, b"\0\1")
        self._place(root, self._words.sparse(nodes, values))

    def _quantized(self, root: list[Any], sketch: Sketch) -> None:
        rng = self._rng
        shape = [rng.randrange(4) for _ in range(rng.choice((0, 1, 2, 3)))]
        count = rng.choice((*shape, 1, 2))
        floating = rng.random() < 0.3
        scale = self._new(sketch, "float32" if floating else "float64", [count], rng.randbytes(8))
        zero = self._new(sketch, "float32" if floating else "int64", [count], bytes(8))
        dtype = rng.choice(("int8", "uint8", "int32", rng.choice(DTYPES)))
        elements = self._new(sketch, dtype, shape, rng.randbytes(4))
        self._place(root, self._words.quantized(elements, scale, zero))


def _known(dtype: Any) -> bool:
    return type(dtype) is str and dtype in CARRIERS


def _packed(numbers: Sequence[int], width: int) -> bytes:
    whole = (number & ((1 << 8 * width) - 1) for number in numbers)
    return b"".join(number.to_bytes(width, "little") for number in whole)


def _copied(value: Any, depth: int) -> Any:
    """A copy of containers and nodes, not too deep."""
    if depth > 30:
        return None
    if isinstance(value, list | tuple):
        return type(value)(_copied(member, depth + 1) for member in value)
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _copied(member, depth + 1)) for key, member in value.items())
    if isinstance(value, _NODES):
        return type(value)(**{key: _copied(each, depth + 1) for key, each in _members(value)})
    return value
