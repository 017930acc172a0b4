# SPDX-License-Identifier: Apache-2.0
"""Copies of a thread's checkpoints, to be signed anew in another thread."""

from sealpoint.errors import Paused
from sealpoint.gate import Thread
from sealpoint.ledger import Origin
from sealpoint.store import EntryDraft, ResultsDraft, SaveDraft
from sealpoint.world import World

__all__ = ["copies_of"]


def copies_of(source: Thread) -> list[EntryDraft]:
    """Drafts of everything that a thread holds, oldest first.

    They declare the world that its newest checkpoint was saved in: a copy must not be a way to go
    on in a wider one.

    Raises:
        Paused: An operator paused the thread.
    """
    refs = list(source.snapshots())
    if not refs:
        return []
    if source.paused:
        raise Paused(f"thread {source.name!r}: expected it to run, found it paused")
    world = World.of(source.load(refs[0]).world)
    drafts: list[EntryDraft] = []
    for ref in reversed(refs):
        snapshot = source.snapshot(ref.lane, ref.id)
        if snapshot is None:
            continue
        drafts.append(
            SaveDraft(
                snapshot.state,
                ref.id,
                ref.parent,
                ref.metadata,
                world,
                question=ref.question,
                lane=ref.lane,
                supersedes=True,
                origin=Origin(thread=source.id, entry=ref.entry, at=ref.time),
            )
        )
        drafts.extend(
            ResultsDraft(
                result.value,
                checkpoint=ref.id,
                task=result.task,
                path=result.path,
                lane=ref.lane,
                question=result.question,
                answers=result.answers,
                world=world,
                origin=Origin(thread=source.id, entry=result.ref.entry, at=ref.time),
            )
            for result in snapshot.results
        )
    return drafts
