# SPDX-License-Identifier: Apache-2.0
"""Files of programs that call `torch.save`, numpy, pickle and joblib themselves."""

import argparse
import collections
import copy
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import io
import pathlib
import pickle
import random
import types
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import joblib  # type: ignore[import-untyped]
import numpy as np
import torch
import torch.distributed.checkpoint as dcp
from omegaconf import OmegaConf
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

# Much of torch has no types.
_SCHEDULERS: Any = torch.optim.lr_scheduler
_AVERAGES: Any = torch.optim.swa_utils
_CHECKPOINTS: Any = dcp
_QUANTIZATION: Any = torch.ao.quantization


class Mode(enum.Enum):
    """How an image is resized."""

    BILINEAR = "bilinear"


class Level(enum.IntEnum):
    """How much is printed."""

    LOUD = 2


@dataclasses.dataclass
class Config:
    """A configuration."""

    width: int = 8
    mode: Mode = Mode.BILINEAR
    root: Path = Path("data")
    begun: dt.datetime = dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC)


class Point(NamedTuple):
    """A named tuple."""

    x: float
    y: Any


class Net(nn.Module):
    """A small network of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, images: Any) -> Any:
        """Classify."""
        return self.head(self.norm(self.conv(images)).mean((2, 3)))


def _trained(kind: Any = torch.optim.SGD, **options: Any) -> tuple[Net, Any]:
    torch.manual_seed(0)
    net = Net()
    optimizer = kind(net.parameters(), **options)

    def loss() -> Any:
        optimizer.zero_grad()
        found = net(torch.ones(2, 3, 5, 5)).square().mean()
        found.backward()
        return found

    optimizer.step(loss)
    return net, optimizer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-path", default="/datasets/imagenet", type=str)
    parser.add_argument("--lr", default=0.5, type=float)
    parser.add_argument("--output-dir", default=Path("out"), type=Path)
    parser.add_argument("--opt-betas", default=None, type=float, nargs="+")
    parser.add_argument("--decay-epochs", default=[90, 180], type=int, nargs="+")
    parser.add_argument("--amp", action="store_true")
    return parser.parse_args([])


def torchvision_style(folder: Path) -> None:
    """As its reference scripts: model, optimizer, lr_scheduler, epoch, args, scaler, model_ema."""
    net, optimizer = _trained(torch.optim.SGD, lr=0.5, momentum=0.9, weight_decay=1e-4)
    warm = _SCHEDULERS.LinearLR(optimizer, 0.01, total_iters=5)
    main = _SCHEDULERS.CosineAnnealingLR(optimizer, T_max=10)
    schedule = _SCHEDULERS.SequentialLR(optimizer, [warm, main], milestones=[5])
    average = _AVERAGES.AveragedModel(net, multi_avg_fn=_AVERAGES.get_ema_multi_avg_fn(0.9))
    average.update_parameters(net)
    scaler = torch.amp.GradScaler("cpu")
    checkpoint = {
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": schedule.state_dict(),
        "epoch": 3,
        "args": _arguments(),
    }
    torch.save(checkpoint, folder / "model_3.pth")
    torch.save({**checkpoint, "scaler": scaler.state_dict()}, folder / "amp.pth")
    torch.save({**checkpoint, "model_ema": average.state_dict()}, folder / "ema.pth")
    steps = _SCHEDULERS.MultiStepLR(optimizer, milestones=[16, 22], gamma=0.1)
    seen = {"lr_scheduler": steps.state_dict(), "epoch": np.int64(4)}
    torch.save({**checkpoint, **seen}, folder / "detection.pth")
    device = {**vars(_arguments()), "device": torch.device("cpu"), "dtype": torch.bfloat16}
    torch.save({**checkpoint, "args": argparse.Namespace(**device)}, folder / "device.pth")


def timm_style(folder: Path) -> None:
    """As the CheckpointSaver of timm: version 2, arch, args, EMA, amp_scaler and metric."""
    net, optimizer = _trained(torch.optim.AdamW, lr=0.01)
    state = {
        "epoch": 7,
        "arch": "resnet18",
        "state_dict": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "version": 2,
        "args": _arguments(),
        "amp_scaler": torch.amp.GradScaler("cpu").state_dict(),
        "state_dict_ema": copy.deepcopy(net).state_dict(),
        "metric": 71.25,
    }
    torch.save(state, folder / "last.pth.tar")
    torch.save({**state, "metric": np.float64(71.5)}, folder / "model_best.pth.tar")
    torch.save(
        {**state, "metric": collections.OrderedDict(top1=np.float32(71.5), loss=torch.tensor(0.5))},
        folder / "checkpoint-7.pth.tar",
        _use_new_zipfile_serialization=False,
    )
    torch.save(
        {"state_dict": {f"module.{k}": v for k, v in net.state_dict().items()}},
        folder / "parallel.pth.tar",
    )


def state_dicts(folder: Path) -> None:
    """`torch.save(model.state_dict())` in all forms."""
    net = Net()
    for protocol in (2, 3, 4, 5):
        torch.save(net.state_dict(), folder / f"protocol-{protocol}.pt", pickle_protocol=protocol)
        torch.save(
            net.state_dict(),
            folder / f"stream-{protocol}.pt",
            pickle_protocol=protocol,
            _use_new_zipfile_serialization=False,
        )
    torch.save(dict(net.named_parameters()), folder / "parameters.pt")
    torch.save([net.head.weight, net.head.weight.data], folder / "tied.pt")
    torch.save(net.half().state_dict(), folder / "half.pt")
    lstm = nn.LSTM(3, 4, 2, bidirectional=True)
    torch.save(lstm.state_dict(), folder / "lstm.pt")
    buffer = io.BytesIO()
    torch.save(net.state_dict(), buffer)
    (folder / "buffer.bin").write_bytes(buffer.getvalue())
    torch.save(
        torch.nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)).state_dict(),
        folder / "norm.pt",
    )


def modules(folder: Path) -> None:
    """Whole modules."""
    net, optimizer = _trained(lr=0.1)
    torch.save(net, folder / "module.pt")
    torch.save(net, folder / "module-stream.pt", _use_new_zipfile_serialization=False)
    torch.save(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Dropout()), folder / "sequential.pt")
    torch.save({"model": net, "optimizer": optimizer}, folder / "objects.pt")
    torch.save(nn.DataParallel(net), folder / "parallel.pt")
    torch.save(
        {"ema": copy.deepcopy(net).half(), "updates": 3, "train_args": vars(_arguments())},
        folder / "yolo-style.pt",
    )
    torch.save(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        folder / "transformer.pt",
    )


def optimizers(folder: Path) -> None:
    """The states of optimizers of all kinds."""
    for kind, options in (
        *((torch.optim.Adam, {"amsgrad": True}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9})),
        *((torch.optim.LBFGS, {"history_size": 3}), (torch.optim.Adagrad, {})),
        *((torch.optim.RMSprop, {"centered": True}), (torch.optim.Adadelta, {})),
        *((torch.optim.NAdam, {}), (torch.optim.RAdam, {}), (torch.optim.ASGD, {})),
        *((torch.optim.Rprop, {}), (torch.optim.Adamax, {}), (torch.optim.Adafactor, {})),
    ):
        _, optimizer = _trained(kind, **options)
        torch.save(optimizer.state_dict(), folder / f"{kind.__name__.lower()}.pt")
    table = nn.Embedding(5, 2, sparse=True)
    sparse: Any = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1])).sum().backward()
    sparse.step()
    torch.save(
        {"optimizer": sparse.state_dict(), "gradient": table.weight.grad},
        folder / "sparseadam.pt",
    )


class Warmup:
    """A schedule as an object, as LambdaLR takes them."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __call__(self, step: int) -> float:
        """The factor."""
        return min(1.0, step / self.steps)


