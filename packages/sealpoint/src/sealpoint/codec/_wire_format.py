# SPDX-License-Identifier: Apache-2.0
"""The layout of the bytes: MessagePack headers, and the closed table of extension tags.

This module writes only what the native engine (`ormsgpack`) does not offer: headers for containers
whose members are already encoded, and the place of the payload in a leading extension.

It also defines references of the blob tree, for both writing and reading. A *reference* replaces a
long container or byte string. It states the type, the number of members, the total number of bytes
in the chunks, and the ids of the chunks, below as many index levels as necessary.

Finally, it defines what the encoders and decoders of single types may use of the current encoding
or decoding.
"""

import contextlib
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum, unique
from struct import Struct
from typing import Any, Protocol

from sealpoint.errors import BytesMalformed, UsageError
from sealpoint.limits import Limits

TIMESTAMP = -1
"""MessagePack's own tag for a time in UTC; the engine reads it without our hook."""


@unique
class Tag(IntEnum):
    """The extension tags of the format. A number, once assigned, keeps its meaning forever."""

    TYPED = 1
    REFERENCE = 2
    BIG_INT = 3
    SURROGATE_TEXT = 4
    PAIRS = 5
    TUPLE = 6
    SET = 7
    FROZENSET = 8
    COMPLEX = 9
    DATETIME = 10
    DATE = 11
    TIME = 12
    TIMEDELTA = 13
    DECIMAL = 14
    FRACTION = 15
    UUID = 16
    PATH = 17
    ADDRESS = 18
    DEQUE = 19
    ORDERED_DICT = 20
    DEFAULT_DICT = 21
    RANGE = 22
    SLICE = 23
    ZONE = 24
    ARRAY = 32
    ARRAY_SCALAR = 33
    TENSOR = 34


FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_EXTENSION_8 = Struct(">BBB")
_EXTENSION_16 = Struct(">BHB")
_EXTENSION_32 = Struct(">BIB")
_FIXED_FIRST = {size: first for first, size in FIXED_EXTENSIONS.items()}
SIZED_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}

# Other first bytes: this many bytes follow; or a length of this many bytes and then the content; or
# a count of this many bytes and then members.
FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
COUNTED = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def array_header(count: int) -> bytes:
    """Return the header of an array of `count` members."""
    if count < 16:
        return bytes((0x90 | count,))
    if count < 1 << 16:
        return b"\xdc" + count.to_bytes(2, "big")
    return b"\xdd" + count.to_bytes(4, "big")


def map_header(count: int) -> bytes:
    """Return the header of a map of `count` pairs."""
    if count < 16:
        return bytes((0x80 | count,))
    if count < 1 << 16:
        return b"\xde" + count.to_bytes(2, "big")
    return b"\xdf" + count.to_bytes(4, "big")


def bytes_header(size_bytes: int) -> bytes:
    """Return the header of a byte string."""
    if size_bytes < 1 << 8:
        return bytes((0xC4, size_bytes))
    if size_bytes < 1 << 16:
        return b"\xc5" + size_bytes.to_bytes(2, "big")
    return b"\xc6" + size_bytes.to_bytes(4, "big")


def extension_header(tag: Tag, size_bytes: int) -> bytes:
    """Return the header of an extension payload."""
    if 1 << 8 <= size_bytes < 1 << 16:
        return _EXTENSION_16.pack(0xC8, size_bytes, tag)
    if size_bytes in _FIXED_FIRST:
        return bytes((_FIXED_FIRST[size_bytes], tag))
    if size_bytes < 1 << 8:
        return _EXTENSION_8.pack(0xC7, size_bytes, tag)
    return _EXTENSION_32.pack(0xC9, size_bytes, tag)


