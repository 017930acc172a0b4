# SPDX-License-Identifier: Apache-2.0
"""Rotating: an identity gets a new key, and its old ones come to their end.

The new private key is on the disk before any roster names it, and takes the place of the old file
last: whatever interrupts a rotation, repeating it brings it to its end with the same key.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import msgspec

from sealpoint.api._keys import expiry, roles_of
from sealpoint.api._location import StorePlace
from sealpoint.config import PassphraseSource, choosing
from sealpoint.errors import KeyLocked, KeyMissing, NotTrusted, UsageError
from sealpoint.ids import KeyId
from sealpoint.ledger import StoreChain
from sealpoint.signing import Identity, PrivateKey, PublicKey, Role, RosterDocument, RosterKey
from sealpoint.store import (
    Core,
    EndedKeys,
    UnverifiedThread,
    append_roster,
    check_name,
    find_key_usage,
    require_roots,
    revoke_keys,
)

# ---------------------------------------------------------------------- revoke
# Revoking: an identity's keys, or one of them, come to their end.
#
# What they wrote until then stays readable; nothing that is signed with them later counts,
# whatever time or roster it names. A revocation is final.


_Directory = str | os.PathLike[str] | None
_SETTLE_SECONDS = 0.2
_PREFIX = "key:"
_DIGITS_LEAST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What a revocation did, or would do."""

    name: str
    """The identity."""
    keys: tuple[str, ...]
    """The ids of the keys that end."""
    roster: int | None
    """The position of the roster that ended them; None after a dry run."""
    threads: int
    """In how many threads something by these keys is there, and stays good."""
    unverified: tuple[UnverifiedThread, ...]
    """Threads that did not verify: what the anchor has seen of them stays good, and nothing of
    those that it does not know."""
    beyond: tuple[UnverifiedThread, ...] = ()
    """Threads that do not verify any more, because something came after the end."""


def revoke_key(
    url: str,
    name: str,
    *,
    key: str | None = None,
    reason: str,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
) -> Revocation:
    """End every key of an identity, or one of them, for good.

    The identity keeps its line in the roster: its name, its person and its threads wait for a new
    key, which `rotate_key` gives. The root's private keys must be on this machine. It may be
    repeated when it was interrupted.

    Args:
        url: The store.
        name: The identity.
        key: The id of one key of it, or its first 12 digits or more; without it, all of them.
        reason: Why, for the record.
        dry_run: Only say what would end.
        progress: Called now and then with how many threads are done, and how many there are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the root's keys if they are encrypted, as for `open_store`.

    Raises:
        UsageError: There is no such identity or key, it has ended already, or there is no reason.
        KeyMissing: The root's keys are not here.
        HeadMoved: Somebody else changed the roster, or the keys went on writing: repeat it.
        Tampered, RolledBack, Forked, NotTrusted: The store chain cannot be believed.
    """
    if not reason.strip():
        raise UsageError("revoke: expected a reason, found none")
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    with opened(place, read_only=dry_run) as core:
        chain = core.renewed_trust()
        ending = _chosen(identity_in(chain, name), key)
        shown = tuple(f"{_PREFIX}{each}" for each in sorted(ending))
        if dry_run:
            usage = find_key_usage(core, ending, None, progress)
            return Revocation(
                name=name,
                keys=shown,
                roster=None,
                threads=usage.threads,
                unverified=usage.unverified,
            )
        roots = require_roots(chain.root, place.root_signers(chain.root))
        ended = revoke_keys(
            core,
            ending,
            roots,
            change=lambda document: document,
            reason=reason,
            settle=settle,
            progress=progress,
        )
        demand(place, core.trust())
    return Revocation(
        name=name,
        keys=shown,
        roster=ended.roster,
        threads=ended.threads,
        unverified=ended.unverified,
        beyond=ended.beyond,
    )


@contextmanager
def opened(place: StorePlace, *, read_only: bool = False) -> Iterator[Core]:
    """The store for a change of its keys: without an identity of its own."""
    parts = place.parts(
        pin=place.files.pin(), signer=None, namespace="default", read_only=read_only
    )
    try:
        yield Core(parts)
    finally:
        parts.close()


def settle() -> None:
    """Let a moment pass, in which a save that is under way comes to its end."""
    time.sleep(_SETTLE_SECONDS)


def demand(place: StorePlace, chain: StoreChain) -> None:
    """Let the pin of this machine name the roster and the root in force.

    Should the anchor be lost, an older store chain is still refused here: one without the end of
    a key that ended.
    """
    pin = place.files.pin()
    newer = pin.with_roster(chain.roster.seq).with_root(chain.root)
    if newer.encode() != pin.encode():
        place.files.write_pin(newer, replace=True)


