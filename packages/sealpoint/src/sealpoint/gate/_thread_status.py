# SPDX-License-Identifier: Apache-2.0
"""The status of a thread, for lists of threads: paused, waiting, or saved.

The status is read from the verified end of the thread, costs the same for every length, and keeps
nothing open. For many threads, the newest entries are read at once, and their signatures are
checked on all cores. The status does not show whether a run is alive: an open session only means
that a worker may be running. Whether a request is still open depends on the roster, the policy and
the time, and the caller determines it.
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
from sealpoint.gate._requests import Pending, Request, Status, make_request, read_pending
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
"""This many of a thread's newest entries are read at once."""

_FEW = 64
"""Up to this many threads are verified in this process alone."""


@unique
class ThreadPhase(StrEnum):
    """The status of a thread."""

    PAUSED = "paused"
    """An operator has paused it."""
    NEEDS_APPROVAL = "waits for approval"
    """A request for approval is open."""
    NEEDS_ANSWER = "waits for an answer"
    """A question is pending."""
    READY = "waits for its worker"
    """A person has answered, or enough people have approved: the worker may resume."""
    SAVED = "saved"
    """It was saved, and waits for nobody: it is running, can resume, or has finished."""
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
    """When it was last saved or resumed; None if it cannot be read."""
    owner: str | None
    """The identity or pool that owns it."""
    entries: int | None
    """How many entries it has."""
    reason: str | None = None
    """Why it is paused or not readable."""
    restored: bool = False
    """Whether an accepted restore cut it and did not release it, and it has not resumed since."""
    checkpoint: str | None = None
    """The id of the newest checkpoint."""
    code: str | None = None
    """The code of the error, if it is not readable."""
    id: str = ""
    """The id of the thread in hexadecimal; empty if unknown."""


class NewEntry(NamedTuple):
    """An entry that is new since an earlier look."""

    header: Header
    writer: str
    request: str
    """The id of the request that it is about; empty if it is about none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class ThreadStatus:
    """The status of a thread, below one verified head; nothing in it depends on the time."""

    name: str
    is_named: bool
    """Whether that is the name of the anchor's slot; otherwise it is a substitute."""
    head: Entry
    seals: bytes
    """The signatures of the head."""
    pending: Pending
    summary: ThreadSummary
    """The summary as if no request existed."""

    @property
    def is_erased(self) -> bool:
        """Whether its newest entry erased it."""
        return self.head.header.kind is Kind.ERASE


class StatusResult(NamedTuple):
    """The result of a look at one thread."""

    listed: ListedThread
    found: ThreadStatus | SealpointError | None
    """None: the thread is of another namespace, or was never begun."""
    is_foreign: bool = False
    """Whether it belongs to another namespace, which never changes."""
    new: tuple[NewEntry, ...] = ()
    """The entries since the previous look, oldest first."""
    is_cut: bool = False
    """Whether entries of the previous look are missing, because a restore was accepted."""


class StatusQuery(NamedTuple):
    """A thread to look at."""

    listed: ListedThread
    before: ThreadStatus | None = None
    """The result of the previous look."""
    is_new: bool = False
    """Whether the thread is new since the previous look, so that all of its entries are new."""


