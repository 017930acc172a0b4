# SPDX-License-Identifier: Apache-2.0
"""Sign-in of people, and creation of passkeys.

A session identifies a reader or a requester; it never approves anything. So a link from the
terminal is enough on your own machine; elsewhere sign-in needs a passkey of the roster or an
identity provider.

Anyone who reaches the console may create a passkey: they get a text, and the console keeps nothing.
The passkey counts when the holder of the root key has added it to the roster.
"""

import base64
import secrets
import threading
from binascii import Error as Base64Error
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sealpoint.config import check_identity_name
from sealpoint.errors import Forged, NoRight, NotTrusted, TooOften, UsageError
from sealpoint.signing import PASSKEY_ALGORITHMS, Passkey, PasskeyAssertion
from sealpoint.world import visible
from sealpoint_console._app import PageCall, Right, Routes, redirect, signed_in, wanted_page
from sealpoint_console._sessions import COOKIE, elapsed

_CHALLENGE_BYTES = 32
_USER_BYTES = 16
_CHALLENGES_MAX = 1000
_CHALLENGE_S = 180.0


class Challenges:
    """Random challenges that were issued, each valid for one response, for a short time."""

    def __init__(self, clock: Callable[[], float] = elapsed) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._given: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    def give(self) -> tuple[str, bytes]:
        """A new challenge, and its ticket."""
        ticket, challenge = secrets.token_urlsafe(), secrets.token_bytes(_CHALLENGE_BYTES)
        with self._lock:
            self._given[ticket] = (challenge, self._clock() + _CHALLENGE_S)
            while len(self._given) > _CHALLENGES_MAX:
                self._given.popitem(last=False)
        return ticket, challenge

    def take(self, ticket: str) -> bytes:
        """The challenge of a ticket, once.

        Raises:
            UsageError: It does not exist, or is too old.
        """
        with self._lock:
            challenge, until = self._given.pop(ticket, (b"", 0.0))
        if self._clock() >= until:
            raise UsageError("this took too long, or was answered before", hint="Try it again.")
        return challenge


def bytes_of(text: str, name: str) -> bytes:
    """Decode base64url in the form of browsers.

    Raises:
        UsageError: The text is not base64url.
    """
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (Base64Error, ValueError) as exc:
        raise UsageError(f"{name}: expected base64url, found another text") from exc
    return data


