# SPDX-License-Identifier: Apache-2.0
"""Keys and identities: making a key here, and entering one into the roster with the root's key."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.api._init import ROOT
from sealpoint.api._place import StorePlace
from sealpoint.config import check_identity_name
from sealpoint.errors import UsageError
from sealpoint.signing import Identity, PublicKey, Role, RosterDocument, RosterKey, Signer
from sealpoint.store import Core, append_roster, check_name

__all__ = ["KeyInfo", "add_identity", "list_keys", "new_key"]

_Directory = str | os.PathLike[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInfo:
    """A key that the roster has, or that lies here."""

    name: str
    key: str
    """Its id, as signatures name it."""
    public: str
    person: str | None
    roles: tuple[str, ...]
    namespaces: tuple[str, ...]
    in_roster: bool
    here: bool
    """Whether the private half is on this machine."""


def new_key(
    url: str, name: str, *, config_dir: _Directory = None, state_dir: _Directory = None
) -> PublicKey:
    """Make a private key for an identity on this machine. It may do nothing until it is added.

    Raises:
        StoreExists: There is a key of this name here.
        NameInvalid: No identity can be called this.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    place.files.pin()
    signer = Signer.draw(check_identity_name(name), os.urandom)
    place.files.write_key(signer)
    return signer.public


def list_keys(
    url: str, *, config_dir: _Directory = None, state_dir: _Directory = None
) -> list[KeyInfo]:
    """Every identity of the roster in force, and every private key on this machine."""
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    pin = place.files.pin()
    here = {
        signer.public: signer.name for signer in map(place.files.signer, place.files.key_names())
    }
    parts = place.parts(pin=pin, signer=None, namespace="default", read_only=True)
    try:
        roster = Core(parts).renewed_trust().roster
    finally:
        parts.close()
    listed = []
    for identity in roster.identities:
        for key in identity.keys:
            public = PublicKey.parse(key.public)
            listed.append(
                _info(identity.name, public, identity, here=here.pop(public, None) is not None)
            )
    for public, name in here.items():
        roles = ("root",) if public in pin.root.keys else ()
        listed.append(_info(name, public, None, here=True, roles=roles))
    return listed


def _info(
    name: str,
    public: PublicKey,
    identity: Identity | None,
    *,
    here: bool,
    roles: tuple[str, ...] = (),
) -> KeyInfo:
    return KeyInfo(
        name=name,
        key=str(public.id),
        public=str(public),
        person=None if identity is None else identity.person,
        roles=roles if identity is None else tuple(str(role) for role in identity.roles),
        namespaces=() if identity is None else identity.namespaces,
        in_roster=identity is not None,
        here=here,
    )


def add_identity(
    url: str,
    name: str,
    *,
    public: str | None = None,
    person: str,
    roles: Sequence[str],
    namespaces: Sequence[str],
    reason: str | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
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
        reason: Why, for the record.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Returns:
        The sequence number of the new roster.

    Raises:
        KeyMissing: The root's keys, or the identity's, are not here.
        NotTrusted: The roster would contradict itself or take a right away.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    pin = place.files.pin()
    if check_identity_name(name) == ROOT:
        raise UsageError("identity: expected another name than root, which signs rosters alone")
    key = place.files.signer(name).public if public is None else PublicKey.parse(public)
    added = Identity(
        name=name,
        person=check_name(person, "person"),
        roles=tuple(_role(role) for role in sorted(set(roles))),
        namespaces=tuple(sorted({check_name(each, "namespace") for each in namespaces})),
        keys=(RosterKey(scheme="ed25519", public=str(key)),),
    )
    parts = place.parts(pin=pin, signer=None, namespace="default")
    try:
        core = Core(parts)
        chain = core.renewed_trust()
        document = _with(chain.roster.document, added)
        added_to = append_roster(core, chain, document, place.root_signers(pin), reason=reason)
        core.written(added_to)
        return added_to.roster.seq
    finally:
        parts.close()


def _role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError as exc:
        known = ", ".join(Role)
        raise UsageError(f"role: expected one of {known}, found {text!r}") from exc


def _with(document: RosterDocument, added: Identity) -> RosterDocument:
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
        keys = identity.keys + tuple(key for key in added.keys if key not in identity.keys)
        merged.append(
            msgspec.structs.replace(
                identity,
                roles=tuple(sorted({*identity.roles, *added.roles})),
                namespaces=tuple(sorted({*identity.namespaces, *added.namespaces})),
                keys=keys,
            )
        )
    if not found:
        merged.append(added)
    return msgspec.structs.replace(document, identities=tuple(merged))
