# SPDX-License-Identifier: Apache-2.0
"""Files that people have: what torch, numpy, joblib and trainers write, made with those tools.

Only what the tools at hand can write is here; a tool that is not installed adds no file.
"""

import argparse
import bz2
import collections
import datetime as dt
import decimal
import fractions
import gzip
import io
import json
import lzma
import pathlib
import pickle
import random
import struct
import types
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.scan.assembler import tarred, zipped
from tests.scan.malicious import Sample

_PROTOCOLS = range(6)
_DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
    *("bool", "complex64"),
)


def _torch_bytes(torch: Any, value: object, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def _states(torch: Any) -> Iterator[tuple[str, object]]:
    """What people give to `torch.save`."""
    torch.manual_seed(1)
    for dtype in _DTYPES:
        yield f"a tensor of {dtype}", {"w": torch.ones(3, 4).to(getattr(torch, dtype))}
    for shape in ((), (0,), (1,), (7,), (2, 3), (2, 3, 4), (1, 2, 3, 4)):
        yield f"a tensor of shape {shape}", torch.ones(shape)
    modules = {
        "linear": torch.nn.Linear(4, 3),
        "convolution": torch.nn.Conv2d(3, 8, 3),
        "lstm": torch.nn.LSTM(4, 8, 2),
        "normalization": torch.nn.BatchNorm2d(4),
        "attention": torch.nn.MultiheadAttention(8, 2),
        "embedding": torch.nn.Embedding(10, 4),
        "transformer": torch.nn.TransformerEncoderLayer(8, 2, 16),
    }
    for name, module in modules.items():
        yield f"the state of {name}", module.state_dict()
    model = modules["linear"]
    for optimizer in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam"):
        made = getattr(torch.optim, optimizer)(model.parameters(), lr=0.1)
        model(torch.ones(2, 4)).sum().backward()
        made.step()
        yield f"the state of {optimizer}", {"optimizer": made.state_dict(), "epoch": 3}
    adam = torch.optim.Adam(model.parameters())
    schedulers = {
        "StepLR": torch.optim.lr_scheduler.StepLR(adam, 1),
        "CosineAnnealingLR": torch.optim.lr_scheduler.CosineAnnealingLR(adam, 5),
        "OneCycleLR": torch.optim.lr_scheduler.OneCycleLR(adam, 0.1, 10),
        "ReduceLROnPlateau": torch.optim.lr_scheduler.ReduceLROnPlateau(adam),
    }
    for name, scheduler in schedulers.items():
        yield f"the state of {name}", scheduler.state_dict()
    base = torch.arange(12.0)
    yield "tensors that share memory", {"a": base, "b": base[2:6], "c": base.view(3, 4).t()}
    yield "parameters", {"p": torch.nn.Parameter(torch.ones(2)), "tied": [model.weight] * 2}
    yield "a sparse tensor", torch.eye(3).to_sparse()
    yield "sizes and types", {"s": torch.Size([1, 2]), "d": torch.float16, "v": torch.device("cpu")}
    yield "counters", {"c": collections.Counter("abc"), "o": collections.OrderedDict(a=1)}
    yield "random states", {"torch": torch.get_rng_state(), "python": random.getstate()}
    yield "numbers and texts", {"loss": 0.5, "steps": 10**20, "name": "é", "flag": None, "l": [1]}
    yield "numpy in a checkpoint", {"best": np.float64(0.5), "history": np.arange(4)}
    yield "all random states", _random_states(torch)
    yield "arguments", {"args": argparse.Namespace(lr=0.1, layers=[1, 2]), "model": {}}
    yield (
        "a trainer's file",
        {
            "epoch": 3,
            "global_step": 100,
            "state_dict": model.state_dict(),
            "optimizer_states": [adam.state_dict()],
            "lr_schedulers": [schedulers["StepLR"].state_dict()],
            "hyper_parameters": {"lr": 0.1, "hidden": [8, 8]},
            "loops": {"fit_loop": {"state_dict": {}}},
            "pytorch-lightning_version": "2.6.0",
        },
    )


def _random_states(torch: Any) -> dict[str, object]:
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002 - what trainers save
        "cpu": torch.random.get_rng_state(),
        "cuda": [],
    }


