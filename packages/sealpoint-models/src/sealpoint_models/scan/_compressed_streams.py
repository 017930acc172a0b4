# SPDX-License-Identifier: Apache-2.0
"""Compressed streams, unpacked in memory and within a budget, and tar archives.

A stream is one stream and nothing else: another one after it, or any byte, is refused, because some
readers continue and others stop. Where it has a length or a checksum, the libraries verify it. A
tar is read member by member, in the order of the file: regular files and folders only, including
the checksums of headers and the two empty blocks at its end.

It refuses links, devices, sparse files and all other features of a tar beyond names and sizes; and
data that Python's `tarfile` reads differently: names that are given twice or for all members,
fields of a header that are not numbers, bytes that fill up a block.
"""

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from sealpoint.errors import ModelMalformed, SealpointError
from sealpoint.limits import MODEL_NAME_BYTES_MAX
from sealpoint_models.scan._byte_source import Budget, Cursor, Member, Source
from sealpoint_models.scan._torch_zip import shown

_STEP_BYTES = 1 << 16
_OUTPUT_BYTES = 1 << 20


class StreamUnpacker(Protocol):
    """The common interface of Python's decompressors."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was reached."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The bytes after the stream."""
        ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """At most this many more bytes; called again without input for the rest."""
        ...


class _Zlib:
    """Zlib's object in the form of the others."""

    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


STREAMS: dict[str, Callable[[], StreamUnpacker]] = {
    "gzip": lambda: _Zlib(zlib.MAX_WBITS | 16),
    "zlib": lambda: _Zlib(zlib.MAX_WBITS),
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=128 << 20),
    "lzma": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=128 << 20),
}
"""Every compression that is unpacked, by the name of the format."""


def unpack_stream(source: Source, kind: str, budget: Budget, what: str) -> bytes:
    """The content of a compressed stream.

    Raises:
        ModelMalformed: It is not such a stream, or has data after it.
        ModelLimitExceeded: The budget is used up.
    """
    return _unpack(source, STREAMS[kind](), budget, what)


def unpack_deflate(source: Source, budget: Budget, what: str, *, expected: int) -> bytes:
    """The content of a deflated member of a zip: as many bytes as its entry says.

    Raises:
        ModelMalformed: It is not such a stream, or has another size.
        ModelLimitExceeded: The budget is used up.
    """
    data = _unpack(source, _Zlib(-zlib.MAX_WBITS), budget, what)
    if len(data) != expected:
        raise ModelMalformed(f"{what}: expected {expected} bytes unpacked, found {len(data)}")
    return data


def _unpack(source: Source, unpacker: StreamUnpacker, budget: Budget, what: str) -> bytes:
    parts: list[bytes] = []
    at = 0
    pending = b""
    try:
        while not unpacker.eof:
            part = unpacker.decompress(pending, _OUTPUT_BYTES)
            pending = b""
            if part:
                budget.unpack(len(part), what)
                parts.append(part)
            elif not unpacker.eof:
                pending = source.read(at, _STEP_BYTES)
                at += len(pending)
                if not pending:
                    raise ModelMalformed(f"{what}: expected more, found the end of the stream")
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as exc:
        raise ModelMalformed(f"{what}: its compressed bytes cannot be unpacked") from exc
    rest = len(unpacker.unused_data) + source.size - at
    if rest:
        raise ModelMalformed(f"{what}: expected one stream, found {rest} bytes after it")
    return b"".join(parts)


_TORCH_NAMES = frozenset({"pickle", "storages", "tensors"})
_BLOCK = 512
_FOLDER, _LONG_NAME, _PAX, _PAX_ALL = b"5", b"L", b"x", b"g"
_PAX_PATH = b"path"
_PAX_KEYS = frozenset(b"mtime atime ctime uid gid uname gname".split()) | {_PAX_PATH}
_PAX_FIELD = re.compile(rb"([1-9][0-9]{0,4}) ([a-z]{1,5})=")
_SIZE, _CHECKSUM = slice(124, 136), slice(148, 156)
_NUMBERS = [slice(100, 108), slice(108, 116), slice(116, 124), slice(136, 148)]
_NUMBERS += [slice(329, 337), slice(337, 345)]
"""The other number fields of a header: if one is invalid, Python rejects the header."""


def is_tar(block: bytes) -> bool:
    """Whether any reader takes a block as the header of a tar: its checksum is right.

    Python accepts more spellings of it than writers have, and the sum of signed bytes as well.
    """
    if len(block) < _BLOCK or not any(block):
        return False
    said = _number(block[_CHECKSUM])
    if said is None:
        return False
    counted = block[:148] + b" " * 8 + block[156:_BLOCK]
    unsigned = sum(counted)
    return said == unsigned or said == unsigned - 256 * sum(byte > 127 for byte in counted)


def _number(field: bytes) -> int | None:
    if field[0] in {0o200, 0o377}:  # the extension of GNU for long numbers
        most = 256 ** (len(field) - 1)
        return int.from_bytes(field[1:], "big") - (most if field[0] == 0o377 else 0)
    try:
        # As a text: of bytes, Python strips fewer characters.
        return int(field.partition(b"\x00")[0].decode("ascii").strip() or "0", 8)
    except ValueError:
        return None


