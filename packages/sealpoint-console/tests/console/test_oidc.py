# SPDX-License-Identifier: Apache-2.0
"""The word of a provider: whose counts, for whom, and every way in which it does not."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from joserfc.jwk import ECKey, OctKey
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from sealpoint.errors import ConfigError, NoRight, ProviderUnavailable
from sealpoint_console import OidcProvider, _oidc_provider
from sealpoint_console._oidc_provider import Flow
from sealpoint_console.settings import OidcSettings, load_console_settings
from tests.console.provider import (
    CLIENT,
    SECRET,
    Claims,
    Provider,
    Times,
    ec_key,
    rsa_key,
    serving_provider,
)
from tests.postgres_tls import certify

ORIGIN = "http://localhost:8734"
FLOW = Flow(state="s" * 43, nonce="n" * 43, verifier="v" * 43)


@pytest.fixture(scope="module")
def answering() -> Iterator[Provider]:
    """A provider that answers."""
    with serving_provider() as provider:
        yield provider


@pytest.fixture
def provider(answering: Provider) -> Provider:
    """The same; at the start of each test it is honest again."""
    return answering.reset()


@pytest.fixture
def secret(tmp_path: Path) -> str:
    """The file of the client's secret."""
    path = tmp_path / "client-secret"
    path.touch(mode=0o600)
    path.write_text(SECRET + "\n")
    return str(path)


@dataclass
class Client:
    """What the console has of a provider, asked without a console around it."""

    provider: Provider
    settings: OidcSettings
    times: Times
    known: OidcProvider

    def again(self, **changed: Any) -> "Client":
        """The same with other settings, and nothing kept."""
        fields = {name: getattr(self.settings, name) for name in self.settings.__struct_fields__}
        return make_client(self.provider, OidcSettings(**{**fields, **changed}), self.times)

    def code(self, flow: Flow = FLOW) -> str:
        """Have the provider sign somebody in, and give the code that the browser brings."""
        asked = dict(parse_qsl(urlsplit(self.known.authorization_url(flow)).query))
        back = parse_qs(urlsplit(self.provider.authorize(asked)).query)
        return back["code"][0]

    def sign_in(self, flow: Flow = FLOW) -> str:
        """All of it."""
        return self.known.verify_person(flow, self.code(flow), self.provider.issuer)


def make_client(provider: Provider, settings: OidcSettings, times: Times) -> Client:
    """Somebody with nothing kept yet."""
    known = OidcProvider(settings, origin=ORIGIN, now=times.now, clock=times.clock)
    return Client(provider, settings, times, known)


@pytest.fixture
def client(provider: Provider, secret: str) -> Client:
    """Somebody whom the provider knows."""
    settings = OidcSettings(issuer=provider.issuer, client_id=CLIENT, client_secret_file=secret)
    return make_client(provider, settings, Times())


# ---------------------------------------------------------------------- what counts


