# SPDX-License-Identifier: Apache-2.0
"""Typed ids: digests, stores, threads, checkpoints and keys.

An id is bytes of a fixed length. Its text is a prefix for its kind, a colon, and lower-case
hexadecimal digits, so that an id of one kind is never mistaken for another. Parsing is a round
trip: a text that would not print back to itself is refused. Ids of different kinds are never equal.
This module reads no clock and no source of randomness; callers provide both.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

from sealpoint.errors import IdMalformed

__all__ = ["CheckpointId", "Digest", "KeyId", "StoreId", "ThreadId", "namespace_tag"]

_SHORT_DIGITS = 12
_FOUND_CHARS_MAX = 40


@dataclass(frozen=True, slots=True, order=True)
class _Id:
    """Bytes of a fixed length with a prefix for the kind."""

    prefix: ClassVar[str]
    size_bytes: ClassVar[int]

    raw: bytes

    def __post_init__(self) -> None:
        raw: object = self.raw
        if type(raw) is not bytes or len(raw) != self.size_bytes:
            found = f"{len(raw)} bytes" if isinstance(raw, bytes) else type(raw).__name__
            message = f"{self.prefix} id: expected {self.size_bytes} bytes, found {found}"
            raise IdMalformed(message)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form.

        Raises:
            IdMalformed: The text is not exactly what `str` prints for an id of this kind.
        """
        expected = f"expected {cls.prefix}: and {2 * cls.size_bytes} lower-case hexadecimal digits"
        prefix, _, digits = text.partition(":")
        if prefix != cls.prefix or len(digits) != 2 * cls.size_bytes:
            message = f"{cls.prefix} id: {expected}, found {text[:_FOUND_CHARS_MAX]!r}"
            raise IdMalformed(message)
        try:
            found = cls(bytes.fromhex(digits))
        except ValueError as exc:
            message = f"{cls.prefix} id: {expected}, found a character that is not one of them"
            raise IdMalformed(message) from exc
        if str(found) != text:
            message = f"{cls.prefix} id: {expected}, found {found}, which is spelled otherwise"
            raise IdMalformed(message)
        return found

    def short(self) -> str:
        """Return the first digits, for people to compare; never parsed back."""
        return self.raw.hex()[:_SHORT_DIGITS]

    def __str__(self) -> str:
        return f"{self.prefix}:{self.raw.hex()}"


class Digest(_Id):
    """The SHA-256 of some bytes: the name of a blob, an entry or a body."""

    __slots__ = ()
    prefix = "sha256"
    size_bytes = 32

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Digest `data`."""
        return cls(hashlib.sha256(data).digest())


class StoreId(_Id):
    """A store: 128 random bits, drawn when it is initialized."""

    __slots__ = ()
    prefix = "store"
    size_bytes = 16

    @classmethod
    def draw(cls, random_bytes: Callable[[int], bytes]) -> Self:
        """Make a new id from a source of randomness such as `os.urandom`."""
        return cls(random_bytes(cls.size_bytes))


NAMESPACE_TAG_BYTES = 4


def namespace_tag(namespace: str) -> bytes:
    """Return the first bytes of the ids of a namespace's threads.

    A database can use it to separate the rows of namespaces without knowing any namespace. It
    proves nothing: an entry names its namespace itself, and signs it.
    """
    return hashlib.sha256(b"sealpoint namespace\0" + namespace.encode()).digest()[
        :NAMESPACE_TAG_BYTES
    ]


class ThreadId(_Id):
    """A thread: the tag of its namespace and 96 random bits, drawn at its genesis."""

    __slots__ = ()
    prefix = "thread"
    size_bytes = 16

    @classmethod
    def draw(cls, random_bytes: Callable[[int], bytes], namespace: str) -> Self:
        """Make a new id from a source of randomness such as `os.urandom`."""
        tag = namespace_tag(namespace)
        return cls(tag + random_bytes(cls.size_bytes - len(tag)))


class CheckpointId(_Id):
    """A checkpoint that its caller did not name: 128 random bits."""

    __slots__ = ()
    prefix = "checkpoint"
    size_bytes = 16

    @classmethod
    def draw(cls, random_bytes: Callable[[int], bytes]) -> Self:
        """Make a new id from a source of randomness such as `os.urandom`."""
        return cls(random_bytes(cls.size_bytes))


class KeyId(_Id):
    """A public key: the SHA-256 of its bytes."""

    __slots__ = ()
    prefix = "key"
    size_bytes = 32

    @classmethod
    def of(cls, public_key: bytes) -> Self:
        """Return the id of a public key."""
        return cls(hashlib.sha256(public_key).digest())
