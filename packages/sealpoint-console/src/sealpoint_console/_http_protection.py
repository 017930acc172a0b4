# SPDX-License-Identifier: Apache-2.0
"""The checks of every request and the headers of every response, for all pages.

Requests: the host, the origin according to the browser, rate, size and time. Responses: a policy
under which a page can run, load and embed only content that the server put there itself, by a nonce
that is new in each response, and no site can frame it. Every page has these, since the checks run
before any page.
"""

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sealpoint.errors import NoRight, Overloaded, SealpointError, TooOften, UsageError

BODY_BYTES_MAX = 64 * 1024
_REQUEST_S = 30.0
_BODY_S = 10.0
_CLOSE = {"connection": "close"}
_NETWORK_BYTES = 8
_SAFE_METHODS = ("GET", "HEAD")
_METHODS = (*_SAFE_METHODS, "POST")
_OWN_SITES = ("same-origin", "none")
_CLIENTS_MAX = 4096

_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types htmx"
)
_PERMISSIONS = (
    "publickey-credentials-get=(self), publickey-credentials-create=(self), "
    "clipboard-write=(self), camera=(), microphone=(), geolocation=(), payment=(), usb=()"
)
_HEADERS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": _PERMISSIONS,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Allowance:
    """A rate limit for one client: a burst, and a number per minute after that.

    Several OS threads may use it. An owner of an IPv6 address has very many of them, so those of
    one network count as one.
    """

    def __init__(
        self, burst: int, a_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst = float(burst)
        self._a_second = a_minute / 60
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str) -> bool:
        """Whether an address has a request left; if so, it is used up."""
        who, now = network_of(address), self._clock()
        with self._lock:
            left, at = self._left.pop(who, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._a_second)
            allowed = left >= 1
            self._left[who] = (left - 1 if allowed else left, now)
            if len(self._left) > _CLIENTS_MAX:
                self._left.popitem(last=False)
        return allowed


