# SPDX-License-Identifier: Apache-2.0
"""From a request to a handler: who asks, whether they may, and what an answer looks like.

Every route says what right it needs; there is no route without. A handler gets a `PageCall`, and
gives an answer or raises: it runs in a thread of its own, so it may read the store. Errors have one
form as a page and one as JSON.
"""

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sealpoint.console._desk import ConsoleDesk, Viewer
from sealpoint.console._render import Renderer
from sealpoint.console._sessions import COOKIE, SESSION_S, Session
from sealpoint.console._shield import BODY_BYTES_MAX, error_document, status_of
from sealpoint.errors import NoRight, SealpointError, UsageError
from sealpoint.gate import Thread, ThreadSummary

_LOG = logging.getLogger("sealpoint.console")
_FIELDS_MAX = 100


class Right(Enum):
    """What somebody needs for a route."""

    ANYBODY = auto()
    """Nothing: pages before one is signed in."""
    SIGNED_IN = auto()
    """To be somebody whom the roster knows in the namespace."""
    OPERATOR = auto()
    """The role of an operator there."""


@dataclass(slots=True)
class PageCall:
    """One request, with all that a handler needs to answer it."""

    desk: ConsoleDesk
    renderer: Renderer
    request: Request
    session: Session | None
    person: Viewer | None
    fields: dict[str, Any]
    """What a form or a JSON object said."""

    @property
    def viewer(self) -> Viewer:
        """Who asks; only on routes that need somebody."""
        if self.person is None:
            raise NoRight("this page is for people who are signed in")
        return self.person

    @property
    def wants_json(self) -> bool:
        """Whether a program asks."""
        return wants_json(self.request)

    def text(self, name: str, default: str | None = None) -> str:
        """A text that has to be there, unless there is a default.

        Raises:
            UsageError: It is not, or is no text.
        """
        found = self.fields.get(name, default)
        if not isinstance(found, str):
            found_type = "nothing" if found is None else type(found).__name__
            raise UsageError(f"{name}: expected a text, found {found_type}")
        return found

    def path(self, name: str) -> str:
        """A part of the address."""
        found: str = self.request.path_params[name]
        return found

    def thread(self, thread_id: str) -> Thread:
        """The thread of an id.

        Raises:
            UnknownThread: There is none.
        """
        return self.desk.store.thread(self.summary(thread_id).name)

    def summary(self, thread_id: str) -> ThreadSummary:
        """What a thread is at.

        Raises:
            UnknownThread: There is none.
        """
        return self.desk.watch.thread_of(thread_id)

    def acting_on(self, thread_id: str) -> Thread:
        """The same thread, to be written to by the console."""
        return self.desk.acting.thread(self.summary(thread_id).name)

    def query(self, name: str, default: str = "") -> str:
        """What the address says."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, most: int = 10**9) -> int:
        """A number that the address says.

        Raises:
            UsageError: It says something else.
        """
        text = self.query(name)
        if not text:
            return default
        digits = len(str(most))
        if not (text.isascii() and text.isdecimal() and len(text) <= digits and int(text) <= most):
            raise UsageError(f"{name}: expected a number up to {most}, found another text")
        return int(text)

    def offer(self, action: str, about: str, shown: str) -> str:
        """A ticket to do something about what this page shows."""
        if self.session is None:
            raise NoRight("this is offered to people who are signed in")
        return self.desk.sessions.offer(self.session, action, about, shown)

    def spend(self, action: str, about: str, *, keep: bool = False) -> str:
        """The digest of what was shown, by the ticket that came with a form.

        Args:
            action: What the form is to do.
            about: What it is about.
            keep: Leave the ticket as it is: only a first step is taken.

        Raises:
            UsageError: There is no such ticket any more.
        """
        ticket, sessions = None, self.desk.sessions
        if self.session is not None:
            take = sessions.look if keep else sessions.spend
            ticket = take(self.session, self.text("ticket"))
        if ticket is None or (ticket.action, ticket.about) != (action, about):
            raise UsageError(
                "this form was sent before, or the page is too old",
                hint="Load the page again, read what it shows now, and send it from there.",
            )
        return ticket.shown

    def page(self, template: str, /, *, status: int = 200, **values: Any) -> Response:
        """A page."""
        return self.renderer.page(self.request, self.person, template, status=status, **values)


Handler = Callable[[PageCall], Response]


def wants_json(request: Request) -> bool:
    """Whether a program asks, and not somebody who looks at pages."""
    accept = request.headers.get("accept", "")
    return request.url.path.startswith("/api/") or accept.startswith("application/json")


def redirect(path: str) -> Response:
    """Go on at another page."""
    return RedirectResponse(path, status_code=303)


class Routes:
    """Makes routes whose handlers are asked only by those who may."""

    def __init__(self, desk: ConsoleDesk, renderer: Renderer) -> None:
        self._desk = desk
        self._renderer = renderer

    def get(self, path: str, right: Right, handler: Handler) -> Route:
        """A route that reads."""
        return Route(path, self._endpoint(right, handler), methods=["GET"])

    def post(self, path: str, right: Right, handler: Handler) -> Route:
        """A route that does something."""
        return Route(path, self._endpoint(right, handler), methods=["POST"])

    def _endpoint(self, right: Right, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        desk, renderer = self._desk, self._renderer

        async def endpoint(request: Request) -> Response:
            fields = await _fields(request) if request.method == "POST" else {}

            def answer() -> Response:
                # Pages ask through htmx only by themselves: nobody need be there.
                is_somebody = "hx-request" not in request.headers
                session = desk.sessions.find(request.cookies.get(COOKIE), keep=is_somebody)
                call = PageCall(desk, renderer, request, session, None, {})
                try:
                    call.person = desk.viewer(session)
                    if isinstance(fields, SealpointError):
                        raise fields
                    call.fields = fields
                    refusal = _refusal(call, right)
                    return handler(call) if refusal is None else refusal
                except SealpointError as error:
                    return refused(call, error)

            return await run_in_threadpool(answer)

        return endpoint


def _refusal(call: PageCall, right: Right) -> Response | None:
    """What somebody is told who may not; None if they may."""
    if right is Right.ANYBODY:
        return None
    if call.person is None:
        if call.wants_json:
            error = NoRight("nobody is signed in", hint="Sign in at /sign-in with a browser.")
            return JSONResponse(error_document(error), 401)
        return redirect("/sign-in")
    if right is Right.OPERATOR and not call.person.is_operator:
        raise NoRight(
            f"this needs role operator in namespace {call.desk.store.namespace!r}; "
            f"{call.person.person!r} does not have it",
            hint="Ask an operator; where the root key is, sealpoint keys add gives the role.",
        )
    return None


def refused(call: PageCall, error: SealpointError) -> Response:
    """An error as a page or as JSON."""
    status = status_of(error)
    if call.wants_json:
        return JSONResponse(error_document(error), status)
    return call.page(
        "error.html",
        status=status,
        heading="This was not done" if call.request.method == "POST" else "This cannot be shown",
        fault=error,
        back=_back(call),
        back_words="Back to the page" if call.request.method == "POST" else "To the threads",
    )


def _back(call: PageCall) -> str:
    path = call.request.url.path
    # The page that a form is on: /threads/X for /threads/X/pause.
    return path.rpartition("/")[0] or "/" if call.request.method == "POST" else "/"


async def _fields(request: Request) -> "dict[str, Any] | SealpointError":
    """What a form or a JSON object says."""
    data = await request.body()
    if len(data) > BODY_BYTES_MAX:
        return UsageError("too many bytes")
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        if kind == "application/json":
            found = json.loads(data)
            if isinstance(found, dict):
                return found
        elif kind == "application/x-www-form-urlencoded":
            text = data.decode()
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX))
        elif not data:
            return {}
    except (ValueError, RecursionError):
        pass
    return UsageError("expected the fields of a form, or a JSON object")


def signed_in(call: PageCall, person: str, how: str, response: Response) -> Response:
    """Give the browser its session.

    Raises:
        NoRight: The roster does not know the person.
    """
    token = call.desk.sessions.begin(person, how)
    if call.desk.viewer(call.desk.sessions.find(token)) is None:
        raise NoRight(
            f"the roster has nobody called {person!r} in namespace {call.desk.store.namespace!r}",
            hint="Whoever holds the root key adds people: sealpoint keys add NAME --person NAME.",
        )
    call.desk.sessions.end(call.request.cookies.get(COOKIE))
    response.set_cookie(
        COOKIE, token, max_age=SESSION_S, path="/", secure=True, httponly=True, samesite="lax"
    )
    return response


def make_starlette(routes: list[Route], desk: ConsoleDesk, renderer: Renderer) -> Starlette:
    """The application of all routes; what none of them answers has a page as well."""

    def unknown(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        words = (
            "there is no such page"
            if status == HTTPStatus.NOT_FOUND
            else "this cannot be done here"
        )
        call = PageCall(desk, renderer, request, None, None, {})
        if call.wants_json:
            return JSONResponse(error_document(UsageError(words)), status)
        return call.page(
            "error.html",
            status=status,
            heading="Not found",
            fault=UsageError(words),
            back="/",
            back_words="To the threads",
        )

    def failed(request: Request, exc: Exception) -> Response:
        # The route and not the address: that names threads, and what people looked for.
        route = getattr(request.scope.get("route"), "path", "no route")
        _LOG.error("%s: %s", route, type(exc).__name__, exc_info=exc)
        fault = UsageError("something went wrong in the console", hint="Its log says what.")
        if wants_json(request):
            return JSONResponse(error_document(fault), 500)
        return PlainTextResponse(f"{fault.message}: {fault.hint}\n", 500)

    app = Starlette(routes=routes, exception_handlers={HTTPException: unknown, Exception: failed})
    # An address with a slash more would be redirected to http, also behind a proxy with TLS.
    app.router.redirect_slashes = False
    return app
