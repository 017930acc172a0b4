# SPDX-License-Identifier: Apache-2.0
"""What a thread is at, for lists of threads: paused, waiting, or gone on with.

It is read from the verified end of the thread, costs the same however long that is, and keeps
nothing open. Of many threads the newest entries are read at once, and their signatures are checked
on all cores. Whether a run is alive somewhere, nobody can see from here: a session that was begun
and not ended says only that somebody may be at work. Whether a request is still open depends on the
roster, the policy and the time, and is left to whoever asks.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum, unique
from itertools import islice
from typing import NamedTuple

from sealpoint.errors import (
    AnchorUnavailable,
    Forked,
    NotTrusted,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    Tampered,
    UnknownCheckpoint,
    UnknownThread,
)
from sealpoint.gate._last_session import LastSession
from sealpoint.gate._policy import Policies
from sealpoint.gate._requests import Asked, Pending, Status, make_request, read_pending
from sealpoint.ledger import (
    Body,
    Entry,
    ExpiryBody,
    Header,
    Kind,
    RequestBody,
    ResumeBody,
    Unreadable,
    VerdictBody,
    claimed_signatures,
    link_hash,
    parse_header,
    read_body,
)
from sealpoint.signing import Check, PublicKey, SignaturePool, Signed
from sealpoint.storage import Record
from sealpoint.store import (
    Chain,
    Core,
    ListedThread,
    NearEntries,
    ThreadReader,
    ThreadState,
    lost_pause,
)

_NEAR = 16
"""So many of the newest entries of a thread are read at once."""

_FEW = 64
"""So many threads are verified before others would be asked to help."""


@unique
class ThreadPhase(StrEnum):
    """What a thread is at."""

    PAUSED = "paused"
    """An operator has paused it."""
    NEEDS_APPROVAL = "waits for approval"
    """Somebody has asked for an approval, and there is none yet, or it was not used."""
    NEEDS_ANSWER = "waits for an answer"
    """A question is pending."""
    SAVED = "saved"
    """It was saved, and waits for nobody: it is at work, may go on, or has finished."""
    EMPTY = "empty"
    """It holds no checkpoint."""
    UNREADABLE = "not readable"
    """It does not verify, or cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """One thread in a list of threads."""

    name: str
    phase: ThreadPhase
    changed: datetime | None
    """When it was last saved or gone on with; None if it cannot be read."""
    owner: str | None
    """The identity or pool that owns it."""
    entries: int | None
    """How many entries it has."""
    reason: str = ""
    """Why it is paused or not readable."""
    restored: bool = False
    """Whether an accepted restore cut it and did not release it, and it has not gone on since."""
    checkpoint: str | None = None
    """The id of the newest checkpoint."""
    code: str = ""
    """Of one that is not readable, the code of the error."""
    id: str = ""
    """The id of the thread in hexadecimal; empty: not known."""


class NewEntry(NamedTuple):
    """An entry that was not there at an earlier look."""

    header: Header
    writer: str
    request: str
    """The id of the request that it is about; empty: of none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ThreadLook:
    """What a thread is at, below one verified head; nothing of it depends on the time."""

    name: str
    is_named: bool
    """Whether that is the name of the anchor's slot; else something to call it by."""
    head: Entry
    seals: bytes
    """The signatures of the head."""
    pending: Pending
    summary: ThreadSummary
    """As if nothing were asked for."""

    @property
    def is_erased(self) -> bool:
        """Whether its newest entry erased it."""
        return self.head.header.kind is Kind.ERASE


class LookedThread(NamedTuple):
    """What a look at one thread has found."""

    listed: ListedThread
    found: ThreadLook | SealpointError | None
    """None: the thread is of another namespace, or was never begun."""
    is_foreign: bool = False
    """Whether it is of another namespace, which it stays."""
    new: tuple[NewEntry, ...] = ()
    """What was not there at the look before, oldest first."""
    is_cut: bool = False
    """Whether what was there then is not any more: a restore was accepted."""


class ToLook(NamedTuple):
    """A thread to be looked at."""

    listed: ListedThread
    before: ThreadLook | None = None
    """What the look before has found."""
    is_new: bool = False
    """Whether nobody can have seen it before: all of its entries are new."""


