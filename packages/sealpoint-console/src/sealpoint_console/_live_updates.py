# SPDX-License-Identifier: Apache-2.0
"""The live feed: server-sent events that report a change, and never its content.

Each event carries its place in the feed; a page states its last known place, so that it misses
nothing between its creation and its connection, nor during an interruption. Places of another run
of the console are invalid: such a page has to reload everything.

`moved` asks the page to reload lists, `standing` has the number of open requests, the number of
threads that fail verification and the age of lists, `fault` says that the store cannot be read;
each is sent when it changes, and a comment occasionally in between. An unreadable store does not
end the feed: it continues when the store is back. The end of the session does.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from math import inf
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sealpoint.errors import Overloaded, SealpointError, TooOften
from sealpoint_console._console_state import ConsoleState
from sealpoint_console._http_protection import error_document, retry_headers, status_of
from sealpoint_console._sessions import COOKIE, Session, cookie_of

_BEAT_S = 15.0
_ASK_S = 1.0
_THREADS_MAX = 100
"""The number of changed threads that are named; beyond it, the event covers all threads."""


def live_route(desk: ConsoleState) -> Route:
    """The route of the live feed."""

    async def answer(request: Request) -> Response:
        session = desk.sessions.find(cookie_of(request.scope["headers"], COOKIE), keep=False)
        if session is None or not await _may_listen(desk, session):
            return Response("nobody is signed in\n", 401, media_type="text/plain")
        try:
            listener = desk.listen(session.person)
        except (TooOften, Overloaded) as error:
            return JSONResponse(error_document(error), status_of(error), retry_headers(error))
        return _Stream(desk, request, listener)

    return Route("/live", answer, methods=["GET"])


async def _may_listen(desk: ConsoleState, session: Session) -> bool:
    try:
        return await asyncio.to_thread(desk.viewer, session) is not None
    except SealpointError:
        # A browser does not reconnect after a refusal; the feed reports the error.
        return True


class _Stream(StreamingResponse):
    """A stream that always releases its slot, however it ends, and also if it never began."""

    def __init__(self, desk: ConsoleState, request: Request, looked: asyncio.Event) -> None:
        super().__init__(
            _events(desk, request, looked),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},  # nginx would keep events back, else
        )
        self._desk = desk
        self._looked = looked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._desk.stop_listening(self._looked)


async def _events(
    desk: ConsoleState, request: Request, looked: asyncio.Event
) -> AsyncIterator[str]:
    listener, sent_at = _Listener(desk, request), time.monotonic()
    while not await request.is_disconnected():
        news = await listener.news()
        if news is None:
            return
        if not news and time.monotonic() - sent_at >= _BEAT_S:
            news = ": still here\n\n"
        if news:
            sent_at = time.monotonic()
            yield news
        with suppress(TimeoutError):
            await asyncio.wait_for(looked.wait(), _BEAT_S)
        looked.clear()


class _Listener:
    """One connected page: its session, and the last event that it received."""

    def __init__(self, desk: ConsoleState, request: Request) -> None:
        self._desk = desk
        self._cookie = cookie_of(request.scope["headers"], COOKIE)
        self._asked_at = -inf
        # A browser that reconnects sends its last place; a new page sends the place of its
        # creation.
        since = request.headers.get("last-event-id") or request.query_params.get("since")
        self._place = since or desk.place
        self._standing = ""

    async def news(self) -> str | None:
        """The new events; empty if there are none, None once the session has ended."""
        moved = ""
        try:
            if not await self._is_there():
                return None
            standing = _event("standing", await asyncio.to_thread(_standing, self._desk))
            place, threads = self._desk.moved_since(self._place)
            if place != self._place:
                self._place = place
                moved = _event("moved", _moved(threads), place)
        except SealpointError as error:
            # Nobody can check permissions now, so that only this event is sent until the store is
            # back.
            self._asked_at = -inf
            words = f"The store cannot be looked at: {error.code}."
            standing = _event("fault", {"code": error.code, "freshness": words})
        if standing == self._standing:
            return moved
        self._standing = standing
        return moved + standing

    async def _is_there(self) -> bool:
        """Whether the session is still valid: an ended session gets no more events."""
        now = time.monotonic()
        if now - self._asked_at >= _ASK_S:
            session = self._desk.sessions.find(self._cookie, keep=False)
            if await asyncio.to_thread(self._desk.viewer, session) is None:
                return False
            self._asked_at = now
        return True


def _moved(threads: frozenset[str] | None) -> dict[str, Any]:
    """The ids of the changed threads; nothing: any of them may have changed."""
    if threads is None or len(threads) > _THREADS_MAX:
        return {}
    return {"threads": sorted(threads)}


def _standing(desk: ConsoleState) -> dict[str, Any]:
    return {
        "open_requests": desk.open_requests,
        "alarms": desk.alarms,
        "freshness": desk.freshness,
    }


def _event(name: str, data: dict[str, Any], place: str = "") -> str:
    at = f"id: {place}\n" if place else ""
    return f"event: {name}\n{at}data: {json.dumps(data)}\n\n"
