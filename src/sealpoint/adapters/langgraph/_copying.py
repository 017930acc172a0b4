# SPDX-License-Identifier: Apache-2.0
"""Copies of a thread's checkpoints, to be signed anew in another thread."""

from sealpoint.errors import Paused, ResumeRefused, UnknownCheckpoint
from sealpoint.gate import Rule, Thread
from sealpoint.ledger import Origin
from sealpoint.store import EntryDraft, ResultsDraft, SaveDraft
from sealpoint.world import World

__all__ = ["copies_of"]


def copies_of(source: Thread) -> list[EntryDraft]:
    """Drafts of everything that a thread holds, oldest first.

    They declare the world that its newest checkpoint was saved in: a copy must not be a way to go
    on in a wider one.

    A copy says what it is a copy of and how old that is: it is judged as an older checkpoint.

    Raises:
        Paused: An operator paused the thread.
        ResumeRefused: A restore cut the thread, and nobody has gone on with it since.
    """
    refs = list(source.snapshots())
    if not refs:
        return []
    if source.paused:
        raise Paused(f"thread {source.name!r}: it is paused, and is not copied")
    _require_no_restore(source)
    world = World.of(source.load(refs[0]).world)
    drafts: list[EntryDraft] = []
    for ref in reversed(refs):
        snapshot = source.snapshot(ref.lane, ref.id)
        if snapshot is None:
            continue
        at = source.release(ref).time
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
                origin=Origin(thread=source.id, entry=ref.entry, at=at),
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
                origin=Origin(thread=source.id, entry=result.ref.entry, at=at),
            )
            for result in snapshot.results
        )
    return drafts


def _require_no_restore(source: Thread) -> None:
    """Refuse to copy what somebody has to mean to go on with."""
    try:
        reasons = source.judge(world=None).reasons
    except UnknownCheckpoint:
        return  # only subgraphs have something left
    if any(reason.rule == Rule.AFTER_RESTORE for reason in reasons):
        words = "a restore cut the thread, and it has not been executed since"
        raise ResumeRefused(
            f"thread {source.name!r}: it is not copied: {words}",
            reasons=(words,),
            hint="Run the thread itself first, with a reason or the approvals that its policy asks "
            "for; then copy it.",
        )