def _linear(step: int, steps: int) -> float:
    return step / steps


def schedulers(folder: Path) -> None:
    """The states of schedules, and schedules as they are."""
    _, optimizer = _trained(lr=0.1)
    made = {
        "lambda": _SCHEDULERS.LambdaLR(optimizer, lambda epoch: 0.9**epoch),
        "object": _SCHEDULERS.LambdaLR(optimizer, Warmup(3)),
        "partial": _SCHEDULERS.LambdaLR(optimizer, functools.partial(_linear, steps=3)),
        "multistep": _SCHEDULERS.MultiStepLR(optimizer, [2, 4, 4]),
        "cyclic": _SCHEDULERS.CyclicLR(optimizer, 0.1, 0.2),
        "restarts": _SCHEDULERS.CosineAnnealingWarmRestarts(optimizer, 3),
        "chained": _SCHEDULERS.ChainedScheduler([_SCHEDULERS.ConstantLR(optimizer)]),
        "polynomial": _SCHEDULERS.PolynomialLR(optimizer),
    }
    for name, schedule in made.items():
        torch.save(schedule.state_dict(), folder / f"{name}.pt")
    torch.save(
        {"scheduler": made["multistep"], "partial": functools.partial(_linear, steps=3)},
        folder / "objects.pt",
    )


