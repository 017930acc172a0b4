# SPDX-License-Identifier: Apache-2.0
"""Words of model files: numbers at bounds, names, types and values that a change puts in."""

import random
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import torch

from sealpoint_models._structure_nodes import (
    ArrayNode,
    CounterNode,
    DeviceNode,
    DtypeNode,
    QuantizedNode,
    SizeNode,
    SparseNode,
    StateDictNode,
    TensorNode,
)
from sealpoint_models.scan._safetensors import ARRAYS, CARRIERS, ELEMENT_BITS

__all__ = ["DEVICES", "DTYPES", "ELEMENTS", "LAYOUTS", "NAMES", "NUMBERS", "Words"]

NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 16, 63, 64, 65, 127, 255, 4096, 65536, (1 << 31) - 1, 1 << 31),
    *(1 << 32, 1 << 60, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 70),
    *(-1, -2, -8, -(1 << 31), -(1 << 63)),
)
NAMES = (
    *("a", "b", "state", "a.b", "a/b", "..", "../a", "/a", "a\\..\\b", "", "\0", "\x7f", "\x85"),
    *("é", "\U0001f600", "a#2", "__metadata__", "x" * 2048, "x" * 2049, "__class__", " ", "a "),
)
ELEMENTS = tuple(ELEMENT_BITS)
DTYPES = tuple(CARRIERS)
LAYOUTS = (
    "sparse_coo",
    "sparse_csr",
    "sparse_csc",
    "sparse_bsr",
    "sparse_bsc",
    "strided",
    "jagged",
)
DEVICES = (
    *("cpu", "cpu:0", "cuda", "cuda:0", "cuda:1", "cuda:999", "meta", "mps", "xla", "xpu", "hpu"),
    *("mkldnn", "vulkan", "lazy", "mtia", "privateuseone", "ipu", "fpga", "ort", "ve", "maia"),
    *(
        "opengl",
        "opencl",
        "ideep",
        "hip",
        "cpu:-1",
        "cuda:01",
        "cuda:\u0663",
        "CPU",
        "",
        "__class__",
    ),
)
_OTHERS = (
    *("int3", "float", "qint8", "quint8", "qint32", "quint4x2", "Tensor", "load", "uint1", "bits8"),
    *("torch.float32", "uint8 ", "__dict__"),
)


class Words:
    """Draws values for the fields of nodes.

    Args:
        rng: Where all choices come from.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def number(self) -> int:
        """A number, a small one more often than not."""
        rng = self._rng
        return rng.randrange(9) if rng.random() < 0.6 else rng.choice(NUMBERS)

    def numbers(self) -> list[Any]:
        """What may be taken for a shape or a stride."""
        rng = self._rng
        found: list[Any] = [self.number() for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4, 64, 65)))]
        if found and rng.random() < 0.1:
            found[rng.randrange(len(found))] = self.atom()
        return found

    def atom(self) -> Any:
        """A value without members."""
        rng = self._rng
        match rng.randrange(13):
            case 0:
                return None
            case 1:
                return rng.random() < 0.5
            case 2 | 3:
                return self.number()
            case 4:
                return rng.choice(
                    (0.0, -0.0, 1.0, 0.5, -1.0, 1e308, 5e-324, np.inf, -np.inf, np.nan)
                )
            case 5:
                return rng.choice(NAMES)
            case 6:
                return rng.choice((*DTYPES, *_OTHERS, *ARRAYS, *ELEMENTS))
            case 7:
                return rng.choice(DEVICES)
            case 8:
                return rng.choice(LAYOUTS)
            case 9:
                return rng.randbytes(rng.randrange(6))
            case 10:
                return rng.choice((2j, np.float32(1), np.int64(3), np.bool_(1), range(3)))
            case 11:
                return rng.choice((np.zeros(2), np.array("a"), torch.ones(2), torch.tensor(1)))
            case _:
                return self.numbers()

    def tensor(self, entry: Any, dtype: Any = None) -> TensorNode:
        """A node for an entry."""
        rng = self._rng
        return TensorNode(
            entry=entry,
            dtype=dtype or rng.choice(DTYPES),
            device="cpu" if rng.random() < 0.8 else rng.choice(DEVICES),
            requires_grad=rng.random() < 0.2,
            parameter=rng.random() < 0.2,
        )

    def sparse(self, nodes: list[Any], values: Any) -> SparseNode:
        """A sparse node of other ones."""
        rng = self._rng
        return SparseNode(
            layout=rng.choice(LAYOUTS),
            shape=self.numbers() if rng.random() < 0.4 else [rng.randrange(1, 5) for _ in range(2)],
            indices=nodes,
            values=values,
            coalesced=rng.random() < 0.3,
            requires_grad=rng.random() < 0.2,
        )

    def quantized(self, elements: Any, scale: Any, zero: Any) -> QuantizedNode:
        """A quantized node of other ones, or with numbers in their place."""
        rng = self._rng
        per_channel = rng.random() < 0.5
        return QuantizedNode(
            dtype=rng.choice(("qint8", "quint8", "qint32", "qint8", "quint4x2")),
            elements=elements,
            scale=scale if per_channel else rng.choice((0.5, 1.0, 0.0, -1.0, np.nan, 5e-324, 1)),
            zero_point=zero if per_channel else self.number(),
            axis=rng.choice((0, 0, 1, -1, 2, self.number())) if per_channel else None,
            floating=rng.random() < 0.3,
        )

    def wrapped(self, value: Any) -> Any:
        """A value inside of another one, which may be no place for it."""
        rng = self._rng
        match rng.randrange(15):
            case 0:
                return [value]
            case 1:
                return {"a": value}
            case 2:
                return (value, 1)
            case 3:
                return OrderedDict(a=value)
            case 4:
                return deque([value], rng.choice((None, 1, 3)))
            case 5:
                return defaultdict(rng.choice((list, int, dict, None)), {"a": value})
            case 6:
                return slice(value, None, rng.choice((value, 1)))
            case 7:
                return CounterNode(counts=rng.choice(({"a": value}, value)))
            case 8:
                return StateDictNode(items=OrderedDict(a=value), metadata=OrderedDict())
            case 9:
                return StateDictNode(items=OrderedDict(), metadata=value)
            case 10:
                return self.sparse([value], value)
            case 11:
                return self.quantized(value, value, value)
            case 12:
                kinds: tuple[Any, ...] = (SizeNode, DtypeNode, DeviceNode)
                kind = rng.choice(kinds)
                return kind(**dict.fromkeys(kind.__slots__, value))
            case 13:
                return ArrayNode(entry=value, dtype=rng.choice(tuple(ARRAYS)))
            case _:
                return [value, value]
