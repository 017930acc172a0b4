# SPDX-License-Identifier: Apache-2.0
"""Rollouts: what a resume under one costs, and a plan over as many threads as people have.

Every step of a plan runs in a process of its own, so that its peak of memory is its own, and opens
the store cold. `python -m benchmarks --rollouts` takes a quarter of an hour.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sealpoint
from benchmarks._measure import Result
from benchmarks._site import Site
from sealpoint.gate import shipped_policy

__all__ = ["Planned", "experiments", "measure", "table"]

_ROUNDS = 300
_THREADS = (1_000, 100_000)
_WORLDS = 5
_SCHEMES = ("sqlite", "file")


def _world(version: int, *more: str) -> sealpoint.World:
    """A world of twenty tools, of one version of a package; with more tools, if there are."""
    tools = [
        {"name": name, "inputSchema": {"type": "object", "properties": {"path": {}}}}
        for name in (*(f"tool-{number}" for number in range(20)), *more)
    ]
    return sealpoint.World.from_dict({"tools": tools, "runtime": {"package": f"1.0.{version}"}})


def _roll_out(site: Site, *pairs: tuple[sealpoint.World, sealpoint.World]) -> None:
    """Have changes of world accepted by two people."""
    with site.open(identity="operator") as store:
        rollout = store.rollouts.propose(pairs, reason="release 42")
    for name in ("ann", "bob"):
        site.admin().keys.create(name)
        site.admin().keys.add(name, person=name, roles=["approver"], namespaces=["*"])
        with site.open(identity=name) as store:
            store.approve(rollout.id, reason="looked at")


def _require(condition: object) -> None:
    if not condition:
        raise AssertionError("the step did not do what it is measured for")


# ---------------------------------------------------------------------- a resume


def _resumes() -> dict[str, list[float]]:
    """Fresh handles of an open store resume a thread each, in turn in one of three worlds.

    The world of the checkpoint; one of which the policy wants a record; one for which it wants two
    approvals, and there is a rollout.
    """
    worlds = {"same": _world(0), "record": _world(1), "rollout": _world(0, "shell")}
    policy = shipped_policy("strict").replace(b'runtime = "approve 2"', b'runtime = "record"')
    seconds: dict[str, list[float]] = {name: [] for name in worlds}
    with tempfile.TemporaryDirectory() as directory:
        site = Site(Path(directory), policy="strict")
        site.admin().policy.apply(policy)
        with site.open() as store:
            for thread in (f"{name}-{number}" for name in worlds for number in range(_ROUNDS)):
                for number in range(5):
                    state = {"number": number, "text": "x" * 2000}
                    store.thread(thread).save(state, world=worlds["same"])
        _roll_out(site, (worlds["same"], worlds["rollout"]))
        with site.open() as store:
            for number in range(_ROUNDS):
                for name, world in worlds.items():
                    thread = f"{name}-{number}"
                    start = time.perf_counter()
                    store.thread(thread).resume(world=world)
                    seconds[name].append(time.perf_counter() - start)
    return seconds


def experiments() -> Iterator[Result]:
    """Measure a resume, beside one between two worlds that needs no rollout."""
    seconds = _resumes()
    ours, peer = (statistics.median(seconds[name]) for name in ("rollout", "record"))
    pairs = zip(seconds["rollout"], seconds["record"], strict=True)
    yield Result(
        question="a resume under a rollout, over one in another world that needs none",
        ours=f"{ours * 1e3:.2f} ms",
        peer=f"{peer * 1e3:.2f} ms",
        figure=statistics.median(mine - theirs for mine, theirs in pairs) * 1e3,
        unit="ms",
        bar=0.2,
        at_least=False,
    )


# ---------------------------------------------------------------------- a plan


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan: over how many threads of which store, and what it took."""

    scheme: str
    threads: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def measure() -> Iterator[Planned]:
    """Plan over a few and over many threads."""
    for scheme in _SCHEMES:
        for threads in _THREADS:
            with tempfile.TemporaryDirectory() as directory:
                _step("make", scheme, threads, directory)
                yield Planned(scheme, threads, **_step("plan", scheme, threads, directory))


def table(measured: list[Planned]) -> list[str]:
    """The figures as lines of Markdown."""
    return [
        "| store | threads | worlds | plan | of it, our processor time | peak memory |",
        "|---|---|---|---|---|---|",
        *(
            f"| {each.scheme} | {each.threads:,} | {_WORLDS} | {each.seconds:,.2f} s | "
            f"{each.cpu_seconds:,.2f} s | {each.peak_bytes / 1e6:,.0f} MB |"
            for each in measured
        ),
    ]


def _step(step: str, scheme: str, threads: int, directory: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks._rollouts", step, scheme, str(threads), directory]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603
    found: dict[str, Any] = json.loads(output)
    return found


def _make(store: sealpoint.Store, threads: int) -> None:
    worlds = [_world(version) for version in range(_WORLDS)]
    for number in range(threads):
        store.thread(f"run-{number}").save({"number": number}, world=worlds[number % _WORLDS])


def _plan(store: sealpoint.Store, threads: int) -> None:
    plan = store.rollouts.plan(_world(_WORLDS, "shell"))
    _require([each.threads for each in plan.worlds] == [threads // _WORLDS] * _WORLDS)
    _require(plan.threads == threads)


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=["make", "plan"])
    parser.add_argument("scheme")
    parser.add_argument("threads", type=int)
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    site = Site(arguments.directory, scheme=arguments.scheme, policy="strict")
    start, cpu_start = time.perf_counter(), time.process_time()
    with site.open() as store:
        {"make": _make, "plan": _plan}[arguments.step](store, arguments.threads)
    figures = {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    _main()
