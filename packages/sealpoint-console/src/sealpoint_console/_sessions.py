# SPDX-License-Identifier: Apache-2.0
"""Who is signed in, and what they were shown.

A session lies in this process alone: the browser has a random token, and here only its hash is
kept. What a page offers to do is a ticket: it names the action, what it is about and the digest of
what was shown, and works once. So nothing can be done that was not offered to this very person, on
a page that showed exactly that.
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
    """Seconds since some moment, those included in which the machine slept.

    A laptop that is closed in the evening must not open a session in the morning; the usual
    monotonic clock of Linux and macOS stands still meanwhile.
    """
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


def cookie_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> str | None:
    """The cookie of a name, of those that a browser sent; None if there is none, or several.

    A browser keeps names that begin with `__Host-` from every other site, as it spells them. So the
    name is compared byte by byte: whoever took off all that is a space in some alphabet would take
    the cookie of another site for ours, and somebody would work in a session of that site's.
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
    notice: str = ""
    """What was done, for the next page to say. No address says it: anybody can make one up."""
    passkey: str = ""
    """The id of the passkey that they signed in with, if so: what it opened ends with it."""


class Sessions:
    """All sessions of a console. May be used from several OS threads."""

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
        """The person whom a token would sign in; it still does."""
        with self._lock:
            person, until = self._links.get(_hash(token), ("", 0.0))
        return person if self._clock() < until else None

    def use_link(self, token: str) -> str | None:
        """The person whom a token signs in; it never does again."""
        with self._lock:
            person, until = self._links.pop(_hash(token), ("", 0.0))
        return person if self._clock() < until else None

    # ------------------------------------------------------------------ sessions

    def begin(self, person: str, how: str, passkey: str = "") -> str:
        """Sign somebody in.

        Args:
            person: Who it is.
            how: By what.
            passkey: The id of the passkey, if it is by one.

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

    def end_all(self, person: str, passkey: str = "") -> None:
        """Sign a person out everywhere, or wherever they signed in with one passkey."""
        with self._lock:
            for key, each in list(self._sessions.items()):
                if each.person == person and (not passkey or each.passkey == passkey):
                    del self._sessions[key]

    # ------------------------------------------------------------------ tickets

    def offer(
        self, session: Session, action: str, about: str, shown: str, *, reuse: bool = False
    ) -> str:
        """Make a ticket for what a page offers.

        Args:
            session: To whom.
            action: What to do.
            about: What it is about.
            shown: The digest of what the page shows.
            reuse: Give the newest ticket for exactly this again, if there is one that was not
                spent: a page that asks by itself must not push out those of other pages.
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
        """The ticket of a token, once; None if there is none, or it is too old."""
        with self._lock:
            ticket, until = session.tickets.pop(token, (None, 0.0))
        return ticket if self._clock() < until else None
