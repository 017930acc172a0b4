# SPDX-License-Identifier: Apache-2.0
"""The reference anchor refuses calls that no anchor could keep."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from sealpoint.anchor import Holder, Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import UsageError
from tests.unit.anchor.places import position, slot


@pytest.mark.parametrize("wrong", [b"", b"x" * 31, b"x" * 33, bytes(32)])
def test_what_is_no_slot_is_refused(wrong: bytes) -> None:
    """A slot of another length, or of zeros only, is a UsageError in every call."""
    anchor = MemoryAnchor()

    with pytest.raises(UsageError, match="anchor slot"):
        anchor.get(wrong)
    with pytest.raises(UsageError, match="anchor slot"):
        anchor.create(wrong, position(0))
    with pytest.raises(UsageError, match="anchor slot"):
        anchor.advance(wrong, position(0), position(1))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(position(0), thread=b"x" * 15),
        replace(position(0), entry=b"x" * 33),
        replace(position(0), epoch=-1),
        replace(position(0), epoch=2**32),
        replace(position(0), gen=-1),
        replace(position(0), gen=2**32),
        replace(position(0), seq=-2),
        replace(position(0), seq=2**63),
        replace(position(0), owner_entry=b"x" * 31),
        replace(position(0), fence=-2),
        replace(position(0), pause=-2),
        replace(position(0), owner=-2),
        replace(position(5), fence=6),
        replace(position(5), pause=6),
        replace(position(5), owner=6),
    ],
)
def test_what_is_no_position_is_refused(wrong: Position) -> None:
    """A field of another length or outside its range is a UsageError, and nothing is kept."""
    anchor = MemoryAnchor()
    anchor.create(slot(1), position(0))

    with pytest.raises(UsageError, match="anchor position"):
        anchor.create(slot(2), wrong)
    with pytest.raises(UsageError, match="anchor position"):
        anchor.advance(slot(1), position(0), wrong)
    with pytest.raises(UsageError, match="anchor position"):
        anchor.advance(slot(1), wrong, position(1))
    assert dict(anchor.slots()) == {slot(1): position(0)}


def test_listing_is_of_one_moment() -> None:
    """A slot that is made while the listing is read does not disturb it."""
    anchor = MemoryAnchor()
    anchor.create(slot(1), position(0))
    listing = anchor.slots()
    anchor.create(slot(2), position(0))

    assert list(listing) == [(slot(1), position(0))]


def test_run_is_held_until_its_end_or_the_close() -> None:
    """The hold of a run outlives nobody: closing the anchor forgets it with everything else."""
    anchor = MemoryAnchor()
    holder = Holder("worker", datetime(2026, 5, 4, tzinfo=UTC))
    hold = anchor.hold(slot(1), holder)
    assert not isinstance(hold, Holder)
    assert anchor.hold(slot(1), holder) is holder
    anchor.close()
    hold.end()

    with pytest.raises(UsageError):
        anchor.holder(slot(1))
