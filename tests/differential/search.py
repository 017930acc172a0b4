# SPDX-License-Identifier: Apache-2.0
"""Histories from a seed; what is found is made as short as it goes.

A history follows from its steps, and those from a seed and a number: all that is drawn at random
(ids, salts, keys) is the same in every history. The clock is the real one, and nothing depends on
it.
"""

import hashlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

from tests.differential.edits import EDITS
from tests.differential.history import WORKERS, Difference, History, Step
from tests.differential.place import Place

__all__ = ["Search", "steps_of"]

_ACTIONS = {
    "save": 8,
    "save in a lane": 4,
    "add": 8,
    "step on": 5,
    "save again": 2,
    "resume": 5,
    "approve": 3,
    "pause": 3,
    "hide": 2,
    "prune": 2,
    "erase": 1,
    "look": 5,
    "begin anew": 1,
}
_EDITS = dict.fromkeys(EDITS, 2) | {"no body": 6, "no bodies": 4, "row gone": 3, "tail gone": 3}


class _Draws:
    """Random bytes, the same in every history, so that one can be repeated."""

    def __init__(self) -> None:
        self._drawn = 0

    def begin(self) -> None:
        """Begin with those of a history."""
        self._drawn = 1_000_000

    def __call__(self, size_bytes: int) -> bytes:
        self._drawn += 1
        return hashlib.shake_256(b"%d" % self._drawn).digest(size_bytes)


def steps_of(seed: int, number: int) -> list[Step]:
    """The steps of a history."""
    rng = random.Random(f"{seed} {number}")  # noqa: S311 - repeatable, not secret
    steps: list[Step] = []

    def draw(weights: dict[str, int]) -> Step:
        (what,) = rng.choices([*weights], [*weights.values()])
        numbers = (rng.randrange(WORKERS), int(rng.random() < 0.25))
        return Step(what, *numbers, rng.randrange(256), rng.randrange(256))

    for who in range(WORKERS):
        steps += [Step("save", who, who % 2, 1, 1), Step("look", who, 0, rng.randrange(256))]
    for _ in range(rng.randrange(3, 8)):
        steps += [draw(_ACTIONS) for _ in range(rng.randrange(1, 6))]
        steps.append(draw(_EDITS))
        if rng.random() < 0.4:
            steps.append(draw({"put back": 1}))
        if rng.random() < 0.6:
            steps.append(draw({"put all back": 1}))
    return steps


class Search:
    """A search for a difference in histories on one backend.

    Args:
        folder: Where the stores are made.
        backend: sqlite or file.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        self._backend = backend
        self._draws = _Draws()
        with patch("os.urandom", self._draws):
            self._place = Place(folder, backend)
        self.tally: Counter[str] = Counter()

    def run(
        self,
        seed: int,
        *,
        seconds: float = math.inf,
        histories: float = math.inf,
        shrink_seconds: float = 60,
        steps_of: Callable[[int, int], list[Step]] = steps_of,
    ) -> None:
        """Take histories until the time is up, or so many of them.

        Args:
            seed: What they follow from.
            seconds: How long to go on.
            histories: How many to take.
            shrink_seconds: How long to look for fewer steps that end in a difference.
            steps_of: Draws the steps of a history.

        Raises:
            Difference: One of them ended in a difference; it is told with the fewest steps that
                still do.
        """
        end, number = time.monotonic() + seconds, 0
        while number < histories and time.monotonic() < end:
            steps = steps_of(seed, number)
            try:
                self.replay(steps)
            except Difference:
                fewest, found = self._shrunk(steps, shrink_seconds)
                raise Difference(
                    f"{self._backend}, seed {seed}, history {number}: {found}\n"
                    f"repeat it with Search(folder, {self._backend!r}).replay(steps), where\n"
                    f"steps = {_listed(fewest)}"
                ) from found
            number += 1

    def replay(self, steps: Sequence[Step]) -> None:
        """Take the steps of one history.

        Raises:
            Difference: Somebody read what is not true, or refused what is.
        """
        self._draws.begin()
        self._place.empty()
        with patch("os.urandom", self._draws):
            history = History(self._place)
            self.tally["histories"] += 1
            try:
                history.run(steps)
            finally:
                self._place.close()
                self.tally += history.tally

    def _shrunk(self, steps: Sequence[Step], seconds: float) -> tuple[list[Step], Difference]:
        """The fewest steps that still end in a difference, and which, as far as the time goes."""
        end = time.monotonic() + seconds
        fewest, found = list(steps), self._difference(steps)
        if found is None:
            return fewest, Difference("it did not happen again")
        fewest = fewest[: found.steps]
        size, start = len(fewest) // 2, 0
        while size and time.monotonic() < end:
            fewer = fewest[:start] + fewest[start + size :]
            less = self._difference(fewer)
            if less is None:
                start += size
            else:
                fewest, found = fewer[: less.steps], less
            if start >= len(fewest):
                size, start = size // 2, 0
        return fewest, found

    def _difference(self, steps: Sequence[Step]) -> Difference | None:
        try:
            self.replay(steps)
        except Difference as found:
            return found
        return None


def _listed(steps: Sequence[Step]) -> str:
    return "\n".join(("[", *(f"    {step!r}," for step in steps), "]"))
