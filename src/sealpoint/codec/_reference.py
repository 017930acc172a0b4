# SPDX-License-Identifier: Apache-2.0
"""References of the blob tree: what both halves, writing and reading, agree on.

A *reference* stands in the place of a long container or byte string. It says what it is, how many
members it has, how many bytes its chunks hold together, and their ids, below as many index levels
as it takes.
"""

import contextlib
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum, unique

from sealpoint.errors import UsageError

__all__ = ["ID_BYTES", "REFERENCE", "BlobId", "Get", "GetMany", "Put", "Stream", "id_bytes"]

BlobId = bytes | str
"""A blob's SHA-256: 32 bytes, or the same as 64 hexadecimal digits."""
Put = Callable[[bytes], BlobId]
Get = Callable[[BlobId], bytes]
GetMany = Callable[[Sequence[bytes]], Sequence[bytes]]

REFERENCE = struct.Struct(">BBIQ")
ID_BYTES = 32


@unique
class Stream(IntEnum):
    """What the joined chunks of a reference are."""

    VALUE = 0  # one whole encoding; only in a root blob, on its own
    LIST = 1
    MAP = 2
    TEXT = 3
    BYTES = 4


def id_bytes(name: object, where: str) -> bytes:
    """The bytes of an id in either form that callers may use."""
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
