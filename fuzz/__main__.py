# SPDX-License-Identifier: Apache-2.0
"""Fuzz the decoder, or a reader of model files or pickles: `python -m fuzz --seconds 60`.

With `--replay` it tries one case.

Ends with status 1 if the claim did not hold for some case, or if the cases leave more of the code
unrun than they should.
"""

import argparse
import secrets
import sys
import traceback
from pathlib import Path

from fuzz._claim import Escape
from fuzz._coverage import measure
from fuzz._programs import PROGRAMS, parts_of
from fuzz._report import report
from fuzz._supervise import supervise

__all__ = ["main"]

_OUTPUT = Path(__file__).resolve().parents[1] / "build" / "fuzz"


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--target", choices=tuple(PROGRAMS), default="decode")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to try cases")
    parser.add_argument("--seed", type=int, help="where random choices start; drawn if absent")
    parser.add_argument("--engine", choices=("plain", "atheris"), default="plain")
    parser.add_argument("--workers", type=int, default=1, help="processes at once")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report there too")
    parser.add_argument("--output", type=Path, metavar="DIR", help="default: build/fuzz")
    parser.add_argument("--no-coverage", action="store_true", help="do not measure coverage")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="try the case in a file")
    return parser.parse_args(given)


def _replay(name: str, path: Path) -> int:
    try:
        outcome = parts_of(name).target.run(path.read_bytes())
    except Escape as exc:
        print(f"escape: {exc}")
        if exc.__cause__ is not None:
            traceback.print_exception(exc.__cause__)
        return 1
    print("accepted" if outcome.accepted else "refused")
    for feature in sorted(map(str, outcome.features)):
        print(f"  {feature}")
    return 0


def main(given: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 1 if there was an escape or too little coverage.
    """
    options = _arguments(given)
    if options.replay is not None:
        return _replay(options.target, options.replay)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    program = PROGRAMS[options.target]
    output = (options.output or _OUTPUT / program.name).resolve()
    run = supervise(
        engine=options.engine,
        output=output,
        seed=seed,
        seconds=options.seconds,
        workers=options.workers,
        program=program.name,
    )
    measured = () if options.no_coverage else measure(program, output)
    text, passed = report(
        run, measured, engine=options.engine, seed=seed, output=output, program=program
    )
    print(text, end="")
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(text, encoding="utf-8")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
