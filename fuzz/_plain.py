# SPDX-License-Identifier: Apache-2.0
"""The engine without dependencies: a seeded loop that keeps every case that shows something new.

New is an error with a message not met before (numbers and names aside), or an object of some type
inside an object of some other type.
"""

import random
from operator import itemgetter
from pathlib import Path
from typing import Any

from fuzz._claim import Changer, Outcome, Parts
from fuzz._session import Progress, Session

__all__ = ["Corpus", "fuzz"]

_RECENT = 200
_BATCH = 100


class Corpus:
    """Cases worth changing, parsed: those that gave a value, and those that were refused."""

    def __init__(self, changer: Changer, rng: random.Random) -> None:
        self._changer = changer
        self._rng = rng
        self._accepted: list[tuple[int, Any]] = []
        self._refused: list[tuple[int, Any]] = []

    def add(self, data: bytes, outcome: Outcome) -> None:
        """Take a case in."""
        entries = self._accepted if outcome.accepted else self._refused
        entries.append((len(data), self._changer.parse(data)))

    def changed(self) -> bytes:
        """A new case from an old one: one that gave a value, a recent and a small one preferred."""
        rng = self._rng
        entries = self._accepted if rng.random() < 0.7 else self._refused
        start = max(len(entries) - _RECENT, 0) if rng.random() < 0.3 else 0
        places = [rng.randrange(start, len(entries)) for _ in range(2)]
        _, parsed = min((entries[place] for place in places), key=itemgetter(0))
        return self._changer.changed(parsed)


def fuzz(parts: Parts, output: Path, own: Path, *, seed: int, seconds: float) -> Progress:
    """Try the first cases, and then changed ones until the time is over: a batch at least.

    Without any time, the first cases are all.
    """
    rng = random.Random(seed)
    corpus = Corpus(parts.changer(rng), rng)
    session = Session(parts.target, output, own, corpus.add)
    for data in parts.seeds():
        session.run(data)
    is_over = not seconds
    while not is_over:
        for _ in range(_BATCH):
            session.run(corpus.changed())
        is_over = session.seconds >= seconds
    session.write_progress()
    return session.progress
