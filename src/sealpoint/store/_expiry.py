# SPDX-License-Identifier: Apache-2.0
"""Keys that expire: an expired key writes nothing, and proves nothing that is new.

The newest roster says when. An entry has a time, but whoever holds the key chooses it: so what
the anchor has not seen yet is refused once the key has expired, whatever time it claims. Now is
the later of the clock and the newest verified time on the thread.
"""

from datetime import datetime, timedelta

from sealpoint.errors import NotTrusted
from sealpoint.ledger import KINDS, STORE_CHAIN, Entry, Header, StoreChain
from sealpoint.signing import STOPPED
from sealpoint.store._core import Core

__all__ = ["EXPIRY_WARNING", "check_expiry", "require_unexpired", "warn_of_expiry"]

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
        raise NotTrusted(
            f"{where}: expected a key that has not expired, found {key[:12]}, {_since(expires)}",
            hint="Where the root key is, give it a new one: sealpoint keys rotate NAME",
        )
    if at >= expires - EXPIRY_WARNING:
        _warn(core, trust.roster.seq, at, _SOON)


def check_expiry(core: Core, trust: StoreChain, entry: Entry, before: Header | None) -> None:
    """(3) Refuse an entry that the anchor has not seen, by a key that has expired by now.

    Args:
        core: The store.
        trust: Its chain.
        entry: A verified entry.
        before: The header of the verified entry before it, if there is one.

    Raises:
        NotTrusted: It could have been written at any time since.
    """
    expires = trust.roster.expires(entry.header.by)
    if expires is None:
        return
    # What anybody may write tells no time: else it could let the keys of others expire.
    told = [each.at for each in (entry.header, before) if each and KINDS[each.kind].tells_time]
    if core.now(max(told, default=None)) >= expires:
        raise NotTrusted(
            f"entry {entry.seq} of thread {entry.header.thread[:12]}: expected a key that has not "
            f"expired, found {entry.header.by[:12]} of {entry.writer!r}, {_since(expires)}, on an "
            "entry that the anchor has not seen",
            hint="If its writer vouches for it, the root may move the expiry: sealpoint keys add "
            "NAME --expires LATER; then load the thread, and rotate the key.",
        )


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