def network_of(address: str) -> str:
    """The unit that counts as one client: an address, or an IPv6 network of one owner."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address)
    except ValueError:
        return address
    return str(found.ipv4_mapped or found.packed[:_NETWORK_BYTES].hex())


def comes_from_elsewhere(method: str, headers: Mapping[str, str], origin: str) -> bool:
    """Whether a browser sends this request for another site, or the origin is unknown.

    A person may follow a link from elsewhere to a page, which changes nothing; every other request
    has to come from our own pages. Browsers say so in `Sec-Fetch-Site`, which no page can forge; a
    request without it has to name our origin.
    """
    site, safe = headers.get("sec-fetch-site"), method in _SAFE_METHODS
    if site is not None:
        if site in _OWN_SITES:
            return False
        return not (safe and headers.get("sec-fetch-mode") == "navigate" and _is_top(headers))
    claimed = headers.get("origin")
    if claimed is not None:
        return claimed != origin
    return not safe


def _is_top(headers: Mapping[str, str]) -> bool:
    return headers.get("sec-fetch-dest") == "document"


def _is_visit(headers: Mapping[str, str]) -> bool:
    """Whether the request follows a link on another site."""
    return headers.get("sec-fetch-site", "none") not in _OWN_SITES


class Shield:
    """The outermost application.

    Args:
        app: The inner application.
        origin: Where people reach the console, such as `https://console.example.com`.
        person: Returns the signed-in person of a request; None: nobody. Behind a proxy all people
            share one address, and one of them could use up the limit of the others.
        clock: For tests.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        origin: str,
        person: Callable[[Scope], str | None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._person = person
        self._origin = origin
        parts = urlsplit(origin)
        self._host = parts.netloc
        self._secure = parts.scheme == "https"
        self._people = Allowance(burst=300, a_minute=600, clock=clock)
        self._strangers = Allowance(burst=300, a_minute=600, clock=clock)
        # Another site can send its visitors here without limit: these visits have a separate limit,
        # or they would use up the visitors' own.
        self._visits = Allowance(burst=300, a_minute=600, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it before reading its body."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else; the server closes it
        nonce = secrets.token_urlsafe(18)
        scope.setdefault("state", {})["nonce"] = nonce
        answer = _ShieldedAnswer(send, self._headers(nonce))
        refusal = self._refusal(scope)
        body = _Body(receive)
        if refusal is None:
            refusal = await body.read()
        if refusal is not None:
            await refusal.response(scope)(scope, receive, answer.send)
            return
        try:
            async with asyncio.timeout(_REQUEST_S) as limit:
                answer.on_stream = lambda: limit.reschedule(None)
                await self._app(scope, body.receive, answer.send)
        except TimeoutError:
            if not answer.has_begun:
                late = _Refusal(503, Overloaded("it took too long"))
                await late.response(scope)(scope, receive, answer.send)

    def _refusal(self, scope: Scope) -> "_Refusal | None":
        headers = Headers(scope=scope)
        method: str = scope["method"]
        client = scope.get("client")
        if headers.get("host") != self._host:
            # An attacker may control another name that leads here; browsers would trust it as this
            # console.
            words = f"this console is at {self._origin}"
            return _Refusal(421, UsageError(words, hint="Ask for it there, by that name."))
        if method not in _METHODS:
            return _Refusal(405, UsageError("no such method"), {"allow": ", ".join(_METHODS)})
        if comes_from_elsewhere(method, headers, self._origin):
            words = "this came from another site, and was refused"
            hint = f"A program that posts says where to: Origin: {self._origin}"
            return _Refusal(403, NoRight(words, hint=hint))
        person = None if _is_visit(headers) else self._person(scope)
        allowance = self._visits if _is_visit(headers) else self._strangers
        address = client[0] if client else ""
        if not (allowance.take(address) if person is None else self._people.take(person)):
            often = TooOften("too many requests", hint="Wait a few seconds, then try again.")
            return _Refusal(429, often, {"retry-after": "5"})
        return None

    def _headers(self, nonce: str) -> dict[str, str]:
        headers = {**_HEADERS, "content-security-policy": _POLICY.format(nonce=nonce)}
        if self._secure:
            headers["strict-transport-security"] = "max-age=31536000"
        return headers


class _ShieldedAnswer:
    """A response, with the headers of all responses."""

    def __init__(self, send: Send, headers: Mapping[str, str]) -> None:
        self._send = send
        self._headers = headers
        self.has_begun = False
        self.on_stream: Callable[[], object] = lambda: None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = MutableHeaders(scope=message)
            for name, value in self._headers.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
            if headers.get("content-type", "").startswith("text/event-stream"):
                self.on_stream()
        await self._send(message)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The reason for a refusal before any page."""

    status: int
    error: SealpointError
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self, scope: Scope) -> Response:
        """The one shape of errors for a program; plain text for a browser."""
        if wants_json(scope["path"], Headers(scope=scope)):
            return JSONResponse(error_document(self.error), self.status, self.headers)
        words = f"{self.error.message}: {self.error.hint}\n"
        return PlainTextResponse(words, self.status, self.headers)


class _Body:
    """A request body: complete before any page runs, bounded in size, and in time."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._data: bytes | None = None

    async def read(self) -> "_Refusal | None":
        """Read it; returns the error if that fails. The limit counts the bytes that arrive."""
        data = bytearray()
        try:
            async with asyncio.timeout(_BODY_S):
                while True:
                    message = await self._receive()
                    if message["type"] != "http.request":
                        return _Refusal(400, UsageError("it broke off"), _CLOSE)
                    data += message.get("body", b"")
                    if len(data) > BODY_BYTES_MAX:
                        found = f"expected {BODY_BYTES_MAX} bytes at most, found more"
                        return _Refusal(413, UsageError(f"body: {found}"), _CLOSE)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            return _Refusal(408, UsageError("it came too slowly"), _CLOSE)
        self._data = bytes(data)
        return None

    async def receive(self) -> Message:
        """All of it at once, and after that whether the client has disconnected."""
        if self._data is None:
            return await self._receive()
        data, self._data = self._data, None
        return {"type": "http.request", "body": data, "more_body": False}


def wants_json(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a program asks, and not a person with a browser."""
    return path.startswith("/api/") or headers.get("accept", "").startswith("application/json")


STATUSES: Mapping[str, int] = {
    "usage": 400,
    "url-invalid": 400,
    "name-invalid": 400,
    "world-invalid": 400,
    "no-right": 403,
    "not-owner": 403,
    "unknown-thread": 404,
    "unknown-request": 404,
    "unknown-checkpoint": 404,
    "unknown-entry": 404,
    "too-often": 429,
    "overloaded": 503,
    "storage-unavailable": 503,
    "anchor-unavailable": 503,
    "provider-unavailable": 503,
}
"""The HTTP status by the code of an error; codes that are not here are a conflict, 409."""


_RETRY_S: Mapping[str, int] = {"too-often": 60, "overloaded": 5}
"""The seconds until a retry is allowed, by the code of an error."""


def retry_headers(error: SealpointError) -> dict[str, str]:
    """The headers of a response that say when to retry."""
    seconds = _RETRY_S.get(error.code)
    return {} if seconds is None else {"retry-after": str(seconds)}


def status_of(error: SealpointError) -> int:
    """The HTTP status of an error."""
    return STATUSES.get(error.code, 409)


def error_document(error: SealpointError) -> dict[str, Any]:
    """The one shape of errors in JSON."""
    return {"error": error.as_dict()}
