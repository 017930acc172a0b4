# SPDX-License-Identifier: Apache-2.0
"""Adoption from outside: what the store holds and the anchor of this machine does not know."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from sealpoint.api._init import OPERATOR
from sealpoint.api._place import StorePlace
from sealpoint.audit import verify_thread
from sealpoint.config import PassphraseSource
from sealpoint.errors import Forked, UnknownThread
from sealpoint.store import (
    Core,
    adopt_store_chain,
    adopt_thread,
    unanchored_threads,
)

__all__ = ["Adopted", "adopt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """What was taken into the anchor, or would be."""

    store_chain: bool
    threads: tuple[str, ...]


def adopt(
    url: str,
    *,
    reason: str,
    threads: Sequence[str] | None = None,
    dry_run: bool = False,
    identity: str = OPERATOR,
    namespace: str = "default",
    config_dir: str | os.PathLike[str] | None = None,
    state_dir: str | os.PathLike[str] | None = None,
    passphrase: PassphraseSource | None = None,
) -> Adopted:
    """Take the store chain and threads into an anchor that does not know them, and record it.

    Whoever does this vouches that the store is the newest copy there is: an older one would be
    believed from now on. Everything is verified from its first entry before it is adopted.

    Args:
        url: The store.
        reason: Why; it is recorded in every adopted chain.
        threads: Names; without them, all that the anchor does not know.
        dry_run: Only say what would be adopted.
        identity: An operator.
        namespace: Where the threads are.
        config_dir: Where keys and pin lie, instead of the user's configuration directory.
        state_dir: Where the anchor lies, instead of the user's state directory.
        passphrase: What opens the operator's key if it is encrypted, as for `open_store`.

    Raises:
        UnknownThread: There is no such thread that the anchor does not know.
        NotTrusted: The identity is no operator, or a chain is not signed as it must be.
        Tampered: A chain does not verify; it is not adopted.
    """
    place = StorePlace.find(url, config_dir=config_dir, state_dir=state_dir, passphrase=passphrase)
    parts = place.parts(
        pin=place.files.pin(),
        signer=None if dry_run else place.signer(identity),
        namespace=namespace,
        read_only=dry_run,
    )
    try:
        core = Core(parts)
        new_store = not core.is_anchored()
        if not dry_run:
            adopt_store_chain(core, reason)
        listed = unanchored_threads(core)
        found = dict(listed)
        for name, thread in listed:
            if found[name] != thread:
                raise Forked(
                    f"thread {name!r}: expected one thread of that name, found "
                    f"{thread.hex()[:12]} and {found[name].hex()[:12]}"
                )
        for name in threads or ():
            if name not in found:
                raise UnknownThread(f"thread {name!r}: expected one that the anchor does not know")
        names = tuple(found) if threads is None else tuple(threads)
        if not dry_run:
            for name in names:
                verify_thread(core, found[name])
                adopt_thread(core, name, found[name], reason)
        return Adopted(store_chain=new_store, threads=names)
    finally:
        parts.close()
