# SPDX-License-Identifier: Apache-2.0
"""Worlds in which keys end: by the root, through a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from sealpoint.ledger import PositionList
from sealpoint.signing import Pool, RosterDocument, RosterKey
from sealpoint.store import Core, EndedKeys, KeyUsage, append_roster, find_key_usage, revoke_keys
from tests.deployment import Deployment, SimulatedStorage
from tests.ledgers import key

__all__ = ["Rooted", "add_key", "end", "enter", "expire", "ids", "pool", "rooted", "survey"]

Change = Callable[[RosterDocument], RosterDocument]


def ids(*names: str) -> frozenset[str]:
    """The ids of the keys of these names."""
    return frozenset(key(name).key for name in names)


@dataclass(frozen=True)
class Rooted:
    """The process of whoever has the root."""

    core: Core

    @property
    def storage(self) -> SimulatedStorage:
        """Its storage."""
        assert isinstance(self.core.storage, SimulatedStorage)
        return self.core.storage

    def look(self, *names: str, before: KeyUsage | None = None) -> KeyUsage:
        """Look where the keys of these names wrote last."""
        return find_key_usage(self.core, ids(*names), before)

    def end(
        self,
        *names: str,
        change: Change = lambda document: document,
        settle: Callable[[], object] = lambda: None,
        progress: Callable[[int, int], object] | None = None,
        roots: Sequence[str] = ("root",),
    ) -> EndedKeys:
        """End the keys of these names."""
        return revoke_keys(
            self.core,
            ids(*names),
            [key(name) for name in roots],
            change=change,
            reason="stolen",
            settle=settle,
            progress=progress,
        )


@contextmanager
def rooted(world: Deployment, **changes: Any) -> Iterator[Rooted]:
    """The process of whoever has the root."""
    core = world.core("operator", **changes)
    try:
        yield Rooted(core)
    finally:
        core.storage.close()
        core.anchor.close()


def enter(world: Deployment, change: Change, *lists: PositionList) -> int:
    """Put a changed roster into force, with the lists that its cuts name."""
    with rooted(world) as root:
        chain = root.core.renewed_trust()
        written = append_roster(
            root.core,
            chain,
            change(chain.roster.document),
            [key("root")],
            blobs={made.digest: made.data for made in lists},
        )
        return root.core.written(written).roster.seq


def add_key(holder: str, name: str) -> Change:
    """The change that gives an identity another key, the one of a name."""

    def change(document: RosterDocument) -> RosterDocument:
        held = RosterKey("ed25519", str(key(name).public))
        return msgspec.structs.replace(
            document,
            identities=tuple(
                msgspec.structs.replace(each, keys=(*each.keys, held))
                if each.name == holder
                else each
                for each in document.identities
            ),
        )

    return change


def pool(name: str, *members: str) -> Change:
    """The change that makes a pool of these identities."""
    return lambda document: msgspec.structs.replace(
        document, pools=(*document.pools, Pool(name, members))
    )


def expire(world: Deployment, name: str, at: datetime | None) -> None:
    """Let the key of a name expire at a time, or never."""

    def change(document: RosterDocument) -> RosterDocument:
        return msgspec.structs.replace(
            document,
            identities=tuple(
                msgspec.structs.replace(
                    each,
                    keys=tuple(
                        msgspec.structs.replace(held, expires=at)
                        if held.public == str(key(name).public)
                        else held
                        for held in each.keys
                    ),
                )
                for each in document.identities
            ),
        )

    enter(world, change)


def survey(world: Deployment, *names: str, **changes: Any) -> KeyUsage:
    """Look where the keys of these names wrote last."""
    with rooted(world, **changes) as root:
        return root.look(*names)


def end(world: Deployment, *names: str, **options: Any) -> EndedKeys:
    """End the keys of these names."""
    with rooted(world) as root:
        return root.end(*names, **options)
