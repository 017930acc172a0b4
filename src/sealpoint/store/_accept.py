# SPDX-License-Identifier: Apache-2.0
"""Accepting a restored store: the entry that says so, and the store made to follow it.

What is written is found anew and must be what was shown. Entries that the restore has cut off are
then taken out of the store, where nothing could be saved in their place and nobody may read them;
only those that were shown. ADR 0010 says why.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sealpoint.errors import (
    Edited,
    HeadMoved,
    KeyMissing,
    StorageUnavailable,
    Tampered,
    UsageError,
)
from sealpoint.ledger import CutList, StoreChain, parse_header
from sealpoint.signing import PrivateKey, check_reason
from sealpoint.store._core import Core
from sealpoint.store._genesis import claimed_name
from sealpoint.store._names import label_of
from sealpoint.store._restore import (
    Progress,
    RestorePlan,
    ThreadRestore,
    first_beyond,
    plan_restore,
)
from sealpoint.store._roster import append_restore
from sealpoint.store._sweep import drop_orphans

__all__ = ["AcceptedRestore", "accept_restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRestore:
    """What became of a restored store."""

    plan: RestorePlan
    epoch: int
    """The epoch in force from now on."""
    entry: int | None
    """The position of the restore on the store chain; None: only leftovers were taken out."""
    removed: int
    """How many entries that do not count were taken out of the store."""
    compacted: bool
    """Whether they are out of the files as well; if not, `gc` does it."""
    released: tuple[ThreadRestore, ...]
    """The cut threads that may go on from the entry that stays, without being asked why."""
    in_the_way: tuple[ThreadRestore, ...]
    """Threads with entries that do not count and were not shown: somebody saved meanwhile."""


def accept_restore(
    core: Core,
    plan: RestorePlan,
    reason: str,
    *,
    release: bool | Collection[str] = False,
    roots: Sequence[PrivateKey] = (),
    operators: Sequence[PrivateKey] = (),
    progress: Progress | None = None,
) -> AcceptedRestore:
    """Record that the store is accepted as the plan says, and take out what does not count.

    It may be repeated when it was interrupted; a plan with nothing but leftovers records nothing.

    Args:
        core: The store.
        plan: What was shown to whoever decided.
        reason: Why.
        release: The cut threads that may go on from the entry that stays: all of them, or those
            of these names. It is part of what is signed.
        roots: The root keys that are here.
        operators: Keys of operators, for a quorum that the roster may ask for.
        progress: Called after each thread with how many are done, and how many there are.

    Raises:
        UsageError: There is no reason, or nothing to accept; or a thread to release is not cut.
        HeadMoved: The store is no longer what was shown; nothing was written.
        KeyMissing: Neither enough root keys nor a quorum of operators is here.
    """
    check_reason(reason, "accept-restore")
    if not plan.losses and not plan.leftovers:
        raise UsageError("accept-restore: expected a store that lost something, found it whole")
    plan.released(release)  # what is asked for must be there before anybody signs
    chain = core.renewed_trust()
    signers = _signers(core, chain, roots, operators) if plan.losses else []
    now = plan_restore(core, progress)
    if _shown(now) != _shown(plan):
        raise HeadMoved(
            "store: expected it as the plan has it, found it changed since",
            hint="Stop the workers, look at the new plan, and decide again.",
        )
    released = now.released(release)
    entry: int | None = None
    if plan.losses:
        written = append_restore(
            core,
            chain,
            kept=now.kept,
            lost=now.lost,
            released=_lines(now, released),
            reason=reason,
            signers=signers,
        )
        chain, entry = core.written(written), written.seq
    concerned = (*now.losses, *now.leftovers)
    removed = sum(_removed(core, chain, each) for each in concerned)
    compacted = not any(each.beyond for each in concerned) or _is_compacted(core)
    # The second look also lets the anchor follow.
    return AcceptedRestore(
        plan=now,
        epoch=chain.epoch,
        entry=entry,
        removed=removed,
        compacted=compacted,
        released=released,
        in_the_way=plan_restore(core, progress).leftovers,
    )


def _lines(plan: RestorePlan, released: Sequence[ThreadRestore]) -> CutList:
    """What stays of these threads, as the list of what is kept has it."""
    threads = (bytes.fromhex(each.thread) for each in released)
    kept = ((thread, plan.kept.position(thread)) for thread in threads)
    return CutList.of((thread, *line) for thread, line in kept if line is not None)


def _shown(plan: RestorePlan) -> tuple[object, ...]:
    return plan.digest, plan.losses, plan.leftovers, plan.unseen


def _is_compacted(core: Core) -> bool:
    try:
        core.storage.compact()
    except StorageUnavailable:
        return False  # somebody reads; what is recorded stands, and gc does it later
    return True


def _signers(
    core: Core, chain: StoreChain, roots: Sequence[PrivateKey], operators: Sequence[PrivateKey]
) -> list[PrivateKey]:
    """As many root keys as the root demands, or operators as the roster does."""
    root = chain.root
    found = [signer for signer in roots if signer.public in root.keys][: root.threshold]
    if len(found) == root.threshold:
        return found
    quorum = chain.roster.document.restore_quorum
    persons: Mapping[str, PrivateKey] = dict(_by_person(core, chain, operators))
    if quorum and len(persons) >= quorum:
        return list(persons.values())[:quorum]
    asked, there = "", ""
    if quorum:
        asked = f", or operators who are {quorum} persons,"
        there = f" root keys and {len(persons)} persons"
    raise KeyMissing(
        f"restore: expected {root.threshold} root keys{asked} here, found {len(found)}{there}",
        hint="Run this where the root keys are.",
    )


def _by_person(
    core: Core, chain: StoreChain, operators: Sequence[PrivateKey]
) -> Iterator[tuple[str, PrivateKey]]:
    for signer in operators:
        holder = chain.restorer(signer.public.id, core.now())
        if holder is not None:
            yield holder[0].person, signer


def _removed(core: Core, chain: StoreChain, shown: ThreadRestore) -> int:
    """Take out what lies beyond what a thread keeps; of one that keeps nothing, all there is."""
    thread = bytes.fromhex(shown.thread)
    label = _label(core, thread) if shown.kept is None else None
    beyond = first_beyond(core, thread, -1 if shown.kept is None else shown.kept)
    try:
        if beyond is not None:
            if _is_of_epoch(beyond[1], chain.epoch):
                return 0  # somebody saves there already
            core.storage.truncate(thread, *beyond)
        if shown.kept is None:
            drop_orphans(core, thread)
            core.storage.drop(thread, -1, label=label)
    except HeadMoved:
        return 0  # something else lies there now: the second look tells
    return shown.beyond


def _is_of_epoch(header: bytes | None, epoch: int) -> bool:
    try:
        return header is not None and parse_header(header).epoch == epoch
    except Edited:
        return False


def _label(core: Core, thread: bytes) -> bytes | None:
    try:
        return label_of(core.store.raw, *claimed_name(core, thread))
    except Tampered:
        return None
