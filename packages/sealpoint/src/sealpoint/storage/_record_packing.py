# SPDX-License-Identifier: Apache-2.0
"""Packed records for a database where each byte is stored, logged and sent to standbys.

An entry has about 1,000 bytes of JSON, which are mostly digests in hexadecimal digits and the names
of fields. Packed (DEFLATE, with the common parts of every entry as the dictionary) it takes less
than half, for a few microseconds. A part that would not get shorter is stored unpacked; the first
byte of each part shows which.

Stored bytes are not trusted: they are unpacked to no more than their bound, and anything that is
not a packed part is `Edited`. The caller verifies that it is the part which was packed.
"""

import zlib

from sealpoint.errors import Edited

_PLAIN, _DEFLATED = b"\0", b"\1"
_SHORT_BYTES = 32
_LEVEL, _WINDOW, _MEMORY = 1, -12, 5
"""A window of 4 KiB takes a third of the time to set up that the largest one does."""

_DICTIONARY = (
    b'{"salt":"","id":"","root":"","parent":"","task":"","path":"~__pregel_pull, __start__",'
    b'"owner":"worker","basis":,"checkpoint":"","release":"","policy":"",'
    b'"metadata":{"source":"loop","step":,"parents":{}}}[["","0123456789abcdef"]]'
    b'{"v":3,"store":"","epoch":0,"ns":"default","thread":"","gen":0,"seq":,"prev":"","skip":"",'
    b'"kind":"checkpoint","kind":"resume","kind":"writes","fence":,"pause":0,"owner":0,"roster":0,'
    b'"at":"2026-01-01T00:00:00.000000Z","by":"","enc":"none","body":""}'
)
"""Part of the format: bytes that were packed with it are unpacked with it."""

PACKED_BYTES_MORE = 1
"""How many bytes a packed part may have more than before."""


def pack(part: bytes) -> bytes:
    """Return the stored form of a part."""
    if len(part) > _SHORT_BYTES:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=_DICTIONARY)
        packed = packer.compress(part) + packer.flush()
        if len(packed) < len(part):
            return _DEFLATED + packed
    return _PLAIN + part


def unpack(data: bytes, bytes_max: int) -> bytes:
    """Return the original part.

    Raises:
        Edited: The data is not a packed part, or had more than `bytes_max` bytes.
    """
    first = data[:1]
    if first == _PLAIN:
        part = data[1:]
        if len(part) <= bytes_max:
            return part
    elif first == _DEFLATED:
        unpacker = zlib.decompressobj(_WINDOW, zdict=_DICTIONARY)
        try:
            part = unpacker.decompress(memoryview(data)[1:], bytes_max + 1)
        except zlib.error as exc:
            raise Edited("record: a part of it is not as it was packed") from exc
        if len(part) <= bytes_max and unpacker.eof and not unpacker.unused_data:
            return part
    raise Edited(f"record: a part of it is none of at most {bytes_max} bytes")
