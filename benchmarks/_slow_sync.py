# SPDX-License-Identifier: Apache-2.0
"""A disk whose sync takes 2 ms, as many do: the waits are put below both sides, by preloading.

The measurement is a process of its own. Without a C compiler there is none, and it is said so.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks import _langgraph, _store
from benchmarks._measure import Result, ratio

__all__ = ["experiments"]

_SOURCE = Path(__file__).parent / "slow_sync.c"
_TURNS = 16


def experiments() -> Iterator[Result]:
    """Measure in a process with slow syncs."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        sys.stdout.write("a sync of 2 ms: not measured, there is no C compiler or no Linux\n")
        return
    with tempfile.TemporaryDirectory() as name:
        library = Path(name) / "slow_sync.so"
        build = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
        subprocess.run(build, check=True)  # noqa: S603
        surroundings = {**os.environ, "LD_PRELOAD": str(library), "SLOW_SYNC_US": "2000"}
        command = [sys.executable, "-m", "benchmarks._slow_sync"]
        done = subprocess.run(command, check=True, env=surroundings, stdout=subprocess.PIPE)  # noqa: S603
    for each in json.loads(done.stdout):
        yield Result(**each)


def _measured() -> Iterator[Result]:
    what = "with a sync of 2 ms: "
    yield _store.small_save(f"{what}save a small state", 200, 0.65)
    ours, peer, *_ = _langgraph.chat_of(_TURNS)
    yield ratio(f"{what}a turn of a LangGraph chat, around turn 10", ours[5:], peer[5:], 0.9)


if __name__ == "__main__":
    sys.stdout.write(json.dumps([asdict(each) for each in _measured()]))
