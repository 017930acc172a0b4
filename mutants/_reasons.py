# SPDX-License-Identifier: Apache-2.0
"""The written reasons: why a mutant may survive. One that names no mutant any more is stale."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutants._planting import Key

__all__ = ["Reasons", "read_reasons", "stale"]

Reasons = Mapping[Key, str]

_WORDS_MIN = 4


def read_reasons(path: Path) -> Reasons:
    """Read the file of reasons.

    Raises:
        ValueError: An entry lacks something, says nothing, or is there twice.
    """
    found: dict[Key, str] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []):
        reason = entry["reason"]
        places = entry.get("changes") or [{**entry}]
        for place in places:
            key = (
                entry["file"],
                entry["function"],
                place["before"],
                place["after"],
                place.get("nth", 1),
            )
            if len(reason.split()) < _WORDS_MIN or key in found:
                raise ValueError(f"reasons: expected one reason, in words, for {key}")
            found[key] = reason
    return found


def stale(reasons: Reasons, made: Iterable[Key], noticed: Iterable[Key]) -> list[Key]:
    """The reasons that no survivor needs: there is no such mutant, or a test notices it."""
    known, needless = frozenset(made), frozenset(noticed)
    return [key for key in reasons if key not in known or key in needless]
