# SPDX-License-Identifier: Apache-2.0
"""What a run has found, in words: a table of files, then every survivor without a reason."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mutants._planting import Key, Mutant
from mutants._reasons import Reasons, stale
from mutants._session import Ended

__all__ = ["Run", "report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that was tried."""

    made: Sequence[Mutant]
    """Every mutant that there is."""
    ended: Mapping[Key, Ended]
    """What became of those that were tried."""
    flaky: Sequence[str]
    """Tests that fail without a fault: what they noticed is worth nothing."""
    seconds: float
    """On the clock."""
    machine_seconds: float
    """Of all processors together."""


def report(run: Run, reasons: Reasons) -> tuple[str, bool]:
    """Say it, and whether every survivor has its reason and every reason its survivor."""
    tried = [mutant for mutant in run.made if mutant.key in run.ended]
    open_ones = [
        mutant
        for mutant in tried
        if run.ended[mutant.key][0] == "survived" and mutant.key not in reasons
    ]
    # That one took too long may be the machine's doing.
    noticed = [key for key, (state, _) in run.ended.items() if state == "killed"]
    old = stale(reasons, (mutant.key for mutant in run.made), noticed)
    lines = [*_table(tried, run, reasons), ""]
    for mutant in open_ones:
        lines += _shown(mutant)
    lines += [f"stale reason: {' | '.join(map(str, key))}" for key in old]
    lines += [f"fails without any fault: {test}" for test in run.flaky]
    lines.append(
        f"{len(tried)} mutants, {len(open_ones)} survivors without a reason, {len(old)} stale "
        f"reasons; {run.seconds:.0f} s, {run.machine_seconds:.0f} s of processor time"
    )
    return "\n".join(lines) + "\n", not (open_ones or old or run.flaky)


def _table(tried: Sequence[Mutant], run: Run, reasons: Reasons) -> Iterator[str]:
    counted: dict[str, Counter[str]] = {}
    for mutant in tried:
        state = run.ended[mutant.key][0]
        if state == "survived" and mutant.key in reasons:
            state = "reasoned"
        for file in (mutant.file, "all"):
            counted.setdefault(file, Counter())[state] += 1
    yield f"{'file':28}{'mutants':>9}{'killed':>9}{'timeout':>9}{'reasoned':>10}{'survived':>10}"
    total = counted.pop("all", Counter())
    for file, found in (*sorted(counted.items()), ("all", total)):
        yield (
            f"{file:28}{found.total():9}{found['killed']:9}{found['timeout']:9}"
            f"{found['reasoned']:10}{found['survived']:10}"
        )


def _shown(mutant: Mutant) -> Iterator[str]:
    which = f" (the {mutant.nth}.)" if mutant.nth > 1 else ""
    yield f"{mutant.file}:{mutant.lines[0]} in {mutant.function}{which}"
    yield f"  - {mutant.before}"
    yield f"  + {mutant.after}"
