# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks`: measure everything and print a table; `--write` keeps it as a record.

`--sizes` measures large stores instead, and `--rollouts` plans over many threads; both take long.
`--scanners` compares scanners of model files, and `--console` asks for pages of ten thousand
threads, which are also parts of everything. Each leaves the record of the others alone, and that of
`python -m benchmarks.langgraph_suite`.
"""

import argparse
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from benchmarks import (
    _agent_framework,
    _codec,
    _cold,
    _console,
    _gate,
    _langgraph,
    _large,
    _models,
    _parallel,
    _plot,
    _postgres,
    _rollouts,
    _scan,
    _sharing,
    _sizes,
    _slow_sync,
    _store,
    _watch,
)
from benchmarks._measure import Result
from benchmarks._record import (
    CONSOLE_HEADING,
    RESULTS,
    ROLLOUTS_HEADING,
    SCANNERS_HEADING,
    SIZES_HEADING,
    kept_sections,
    machine,
    write_section,
)
from benchmarks.agmi import FileAdapter, PostgresAdapter, SqliteAdapter, run_agmi
from benchmarks.agmi_agent_framework import AgentFrameworkAdapter
from benchmarks.agmi_langgraph import LangGraphAdapter

_ADAPTERS = (
    SqliteAdapter,
    FileAdapter,
    PostgresAdapter,
    LangGraphAdapter,
    AgentFrameworkAdapter,
)
_EXPERIMENTS = {
    "codec": _codec.experiments,
    "sharing": _sharing.experiments,
    "store": _store.experiments,
    "cold": _cold.experiments,
    "large": _large.experiments,
    "gate": _gate.experiments,
    "rollouts": _rollouts.experiments,
    "langgraph": _langgraph.experiments,
    "parallel": _parallel.experiments,
    "postgres": _postgres.experiments,
    "slow-sync": _slow_sync.experiments,
    "agent-framework": _agent_framework.experiments,
    "models": _models.experiments,
    "scan": _scan.experiments,
    "watch": _watch.experiments,
    "console": _console.experiments,
}
_RESULTS_HEAD = (
    "| question | Sealpoint | peer | figure | bar | |",
    "|---|---|---|---|---|---|",
)
_PEERS = (
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-postgres",
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
            f"- machine: {machine()}, {platform.system()}",
            f"- Python {platform.python_version()}, {packages}",
            "",
            *_RESULTS_HEAD,
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


def _measure_scanners() -> list[str]:
    table = _scan.table()
    sys.stdout.write("\n".join(table) + "\n")
    results = "\n".join(map(_row, _scan.experiments()))
    sys.stdout.write(results + "\n")
    return ["", _written("--scanners"), "", *_RESULTS_HEAD, results, "", *table]


def _measure_console() -> list[str]:
    rows = []
    for result in _console.experiments():
        rows.append(_row(result))
        sys.stdout.write(rows[-1] + "\n")
        sys.stdout.flush()
    return ["", _written("--console"), "", *_RESULTS_HEAD, *rows]


def _written(option: str) -> str:
    said = f"Written by `python -m benchmarks {option} --write` on {datetime.now(UTC):%Y-%m-%d}"
    return f"{said}; {machine()}, Python {platform.python_version()}."


_APART = {
    "sizes": (_measure_sizes, SIZES_HEADING),
    "rollouts": (_measure_rollouts, ROLLOUTS_HEADING),
    "scanners": (_measure_scanners, SCANNERS_HEADING),
    "console": (_measure_console, CONSOLE_HEADING),
}
"""What is measured by itself, by the option that asks for it, and the section that keeps it."""


def main() -> int:
    """Run every experiment.

    Returns:
        0 if every bar is met, else 1.
    """
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    only = parser.add_argument("--only", action="append", choices=[*_EXPERIMENTS])
    only.help = "measure this part alone, and write nothing; may be given again"
    parser.add_argument("--sizes", action="store_true", help="measure large stores instead")
    parser.add_argument("--rollouts", action="store_true", help="plan over many threads instead")
    parser.add_argument("--scanners", action="store_true", help="compare scanners instead")
    parser.add_argument("--console", action="store_true", help="ask for pages instead")
    arguments = parser.parse_args()
    for option, (measure, heading) in _APART.items():
        if getattr(arguments, option):
            lines = measure()
            if arguments.write:
                write_section(heading, lines)
            return 0
    results = []
    for name in arguments.only or _EXPERIMENTS:
        for result in _EXPERIMENTS[name]():
            results.append(result)
            sys.stdout.write(_row(result) + "\n")
            sys.stdout.flush()
    if "scan" in (arguments.only or _EXPERIMENTS):
        sys.stdout.write("\n" + "\n".join(_scan.table()) + "\n")
    if arguments.write and not arguments.only:
        RESULTS.write_text(_report(results), encoding="utf-8")
        _plot.write()
    return 0 if all(result.met for result in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
