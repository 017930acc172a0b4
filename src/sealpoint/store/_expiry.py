# SPDX-License-Identifier: Apache-2.0
"""Keys that expire: an expired key writes nothing, and proves nothing that is new.

The newest roster says when. An entry has a time, but whoever holds the key chooses it: so what
the anchor has not seen yet is refused once the key has expired, whatever time it claims. The
same holds for the words that a handoff carries. Now is the later of the clock and the newest
verified time on the thread.
"""

from datetime import datetime, timedelta

from sealpoint.errors import KeyNotInForce, NotTrusted
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    Entry,
    HandoffBody,
    Header,
    Kind,
    StoreChain,
    counted_attestations,
    parse_body,
)
from sealpoint.signing import STOPPED, count
from sealpoint.store._core import Core

EXPIRY_WARNING = timedelta(days=30)
"""For so long before a key expires, whoever looks is told."""

_SOON = "key-expires-soon"


def require_unexpired(
    core: Core, trust: StoreChain, key: str, newest: datetime | None, where: str
) -> None:
    """Refuse to write with a key that has expired, and say so when it soon will.

    Args:
        core: The store.
        trust: Its chain.
        key: The digits of the key's id.
        newest: The newest verified time on the thread.
        where: Who would write what.

    Raises:
        NotTrusted: It has.
    """
    expires = trust.roster.expires(key)
    if expires is None:
        return
    at = core.now(newest)
    if at >= expires:
        raise KeyNotInForce(
            f"{where}: its key {key[:12]} has expired, {_since(expires)}",
            hint="Where the root key is, give it a new one: sealpoint keys rotate NAME",
        )
    if at >= expires - EXPIRY_WARNING:
        _warn(core, trust.roster.seq, at, _SOON)


def check_expiry(
    core: Core, trust: StoreChain, entry: Entry, body: bytes | None, before: Header | None
) -> None:
    """(3) Refuse an entry that the anchor has not seen, by a key that has expired by now.

    Args:
        core: The store.
        trust: Its chain.
        entry: A verified entry.
        body: Its body, if that is there.
        before: The header of the verified entry before it, if there is one.

    Raises:
        NotTrusted: It could have been written at any time since, or it is a handoff that rests
            on words of such keys.
    """
    # What anybody may write tells no time: else it could let the keys of others expire.
    told = [each.at for each in (entry.header, before) if each and KINDS[each.kind].tells_time]
    newest = max(told, default=None)
    if entry.header.kind is Kind.HANDOFF and body is not None:
        _check_words(core, trust, entry, body, newest)
    expires = trust.roster.expires(entry.header.by)
    if expires is not None and core.now(newest) >= expires:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: expected a key that has not "
            f"expired, found {entry.header.by[:12]} of {entry.writer!r}, {_since(expires)}, on an "
            "entry that the anchor has not seen",
            hint="If its writer vouches for it, the root may move the expiry: sealpoint keys add "
            "NAME --expires LATER; then load the thread, and rotate the key.",
        )


def _check_words(
    core: Core, trust: StoreChain, entry: Entry, body: bytes, newest: datetime | None
) -> None:
    """Refuse an operator's handoff if the keys of all who approved it have expired by now."""
    parsed: HandoffBody = parse_body(Kind.HANDOFF, entry.header.body, body)
    roster = trust.roster_at(entry.header.roster)
    if parsed.statement is None or roster is None:
        return  # its owner gave it away
    at = core.now(newest)
    said = counted_attestations(entry, parsed, trust)
    living = [word for word in said if not _has_expired(trust, word.credential, at)]
    found = count(living, statement=parsed.statement, roster=roster, now=entry.header.at)
    if len(living) < len(said) and not found.approved_by:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: expected an approval by a "
            "key that has not expired, found none, on a handoff that the anchor has not seen",
            hint="If the approver vouches for it, the root may move the expiry: sealpoint keys "
            "add NAME --expires LATER; then load the thread, and rotate the key.",
        )


def _has_expired(trust: StoreChain, key: str, at: datetime) -> bool:
    expires = trust.roster.expires(key)
    return expires is not None and at >= expires


def warn_of_expiry(core: Core, trust: StoreChain) -> None:
    """Tell whoever listens if this store's own key has expired or soon will; for opening."""
    if core.parts.read_only or core.parts.signer is None:
        return
    expires = trust.roster.expires(core.parts.signer.key)
    if expires is not None:
        at = core.now()
        if at >= expires - EXPIRY_WARNING:
            _warn(core, trust.roster.seq, at, "key-expired" if at >= expires else _SOON)


def _warn(core: Core, roster: int, at: datetime, code: str) -> None:
    """Say it once a day for each roster."""
    said = (roster, at.date())
    if core.warned != said:
        core.warned = said
        core.emit(code, STORE_CHAIN.hex(), roster, b"")


def _since(expires: datetime) -> str:
    return "which is being ended" if expires == STOPPED else f"expired at {expires.isoformat()}"
