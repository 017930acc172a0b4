# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys`: keys on a machine, and identities of the roster."""

from pathlib import Path

import pytest

from tests.cli.machine import Machine

_PERSON = "Alice"
_ADD = ("keys", "add", "alice", "--person", _PERSON, "--role", "writer", "--namespace", "billing")


def test_a_new_store_has_two_identities_and_a_root(machine: Machine) -> None:
    """The table names roles and where the private keys are; JSON has the whole keys."""
    rows = [line.split() for line in machine.done("keys", "list").splitlines()]
    document = machine.json("keys", "list")

    assert rows[0] == ["name", "person", "roles", "namespaces", "key", "private", "key"]
    assert {"worker", "operator", "root"} <= {row[0] for row in rows[1:4]}
    assert [each["name"] for each in document] == ["worker", "operator", "root"]
    assert document[0]["roles"] == ["writer"]
    assert document[0]["here"] is True
    assert len(document[0]["public"]) == 64


def test_a_new_key_may_do_nothing_until_it_is_added(machine: Machine) -> None:
    """It is made, shown with the command that adds it, added, and then it may write."""
    printed = machine.done("keys", "new", "alice")
    save = ("save", "t", "--identity", "alice", "--namespace", "billing")

    assert "sealpoint keys add alice" in printed
    assert "not in the roster" in machine.done("keys", "list")
    assert machine.refused(*save, stdin="1") == (39, "key-not-in-force")
    assert "Added." in machine.done(*_ADD, "--reason", "new colleague")
    assert machine.json(*save, stdin="1")["writer"] == "alice"
    assert machine.refused("save", "t", "--identity", "alice", stdin="1") == (39, "no-right")


def test_a_key_of_another_machine_is_added_by_its_public_half(
    machine: Machine, tmp_path: Path
) -> None:
    """The private half never travels."""
    elsewhere = Machine(machine.path, tmp_path / "two")
    pin = machine.run("trust", "export").stdout_bytes
    elsewhere.done("trust", "import", "-", stdin=pin)
    made = elsewhere.json("keys", "new", "alice")
    added = machine.json(*_ADD, "--public-key", made["public"], "--role", "auditor")
    (listed,) = [each for each in machine.json("keys", "list") if each["name"] == "alice"]

    assert Path(made["file"]).is_file()
    assert added["roster"] == 1
    assert sorted(added["roles"]) == ["auditor", "writer"]
    assert listed["key"] == made["key"]
    assert listed["here"] is False
    assert "elsewhere" in machine.done("keys", "list")


def test_an_identity_gets_another_key_and_no_right_with_it(machine: Machine) -> None:
    """One that is there keeps what it has; one that is new has to be described whole."""
    machine.done("keys", "new", "alice")
    new = machine.run("keys", "add", "alice", "--role", "writer")
    machine.done(*_ADD)
    added = machine.json("keys", "add", "alice", "--public-key", "ab" * 32)
    rows = [each for each in machine.json("keys", "list") if each["name"] == "alice"]

    assert (new.exit_code, "person, namespaces are required" in new.stderr) == (2, True)
    assert (added["person"], added["roles"], added["namespaces"]) == (
        *(_PERSON, ["writer"], ["billing"]),
    )
    assert len(rows) == 2
    assert all(row["roles"] == ["writer"] for row in rows)


def test_a_key_is_never_overwritten(machine: Machine) -> None:
    """A second key of one name is refused."""
    machine.done("keys", "new", "alice")

    assert machine.refused("keys", "new", "alice") == (60, "store-exists")
    assert machine.refused("keys", "new", "worker") == (60, "store-exists")


@pytest.mark.parametrize("name", ["../x", "", "Alice", "a b", "\x1b[31m"])
def test_a_name_that_no_identity_can_have_is_refused(machine: Machine, name: str) -> None:
    """Names become names of files."""
    assert machine.refused("keys", "new", name) == (2, "name-invalid")
    assert machine.refused("save", "t", "--identity", name, stdin="1") == (2, "name-invalid")


def test_what_cannot_be_added_is_refused(machine: Machine) -> None:
    """No key, no root key, a key that is none, the name of the root, an unknown role."""
    assert machine.refused(*_ADD) == (60, "key-missing")
    assert machine.refused(*_ADD, "--public-key", "00" * 32) == (39, "trust-file-invalid")
    assert machine.refused(*_ADD, "--public-key", "x") == (2, "usage")
    assert machine.refused("keys", "add", "root", *_ADD[3:]) == (2, "usage")
    assert machine.run("keys", "add", "alice", "--role", "king").exit_code == 2
    machine.done("keys", "new", "alice")
    (root,) = machine.home.rglob("root.key")
    root.unlink()
    assert machine.refused(*_ADD)[1] in {"key-missing", "key-not-in-force"}


def test_the_person_of_an_identity_does_not_change(machine: Machine) -> None:
    """Another person for a name that is there is refused; the same one may get more."""
    machine.done("keys", "new", "alice")
    machine.done(*_ADD)
    others = ["mallory" if word == _PERSON else word for word in _ADD]

    assert others != list(_ADD)
    assert machine.refused(*others) == (2, "usage")
    assert machine.json(*_ADD, "--role", "auditor")["person"] == _PERSON
    people = {each["person"] for each in machine.json("keys", "list") if each["name"] == "alice"}
    assert people == {_PERSON}


def test_saving_needs_the_private_key(machine: Machine) -> None:
    """Without it, reading still works."""
    machine.done("save", "t", stdin="1")
    (key,) = machine.home.rglob("worker.key")
    key.unlink()

    assert machine.refused("save", "t", stdin="2") == (60, "key-missing")
    assert machine.json("load", "t") == 1
