# SPDX-License-Identifier: Apache-2.0
"""The store chain for the length of one call on a thread."""

from time import monotonic

from sealpoint.anchor import Position
from sealpoint.errors import Misplaced, NotTrusted
from sealpoint.ledger import Entry, Place, StoreChain, verify_entry
from sealpoint.signing import Check, PublicKey
from sealpoint.storage import Record
from sealpoint.store._core import Core

_JUST_NOW_SECONDS = 0.05


def trust_and_position(core: Core, slot: bytes) -> tuple[StoreChain, Position | None]:
    """The store chain as `Core.trust` gives it, and what the anchor holds of a thread.

    From a shared anchor both come in one round trip.
    """
    if core.together is None:
        return core.trust(), core.anchor.get(slot)
    watched, position = core.together.get_with_watched(slot)
    return core.trust(watched), position


class CallTrust:
    """The store chain for the length of one call on a thread.

    An anchor of this machine is asked each time. One that is shared is asked when a call begins,
    and again if that was not just now: whatever ended since is met after a write.
    """

    __slots__ = ("_asked", "_core")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._asked: tuple[StoreChain, float] | None = None

    def note(self, trust: StoreChain) -> None:
        """A call has begun, and asked."""
        if self._core.together is not None:
            self._asked = trust, monotonic()

    def get(self) -> StoreChain:
        """The store chain, as this call has found it."""
        asked = self._asked
        if asked is not None and monotonic() - asked[1] < _JUST_NOW_SECONDS:
            return asked[0]
        return self._core.trust()


def trust_after_advance(core: Core) -> StoreChain:
    """The store chain as `Core.trust` gives it, right after the anchor was advanced.

    From a shared anchor its position came along, read after the advance.
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
    """Verify one entry on its own, under a newer roster if it was written under one.

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
