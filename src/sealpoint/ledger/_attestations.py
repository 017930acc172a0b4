# SPDX-License-Identifier: Apache-2.0
"""The words that entries carry: attestations of people who need not have written the entry.

A word is believed where an entry of its key would be. Else whoever holds the key of an approver
who was revoked could go on approving under an older roster, which an entry is free to name.
"""

from contextlib import suppress
from typing import Any

from sealpoint.errors import Forked, NotTrusted, RolledBack
from sealpoint.ledger._bodies import HandoffBody, ResumeBody, Unreadable, VerdictBody, read_body
from sealpoint.ledger._entry import Entry, Header
from sealpoint.ledger._kinds import Kind
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.signing import Attestation

_CARRIERS = frozenset({Kind.APPROVAL, Kind.DENIAL, Kind.HANDOFF, Kind.RESUME})


def carried_attestations(header: Header, data: bytes | None) -> tuple[Attestation, ...]:
    """The words in an entry's body; none in one that is gone or that nobody can read.

    Raises:
        Edited: It is not the body that was sealed.
    """
    if data is None or header.kind not in _CARRIERS:
        return ()
    try:
        return _words_of(read_body(header.kind, header.body, data))
    except Unreadable:
        return ()


def counted_attestations(entry: Entry, body: Any, chain: StoreChain) -> tuple[Attestation, ...]:
    """The words in a parsed body, without those of keys that had ended when it was written.

    Raises:
        Missing, Edited: The list of a cut is not there, or is another.
    """
    return tuple(word for word in _words_of(body) if chain.believes(entry, word.credential))


def require_attestations(entry: Entry, data: bytes | None, chain: StoreChain) -> Entry:
    """Judge a handoff where the one before it is not known: somebody's key may have ended since.

    Returns:
        The entry; one of any other kind as it is.

    Raises:
        NotTrusted: It carries words, and the keys of all of them had ended when it was written.
        Edited: The body is not the one that was sealed.
    """
    words = carried_attestations(entry.header, data) if entry.header.kind is Kind.HANDOFF else ()
    if words and not any(chain.believes(entry, word.credential) for word in words):
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: expected the keys of those "
            "who approved it in force, found them ended before it was written"
        )
    return entry


def _words_of(body: Any) -> tuple[Attestation, ...]:
    if isinstance(body, VerdictBody):
        return (body.attestation,)
    return body.attestations if isinstance(body, HandoffBody | ResumeBody) else ()


# ---------------------------------------------------------------------- watch
# Following a chain that holds entries of a revoked key: it must come to what the cut lists.
#
# An entry that carries a word of such a key is one of them. An entry below a cut counts as an
# ancestor of the listed entry, and not because its position is low: else whoever has the key
# could write another history up to there, for a reader whose anchor has seen less.


class CutoffCheck:
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
        if chain.rosters and chain.rosters[-1].cutoffs:
            for word in carried_attestations(entry.header, body):
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
