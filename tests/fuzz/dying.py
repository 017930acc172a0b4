# SPDX-License-Identifier: Apache-2.0
"""A process that tries cases and dies of one, as of a crash in native code."""

import os
import signal
import sys
from pathlib import Path

from fuzz._claim import Outcome
from fuzz._session import Session

FATAL = b"fatal"


class _Dying:
    """A claim that ends its process where the bytes hold the fatal word."""

    def run(self, data: bytes) -> Outcome:
        """Try a case, or die of it."""
        if FATAL in data:
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome()


if __name__ == "__main__":
    *_, output_folder, own_folder, _seed, _seconds = sys.argv
    session = Session(_Dying(), Path(output_folder), Path(own_folder))
    for case in (b"harmless", b"then " + FATAL):
        session.run(case)
