# SPDX-License-Identifier: Apache-2.0
"""Revoking: an identity's keys, or one of them, come to their end.

What they wrote until then stays readable; nothing that is signed with them later counts, whatever
time or roster it names. A revocation is final.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sealpoint.api._place import StorePlace
from sealpoint.config import PassphraseSource
from sealpoint.errors import UsageError
from sealpoint.ledger import StoreChain
from sealpoint.signing import Identity, PublicKey
from sealpoint.store import Core, Doubt, end_keys, require_roots, take_survey

__all__ = ["Revocation", "demand", "identity_in", "opened", "revoke_key", "settle"]

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
    unverified: tuple[Doubt, ...]
    """Threads that did not verify: what the anchor has seen of them stays good, and nothing of
    those that it does not know."""
    beyond: tuple[Doubt, ...] = ()
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
            survey = take_survey(core, ending, None, progress)
            return Revocation(
                name=name,
                keys=shown,
                roster=None,
                threads=survey.threads,
                unverified=survey.doubts,
            )
        roots = require_roots(chain.root, place.root_signers(chain.root))
        ended = end_keys(
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
        unverified=ended.doubts,
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
