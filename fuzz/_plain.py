# SPDX-License-Identifier: Apache-2.0
"""The engine without dependencies: a seeded loop that keeps every case that shows something new.

New is an error with a message not met before (numbers and names aside), or an object of some type
inside an object of some other type.
"""

import random
from operator import itemgetter
from pathlib import Path

from fuzz._mutate import Mutator
from fuzz._seeds import known_labels, seeds
from fuzz._session import Progress, Session
from fuzz._tokens import Token, parse
from fuzz.decode_never_executes import IS_TREE, Case, Outcome, Target

__all__ = ["Corpus", "fuzz"]

_RECENT = 200
_BATCH = 100


_Entry = tuple[int, int, list[tuple[bytes, Token]]]


class Corpus:
    """Cases worth changing, as tokens: those that gave a value, and those that were refused."""

    def __init__(self, mutator: Mutator, rng: random.Random) -> None:
        self._mutator = mutator
        self._rng = rng
        self._accepted: list[_Entry] = []
        self._refused: list[_Entry] = []

    def add(self, data: bytes, outcome: Outcome) -> None:
        """Take a case in."""
        case = Case.parse(data)
        blobs = case.blobs if case.selector & IS_TREE else ((b"", case.data),)
        roots = [(name, parse(blob)) for name, blob in blobs]
        for _, root in roots:
            self._mutator.learn(root)
        entries = self._accepted if outcome.accepted else self._refused
        entries.append((len(data), case.selector, roots))

    def changed(self) -> bytes:
        """A new case from an old one: one that gave a value, a recent and a small one preferred."""
        rng = self._rng
        entries = self._accepted if rng.random() < 0.7 else self._refused
        start = max(len(entries) - _RECENT, 0) if rng.random() < 0.3 else 0
        places = [rng.randrange(start, len(entries)) for _ in range(2)]
        _, selector, roots = min((entries[place] for place in places), key=itemgetter(0))
        return bytes(self._mutator.changed(selector, roots))


def fuzz(target: Target, output: Path, own: Path, *, seed: int, seconds: float) -> Progress:
    """Try cases until the time is over."""
    rng = random.Random(seed)
    corpus = Corpus(Mutator(rng, known_labels(target.registry)), rng)
    session = Session(target, output, own, corpus.add)
    for data in seeds(target.registry):
        session.run(data)
    while session.seconds < seconds:
        for _ in range(_BATCH):
            session.run(corpus.changed())
    session.write_progress()
    return session.progress
