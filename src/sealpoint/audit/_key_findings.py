# SPDX-License-Identifier: Apache-2.0
"""What a full verification says about the store chain: damaged lists, and keys that expire."""

from sealpoint.audit._report import Finding
from sealpoint.errors import SealpointError
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.signing import STOPPED
from sealpoint.store import EXPIRY_WARNING, Core

__all__ = ["key_findings"]

_CODE = "key-expiry"


def key_findings(core: Core, chain: StoreChain) -> list[Finding]:
    """Lists that are missing or edited, and keys that have expired or soon will."""
    return [*_lists(chain), *_expiries(core, chain)]


def _lists(chain: StoreChain) -> list[Finding]:
    named = [(f"revoked key {key[:12]}", digest) for key, digest in chain.roster.cuts.items()]
    for restore in chain.restores.all:
        named += [(f"restore in entry {restore.seq}", each) for each in restore.lists]
    found = []
    for what, digest in named:
        try:
            chain.lists.get(digest)
        except SealpointError as error:
            message = f"{what}: {error}"
            found.append(Finding(code=error.code, thread=STORE_CHAIN.hex(), message=message))
    return found


def _expiries(core: Core, chain: StoreChain) -> list[Finding]:
    now, roster = core.now(), chain.roster
    found = []
    for key, (identity, _) in roster.keys.items():
        expires = roster.expires(key.raw.hex())
        if expires is None or now < expires - EXPIRY_WARNING:
            continue
        who = f"key {key.short()} of {identity.name!r}"
        if expires == STOPPED:
            message = f"{who} was stopped and has no cut yet: repeat what was ending it"
        elif now >= expires:
            message = f"{who} expired at {expires.isoformat()}: it writes nothing any more"
        else:
            message = f"{who} expires at {expires.isoformat()}: rotate it before"
        found.append(Finding(code=_CODE, thread=STORE_CHAIN.hex(), message=message, refuses=False))
    return found
