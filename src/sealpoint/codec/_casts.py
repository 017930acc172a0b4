# SPDX-License-Identifier: Apache-2.0
"""Objects that are met again: a chat is loaded and saved in every turn, and hardly changes.

A *cast* is taken of an object when it is encoded: what is encoded is what the cast makes, so that
they agree even if somebody changes the object meanwhile. It tells whether the object still says
exactly that, so that the bytes can be used once more; and it makes another object of the bytes
when they are decoded again. Bytes that were not written here find no cast.
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


def cast_of(value: Any, caster: Caster) -> Cast | None:
    """The cast of an object, or None."""
    try:
        return caster(value)
    except Exception:  # noqa: BLE001 - whatever it is, the rule says it better
        return None


class _Known(NamedTuple):
    value: Any
    kind: type
    cast: Cast
    data: bytes
    """The encoding, with its header."""


class Casts:
    """The casts of objects in the states of one thread, up to a bound."""

    __slots__ = ("_bytes", "_made_bytes", "_objects", "_payloads")

    def __init__(self) -> None:
        self._objects: dict[int, _Known] = {}
        self._payloads: dict[bytes, _Known] = {}
        self._bytes = self._made_bytes = 0

    def forget_objects(self) -> None:
        """A state is about to be loaded: objects of those before are not likely to be met again."""
        self._objects, self._made_bytes = {}, 0

    def data_of(self, value: Any) -> bytes | None:
        """The encoding of an object that has not changed since it was last seen here."""
        found = self._objects.get(id(value))
        if found is None or found.value is not value or type(value) is not found.kind:
            return None
        try:
            return found.data if found.cast.fits(value) else None
        except Exception:  # noqa: BLE001 - whatever it is, the rule says it better
            return None

    def value_of(self, payload: bytes) -> Any:
        """A new object of a payload, or None: then it is to be decoded."""
        found = self._payloads.get(payload)
        if found is None:
            return None
        value = found.cast.make()
        self._made_bytes += len(payload)
        if self._made_bytes <= _BYTES_MAX:
            self._objects[id(value)] = _Known(value, found.kind, found.cast, found.data)
        return value

    def note(self, value: Any, cast: Cast, payload: bytes, data: bytes) -> None:
        """What the cast of an object makes has been encoded."""
        self._bytes += len(payload)
        if self._bytes > _BYTES_MAX:
            # Most of it is of states that have gone; what is still there is met again soon.
            self._objects, self._payloads, self._bytes = {}, {}, len(payload)
        known = _Known(value, type(value), cast, data)
        self._objects[id(value)] = self._payloads[payload] = known