def test_the_provider_is_asked_with_a_challenge_a_state_and_a_nonce(client: Client) -> None:
    """What a browser carries names our address and holds no secret and no verifier."""
    url = client.known.authorization_url(FLOW)

    asked = dict(parse_qsl(urlsplit(url).query))
    digest = hashlib.sha256(FLOW.verifier.encode()).digest()
    assert asked == {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": f"{ORIGIN}/sign-in/oidc/callback",
        "scope": "openid email",
        "state": FLOW.state,
        "nonce": FLOW.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_token_of_the_provider_names_a_person(client: Client, algorithm: str) -> None:
    """The claim of the settings is the name, by either kind of key."""
    client.provider.algorithm = algorithm
    client.provider.keys = [rsa_key() if algorithm == "RS256" else ec_key()]

    assert client.sign_in() == "ann"


@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"]])
def test_the_secret_goes_the_way_that_the_provider_takes(
    client: Client, methods: list[str]
) -> None:
    """It stands in a header or in the body, and never in an address."""
    client.provider.says["token_endpoint_auth_methods_supported"] = methods

    assert client.sign_in() == "ann"
    posted = "client_secret" in client.provider.redeemed[0]
    assert posted == (methods == ["client_secret_post"])


def test_a_secret_is_changed_without_a_restart(client: Client) -> None:
    """The file is read each time."""
    client.provider.secret = "another"  # noqa: S105 (of nobody)
    with pytest.raises(ProviderUnavailable):
        client.sign_in()
    Path(client.settings.client_secret_file).write_text("another\n")

    assert client.sign_in() == "ann"


def test_a_public_client_has_no_secret(client: Client) -> None:
    """PKCE alone binds the code to whoever asked for it."""
    client.provider.secret = ""

    assert client.again(client_secret_file="").sign_in() == "ann"


def test_a_claim_that_is_not_in_the_token_is_asked_for(client: Client) -> None:
    """Providers may tell it at the userinfo endpoint alone."""
    client.provider.userinfo = client.provider.person
    client.provider.person = {"sub": "u-1"}

    assert client.sign_in() == "ann"


def test_another_claim_needs_no_verified_address(client: Client) -> None:
    """Whoever names it vouches that people cannot change it."""
    client.provider.person = {"sub": "u-1", "preferred_username": "ann"}

    assert client.again(claim="preferred_username").sign_in() == "ann"
    assert client.again(claim="sub").sign_in() == "u-1"


def test_several_audiences_count_if_the_token_was_made_for_us(client: Client) -> None:
    """The authorised party says for whom."""
    client.provider.claims = lambda claims: {**claims, "aud": [CLIENT, "other"], "azp": CLIENT}

    assert client.sign_in() == "ann"


# ---------------------------------------------------------------------- what does not


def changed(**values: Any) -> Callable[[Claims], Claims]:
    """Claims with others in their place; None: without it."""

    def change(claims: Claims) -> Claims:
        mixed = {**claims, **values}
        return {name: value for name, value in mixed.items() if value is not None}

    return change


@pytest.mark.parametrize(
    "values",
    [
        {"iss": "http://localhost:1"},
        {"iss": None},
        {"aud": "another-client"},
        {"aud": []},
        {"aud": None},
        {"aud": {CLIENT: CLIENT}},
        {"aud": [CLIENT, "other"]},
        {"aud": [CLIENT, 7], "azp": CLIENT},
        {"azp": "another-client"},
        {"azp": ["another-client"]},
        {"exp": 1000},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": True},
        {"iat": None},
        {"iat": 9999999999},
        {"nbf": 9999999999},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"nonce": [FLOW.nonce]},
        {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
        {"at_hash": {"a": 1}},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"email": ["ann"]},
        {"email": ""},
        {"email_verified": None},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": 1},
    ],
    ids=json.dumps,
)
def test_a_token_that_says_something_else_names_nobody(
    client: Client, values: dict[str, Any]
) -> None:
    """Issuer, audience, party, times, nonce and access token are all checked, and their types."""
    client.provider.claims = changed(**values)

    with pytest.raises(NoRight) as refused:
        client.sign_in()
    assert SECRET not in str(refused.value)


def test_a_token_is_too_old_a_minute_after_its_end(client: Client) -> None:
    """Clocks may differ by a minute, and not by more."""
    ends = int(time.time()) - 30
    client.provider.claims = lambda claims: {**claims, "exp": ends}
    assert client.sign_in() == "ann"

    client.times.passed = 31

    with pytest.raises(NoRight, match="exp"):
        client.sign_in()


