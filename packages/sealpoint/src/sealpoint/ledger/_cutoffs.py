# SPDX-License-Identifier: Apache-2.0
"""The end of revoked keys: until which position their entries and attestations count.

A cutoff of the newest roster names a list, by its digest: for every thread that the key wrote, the
last position that counts and the hash of the entry there. The list decides, and never the time that
an entry claims. An approval counts only if an entry by its key would count at its place: otherwise
a revoked approver could still approve under an older roster, which an entry is free to name.
"""

from contextlib import suppress
from typing import Any

from sealpoint.errors import (
    Edited,
    Forked,
    NotTrusted,
    RolledBack,
)
from sealpoint.ids import KeyId
from sealpoint.ledger._entry import Entry, Header, entry_label
from sealpoint.ledger._entry_bodies import (
    HandoffBody,
    ResumeBody,
    Unreadable,
    VerdictBody,
    read_body,
)
from sealpoint.ledger._entry_kinds import KINDS, Kind
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.signing import Attestation


def require_counted(chain: StoreChain, header: Header, entry: bytes) -> None:
    """Refuse an entry of a thread that no longer counts.

    Args:
        chain: The store chain.
        header: Its header.
        entry: Its hash.

    Raises:
        Misplaced: A restore cut it off, or it belongs to a future epoch.
        NotTrusted: Its key signed it after the key's end, or a restore lost the pause that
            blocks it.
        Missing, Edited: A list is missing or has changed.
    """
    if header.epoch != chain.epoch:
        chain.restores.check(header, entry, chain.lists)
    accepted_until(chain, header, entry)
    if header.epoch and KINDS[header.kind].blocked_by_pause:
        words = chain.lost_pause(bytes.fromhex(header.thread), header.pause, header.epoch)
        if words is not None:
            raise NotTrusted(
                f"entry {header.seq} of thread {header.thread[:12]}: expected no "
                f"{header.kind.word} while the thread is paused: {words}",
                hint="Find out who uses the key that signed it, and revoke it: sealpoint keys "
                "revoke NAME --reason WHY; sealpoint audit shows the entry.",
            )


def accepted_until(
    chain: StoreChain, header: Header, entry: bytes, key: str | None = None
) -> tuple[int, bytes] | None:
    """Judge an entry of a thread by the cutoff of its key, if the newest roster has one.

    Args:
        chain: The store chain.
        header: Its header.
        entry: Its hash.
        key: The digits of the id of another key, whose attestation it carries.

    Returns:
        The last position of its key in this thread that counts, and the hash there; None if the
        key has no cutoff.

    Raises:
        NotTrusted: The entry is beyond the cutoff, or is not the listed one.
        Missing, Edited: The list is missing or has changed.
    """
    key = header.by if key is None else key
    digest = chain.rosters[-1].cutoffs.get(key) if chain.rosters else None
    if digest is None:
        return None
    last = _last_position(chain, digest, header, key)
    if last is None or header.seq > last[0] or (header.seq == last[0] and entry != last[1]):
        listed = "no entry of this thread"
        if last is not None:
            listed = f"entries of this thread up to {last[0]}, and not this one"
        raise NotTrusted(
            f"entry {header.seq} of thread {header.thread[:12]}: it is of the revoked key "
            f"{key[:12]}, whose cutoff lists {listed}",
            hint="A revoked key signed this after its end. Find out who has the key; the "
            "guide on keys and trust says how the thread is brought back.",
        )
    return last


def attestation_counts(chain: StoreChain, entry: Entry, key: str) -> bool:
    """Whether an attestation of a key counts in an entry: no cutoff of the key ends before it.

    Raises:
        Missing, Edited: The list is missing or has changed.
    """
    try:
        accepted_until(chain, entry.header, entry.hash, key)
    except NotTrusted:
        return False
    return True


def _last_position(
    chain: StoreChain, digest: str, header: Header, by: str
) -> tuple[int, bytes] | None:
    """Return the last position of a revoked key, reduced by any restore after the key's end."""
    thread, key = bytes.fromhex(header.thread), KeyId(bytes.fromhex(by))
    last = chain.lists.get(digest).position(thread)
    for restore in chain.restores.all:
        if any(each.seq > restore.seq and each.attester(key) for each in chain.rosters):
            continue  # the key was still in use in the epoch that the restore began
        kept = chain.lists.get(restore.kept).position(thread)
        last = None if last is None or kept is None else min(last, kept)
    return last


