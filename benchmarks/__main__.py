# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks`: measure everything and print a table; `--write` keeps it as a record."""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import _codec, _sharing, _store
from benchmarks._measure import Result
from sealpoint.testing.agmi import run_agmi

_RESULTS = Path(__file__).parent / "RESULTS.md"
_PEERS = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "cryptography",
    "pynacl",
    "ormsgpack",
    "pydantic",
    "numpy",
    "agent-memory-integrity",
)


def _row(result: Result) -> str:
    relation = "at least" if result.at_least else "at most"
    verdict = "met" if result.met else "NOT MET"
    return (
        f"| {result.question} | {result.ours} | {result.peer} | {result.figure:.2f} {result.unit} "
        f"| {relation} {result.bar:g} | {verdict} |"
    )


def _agmi_row(row: dict[str, str]) -> str:
    return f"| {row['edit']} | {row['verdict']} | `{row['read']}` | `{row['code']}` |"


def _report(results: list[Result]) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in _PEERS)
    return "\n".join(
        [
            "# Results",
            "",
            "Written by `python -m benchmarks --write`; measured side by side in one run.",
            "",
            f"- date: {datetime.now(UTC):%Y-%m-%d}",
            f"- machine: {platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
            f"- Python {platform.python_version()}, {packages}",
            "",
            "| question | Sealpoint | peer | figure | bar | |",
            "|---|---|---|---|---|---|",
            *map(_row, results),
            "",
            "## At-rest edits of agent-memory-integrity",
            "",
            "`agmi-check --adapter sealpoint.testing.agmi:SqliteAdapter`, refused while reading.",
            "",
            "| edit | verdict | the read that refused it | with |",
            "|---|---|---|---|",
            *map(_agmi_row, run_agmi()),
            "",
        ]
    )


def main() -> int:
    """Run every experiment.

    Returns:
        0 if every bar is met, else 1.
    """
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    arguments = parser.parse_args()
    results = []
    for experiments in (_codec.experiments, _sharing.experiments, _store.experiments):
        for result in experiments():
            results.append(result)
            sys.stdout.write(_row(result) + "\n")
            sys.stdout.flush()
    if arguments.write:
        _RESULTS.write_text(_report(results), encoding="utf-8")
    return 0 if all(result.met for result in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
