# SPDX-License-Identifier: Apache-2.0
"""The outside yardstick, read as a workflow reads: all nine edits are refused."""

from benchmarks.agmi import run_agmi
from benchmarks.agmi_agent_framework import AgentFrameworkAdapter


def test_all_nine_edits_of_the_yardstick_are_refused_while_reading() -> None:
    """All but an older state when the newest is asked for, and that when it is loaded."""
    found = {
        row["edit"].split()[0]: (row["verdict"], row["read"], row["code"])
        for row in run_agmi(AgentFrameworkAdapter)
    }

    assert found == {
        "T1": ("REJECTED", "load(id)", "edited"),
        "T2": ("REJECTED", "get_latest()", "rolled-back"),
        "T3": ("REJECTED", "get_latest()", "missing"),
        "T4": ("REJECTED", "get_latest()", "misplaced"),
        "T5": ("REJECTED", "get_latest()", "forged"),
        "T6": ("REJECTED", "get_latest()", "misplaced"),
        "T7": ("REJECTED", "get_latest()", "misplaced"),
        "T8": ("REJECTED", "get_latest()", "edited"),
        "T9": ("REJECTED", "get_latest()", "rolled-back"),
    }
