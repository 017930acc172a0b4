# SPDX-License-Identifier: Apache-2.0
"""What every anchor promises.

An anchor remembers, outside the store, how far each thread was seen: an attacker who can write the
store cannot make the anchor forget. It keeps fixed-size positions under opaque keys and knows
neither names nor entries. A position carries three marks, the newest session, pause and owner entry
of the thread: a member of the roster who moves the anchor forward to an entry of its own cannot
leave out a pause, a handoff or a session that the anchor has seen. `sealpoint_testing.conformance`
tests every sentence below; `memory.py` is the reference implementation.

It also knows which threads have a run that lives, so that a second one is refused before it does
anything. That is kept here and not in the store, because whoever can write the store could make two
workers act on one answer; and it is not signed, because it protects nothing from a worker.

Every anchor refuses the same calls, by the functions at the end: fixed-size fields are checked
before they are kept, so that nothing is cut off or padded on the way into a slot.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NoReturn, Protocol

import msgspec

from sealpoint.errors import UsageError
from sealpoint.limits import NAME_BYTES_MAX

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
    fence: int = RESERVED_SEQ
    """The newest entry seen that begins or ends a session; RESERVED_SEQ: none yet."""
    pause: int = RESERVED_SEQ
    """The newest entry seen that settles whether the thread is paused."""
    owner: int = RESERVED_SEQ
    """The newest entry seen that settles who owns the thread."""
    owner_entry: bytes = bytes(32)
    """32 bytes: the hash of that entry."""
    paused: bool = False
    """The thread was paused at this position: whoever plans a restore is told."""

    @property
    def reserved(self) -> bool:
        """Whether a name has been given an id and nothing more."""
        return self.seq == RESERVED_SEQ


class Holder(msgspec.Struct, frozen=True):
    """Whose run a thread has."""

    who: str
    """The identity that runs it."""
    since: datetime
    living: bool = True
    """False: its process has ended, and not the run before it."""


class Hold(Protocol):
    """That a run has a thread, for as long as its process lives."""

    @property
    def left(self) -> bool:
        """Whether the run before it ended with its process, as `holder` would have told."""
        ...

    def end(self, *, begun: bool = True) -> None:
        """The run has ended. Ending twice is allowed, and so is ending after `close`.

        A failure MUST NOT be raised: the thread is free then when the process ends, at the latest.
        After a fork the hold is the parent's: ending it in the child MUST change nothing.

        Args:
            begun: False: nothing of it ran. Then `holder` tells what it would tell if its process
                had ended, so that a run before it which ended so is not forgotten.
        """
        ...


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
        anchor MAY rely on it that positions rise: `is_behind(expected, position)`, or that they
        name the same entry. A position of another thread MUST be refused, unless `expected` is
        reserved. One whose epoch or sequence number goes down MUST be refused, and so MUST another
        entry at the same place, a mark that goes down, and another `paused` or owner's entry under
        the same mark, unless its epoch is a later one (`require_rising`).

        Returns:
            What the slot holds now: `position` if it was written.

        Raises:
            AnchorUnavailable: Also if the slot is absent.
        """
        ...

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Every slot with its position, in any order. The store compares its threads with them."""
        ...

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Let a run have a thread.

        Of all the calls by all the processes that share the anchor, one at a time MUST get the
        hold, until it ends it or its process ends; an anchor that cannot see a process end MUST
        find out within `RUN_LEASE_SECONDS`. The slot need not have a position.

        Args:
            slot: The slot of the thread.
            holder: Whose run it is.
            instead: Take it from whoever has it; the end of that run changes nothing then.

        Returns:
            The hold, or who has it.
        """
        ...

    def holder(self, slot: bytes) -> Holder | None:
        """Whose run has a thread; also one whose process ended first. None: no run has it."""
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
        and len(position.owner_entry) == _ENTRY_BYTES
        and RESERVED_SEQ <= position.seq <= _SEQ_MAX
        and RESERVED_SEQ <= position.fence <= (newest := max(0, position.seq))
        and RESERVED_SEQ <= position.pause <= newest
        and RESERVED_SEQ <= position.owner <= newest
    ):
        return
    _refuse(position)


