# SPDX-License-Identifier: Apache-2.0
"""Lists that would leave something out: whoever goes through them is told, and gets nothing else.

An attacker deletes what others look for; an honest colleague has an anchor that never saw it.
"""

import shutil
from pathlib import Path

import pytest

from sealpoint.errors import ListIncomplete
from sealpoint.ledger import STORE_CHAIN
from tests.cli.machine import Machine
from tests.cli.team import READ, ask, make_team


def _save(machine: Machine, *names: str) -> None:
    with machine.open() as store:
        for name in names:
            store.thread(name).save({"n": 1}, world=READ)


def test_deleting_a_thread_does_not_shorten_a_loop_over_all(tmp_path: Path) -> None:
    """Whoever goes through all threads, to prune or to look, would pass the deleted one over."""
    machine = make_team(tmp_path)
    _save(machine, "a", "b", "c")
    with machine.open() as store:
        assert list(store.threads()) == ["a", "b", "c"]
    machine.sql(
        "DELETE FROM entries WHERE thread = (SELECT min(thread) FROM entries WHERE thread != ?)",
        [STORE_CHAIN],
    )
    with machine.open() as store:
        found = store.threads()
        with pytest.raises(ListIncomplete) as caught:
            list(found)

        assert not found.complete
        assert len(found.left_out) == len(caught.value.left_out) == 1
        assert len(store.threads(partial=True)) == 2
    assert machine.refused("threads") == (30, "list-incomplete")


def test_a_colleague_is_told_of_threads_that_only_the_store_knows(tmp_path: Path) -> None:
    """Their anchor calls no list complete, and no desk empty, that lacks somebody else's thread."""
    mine = make_team(tmp_path)
    _save(mine, "seen")
    theirs = Machine(mine.path, tmp_path / "two")
    shutil.copytree(mine.home / "config", theirs.home / "config")
    theirs.done("anchor", "adopt", "--reason", "my own anchor", "--yes")
    assert theirs.done("threads") == mine.done("threads")
    assert theirs.run("requests").exit_code == 0
    _save(mine, "unseen")
    request = ask(mine, "unseen")
    printed = theirs.run("requests")
    partial = theirs.json("threads", "--partial")

    assert mine.json("threads")["threads"] == ["seen", "unseen"]
    assert mine.json("requests")["requests"][0]["id"] == request
    assert theirs.refused("threads") == (30, "list-incomplete")
    assert "'unseen', which the anchor does not know" in theirs.run("threads").stderr
    assert partial["threads"] == ["seen"]
    assert [(each["name"], each["anchored"]) for each in partial["left_out"]] == [("unseen", False)]
    assert printed.exit_code == 30
    assert "'unseen'" in printed.stdout
    theirs.done("anchor", "adopt", "--reason", "it is ours", "--yes")
    assert theirs.json("threads")["threads"] == ["seen", "unseen"]
    assert theirs.json("requests")["requests"][0]["id"] == request


def test_planted_rows_keep_nobody_from_the_list(tmp_path: Path) -> None:
    """What has no genuine genesis is no thread: without a key nobody makes a list incomplete so."""
    machine = make_team(tmp_path)
    _save(machine, "a")
    machine.sql(
        "INSERT INTO entries (thread, seq, header, seals, body) "
        "SELECT x'00112233445566778899aabbccddeeff', seq, header, seals, body FROM entries "
        "WHERE thread != ?",
        [STORE_CHAIN],
    )

    assert machine.json("threads")["threads"] == ["a"]
    assert machine.run("requests").exit_code == 0
