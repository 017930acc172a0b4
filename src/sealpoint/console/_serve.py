# SPDX-License-Identifier: Apache-2.0
"""Serving the console: from an open store to pages at an address."""

import uvicorn
from starlette.types import ASGIApp

from sealpoint.api import Admin, Store
from sealpoint.config import ConsoleSettings
from sealpoint.console._actions import Actions
from sealpoint.console._app import Routes, make_starlette
from sealpoint.console._desk import ConsoleDesk
from sealpoint.console._json_api import json_routes
from sealpoint.console._live import live_route
from sealpoint.console._oidc import Oidc
from sealpoint.console._pages import Pages
from sealpoint.console._provider import OidcProvider
from sealpoint.console._render import Renderer
from sealpoint.console._shield import Shield
from sealpoint.console._sign_in import SignIn

_CONNECTIONS_MAX = 1000


def make_app(desk: ConsoleDesk) -> ASGIApp:
    """The whole application of a console."""
    renderer = Renderer(desk)
    make = Routes(desk, renderer)
    oidc = desk.settings.oidc
    provider = OidcProvider(oidc, origin=desk.settings.origin) if oidc else None
    routes = [
        renderer.static_route(),
        live_route(desk),
        *SignIn().routes(make),
        *(Oidc(provider).routes(make) if provider else ()),
        *Pages().routes(make),
        *Actions().routes(make),
        *json_routes(make),
    ]
    app = Shield(make_starlette(routes, desk, renderer), origin=desk.settings.origin)
    return desk.telemetry.around(app)


class Console:
    """A console that serves. Use it in a `with` block."""

    def __init__(
        self, store: Store, acting: Store, settings: ConsoleSettings, *, admin: Admin
    ) -> None:
        self.desk = ConsoleDesk(store, acting, settings, admin)
        config = uvicorn.Config(
            make_app(self.desk),
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

    def sign_in_link(self, person: str) -> str:
        """A link that signs a person in once; what counts stands behind the #, where no log is."""
        token = self.desk.sessions.make_link(person)
        return f"{self.desk.settings.origin}/sign-in#link={token}"

    def run(self) -> None:
        """Serve until `stop`, or until the process is interrupted."""
        self.desk.start()
        try:
            self._server.run()
        finally:
            self.desk.close()

    def stop(self) -> None:
        """End `run`, soon."""
        self._server.should_exit = True

    @property
    def is_up(self) -> bool:
        """Whether it answers."""
        return bool(self._server.started)
