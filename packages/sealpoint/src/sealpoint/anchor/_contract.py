# SPDX-License-Identifier: Apache-2.0
"""The contract of every anchor.

An anchor records, outside the store, the newest known position of each thread: an attacker who can
write the store cannot make the anchor forget. It keeps fixed-size positions under opaque keys and
knows neither names nor entries. A position carries three marks: the newest session, pause and owner
entry of the thread. Because of these marks, a member of the roster who moves the anchor forward to
an entry of its own cannot omit a pause, a handoff or a session that the anchor has seen.
`sealpoint_testing.conformance` tests every sentence below; `memory.py` is the reference
implementation.

An anchor also knows which threads have a live run, so that a second run is refused before it does
anything. The anchor keeps this, and not the store, because an attacker who can write the store
could otherwise make two workers act on one answer. It is not signed, because it protects nothing
against a worker.

Every anchor refuses the same calls, with the functions of `_position_rules.py`: they check
fixed-size fields before the anchor stores them, so that nothing is truncated or padded on the way
into a slot.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

import msgspec

RESERVED_SEQ = -1


class Position(msgspec.Struct, frozen=True):
    """The newest known position of one thread. A struct, since every read compares some."""

    thread: bytes
    """16 bytes: the thread's id."""
    epoch: int
    gen: int
    seq: int
    """The sequence number of the newest entry seen, or RESERVED_SEQ: an id was given to a name, and
    no entry has been seen yet."""
    entry: bytes
    """32 bytes: the hash of that entry; zeros while reserved."""
    erased: bool = False
    """Whether the thread was erased on purpose at this position."""
    fence: int = RESERVED_SEQ
    """The newest entry seen that begins or ends a session; RESERVED_SEQ: none yet."""
    pause: int = RESERVED_SEQ
    """The newest entry seen that decides whether the thread is paused."""
    owner: int = RESERVED_SEQ
    """The newest entry seen that decides who owns the thread."""
    owner_entry: bytes = bytes(32)
    """32 bytes: the hash of that entry."""
    paused: bool = False
    """Whether the thread was paused at this position, which a restore plan shows."""

    @property
    def reserved(self) -> bool:
        """Whether the slot only reserves an id for a name."""
        return self.seq == RESERVED_SEQ


class Holder(msgspec.Struct, frozen=True):
    """The holder of a thread's run."""

    who: str
    """The identity of the worker that runs it."""
    since: datetime
    living: bool = True
    """False: its process ended before the run did."""


class Hold(Protocol):
    """The right of a run to a thread, for as long as its process is alive."""

    @property
    def left(self) -> bool:
        """Whether the previous run's process ended before the run did, as `holder` reports it."""
        ...

    def end(self, *, begun: bool = True) -> None:
        """End the run. Ending twice is allowed, and so is ending after `close`.

        This MUST NOT raise on failure: the thread then becomes free when the process ends, at the
        latest. After a fork the hold belongs to the parent: ending it in the child MUST change
        nothing.

        Args:
            begun: False: nothing of the run was executed. Then `holder` answers as if its process
                had ended, so that an earlier run that ended that way is not forgotten.
        """
        ...


class Anchor(Protocol):
    """Positions by slot. A slot is 32 bytes that nobody without the secret can compute.

    Every method MAY be called from any OS thread, and several processes MAY share one anchor (an
    anchor that does not support this says so in its docstring). Any failure MUST be
    `AnchorUnavailable`, with the cause chained; an anchor never answers "unknown" because it could
    not look.
    """

    def get(self, slot: bytes) -> Position | None:
        """Return the position in a slot, or None if there never was one.

        It MUST be a position that was written, never a mixture of two, and MUST NOT be older than
        any that was returned or acknowledged to this process before.
        """
        ...

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent.

        Returns:
            The current content of the slot: `position`, or the earlier position, which stays.
        """
        ...

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position`; a slot that holds anything else MUST stay as it is.

        The compare and the write MUST be one step for every process that shares the anchor. An
        anchor MAY rely on rising positions: `is_behind(expected, position)` holds, or both name the
        same entry. It MUST refuse a position of another thread, unless `expected` is reserved. It
        MUST refuse an epoch that decreases. Unless the epoch increases, it MUST also refuse a
        sequence number that decreases, another entry at the same place, a mark that decreases, and
        another `paused` or owner's entry under the same mark (`require_rising`).

        Returns:
            The current content of the slot: `position` if it was written.

        Raises:
            AnchorUnavailable: Also if the slot is absent.
        """
        ...

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Iterate over every slot and its position, in any order."""
        ...

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Give a thread to a run.

        Of all the calls by all the processes that share the anchor, only one at a time MUST get the
        hold, until it ends the hold or its process ends. An anchor that cannot see a process end
        MUST find out within `RUN_LEASE_SECONDS`. The slot need not have a position.

        Args:
            slot: The slot of the thread.
            holder: The holder of the run.
            instead: Take the thread from its current holder; the end of that run then changes
                nothing.

        Returns:
            The hold, or the current holder.
        """
        ...

    def holder(self, slot: bytes) -> Holder | None:
        """Return the holder of a thread, also if its process ended first; None: no run has it."""
        ...

    def close(self) -> None:
        """Release everything. Closing twice is allowed; any other call afterwards is an error."""
        ...
