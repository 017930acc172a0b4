# SPDX-License-Identifier: Apache-2.0
"""`sealpoint keys revoke, rotate, rotate-root and pool`: shown before, asked for, recorded."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.machine import Machine

_ADD = ("--person", "Alice", "--role", "writer", "--namespace", "*")


def _saved(machine: Machine) -> Machine:
    for name in ("a", "b"):
        machine.done("save", name, stdin="1")
    return machine


def _key(machine: Machine, name: str = "worker") -> str:
    return next(str(each["key"]) for each in machine.json("keys", "list") if each["name"] == name)


def test_a_dry_run_says_what_would_end(machine: Machine) -> None:
    """The key, and in how many threads what it signed stays good; nothing changes."""
    _saved(machine)
    key = _key(machine)
    printed = machine.done("keys", "revoke", "worker", "--reason", "stolen", "--dry-run")
    document = machine.json("keys", "revoke", "worker", "--reason", "stolen", "--dry-run")

    assert f"  key {key.removeprefix('key:')[:12]} of worker\n" in printed
    assert "in 2 threads stays good" in printed
    assert printed.endswith("Nothing was revoked: this was a dry run.\n")
    assert (document["keys"], document["threads"], document["revoked"]) == ([key], 2, False)
    assert (document["roster"], document["unverified"]) == (None, [])
    assert machine.json("save", "a", stdin="2")["writer"] == "worker"


def test_a_revoked_key_is_refused_and_its_threads_are_read(machine: Machine) -> None:
    """The save fails with a hint; loading and verifying go on."""
    _saved(machine)
    printed = machine.done("keys", "revoke", "worker", "--reason", "stolen", "--yes")
    result = machine.run("save", "a", stdin="2")

    assert "Revoked by roster 2, in force from now on." in printed
    assert "export the pin again" in printed
    assert result.exit_code == 39
    assert "was revoked, by roster 2" in result.stderr
    assert "hint: Nothing was saved." in result.stderr
    assert machine.json("load", "a") == 1
    assert machine.json("verify")["ok"] is True
    assert machine.refused("keys", "revoke", "worker", "--reason", "again", "--yes") == (2, "usage")


def test_revoking_is_asked_for(machine: Machine) -> None:
    """Without --yes and without a terminal nothing ends; a reason is always needed."""
    _saved(machine)

    assert machine.refused("keys", "revoke", "worker", "--reason", "stolen") == (2, "usage")
    assert machine.run("keys", "revoke", "worker", "--yes").exit_code == 2
    assert machine.refused("keys", "revoke", "worker", "--reason", " ", "--yes") == (2, "usage")
    assert machine.refused("keys", "revoke", "nobody", "--reason", "x", "--yes") == (2, "usage")
    assert machine.refused("keys", "rotate", "worker") == (2, "usage")
    assert machine.refused("keys", "rotate-root") == (2, "usage")
    assert len(machine.json("keys", "list")) == 3
    machine.done("save", "a", stdin="2")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
def test_whoever_says_no_changes_nothing(machine: Machine) -> None:
    """On a terminal the plan is shown and the question asked."""
    for verb, said in (
        (("revoke", "worker", "--reason", "stolen"), "Nothing was revoked."),
        (("rotate", "worker"), "Nothing was rotated."),
        (("rotate-root",), "Nothing was changed."),
    ):
        status, printed = machine.at_a_terminal("keys", *verb, answer="n\n")
        assert status == 1
        assert said in printed
    assert len(machine.json("keys", "list")) == 3
    status, printed = machine.at_a_terminal(
        "keys", "revoke", "worker", "--reason", "stolen", answer="y\n"
    )
    assert status == 0
    assert "by roster 2, in force from now on" in printed


def test_one_key_is_revoked_by_its_id(machine: Machine) -> None:
    """The others of the identity stay."""
    other = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
    worker = ("keys", "add", "worker", "--person", "owner", "--role", "writer")
    machine.done(*worker, "--namespace", "*", "--public-key", other)
    first, second = (
        each["key"] for each in machine.json("keys", "list") if each["name"] == "worker"
    )
    revoke = ("keys", "revoke", "worker", "--reason", "lost", "--yes", "--key")

    assert machine.refused(*revoke, "ab" * 32) == (2, "usage")
    assert machine.json(*revoke, second)["keys"] == [second]
    assert _key(machine) == first
    machine.done("save", "a", stdin="1")


def test_threads_in_doubt_are_shown(machine: Machine) -> None:
    """With their code, and up to where what the key signed stays good."""
    _saved(machine)
    machine.sql("DELETE FROM entries WHERE seq = 2")
    printed = machine.done("keys", "revoke", "worker", "--reason", "stolen", "--dry-run")
    document = machine.json("keys", "revoke", "worker", "--reason", "stolen", "--yes")

    assert "Some threads do not verify:" in printed
    assert "rolled-back" in printed
    assert "entry 2" in printed
    assert {each["name"] for each in document["unverified"]} == {"a", "b"}
    assert {each["kept"] for each in document["unverified"]} == {2}
    assert document["beyond"] == []


def test_a_rotated_key_is_in_place(machine: Machine) -> None:
    """The next save is by the new key; the list shows the old one when it is asked for."""
    _saved(machine)
    old = _key(machine)
    planned = machine.done("keys", "rotate", "worker", "--dry-run")
    printed = machine.done("keys", "rotate", "worker", "--reason", "yearly", "--yes")
    new = _key(machine)

    assert "Nothing was rotated: this was a dry run." in planned
    assert "Rotated by roster 2" in printed
    assert f"key     {new}" in printed
    assert "Start the processes again" in printed
    assert new != old
    assert machine.json("save", "a", stdin="2")["writer"] == "worker"
    listed = machine.done("keys", "list")
    everything = machine.done("keys", "list", "--all")
    assert "1 revoked key is not shown; --all lists them." in listed
    assert old.removeprefix("key:")[:12] not in listed
    assert old.removeprefix("key:")[:12] in everything
    assert "revoked" in everything
    assert machine.json("keys", "list")[-1]["status"] == "revoked"


def test_a_rotation_as_json(machine: Machine) -> None:
    """One document with the new key and the ended ones."""
    old = _key(machine)
    document = machine.json("keys", "rotate", "worker", "--yes")

    assert (document["rotated"], document["here"]) == (True, True)
    assert (document["ended"], document["key"]) == ([old], _key(machine))
    assert machine.json("keys", "rotate", "worker", "--dry-run")["rotated"] is False


def test_a_key_of_another_machine_is_rotated(machine: Machine, tmp_path: Path) -> None:
    """Prepared there, entered here, finished there; the private half never travels."""
    there = Machine(machine.path, tmp_path / "two")
    there.done("trust", "import", "-", stdin=machine.run("trust", "export").stdout_bytes)
    public = there.json("keys", "new", "alice")["public"]
    machine.done("keys", "add", "alice", "--public-key", public, *_ADD, "--role", "operator")
    there.done("anchor", "adopt", "--identity", "alice", "--reason", "reads along", "--yes")
    assert machine.refused("keys", "rotate", "alice", "--yes") == (60, "key-missing")
    printed = there.done("keys", "rotate", "alice", "--prepare")
    prepared = there.json("keys", "rotate", "alice", "--prepare")

    assert f"sealpoint keys rotate alice --public-key {prepared['public']}" in printed
    assert there.refused("keys", "rotate", "alice", "--finish") == (39, "key-not-in-force")
    entered = machine.done("keys", "rotate", "alice", "--public-key", prepared["public"], "--yes")
    assert "sealpoint keys rotate alice --finish" in entered
    assert "the old one is gone" in there.done("keys", "rotate", "alice", "--finish")
    assert there.refused("keys", "rotate", "alice", "--finish") == (60, "key-missing")
    both = ("keys", "rotate", "alice", "--prepare", "--finish")
    assert there.refused(*both) == (2, "usage")
    assert there.json("keys", "list")[2]["key"] == prepared["key"]
    there.json("keys", "rotate", "alice", "--prepare")


def test_finishing_as_json(machine: Machine) -> None:
    """The key that is in use now."""
    prepared = machine.json("keys", "rotate", "worker", "--prepare")
    machine.done("keys", "rotate", "worker", "--public-key", prepared["public"], "--yes")

    assert machine.json("keys", "rotate", "worker", "--finish") == prepared
    machine.done("save", "a", stdin="1")


def test_an_identity_without_a_key_gets_one(machine: Machine) -> None:
    """After a revocation, `rotate` begins anew, and may give fewer rights."""
    machine.done("keys", "revoke", "worker", "--reason", "stolen", "--yes")
    rotate = ("keys", "rotate", "worker", "--yes", "--role", "writer", "--namespace", "default")

    assert "No key of worker ends: it has none." in machine.done(*rotate)
    assert machine.json("keys", "list")[0]["namespaces"] == ["default"]
    machine.done("save", "a", stdin="1")
    assert machine.refused("save", "a", "--namespace", "x", stdin="1") == (39, "no-right")


def test_an_expiry_is_listed_and_remarked_on(machine: Machine) -> None:
    """A column of its own, once there is something to say, and a remark of `verify`."""
    assert "expires" not in machine.done("keys", "list")
    add = ("keys", "add", "worker", "--person", "owner", "--role", "writer", "--namespace", "*")
    machine.done(*add, "--expires", "2999-01-31")
    assert " 2999-01-31" in machine.done("keys", "list")
    assert machine.json("keys", "list")[0]["expires"] == "2999-01-31T00:00:00Z"
    machine.done(*add, "--expires", "2001-01-31T12:00:00+01:00")
    assert "EXPIRED:" in machine.done("keys", "list")
    assert machine.refused("save", "a", stdin="1") == (39, "key-not-in-force")
    report = machine.json("verify")

    assert report["ok"] is True
    assert [each["code"] for each in report["findings"]] == ["key-expiry"]
    assert "(store chain)" in machine.done("verify")
    machine.done(*add, "--expires", "never")
    machine.done("save", "a", stdin="1")
    for wrong in ("soon", "2999-01-31T12:00:00", "31.1.2999"):
        assert machine.run(*add, "--expires", wrong).exit_code == 2


def test_a_new_root_takes_over(machine: Machine) -> None:
    """It is made here, shown with its file, and signs from then on."""
    printed = machine.done("keys", "rotate-root", "--reason", "yearly", "--yes")

    assert "A new root." in printed
    assert "signed by  1 of 1" in printed
    assert "root-2.key" in printed
    assert "former root" in machine.done("keys", "list")
    (old,) = machine.home.rglob("root.key")
    old.unlink()
    machine.done("keys", "new", "alice")
    machine.done("keys", "add", "alice", *_ADD)
    pin = json.loads(machine.run("trust", "export").stdout)
    assert pin["newest"]["version"] == 2
    document = machine.json("keys", "rotate-root", "--yes")
    assert (document["version"], document["made"], document["threshold"]) == (3, "root-3", 1)


def test_a_root_of_several_keys(machine: Machine) -> None:
    """Keys that were made before, one elsewhere, and a threshold."""
    other = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
    for name in ("alice", "bob"):
        machine.done("keys", "new", name)
    keys = ("--key", "alice", "--key", "bob", "--public-key", other)

    assert machine.refused("keys", "rotate-root", "--yes", *keys, "--threshold", "4") == (
        2,
        "usage",
    )
    printed = machine.done("keys", "rotate-root", "--yes", *keys, "--threshold", "2")
    assert "signed by  2 of 3" in printed
    assert printed.count("\nkey ") == 3
    assert ".key\n" not in printed


def test_a_pool_is_made_and_grows(machine: Machine) -> None:
    """Members join, the list says so, and two pods go on with each other's threads."""
    for name in ("pod-1", "pod-2"):
        machine.done("keys", "new", name)
        machine.done("keys", "add", name, *_ADD)
    assert "pool" not in machine.done("keys", "list")
    printed = machine.done("keys", "pool", "pods", "--member", "pod-1", "--reason", "service")
    document = machine.json("keys", "pool", "pods", "--member", "pod-2")

    assert "members  pod-1" in printed
    assert document == {"name": "pods", "members": ["pod-1", "pod-2"]}
    assert "pods" in machine.done("keys", "list")
    machine.done("save", "t", "--identity", "pod-1", stdin="1")
    assert machine.json("save", "t", "--identity", "pod-2", stdin="2")["writer"] == "pod-2"
    assert machine.refused("save", "t", stdin="3") == (39, "not-owner")
    assert machine.refused("keys", "pool", "more", "--member", "pod-1") == (2, "usage")
    assert machine.run("keys", "pool", "more").exit_code == 2