def read_statuses(core: Core, threads: Sequence[StatusQuery]) -> Iterator[StatusResult]:
    """Look at threads, and use all cores for many of them.

    Raises:
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
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

    thread: StatusQuery
    near: NearEntries | None = None
    """The newest entries, unless the part to verify is too long to be read at once."""
    signed: tuple[Signed, ...] = ()
    """The signatures that its verification will check."""


def _read_ahead(core: Core, each: StatusQuery) -> _Ahead:
    """Read the newest entries at once; if that fails, the look itself reports the error."""
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
    """Return the newest entries of a thread, and the signatures that verifying its end will check.

    These are the signatures of the newest entry, and of the entry that names the owner.
    """
    near, trust, head = NearEntries(core.storage, thread, rows), core.trust(), rows[-1][1]
    fence = near.read(thread, parse_header(head.header).fence)
    signed = [claimed_signatures(head.header, head.seals, trust)]
    if fence is not None:
        signed.append(claimed_signatures(fence.header, fence.seals, trust))
    return near, tuple(each for some in signed for each in some)


def _settle(core: Core, ahead: _Ahead, check: Check) -> StatusResult:
    try:
        if ahead.near is not None:
            # The entries read at once may be older than the newest anchored entry.
            with suppress(Tampered, RolledBack, Forked, NotTrusted):
                return _look(core, ahead.thread, ahead.near, check)
        return _look(core, ahead.thread)
    except (StorageUnavailable, AnchorUnavailable):
        raise
    except UnknownThread:
        return StatusResult(ahead.thread.listed, None)
    except SealpointError as error:
        return StatusResult(ahead.thread.listed, error)


def _look(
    core: Core,
    thread: StatusQuery,
    near: NearEntries | None = None,
    check: Check = PublicKey.verify,
) -> StatusResult:
    listed, before = thread.listed, thread.before
    if before is not None and before.is_named:
        chain = Chain(core, before.name, entries=near, slot=listed.slot, check=check)
    else:
        chain = Chain.at_slot(core, listed.slot, listed.thread, near, check)
    state = ThreadState(core, chain.name, chain)
    state.refresh()
    # Only now trust the namespace: an edited genesis could otherwise hide a thread.
    if chain.place.ns != core.namespace:
        return StatusResult(listed, None, is_foreign=True)
    look = _thread_status(state)
    if before is None:
        new = _new_entries(chain, -1, b"")[0] if thread.is_new else ()
        return StatusResult(listed, look, new=new)
    new, is_cut = _new_entries(chain, before.head.seq, before.head.hash)
    return StatusResult(listed, look, new=new, is_cut=is_cut)


def _new_entries(chain: Chain, seq: int, entry: bytes) -> tuple[tuple[NewEntry, ...], bool]:
    """Return the entries after a known one, and whether the known one is missing now."""
    found: list[NewEntry] = []
    is_cut = seq > chain.verified_head().seq
    for header, record in chain.walk():
        if header.seq <= seq:
            is_cut = is_cut or link_hash(record.header) != entry
            break
        found.append(NewEntry(header, chain.core.writer(header), _request_of(header, record)))
    return tuple(reversed(found)), is_cut


def _request_of(header: Header, record: Record) -> str:
    """Return the id of the request that an entry is about; empty if none, or unreadable."""
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


def _thread_status(state: ThreadState) -> ThreadStatus:
    """Return the status of a thread, below the head of the last refresh."""
    chain = state.chain
    tip, pending = chain.tip(), read_pending(chain)
    reader = ThreadReader(state)
    phase, reason, checkpoint = ThreadPhase.SAVED, None, None
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
    return ThreadStatus(
        name=chain.name,
        is_named=chain.is_named,
        head=tip.entry,
        seals=b"" if chain.head_record is None else chain.head_record.seals,
        pending=pending,
        summary=summary,
    )


def summarize(core: Core, name: str, policies: Policies) -> ThreadSummary:
    """Return the summary of a thread.

    Args:
        core: The store.
        name: The thread.
        policies: The policies of the store, which determine the requirements of a request.

    Raises:
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
    """
    try:
        state = ThreadState(core, name)
        state.refresh()
        if state.chain.verified_head().header.kind is Kind.ERASE:
            raise state.erased(state.chain.verified_head().header)
        look = _thread_status(state)
        return summary_now(look, _requests(core, look, policies))
    except (StorageUnavailable, AnchorUnavailable):
        raise
    except SealpointError as error:
        return unreadable(name, error.code, error.message)


def summary_now(look: ThreadStatus, requests: Sequence[Request]) -> ThreadSummary:
    """Return the summary of a thread, given its requests in their current state."""
    if look.summary.phase is ThreadPhase.PAUSED:
        return look.summary
    if any(each.status is Status.OPEN and not each.is_answer for each in requests):
        return replace(look.summary, phase=ThreadPhase.NEEDS_APPROVAL)
    if any(each.status is Status.APPROVED for each in requests):
        return replace(look.summary, phase=ThreadPhase.READY)
    return look.summary


def unreadable(name: str, code: str, message: str, thread: str = "") -> ThreadSummary:
    """Return the summary of a thread that does not verify, or cannot be read."""
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


def _requests(core: Core, look: ThreadStatus, policies: Policies) -> list[Request]:
    roster = core.trust().roster
    policy, now = policies.in_force(roster), core.now(look.pending.time)
    asked = look.pending.asked.values()
    return [make_request(each, look.name, roster=roster, policy=policy, now=now) for each in asked]
