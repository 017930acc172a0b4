# SPDX-License-Identifier: Apache-2.0
"""`sealpoint init`: what it makes and what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.machine import Machine


@pytest.fixture
def fresh(tmp_path: Path) -> Machine:
    """A machine without a store."""
    return Machine(tmp_path / "disk" / "store.db", tmp_path / "one")


def test_init_says_what_was_made_and_where(fresh: Machine) -> None:
    """Store, id, fingerprint, keys and anchor are named, and they are there."""
    printed = fresh.done("init")
    lines = dict(line.split(None, 1) for line in printed.splitlines()[1:7])

    assert lines["store"] == fresh.url
    assert lines["id"].startswith("store:")
    assert lines["identities"] == "operator, root, worker"
    assert (Path(lines["keys"]) / "worker.key").is_file()
    assert Path(lines["anchor"]).is_dir()
    assert "Back up the store as often" in printed
    assert fresh.path.is_file()


def test_the_program_that_init_shows_runs(fresh: Machine) -> None:
    """The last lines are Python that saves something into this very store."""
    printed = fresh.done("init")
    program = printed.partition("Next, in Python:\n")[2]
    code = "\n".join(line.removeprefix("  ") for line in program.splitlines())
    subprocess.run([sys.executable, "-c", code], check=True)

    assert fresh.json("load", "first") == {"step": 1}


def test_json_names_the_same(fresh: Machine) -> None:
    """A script gets every path and the whole fingerprint."""
    document = fresh.json("init")

    assert set(document) == {
        *("store", "url", "fingerprint", "keys", "identities", "anchor", "encrypted", "policy"),
        *("approvers", "group", "shared_anchor"),
    }
    assert document["encrypted"] is False
    assert document["url"] == fresh.url
    assert document["fingerprint"].startswith("sha256:")
    assert Path(document["keys"]).is_dir()


def test_a_policy_that_needs_people_says_who_is_missing(fresh: Machine) -> None:
    """The lines that add somebody are printed; one person alone is asked about nothing."""
    printed = fresh.done("init", "--policy", "strict")

    assert "Nobody can approve yet: add two people." in printed
    assert "(owner, who asks for the workers, cannot approve that as well.)" in printed
    assert "  sealpoint keys add NAME --person 'WHO' --role approver --namespace '*'" in printed
    other = Machine(fresh.path.with_name("other.db"), fresh.home)
    assert "approve" not in other.done("init")
    assert other.json("policy", "apply", "solo")["approvers"]["needed"] == 0


def test_applying_a_policy_says_who_can_approve(fresh: Machine) -> None:
    """By name; and what it was before is named too."""
    fresh.done("init")
    for number, words in enumerate(
        ("Nobody can approve yet: add two people.", "too few: add one person.", "ann, bob."), 1
    ):
        printed = fresh.done("policy", "apply", "strict" if number % 2 else "solo")
        if number == 1:
            assert "solo -> strict" in printed
        if number % 2 == 0:
            printed = fresh.done("policy", "apply", "strict")
        assert words in printed
        name = ("ann", "bob", "carl")[number - 1]
        fresh.done("keys", "new", name)
        fresh.done(
            *("keys", "add", name, "--person", name, "--role", "approver", "--namespace", "*")
        )


def test_a_store_that_is_there_is_left_alone(fresh: Machine) -> None:
    """A second init is refused, and what was saved is still there."""
    fresh.done("init")
    fresh.done("save", "t", stdin='{"a": 1}')

    assert fresh.refused("init") == (60, "store-exists")
    assert fresh.json("load", "t") == {"a": 1}


def test_a_store_that_is_gone_is_not_made_anew(fresh: Machine) -> None:
    """Where the anchor remembers a store, an empty one does not take its place."""
    fresh.done("init")
    fresh.path.unlink()

    assert fresh.refused("init") == (30, "rolled-back")


def test_a_store_among_its_keys_is_refused(tmp_path: Path) -> None:
    """The store may not lie in the configuration directory."""
    inside = Machine(tmp_path / "one" / "config" / "store.db", tmp_path / "one")

    assert inside.refused("init") == (60, "store-misplaced")
