# SPDX-License-Identifier: Apache-2.0
"""The live feed: server-sent events that say that something moved, and never what it holds."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sealpoint.console._desk import ConsoleDesk
from sealpoint.console._sessions import COOKIE

_BEAT_S = 15.0
_ASK_S = 1.0
_LISTENERS_MAX = 500


def live_route(desk: ConsoleDesk) -> Route:
    """Where pages listen."""

    async def answer(request: Request) -> Response:
        session = desk.sessions.find(request.cookies.get(COOKIE), keep=False)
        viewer = await asyncio.to_thread(desk.viewer, session)
        if viewer is None:
            return Response("nobody is signed in\n", 401, media_type="text/plain")
        if desk.listeners >= _LISTENERS_MAX:
            return Response("too many listen\n", 503, media_type="text/plain")
        return StreamingResponse(_events(desk, request), media_type="text/event-stream")

    return Route("/live", answer, methods=["GET"])


async def _events(desk: ConsoleDesk, request: Request) -> AsyncIterator[str]:
    queue, told, asked = desk.listen(), desk.watch.state.version, time.monotonic()
    try:
        yield _event("standing", _standing(desk))
        while not await request.is_disconnected():
            number = None
            with suppress(TimeoutError):
                number = await asyncio.wait_for(queue.get(), _BEAT_S)
            if time.monotonic() - asked >= _ASK_S:
                # A session that has ended is told nothing more, however much there is to tell.
                session = desk.sessions.find(request.cookies.get(COOKIE), keep=False)
                if await asyncio.to_thread(desk.viewer, session) is None:
                    return
                asked = time.monotonic()
            if number is None:
                yield ": still here\n\n"
                continue
            if number != told:
                told = number
                yield _event("moved", {"number": number})
            yield _event("standing", _standing(desk))
    finally:
        desk.stop_listening(queue)


def _standing(desk: ConsoleDesk) -> dict[str, Any]:
    return {"open_requests": desk.open_requests, "freshness": desk.freshness}


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
