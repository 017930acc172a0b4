# SPDX-License-Identifier: Apache-2.0
"""The fuzzer for an hour; only in `make soak`."""

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.parametrize("target", ["decode", "models", "pickles"])
def test_an_hour_of_fuzzing_finds_no_escape(target: str) -> None:
    """The claim of a fuzz target holds for an hour, and the run covers what it is about."""
    command = [sys.executable, "-m", "fuzz", "--target", target]
    done = subprocess.run(
        [*command, "--seconds", "3600", "--workers", "2"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
