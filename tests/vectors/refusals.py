# SPDX-License-Identifier: Apache-2.0
"""All refused cases of a file of vectors in one test, which lists those that end otherwise."""

from collections.abc import Callable, Iterable
from typing import Any

from sealpoint.errors import SealpointError

__all__ = ["believed", "ending_otherwise"]

Case = dict[str, Any]


def ending_otherwise(cases: Iterable[Case], verify: Callable[[Case], object]) -> list[str]:
    """The cases that our verifier does not refuse with the code that they name."""
    found = []
    for case in cases:
        ended = "accepted"
        try:
            verify(case)
        except SealpointError as exc:
            ended = exc.code
        if ended != case["error"]:
            found.append(f"{case['name']}: {ended}, expected {case['error']}")
    return found


def believed(
    cases: Iterable[Case], verify: Callable[[Case], object], *faults: type[Exception]
) -> list[str]:
    """The cases that a verifier does not refuse by one of these errors."""
    found = []
    for case in cases:
        try:
            verify(case)
        except faults:
            continue
        found.append(str(case["name"]))
    return found
