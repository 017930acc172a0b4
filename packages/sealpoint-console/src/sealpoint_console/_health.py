# SPDX-License-Identifier: Apache-2.0
"""The last full verification of the store, and the last look at how it is set up.

Both run beside the pages, one of each at a time, and are remembered with their times. A
verification is begun by somebody, and says how far it is. A look is begun when somebody asks and
the last one is too old: with many threads it takes seconds, and nobody waits for it.
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
"""A look that took long is kept so many times as long, so that looking is not all that is done."""
_WAIT_S = 0.05


class _Stopped(Exception):
    """The console ends, and the verification with it."""


@dataclass(frozen=True, slots=True)
class Verification:
    """One verification of the whole store."""

    begun: datetime
    done: int = 0
    total: int = 0
    ended: datetime | None = None
    report: Report | None = None
    """Of the whole store, with what was found in this namespace and in the store chain."""
    elsewhere: int = 0
    """How much was found in other namespaces, of which people here are told no more."""
    fault: SealpointError | None = None

    @property
    def runs(self) -> bool:
        """Whether it is still under way."""
        return self.ended is None


class Health:
    """Verifies a store beside everything else, one verification at a time.

    Args:
        store: What is verified.
        on_report: Told what each has found.
    """

    def __init__(self, store: Store, on_report: Callable[[Report], object] | None = None) -> None:
        self._store = store
        self._on_report = on_report
        self._lock = threading.Lock()
        self._ending = False
        self.last: Verification | None = None
        """The one that runs, or the last that ran; None if none was asked for yet."""

    def begin(self) -> Verification:
        """Begin to verify, unless that is under way."""
        with self._lock:
            if self.last is None or not self.last.runs:
                self.last = Verification(datetime.now(UTC))
                threading.Thread(target=self._run, name="sealpoint-verify", daemon=True).start()
            return self.last

    def findings_of(self, thread_id: str) -> list[Finding]:
        """What the last verification found that a read of a thread would be refused for."""
        report = None if self.last is None else self.last.report
        findings = () if report is None else report.findings
        return [each for each in findings if each.refuses and each.thread == thread_id]

    def close(self) -> None:
        """End what runs, soon."""
        self._ending = True

    def _run(self) -> None:
        report: Report | None = None
        fault: SealpointError | None = None
        try:
            report = self._store.verify(self._told)
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
        """Whether a finding is about a thread of this namespace, or about the store chain."""
        thread = bytes.fromhex(finding.thread)
        return thread == STORE_CHAIN or thread.startswith(namespace_tag(self._store.namespace))

    def _told(self, progress: Progress) -> None:
        if self._ending:
            raise _Stopped
        if self.last is not None:
            self.last = replace(self.last, done=progress.threads, total=progress.threads_total)


@dataclass(frozen=True, slots=True)
class Checked:
    """What one look at the set-up of a store found."""

    at: datetime
    diagnosis: Diagnosis | None = None
    fault: SealpointError | None = None
    """Why nobody could look."""


class Checkup:
    """Keeps what was found out about how a store is set up.

    Args:
        diagnose: Looks at it, as `sealpoint doctor` does.
        clock: What time passes by.
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
        """Set when the look that is under way has ended; None: none is."""

    def look(self) -> tuple[Checked | None, bool]:
        """What was found last, None if nothing yet; and whether it is being looked again.

        Only what is found at once is waited for.
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
        except Exception:  # noqa: BLE001 (whatever it is, the page says so and the next look comes)
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
