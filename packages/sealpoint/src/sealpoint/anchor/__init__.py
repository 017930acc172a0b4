# SPDX-License-Identifier: Apache-2.0
"""Anchors, which record thread heads outside the store: the contract, and a module for each."""

from sealpoint.anchor._backend import AnchorBackend, AnchorUrl, OpenAnchor, SharedAnchor
from sealpoint.anchor._contract import RESERVED_SEQ, Anchor, Hold, Holder, Position
from sealpoint.anchor._position_rules import (
    is_behind,
    is_rising,
    require_holder,
    require_position,
    require_rising,
    require_slot,
)

__all__ = [
    "RESERVED_SEQ",
    "Anchor",
    "AnchorBackend",
    "AnchorUrl",
    "Hold",
    "Holder",
    "OpenAnchor",
    "Position",
    "SharedAnchor",
    "is_behind",
    "is_rising",
    "require_holder",
    "require_position",
    "require_rising",
    "require_slot",
]
