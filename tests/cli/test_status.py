# SPDX-License-Identifier: Apache-2.0
"""`sealpoint status` answers the checklist for checkpoint storage, and it can be brought to yes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cli.machine import Machine

_NEW = {
    "places-apart": True,
    "store-closed": True,
    "anchor-in-use": False,
    "root-elsewhere": False,
    "keys-locked": False,
    "duties-apart": False,
    "keys-expire": False,
    "keys-valid": True,
    "policy-in-force": True,
    "people-asked": False,
    "approvers-enough": None,
}


def _answers(machine: Machine) -> dict[str, Any]:
    found = {each["name"]: each["holds"] for each in machine.json("status")["checks"]}
    del found["anchor-elsewhere"]  # the disks are those of whoever runs the tests
    return found


def _expires(machine: Machine, name: str, role: str, day: str) -> None:
    rights = ("--person", "owner", "--role", role, "--namespace", "*")
    machine.done("keys", "add", name, *rights, "--expires", day)


def _detail(machine: Machine, name: str) -> str:
    (found,) = (each for each in machine.json("status")["checks"] if each["name"] == name)
    return str(found["detail"])


def test_a_new_store_is_told_what_production_lacks(machine: Machine) -> None:
    """Each line in words and as JSON; none of them is a fault."""
    printed = machine.done("status")

    assert _answers(machine) == _NEW
    for each in machine.json("status")["checks"]:
        answer = {True: "yes", False: "no", None: "-"}[each["holds"]]
        assert f"  {answer:<5}{each['claim']}" in printed
    assert "(here: root)" in printed
    assert "asks for     approve 1: handoff-by-operator; reason: older-checkpoint" in printed
    assert "Nothing to repair." in printed


def test_every_line_of_the_checklist_can_be_answered_with_yes(machine: Machine) -> None:
    """By a thread, people, a policy, keys that end, passphrases, and keys that lie elsewhere."""
    machine.open().thread("a").save({"n": 1})
    year = f"{datetime.now(UTC) + timedelta(days=365):%Y-%m-%d}"
    for name in ("ann", "bob"):
        machine.done("keys", "new", name)
        rights = ("--person", name, "--role", "approver", "--namespace", "*")
        machine.done("keys", "add", name, *rights, "--expires", year)
    for name, role in (("worker", "writer"), ("operator", "operator")):
        _expires(machine, name, role, year)
    machine.done("policy", "apply", "team")
    keys = next((machine.home / "config").rglob("root.key")).parent
    assert _detail(machine, "root-elsewhere") == "here: root"
    for name in ("root", "operator", "ann", "bob"):
        (keys / f"{name}.key").unlink()
    left = {name for name, holds in _answers(machine).items() if not holds}

    assert left == {"keys-locked"}
    assert _detail(machine, "approvers-enough") == "ann, bob"
    (keys / "worker.key").unlink()
    assert all(_answers(machine).values())


def test_a_store_that_others_may_read_is_told_with_its_mode(machine: Machine) -> None:
    """Unless its directory keeps them out."""
    machine.path.parent.chmod(0o755)
    machine.path.chmod(0o644)

    assert _answers(machine)["store-closed"] is False
    assert _detail(machine, "store-closed") == f"{machine.path.resolve()} has mode 644"
    machine.path.parent.chmod(0o700)
    assert _answers(machine)["store-closed"] is True


def test_a_key_that_ends_soon_is_named(machine: Machine) -> None:
    """With the day."""
    soon = f"{datetime.now(UTC) + timedelta(days=5):%Y-%m-%d}"
    _expires(machine, "worker", "writer", soon)

    assert _answers(machine)["keys-valid"] is False
    assert _detail(machine, "keys-valid").startswith(f"until: worker {soon}")
    assert _detail(machine, "keys-expire") == "never: operator"
