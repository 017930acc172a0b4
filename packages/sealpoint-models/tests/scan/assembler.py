# SPDX-License-Identifier: Apache-2.0
"""Pickles written opcode by opcode, so that a sample is bytes and nothing is ever pickled or run.

The payload of every sample would make an empty file called `marker` if somebody loaded it.
"""

import io
import struct
import tarfile
import zipfile

COMMAND = "touch marker"


def text(value: str) -> bytes:
    """A short text of protocol 4."""
    data = value.encode()
    return b"\x8c" + bytes([len(data)]) + data


def old_text(value: str) -> bytes:
    """A text of protocol 2."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, attribute: str) -> bytes:
    """A name on two lines."""
    return f"c{module}\n{attribute}\n".encode()


def stack_name(module: str, attribute: str) -> bytes:
    """A name from the stack."""
    return text(module) + text(attribute) + b"\x93"


def call(module: str, attribute: str, argument: str = COMMAND) -> bytes:
    """A call of protocol 0, without its end."""
    return name(module, attribute) + f"(S'{argument}'\ntR".encode()


def pickle(body: bytes, protocol: int = 2) -> bytes:
    """A whole pickle around opcodes."""
    start = b"" if protocol < 2 else b"\x80" + bytes([protocol])
    return start + body + b"."


def spoken(module: str, attribute: str, protocol: int) -> bytes:
    """A pickle that imports and calls something, in the words of a protocol."""
    if protocol < 2:
        return call(module, attribute) + b"."
    if protocol < 4:
        return pickle(name(module, attribute) + old_text(COMMAND) + b"\x85R", protocol)
    return framed(stack_name(module, attribute) + text(COMMAND) + b"\x85\x94R\x94.", protocol)


def framed(body: bytes, protocol: int = 4, length: int | None = None) -> bytes:
    """A pickle in one frame, whose length may lie."""
    length = len(body) if length is None else length
    return b"\x80" + bytes([protocol]) + b"\x95" + struct.pack("<Q", length) + body


PAYLOAD = spoken("os", "system", 2)


def zipped(
    members: dict[str, bytes], *, method: int = zipfile.ZIP_STORED, comment: bytes = b""
) -> bytes:
    """A zip with these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data, method)
        archive.comment = comment
    return buffer.getvalue()


def torch_zip(pickled: bytes, *, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip with the records of torch, though not as torch writes them."""
    members = {"archive/data.pkl": pickled, "archive/version": b"3\n"}
    return zipped(members, method=method)


def tarred(members: dict[str, bytes], mode: str = "w") -> bytes:
    """A tar with these members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for member, data in members.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def npy(pickled: bytes) -> bytes:
    """A numpy file with an array of objects, whose pickle is given."""
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + pickled


def safetensors(header: bytes = b"{}", data: bytes = b"") -> bytes:
    """A safetensors file."""
    return struct.pack("<Q", len(header)) + header + data
