# SPDX-License-Identifier: Apache-2.0
"""A fuzz program in a process of its own, from one seed, so that each run tries the same cases."""

import re
import subprocess
import sys
from pathlib import Path

__all__ = ["SEED", "cases_tried", "covered_percent", "require_no_escape"]

SEED = 20_240_229
_ROOT = Path(__file__).resolve().parents[2]


def require_no_escape(target: str, seconds: int, output: Path, *options: str) -> str:
    """Fuzz for so long, require that it passes without an escape, and return what it printed."""
    command = [sys.executable, "-m", "fuzz", "--target", target, "--seconds", f"{seconds}"]
    ended = subprocess.run(
        [*command, "--seed", f"{SEED}", "--output", str(output), *options],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "escapes       0 kinds" in ended.stdout
    return ended.stdout


def cases_tried(printed: str) -> int:
    """How many cases a run has tried, as it printed."""
    tried = re.search(r"^executions +(\d+)$", printed, re.MULTILINE)
    assert tried is not None
    return int(tried[1])


def covered_percent(printed: str) -> float:
    """How many lines the cases of a run have run, as it printed."""
    covered = re.search(r"^coverage +([\d.]+) %", printed, re.MULTILINE)
    assert covered is not None
    return float(covered[1])
