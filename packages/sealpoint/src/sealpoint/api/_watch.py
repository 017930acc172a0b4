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
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from time import monotonic
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sealpoint.api._watched_threads import (
    LATEST,
    ListRow,
    WatchChanges,
    WatchedThreads,
)
from sealpoint.audit import Finding, TimelinePage, read_timeline
from sealpoint.errors import (
    AnchorUnavailable,
    PolicyInvalid,
    SealpointError,
    StorageUnavailable,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import (
    ROLLOUTS,
    Policies,
    Policy,
    Request,
    Requests,
    RolloutBook,
    Status,
    ThreadLook,
    ThreadPhase,
    ThreadSummary,
    make_request,
    summary_now,
)
from sealpoint.ledger import STORE_CHAIN, StoreChain
from sealpoint.limits import WATCH_PAGE_MAX
from sealpoint.signing import Action, Roster
from sealpoint.store import (
    Core,
    StoreParts,
)

_SHOWN_EVERY_SECONDS = 0.25
"""So often what a long refresh has found so far is shown."""


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


_NAME, _CHANGED = itemgetter(0), itemgetter(1)


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
        self,
        rows: list[ListRow],
        trust: StoreChain | None,
        policy: Policy | None,
        version: int,
        edition: int,
    ) -> None:
        self._rows = rows
        self.trust = trust
        self.policy = policy
        self.version = version
        self.edition = edition
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
    def heads(self) -> dict[str, tuple[str, int]]:
        """Name and last position of the threads that verify, by id."""
        return {
            row.summary.id: (row.name, row.look.head.seq)
            for row in self._rows
            if row.look is not None and row.finding is None
        }

    @cached_property
    def by_change(self) -> list[ListRow]:
        """What does not verify, then the threads, those first that changed last."""
        rows = [row for row in self._rows if row.is_listed]
        rows.sort(key=_CHANGED, reverse=True)
        return rows

    @cached_property
    def open(self) -> list[ListRow]:
        """Of these, the ones on which something is asked for: what they are at changes by time."""
        return [row for row in self.by_change if row.asks]

    @cached_property
    def quiet(self) -> Counter[ThreadPhase]:
        """How many of the others are at what."""
        return Counter([row.summary.phase for row in self.by_change if not row.asks])

    @cached_property
    def by_id(self) -> dict[str, ListRow]:
        """The same by the ids of the threads."""
        return {row.summary.id: row for row in self.by_change}

    @cached_property
    def by_name(self) -> list[ListRow]:
        """The same by name."""
        return sorted(self.by_change, key=_NAME)


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
        self._threads = WatchedThreads(self._core)
        self._standing: WeakKeyDictionary[ThreadLook, _Standing] = WeakKeyDictionary()
        self._shown = _Shown([], None, None, 0, 0)
        self._state = WatchState(
            version=0, refreshed=None, done=0, total=0, complete=False, failure=None
        )

    # ------------------------------------------------------------------ refreshing

    def refresh(self, *, quick: bool = False) -> int:
        """Find out what has moved, and verify that; who calls meanwhile waits, and then looks too.

        Args:
            quick: Ask the anchor alone which threads have moved, which takes a fraction of the time
                where they are many. Whatever a worker does moves it. What somebody did to the store
                alone is met by the next refresh that is none of these.

        Returns:
            The number of the newest event.

        Raises:
            StorageUnavailable, AnchorUnavailable: Nobody can look; what was known stays shown.
            Tampered, NotTrusted, RolledBack, Forked, Unanchored: The store chain does not verify.
        """
        with self._refreshing:
            try:
                self._refresh(quick=quick)
            except SealpointError as error:
                failure = Finding(code=error.code, thread=STORE_CHAIN.hex(), message=error.message)
                self._state = replace(self._state, complete=False, failure=failure)
                raise
            return self._state.version

    def _refresh(self, *, quick: bool) -> None:
        """Bring everything up to date, and show what is found now and then and at the end."""
        threads, shown_at = self._threads, monotonic()
        done = 0
        for done, total in threads.bring_up_to_date(quick=quick):
            if not done or monotonic() - shown_at > _SHOWN_EVERY_SECONDS:
                if done:
                    self._show(self._core.trust())
                self._state = replace(self._state, done=done, total=total)
                shown_at = monotonic()
        trust = threads.trust or self._core.trust()
        shown = self._shown
        is_same = threads.edition == shown.edition and trust is shown.trust
        if not is_same or self._policy(trust) is not shown.policy:
            self._show(trust)
        self._state = WatchState(
            version=threads.journal.newest,
            refreshed=self._core.now(),
            done=done,
            total=done,
            complete=not self._shown.findings,
            failure=None,
        )

    def _show(self, trust: StoreChain) -> None:
        threads = self._threads
        policy, newest = self._policy(trust), threads.journal.newest
        self._shown = _Shown(threads.rows(), trust, policy, newest, threads.edition)

    def _policy(self, trust: StoreChain) -> Policy | None:
        try:
            return self._policies.in_force(trust.roster)
        except PolicyInvalid:
            return None  # without it, nobody can approve anything

    # ------------------------------------------------------------------ asking

    @property
    def state(self) -> WatchState:
        """How new and how complete it is what is shown."""
        return self._state

    @property
    def roster(self) -> Roster:
        """Who may do what, by the newest roster; looked up and verified each time."""
        return self._core.trust().roster

    def counts(self) -> dict[ThreadPhase, int]:
        """How many threads are at what."""
        shown = self._shown
        counted = shown.quiet + Counter(self._phase(row, shown) for row in shown.open)
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
        found: list[ListRow] = shown.by_name if by_name else shown.by_change
        if sought:
            found = [row for row in found if sought in row.search]
        if phase is not None:
            found = [row for row in found if self._phase(row, shown) is phase]
        return ThreadPage(
            threads=tuple(self._summary(row, shown) for row in found[offset : offset + limit]),
            total=len(found),
            version=shown.version,
        )

    def thread_of(self, thread_id: str) -> ThreadSummary:
        """The same by the id of the thread, in hexadecimal.

        Raises:
            UnknownThread: There was no such thread.
        """
        shown = self._shown
        row = shown.by_id.get(thread_id)
        if row is None:
            raise UnknownThread(f"thread {thread_id[:12]!r}: there is none of this id")
        return self._summary(row, shown)

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

    def heads(self) -> dict[str, tuple[str, int]]:
        """Name and last position of every thread that verifies, Sealpoint's own too, by its id."""
        return self._shown.heads

    def changes(self, since: int) -> WatchChanges:
        """What happened after an event of some number; 0: since the watch began."""
        return self._threads.journal.since(since)

    def timeline(self, name: str, *, offset: int = 0, limit: int = 50) -> TimelinePage:
        """The entries of one thread, newest first, each verified now; `TimelinePage` says more.

        Args:
            name: The thread.
            offset: How many of the newest to leave out.
            limit: How many to give at most.

        Raises:
            UsageError: One of the two numbers is negative, or the limit is too high.
            NameInvalid, UnknownThread: There is no such thread.
            StorageUnavailable, AnchorUnavailable: Nobody can look.
        """
        check_page(offset, limit)
        return read_timeline(self._core, name, offset, limit)

    def _phase(self, row: ListRow, shown: _Shown) -> ThreadPhase:
        return self._summary(row, shown).phase if row.asks else row.summary.phase

    def _summary(self, row: ListRow, shown: _Shown) -> ThreadSummary:
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
                min((end for end in ends if end > now), default=LATEST),
                tuple(
                    make_request(each, look.name, roster=roster, policy=policy, now=now)
                    for each in asked
                ),
            )
        return standing.requests
