# SPDX-License-Identifier: Apache-2.0
"""Coming back from a backup: what was lost, accepting it, and the roster that must be the newest.

A plan only looks. Accepting needs the root's private keys on this machine, or those of as many
operators as the roster asks for.
"""

import os
from collections.abc import Callable, Collection, Sequence

import msgspec

from sealpoint import store
from sealpoint.api._key_changes import opened
from sealpoint.api._location import StorePlace, now
from sealpoint.config import PassphraseSource
from sealpoint.errors import UsageError
from sealpoint.ledger import StoreChain
from sealpoint.limits import SEALS_MAX
from sealpoint.store import AcceptedRestore, RestorePlan, append_roster, require_roots

_Directory = str | os.PathLike[str] | None
_Progress = Callable[[int, int], object]


def plan_restore(
    url: str,
    *,
    progress: _Progress | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
) -> RestorePlan:
    """Say what accepting a restored store would keep and lose. Writes nothing, and needs no key.

    Args:
        url: The store.
        progress: Called after each thread with how many are done, and how many there are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Raises:
        RolledBack: The store chain is older than the anchor has seen: import the roster first.
        Tampered, NotTrusted, Forked, Unanchored: The store chain cannot be believed.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    with opened(place, read_only=True) as core:
        return store.plan_restore(core, progress)


def accept_restore(
    url: str,
    plan: RestorePlan,
    *,
    reason: str,
    release: bool | Collection[str] = False,
    identities: Sequence[str] = (),
    progress: _Progress | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
) -> AcceptedRestore:
    """Accept a restored store as a plan shows it, and record that for everybody.

    Stop the workers first: what somebody saves meanwhile does not count, and is reported. Entries
    that the plan shows to lie beyond what is kept are taken out of the store.

    The first execution of a thread that lost something is a decision of its own (the rule
    `after-restore`), unless it is released here: then it goes on from exactly the entry that was
    kept, if nothing else stands against it. `plan.released(release)` says which threads these are.

    Args:
        url: The store.
        plan: What `plan_restore` gave. If the store has changed since, nothing is written.
        reason: Why; it is recorded on the store chain.
        release: The cut threads that may go on: True for all of them, or names, or ids in
            hexadecimal. Recorded in the same entry.
        identities: Operators whose keys are here, if the roster lets a quorum of them decide;
            without any, the root's keys that are here sign.
        progress: Called after each thread with how many are done, and how many there are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the keys if they are encrypted, as for `open_store`.

    Raises:
        UsageError: There is no reason, or nothing to accept; or a thread to release is not cut.
        HeadMoved: The store is no longer what the plan shows; nothing was written.
        KeyMissing: Too few root keys, or operators of different persons, are here.
        KeyLocked: A key is encrypted, and the passphrase is missing or does not open it.
        RolledBack: The store chain is older than the anchor has seen: import the roster first.
        Tampered, NotTrusted, Forked, Unanchored: The store chain cannot be believed.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    operators = [place.signer(name) for name in identities]
    with opened(place) as core:
        roots = []
        if plan.losses and not operators:
            roots = place.root_signers(core.renewed_trust().root)
        return store.accept_restore(
            core,
            plan,
            reason,
            release=release,
            roots=roots,
            operators=operators,
            progress=progress,
        )


def export_roster(
    url: str, *, config_dir: _Directory = None, state_dir: _Directory = None
) -> bytes:
    """The whole store chain of a store in one document, for its backup. It holds no secret.

    Args:
        url: The store.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Raises:
        NotTrusted: There is no pin for this store here.
        Tampered, RolledBack, Forked, Unanchored: The store chain does not verify.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    with opened(place, read_only=True) as core:
        return store.export_roster(core)


def import_roster(
    url: str,
    data: bytes | None = None,
    *,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
) -> int:
    """Put entries of the store chain back that a restored store lacks.

    Every entry is verified from the pin of this machine alone; nothing that is there is changed.

    Args:
        url: The store.
        data: What `export_roster` gave; without it, the newest roster that was verified on this
            machine, which is kept beside the keys.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.

    Returns:
        How many entries were put back.

    Raises:
        UsageError: No data is given, and none is kept.
        NotTrusted: The data is no roster export, is of another store, or the pin's root did not
            sign it.
        Tampered: An entry, in the data or in the store, was changed.
        Forked: The store or the anchor has another entry where the data has one.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir)
    if data is None and (data := place.files.kept_roster()) is None:
        raise UsageError(
            f"roster import: expected a roster kept in {place.files.directory}, found none",
            hint="Name the FILE of an export: sealpoint roster import FILE",
        )
    with opened(place) as core:
        return store.import_roster(core, data)


def set_restore_quorum(
    url: str,
    persons: int,
    *,
    reason: str | None = None,
    config_dir: _Directory = None,
    state_dir: _Directory = None,
    passphrase: PassphraseSource | None = None,
) -> int:
    """Let so many operators, of different persons, accept a restore without the root.

    They must be operators of all namespaces. The root's private keys must be on this machine.

    Args:
        url: The store.
        persons: How many; 0 leaves it to the root alone, as it is in a new store.
        reason: Why, for the record.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the root's keys if they are encrypted, as for `open_store`.

    Returns:
        The sequence number of the new roster.

    Raises:
        UsageError: There are not so many such persons.
        KeyMissing: The root's keys are not here.
        HeadMoved: Somebody else changed the roster: repeat it.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    with opened(place) as core:
        chain = core.renewed_trust()
        most = min(len(_restorers(chain)), SEALS_MAX)
        if not 0 <= persons <= most:
            raise UsageError(
                f"quorum: expected 0 to {most}, as many persons as are operators of all "
                f"namespaces, found {persons}",
                hint="Add operators first: sealpoint keys add NAME --role operator --namespace '*'",
            )
        document = msgspec.structs.replace(chain.roster.document, restore_quorum=persons)
        roots = require_roots(chain.root, place.root_signers(chain.root))
        written = append_roster(core, chain, document, roots, reason=reason)
        core.written(written)
        return written.roster.seq


def _restorers(chain: StoreChain) -> set[str]:
    """The persons who count for the quorum."""
    holders = (chain.restorer(key, now()) for key in chain.roster.keys)
    return {holder[0].person for holder in holders if holder is not None}
