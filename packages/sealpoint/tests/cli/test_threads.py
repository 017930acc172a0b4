# SPDX-License-Identifier: Apache-2.0
"""`sealpoint threads`: the names, and whether they are all."""

from pathlib import Path

import pytest

from sealpoint.errors import NeedsApproval
from sealpoint.ledger import STORE_CHAIN
from tests.cli.machine import Machine
from tests.cli.team import READ, SHELL, make_team


def test_an_empty_store_has_a_complete_list(machine: Machine) -> None:
    """No thread is an answer, too."""
    assert machine.done("threads") == (
        "0 threads in namespace 'default'; complete: the anchor knows no others.\n"
    )


def test_names_are_listed_in_order(machine: Machine) -> None:
    """One name a line, and as JSON."""
    for name in ("b", "a", "ü-7"):
        machine.done("save", name, stdin="1")

    assert machine.done("threads", "--names").splitlines() == [
        "thread",
        "a",
        "b",
        "ü-7",
        "",
        "3 threads in namespace 'default'; complete: the anchor knows no others.",
    ]
    assert machine.json("threads", "--names") == {
        "namespace": "default",
        "threads": ["a", "b", "ü-7"],
        "details": [],
        "complete": True,
        "left_out": [],
    }


def test_what_each_thread_is_at_is_listed(tmp_path: Path) -> None:
    """Who waits for what, since when, whose it is and how long: an operator's first look."""
    team = make_team(tmp_path)
    with team.open() as store:
        for name in ("asked", "paused", "plain", "question"):
            question = "pay?" if name == "question" else None
            store.thread(name).save(1, world=READ, question=question)
        with pytest.raises(NeedsApproval):
            store.thread("asked").resume(world=SHELL)
    team.done("pause", "paused", "--reason", "look first")
    lines = team.done("threads").splitlines()
    details = {each["thread"]: each for each in team.json("threads")["details"]}

    columns = ["thread", "state", "last", "change", "owner", "entries", "question"]
    assert lines[0].split() == columns
    assert {name: each["state"] for name, each in details.items()} == {
        "asked": "waits for approval",
        "paused": "paused",
        "plain": "saved",
        "question": "waits for an answer",
    }
    assert details["paused"]["reason"] == "look first"
    assert details["plain"]["entries"] == 3
    assert "paused: paused: look first" in lines
    request = team.json("requests")["requests"][0]["id"]
    team.done("deny", request, "--reason", "no", "--identity", "ann")
    assert {e["thread"]: e["state"] for e in team.json("threads")["details"]}["asked"] == "saved"


def test_a_thread_that_does_not_verify_is_listed_as_such(machine: Machine) -> None:
    """Its name is known, and the status says that something is wrong."""
    machine.done("save", "a", stdin="1")
    machine.done("save", "b", stdin="1")
    thread = machine.sql("SELECT max(thread) FROM entries")[0][0]
    machine.sql("UPDATE entries SET body = x'7b7d' WHERE seq = 2 AND thread = ?", [thread])
    result = machine.run("threads")

    assert result.exit_code == 30
    assert result.stdout.count("not readable") == 2
    assert machine.done("threads", "--names").count("\n") == 5


def test_a_namespace_has_its_own_threads(machine: Machine) -> None:
    """`--namespace` chooses whose threads are meant, for saving and for listing."""
    machine.done("save", "a", "--namespace", "billing", stdin="1")

    assert machine.json("threads")["threads"] == []
    assert machine.json("threads", "--namespace", "billing")["threads"] == ["a"]
    assert machine.refused("load", "a") == (44, "unknown-thread")


def test_a_list_that_leaves_a_thread_out_is_no_list(machine: Machine) -> None:
    """It says what is missing and ends with 49; the rest is there for whoever asks for it."""
    machine.done("save", "a", stdin="1")
    machine.done("save", "b", stdin="1")
    machine.sql("DELETE FROM entries WHERE thread = (SELECT max(thread) FROM entries)")
    printed = machine.run("threads")
    partial = machine.done("threads", "--partial")
    document = machine.json("threads", "--partial")

    assert machine.refused("threads") == (30, "list-incomplete")
    assert printed.stdout == ""
    assert "would leave out 1: id " in printed.stderr
    assert "sealpoint threads --partial" in printed.stderr
    assert "1 thread in namespace 'default'; NOT COMPLETE, 1 left out:" in partial
    assert "the store lacks what the anchor has seen" in partial
    assert "sealpoint anchor show" in partial
    assert document["complete"] is False
    assert len(document["threads"]) == 1
    assert [(each["name"], each["anchored"]) for each in document["left_out"]] == [(None, True)]
    assert machine.sql("SELECT count(*) FROM entries WHERE thread = ?", [STORE_CHAIN]) == [(1,)]


def test_a_planted_thread_is_not_listed(machine: Machine) -> None:
    """A copy of a thread under another id is no thread."""
    machine.done("save", "a", stdin="1")
    machine.sql(
        "INSERT INTO entries (thread, seq, header, seals, body) "
        "SELECT x'00112233445566778899aabbccddeeff', seq, header, seals, body FROM entries "
        "WHERE thread != ?",
        [STORE_CHAIN],
    )

    assert machine.json("threads")["threads"] == ["a"]
