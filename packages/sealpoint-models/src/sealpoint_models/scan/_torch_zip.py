# SPDX-License-Identifier: Apache-2.0
"""The zip that `torch.save` writes, and no other: every byte of it has one meaning.

An accepted archive consists of the local headers and contents of its records in the order of its
directory, the directory, and the end records, without one byte in between, before or after. Each
record is uncompressed, is in one folder with all others, is one of those that torch writes, and is
described the same way at both its places. The padding that torch aligns contents with is the only
filler, and consists of the letter that torch fills it with.

It refuses compression, encryption, comments, duplicate or foreign names, and all forms of other zip
programs. It does not read the contents, and does not compute checksums: torch can be configured to
write none, and a checksum does not protect against intent.

How a name that a file chose is shown in a message: quoted, escaped and cut.

A name is the only thing of a file's content that a message repeats. It cannot break out of its
line, hide behind control characters or fill a screen.

The end of a zip and its central directory: the listed members, and their positions.

Guarantees one reading: the end record is at the very end, without a comment, on one disk; the
directory reaches from its declared beginning to the end records, without a gap; every entry was
parsed and none is left over. `_torch_zip.py` judges the claims of the entries.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sealpoint.errors import FormatRefused, ModelLimitExceeded, ModelMalformed, RecordCompressed
from sealpoint.limits import MODEL_NAME_BYTES_MAX, MODEL_PICKLE_BYTES_MAX, MODEL_TENSORS_MAX

_CHARACTERS_MAX = 80


def shown(name: str) -> str:
    """A name in the form for messages."""
    text = ascii(name)
    return text if len(text) <= _CHARACTERS_MAX else text[: _CHARACTERS_MAX - 3] + "..."


Read = Callable[[int, int], bytes]

_DIRECTORY_BYTES_MAX = 2 * MODEL_PICKLE_BYTES_MAX
_PADDING_BYTES_MAX = 2 * MODEL_PICKLE_BYTES_MAX
"""All headers of one archive, the directory included."""

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_U16_MAX, _U32_MAX = 0xFFFF, 0xFFFFFFFF
_UTF8_NAME = 0x7075


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipEntry:
    """One entry of the directory, as it was written."""

    name: str
    flags: int
    method: int
    modified: tuple[int, int]
    crc: int
    packed_bytes: int
    size: int
    offset: int
    plain: bool
    """No comment, no attributes, first disk, and no extra field but the one for 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipDirectory:
    """All entries in order, and the bytes from the first of them to the end of the file."""

    entries: tuple[ZipEntry, ...]
    offset: int
    data: bytes


def read_exactly(read: Read, offset: int, length: int, what: str) -> bytes:
    """`length` bytes at `offset`; a file that ends earlier is refused."""
    data = read(offset, length)
    if len(data) != length:
        raise ModelMalformed(
            f"{what}: expected {length} bytes at {offset}, found the end after {len(data)}"
        )
    return data


