# SPDX-License-Identifier: Apache-2.0
"""Keys and identities: making keys here, adding them to the roster, replacing and ending them.

Only the root's private keys, on this machine, change the roster. A new private key is on the disk
before any roster names it, and replaces the old file last: if a rotation is interrupted, repeating
it completes it with the same key. The entries that a key signed before its end stay readable; an
entry that it signs later never counts, regardless of the time or roster that it names. The end of a
key is final.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from sealpoint.api._key_list import KeyInfo, KeyListing
from sealpoint.api._open import ROOT
from sealpoint.api._store_location import StoreLocation, wait_between_looks
from sealpoint.config import PassphraseSource, check_identity_name, choosing
from sealpoint.errors import KeyLocked, KeyMissing, KeyNotInForce, UsageError
from sealpoint.ids import KeyId
from sealpoint.ledger import StoreChain
from sealpoint.signing import (
    Identity,
    Passkey,
    PrivateKey,
    PublicKey,
    Role,
    RosterDocument,
    RosterKey,
)
from sealpoint.store import (
    Core,
    EndedKeys,
    UnverifiedThread,
    append_roster,
    check_name,
    find_key_usage,
    revoke_keys,
)

_Progress = Callable[[int, int], object]
_NEVER = "never"
_PREFIX = "key:"
_DIGITS_LEAST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """The result of a revocation, or of its dry run."""

    name: str
    """The identity."""
    keys: tuple[str, ...]
    """The ids of the keys that end."""
    roster: int | None
    """The position of the roster that ended them; None after a dry run."""
    threads: int
    """The number of threads with entries by these keys, which stay valid."""
    unverified: tuple[UnverifiedThread, ...]
    """Threads that did not verify: their anchored entries stay valid; if the anchor does not know
    the thread, none do."""
    beyond: tuple[UnverifiedThread, ...] = ()
    """Threads that no longer verify, because an entry came after the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The result of a rotation, or of its dry run."""

    name: str
    """The identity."""
    key: str | None
    """The id of the new key; None after a dry run."""
    public: str | None
    """Its public half; None after a dry run."""
    ended: tuple[str, ...]
    """The ids of the keys that end."""
    roster: int | None
    """The position of the roster that replaced them; None after a dry run."""
    threads: int
    """The number of threads with entries by the old keys, which stay valid."""
    here: bool
    """Whether the new private key is on this machine, in the place of the old one."""
    unverified: tuple[UnverifiedThread, ...] = ()
    """Threads that did not verify: their anchored entries stay valid; if the anchor does not know
    the thread, none do."""
    beyond: tuple[UnverifiedThread, ...] = ()
    """Threads that no longer verify, because an entry came after the end."""


class KeyAdmin:
    """`admin.keys`: the keys of a store's identities."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def create(self, name: str, *, new_passphrase: PassphraseSource | None = None) -> PublicKey:
        """Make a private key for an identity on this machine. It has no rights until it is added.

        Args:
            name: The identity.
            new_passphrase: The passphrase that encrypts the key, or a function that receives its
                name; without it, the key is not encrypted.

        Raises:
            StoreExists: There is a key of this name here.
            NameInvalid: The name is not valid for an identity.
        """
        files = self._location.files
        files.pin()
        signer = PrivateKey.draw(check_identity_name(name), os.urandom)
        files.keys.write(signer, None if new_passphrase is None else choosing(new_passphrase))
        return signer.public

    def add(
        self,
        name: str,
        *,
        public: str | None = None,
        passkey: Passkey | None = None,
        person: str | None = None,
        roles: Sequence[str] | None = None,
        namespaces: Sequence[str] | None = None,
        expires: datetime | str | None = None,
        break_glass: bool = False,
        reason: str | None = None,
    ) -> int:
        """Add an identity to the roster, or give an existing one more rights.

        The root's private keys must be on this machine. An existing identity keeps its person,
        roles and namespaces if the call does not give them: so it gets another key, without new
        rights.

        Args:
            name: The identity.
            public: Its public key, or that of a passkey which it has already; without it, the key
                of that name on this machine, or the one passkey that it has.
            passkey: A passkey instead, as the person enrolled it. Sealpoint cannot check that it is
                theirs: have them read its id to you.
            person: The person who uses it; one person counts once, regardless of the number of
                keys.
            roles: Some of writer, approver, operator, auditor, privacy.
            namespaces: The namespaces of these roles; `*` means everywhere. Person, roles and
                namespaces are required for a new identity.
            expires: The time from which the key may no longer write, with a zone; "never" removes
                an expiry, and without this, an existing expiry stays.
            break_glass: Whether it may, as an operator, let a request pass without approvals.
            reason: Why, for the record.

        Returns:
            The sequence number of the new roster.

        Raises:
            KeyMissing: The root's keys, or the identity's, are not here.
            KeyLocked: A root key is encrypted, and the passphrase is missing or wrong.
            NotTrusted: The roster would contradict itself or remove a right.
            UsageError: It is new, and a required value is missing.
        """
        if check_identity_name(name) == ROOT:
            raise UsageError("identity: the name root is taken by the key that signs rosters")
        self._location.files.pin()  # first, because without a pin nothing else counts
        given = _given(public, passkey)
        # Errors in the arguments are reported before the store is opened.
        said = {
            "person": None if person is None else check_name(person, "person"),
            "roles": None if roles is None else _roles(roles),
            "namespaces": None if namespaces is None else _namespaces(namespaces),
        }
        with self._location.open_core() as core:
            chain = core.renewed_trust()
            identity = _completed_identity(chain.roster.identity(name), name, said)
            key = self._meant(chain, name, given)
            _require_not_root(chain, name, key)
            added = msgspec.structs.replace(
                identity, keys=(RosterKey.of(key, _expiry(expires)),), break_glass=break_glass
            )
            document = _with(chain.roster.document, added, keep_expiry=expires is None)
            return self._location.append_roster(core, chain, document, reason=reason).roster.seq

    def _meant(
        self, chain: StoreChain, name: str, given: PublicKey | Passkey | str | None
    ) -> PublicKey | Passkey:
        """Return the given key; otherwise the key here, or the only passkey of the identity."""
        if isinstance(given, str):
            return _held_passkey(chain, name, given)
        if given is not None:
            return given
        keys = self._location.files.keys
        held = [key for identity, key in chain.roster.passkeys.values() if identity.name == name]
        if len(held) == 1 and name not in keys.names():
            return held[0]
        return keys.facts(name).public

    def change_passphrase(self, name: str, *, new: PassphraseSource | None) -> PublicKey:
        """Encrypt a private key on this machine with another passphrase, or with none.

        The key does not change, and its signatures stay valid. The new file replaces the old one
        only when it is durable.

        Args:
            name: The identity.
            new: The new passphrase, or a function that receives the key's name once the old one is
                open; None leaves the key unencrypted.

        Returns:
            The public half.

        Raises:
            KeyLocked: The key is encrypted, and the passphrase is missing or wrong.
            KeyMissing: The key is not on this machine.
            UsageError: The new passphrase is empty, too long, or not a line of text.
            ConfigError: Another process changed the key file in between.
        """
        location = self._location
        location.files.pin()
        choose = None if new is None else choosing(new)
        return location.files.keys.relock(name, location.unlock, choose).public

    def revoke(
        self,
        name: str,
        *,
        key: str | None = None,
        reason: str,
        dry_run: bool = False,
        progress: _Progress | None = None,
    ) -> Revocation:
        """End every key of an identity, or one of them, for good.

        The identity stays in the roster: its name, its person and its threads wait for a new key,
        which `rotate` gives. The root's private keys must be on this machine. It may be repeated if
        it was interrupted.

        Args:
            name: The identity.
            key: The id of one of its keys, or the first 12 digits or more; without it, all of them.
            reason: Why, for the record.
            dry_run: Only show what would end.
            progress: Called regularly with the number of finished threads and the total.

        Raises:
            UsageError: There is no such identity or key, it has ended already, or there is no
                reason.
            KeyMissing: The root's keys are not here.
            HeadMoved: Another process changed the roster, or the keys continued to write: repeat
                it.
            Tampered, RolledBack, Forked, NotTrusted: The store chain does not verify.
        """
        if not reason.strip():
            raise UsageError(
                "revoke: a reason is needed, and none was given",
                hint="Say in a few words why: it is read later.",
            )
        location = self._location
        with location.open_core(read_only=dry_run) as core:
            chain = core.renewed_trust()
            ending = _chosen(identity_in(chain, name), key)
            if dry_run:
                ended = _plan_end(core, ending, progress)
            else:
                ended = revoke_keys(
                    core,
                    ending,
                    location.enough_root_signers(chain.root),
                    change=lambda document: document,
                    reason=reason,
                    settle=wait_between_looks,
                    progress=progress,
                )
                location.raise_pin_minimum(core.trust())
        return Revocation(
            name=name,
            keys=tuple(f"{_PREFIX}{each}" for each in sorted(ending)),
            roster=None if dry_run else ended.roster,
            threads=ended.threads,
            unverified=ended.unverified,
            beyond=ended.beyond,
        )

    def prepare_next(
        self, name: str, *, new_passphrase: PassphraseSource | None = None
    ) -> PublicKey:
        """Prepare the next key of an identity on this machine, for a root that is on another one.

        Pass the public half to `rotate` there; then `take_next` brings the key into use here.

        Args:
            name: The identity, whose key is on this machine.
            new_passphrase: The passphrase that encrypts the new key, as for `create`.

        Returns:
            The public half; that of the already prepared key, if one exists.

        Raises:
            KeyMissing: The identity has no key here.
            KeyLocked: The current key is encrypted, and there is no passphrase for the next one.
        """
        files = self._location.files
        files.pin()
        if (facts := files.keys.next_facts(name)) is not None:
            return facts.public
        self._require_key_here(name)
        if new_passphrase is None and files.keys.facts(name).encrypted:
            raise KeyLocked(
                f"next key of {name!r}: the present key has a passphrase, so the next one needs "
                "one too, and none was given",
                hint="Give one: --passphrase with SEALPOINT_PASSPHRASE or a terminal, or "
                "passphrase= in Python. A key that was encrypted is not followed by one "
                "that is not.",
            )
        signer = PrivateKey.draw(name, os.urandom)
        files.keys.write_next(signer, None if new_passphrase is None else choosing(new_passphrase))
        facts = files.keys.next_facts(name)
        return signer.public if facts is None else facts.public

    def take_next(self, name: str) -> PublicKey:
        """Bring a prepared key into use here, once the roster has it; this replaces the old file.

        Raises:
            KeyMissing: No key was prepared here.
            KeyNotInForce: The roster does not have it.
        """
        files = self._location.files
        facts = files.keys.next_facts(name)
        if facts is not None:
            with self._location.open_core(read_only=True) as core:
                holder = core.renewed_trust().roster.holder(facts.public.id)
            if holder is None or holder[0].name != name:
                raise KeyNotInForce(
                    f"next key of {name!r}: {facts.public.id.short()} is not in the roster yet",
                    hint="Where the root is: sealpoint keys rotate "
                    f"{name} --public-key {facts.public}",
                )
        files.keys.take_next(name)
        return files.keys.facts(name).public

    def rotate(
        self,
        name: str,
        *,
        public: str | None = None,
        passkey: Passkey | None = None,
        roles: Sequence[str] | None = None,
        namespaces: Sequence[str] | None = None,
        expires: datetime | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        progress: _Progress | None = None,
        new_passphrase: PassphraseSource | None = None,
    ) -> Rotation:
        """Give an identity a new key, and end its previous keys.

        Passkeys end if a new passkey or other rights are given; otherwise they stay. If a passkey
        is replaced, the other keys stay.

        Processes that hold an old key are refused at their next save; start them again. The entries
        of the old keys stay readable, and the new key continues with the threads. The root's
        private keys must be on this machine. It may be repeated if it was interrupted.

        Args:
            name: The identity.
            public: Its new public key, made elsewhere; without it, a new private key is made here
                and replaces the old one.
            passkey: Its new passkey instead, as the person enrolled it.
            roles: Its roles from now on; without this, the previous ones.
            namespaces: The namespaces of the roles from now on; without this, the previous ones.
            expires: The time from which the new key may no longer write, with a zone.
            reason: Why, for the record.
            dry_run: Only show what would end.
            progress: Called regularly with the number of finished threads and the total.
            new_passphrase: The passphrase that encrypts the new private key.

        Raises:
            UsageError: There is no such identity, or the given key is the only one that it has.
            KeyMissing: The root's keys are not here, or the old key is not and `public` is missing.
            KeyLocked: The old private key is encrypted, and there is no passphrase for the new one.
            HeadMoved: Another process changed the roster, or the keys continued to write: repeat
                it.
            Tampered, RolledBack, Forked, NotTrusted: The store chain does not verify.
        """
        rights = _NewRights(
            name=name,
            roles=None if roles is None else _roles(roles),
            namespaces=None if namespaces is None else _namespaces(namespaces),
            expires=_expiry(expires),
        )
        _require_one(public, passkey)
        given = passkey if public is None else PublicKey.parse(public)
        with self._location.open_core(read_only=dry_run) as core:
            identity = identity_in(core.renewed_trust(), name)
            old = rights.ending(identity, passkey)
            _require_other(name, given, old)
            if dry_run:
                if given is None:
                    self._require_key_here(name)
                made, ended = None, _plan_end(core, _digits(old), progress)
            else:
                roots = self._location.enough_root_signers(core.trust().root)
                made = given or self.prepare_next(name, new_passphrase=new_passphrase)
                _require_not_root(core.trust(), name, made)
                old.discard(made.id)
                ended = rights.give(core, made, old, roots, reason=reason, progress=progress)
                self._location.raise_pin_minimum(core.trust())
        if made is not None and given is None:
            self._location.files.keys.take_next(name)
        return _rotation(name, made, old, ended, here=given is None)

    def _require_key_here(self, name: str) -> None:
        if name not in self._location.files.keys.names():
            raise KeyMissing(
                f"key {name!r}: neither the key nor its new public half is here",
                hint=f"Where its key is: sealpoint keys rotate {name} --prepare; then here: "
                f"sealpoint keys rotate {name} --public-key HEX",
            )

    def list(self) -> tuple[KeyInfo, ...]:
        """Return every key of the roster in force, private keys on this machine, and revoked keys.

        Raises:
            NotTrusted: There is no pin for this store here.
        """
        files = self._location.files
        files.pin()
        facts = {name: files.keys.facts(name) for name in files.keys.names()}
        with self._location.open_core(read_only=True) as core:
            return KeyListing(core.renewed_trust(), facts, core.now()).rows()


