# SPDX-License-Identifier: Apache-2.0
"""Large values inside a state: how fast, in how much memory, and what a small change costs.

Each gigabyte is saved and loaded by a process of its own, so that its peak of memory is its own.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from benchmarks._measure import Result, Taken, measured, taken
from benchmarks._site import Site, new_site

__all__ = ["SIZES", "experiments", "payloads"]

_GIGABYTE = 1_000_000_000
_CHANGED_BYTES = 100_000_000
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
_ROUNDS = 3


def _payload(size: int, seed: int) -> bytearray:
    """Bytes that nothing can be left out of."""
    source = random.Random(seed)
    found = bytearray(size)
    for start in range(0, size, 10_000_000):
        end = min(start + 10_000_000, size)
        found[start:end] = source.randbytes(end - start)
    return found


@cache
def payloads() -> dict[int, tuple[float, float]]:
    """Median seconds of a save of so many bytes, and of the next one with one byte changed."""
    found = {}
    for size in SIZES:
        with new_site() as site, site.open() as store:
            thread = store.thread("large")
            whole: list[Taken] = []
            changed: list[Taken] = []
            for number in range(_ROUNDS):
                payload = _payload(size, number)
                whole.append(taken(lambda: thread.save({"payload": payload})))  # noqa: B023
                payload[size // 2] ^= 1
                changed.append(taken(lambda: thread.save({"payload": payload})))  # noqa: B023
        found[size] = (
            statistics.median(each.wall for each in whole),
            statistics.median(each.wall for each in changed),
        )
    return found


def _gigabyte(scheme: str) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as directory:
        for step in ("save", "load"):
            command = [sys.executable, "-m", "benchmarks._large", scheme, step, directory]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603
            figures = json.loads(done.stdout)
            rate = _GIGABYTE / figures["seconds"] / 1e6
            if step == "save":
                yield Result(
                    question=f"{step} 1 GB in a state, on {scheme}",
                    ours=f"{figures['seconds']:.2f} s, {figures['processor']:.2f} s of processor",
                    peer="the bar",
                    figure=rate,
                    unit="MB a second",
                    bar=150,
                    at_least=True,
                )
            question = f"peak memory to {step} it, beside its size"
            yield measured(question, figures["peak_bytes"] / _GIGABYTE, "x", 1.2)


def experiments() -> Iterator[Result]:
    """Measure one after the other."""
    yield from _gigabyte("sqlite")
    yield from _gigabyte("file")
    question = f"save {_CHANGED_BYTES // 1_000_000} MB with one byte changed"
    yield measured(question, payloads()[_CHANGED_BYTES][1], "s", 0.15)


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scheme")
    parser.add_argument("step", choices=["save", "load"])
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    site = Site(arguments.directory, scheme=arguments.scheme)
    payload = _payload(_GIGABYTE, 1) if arguments.step == "save" else bytearray()
    with site.open() as store:
        thread = store.thread("large")
        if arguments.step == "save":
            took = taken(lambda: thread.save({"payload": payload}))
        else:
            took = taken(thread.load)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    figures = {"seconds": took.wall, "processor": took.processor, "peak_bytes": peak_bytes}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    _main()
