# SPDX-License-Identifier: Apache-2.0
"""Serving the console: from an open store to pages at an address."""

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from sealpoint.api import Admin, Store
from sealpoint.errors import ConfigError
from sealpoint_console._actions import Actions
from sealpoint_console._answer_pages import AnswerPages
from sealpoint_console._app import Routes, make_starlette
from sealpoint_console._console_state import ConsoleState
from sealpoint_console._http_protection import Shield, network_of
from sealpoint_console._json_api import json_routes
from sealpoint_console._live_updates import live_route
from sealpoint_console._oidc_provider import OidcProvider
from sealpoint_console._oidc_sign_in import Oidc
from sealpoint_console._render import Renderer
from sealpoint_console._request_pages import RequestPages
from sealpoint_console._sessions import COOKIE, cookie_of
from sealpoint_console._sign_in import SignIn
from sealpoint_console._store_pages import Pages
from sealpoint_console._thread_pages import ThreadPages
from sealpoint_console.settings import ConsoleSettings

_LOG = logging.getLogger("sealpoint.console")
_CONNECTIONS_MAX = 1000
_CONNECTIONS_EACH_MAX = 250
"""The limits of connections: in all, and from one address that is not a proxy of ours."""
_HEAD_S = 10.0
"""The time in which a connection has to send its request head."""


def make_app(desk: ConsoleState) -> ASGIApp:
    """The whole application of a console."""
    renderer = Renderer(desk)
    make = Routes(desk, renderer)
    oidc = desk.settings.oidc
    provider = OidcProvider(oidc, origin=desk.settings.origin) if oidc else None
    routes = [
        renderer.static_route(),
        live_route(desk),
        *SignIn(passkeys=desk.settings.passkey_sign_in).routes(make),
        *(Oidc(provider).routes(make) if provider else ()),
        *Pages().routes(make),
        *ThreadPages().routes(make),
        *RequestPages().routes(make),
        *AnswerPages().routes(make),
        *Actions().routes(make),
        *json_routes(make),
    ]
    app = Shield(
        make_starlette(routes, desk, renderer),
        origin=desk.settings.origin,
        person=partial(person_of, desk),
    )
    return _Logged(desk.telemetry.around(app))


def person_of(desk: ConsoleState, scope: Scope) -> str | None:
    """The signed-in person of a request, by its session; None: nobody."""
    session = desk.sessions.find(cookie_of(scope["headers"], COOKIE), keep=False)
    return None if session is None else session.person


class _Logged:
    """The outermost application: it logs every unexpected error, once.

    The error has been answered already, or the connection ends; the server, which would log it
    again, does not see it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as exc:  # noqa: BLE001 (whatever it is, the next request is answered)
            # The route and not the address: an address has names of threads, and search terms.
            route = getattr(scope.get("route"), "path", "no route")
            _LOG.error("%s: %s", route, type(exc).__name__, exc_info=exc)


class _PromptConnection(H11Protocol):
    """A connection that is closed unless it soon sends its request head.

    The server itself waits without limit for the first byte and for the end of a head, so that a
    few hundred connections that each send an occasional byte would take all slots. The shield
    limits the time of the body. One address can take only a part of the slots.
    """

    places: "_Places"
    """The slots of the console; each console has its own subclass."""
    _head_limit: asyncio.TimerHandle | None = None
    _address: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        if not self.places.take(address):
            transport.abort()
            return
        self._address = address
        self._limit_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._limit_head()
        else:
            self._forget_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self.places.give_back(self._address)
        self._forget_limit()
        super().connection_lost(exc)

    def _limit_head(self) -> None:
        # From the first byte: another byte does not extend the time.
        if self._head_limit is None:
            self._head_limit = self.loop.call_later(_HEAD_S, self.timeout_keep_alive_handler)

    def _forget_limit(self) -> None:
        if self._head_limit is not None:
            self._head_limit.cancel()
            self._head_limit = None


async def _nobody(_scope: Any, _receive: Any, _send: Any) -> None:
    """An application without responses."""


class _Places:
    """The number of connections of each address. Used in the event loop alone."""

    def __init__(self, proxies: Collection[str]) -> None:
        # Addresses and networks are parsed as by the middleware that trusts the headers of these
        # proxies.
        self._proxies = ProxyHeadersMiddleware(_nobody, list(proxies)).trusted_hosts
        self._taken: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Whether there is a slot for one more; a proxy has the connections of many clients."""
        who = network_of(address)
        if self._taken[who] >= _CONNECTIONS_EACH_MAX and address not in self._proxies:
            return False
        self._taken[who] += 1
        return True

    def give_back(self, address: str) -> None:
        """Record that a connection has ended."""
        who = network_of(address)
        self._taken[who] -= 1
        if self._taken[who] <= 0:
            del self._taken[who]


class Console:
    """A running console. Use it in a `with` block."""

    def __init__(
        self, store: Store, acting: Store, settings: ConsoleSettings, *, admin: Admin
    ) -> None:
        self.desk = ConsoleState(store, acting, settings, admin)
        places = _Places(settings.proxies)
        config = uvicorn.Config(
            make_app(self.desk),
            http=type("_Connection", (_PromptConnection,), {"places": places}),
            host=settings.host,
            port=settings.port,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            date_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
            ws="none",
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        self._socket: socket.socket | None = None

    def sign_in_link(self, person: str) -> str:
        """A link that signs a person in once; its token is in the fragment, which no log has."""
        token = self.desk.sessions.make_link(person)
        return f"{self.desk.settings.origin}/sign-in#link={token}"

    def listen(self) -> None:
        """Bind the address, so that the console listens before the address is announced.

        Raises:
            ConfigError: It cannot be bound, for example because a second console has it.
        """
        if self._socket is None:
            self._socket = _bound(self.desk.settings)

    def run(self) -> None:
        """Serve until `stop`, or until the process is interrupted.

        Raises:
            ConfigError: As for `listen`.
        """
        self.listen()
        self.desk.start()
        try:
            self._server.run(sockets=[self._socket] if self._socket else None)
        finally:
            self.desk.close()

    def stop(self) -> None:
        """End `run`, soon."""
        self._server.should_exit = True

    @property
    def is_up(self) -> bool:
        """Whether it answers."""
        return bool(self._server.started)


def _bound(settings: ConsoleSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY. Without that, each answer after the first
    # on a connection waits 40 ms on Linux, until its first part is acknowledged.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # Otherwise a restart would fail until the system forgets the old connections.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except OSError as exc:
        found.close()
        raise ConfigError(
            f"listen: expected {settings.host}:{settings.port} to be free, found: {exc.strerror}",
            hint="Another console may run: end it, or take another port, as in "
            f"sealpoint serve --listen 127.0.0.1:{settings.port + 1}",
        ) from exc
    return found
