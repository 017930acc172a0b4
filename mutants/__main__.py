# SPDX-License-Identifier: Apache-2.0
"""Plant faults in what decides and see whether the tests notice: `python -m mutants`.

Ends with status 1 if a mutant survives without a written reason, or a reason is stale.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mutants._baseline import Baseline, read_baseline
from mutants._planting import Key, Module, Mutant
from mutants._reasons import read_reasons
from mutants._report import Run, report
from mutants._session import Ended, started
from mutants._targets import REASONS, ROOT, SOURCE, TARGETS
from mutants._trial import FLAKY, Budget, Trial
from mutants._warm import load_everything_else

__all__ = ["main"]

_OUTPUT = ROOT / "build" / "mutants"


def _arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--only", action="append", metavar="FILE", help="such as gate/_decision.py")
    parser.add_argument(
        "--again", action="store_true", help="only what has not been noticed before"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--list", action="store_true", help="list the mutants and try none")
    parser.add_argument("--output", type=Path, metavar="DIR", default=_OUTPUT)
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status: 1 if a mutant survives without a reason, or a reason is stale.
    """
    began = time.monotonic()
    options = _arguments(given)
    output: Path = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    modules = {name: Module(SOURCE / "sealpoint" / name, name) for name in TARGETS}
    made = [mutant for module in modules.values() for mutant in module.mutants]
    chosen = [mutant for mutant in made if not options.only or mutant.file in options.only]
    last = output / "results.json"
    if options.again:
        noticed = {tuple(key) for key, (state, _) in _read(last) if state != "survived"}
        chosen = [mutant for mutant in chosen if mutant.key not in noticed]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.file} {mutant.function}: {mutant.before}  ->  {mutant.after}")
        print(len(chosen))
        return 0
    load_everything_else()
    baseline = read_baseline(output)
    ended = _tried(chosen, modules, baseline, jobs=options.jobs, output=output)
    known = {tuple(key): state for key, state in _read(last)} | ended
    last.write_text(json.dumps(list(known.items())), encoding="utf-8")
    spent = os.times()
    run = Run(
        made=made,
        ended=ended,
        flaky=(*baseline.failed, *_flaky(output)),
        seconds=time.monotonic() - began,
        machine_seconds=sum(spent[:4]),
    )
    text, passed = report(run, read_reasons(REASONS))
    print(text, end="")
    (output / "report.txt").write_text(text, encoding="utf-8")
    return 0 if passed else 1


def _flaky(output: Path) -> list[str]:
    found = sorted(output.glob(f"worker-*/{FLAKY}"))
    return [path.read_text(encoding="utf-8").strip() for path in found]


def _read(path: Path) -> list[tuple[list[object], Ended]]:
    text = path.read_text(encoding="utf-8") if path.exists() else "[]"
    found: list[tuple[list[object], Ended]] = json.loads(text)
    return found


def _tried(
    mutants: Sequence[Mutant],
    modules: dict[str, Module],
    baseline: Baseline,
    *,
    jobs: int,
    output: Path,
) -> dict[Key, Ended]:
    """Try the mutants, shared out to some processes."""
    children: dict[int, Path] = {}
    for job in range(jobs):
        folder = output / f"worker-{job}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        some = mutants[job::jobs]
        child = started(partial(_work, some, modules, baseline, folder))
        children[child] = folder
    ended: dict[Key, Ended] = {}
    for child, folder in children.items():
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise SystemExit(f"a worker failed: see {folder}")
        for line in (folder / "ended.jsonl").read_text(encoding="utf-8").splitlines():
            key, state, test = json.loads(line)
            ended[tuple(key)] = state, test
    return ended


def _work(
    mutants: Sequence[Mutant], modules: dict[str, Module], baseline: Baseline, folder: Path
) -> None:
    with (folder / "ended.jsonl").open("w", encoding="utf-8", buffering=1) as stream:

        def tell(mutant: Mutant, ended: Ended) -> None:
            stream.write(json.dumps([mutant.key, *ended]) + "\n")

        Trial(baseline, modules, Budget(), folder, tell).run(mutants)


if __name__ == "__main__":
    sys.exit(main())