def random_states(folder: Path) -> None:
    """The states of generators, and generators."""
    states = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002 (what trainers save)
        "torch": torch.get_rng_state(),
        "cuda": [],
    }
    torch.save(states, folder / "rng.pth")
    _pickled(states, folder / "rng.pkl")
    torch.save(
        {
            k: np.random.Generator(b(7)).bit_generator.state
            for k, b in (
                ("pcg", np.random.PCG64),
                ("mt", np.random.MT19937),
                ("philox", np.random.Philox),
                ("sfc", np.random.SFC64),
                ("dxsm", np.random.PCG64DXSM),
            )
        },
        folder / "bit-states.pth",
    )
    _pickled(np.random.default_rng(3), folder / "generator.pkl")
    _pickled(np.random.RandomState(3), folder / "randomstate.pkl")
    _pickled(
        {
            k.__name__: k(5)
            for k in (
                np.random.PCG64,
                np.random.MT19937,
                np.random.Philox,
                np.random.SFC64,
                np.random.PCG64DXSM,
            )
        },
        folder / "bitgenerators.pkl",
    )
    torch.save(
        {"rng": np.random.default_rng(3), "model": Net().state_dict()}, folder / "generator.pt"
    )
    _pickled(random.Random(3), folder / "random.pkl")  # noqa: S311 (an object to save)
    torch.save(
        {
            "sampler": torch.Generator().manual_seed(3).get_state(),
            "legacy": np.random.RandomState(1),
        },
        folder / "randomstate.pt",
    )


