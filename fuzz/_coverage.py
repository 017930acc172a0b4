# SPDX-License-Identifier: Apache-2.0
"""Which lines of the package the cases run: a replay of the seeds and of all kept cases.

It runs in a process of its own, so that the lines of importing and of making rules count too:
`python -m fuzz._coverage PROGRAM OUTPUT` writes `coverage.json` there.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import coverage

from fuzz._claim import Escape
from fuzz._programs import PROGRAMS, Program, parts_of

__all__ = ["FileCoverage", "measure"]

_RESULT = "coverage.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCoverage:
    """One file of the package."""

    name: str
    lines: int
    missed: tuple[int, ...]

    @property
    def percent(self) -> float:
        """How much of it was run."""
        return 100.0 * (self.lines - len(self.missed)) / self.lines if self.lines else 100.0


def measure(program: Program, output: Path) -> tuple[FileCoverage, ...]:
    """Replay everything under `output`, and say what it covers."""
    command = [sys.executable, "-m", "fuzz._coverage", program.name, str(output)]
    subprocess.run(command, check=True)  # noqa: S603
    found = json.loads((output / _RESULT).read_text(encoding="utf-8"))
    return tuple(
        FileCoverage(name=name, lines=lines, missed=tuple(missed)) for name, lines, missed in found
    )


def _replay(program: Program, output: Path) -> list[tuple[str, int, list[int]]]:
    tool = coverage.Coverage(
        data_file=None, config_file=False, include=list(map(str, program.files)), branch=False
    )
    tool.exclude(r"^\s*\.\.\.$")  # a Protocol's method has no body to run
    tool.start()
    parts = parts_of(program.name)  # only now: importing the package is part of what is measured
    kept = sorted((output / "corpus").glob("*"))
    for data in (*parts.seeds(), *(path.read_bytes() for path in kept)):
        try:
            parts.target.run(data)
        except Escape:
            continue  # reported by the run that found it
    tool.stop()
    found = []
    for path in program.files:
        _, statements, _, missing, _ = tool.analysis2(str(path))
        found.append((path.name, len(statements), missing))
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    lines_run = _replay(PROGRAMS[sys.argv[1]], folder)
    (folder / _RESULT).write_text(json.dumps(lines_run), encoding="utf-8")