def look_at_all(core: Core, threads: Sequence[ToLook]) -> Iterator[LookedThread]:
    """Look at threads, many of them on all cores.

    Raises:
        StorageUnavailable, AnchorUnavailable: Nobody can look.
    """
    ahead = (_read_ahead(core, each) for each in threads)
    if len(threads) <= _FEW:
        for each in ahead:
            yield _settle(core, each, PublicKey.verify)
        return
    with SignaturePool() as pool:
        for each, check in pool.checked(ahead, lambda each: each.signed):
            yield _settle(core, each, check)


class _Ahead(NamedTuple):
    """A thread whose newest entries were read."""

    thread: ToLook
    near: NearEntries | None = None
    """Its end, unless that is too long to be read at once."""
    signed: tuple[Signed, ...] = ()
    """The signatures that verifying it will come to."""


def _read_ahead(core: Core, each: ToLook) -> _Ahead:
    """Read the newest entries at once; where that does not work, a look tells why."""
    head, anchored = each.listed.head, each.listed.anchored
    if head is None or head < 0 or anchored is None or head - anchored.seq >= _NEAR:
        return _Ahead(each)
    first = max(0, min(head, max(anchored.seq, 0)) - _NEAR + 1)
    with suppress(Tampered):
        rows = list(islice(core.storage.scan(each.listed.thread, first), 3 * _NEAR))
        if rows and rows[0][0] == first and len(rows) < 3 * _NEAR:
            return _Ahead(each, *foresee(core, each.listed.thread, rows))
    return _Ahead(each)


def foresee(
    core: Core, thread: bytes, rows: Sequence[tuple[int, Record]]
) -> tuple[NearEntries, tuple[Signed, ...]]:
    """The newest entries of a thread, and the signatures that verifying its end will come to.

    Those are of the newest one, and of the one that says whose the thread is.
    """
    near, trust, head = NearEntries(core.storage, thread, rows), core.trust(), rows[-1][1]
    fence = near.read(thread, parse_header(head.header).fence)
    signed = [claimed_signatures(head.header, head.seals, trust)]
    if fence is not None:
        signed.append(claimed_signatures(fence.header, fence.seals, trust))
    return near, tuple(each for some in signed for each in some)


def _settle(core: Core, ahead: _Ahead, check: Check) -> LookedThread:
    try:
        if ahead.near is not None:
            # What was read at once may be older than what the anchor has seen since.
            with suppress(Tampered, RolledBack, Forked, NotTrusted):
                return _look(core, ahead.thread, ahead.near, check)
        return _look(core, ahead.thread)
    except (StorageUnavailable, AnchorUnavailable):
        raise
    except UnknownThread:
        return LookedThread(ahead.thread.listed, None)
    except SealpointError as error:
        return LookedThread(ahead.thread.listed, error)


def _look(
    core: Core,
    thread: ToLook,
    near: NearEntries | None = None,
    check: Check = PublicKey.verify,
) -> LookedThread:
    listed, before = thread.listed, thread.before
    if before is not None and before.is_named:
        chain = Chain(core, before.name, entries=near, slot=listed.slot, check=check)
    else:
        chain = Chain.at_slot(core, listed.slot, listed.thread, near, check)
    state = ThreadState(core, chain.name, chain)
    state.refresh()
    # Only now is its namespace believed: whoever edits a genesis could hide a thread with it.
    if chain.place.ns != core.namespace:
        return LookedThread(listed, None, is_foreign=True)
    look = _thread_look(state)
    if before is None:
        new = _new_entries(chain, -1, b"")[0] if thread.is_new else ()
        return LookedThread(listed, look, new=new)
    new, is_cut = _new_entries(chain, before.head.seq, before.head.hash)
    return LookedThread(listed, look, new=new, is_cut=is_cut)


