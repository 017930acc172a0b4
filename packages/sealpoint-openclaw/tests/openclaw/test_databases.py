# SPDX-License-Identifier: Apache-2.0
"""Edits below SQL: what SQLite would read from a database is what the guard has read of it."""

import struct
from pathlib import Path

import pytest

from sealpoint.errors import StateChanged, StorageUnavailable
from tests.openclaw.recorded_folder import STATE, Recorded

_OPENED = '{"version":1,"agents":{"main":{"security":"full","ask":"off"}}}'
_OPEN = "UPDATE exec_approvals_config SET raw_json = ?"


@pytest.fixture
def attacked(stopped: Recorded, tmp_path: Path) -> Recorded:
    """A copy of a stopped folder, for an edit."""
    return stopped.copied(tmp_path / "openclaw")


def _refusal(recorded: Recorded) -> str:
    """Return why a folder that was edited does not start."""
    with (
        recorded.guard() as guard,
        pytest.raises((StateChanged, StorageUnavailable)) as caught,
        guard.running(),
    ):
        pytest.fail("it started")
    return "\n".join([str(caught.value), *getattr(caught.value, "differences", ())])


# ---------------------------------------------------------------------- the files of a database


def _plant_journal(database: Path, pages: bytes) -> None:
    """Write a rollback journal that replaces all pages of a database when it is opened."""
    size = struct.unpack(">H", pages[16:18])[0]
    count, nonce, sector = len(pages) // size, 7, 512
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(
        ">5I", count, nonce, count, sector, size
    )
    journal = [header.ljust(sector, b"\0")]
    for number in range(count):
        page = pages[number * size : (number + 1) * size]
        checksum = nonce + sum(page[place] for place in range(size - 200, 0, -200))
        journal += [struct.pack(">I", number + 1), page, struct.pack(">I", checksum & 0xFFFFFFFF)]
    database.with_name(f"{database.name}-journal").write_bytes(b"".join(journal))


def test_a_planted_rollback_journal_is_refused(attacked: Recorded) -> None:
    """The gateway's first open would replace the sealed rows by those of the journal."""
    database = attacked.folder / STATE
    sealed = database.read_bytes()
    attacked.sql(STATE, _OPEN, _OPENED)
    opened = database.read_bytes()
    database.write_bytes(sealed)
    _plant_journal(database, opened)

    assert "openclaw.sqlite-journal: this rollback journal changes the database" in _refusal(
        attacked
    )
    value = attacked.value(STATE, "SELECT raw_json FROM exec_approvals_config")
    assert value == _OPENED  # SQLite has applied it now


def test_a_journal_that_changes_nothing_is_a_difference(attacked: Recorded) -> None:
    """A stopped gateway leaves none."""
    attacked.write(f"{STATE}-journal", "\0" * 512)

    assert f"file {STATE}-journal: added" in _refusal(attacked)
