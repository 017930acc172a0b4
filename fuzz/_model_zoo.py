# SPDX-License-Identifier: Apache-2.0
"""States as training has them, small, one of each kind: first cases for model files."""

import argparse
import datetime as dt
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from decimal import Decimal
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from sealpoint_models import Inert
from sealpoint_models.scan import contiguous_stride
from sealpoint_models.scan._safetensors import ARRAYS, CARRIERS

__all__ = ["states"]


def _filled(dtype: str, *shape: int) -> Any:
    """A tensor of any type, with bytes that are no special numbers."""
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.ones(shape, dtype=torch.bool)
    size = torch.empty(0, dtype=kind).element_size() * int(np.prod(shape))
    raw = (torch.arange(size, dtype=torch.int64) % 60).to(torch.uint8)
    return torch.empty(0, dtype=kind).set_(
        raw.untyped_storage(), 0, shape, contiguous_stride(shape)
    )


def _dense() -> Iterator[Any]:
    for dtype in CARRIERS:
        yield {"t": _filled(dtype, 2, 3), "scalar": _filled(dtype), "none": _filled(dtype, 0, 2)}
    base = torch.arange(24.0)
    yield {"a": base.view(4, 6), "b": base.view(4, 6).t(), "c": base[3:9], "d": base}
    yield {"alone": torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1)}
    yield {"a": base[1:5], "b": base[3:8], "far": base[20:]}
    yield {"cl": torch.ones(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)}
    yield [torch.ones(1).expand(5), torch.ones(3, 1).expand(3, 4)]
    yield [base[::2], torch.arange(12).view(3, 4)[:, 1]]
    shared = torch.zeros(4, dtype=torch.int32)
    yield {
        "x": shared,
        "y": shared,
        "bytes": shared.view(torch.uint8),
        "f": shared.view(torch.float32),
    }
    yield {
        "z": torch.ones(3, dtype=torch.complex64),
        "conj": torch.ones(2, dtype=torch.complex128).conj(),
    }
    yield torch.tensor(float("nan"))


def _coo(indices: Any, values: Any, *shape: int) -> Any:
    whole = torch.tensor(indices, dtype=torch.int64)
    return torch.sparse_coo_tensor(whole, torch.tensor(values), shape)


def _sparse_and_quantized() -> Iterator[Any]:
    coo = _coo([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], 2, 3)
    yield {"coo": coo, "coalesced": coo.coalesce()}
    yield _coo([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], 3, 2)
    dense = torch.tensor([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 4.0, 0.0]])
    yield {"csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc()}
    yield {"bsr": dense.to_sparse_bsr((2, 2)), "bsc": dense.to_sparse_bsc((1, 2))}
    yield _coo([[], []], [], 2, 2)
    numbers = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for dtype in (torch.qint8, torch.quint8, torch.qint32):
        yield {"q": torch.quantize_per_tensor(numbers, 0.5, 1, dtype)}
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
    yield [torch.quantize_per_channel(numbers, scales, zeros, 1, torch.qint8)]
    yield [torch.quantize_per_channel(numbers, scales, scales, 0, torch.quint8)]


def _training() -> Iterator[Any]:
    """What networks, optimizers and schedulers give; importing torch's own takes seconds."""
    torch.manual_seed(1)
    one, two = torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)
    model = torch.nn.Sequential(OrderedDict(one=one, norm=two)).state_dict()
    moments = {"step": torch.tensor(1.0), "exp_avg": torch.ones(3, 2), "exp_avg_sq": torch.ones(3)}
    group = {"lr": 0.1, "betas": (0.9, 0.999), "foreach": None, "amsgrad": False, "params": [0, 1]}
    yield model
    yield {
        "model": model,
        "optimizer": {"state": {0: moments, 1: {}}, "param_groups": [group]},
        "scheduler": {"milestones": Counter([2, 4]), "last_epoch": 1, "_last_lr": [0.1]},
        "epoch": 3,
    }
    yield {
        "python": random.Random(1).getstate()[1][:9],
        "torch": torch.arange(16, dtype=torch.uint8),
    }
    yield [
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
    ]
    yield {"grad": torch.ones(2, requires_grad=True)}


def _other() -> Iterator[Any]:
    yield {}
    yield None
    yield [1, -1, 2.5, "text", b"bytes", None, True, (1, 2), {3}, frozenset({4}), 1 << 70, 2j]
    yield {"size": torch.Size([2, 3]), "dtype": torch.float16, "device": torch.device("cuda:1")}
    yield {"counter": Counter("aab"), "deque": deque([torch.ones(1)], 3), "slice": slice(1, 2)}
    filled: defaultdict[str, Any] = defaultdict(list)
    filled["a"] = [torch.zeros(1)]
    yield {"filled": filled, "ordered": OrderedDict(b=(torch.ones(1), 2), a=1)}
    yield {(1, "a"): torch.ones(1), 2: torch.ones(1), None: 3, "weights/a": torch.ones(1)}
    yield {dtype: np.zeros((2, 2), dtype) for dtype in ARRAYS}
    yield [
        np.arange(6).reshape(2, 3).T,
        np.zeros((0, 3)),
        np.array(1.5),
        np.float32(2),
        np.array(["a"]),
    ]
    yield [Decimal("1.5"), dt.date(2026, 1, 2), PurePosixPath("a/b"), range(3), float("inf")]
    yield [argparse.Namespace(lr=0.1, steps=torch.ones(1)), SimpleNamespace(name="run")]
    yield {
        "named": Inert("torch.optim.sgd.SGD"),
        "called": Inert("a.b", made="call", arguments=(1, torch.ones(1)), keywords={"c": 2}),
        "made": Inert("a.C", made="object", state={"x": [1]}, items=[2], pairs=[("k", 3)]),
    }
    nested: Any = torch.ones(1)
    for _ in range(20):
        nested = [nested]
    yield nested


def states() -> Iterator[Any]:
    """All of them, the same in every run."""
    yield from _dense()
    yield from _sparse_and_quantized()
    yield from _training()
    yield from _other()
