# SPDX-License-Identifier: Apache-2.0
"""The outside yardstick: `agent-memory-integrity` makes nine edits, and reads refuse them all."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agmi.check import run  # type: ignore[import-untyped] # published without types

from benchmarks.agmi import FileAdapter, PostgresAdapter, SqliteAdapter, run_agmi
from tests.effort import in_soak

_CHECK = "import sys; from agmi.check import main; sys.exit(main())"
_ADAPTERS = (SqliteAdapter, FileAdapter, PostgresAdapter)

every_backend = pytest.mark.parametrize("adapter", _ADAPTERS, ids=lambda each: each.name)
most_backends = pytest.mark.parametrize(
    "adapter", [SqliteAdapter, FileAdapter, in_soak(PostgresAdapter)], ids=lambda each: each.name
)
"""For what the one test of every backend shows of PostgreSQL already."""


def _without_verification(adapter: type[Any]) -> Any:
    """The same store as rows that nobody verifies: what a plain saver does."""

    class RawReader(adapter):  # type: ignore[misc] # a class that is only known now
        def verify(self) -> bool:
            """Every checkpoint is there to be read, so all is well."""
            rows = [row for thread in self._threads() for row in self._rows(thread)]
            return all(json.loads(row.header) and json.loads(row.body) for row in rows)

    return RawReader()


@most_backends
def test_all_nine_edits_are_refused_by_a_read(adapter: type[Any]) -> None:
    """Each edit lands, with the yardstick's own controls, and an ordinary read refuses it."""
    rows = run(adapter())

    assert len(rows) == 9
    assert {row["verdict"] for row in rows} == {"REJECTED"}, rows


@every_backend
def test_each_edit_is_refused_by_the_read_that_needs_what_was_edited(adapter: type[Any]) -> None:
    """The head and its order by load, the middle by history, an older payload by its own load."""
    found = {row["edit"].split()[0]: (row["read"], row["code"]) for row in run_agmi(adapter)}

    assert found == {
        "T1": ("load(ref)", "edited"),
        "T2": ("load()", "rolled-back"),
        "T3": ("history()", "missing"),
        "T4": ("load()", "misplaced"),
        "T5": ("load()", "forged"),
        "T6": ("load()", "misplaced"),
        "T7": ("load()", "misplaced"),
        "T8": ("history()", "edited"),
        "T9": ("load()", "rolled-back"),
    }


@most_backends
def test_a_reader_that_verifies_nothing_accepts_the_edits(adapter: type[Any]) -> None:
    """The control: the same edits on the same store, read as plain rows, are all accepted."""
    rows = run(_without_verification(adapter))

    assert {row["verdict"] for row in rows} == {"ACCEPTED"}, rows


@most_backends
def test_the_program_says_so_too(adapter: type[Any], tmp_path: Path) -> None:
    """Anybody can run `agmi-check --adapter benchmarks.agmi:SqliteAdapter`."""
    written = tmp_path / "row.json"
    result = subprocess.run(
        [
            *(sys.executable, "-c", _CHECK),
            *("--adapter", f"benchmarks.agmi:{adapter.__name__}", "--json", str(written)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("REJECTED") == 9
    assert len(json.loads(written.read_text())["edits"]) == 9
