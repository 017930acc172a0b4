# SPDX-License-Identifier: Apache-2.0
"""How much is tried: in a daily run enough to notice, in `make soak` everything.

Soaking is a mark on tests, on rows of their tables and on backends; where a test draws examples
it is their number, and `make soak` says so by the variable `SEALPOINT_SOAK`.
"""

import os
from typing import Any

import pytest

__all__ = ["BACKENDS", "SOAKING", "examples", "in_soak"]

SOAKING = bool(os.environ.get("SEALPOINT_SOAK"))
_SHARE = 5
_EXAMPLES_MIN = 10


def examples(count: int) -> int:
    """As many examples in `make soak`, and a fifth of them in a daily run."""
    return count if SOAKING else min(count, max(count // _SHARE, _EXAMPLES_MIN))


def in_soak(value: object) -> Any:
    """A row of a table, or a parameter of a fixture, for `make soak` alone."""
    return pytest.param(value, marks=pytest.mark.soak)


BACKENDS = ("memory", in_soak("sqlite"), in_soak("file"), in_soak("postgres"))
"""For what no backend can change: conformance says that each does what memory does."""
