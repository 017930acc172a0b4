# SPDX-License-Identifier: Apache-2.0
"""Sealpoint before an outside yardstick: nine edits at rest, T1 to T9, of `agmi-check`.

    agmi-check --adapter benchmarks.agmi:SqliteAdapter
    agmi-check --adapter benchmarks.agmi:FileAdapter
    agmi-check --adapter benchmarks.agmi:PostgresAdapter

An adapter answers as an application would. `verify` opens the store, loads the head, lists the
history and loads each listed checkpoint; it never calls the audit, and it takes only a
`SealpointError` for a refusal: any other exception escapes and spoils the run. Edits are made on
the bytes of the store, never through it. Keys and anchor lie in directories of their own, as they
must.
"""

from agmi.check import run  # type: ignore[import-untyped]

from benchmarks.agmi._file import FileAdapter
from benchmarks.agmi._ledger import LedgerAdapter
from benchmarks.agmi._postgres import PostgresAdapter
from benchmarks.agmi._sqlite import SqliteAdapter

__all__ = ["FileAdapter", "PostgresAdapter", "SqliteAdapter", "run_agmi"]


def run_agmi(adapter: type[LedgerAdapter] = SqliteAdapter) -> list[dict[str, str]]:
    """Make all edits, and say for each of them what came of it.

    Returns:
        For each edit its name, the verdict, the read that refused it first, and the code of the
        error; the last two are empty where nothing was refused.
    """
    refusals: list[tuple[str, str] | None] = []

    class Noting(adapter):  # type: ignore[misc,valid-type] # a class that is only known now
        """Remembers the refusals of a run, one for each edit."""

        def teardown(self) -> None:
            """Take down which read refused the edit."""
            refusals.append(self.refusal)
            super().teardown()

    made = []
    for row, refusal in zip(run(Noting()), refusals, strict=True):
        read, code = refusal or ("", "")
        made.append({"edit": row["edit"], "verdict": row["verdict"], "read": read, "code": code})
    return made
