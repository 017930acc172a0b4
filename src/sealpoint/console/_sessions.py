# SPDX-License-Identifier: Apache-2.0
"""Who is signed in, and what they were shown.

A session lies in this process alone: the browser has a random token, and here only its hash is
kept. What a page offers to do is a ticket: it names the action, what it is about and the digest of
what was shown, and works once. So nothing can be done that was not offered to this very person, on
a page that showed exactly that.
"""

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

_TOKEN_BYTES = 32
_SESSIONS_MAX = 2000
_TICKETS_MAX = 400
_LINKS_MAX = 64

IDLE_S = 60 * 60
SESSION_S = 12 * 60 * 60
TICKET_S = 30 * 60
LINK_S = 10 * 60

COOKIE = "__Host-sealpoint"


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


@dataclass(frozen=True, slots=True)
class Ticket:
    """One thing that one page offered to do."""

    action: str
    about: str
    shown: str
    """The digest of what the page showed."""


@dataclass(slots=True)
class Session:
    """One person in one browser."""

    person: str
    how: str
    """By what they signed in: link, passkey or oidc."""
    begun: float
    seen: float
    tickets: OrderedDict[str, tuple[Ticket, float]] = field(default_factory=OrderedDict)


class Sessions:
    """All sessions of a console. May be used from several OS threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._links: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    # ------------------------------------------------------------------ links

    def make_link(self, person: str) -> str:
        """A token that signs a person in, once, within ten minutes."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            self._links[_hash(token)] = (person, self._clock() + LINK_S)
            while len(self._links) > _LINKS_MAX:
                self._links.popitem(last=False)
        return token

    def use_link(self, token: str) -> str | None:
        """The person whom a token signs in; it never does again."""
        with self._lock:
            person, until = self._links.pop(_hash(token), ("", 0.0))
        return person if self._clock() < until else None

    # ------------------------------------------------------------------ sessions

    def begin(self, person: str, how: str) -> str:
        """Sign somebody in.

        Returns:
            The token for their browser.
        """
        token, now = secrets.token_urlsafe(_TOKEN_BYTES), self._clock()
        with self._lock:
            self._sessions[_hash(token)] = Session(person, how, now, now)
            while len(self._sessions) > _SESSIONS_MAX:
                self._sessions.popitem(last=False)
        return token

    def find(self, token: str | None, *, keep: bool = True) -> Session | None:
        """The session of a token, unless it has ended or been idle for too long.

        Args:
            token: What the browser has.
            keep: Somebody is there, which keeps it from being idle; a page that asks by itself
                says nothing about that.
        """
        if not token:
            return None
        now, key = self._clock(), _hash(token)
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if now - session.seen > IDLE_S or now - session.begun > SESSION_S:
                del self._sessions[key]
                return None
            if keep:
                session.seen = now
                self._sessions.move_to_end(key)
            return session

    def end(self, token: str | None) -> None:
        """Sign a browser out."""
        with self._lock:
            self._sessions.pop(_hash(token or ""), None)

    def end_all(self, person: str) -> None:
        """Sign a person out everywhere."""
        with self._lock:
            for key in [key for key, each in self._sessions.items() if each.person == person]:
                del self._sessions[key]

    # ------------------------------------------------------------------ tickets

    def offer(self, session: Session, action: str, about: str, shown: str) -> str:
        """Make a ticket for what a page offers."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._lock:
            session.tickets[token] = (Ticket(action, about, shown), self._clock() + TICKET_S)
            while len(session.tickets) > _TICKETS_MAX:
                session.tickets.popitem(last=False)
        return token

    def look(self, session: Session, token: str) -> Ticket | None:
        """The ticket of a token, which can still be spent; None as for `spend`."""
        with self._lock:
            ticket, until = session.tickets.get(token, (None, 0.0))
        return ticket if self._clock() < until else None

    def spend(self, session: Session, token: str) -> Ticket | None:
        """The ticket of a token, once; None if there is none, or it is too old."""
        with self._lock:
            ticket, until = session.tickets.pop(token, (None, 0.0))
        return ticket if self._clock() < until else None
