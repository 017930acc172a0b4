# SPDX-License-Identifier: Apache-2.0
"""A new root: other keys, or another threshold, sign rosters from now on.

It is signed by the old root and by the new one, on one machine: collecting signatures from
several is not offered. Pins that name the first root alone stay good.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from sealpoint.api._key_changes import demand, identity_in, opened
from sealpoint.api._location import StorePlace
from sealpoint.config import PassphraseSource, check_identity_name, choosing
from sealpoint.errors import KeyLocked, UsageError
from sealpoint.signing import Pool, PrivateKey, PublicKey, Root, Roster
from sealpoint.store import append_root, append_roster, require_roots

_Directory = str | os.PathLike[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RootRotation:
    """The new root of a store."""

    version: int
    threshold: int
    keys: tuple[str, ...]
    """The public halves of its keys."""
    made: str | None
    """The name of the private key that was made for it here, if one was."""
    entry: int
    """Its position on the store chain."""


def rotate_root(
    url: str,
    *,
    keys: Sequence[str] = (),
    publics: Sequence[str] = (),
    threshold: int | None = None,
    reason: str | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
    new_passphrase: PassphraseSource | None = None,
) -> RootRotation:
    """Put a new root in the place of the one in force.

    As many private keys of the old root as it demands, and of the new one, must be on this
    machine. The pin here names the new root from now on; export it again for other machines.

    Args:
        url: The store.
        keys: The names of private keys on this machine, which `new_key` made; without these and
            `publics`, one is made and called `root-` and the version.
        publics: Public keys whose private halves are elsewhere.
        threshold: How many of the keys must sign; without it, as many as before.
        reason: Why, for the record.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the keys if they are encrypted, as for `open_store`.
        new_passphrase: Under which the key that is made is encrypted.

    Raises:
        UsageError: A key belongs to an identity, or is given twice, or the threshold cannot be.
        KeyMissing: Too few keys of the old or the new root are here.
        KeyLocked: A key is encrypted, and the passphrase is missing or does not open it.
        HeadMoved: Somebody else changed the store chain: repeat it.
        Tampered, RolledBack, Forked, NotTrusted: The store chain cannot be believed.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    with opened(place) as core:
        chain = core.renewed_trust()
        old = require_roots(chain.root, place.root_signers(chain.root))
        version = chain.root.version + 1
        made = None if keys or publics else f"root-{version}"
        if made is not None:
            _make(place, made, old, new_passphrase)
        signers = [place.signer(name) for name in (keys if made is None else (made,))]
        every = [signer.public for signer in signers] + [PublicKey.parse(key) for key in publics]
        root = _root(version, chain.root.threshold if threshold is None else threshold, every)
        for key in root.keys:
            holder = chain.roster.holder(key.id)
            if holder is not None or key.id.raw.hex() in chain.roster.cutoffs:
                raise UsageError(
                    f"root: expected keys of its own, found key {key.id.short()} of an identity"
                )
        written = append_root(core, chain, root, [*old, *signers], reason=reason)
        demand(place, core.written(written))
    return RootRotation(
        version=version,
        threshold=root.threshold,
        keys=tuple(str(key) for key in root.keys),
        made=made,
        entry=written.seq,
    )


def _make(
    place: StorePlace, name: str, old: Sequence[PrivateKey], passphrase: PassphraseSource | None
) -> None:
    """Make the key of the next root, unless an interrupted rotation has made it."""
    if name in place.files.key_names():
        return
    if passphrase is None and any(place.files.key_facts(signer.name).encrypted for signer in old):
        raise KeyLocked(
            f"key {name!r}: expected a passphrase, since the present root has one, found none",
            hint="A key that was encrypted is not followed by one that is not.",
        )
    signer = PrivateKey.draw(name, os.urandom)
    place.files.write_key(signer, None if passphrase is None else choosing(passphrase))


def _root(version: int, threshold: int, keys: Sequence[PublicKey]) -> Root:
    if len(set(keys)) != len(keys):
        raise UsageError("root: expected different keys, found one of them twice")
    if not 1 <= threshold <= len(keys):
        raise UsageError(
            f"root: expected a threshold of 1 to {len(keys)}, found {threshold}",
            hint="The threshold is how many of the new root's keys must sign.",
        )
    return Root(version=version, threshold=threshold, keys=keys)


# ---------------------------------------------------------------------- pools
# Pools: identities that own threads together, such as the pods of one service.


def set_pool(
    url: str,
    name: str,
    members: Sequence[str],
    *,
    reason: str | None = None,
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    passphrase: PassphraseSource | None = None,
) -> tuple[str, ...]:
    """Put identities into a pool, which is made if there is none of this name.

    Threads that a member begins from now on belong to the pool, and every member may go on with
    them; threads that are there keep their owner. Who is in a pool stays in it: what a member may
    do is taken away by revoking its key. The root's private keys must be on this machine.

    Args:
        url: The store.
        name: The pool.
        members: Identities of the roster.
        reason: Why, for the record.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the root's keys if they are encrypted, as for `open_store`.

    Returns:
        All members of the pool.

    Raises:
        UsageError: There is no such identity, it is in another pool, or the name is an identity's.
        KeyMissing: The root's keys are not here.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    check_identity_name(name)
    if not members:
        raise UsageError(f"pool {name!r}: expected members, found none")
    with opened(place) as core:
        chain = core.renewed_trust()
        roster = chain.roster
        if roster.identity(name) is not None:
            raise UsageError(f"pool {name!r}: expected a name of its own, found an identity's")
        for member in members:
            identity_in(chain, member)
            _require_free(roster, member, name)
        everybody = tuple(sorted({*members, *roster.members.get(name, ())}))
        others = tuple(pool for pool in roster.document.pools if pool.name != name)
        document = msgspec.structs.replace(
            roster.document, pools=(*others, Pool(name=name, members=everybody))
        )
        roots = require_roots(chain.root, place.root_signers(chain.root))
        core.written(append_roster(core, chain, document, roots, reason=reason))
    return everybody


def _require_free(roster: Roster, member: str, pool: str) -> None:
    """Nobody is put into a second pool: it would no longer be plain who owns what it begins."""
    for name, members in roster.members.items():
        if name != pool and member in members:
            raise UsageError(
                f"identity {member!r}: expected it in no other pool, found it in {name!r}",
                hint="Make an identity of its own for each service.",
            )
