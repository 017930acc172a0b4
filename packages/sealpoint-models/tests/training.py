# SPDX-License-Identifier: Apache-2.0
"""States that training leaves behind, of every kind, and when two of them are the same."""

import random
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sealpoint_models import save_checkpoint
from tests.sameness import same

__all__ = ["STATES", "same_state", "save_states"]


def save_states(folder: Path) -> None:
    """Save each state that is the same whenever it is made."""
    for kind, make in STATES.items():
        if kind not in ("sgd", "adamw", "adagrad"):
            save_checkpoint(make(), folder / f"{kind}.safetensors")


def same_state(a: Any, b: Any) -> bool:
    """Tell whether two states are the same, in types, elements, layouts and flags."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return _same_tensor(a, b)
    if isinstance(a, dict):
        good = same(list(a), list(b)) and all(map(same_state, a.values(), b.values()))
        return good and same_state(getattr(a, "_metadata", None), getattr(b, "_metadata", None))
    if isinstance(a, list | tuple | deque):
        return len(a) == len(b) and all(map(same_state, a, b))
    return same(a, b)


def _same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    described = [
        (one.dtype, one.shape, one.layout, one.device, one.requires_grad, one.is_quantized)
        for one in (a, b)
    ]
    if described[0] != described[1]:
        return False
    if a.is_quantized:
        return a.qscheme() == b.qscheme() and torch.equal(a, b)
    if a.layout is torch.sparse_coo:
        pairs = [(a._indices(), b._indices()), (a._values(), b._values())]
        return a.is_coalesced() == b.is_coalesced() and all(_same_bytes(*pair) for pair in pairs)
    if a.layout is not torch.strided:
        return _same_bytes(a.to_dense(), b.to_dense())
    return _same_bytes(a, b)


def _same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    left, right = (
        one.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        for one in (a, b)
    )
    return torch.equal(left, right)


def _random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def _network() -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return torch.nn.Sequential(
            torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Embedding(3, 4)
        )


def _trained(make: Callable[..., torch.optim.Optimizer]) -> Any:
    network = torch.nn.Linear(3, 2)
    optimizer = make(network.parameters(), lr=0.1)
    network(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return {"network": network.state_dict(), "optimizer": optimizer.state_dict()}


def _schedulers() -> Any:
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)
    kinds = torch.optim.lr_scheduler
    return [
        kinds.CosineAnnealingLR(optimizer, 10).state_dict(),
        kinds.MultiStepLR(optimizer, [2, 4]).state_dict(),
        kinds.ReduceLROnPlateau(optimizer).state_dict(),
        kinds.StepLR(optimizer, 3).state_dict(),
    ]


def _quantized() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "tensor": torch.quantize_per_tensor(_random(4), 0.1, 3, torch.quint8),
            "wide": torch.quantize_per_tensor(_random(4), 0.5, -7, torch.qint32),
            "channel": torch.quantize_per_channel(
                _random(2, 4), torch.tensor([0.1, 0.2]), torch.tensor([1, 2]), 0, torch.qint8
            ),
        }


def _sparse() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eye = torch.eye(4)
        return {
            "coo": eye.to_sparse(),
            "uncoalesced": torch.sparse_coo_tensor(
                torch.tensor([[1, 1, 0]]),
                torch.tensor([1.0, 2.0, 3.0]),
                (3,),
                check_invariants=True,
            ),
            "csr": eye.to_sparse_csr(),
            "csc": eye.to_sparse_csc(),
            "bsr": eye.to_sparse_bsr((2, 2)),
            "bsc": eye.to_sparse_bsc((2, 2)),
            "empty": torch.zeros(2, 3).to_sparse(),
        }


def _views() -> Any:
    base, row = torch.arange(12.0).reshape(3, 4), torch.arange(20.0)
    return {
        "tied": [base, base],
        "part": [base[1:], base[:, 1]],
        "other type": base.view(torch.int32)[:1],
        "transposed": base.t(),
        "overlapping": [row[:12], row[8:]],
        "apart": [row[:3], row[4:6]],
    }


def _generators() -> Any:
    return {
        "python": random.Random(3).getstate(),  # noqa: S311 (a state to save)
        "numpy": np.random.RandomState(4).get_state(),
        "modern": np.random.default_rng(5).bit_generator.state,
        "philox": np.random.Generator(np.random.Philox(6)).bit_generator.state,
        "torch": torch.Generator().manual_seed(7).get_state(),
    }


STATES: dict[str, Callable[[], Any]] = {
    "state dict": lambda: _network().state_dict(),
    "sgd": lambda: _trained(partial(torch.optim.SGD, momentum=0.9)),
    "adamw": lambda: _trained(torch.optim.AdamW),
    "adagrad": lambda: _trained(torch.optim.Adagrad),
    "schedulers": _schedulers,
    "generators": _generators,
    "views": _views,
    "quantized": _quantized,
    "sparse": _sparse,
    "orders": lambda: {
        "transposed": _random(3, 5).t(),
        "channels last": _random(2, 3, 4, 4).to(memory_format=torch.channels_last),
        "gaps": torch.arange(10.0)[::2],
        "expanded": torch.ones(1).expand(10, 10),
        "conjugated": _random(3).to(torch.complex64).conj(),
        "negated": torch.complex(_random(3), torch.arange(3.0)).conj().imag,
    },
    "types": lambda: {
        str(dtype): torch.arange(6).reshape(2, 3).to(dtype)
        for dtype in (
            *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32),
            *(torch.uint32, torch.int64, torch.uint64, torch.float16, torch.bfloat16),
            *(torch.float32, torch.float64, torch.complex64, torch.complex128),
            *(torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e8m0fnu),
        )
    },
    "flags": lambda: [
        torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        torch.ones(2, requires_grad=True),
    ],
    "shapes": lambda: [torch.tensor(3), torch.empty(0, 3), torch.ones(1, 1, 1), torch.tensor([])],
    "arrays": lambda: {
        "numbers": np.arange(6, dtype="<i4").reshape(2, 3),
        "big endian": np.arange(6, dtype=">f8"),
        "texts": np.array(["a", "bc"]),
        "times": np.array(["2026-11-15"], dtype="M8[s]"),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "empty": np.zeros((0, 2), dtype=np.float32),
        "scalar": np.float64(2.5),
        "booleans": np.array([True, False]),
    },
    "plain": lambda: {
        "none": None,
        "epoch": 3,
        "loss": 0.25,
        "big": 1 << 200,
        "text": "käse\x00",
        "bytes": b"\x00\xff",
        7: {(1, 2): torch.ones(1)},
        "set": {1, 2, 3},
        "counter": Counter("aab"),
        "deque": deque([torch.ones(2)], 5),
        "default": defaultdict(list, a=[torch.zeros(1)]),
        "ordered": OrderedDict(b=1, a=2),
        "size": torch.Size([1, 2]),
        "dtype": torch.float16,
        "device": torch.device("cpu"),
    },
    "names": lambda: {
        "a.b": torch.ones(1),
        "a": {"b": torch.zeros(1)},
        "": torch.ones(2),
        "../../x": torch.ones(3),
        "/top": torch.ones(3),
        "line\nbreak": torch.ones(4),
        "__metadata__": torch.ones(5),
        "x" * 5000: torch.ones(6),
        "\ud800": torch.ones(7),
        None: torch.ones(8),
    },
    "a tensor": lambda: torch.arange(3),
    "nothing": dict,
}
