# SPDX-License-Identifier: Apache-2.0
"""Following a thread from its first entry to its last, each verified as the next one.

`Follower` believes nothing that it was not given a proof for: signature, place, links, fence,
owner, pause, cutoffs and body of every entry, as a reader of the store would. It refuses a thread
that ends too early. Blobs, the anchor and expired keys are left to whoever feeds it.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from sealpoint.errors import Forked, Missing, NotTrusted, RolledBack
from sealpoint.ledger._bodies import readable_body
from sealpoint.ledger._entry import Entry, Place, Tip
from sealpoint.ledger._kinds import Kind
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.ledger._thread_chain import (
    begin,
    carried_attestations,
    extend,
    require_attestations,
    verify_entry,
)


class CutoffCheck:
    """The entries that a chain still has to come to, because cutoffs of revoked keys list them.

    An entry below a cutoff counts as an ancestor of the listed entry, and not because its position
    is low: else whoever has the key could write another history up to there, for a reader whose
    anchor has seen less. An entry that carries an attestation of such a key is one of its entries.
    """

    __slots__ = ("due",)

    def __init__(self) -> None:
        self.due: dict[int, bytes] = {}
        """By position, the hashes of the entries that are still ahead."""

    def follow(self, entry: Entry, body: bytes | None, chain: StoreChain) -> None:
        """Take the next verified entry of the chain into account.

        Args:
            entry: The entry.
            body: Its body, if that is there.
            chain: The store chain.

        Raises:
            Forked: Another entry lies where a cutoff lists one.
            NotTrusted: The entry lies beyond the cutoff of its key.
            Edited: The body is not the one that was sealed.
        """
        expected = self.due.get(entry.seq)
        if expected is not None and expected != entry.hash:
            raise Forked(
                f"entry {entry.seq} of thread {entry.header.thread[:12]}: it is not the one that "
                "the cutoff of a revoked key lists"
            )
        self._expect(entry, chain.accepted_until(entry.header, entry.hash))
        if chain.rosters and chain.rosters[-1].cutoffs:
            for attestation in carried_attestations(entry.header, body):
                # One beyond its cutoff counts for nothing; whoever needs it refuses the entry.
                with suppress(NotTrusted):
                    last = chain.accepted_until(entry.header, entry.hash, attestation.credential)
                    self._expect(entry, last)
        self.due.pop(entry.seq, None)

    def _expect(self, entry: Entry, last: tuple[int, bytes] | None) -> None:
        if last is not None and last[0] > entry.seq:
            self.due[last[0]] = last[1]

    def require_settled(self, where: str) -> None:
        """Check that nothing listed is still ahead where the chain ends.

        Raises:
            RolledBack: The chain ends before an entry that a cutoff lists.
        """
        if self.due:
            raise RolledBack(
                f"{where}: expected entry {max(self.due)}, which the cutoff of a revoked key "
                "lists, found the store to end before it"
            )


class ChainStep(NamedTuple):
    """One entry of a thread, verified as the next one."""

    entry: Entry
    body: Any
    """What was parsed; None if an erasure has taken it, or nobody can read it."""
    unreadable: bool
    """Whether its writer sealed a body about a request that nobody can read."""
    before: Tip | None
    """The end of the thread before it; None for the first entry."""
    tip: Tip
    chain: StoreChain
    """The store chain that it was judged by."""


class Follower:
    """A thread as far as it has been followed.

    Args:
        place: Where its entries belong.
        chain: The rosters; a newer one may be put in its place on the way.
    """

    def __init__(self, place: Place, chain: StoreChain) -> None:
        self.place = place
        self.chain = chain
        self._tip: Tip | None = None
        self._cutoffs = CutoffCheck()
        self._bare = -1
        self._erased = -1

    def take(self, raw: bytes, seals: bytes, body: bytes | None) -> ChainStep:
        """Verify the next entry.

        Raises:
            Tampered, NotTrusted, Forked: It is not what was written as the next one.
        """
        seq = 0 if self._tip is None else self._tip.entry.seq + 1
        entry = verify_entry(raw, seals, place=self.place, seq=seq, chain=self.chain)
        return self.follow(entry, body)

    def follow(self, entry: Entry, data: bytes | None) -> ChainStep:
        """Take the next entry, which `verify_entry` has passed on its own: the second half.

        Raises:
            Tampered, NotTrusted, Forked: It is not what was written as the next one.
        """
        before, chain = self._tip, self.chain
        # (1) keys that have ended since
        self._cutoffs.follow(entry, data, chain)
        require_attestations(entry, data, chain)
        # (2) the body that the header binds
        body = None if data is None else readable_body(entry.header, data)
        # (3) links, fence, owner, pause
        tip = begin(entry, data, chain) if before is None else extend(before, entry, data, chain)
        if data is None:
            self._bare = entry.seq
        if entry.header.kind is Kind.ERASE:
            self._erased = entry.seq
        self._tip = tip
        return ChainStep(entry, body, data is not None and body is None, before, tip, chain)

    def finish(self) -> Tip:
        """The end of the thread, once there are no more entries.

        Raises:
            Missing: There is none, or a body is gone that no erasure has taken.
            RolledBack: An entry that the cutoff of a revoked key lists has not been reached.
        """
        where = f"thread {self.place.thread[:12]}"
        if self._tip is None:
            raise Missing(f"{where}: its genesis is missing")
        if self._bare > self._erased:
            raise Missing(f"entry {self._bare} of {where}: its body is missing")
        self._tip.require_owner()
        self._cutoffs.require_settled(where)
        return self._tip

    def require_kept(self) -> None:
        """Refuse an end before what the newest restore kept; an anchor may have seen less.

        Raises:
            RolledBack: It is.
            Missing, Edited: The list of what was kept is not there, or is another.
        """
        last = -1 if self._tip is None else self._tip.entry.seq
        kept = self.chain.kept(bytes.fromhex(self.place.thread))
        if kept is not None and kept[0] > last:
            raise RolledBack(
                f"thread {self.place.thread[:12]}: expected entry {kept[0]}, which the newest "
                f"restore kept, found entry {last} to be the last"
            )
