# SPDX-License-Identifier: Apache-2.0
"""A provider of OpenID Connect on this machine: real keys, real tokens, and lies as they are told.

It does what a provider does and checks what one checks: the client and its secret, the redirect
address, PKCE, and that a code is used once. A test changes what it says, and not the console.
"""

import asyncio
import base64
import hashlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.console.scene import until

CLIENT = "sealpoint"
SECRET = "a secret & a half: 100%"  # noqa: S105 (of nobody) # what Basic has two readings of

Claims = dict[str, Any]


@dataclass
class Times:
    """Clocks that a test sets."""

    passed: float = 0.0

    def clock(self) -> float:
        """How long things are kept is measured by it."""
        return 1000.0 + self.passed

    def now(self) -> float:
        """What time it is."""
        return time.time() + self.passed


def rsa_key(kid: str = "rsa-1") -> RSAKey:
    """A key as providers have them."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


def ec_key(kid: str = "ec-1") -> ECKey:
    """Another, which is quicker to make."""
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


@dataclass
class Provider:
    """What it knows, and what it says."""

    issuer: str = ""
    secret: str = SECRET
    keys: list[Key] = field(default_factory=lambda: [ec_key()])
    published: list[dict[str, Any]] | None = None
    """Keys that it publishes; None: its own."""
    algorithm: str = "ES256"
    person: Claims = field(
        default_factory=lambda: {"sub": "u-1", "email": "ann", "email_verified": True}
    )
    says: Claims = field(default_factory=dict)
    """What it says of itself, where that is not so."""
    claims: Callable[[Claims], Claims] = dict
    """Changes what a token says."""
    sign: Callable[[Claims], str] | None = None
    """Makes a token in another way."""
    userinfo: Claims | None = None
    answers: dict[str, Callable[[], Response]] = field(default_factory=dict)
    """What it answers at a path, whatever was asked."""
    asked: list[str] = field(default_factory=list)
    """The paths at which it was asked."""
    redeemed: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def reset(self) -> "Provider":
        """Be honest again, and know nothing."""
        vars(self).update(vars(Provider(issuer=self.issuer)))
        return self

    def app(self) -> Starlette:
        """What serves it."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._answer(self._metadata)),
                Route("/authorize", self._answer(self._authorize)),
                Route("/token", self._answer(self._token), methods=["POST"]),
                Route("/keys", self._answer(self._keys)),
                Route("/userinfo", self._answer(self._userinfo)),
            ]
        )

    def _answer(self, handler: Callable[[Request, bytes], Response]) -> Any:
        async def answer(request: Request) -> Response:
            path = request.url.path
            self.asked.append(path)
            other = self.answers.get(path)
            body = await request.body()
            if other is not None:
                return await asyncio.to_thread(other)
            return handler(request, body)

        return answer

    def _metadata(self, _request: Request, _body: bytes) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
                "token_endpoint_auth_methods_supported": [
                    "client_secret_basic",
                    "client_secret_post",
                ],
                "authorization_response_iss_parameter_supported": True,
                **self.says,
            }
        )

    def _authorize(self, request: Request, _body: bytes) -> Response:
        return RedirectResponse(self.authorize(dict(request.query_params)), 302)

    def authorize(self, asked: dict[str, str]) -> str:
        """Where somebody who has signed in there is sent back to."""
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe()
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.issuer}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def _token(self, request: Request, body: bytes) -> Response:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
        self.redeemed.append(fields)
        if not self._knows(request, fields):
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self.codes.pop(fields["code"], None)
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            asked is None
            or challenge != asked["code_challenge"]
            or fields["redirect_uri"] != asked["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        access = secrets.token_urlsafe()
        return JSONResponse(
            {
                "access_token": access,
                "token_type": "Bearer",
                "id_token": self.id_token(asked.get("nonce", ""), access),
            }
        )

    def _knows(self, request: Request, fields: dict[str, str]) -> bool:
        if not self.secret:
            return fields.get("client_id") == CLIENT and "client_secret" not in fields
        basic = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
        posted = (fields.get("client_id"), fields.get("client_secret"))
        return request.headers.get("authorization") == f"Basic {basic}" or posted == (
            CLIENT,
            self.secret,
        )

    def id_token(self, nonce: str, access: str) -> str:
        """Who somebody is, signed."""
        now = int(time.time())
        half = hashlib.sha256(access.encode()).digest()[:16]
        claims = self.claims(
            {
                "iss": self.issuer,
                "aud": CLIENT,
                "iat": now,
                "exp": now + 300,
                "nonce": nonce,
                "at_hash": base64.urlsafe_b64encode(half).decode().rstrip("="),
                **self.person,
            }
        )
        return self.signed(claims) if self.sign is None else self.sign(claims)

    def signed(self, claims: Claims, **header: Any) -> str:
        """Claims, signed by the newest key."""
        key = self.keys[-1]
        header = {"alg": self.algorithm, "kid": key.kid, **header}
        return jwt.encode(header, claims, key, algorithms=[self.algorithm])

    def _keys(self, _request: Request, _body: bytes) -> Response:
        own = [each.as_dict(private=False) for each in self.keys]
        return JSONResponse({"keys": own if self.published is None else self.published})

    def _userinfo(self, request: Request, _body: bytes) -> Response:
        assert request.headers["authorization"].startswith("Bearer ")
        return JSONResponse(self.person if self.userinfo is None else self.userinfo)


@contextmanager
def serving_provider(certificate: Path | None = None) -> Iterator[Provider]:
    """A provider that answers, by TLS if it has a certificate, whose key lies beside it."""
    scheme = "http" if certificate is None else "https"
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        provider = Provider(issuer=f"{scheme}://localhost:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            provider.app(),
            log_config=None,
            access_log=False,
            ws="none",
            ssl_certfile=certificate,
            ssl_keyfile=None if certificate is None else certificate.with_suffix(".key"),
        )
        server = uvicorn.Server(config)
        runs = threading.Thread(target=server.run, args=([listening],), daemon=True)
        runs.start()
        try:
            until(lambda: server.started)
            yield provider
        finally:
            server.should_exit = True
            runs.join(timeout=20)
