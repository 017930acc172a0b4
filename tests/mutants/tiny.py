# SPDX-License-Identifier: Apache-2.0
"""A trial of a few mutants of the real package with a baseline that is made up, as a program.

It prints what became of each, as JSON: `python -m tests.mutants.tiny FOLDER`.
"""

import json
import sys
from pathlib import Path

from mutants._baseline import Baseline
from mutants._planting import Module, Mutant
from mutants._session import Ended
from mutants._targets import SOURCE
from mutants._trial import Budget, Trial

_LINKS, _KINDS = "ledger/_entry.py", "ledger/_entry_kinds.py"
_LEDGER = "packages/sealpoint/tests/unit/ledger"
_LINKS_TEST = f"{_LEDGER}/test_links.py::test_a_skip_goes_back_by_the_last_step[6-3]"
_KINDS_TEST = (
    f"{_LEDGER}/test_kinds.py::test_a_judged_kind_has_the_cells_of_the_specification[pause]"
)

_TRIED = {
    # Its test notices it, and another fault that its test cannot see.
    (_LINKS, "skip_seq", "return seq + rest"),
    (_LINKS, "next_link", "return skipped if skipped > target else seq - 1"),
    # It lies in what importing runs.
    (
        _KINDS,
        "<module>",
        (
            "_PAUSE = KindRule(roles=(Role.OPERATOR,), on_threads=False, settles_pause=True, "
            "only_says_why=True)"
        ),
    ),
}


def main(folder: Path) -> None:
    """Try them and say what became of them."""
    modules = {name: Module(SOURCE / "sealpoint" / name, name) for name in (_LINKS, _KINDS)}
    every = range(1, 500)
    baseline = Baseline(
        seconds={_LINKS_TEST: 0.1, _KINDS_TEST: 0.1},
        lines={
            _LINKS_TEST: {_LINKS: frozenset(every)},
            _KINDS_TEST: {_KINDS: frozenset(every)},
        },
        failed=(),
    )
    ended: list[tuple[str, str, str]] = []

    def tell(mutant: Mutant, state: Ended) -> None:
        ended.append((mutant.after, *state))

    mutants = [
        mutant
        for module in modules.values()
        for mutant in module.mutants
        if (mutant.file, mutant.function, mutant.after) in _TRIED
    ]
    Trial(baseline, modules, Budget(), folder, tell).run(mutants)
    sys.stdout.write(json.dumps(ended))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