def read_directory(read: Read, size: int, what: str) -> ZipDirectory:
    """Read the end records and the central directory.

    Verification, in order: (1) the end record is the last of the file, without a comment; (2) one
    disk; (3) the 64-bit records agree with it where they are; (4) directory and end records adjoin,
    within bounds; (5) the directory consists of exactly its entries.

    Raises:
        ModelMalformed: One of these does not hold.
        ModelLimitExceeded: More members or bytes than a model file may have.
    """
    # (1) One place for the end record: a search backwards could be led to another one.
    end_at = size - _END.size
    if end_at < 0:
        raise ModelMalformed(f"{what}: expected the end of a zip, found a file of {size} bytes")
    end = read_exactly(read, end_at, _END.size, what)
    magic, disk, first_disk, here, count, length, offset, comment = _END.unpack(end)
    if (magic, comment) != (b"PK\x05\x06", 0):
        raise ModelMalformed(
            f"{what}: expected the file to end with the end record of a zip",
            hint="If it was cut short on its way, fetch or save it again.",
        )
    # (2) One disk.
    if (disk, first_disk, here) != (0, 0, count):
        raise ModelMalformed(f"{what}: expected a zip on one disk, found it split")
    # (3) Both end records.
    tail = b""
    locator_at = end_at - _LOCATOR.size
    if locator_at >= 0 and read_exactly(read, locator_at, 4, what) == b"PK\x06\x07":
        count, length, offset, tail = _wide(read, locator_at, (count, length, offset), what)
    elif count == _U16_MAX or _U32_MAX in (length, offset):
        raise ModelMalformed(f"{what}: the 64-bit end records of a zip are missing")
    # (4) Its position, before it is read.
    if count > MODEL_TENSORS_MAX or length > _DIRECTORY_BYTES_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected at most {MODEL_TENSORS_MAX} records in a directory of at most "
            f"{_DIRECTORY_BYTES_MAX} bytes, found {count} in {length}"
        )
    if count == 0 or offset + length != end_at - len(tail):
        raise ModelMalformed(f"{what}: expected the directory to fill the place before its end")
    data = read_exactly(read, offset, length, what)
    # (5) Its entries.
    return ZipDirectory(entries=_entries(data, count, what), offset=offset, data=data + tail + end)


def _wide(
    read: Read, locator_at: int, narrow: tuple[int, int, int], what: str
) -> tuple[int, int, int, bytes]:
    """Count, length and offset of the directory from the 64-bit records, and these records."""
    at = locator_at - _END64.size
    if at < 0:
        raise ModelMalformed(f"{what}: expected the 64-bit end record of a zip before its locator")
    tail = read_exactly(read, at, _END64.size + _LOCATOR.size, what)
    magic, rest, _made, _needed, disk, first, here, count, length, offset = _END64.unpack_from(tail)
    _, locator_disk, wide_at, disks = _LOCATOR.unpack_from(tail, _END64.size)
    whole = magic == b"PK\x06\x06" and rest == _END64.size - 12 and wide_at == at
    if not whole or disk != 0 or first != 0 or locator_disk != 0 or disks != 1 or here != count:
        raise ModelMalformed(f"{what}: expected a whole 64-bit end record of a zip on one disk")
    limits = (_U16_MAX, _U32_MAX, _U32_MAX)
    if narrow != tuple(map(min, (count, length, offset), limits)):
        raise ModelMalformed(f"{what}: expected both end records of the zip to say the same")
    return count, length, offset, tail


def _entries(data: bytes, count: int, what: str) -> tuple[ZipEntry, ...]:
    entries: list[ZipEntry] = []
    at = 0
    for index in range(count):
        if at + _ENTRY.size > len(data):
            raise ModelMalformed(f"{what}: expected {count} records, found room for {index}")
        fields = _ENTRY.unpack_from(data, at)
        name_bytes, extra_bytes, comment_bytes = fields[10:13]
        name_at = at + _ENTRY.size
        extra_at = name_at + name_bytes
        at = extra_at + extra_bytes + comment_bytes
        if fields[0] != b"PK\x01\x02" or at > len(data):
            raise ModelMalformed(f"{what}: expected a directory entry for record {index}")
        if name_bytes > MODEL_NAME_BYTES_MAX:
            raise ModelLimitExceeded(
                f"{what}: expected names of at most {MODEL_NAME_BYTES_MAX} bytes, "
                f"found {name_bytes} for record {index}"
            )
        try:
            name = data[name_at:extra_at].decode("utf-8")
        except UnicodeDecodeError as exc:
            raise ModelMalformed(f"{what}: expected UTF-8 as the name of record {index}") from exc
        extra = data[extra_at : extra_at + extra_bytes]
        if any(other != data[name_at:extra_at] for other in _other_names(extra)):
            raise ModelMalformed(f"{what}: expected one name of record {index}, found two")
        entries.append(_entry(fields, name, extra))
    if at != len(data):
        raise ModelMalformed(
            f"{what}: expected {count} records in the directory, found {len(data) - at} bytes more"
        )
    return tuple(entries)


