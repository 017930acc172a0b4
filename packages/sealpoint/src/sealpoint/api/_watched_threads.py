# SPDX-License-Identifier: Apache-2.0
"""The data of a watch about every thread of a namespace, and how it is brought up to date.

For each thread it keeps the look that verified it last, with the positions in the store and the
anchor at that time; while both are unchanged, the look is valid. One OS thread uses it at a time.
`_watch.py` decides what is shown, and when.
"""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

from sealpoint.anchor import Position
from sealpoint.audit import Finding
from sealpoint.errors import SealpointError, Tampered, Unanchored
from sealpoint.gate import (
    StatusQuery,
    StatusResult,
    ThreadStatus,
    ThreadSummary,
    read_statuses,
    unreadable,
)
from sealpoint.ledger import StoreChain, accepted_until
from sealpoint.limits import WATCH_AGAIN_MAX, WATCH_EVENTS_MAX, WATCH_PATROL_MAX
from sealpoint.store import (
    Core,
    ListedThread,
    claimed_name,
    is_reserved,
    match_heads,
    thread_slot,
    unknown_threads,
)

LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """An event that a watch has found."""

    number: int
    """The number of the previous event plus one."""
    thread: str
    """The name of the thread; empty for the store chain."""
    what: str
    """The kind of an entry, such as `checkpoint`, `pause`, `request`, `approval` or `resume`; or
    `finding`: the thread does not verify; `verified`: it does again; `cut`: an accepted restore
    removed entries; `roster` and `restore`: the store chain has moved."""
    seq: int = -1
    """The position of the entry; -1 if it is about none."""
    time: datetime | None = None
    """When the entry was written, as its writer says."""
    by: str = ""
    """The identity that wrote it."""
    request: str = ""
    """The id of the request that it is about."""
    code: str = ""
    """The code of the error, for a finding."""
    thread_id: str = ""
    """The id of the thread in hexadecimal; empty for the store chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchChanges:
    """The events since a number."""

    events: tuple[WatchEvent, ...]
    """Oldest first."""
    newest: int
    """The number for the next call."""
    missed: bool
    """Whether events are missing, or the number is from another watch: read everything again."""


class ListRow(NamedTuple):
    """A thread in a list."""

    name: str
    changed: datetime
    search: str
    """The text that a search matches."""
    summary: ThreadSummary
    """The summary as if no request existed."""
    look: ThreadStatus | None
    finding: Finding | None
    asks: bool
    """Whether it has requests: its status then depends on the time."""
    is_listed: bool
    """Whether it is a thread of the application, or does not verify."""


def _row(look: ThreadStatus | None, finding: Finding | None) -> ListRow | None:
    """Return the row of a thread; None for one that is not shown."""
    if finding is not None:
        code, message = finding.code, finding.message
        summary, asks = unreadable(finding.name, code, message, finding.thread), False
    elif look is not None and not look.is_erased:
        summary, asks = look.summary, bool(look.pending.asked)
    else:
        return None
    search = f"{summary.name}\n{summary.owner or ''}".casefold()
    is_listed = finding is not None or not is_reserved(summary.name)
    changed = summary.changed or LATEST
    return ListRow(summary.name, changed, search, summary, look, finding, asks, is_listed)


class KnownThread(NamedTuple):
    """The findings about a thread, and the positions that they are for."""

    listed: ListedThread
    look: ThreadStatus | None = None
    """The last look that verified it."""
    finding: Finding | None = None
    """Why it does not verify now."""
    is_foreign: bool = False
    """Whether it belongs to another namespace: then it is not read again."""
    row: ListRow | None = None
    """Its row in the list."""

    def holds_for(self, listed: ListedThread) -> bool:
        """Whether the findings still hold for new positions.

        For example, the anchor may only have advanced to the verified head.
        """
        if self.is_foreign and self.listed.thread == listed.thread:
            return True
        seen, before, look = listed.anchored, self.listed.anchored, self.look
        if look is None or self.finding is not None or self.listed.head != listed.head:
            return False
        return (
            seen is not None
            and before is not None
            and (seen.thread, seen.epoch, seen.seq) == (before.thread, before.epoch, look.head.seq)
            and (seen.entry, seen.erased) == (look.head.hash, look.is_erased)
        )


class Journal:
    """The newest events, by number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: deque[WatchEvent] = deque(maxlen=WATCH_EVENTS_MAX)
        self.newest = 0

    def add(self, event: WatchEvent) -> None:
        """Give an event the next number."""
        with self._lock:
            self.newest += 1
            self._events.append(replace(event, number=self.newest))

    def since(self, number: int) -> WatchChanges:
        """Return the events after a number."""
        with self._lock:
            found, newest = list(self._events), self.newest
        oldest = found[0].number if found else newest + 1
        return WatchChanges(
            events=tuple(each for each in found if each.number > number),
            newest=newest,
            missed=not oldest - 1 <= number <= newest,
        )


