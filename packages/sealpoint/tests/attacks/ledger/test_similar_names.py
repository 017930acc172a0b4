# SPDX-License-Identifier: Apache-2.0
"""Names that look like another's: whoever pauses or approves by name means one thread."""

from pathlib import Path

import pytest

from sealpoint.errors import NameInvalid
from tests.cli.machine import Machine

_UNTOLD = ("invoice-7 ", " invoice-7", "invoice-7\u3164", "invoice\u034f-7", "Rene\u0301")
_TOLD = {
    "\u0456nvoice-7": r"\u{456}nvoice-7",
    "invoice\u20107": r"invoice\u{2010}7",
    "invoice-7  1  1  in step": '"invoice-7  1  1  in step"',
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with a store that has the thread that is meant."""
    (tmp_path / "disk").mkdir()
    made = Machine(tmp_path / "disk" / "store.db", tmp_path / "one")
    made.done("init")
    for name in ("invoice-7", "Ren\u00e9"):
        made.done("save", name, stdin="1")
    return made


@pytest.mark.parametrize("name", _UNTOLD, ids=ascii)
def test_a_name_that_nobody_can_tell_from_another_is_refused(machine: Machine, name: str) -> None:
    """Neither the application nor the command line makes or opens such a thread."""
    with machine.open() as store, pytest.raises(NameInvalid):
        store.thread(name)

    assert machine.refused("save", name, stdin="1") == (2, "name-invalid")
    assert machine.refused("pause", name, "--reason", "x") == (2, "name-invalid")
    assert machine.json("load", "invoice-7") == 1


@pytest.mark.parametrize(("name", "spelled"), _TOLD.items(), ids=ascii)
def test_a_name_of_similar_letters_is_spelled_out_in_tables(
    machine: Machine, name: str, spelled: str
) -> None:
    """It is a name, of another script perhaps; every table says which."""
    machine.done("save", name, stdin="1")
    machine.sql("DELETE FROM entries WHERE seq = 1")
    printed = {
        "threads": machine.run("threads", "--partial"),
        "anchor": machine.run("anchor", "show"),
        "verify": machine.run("verify"),
        "audit": machine.run("audit"),
    }

    for verb, result in printed.items():
        lines = result.stdout.splitlines()
        assert any(spelled in line for line in lines), verb
        assert any("invoice-7" in line and spelled not in line for line in lines), verb
