# SPDX-License-Identifier: Apache-2.0
"""Timing two things side by side.

Both run alternately in one process, so that whatever slows the machine down slows both. What a
user waits for is the figure; processor time stands beside it, since other work on the machine
hardly moves it.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Result", "Taken", "alternated", "compare", "measured", "ratio", "taken"]


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


class Taken(NamedTuple):
    """What a call took, in seconds."""

    wall: float
    processor: float
    """Of all OS threads of the process."""


def taken(call: Callable[[], object]) -> Taken:
    """Time one call."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return Taken(time.perf_counter() - wall, time.process_time() - processor)


def alternated(
    ours: Sequence[Callable[[], object]], peer: Sequence[Callable[[], object]], block: int = 1
) -> tuple[list[Taken], list[Taken]]:
    """Time both in turns, a block at a time: each runs in caches of its own, as it would alone."""
    mine: list[Taken] = []
    theirs: list[Taken] = []
    for at in range(0, max(len(ours), len(peer)), block):
        mine.extend(map(taken, ours[at : at + block]))
        theirs.extend(map(taken, peer[at : at + block]))
    return mine, theirs


def ratio(
    question: str, ours: list[Taken], peer: list[Taken], bar: float, name: str = "SqliteSaver"
) -> Result:
    """The median of ours over the peer's."""
    mine, theirs = _median(ours), _median(peer)
    processor = mine.processor / theirs.processor
    return Result(
        question=question,
        ours=_shown(mine.wall),
        peer=f"{name} {_shown(theirs.wall)}",
        figure=mine.wall / theirs.wall,
        unit=f"x the peer's time (processor time {processor:.2f})",
        bar=bar,
        at_least=False,
    )


def measured(question: str, figure: float, unit: str, bar: float) -> Result:
    """A figure that has no peer."""
    return Result(
        question=question,
        ours=f"{figure:.2f} {unit}",
        peer="the bar",
        figure=figure,
        unit=unit,
        bar=bar,
        at_least=False,
    )


def _median(each: list[Taken]) -> Taken:
    return Taken(
        statistics.median(one.wall for one in each),
        statistics.median(one.processor for one in each),
    )


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.0f} us"


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
