# SPDX-License-Identifier: Apache-2.0
"""Every key that matters to a store: of the roster, on this machine, of the root, and ended."""

import os
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sealpoint.api._place import StorePlace
from sealpoint.ids import KeyId
from sealpoint.ledger import StoreChain
from sealpoint.signing import STOPPED, Identity, KeyFacts, PublicKey
from sealpoint.store import EXPIRY_WARNING, Core

__all__ = ["KeyInfo", "KeyStatus", "list_keys"]

_Directory = str | os.PathLike[str] | None


class KeyStatus(StrEnum):
    """What has become of a key."""

    IN_FORCE = "in-force"
    """The roster has it."""
    EXPIRES_SOON = "expires-soon"
    """The roster has it for no more than 30 days."""
    EXPIRED = "expired"
    """The roster has it, and it may not write any more."""
    STOPPED = "stopped"
    """It was being ended, and that was interrupted: it may not write, and has no cut yet."""
    REVOKED = "revoked"
    """It has come to its end."""
    ROOT = "root"
    """A key of the root in force."""
    FORMER_ROOT = "former-root"
    """A key of an earlier root alone."""
    UNLISTED = "unlisted"
    """It lies here, and the roster does not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInfo:
    """A key that the roster has or had, or that lies here."""

    name: str
    key: str
    """Its id, as signatures name it."""
    public: str
    person: str | None
    roles: tuple[str, ...]
    namespaces: tuple[str, ...]
    break_glass: bool
    """Whether it may, as an operator, let a request pass without approvals."""
    pools: tuple[str, ...]
    in_roster: bool
    here: bool
    """Whether the private half is on this machine."""
    encrypted: bool | None
    """Whether its file needs a passphrase; None where the private half is elsewhere."""
    expires: str | None
    """When it expires, as RFC 3339 in UTC; None if it does not."""
    status: KeyStatus


def list_keys(
    url: str, *, config_dir: _Directory = None, state_dir: _Directory = None
) -> list[KeyInfo]:
    """Every key of the roster in force, every private key on this machine, every revoked key."""
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    pin = place.files.pin()
    facts = {name: place.files.key_facts(name) for name in place.files.key_names()}
    parts = place.parts(pin=pin, signer=None, namespace="default", read_only=True)
    try:
        core = Core(parts)
        return _Listing(core.renewed_trust(), facts, core.now()).rows()
    finally:
        parts.close()


class _Listing:
    def __init__(self, chain: StoreChain, facts: dict[str, KeyFacts], now: datetime) -> None:
        self._chain = chain
        self._now = now
        self._facts = facts
        self._here = {fact.public: name for name, fact in facts.items()}

    def rows(self) -> list[KeyInfo]:
        chain = self._chain
        held = [
            self._row(identity.name, PublicKey.parse(key.public), identity, key.expires)
            for identity in chain.roster.identities
            for key in identity.keys
        ]
        ended = [self._ended(key) for key in chain.roster.cuts]
        others = [
            self._row(name, public, None, None, self._beside(public))
            for public, name in list(self._here.items())
        ]
        return [*held, *others, *ended]

    def _ended(self, key: str) -> KeyInfo:
        name = KeyId(bytes.fromhex(key))
        # Only what an earlier roster held can have a cut.
        identity, public = next(
            holder
            for roster in reversed(self._chain.rosters)
            if (holder := roster.holder(name)) is not None
        )
        return self._row(identity.name, public, None, None, KeyStatus.REVOKED)

    def _row(
        self,
        name: str,
        public: PublicKey,
        identity: Identity | None,
        expires: datetime | None,
        status: KeyStatus | None = None,
    ) -> KeyInfo:
        file = self._facts.get(self._here.pop(public, ""))
        roles = ("root",) if status is KeyStatus.ROOT else ()
        return KeyInfo(
            name=name,
            key=str(public.id),
            public=str(public),
            person=None if identity is None else identity.person,
            roles=roles if identity is None else tuple(str(role) for role in identity.roles),
            namespaces=() if identity is None else identity.namespaces,
            break_glass=identity is not None and identity.break_glass,
            pools=tuple(
                pool
                for pool, members in self._chain.roster.members.items()
                if identity is not None and identity.name in members
            ),
            in_roster=identity is not None,
            here=file is not None,
            encrypted=None if file is None else file.encrypted,
            expires=None if expires in (None, STOPPED) else _text(expires),
            status=self._status(expires) if status is None else status,
        )

    def _status(self, expires: datetime | None) -> KeyStatus:
        if expires is None or self._now < expires - EXPIRY_WARNING:
            return KeyStatus.IN_FORCE
        if expires == STOPPED:
            return KeyStatus.STOPPED
        return KeyStatus.EXPIRED if self._now >= expires else KeyStatus.EXPIRES_SOON

    def _beside(self, public: PublicKey) -> KeyStatus:
        """What a key is that lies here and is not in the roster."""
        chain = self._chain
        if public in chain.root.keys:
            return KeyStatus.ROOT
        if any(public in root.keys for root in (chain.pin.root, *chain.roots)):
            return KeyStatus.FORMER_ROOT
        return KeyStatus.UNLISTED


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")
