# SPDX-License-Identifier: Apache-2.0
"""One process that tries cases: `python -m fuzz._worker ENGINE OUTPUT OWN SEED SECONDS`."""

import sys
from pathlib import Path

__all__ = ["main"]


def main(engine: str, output: str, own: str, seed: str, seconds: str) -> None:
    """Try cases with one engine until the time is over."""
    if engine == "atheris":
        # Before anything of the package is loaded: atheris instruments what it sees imported.
        from fuzz import _atheris  # noqa: PLC0415

        _atheris.fuzz(Path(output), Path(own), seed=int(seed), seconds=float(seconds))
        return
    from fuzz import _plain  # noqa: PLC0415
    from fuzz._session import bound_memory  # noqa: PLC0415
    from fuzz.decode_never_executes import Target  # noqa: PLC0415

    target = Target()
    bound_memory()
    _plain.fuzz(target, Path(output), Path(own), seed=int(seed), seconds=float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
