# SPDX-License-Identifier: Apache-2.0
"""From the watch of a store to notifications: each read's findings become events.

The watch names the threads with new entries that may be events; the content is then read from the
verified trail of each thread. A separate OS thread does this, so that neither the watch nor a page
waits while, after a restart, many threads are read.
"""

import logging
import threading
import time
from collections.abc import Iterable

from sealpoint.api import Store, StoreWatch
from sealpoint.audit import AuditRecord, Finding, Report
from sealpoint.errors import SealpointError, UnknownThread
from sealpoint_console._notification_events import REPORTED_ENTRIES
from sealpoint_console._notifier import Notifier

_LOG = logging.getLogger("sealpoint.console")
_AGAIN_S = 5.0
"""The interval of checks without changes: a key may be about to expire."""
_CLOSE_S = 5.0


class Feed:
    """Sends events for the findings of a watch. `wake` reports a new read.

    Args:
        store: The watched store.
        watch: The watch of it, which another component refreshes.
        notifier: The notifier; this object starts and closes it.
    """

    def __init__(self, store: Store, watch: StoreWatch, notifier: Notifier) -> None:
        self._store = store
        self._watch = watch
        self._notifier = notifier
        self._number: int | None = None
        self._verified: Report | None = None
        self._seen: tuple[int, str] | None = None
        self._looked_at = 0.0
        self._names: dict[str, str] = {}
        self._awake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sealpoint-feed", daemon=True)
        self.fault: SealpointError | None = None
        """The reason why notifications fail, while they do."""

    def start(self) -> None:
        """Begin to send notifications."""
        self._notifier.start()
        self._thread.start()

    def wake(self) -> None:
        """Report that the watch has read the store."""
        self._awake.set()

    def verified(self, report: Report) -> None:
        """Report the findings of a full verification."""
        self._verified = report
        self._awake.set()

    def close(self) -> None:
        """Stop sending; the next run of the console sends the rest."""
        self._ending.set()
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)
        self._notifier.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._awake.wait(_AGAIN_S)
            self._awake.clear()
            try:
                self.look()
                self.fault = None
            except SealpointError as error:
                _LOG.error("notifications failed code=%s: %s", error.code, error.message)
                self.fault = error
                self._ending.wait(_AGAIN_S)
            except Exception:  # noqa: BLE001 (whatever it is, the next look tells it)
                _LOG.exception("notifications failed")
                self._ending.wait(_AGAIN_S)

    def look(self) -> None:
        """Send events for the findings of the watch since the previous call.

        Raises:
            DirectoryUnusable: The outbox cannot be written; the next call tries again.
        """
        report = self._verified
        if report is not None:
            self._notifier.verified(report.findings)
            if self._verified is report:
                self._verified = None
        state, now = self._watch.state, time.monotonic()
        seen = (state.version, "" if state.failure is None else state.failure.code)
        if seen == self._seen and now - self._looked_at < _AGAIN_S:
            return
        if state.refreshed is not None:
            self._look_at_threads(state.failure)
        elif state.failure is not None:
            self._notifier.looked(None, self._read, findings=(state.failure,))
        self._seen, self._looked_at = seen, now

    def _look_at_threads(self, failure: Finding | None) -> None:
        # Heads before changes: an entry in between counts as touched, and is already read.
        heads = self._watch.heads()
        changes = self._watch.changes(self._number or 0)
        touched = None
        if self._number is not None and not changes.missed:
            touched = {each.thread_id for each in changes.events if each.what in REPORTED_ENTRIES}
        self._names = {thread: name for thread, (name, _) in heads.items()}
        findings = self._watch.findings()
        asked = self._watch.requests().requests
        self._notifier.looked(
            {thread: seq for thread, (_, seq) in heads.items()},
            self._read,
            touched=touched,
            findings=findings if failure is None else (*findings, failure),
            roster=self._watch.roster if failure is None else None,
            requests=asked,
        )
        self._number = changes.newest

    def _read(self, thread: str) -> Iterable[AuditRecord]:
        if self._ending.is_set():
            raise UnknownThread(f"thread {thread[:12]}: the console ends, and does not read it")
        return self._store.audit(thread=self._names[thread])
