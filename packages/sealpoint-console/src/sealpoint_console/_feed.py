# SPDX-License-Identifier: Apache-2.0
"""From the watch of a store to people: after each look, what it has found is told.

The watch says which threads got an entry that people are told of; what it says is then read from
the verified trail of that thread. It is done in an OS thread of its own, so that neither the watch
nor a page waits while, after a restart, many threads are read.
"""

import logging
import threading
import time
from collections.abc import Iterable

from sealpoint.api import Store, StoreWatch
from sealpoint.audit import AuditRecord, Finding, Report
from sealpoint.errors import SealpointError, UnknownThread
from sealpoint.gate import Status
from sealpoint_console._events import TOLD_ENTRIES
from sealpoint_console._notify import Notifier

_LOG = logging.getLogger("sealpoint.console")
_AGAIN_S = 5.0
"""So often it is looked, though nothing moved: a key may be about to expire."""
_CLOSE_S = 5.0
_OPEN = (Status.OPEN, Status.APPROVED)


class Feed:
    """Tells what a watch finds. `wake` says that it has looked.

    Args:
        store: What is watched.
        watch: The watch of it, which somebody else refreshes.
        notifier: Who is told; it is started and closed with this.
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
        """Why nobody can be told, while that is so."""

    def start(self) -> None:
        """Begin to tell."""
        self._notifier.start()
        self._thread.start()

    def wake(self) -> None:
        """Say that the watch has looked."""
        self._awake.set()

    def verified(self, report: Report) -> None:
        """Say what a full verification has found."""
        self._verified = report
        self._awake.set()

    def close(self) -> None:
        """Stop telling; what is not told yet is told when the console runs again."""
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
                _LOG.error("nobody is told code=%s: %s", error.code, error.message)
                self.fault = error
                self._ending.wait(_AGAIN_S)
            except Exception:  # noqa: BLE001 (whatever it is, the next look tells it)
                _LOG.exception("nobody is told")
                self._ending.wait(_AGAIN_S)

    def look(self) -> None:
        """Tell what the watch has found since the look before.

        Raises:
            DirectoryUnusable: It cannot be kept; the next look tells it.
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
        # Heads before changes: an entry that comes between is touched, and read already.
        heads = self._watch.heads()
        changes = self._watch.changes(self._number or 0)
        touched = None
        if self._number is not None and not changes.missed:
            touched = {each.thread_id for each in changes.events if each.what in TOLD_ENTRIES}
        self._names = {thread: name for thread, (name, _) in heads.items()}
        findings = self._watch.findings()
        asked = self._watch.requests().requests
        self._notifier.looked(
            {thread: seq for thread, (_, seq) in heads.items()},
            self._read,
            touched=touched,
            findings=findings if failure is None else (*findings, failure),
            roster=self._watch.roster if failure is None else None,
            open_requests={each.id for each in asked if each.status in _OPEN},
        )
        self._number = changes.newest

    def _read(self, thread: str) -> Iterable[AuditRecord]:
        if self._ending.is_set():
            raise UnknownThread(f"thread {thread[:12]}: the console ends, and does not read it")
        return self._store.audit(thread=self._names[thread])
