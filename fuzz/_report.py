# SPDX-License-Identifier: Apache-2.0
"""What a run has to say, as text."""

from collections.abc import Sequence
from pathlib import Path

from fuzz._coverage import FileCoverage
from fuzz._programs import PROGRAMS, Program
from fuzz._session import escape_path
from fuzz._supervise import Run

__all__ = ["report"]


def _spans(lines: Sequence[int]) -> str:
    """Line numbers, with neighbours joined: 3-5, 9."""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    return ", ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in spans)


def _percent(files: Sequence[FileCoverage]) -> float:
    total = sum(file.lines for file in files)
    return 100.0 * (total - sum(len(file.missed) for file in files)) / max(total, 1)


def report(
    run: Run,
    files: Sequence[FileCoverage],
    *,
    engine: str,
    seed: int,
    output: Path,
    program: Program = PROGRAMS["decode"],
) -> tuple[str, bool]:
    """The report, and whether the run passed."""
    rate = run.executions / run.seconds if run.seconds else 0.0
    lines = [
        f"target        {program.name}",
        f"engine        {engine}",
        f"seed          {seed}",
        f"executions    {run.executions}",
        f"seconds       {run.seconds:.0f}",
        f"executions/s  {rate:.0f}",
        f"corpus        {run.corpus} cases",
        f"escapes       {len(run.escapes)} kinds, {sum(run.escapes.values())} cases",
    ]
    for kind, times in sorted(run.escapes.items()):
        path = escape_path(output, kind)
        lines += [
            f"  {kind} (x{times})",
            f"    python -m fuzz --target {program.name} --replay {path}",
        ]
    passed = not run.escapes
    if files:
        percent = _percent(files)
        least = program.percent_min
        passed = passed and percent >= least
        lines.append(
            f"coverage      {percent:.1f} % of the lines of {program.covers}, bar {least:.0f} %"
        )
        lines += [
            f"  {file.name:<20} {file.percent:5.1f} %  {file.lines:4} lines"
            + (f"  not run: {_spans(file.missed)}" if file.missed else "")
            for file in files
        ]
    lines.append("passed" if passed else "FAILED")
    return "\n".join(lines) + "\n", passed
