# SPDX-License-Identifier: Apache-2.0
"""The shared parts of all pages: the open store, its watch, sessions, and open event streams.

One OS thread reads the store continuously; pages show its results. A person's rights come from the
newest roster at every request, so that a person who was removed from it loses access at once.
"""

import asyncio
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sealpoint.api import Admin, Store
from sealpoint.errors import (
    AnchorUnavailable,
    Overloaded,
    SealpointError,
    StorageUnavailable,
    TooOften,
)
from sealpoint.gate import Status
from sealpoint.signing import Identity, Passkey, Role, Roster
from sealpoint.views.masking import SECRETS, Masking
from sealpoint_console._audit_pages import AuditReads
from sealpoint_console._health import Checkup, Health
from sealpoint_console._http_protection import Allowance
from sealpoint_console._notification_feed import Feed
from sealpoint_console._notifier import Notifier
from sealpoint_console._question_lines import QuestionLines
from sealpoint_console._render import ago
from sealpoint_console._sessions import Session, Sessions
from sealpoint_console._telemetry import Telemetry
from sealpoint_console._worker_threads import Workers
from sealpoint_console.settings import ConsoleSettings

_LOG = logging.getLogger("sealpoint.console")
_UNAVAILABLE = (AnchorUnavailable, StorageUnavailable)
_NUMBER = re.compile("[0-9]{1,15}")
_LOOK_S = 0.2
_WAIT_MAX_S = 10.0
_LONG_LOOK_S = 0.02
_QUICK_TIMES = 5
_FAULT_WAIT_S = 2.0
_CATCH_UP_S = 2.0

LISTENERS_MAX = 500
LISTENERS_EACH_MAX = 24
"""The limits of pages with a live feed: in all, and for one person."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A signed-in person, with the rights that the roster gives them here and now."""

    person: str
    identities: tuple[str, ...]
    roles: frozenset[Role]
    break_glass: bool
    passkeys: tuple[Passkey, ...]
    """The passkeys with which they may approve at this console."""

    @property
    def is_operator(self) -> bool:
        """Whether they may pause, unpause, ask for handoffs and propose rollouts."""
        return Role.OPERATOR in self.roles

    @property
    def is_approver(self) -> bool:
        """Whether their answer to a request may count."""
        return Role.APPROVER in self.roles


def viewer_of(
    roster: Roster, person: str, namespace: str, origin: str, now: datetime
) -> Viewer | None:
    """The rights of a person in a namespace; None if the roster has nobody of that name there.

    An identity whose keys were all revoked, or have all expired, keeps its line in the roster, but
    has no rights.
    """
    own = [
        each
        for each in roster.identities
        if each.person == person and each.covers(namespace) and _is_in_force(roster, each, now)
    ]
    if not own:
        return None
    return Viewer(
        person=person,
        identities=tuple(each.name for each in own),
        roles=frozenset(role for each in own for role in each.roles),
        break_glass=any(each.may_break_glass(namespace) for each in own),
        passkeys=_passkeys_of(roster, {each.name for each in own}, origin, now),
    )


def _is_in_force(roster: Roster, identity: Identity, now: datetime) -> bool:
    return any(not roster.key_expired_at(each.digits, now) for each in identity.keys)


def _passkeys_of(
    roster: Roster, names: set[str], origin: str, now: datetime
) -> tuple[Passkey, ...]:
    return tuple(
        passkey
        for identity, passkey in roster.passkeys.values()
        if identity.name in names
        and passkey.binding.origin == origin
        and not roster.key_expired_at(passkey.id.raw.hex(), now)
    )


