# SPDX-License-Identifier: Apache-2.0
"""The positions and holders that every anchor refuses, and the positions that may follow another.

An anchor that has seen an entry, a session, a pause or an owner never forgets it: `require_rising`.
"""

from typing import NoReturn

from sealpoint.anchor._contract import RESERVED_SEQ, Holder, Position
from sealpoint.errors import UsageError
from sealpoint.limits import NAME_BYTES_MAX


def is_behind(position: Position, other: Position) -> bool:
    """Whether one position of a slot precedes another: compare restores, then entries."""
    return (position.epoch, position.seq) < (other.epoch, other.seq)


_SLOT_BYTES = 32
_NO_SLOT = bytes(_SLOT_BYTES)
_THREAD_BYTES = 16
_ENTRY_BYTES = 32
_COUNT_MAX = 2**32 - 1
_SEQ_MAX = 2**63 - 1


def require_slot(slot: bytes) -> None:
    """Refuse a value that cannot be a slot.

    Raises:
        UsageError: It is not 32 bytes, or it is 32 zeros, which no keyed hash gives.
    """
    if len(slot) != _SLOT_BYTES:
        raise UsageError(f"anchor slot: expected {_SLOT_BYTES} bytes, found {len(slot)}")
    if slot == _NO_SLOT:
        raise UsageError("anchor slot: expected the output of a keyed hash, found only zeros")


def require_position(position: Position) -> None:
    """Refuse a value that cannot be a position.

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
    """Refuse a holder that an anchor cannot store.

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
    """Refuse a position that forgets something that the anchor has seen.

    Raises:
        UsageError: It belongs to another thread, it or one of its marks decreases, or it replaces
            something that was seen: the entry, the owner's entry or the pause.
    """
    # This runs at every save, so it makes no calls and has no loops.
    if position.thread != expected.thread and expected.seq != RESERVED_SEQ:
        # This check precedes the epoch checks: a restore keeps a thread or drops it, and never
        # replaces it by another.
        raise UsageError(
            f"anchor position: expected thread {expected.thread.hex()[:12]}, found "
            f"{position.thread.hex()[:12]}"
        )
    if position.epoch > expected.epoch:
        return
    if position.epoch < expected.epoch or position.seq < expected.seq:
        # A later epoch begins with other marks; moving back would carry them to the earlier epoch.
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
    """Whether an anchor accepts a position after another."""
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
