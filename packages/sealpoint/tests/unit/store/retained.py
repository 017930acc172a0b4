# SPDX-License-Identifier: Apache-2.0
"""Threads to be pruned and erased: states of several blobs, some of which all of them share."""

from typing import Any

from sealpoint.signing import Role
from sealpoint.store import CheckpointRef
from tests.deployment import Deployment, Opened
from tests.ledgers import identity

__all__ = [
    "check_whole",
    "contents",
    "enrolled",
    "filled",
    "kept_ids",
    "needed",
    "state_of",
    "stored",
]


def state_of(number: int) -> dict[str, Any]:
    """A state of several blobs: half of it is in every state, half in no other."""
    return {
        "shared": [f"message {place} that everybody has {'x' * 40}" for place in range(200)],
        "own": [f"message {place} of state {number} alone {'y' * 40}" for place in range(60)],
    }


def enrolled(world: Deployment) -> Deployment:
    """The same world with an `officer` for privacy and an `other` writer."""
    world.enrol(identity("officer", Role.PRIVACY), identity("other"))
    return world


def filled(
    store: Opened, count: int = 6, *, name: str = "t", first: int = 0
) -> list[CheckpointRef]:
    """Save so many states under the ids `c0`, `c1`, ...; the first lies at position 2."""
    return [
        store.thread(name).save(state_of(number), id=f"c{number}", metadata={"number": number})
        for number in range(first, first + count)
    ]


def kept_ids(store: Opened, name: str = "t") -> list[str]:
    """The ids of the checkpoints that still have their state, oldest first."""
    return [ref.id for ref in store.thread(name).history() if not ref.pruned][::-1]


def stored(store: Opened, name: str = "t") -> dict[bytes, int]:
    """Every blob that the storage lists for a thread, with its size."""
    return dict(store.storage.inner.stored_blobs(store.thread(name)._state.chain.thread))


def needed(world: Deployment, name: str = "t") -> set[bytes]:
    """The blobs that a fresh process fetches to load whatever is kept."""
    store = world.open(None, read_only=True)
    kept = [ref for ref in store.thread(name).history() if not ref.pruned]
    for ref in kept:
        store.thread(name).load(ref)
    return store.storage.fetched


def contents(store: Opened) -> tuple[Any, ...]:
    """All that storage and anchor hold, to be compared."""
    inner = store.storage.inner
    threads = sorted({*dict(inner.heads()), *inner.blob_threads()})
    return (
        [(thread, list(inner.scan(thread, 0))) for thread in threads],
        [(thread, list(inner.stored_blobs(thread))) for thread in threads],
        sorted(store.anchor.inner.slots(), key=lambda pair: pair[0]),
        inner.labelled(store.thread("t")._state.chain.label),
    )


def check_whole(world: Deployment, name: str = "t") -> None:
    """A fresh process loads whatever is kept, as it was saved, and finds nothing amiss."""
    store = world.open(None, read_only=True)
    thread = store.thread(name)
    kept = [ref for ref in thread.history() if not ref.pruned]
    assert kept
    assert thread.load().ref == kept[0]
    for ref in kept:
        assert thread.load(ref).state == state_of(ref.metadata["number"])
    report = store.verify()
    assert report.ok, report.findings