class ConsoleState:
    """The shared state of a running console.

    Args:
        store: Open for reading: the source of pages.
        acting: Open as the operator identity that the console acts with.
        settings: The addresses and hooks.
        admin: The source of the store's configuration.
    """

    def __init__(
        self, store: Store, acting: Store, settings: ConsoleSettings, admin: Admin
    ) -> None:
        self.store = store
        self.acting = acting
        self.settings = settings
        self.masking = SECRETS if settings.masked is None else Masking(names=settings.masked)
        self.question_lines = QuestionLines(store)
        self.sessions = Sessions()
        self.telemetry = Telemetry()
        self.workers = Workers()
        self.audits = AuditReads()
        """The pages of the audit that people can continue."""
        self.watch = store.watch()
        self.notifier = Notifier(
            settings,
            store_id=str(store.id),
            namespace=store.namespace,
            on_delivery=self.telemetry.note_delivery,
        )
        self.feed = Feed(store, self.watch, self.notifier)
        self.health = Health(store, self.feed.verified)
        self.checkup = Checkup(lambda: admin.doctor(namespace=store.namespace))
        self.sign_ins = Allowance(burst=20, a_minute=20)
        """The limit of sign-in attempts from one address."""
        self.on_enrolled: Callable[[str, Passkey], object] | None = None
        """Called with each new passkey, and the name that its owner entered."""
        self.looks = 0
        """The number of reads of the store."""
        self.fault: SealpointError | None = None
        """The error of the last read, while reads fail."""
        self._outage: AnchorUnavailable | StorageUnavailable | None = None
        """The same, if the store is unreachable."""
        self._listeners: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, str]] = {}
        self._run = secrets.token_hex(4)
        """The prefix of the places of this run of the console."""
        self._lock = threading.Lock()
        self._looking = threading.Condition()
        self._begun = 0
        self._is_wanted = self._is_ending = False
        self._looker = threading.Thread(target=self._look, name="sealpoint-console", daemon=True)

    def viewer(self, session: Session | None) -> Viewer | None:
        """The signed-in person, by the newest roster.

        The session of a person who left the roster has ended, and so has a session of a passkey
        that left it.

        Raises:
            StorageUnavailable, AnchorUnavailable: The newest read could not reach the store.
        """
        if session is None:
            return None
        if (outage := self._outage) is not None:
            # Otherwise each page would wait as long as the newest read did, and then fail in the
            # same way.
            raise outage.with_traceback(None)
        found = viewer_of(
            self.watch.roster,
            session.person,
            self.store.namespace,
            self.settings.origin,
            datetime.now(UTC),
        )
        if found is None:
            self.sessions.end_all(session.person)
        elif session.passkey and session.passkey not in {
            each.id.raw.hex() for each in found.passkeys
        }:
            # The passkey was lost, or has expired: its holder loses every session that it opened.
            self.sessions.end_all(session.person, session.passkey)
            return None
        return found

    @property
    def identity(self) -> str:
        """The identity that the console acts with."""
        return self.acting.thread("console").adapter.identity

    @property
    def open_requests(self) -> int:
        """The number of open requests."""
        return sum(each.status is Status.OPEN for each in self.watch.requests().requests)

    @property
    def alarms(self) -> int:
        """The number of threads that fail verification, by the watch and by the last full one."""
        found = {each.thread for each in self.watch.findings()}
        last = self.health.last
        if last is not None and last.report is not None:
            found |= {each.thread for each in last.report.findings if each.refuses}
        return len(found)

    @property
    def freshness(self) -> str:
        """The age of the lists, in words."""
        if self.fault is not None:
            return f"The store cannot be looked at: {self.fault.code}."
        state = self.watch.state
        if state.refreshed is None:
            return f"Reading the store for the first time: {state.done} of {state.total} threads."
        return f"Looked at the store {ago(state.refreshed)}."

    # ------------------------------------------------------------------ watching

    def start(self) -> None:
        """Begin to watch the store, and to send notifications."""
        self._looker.start()
        self.feed.start()

    def close(self) -> None:
        """Stop watching, and everything else in the background."""
        with self._looking:
            self._is_ending = True
            self._looking.notify_all()
        self.workers.close()
        self.health.close()
        self.feed.close()
        if self._looker.is_alive():
            self._looker.join(timeout=_WAIT_MAX_S)

    def _look(self) -> None:
        wait_s = quick_until = 0.0
        while self._begin_look(wait_s):
            begun = time.monotonic()
            quick = begun < quick_until
            try:
                self.watch.refresh(quick=quick)
                phases = {str(phase): count for phase, count in self.watch.counts().items()}
                self.telemetry.note_standing(self.open_requests, phases)
                self.fault = self._outage = None
            except SealpointError as error:
                self.fault = error
                self._outage = error if isinstance(error, _UNAVAILABLE) else None
            except Exception:  # noqa: BLE001 (whatever it is, pages say so and the next look comes)
                _LOG.exception("the watch of the store failed")
                self.fault = StorageUnavailable("the store cannot be looked at; the log says why")
            ended = time.monotonic()
            took = ended - begun
            # A store that is slow to read is not read all the time, and only in part.
            wait_s = min(max(_LOOK_S, took), _WAIT_MAX_S)
            if not quick and took > _LONG_LOOK_S:
                quick_until = ended + min(_QUICK_TIMES * took, _WAIT_MAX_S)
            if self.fault is not None:
                wait_s = _FAULT_WAIT_S
            with self._looking:
                self.looks += 1
                self._looking.notify_all()
            self.telemetry.note_refresh(took, self.fault.code if self.fault else "")
            self.feed.wake()
            self._tell()

    def _begin_look(self, wait_s: float) -> bool:
        """Wait until it is time for the next read, or a page requests one; False at the end."""
        with self._looking:
            self._looking.wait_for(lambda: self._is_wanted or self._is_ending, wait_s)
            self._is_wanted = False
            self._begun += 1
            return not self._is_ending

    def catch_up(self) -> None:
        """Have the store read, so that the writer of an entry sees it in the next page.

        It waits only a moment: a slow store is shown in its previous state.
        """
        if not self._looker.is_alive():
            return
        with self._looking:
            # A read in progress may have begun before the write.
            wanted = self._begun + 1
            self._is_wanted = True
            self._looking.notify_all()
            self._looking.wait_for(lambda: self.looks >= wanted or self._is_ending, _CATCH_UP_S)

    @property
    def place(self) -> str:
        """The position up to which the store is known, for later queries about changes."""
        return f"{self._run}-{self.watch.state.version}"

    def moved_since(self, place: str) -> tuple[str, frozenset[str] | None]:
        """The place now, and the ids of the threads that changed since; None: any may have.

        A change of the store chain, such as of the roster, may affect all of them.
        """
        now, version = self.place, self.watch.state.version
        run, _, digits = place.rpartition("-")
        if run != self._run or not _NUMBER.fullmatch(digits):
            return now, None
        changes = self.watch.changes(int(digits))
        # Without the results of a refresh in progress: pages do not show them yet.
        threads = frozenset(each.thread_id for each in changes.events if each.number <= version)
        return now, None if changes.missed or "" in threads else threads

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners.items())
        for looked, (loop, _) in listeners:
            loop.call_soon_threadsafe(looked.set)

    def listen(self, person: str) -> asyncio.Event:
        """Have an event set, in this event loop, after each read of the store.

        Raises:
            TooOften: This person has too many live feeds.
            Overloaded: There are too many live feeds.
        """
        looked = asyncio.Event()
        with self._lock:
            own = sum(each == person for _, each in self._listeners.values())
            if own >= LISTENERS_EACH_MAX:
                raise TooOften(
                    f"{person!r} listens in {own} places already", hint="Close some of the pages."
                )
            if len(self._listeners) >= LISTENERS_MAX:
                raise Overloaded(f"{LISTENERS_MAX} pages listen already")
            self._listeners[looked] = (asyncio.get_running_loop(), person)
        return looked

    def stop_listening(self, looked: asyncio.Event) -> None:
        """Remove a listener."""
        with self._lock:
            self._listeners.pop(looked, None)
