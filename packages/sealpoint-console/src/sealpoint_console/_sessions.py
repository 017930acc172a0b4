# SPDX-License-Identifier: Apache-2.0
"""Sessions and tickets: the signed-in people, and the content that their pages showed.

A session exists in this process alone: the browser has a random token, of which only the hash is
kept here. An offered action is a ticket: it names the action, its object and the digest of the
displayed content, and works once. So a person can only take an action that was offered to that
person, on a page that showed exactly that content.
"""

import hashlib
import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
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


def elapsed() -> float:
    """Seconds since some moment, including time in which the machine slept.

    A laptop that is closed in the evening must not open a session in the morning; the usual
    monotonic clock of Linux and macOS stops during sleep.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> str | None:
    """The cookie of a name in a browser's header; None if there is none, or several.

    A browser protects names that begin with `__Host-` from every other site, by exact spelling. So
    the name is compared byte by byte: a comparison that strips Unicode spaces would accept the
    cookie of another site, and a person would work in a session of that site.
    """
    found = {
        value
        for header, text in headers
        if header == b"cookie"
        for key, _, value in (part.strip(b" \t").partition(b"=") for part in text.split(b";"))
        if key == name.encode()
    }
    return found.pop().decode("latin-1") if len(found) == 1 else None


def _newest(session: "Session", ticket: "Ticket", now: float) -> str | None:
    for token, (each, until) in reversed(session.tickets.items()):
        if each == ticket and now < until:
            return token
    return None


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


@dataclass(frozen=True, slots=True)
class Ticket:
    """One action that one page offered."""

    action: str
    about: str
    shown: str
    """The digest of the page's content."""


@dataclass(slots=True)
class Session:
    """One person in one browser."""

    person: str
    how: str
    """The sign-in method: link, passkey or oidc."""
    begun: float
    seen: float
    tickets: OrderedDict[str, tuple[Ticket, float]] = field(default_factory=OrderedDict)
    notice: str = ""
    """The report of an action, for the next page; not in the address, which anyone can craft."""
    passkey: str = ""
    """The id of the passkey of the sign-in, if any: its sessions end with it."""


class Sessions:
    """All sessions of a console. Several OS threads may use it."""

    def __init__(self, clock: Callable[[], float] = elapsed) -> None:
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

    def link_person(self, token: str) -> str | None:
        """The person of a sign-in token, which stays valid."""
        with self._lock:
            person, until = self._links.get(_hash(token), ("", 0.0))
        return person if self._clock() < until else None

    def use_link(self, token: str) -> str | None:
        """The person of a sign-in token, which is used up."""
        with self._lock:
            person, until = self._links.pop(_hash(token), ("", 0.0))
        return person if self._clock() < until else None

    # ------------------------------------------------------------------ sessions

    def begin(self, person: str, how: str, passkey: str = "") -> str:
        """Create the session of a person.

        Args:
            person: The name of the person.
            how: The method.
            passkey: The id of the passkey, if the person used one.

        Returns:
            The token for their browser.
        """
        token, now = secrets.token_urlsafe(_TOKEN_BYTES), self._clock()
        with self._lock:
            self._sessions[_hash(token)] = Session(person, how, now, now, passkey=passkey)
            while len(self._sessions) > _SESSIONS_MAX:
                self._sessions.popitem(last=False)
        return token

    def find(self, token: str | None, *, keep: bool = True) -> Session | None:
        """The session of a token, unless it has ended or been idle for too long.

        Args:
            token: The token of the browser.
            keep: A person is active, which keeps the session from being idle; automatic requests of
                a page do not count.
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

    def end_all(self, person: str, passkey: str = "") -> None:
        """Sign a person out everywhere, or in all sessions of one passkey."""
        with self._lock:
            for key, each in list(self._sessions.items()):
                if each.person == person and (not passkey or each.passkey == passkey):
                    del self._sessions[key]

    # ------------------------------------------------------------------ tickets

    def offer(
        self, session: Session, action: str, about: str, shown: str, *, reuse: bool = False
    ) -> str:
        """Create a ticket for an offered action.

        Args:
            session: The session.
            action: The action.
            about: The object of the action.
            shown: The digest of the page's content.
            reuse: Return the newest unspent ticket for exactly this again, if it exists: automatic
                requests of a page must not evict the tickets of other pages.
        """
        ticket, now = Ticket(action, about, shown), self._clock()
        with self._lock:
            token = _newest(session, ticket, now) if reuse else None
            token = token or secrets.token_urlsafe(_TOKEN_BYTES)
            session.tickets[token] = (ticket, now + TICKET_S)
            session.tickets.move_to_end(token)
            while len(session.tickets) > _TICKETS_MAX:
                session.tickets.popitem(last=False)
        return token

    def look(self, session: Session, token: str) -> Ticket | None:
        """The ticket of a token, which can still be spent; None as for `spend`."""
        with self._lock:
            ticket, until = session.tickets.get(token, (None, 0.0))
        return ticket if self._clock() < until else None

    def spend(self, session: Session, token: str) -> Ticket | None:
        """The ticket of a token, once; None if it does not exist, or is too old."""
        with self._lock:
            ticket, until = session.tickets.pop(token, (None, 0.0))
        return ticket if self._clock() < until else None