def torch_files() -> Iterator[Sample]:
    """What torch writes."""
    import torch  # noqa: PLC0415

    for label, value in _states(torch):
        yield Sample("torch", label, "m.pt", _torch_bytes(torch, value))
        old = _torch_bytes(torch, value, _use_new_zipfile_serialization=False)
        yield Sample("torch", f"{label}, as before 1.6", "m.pth", old)
    for protocol in (3, 4, 5):
        data = _torch_bytes(torch, {"w": torch.ones(2)}, pickle_protocol=protocol)
        yield Sample("torch", f"protocol {protocol}", "m.bin", data)
        old = _torch_bytes(
            torch,
            {"w": torch.ones(2)},
            pickle_protocol=protocol,
            _use_new_zipfile_serialization=False,
        )
        yield Sample("torch", f"protocol {protocol}, as before 1.6", "m.pth", old)


_PLAIN: dict[str, object] = {
    "nothing": None,
    "numbers": [0, 1, -1, 255, 256, 65536, -(2**31), 2**63, 1.5, -0.0, True, False],
    "texts": ["", "a", "é", "日本", "a\nb", "it's", 'say "x"', "\\", "\x00"],
    "bytes": [b"", b"abc", bytes(range(256)), bytearray(b"xyz")],
    "containers": {"a": (1, 2), "b": [1, [2, [3]]], "c": {"d": {}}, "e": set(), "f": {1, 2}},
    "a frozen set": frozenset([1, 2]),
    "a long list": list(range(3000)),
    "a long dict": {f"key {number}": number for number in range(3000)},
    "a complex number": 1 + 2j,
    "an ordered dict": collections.OrderedDict([("b", 1), ("a", 2)]),
    "a counter": collections.Counter("hello"),
    "default dicts": [collections.defaultdict(kind, a=kind()) for kind in (list, int, float)],
    "a queue": collections.deque([1, 2], maxlen=4),
    "a namespace": argparse.Namespace(a=1, b="x"),
    "a simple namespace": types.SimpleNamespace(a=1),
    "a date": dt.date(2026, 1, 2),
    "a time": dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    "a duration": dt.timedelta(days=1, seconds=2),
    "a decimal": decimal.Decimal("1.50"),
    "a fraction": fractions.Fraction(1, 3),
    "an id": uuid.UUID(int=7),
    "a path": pathlib.PurePosixPath("a/b"),
    "a range and a slice": [range(3), slice(1, 2)],
    "an array": np.arange(6.0).reshape(2, 3),
    "an array by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "arrays of all kinds": [
        np.zeros(2, kind) for kind in ("?", "i1", "u2", "i8", "f2", "c8", "U3")
    ],
    "an array of objects": np.array([1, "a", None], dtype=object),
    "an array of records": np.zeros(2, [("a", "i4"), ("b", "f8", (2,))]),
    "a number of numpy": [np.float32(1.5), np.int64(3), np.bool_(1)],
    "a type of numpy": np.dtype("float32"),
    "the state of a generator": np.random.default_rng(1).bit_generator.state,
    "what looks like data frames": {
        "columns": ["a", "b"],
        "index": np.arange(3),
        "values": np.zeros((3, 2)),
        "dtypes": {"a": np.dtype("f8"), "b": np.dtype("i8")},
    },
    "shared values": [[1, 2]] * 3,
}


def pickles() -> Iterator[Sample]:
    """What Python's pickler writes, in every protocol."""
    for label, value in _PLAIN.items():
        for protocol in _PROTOCOLS:
            data = pickle.dumps(value, protocol)
            yield Sample("pickle", f"{label}, protocol {protocol}", "m.pkl", data)
    inside: list[object] = [1]
    inside.append(inside)
    yield Sample("pickle", "a list in itself", "m.pkl", pickle.dumps(inside))


def pickled_tensors() -> Iterator[Sample]:
    """What Python's pickler writes of tensors: each brings its storage in bytes of its own."""
    import torch  # noqa: PLC0415 - as above

    for number, (label, value) in enumerate(_states(torch)):
        for protocol in (number % 3, 3 + number % 3):
            data = pickle.dumps(value, protocol)
            yield Sample("pickle", f"{label}, pickled, protocol {protocol}", "m.pkl", data)


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".z": zlib.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
}


