# SPDX-License-Identifier: Apache-2.0
"""`.pt` files for tests: written by torch, or put together byte by byte as torch would write them.

The writer here is the tests' own, so that a file can be wrong in exactly one place. A pickle is
assembled from the functions below, each of which gives the bytes of one value.
"""

import io
import struct
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from sealpoint_models._torch_files import load_pt

__all__ = [
    "EMPTY",
    "archive",
    "as_file",
    "call",
    "dictionary",
    "entry",
    "integer",
    "listed",
    "named",
    "ours",
    "pickled",
    "records_of",
    "saved",
    "stock",
    "storage",
    "tensor",
    "text",
    "tupled",
]

_ALIGNMENT = 64
EMPTY = b"ccollections\nOrderedDict\n)R"
"""An empty OrderedDict, as torch writes for the hooks of a tensor."""


def saved(value: object) -> bytes:
    """What torch saves."""
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def ours(data: bytes, map_location: Any = "cpu") -> Any:
    """Load with Sealpoint, from a real file."""
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        return load_pt(file, len(data), "m.pt", map_location)


def stock(data: bytes, **options: Any) -> Any:
    """Load with torch as it is, told to be careful."""
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True, **options)


def as_file(folder: Path, data: bytes) -> Path:
    """A file with these bytes."""
    path = folder / "m.pt"
    path.write_bytes(data)
    return path


# Archives.


def records_of(data: bytes) -> dict[str, bytes]:
    """The records of an honest archive, by their names without the folder."""
    reader = torch._C.PyTorchFileReader(io.BytesIO(data))
    return {name: reader.get_record(name) for name in reader.get_all_records()}


def entry(name: bytes, content: bytes, at: int, /, **changes: int) -> tuple[bytes, bytes]:
    """One record as it lies in the file, and its entry in the directory.

    `changes` are of the directory entry: flags, method, crc, packed, size, offset, made, outer.
    """
    flags = 0x0808 if content else 0x0800
    crc = zlib.crc32(content)
    fixed = len(name) + 34
    filler = -(at + fixed) % _ALIGNMENT
    local = struct.pack(
        "<4s5H3L2H", b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(name), filler + 4
    )
    local += name + b"FB" + struct.pack("<H", filler) + b"Z" * filler + content
    if content:
        local += struct.pack("<4s3L", b"PK\x07\x08", crc, len(content), len(content))
    fields: dict[str, int] = {
        "made": 0,
        "flags": flags,
        "method": 0,
        "crc": crc,
        "packed": len(content),
        "size": len(content),
        "disk": 0,
        "outer": 0,
        "offset": at,
    }
    fields |= changes
    central = struct.pack(
        "<4s6H3L5H2L",
        *(b"PK\x01\x02", fields["made"], 0, fields["flags"], fields["method"], 0, 0),
        *(fields["crc"], fields["packed"], fields["size"], len(name), 0, 0, fields["disk"], 0),
        *(fields["outer"], fields["offset"]),
    )
    return local, central + name


def archive(
    records: Mapping[str, bytes] | Iterable[tuple[str, bytes]],
    folder: str = "archive",
    changes: Mapping[str, Mapping[str, int]] | None = None,
    gap: bytes = b"",
) -> bytes:
    """A zip as torch writes it, with these records; `gap` goes before the directory."""
    items = records.items() if isinstance(records, Mapping) else records
    body, directory, count = b"", b"", 0
    for name, content in items:
        changed = (changes or {}).get(name, {})
        local, central = entry(f"{folder}/{name}".encode(), content, len(body), **changed)
        body += local
        directory += central
        count += 1
    body += gap
    end64 = struct.pack(
        "<4sQ2H2L4Q",
        *(b"PK\x06\x06", 44, 0x031E, 45, 0, 0, count, count, len(directory), len(body)),
    )
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(body) + len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + end64 + locator + end


def pickled(program: bytes, storages: Mapping[str, bytes] | None = None) -> bytes:
    """A `.pt` file whose pickle makes one value, with these storages."""
    records = {"data.pkl": b"\x80\x02" + program + b".", "byteorder": b"little"}
    records |= {f"data/{key}": content for key, content in (storages or {}).items()}
    return archive(records | {"version": b"3\n"})


# Values of a pickle.


def text(value: str) -> bytes:
    """A text."""
    data = value.encode()
    return b"X" + struct.pack("<L", len(data)) + data


def integer(value: int) -> bytes:
    """An int."""
    if 0 <= value < 1 << 8:
        return b"K" + bytes([value])
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<l", value)
    bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
    data = value.to_bytes(bits // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def tupled(*values: bytes) -> bytes:
    """A tuple of values."""
    return b"(" + b"".join(values) + b"t"


def listed(*values: bytes) -> bytes:
    """A list of values."""
    return b"](" + b"".join(values) + b"e"


def dictionary(*pairs: tuple[bytes, bytes]) -> bytes:
    """A dict of keys and values."""
    return b"}(" + b"".join(key + value for key, value in pairs) + b"u"


def named(module: str, name: str) -> bytes:
    """A class or function."""
    return f"c{module}\n{name}\n".encode()


def call(module: str, name: str, *arguments: bytes) -> bytes:
    """What a function returns."""
    return named(module, name) + tupled(*arguments) + b"R"


def storage(kind: str, key: str, count: int, location: str = "cpu") -> bytes:
    """A reference to a storage."""
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    parts = text("storage"), named(module, kind), text(key), text(location), integer(count)
    return tupled(*parts) + b"Q"


def tensor(
    held: bytes, size: Iterable[int], stride: Iterable[int], offset: int = 0, hooks: bytes = EMPTY
) -> bytes:
    """A tensor over a storage."""
    return call(
        "torch._utils",
        "_rebuild_tensor_v2",
        held,
        integer(offset),
        tupled(*map(integer, size)),
        tupled(*map(integer, stride)),
        b"\x89",
        hooks,
    )
