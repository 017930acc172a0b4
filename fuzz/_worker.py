# SPDX-License-Identifier: Apache-2.0
"""One process that tries cases: `python -m fuzz._worker ENGINE PROGRAM OUTPUT OWN SEED SECONDS`."""

import sys
from pathlib import Path

from fuzz._programs import PROGRAMS, parts_of

__all__ = ["main"]


def main(given: list[str]) -> None:
    """Try cases with one engine until the time is over."""
    engine, program, output, own, seed, seconds = given
    folders = Path(output), Path(own)
    if engine == "atheris":
        # Before anything of the package is loaded: atheris instruments what it sees imported.
        from fuzz import _atheris  # noqa: PLC0415

        _atheris.fuzz(PROGRAMS[program], *folders, seed=int(seed), seconds=float(seconds))
        return
    from fuzz import _plain  # noqa: PLC0415
    from fuzz._session import bound_memory  # noqa: PLC0415

    parts = parts_of(program)
    bound_memory()
    _plain.fuzz(parts, *folders, seed=int(seed), seconds=float(seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
