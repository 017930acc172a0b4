# SPDX-License-Identifier: Apache-2.0
"""What every anchor promises.

An anchor remembers, outside the store, how far each thread was seen: whoever can write the store
cannot make the anchor forget. It keeps fixed-size positions under opaque keys and knows neither
names nor entries. `sealpoint.testing.conformance` tests every sentence below; `memory.py` is the
reference implementation.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

__all__ = ["RESERVED_SEQ", "Anchor", "Position"]

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

        The compare and the write MUST be one step for every process that shares the anchor.

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
