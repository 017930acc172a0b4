# SPDX-License-Identifier: Apache-2.0
"""Objects that are met again: a chat is loaded and saved in every turn, and hardly changes.

A *cast* is taken of an object when it is encoded. It tells whether the object still says exactly
what it said then, so that its bytes can be used once more; and it makes another object of these
bytes when they are decoded again. Bytes that were not written here find no cast.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["Cast", "Caster", "Casts"]

_BYTES_MAX = 1024 * 1024


class Cast(Protocol):
    """What is known of one object."""

    def fits(self, value: Any) -> bool:
        """Whether the object that it was taken of is unchanged, in every part and every type."""
        ...

    def make(self) -> Any:
        """Another object that is equal to that one, and shares nothing with it that can change."""
        ...


Caster = Callable[[Any], Cast | None]
"""Takes a cast; None of an object whose changes it could not tell."""


class _Known(NamedTuple):
    value: Any
    cast: Cast
    data: bytes
    """The encoding, with its header."""


class Casts:
    """The casts of objects in the states of one thread, up to a bound."""

    __slots__ = ("_bytes", "_objects", "_payloads")

    def __init__(self) -> None:
        self._objects: dict[int, _Known] = {}
        self._payloads: dict[bytes, _Known] = {}
        self._bytes = 0

    def forget_objects(self) -> None:
        """A state is about to be loaded: objects of those before are not likely to be met again."""
        self._objects = {}

    def data_of(self, value: Any) -> bytes | None:
        """The encoding of an object that has not changed since it was last seen here."""
        found = self._objects.get(id(value))
        if found is None or found.value is not value or not found.cast.fits(value):
            return None
        return found.data

    def value_of(self, payload: bytes) -> Any:
        """A new object of a payload, or None: then it is to be decoded."""
        found = self._payloads.get(payload)
        if found is None:
            return None
        value = found.cast.make()
        self._objects[id(value)] = _Known(value, found.cast, found.data)
        return value

    def note(self, value: Any, cast: Cast, payload: bytes, data: bytes) -> None:
        """An object has been encoded after the cast was taken."""
        if not cast.fits(value):
            return  # somebody changed it meanwhile
        self._bytes += len(payload)
        if self._bytes > _BYTES_MAX:
            # Most of it is of states that have gone; what is still there is met again soon.
            self._objects, self._payloads, self._bytes = {}, {}, len(payload)
        self._objects[id(value)] = self._payloads[payload] = _Known(value, cast, data)
