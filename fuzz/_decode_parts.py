# SPDX-License-Identifier: Apache-2.0
"""The program `decode`: any bytes for the codec."""

import random
from typing import Any

from fuzz._claim import Parts
from fuzz._mutate import Mutator
from fuzz._seeds import known_labels, seeds
from fuzz._tokens import Token, parse
from fuzz.decode_never_executes import IS_TREE, Case, Target

__all__ = ["CaseChanger", "decode_parts"]

_Parsed = tuple[int, list[tuple[bytes, Token]]]


class CaseChanger:
    """Changes cases as tokens.

    Args:
        rng: Where all choices come from.
        registry: Whose types are put into values.
    """

    def __init__(self, rng: random.Random, registry: Any) -> None:
        self._mutator = Mutator(rng, known_labels(registry))

    def parse(self, data: bytes) -> _Parsed:
        """The selector of a case, and the tokens of each of its blobs."""
        case = Case.parse(data)
        blobs = case.blobs if case.selector & IS_TREE else ((b"", case.data),)
        roots = [(name, parse(blob)) for name, blob in blobs]
        for _, root in roots:
            self._mutator.learn(root)
        return case.selector, roots

    def changed(self, parsed: _Parsed) -> bytes:
        """A new case."""
        return bytes(self._mutator.changed(*parsed))


def decode_parts(target: Target | None = None) -> Parts:
    """The parts of the program, over a claim with a planted fault if there is one."""
    target = target or Target()
    return Parts(
        target=target,
        seeds=lambda: seeds(target.registry),
        changer=lambda rng: CaseChanger(rng, target.registry),
    )