def containers() -> Iterator[Sample]:
    """Archives and compressed streams."""
    data = pickle.dumps({"a": np.arange(100), "b": "text"})
    for ending, pack in _PACKERS.items():
        yield Sample("container", f"packed, {ending}", f"m.pkl{ending}", pack(data))
    members = {"model/m.pkl": data, "model/README.md": b"# A model\n", "config.txt": b"a: 1\n"}
    for mode, ending in (("w", ".tar"), ("w:gz", ".tar.gz"), ("w:bz2", ".tar.bz2")):
        yield Sample("container", ending, f"m{ending}", tarred(members, mode))
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        packed = zipped(members, method=method)
        yield Sample("container", f"zip, method {method}", "m.zip", packed)
        inner = zipped({"inner.zip": packed}, method=method)
        yield Sample("container", f"zip in zip, method {method}", "m.zip", inner)


def numpy_files() -> Iterator[Sample]:
    """What numpy writes."""
    arrays = {
        "numbers": np.arange(12.0).reshape(3, 4),
        "by columns": np.asfortranarray(np.ones((2, 3))),
        "texts": np.array(["a", "bc"]),
        "bytes": np.array([b"a", b"bc"]),
        "dates": np.array(["2026-01-01"], dtype="M8[D]"),
        "records": np.zeros(3, [("x", "f4"), ("y", "i2", (2, 2))]),
        "empty": np.zeros((0, 3)),
        "scalar": np.array(1.5),
        "objects": np.array([{"a": 1}, [1, 2], None], dtype=object),
    }
    for label, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=True)
        yield Sample("numpy", f".npy of {label}", "m.npy", buffer.getvalue())
    for save in (np.savez, np.savez_compressed):
        buffer = io.BytesIO()
        save(buffer, **arrays)  # type: ignore[arg-type]
        yield Sample("numpy", save.__name__, "m.npz", buffer.getvalue())


def _gguf() -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    metadata = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    metadata += text("tokenizer.chat_template") + struct.pack("<I", 8) + text("{{ messages }}")
    metadata += text("tokenizer.tokens") + struct.pack("<2IQ", 9, 8, 2) + text("a") + text("b")
    metadata += text("sizes") + struct.pack("<2IQ2i", 9, 5, 2, 1, 2)
    tensor = text("w") + struct.pack("<IQIQ", 1, 8, 0, 0)
    head = b"GGUF" + struct.pack("<I2Q", 3, 1, 4) + metadata + tensor
    return head + bytes(-len(head) % 32) + bytes(32)


def _message(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2, len(data)]) + data


def _onnx(*, beside: bool = False) -> bytes:
    node = _message(1, b"x") + _message(2, b"y") + _message(4, b"Relu")
    tensor = b"\x08\x02\x10\x01" + _message(8, b"w")
    if beside:
        entry = _message(1, b"location") + _message(2, b"m.onnx.data")
        tensor += _message(13, entry) + b"\x70\x01"
    else:
        tensor += _message(9, bytes(8))
    graph = _message(1, node) + _message(2, b"g") + _message(5, tensor)
    return b"\x08\x0a" + _message(7, graph) + _message(8, b"\x0a\x00\x10\x11")


def _keras() -> bytes:
    dense = {
        "module": "keras.layers",
        "class_name": "Dense",
        "config": {
            "units": 3,
            "activation": "relu",
            "dtype": {
                "module": "keras",
                "class_name": "DTypePolicy",
                "config": {"name": "float32"},
                "registered_name": None,
            },
            "kernel_initializer": {
                "module": "keras.initializers",
                "class_name": "GlorotUniform",
                "config": {"seed": None},
                "registered_name": None,
            },
        },
        "registered_name": None,
    }
    config = {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "s", "layers": [dense]},
        "registered_name": None,
    }
    weights = b"\x89HDF\r\n\x1a\n" + bytes(64)
    return zipped(
        {
            "metadata.json": b'{"keras_version": "3.10.0"}',
            "config.json": json.dumps(config).encode(),
            "model.weights.h5": weights,
        }
    )