def b64(data: bytes) -> str:
    """Bytes as tokens write them."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsigned(claims: Claims, **header: Any) -> str:
    """Claims that nobody signed."""
    told = {"alg": "none", **header}
    return f"{b64(json.dumps(told).encode())}.{b64(json.dumps(claims).encode())}."


def by_the_public_key(provider: Provider) -> Callable[[Claims], str]:
    """A MAC under bytes that everybody has: the provider's public key, as PEM."""
    key = provider.keys[0]
    assert isinstance(key, ECKey)

    def sign(claims: Claims) -> str:
        head, body, _ = unsigned(claims, alg="HS256", kid=key.kid).split(".")
        pem = key.as_pem(private=False)
        return f"{head}.{body}.{b64(hmac.digest(pem, f'{head}.{body}'.encode(), 'sha256'))}"

    return sign


def by_a_key_that_comes_along(provider: Provider) -> Callable[[Claims], str]:
    """A token that brings its own key."""
    own = ec_key("ec-1")
    liar = replace(provider, keys=[own])
    return lambda claims: liar.signed(claims, jwk=own.as_dict(private=False))


FORGERIES: dict[str, Callable[[Provider], Callable[[Claims], str]]] = {
    "no algorithm": lambda _: unsigned,
    "none by another case": lambda _: lambda claims: unsigned(claims, alg="nOnE"),
    "an algorithm that is no text": lambda _: lambda claims: unsigned(claims, alg=["ES256"]),
    "the public key as a secret": by_the_public_key,
    "a key that comes along": by_a_key_that_comes_along,
    "another key of the same name": lambda provider: replace(provider, keys=[ec_key()]).signed,
    "a key of an unknown name": lambda provider: replace(provider, keys=[ec_key("x")]).signed,
    "another body": lambda provider: lambda claims: _swap_body(provider.signed(claims)),
    "no signature": lambda provider: (
        lambda claims: provider.signed(claims).rpartition(".")[0] + "."
    ),
    "two parts": lambda provider: lambda claims: _cut(provider.signed(claims)),
    "a header that is a list": lambda _: lambda _: f"{b64(b'[]')}.{b64(b'{}')}.{b64(b'x')}",
    "a header that is deep": lambda _: lambda _: f"{b64(b'[' * 9000)}.{b64(b'{}')}.AA",
    "a critical extension": lambda provider: lambda claims: _with_header(provider, claims),
    "nothing": lambda _: lambda _: "",
    "no token": lambda _: lambda _: "é.è.ê",
}


def _cut(token: str) -> str:
    return token.rpartition(".")[0]


def _swap_body(token: str) -> str:
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    return f"{head}.{b64(json.dumps({**claims, 'email': 'olga'}).encode())}.{signature}"


def _with_header(provider: Provider, claims: Claims) -> str:
    head, body, signature = provider.signed(claims).split(".")
    told = {**json.loads(base64.urlsafe_b64decode(head + "==")), "crit": ["exp"], "exp": 1}
    return f"{b64(json.dumps(told).encode())}.{body}.{signature}"


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_token_that_the_provider_did_not_sign_names_nobody(
    client: Client, forgery: Callable[[Provider], Callable[[Claims], str]]
) -> None:
    """Though the provider says that it may also sign by nothing, or by a secret."""
    client.provider.sign = forgery(client.provider)

    with pytest.raises(NoRight):
        client.sign_in()


def test_the_secret_of_the_client_signs_nothing(client: Client) -> None:
    """Whoever has it, this console among them, could else sign for anybody."""
    client.provider.keys = [OctKey.import_key(SECRET.ljust(32), {"kid": "oct", "use": "sig"})]
    client.provider.algorithm = "HS256"
    client.provider.published = [each.as_dict(private=True) for each in client.provider.keys]

    with pytest.raises(ProviderUnavailable, match="no key"):
        client.sign_in()


@pytest.mark.parametrize("supported", [[], ["none"], ["HS256", "HS512"], ["EdDSA", "ES256K"]])
def test_no_algorithm_in_common_means_no_sign_in(client: Client, supported: list[str]) -> None:
    """An empty list is none, and never a default of some library."""
    client.provider.says["id_token_signing_alg_values_supported"] = supported

    with pytest.raises(ProviderUnavailable, match="no algorithm"):
        client.sign_in()


