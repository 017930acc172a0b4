# SPDX-License-Identifier: Apache-2.0
"""What every anchor promises.

An anchor remembers, outside the store, how far each thread was seen: whoever can write the store
cannot make the anchor forget. It keeps fixed-size positions under opaque keys and knows neither
names nor entries. `sealpoint.testing.conformance` tests every sentence below; `memory.py` is the
reference implementation.

Every anchor refuses the same calls, by the functions at the end: fixed-size fields are checked
before they are kept, so that nothing is cut off or padded on the way into a slot.
"""

from collections.abc import Iterator
from typing import NoReturn, Protocol

import msgspec

from sealpoint.errors import UsageError

RESERVED_SEQ = -1


class Position(msgspec.Struct, frozen=True):
    """How far one thread was seen. A struct, since every read makes and compares some."""

    thread: bytes
    """16 bytes: the thread's id."""
    epoch: int
    gen: int
    seq: int
    """The sequence number of the newest entry seen, or RESERVED_SEQ: an id was given to a name,
    and no entry has been seen yet."""
    entry: bytes
    """32 bytes: the hash of that entry; zeros while reserved."""
    erased: bool = False
    """The thread was erased on purpose at this position."""

    @property
    def reserved(self) -> bool:
        """Whether a name has been given an id and nothing more."""
        return self.seq == RESERVED_SEQ


class Anchor(Protocol):
    """Positions by slot. A slot is 32 bytes that nobody without the secret can compute.

    Every method MAY be called from any OS thread, and several processes MAY share one anchor (an
    anchor that cannot says so in its docstring). Any failure MUST be `AnchorUnavailable`, with
    the cause chained; an anchor never answers "unknown" because it could not look.
    """

    def get(self, slot: bytes) -> Position | None:
        """The position in a slot, or None if there never was one.

        It MUST be a position that was written, never a mixture of two, and MUST NOT be older than
        any that was returned or acknowledged to this process before.
        """
        ...

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent.

        Returns:
            What the slot holds now: `position`, or what was there before and stays.
        """
        ...

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position`; a slot that holds anything else MUST stay as it is.

        The compare and the write MUST be one step for every process that shares the anchor. An
        anchor MAY rely on it that positions rise: `is_behind(expected, position)`.

        Returns:
            What the slot holds now: `position` if it was written.

        Raises:
            AnchorUnavailable: Also if the slot is absent.
        """
        ...

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Every slot with its position, in any order. The store compares its threads with them."""
        ...

    def close(self) -> None:
        """Release everything. Closing twice is allowed; any other call afterwards is an error."""
        ...


def is_behind(position: Position, other: Position) -> bool:
    """Whether one position of a slot comes before another: by restores, then by entries."""
    return (position.epoch, position.seq) < (other.epoch, other.seq)


_SLOT_BYTES = 32
_NO_SLOT = bytes(_SLOT_BYTES)
_THREAD_BYTES = 16
_ENTRY_BYTES = 32
_COUNT_MAX = 2**32 - 1
_SEQ_MAX = 2**63 - 1


def require_slot(slot: bytes) -> None:
    """Refuse what cannot be a slot.

    Raises:
        UsageError: It is not 32 bytes, or it is 32 zeros, which no keyed hash gives.
    """
    if len(slot) != _SLOT_BYTES:
        raise UsageError(f"anchor slot: expected {_SLOT_BYTES} bytes, found {len(slot)}")
    if slot == _NO_SLOT:
        raise UsageError("anchor slot: expected the output of a keyed hash, found only zeros")


def require_position(position: Position) -> None:
    """Refuse what cannot be a position.

    Raises:
        UsageError: A field has another length, or is outside its range.
    """
    if (
        len(position.thread) == _THREAD_BYTES
        and len(position.entry) == _ENTRY_BYTES
        and 0 <= position.epoch <= _COUNT_MAX
        and 0 <= position.gen <= _COUNT_MAX
        and RESERVED_SEQ <= position.seq <= _SEQ_MAX
    ):
        return
    _refuse(position)


def _refuse(position: Position) -> NoReturn:
    for field, found, expected in (
        ("thread", len(position.thread), _THREAD_BYTES),
        ("entry", len(position.entry), _ENTRY_BYTES),
    ):
        if found != expected:
            raise UsageError(
                f"anchor position: expected {expected} bytes of {field}, found {found}"
            )
    raise UsageError(
        f"anchor position: expected epoch and gen from 0 to {_COUNT_MAX} and seq from "
        f"{RESERVED_SEQ} to {_SEQ_MAX}, found {position.epoch}, {position.gen}, {position.seq}"
    )
