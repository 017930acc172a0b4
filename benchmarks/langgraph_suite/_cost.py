# SPDX-License-Identifier: Apache-2.0
"""What the core tests cost in processor time, on our saver beside the stock `SqliteSaver`.

Both are on SQLite files. The files of tests are run in turns, ours and the peer's, so that whatever
slows the machine down slows both. Only tests that pass on both sides count, and of the savers only
those that the fixtures give; what a fixture takes to make and close a store is told apart.
"""

import statistics
from collections import Counter
from pathlib import Path

from benchmarks.langgraph_suite._report import heads
from benchmarks.langgraph_suite._session import Outcome, Plan, run

__all__ = ["measure_cost"]

_CORE = (
    "test_interrupt_state",
    "test_pregel",
    "test_pregel_async",
    "test_subgraph_persistence",
    "test_subgraph_persistence_async",
    "test_time_travel",
    "test_time_travel_async",
)

_COLUMNS = (
    *("round", "tests that pass on both", "stock SqliteSaver, s", "ours, s", "ratio"),
    *("making and closing: stock, s", "making and closing: ours, s"),
)


def measure_cost(checkout: Path, *, rounds: int, guarded: bool) -> list[str]:
    """Run the core tests on both sides, and tell what they took.

    Returns:
        A table of Markdown, and the median ratios.
    """
    peer = Plan(saver="peer", fixtures_only=True)
    ours = Plan(saver="sealed", fixtures_only=True, guard=guarded, reason=True)
    lines = heads(_COLUMNS)
    ratios = []
    for number in range(1, rounds + 1):
        theirs_s, ours_s, common = _round(checkout, peer, ours)
        ratios.append(ours_s["call"] / theirs_s["call"])
        rest = [figures.total() - figures["call"] for figures in (theirs_s, ours_s)]
        lines.append(
            f"| {number} | {common} | {theirs_s['call']:.1f} | {ours_s['call']:.1f} "
            f"| {ratios[-1]:.2f} | {rest[0]:.1f} | {rest[1]:.1f} |"
        )
    return [*lines, "", f"processor time, user + sys: {statistics.median(ratios):.2f} x the stock"]


def _round(checkout: Path, peer: Plan, ours: Plan) -> tuple[Counter[str], Counter[str], int]:
    """Seconds by phase, the peer's and ours, and how many tests they are of."""
    sums: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    common = 0
    for name in _CORE:
        chosen = [f"tests/{name}.py"]
        sides = [_passed(run(checkout, plan, chosen=chosen)) for plan in (peer, ours)]
        both = sides[0].keys() & sides[1].keys()
        common += len(both)
        for total, side in zip(sums, sides, strict=True):
            for test in both:
                total.update(side[test].cpu_s)
    return *sums, common


def _passed(outcomes: list[Outcome]) -> dict[str, Outcome]:
    return {each.test: each for each in outcomes if each.outcome == "passed"}