def test_an_algorithm_that_the_provider_does_not_name_is_refused(client: Client) -> None:
    """Its metadata narrow what we allow, even if the signature is right."""
    client.provider.says["id_token_signing_alg_values_supported"] = ["RS256"]

    with pytest.raises(NoRight):
        client.sign_in()


@pytest.mark.parametrize(
    "make",
    [
        lambda: {**ec_key("ec-1").as_dict(private=False), "use": "enc"},
        lambda: {"kty": "RSA", "kid": "ec-1", "use": "sig", "n": b64(b"\xff" * 128), "e": "AQAB"},
        lambda: {"kty": "RSA", "kid": "ec-1"},
        lambda: {"kty": "EC", "kid": "ec-1", "crv": "P-256", "x": "AA", "y": "AA"},
        lambda: {"kty": ["EC"]},
        dict,
    ],
)
def test_a_key_that_is_weak_broken_or_for_something_else_verifies_nothing(
    client: Client, make: Callable[[], dict[str, Any]]
) -> None:
    """It is as if it was not there, and does not keep a good one beside it from counting."""
    client.provider.published = [make()]
    with pytest.raises(ProviderUnavailable, match="no key"):
        client.sign_in()
    good = client.provider.keys[0].as_dict(private=False)
    client.provider.published = [make(), good]

    assert client.again().sign_in() == "ann"


def test_userinfo_of_somebody_else_names_nobody(client: Client) -> None:
    """The token says of whom it may tell."""
    client.provider.userinfo = {"sub": "u-2", "email": "olga", "email_verified": True}
    client.provider.person = {"sub": "u-1"}

    with pytest.raises(NoRight, match="another person"):
        client.sign_in()


def test_a_verified_mark_is_not_taken_from_elsewhere(client: Client) -> None:
    """An address of the token is not verified by what userinfo says of another one."""
    client.provider.userinfo = {"sub": "u-1", "email": "ann", "email_verified": True}
    client.provider.person = {"sub": "u-1", "email": "olga"}

    with pytest.raises(NoRight, match="verified"):
        client.sign_in()


# ---------------------------------------------------------------------- codes


def test_a_code_counts_once(client: Client) -> None:
    """The provider refuses the second time, and so do we."""
    code = client.code()
    assert client.known.verify_person(FLOW, code, client.provider.issuer) == "ann"

    with pytest.raises(NoRight, match="code"):
        client.known.verify_person(FLOW, code, client.provider.issuer)


def test_a_stolen_code_is_worth_nothing_in_another_sign_in(client: Client) -> None:
    """The verifier is not the one that it was asked for with."""
    other = Flow(state="t" * 43, nonce=FLOW.nonce, verifier="w" * 43)
    code = client.code(FLOW)

    with pytest.raises(NoRight, match="code"):
        client.known.verify_person(other, code, client.provider.issuer)


@pytest.mark.parametrize("issuer", [None, "http://localhost:1", ""])
def test_a_code_of_another_provider_is_shown_to_nobody(client: Client, issuer: str | None) -> None:
    """A mix-up is seen before the code leaves this machine."""
    code = client.code()

    with pytest.raises(NoRight):
        client.known.verify_person(FLOW, code, issuer)
    assert client.provider.redeemed == []


def test_a_provider_that_never_names_itself_is_not_asked_to(client: Client) -> None:
    """Only one that says that it does has to."""
    client.provider.says["authorization_response_iss_parameter_supported"] = False

    assert client.known.verify_person(FLOW, client.code(), None) == "ann"


# ---------------------------------------------------------------------- keys and metadata


def test_a_new_key_of_the_provider_counts_at_once_and_the_old_one_no_longer(
    client: Client,
) -> None:
    """A name that is not known makes the keys be fetched anew."""
    old = client.provider.keys[0]
    assert client.sign_in() == "ann"
    client.times.passed += 11
    client.provider.keys = [ec_key("ec-2")]
    assert client.sign_in() == "ann"
    client.provider.sign = replace(client.provider, keys=[old]).signed

    with pytest.raises(NoRight):
        client.sign_in()


