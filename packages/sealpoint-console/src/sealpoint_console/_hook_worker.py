# SPDX-License-Identifier: Apache-2.0
"""The OS thread of one hook: it sends the events that wait for the hook, and retries.

It sends in order. After a failed delivery it waits, longer each time; after a day it gives an event
up and records that.
"""

import logging
import threading
import time
from collections.abc import Callable

from sealpoint.errors import SealpointError
from sealpoint_console._hook_delivery import Deliver, NotTaken, Pace
from sealpoint_console._outbox import Outbox, Waiting
from sealpoint_console.settings import HookSettings

_LOG = logging.getLogger("sealpoint.console")

OnDelivery = Callable[[str, str], object]
"""Called with the name of a hook and `delivered`, `failed` or `given-up`."""


class HookWorker:
    """Sends to one hook, in order, one event at a time."""

    def __init__(
        self,
        hook: HookSettings,
        deliver: Deliver,
        outbox: Outbox,
        pace: Pace,
        on_delivery: OnDelivery | None,
    ) -> None:
        self._name = hook.name
        self._deliver = deliver
        self._outbox = outbox
        self._pace = pace
        self._on_delivery = on_delivery
        self._awake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"sealpoint-hook-{hook.name}", daemon=True
        )

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def wake(self) -> None:
        """Look for waiting events now."""
        self._awake.set()

    def stop(self) -> None:
        """Stop after the event that is being sent."""
        self._ending.set()
        self._awake.set()

    def join(self, wait_s: float) -> None:
        """Wait for the end, up to a limit."""
        if self._thread.is_alive():
            self._thread.join(wait_s)

    def _run(self) -> None:
        failures = 0
        while not self._ending.is_set():
            self._awake.clear()
            try:
                waiting = self._outbox.first(self._name)
                if waiting is None:
                    self._awake.wait()
                    continue
                wait_s = self._send(waiting, failures)
            except SealpointError as error:
                _LOG.error("hook=%s code=%s: %s", self._name, error.code, error.message)
                wait_s = self._wait_s(failures)
            except Exception:  # noqa: BLE001 (whatever it is, what waits is tried again)
                _LOG.exception("hook=%s failed", self._name)
                wait_s = self._wait_s(failures)
            failures = failures + 1 if wait_s else 0
            self._ending.wait(wait_s)

    def _send(self, waiting: Waiting, failures: int) -> float:
        """Send one event; returns the wait before the next attempt."""
        try:
            self._deliver(waiting.event)
        except NotTaken as fault:
            now = time.time()
            give_up = now - waiting.since >= self._pace.give_up_s
            self._outbox.failed(self._name, waiting.number, str(fault), now, give_up=give_up)
            _LOG.warning("hook=%s did not take event=%s: %s", self._name, waiting.event.id, fault)
            self._note("given-up" if give_up else "failed")
            return max(self._wait_s(failures), fault.wait_s)
        self._outbox.delivered(self._name, waiting.number, time.time())
        self._note("delivered")
        return 0.0

    def _wait_s(self, failures: int) -> float:
        return min(self._pace.first_wait_s * float(1 << min(failures, 30)), self._pace.wait_max_s)

    def _note(self, outcome: str) -> None:
        if self._on_delivery is not None:
            self._on_delivery(self._name, outcome)
