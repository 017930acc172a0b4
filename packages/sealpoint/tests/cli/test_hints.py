# SPDX-License-Identifier: Apache-2.0
"""Hints work when they are followed literally: fail, run exactly what the hint says, go on."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from sealpoint.errors import RequestClosed, ResumeRefused
from tests.cli.machine import Machine
from tests.cli.team import SHELL, ask, make_team


def _hint(machine: Machine, *arguments: str, code: str, stdin: str | None = None) -> str:
    """Run a verb that must fail with a code, and return its hint."""
    result = machine.run(*arguments, "--json", stdin=stdin)
    error = json.loads(result.stderr)["error"]
    assert error["code"] == code, error
    assert result.exit_code == error["exit_status"] != 0
    return str(error["hint"])


def _command(hint: str, verb: str, **given: str) -> list[str]:
    """The words of a command in a hint, with its placeholders filled in."""
    found = re.search(rf"sealpoint ({verb}\b.*?)(?=[.,;:] |\.$|$| and sealpoint)", hint)
    assert found is not None, hint
    return [given.get(word, word) for word in shlex.split(found[1])]


@pytest.fixture
def team(tmp_path: Path) -> Machine:
    """A store with the policy `strict`, and one thread `t`."""
    made = make_team(tmp_path)
    made.done("save", "t", stdin="1")
    return made


def test_who_lacks_a_role_is_given_it(team: Machine) -> None:
    """An operator who may not approve is told the command that makes an approver of them."""
    request = ask(team)
    approve = ("approve", request, "--yes-to", request, "--reason", "x", "--identity", "chief")
    hint = _hint(team, *approve, code="no-right")

    team.done(*_command(hint, "keys add"))
    team.done(*approve)


def test_who_lacks_a_namespace_is_given_it(machine: Machine) -> None:
    """A writer of another namespace is told the command that lets it write here."""
    machine.done("keys", "new", "billing")
    add = ("keys", "add", "billing", "--person", "bea", "--role", "writer", "--namespace", "b")
    machine.done(*add)
    save = ("save", "t", "--identity", "billing")
    hint = _hint(machine, *save, code="no-right", stdin="1")

    machine.done(*_command(hint, "keys add"))
    machine.done(*save, stdin="1")


def test_a_key_that_nobody_entered_is_entered(machine: Machine) -> None:
    """A new key is told the command that enters it, with its public half."""
    machine.done("keys", "new", "billing")
    save = ("save", "t", "--identity", "billing")
    hint = _hint(machine, *save, code="key-not-in-force", stdin="1")

    machine.done(*_command(hint, "keys add", WHO="bea"))
    machine.done(*save, stdin="1")


def test_a_machine_without_a_pin_imports_one(machine: Machine, tmp_path: Path) -> None:
    """Where the store is not known, the hint names the ways on, and an import is one."""
    machine.done("save", "t", stdin="1")
    pin = tmp_path / "pin.json"
    machine.done("trust", "export", "--output", str(pin))
    other = Machine(machine.path, tmp_path / "two")
    hint = _hint(other, "load", "t", code="no-pin")

    assert f"sealpoint init --store {other.url}" in hint
    other.done(*_command(hint, "trust import")[:2], str(pin))
    assert _hint(other, "load", "t", code="unanchored")


def test_a_machine_without_keys_makes_one(machine: Machine, tmp_path: Path) -> None:
    """A machine that has the pin alone is told how it comes to a key that may write."""
    machine.done("save", "t", stdin="1")
    pin = tmp_path / "pin.json"
    machine.done("trust", "export", "--output", str(pin))
    other = Machine(machine.path, tmp_path / "two")
    other.done("trust", "import", str(pin))
    hint = _hint(other, "save", "u", code="key-missing", stdin="1")
    assert "Keys here: none" in hint

    for name, role in (("pod-2", "writer"), ("carl", "operator")):
        printed = other.done(*_command(hint, "keys new", NAME=name)[:3])
        told = " ".join(printed.replace("\\\n", " ").split())
        given = {"approver": role, "default": "*"}
        machine.done(*_command(told, "keys add", **given))
    save = ("save", "u", "--identity", "pod-2")
    hint = _hint(other, *save, code="unanchored", stdin="1")
    adopt = _command(hint, "anchor adopt", TEXT="a new machine")
    other.done(*adopt, "--identity", "carl", "--yes")
    other.done(*save, stdin="1")


def test_what_was_denied_is_asked_for_otherwise(team: Machine) -> None:
    """The hint says where a denial is read, and how long it stands: until the thread moves on."""
    request = ask(team)
    team.done("deny", request, "--reason", "no shell", "--identity", "ann")
    with team.open() as store, pytest.raises((ResumeRefused, RequestClosed)) as caught:
        store.thread("t").resume(world=SHELL, deliberate="a new tool")

    assert request[:8] in team.done(*_command(caught.value.hint, "requests")[:2])
    assert "until the request expires or the thread moves on" in caught.value.hint
    assert "only something else can be asked for" in caught.value.hint
    assert ask(team, answer={"shell": "ls only"}) != request
    with team.open() as store:
        store.thread("t").save(2)
    again = ask(team)
    assert again != request
    assert again[:8] in team.done("requests")


def test_a_rolled_back_store_without_a_newer_copy_is_accepted(machine: Machine) -> None:
    """The hint leads to the plan of what is lost, and the plan to accepting it."""
    machine.done("save", "t", stdin="1")
    backup = machine.path.read_bytes()
    machine.done("save", "t", stdin="2")
    for path in machine.path.parent.glob(f"{machine.path.name}*"):
        path.unlink()
    machine.path.write_bytes(backup)
    machine.path.chmod(0o600)
    hint = _hint(machine, "load", "t", code="rolled-back")

    plan = _command(hint, "accept-restore", TEXT="disk died")[:4]
    machine.done(*plan)
    machine.done(*(word for word in plan if word != "--dry-run"), "--yes")
    assert machine.json("load", "t") == 1


def test_a_lost_secret_of_the_anchor_is_replaced(machine: Machine, tmp_path: Path) -> None:
    """Anchor and pin are moved away, the pin is imported, and the store adopted."""
    machine.done("save", "t", stdin="1")
    pin = tmp_path / "pin.json"
    machine.done("trust", "export", "--output", str(pin))
    next((machine.home / "config").rglob("slots.key")).unlink()
    hint = _hint(machine, "load", "t", code="key-missing")
    places = re.search(r"move (\S+) and (\S+) away", hint)
    assert places is not None, hint

    for number, place in enumerate(places.groups()):
        Path(place).rename(tmp_path / f"away-{number}")
    machine.done(*_command(hint, "trust import", PIN=str(pin))[:3])
    machine.done(*_command(hint, "anchor adopt")[:4], "--yes")
    assert machine.json("load", "t") == 1


def test_a_bundle_without_a_pin_asks_for_it(machine: Machine, tmp_path: Path) -> None:
    """Where no store is named, the hint of `verify-bundle` begins with `--trust`."""
    machine.done("save", "t", stdin="1")
    bundle, pin = tmp_path / "bundle", tmp_path / "pin.json"
    machine.done("export", "--thread", "t", "--output", str(bundle))
    machine.done("trust", "export", "--output", str(pin))
    nowhere = Machine(tmp_path / "disk" / "none.db", tmp_path / "two")
    hint = nowhere.apart("verify-bundle", str(bundle))

    assert hint.startswith("Give --trust, which needs no store.")
    nowhere.done("verify-bundle", str(bundle), "--trust", str(pin))


@pytest.mark.usefixtures("quick_passphrases")
def test_a_locked_key_is_opened_as_the_hint_says(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal the hint names the setting that gives the passphrase."""
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse")
    secret.chmod(0o600)
    machine.done("keys", "passphrase", "worker", "--new-passphrase-file", str(secret))
    hint = _hint(machine, "save", "t", code="key-locked", stdin="1")

    assert "SEALPOINT_PASSPHRASE_FILE" in hint
    monkeypatch.setenv("SEALPOINT_PASSPHRASE_FILE", str(secret))
    machine.done("save", "t", stdin="1")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
@pytest.mark.parametrize("name", ["config", "stores", "pin.json", "slots.key", "anchor.slots"])
def test_what_another_user_owns_is_taken_back_as_the_hint_says(machine: Machine, name: str) -> None:
    """Directories, the pin, the secret of the anchor, and the anchor itself."""
    machine.done("save", "t", stdin="1")
    (path,) = (each for each in machine.home.rglob(name) if each.parent.name != "keys")
    os.chown(path, 12345, -1)
    result = machine.run("load", "t", "--json")
    hint = json.loads(result.stderr)["error"]["hint"]
    command = shlex.split(hint.rpartition(": ")[2])

    assert command[0] == "sudo"
    subprocess.run(command[1:], check=True)
    machine.done("load", "t")