def _events(before: KnownThread, known: KnownThread, looked: StatusResult) -> Iterator[WatchEvent]:
    """Yield the events of a look that are new."""
    thread = looked.listed.thread.hex()
    if known.finding is not None:
        if before.finding is None or before.finding.code != known.finding.code:
            name, code = known.finding.name, known.finding.code
            yield WatchEvent(number=0, thread=name, thread_id=thread, what="finding", code=code)
        return
    name = "" if known.look is None else known.look.name
    if before.finding is not None:
        name = name or before.finding.name
        yield WatchEvent(number=0, thread=name, thread_id=thread, what="verified")
    if looked.is_cut:
        yield WatchEvent(number=0, thread=name, thread_id=thread, what="cut")
    for each in looked.new:
        header = each.header
        yield WatchEvent(
            number=0,
            thread=name,
            thread_id=thread,
            what=header.kind.word,
            seq=header.seq,
            time=header.at,
            by=each.writer,
            request=each.request,
        )


def _key(listed: ListedThread) -> bytes:
    """Return the key of a thread: the anchor's slot, or without a slot the thread's id."""
    return listed.slot or listed.thread


_Threads = dict[bytes, ListedThread]


class WatchedThreads:
    """The known state of every thread.

    Args:
        core: The store; it may not write.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self.journal = Journal()
        self.trust: StoreChain | None = None
        """The store chain that everything was verified by."""
        self._known: dict[bytes, KnownThread] = {}
        self._heads: dict[bytes, int] = {}
        self._slots: dict[bytes, Position] = {}
        self._version: tuple[int, int, int] | None = None
        self._patrol: list[bytes] = []
        """The threads that are still to be compared with their verified state."""
        self._patrol_again = False
        self._turn = 0
        self._is_begun = False
        """Whether every thread was processed once."""
        self._met: set[bytes] = set()
        """The threads that quick calls have found since the last full call."""
        self._is_settled = False
        """Whether the newest call came to its end; if not, the fields above may be outdated."""
        self.edition = 0
        """Incremented whenever the result of `rows` may change."""

    def rows(self) -> list[ListRow]:
        """Return the row of each thread."""
        return [each.row for each in self._known.values() if each.row is not None]

    def bring_up_to_date(self, *, quick: bool = False) -> Iterator[tuple[int, int]]:
        """Process the threads that have moved, and record the findings.

        The findings of an interrupted call are kept: the next call continues from there.

        Args:
            quick: Read only the anchor to find the moved threads, if the previous call came to its
                end.

        Yields:
            How many threads were processed, and how many there are; first zero.

        Raises:
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
            Tampered, NotTrusted, RolledBack, Forked, Unanchored: The store chain does not verify.
        """
        core, quick = self._core, quick and self._is_settled
        trust, version = core.trust(), self._version if quick else core.storage.version()
        is_same = quick or (version is not None and version == self._version)
        # Threads before slots: a name is reserved before it has an entry.
        heads = self._heads if is_same else dict(core.storage.heads())
        slots = dict(core.anchor.slots())
        again: _Threads = {}
        touched = self._touched(heads, slots, trust)
        if quick:
            self._met |= touched
        else:
            touched, self._met = touched | self._met, set()
        self._version, self._is_settled = None, False  # until this call has come to its end
        if touched:
            again = self._moved(touched, heads, slots, trust)
        if not quick:
            # A thread that has moved is read at its new position.
            again = self._unmoved(is_same=is_same and not touched) | again
        threads = [*again.values()]
        yield 0, len(threads)
        for done, each in enumerate(self._looked(threads), start=1):
            self._take(self._placed(each) if quick else each)
            yield done, len(threads)
        self._note_chain(trust)
        self._heads, self._slots, self.trust, self._version = heads, slots, trust, version
        self._is_begun = self._is_settled = True

    def _touched(
        self, heads: dict[bytes, int], slots: dict[bytes, Position], trust: StoreChain
    ) -> set[bytes]:
        """Return the threads whose position in the store or the anchor has changed.

        After a change of the store chain, and after an interrupted call, these are all threads.
        """
        before = self._slots
        if trust is not self.trust or not self._is_settled:
            known = {each.listed.thread for each in self._known.values()}
            return heads.keys() | known | {each.thread for each in slots.values()}
        touched = {thread for thread, _ in heads.items() ^ self._heads.items()}
        for slot in [slot for slot, each in slots.items() if before.get(slot) != each]:
            touched |= {each[slot].thread for each in (before, slots) if slot in each}
        return touched | {before[slot].thread for slot in before.keys() - slots.keys()}

    def _moved(
        self,
        touched: set[bytes],
        heads: dict[bytes, int],
        slots: dict[bytes, Position],
        trust: StoreChain,
    ) -> _Threads:
        """Return the moved threads, and those that a new roster or a restore may affect.

        Threads that are no longer in the store or the anchor are forgotten.
        """
        before = self._forget(touched)
        there = {thread: heads[thread] for thread in touched if thread in heads}
        places = ((slot, each) for slot, each in slots.items() if each.thread in touched)
        moved: _Threads = {}
        is_new = trust is not self.trust
        for each in match_heads(self._core, there, places):
            key = each.slot or each.thread
            known = before.get(key)
            if known is None:
                moved[key] = each
                continue
            self._known[key] = known
            if known.listed != each:
                if not known.holds_for(each):
                    moved[key] = each
                    continue
                self._known[key] = known._replace(listed=each)
            if is_new and self._is_hit(known, trust):
                moved[key] = each
        self.edition += not before.keys() <= self._known.keys()
        return moved

    def _forget(self, touched: set[bytes]) -> dict[bytes, KnownThread]:
        """Remove and return the known state of threads, under any slot."""
        keys = [key for key, each in self._known.items() if each.listed.thread in touched]
        return {key: self._known.pop(key) for key in keys}

    def _is_hit(self, known: KnownThread, trust: StoreChain) -> bool:
        """Whether a change of the store chain may affect a thread."""
        look = known.look
        if self.trust is None or trust.epoch != self.trust.epoch:
            return True
        if look is None or look.pending.asked:
            return not known.is_foreign
        try:
            accepted_until(trust, look.head.header, look.head.hash)
        except SealpointError:
            return True
        return False

    def _unmoved(self, *, is_same: bool) -> _Threads:
        """Return those unmoved threads that must be read again."""
        failed = {} if is_same else self._failed()
        self._patrol_again = self._patrol_again if is_same else self._is_begun
        return failed | self._patrolled()

    @staticmethod
    def _placed(looked: StatusResult) -> StatusResult:
        """Return a look with its last entry as the position, because the store was not listed."""
        if not isinstance(looked.found, ThreadStatus):
            return looked
        return looked._replace(listed=looked.listed._replace(head=looked.found.head.seq))

    def _failed(self) -> _Threads:
        """Return the threads that did not verify; if there are many, some of them in turn."""
        failed = {key: each.listed for key, each in self._known.items() if each.finding is not None}
        if len(failed) <= WATCH_AGAIN_MAX:
            return failed
        keys, start = [*failed], self._turn % len(failed)
        self._turn = start + WATCH_AGAIN_MAX
        return {key: failed[key] for key in (keys[start:] + keys[:start])[:WATCH_AGAIN_MAX]}

    def _patrolled(self) -> _Threads:
        """Check a few unmoved threads in turn, and return those whose newest entry has changed."""
        if self._patrol_again and not self._patrol:
            self._patrol, self._patrol_again = [*self._known], False
        keys, self._patrol = self._patrol[:WATCH_PATROL_MAX], self._patrol[WATCH_PATROL_MAX:]
        known = ((key, self._known[key]) for key in keys if key in self._known)
        return {key: each.listed for key, each in known if not self._is_as_known(each)}

    def _is_as_known(self, known: KnownThread) -> bool:
        """Whether the newest entry of a thread is the verified one, including seals and body."""
        if known.look is None or known.finding is not None:
            # There is nothing to compare, but rows that were not a thread may have become one.
            return known.finding is not None or known.listed.anchored is not None
        head = known.look.head
        try:
            record = self._core.storage.read(known.listed.thread, head.seq)
        except Tampered:
            return False
        if record is None or record.body is None:
            return False
        if (record.header, record.seals) != (head.raw, known.look.seals):
            return False
        return sha256(record.body).hexdigest() == head.header.body

    def _looked(self, threads: Sequence[ListedThread]) -> Iterator[StatusResult]:
        core = self._core
        unknown: list[ListedThread] = []
        others: list[ListedThread] = []
        for each in threads:
            if each.anchored is None:
                unknown.append(each)
            elif each.anchored.reserved and each.head is None:
                yield StatusResult(each, None)  # a reserved name without any save
            else:
                others.append(each)
        yield from read_statuses(core, [self._status_query(each) for each in others])
        if unknown:
            left_out = {each.thread: each.name for each in unknown_threads(core, unknown)}
            for each in unknown:
                error = None
                if each.thread.hex() in left_out:
                    name = left_out[each.thread.hex()]
                    error = Unanchored(f"thread {name!r}: expected the anchor to know it")
                yield StatusResult(each, error)

    def _status_query(self, each: ListedThread) -> StatusQuery:
        known = self._known.get(_key(each))
        if known is None or (known.look is None and known.finding is None):
            return StatusQuery(each, is_new=self._is_begun)
        return StatusQuery(each, known.look)

    def _take(self, looked: StatusResult) -> None:
        """Record the findings of a look, and add its new events to the journal."""
        key, found = _key(looked.listed), looked.found
        before = self._known.get(key, KnownThread(looked.listed))
        if isinstance(found, SealpointError):
            finding = Finding(
                code=found.code,
                thread=looked.listed.thread.hex(),
                name=self._name(looked.listed) if before.look is None else before.look.name,
                message=found.message,
            )
            known = KnownThread(looked.listed, before.look, finding, row=_row(before.look, finding))
        else:
            row = _row(found, None)
            known = KnownThread(looked.listed, found, is_foreign=looked.is_foreign, row=row)
        self._known[key] = known
        self.edition += known.row is not None or before.row is not None
        for event in _events(before, known, looked):
            self.journal.add(event)

    def _name(self, listed: ListedThread) -> str:
        """Return a name for an unverified thread: its own, if the anchor's slot proves it."""
        core, thread = self._core, listed.thread
        with suppress(SealpointError):
            namespace, name = claimed_name(core.storage, thread)
            secret = core.parts.secret
            if not listed.slot or thread_slot(secret, namespace, name) == listed.slot:
                return name or thread.hex()[:12]
        return thread.hex()[:12]

    def _note_chain(self, trust: StoreChain) -> None:
        before = self.trust
        if before is not None and trust.seq != before.seq:
            what = "roster" if trust.epoch == before.epoch else "restore"
            self.journal.add(WatchEvent(number=0, thread="", what=what, seq=trust.seq))
