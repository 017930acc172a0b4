# SPDX-License-Identifier: Apache-2.0
"""The words that entries carry: attestations of people who need not have written the entry.

A word is believed where an entry of its key would be. Else whoever holds the key of an approver
who was revoked could go on approving under an older roster, which an entry is free to name.
"""

from typing import Any

from sealpoint.errors import NotTrusted
from sealpoint.ledger._bodies import HandoffBody, ResumeBody, Unreadable, VerdictBody, read_body
from sealpoint.ledger._entry import Entry
from sealpoint.ledger._header import Header
from sealpoint.ledger._kinds import Kind
from sealpoint.ledger._store_chain import StoreChain
from sealpoint.signing import Attestation

__all__ = ["believed_words", "carried_words", "require_words"]

_CARRIERS = frozenset({Kind.APPROVAL, Kind.DENIAL, Kind.HANDOFF, Kind.RESUME})


def carried_words(header: Header, data: bytes | None) -> tuple[Attestation, ...]:
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


def believed_words(entry: Entry, body: Any, chain: StoreChain) -> tuple[Attestation, ...]:
    """The words in a parsed body, without those of keys that had ended when it was written.

    Raises:
        Missing, Edited: The list of a cut is not there, or is another.
    """
    return tuple(word for word in _words_of(body) if chain.believes(entry, word.credential))


def require_words(entry: Entry, data: bytes | None, chain: StoreChain) -> Entry:
    """Judge a handoff where the one before it is not known: somebody's key may have ended since.

    Returns:
        The entry; one of any other kind as it is.

    Raises:
        NotTrusted: It carries words, and the keys of all of them had ended when it was written.
        Edited: The body is not the one that was sealed.
    """
    words = carried_words(entry.header, data) if entry.header.kind is Kind.HANDOFF else ()
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
