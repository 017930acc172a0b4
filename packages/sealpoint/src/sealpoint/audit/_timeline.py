# SPDX-License-Identifier: Apache-2.0
"""The timeline of one thread, page by page, newest first.

A page starts at the verified head of the thread, which is compared with the anchor, and follows
skip links down to its own entries, so that it costs the same at any place in a thread of any
length. Every entry on the page is proven to be an ancestor of that head, its own signature is
verified, and its body is the one that was sealed. Entries above or below the page are not checked:
a full verification does that. Nothing is cached, and nothing is written.

If the end of a thread does not verify, the timeline shows the entries that do verify, from the
first one, as the trail does; that takes time proportional to the length of the thread.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from sealpoint.audit._report import Finding
from sealpoint.audit._trail import AuditRecord, make_record, select_threads
from sealpoint.errors import (
    AnchorUnavailable,
    Missing,
    NameInvalid,
    SealpointError,
    StorageUnavailable,
    UnknownThread,
)
from sealpoint.ledger import (
    KINDS,
    CheckpointBody,
    Entry,
    HandoffBody,
    Header,
    Kind,
    PruneBody,
    RequestBody,
    ResultsBody,
    ResumeBody,
    StoreChain,
    VerdictBody,
    readable_body,
)
from sealpoint.signing import Statement
from sealpoint.storage import Record
from sealpoint.store import Core, ThreadState, ThreadWalk, check_name

_ABOVE_MAX = 16
"""How many entries above a page to read in order to learn whether a session wrote anything."""

_TOLD = (
    *("id", "lane", "parent", "checkpoint", "task", "name", "owner", "request", "reason"),
    *("world", "release", "policy", "answer", "path"),
)
"""The fields of bodies that are short and that the timeline shows unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One entry of a thread, for display."""

    record: AuditRecord
    """The writer, the time, and a description in words."""
    epoch: int
    """The number of restores accepted before it."""
    generation: int
    """The number of erasures of the thread before it."""
    session: int
    """The position of the entry whose fence it was written under."""
    facts: dict[str, str] = field(hash=False)
    """The fields of its body by name, as they were written: the caller must escape them for
    display. `parent` is the checkpoint that a checkpoint came from, as the application claims: two
    checkpoints with one parent are a fork."""
    given_up: str = ""
    """Why its content is gone: `pruned`, `deleted` or `erased`; otherwise empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePage:
    """Some entries of a thread, newest first."""

    entries: tuple[TimelineEntry, ...]
    total: int
    """The number of entries of the thread; if it does not verify, the number of those that do."""
    head: str
    """The hash of the newest entry, which identifies the state of the thread that the page
    shows."""
    finding: Finding | None = None
    """Why the thread does not verify, or why the page ends early."""


def read_timeline(core: Core, name: str, offset: int, limit: int) -> TimelinePage:
    """Read a page of a thread.

    Args:
        core: The store.
        name: The thread.
        offset: The number of newest entries to skip.
        limit: The number of entries on the page.

    Raises:
        NameInvalid, UnknownThread: There is no such thread.
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
    """
    state = ThreadState(core, check_name(name, "thread name"))
    try:
        state.refresh()
        return _Reader(state).page(offset, limit)
    except (StorageUnavailable, AnchorUnavailable, NameInvalid, UnknownThread):
        raise
    except SealpointError as error:
        return _page_from_start(core, name, offset, limit, error)


class _Reader:
    """Reads entries below the verified head of a thread."""

    def __init__(self, state: ThreadState) -> None:
        self._state = state
        self._chain = state.chain
        self._head = self._chain.verified_head()
        self._sessions: set[int] = set()
        """The sessions that wrote an entry that only a session can write."""

    def page(self, offset: int, limit: int, *, tries: int = 2) -> TimelinePage:
        """Return the entries of a page, up to the first that does not verify."""
        head = self._head
        top = head.seq - offset
        found: list[TimelineEntry] = []
        finding: Finding | None = None
        if top >= 0:
            given_up = None if head.header.kind is Kind.ERASE else self._state.retention.newest()
            self._look_above(top)
            try:
                for header, record in islice(self._below(top), limit):
                    found.append(self._entry(header, record, given_up))
            except (StorageUnavailable, AnchorUnavailable):
                raise
            except SealpointError as error:
                if tries and isinstance(error, Missing) and self._is_overtaken():
                    return _Reader(self._state).page(offset, limit, tries=tries - 1)
                finding = _finding(error, head.header.thread, self._state.name)
        total, digest = head.seq + 1, head.hash.hex()
        return TimelinePage(entries=tuple(found), total=total, head=digest, finding=finding)

    def _is_overtaken(self) -> bool:
        """Whether another process has written since, such as an erasure of the missing data."""
        with suppress(SealpointError):
            self._state.refresh()
        return self._chain.verified_head().hash != self._head.hash

    def _below(self, top: int) -> Iterator[tuple[Header, Record]]:
        """Yield the entries from a position downward, each proven by its link."""
        if top == self._head.seq:
            return self._chain.walk()
        return self._chain.walk(self._chain.descend(top + 1)[1])

    def _look_above(self, top: int) -> None:
        """Find out whether the session at the top of the page wrote anything above the page."""
        for seq in range(top + 1, min(top + _ABOVE_MAX, self._head.seq) + 1):
            header = self._chain.descend(seq)[1]
            if KINDS[header.kind].in_session:
                self._sessions.add(header.fence)
            if KINDS[header.kind].in_session or KINDS[header.kind].sets_fence:
                return

    def _entry(self, header: Header, record: Record, given_up: PruneBody | None) -> TimelineEntry:
        chain, head = self._chain, self._head
        entry = head if header.seq == head.seq else chain.verify(record, header.seq)
        if KINDS[header.kind].in_session:
            self._sessions.add(header.fence)
        is_erased = header.gen < head.header.gen or head.header.kind is Kind.ERASE
        if header.kind is Kind.ERASE and record.body is not None:
            is_erased = False  # the newest erasure keeps its body, which gives the reason
        body = None if is_erased else readable_body(header, record.body)
        return _make_entry(
            entry,
            body,
            chain.trust.get(),
            chain.name,
            unreadable=body is None and not is_erased,
            released=header.seq in self._sessions,
            given_up="erased" if is_erased else _given_up(header, given_up),
        )


