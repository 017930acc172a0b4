# SPDX-License-Identifier: Apache-2.0
"""Keys and identities: making a key here, and entering one into the roster with the root's key."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from sealpoint.api._init import ROOT
from sealpoint.api._place import StorePlace
from sealpoint.config import PassphraseSource, check_identity_name, choosing
from sealpoint.errors import UsageError
from sealpoint.signing import (
    Identity,
    PrivateKey,
    PublicKey,
    Role,
    RosterDocument,
    RosterKey,
)
from sealpoint.store import Core, append_roster, check_name

__all__ = ["add_identity", "expiry", "new_key", "roles_of"]

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
