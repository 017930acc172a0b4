# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks`: measure everything and print a table; `--write` keeps it as a record.

`--sizes` measures large stores instead, and `--rollouts` plans over many threads; both take long.
Each leaves the record of the others alone, and that of `python -m benchmarks.langgraph_suite`.
"""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from benchmarks import (
    _agent_framework,
    _codec,
    _gate,
    _langgraph,
    _models,
    _plot,
    _rollouts,
    _sharing,
    _sizes,
    _store,
)
from benchmarks._measure import Result
from benchmarks._record import (
    RESULTS,
    ROLLOUTS_HEADING,
    SIZES_HEADING,
    kept_sections,
    write_section,
)
from benchmarks.agmi import FileAdapter, SqliteAdapter, run_agmi
from benchmarks.agmi_agent_framework import AgentFrameworkAdapter
from benchmarks.agmi_langgraph import LangGraphAdapter

_ADAPTERS = (SqliteAdapter, FileAdapter, LangGraphAdapter, AgentFrameworkAdapter)
_EXPERIMENTS = (
    _codec.experiments,
    _sharing.experiments,
    _store.experiments,
    _gate.experiments,
    _rollouts.experiments,
    _langgraph.experiments,
    _agent_framework.experiments,
    _models.experiments,
)
_PEERS = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "agent-framework-core",
    "cryptography",
    "pynacl",
    "ormsgpack",
    "pydantic",
    "numpy",
    "agent-memory-integrity",
    "torch",
    "safetensors",
    "model-signing",
    "blake3",
)


def _row(result: Result) -> str:
    relation = "at least" if result.at_least else "at most"
    verdict = "met" if result.met else "NOT MET"
    return (
        f"| {result.question} | {result.ours} | {result.peer} | {result.figure:.2f} {result.unit} "
        f"| {relation} {result.bar:g} | {verdict} |"
    )


def _agmi_row(adapter: type[Any], row: dict[str, str]) -> str:
    name, verdict = adapter.__name__, row["verdict"]
    return f"| {name} | {row['edit']} | {verdict} | `{row['read']}` | `{row['code']}` |"


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
            "`agmi-check --adapter benchmarks.agmi:NAME`, refused while reading.",
            "",
            "| adapter | edit | verdict | the read that refused it | with |",
            "|---|---|---|---|---|",
            *(_agmi_row(each, row) for each in _ADAPTERS for row in run_agmi(each)),
            "",
            kept_sections(),
        ]
    )


def _measure_sizes() -> list[str]:
    measured = []
    for each in _sizes.measure():
        measured.append(each)
        sys.stdout.write(f"{each.scenario}: {each.step}: {each.seconds:,.2f} s\n")
        sys.stdout.flush()
    return ["", f"{_written('--sizes')} SQLite.", "", *_sizes.table(measured)]


def _measure_rollouts() -> list[str]:
    measured = []
    for each in _rollouts.measure():
        measured.append(each)
        sys.stdout.write(f"{each.scheme}: {each.threads:,} threads: {each.seconds:,.2f} s\n")
        sys.stdout.flush()
    return ["", _written("--rollouts"), "", *_rollouts.table(measured)]


def _written(option: str) -> str:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    said = f"Written by `python -m benchmarks {option} --write` on {datetime.now(UTC):%Y-%m-%d}"
    return f"{said}; {machine}."


def main() -> int:
    """Run every experiment.

    Returns:
        0 if every bar is met, else 1.
    """
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    parser.add_argument("--sizes", action="store_true", help="measure large stores instead")
    parser.add_argument("--rollouts", action="store_true", help="plan over many threads instead")
    arguments = parser.parse_args()
    if arguments.sizes or arguments.rollouts:
        measure = _measure_sizes if arguments.sizes else _measure_rollouts
        heading = SIZES_HEADING if arguments.sizes else ROLLOUTS_HEADING
        lines = measure()
        if arguments.write:
            write_section(heading, lines)
        return 0
    results = []
    for experiments in _EXPERIMENTS:
        for result in experiments():
            results.append(result)
            sys.stdout.write(_row(result) + "\n")
            sys.stdout.flush()
    if arguments.write:
        RESULTS.write_text(_report(results), encoding="utf-8")
        _plot.write(_langgraph.measured())
    return 0 if all(result.met for result in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
