# SPDX-License-Identifier: Apache-2.0
"""Following a chain that holds entries of a revoked key: it must come to what the cut lists.

An entry that carries a word of such a key is one of them. An entry below a cut counts as an
ancestor of the listed entry, and not because its position is low: else whoever has the key could
write another history up to there, for a reader whose anchor has seen less.
"""

from contextlib import suppress

from sealpoint.errors import Forked, NotTrusted, RolledBack
from sealpoint.ledger._entry import Entry
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.ledger._words import carried_words

__all__ = ["CutWatch"]


class CutWatch:
    """The listed entries that a chain still has to come to."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: dict[int, bytes] = {}

    def follow(self, entry: Entry, body: bytes | None, chain: StoreChain) -> None:
        """Take the next verified entry of the chain into account.

        Args:
            entry: The entry.
            body: Its body, if that is there.
            chain: The store chain.

        Raises:
            Forked: Another entry lies where a cut lists one.
            NotTrusted: The entry lies beyond the cut of its key.
            Edited: The body is not the one that was sealed.
        """
        expected = self._due.get(entry.seq)
        if expected is not None and expected != entry.hash:
            raise Forked(
                f"entry {entry.seq} of thread {entry.header.thread[:12]}: expected the one that "
                "the cut of a revoked key lists, found another"
            )
        self._expect(entry, chain.accepted_until(entry.header, entry.hash))
        if chain.rosters and chain.rosters[-1].cuts:
            for word in carried_words(entry.header, body):
                # A word beyond its cut counts for nothing; whoever needs it refuses the entry.
                with suppress(NotTrusted):
                    last = chain.accepted_until(entry.header, entry.hash, word.credential)
                    self._expect(entry, last)
        self._due.pop(entry.seq, None)

    def _expect(self, entry: Entry, last: tuple[int, bytes] | None) -> None:
        if last is not None and last[0] > entry.seq:
            self._due[last[0]] = last[1]

    def require_settled(self, where: str) -> None:
        """Check that nothing listed is still ahead where the chain ends.

        Raises:
            RolledBack: The chain ends before an entry that a cut lists.
        """
        if self._due:
            raise RolledBack(
                f"{where}: expected entry {max(self._due)}, which the cut of a revoked key lists, "
                "found the store to end before it"
            )