def tensors(folder: Path) -> None:
    """Tensors of all kinds."""
    eye = torch.eye(4)
    torch.save(
        {"coo": eye.to_sparse(), "csr": eye.to_sparse_csr(), "bsr": eye.to_sparse_bsr((2, 2))},
        folder / "sparse.pt",
    )
    torch.save(
        {
            "tensor": torch.quantize_per_tensor(eye, 0.1, 3, torch.quint8),
            "channel": torch.quantize_per_channel(
                eye, torch.full((4,), 0.1), torch.zeros(4, dtype=torch.long), 0, torch.qint8
            ),
        },
        folder / "quantized.pt",
    )
    torch.save(
        {"size": eye.size(), "dtype": eye.dtype, "device": eye.device, "layout": eye.layout},
        folder / "descriptions.pt",
    )
    torch.save(
        {
            str(d): torch.ones(3).to(d)
            for d in (
                torch.float8_e4m3fn,
                torch.float8_e5m2,
                torch.bfloat16,
                torch.complex64,
                torch.uint16,
            )
        },
        folder / "types.pt",
    )
    torch.save({"meta": torch.empty(2, device="meta")}, folder / "meta.pt")
    tagged: Any = nn.Parameter(torch.ones(2))
    tagged.tensor_model_parallel = True  # as Megatron does
    tagged.partition_dim = 0
    torch.save({"w": tagged}, folder / "tagged.pt")
    torch.save(
        {"nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])}, folder / "nested.pt"
    )
    packed = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    torch.save({"packed": packed}, folder / "packed.pt")
    torch.save(eye.untyped_storage(), folder / "storage.pt")
    torch.backends.quantized.engine = "qnnpack"  # the one that every processor has
    quantized = _QUANTIZATION.quantize_dynamic(nn.Sequential(nn.Linear(4, 2)), {nn.Linear})
    torch.save(quantized.state_dict(), folder / "quantized-state.pt")
    torch.save(torch.save.__module__, folder / "text.pt")
    torch.save(torch.distributions.Normal(0.0, torch.ones(2)), folder / "distribution.pt")


def _pickled(value: object, path: Path, protocol: int | None = None) -> None:
    path.write_bytes(pickle.dumps(value, protocol))


def plain(folder: Path) -> None:
    """Results and configurations, pickled."""
    values: dict[str, object] = {
        "results": {
            "accuracy": [0.5, 0.75],
            "confusion": np.eye(3, dtype=int),
            "best": np.float32(0.75),
        },
        "times": {
            "begun": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
            "took": dt.timedelta(hours=1),
            "day": dt.date(2026, 1, 2),
        },
        "containers": {
            "counts": collections.Counter("aab"),
            "groups": collections.defaultdict(list, a=[1]),
            "recent": collections.deque([0.5], 100),
            "labels": frozenset({"a"}),
            "all": {1, 2},
        },
        "paths": {
            "root": Path("data/train"),
            "pure": pathlib.PurePosixPath("a/b"),
            "windows": pathlib.PureWindowsPath("a"),
        },
        "numbers": {
            "price": decimal.Decimal("1.50"),
            "part": fractions.Fraction(1, 3),
            "id": uuid.UUID(int=7),
            "z": 1j,
        },
        "dataclass": Config(),
        "enums": [Mode.BILINEAR, Level.LOUD],
        "named-tuple": Point(1.0, np.ones(2)),
        "omegaconf": OmegaConf.create(
            {"model": {"width": 8, "layers": [1, 2]}, "lr": "${model.width}"}
        ),
        "namespaces": types.SimpleNamespace(a=1, inner=argparse.Namespace(b=[1.0])),
        "nested-default": collections.defaultdict(
            functools.partial(collections.defaultdict, int),
            {"a": collections.defaultdict(int, b=1)},
        ),
        "history": [types.MappingProxyType],
        "slices": {"train": slice(0, 10), "range": range(3)},
        "masked": np.ma.masked_array([1.0, 2.0], mask=[True, False], fill_value=-1.0),
        "matrix": np.asmatrix(np.eye(2)),
        "records": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        "recarray": np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        "strings": np.array(["a", "bc"]),
        "object-array": np.array([{"a": np.ones(2)}, None], dtype=object),
    }
    for name, value in values.items():
        if name != "history":
            _pickled(value, folder / f"{name}.pkl")
    for protocol in range(6):
        _pickled(
            {"weights": np.arange(6.0), "epoch": 3, "args": _arguments()},
            folder / f"protocol-{protocol}.pkl",
            protocol,
        )
    torch.save({"config": Config(), "state_dict": Net().state_dict()}, folder / "config.pt")
    torch.save(
        {
            "cfg": OmegaConf.create({"a": {"b": 1}}),
            "model": Net().state_dict(),
            "cb": collections.defaultdict(dict),
        },
        folder / "fairseq-style.pt",
    )


def arrays(folder: Path) -> None:
    """Files of numpy and joblib."""
    held = {
        "weights": np.arange(12.0).reshape(3, 4),
        "labels": np.array(["a", "b"]),
        "steps": np.array(3),
    }
    np.save(folder / "weights.npy", held["weights"])
    np.save(folder / "fortran.npy", np.asfortranarray(held["weights"]))
    np.save(folder / "objects.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    np.save(folder / "records.npy", np.zeros(2, [("x", "f4"), ("y", "i2", (2,))]))
    np.savez(folder / "weights.npz", **held)  # type: ignore[arg-type]
    np.savez_compressed(folder / "packed.npz", **held)  # type: ignore[arg-type]
    state = {
        **held,
        "model": {"coefficients": [np.ones(3), np.zeros((2, 2), order="F")]},
        "name": "ridge",
    }
    for compress in (0, 3, ("gzip", 3), ("bz2", 3), ("xz", 3), ("lzma", 3)):
        name = compress if isinstance(compress, int) else compress[0]
        joblib.dump(state, folder / f"{name}.joblib", compress=compress)
    joblib.dump(
        {"o": np.array([1, "a", None], dtype=object), "n": np.arange(3)}, folder / "objects.joblib"
    )


def distributed(folder: Path) -> None:
    """A distributed checkpoint, and what torch makes of it."""
    net, optimizer = _trained(torch.optim.Adam, lr=0.1)
    state = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    _CHECKPOINTS.save(state, checkpoint_id=folder / "sharded", no_dist=True)
    dcp_to_torch_save(folder / "sharded", folder / "consolidated.pt")


_PROGRAMS = (
    *(torchvision_style, timm_style, state_dicts, modules, optimizers, schedulers, random_states),
    *(tensors, plain, arrays, distributed),
)


def write(folder: Path) -> None:
    """Write all of them."""
    for program in _PROGRAMS:
        place = folder / program.__name__
        place.mkdir(parents=True)
        program(place)
