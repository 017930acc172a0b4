# SPDX-License-Identifier: Apache-2.0
"""An entry that has been verified on its own."""

from typing import Self

import msgspec

from sealpoint.ledger._header import Header
from sealpoint.ledger._links import link_hash

__all__ = ["Entry"]


class Entry(msgspec.Struct, frozen=True):
    """An entry whose bytes, place and signature were verified. Make one with `verified`."""

    raw: bytes
    header: Header
    writer: str
    """The name of the identity that signed."""
    hash: bytes
    """What later entries call it."""

    @classmethod
    def verified(cls, raw: bytes, header: Header, writer: str) -> Self:
        """An entry, once somebody has made sure of it."""
        return cls(raw, header, writer, link_hash(raw))

    @property
    def seq(self) -> int:
        """Its position."""
        return self.header.seq
