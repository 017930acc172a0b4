# SPDX-License-Identifier: Apache-2.0
"""Keys and identities: making a key here, and entering one into the roster with the root's key."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from sealpoint.api._init import ROOT
from sealpoint.api._location import StorePlace
from sealpoint.config import PassphraseSource, check_identity_name, choosing
from sealpoint.errors import UsageError
from sealpoint.ids import KeyId
from sealpoint.ledger import StoreChain
from sealpoint.signing import (
    STOPPED,
    Identity,
    KeyFacts,
    PrivateKey,
    PublicKey,
    Role,
    RosterDocument,
    RosterKey,
)
from sealpoint.store import EXPIRY_WARNING, Core, append_roster, check_name

_Directory = str | os.PathLike[str] | None
_NEVER = "never"


def new_key(
    url: str,
    name: str,
    *,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
) -> PublicKey:
    """Make a private key for an identity on this machine. It may do nothing until it is added.

    Args:
        url: The store.
        name: The identity.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: Under which the key is encrypted, or a function that is called with its name;
            without it, the key is not.

    Raises:
        StoreExists: There is a key of this name here.
        NameInvalid: No identity can be called this.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    place.files.pin()
    signer = PrivateKey.draw(check_identity_name(name), os.urandom)
    place.files.write_key(signer, None if passphrase is None else choosing(passphrase))
    return signer.public


def add_identity(
    url: str,
    name: str,
    *,
    public: str | None = None,
    person: str,
    roles: Sequence[str],
    namespaces: Sequence[str],
    expires: datetime | str | None = None,
    break_glass: bool = False,
    reason: str | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
) -> int:
    """Enter an identity into the roster, or give one that is there more rights.

    The root's private keys must be on this machine.

    Args:
        url: The store.
        name: The identity.
        public: Its public key; without it, the key of that name on this machine.
        person: Who stands behind it; one person counts once, whatever the number of keys.
        roles: Some of writer, approver, operator, auditor, privacy.
        namespaces: Where it has them; `*` means everywhere.
        expires: From when on the key may not write any more, with a zone; "never" takes an
            expiry away, and without this one that is there stays.
        break_glass: Whether it may, as an operator, let a request pass without approvals.
        reason: Why, for the record.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the root's keys if they are encrypted, as for `open_store`.

    Returns:
        The sequence number of the new roster.

    Raises:
        KeyMissing: The root's keys, or the identity's, are not here.
        KeyLocked: A root key is encrypted, and the passphrase is missing or does not open it.
        NotTrusted: The roster would contradict itself or take a right away.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    pin = place.files.pin()
    if check_identity_name(name) == ROOT:
        raise UsageError("identity: expected another name than root, which signs rosters alone")
    key = place.files.key_facts(name).public if public is None else PublicKey.parse(public)
    added = Identity(
        name=name,
        person=check_name(person, "person"),
        roles=roles_of(roles),
        namespaces=tuple(sorted({check_name(each, "namespace") for each in namespaces})),
        keys=(RosterKey(scheme="ed25519", public=str(key), expires=expiry(expires)),),
        break_glass=break_glass,
    )
    parts = place.parts(pin=pin, signer=None, namespace="default")
    try:
        core = Core(parts)
        chain = core.renewed_trust()
        if key in chain.root.keys:
            raise UsageError(f"identity {name!r}: expected another key than one of the root's")
        document = _with(chain.roster.document, added, keep_expiry=expires is None)
        roots = place.root_signers(chain.root)
        added_to = append_roster(core, chain, document, roots, reason=reason)
        core.written(added_to)
        return added_to.roster.seq
    finally:
        parts.close()


def roles_of(names: Sequence[str]) -> tuple[Role, ...]:
    """Roles by their names, each once and in order."""
    known = {str(role): role for role in Role}
    for name in names:
        if name not in known:
            raise UsageError(f"role: expected one of {', '.join(Role)}, found {name!r}")
    return tuple(known[name] for name in sorted(set(names)))


def expiry(expires: datetime | str | None) -> datetime | None:
    """An expiry as a roster has it: in UTC; None for "never" and where nothing was said."""
    if isinstance(expires, str):
        if expires != _NEVER:
            raise UsageError(f"expires: expected a time or {_NEVER!r}, found {expires!r}")
        return None
    if expires is None:
        return None
    if expires.tzinfo is None:
        raise UsageError("expires: expected a time with a zone, found one without")
    return expires.astimezone(UTC)


def _with(document: RosterDocument, added: Identity, *, keep_expiry: bool) -> RosterDocument:
    """The roster with an identity added, or with more rights for one that is there."""
    merged = []
    found = False
    for identity in document.identities:
        if identity.name != added.name:
            merged.append(identity)
            continue
        found = True
        if identity.person != added.person:
            raise UsageError(
                f"identity {added.name!r}: expected its person {identity.person!r} as before, "
                f"found {added.person!r}",
                hint="A person counts once, so keys do not change hands: take another name.",
            )
        keys = {key.public: key for key in identity.keys}
        for key in added.keys:
            if not keep_expiry or key.public not in keys:
                keys[key.public] = key
        merged.append(
            msgspec.structs.replace(
                identity,
                roles=tuple(sorted({*identity.roles, *added.roles})),
                namespaces=tuple(sorted({*identity.namespaces, *added.namespaces})),
                keys=tuple(keys.values()),
                break_glass=identity.break_glass or added.break_glass,
            )
        )
    if not found:
        merged.append(added)
    return msgspec.structs.replace(document, identities=tuple(merged))


# ---------------------------------------------------------------------- key list
# Every key that matters to a store: of the roster, on this machine, of the root, and ended.


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
        ended = [self._ended(key) for key in chain.roster.cutoffs]
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


# ---------------------------------------------------------------------- passphrase
# Giving a key on this machine a passphrase, another one, or none.


def change_passphrase(
    url: str,
    name: str,
    *,
    new: PassphraseSource | None,
    passphrase: PassphraseSource | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
) -> PublicKey:
    """Encrypt a private key on this machine under another passphrase, or under none.

    The key stays the same, and so does everything that it signed. The new file takes the place
    of the old one when it is durable, and not before.

    Args:
        url: The store.
        name: The identity.
        new: The new passphrase, or a function that is called with the key's name once the old
            one is open; None leaves the key unencrypted.
        passphrase: What opens the key now, if it is encrypted, as for `open_store`.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Returns:
        The public half.

    Raises:
        KeyLocked: The key is encrypted, and the passphrase is missing or does not open it.
        KeyMissing: The key is not on this machine.
        UsageError: The new passphrase is empty, too long, or no line of text.
        ConfigError: The key file was changed by somebody else meanwhile.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    place.files.pin()
    choose = None if new is None else choosing(new)
    return place.files.relock_key(name, place.unlock, choose).public
