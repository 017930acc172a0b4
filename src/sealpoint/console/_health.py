# SPDX-License-Identifier: Apache-2.0
"""The last full verification of the store: whether one runs, how far it is, and what it found."""

import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sealpoint.api import Store
from sealpoint.audit import Progress, Report
from sealpoint.errors import SealpointError


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
    fault: SealpointError | None = None

    @property
    def runs(self) -> bool:
        """Whether it is still under way."""
        return self.ended is None


class Health:
    """Verifies a store beside everything else, one verification at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
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
        if self.last is not None:
            self.last = replace(self.last, ended=datetime.now(UTC), report=report, fault=fault)

    def _told(self, progress: Progress) -> None:
        if self._ending:
            raise _Stopped
        if self.last is not None:
            self.last = replace(self.last, done=progress.threads, total=progress.threads_total)