def identity_in(chain: StoreChain, name: str) -> Identity:
    """An identity of the roster in force.

    Raises:
        UsageError: There is none of this name.
    """
    identity = chain.roster.identity(name)
    if identity is None:
        known = ", ".join(each.name for each in chain.roster.identities) or "none"
        raise UsageError(f"identity {name!r}: expected one of the roster ({known}), found another")
    return identity


def _chosen(identity: Identity, key: str | None) -> frozenset[str]:
    """The digits of the ids of the keys that are meant."""
    held = [PublicKey.parse(each.public).id.raw.hex() for each in identity.keys]
    if not held:
        raise UsageError(
            f"identity {identity.name!r}: expected a key to revoke, found that all have ended",
            hint="Nothing is left to be revoked; sealpoint keys list --all shows what ended.",
        )
    if key is None:
        return frozenset(held)
    digits = key.removeprefix(_PREFIX)
    found = [each for each in held if len(digits) >= _DIGITS_LEAST and each.startswith(digits)]
    if len(found) != 1:
        shown = ", ".join(each[:_DIGITS_LEAST] for each in held)
        raise UsageError(
            f"key {key!r}: expected one of identity {identity.name!r} ({shown}), found another",
            hint=f"Give the id of the key, or at least its first {_DIGITS_LEAST} digits.",
        )
    return frozenset(found)


# ---------------------------------------------------------------------- key changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What a rotation did, or would do."""

    name: str
    """The identity."""
    key: str | None
    """The id of the new key; None after a dry run."""
    public: str | None
    """Its public half; None after a dry run."""
    ended: tuple[str, ...]
    """The ids of the keys that end."""
    roster: int | None
    """The position of the roster that exchanged them; None after a dry run."""
    threads: int
    """In how many threads something by the old keys is there, and stays good."""
    here: bool
    """Whether the new private key is on this machine, in the place of the old one."""
    unverified: tuple[UnverifiedThread, ...] = ()
    """Threads that did not verify: what the anchor has seen of them stays good, and nothing of
    those that it does not know."""
    beyond: tuple[UnverifiedThread, ...] = ()
    """Threads that do not verify any more, because something came after the end."""


def next_key(
    url: str,
    name: str,
    *,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
) -> PublicKey:
    """Prepare the next key of an identity on this machine, for a root that is on another one.

    There the public half is given to `rotate_key`; here `take_next_key` then brings it into use.

    Args:
        url: The store.
        name: The identity, whose key lies here.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: Under which the new key is encrypted, as for `new_key`.

    Returns:
        The public half; of the key that was prepared already, if one was.

    Raises:
        KeyMissing: The identity has no key here.
        KeyLocked: The present key is encrypted, and there is no passphrase for the next one.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    place.files.pin()
    return _prepared(place, name, passphrase)


def take_next_key(
    url: str, name: str, *, config_dir: _Directory = None, state_dir: _Directory = None
) -> PublicKey:
    """Bring a prepared key into use here, once the roster has it; the old file is gone with that.

    Raises:
        KeyMissing: None was prepared here.
        NotTrusted: The roster does not have it.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    facts = place.files.next_key(name)
    if facts is not None:
        with opened(place, read_only=True) as core:
            holder = core.renewed_trust().roster.holder(facts.public.id)
        if holder is None or holder[0].name != name:
            raise NotTrusted(
                f"next key of {name!r}: expected it in the roster, found it missing",
                hint=f"Where the root is: sealpoint keys rotate {name} --public-key {facts.public}",
            )
    place.files.take_next_key(name)
    return place.files.key_facts(name).public


