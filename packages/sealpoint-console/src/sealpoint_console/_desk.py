# SPDX-License-Identifier: Apache-2.0
"""What all pages share: the open store, the watch of it, who is signed in, and who is waiting.

One OS thread looks at the store all the time; pages read what it found. A person's rights are those
of the newest roster, asked at every request, so that whoever is taken off it is out at once.
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
from sealpoint_console._audit_reads import AuditReads
from sealpoint_console._feed import Feed
from sealpoint_console._health import Checkup, Health
from sealpoint_console._notify import Notifier
from sealpoint_console._render import ago
from sealpoint_console._sessions import Session, Sessions
from sealpoint_console._shield import Allowance
from sealpoint_console._telemetry import Telemetry
from sealpoint_console._workers import Workers
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
"""How many pages are told what moves: in all, and of one person."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person who is signed in, with the rights that the roster gives them here and now."""

    person: str
    identities: tuple[str, ...]
    roles: frozenset[Role]
    break_glass: bool
    passkeys: tuple[Passkey, ...]
    """Those that they may approve with at this console."""

    @property
    def is_operator(self) -> bool:
        """Whether they may pause, unpause, ask for handoffs and propose rollouts."""
        return Role.OPERATOR in self.roles

    @property
    def is_approver(self) -> bool:
        """Whether their word on a request may count."""
        return Role.APPROVER in self.roles


def viewer_of(
    roster: Roster, person: str, namespace: str, origin: str, now: datetime
) -> Viewer | None:
    """What a person may do in a namespace; None if the roster knows nobody of that name there.

    An identity whose keys were all revoked, or have all expired, keeps its line in the roster, and
    gives nobody any right.
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


class ConsoleDesk:
    """What answers for a console while it runs.

    Args:
        store: Open for reading: what pages show.
        acting: Open as the operator identity that the console acts with.
        settings: Where it is, and whom it tells.
        admin: What says how the store is set up.
    """

    def __init__(
        self, store: Store, acting: Store, settings: ConsoleSettings, admin: Admin
    ) -> None:
        self.store = store
        self.acting = acting
        self.settings = settings
        self.masking = SECRETS if settings.masked is None else Masking(names=settings.masked)
        self.sessions = Sessions()
        self.telemetry = Telemetry()
        self.workers = Workers()
        self.audits = AuditReads()
        """The pages of the audit that people can go on from."""
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
        """How often one address may try to sign in."""
        self.on_enrolled: Callable[[str, Passkey], object] | None = None
        """Told of each passkey that somebody makes, with the name they gave."""
        self.looks = 0
        """How often the store was looked at."""
        self.fault: SealpointError | None = None
        """Why it cannot be looked at, while it cannot."""
        self._outage: AnchorUnavailable | StorageUnavailable | None = None
        """The same, where nobody can reach the store."""
        self._listeners: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, str]] = {}
        self._run = secrets.token_hex(4)
        """What places of this run of the console begin with."""
        self._lock = threading.Lock()
        self._looking = threading.Condition()
        self._begun = 0
        self._is_wanted = self._is_ending = False
        self._looker = threading.Thread(target=self._look, name="sealpoint-console", daemon=True)

    def viewer(self, session: Session | None) -> Viewer | None:
        """Who is signed in, by the newest roster.

        A session of somebody who left it has ended, and so has what a passkey opened that left it.

        Raises:
            StorageUnavailable, AnchorUnavailable: The newest look could not reach the store.
        """
        if session is None:
            return None
        if (outage := self._outage) is not None:
            # Each page would wait as long as the newest look has, and then say the same.
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
            # It was lost, or has expired: whoever has it now has nothing more that it opened.
            self.sessions.end_all(session.person, session.passkey)
            return None
        return found

    @property
    def identity(self) -> str:
        """The identity that the console acts with."""
        return self.acting.thread("console").adapter.identity

    @property
    def open_requests(self) -> int:
        """How many requests wait for somebody."""
        return sum(each.status is Status.OPEN for each in self.watch.requests().requests)

    @property
    def alarms(self) -> int:
        """How many threads do not verify, by the watch and by the last verification."""
        found = {each.thread for each in self.watch.findings()}
        last = self.health.last
        if last is not None and last.report is not None:
            found |= {each.thread for each in last.report.findings if each.refuses}
        return len(found)

    @property
    def freshness(self) -> str:
        """How new it is what lists show, in words."""
        if self.fault is not None:
            return f"The store cannot be looked at: {self.fault.code}."
        state = self.watch.state
        if state.refreshed is None:
            return f"Reading the store for the first time: {state.done} of {state.total} threads."
        return f"Looked at the store {ago(state.refreshed)}."

    # ------------------------------------------------------------------ watching

    def start(self) -> None:
        """Begin to watch the store, and to tell people."""
        self._looker.start()
        self.feed.start()

    def close(self) -> None:
        """Stop watching, and whatever runs beside it."""
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
            # A store that takes long to look at is not looked at all the time, and not all of it.
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
        """Wait until it is time for the next look, or somebody wants one; False at the end."""
        with self._looking:
            self._looking.wait_for(lambda: self._is_wanted or self._is_ending, wait_s)
            self._is_wanted = False
            self._begun += 1
            return not self._is_ending

    def catch_up(self) -> None:
        """Have the store looked at, so that who wrote something sees it in the next page.

        It waits a moment and no longer: a store that takes long to look at is shown as it was.
        """
        if not self._looker.is_alive():
            return
        with self._looking:
            # One that is under way may have begun before.
            wanted = self._begun + 1
            self._is_wanted = True
            self._looking.notify_all()
            self._looking.wait_for(lambda: self.looks >= wanted or self._is_ending, _CATCH_UP_S)

    @property
    def place(self) -> str:
        """How far the store is known, for whoever asks later what has moved since."""
        return f"{self._run}-{self.watch.state.version}"

    def moved_since(self, place: str) -> tuple[str, frozenset[str] | None]:
        """The place now, and the ids of the threads that have moved since one; None: any may have.

        A change of the store chain, such as of the roster, may make a difference to all of them.
        """
        now, version = self.place, self.watch.state.version
        run, _, digits = place.rpartition("-")
        if run != self._run or not _NUMBER.fullmatch(digits):
            return now, None
        changes = self.watch.changes(int(digits))
        # Not what a refresh that is under way has met: pages do not show it yet.
        threads = frozenset(each.thread_id for each in changes.events if each.number <= version)
        return now, None if changes.missed or "" in threads else threads

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners.items())
        for looked, (loop, _) in listeners:
            loop.call_soon_threadsafe(looked.set)

    def listen(self, person: str) -> asyncio.Event:
        """Have an event set, in this event loop, each time that the store was looked at.

        Raises:
            TooOften: This person listens in many places already.
            Overloaded: Very many listen.
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
        """Be told no more."""
        with self._lock:
            self._listeners.pop(looked, None)