def require_holder(holder: Holder) -> None:
    """Refuse what cannot be kept about a run.

    Raises:
        UsageError: The identity is longer than a name may be or is not Unicode text, or the time
            has no time zone.
    """
    try:
        size = len(holder.who.encode())
    except UnicodeEncodeError as exc:
        raise UsageError("anchor holder: expected Unicode text, found a lone surrogate") from exc
    if size > NAME_BYTES_MAX:
        raise UsageError(
            f"anchor holder: expected at most {NAME_BYTES_MAX} bytes of identity, found {size}"
        )
    if holder.since.tzinfo is None:
        raise UsageError("anchor holder: expected a time with its time zone, found one without")


def require_rising(expected: Position, position: Position) -> None:
    """Refuse a position that forgets something which the anchor has seen.

    Raises:
        UsageError: It is of another thread, it or a mark of it goes down, or it has something else
            in the place of what was seen: another entry, another owner's entry, another pause.
    """
    # Asked at every save: no calls and no loops.
    if position.thread != expected.thread and expected.seq != RESERVED_SEQ:
        # Before epochs: a restore keeps a thread or nothing, and never puts another in its place.
        raise UsageError(
            f"anchor position: expected thread {expected.thread.hex()[:12]}, found "
            f"{position.thread.hex()[:12]}"
        )
    if position.epoch > expected.epoch:
        return
    if position.epoch < expected.epoch or position.seq < expected.seq:
        # A later epoch begins with other marks: the way back would carry them to the earlier one.
        raise UsageError(
            f"anchor position: expected entry {expected.seq} of epoch {expected.epoch} or later, "
            f"found entry {position.seq} of epoch {position.epoch}"
        )
    if position.seq == expected.seq and position.entry != expected.entry:
        raise UsageError(
            f"anchor position: expected entry {expected.seq} to be {expected.entry.hex()[:12]}, "
            f"found {position.entry.hex()[:12]}"
        )
    if (
        expected.fence <= position.fence
        and expected.pause <= position.pause
        and expected.owner <= position.owner
        and (expected.owner != position.owner or expected.owner_entry == position.owner_entry)
    ):
        if expected.pause != position.pause or expected.paused == position.paused:
            return
        raise UsageError(
            f"anchor position: expected paused to be {expected.paused} at entry {expected.pause}, "
            f"found {position.paused}"
        )
    before = (expected.fence, expected.pause, expected.owner)
    marks = (position.fence, position.pause, position.owner)
    raise UsageError(
        f"anchor position: expected session, pause and owner at entries {before} or later, found "
        f"{marks}"
    )


def is_rising(expected: Position, position: Position) -> bool:
    """Whether an anchor lets a position follow another."""
    try:
        require_rising(expected, position)
    except UsageError:
        return False
    return True


def _refuse(position: Position) -> NoReturn:
    for field, found, expected in (
        ("thread", len(position.thread), _THREAD_BYTES),
        ("entry", len(position.entry), _ENTRY_BYTES),
        ("owner_entry", len(position.owner_entry), _ENTRY_BYTES),
    ):
        if found != expected:
            raise UsageError(
                f"anchor position: expected {expected} bytes of {field}, found {found}"
            )
    marks = (position.fence, position.pause, position.owner)
    if min(marks) < RESERVED_SEQ or max(marks) > max(position.seq, 0):
        raise UsageError(
            f"anchor position: expected session, pause and owner from {RESERVED_SEQ} to "
            f"{position.seq}, found {marks}"
        )
    raise UsageError(
        f"anchor position: expected epoch and gen from 0 to {_COUNT_MAX} and seq from "
        f"{RESERVED_SEQ} to {_SEQ_MAX}, found {position.epoch}, {position.gen}, {position.seq}"
    )