def rotate_key(
    url: str,
    name: str,
    *,
    public: str | None = None,
    roles: Sequence[str] | None = None,
    namespaces: Sequence[str] | None = None,
    expires: datetime | None = None,
    reason: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
    new_passphrase: PassphraseSource | None = None,
) -> Rotation:
    """Give an identity a new key, and end all keys that it had.

    Processes that hold an old key are refused at their next save; start them again. What the old
    keys wrote stays readable, and the new key goes on with the threads. The root's private keys
    must be on this machine. It may be repeated when it was interrupted.

    Args:
        url: The store.
        name: The identity.
        public: Its new public key, made elsewhere; without it, a new private key is made here and
            takes the place of the old one.
        roles: What it may do from now on; without this, what it might before.
        namespaces: Where it may do it from now on; without this, where it might before.
        expires: From when on the new key may not write any more, with a zone.
        reason: Why, for the record.
        dry_run: Only say what would end.
        progress: Called now and then with how many threads are done, and how many there are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the root's keys if they are encrypted, as for `open_store`.
        new_passphrase: Under which the new private key is encrypted.

    Raises:
        UsageError: There is no such identity.
        KeyMissing: The root's keys are not here, or the identity's is not and `public` is missing.
        KeyLocked: The old private key is encrypted, and there is no passphrase for the new one.
        HeadMoved: Somebody else changed the roster, or the keys went on writing: repeat it.
        Tampered, RolledBack, Forked, NotTrusted: The store chain cannot be believed.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    order = _Order(
        name=name,
        roles=None if roles is None else roles_of(roles),
        namespaces=None if namespaces is None else _names(namespaces),
        expires=expiry(expires),
        reason=reason,
        progress=progress,
    )
    given = None if public is None else PublicKey.parse(public)
    if dry_run:
        return _planned(place, order, given)
    return _rotated(place, order, given, new_passphrase)


def _planned(place: StorePlace, order: "_Order", given: PublicKey | None) -> Rotation:
    with opened(place, read_only=True) as core:
        held = _held(core, order.name)
        if given is None:
            _require_key_here(place, order.name)
        return _rotation(order.name, None, held, order.planned(core, held), here=given is None)


def _rotated(
    place: StorePlace,
    order: "_Order",
    given: PublicKey | None,
    passphrase: PassphraseSource | None,
) -> Rotation:
    name = order.name
    with opened(place) as core:
        held = _held(core, name)
        root = core.trust().root
        roots = require_roots(root, place.root_signers(root))
        made = given or _prepared(place, name, passphrase)
        if made in root.keys:
            raise UsageError(f"identity {name!r}: expected another key than one of the root's")
        held.discard(made.id)
        ended = order.carried_out(core, made, held, roots)
        demand(place, core.trust())
    if given is None:
        place.files.take_next_key(name)
    return _rotation(name, made, held, ended, here=given is None)


def _held(core: Core, name: str) -> set[KeyId]:
    """The keys that an identity has now."""
    identity = identity_in(core.renewed_trust(), name)
    return {PublicKey.parse(key.public).id for key in identity.keys}


def _names(namespaces: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({check_name(each, "namespace") for each in namespaces}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What an identity has from now on, where None means as before, and how that is done."""

    name: str
    roles: tuple[Role, ...] | None
    namespaces: tuple[str, ...] | None
    expires: datetime | None
    reason: str | None
    progress: Callable[[int, int], object] | None

    def planned(self, core: Core, old: Iterable[KeyId]) -> EndedKeys:
        """What would end."""
        usage = find_key_usage(core, _digits(old), None, self.progress)
        return EndedKeys(roster=-1, threads=usage.threads, unverified=usage.unverified, beyond=())

    def carried_out(
        self, core: Core, made: PublicKey, old: Collection[KeyId], roots: Sequence[PrivateKey]
    ) -> EndedKeys:
        """Exchange the keys; an identity without one, or with the new one alone, loses none."""
        if old:
            return revoke_keys(
                core,
                _digits(old),
                roots,
                change=lambda document: self._given(document, made),
                reason=self.reason,
                settle=settle,
                progress=self.progress,
            )
        chain = core.renewed_trust()
        document = self._given(chain.roster.document, made)
        if document != chain.roster.document:
            written = append_roster(core, chain, document, roots, reason=self.reason)
            chain = core.written(written)
        return EndedKeys(roster=chain.roster.seq, threads=0, unverified=(), beyond=())

    def _given(self, document: RosterDocument, made: PublicKey) -> RosterDocument:
        """The roster in which the identity has these rights, and the new key with them."""

        def changed(identity: Identity) -> Identity:
            if identity.name != self.name:
                return identity
            key = RosterKey(scheme="ed25519", public=str(made), expires=self.expires)
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


def _digits(keys: Iterable[KeyId]) -> frozenset[str]:
    return frozenset(key.raw.hex() for key in keys)


def _prepared(place: StorePlace, name: str, passphrase: PassphraseSource | None) -> PublicKey:
    """The next key of an identity here: the one that was prepared already, or a new one."""
    facts = place.files.next_key(name)
    if facts is not None:
        return facts.public
    _require_key_here(place, name)
    if passphrase is None and place.files.key_facts(name).encrypted:
        raise KeyLocked(
            f"next key of {name!r}: expected a passphrase, since the present key has one, found "
            "none",
            hint="A key that was encrypted is not followed by one that is not.",
        )
    signer = PrivateKey.draw(name, os.urandom)
    place.files.write_next_key(signer, None if passphrase is None else choosing(passphrase))
    facts = place.files.next_key(name)
    return signer.public if facts is None else facts.public


def _require_key_here(place: StorePlace, name: str) -> None:
    if name not in place.files.key_names():
        raise KeyMissing(
            f"key {name!r}: expected it on this machine, or its new public half, found neither",
            hint=f"Where its key is: sealpoint keys rotate {name} --prepare; then here: sealpoint "
            f"keys rotate {name} --public-key HEX",
        )


def _rotation(
    name: str, made: PublicKey | None, old: Iterable[KeyId], ended: EndedKeys, *, here: bool
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
