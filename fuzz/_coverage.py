# SPDX-License-Identifier: Apache-2.0
"""Which lines of the codec the cases run: a replay of the seeds and of all kept cases.

It runs in a process of its own, so that the lines of importing and of making rules count too:
`python -m fuzz._coverage OUTPUT` writes `coverage.json` there.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import coverage

__all__ = ["FileCoverage", "measure"]

_CODEC = Path(__file__).resolve().parents[1] / "src" / "sealpoint" / "codec"
_RESULT = "coverage.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCoverage:
    """One file of the codec."""

    name: str
    lines: int
    missed: tuple[int, ...]

    @property
    def percent(self) -> float:
        """How much of it was run."""
        return 100.0 * (self.lines - len(self.missed)) / self.lines if self.lines else 100.0


def measure(output: Path) -> tuple[FileCoverage, ...]:
    """Replay everything under `output`, and say what it covers."""
    subprocess.run([sys.executable, "-m", "fuzz._coverage", str(output)], check=True)  # noqa: S603
    found = json.loads((output / _RESULT).read_text(encoding="utf-8"))
    return tuple(
        FileCoverage(name=name, lines=lines, missed=tuple(missed)) for name, lines, missed in found
    )


def _replay(output: Path) -> list[tuple[str, int, list[int]]]:
    tool = coverage.Coverage(
        data_file=None, config_file=False, include=[f"{_CODEC}/*"], branch=False
    )
    tool.exclude(r"^\s*\.\.\.$")  # a Protocol's method has no body to run
    tool.start()
    # Only now: importing the package is part of what is measured.
    from fuzz._seeds import seeds  # noqa: PLC0415
    from fuzz.decode_never_executes import Escape, Target  # noqa: PLC0415

    target = Target()
    kept = sorted((output / "corpus").glob("*"))
    for data in (*seeds(target.registry), *(path.read_bytes() for path in kept)):
        try:
            target.run(data)
        except Escape:
            continue  # reported by the run that found it
    tool.stop()
    found = []
    for path in sorted(_CODEC.glob("*.py")):
        _, statements, _, missing, _ = tool.analysis2(str(path))
        found.append((path.name, len(statements), missing))
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / _RESULT).write_text(json.dumps(_replay(folder)), encoding="utf-8")
