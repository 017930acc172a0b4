# SPDX-License-Identifier: Apache-2.0
"""Processor time in the seconds of one ordinary machine, so that a slow one fails no test.

What is bounded is work. A machine that others use too may take half as long again for the same
work, also in processor time; so a fixed piece of work is timed beside what is measured, and the
measured time is divided by how much slower that piece ran than on the machine the bounds were set
on. A fast machine gets no rebate.
"""

import time
from types import TracebackType
from typing import Self

__all__ = ["CpuTime"]

_ORDINARY_S = 0.011
_TRIES = 3
_SHORT_S = 0.2
"""What is within all bounds anyway is not worth a second measurement."""


class CpuTime:
    """Measures a block: `with CpuTime() as cpu_time: ...`, then `cpu_time.seconds`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._start = 0.0

    def __enter__(self) -> Self:
        self._start = time.process_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        spent = time.process_time() - self._start
        self.seconds = spent if spent < _SHORT_S else spent / _slowness()


def _slowness() -> float:
    return max(1.0, min(_work_s() for _ in range(_TRIES)) / _ORDINARY_S)


def _work_s() -> float:
    """The time of a fixed piece of work like a decoder's: small objects, tables and text."""
    start = time.process_time()
    table = {(number, str(number)): [number, {number}] for number in range(20_000)}
    sorted(table, key=lambda key: key[1])
    return time.process_time() - start
