# SPDX-License-Identifier: Apache-2.0
"""From a request to a handler: identity, permission, and the form of a response.

Every route declares the right that it needs; there is no route without one. A handler gets a
`PageCall`, and returns a response or raises: it runs in a thread of its own, so it may read the
store. Errors have one form as a page and one as JSON.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from sealpoint.errors import (
    NoRight,
    Overloaded,
    SealpointError,
    TooOften,
    UnknownThread,
    UsageError,
)
from sealpoint.gate import Thread, ThreadSummary
from sealpoint_console._console_state import ConsoleState, Viewer
from sealpoint_console._http_protection import (
    BODY_BYTES_MAX,
    error_document,
    retry_headers,
    status_of,
    wants_json,
)
from sealpoint_console._render import Renderer
from sealpoint_console._sessions import COOKIE, SESSION_S, Session, cookie_of

_FIELDS_MAX = 100
_WANTED = re.compile(
    r"/(?:requests|rollouts|audit|people|health|requests/[0-9a-f]{64}"
    r"|threads/[0-9a-f]{32}(?:/entries/[0-9]{1,9})?)"
)


class Right(Enum):
    """The right that a person needs for a route."""

    ANYBODY = auto()
    """Nothing: pages before sign-in."""
    SIGNED_IN = auto()
    """To be a person whom the roster knows in the namespace."""
    OPERATOR = auto()
    """The role of an operator there."""


@dataclass(slots=True)
class PageCall:
    """One request, with all that a handler needs to answer it."""

    desk: ConsoleState
    renderer: Renderer
    request: Request
    session: Session | None
    person: Viewer | None
    fields: dict[str, Any]
    """The fields of a form or of a JSON object."""
    place: str = field(init=False)
    """The place of the store before anything was read: the page hears of later changes."""

    def __post_init__(self) -> None:
        self.place = self.desk.place

    @property
    def viewer(self) -> Viewer:
        """The person who asks; only on routes that require sign-in."""
        if self.person is None:
            raise NoRight("this page is for people who are signed in")
        return self.person

    @property
    def wants_json(self) -> bool:
        """Whether a program asks."""
        return wants_json(self.request.url.path, self.request.headers)

    @property
    def is_somebody(self) -> bool:
        """Whether a person has to be there: pages send htmx requests only by themselves."""
        return "hx-request" not in self.request.headers

    def cookie(self, name: str = COOKIE) -> str | None:
        """The cookie under a name that no other site can use; else None."""
        return cookie_of(self.request.scope["headers"], name)

    def text(self, name: str, default: str | None = None) -> str:
        """A required text, unless there is a default.

        Raises:
            UsageError: It is missing, or is not text.
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
            UnknownThread: It does not exist.
        """
        return self.desk.store.thread(self.summary(thread_id).name)

    def summary(self, thread_id: str) -> ThreadSummary:
        """The summary of a thread.

        Raises:
            UnknownThread: It does not exist.
            Overloaded: The summary is not known yet: the console has just started.
        """
        try:
            return self.desk.watch.thread_of(thread_id)
        except UnknownThread:
            state = self.desk.watch.state
            if state.refreshed is not None:
                raise
            raise Overloaded(
                f"the store is being read: {state.done} of {state.total} threads so far",
                hint="Nothing was done. The console has just begun: try again in a few seconds.",
            ) from None

    def acting_on(self, thread_id: str) -> Thread:
        """The same thread, to be written to by the console."""
        return self.desk.acting.thread(self.summary(thread_id).name)

    def query(self, name: str, default: str = "") -> str:
        """A query parameter of the address."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, most: int = 10**9) -> int:
        """A number in the address.

        Raises:
            UsageError: The parameter is not a number.
        """
        text = self.query(name)
        if not text:
            return default
        digits = len(str(most))
        if not (text.isascii() and text.isdecimal() and len(text) <= digits and int(text) <= most):
            raise UsageError(f"{name}: expected a number up to {most}, found {text[:20]!r}")
        return int(text)

    def offer(self, action: str, about: str, shown: str) -> str:
        """A ticket for an action on the content of this page."""
        if self.session is None:
            raise NoRight("this is offered to people who are signed in")
        return self.desk.sessions.offer(
            self.session, action, about, shown, reuse=not self.is_somebody
        )

    def spend(self, action: str, about: str, *, keep: bool = False) -> str:
        """The digest of the displayed content, by the ticket in a form.

        Args:
            action: The action of the form.
            about: The object of the action.
            keep: Do not spend the ticket: this is only the first step.

        Raises:
            UsageError: The ticket no longer exists.
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

    def done(self, words: str, path: str) -> Response:
        """Redirect to another page, which reports the action."""
        self.note(words)
        return redirect(path)

    def note(self, words: str) -> None:
        """Have the next page report the action, and show its effect in cached lists."""
        self.desk.catch_up()
        if self.session is not None:
            self.session.notice = words

    def page(self, template: str, /, *, status: int = 200, **values: Any) -> Response:
        """A page."""
        notice = ""
        if self.session is not None and self.is_somebody:
            notice, self.session.notice = self.session.notice, ""
        values = {"notice": notice, "place": self.place, **values}
        return self.renderer.page(self.request, self.person, template, status=status, **values)


Handler = Callable[[PageCall], Response]


def redirect(path: str) -> Response:
    """Redirect to another page."""
    return RedirectResponse(path, status_code=303)


class Routes:
    """Creates routes that only authorized callers reach."""

    def __init__(self, desk: ConsoleState, renderer: Renderer) -> None:
        self._desk = desk
        self._renderer = renderer

    def get(self, path: str, right: Right, handler: Handler) -> Route:
        """A route that reads."""
        return Route(path, self._endpoint(right, handler), methods=["GET"])

    def post(self, path: str, right: Right, handler: Handler) -> Route:
        """A route that changes something."""
        return Route(path, self._endpoint(right, handler), methods=["POST"])

    def _endpoint(self, right: Right, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        desk, renderer = self._desk, self._renderer

        async def endpoint(request: Request) -> Response:
            fields = await _fields(request) if request.method == "POST" else {}

            def answer() -> Response:
                call = PageCall(desk, renderer, request, None, None, {})
                call.session = session = desk.sessions.find(call.cookie(), keep=call.is_somebody)
                try:
                    call.person = desk.viewer(session)
                    if isinstance(fields, SealpointError):
                        raise fields
                    call.fields = fields
                    refusal = _refusal(call, right)
                    return handler(call) if refusal is None else refusal
                except SealpointError as error:
                    return refused(call, error)

            asked = PageCall(desk, renderer, request, None, None, {})
            acts = request.method == "POST"
            try:
                return await desk.workers.run(answer, who=_caller_key(asked), acts=acts)
            except (Overloaded, TooOften) as error:
                return refused(asked, error)

        return endpoint


def _caller_key(call: PageCall) -> str:
    """The owner of the worker slots of a call: a person, or a client address."""
    session = call.desk.sessions.find(call.cookie(), keep=False)
    if session is not None:
        return f"person {session.person}"
    client = call.request.client
    return "nobody" if client is None else f"address {client.host}"


def _refusal(call: PageCall, right: Right) -> Response | None:
    """The error for an unauthorized caller; None if the caller is authorized."""
    if right is Right.ANYBODY:
        return None
    if call.person is None:
        if call.wants_json:
            error = NoRight("nobody is signed in", hint="Sign in at /sign-in with a browser.")
            return JSONResponse(error_document(error), 401)
        return redirect(_sign_in_path(call.request))
    if right is Right.OPERATOR and not call.person.is_operator:
        raise NoRight(
            f"this needs role operator in namespace {call.desk.store.namespace!r}; "
            f"{call.person.person!r} does not have it",
            hint="Ask an operator; where the root key is, sealpoint keys add gives the role.",
        )
    return None


def _sign_in_path(request: Request) -> str:
    """The sign-in page; it leads back to the page of the link or the form."""
    page = wanted_page(_page_path(request))
    return "/sign-in" if page == "/" else f"/sign-in?to={page}"


def wanted_page(path: str) -> str:
    """A page of this console that an address names, or else the first page.

    Anyone can craft an address, so its target must have the form of one of our own pages: no other
    site, and no action.
    """
    return path if _WANTED.fullmatch(path) else "/"


def refused(call: PageCall, error: SealpointError) -> Response:
    """An error as a page or as JSON."""
    status, headers = status_of(error), retry_headers(error)
    if call.wants_json:
        return JSONResponse(error_document(error), status, headers)
    page = call.page(
        "error.html",
        status=status,
        heading="This was not done" if call.request.method == "POST" else "This cannot be shown",
        fault=error,
        back=_page_path(call.request) if call.request.method == "POST" else "/",
        back_words="Back to the page" if call.request.method == "POST" else "To the threads",
    )
    page.headers.update(headers)
    return page


def _page_path(request: Request) -> str:
    """The requested page, or the page of a form: /threads/X for /threads/X/pause."""
    path = request.url.path
    return path.rpartition("/")[0] or "/" if request.method == "POST" else path


async def _fields(request: Request) -> "dict[str, Any] | SealpointError":
    """The fields of a form or of a JSON object."""
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


def signed_in(
    call: PageCall, person: str, how: str, response: Response, passkey: str = ""
) -> Response:
    """Give the browser its session.

    Args:
        call: The request that proved the identity.
        person: The name of the person.
        how: The method.
        response: The response that carries the cookie.
        passkey: The id of the passkey, if the person used one.

    Raises:
        NoRight: The roster does not know the person.
    """
    token = call.desk.sessions.begin(person, how, passkey)
    if call.desk.viewer(call.desk.sessions.find(token)) is None:
        raise NoRight(
            f"the roster has nobody called {person!r} in namespace {call.desk.store.namespace!r}",
            hint="The holder of the root key adds people: sealpoint keys add NAME --person NAME.",
        )
    call.desk.sessions.end(call.cookie())
    response.set_cookie(
        COOKIE, token, max_age=SESSION_S, path="/", secure=True, httponly=True, samesite="lax"
    )
    return response


def make_starlette(routes: list[Route], desk: ConsoleState, renderer: Renderer) -> Starlette:
    """The application with all routes; unknown addresses get an error page as well."""

    def unknown(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        found = status != HTTPStatus.NOT_FOUND
        words = "this page is not for that" if found else "there is no such page"
        call = PageCall(desk, renderer, request, None, None, {})
        # Such as the list of allowed methods.
        headers = dict((isinstance(exc, HTTPException) and exc.headers) or {})
        if call.wants_json:
            return JSONResponse(error_document(UsageError(words)), status, headers)
        page = call.page(
            "error.html",
            status=status,
            heading="This cannot be done here" if found else "Not found",
            fault=UsageError(words),
            back="/",
            back_words="To the threads",
        )
        page.headers.update(headers)
        return page

    def failed(request: Request, _exc: Exception) -> Response:
        # Starlette raises it again, and the outermost application logs it.
        fault = UsageError("something went wrong in the console", hint="Its log says what.")
        if wants_json(request.url.path, request.headers):
            return JSONResponse(error_document(fault), 500)
        return PlainTextResponse(f"{fault.message}: {fault.hint}\n", 500)

    app = Starlette(routes=routes, exception_handlers={HTTPException: unknown, Exception: failed})
    # An address with a slash more would be redirected to http, also behind a proxy with TLS.
    app.router.redirect_slashes = False
    return app
