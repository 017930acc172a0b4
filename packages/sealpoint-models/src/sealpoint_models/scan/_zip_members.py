# SPDX-License-Identifier: Apache-2.0
"""The members of any zip, if every reader would see the same ones.

A member is returned only if its two headers agree: name, flags, method, sizes, checksum. Members
follow one another from the first byte to the directory, and each name occurs once. Compressed
members are unpacked within the budget, and their checksums are verified.

It refuses features that readers of zips interpret differently: bytes before, between or after the
members, a comment at the end, encryption, patches, masked headers, two entries for one name. It
does not judge the contents. The zip that `torch.save` writes has stricter rules: see
`_torch_zip.py`.
"""

import struct
import zlib
from collections.abc import Iterator

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_NAME_BYTES_MAX, SCAN_MEMBERS_MAX
from sealpoint_models.scan._byte_source import Budget, Cursor, Member, Source
from sealpoint_models.scan._compressed_streams import unpack_deflate
from sealpoint_models.scan._torch_zip import ZipDirectory, ZipEntry, read_directory, shown

_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _DESCRIPTOR, _PATCHED, _STRONG, _MASKED = 0x0001, 0x0008, 0x0020, 0x0040, 0x2000
_REFUSED_FLAGS = {
    _ENCRYPTED: "an encrypted member",
    _PATCHED: "a member that is a patch",
    _STRONG: "a strongly encrypted member",
    _MASKED: "a member with a masked header",
}
_WIDE = 0xFFFFFFFF
_STEP_BYTES = 1 << 20


def zip_entries(source: Source, what: str) -> ZipDirectory:
    """The directory of a zip, each name of it once.

    Raises:
        ModelMalformed: The directory can be read in two ways.
        ModelLimitExceeded: It has too many members.
    """
    directory = read_directory(source.read, source.size, what)
    if len(directory.entries) > SCAN_MEMBERS_MAX:
        raise ModelLimitExceeded(
            f"{what}: expected at most {SCAN_MEMBERS_MAX} members, found {len(directory.entries)}"
        )
    names: set[str] = set()
    for entry in directory.entries:
        # Arrays may be called W and w: numpy reads them by their names, and both are looked at.
        folded = entry.name if entry.name.endswith(".npy") else entry.name.casefold()
        if folded in names:
            raise ModelMalformed(
                f"{what}: expected each name once, found {shown(entry.name)} twice"
            )
        names.add(folded)
    return directory


def zip_members(
    source: Source, directory: ZipDirectory, budget: Budget, what: str
) -> Iterator[Member]:
    """The members of a zip without folders, unpacked where they are compressed.

    Raises:
        ModelMalformed: A member can be read in two ways, or is not what its checksum says.
        ModelLimitExceeded: The budget is used up.
    """
    budget.member(what, len(directory.entries))
    at = 0
    for entry in sorted(directory.entries, key=lambda each: each.offset):
        if entry.offset != at:
            raise ModelMalformed(
                f"{what}: member {shown(entry.name)}: expected it at byte {at}, where the one "
                f"before it ends, found {entry.offset}"
            )
        cursor = Cursor(source, f"{what}: member {shown(entry.name)}", at)
        _check_header(cursor, entry)
        packed = source.window(cursor.at, entry.packed_bytes)
        cursor.skip(entry.packed_bytes)
        if entry.flags & _DESCRIPTOR:
            _descriptor(cursor, entry)
        at = cursor.at
        if at > directory.offset:
            raise cursor.fault("it to end before the directory")
        content = _content(packed, entry, budget, cursor.what)
        if entry.name.endswith("/") and not entry.size:
            continue
        yield Member(name=entry.name, source=content)
    if at != directory.offset:
        raise ModelMalformed(
            f"{what}: expected the directory right after the last member, found "
            f"{directory.offset - at} bytes between"
        )


def _check_header(cursor: Cursor, entry: ZipEntry) -> None:
    """Skip the local header, which has to agree with the directory."""
    for flag, found in _REFUSED_FLAGS.items():
        if entry.flags & flag:
            raise cursor.fault(f"a member that anybody can read, found {found}")
    if entry.method not in {_STORED, _DEFLATED}:
        raise cursor.fault(f"a member that is stored or deflated, found method {entry.method}")
    magic, _, flags, method, time, date, crc, packed, size, name_bytes, extra_bytes = cursor.unpack(
        _LOCAL
    )
    if name_bytes > MODEL_NAME_BYTES_MAX:
        raise cursor.fault(f"a name of at most {MODEL_NAME_BYTES_MAX} bytes")
    name = cursor.take(name_bytes)
    extra = cursor.take(extra_bytes)
    same = (
        magic == b"PK\x03\x04"
        and (flags, method, (time, date)) == (entry.flags, entry.method, entry.modified)
        and name == entry.name.encode()
    )
    if _WIDE in {size, packed}:
        size, packed = _wide_sizes(extra, size, packed)
    known = (crc, packed, size) == (entry.crc, entry.packed_bytes, entry.size)
    later = bool(flags & _DESCRIPTOR) and (crc, packed, size) == (0, 0, 0)
    if not same or not (known or later):
        raise cursor.fault("a header that agrees with the directory")


def _wide_sizes(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    """Sizes of 64 bits, from the field of a local header that has to hold both."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1 and length >= 16 and at + 20 <= len(extra):
            wide_size, wide_packed = struct.unpack_from("<2Q", extra, at + 4)
            return wide_size, wide_packed
        at += 4 + length
    return size, packed


def _descriptor(cursor: Cursor, entry: ZipEntry) -> None:
    """The descriptor after a content whose header was written before its size was known."""
    numbers = entry.crc, entry.packed_bytes, entry.size
    forms = [struct.pack("<L2Q", *numbers)]
    if max(numbers) < _WIDE:
        forms.insert(0, struct.pack("<3L", *numbers))
    for form in [b"PK\x07\x08" + each for each in forms] + forms:
        if cursor.rest >= len(form) and cursor.source.read(cursor.at, len(form)) == form:
            cursor.skip(len(form))
            return
    raise cursor.fault("a descriptor that agrees with the directory")


def _content(packed: Source, entry: ZipEntry, budget: Budget, what: str) -> Source:
    if entry.method == _DEFLATED:
        data = unpack_deflate(packed, budget, what, expected=entry.size)
        crc = zlib.crc32(data)
        content = Source.of(data)
    else:
        if entry.packed_bytes != entry.size:
            raise ModelMalformed(f"{what}: expected a stored member to have one size")
        crc = 0
        for at in range(0, packed.size, _STEP_BYTES):
            crc = zlib.crc32(packed.read(at, _STEP_BYTES), crc)
        content = packed
    if crc != entry.crc:
        raise ModelMalformed(f"{what}: expected the checksum {entry.crc:08x}, found {crc:08x}")
    return content
