# SPDX-License-Identifier: Apache-2.0
"""Hostile input of up to 1 MB ends within 1 s and 128 MiB of memory, whatever it is.

Each input is decoded in a process of its own, so that one which breaks the interpreter breaks
nothing else. Time is processor time on one ordinary machine, so that a busy machine fails nothing.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.codec.hostile import HOSTILE, SIZE_BYTES_MAX

_ROOT = Path(__file__).resolve().parents[5]
_CHANCES = 4
_SECONDS_MAX = 1.0
_MEBIBYTES_MAX = 128

pytestmark = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="peak memory of a part of a process can only be read on Linux",
)


def _measure(*names: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.codec.hostile", *names],
        check=False,
        capture_output=True,
        text=True,
        cwd=_ROOT,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def _exceeds(found: dict[str, Any]) -> bool:
    if "crashed" in found:
        return True
    return bool(found["seconds"] > _SECONDS_MAX or found["mebibytes"] > _MEBIBYTES_MAX)


def test_the_inputs_are_many_and_different() -> None:
    """The bar is tried with at least 25 shapes."""
    assert sum(map(len, HOSTILE.values())) >= 25


def test_hostile_input_ends_within_a_second_and_128_mebibytes() -> None:
    """Decoding a hostile input gives a value or an error within both bounds."""
    found = _measure()
    beyond = [each for each in found if _exceeds(each)]
    # A busy machine slows processors down too, so what came out too slow has further chances.
    for _ in range(_CHANCES):
        if beyond:
            names = [each["name"] for each in beyond]
            beyond = [each for each in _measure(*names) if _exceeds(each)]

    expected = [name for inputs in HOSTILE.values() for name in inputs]
    assert [each["name"] for each in found] == expected
    assert all(each["bytes"] <= SIZE_BYTES_MAX + 1000 for each in found)
    assert beyond == []
