# SPDX-License-Identifier: Apache-2.0
"""Where faults are planted, and which tests are asked."""

from pathlib import Path

__all__ = [
    "LEFT_OUT",
    "REASONS",
    "ROOT",
    "SOURCE",
    "TARGETS",
    "TESTS",
    "module_name",
    "target_files",
]

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "packages" / "sealpoint" / "src"
REASONS = Path(__file__).with_name("reasons.toml")

TARGETS = (
    "ledger/_entry_bodies.py",
    "ledger/_claim_checks.py",
    "ledger/_cutoffs.py",
    "ledger/_entry.py",
    "ledger/_thread_chain.py",
    "ledger/_entry_kinds.py",
    "ledger/_roster_copy.py",
    "ledger/_position_lists.py",
    "ledger/_restores.py",
    "ledger/_store_chain.py",
    "signing/_attestation.py",
    "signing/_statement.py",
    "gate/_decision_facts.py",
    "gate/_requests.py",
    "gate/_policy.py",
    "gate/_decision.py",
    "gate/_resume_call.py",
    "gate/_resume_review.py",
    "gate/_rollouts_in_force.py",
    "gate/_rollout_actions.py",
    "store/_release.py",
)
"""The rules of the gate, its rollouts, what it releases and the second look at it, the verification
of the ledger, and the counting of approvals."""

TESTS = (
    "packages/sealpoint/tests/unit/gate",
    "packages/sealpoint/tests/unit/ledger",
    "packages/sealpoint/tests/unit/signing/test_attestation.py",
    "packages/sealpoint/tests/unit/signing/test_statement.py",
    "packages/sealpoint/tests/unit/audit",
    "packages/sealpoint/tests/unit/store",
    "packages/sealpoint/tests/attacks/gate",
    "packages/sealpoint/tests/attacks/ledger",
    "tests/vectors/test_gate_vectors.py",
    "tests/vectors/test_key_change_vectors.py",
    "tests/vectors/test_ledger_vectors.py",
    "tests/vectors/test_retention_vectors.py",
    "tests/stories",
)
"""Tests that run in one process and are quick; those of the command line repeat these."""


LEFT_OUT = ("test_file_agnostic.py", "test_schema_agnostic.py", "test_retention_races.py")
"""Test files that search for long, or wait for other processes."""


def target_files() -> list[Path]:
    """Every file that faults are planted in."""
    return [SOURCE / "sealpoint" / name for name in TARGETS]


def module_name(path: Path) -> str:
    """The name that a source file is imported by."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)
