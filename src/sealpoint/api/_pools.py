# SPDX-License-Identifier: Apache-2.0
"""Pools: identities that own threads together, such as the pods of one service."""

import os
from collections.abc import Sequence

import msgspec

from sealpoint.api._place import StorePlace
from sealpoint.api._revoke import identity_in, opened
from sealpoint.config import PassphraseSource, check_identity_name
from sealpoint.errors import UsageError
from sealpoint.signing import Pool, Roster
from sealpoint.store import append_roster, require_roots

__all__ = ["set_pool"]


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
