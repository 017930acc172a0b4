# SPDX-License-Identifier: Apache-2.0
"""Every anchor of this package passes the suite that third parties are given."""

from pathlib import Path

from sealpoint.anchor import Anchor
from sealpoint.anchor.local import LocalAnchor
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.testing.conformance.anchor import AnchorConformance


class TestMemoryAnchor(AnchorConformance):
    """The reference implementation."""

    shared = False

    def open(self, place: Path) -> Anchor:
        """Open an anchor that has no place."""
        del place
        return MemoryAnchor()


class TestLocalAnchor(AnchorConformance):
    """The file in the user's state directory."""

    def open(self, place: Path) -> Anchor:
        """Open the anchor in a directory of its own."""
        return LocalAnchor(place / "anchor", store=b"s" * 16, key=b"k" * 32, create=True)


class TestLocalAnchorMadeLate(AnchorConformance):
    """The same file when nobody makes it before the first slot."""

    def open(self, place: Path) -> Anchor:
        """Open the anchor without making anything."""
        return LocalAnchor(place / "anchor", store=b"s" * 16, key=b"k" * 32)
