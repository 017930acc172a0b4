# SPDX-License-Identifier: Apache-2.0
"""The tables: what was run, how it went, and why what failed did."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.langgraph_suite._session import Outcome

__all__ = ["PEER", "UPSTREAM", "Row", "failing_lines", "heads", "table"]

UPSTREAM = "fails with the stock saver too"
PEER = "fails with the stock SqliteSaver too"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run of the whole suite."""

    mode: str
    policy: str
    outcomes: Sequence[Outcome]
    unsteady: frozenset[str] = frozenset()
    """Tests that failed, and passed when they were run again alone."""
    upstream: frozenset[str] = frozenset()
    """Tests that fail with the stock saver."""
    peer: frozenset[str] = frozenset()
    """Tests that fail with the framework's other saver, and here not by an error of ours: they look
    into the one that they were written for."""

    @property
    def failed(self) -> list[Outcome]:
        """What failed twice."""
        return [
            each
            for each in self.outcomes
            if each.outcome == "failed" and each.test not in self.unsteady
        ]

    @property
    def causes(self) -> Counter[str]:
        """How many tests failed for what."""
        return Counter(self.cause(each) for each in self.failed)

    def cause(self, outcome: Outcome) -> str:
        """Why a test failed."""
        if outcome.test in self.upstream:
            return UPSTREAM
        return PEER if outcome.test in self.peer else outcome.cause or "unknown"

    def count(self, outcome: str) -> int:
        """How many tests ended like that."""
        if outcome == "failed":
            return len(self.failed)
        more = len(self.unsteady) if outcome == "passed" else 0
        return more + sum(each.outcome == outcome for each in self.outcomes)

    @property
    def types(self) -> int:
        """How many types of tests were allowed because a value of them was saved."""
        return len({name for each in self.outcomes for name in each.types})


_COLUMNS = (
    *("mode", "policy", "tests", "with our saver", "guarded", "types added", "passed", "skipped"),
    *("failed", "unsteady", "failed for"),
)


def heads(columns: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def table(rows: Sequence[Row]) -> list[str]:
    """The runs as lines of Markdown."""
    return [*heads(_COLUMNS), *map(_line, rows)]


def _line(row: Row) -> str:
    ours = 0 if row.mode.startswith("stock") else sum(each.savers > 0 for each in row.outcomes)
    guarded = sum(each.guards > 0 for each in row.outcomes)
    causes = "; ".join(f"{count} {cause}" for cause, count in row.causes.most_common())
    figures = (
        *(len(row.outcomes), ours, guarded, row.types),
        *(row.count("passed"), row.count("skipped"), row.count("failed"), len(row.unsteady)),
    )
    cells = (row.mode, row.policy, *(f"{figure:,}" for figure in figures), causes)
    return f"| {' | '.join(cells)} |"


def failing_lines(row: Row) -> list[str]:
    """Each failing test on a line, by cause."""
    found = sorted(row.failed, key=lambda each: (row.cause(each), each.test))
    return [
        *(f"{row.cause(each)}: {each.test}: {each.line}" for each in found),
        *(f"unsteady: {test}: failed once, passed alone" for test in sorted(row.unsteady)),
    ]
