# SPDX-License-Identifier: Apache-2.0
"""Timing two things side by side.

Both run alternately in one process, so that whatever slows the machine down slows both; the
figure is the median of the ratios of neighbouring runs.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Result", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One measured figure against its bar."""

    question: str
    ours: str
    peer: str
    figure: float
    unit: str
    bar: float
    at_least: bool

    @property
    def met(self) -> bool:
        """Whether the bar is met."""
        return self.figure >= self.bar if self.at_least else self.figure <= self.bar


def _seconds(run: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def compare(
    ours: Callable[[], object], peer: Callable[[], object], *, calls: int, rounds: int
) -> tuple[float, float, float]:
    """Median seconds of ours, of the peer, and the median ratio peer / ours."""
    ours()
    peer()
    pairs = [(_seconds(ours, calls), _seconds(peer, calls)) for _ in range(rounds)]
    return (
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
        statistics.median(theirs / mine for mine, theirs in pairs),
    )
