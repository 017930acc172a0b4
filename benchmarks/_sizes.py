# SPDX-License-Identifier: Apache-2.0
"""Stores as large as people's get: time, memory and disk of every operation.

Each step runs in a process of its own, so that its peak of memory is its own, and opens the store
cold. `python -m benchmarks --sizes` takes half an hour and 45 GB of disk.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sealpoint
from benchmarks._site import Site

__all__ = ["Measured", "measure", "table"]

_MANY_THREADS = 100_000
_LONG_ENTRIES = 50_000
_GIGABYTE = 1_000_000_000
_PART_BYTES = 250_000_000
_PARTS = 80
_PARTS_KEPT = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """One step: what it did and what it took."""

    scenario: str
    step: str
    seconds: float
    peak_bytes: int
    disk_bytes: int


def _require(condition: object) -> None:
    if not condition:
        raise AssertionError("the step did not do what it is measured for")


def _make_many(store: sealpoint.Store) -> None:
    for number in range(_MANY_THREADS):
        store.thread(f"thread-{number}").save({"number": number})


def _list_many(store: sealpoint.Store) -> None:
    names = store.threads()
    _require(len(names) == _MANY_THREADS and names.complete)


def _load_one(store: sealpoint.Store) -> None:
    _require(store.thread("thread-777").load().state == {"number": 777})


def _save_one(store: sealpoint.Store) -> None:
    store.thread("thread-777").save({"number": 777})


def _collect(store: sealpoint.Store) -> None:
    _require(not store.gc(compact=False).failures)


def _make_long(store: sealpoint.Store) -> None:
    thread = store.thread("long")
    for number in range(_LONG_ENTRIES - 2):
        thread.save({"number": number, "text": "x" * 3000})


def _load_long(store: sealpoint.Store) -> None:
    _require(store.thread("long").load().state["number"] == _LONG_ENTRIES - 3)


def _walk_long(store: sealpoint.Store) -> None:
    _require(sum(1 for _ in store.thread("long").history()) == _LONG_ENTRIES - 2)


def _prune_long(store: sealpoint.Store) -> None:
    _require(len(store.thread("long").prune(keep_last=1000).pruned) == _LONG_ENTRIES - 1002)


def _save_gigabyte(store: sealpoint.Store) -> None:
    store.thread("big").save({"payload": os.urandom(_GIGABYTE)})


def _load_gigabyte(store: sealpoint.Store) -> None:
    _require(len(store.thread("big").load().state["payload"]) == _GIGABYTE)


def _save_parts(store: sealpoint.Store) -> None:
    thread = store.thread("parts")
    for _ in range(_PARTS):
        thread.save({"payload": os.urandom(_PART_BYTES)})


def _prune_parts(store: sealpoint.Store) -> None:
    thread = store.thread("parts")
    _require(len(thread.prune(keep_last=_PARTS_KEPT).pruned) == _PARTS - _PARTS_KEPT)


def _load_part(store: sealpoint.Store) -> None:
    _require(len(store.thread("parts").load().state["payload"]) == _PART_BYTES)


def _verify(store: sealpoint.Store) -> None:
    _require(store.verify().ok)


_SCENARIOS: dict[str, dict[str, Callable[[sealpoint.Store], None]]] = {
    f"{_MANY_THREADS:,} threads": {
        "make them, one save each": _make_many,
        "list them, provably complete": _list_many,
        "load one": _load_one,
        "save to one": _save_one,
        "verify all": _verify,
        "look for garbage in all": _collect,
    },
    f"a thread of {_LONG_ENTRIES:,} entries": {
        "save them all": _make_long,
        "load the newest": _load_long,
        "walk its history": _walk_long,
        "verify it": _verify,
        "prune it to the last 1,000": _prune_long,
        "verify what is left": _verify,
    },
    "a payload of 1 GB": {
        "save it": _save_gigabyte,
        "load it": _load_gigabyte,
        "verify it": _verify,
    },
    "20 GB of payload": {
        f"save {_PARTS} states of 250 MB": _save_parts,
        f"prune to the last {_PARTS_KEPT}": _prune_parts,
        "load the newest": _load_part,
        "verify what is left": _verify,
    },
}


def measure() -> Iterator[Measured]:
    """Take every step of every scenario, each in a process of its own."""
    for scenario, steps in _SCENARIOS.items():
        with tempfile.TemporaryDirectory() as directory:
            for step in steps:
                command = [sys.executable, "-m", "benchmarks._sizes", scenario, step, directory]
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603
                yield Measured(scenario, step, **json.loads(output))


def table(measured: list[Measured]) -> list[str]:
    """The figures as lines of Markdown."""
    return [
        "| store | step | time | peak memory | on disk after |",
        "|---|---|---|---|---|",
        *(
            f"| {each.scenario} | {each.step} | {each.seconds:,.2f} s | "
            f"{each.peak_bytes / 1e6:,.0f} MB | {each.disk_bytes / 1e6:,.1f} MB |"
            for each in measured
        ),
    ]


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario")
    parser.add_argument("step")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    site = Site(arguments.directory)
    start = time.perf_counter()
    with site.open() as store:
        _SCENARIOS[arguments.scenario][arguments.step](store)
    seconds = time.perf_counter() - start
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    figures = {"seconds": seconds, "peak_bytes": peak_bytes, "disk_bytes": site.disk_bytes()}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    _main()