def test_a_provider_may_change_its_algorithm(client: Client) -> None:
    """One that it did not name makes its metadata be fetched anew, and counts if they have it."""
    client.provider.says["id_token_signing_alg_values_supported"] = ["RS256"]
    with pytest.raises(NoRight):
        client.sign_in()
    client.times.passed += 11
    client.provider.says["id_token_signing_alg_values_supported"] = ["RS256", "ES256"]

    assert client.sign_in() == "ann"


def test_a_key_that_was_taken_back_counts_for_ten_minutes_at_most(client: Client) -> None:
    """Keys are kept for so long, though nothing makes them be fetched anew."""
    old = client.provider.keys[0]
    assert client.sign_in() == "ann"
    client.provider.published = [ec_key("ec-2").as_dict(private=False)]
    client.provider.sign = replace(client.provider, keys=[old]).signed
    client.times.passed = 601
    client.provider.claims = lambda claims: {**claims, "exp": claims["exp"] + 601}

    with pytest.raises(NoRight):
        client.sign_in()


def test_made_up_keys_do_not_make_us_ask_the_provider_all_the_time(client: Client) -> None:
    """Keys are fetched anew once in ten seconds, however many tokens ask for it."""
    client.provider.sign = replace(client.provider, keys=[ec_key("x")]).signed
    for _ in range(5):
        with pytest.raises(NoRight):
            client.sign_in()

    assert client.provider.asked.count("/keys") == 1
    assert client.provider.asked.count("/.well-known/openid-configuration") == 1


def test_a_provider_that_fails_is_left_alone_for_a_moment(client: Client) -> None:
    """Whoever tries again at once is told the same, and the provider is not asked."""
    path = "/.well-known/openid-configuration"
    client.provider.answers[path] = lambda: Response("no", 500)
    for _ in range(3):
        with pytest.raises(ProviderUnavailable, match="500"):
            client.known.authorization_url(FLOW)
    assert client.provider.asked.count(path) == 1
    del client.provider.answers[path]
    client.times.passed = 11

    assert client.sign_in() == "ann"


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ({"issuer": "https://login.example.com"}, "not 'http.*but 'https://login.example.com'"),
        ({"token_endpoint": "http://192.0.2.1/token"}, "https"),
        ({"jwks_uri": "file:///etc/passwd"}, "https"),
        ({"jwks_uri": "//localhost/keys"}, "https"),
        ({"authorization_endpoint": "http://login.example.com/"}, "https"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "https"),
        ({"authorization_endpoint": "https://a.example\r\nset-cookie: a=b"}, "https"),
        ({"authorization_endpoint": "https://user@a.example/"}, "https"),
        ({"token_endpoint": None}, "another form"),
        ({"id_token_signing_alg_values_supported": "RS256"}, "another form"),
    ],
)
def test_a_provider_that_says_odd_things_of_itself_is_not_used(
    client: Client, says: dict[str, Any], words: str
) -> None:
    """Nobody is sent to an address that others could read or change, and no secret is."""
    client.provider.says = says

    with pytest.raises(ProviderUnavailable, match=words):
        client.sign_in()


def endless() -> Response:
    """More than anybody needs to say."""
    return Response(b"[" + b" " * 300_000 + b"]", media_type="application/json")