def _other_names(extra: bytes) -> Iterator[bytes]:
    """The UTF-8 name of a member in addition to its name, which Python since 3.12 prefers."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == _UTF8_NAME:  # after its version and a checksum of the name
            yield extra[at + 9 : at + 4 + length]
        at += 4 + length


def _entry(fields: tuple[int, ...], name: str, extra: bytes) -> ZipEntry:
    _, _, _, flags, method, time, date, crc, packed, size, _, _, comment, disk, inner = fields[:15]
    outer, offset = fields[15:]
    # The 64-bit field holds exactly the numbers that did not fit, in this order.
    wide = sum(number == _U32_MAX for number in (size, packed, offset))
    plain = (comment, disk, inner, outer) == (0, 0, 0, 0)
    if wide and len(extra) == 4 + 8 * wide and extra[:4] == struct.pack("<2H", 1, 8 * wide):
        numbers = list(struct.unpack(f"<{wide}Q", extra[4:]))
        size = numbers.pop(0) if size == _U32_MAX else size
        packed = numbers.pop(0) if packed == _U32_MAX else packed
        offset = numbers.pop(0) if offset == _U32_MAX else offset
    else:
        plain = plain and not wide and not extra
    return ZipEntry(
        name=name,
        flags=flags,
        method=method,
        modified=(time, date),
        crc=crc,
        packed_bytes=packed,
        size=size,
        offset=offset,
        plain=plain,
    )


PICKLE = "data.pkl"
"""The record that holds all but the elements of tensors."""

_LOCAL = struct.Struct("<4s5H3L2H")
_DESCRIPTOR, _DESCRIPTOR64 = struct.Struct("<4s3L"), struct.Struct("<4sL2Q")
_FLAG_DESCRIPTOR, _FLAG_UTF8 = 0x0008, 0x0800
_U32_MAX = 0xFFFFFFFF
_AHEAD_BYTES = 256

# In addition to the storages. Torch 1.6 wrote the first two; the others came with 1.13 to 2.7.
_SMALL = {"version", "byteorder", ".data/serialization_id", ".format_version", ".storage_alignment"}
_SMALL_BYTES_MAX = 64
_STORAGE = re.compile(r"data/[0-9]{1,20}", re.ASCII)
_FOLDER = re.compile(r"(?!\.{1,2}/)[^\x00-\x1f\x7f/\\]+/", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipRecord:
    """One record: its name without the folder, and the position of its content."""

    name: str
    offset: int
    size: int
    crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipPiece:
    """Bytes that decide how the file is read, in their checked state."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A checked archive.

    `pieces` hold every byte of the file but the contents of the records `data/*`, in order; two of
    them never touch. `contents` hold what is in the other records.
    """

    folder: str
    records: Mapping[str, ZipRecord]
    contents: Mapping[str, bytes]
    pieces: tuple[ZipPiece, ...]


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
    # (1) The declared content.
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
        raise ModelMalformed(f"{what}: the record {PICKLE!r} is missing")
    # (6) Byte by byte.
    return _ArchiveWalk(read, directory, what).run(folder, short)


_NUMPY = "a numpy .npz archive"
_NPZ = "Make a safetensors file of it: sealpoint model convert IN OUT."
# By the whole name of a record, and its name inside of the folder.
_FOREIGN: dict[str, Callable[[str, str], bool]] = {
    "a TorchScript archive, which is a program": lambda _, inner: (
        inner == "constants.pkl" or inner.startswith("code/")
    ),
    "a torch.package archive, which holds code": lambda _, inner: inner.startswith(
        ".data/extern_modules"
    ),
    _NUMPY: lambda name, _: name.endswith(".npy"),
    "a torch.export archive, which is a program": lambda name, inner: (
        inner == "archive_format" or name.endswith(".pt2")
    ),
    "a Keras archive": lambda name, _: name in ("model.weights.h5", "config.json"),
}


def _refuse_foreign(names: list[str], what: str) -> None:
    for kind, is_such in _FOREIGN.items():
        if any(is_such(name, name.partition("/")[2]) for name in names):
            hint = _NPZ if kind == _NUMPY else None
            raise FormatRefused(
                f"{what}: expected tensors written by torch.save, found {kind}", hint=hint
            )


def _check_entry(entry: ZipEntry, what: str) -> None:
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


def _extra(entry: ZipEntry, packed_bytes: int, length: int) -> bytes:
    """The extra field of a local header: the 64-bit values, then padding up to a length."""
    wide = b""
    if entry.size >= _U32_MAX:
        wide += struct.pack("<2Q", entry.size, packed_bytes)
    if entry.offset >= _U32_MAX:
        wide += struct.pack("<Q", entry.offset)
    if wide:
        wide = struct.pack("<2H", 1, len(wide)) + wide
    filler = max(length - len(wide) - 4, 0)
    return wide + b"FB" + filler.to_bytes(2, "little") + b"Z" * filler


class _ArchiveWalk:
    """Walks a file once, from its first byte to the directory."""

    def __init__(self, read: Read, directory: ZipDirectory, what: str) -> None:
        self._read = read
        self._directory = directory
        self._what = what
        self._at = 0
        self._ahead = b""
        self._headers_bytes = 0
        self._piece_at = 0
        self._piece: list[bytes] = []
        self._pieces: list[ZipPiece] = []

    def run(self, folder: str, names: list[str]) -> Archive:
        records: dict[str, ZipRecord] = {}
        contents: dict[str, bytes] = {}
        for entry, name in zip(self._directory.entries, names, strict=True):
            if entry.offset != self._at:
                self._refuse(entry, f"at byte {self._at}, found it at {entry.offset}")
            self._header(entry)
            record = ZipRecord(name=name, offset=self._at, size=entry.size, crc=entry.crc)
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

    def _header(self, entry: ZipEntry) -> None:
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

    def _content(self, entry: ZipEntry, name: str) -> bytes:
        most = MODEL_PICKLE_BYTES_MAX if name == PICKLE else _SMALL_BYTES_MAX
        if entry.size > most:
            raise ModelLimitExceeded(
                f"{self._what}: record {shown(name)}: expected at most {most} bytes, "
                f"found {entry.size}"
            )
        return self._take(entry.size, entry)

    def _descriptor(self, entry: ZipEntry) -> None:
        if not entry.size:
            return
        wide = entry.size >= _U32_MAX or entry.offset >= _U32_MAX
        layout = _DESCRIPTOR64 if wide else _DESCRIPTOR
        expected = layout.pack(b"PK\x07\x08", entry.crc, entry.size, entry.size)
        if self._take(layout.size, entry) != expected:
            self._refuse(entry, "to be followed by a descriptor that agrees with the directory")

    def _take(self, length: int, entry: ZipEntry) -> bytes:
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
        if self._headers_bytes > _PADDING_BYTES_MAX:
            raise ModelLimitExceeded(
                f"{self._what}: it has more than {_PADDING_BYTES_MAX} bytes of padding"
            )
        return data

    def _skip(self, length: int) -> None:
        """Skip the elements of a tensor, which are not structure."""
        if length:
            self._close_piece()
            self._at += length
            self._piece_at = self._at
            self._ahead = self._ahead[length:]

    def _close_piece(self) -> None:
        self._pieces.append(ZipPiece(offset=self._piece_at, data=b"".join(self._piece)))
        self._piece = []

    def _refuse(self, entry: ZipEntry, expected: str) -> None:
        raise ModelMalformed(f"{self._what}: record {shown(entry.name)}: expected it {expected}")