def leading_extension(data: bytes) -> tuple[int, int] | None:
    """Find the extension that `data` consists of.

    Returns:
        Its tag and where its payload starts (the payload runs to the end of `data`), or None if
        `data` begins with something else.

    Raises:
        BytesMalformed: The extension ends before or after `data` does.
    """
    first = data[0] if data else 0
    if (fixed := FIXED_EXTENSIONS.get(first)) is not None:
        start, size = 2, fixed
    elif (width := SIZED_EXTENSIONS.get(first)) is not None:
        start, size = 2 + width, int.from_bytes(data[1 : 1 + width], "big")
    else:
        return None
    if start + size != len(data):
        message = f"extension: expected {start + size} bytes in all, found {len(data)}"
        raise BytesMalformed(message)
    return data[start - 1], start


BlobId = bytes | str
"""A blob's SHA-256: 32 bytes, or the same as 64 hexadecimal digits."""
Put = Callable[[bytes], BlobId]
Get = Callable[[BlobId], bytes]
GetMany = Callable[[Sequence[bytes]], Sequence[bytes]]

REFERENCE = struct.Struct(">BBIQ")
ID_BYTES = 32


@unique
class Stream(IntEnum):
    """The type of the joined chunks of a reference."""

    VALUE = 0  # one whole encoding; only in a root blob, on its own
    LIST = 1
    MAP = 2
    TEXT = 3
    BYTES = 4


STREAMS = {int(stream): stream for stream in Stream}
CHUNK_BYTES_MIN = 64
"""A reader accepts at most the number of chunks of this length that would fit, plus one."""


def split_ids(data: bytes) -> list[bytes]:
    """Split consecutive ids.

    Raises:
        BytesMalformed: There are none, or the last one is incomplete.
    """
    if not data or len(data) % ID_BYTES:
        raise BytesMalformed(f"blob ids: expected a multiple of {ID_BYTES} bytes")
    return [data[place : place + ID_BYTES] for place in range(0, len(data), ID_BYTES)]


def id_bytes(name: object, where: str) -> bytes:
    """Return the bytes of an id in either form that callers may use."""
    if isinstance(name, str) and len(name) == 2 * ID_BYTES:
        with contextlib.suppress(ValueError):
            raw = bytes.fromhex(name)
            if raw.hex() == name:
                return raw
    if isinstance(name, bytes) and len(name) == ID_BYTES:
        return name
    raise UsageError(
        f"{where}: expected a blob's SHA-256 (32 bytes, or 64 hexadecimal digits), "
        f"found {type(name).__name__} of another form"
    )


class Costs(Protocol):
    """The cost of a value so far, and its limits."""

    def costly(self) -> None:
        """Count a value that costs much more than its bytes. MUST refuse more than the limit."""
        ...

    def check_keys(self, keys: Sequence[Any], *, in_set: bool = False) -> None:
        """Check keys. MUST refuse application code in their hash or equality, and collisions."""
        ...


class Packer(Protocol):
    """One encoding in progress, flat or as a tree."""

    limits: Limits

    @property
    def bounds(self) -> Costs:
        """The cost of the whole value so far."""
        ...

    def pack(self, value: Any) -> bytes:
        """Encode a nested value. MUST refuse nesting beyond `limits.extension_depth_max`."""
        ...

    def pack_raw(self, raw: memoryview) -> bytes:
        """Encode the raw bytes of an array. MAY give up if only a short result is useful."""
        ...

    def pack_items(self, parts: Sequence[bytes]) -> bytes:
        """Encode an array whose members are already encoded."""
        ...


class Unpacker(Protocol):
    """One decoding in progress, flat or as a tree."""

    limits: Limits

    @property
    def bounds(self) -> Costs:
        """The cost of the whole value so far; keys are checked before they are put into a table."""
        ...

    def unpack(self, payload: bytes | memoryview) -> Any:
        """Decode a nested value that is exactly `payload`, with nothing after it.

        MUST refuse nesting beyond `limits.extension_depth_max`.
        """
        ...

    def unpack_into(
        self, payload: bytes | memoryview, size_bytes: int, allocate: Callable[[], memoryview]
    ) -> None:
        """Decode a byte string into memory. MUST refuse another length before allocating."""
        ...

    def check_level(self) -> None:
        """Check the level. MUST refuse what `unpack` would, for a payload decoded without it."""
        ...
