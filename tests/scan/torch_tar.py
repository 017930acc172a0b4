# SPDX-License-Identifier: Apache-2.0
"""The tar that `torch.save` wrote before 0.1.10, which nobody writes any more.

`saved_as_tar` writes a value of real tensors in that form; today's torch reads it, if it is told to
trust the file. `TarParts` puts together one of parts that may be wrong.
"""

import io
import pickle
import struct
import tarfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tests.pt_files import dictionary, integer, listed, named, text, tupled

_KINDS = {
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
}


def _pickled(program: bytes) -> bytes:
    return b"\x80\x02" + program + b"."


MACHINE = _pickled(
    dictionary(
        (text("protocol_version"), integer(1000)),
        (text("little_endian"), b"\x88"),
        (
            text("type_sizes"),
            dictionary(
                (text("short"), integer(2)), (text("int"), integer(4)), (text("long"), integer(4))
            ),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class TarStorage:
    """A storage, with its elements."""

    number: int = 10
    kind: bytes = named("torch", "FloatStorage")
    location: str = "cpu"
    count: int = 4
    data: bytes = struct.pack("<4f", 1, 2, 3, 4)

    def __bytes__(self) -> bytes:
        """How it lies in the file."""
        about = tupled(integer(self.number), text(self.location), self.kind)
        return _pickled(about) + struct.pack("<q", self.count) + self.data


@dataclass(frozen=True, slots=True)
class TarTensor:
    """What a tensor is."""

    number: int = 20
    storage: bytes = integer(10)
    kind: bytes = named("torch", "FloatTensor")
    size: Sequence[int] = (2, 2)
    stride: Sequence[int] = (2, 1)
    offset: int = 0
    dimensions: int | None = None

    def __bytes__(self) -> bytes:
        """How it lies in the file; the upper half of the first number was never set."""
        about = tupled(integer(self.number), self.storage, self.kind)
        dimensions = len(self.size) if self.dimensions is None else self.dimensions
        numbers = (*self.size, *self.stride, self.offset)
        packed = struct.pack(f"<iI{len(numbers)}q", dimensions, 0x7FFF, *numbers)
        return _pickled(about) + packed


def reference(number: int | str) -> bytes:
    """How the value refers to a tensor or a storage."""
    return text(str(number)) + b"Q"


@dataclass(slots=True, kw_only=True)
class TarParts:
    """The parts of a file, honest ones unless others are given."""

    value: bytes = reference(20)
    storages: Sequence[TarStorage] = (TarStorage(),)
    views: bytes = b"]"
    tensors: Sequence[TarTensor] = (TarTensor(),)
    machine: bytes | None = MACHINE
    storages_said: int | None = None
    tensors_said: int | None = None
    before_tensors: bytes = b""
    after_storages: bytes = b""
    after_tensors: bytes = b""
    others: dict[str, bytes] = field(default_factory=dict)

    def __bytes__(self) -> bytes:
        """The file."""
        said = len(self.storages) if self.storages_said is None else self.storages_said
        storages = _pickled(integer(said)) + b"".join(map(bytes, self.storages))
        said = len(self.tensors) if self.tensors_said is None else self.tensors_said
        tensors = _pickled(self.before_tensors + integer(said)) + b"".join(map(bytes, self.tensors))
        members = {} if self.machine is None else {"sys_info": self.machine}
        members |= {
            "pickle": _pickled(self.value),
            "tensors": tensors + self.after_tensors,
            "storages": storages + _pickled(self.views) + self.after_storages,
        }
        return _tarred(members | self.others)


def _tarred(members: dict[str, bytes]) -> bytes:
    """A tar of files that lay on a disk, so that their times are of nanoseconds."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.uname = len(data), 1480000000.25, "somebody"
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


HONEST_TARS: dict[str, TarParts] = {
    "a tensor": TarParts(),
    "no tensor": TarParts(value=text("a") + b"N\x86", storages=(), tensors=()),
    "without facts about the machine": TarParts(machine=None),
    "a state dict": TarParts(
        value=named("collections", "OrderedDict")
        + b")R("
        + text("w")
        + reference(20)
        + text("b")
        + reference(21)
        + b"u",
        tensors=(TarTensor(), TarTensor(21, size=(2,), stride=(1,), offset=2)),
    ),
    "a tensor twice": TarParts(value=listed(reference(20), reference(20))),
    "a storage": TarParts(value=listed(reference(10), reference(20))),
    "a part of a storage": TarParts(
        views=listed(tupled(integer(11), integer(10), integer(1), integer(3))),
        tensors=(TarTensor(storage=integer(11), size=(3,), stride=(1,)),),
    ),
    "a tensor of a graphics card": TarParts(
        storages=(TarStorage(location="cuda:0"),),
        tensors=(TarTensor(kind=named("torch.cuda", "FloatTensor")),),
    ),
    "a tensor of no elements": TarParts(
        storages=(TarStorage(count=0, data=b""),), tensors=(TarTensor(size=(0,), stride=(1,)),)
    ),
    "a number without dimensions": TarParts(tensors=(TarTensor(size=(), stride=(), offset=3),)),
}
"""What torch could have written, with numbers that are no addresses."""


class _Pickler(pickle.Pickler):
    """Leaves tensors and storages to the tables."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, 2)
        self.tensors: OrderedDict[int, torch.Tensor] = OrderedDict()

    def persistent_id(self, obj: Any) -> str | None:
        if not isinstance(obj, torch.Tensor):
            return None
        self.tensors[obj._cdata] = obj
        return str(obj._cdata)


def saved_as_tar(value: object) -> bytes:
    """A value with plain tensors, as the first releases of torch saved it."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(value)
    storages: dict[int, TarStorage] = {}
    tensors = []
    for number, each in pickler.tensors.items():
        memory = each.untyped_storage()
        key, kind = memory.data_ptr() + 1, _KINDS[each.dtype]
        storages[key] = TarStorage(
            key,
            named("torch", f"{kind}Storage"),
            count=memory.nbytes() // each.element_size(),
            data=bytes(memory),
        )
        size, stride = tuple(each.size()), each.stride()
        tensors.append(
            TarTensor(
                number,
                integer(key),
                named("torch", f"{kind}Tensor"),
                size,
                stride,
                int(each.storage_offset()),
            )
        )
    return bytes(
        TarParts(value=buffer.getvalue()[2:-1], storages=list(storages.values()), tensors=tensors)
    )
