# SPDX-License-Identifier: Apache-2.0
"""Notifications: the events of a store go to the operator's hooks, at least once.

`looked` receives the results of each read of the store. It writes the new events, together with the
reported positions, to the disk before anything is sent; so after a restart or a crash it sends the
events since then, and repeats no earlier event. The first run sends no past events, only current
problems.

The events of each hook wait in the outbox for its own worker (`_hook_worker.py`), so a dead or slow
hook does not delay another one. Pages and entries never depend on any of this.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from sealpoint.audit import UNJUSTIFIED, AuditRecord, Finding
from sealpoint.errors import (
    AnchorUnavailable,
    Moved,
    NotTrusted,
    SealpointError,
    StorageUnavailable,
)
from sealpoint.gate import ROLLOUTS, Request, Status
from sealpoint.signing import Roster
from sealpoint_console._hook_delivery import Pace, Sender, make_deliver
from sealpoint_console._hook_worker import HookWorker, OnDelivery
from sealpoint_console._notification_events import (
    ConsoleEvent,
    expiry_events,
    finding_event,
    record_event,
    resume_event,
    void_event,
    voided_requests,
)
from sealpoint_console._outbox import HookStatus, Outbox, OutboxChange
from sealpoint_console.settings import ConsoleSettings

_LOG = logging.getLogger("sealpoint.console")
_KEPT_EVERY_S = 5.0
"""The interval at which the positions of threads without events are written."""
_CLOSE_S = 2.0
_NAMESPACE_DIGITS = 16
_BATCH_THREADS = 100
_VERIFIED = "/"
"""The prefix of findings of a full verification; the next one replaces them."""
_ANSWERS = frozenset({"approved", "denied", "broken-glass", "refused"})
_OPEN = frozenset({Status.OPEN, Status.APPROVED})
_RESUMES_MAX = 10_000
"""The number of threads whose worker notifications are remembered."""
_NOBODY_CAN_LOOK = frozenset({StorageUnavailable.code, AnchorUnavailable.code})

Read = Callable[[str], Iterable[AuditRecord]]
"""The function that returns the verified records of a thread by its id."""


def outbox_path(state_dir: Path, store_id: str, namespace: str) -> Path:
    """The path of the outbox of a console."""
    space = sha256(namespace.encode()).hexdigest()[:_NAMESPACE_DIGITS]
    return state_dir / "console" / store_id.rpartition(":")[2] / f"outbox-{space}.db"


@dataclass(frozen=True, slots=True)
class _ThreadBatch:
    """The events of some threads, and the positions that they cover."""

    events: list[ConsoleEvent] = field(default_factory=list)
    told: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportedResumes:
    """How often the worker of a thread was notified that people want a resume."""

    count: int = 0
    person: str = ""
    """The last person who wanted it."""
    at: datetime | None = None


class Notifier:
    """Sends the events of a console to its hooks. `start` begins to send.

    Args:
        settings: The hooks, and the address of the console.
        store_id: The store.
        namespace: The namespace of the console.
        pace: Time limits and waits.
        on_delivery: Called after each attempt.

    Raises:
        ConfigError, UsageError, KeyFileUnsafe: A file that a hook names cannot be used.
        DirectoryUnusable: The outbox cannot be used, or another console has it.
    """

    def __init__(
        self,
        settings: ConsoleSettings,
        *,
        store_id: str,
        namespace: str,
        pace: Pace | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        self._hooks = settings.hooks
        self._store_id = store_id
        self._namespace = namespace
        self._outbox: Outbox | None = None
        self._looking = threading.Lock()
        self._workers: list[HookWorker] = []
        self._unread: set[str] = set()
        self._requests: Collection[Request] = ()
        self._open_requests: Collection[str] = ()
        self._kept_at = time.monotonic()
        self._moved: dict[str, int] = {}
        self._resuming = threading.Lock()
        self._resumes: OrderedDict[str, ReportedResumes] = OrderedDict()
        if not self._hooks:
            return
        pace = pace or Pace()
        sender = Sender(origin=settings.origin, store_id=store_id, namespace=namespace)
        senders = [(hook, make_deliver(hook, sender, pace)) for hook in self._hooks]
        state_dir = settings.state_dir
        path = None if state_dir is None else outbox_path(state_dir, store_id, namespace)
        self._outbox = Outbox(path, [hook.name for hook in self._hooks])
        self._begun = self._outbox.begun()
        self._told = self._outbox.threads()
        self._found = self._outbox.findings()
        self._keys = self._outbox.keys()
        for hook, deliver in senders:
            self._workers.append(HookWorker(hook, deliver, self._outbox, pace, on_delivery))

    def start(self) -> None:
        """Begin to send waiting events."""
        for worker in self._workers:
            worker.start()

    def close(self) -> None:
        """Stop sending; the next run of the console sends waiting events."""
        for worker in self._workers:
            worker.stop()
        until = time.monotonic() + _CLOSE_S
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))
        if self._outbox is not None:
            with self._looking, suppress(SealpointError):
                self._keep_moved()
            self._outbox.close()

    def tells(self, kind: str) -> bool:
        """Whether any hook accepts a kind of event."""
        return any(kind in hook.events for hook in self._hooks)

    def status(self) -> tuple[HookStatus, ...]:
        """The delivery status of every hook."""
        return () if self._outbox is None else self._outbox.statuses()

    # ------------------------------------------------------------------ telling

    def tell(self, event: ConsoleEvent) -> None:
        """Queue an event for every hook that accepts its kind.

        Raises:
            DirectoryUnusable: The outbox cannot be written, so the event is not queued.
        """
        self._put(OutboxChange(), [event])

    def reported_resumes(self, thread_id: str) -> ReportedResumes:
        """How often the worker of a thread was notified since the console started."""
        return self._resumes.get(thread_id, ReportedResumes())

    def resume_wanted(self, thread_id: str, thread: str, person: str, *, told: int) -> None:
        """Notify the worker of a thread that a person wants a resume.

        Args:
            thread_id: The thread.
            thread: Its name.
            person: The person who wants it.
            told: The number of notifications when the person decided: another person may have sent
                one since.

        Raises:
            Moved: Another notification was sent since.
            DirectoryUnusable: The outbox cannot be written, so the event is not queued.
        """
        now = datetime.now(UTC)
        with self._resuming:
            before = self.reported_resumes(thread_id)
            if before.count != told:
                moved = f"its worker was notified again since then, for {before.person}"
                raise Moved(f"thread {thread!r}: {moved}", moved=(moved,))
            self.tell(resume_event(self._store_id, thread_id, thread, person, now))
            self._resumes[thread_id] = ReportedResumes(before.count + 1, person, now)
            self._resumes.move_to_end(thread_id)
            while len(self._resumes) > _RESUMES_MAX:
                self._resumes.popitem(last=False)

    def looked(
        self,
        heads: Mapping[str, int] | None,
        read: Read,
        *,
        touched: Collection[str] | None = None,
        findings: Iterable[Finding] = (),
        roster: Roster | None = None,
        requests: Collection[Request] = (),
    ) -> None:
        """Queue events for the results of a read of the store; concurrent callers wait.

        It may take long after a restart, since it reads every thread that has changed since the
        last run.

        Args:
            heads: The last position of every thread of the namespace, by its id; None: they are not
                known yet.
            read: Returns the records of a thread; it is called only for threads that may have
                events.
            touched: The threads with a new entry of `REPORTED_ENTRIES` since the previous read;
            None:
                unknown, so every changed thread is read.
            findings: The current verification failures: all of them, if `heads` are known.
            roster: The newest one.
            requests: All of them, as they stand.

        Raises:
            DirectoryUnusable: The outbox cannot be written; the next call tries again.
        """
        if self._outbox is None:
            return
        now = datetime.now(UTC)
        found = tuple(findings)
        with self._looking:
            self._requests = requests
            self._open_requests = {each.id for each in requests if each.status in _OPEN}
            if heads is None:
                pass
            elif self._begun:
                self._tell_threads(heads, read, touched, {each.thread for each in found})
            else:
                self._put(OutboxChange(begins=True, threads=dict(heads)), ())
                self._begun = True
            self._tell_findings(found, now, all_of_them=heads is not None)
            if roster is not None:
                self._tell_expiries(roster, now)
            if time.monotonic() - self._kept_at > _KEPT_EVERY_S:
                self._keep_moved()

    def _tell_threads(
        self,
        heads: Mapping[str, int],
        read: Read,
        touched: Collection[str] | None,
        refused: Collection[str],
    ) -> None:
        batch = _ThreadBatch()
        for thread, head in heads.items():
            before = self._told.get(thread, -1)
            if head == before:
                continue
            if head < before:
                # An accepted restore has cut it; entries from here on are new.
                self._moved[thread] = self._told[thread] = before = head
                continue
            if touched is not None and thread not in touched and thread not in self._unread:
                self._moved[thread] = self._told[thread] = head
                continue
            self._unread.add(thread)
            if thread not in refused:
                self._read_thread(thread, before, read, batch)
            if len(batch.told) >= _BATCH_THREADS:
                self._put_batch(batch)
                batch = _ThreadBatch()
        self._put_batch(batch)

    def _put_batch(self, batch: "_ThreadBatch") -> None:
        if batch.told:
            events = sorted(batch.events, key=lambda event: event.time)
            self._put(OutboxChange(threads=batch.told), events)
            self._unread -= batch.told.keys()

    def _read_thread(self, thread: str, before: int, read: Read, batch: "_ThreadBatch") -> None:
        """Add the events of a thread; an unreadable thread is read at a later call."""
        found: list[ConsoleEvent] = []
        asked, said, last = set[str](), set[tuple[str, ...]](), before
        try:
            for record in read(thread):
                if record.finding is not None:
                    continue
                event = record_event(record, self._store_id, asked, self._open_requests)
                if event is not None and event.kind == "request":
                    asked.add(event.request)
                # A key holder can copy an attestation any number of times; it becomes one event.
                is_new = event is None or _answer_key(event) not in said
                if event is not None:
                    said.add(_answer_key(event))
                if record.seq > before:
                    last = max(last, record.seq)
                    if event is not None and is_new:
                        found.append(event)
                        found += self._voided(event)
        except SealpointError as error:
            _LOG.warning("a thread cannot be read for notifications code=%s", error.code)
            return
        if last > before:
            batch.told[thread] = last
            batch.events.extend(found)

    def _voided(self, event: ConsoleEvent) -> Iterable[ConsoleEvent]:
        """The events for requests that a proposed rollout will make void."""
        if (event.kind, event.thread) != ("request", ROLLOUTS):
            return
        for rollout in self._requests:
            if rollout.id == event.request and rollout.id in self._open_requests:
                for each in voided_requests(rollout, self._requests):
                    yield void_event(event, each, self._store_id)

    def verified(self, findings: Iterable[Finding]) -> None:
        """Queue events for a full verification, each thread and code once while it lasts.

        Args:
            findings: All its findings.

        Raises:
            DirectoryUnusable: The outbox cannot be written, so the event is not queued.
        """
        if self._outbox is None:
            return
        here = _by_name(findings)
        change, events, now = OutboxChange(), [], datetime.now(UTC)
        with self._looking:
            for key, finding in here.items():
                code, count = self._found.get(key, ("", 0))
                # A finding that a read has reported is not reported again.
                if not code and self._found.get(finding.thread, ("", 0))[0] != finding.code:
                    change.findings[key] = (finding.code, count + 1)
                    events.append(finding_event(finding, self._store_id, count + 1, now))
            gone = (key for key in self._found if _VERIFIED in key and key not in here)
            change.findings.update({key: ("", self._found[key][1]) for key in gone})
            if change:
                self._put(change, events)

    def _tell_findings(
        self, findings: Iterable[Finding], now: datetime, *, all_of_them: bool
    ) -> None:
        change, events, here = OutboxChange(), [], set()
        for finding in findings:
            here.add(finding.thread)
            code, count = self._found.get(finding.thread, ("", 0))
            is_new = code != finding.code and finding.code not in _NOBODY_CAN_LOOK
            if finding.refuses and is_new:
                change.findings[finding.thread] = (finding.code, count + 1)
                events.append(finding_event(finding, self._store_id, count + 1, now))
        for thread, (code, count) in self._found.items():
            if all_of_them and code and thread not in here and _VERIFIED not in thread:
                change.findings[thread] = ("", count)
        if change:
            self._put(change, events)

    def _tell_expiries(self, roster: Roster, now: datetime) -> None:
        events = [
            event
            for event in expiry_events(roster, self._store_id, self._namespace, now)
            if event.id not in self._keys
        ]
        if events:
            self._put(OutboxChange(keys={each.id: each.expires or now for each in events}), events)

    def _put(self, change: OutboxChange, events: Iterable[ConsoleEvent]) -> None:
        """Write a change and its events, and wake the senders."""
        if self._outbox is None:
            return
        change.events += [
            (hook.name, event)
            for event in events
            for hook in self._hooks
            if event.kind in hook.events
        ]
        self._outbox.put(change, time.time())
        self._told.update(change.threads)
        self._found.update(change.findings)
        self._keys.update(change.keys)
        for worker in self._workers:
            worker.wake()

    def _keep_moved(self) -> None:
        moved = {thread: self._told[thread] for thread in self._moved}
        if moved:
            self._put(OutboxChange(threads=moved), ())
        self._moved.clear()
        self._kept_at = time.monotonic()


def _by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    """The events of a verification's findings, by thread and code."""
    return {
        f"{finding.thread}{_VERIFIED}{finding.code}": finding
        for finding in findings
        if finding.refuses or finding.code == UNJUSTIFIED
    }


def _answer_key(event: ConsoleEvent) -> tuple[str, ...]:
    """The key that makes two events one: the same answer by the same person, else nothing."""
    if event.kind not in _ANSWERS:
        return (event.id,)
    # Of events without effect, one by each writer is enough.
    return (event.kind, event.by, "" if event.code == NotTrusted.code else event.request)