def _new_entries(chain: Chain, seq: int, entry: bytes) -> tuple[tuple[NewEntry, ...], bool]:
    """The entries after one that was known, and whether that is still there."""
    found: list[NewEntry] = []
    is_cut = seq > chain.verified_head().seq
    for header, record in chain.walk():
        if header.seq <= seq:
            is_cut = is_cut or link_hash(record.header) != entry
            break
        found.append(NewEntry(header, chain.core.writer(header), _request_of(header, record)))
    return tuple(reversed(found)), is_cut


def _request_of(header: Header, record: Record) -> str:
    """The id of the request that an entry is about; empty where it is about none, or unreadable."""
    try:
        body: Body = read_body(header.kind, header.body, record.body or b"")
    except (Unreadable, Tampered):
        return ""
    match body:
        case RequestBody(statement=statement):
            return statement.digest
        case VerdictBody(attestation=word):
            return word.statement
        case ExpiryBody(request=request) | ResumeBody(request=request):
            return request or ""
        case _:
            return ""


def _thread_look(state: ThreadState) -> ThreadLook:
    """What a thread is at, below the head that was found last."""
    chain = state.chain
    tip, pending = chain.tip(), read_pending(chain)
    reader = ThreadReader(state)
    phase, reason, checkpoint = ThreadPhase.SAVED, "", None
    try:
        if tip.entry.header.kind is Kind.ERASE:
            raise UnknownCheckpoint("it was erased")
        release = state.retry_if_pruned(reader.release)
        checkpoint = release.id
        if release.question is not None:
            phase = ThreadPhase.NEEDS_ANSWER
    except UnknownCheckpoint:
        phase = ThreadPhase.EMPTY
    if pending.paused is not None:
        phase, reason = ThreadPhase.PAUSED, pending.paused.reason
    elif (lost := lost_pause(chain)) is not None:
        phase, reason = ThreadPhase.PAUSED, lost
    summary = ThreadSummary(
        name=chain.name,
        phase=phase,
        changed=chain.descend(tip.basis[0])[1].at,
        owner=tip.fence.owner,
        entries=tip.entry.seq + 1,
        reason=reason,
        restored=LastSession(state, reader).was_cut(state.core.trust()),
        checkpoint=checkpoint,
        id=tip.entry.header.thread,
    )
    return ThreadLook(
        name=chain.name,
        is_named=chain.is_named,
        head=tip.entry,
        seals=b"" if chain.head_record is None else chain.head_record.seals,
        pending=pending,
        summary=summary,
    )


def summarise(core: Core, name: str, policies: Policies) -> ThreadSummary:
    """Say what a thread is at.

    Args:
        core: The store.
        name: The thread.
        policies: Those of the store: what a request still needs depends on them.

    Raises:
        StorageUnavailable, AnchorUnavailable: Nobody can look.
    """
    try:
        state = ThreadState(core, name)
        state.refresh()
        if state.chain.verified_head().header.kind is Kind.ERASE:
            raise state.erased(state.chain.verified_head().header)
        look = _thread_look(state)
        is_open = any(
            _is_open(core, asked, name, policies) for asked in look.pending.asked.values()
        )
        return summary_now(look, is_open=is_open)
    except (StorageUnavailable, AnchorUnavailable):
        raise
    except SealpointError as error:
        return unreadable(name, error.code, error.message)


def summary_now(look: ThreadLook, *, is_open: bool) -> ThreadSummary:
    """The summary of a thread, of which somebody has found out whether a request is open."""
    if is_open and look.summary.phase is not ThreadPhase.PAUSED:
        return replace(look.summary, phase=ThreadPhase.NEEDS_APPROVAL)
    return look.summary


def unreadable(name: str, code: str, message: str, thread: str = "") -> ThreadSummary:
    """The summary of a thread that does not verify, or cannot be read."""
    return ThreadSummary(
        name=name,
        phase=ThreadPhase.UNREADABLE,
        changed=None,
        owner=None,
        entries=None,
        reason=message,
        code=code,
        id=thread,
    )


def _is_open(core: Core, asked: Asked, name: str, policies: Policies) -> bool:
    roster = core.trust().roster
    policy, now = policies.in_force(roster), core.now(asked.entry.header.at)
    return make_request(asked, name, roster=roster, policy=policy, now=now).status is Status.OPEN
