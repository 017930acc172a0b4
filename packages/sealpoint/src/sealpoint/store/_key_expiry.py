# SPDX-License-Identifier: Apache-2.0
"""Keys that expire.

An expired key writes nothing, and proves nothing new. The newest roster says when it expires. An
entry has a time, but the holder of the key chooses it. So once the key has expired, a reader
refuses entries that the anchor has not seen, regardless of their claimed time, and also the
attestations of a handoff. "Now" is the later of the clock and the newest verified time on the
thread.
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
from sealpoint.store._store_parts import Core

EXPIRY_WARNING = timedelta(days=30)
"""How long before the expiry of a key the store begins to warn."""

_SOON = "key-expires-soon"


def require_unexpired(
    core: Core, trust: StoreChain, key: str, newest: datetime | None, where: str
) -> None:
    """Refuse to write with an expired key, and warn if it expires soon.

    Args:
        core: The store.
        trust: Its chain.
        key: The digits of the key's id.
        newest: The newest verified time on the thread.
        where: A description of the writer and the write.

    Raises:
        NotTrusted: The key has expired.
    """
    expires = trust.roster.expiries.get(key)
    if expires is None:
        return
    at = core.now(newest)
    if at >= expires:
        raise KeyNotInForce(
            f"{where}: its key {key[:12]} {_ended(expires)}",
            hint="Where the root key is, give it a new one: sealpoint keys rotate NAME",
        )
    if at >= expires - EXPIRY_WARNING:
        _warn(core, trust.roster.seq, at, _SOON)


def check_expiry(
    core: Core, trust: StoreChain, entry: Entry, body: bytes | None, before: Header | None
) -> None:
    """(3) Refuse an entry that the anchor has not seen, if its key has expired by now.

    Args:
        core: The store.
        trust: Its chain.
        entry: A verified entry.
        body: Its body, if it exists.
        before: The header of the verified entry before it, if it exists.

    Raises:
        NotTrusted: The entry could have been written at any time since, or it is a handoff that
            rests on attestations of such keys.
    """
    # Entries that any member may write do not advance time: they could make others' keys expire.
    told = [each.at for each in (entry.header, before) if each and KINDS[each.kind].tells_time]
    newest = max(told, default=None)
    if entry.header.kind is Kind.HANDOFF and body is not None:
        _check_approvers(core, trust, entry, body, newest)
    expires = trust.roster.expiries.get(entry.header.by)
    if expires is not None and core.now(newest) >= expires:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: the key "
            f"{entry.header.by[:12]} of {entry.writer!r} that signed it "
            f"{_ended(expires)}, and the anchor has not seen the entry",
            hint="If its writer vouches for it, the root may move the expiry: sealpoint keys "
            "add NAME --person WHO --role ROLE --namespace NAMESPACE --expires LATER, with "
            "what sealpoint keys list shows; then load the thread, and rotate the key.",
        )


def _check_approvers(
    core: Core, trust: StoreChain, entry: Entry, body: bytes, newest: datetime | None
) -> None:
    """Refuse an operator's handoff if the keys of all its approvers have expired by now."""
    parsed: HandoffBody = parse_body(Kind.HANDOFF, entry.header.body, body)
    roster = trust.roster_at(entry.header.roster)
    if parsed.statement is None or roster is None:
        return  # its owner handed it off
    at = core.now(newest)
    counted = counted_attestations(entry, parsed, trust)
    living = [each for each in counted if not trust.roster.key_expired_at(each.credential, at)]
    found = count(living, statement=parsed.statement, roster=roster, now=entry.header.at)
    if len(living) < len(counted) and not found.approved_by:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: the keys of all who "
            "approved this handoff have expired, and the anchor has not seen it",
            hint="If the approver vouches for it, the root may move the expiry: sealpoint keys "
            "add NAME --person WHO --role ROLE --namespace NAMESPACE --expires LATER, with "
            "what sealpoint keys list shows; then load the thread, and rotate the key.",
        )


def warn_of_expiry(core: Core, trust: StoreChain) -> None:
    """Send an event if this store's own key has expired or expires soon; called on opening."""
    if core.parts.read_only or core.parts.signer is None:
        return
    expires = trust.roster.expiries.get(core.parts.signer.key)
    if expires is not None:
        at = core.now()
        if at >= expires - EXPIRY_WARNING:
            _warn(core, trust.roster.seq, at, "key-expired" if at >= expires else _SOON)


def _warn(core: Core, roster: int, at: datetime, code: str) -> None:
    """Send the warning once a day for each roster."""
    said = (roster, at.date())
    if core.warned != said:
        core.warned = said
        core.emit(code, STORE_CHAIN.hex(), roster, b"")


def _ended(expires: datetime) -> str:
    return "is being ended" if expires == STOPPED else f"expired at {expires.isoformat()}"
