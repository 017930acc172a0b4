# SPDX-License-Identifier: Apache-2.0
"""`sealpoint status` says how a store stands, and what has to be repaired."""

from tests.cli.machine import Machine


def test_a_new_store_has_nothing_to_repair(machine: Machine) -> None:
    """It names policy and keys, and leaves to `doctor` what production asks for."""
    printed = machine.done("status")

    assert "asks for     approve 1: handoff-by-operator; reason: older-checkpoint" in printed
    assert "keys here    operator, root, worker" in printed
    assert "Nothing to repair." in printed
    assert "checks" not in machine.json("status")
