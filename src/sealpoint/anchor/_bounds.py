# SPDX-License-Identifier: Apache-2.0
"""What a slot and a position may be: every anchor refuses the same calls.

Fixed-size fields are checked before they are kept, so that nothing is cut off or padded on the
way into a slot. A wrong size or range is a fault of the caller: `UsageError`.
"""

from typing import NoReturn

from sealpoint.anchor._contract import RESERVED_SEQ, Position
from sealpoint.errors import UsageError

__all__ = ["require_position", "require_slot"]

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
