# SPDX-License-Identifier: Apache-2.0
"""A watch of a store: the cached status of every thread of a namespace, for pages and tools.

`refresh` lists the end of each thread and its anchored position, and verifies only the threads for
which one of these has changed, and those that did not verify before. In each refresh, a few of the
other threads are compared with their verified state, in turn, so that an edit of a newest entry is
found after a while; older entries are left to a full verification. Pages are answered from the
newest refresh, and show its time. Whose approvals count and what has expired is determined on each
call.

A watch only reads: it writes nothing, not even to the anchor, and begins no session. One OS thread
refreshes it at a time, and any number of OS threads may read from it.
"""

import re
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
    ThreadPhase,
    ThreadStatus,
    ThreadSummary,
    make_request,
    split_answers,
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
"""How often a long refresh shows its findings so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """How new and how complete the data of a watch is."""

    version: int
    """The number of the newest event."""
    refreshed: datetime | None
    """When the last complete refresh ended; None if there was none yet."""
    done: int
    """How many threads the current or newest refresh has processed."""
    total: int
    """How many threads it must process."""
    complete: bool
    """Whether every thread verifies, of those that the anchor knows and those that the store has,
    and the newest refresh came to its end."""
    failure: Finding | None
    """Why the newest refresh failed: the storage or anchor cannot be reached, or the store chain
    does not verify. The data is then older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """Some threads of a list."""

    threads: tuple[ThreadSummary, ...]
    total: int
    """The total number of matching threads."""
    version: int
    """The number of the newest event that they include."""


_NAME, _CHANGED = itemgetter(0), itemgetter(1)


class _Standing(NamedTuple):
    """The requests of a thread in their current state, with its period of validity."""

    by: tuple[StoreChain, Policy | None]
    since: datetime
    until: datetime
    requests: tuple[Request, ...]

    def holds_for(self, trust: StoreChain, policy: Policy | None, now: datetime) -> bool:
        """Whether this state is still valid."""
        is_same = self.by[0] is trust and self.by[1] is policy
        return is_same and self.since <= now < self.until


class _Shown:
    """The data shown at one moment: a refresh makes it, and it never changes."""

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
    def asking(self) -> list[ThreadStatus]:
        """Return the threads with requests."""
        return [row.look for row in self._rows if row.look is not None and row.asks]

    @cached_property
    def below(self) -> frozenset[str]:
        """Return the names of the threads that belong to another, and wait for nobody."""
        names = {row.name for row in self.by_change}
        return frozenset(
            row.name
            for row in self.by_change
            if not row.asks
            and row.summary.phase in {ThreadPhase.SAVED, ThreadPhase.EMPTY}
            and any(row.name[: slash.start()] in names for slash in re.finditer("/", row.name))
        )

    @cached_property
    def has_book(self) -> bool:
        """Whether a rollout was ever proposed."""
        return any(row.name == ROLLOUTS for row in self._rows)

    @cached_property
    def heads(self) -> dict[str, tuple[str, int]]:
        """Return name and last position of the threads that verify, by id."""
        return {
            row.summary.id: (row.name, row.look.head.seq)
            for row in self._rows
            if row.look is not None and row.finding is None
        }

    @cached_property
    def by_change(self) -> list[ListRow]:
        """Return the threads that do not verify, then the others, the last changed first."""
        rows = [row for row in self._rows if row.is_listed]
        rows.sort(key=_CHANGED, reverse=True)
        return rows

    @cached_property
    def open(self) -> list[ListRow]:
        """Return those with requests, whose status changes with time."""
        return [row for row in self.by_change if row.asks]

    @cached_property
    def quiet(self) -> Counter[ThreadPhase]:
        """Return the number of the other threads in each phase."""
        return Counter([row.summary.phase for row in self.by_change if not row.asks])

    @cached_property
    def by_id(self) -> dict[str, ListRow]:
        """Return the listed threads by id."""
        return {row.summary.id: row for row in self.by_change}

    @cached_property
    def by_name(self) -> list[ListRow]:
        """Return the listed threads, sorted by name."""
        return sorted(self.by_change, key=_NAME)


def check_page(offset: int, limit: int) -> None:
    """Refuse a page with invalid bounds.

    Raises:
        UsageError: One of the numbers is out of its bounds.
    """
    if offset < 0 or not 1 <= limit <= WATCH_PAGE_MAX:
        raise UsageError(
            f"page: expected an offset of 0 or more and a limit of 1 to {WATCH_PAGE_MAX}, found "
            f"{offset} and {limit}"
        )


