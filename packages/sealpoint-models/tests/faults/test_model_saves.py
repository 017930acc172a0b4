# SPDX-License-Identifier: Apache-2.0
"""`kill -9` at the lines of a sealed save: the run has its newest file, whole, and goes on."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("samples", [32, pytest.param(1500, marks=pytest.mark.soak)])
def test_a_killed_save_leaves_the_old_file_or_the_new_one(tmp_path: Path, samples: int) -> None:
    """Whatever the thread knows as the newest is there, and both are seen."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.model_writer", str(tmp_path), str(samples)],
        check=True,
        capture_output=True,
        text=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(results) == samples
    for result in results:
        assert result["status"] == -signal.SIGKILL, result
        assert result["found"] in (result["expected"], result["expected"] + 1), result
        assert result["plain"] == result["found"], result
        assert result["whole"], result
        assert result["verified"], result
    assert {result["found"] - result["expected"] for result in results} == {0, 1}