def _require_other(name: str, given: PublicKey | Passkey | None, old: set[KeyId]) -> None:
    """Refuse to replace a key by itself: a caller with the wrong file would think that it ended.

    Raises:
        UsageError: No other key ends.
    """
    if given is not None and old == {given.id}:
        key = given.id.short()
        raise UsageError(
            f"key {key} is the one that {name!r} has, and would stay in force: nothing ends",
            hint="Give the new one, as it was made; to end this one without another: sealpoint "
            f"keys revoke {name} --key {key} --reason WHY",
        )


def _rotation(
    name: str,
    made: PublicKey | Passkey | None,
    old: Iterable[KeyId],
    ended: EndedKeys,
    *,
    here: bool,
) -> Rotation:
    return Rotation(
        name=name,
        key=None if made is None else str(made.id),
        public=None if made is None else str(made),
        ended=tuple(str(key) for key in sorted(old)),
        roster=None if made is None else ended.roster,
        threads=ended.threads,
        here=here,
        unverified=ended.unverified,
        beyond=ended.beyond,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewRights:
    """The new rights of an identity, where None means unchanged."""

    name: str
    roles: tuple[Role, ...] | None
    namespaces: tuple[str, ...] | None
    expires: datetime | None

    def ending(self, identity: Identity, passkey: Passkey | None) -> set[KeyId]:
        """Return the keys that end: those of the new key's scheme; with other rights, all."""
        keys = [each.key for each in identity.keys]
        if self.roles is None and self.namespaces is None:
            keys = [key for key in keys if isinstance(key, Passkey) == (passkey is not None)]
        return {key.id for key in keys}

    def give(
        self,
        core: Core,
        made: PublicKey | Passkey,
        old: Iterable[KeyId],
        roots: Sequence[PrivateKey],
        *,
        reason: str | None,
        progress: _Progress | None,
    ) -> EndedKeys:
        """Replace the keys; an identity without a key, or with only the new one, loses none."""
        ending = _digits(old)
        if ending:
            return revoke_keys(
                core,
                ending,
                roots,
                change=lambda document: self._applied_to(document, made),
                reason=reason,
                settle=wait_between_looks,
                progress=progress,
            )
        chain = core.renewed_trust()
        document = self._applied_to(chain.roster.document, made)
        if document != chain.roster.document:
            chain = core.written(append_roster(core, chain, document, roots, reason=reason))
        return EndedKeys(roster=chain.roster.seq, threads=0, unverified=(), beyond=())

    def _applied_to(self, document: RosterDocument, made: PublicKey | Passkey) -> RosterDocument:
        """Return the roster in which the identity has these rights and the new key."""

        def changed(identity: Identity) -> Identity:
            if identity.name != self.name:
                return identity
            key = RosterKey.of(made, self.expires)
            others = tuple(each for each in identity.keys if each.public != key.public)
            return msgspec.structs.replace(
                identity,
                roles=identity.roles if self.roles is None else self.roles,
                namespaces=identity.namespaces if self.namespaces is None else self.namespaces,
                keys=(*others, key),
            )

        return msgspec.structs.replace(
            document, identities=tuple(changed(each) for each in document.identities)
        )


def _plan_end(core: Core, keys: frozenset[str], progress: _Progress | None) -> EndedKeys:
    """Return what ending keys would do."""
    usage = find_key_usage(core, keys, None, progress)
    return EndedKeys(roster=-1, threads=usage.threads, unverified=usage.unverified, beyond=())


def _digits(keys: Iterable[KeyId]) -> frozenset[str]:
    return frozenset(key.raw.hex() for key in keys)


def _given(public: str | None, passkey: Passkey | None) -> PublicKey | Passkey | str | None:
    """Return the given key; a passkey that the roster already has is still a text here."""
    _require_one(public, passkey)
    if public is None or ":" in public:
        return passkey or public
    return PublicKey.parse(public)


def _require_one(public: str | None, passkey: Passkey | None) -> None:
    if public is not None and passkey is not None:
        raise UsageError("identity: a public key and a passkey cannot be combined")


def _held_passkey(chain: StoreChain, name: str, public: str) -> Passkey:
    """Return the passkey of an identity that has this public key."""
    for identity, passkey in chain.roster.passkeys.values():
        if (identity.name, passkey.public) == (name, public):
            return passkey
    raise UsageError(
        f"identity {name!r}: the roster has no passkey with this public key for it",
        hint="To add one, give its enrolment, which the console gives out: --passkey FILE.",
    )


def _require_not_root(chain: StoreChain, name: str, key: PublicKey | Passkey) -> None:
    if any(key.raw == each.raw for each in chain.root.keys):
        raise UsageError(
            f"identity {name!r}: this is a key of the root, which no identity may hold"
        )


def _namespaces(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({check_name(each, "namespace") for each in names}))


def _completed_identity(known: Identity | None, name: str, said: Mapping[str, Any]) -> Identity:
    """Return an identity as described, with missing values from the roster.

    Raises:
        UsageError: The roster does not have it, and a value is missing.
    """
    given = {what: value for what, value in said.items() if value is not None}
    if known is not None:
        return msgspec.structs.replace(known, **given)
    if missing := [what for what in said if what not in given]:
        raise UsageError(
            f"identity {name!r} is not in the roster: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} required",
            hint="Say who it is and what it may do: --person WHO --role ROLE --namespace "
            "NAMESPACE. sealpoint keys list shows the names that are there.",
        )
    return Identity(name=name, keys=(), **given)


def _roles(names: Sequence[str]) -> tuple[Role, ...]:
    """Return roles by their names, each once and in order."""
    known = {str(role): role for role in Role}
    for name in names:
        if name not in known:
            raise UsageError(f"role: expected one of {', '.join(Role)}, found {name!r}")
    return tuple(known[name] for name in sorted(set(names)))


def _expiry(expires: datetime | str | None) -> datetime | None:
    """Return an expiry for a roster, in UTC; None for "never" and if none was given."""
    if isinstance(expires, str):
        if expires != _NEVER:
            raise UsageError(f"expires: expected a time or {_NEVER!r}, found {expires!r}")
        return None
    if expires is None:
        return None
    if expires.tzinfo is None:
        raise UsageError(
            "expires: expected a time with a zone, found one without",
            hint="Give it with its zone, such as datetime(2030, 1, 1, tzinfo=UTC).",
        )
    return expires.astimezone(UTC)


def identity_in(chain: StoreChain, name: str) -> Identity:
    """Return an identity of the roster in force.

    Raises:
        UsageError: No identity has this name.
    """
    identity = chain.roster.identity(name)
    if identity is None:
        known = ", ".join(each.name for each in chain.roster.identities) or "none"
        raise UsageError(
            f"identity {name!r}: the roster has no such identity; it has {known}",
            hint="Name one of those; sealpoint keys add enters another, where the root key is.",
        )
    return identity


def _chosen(identity: Identity, key: str | None) -> frozenset[str]:
    """Return the digits of the ids of the chosen keys."""
    held = [each.digits for each in identity.keys]
    if not held:
        raise UsageError(
            f"identity {identity.name!r}: all its keys have been revoked already",
            hint="Nothing is left to be revoked; sealpoint keys list --all shows what ended.",
        )
    if key is None:
        return frozenset(held)
    digits = key.removeprefix(_PREFIX)
    found = [each for each in held if len(digits) >= _DIGITS_LEAST and each.startswith(digits)]
    if len(found) != 1:
        shown = ", ".join(each[:_DIGITS_LEAST] for each in held)
        raise UsageError(
            f"key {key!r}: identity {identity.name!r} has no such key; it has {shown}",
            hint=f"Give the id of the key, or at least its first {_DIGITS_LEAST} digits.",
        )
    return frozenset(found)


def _with(document: RosterDocument, added: Identity, *, keep_expiry: bool) -> RosterDocument:
    """Return the roster with an identity added, or with more rights for an existing one."""
    merged = []
    found = False
    for identity in document.identities:
        if identity.name != added.name:
            merged.append(identity)
            continue
        found = True
        if identity.person != added.person:
            raise UsageError(
                f"identity {added.name!r}: it belongs to the person {identity.person!r} and "
                f"cannot be given to {added.person!r}",
                hint="A person counts once, so keys do not change hands: take another name.",
            )
        keys = {key.public: key for key in identity.keys}
        for key in added.keys:
            before = keys.get(key.public, key)
            if before.passkey != key.passkey:
                raise UsageError(
                    f"identity {added.name!r}: it has this passkey for another origin, relying "
                    "party or credential, and none of that ever changes",
                    hint="Have a new passkey made at the console, and add that.",
                )
            if not keep_expiry or before is key:
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