def _make_entry(
    entry: Entry,
    body: Any,
    chain: StoreChain,
    name: str,
    *,
    unreadable: bool,
    released: bool,
    given_up: str,
) -> TimelineEntry:
    """Make a timeline entry from a verified entry."""
    header = entry.header
    record = make_record(entry, body, chain, name, unreadable=unreadable, released=released)
    return TimelineEntry(
        record=record,
        epoch=header.epoch,
        generation=header.gen,
        session=header.fence,
        facts=_facts(body),
        given_up=given_up,
    )


def _given_up(header: Header, given_up: PruneBody | None) -> str:
    if given_up is None or not KINDS[header.kind].holds_payload:
        return ""
    if given_up.deletes(header.seq):
        return "deleted"
    return "pruned" if given_up.covers(header.seq) else ""


def _facts(body: Any) -> dict[str, str]:
    """Return the short fields of a body that have a value."""
    if body is None:
        return {}
    fields = msgspec.structs.asdict(body)
    told = {name: fields[name] for name in _TOLD if name in fields}
    if isinstance(body, ResultsBody):
        told["asks"] = "" if body.question is None else "yes"
        told["answers"] = "yes" if body.answers else ""
    elif isinstance(body, CheckpointBody):
        # The count of LangGraph, or of Agent Framework.
        counts = [(body.metadata or {}).get(name) for name in ("step", "iteration_count")]
        told["step"] = next((str(each) for each in counts if type(each) is int), "")
    elif isinstance(body, VerdictBody):
        word = body.attestation
        told |= {"request": word.statement, "verdict": str(word.verdict), "reason": word.reason}
    elif isinstance(body, ResumeBody):
        told["rules"] = ", ".join(body.rules)
        told["rollouts"] = ", ".join(each.digest for each in body.rollouts)
        told["idempotent"] = "yes" if body.idempotent else ""
    elif isinstance(body, RequestBody | HandoffBody) and body.statement is not None:
        told |= _statement_facts(body.statement)
    return {name: value for name, value in told.items() if isinstance(value, str) and value}


def _statement_facts(statement: Statement) -> dict[str, str | None]:
    return {
        "request": statement.digest,
        "action": str(statement.action),
        "requester": statement.requester,
        "checkpoint": statement.checkpoint,
        "to": statement.to,
        "reason": statement.reason,
        "expires": statement.expires.isoformat(),
    }


def _finding(error: SealpointError, thread: str, name: str) -> Finding:
    return Finding(code=error.code, thread=thread, name=name, message=error.message)


def _page_from_start(
    core: Core, name: str, offset: int, limit: int, error: SealpointError
) -> TimelinePage:
    """Return the entries that verify, from the first one, of a thread whose end does not."""
    kept: deque[TimelineEntry] = deque(maxlen=offset + limit)
    total, head, thread = 0, "", ""
    try:
        (walk,) = select_threads(core, [name])
        thread = walk.thread.hex()
        for entry in _walked(walk, name):
            kept.append(entry)
            total, head = total + 1, entry.record.entry
    except (StorageUnavailable, AnchorUnavailable):
        raise
    except SealpointError as found:
        error = found
    entries = tuple(reversed(kept))[offset : offset + limit]
    finding = _finding(error, thread, name)
    return TimelinePage(entries=entries, total=total, head=head, finding=finding)


def _walked(walk: ThreadWalk, name: str) -> Iterator[TimelineEntry]:
    for step in walk.steps():
        yield _make_entry(
            step.entry,
            step.body,
            step.chain,
            name,
            unreadable=step.unreadable,
            released=True,
            given_up="erased" if step.body is None and not step.unreadable else "",
        )