def carried_attestations(header: Header, data: bytes | None) -> tuple[Attestation, ...]:
    """Return the attestations in an entry's body; none if the body is gone or malformed.

    Raises:
        Edited: It is not the body that was sealed, and the thread depends on it.
    """
    if data is None or not KINDS[header.kind].carries_attestations:
        return ()
    try:
        return _attestations_of(read_body(header.kind, header.body, data))
    except Unreadable:
        return ()
    except Edited:
        if KINDS[header.kind].needs_body:
            raise
        return ()


def counted_attestations(entry: Entry, body: Any, chain: StoreChain) -> tuple[Attestation, ...]:
    """Return the attestations in a parsed body, without those of keys that had ended before.

    Raises:
        Missing, Edited: The list of a cutoff is missing or has changed.
    """
    return tuple(
        word for word in _attestations_of(body) if attestation_counts(chain, entry, word.credential)
    )


def require_attestations(entry: Entry, data: bytes | None, chain: StoreChain) -> Entry:
    """Refuse a handoff that depends on keys that had ended when it was written.

    Returns:
        The entry; one of any other kind unchanged.

    Raises:
        NotTrusted: It carries attestations, and all of their keys had ended.
        Edited: The body is not the one that was sealed.
    """
    if entry.header.kind is not Kind.HANDOFF:
        return entry
    carried = carried_attestations(entry.header, data)
    if carried and not any(attestation_counts(chain, entry, word.credential) for word in carried):
        raise NotTrusted(
            f"{entry_label(entry.header)}: expected the keys of those who approved it in force, "
            "found them ended before it was written"
        )
    return entry


def _attestations_of(body: Any) -> tuple[Attestation, ...]:
    if isinstance(body, VerdictBody):
        return (body.attestation,)
    return body.attestations if isinstance(body, HandoffBody | ResumeBody) else ()


class CutoffCheck:
    """The entries that a chain must still reach, because cutoffs of revoked keys list them.

    An entry below a cutoff counts as an ancestor of the listed entry, and not because its position
    is low. Otherwise an attacker with the key could write another history up to there, for a reader
    whose anchor has seen less. An entry that carries an attestation of such a key counts as one of
    its entries.
    """

    __slots__ = ("due",)

    def __init__(self) -> None:
        self.due: dict[int, bytes] = {}
        """The hashes of the entries still ahead, by position."""

    def follow(self, entry: Entry, body: bytes | None, chain: StoreChain) -> None:
        """Take the next verified entry of the chain into account.

        Args:
            entry: The entry.
            body: Its body, if it exists.
            chain: The store chain.

        Raises:
            Forked: The entry is not the one that a cutoff lists at its position.
            NotTrusted: The entry is beyond the cutoff of its key.
            Edited: The body is not the one that was sealed.
        """
        seq = entry.header.seq
        expected = self.due.get(seq)
        if expected is not None and expected != entry.hash:
            raise Forked(
                f"entry {seq} of thread {entry.header.thread[:12]}: it is not the one that "
                "the cutoff of a revoked key lists"
            )
        self._expect(entry, accepted_until(chain, entry.header, entry.hash))
        if chain.rosters and chain.rosters[-1].cutoffs:
            for attestation in carried_attestations(entry.header, body):
                # An attestation beyond its cutoff does not count; a rule that needs it refuses the
                # entry.
                with suppress(NotTrusted):
                    last = accepted_until(chain, entry.header, entry.hash, attestation.credential)
                    self._expect(entry, last)
        self.due.pop(seq, None)

    def _expect(self, entry: Entry, last: tuple[int, bytes] | None) -> None:
        if last is not None and last[0] > entry.seq:
            self.due[last[0]] = last[1]

    def require_settled(self, where: str) -> None:
        """Require that no listed entry is missing at the end of the chain.

        Raises:
            RolledBack: The chain ends before an entry that a cutoff lists.
        """
        if self.due:
            raise RolledBack(
                f"{where}: expected entry {max(self.due)}, which the cutoff of a revoked key "
                "lists, found the store to end before it"
            )
