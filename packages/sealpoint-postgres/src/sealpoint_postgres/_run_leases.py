# SPDX-License-Identifier: Apache-2.0
"""The threads that have a live run on any machine: one row, a lease, for each.

A server cannot see that a process on another machine has ended. So a row says until when a run has
its thread, by the server's clock alone, and the process moves that time on while it lives. A row
whose time has passed is that of a run whose process ended first, or was cut off from the server.

- A run is taken by one statement, whose condition names the time, and ended by one that names the
  token of the hold. A call whose connection is lost is repeated, and finds its own token.
- One OS thread renews all the holds of an anchor in one statement, and exists only while there are
  holds. A renewal that fails is repeated soon, and reaches no caller.
- After a fork the holds are the parent's: the child neither renews nor ends them.
- After `close` nothing is renewed: rows of runs that have not ended stay until their time is over.
"""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from sealpoint.anchor import Hold, Holder
from sealpoint.errors import AnchorUnavailable, SealpointError
from sealpoint_postgres import _anchor_schema as sql
from sealpoint_postgres._connections import Answer, Row, Value

Statement = tuple[str, Sequence[Value]]
_TOKEN_BYTES = 16
_TRIES_MAX = 32
"""How often a run may end exactly between the two statements of `hold`."""
_RENEWALS = 3
_RETRIES = 30
"""A lease is renewed 3 times while it lasts, and up to 30 times while that fails."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TYPES = (bytes, int, bool)
"""Of the columns of a run."""

_leases: "weakref.WeakSet[RunLeases]" = weakref.WeakSet()
_leases_lock = threading.Lock()


class RunLeases:
    """The runs of a store in a database.

    Args:
        store: The store's id.
        execute: Sends statements in one round trip; each is committed before the next begins.
        damaged: The error for rows that are not as they were written.
        lease_seconds: How long a run has its thread after its process was last heard of.
    """

    def __init__(
        self,
        store: bytes,
        *,
        execute: Callable[[Sequence[Statement]], list[Answer]],
        damaged: Callable[[str], AnchorUnavailable],
        lease_seconds: float,
    ) -> None:
        self._store = store
        self._execute = execute
        self._damaged = damaged
        self._lease_seconds = lease_seconds
        self._lock = threading.RLock()  # the collector may end a run while it is held
        self._holds: dict[bytes, bytes] = {}
        """The slots of this process, by the tokens of their holds."""
        self._stop: threading.Event | None = None
        """Ends the OS thread that renews; None: there is none."""
        self._closed = False
        with _leases_lock:
            _leases.add(self)

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Let a run have a thread; returns the hold, or who has it.

        Args:
            slot: The slot of the thread.
            holder: Whose run it is.
            instead: Take the thread from its current holder.

        Raises:
            AnchorUnavailable: The row cannot be written, or does not describe a run.
        """
        token = os.urandom(_TOKEN_BYTES)
        since = (holder.since - _EPOCH) // _MICROSECOND
        lease_ms = int(self._lease_seconds * 1000)
        take = (self._store, slot, token, holder.who.encode(), since, lease_ms, int(instead))
        look = (sql.GET_RUN, (self._store, slot))
        for _ in range(_TRIES_MAX):
            before, taken, found = self._execute([look, (sql.TAKE_RUN, take), look])
            if taken.changed == 1:
                self._keep(token, slot)
                last = self._one(slot, before.rows)
                return _LeaseHold(self, token, left=last is not None and not last.living)
            other = self._one(slot, found.rows)
            if other is not None and other.living:
                return other
        # A rule or a trigger keeps the row away: a retry would repeat forever.
        raise self._damaged(f"the run of slot {slot.hex()[:12]} was to be written, and was not")

    def holder(self, slot: bytes) -> Holder | None:
        """Whose run has a thread, or had it when its lease was over.

        Raises:
            AnchorUnavailable: The server cannot be used, or the row does not describe a run.
        """
        [found] = self._execute([(sql.GET_RUN, (self._store, slot))])
        return self._one(slot, found.rows)

    def end(self, token: bytes, *, begun: bool) -> None:
        """Remove the row of a hold, or let its time be over if its run has not begun.

        If that fails, its lease is not renewed any more.
        """
        with self._lock:
            slot = self._holds.pop(token, None)
            if not self._holds:
                self._stop_renewing()
        if slot is None:
            return  # it has ended before, this is a child of its process, or all was closed
        try:
            statement = sql.END_RUN if begun else sql.LEAVE_RUN
            self._execute([(statement, (self._store, slot, token))])
        except (SealpointError, OSError):
            return  # the server is away, or cannot be logged in to

    def close(self) -> None:
        """Renew nothing from now on; closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._holds = {}
            self._stop_renewing()
        with _leases_lock:
            _leases.discard(self)

    def start_in_child(self) -> None:
        """After a fork: the runs are the parent's, and so is the OS thread that renews them."""
        self._lock = threading.RLock()
        self._holds = {}
        self._stop = None

    def _keep(self, token: bytes, slot: bytes) -> None:
        """Renew a hold from now on."""
        with self._lock:
            if self._closed:
                return
            if self._stop is None:
                stop = threading.Event()
                threading.Thread(
                    target=self._renew, args=(stop,), name="sealpoint-runs", daemon=True
                ).start()
                self._stop = stop
            self._holds[token] = slot

    def _stop_renewing(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = None

    def _renew(self, stop: threading.Event) -> None:
        """Renew all the holds until there is none."""
        pause_seconds = self._lease_seconds / _RENEWALS
        while not stop.wait(pause_seconds):
            with self._lock:
                holds = dict(self._holds)
            lease_ms = int(self._lease_seconds * 1000)
            renew = (self._store, list(holds.values()), list(holds), lease_ms)
            try:
                self._execute([(sql.RENEW_RUNS, renew)])
            except Exception:  # noqa: BLE001 - no caller is there, and the next try may succeed
                pause_seconds = self._lease_seconds / _RETRIES
            else:
                pause_seconds = self._lease_seconds / _RENEWALS

    def _one(self, slot: bytes, rows: list[Row]) -> Holder | None:
        """The holder in the rows of a slot; raises for impossible rows."""
        if not rows:
            return None
        if len(rows) == 1 and tuple(map(type, rows[0])) == _TYPES:
            who, since, living = rows[0]
            try:
                return Holder(who.decode(), _EPOCH + since * _MICROSECOND, living=living)
            except (UnicodeDecodeError, OverflowError) as exc:
                raise self._damaged(f"the run of slot {slot.hex()[:12]} is none") from exc
        raise self._damaged(f"the run of slot {slot.hex()[:12]} is none, or is there twice")


class _LeaseHold:
    """The hold of a thread by a run of this process."""

    __slots__ = ("_leases", "_token", "left")

    def __init__(self, leases: RunLeases, token: bytes, *, left: bool) -> None:
        self.left = left
        self._leases = leases
        self._token = token

    def end(self, *, begun: bool = True) -> None:
        """The run has ended."""
        self._leases.end(self._token, begun=begun)


def _start_in_child() -> None:
    for leases in _leases:
        leases.start_in_child()
    _leases_lock.release()


if hasattr(os, "register_at_fork"):
    # The lock is held over the fork, so that the child finds the set whole.
    os.register_at_fork(
        before=_leases_lock.acquire,
        after_in_parent=_leases_lock.release,
        after_in_child=_start_in_child,
    )
