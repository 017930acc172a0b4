# SPDX-License-Identifier: Apache-2.0
"""`sealpoint verify`, and what every reading verb says about a store that was changed."""

import re

import pytest

from sealpoint.ledger import STORE_CHAIN
from tests.cli.machine import Machine


@pytest.fixture
def saved(machine: Machine) -> Machine:
    """A machine with two threads."""
    with machine.open() as store:
        for step in range(3):
            store.thread("t").save({"step": step, "text": "x" * 100_000})
        store.thread("u").save([1])
    return machine


def _flip(machine: Machine, table: str, column: str, where: str) -> None:
    """Change the last byte of a value."""
    machine.sql(
        f"UPDATE {table} SET {column} = "  # noqa: S608 (constants of this file)
        f"CAST(substr({column}, 1, length({column}) - 1) || x'00' AS BLOB) WHERE {where}"
    )


def test_a_good_store_ends_with_0(saved: Machine) -> None:
    """One line says how much was verified."""
    printed = saved.done("verify")
    report = saved.json("verify")

    assert re.fullmatch(r"All good: \d+ entries verified\.\n", printed)
    assert report == {"ok": True, "entries": 9, "findings": []}


def test_an_edited_body_is_found_and_refused(saved: Machine) -> None:
    """`verify` lists it and ends with 30; reading it ends with the status of its error."""
    _flip(saved, "entries", "body", "seq = 4")
    result = saved.run("verify")
    report = saved.run("verify", "--json")

    assert result.exit_code == report.exit_code == 30
    assert result.stdout.split()[:5] == ["thread", "reading", "is", "code", "message"]
    assert "REFUSED" in result.stdout
    assert "NOT as it was written: 1 finding;" in result.stdout
    assert '"code": "edited"' in report.stdout
    assert saved.refused("load", "t") == (30, "edited")
    assert saved.refused("show", "t") == (30, "edited")
    assert saved.refused("log", "t") == (30, "edited")
    assert saved.refused("diff", "t") == (30, "edited")
    assert saved.json("load", "u") == [1]


def test_a_deleted_entry_is_found_and_refused(saved: Machine) -> None:
    """A hole in the middle stops every command that reads across it, down to the genesis."""
    saved.sql("DELETE FROM entries WHERE thread != ? AND seq = 3", [STORE_CHAIN])

    assert saved.run("verify").exit_code == 30
    assert saved.refused("log", "t") == (30, "missing")
    assert saved.refused("load", "t") == (30, "missing")


def test_a_deleted_blob_is_found_and_refused(saved: Machine) -> None:
    """Without its bytes a state is not decoded."""
    saved.sql("DELETE FROM blobs")

    assert saved.run("verify").exit_code == 30
    assert saved.refused("load", "t") == (30, "missing")


def test_a_forged_signature_is_found_and_refused(saved: Machine) -> None:
    """The newest entry is believed by its signature, which is another now."""
    seals = saved.sql("SELECT seals FROM entries WHERE seq = 4")[0][0]
    last = b"0" if seals[-4:-3] != b"0" else b"1"
    saved.sql("UPDATE entries SET seals = ? WHERE seq = 4", [seals[:-4] + last + seals[-3:]])

    assert saved.run("verify").exit_code == 30
    assert saved.refused("load", "t") == (30, "forged")


def test_an_older_store_is_refused(saved: Machine) -> None:
    """Whoever cuts the newest entry off is found out by the anchor."""
    saved.sql("DELETE FROM entries WHERE seq = 4")

    assert saved.run("verify").exit_code == 30
    assert saved.refused("load", "t") == (30, "rolled-back")
    assert saved.refused("save", "t", stdin="1") == (30, "rolled-back")


def test_a_store_chain_that_cannot_be_believed_ends_with_its_own_error(saved: Machine) -> None:
    """Without a roster there is nothing to verify against."""
    _flip(saved, "entries", "seals", "seq = 0")

    assert saved.refused("verify")[0] in (30, 39)


def test_what_is_no_store_is_refused(machine: Machine) -> None:
    """Another file in the place of the store, or none, is an error and not a traceback."""
    machine.path.write_bytes(b"not a database at all" * 100)

    assert machine.refused("verify")[0] in (30, 50)
    machine.path.unlink()
    assert machine.refused("verify") == (30, "rolled-back")
    machine.path.mkdir()
    assert machine.refused("verify")[0] == 50
