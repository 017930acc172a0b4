# SPDX-License-Identifier: Apache-2.0
"""How much is tried: in a daily run enough to notice, in `make soak` everything.

Soaking is a mark on tests, on rows of their tables and on backends; where a test draws examples
it is their number, and `make soak` says so by the variable `SEALPOINT_SOAK`.
"""

import os
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import Any

import pytest

__all__ = [
    "BACKENDS",
    "SOAKING",
    "every_pair",
    "examples",
    "in_soak",
    "in_turn",
    "leave_to_soak",
]

SOAKING = bool(os.environ.get("SEALPOINT_SOAK"))
_SHARE = 5
_EXAMPLES_MIN = 10


def examples(count: int) -> int:
    """As many examples in `make soak`, and a fifth of them in a daily run."""
    return count if SOAKING else min(count, max(count // _SHARE, _EXAMPLES_MIN))


def in_soak(value: object) -> Any:
    """A row of a table, or a parameter of a fixture, for `make soak` alone."""
    return pytest.param(value, marks=pytest.mark.soak)


def in_turn(*values: str) -> tuple[Any, ...]:
    """Parameters of which a daily run tries one for each test, and `make soak` the others."""
    return tuple(pytest.param(value, marks=pytest.mark.in_turn(value)) for value in values)


def leave_to_soak(items: Iterable[pytest.Item]) -> None:
    """Mark for `make soak` all but one of the tests that differ in parameters that take turns.

    The name of a test decides which one stays, so every run and every worker chooses the same.
    """
    groups = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if marks := list(item.iter_markers("in_turn")):
            name, _, parameters = item.nodeid.rstrip("]").partition("[")
            others = parameters.split("-")
            for mark in marks:
                others.remove(mark.args[0])
            groups["-".join((name, *others))].append(item)
    for name, group in groups.items():
        stays = zlib.crc32(name.encode()) % len(group)
        for item in (*group[:stays], *group[stays + 1 :]):
            item.add_marker("soak")


def every_pair(rows: Iterable[tuple[Hashable, ...]]) -> list[Any]:
    """A table: in a daily run so many rows that all pairs of values meet, in `make soak` all."""
    left = {row: frozenset(combinations(enumerate(row), 2)) for row in rows}
    unmet, daily = set[Any]().union(*left.values()), set()
    while unmet:
        # The first of those that bring most together: the same in every run.
        daily.add(best := max(left, key=lambda row: len(left[row] & unmet)))
        unmet -= left[best]
    return [pytest.param(*row, marks=[] if row in daily else [pytest.mark.soak]) for row in left]


BACKENDS = ("memory", in_soak("sqlite"), in_soak("file"), in_soak("postgres"))
"""For what no backend can change: conformance says that each does what memory does."""
