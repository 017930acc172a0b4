# SPDX-License-Identifier: Apache-2.0
"""First cases for pickles: honest ones of every protocol and wrapping, and samples of attacks."""

import argparse
import datetime as dt
import decimal
import fractions
import io
import pathlib
import pickle
import re
import types
import uuid
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import torch

from fuzz._pickle_changes import correct_frames, opcodes_of
from tests.scan import irregular
from tests.scan.malicious import GROUPS, Sample

__all__ = ["seeds"]

_PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
_BYTES_MAX = 20_000
_OLD = {"_use_new_zipfile_serialization"}
_ADDRESS = re.compile(rb"(?:X.{4}|\x8c.)[0-9]{9,}", re.DOTALL)
_KEY = {b"X": b"X\x01\0\0\x000", b"\x8c": b"\x8c\x010"}
_ENDINGS = (".pkl", ".pt", ".pth", ".ckpt", ".bin", ".joblib")


def _plain() -> list[Any]:
    cycle: list[Any] = [1]
    cycle.append({"self": cycle})
    shared = [1.5, "shared"]
    return [
        *(None, True, 0, -1, 1 << 20, 1 << 70, -(1 << 31), 0.1, -1e-300, float("inf"), "", "text"),
        *("\u00e9\u4e2d\U0001f600", "a\nb\\c\0", b"", b"bytes\xff", bytearray(b"abc"), (), (1,)),
        *((1, 2, 3), (1, 2, 3, 4), [], [1, [2, [3]]], {}, {"a": 1, 2: None, (3, "b"): []}),
        *({1, 2}, frozenset({"a"}), cycle, [shared, shared], (cycle, cycle)),
        *([list(range(40)), {str(each): each for each in range(20)}], "long" * 100),
    ]


def _objects() -> list[Any]:
    queue: deque[int] = deque([1, 2], maxlen=5)
    counts: defaultdict[str, int] = defaultdict(int)
    counts["a"] = 1
    state: Any = OrderedDict(weight=[1.0])
    state._metadata = OrderedDict([("", {"version": 1})])  # noqa: SLF001 - as torch does
    zone = dt.timezone(dt.timedelta(hours=2), "here")
    return [
        *(OrderedDict(a=1), Counter("aab"), queue, counts, state, deque([1])),
        *(argparse.Namespace(lr=0.1, path=pathlib.PurePosixPath("a/b")), uuid.UUID(int=5)),
        *(types.SimpleNamespace(a=[1]), dt.datetime(2024, 2, 29, 1, 2, 3, 4, zone), dt.date.max),
        *(dt.time(1, 2, fold=1), dt.timedelta(-1, 5), zone, decimal.Decimal("1.50"), 1 + 2j),
        *(fractions.Fraction(1, 3), range(1, 9, 2), slice(1, None, 2)),
        *(pathlib.PurePosixPath("/a"), pathlib.PureWindowsPath("c:/a")),
        *(np.arange(4, dtype="<f4"), np.zeros((2, 3), order="F"), np.float64(1.5), np.bool_(True)),  # noqa: FBT003
        *(np.array(["a", None, [1]], object), np.array(["ab"]), np.dtype("<i8"), np.array([b"a"])),
        *(np.array(["2024-01-01"], "M8[D]"), np.zeros(2, [("a", "<i4"), ("b", "<f8", (2,))])),
        *(np.arange(2.0).reshape(1, 2), {"rng": (1, np.arange(3, dtype=np.uint32))}),
    ]


def _tensors() -> list[Any]:
    base = torch.arange(6.0)
    parameter = torch.nn.Parameter(torch.ones(2))
    marked: Any = torch.ones(2)
    marked.note = "a"
    model = torch.nn.Linear(2, 1)
    for each in model.parameters():  # no random numbers: each run has the same first cases
        torch.nn.init.constant_(each, 0.5)
    adam = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    adam.step()
    return [
        *(model.state_dict(), adam.state_dict(), [base, base[1:3], base.view(2, 3).t()]),
        *(parameter, marked, torch.zeros(0), torch.tensor(1), torch.tensor([True, False])),
        *(torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.uint16)),
        *(torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), torch.zeros(1, device="meta")),
        *(torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.qint8), base.untyped_storage()),
        *(torch.Size([1, 2]), torch.float32, torch.device("cuda", 1), torch.strided),
        *(torch.zeros(2, dtype=torch.complex64).conj(), {"a": OrderedDict(b=base), "c": Counter()}),
        torch.quantize_per_channel(
            torch.ones(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64), 0, torch.quint8
        ),
    ]


def _saved() -> Iterator[bytes]:
    for value in _tensors():
        for options in (
            {},
            {"pickle_protocol": 4},
            {"_use_new_zipfile_serialization": False},
            {"_use_new_zipfile_serialization": False, "pickle_protocol": 4},
        ):
            buffer = io.BytesIO()
            try:
                torch.save(value, buffer, **options)
            except (RuntimeError, NotImplementedError):
                continue  # the older format has no such storages
            yield from (
                _without_address(buffer.getvalue())
                if options.keys() & _OLD
                else (buffer.getvalue(),)
            )


def _without_address(data: bytes) -> Iterator[bytes]:
    """A stream of before torch 1.6 with `0` for its storage, whose key is an address of memory.

    With several their order follows from the addresses, too: no two runs would have the same.
    """
    opcodes, rest = opcodes_of(data)
    addresses = {each for each in opcodes if _ADDRESS.fullmatch(each)}
    if len(addresses) < 2:
        named = [_KEY[each[:1]] if each in addresses else each for each in opcodes]
        correct_frames(named)
        yield b"".join(named) + rest


def _pickled() -> Iterator[bytes]:
    """Tensors that bring their storages in bytes of their own."""
    for value in _tensors():
        for protocol in (3, 4):
            try:
                opcodes, _ = opcodes_of(pickle.dumps(value, protocol))
            except RuntimeError:
                continue  # as above
            named = [_given(each) if b"storage" in each[5:200] else each for each in opcodes]
            correct_frames(named)
            yield b"".join(named)


def _given(opcode: bytes) -> bytes:
    """An opcode whose argument may be a stream of one storage, with `0` for its key."""
    begin = opcode.find(b"\x80\x02\x8a")
    if begin < 0:
        return opcode
    data = b"".join(_without_address(opcode[begin:]))
    return pickle.BINBYTES + len(data).to_bytes(4, "little") + data


def _joblib() -> Iterator[bytes]:
    for value in ({"a": np.arange(4.0)}, np.array([None, 1], object), [np.zeros((2, 2)), "a"]):
        buffer = io.BytesIO()
        joblib.dump(value, buffer)
        yield buffer.getvalue()


def _attacks() -> Iterator[Sample]:
    for group, samples in GROUPS.items():
        if group != "denial of service":
            yield from samples()
    yield from irregular.irregular_calls()
    yield from irregular.hidden_calls()
    yield from irregular.irregular_tensors()
    yield from irregular.irregular_streams()
    yield from irregular.irregular_storages()


def seeds() -> Iterator[bytes]:
    """All first cases, in a fixed order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls some of its layouts new, others old
        for value in (*_plain(), *_objects()):
            for protocol in _PROTOCOLS:
                yield pickle.dumps(value, protocol)
        yield from _saved()
        yield from _pickled()
        yield from _joblib()
    for sample in _attacks():
        if sample.file.endswith(_ENDINGS) and len(sample.data) <= _BYTES_MAX:
            yield sample.data
