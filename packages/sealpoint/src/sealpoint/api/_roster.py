# SPDX-License-Identifier: Apache-2.0
"""The roster as a whole: its root, its pools, the quorum for restores, and copies of it.

A new root is signed by the old one and by itself, on one machine: collecting signatures from
several machines is not supported. Pins that name only the first root stay valid.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from sealpoint import store
from sealpoint.api._keys import identity_in
from sealpoint.api._store_location import StoreLocation, now
from sealpoint.config import PassphraseSource, check_identity_name, choosing
from sealpoint.errors import KeyLocked, UsageError
from sealpoint.ledger import StoreChain
from sealpoint.limits import SEALS_MAX
from sealpoint.signing import Pool, PrivateKey, PublicKey, Root, Roster
from sealpoint.store import append_root


@dataclass(frozen=True, slots=True, kw_only=True)
class RootRotation:
    """The new root of a store."""

    version: int
    threshold: int
    keys: tuple[str, ...]
    """The public halves of its keys."""
    made: str | None
    """The name of the private key that was made for it here, if any."""
    entry: int
    """Its position on the store chain."""


class RosterAdmin:
    """`admin.roster`: the parts that the root signs for the whole store, and copies of them."""

    def __init__(self, location: StoreLocation) -> None:
        self._location = location

    def rotate_root(
        self,
        *,
        keys: Sequence[str] = (),
        publics: Sequence[str] = (),
        threshold: int | None = None,
        reason: str | None = None,
        new_passphrase: PassphraseSource | None = None,
    ) -> RootRotation:
        """Replace the root in force with a new one.

        As many private keys of the old root as it requires, and of the new one, must be on this
        machine. The pin here names the new root from now on; export it again for other machines.

        Args:
            keys: The names of private keys on this machine, which `admin.keys.create` made; without
                these and `publics`, one is made and called `root-` and the version.
            publics: Public keys whose private halves are elsewhere.
            threshold: How many of the keys must sign; without it, as many as before.
            reason: Why, for the record.
            new_passphrase: The passphrase that encrypts the new key.

        Raises:
            UsageError: A key belongs to an identity, or is given twice, or the threshold is
                impossible.
            KeyMissing: Too few keys of the old or the new root are here.
            KeyLocked: A key is encrypted, and the passphrase is missing or wrong.
            HeadMoved: Another process changed the store chain: repeat it.
            Tampered, RolledBack, Forked, NotTrusted: The store chain does not verify.
        """
        location = self._location
        with location.open_core() as core:
            chain = core.renewed_trust()
            old = location.enough_root_signers(chain.root)
            version = chain.root.version + 1
            made = None if keys or publics else f"root-{version}"
            if made is not None:
                self._make_root_key(made, old, new_passphrase)
                keys = (made,)
            signers = [location.signer(name) for name in keys]
            every = [*(each.public for each in signers), *map(PublicKey.parse, publics)]
            root = _root(version, chain.root.threshold if threshold is None else threshold, every)
            _require_no_identity(chain, root)
            written = append_root(core, chain, root, [*old, *signers], reason=reason)
            location.raise_pin_minimum(core.written(written))
        return RootRotation(
            version=version,
            threshold=root.threshold,
            keys=tuple(str(key) for key in root.keys),
            made=made,
            entry=written.seq,
        )

    def _make_root_key(
        self, name: str, old: Sequence[PrivateKey], passphrase: PassphraseSource | None
    ) -> None:
        """Make the key of the next root, unless an interrupted rotation has made it."""
        files = self._location.files
        if name in files.keys.names():
            return
        if passphrase is None and any(files.keys.facts(signer.name).encrypted for signer in old):
            raise KeyLocked(
                f"key {name!r}: the present root key has a passphrase, so the next one needs one "
                "too, and none was given",
                hint="Give one: --passphrase with SEALPOINT_PASSPHRASE or a terminal, or "
                "passphrase= in Python. A key that was encrypted is not followed by one "
                "that is not.",
            )
        signer = PrivateKey.draw(name, os.urandom)
        files.keys.write(signer, None if passphrase is None else choosing(passphrase))

    def set_pool(
        self, name: str, members: Sequence[str], *, reason: str | None = None
    ) -> tuple[str, ...]:
        """Put identities into a pool, which is made if it does not exist.

        Threads that a member begins from now on belong to the pool, and every member may continue
        them; existing threads keep their owner. A member never leaves a pool: to remove a member's
        rights, revoke its key. The root's private keys must be on this machine.

        Args:
            name: The pool.
            members: Identities of the roster.
            reason: Why, for the record.

        Returns:
            All members of the pool.

        Raises:
            UsageError: There is no such identity, it is in another pool, or the name is an
                identity's.
            KeyMissing: The root's keys are not here.
        """
        check_identity_name(name)
        if not members:
            raise UsageError(f"pool {name!r}: a pool needs at least one member, and none was given")
        with self._location.open_core() as core:
            chain = core.renewed_trust()
            roster = chain.roster
            if roster.identity(name) is not None:
                raise UsageError(f"pool {name!r}: an identity has this name already")
            for member in members:
                identity_in(chain, member)
                _require_free(roster, member, name)
            everybody = tuple(sorted({*members, *roster.members.get(name, ())}))
            others = tuple(pool for pool in roster.document.pools if pool.name != name)
            document = msgspec.structs.replace(
                roster.document, pools=(*others, Pool(name=name, members=everybody))
            )
            self._location.append_roster(core, chain, document, reason=reason)
        return everybody

    def set_restore_quorum(self, persons: int, *, reason: str | None = None) -> int:
        """Let this many operators, of different persons, accept a restore without the root.

        They must be operators of all namespaces. The root's private keys must be on this machine.

        Args:
            persons: How many; 0 leaves it to the root alone, as in a new store.
            reason: Why, for the record.

        Returns:
            The sequence number of the new roster.

        Raises:
            UsageError: There are not enough such persons.
            KeyMissing: The root's keys are not here.
            HeadMoved: Another process changed the roster: repeat it.
        """
        with self._location.open_core() as core:
            chain = core.renewed_trust()
            most = min(len(_restorers(chain)), SEALS_MAX)
            if not 0 <= persons <= most:
                raise UsageError(
                    f"quorum: expected 0 to {most}, the number of persons who are operators of "
                    f"all namespaces, found {persons}",
                    hint="Add operators first, for each person: sealpoint keys new NAME, then "
                    "sealpoint keys add NAME --person WHO --role operator --namespace '*'",
                )
            document = msgspec.structs.replace(chain.roster.document, restore_quorum=persons)
            return self._location.append_roster(core, chain, document, reason=reason).roster.seq

    def export_copy(self) -> bytes:
        """Return the whole store chain in one document, for its backup. It holds no secret.

        Raises:
            NotTrusted: There is no pin for this store here.
            Tampered, RolledBack, Forked, Unanchored: The store chain does not verify.
        """
        with self._location.open_core(read_only=True) as core:
            return store.export_roster(core)

    def import_copy(self, data: bytes | None = None) -> int:
        """Put back entries of the store chain that a restored store lacks.

        Every entry is verified from the pin of this machine alone; existing entries do not change.

        Args:
            data: The result of `export_copy`; without it, the newest roster that was verified on
                this machine, which is kept with the keys.

        Returns:
            How many entries were put back.

        Raises:
            UsageError: No data is given, and none is kept.
            NotTrusted: The data is not a roster export, belongs to another store, or the pin's root
                did not sign it.
            Tampered: An entry, in the data or in the store, was changed.
            Forked: The store or the anchor has another entry where the data has one.
        """
        files = self._location.files
        if data is None and (data := files.kept_roster()) is None:
            raise UsageError(
                f"roster import: no copy of a roster is kept in {files.directory}",
                hint="Name the FILE of an export: sealpoint roster import FILE",
            )
        with self._location.open_core() as core:
            return store.import_roster(core, data)


def _root(version: int, threshold: int, keys: Sequence[PublicKey]) -> Root:
    if len(set(keys)) != len(keys):
        raise UsageError("root: one of the keys is given twice")
    if not 1 <= threshold <= len(keys):
        raise UsageError(
            f"root: expected a threshold of 1 to {len(keys)}, found {threshold}",
            hint="The threshold is how many of the new root's keys must sign.",
        )
    return Root(version=version, threshold=threshold, keys=keys)


def _require_no_identity(chain: StoreChain, root: Root) -> None:
    held = {key.raw for _, key in chain.roster.holders().values()}
    for key in root.keys:
        if key.raw in held or key.id.raw.hex() in chain.roster.cutoffs:
            raise UsageError(
                f"root: key {key.id.short()} belongs to an identity, and the root needs keys of "
                "its own"
            )


def _require_free(roster: Roster, member: str, pool: str) -> None:
    """Refuse a second pool for an identity, because the owner of its threads would be ambiguous."""
    for name, members in roster.members.items():
        if name != pool and member in members:
            raise UsageError(
                f"identity {member!r}: it is in the pool {name!r} already, and can be in one only",
                hint="Make an identity of its own for each service.",
            )


def _restorers(chain: StoreChain) -> set[str]:
    """Return the persons who count for the quorum."""
    holders = (chain.restorer(key, now()) for key in chain.roster.keys)
    return {holder[0].person for holder in holders if holder is not None}