@pytest.mark.parametrize(
    "answer",
    [
        endless,
        lambda: RedirectResponse("http://localhost:1/elsewhere"),
        lambda: Response(b"\x1f\x8b", headers={"content-encoding": "gzip"}),
        lambda: Response("<html>"),
        lambda: Response(b"[" * 100_000),
        lambda: JSONResponse([]),
        lambda: JSONResponse({}),
        lambda: JSONResponse({"error": "invalid_client"}, 401),
        lambda: JSONResponse({"error": "server_error"}, 400),
    ],
)
@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_an_answer_that_is_too_long_or_no_answer_is_refused(
    client: Client, path: str, answer: Callable[[], Response]
) -> None:
    """No redirect is followed, nothing is unpacked, and no more is read than is allowed."""
    client.provider.answers[path] = answer

    with pytest.raises(ProviderUnavailable):
        client.sign_in()


def test_a_provider_that_is_not_there_is_said_not_to_be(client: Client) -> None:
    """The error names it, and says what to do."""
    with pytest.raises(ProviderUnavailable, match="cannot be reached") as refused:
        client.again(issuer="http://localhost:1").sign_in()

    assert "config.toml" in refused.value.hint


def test_a_provider_with_tls_is_believed_if_this_machine_vouches_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certificate and its name both count, and it can name no address without TLS."""
    (tmp_path / "nobody").touch()
    known, other = certify("localhost", tmp_path), certify("login.example.com", tmp_path)
    for served, trusted, words in (
        (known, tmp_path / "nobody", "cannot be reached: ConnectError"),
        (other, other, "cannot be reached: ConnectError"),
        (known, known, ""),
        (known, known, "without https"),
    ):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with serving_provider(served) as provider:
            provider.secret = ""
            settings = OidcSettings(issuer=provider.issuer, client_id=CLIENT)
            client = make_client(provider, settings, Times())
            if words == "without https":
                provider.says["jwks_uri"] = provider.issuer.replace("https:", "http:") + "/keys"
            if not words:
                assert client.sign_in() == "ann"
            else:
                with pytest.raises(ProviderUnavailable, match=words):
                    client.sign_in()


def test_a_secret_that_others_can_read_is_refused_before_anything_is_served(
    client: Client,
) -> None:
    """As any other secret's file is."""
    Path(client.settings.client_secret_file).chmod(0o644)

    with pytest.raises(ConfigError):
        client.again()


async def drip() -> AsyncIterator[bytes]:
    """A byte now and then."""
    while True:
        yield b" "
        await asyncio.sleep(0.02)


def test_an_answer_that_never_ends_is_given_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, and all of them do not."""
    monkeypatch.setattr(_oidc_provider, "_ANSWER_S", 0.2)
    client.provider.answers["/keys"] = lambda: StreamingResponse(drip())
    settings = client.settings
    known = OidcProvider(settings, origin=ORIGIN)
    begun = time.monotonic()

    with pytest.raises(ProviderUnavailable, match="too slow"):
        known.check()
    assert time.monotonic() - begun < 5


# ---------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("changed_setting", "words"),
    [
        ('issuer = "http://login.example.com"', "issuer"),
        ('issuer = "https://user@login.example.com"', "issuer"),
        ('issuer = "https://login.example.com?tenant=1"', "issuer"),
        ('issuer = "https://login.example.com#x"', "issuer"),
        ('issuer = "login.example.com"', "issuer"),
        ('client_id = ""', "client_id"),
        ('claim = ""', "claim"),
        ('client_secret_file = "secret"', "absolute"),
        ('client_secret = "in the file"', "client_secret"),
    ],
)
def test_settings_that_would_put_people_at_risk_are_refused(
    tmp_path: Path, changed_setting: str, words: str
) -> None:
    """Before anything listens, and the error says which one."""
    lines = {
        "issuer": 'issuer = "https://login.example.com/tenant"',
        "client_id": 'client_id = "sealpoint"',
    }
    file = tmp_path / "config.toml"
    file.write_text("\n".join(("[console.oidc]", *lines.values())))
    assert load_console_settings(tmp_path).oidc is not None
    lines[changed_setting.partition(" ")[0]] = changed_setting
    file.write_text("\n".join(("[console.oidc]", *lines.values())))

    with pytest.raises(ConfigError, match=words):
        load_console_settings(tmp_path)
