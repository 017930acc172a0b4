# SPDX-License-Identifier: Apache-2.0
"""The zip that `torch.save` writes, and no other: every byte of it has one meaning.

An accepted archive is the local headers and contents of its records in the order of its directory,
the directory, and the end records, without one byte in between, before or after. Each record is
stored as it is, lies in one folder with all others, is one of those that torch writes, and is
described the same way at both its places. The padding that torch aligns contents with is the only
filler, and consists of the letter that torch fills it with.

It refuses compression, encryption, comments, duplicate or foreign names, and whatever another zip
program writes. It leaves the contents to others, and does not compute checksums: torch can be told
to write none, and a checksum is no protection against intent.
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from sealpoint.errors import FormatRefused, ModelLimitExceeded, ModelMalformed, RecordCompressed
from sealpoint.limits import MODEL_PICKLE_BYTES_MAX
from sealpoint.scan._directory import (
    HEADER_BYTES_MAX,
    Directory,
    Entry,
    Read,
    read_directory,
    read_exactly,
)
from sealpoint.scan._names import shown

__all__ = ["PICKLE", "Archive", "Piece", "Record", "read_archive"]

PICKLE = "data.pkl"
"""The record that holds all but the elements of tensors."""

_LOCAL = struct.Struct("<4s5H3L2H")
_DESCRIPTOR, _DESCRIPTOR64 = struct.Struct("<4s3L"), struct.Struct("<4sL2Q")
_FLAG_DESCRIPTOR, _FLAG_UTF8 = 0x0008, 0x0800
_U32_MAX = 0xFFFFFFFF
_AHEAD_BYTES = 256

# Beside the storages. Torch 1.6 wrote the first two; the others came with 1.13 to 2.7.
_SMALL = {"version", "byteorder", ".data/serialization_id", ".format_version", ".storage_alignment"}
_SMALL_BYTES_MAX = 64
_STORAGE = re.compile(r"data/[0-9]{1,20}", re.ASCII)
_FOLDER = re.compile(r"(?!\.{1,2}/)[^\x00-\x1f\x7f/\\]+/", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record: its name without the folder, and where its content lies."""

    name: str
    offset: int
    size: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes that decide how the file is read, as they were when they were checked."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A checked archive.

    `pieces` hold every byte of the file but the contents of the records `data/*`, in order; two of
    them never touch. `contents` hold what is in the other records.
    """

    folder: str
    records: Mapping[str, Record]
    contents: Mapping[str, bytes]
    pieces: tuple[Piece, ...]


def read_archive(read: Read, size: int, what: str) -> Archive:
    """Read and check an archive.

    Verification, in order: (1) end records and directory, (2) it is not a known other use of zip,
    (3) nothing is compressed, (4) each directory entry is as torch writes it, (5) names are of one
    folder, known and distinct, (6) local headers, contents and descriptors follow one another from
    the first byte to the directory, and say what the directory says.

    Args:
        read: Gives the bytes at an offset, of a length, fewer only at the end.
        size: Of the file.
        what: The file, for messages.

    Raises:
        FormatRefused: It is a TorchScript, numpy or other archive.
        RecordCompressed: A record is compressed.
        ModelLimitExceeded: It has more records or bytes of structure than a model file may.
        ModelMalformed: It differs in another way from what torch writes.
    """
    # (1) What it says there is.
    directory = read_directory(read, size, what)
    names = [entry.name for entry in directory.entries]
    # (2) First, since such archives are often compressed too.
    _refuse_foreign(names, what)
    for entry in directory.entries:
        # (3) A bomb would grow on reading.
        if entry.method != 0:
            raise RecordCompressed(
                f"{what}: record {shown(entry.name)}: expected it stored as it is, "
                f"found compression method {entry.method}"
            )
        # (4) Encryption, comments, attributes.
        _check_entry(entry, what)
    # (5) Torch takes the folder from the first name, and compares names without case.
    found = _FOLDER.match(names[0])
    if found is None:
        raise ModelMalformed(f"{what}: expected records in one folder, found {shown(names[0])}")
    folder = found.group()
    short = [_inner_name(name, folder, what) for name in names]
    if len(set(short)) != len(short):
        raise ModelMalformed(f"{what}: expected each record once, found one twice")
    if PICKLE not in short:
        raise ModelMalformed(f"{what}: expected a record {PICKLE!r}, found none")
    # (6) Byte by byte.
    return _Walk(read, directory, what).run(folder, short)


def _refuse_foreign(names: list[str], what: str) -> None:
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner or any(name.startswith("code/") for name in inner):
        kind = "a TorchScript archive, which is a program"
    elif any(name.startswith(".data/extern_modules") for name in inner):
        kind = "a torch.package archive, which holds code"
    elif any(name.endswith(".npy") for name in names):
        kind = "a numpy .npz archive"
    elif "archive_format" in inner or any(name.endswith(".pt2") for name in names):
        kind = "a torch.export archive, which is a program"
    elif "model.weights.h5" in names or "config.json" in names:
        kind = "a Keras archive"
    else:
        return
    raise FormatRefused(f"{what}: expected tensors written by torch.save, found {kind}")


def _check_entry(entry: Entry, what: str) -> None:
    flags = entry.flags & ~_FLAG_UTF8
    # Torch writes a descriptor after each content, but none after an empty one.
    if flags != (_FLAG_DESCRIPTOR if entry.size else 0):
        raise ModelMalformed(
            f"{what}: record {shown(entry.name)}: expected the flags that torch writes, "
            f"found {entry.flags:#06x}"
        )
    if entry.packed_bytes != entry.size or not entry.plain:
        raise ModelMalformed(
            f"{what}: record {shown(entry.name)}: expected a directory entry as torch writes it, "
            "found another size, comment, attribute or extra field"
        )


def _inner_name(name: str, folder: str, what: str) -> str:
    short = name.removeprefix(folder)
    known = short == PICKLE or short in _SMALL or _STORAGE.fullmatch(short)
    if not name.startswith(folder) or not known:
        raise ModelMalformed(
            f"{what}: expected only records that torch.save writes, found {shown(name)}"
        )
    return short


def _extra(entry: Entry, packed_bytes: int, length: int) -> bytes:
    """The extra field of a local header: what needs 64 bits, then padding up to a length."""
    wide = b""
    if entry.size >= _U32_MAX:
        wide += struct.pack("<2Q", entry.size, packed_bytes)
    if entry.offset >= _U32_MAX:
        wide += struct.pack("<Q", entry.offset)
    if wide:
        wide = struct.pack("<2H", 1, len(wide)) + wide
    filler = max(length - len(wide) - 4, 0)
    return wide + b"FB" + filler.to_bytes(2, "little") + b"Z" * filler


class _Walk:
    """Goes once over a file, from its first byte to the directory."""

    def __init__(self, read: Read, directory: Directory, what: str) -> None:
        self._read = read
        self._directory = directory
        self._what = what
        self._at = 0
        self._ahead = b""
        self._headers_bytes = 0
        self._piece_at = 0
        self._piece: list[bytes] = []
        self._pieces: list[Piece] = []

    def run(self, folder: str, names: list[str]) -> Archive:
        records: dict[str, Record] = {}
        contents: dict[str, bytes] = {}
        for entry, name in zip(self._directory.entries, names, strict=True):
            if entry.offset != self._at:
                self._refuse(entry, f"at byte {self._at}, found it at {entry.offset}")
            self._header(entry)
            record = Record(name=name, offset=self._at, size=entry.size, crc=entry.crc)
            records[name] = record
            if self._at + entry.size > self._directory.offset:
                self._refuse(entry, "to end before the directory")
            if name.startswith("data/"):
                self._skip(entry.size)
            else:
                contents[name] = self._content(entry, name)
            self._descriptor(entry)
        if self._at != self._directory.offset:
            raise ModelMalformed(
                f"{self._what}: expected the directory right after the last record, found "
                f"{self._directory.offset - self._at} bytes between"
            )
        self._piece.append(self._directory.data)
        self._close_piece()
        return Archive(
            folder=folder, records=records, contents=contents, pieces=tuple(self._pieces)
        )

    def _header(self, entry: Entry) -> None:
        """Take the local header, which repeats the name but leaves the sizes to others."""
        fixed = self._take(_LOCAL.size, entry)
        fields = _LOCAL.unpack(fixed)
        magic, version, flags, method, time, date, crc, packed, size, name_bytes, extra = fields
        name = self._take(name_bytes, entry)
        self._headers_bytes += extra
        padding = self._take(extra, entry)
        same = (
            magic == b"PK\x03\x04"
            and version in {0, 10, 20, 45}
            and (flags, method, (time, date)) == (entry.flags, entry.method, entry.modified)
            and (crc, packed, size) == (0, 0, 0)
            and name == entry.name.encode("utf-8")
        )
        if not same:
            self._refuse(entry, "to begin with a header that agrees with the directory")
        # Torch writes the header before it knows how much it will have packed: zero.
        if padding not in (_extra(entry, 0, len(padding)), _extra(entry, entry.size, len(padding))):
            self._refuse(entry, "to be aligned with the padding of torch")

    def _content(self, entry: Entry, name: str) -> bytes:
        most = MODEL_PICKLE_BYTES_MAX if name == PICKLE else _SMALL_BYTES_MAX
        if entry.size > most:
            raise ModelLimitExceeded(
                f"{self._what}: record {shown(name)}: expected at most {most} bytes, "
                f"found {entry.size}"
            )
        return self._take(entry.size, entry)

    def _descriptor(self, entry: Entry) -> None:
        if not entry.size:
            return
        wide = entry.size >= _U32_MAX or entry.offset >= _U32_MAX
        layout = _DESCRIPTOR64 if wide else _DESCRIPTOR
        expected = layout.pack(b"PK\x07\x08", entry.crc, entry.size, entry.size)
        if self._take(layout.size, entry) != expected:
            self._refuse(entry, "to be followed by a descriptor that agrees with the directory")

    def _take(self, length: int, entry: Entry) -> bytes:
        """The next bytes, which are structure; reads ahead, since headers are short."""
        if self._at + length > self._directory.offset:
            self._refuse(entry, "to end before the directory")
        if len(self._ahead) < length:
            room = self._directory.offset - self._at
            wanted = min(max(length, _AHEAD_BYTES), room)
            self._ahead = read_exactly(self._read, self._at, wanted, self._what)
        data, self._ahead = self._ahead[:length], self._ahead[length:]
        self._at += length
        self._piece.append(data)
        if self._headers_bytes > HEADER_BYTES_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: expected at most {HEADER_BYTES_MAX} bytes of padding, found more"
            )
        return data

    def _skip(self, length: int) -> None:
        """Leave out the elements of a tensor, which are not structure."""
        if length:
            self._close_piece()
            self._at += length
            self._piece_at = self._at
            self._ahead = self._ahead[length:]

    def _close_piece(self) -> None:
        self._pieces.append(Piece(offset=self._piece_at, data=b"".join(self._piece)))
        self._piece = []

    def _refuse(self, entry: Entry, expected: str) -> None:
        raise ModelMalformed(f"{self._what}: record {shown(entry.name)}: expected it {expected}")
