# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys` with passkeys: shown before they are believed, listed, exchanged and ended."""

from pathlib import Path

import pytest

from sealpoint.signing import Verdict
from tests.cli.machine import Machine
from tests.cli.team import READ, SHELL, ask, make_team
from tests.unit.signing.authenticator import Authenticator

_ONE, _TWO = Authenticator(1), Authenticator(2, "eddsa", backup_eligible=True)
_RIGHTS = ("--person", "Alice", "--role", "approver", "--namespace", "*")
_ADD = ("keys", "add", "alice", *_RIGHTS)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The enrolment of the first passkey, as the console gave it out."""
    path = tmp_path / "alice.json"
    path.write_bytes(_ONE.passkey.encode())
    return str(path)


def test_a_passkey_is_shown_before_it_is_believed(machine: Machine, file: str) -> None:
    """Origin, relying party, algorithm, credential, copies and its whole id, to be compared."""
    printed = machine.done(*_ADD, "--passkey", file, "--yes")

    for text in (
        str(_ONE.passkey.id),
        "http://localhost:8080",
        "relying party",
        "es256",
        _ONE.credential.hex()[:16],
        "may be backed up",
        "Compare the key with what its owner reads",
        "Added.",
    ):
        assert text in printed
    assert printed.index("Compare") < printed.index("Added.")


def test_nobody_is_asked_without_a_terminal(machine: Machine, file: str) -> None:
    """Then it takes --yes, and nothing is added without."""
    before = machine.json("keys", "list")

    assert machine.refused(*_ADD, "--passkey", file) == (2, "usage")
    assert machine.json("keys", "list") == before


@pytest.mark.skipif("sys.platform == 'win32'", reason="there are no such terminals")
def test_on_a_terminal_somebody_is_asked(machine: Machine, file: str) -> None:
    """No adds nothing, and yes adds it."""
    status, printed = machine.at_a_terminal(*_ADD, "--passkey", file, answer="n\n")

    assert status == 1
    assert "Is it the passkey of Alice?" in printed
    assert "Nothing was added." in printed
    assert machine.at_a_terminal(*_ADD, "--passkey", file, answer="y\n")[0] == 0
    assert [each["name"] for each in machine.json("keys", "list")].count("alice") == 1


def test_an_enrolment_is_read_from_standard_input(machine: Machine) -> None:
    """As every document is that people pass on."""
    added = machine.json(*_ADD, "--passkey", "-", "--yes", stdin=_TWO.passkey.encode())

    assert added["key"] == str(_TWO.passkey.id)


def test_what_is_no_enrolment_is_refused(machine: Machine, file: str) -> None:
    """A changed one, another document, none at all, and one beside another key."""
    changed = _ONE.passkey.encode().replace(b"8080", b"8080 ")
    public = ("--public-key", machine.json("keys", "list")[0]["public"])

    for stdin in (changed, b"{}", b"", b"x" * 8000):
        assert machine.refused(*_ADD, "--passkey", "-", "--yes", stdin=stdin) == (
            39,
            "trust-file-invalid",
        )
    assert machine.refused(*_ADD, "--passkey", file, *public, "--yes") == (2, "usage")
    assert machine.refused(*_ADD, "--passkey", "nowhere.json", "--yes") == (2, "usage")


def test_passkeys_are_listed(machine: Machine, file: str) -> None:
    """With where they count and whether there may be copies; JSON has the rest."""
    machine.done(*_ADD, "--passkey", file, "--yes")
    machine.done(*_ADD, "--passkey", "-", "--yes", stdin=_TWO.passkey.encode())
    lines = machine.done("keys", "list").splitlines()
    document = [each for each in machine.json("keys", "list") if each["name"] == "alice"]

    assert lines[0].split()[-1] == "origin"
    assert sum("passkey, may be copied" in line for line in lines) == 1
    assert sum("http://localhost:8080" in line for line in lines) == 2
    assert [each["passkey"]["algorithm"] for each in document] == ["es256", "eddsa"]
    assert [each["scheme"] for each in document] == ["webauthn", "webauthn"]
    assert {each["passkey"] is None for each in machine.json("keys", "list")} == {True, False}


def test_a_passkey_is_exchanged_and_ended(machine: Machine, file: str) -> None:
    """The plan shows the new one, and nothing is to be done where a private key is."""
    machine.done(*_ADD, "--passkey", file, "--yes")
    rotate = ("keys", "rotate", "alice", "--passkey", "-")
    printed = machine.done(*rotate, "--yes", stdin=_TWO.passkey.encode())
    ended = machine.json("keys", "revoke", "alice", "--reason", "phone lost", "--yes")

    assert f"key {_ONE.passkey.id.raw.hex()[:12]} of alice" in printed
    assert "Compare the key" in printed
    assert "--finish" not in printed
    assert ended["keys"] == [str(_TWO.passkey.id)]


def _approved(machine: Machine) -> str:
    """A request that two people have approved with passkeys, and its run."""
    machine.done(*_ADD, "--passkey", "-", "--yes", stdin=_ONE.passkey.encode())
    carl = ("keys", "add", "carl", "--person", "Carl", *_RIGHTS[2:], "--yes")
    machine.done(*carl, "--passkey", "-", stdin=_TWO.passkey.encode())
    with machine.open() as store:
        store.thread("t").save(1, world=READ)
    request = ask(machine)
    with machine.open() as store:
        for made in (_ONE, _TWO):
            store.relay(made.say(request, Verdict.APPROVE, f"{made.algorithm} has looked"))
    return request


def test_an_approval_by_passkey_is_told_everywhere(tmp_path: Path) -> None:
    """Request, log, audit and why name who approved and say why, before and after the run."""
    machine = make_team(tmp_path)
    request = _approved(machine)
    shown = machine.json("requests", request)

    assert shown["approved_by"] == ["alice", "carl"]
    with machine.open() as store:
        assert store.thread("t").resume(world=SHELL).state == 1
    for verb in (("audit",), ("why", request)):
        printed = machine.done(*verb)
        assert "es256 has looked" in printed
        assert "Carl" in printed or "carl" in printed
    counted = {each["person"]: each["counts"] for each in machine.json("why", request)["approvals"]}
    assert counted == {"Alice": True, "Carl": True}
    assert machine.done("verify")


def test_an_approval_by_passkey_verifies_offline_from_a_bundle(
    tmp_path: Path, other: Machine
) -> None:
    """By the pin alone: no authenticator, no browser and no store is asked."""
    machine = make_team(tmp_path)
    request = _approved(machine)
    with machine.open() as store:
        store.thread("t").resume(world=SHELL)
    bundle, pin = tmp_path / "evidence", tmp_path / "pin.json"
    machine.done("export", "--thread", "t", "--output", str(bundle))
    machine.done("trust", "export", "--output", str(pin))
    machine.path.unlink()
    found = ("--bundle", str(bundle), "--trust", str(pin))

    assert other.done("verify-bundle", str(bundle), "--trust", str(pin))
    told = other.json("why", request, *found)
    assert {each["person"]: each["counts"] for each in told["approvals"]} == {
        "Alice": True,
        "Carl": True,
    }
    assert "es256 has looked" in other.done("audit", *found)


def test_a_request_that_is_carried_away_shows_who_approved_by_passkey(tmp_path: Path) -> None:
    """Whoever decides elsewhere sees the same people, by the roster that comes with it."""
    machine = make_team(tmp_path)
    request = _approved(machine)
    file, answer = str(tmp_path / "request"), str(tmp_path / "answer")
    machine.done("request", "export", request, "--output", file)
    offline = ("approve", "--offline", file, "--output", answer, "--yes-to", request)

    assert "alice" in machine.done(*offline, "--identity", "ann", "--reason", "read it")
