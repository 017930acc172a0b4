# SPDX-License-Identifier: Apache-2.0
"""A watch of a store: what every thread of a namespace is at, kept warm, for whoever shows it.

`refresh` lists where each thread ends and what the anchor has seen of it, and verifies anew only
the threads for which that has changed, and those that did not verify before. Between, a few of the
others are compared with what was verified, in turn, so that an edit of a newest entry is met in a
while; what lies below is left to a full verification. Pages are answered from what the newest
refresh has found, and say how new that is. Whose approvals count and what has expired is found out
when it is asked for.

A watch is a read: it writes nothing, not even to the anchor, and begins nothing. One refreshes it
at a time, and any number of OS threads ask.
"""

import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from operator import itemgetter
from time import monotonic
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sealpoint.anchor import Position
from sealpoint.audit import Finding
from sealpoint.errors import (
    AnchorUnavailable,
    PolicyInvalid,
    SealpointError,
    StorageUnavailable,
    Tampered,
    Unanchored,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import (
    ROLLOUTS,
    LookedThread,
    Policies,
    Policy,
    Request,
    Requests,
    RolloutBook,
    Status,
    ThreadLook,
    ThreadPhase,
    ThreadSummary,
    ToLook,
    look_at_all,
    make_request,
    summary_now,
    unreadable,
)
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.limits import WATCH_AGAIN_MAX, WATCH_EVENTS_MAX, WATCH_PAGE_MAX, WATCH_PATROL_MAX
from sealpoint.signing import Action
from sealpoint.store import (
    Core,
    ListedThread,
    StoreParts,
    claimed_name,
    is_reserved,
    thread_slot,
    unknown_threads,
)

_SHOWN_EVERY_SECONDS = 0.25
"""So often what a long refresh has found so far is shown."""

_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """Something that a watch has met."""

    number: int
    """One more than that of the event before it."""
    thread: str
    """The name of the thread; empty for the store chain."""
    what: str
    """The kind of an entry, such as `checkpoint`, `pause`, `request`, `approval` or `resume`; or
    `finding`: the thread does not verify; `verified`: it does again; `cut`: an accepted restore
    took away what was there; `roster` and `restore`: the store chain has moved."""
    seq: int = -1
    """The position of the entry; -1: it is about none."""
    time: datetime | None = None
    """When the entry was written, as its writer says."""
    by: str = ""
    """The identity that wrote it."""
    request: str = ""
    """The id of the request that it is about."""
    code: str = ""
    """Of a finding, the code of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchChanges:
    """What happened since a number."""

    events: tuple[WatchEvent, ...]
    """Oldest first."""
    newest: int
    """The number to ask with next."""
    missed: bool
    """Whether there was more than is kept, or the number is of another watch: read all anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """How new and how complete it is what a watch shows."""

    version: int
    """The number of the newest event."""
    refreshed: datetime | None
    """When the newest refresh ended that found out everything; None: none has yet."""
    done: int
    """How many threads the refresh under way, or the newest, has looked at."""
    total: int
    """How many it has to look at."""
    complete: bool
    """Whether every thread verifies, of those that the anchor knows and those that the store has,
    and the newest refresh came to its end."""
    failure: Finding | None
    """Why the newest refresh did not: the storage or anchor cannot be reached, or the store chain
    does not verify. What is shown is older then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """Some threads of a list."""

    threads: tuple[ThreadSummary, ...]
    total: int
    """How many there are in all, of what was asked for."""
    version: int
    """The number of the newest event that they are as of."""


class _Row(NamedTuple):
    """A thread in a list."""

    name: str
    changed: datetime
    search: str
    """What a search looks in."""
    summary: ThreadSummary
    """As if nothing were asked for."""
    look: ThreadLook | None
    finding: Finding | None
    asks: bool
    """Whether something is asked for: what it is at then depends on the time."""
    is_listed: bool
    """Whether it is a thread of the application, or does not verify."""


_NAME, _CHANGED = itemgetter(0), itemgetter(1)


def _row(look: ThreadLook | None, finding: Finding | None) -> _Row | None:
    """The row of a thread; None for one that nobody is shown."""
    if finding is not None:
        summary, asks = unreadable(finding.name, finding.code, finding.message), False
    elif look is not None and not look.is_erased:
        summary, asks = look.summary, bool(look.pending.asked)
    else:
        return None
    search = f"{summary.name}\n{summary.owner or ''}".casefold()
    is_listed = finding is not None or not is_reserved(summary.name)
    changed = summary.changed or _LATEST
    return _Row(summary.name, changed, search, summary, look, finding, asks, is_listed)


class _Known(NamedTuple):
    """What was found out about a thread, and what it was found out for."""

    listed: ListedThread
    look: ThreadLook | None = None
    """As it verified last."""
    finding: Finding | None = None
    """Why it does not verify now."""
    is_foreign: bool = False
    """Whether it is of another namespace: then it is not looked at again."""
    row: _Row | None = None
    """How it is listed."""

    def holds_for(self, listed: ListedThread) -> bool:
        """Whether what has moved makes no difference.

        Such as that the anchor has come to the verified head.
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


class _Standing(NamedTuple):
    """The requests of a thread as they stand, until something could make a difference."""

    by: tuple[StoreChain, Policy | None]
    since: datetime
    until: datetime
    requests: tuple[Request, ...]

    def holds_for(self, trust: StoreChain, policy: Policy | None, now: datetime) -> bool:
        """Whether they stand so still."""
        is_same = self.by[0] is trust and self.by[1] is policy
        return is_same and self.since <= now < self.until


class _Shown:
    """What is shown at one moment: made by whoever refreshes, and never changed."""

    def __init__(
        self, known: Iterable[_Known], trust: StoreChain | None, policy: Policy | None, version: int
    ) -> None:
        self._rows = [each.row for each in known if each.row is not None]
        self.trust = trust
        self.policy = policy
        self.version = version
        self.findings = tuple(row.finding for row in self._rows if row.finding is not None)

    @cached_property
    def asking(self) -> list[ThreadLook]:
        """The threads on which something is asked for."""
        return [row.look for row in self._rows if row.look is not None and row.asks]

    @cached_property
    def has_book(self) -> bool:
        """Whether somebody has ever proposed a rollout."""
        return any(row.name == ROLLOUTS for row in self._rows)

    @cached_property
    def by_change(self) -> list[_Row]:
        """What does not verify, then the threads, those first that changed last."""
        rows = [row for row in self._rows if row.is_listed]
        rows.sort(key=_CHANGED, reverse=True)
        return rows

    @cached_property
    def by_name(self) -> list[_Row]:
        """The same by name."""
        return sorted(self.by_change, key=_NAME)


class _Journal:
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
        """The events after a number."""
        with self._lock:
            found, newest = list(self._events), self.newest
        oldest = found[0].number if found else newest + 1
        return WatchChanges(
            events=tuple(each for each in found if each.number > number),
            newest=newest,
            missed=not oldest - 1 <= number <= newest,
        )


def _events(before: _Known, known: _Known, looked: LookedThread) -> Iterator[WatchEvent]:
    """What a look has found that was not known."""
    if known.finding is not None:
        if before.finding is None or before.finding.code != known.finding.code:
            name, code = known.finding.name, known.finding.code
            yield WatchEvent(number=0, thread=name, what="finding", code=code)
        return
    name = "" if known.look is None else known.look.name
    if before.finding is not None:
        yield WatchEvent(number=0, thread=name or before.finding.name, what="verified")
    if looked.is_cut:
        yield WatchEvent(number=0, thread=name, what="cut")
    for each in looked.new:
        header = each.header
        yield WatchEvent(
            number=0,
            thread=name,
            what=header.kind.word,
            seq=header.seq,
            time=header.at,
            by=each.writer,
            request=each.request,
        )


def check_page(offset: int, limit: int) -> None:
    """Refuse a page that nobody can give.

    Raises:
        UsageError: One of the numbers is out of its bounds.
    """
    if offset < 0 or not 1 <= limit <= WATCH_PAGE_MAX:
        raise UsageError(
            f"page: expected an offset of 0 or more and a limit of 1 to {WATCH_PAGE_MAX}, found "
            f"{offset} and {limit}"
        )


def _key(listed: ListedThread) -> bytes:
    """Under which a thread is known: that of the anchor, or, where it has none, the thread's id."""
    return listed.slot or listed.thread


_Threads = dict[bytes, ListedThread]


class StoreWatch:
    """What every thread of a store's namespace is at. `Store.watch` makes one.

    It reads through the open store, and ends with it.
    """

    def __init__(self, parts: StoreParts) -> None:
        # A core of its own that may not write: no look of it moves an anchor.
        self._core = Core(
            replace(parts, read_only=True, signer=None, on_event=None, on_roster=None)
        )
        self._policies = Policies(self._core)
        self._book = RolloutBook(self._core, self._policies)
        self._refreshing = threading.Lock()
        self._journal = _Journal()
        self._known: dict[bytes, _Known] = {}
        self._heads: dict[bytes, int] = {}
        self._slots: dict[bytes, Position] = {}
        self._version: tuple[int, int, int] | None = None
        self._trust: StoreChain | None = None
        self._patrol: list[bytes] = []
        """The threads that are still to be compared with what was verified."""
        self._patrol_again = False
        self._turn = 0
        self._standing: WeakKeyDictionary[ThreadLook, _Standing] = WeakKeyDictionary()
        self._shown = _Shown((), None, None, 0)
        self._state = WatchState(
            version=0, refreshed=None, done=0, total=0, complete=False, failure=None
        )

    # ------------------------------------------------------------------ refreshing

    def refresh(self) -> int:
        """Find out what has moved, and verify that; who calls meanwhile waits, and then looks too.

        Returns:
            The number of the newest event.

        Raises:
            StorageUnavailable, AnchorUnavailable: Nobody can look; what was known stays shown.
            Tampered, NotTrusted, RolledBack, Forked, Unanchored: The store chain does not verify.
        """
        with self._refreshing:
            try:
                self._refresh()
            except SealpointError as error:
                failure = Finding(code=error.code, thread=STORE_CHAIN.hex(), message=error.message)
                self._state = replace(self._state, complete=False, failure=failure)
                raise
            return self._journal.newest

    def _refresh(self) -> None:
        core = self._core
        trust, version = core.trust(), core.storage.version()
        is_same = version is not None and version == self._version
        # Threads before slots: a name is reserved before it has an entry.
        heads = self._heads if is_same else dict(core.storage.heads())
        slots = dict(core.anchor.slots())
        is_still = (heads, slots) == (self._heads, self._slots) and trust is self._trust
        self._version = None  # until this has come to its end
        again = {} if is_still else self._moved(core.match_heads(heads, slots.items()), trust)
        if not (is_same and is_still):
            again |= self._failed()
            self._patrol_again = self._state.refreshed is not None
        self._look([*(again | self._patrolled()).values()], trust)
        self._heads, self._slots, self._trust, self._version = heads, slots, trust, version
        self._state = replace(
            self._state,
            refreshed=core.now(),
            complete=not self._shown.findings,
            failure=None,
            version=self._journal.newest,
        )

    def _moved(self, listed: Sequence[ListedThread], trust: StoreChain) -> _Threads:
        """The threads that have moved, or that a new roster or a restore may make a difference to.

        What is no longer there at all, in the store and in the anchor, is forgotten.
        """
        before, self._known = self._known, {}
        moved: _Threads = {}
        is_new = trust is not self._trust
        for each in listed:
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
        return moved

    def _is_hit(self, known: _Known, trust: StoreChain) -> bool:
        """Whether a change of the store chain may make a difference to a thread."""
        look = known.look
        if self._trust is None or trust.epoch != self._trust.epoch:
            return True
        if look is None or look.pending.asked:
            return not known.is_foreign
        try:
            trust.accepted_until(look.head.header, look.head.hash)
        except SealpointError:
            return True
        return False

    def _failed(self) -> _Threads:
        """The threads that did not verify; where they are many, some of them in turn."""
        failed = {key: each.listed for key, each in self._known.items() if each.finding is not None}
        if len(failed) <= WATCH_AGAIN_MAX:
            return failed
        keys, start = [*failed], self._turn % len(failed)
        self._turn = start + WATCH_AGAIN_MAX
        return {key: failed[key] for key in (keys[start:] + keys[:start])[:WATCH_AGAIN_MAX]}

    def _patrolled(self) -> _Threads:
        """Of a few threads that did not move, in turn, those whose newest entry is another."""
        if self._patrol_again and not self._patrol:
            self._patrol, self._patrol_again = [*self._known], False
        keys, self._patrol = self._patrol[:WATCH_PATROL_MAX], self._patrol[WATCH_PATROL_MAX:]
        known = ((key, self._known[key]) for key in keys if key in self._known)
        return {key: each.listed for key, each in known if not self._is_as_known(each)}

    def _is_as_known(self, known: _Known) -> bool:
        """Whether the newest entry of a thread is the one that was verified, and has its body."""
        if known.look is None or known.finding is not None:
            return True  # there is nothing to compare
        head = known.look.head
        try:
            record = self._core.storage.read(known.listed.thread, head.seq)
        except Tampered:
            return False
        if record is None or record.header != head.raw or record.body is None:
            return False
        return sha256(record.body).hexdigest() == head.header.body

    def _look(self, threads: Sequence[ListedThread], trust: StoreChain) -> None:
        """Look at threads, and show what is found, now and then and at the end."""
        self._state = replace(self._state, done=0, total=len(threads))
        if not threads and trust is self._trust:
            return
        self._note_chain(trust)
        shown_at, policy = monotonic(), self._policy(trust)
        for done, each in enumerate(self._looked(threads), start=1):
            self._take(each)
            if monotonic() - shown_at > _SHOWN_EVERY_SECONDS:
                self._show(trust, policy, done)
                shown_at = monotonic()
        self._show(trust, policy, len(threads))

    def _looked(self, threads: Sequence[ListedThread]) -> Iterator[LookedThread]:
        core = self._core
        unknown: list[ListedThread] = []
        others: list[ListedThread] = []
        for each in threads:
            if each.anchored is None:
                unknown.append(each)
            elif each.anchored.reserved and each.head is None:
                yield LookedThread(each, None)  # a name, and nobody has saved anything yet
            else:
                others.append(each)
        yield from look_at_all(core, [self._to_look(each) for each in others])
        if unknown:
            left_out = {each.thread: each.name for each in unknown_threads(core, unknown)}
            for each in unknown:
                error = None
                if each.thread.hex() in left_out:
                    name = left_out[each.thread.hex()]
                    error = Unanchored(f"thread {name!r}: expected the anchor to know it")
                yield LookedThread(each, error)

    def _to_look(self, each: ListedThread) -> ToLook:
        known = self._known.get(_key(each))
        if known is None or (known.look is None and known.finding is None):
            return ToLook(each, is_new=self._state.refreshed is not None)
        return ToLook(each, known.look)

    def _take(self, looked: LookedThread) -> None:
        """Keep what a look has found, and tell of it what is new."""
        key, found = _key(looked.listed), looked.found
        before = self._known.get(key, _Known(looked.listed))
        if isinstance(found, SealpointError):
            finding = Finding(
                code=found.code,
                thread=looked.listed.thread.hex(),
                name=self._name(looked.listed) if before.look is None else before.look.name,
                message=found.message,
            )
            known = _Known(looked.listed, before.look, finding, row=_row(before.look, finding))
        else:
            row = _row(found, None)
            known = _Known(looked.listed, found, is_foreign=looked.is_foreign, row=row)
        self._known[key] = known
        for event in _events(before, known, looked):
            self._journal.add(event)

    def _name(self, listed: ListedThread) -> str:
        """What to call a thread that does not verify: its name, if the anchor's slot proves it."""
        core, thread = self._core, listed.thread
        with suppress(SealpointError):
            namespace, name = claimed_name(core, thread)
            secret = core.parts.secret
            if not listed.slot or thread_slot(secret, namespace, name) == listed.slot:
                return name or thread.hex()[:12]
        return thread.hex()[:12]

    def _note_chain(self, trust: StoreChain) -> None:
        before = self._trust
        if before is not None and trust.seq != before.seq:
            what = "roster" if trust.epoch == before.epoch else "restore"
            self._journal.add(WatchEvent(number=0, thread="", what=what, seq=trust.seq))

    def _policy(self, trust: StoreChain) -> Policy | None:
        try:
            return self._policies.in_force(trust.roster)
        except PolicyInvalid:
            return None  # nobody can approve anything then: see `_status`

    def _show(self, trust: StoreChain, policy: Policy | None, done: int) -> None:
        self._shown = _Shown(self._known.values(), trust, policy, self._journal.newest)
        self._state = replace(self._state, done=done, version=self._journal.newest)

    # ------------------------------------------------------------------ asking

    @property
    def state(self) -> WatchState:
        """How new and how complete it is what is shown."""
        return self._state

    def counts(self) -> dict[ThreadPhase, int]:
        """How many threads are at what."""
        shown = self._shown
        counted = Counter(self._phase(row, shown) for row in shown.by_change)
        return {phase: counted[phase] for phase in ThreadPhase}

    def page(
        self,
        *,
        phase: ThreadPhase | None = None,
        text: str = "",
        by_name: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> ThreadPage:
        """Some threads: what does not verify first, then those that changed last.

        Args:
            phase: Only those that are at this.
            text: Only those that have this in their name or owner, in capitals or not.
            by_name: In the order of their names instead.
            offset: How many to leave out.
            limit: How many to give at most.

        Raises:
            UsageError: One of the two numbers is negative, or the limit is too high.
        """
        check_page(offset, limit)
        shown, sought = self._shown, text.casefold()
        found: list[_Row] = shown.by_name if by_name else shown.by_change
        if sought:
            found = [row for row in found if sought in row.search]
        if phase is not None:
            found = [row for row in found if self._phase(row, shown) is phase]
        return ThreadPage(
            threads=tuple(self._summary(row, shown) for row in found[offset : offset + limit]),
            total=len(found),
            version=shown.version,
        )

    def thread(self, name: str) -> ThreadSummary:
        """What one thread is at, as of the newest refresh.

        Raises:
            UnknownThread: There was no such thread.
        """
        shown = self._shown
        for row in shown.by_change:
            if row.name == name:
                return self._summary(row, shown)
        raise UnknownThread(
            f"thread {name[:64]!r} in namespace {self._core.namespace!r}: there is no such thread"
        )

    def requests(self) -> Requests:
        """Every request that is about its thread as that is now, whatever became of it.

        Threads that do not verify are named in the result.

        Raises:
            StorageUnavailable, AnchorUnavailable: The book of rollouts cannot be read.
        """
        shown = self._shown
        found = [
            request
            for look in shown.asking
            for request in self._requests(look, shown)
            if request.statement.action is not Action.ROLLOUT
        ]
        failures = sorted((each.thread, each.message) for each in shown.findings)
        if shown.has_book:
            try:
                found += self._book.all()
            except (StorageUnavailable, AnchorUnavailable):
                raise
            except SealpointError as error:
                failures.append((ROLLOUTS, error.message))
        found.sort(key=lambda request: (request.asked_at, request.id))
        return Requests(requests=tuple(found), failures=tuple(failures))

    def findings(self) -> tuple[Finding, ...]:
        """The threads that do not verify, and why."""
        return self._shown.findings

    def changes(self, since: int) -> WatchChanges:
        """What happened after an event of some number; 0: since the watch began."""
        return self._journal.since(since)

    def _phase(self, row: _Row, shown: _Shown) -> ThreadPhase:
        return self._summary(row, shown).phase if row.asks else row.summary.phase

    def _summary(self, row: _Row, shown: _Shown) -> ThreadSummary:
        look = row.look
        if look is None or not row.asks:
            return row.summary
        requests = self._requests(look, shown)
        return summary_now(look, is_open=any(each.status is Status.OPEN for each in requests))

    def _requests(self, look: ThreadLook, shown: _Shown) -> tuple[Request, ...]:
        """The requests of a thread, by the roster, the policy and the time."""
        trust, policy = shown.trust, shown.policy
        if trust is None:
            return ()
        now = self._core.now(look.pending.time)
        standing = self._standing.get(look)
        if standing is None or not standing.holds_for(trust, policy, now):
            roster, asked = trust.roster, look.pending.asked.values()
            ends = [*roster.expiries.values(), *(each.body.statement.expires for each in asked)]
            standing = self._standing[look] = _Standing(
                (trust, policy),
                now,
                min((end for end in ends if end > now), default=_LATEST),
                tuple(
                    make_request(each, look.name, roster=roster, policy=policy, now=now)
                    for each in asked
                ),
            )
        return standing.requests
