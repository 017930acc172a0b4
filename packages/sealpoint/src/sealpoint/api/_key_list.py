# SPDX-License-Identifier: Apache-2.0
"""Every key that matters to a store: of the roster, on this machine, of the root, and ended."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Self

from sealpoint.ids import KeyId
from sealpoint.ledger import StoreChain
from sealpoint.signing import STOPPED, Identity, KeyFacts, Passkey, PublicKey, RosterKey
from sealpoint.store import EXPIRY_WARNING


class KeyStatus(StrEnum):
    """The status of a key."""

    IN_FORCE = "in-force"
    """The roster has it."""
    EXPIRES_SOON = "expires-soon"
    """The roster has it for no more than 30 days."""
    EXPIRED = "expired"
    """The roster has it, and its right to write has ended."""
    STOPPED = "stopped"
    """Its revocation was interrupted: it may not write, and has no cutoff yet."""
    REVOKED = "revoked"
    """It was revoked or replaced, and has a cutoff."""
    ROOT = "root"
    """A key of the root in force."""
    FORMER_ROOT = "former-root"
    """A key of an earlier root, and not of the root in force."""
    UNLISTED = "unlisted"
    """It is on this machine, and the roster does not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasskeyInfo:
    """A passkey, and the site that it is bound to."""

    algorithm: str
    credential: str
    """The id by which a browser finds it, in hexadecimal."""
    relying_party: str
    """The domain that it was made for."""
    origin: str
    """The only origin where it counts."""
    backup_eligible: bool
    """Whether the authenticator may hold copies of it elsewhere."""

    @classmethod
    def of(cls, passkey: Passkey) -> Self:
        """Return the facts about a passkey."""
        bound = passkey.binding
        return cls(
            algorithm=passkey.algorithm,
            credential=bound.credential,
            relying_party=bound.relying_party,
            origin=bound.origin,
            backup_eligible=bound.backup_eligible,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInfo:
    """A key that the roster has or had, or that is on this machine."""

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
    scheme: str
    passkey: PasskeyInfo | None = None
    """If it is a passkey: its binding; a passkey makes only attestations."""


class KeyListing:
    """Lists the keys of a store chain and of the key files on this machine, one row for each."""

    def __init__(self, chain: StoreChain, facts: dict[str, KeyFacts], now: datetime) -> None:
        self._chain = chain
        self._now = now
        self._facts = {fact.public: (name, fact) for name, fact in facts.items()}

    def rows(self) -> tuple[KeyInfo, ...]:
        """Return the keys of the roster, then others on this machine, then revoked ones."""
        roster = self._chain.roster
        held = [
            self._held(identity, key) for identity in roster.identities for key in identity.keys
        ]
        ended = [self._ended(key) for key in roster.cutoffs]
        shown = {row.public for row in (*held, *ended)}
        others = [
            self._row(name, public, self._status_beside(public))
            for public, (name, _) in self._facts.items()
            if str(public) not in shown
        ]
        return (*held, *others, *ended)

    def _ended(self, key: str) -> KeyInfo:
        name = KeyId(bytes.fromhex(key))
        # Only a key of an earlier roster can have a cutoff.
        identity, public = next(
            holder
            for roster in reversed(self._chain.rosters)
            if (holder := roster.attester(name)) is not None
        )
        return self._row(identity.name, public, KeyStatus.REVOKED)

    def _held(self, identity: Identity, key: RosterKey) -> KeyInfo:
        members = self._chain.roster.members
        return replace(
            self._row(identity.name, key.key, self._status(key.expires)),
            person=identity.person,
            roles=tuple(str(role) for role in identity.roles),
            namespaces=identity.namespaces,
            break_glass=identity.break_glass,
            pools=tuple(pool for pool, names in members.items() if identity.name in names),
            in_roster=True,
            expires=_text(key.expires),
        )

    def _row(self, name: str, public: PublicKey | Passkey, status: KeyStatus) -> KeyInfo:
        """Return a key without the rights that the roster gives it."""
        absent = (None, None)
        _, file = absent if isinstance(public, Passkey) else self._facts.get(public, absent)
        return KeyInfo(
            name=name,
            key=str(public.id),
            public=str(public),
            person=None,
            roles=("root",) if status is KeyStatus.ROOT else (),
            namespaces=(),
            break_glass=False,
            pools=(),
            in_roster=False,
            here=file is not None,
            encrypted=None if file is None else file.encrypted,
            expires=None,
            status=status,
            scheme=public.scheme,
            passkey=PasskeyInfo.of(public) if isinstance(public, Passkey) else None,
        )

    def _status(self, expires: datetime | None) -> KeyStatus:
        if expires is None or self._now < expires - EXPIRY_WARNING:
            return KeyStatus.IN_FORCE
        if expires == STOPPED:
            return KeyStatus.STOPPED
        return KeyStatus.EXPIRED if self._now >= expires else KeyStatus.EXPIRES_SOON

    def _status_beside(self, public: PublicKey) -> KeyStatus:
        """Return the status of a key that is on this machine and not in the roster."""
        chain = self._chain
        if public in chain.root.keys:
            return KeyStatus.ROOT
        if any(public in root.keys for root in (chain.pin.root, *chain.roots)):
            return KeyStatus.FORMER_ROOT
        return KeyStatus.UNLISTED


def _text(time: datetime | None) -> str | None:
    if time is None or time == STOPPED:
        return None
    return time.isoformat().replace("+00:00", "Z")
