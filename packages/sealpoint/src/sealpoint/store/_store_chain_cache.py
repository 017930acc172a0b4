# SPDX-License-Identifier: Apache-2.0
"""The store chain, kept for the duration of one call on a thread."""

from time import monotonic

from sealpoint.anchor import Position
from sealpoint.errors import Misplaced, NotTrusted
from sealpoint.ledger import Entry, Place, StoreChain, verify_entry
from sealpoint.signing import Check, PublicKey
from sealpoint.storage import Record
from sealpoint.store._store_parts import Core

_JUST_NOW_SECONDS = 0.05


def trust_and_position(core: Core, slot: bytes) -> tuple[StoreChain, Position | None]:
    """Return the store chain as `Core.trust` does, and the anchored position of a thread.

    A shared anchor returns both in one round trip.
    """
    if core.together is None:
        return core.trust(), core.anchor.get(slot)
    watched, position = core.together.get_with_watched(slot)
    return core.trust(watched), position


class CallTrust:
    """The store chain, kept for the duration of one call on a thread.

    An anchor on this machine is read every time. A shared anchor is read when a call begins, and
    again if the last read is older than a moment. After a write, the check meets everything that
    has ended since.
    """

    __slots__ = ("_asked", "_core")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._asked: tuple[StoreChain, float] | None = None

    def note(self, trust: StoreChain) -> None:
        """Record the store chain that was read at the beginning of a call."""
        if self._core.together is not None:
            self._asked = trust, monotonic()

    def get(self) -> StoreChain:
        """Return the store chain of this call."""
        asked = self._asked
        if asked is not None and monotonic() - asked[1] < _JUST_NOW_SECONDS:
            return asked[0]
        return self._core.trust()


def trust_after_advance(core: Core) -> StoreChain:
    """Return the store chain as `Core.trust` does, right after the anchor was advanced.

    A shared anchor returned its position with the advance, read after it.
    """
    watched = None if core.together is None else core.together.take_watched()
    return core.trust(watched)


def verify_renewed(
    core: Core,
    record: Record,
    *,
    place: Place,
    seq: int,
    chain: StoreChain,
    check: Check | None = PublicKey.verify,
) -> tuple[Entry, StoreChain]:
    """Verify one entry on its own, with a newer roster if the entry names one.

    Returns:
        The entry, and the store chain that it was judged by.
    """
    header, seals = record.header, record.seals
    try:
        return verify_entry(header, seals, place=place, seq=seq, chain=chain, check=check), chain
    except (NotTrusted, Misplaced):
        renewed = core.renewed_trust()
        if renewed.seq == chain.seq:
            raise
    return verify_entry(header, seals, place=place, seq=seq, chain=renewed, check=check), renewed
