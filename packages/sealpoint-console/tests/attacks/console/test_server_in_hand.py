# SPDX-License-Identifier: Apache-2.0
"""The attacker is the server: its process, its key, its database, and what browsers send to it."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import sealpoint
from sealpoint.errors import Forged, NeedsApproval, NotTrusted, SealpointError
from sealpoint.signing import (
    Attestation,
    Verdict,
    attest,
    challenge,
    passkey_attestation,
)
from tests.attacks.console.passkeys import give_passkey
from tests.console.scene import WORLD, Scene
from tests.unit.signing.authenticator import Authenticator

_ORIGIN = "http://localhost:8080"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A team whose console has an identity of its own, that only operates."""
    made = Scene(tmp_path / "scene").make()
    made.admin.keys.create("console")
    made.admin.keys.add("console", person="console", roles=["operator"], namespaces=["*"])
    give_passkey(made, "ann", Authenticator(1, origin=_ORIGIN))
    return made


@pytest.fixture
def server(scene: Scene) -> Iterator[sealpoint.Store]:
    """What the process of the console holds: the store, open with its own key."""
    with scene.open("console") as store:
        yield store


def _approvals(server: sealpoint.Store, request: str) -> tuple[str, ...]:
    return server.request(request).approved_by


def test_the_servers_own_key_approves_nothing(scene: Scene, server: sealpoint.Store) -> None:
    """Neither as itself nor under another's name, nor as breaking the glass."""
    request = scene.ask()
    signer = server.thread("t").operations._core.signer()
    own = attest(signer, request, Verdict.APPROVE, "x")
    named = [
        own,
        _changed(own, credential=Authenticator(1, origin=_ORIGIN).passkey.id.raw.hex()),
        _changed(own, scheme="webauthn"),
        attest(signer, request, Verdict.BREAK_GLASS, "x"),
    ]
    for word in named:
        with pytest.raises((Forged, NotTrusted)):
            server.relay(word)
    for act in (server.approve, server.break_glass):
        with pytest.raises(SealpointError):
            act(request, reason="x")

    assert _approvals(server, request) == ()
    assert not scene.goes_on()


def test_a_passkey_that_the_server_makes_for_itself_counts_for_nothing(
    scene: Scene, server: sealpoint.Store
) -> None:
    """It has a key pair and can fill in whatever a browser would; the roster is the root's."""
    request = scene.ask()
    own = Authenticator(9, origin=_ORIGIN)

    with pytest.raises(NotTrusted):
        server.relay(own.say(request, Verdict.APPROVE, "x"))
    assert _approvals(server, request) == ()


def test_what_a_person_signed_is_that_and_nothing_else(
    scene: Scene, server: sealpoint.Store
) -> None:
    """A denial, an approval of another request, another reason, a sign-in, another origin."""
    request, other = scene.ask(), scene.ask("other")
    ann = Authenticator(1, origin=_ORIGIN)
    elsewhere = Authenticator(1, origin="http://localhost:9090")
    passkey = ann.passkey
    challenges = {
        "denial": challenge(request, Verdict.DENY, "x"),
        "other request": challenge(other, Verdict.APPROVE, "x"),
        "other reason": challenge(request, Verdict.APPROVE, "y"),
        "sign-in": b"r" * 32,
    }
    for asked in challenges.values():
        with pytest.raises(Forged):
            server.relay(
                passkey_attestation(passkey, request, Verdict.APPROVE, "x", ann.get(asked))
            )
    asked = challenge(request, Verdict.APPROVE, "x")
    with pytest.raises(Forged):
        server.relay(
            passkey_attestation(passkey, request, Verdict.APPROVE, "x", elsewhere.get(asked))
        )

    assert _approvals(server, request) == ()


def test_an_approval_that_was_used_is_not_used_again(scene: Scene, server: sealpoint.Store) -> None:
    """The server keeps every word that it relayed; for what is asked next it needs new ones."""
    request = scene.ask()
    words = [Authenticator(1, origin=_ORIGIN).say(request, Verdict.APPROVE, "x")]
    with scene.open("bob") as store:
        words.append(store.attest(request, Verdict.APPROVE, reason="x"))
    for word in words:
        server.relay(word)
    assert scene.goes_on()
    with scene.open() as worker, pytest.raises(NeedsApproval) as asked:
        worker.thread("invoice-17").resume(world=WORLD, answer={"approved": True})
    again = asked.value.request.id
    for word in words:
        with pytest.raises(SealpointError):
            server.relay(word)
        with pytest.raises(Forged):
            server.relay(_changed(word, statement=again))

    assert not scene.goes_on()


def test_a_ticket_that_the_server_makes_up_lets_nobody_answer_for_another(scene: Scene) -> None:
    """Bob's session sends what Ann signed for it, and is told that this passkey is not his."""
    with scene.serving() as served:
        ann = Authenticator(5, origin=served.origin)
        give_passkey(scene, "ann", ann)
        request = scene.ask()
        served.seen()
        with served.client("bob") as bob:
            token = bob.headers["cookie"].partition("=")[2]
            sessions = served.console.desk.sessions
            session = sessions.find(token)
            assert session is not None
            word = f'["{request}", "approve", "x"]'
            ticket = sessions.offer(session, "signed-answer", request, word)
            made = ann.get(challenge(request, Verdict.APPROVE, "x"))
            fields = {"client_data": made.client_data, "signature": made.signature}
            fields |= {"authenticator_data": made.authenticator_data, "credential": ann.credential}
            body = {name: _text(part) for name, part in fields.items()}
            answer = bob.post(f"/requests/{request}/answer", json={"ticket": ticket, **body})

        assert answer.status_code == 403
    with scene.open() as store:
        assert _approvals(store, request) == ()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def _changed(word: Attestation, **fields: str) -> Attestation:
    return replace(word, **fields)
