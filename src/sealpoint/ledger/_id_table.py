# SPDX-License-Identifier: Apache-2.0
"""Tables of ids: which checkpoints lie in a long stretch of a thread, told by a later one.

A checkpoint may carry, in its signed body, four bytes for each position of a stretch that ends
before it. Whoever looks for an id finds from them where it may lie, and that it lies nowhere else.
Nothing is left out by chance: different ids may have the same four bytes, and then the entry
decides, but one id always has its own. A table is believed as the entry is that carries it, and
`IdTableCheck` refuses one that says something else than the entries do.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sealpoint.errors import Misplaced
from sealpoint.ledger._entry import NO_ID, PRINT_BYTES, Header, id_print
from sealpoint.ledger._kinds import KINDS, Kind

TABLE_EVERY = 128
"""So many positions lie between the checkpoints that a writer gives a table to."""

TABLE_POSITIONS_MAX = 64 * TABLE_EVERY
"""So many positions, or a few more, a writer tells of in one table."""


class IdTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ids of the checkpoints of a stretch that ends before the entry which carries this."""

    first: int
    """The first position of the stretch."""
    prints: str
    """For each position what `id_print` gives, in hexadecimal; zeros where no checkpoint lies."""

    def require_digits(self) -> None:
        """Refuse what is no table, whoever signed it.

        Raises:
            ValueError: The prints are not so many digits.
        """
        data = bytes.fromhex(self.prints)
        if not data or len(data) % PRINT_BYTES or data.hex() != self.prints:
            raise ValueError("expected eight hexadecimal digits for each position")

    def ends_at(self) -> int:
        """The position after the last of the stretch."""
        return self.first + len(self.prints) // (2 * PRINT_BYTES)


class IdTableCheck:
    """The ids of a generation as its entries have them, which every table must repeat."""

    def __init__(self) -> None:
        self._first = 0
        self._prints = bytearray()
        self._lacks_bodies = False
        """Whether an erasure has taken what a table would be compared with."""

    def follow(self, header: Header, body: Any) -> None:
        """Take the next verified entry with its body, if that is there.

        Raises:
            Misplaced: Its table is not that of the entries before it.
        """
        if header.kind is Kind.GENESIS:
            self._first, self._lacks_bodies = header.seq, False
            self._prints.clear()
        if not KINDS[header.kind].is_checkpoint:
            self._prints += NO_ID
        elif body is None:
            self._lacks_bodies = True
            self._prints += NO_ID
        else:
            if body.ids is not None and not self._lacks_bodies:
                self._compare(header.seq, body.ids)
            self._prints += id_print(body.lane, body.id)

    def _compare(self, seq: int, table: IdTable) -> None:
        if table.first < self._first:
            raise Misplaced(
                f"entry {seq}: expected its table of ids to begin at entry {self._first} or later, "
                f"found entry {table.first}"
            )
        expected = self._prints[(table.first - self._first) * PRINT_BYTES :].hex()
        if table.prints == expected:
            return
        pairs = zip(_each(expected), _each(table.prints), strict=True)
        at, one, other = next(
            (at, one, other) for at, (one, other) in enumerate(pairs, table.first) if one != other
        )
        raise Misplaced(
            f"entry {seq}: expected its table of ids to have {one} for entry {at}, found {other}"
        )


def _each(prints: str) -> Iterator[str]:
    size = 2 * PRINT_BYTES
    return (prints[at : at + size] for at in range(0, len(prints), size))
