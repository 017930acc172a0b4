# SPDX-License-Identifier: Apache-2.0
"""What all pages share: the open store, the watch of it, who is signed in, and who is waiting.

One OS thread looks at the store all the time; pages read what it found. A person's rights are those
of the newest roster, asked at every request, so that whoever is taken off it is out at once.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sealpoint.api import Admin, Diagnosis, Store
from sealpoint.config import ConsoleSettings
from sealpoint.console._feed import Feed
from sealpoint.console._health import Health
from sealpoint.console._notify import Notifier
from sealpoint.console._render import ago
from sealpoint.console._sessions import Session, Sessions
from sealpoint.console._shield import Allowance
from sealpoint.console._telemetry import Telemetry
from sealpoint.errors import SealpointError, StorageUnavailable
from sealpoint.gate import Status
from sealpoint.signing import Identity, Passkey, Role, Roster
from sealpoint.views.masking import SECRETS, Masking

_LOG = logging.getLogger("sealpoint.console")
_NEVER = datetime.max.replace(tzinfo=UTC)
_LOOK_S = 0.4
_WAIT_MAX_S = 10.0
_FAULT_WAIT_S = 2.0


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
    return any(now < roster.expiries.get(each.digits, _NEVER) for each in identity.keys)


def _passkeys_of(
    roster: Roster, names: set[str], origin: str, now: datetime
) -> tuple[Passkey, ...]:
    return tuple(
        passkey
        for identity, passkey in roster.passkeys.values()
        if identity.name in names
        and passkey.binding.origin == origin
        and now < roster.expiries.get(passkey.id.raw.hex(), _NEVER)
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
        self._admin = admin
        self.settings = settings
        self.masking = SECRETS if settings.masked is None else Masking(names=settings.masked)
        self.sessions = Sessions()
        self.telemetry = Telemetry()
        self.watch = store.watch()
        self.notifier = Notifier(
            settings,
            store_id=str(store.id),
            namespace=store.namespace,
            on_delivery=self.telemetry.note_delivery,
        )
        self.feed = Feed(store, self.watch, self.notifier)
        self.health = Health(store)
        self.sign_ins = Allowance(burst=20, a_minute=20)
        """How often one address may try to sign in."""
        self.on_enrolled: Callable[[str, Passkey], object] | None = None
        """Told of each passkey that somebody makes, with the name they gave."""
        self.looks = 0
        """How often the store was looked at."""
        self.fault: SealpointError | None = None
        """Why it cannot be looked at, while it cannot."""
        self._listeners: dict[asyncio.Queue[int], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._looker = threading.Thread(target=self._look, name="sealpoint-console", daemon=True)

    def viewer(self, session: Session | None) -> Viewer | None:
        """Who is signed in, by the newest roster; a session of somebody who left it has ended."""
        if session is None:
            return None
        found = viewer_of(
            self.watch.roster,
            session.person,
            self.store.namespace,
            self.settings.origin,
            datetime.now(UTC),
        )
        if found is None:
            self.sessions.end_all(session.person)
        return found

    def diagnosis(self) -> Diagnosis:
        """How the store is set up, as `sealpoint doctor` says."""
        return self._admin.doctor(namespace=self.store.namespace)

    @property
    def open_requests(self) -> int:
        """How many requests wait for somebody."""
        return sum(each.status is Status.OPEN for each in self.watch.requests().requests)

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
        self._ending.set()
        self.health.close()
        self.feed.close()
        if self._looker.is_alive():
            self._looker.join(timeout=_WAIT_MAX_S)

    def _look(self) -> None:
        wait_s = 0.0
        while not self._ending.wait(wait_s):
            begun = time.monotonic()
            try:
                self.watch.refresh()
                self.fault = None
            except SealpointError as error:
                self.fault = error
            except Exception:  # noqa: BLE001 (whatever it is, pages say so and the next look comes)
                _LOG.exception("the watch of the store failed")
                self.fault = StorageUnavailable("the store cannot be looked at; the log says why")
            took = time.monotonic() - begun
            # A store that takes long to look at is not looked at all the time.
            wait_s = min(max(_LOOK_S, 2 * took), _WAIT_MAX_S)
            if self.fault is not None:
                wait_s = _FAULT_WAIT_S
            self.looks += 1
            self.telemetry.note_refresh(took, self.fault.code if self.fault else "")
            phases = {str(phase): count for phase, count in self.watch.counts().items()}
            self.telemetry.note_standing(self.open_requests, phases)
            self.feed.wake()
            self._tell()

    def _tell(self) -> None:
        number = self.watch.state.version
        with self._lock:
            listeners = list(self._listeners.items())
        for queue, loop in listeners:
            loop.call_soon_threadsafe(_put, queue, number)

    def listen(self) -> asyncio.Queue[int]:
        """Be told, in this event loop, each time that the store was looked at."""
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
        return queue

    def stop_listening(self, queue: asyncio.Queue[int]) -> None:
        """Be told no more."""
        with self._lock:
            self._listeners.pop(queue, None)

    @property
    def listeners(self) -> int:
        """How many are told."""
        return len(self._listeners)


def _put(queue: asyncio.Queue[int], number: int) -> None:
    # Whoever has not taken the last one yet gets the newest only.
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(number)
