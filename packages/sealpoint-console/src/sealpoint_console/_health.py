# SPDX-License-Identifier: Apache-2.0
"""The last full verification of the store, and the last check of its configuration.

Both run in the background, one of each at a time, and keep their times. A person starts a
verification, which reports its progress. A check starts when a page needs one and the last one is
too old: with many threads it takes seconds, and no page waits for it.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sealpoint.api import Diagnosis, Store
from sealpoint.audit import Finding, Progress, Report
from sealpoint.errors import SealpointError, StorageUnavailable
from sealpoint.ids import namespace_tag
from sealpoint.ledger import STORE_CHAIN

_LOG = logging.getLogger("sealpoint.console")
_KEPT_S = 30.0
_SHARE = 10
"""A result is kept this many times as long as its check took, to limit the load."""
_WAIT_S = 0.05


class _Stopped(Exception):
    """The console stops, and so does the verification."""


@dataclass(frozen=True, slots=True)
class Verification:
    """One verification of the whole store."""

    begun: datetime
    done: int = 0
    total: int = 0
    ended: datetime | None = None
    report: Report | None = None
    """The report on the whole store, with the findings in this namespace and the store chain."""
    elsewhere: int = 0
    """The number of findings in other namespaces, without details for people here."""
    fault: SealpointError | None = None

    @property
    def runs(self) -> bool:
        """Return whether it is still in progress."""
        return self.ended is None


class Health:
    """Verifies a store in the background, one verification at a time.

    Args:
        store: The store to verify.
        on_report: Called with each report.
    """

    def __init__(self, store: Store, on_report: Callable[[Report], object] | None = None) -> None:
        self._store = store
        self._on_report = on_report
        self._lock = threading.Lock()
        self._ending = False
        self.last: Verification | None = None
        """Return the verification in progress, or the last one; None before the first."""

    def begin(self) -> Verification:
        """Begin to verify, unless a verification is in progress."""
        with self._lock:
            if self.last is None or not self.last.runs:
                self.last = Verification(datetime.now(UTC))
                threading.Thread(target=self._run, name="sealpoint-verify", daemon=True).start()
            return self.last

    def findings_of(self, thread_id: str) -> list[Finding]:
        """Return the findings of the last verification that would make a read of a thread fail."""
        report = None if self.last is None else self.last.report
        findings = () if report is None else report.findings
        return [each for each in findings if each.refuses and each.thread == thread_id]

    def close(self) -> None:
        """Stop a verification in progress, soon."""
        self._ending = True

    def _run(self) -> None:
        report: Report | None = None
        fault: SealpointError | None = None
        try:
            report = self._store.verify(self._note_progress)
        except _Stopped:
            return
        except SealpointError as error:
            fault = error
        elsewhere = 0
        if report is not None:
            own = tuple(each for each in report.findings if self._is_shown(each))
            elsewhere = len(report.findings) - len(own)
            report = replace(report, findings=own)
        if self.last is not None:
            self.last = replace(
                self.last,
                ended=datetime.now(UTC),
                report=report,
                elsewhere=elsewhere,
                fault=fault,
            )
        if report is not None and self._on_report is not None:
            self._on_report(report)

    def _is_shown(self, finding: Finding) -> bool:
        """Return whether a finding is about a thread of this namespace, or the store chain."""
        thread = bytes.fromhex(finding.thread)
        return thread == STORE_CHAIN or thread.startswith(namespace_tag(self._store.namespace))

    def _note_progress(self, progress: Progress) -> None:
        if self._ending:
            raise _Stopped
        if self.last is not None:
            self.last = replace(self.last, done=progress.threads, total=progress.threads_total)


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of one check of the configuration of a store."""

    at: datetime
    diagnosis: Diagnosis | None = None
    fault: SealpointError | None = None
    """The reason for a failed check."""


class Checkup:
    """Keeps the results of checks of a store's configuration.

    Args:
        diagnose: Checks it, as `sealpoint doctor` does.
        clock: The clock for the age of a result.
    """

    def __init__(
        self, diagnose: Callable[[], Diagnosis], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._diagnose = diagnose
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Checked | None = None
        self._good_until = 0.0
        self._done: threading.Event | None = None
        """The event that the check in progress sets when it ends; None without a check."""

    def look(self) -> tuple[Checked | None, bool]:
        """Return the last result, None before the first, and whether a check is in progress.

        The call waits only for a quick result.
        """
        with self._lock:
            if self._done is None and self._clock() >= self._good_until:
                self._done = threading.Event()
                threading.Thread(target=self._run, name="sealpoint-checkup", daemon=True).start()
            done = self._done
        if done is not None:
            done.wait(_WAIT_S)
        with self._lock:
            return self._last, self._done is not None

    def _run(self) -> None:
        begun, found = self._clock(), Checked(datetime.now(UTC))
        try:
            found = replace(found, diagnosis=self._diagnose(), at=datetime.now(UTC))
        except SealpointError as error:
            found = replace(found, fault=error)
        except Exception:  # noqa: BLE001 (the page shows any error, and a later check runs)
            _LOG.exception("the look at how the store is set up failed")
            words = "how the store is set up cannot be looked at; the log says why"
            found = replace(found, fault=StorageUnavailable(words))
        ended = self._clock()
        with self._lock:
            self._last, done = found, self._done
            self._good_until = ended + max(_KEPT_S, _SHARE * (ended - begun))
            self._done = None
        if done is not None:
            done.set()