def text_of(data: bytes) -> str:
    """Encode base64url in the form of browsers."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class SignIn:
    """The routes before sign-in, and sign-out.

    Args:
        passkeys: Whether a passkey signs in; people can approve with theirs in any case.
    """

    def __init__(self, *, passkeys: bool = True) -> None:
        self._challenges = Challenges()
        self._passkeys = passkeys

    def routes(self, make: Routes) -> list[Route]:
        """All of them."""
        by_passkey = [
            make.post("/sign-in/passkey/begin", Right.ANYBODY, self._begin),
            make.post("/sign-in/passkey", Right.ANYBODY, self._by_passkey),
        ]
        return [
            make.get("/sign-in", Right.ANYBODY, self._page),
            make.post("/sign-in/link/person", Right.ANYBODY, self._link_person),
            make.post("/sign-in/link", Right.ANYBODY, self._by_link),
            *(by_passkey if self._passkeys else ()),
            make.post("/sign-out", Right.ANYBODY, self._sign_out),
            make.get("/enrol", Right.ANYBODY, self._enroll_page),
            make.post("/enrol/begin", Right.ANYBODY, self._begin_enroll),
            make.post("/enrol", Right.ANYBODY, self._enroll),
        ]

    def _page(self, call: PageCall) -> Response:
        settings = call.desk.settings
        return call.page(
            "sign_in.html",
            oidc=settings.oidc and settings.oidc.issuer,
            passkeys=self._passkeys,
            link=settings.is_local,
            wanted=wanted_page(call.query("to")),
            ended=call.cookie() is not None and call.person is None,
        )

    def _link_person(self, call: PageCall) -> Response:
        # The page of a link names the person of the sign-in, and the visitor confirms: otherwise a
        # lured visitor could work under another name.
        require_allowance(call)
        person = call.desk.sessions.link_person(call.text("link"))
        if person is None:
            raise _no_link()
        return JSONResponse({"person": visible(person)})

    def _by_link(self, call: PageCall) -> Response:
        require_allowance(call)
        person = call.desk.sessions.use_link(call.text("link"))
        if person is None:
            raise _no_link()
        return signed_in(call, person, "link", JSONResponse({"page": "/"}))

    def _begin(self, call: PageCall) -> Response:
        require_allowance(call)
        ticket, challenge = self._challenges.give()
        site = call.desk.settings.site
        return JSONResponse(
            {"ticket": ticket, "challenge": text_of(challenge), "site": site, "credentials": []}
        )

    def _by_passkey(self, call: PageCall) -> Response:
        require_allowance(call)
        challenge = self._challenges.take(call.text("ticket"))
        credential = bytes_of(call.text("credential"), "credential").hex()
        # Only those of this origin: the operator of another origin whose passkeys the roster knows,
        # such as the console's former address, could relay our challenge to a person who signs in
        # there.
        held = (
            each
            for each in call.desk.watch.roster.passkeys.values()
            if each[1].binding.origin == call.desk.settings.origin
        )
        found = next((each for each in held if each[1].binding.credential == credential), None)
        if found is None:
            raise NoRight(
                "the roster does not have this passkey for this console",
                hint="Make one at /enrol, and have it added to the roster.",
            )
        identity, passkey = found
        try:
            passkey.verify_assertion(assertion_of(call, passkey), challenge)
        except Forged as exc:
            raise NoRight(exc.message) from exc
        roster, digits = call.desk.watch.roster, passkey.id.raw.hex()
        if roster.key_expired_at(digits, datetime.now(UTC)):
            expires = roster.expiries[digits]
            raise NoRight(
                f"this passkey of {identity.name!r} expired at {expires:%Y-%m-%d %H:%M}Z",
                hint="Make another at /enrol, which takes its place; or where the root key is, "
                f"sealpoint keys add {identity.name} --expires 365d --public-key {passkey.public}",
            )
        answer = JSONResponse({"page": "/"})
        return signed_in(call, identity.person, "passkey", answer, passkey.id.raw.hex())

    def _sign_out(self, call: PageCall) -> Response:
        call.desk.sessions.end(call.cookie())
        response = redirect("/sign-in")
        response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")
        return response

    # ------------------------------------------------------------------ enrolment

    def _enroll_page(self, call: PageCall) -> Response:
        # Keys belong to identities: a person with several, or who creates one for another person,
        # names it.
        own = () if call.person is None or call.query("other") else call.person.identities
        return call.page(
            "enrol.html",
            name=own[0] if len(own) == 1 else "",
            terminal=call.desk.on_enrolled is not None,
        )

    def _begin_enroll(self, call: PageCall) -> Response:
        require_allowance(call)
        check_identity_name(call.text("name"))
        ticket, challenge = self._challenges.give()
        return JSONResponse(
            {
                "ticket": ticket,
                "challenge": text_of(challenge),
                "site": call.desk.settings.site,
                "user": text_of(secrets.token_bytes(_USER_BYTES)),
                "algorithms": [each.cose for each in PASSKEY_ALGORITHMS],
            }
        )

    def _enroll(self, call: PageCall) -> Response:
        name = check_identity_name(call.text("name"))
        try:
            passkey = Passkey.enroll(
                client_data=bytes_of(call.text("client_data"), "client_data"),
                authenticator_data=bytes_of(call.text("authenticator_data"), "authenticator_data"),
                challenge=self._challenges.take(call.text("ticket")),
                relying_party=call.desk.settings.site,
                origin=call.desk.settings.origin,
            )
        except (Forged, NotTrusted) as exc:
            raise UsageError(exc.message) from exc
        if call.desk.on_enrolled is not None:
            call.desk.on_enrolled(name, passkey)
        # The text gives no right: people in the roster keep theirs, and the administrator decides
        # about those of a new person. Nor does it reveal the roster to the visitor, whose identity
        # is unknown.
        return JSONResponse(
            {
                "enrolment": passkey.encode().decode(),
                "fingerprint": passkey.id.short(),
                "command": f"sealpoint keys add {name} --passkey passkey.json",
                "instead": f"sealpoint keys rotate {name} --passkey passkey.json --reason 'lost'",
            }
        )


def _no_link() -> NoRight:
    return NoRight(
        "this link was used before, or is older than ten minutes",
        hint="Press Enter in the terminal of sealpoint serve to get a new one.",
    )


def chosen_passkey(call: PageCall) -> Passkey:
    """The passkey that the browser used, if it is this person's.

    Raises:
        NoRight: It is not.
    """
    credential = bytes_of(call.text("credential"), "credential")
    for passkey in call.viewer.passkeys:
        if passkey.credential == credential:
            return passkey
    raise NoRight(f"{call.viewer.person!r} does not have this passkey, by the newest roster")


def assertion_of(call: PageCall, passkey: Passkey) -> PasskeyAssertion:
    """The assertion in a browser's form.

    Raises:
        UsageError: A field is missing, or is not base64url.
        Forged: The signature is malformed.
    """
    return passkey.assertion(
        client_data=bytes_of(call.text("client_data"), "client_data"),
        authenticator_data=bytes_of(call.text("authenticator_data"), "authenticator_data"),
        signature=bytes_of(call.text("signature"), "signature"),
    )


def require_allowance(call: PageCall) -> None:
    """Enforce the rate limit of one address.

    Raises:
        TooOften: It exceeds the limit.
    """
    client = call.request.client
    if not call.desk.sign_ins.take(client.host if client else ""):
        raise TooOften("there were too many tries to sign in from this address")
