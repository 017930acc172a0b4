# SPDX-License-Identifier: Apache-2.0
"""An OpenID Connect provider: where browsers are sent, and whose identity claims count.

The authorization code flow with PKCE and a nonce. A token counts if the provider's own key has
signed it, by an algorithm with a public key that both sides allow, for this console, for this very
sign-in, and not too long ago. The provider's metadata and keys are fetched when needed and cached
for a while; an unknown key triggers a new fetch of the keys, so that a provider may change them.

Every response is bounded in bytes and time, no redirect is followed and no proxy is used; addresses
have https, or are on this machine. An error repeats nothing from the provider except the name of a
claim or of an error that OAuth defines. This module does not decide who may sign in: the roster
does.
"""

import base64
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx
import msgspec
from authlib.oauth2 import ClientAuth, OAuth2Client
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import (
    BadSignatureError,
    ClaimError,
    InvalidKeyIdError,
    JoseError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import ECKey, Key, KeySet, RSAKey
from joserfc.jws import JWSRegistry

from sealpoint.config import read_passphrase_file
from sealpoint.errors import ConfigError, NoRight, ProviderUnavailable
from sealpoint_console.settings import OidcSettings, is_safe_address

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Algorithms with a public key: a secret that both sides have could sign for anyone."""

_ANSWER_BYTES_MAX = 256 * 1024
_STEP_S = 5.0
_ANSWER_S = 10.0
_METADATA_S = 3600.0
_KEYS_S = 600.0
_ANEW_S = 10.0
_LEEWAY_S = 60
_RSA_BITS_MIN = 2048
_SCOPES = {"email": "openid email", "sub": "openid"}
_OTHER_SCOPE = "openid profile"
_KEY_NAMES = ("kty", "kid", "use", "alg")

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


class _Metadata(msgspec.Struct, frozen=True):
    """The metadata of the provider that this module uses."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _PublishedKeys(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _Claims(msgspec.Struct, frozen=True):
    """The required claims of the userinfo response; others are ignored."""

    sub: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The secrets of one sign-in: kept here, and shown only to the provider."""

    state: str
    nonce: str
    verifier: str
    """The secret without which the code is useless."""
    page: str = "/"
    """The page after sign-in; the provider does not receive it."""


class _Kept(Generic[T]):
    """A fetched document, for as long as it may be used; a failure is cached for a while too.

    Several OS threads may use it; one of them fetches.
    """

    def __init__(self, fetch: Callable[[], T], keep_s: float, clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._keep_s = keep_s
        self._clock = clock
        self._lock = threading.Lock()
        self._at = 0.0
        self._found: T | None = None
        self._fault: ProviderUnavailable | None = None

    def get(self, *, anew: bool = False) -> T:
        """The document.

        Args:
            anew: Fetch it again, unless that happened a moment ago: an attacker who sends tokens
                with made-up keys must not make the console fetch all the time.

        Raises:
            ProviderUnavailable: It cannot be fetched.
        """
        with self._lock:
            age = self._clock() - self._at
            if self._found is not None and age < (_ANEW_S if anew else self._keep_s):
                return self._found
            if self._fault is not None and age < _ANEW_S:
                raise ProviderUnavailable(self._fault.message, hint=self._fault.hint)
            self._at, self._found, self._fault = self._clock(), None, None
            try:
                self._found = self._fetch()
            except ProviderUnavailable as fault:
                self._fault = fault
                raise
            return self._found


class OidcProvider:
    """One provider. May be used from several OS threads.

    Args:
        settings: The provider, and the console's identity as its client.
        origin: Where people reach the console.
        now: The time in seconds since 1970.
        clock: The clock for the cache.

    Raises:
        ConfigError, UsageError, KeyFileUnsafe: The file of the client's secret cannot be used.
    """

    def __init__(
        self,
        settings: OidcSettings,
        *,
        origin: str,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._redirect = f"{origin}/sign-in/oidc/callback"
        self._now = now
        self._clock = clock
        # The machine's own authorities, which may include an organization's; nothing from the
        # environment, such as a proxy or another login.
        self._client = httpx.Client(
            verify=ssl.create_default_context(),
            timeout=_STEP_S,
            limits=httpx.Limits(max_keepalive_connections=0),  # nothing stays open to be closed
            follow_redirects=False,
            trust_env=False,
            headers={"accept": "application/json", "accept-encoding": "identity"},
        )
        self._metadata = _Kept(self._fetch_metadata, _METADATA_S, clock)
        self._keys = _Kept(self._fetch_keys, _KEYS_S, clock)
        self._secret()

    def check(self) -> None:
        """Make the same queries as a sign-in: the metadata and the keys.

        Raises:
            ProviderUnavailable: A query fails.
        """
        self._keys.get()

    def authorization_url(self, flow: Flow) -> str:
        """The address to which a browser is sent.

        Raises:
            ProviderUnavailable: The provider does not return it.
        """
        client = OAuth2Client(
            session=None,
            client_id=self._settings.client_id,
            redirect_uri=self._redirect,
            scope=_SCOPES.get(self._settings.claim, _OTHER_SCOPE),
            code_challenge_method="S256",
        )
        url, _ = client.create_authorization_url(
            self._metadata.get().authorization_endpoint,
            state=flow.state,
            code_verifier=flow.verifier,
            nonce=flow.nonce,
        )
        return str(url)

    def verify_person(self, flow: Flow, code: str, issuer: str | None) -> str:
        """The name of the person who came back with a code.

        Args:
            flow: The secrets of the sign-in.
            code: The code that the provider gave the browser.
            issuer: The issuer of the code, if the address names it.

        Raises:
            NoRight: The provider refuses the code, or its token does not count here.
            ProviderUnavailable: Its response is invalid.
        """
        metadata = self._metadata.get()
        # A code of another provider is not sent to this one, nor is this one's to another.
        if issuer is None and metadata.authorization_response_iss_parameter_supported:
            raise NoRight("the provider did not say that it sent you", hint=_AGAIN)
        if issuer is not None and issuer != metadata.issuer:
            raise NoRight("another provider sent you than was asked", hint=_AGAIN)
        tokens = self._redeem(metadata, flow, code)
        claims = self._verify_id_token(metadata, tokens, flow.nonce)
        return self._person(self._identity_source(metadata, tokens, claims))

    # ------------------------------------------------------------------ tokens

    def _redeem(self, metadata: _Metadata, flow: Flow, code: str) -> _Tokens:
        body = prepare_token_request(
            "authorization_code",
            redirect_uri=self._redirect,
            code=code,
            code_verifier=flow.verifier,
        )
        secret = self._secret()
        method = "none"
        if secret is not None:
            # Basic authentication has two encodings of secrets with special characters; the body
            # has one.
            posts = "client_secret_post" in metadata.token_endpoint_auth_methods_supported
            method = "client_secret_post" if posts else "client_secret_basic"
        url, headers, body = ClientAuth(self._settings.client_id, secret, method).prepare(
            "POST",
            metadata.token_endpoint,
            {"content-type": "application/x-www-form-urlencoded"},
            body,
        )
        status, data = self._ask("POST", url, headers, body.encode())
        if status == httpx.codes.BAD_REQUEST and _is_refused(data):
            raise NoRight("the provider does not take the code that you came with", hint=_AGAIN)
        return _parse(status, data, _Tokens, "token_endpoint")

    def _verify_id_token(self, metadata: _Metadata, tokens: _Tokens, nonce: str) -> CodeIDToken:
        try:
            # (1) an algorithm that both allow; (2) a key of the provider; (3) its signature
            token = self._decode(metadata, tokens.id_token)
            # (4) issuer and audience; (5) times; (6) this sign-in; (7) the authorized party;
            # (8) the access token that came with it
            claims = CodeIDToken(
                token.claims,
                token.header,
                {
                    "iss": {"essential": True, "value": metadata.issuer},
                    "aud": {"essential": True, "value": self._settings.client_id},
                    "sub": {"essential": True},
                },
                {
                    "nonce": nonce,
                    "client_id": self._settings.client_id,
                    "access_token": tokens.access_token,
                },
            )
            claims.validate(int(self._now()), _LEEWAY_S)
        except ClaimError as exc:
            raise NoRight(
                f"the provider's token does not count here: {exc.claim}", hint=_SETTINGS
            ) from exc
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as exc:
            raise NoRight("the provider's token does not verify", hint=_SETTINGS) from exc
        return claims

    def _decode(self, metadata: _Metadata, token: str) -> jwt.Token:
        try:
            return self._decode_by(metadata, token)
        except UnsupportedAlgorithmError:
            # A provider may change its algorithm as it changes its keys, and its metadata say so.
            return self._decode_by(self._metadata.get(anew=True), token)

    def _decode_by(self, metadata: _Metadata, token: str) -> jwt.Token:
        allowed = [
            each for each in ALGORITHMS if each in metadata.id_token_signing_alg_values_supported
        ]
        if not allowed:  # to the library, none would mean its own, with shared secrets among them
            raise ProviderUnavailable(
                f"the provider signs by no algorithm that is taken here: {', '.join(ALGORITHMS)}",
                hint="Have it sign ID tokens of this client by one of them.",
            )
        registry = JWSRegistry(algorithms=allowed, strict_check_header=False)
        try:
            return jwt.decode(token, self._keys.get(), registry=registry)
        except (InvalidKeyIdError, BadSignatureError):
            return jwt.decode(token, self._keys.get(anew=True), registry=registry)

    # ------------------------------------------------------------------ persons

    def _identity_source(
        self, metadata: _Metadata, tokens: _Tokens, claims: CodeIDToken
    ) -> Mapping[str, object]:
        """The source of the identity: the token, or the userinfo response for its access token."""
        if self._settings.claim in claims or not (
            metadata.userinfo_endpoint and tokens.access_token
        ):
            return dict(claims)
        headers = {"authorization": f"Bearer {tokens.access_token}"}
        status, data = self._ask("GET", metadata.userinfo_endpoint, headers)
        subject = _parse(status, data, _Claims, "userinfo_endpoint").sub
        if subject != claims["sub"]:
            raise NoRight("the provider names another person than its token does", hint=_AGAIN)
        told: dict[str, object] = msgspec.json.decode(data)
        return told

    def _person(self, told: Mapping[str, object]) -> str:
        claim = self._settings.claim
        person = told.get(claim)
        if not isinstance(person, str) or not person:
            raise NoRight(
                f"the provider does not tell your {claim}",
                hint="Have it give that claim to this client, or name another one: claim in "
                "[console.oidc] of config.toml.",
            )
        if claim == "email" and told.get("email_verified") is not True:
            raise NoRight(
                "the provider does not say that your email address is verified",
                hint="Verify it there, or name a claim that people cannot change themselves: claim "
                "in [console.oidc] of config.toml.",
            )
        return person

    # ------------------------------------------------------------------ what the provider says

    def _fetch_metadata(self) -> _Metadata:
        issuer = self._settings.issuer
        url = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
        found = _parse(*self._ask("GET", url), _Metadata, "openid-configuration")
        if found.issuer != issuer:
            raise ProviderUnavailable(
                f"the provider says that it is not {issuer!r} but {found.issuer!r}",
                hint="If that is the same one, write it so: issuer in [console.oidc] of "
                "config.toml.",
            )
        self._require_safe(found.authorization_endpoint)
        return found

    def _fetch_keys(self) -> KeySet:
        found = _parse(*self._ask("GET", self._metadata.get().jwks_uri), _PublishedKeys, "jwks_uri")
        keys: list[Key] = [key for each in found.keys if (key := _signing_key(each)) is not None]
        if not keys:
            raise ProviderUnavailable(
                "the provider has no key that could have signed a token",
                hint="Expected RSA of 2048 bits or more, or an elliptic curve, at its jwks_uri.",
            )
        return KeySet(keys)

    def _secret(self) -> str | None:
        path = self._settings.client_secret_file
        if not path:
            return None
        secret = read_passphrase_file(path, "client_secret_file")
        if not secret.isascii():
            raise ConfigError(f"client_secret_file {path}: expected ASCII, found other letters")
        return secret

    def _require_safe(self, url: str) -> None:
        is_local = self._settings.issuer.startswith("http:")
        if not is_safe_address(url) or (url.startswith("http:") and not is_local):
            raise ProviderUnavailable(
                "the provider names an address without https",
                hint="Only a provider on this machine may be without TLS.",
            )

    def _ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        """The status and the body of a response, within the limits of bytes and time."""
        self._require_safe(url)
        until, data = self._clock() + _ANSWER_S, bytearray()
        try:
            with self._client.stream(method, url, headers=headers, content=body) as answer:
                if answer.headers.get("content-encoding", "identity") != "identity":
                    raise ProviderUnavailable("the provider packs answers that were asked plain")
                for chunk in answer.iter_raw():
                    data += chunk
                    if len(data) > _ANSWER_BYTES_MAX or self._clock() > until:
                        raise ProviderUnavailable("the provider's answer is too long, or too slow")
                return answer.status_code, bytes(data)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise ProviderUnavailable(
                f"the provider at {self._settings.issuer} cannot be reached: {type(exc).__name__}"
            ) from exc


_AGAIN = "Sign in again, from the console's own page."
_SETTINGS = "Check issuer and client_id in [console.oidc] of config.toml, and both clocks."


def _is_refused(data: bytes) -> bool:
    """Whether the code is wrong, and not the console's own credentials."""
    try:
        return bool(msgspec.json.decode(data, type=dict[str, Any]).get("error") == "invalid_grant")
    except msgspec.DecodeError:
        return False


def _parse(status: int, data: bytes, shape: type[S], where: str) -> S:
    """The provider's response, if it has the expected form."""
    if status != httpx.codes.OK:
        raise ProviderUnavailable(f"the provider's {where} answers with status {status}")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ProviderUnavailable(f"the provider's {where} answers in another form") from exc


def _signing_key(found: dict[str, Any]) -> RSAKey | ECKey | None:
    """A key that may sign tokens; others are ignored, as RFC 7517 says."""
    if found.get("use", "sig") != "sig":
        return None
    try:
        match found.get("kty"):
            case "RSA" if _bits(found["n"]) >= _RSA_BITS_MIN:
                return RSAKey.import_key(_public(found, "n", "e"))
            case "EC":
                return ECKey.import_key(_public(found, "crv", "x", "y"))
            case _:
                return None
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _public(found: dict[str, Any], *parts: str) -> dict[str, Any]:
    return {name: found[name] for name in (*_KEY_NAMES, *parts) if name in found}


def _bits(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))).bit_length()
