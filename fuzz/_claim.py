# SPDX-License-Identifier: Apache-2.0
"""What every fuzz program is made of: a claim, first cases to try it on, and a way to new ones."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Changer", "Claim", "Escape", "Outcome", "Parts"]


class Escape(Exception):
    """The claim does not hold for a case.

    Args:
        kind: Which part of the claim, and what happened: equal for equal faults.
        detail: What else helps to see why.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind


@dataclass(slots=True)
class Outcome:
    """What a case showed: one feature for each refusal and each pair of types that was built."""

    features: set[Any] = field(default_factory=set)
    accepted: bool = False


class Claim(Protocol):
    """A claim about any bytes."""

    def run(self, data: bytes) -> Outcome:
        """Try it on one case. MUST raise `Escape`, and nothing else, where it does not hold."""
        ...


class Changer(Protocol):
    """Makes new cases from old ones."""

    def parse(self, data: bytes) -> Any:
        """A case in the form that changes are made to. MUST NOT fail, whatever the bytes are."""
        ...

    def changed(self, parsed: Any) -> bytes:
        """A new case. MUST leave the parsed one as it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One fuzz program."""

    target: Claim
    seeds: Callable[[], Iterable[bytes]]
    """All first cases, in a fixed order."""
    changer: Callable[[random.Random], Changer]
