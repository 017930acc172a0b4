# SPDX-License-Identifier: Apache-2.0
"""Slots, positions and open anchors for the tests of the local anchor."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealpoint.anchor import Position
from sealpoint.anchor.local import LocalAnchor

__all__ = ["KEY", "NAME", "STORE", "chained", "opened", "position", "slot"]

STORE = b"s" * 16
KEY = b"k" * 32
NAME = "anchor.slots"


@contextmanager
def opened(
    directory: Path,
    *,
    store: bytes = STORE,
    key: bytes = KEY,
    create: bool = False,
    read_only: bool = False,
) -> Iterator[LocalAnchor]:
    """Open a local anchor and close it again."""
    anchor = LocalAnchor(directory, store=store, key=key, create=create, read_only=read_only)
    try:
        yield anchor
    finally:
        anchor.close()


def slot(number: int) -> bytes:
    """A slot that lies anywhere."""
    return hashlib.sha256(b"slot %d" % number).digest()


def chained(number: int, home: int = 254) -> bytes:
    """A slot that belongs to the same place as the others, near the end of a new file."""
    return home.to_bytes(8, "little") + slot(number)[8:]


def position(number: int) -> Position:
    """A position whose fields all follow from one number."""
    entry = hashlib.sha256(b"entry %d" % number).digest()
    return Position(
        *(b"t" * 16, number, number + 1, number, entry),
        erased=number % 2 == 1,
        fence=number,
        pause=number // 2,
        owner=number,
        owner_entry=entry[::-1],
        paused=number % 3 == 1,
    )