def other_formats() -> Iterator[Sample]:
    """Formats that hold no pickle."""
    from safetensors.numpy import save  # noqa: PLC0415

    arrays: dict[str, Any] = {"a": np.zeros((2, 3), np.float32), "b": np.arange(4)}
    for label, metadata in (("", None), (" with metadata", {"format": "pt", "note": "x"})):
        data = save(arrays, metadata)
        yield Sample("other", f"safetensors{label}", "m.safetensors", data)
        yield Sample("other", f"safetensors{label}, called .bin", "m.bin", data)
    for length in (0x5D, 0x2123, 0x5A4D, 0x8B1F):  # as LZMA, scripts, programs and gzip begin
        header = b"{}".ljust(length)
        data = struct.pack("<Q", length) + header
        yield Sample("other", f"safetensors, {length} bytes of header", "m.safetensors", data)
    yield Sample("other", "gguf", "m.gguf", _gguf())
    yield Sample("other", "onnx", "m.onnx", _onnx())
    yield Sample("other", "onnx with elements in the same folder", "m.onnx", _onnx(beside=True))
    yield Sample("other", "keras", "m.keras", _keras())
    yield Sample("other", "text", "README.md", b"# Title\n\n(c) somebody\n")
    words = b"cat\ndog\nRabbit\n(t\nbird\n"  # the first opcodes of a pickle are such words too
    yield Sample("other", "words", "vocab.txt", words)
    yield Sample("other", "a short image", "a.gif", b"GIF89a" + bytes(100))
    yield Sample("other", "json", "config.json", b'{"hidden_size": 8}\n')
    yield Sample("other", "an image", "a.png", b"\x89PNG\r\n\x1a\n" + bytes(100))


def joblib_files() -> Iterator[Sample]:
    """What joblib writes, with every compression."""
    try:
        import joblib  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return
    import torch  # noqa: PLC0415 - as above

    values: dict[str, object] = {
        "an array": np.arange(100.0),
        "arrays": {"a": np.arange(10), "b": [np.ones((2, 2)), np.zeros(0)], "c": "text"},
        "by columns": np.asfortranarray(np.ones((3, 4))),
        "objects": {"o": np.array([1, "a", None], dtype=object), "n": np.arange(3)},
        "plain": {"a": [1, 2], "b": (3,)},
        "texts": np.array(["a", "bc"]),
        "tensors": {"w": torch.ones(2, 3), "a": np.arange(3)},
    }
    for label, value in values.items():
        for kind in (0, 3, "gzip", "zlib", "bz2", "xz", "lzma"):
            buffer = io.BytesIO()
            joblib.dump(value, buffer, compress=kind if isinstance(kind, int) else (kind, 3))
            yield Sample("joblib", f"{label}, {kind}", "m.joblib", buffer.getvalue())


def objects() -> Iterator[Sample]:
    """Objects of libraries that people save: no plain data, but nothing in them acts."""
    import torch  # noqa: PLC0415 - as above
    from transformers import TrainingArguments  # noqa: PLC0415

    arguments = TrainingArguments("out", report_to=[])
    yield Sample("object", "arguments", "training_args.bin", _torch_bytes(torch, arguments))
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten())
    modules = {
        "layers": layers,
        "recurrent": torch.nn.LSTM(4, 8, 2),
        "normalization": torch.nn.BatchNorm2d(4),
        "an encoder": torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(8, 2, 16), 2, enable_nested_tensor=False
        ),
        "an encoder with gelu": torch.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"),
        "in a checkpoint": {"model": layers, "epoch": 3},
    }
    for label, module in modules.items():
        yield Sample("object", f"a module, {label}", "m.pt", _torch_bytes(torch, module))
        for protocol in _PROTOCOLS:
            data = pickle.dumps(module, protocol)
            yield Sample("object", f"a module, {label}, protocol {protocol}", "m.pkl", data)
    kinds = (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox)
    values: dict[str, object] = {
        "a masked array": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
        "a masked array of objects": np.ma.masked_array([1, "a"], dtype=object),
        "a random state": np.random.RandomState(1),
        "generators": [np.random.Generator(kind(1)) for kind in (*kinds, np.random.SFC64)],
        "bits": [kind(1) for kind in kinds],
    }
    for label, value in values.items():
        for protocol in _PROTOCOLS:
            data = pickle.dumps(value, protocol)
            yield Sample("object", f"{label}, protocol {protocol}", "m.pkl", data)


def benign() -> Iterator[Sample]:
    """All samples."""
    for samples in (
        *(torch_files, pickles, pickled_tensors, containers, numpy_files, other_formats),
        *(joblib_files, objects),
    ):
        yield from samples()
