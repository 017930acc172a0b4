# SPDX-License-Identifier: Apache-2.0
"""The gate beside a verified load of the same thread, and a desk full of requests."""

import statistics
import time
from collections.abc import Iterator

import sealpoint
from benchmarks._measure import Result, measured
from benchmarks._site import new_site
from sealpoint.errors import NeedsApproval

__all__ = ["experiments"]

_ROUNDS = 200
_REQUESTS = 10_000
_WORLD = {
    "tools": [
        {"name": f"tool-{number}", "inputSchema": {"type": "object", "properties": {"path": {}}}}
        for number in range(20)
    ]
}


def _resume_over_load() -> Result:
    """Ordinary continuations: fresh handles of open stores load, or resume, a thread each."""
    with new_site(policy="solo") as site:
        names = [f"run-{number}" for number in range(_ROUNDS)]
        world = sealpoint.World.of(_WORLD)
        with site.open() as store:
            for thread in names:
                for number in range(5):
                    store.thread(thread).save({"number": number, "text": "x" * 2000}, world=world)
        loads, resumes = [], []
        with site.open() as reading, site.open() as going_on:
            if going_on.policy is None:
                raise AssertionError("a policy was to be in force")
            for thread in names:
                start = time.perf_counter()
                reading.thread(thread).load()
                loads.append(time.perf_counter() - start)
                start = time.perf_counter()
                going_on.thread(thread).resume(world=world)
                resumes.append(time.perf_counter() - start)
    load, resume = statistics.median(loads), statistics.median(resumes)
    return Result(
        question="a resume through the gate, over a verified load",
        ours=f"{resume * 1e3:.2f} ms",
        peer=f"{load * 1e3:.2f} ms",
        figure=(resume - load) * 1e3,
        unit="ms",
        bar=1.0,
        at_least=False,
    )


def _desk() -> Iterator[Result]:
    """Ten thousand threads, each with an open request, all verified."""
    with new_site(policy="strict") as site:
        with site.open() as store:
            for number in range(_REQUESTS):
                thread = store.thread(f"run-{number}")
                thread.save({"number": number}, question="go on?")
                try:
                    thread.resume(world=None, answer=True)
                except NeedsApproval:
                    continue
                raise AssertionError("the resume was to need approval")
        with site.open() as store:
            for how, bar in (("cold", 4.0), ("warm", 1.0)):
                start = time.perf_counter()
                found = store.requests()
                seconds = time.perf_counter() - start
                if len(found.requests) != _REQUESTS or found.failures:
                    raise AssertionError("the desk was to show them all")
                question = f"{_REQUESTS:,} open requests listed, all verified, {how}"
                yield measured(question, seconds, "s", bar)


def experiments() -> Iterator[Result]:
    """Measure both."""
    yield _resume_over_load()
    yield from _desk()
