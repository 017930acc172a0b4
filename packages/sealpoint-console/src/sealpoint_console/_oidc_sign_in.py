# SPDX-License-Identifier: Apache-2.0
"""Sign-in through an identity provider of the organization.

A browser goes to the provider and comes back with a code, at an address that anyone can craft. So
the console registers a sign-in before it begins: by a state, which works once, within ten minutes,
and only in the browser that began it, by a cookie of its own. An attacker who lures a person to the
address of another sign-in gains nothing.

`OidcProvider` checks the provider's proof; `signed_in` checks that the roster knows the person.
"""

import hashlib
import hmac
import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.routing import Route

from sealpoint.errors import ConfigError, NoRight, ProviderUnavailable, SealpointError, UsageError
from sealpoint_console._app import (
    Handler,
    PageCall,
    Right,
    Routes,
    redirect,
    signed_in,
    wanted_page,
)
from sealpoint_console._http_protection import retry_headers, status_of
from sealpoint_console._oidc_provider import Flow, OidcProvider
from sealpoint_console._sessions import elapsed
from sealpoint_console._sign_in import require_allowance

PENDING_COOKIE = "__Host-sealpoint-oidc"
PENDING_S = 10 * 60

_LOG = logging.getLogger("sealpoint.console")
_TOKEN_BYTES = 32
_PENDING_MAX = 1000
_AT_ONCE_MAX = 4
_AGAIN = "Sign in again, from the console's own page."
_ERRORS = (
    *("access_denied", "account_selection_required", "consent_required", "interaction_required"),
    *("invalid_request", "invalid_scope", "login_required", "server_error"),
    *("temporarily_unavailable", "unauthorized_client", "unsupported_response_type"),
)
"""The errors that a provider may report; any other text at our address could come from anyone."""


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


class PendingSignIns:
    """Sign-ins that have begun, each in one browser. May be used from several OS threads."""

    def __init__(self, clock: Callable[[], float] = elapsed) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: OrderedDict[bytes, tuple[Flow, bytes, float]] = OrderedDict()

    def begin(self, page: str = "/") -> tuple[Flow, str]:
        """A new sign-in, and the token for its browser.

        Args:
            page: The page after sign-in.
        """
        state, nonce, verifier, browser = (secrets.token_urlsafe(_TOKEN_BYTES) for _ in range(4))
        flow = Flow(state=state, nonce=nonce, verifier=verifier, page=page)
        with self._lock:
            self._begun[_hash(state)] = (flow, _hash(browser), self._clock() + PENDING_S)
            while len(self._begun) > _PENDING_MAX:
                self._begun.popitem(last=False)
        return flow, browser

    def take(self, state: str, browser: str) -> Flow:
        """The sign-in of a state, once.

        Raises:
            UsageError: The sign-in does not exist, is too old, or began in another browser.
        """
        with self._lock:
            found = self._begun.pop(_hash(state), None)
        if found is not None:
            flow, owner, until = found
            if hmac.compare_digest(owner, _hash(browser)) and self._clock() < until:
                return flow
        raise UsageError(
            "this sign-in was not begun in this browser, has ended, or took more than ten minutes",
            hint=_AGAIN,
        )


class Oidc:
    """The routes to a provider, and back.

    Args:
        provider: The trusted provider.
        pending: The sign-ins in progress.
    """

    def __init__(self, provider: OidcProvider, pending: PendingSignIns | None = None) -> None:
        self._provider = provider
        self._pending = pending or PendingSignIns()
        # A slow provider must not block the pages of everyone else.
        self._places = threading.BoundedSemaphore(_AT_ONCE_MAX)

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        return [
            make.post("/sign-in/oidc", Right.ANYBODY, self._with_error_page(self._begin)),
            make.get("/sign-in/oidc/callback", Right.ANYBODY, self._with_error_page(self._end)),
        ]

    def _begin(self, call: PageCall) -> Response:
        require_allowance(call)
        flow, browser = self._pending.begin(wanted_page(call.text("to", "")))
        url = self._asking(lambda: self._provider.authorization_url(flow))
        # A page that redirects by itself: a form of ours may only lead to our own pages, including
        # its redirects, so that an injected form leads nowhere else.
        page = call.page("sign_in_elsewhere.html", url=url, host=urlsplit(url).netloc)
        page.headers["refresh"] = f"0; url={url}"
        page.set_cookie(
            PENDING_COOKIE,
            browser,
            max_age=PENDING_S,
            path="/",
            secure=True,
            httponly=True,
            samesite="lax",
        )
        return page

    def _end(self, call: PageCall) -> Response:
        # (1) it began here, in this browser, and has not ended yet; the limit counted it at the
        #     start, and a sign-in that never began does not count: any site can send its visitors
        #     here
        browser = call.cookie(PENDING_COOKIE) or ""
        flow = self._pending.take(_once(call, "state") or "", browser)
        # (2) the provider let the person pass
        error, code, issuer = (_once(call, name) for name in ("error", "code", "iss"))
        if error is not None:
            word = error if error in _ERRORS else "an error that it does not name properly"
            raise NoRight(
                f"the provider did not sign you in: {word}",
                hint="Try again, or ask the people who run the provider.",
            )
        if not code:
            raise UsageError("the provider sent you back without a code", hint=_AGAIN)
        # (3) the provider identifies the person, and (4) the roster knows them
        person = self._asking(lambda: self._provider.verify_person(flow, code, issuer))
        return _forget(signed_in(call, person, "oidc", redirect(flow.page)))

    def _asking(self, ask: Callable[[], str]) -> str:
        if not self._places.acquire(blocking=False):
            raise ProviderUnavailable("too many people sign in at this moment")
        try:
            return ask()
        except (ConfigError, UsageError) as error:
            # The message names files of this machine, and this page is for anyone.
            _LOG.error("sign-in by a provider: %s", error.message)
            raise ProviderUnavailable("the console cannot prove itself to the provider") from error
        finally:
            self._places.release()

    def _with_error_page(self, handler: Handler) -> Handler:
        """The same handler; a sign-in error leads to a page with a link back."""

        def answer(call: PageCall) -> Response:
            try:
                return handler(call)
            except SealpointError as error:
                page = call.page(
                    "error.html",
                    status=status_of(error),
                    heading="You are not signed in",
                    fault=error,
                    back="/sign-in",
                    back_words="Back to sign-in",
                )
                page.headers.update(retry_headers(error))
                return page

        return answer


def _forget(response: Response) -> Response:
    response.delete_cookie(PENDING_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
    return response


def _once(call: PageCall, name: str) -> str | None:
    """A query parameter; OAuth allows each parameter once.

    Raises:
        UsageError: The address has it twice.
    """
    found = call.request.query_params.getlist(name)
    if len(found) > 1:
        raise UsageError(f"{name}: expected it once, found it {len(found)} times", hint=_AGAIN)
    return found[0] if found else None