class StoreWatch:
    """The status of every thread of a store's namespace. `Store.watch` makes one.

    It reads through the open store, and ends with it.
    """

    def __init__(self, parts: StoreParts) -> None:
        # Its own core, which may not write: no refresh moves an anchor.
        self._core = Core(
            replace(parts, read_only=True, signer=None, on_event=None, on_roster=None)
        )
        self._policies = Policies(self._core)
        self._book = RolloutBook(self._core, self._policies)
        self._refreshing = threading.Lock()
        self._threads = WatchedThreads(self._core)
        self._standing: WeakKeyDictionary[ThreadStatus, _Standing] = WeakKeyDictionary()
        self._shown = _Shown([], None, None, 0, 0)
        self._state = WatchState(
            version=0, refreshed=None, done=0, total=0, complete=False, failure=None
        )

    # ------------------------------------------------------------------ refreshing

    def refresh(self, *, quick: bool = False) -> int:
        """Find the threads that have moved, and verify them; concurrent calls run one by one.

        Args:
            quick: Read only the anchor to find the threads that have moved, which takes a fraction
                of the time for many threads. Every action of a worker moves the anchor. A change of
                the store alone is found by the next refresh that is not quick.

        Returns:
            The number of the newest event.

        Raises:
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read; the
                previous data stays shown.
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
        """Bring everything up to date, and show the findings regularly and at the end."""
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
            return None  # without the policy, nothing can be approved

    # ------------------------------------------------------------------ reading

    @property
    def state(self) -> WatchState:
        """Return how new and how complete the shown data is."""
        return self._state

    @property
    def roster(self) -> Roster:
        """Return the newest roster; looked up and verified on each call."""
        return self._core.trust().roster

    def counts(self) -> dict[ThreadPhase, int]:
        """Return the number of threads in each phase."""
        shown = self._shown
        counted = shown.quiet + Counter(self._phase(row, shown) for row in shown.open)
        return {phase: counted[phase] for phase in ThreadPhase}

    def page(
        self,
        *,
        phase: ThreadPhase | None = None,
        text: str = "",
        by_name: bool = False,
        below: bool = True,
        offset: int = 0,
        limit: int = 50,
    ) -> ThreadPage:
        """Return some threads: those that do not verify first, then the last changed first.

        Args:
            phase: Only those in this phase.
            text: Only those with this in their name or owner, ignoring case.
            by_name: Sort by name instead.
            below: Include those that belong to another thread, as `a/b` to `a`, and wait for
                nobody.
            offset: How many to leave out.
            limit: How many to return at most.

        Raises:
            UsageError: One of the two numbers is negative, or the limit is too high.
        """
        check_page(offset, limit)
        shown, sought = self._shown, text.casefold()
        found: list[ListRow] = shown.by_name if by_name else shown.by_change
        if not below:
            found = [row for row in found if row.name not in shown.below]
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
        """Return the status of the thread with an id in hexadecimal, as of the newest refresh.

        Raises:
            UnknownThread: There was no such thread.
        """
        shown = self._shown
        row = shown.by_id.get(thread_id)
        if row is None:
            raise UnknownThread(f"thread {thread_id[:12]!r}: there is none of this id")
        return self._summary(row, shown)

    def thread(self, name: str) -> ThreadSummary:
        """Return the status of one thread, as of the newest refresh.

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
        """Return every request about the current state of its thread, in any status.

        The result names threads that do not verify.

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
        return split_answers(found, failures)

    def findings(self) -> tuple[Finding, ...]:
        """Return the threads that do not verify, and why."""
        return self._shown.findings

    def heads(self) -> dict[str, tuple[str, int]]:
        """Return name and last position of every thread that verifies, by id, reserved ones too."""
        return self._shown.heads

    def changes(self, since: int) -> WatchChanges:
        """Return the events after an event number; 0: since the watch began."""
        return self._threads.journal.since(since)

    def timeline(self, name: str, *, offset: int = 0, limit: int = 50) -> TimelinePage:
        """Return the entries of one thread, newest first, each verified now; see `TimelinePage`.

        Args:
            name: The thread.
            offset: How many of the newest to leave out.
            limit: How many to return at most.

        Raises:
            UsageError: One of the two numbers is negative, or the limit is too high.
            NameInvalid, UnknownThread: There is no such thread.
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
        """
        check_page(offset, limit)
        return read_timeline(self._core, name, offset, limit)

    def _phase(self, row: ListRow, shown: _Shown) -> ThreadPhase:
        return self._summary(row, shown).phase if row.asks else row.summary.phase

    def _summary(self, row: ListRow, shown: _Shown) -> ThreadSummary:
        look = row.look
        if look is None or not row.asks:
            return row.summary
        return summary_now(look, self._requests(look, shown))

    def _requests(self, look: ThreadStatus, shown: _Shown) -> tuple[Request, ...]:
        """Return the requests of a thread, by the roster, the policy and the time."""
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
