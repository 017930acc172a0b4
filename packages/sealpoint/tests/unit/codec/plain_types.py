# SPDX-License-Identifier: Apache-2.0
"""A module of plain classes that no rule allows, for errors that name them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Plan:
    """A plan of steps."""

    steps: list[Any] = field(default_factory=list)


@dataclass
class HTTPStep:
    """A step, named the way that makes its rule's name hard to guess."""

    url: str = ""


class Handle:
    """A class that needs a pair of functions."""


class Outer:
    """A class around another."""

    @dataclass
    class Inner:
        """A class inside another."""

        x: int = 0
