# SPDX-License-Identifier: Apache-2.0
"""A blob store that really stores, and counts what is new to it."""

import hashlib

from sealpoint.codec._wire_format import BlobId


class Blobs:
    """Blobs by their SHA-256.

    Attributes:
        stored: Every blob by its name.
        written_bytes: The bytes of the blobs that were not there when they were put.
    """

    def __init__(self) -> None:
        self.stored: dict[bytes, bytes] = {}
        self.written_bytes = 0

    def put(self, blob: bytes) -> bytes:
        """Store a blob and return its name."""
        name = hashlib.sha256(blob).digest()
        if name not in self.stored:
            self.stored[name] = blob
            self.written_bytes += len(blob)
        return name

    def get(self, name: BlobId) -> bytes:
        """Return a blob, or raise `KeyError`."""
        return self.stored[name] if isinstance(name, bytes) else self.stored[bytes.fromhex(name)]


class Watched(Blobs):
    """A store that keeps the ids it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []

    def get(self, name: bytes | str) -> bytes:
        """Return a blob, or raise `KeyError`."""
        assert isinstance(name, bytes)
        self.asked.append(name)
        return super().get(name)