def tar_members(source: Source, budget: Budget, what: str) -> Iterator[Member]:
    """The regular files of a tar, in its order.

    Raises:
        ModelMalformed: It breaks a rule of the format, or holds anything other than files.
        ModelLimitExceeded: It has too many members.
    """
    cursor = Cursor(source, what)
    names: set[str] = set()
    folders: set[str] = set()
    for kind, short, member in _named(cursor, budget):
        name = member.name
        if kind == _FOLDER and not member.source.size:
            folders.add(name.rstrip("/"))
            continue
        # Some readers take a member with the name of a folder as a folder, and its content as the
        # next members.
        if kind not in {b"0", b"\x00"} or "/" in (name[-1:], short[-1:]):
            raise cursor.fault(f"{shown(name)} to be a file, found kind {kind!r}")
        if name in names:
            raise cursor.fault(f"each name once, found {shown(name)} twice")
        names.add(name)
        yield member
    if folders & names:
        raise cursor.fault("no folder of the name of a file")
    _check_end(cursor)


def is_torch_tar(source: Source, what: str) -> bool:
    """Whether a tar has the files of torch before 0.1.10; no code here reads them."""
    try:
        names = {member.name for member in tar_members(source, Budget(source.size), what)}
    except SealpointError:
        return False
    return names >= _TORCH_NAMES


def _named(cursor: Cursor, budget: Budget) -> Iterator[tuple[bytes, str, Member]]:
    """Every named member, with its kind and the name in its header, which may be truncated."""
    long_name: str | None = None
    is_member = True
    for block, begin, content in _blocks(cursor, budget):
        kind = block[156:157]
        is_member = kind not in {_LONG_NAME, _PAX, _PAX_ALL}
        if is_member:
            # A truncated name may end in the middle of a character.
            short = _short_name(block, cursor, "strict" if long_name is None else "replace")
            name = short if long_name is None else long_name
            yield kind, short, Member(name=name, source=content, offset=begin)
            long_name = None
        elif (found := _long_name(content, kind, cursor)) is not None:
            if long_name is not None:
                raise cursor.fault("one name of a member")
            long_name = found
    if not is_member:
        raise cursor.fault("a member after what is said about it")


def _blocks(cursor: Cursor, budget: Budget) -> Iterator[tuple[bytes, int, Source]]:
    """Each header, its end, and its subject, up to an empty block."""
    while any(block := cursor.take(_BLOCK)):
        budget.member(cursor.what)
        if not is_tar(block) or None in [_number(block[field]) for field in _NUMBERS]:
            raise cursor.fault("the header of a member, with its checksum")
        size = _octal(block[_SIZE], cursor)
        begin = cursor.at
        cursor.skip(size)
        if any(cursor.take(-size % _BLOCK)):
            raise cursor.fault("zeros up to the next block")
        yield block, begin, cursor.source.window(begin, size)


def _check_end(cursor: Cursor) -> None:
    """Nothing but zeros follows: a reader that skips empty blocks would find more."""
    while cursor.rest:
        if any(cursor.take(min(cursor.rest, _STEP_BYTES))):
            raise cursor.fault("zeros after the end of the tar")


def _octal(field: bytes, cursor: Cursor) -> int:
    digits = field.rstrip(b" \x00")
    if not digits.isdigit():
        raise cursor.fault("a size in octal digits")
    try:
        return int(digits, 8)
    except ValueError as exc:
        raise cursor.fault("a size in octal digits") from exc


def _short_name(block: bytes, cursor: Cursor, errors: str) -> str:
    name = block[:100].partition(b"\x00")[0]
    if prefix := block[345:500].partition(b"\x00")[0]:
        if block[257:263] != b"ustar\x00":  # some readers take it for times
            raise cursor.fault("the whole name of a member in one place")
        name = prefix + b"/" + name
    return _text(name, cursor, errors)


def _text(name: bytes, cursor: Cursor, errors: str = "strict") -> str:
    try:
        return name.decode("utf-8", errors)
    except UnicodeDecodeError as exc:
        raise cursor.fault("a name in UTF-8") from exc


def _long_name(content: Source, kind: bytes, cursor: Cursor) -> str | None:
    """A name that does not fit into a header: of GNU, or among the fields of POSIX."""
    if content.size > 4 * MODEL_NAME_BYTES_MAX:
        raise cursor.fault(f"a name of at most {4 * MODEL_NAME_BYTES_MAX} bytes")
    data = content.read(0, content.size)
    if kind == _LONG_NAME:
        return _text(data.partition(b"\x00")[0], cursor)
    left = {*_PAX_KEYS} if kind == _PAX else _PAX_KEYS - {_PAX_PATH}
    found, at = None, 0
    while at < len(data):
        field = _PAX_FIELD.match(data, at)
        end = 0 if field is None else at + int(field[1])
        if field is None or field[2] not in left or data[end - 1 : end] != b"\n":
            raise cursor.fault("fields for names and times in a header of POSIX, each once")
        left -= {field[2]}
        if field[2] == _PAX_PATH:
            found = _text(data[field.end() : end - 1], cursor)
        at = end
    return found
