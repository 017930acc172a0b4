# SPDX-License-Identifier: Apache-2.0
"""`sealpoint doctor` says how a store stands, and fails for what is critical alone."""

import json

from tests.cli.machine import Machine


def test_a_new_store_gets_advice_and_exits_with_zero(machine: Machine) -> None:
    """It names policy and keys; what production asks for fails only with `--strict`."""
    machine.done("save", "t", stdin="1")
    printed = machine.done("doctor")
    found = machine.json("doctor")

    assert "asks for     approve 1: handoff-by-operator; reason: older-checkpoint" in printed
    assert "keys here    operator, root, worker" in printed
    assert "threads      1 that the anchor knows" in printed
    assert "Nothing critical was found." in printed
    assert found["ok"] is True
    assert {each["severity"] for each in found["findings"]} == {"warning", "note"}
    assert machine.run("doctor", "--strict").exit_code == 96


def test_a_quick_look_finds_only_what_keeps_the_store_from_being_used(machine: Machine) -> None:
    """It has the facts without the checklist, and opens no thread."""
    printed = machine.done("doctor", "--quick", "--strict", "--identity", "worker")
    found = machine.json("doctor", "--quick")

    assert "keys here    operator, root, worker" in printed
    assert "Nothing was found." in printed
    assert found["facts"] == machine.json("doctor")["facts"]
    assert (found["checks"], found["findings"]) == ([], [])


def test_the_key_of_an_identity_has_to_be_here(machine: Machine) -> None:
    """Quick or not, a probe fails for a worker whose key is missing or open to others."""
    for options in ((), ("--quick",)):
        result = machine.run("doctor", "--json", "--identity", "billing", *options)

        assert result.exit_code == 96
        assert json.loads(result.stdout)["findings"][0]["code"] == "key-missing"


def test_a_store_without_a_pin_has_no_facts(machine: Machine) -> None:
    """What is not known is null, and the reason is a finding."""
    next((machine.home / "config").rglob("pin.json")).unlink()
    result = machine.run("doctor", "--json", "--quick")
    found = json.loads(result.stdout)

    assert result.exit_code == 96
    assert (found["facts"]["store"], found["facts"]["roster"]) == (None, None)
    assert found["facts"]["keys"] == ["operator", "root", "worker"]
    assert [each["code"] for each in found["findings"]] == ["no-pin"]
    assert "policy     not known" in machine.run("doctor", "--quick").stdout
