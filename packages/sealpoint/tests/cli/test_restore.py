# SPDX-License-Identifier: Apache-2.0
"""`sealpoint accept-restore`, `roster` and `keys quorum`."""

import json
import shutil
import stat
from pathlib import Path

import pytest

from sealpoint.cli import _restore
from sealpoint.ledger import STORE_CHAIN
from tests.cli.machine import Machine

_ACCEPT = ("accept-restore", "--reason", "disk died")


def _backup(machine: Machine) -> bytes:
    return machine.path.read_bytes()


def _put_back(machine: Machine, backup: bytes) -> None:
    for path in machine.path.parent.glob(f"{machine.path.name}*"):
        path.unlink()
    machine.path.write_bytes(backup)
    machine.path.chmod(0o600)


def _save(machine: Machine, *names: str) -> None:
    for name in names:
        machine.done("save", name, stdin=json.dumps([name]))


@pytest.fixture
def lossy(machine: Machine) -> Machine:
    """A machine whose store lost the newest checkpoint of `a` and all of `d`."""
    _save(machine, "a", "b")
    backup = _backup(machine)
    _save(machine, "a", "d")
    _put_back(machine, backup)
    return machine


def _put_lost_entries_back(machine: Machine, newest: bytes) -> None:
    """What somebody who holds the database can do with a copy of the lost entries."""
    other = machine.path.with_name("newest.db")
    other.write_bytes(newest)
    rows = Machine(other, machine.home).sql(
        "SELECT thread, seq, header, seals, body, payload FROM entries WHERE thread != ?",
        [STORE_CHAIN],
    )
    for row in rows:
        machine.sql(
            "INSERT INTO entries (thread, seq, header, seals, body, payload) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            row,
        )
    for path in machine.path.parent.glob("newest.db*"):
        path.unlink()


# ------------------------------------------------------------------ accept-restore


def test_a_dry_run_shows_what_would_be_kept_and_lost(lossy: Machine) -> None:
    """In plain words, and nothing is changed."""
    before = _backup(lossy)
    lines = lossy.done(*_ACCEPT, "--dry-run").splitlines()

    assert lines[0] == "Of 3 threads that the anchor knows, 1 stay whole."
    assert lines[2] == "To be accepted as it is in the store:"
    assert lines[3].split() == ["thread", "what", "became", "of", "it", "kept", "up", "to", "lost"]
    rows = sorted(lines[4:6])
    assert rows[0].startswith("(id ")
    assert "GONE: nothing of it is left that verifies  nothing     3" in rows[0]
    assert rows[1].split("  ")[0] == "a"
    assert "older: its newest entries are gone" in rows[1]
    assert rows[1].split()[-3:] == ["entry", "2", "2"]
    assert "Lost for good, also if they come back: 5 entries." in lines
    assert lines[-1] == "Nothing was accepted: this was a dry run."
    assert _backup(lossy) == before
    assert lossy.refused("load", "a") == (30, "rolled-back")


def test_a_restore_is_accepted_and_recorded(lossy: Machine) -> None:
    """What was shown is accepted; the store is read and written as before."""
    printed = lossy.done(*_ACCEPT, "--yes")

    assert "Accepted, with the reason 'disk died': epoch 1 begins." in printed
    assert "entry 1 of the store chain" in printed
    assert json.loads(lossy.done("load", "a")) == ["a"]
    assert lossy.run("load", "d").exit_code == 44
    refused = lossy.run("save", "a", stdin="[1]")
    assert refused.exit_code == 70
    lossy.done("save", "a", "--deliberate", "the restore was looked at", stdin='["a"]')
    _save(lossy, "a", "d")
    lossy.done("verify")
    assert lossy.done(*_ACCEPT, "--yes").startswith("Nothing to accept: the store has everything")


def test_the_document_has_all_of_it(lossy: Machine) -> None:
    """Before and after, for scripts."""
    planned = lossy.json(*_ACCEPT, "--dry-run")
    done = lossy.json(*_ACCEPT, "--yes")
    nothing = lossy.json(*_ACCEPT, "--yes")

    assert planned["accepted"] is False
    assert planned["threads"] == 3
    assert [(each["name"], each["outcome"], each["lost"]) for each in planned["losses"]] == [
        ("", "gone", 3),
        ("a", "behind", 2),
    ]
    assert done | planned == done | {"accepted": False}
    assert done["accepted"] is True
    assert (done["entry"], done["epoch"], done["removed"], done["in_the_way"]) == (1, 1, 0, [])
    assert done["reason"] == "disk died"
    assert nothing["accepted"] is False
    assert nothing["losses"] == []


def test_released_threads_are_shown_before_and_go_on_after(lossy: Machine) -> None:
    """Which, from where, and what each lost; a save is then an ordinary one."""
    shown = lossy.done(*_ACCEPT, "--release", "--dry-run").splitlines()
    place = shown.index("Released, to resume without a reason of their own:")
    assert shown[place + 1].split() == ["thread", "resumes", "from", "lost"]
    assert shown[place + 2].split() == ["a", "entry", "2", "2"]
    printed = lossy.done(*_ACCEPT, "--release", "--yes")

    assert "released     1 thread" in printed
    _save(lossy, "a")
    lossy.done("verify")
    assert "1 of these released: disk died" in lossy.done("audit", "--kind", "restore")


def test_a_thread_is_released_by_its_name_or_its_id(lossy: Machine) -> None:
    """The document lists those that are; without any, it says that they will be asked about."""
    planned = lossy.json(*_ACCEPT, "--dry-run")
    cut = next(each for each in planned["losses"] if each["name"] == "a")

    assert planned["released"] == []
    assert "to resume: 1 thread. --release" in lossy.done(*_ACCEPT, "--dry-run")
    for name in ("a", cut["thread"]):
        assert lossy.json(*_ACCEPT, "--dry-run", "--release", name)["released"] == [cut]
    done = lossy.json(*_ACCEPT, "--yes", "--release", "a", "--release", cut["thread"])
    assert done["released"] == [cut]
    _save(lossy, "a")


@pytest.mark.parametrize(
    "options",
    [
        ["--release", "b"],
        ["--release", "nobody"],
        ["--release", ""],
        ["--release", "a", "--release", "nobody"],
        ["--release", "a", "--release"],
    ],
    ids=["whole", "unknown", "empty", "one of two", "named and all"],
)
def test_what_is_not_cut_cannot_be_released(lossy: Machine, options: list[str]) -> None:
    """Nothing is accepted, so that nobody believes that the thread goes on."""
    assert lossy.refused(*_ACCEPT, "--yes", *options) == (2, "usage")
    assert lossy.refused("load", "a") == (30, "rolled-back")


def test_a_thread_of_which_nothing_is_left_cannot_be_released(lossy: Machine) -> None:
    """There is nothing that it could go on from."""
    planned = lossy.json(*_ACCEPT, "--dry-run")
    gone = next(each for each in planned["losses"] if each["outcome"] == "gone")
    refused = lossy.run(*_ACCEPT, "--yes", "--release", gone["thread"])

    assert refused.exit_code == 2
    assert "nothing of it is left to resume from" in refused.stderr


@pytest.fixture
def paused_since(machine: Machine) -> Machine:
    """A machine whose store is from before the pause of `a` and the newest checkpoint of `b`."""
    _save(machine, "a", "b")
    backup = _backup(machine)
    machine.done("pause", "a", "--reason", "it pays twice")
    _save(machine, "b")
    _put_back(machine, backup)
    return machine


def test_a_lost_pause_is_shown_and_not_released(paused_since: Machine) -> None:
    """The plan says what to do, and the thread stays paused until an operator does it."""
    machine = paused_since
    shown = machine.done(*_ACCEPT, "--release", "--dry-run")
    done = machine.done(*_ACCEPT, "--release", "--yes")

    assert (
        "a: it was paused, and the pause is lost. It stays paused until an operator decides: "
        "sealpoint pause a --reason WHY, or sealpoint unpause a --reason WHY\n"
    ) in shown
    assert "a: all requests, approvals and denials in entry 3 are gone\n" in shown
    assert "b: a session that began after what is kept, in entry 3\n" in shown
    assert "b: all requests, approvals and denials in entries 3 to 4 are gone\n" in shown
    assert "Not released:\na: it was paused, and the restore loses the pause\n" in shown
    assert "stay paused  1 thread" in done
    _save(machine, "b")
    assert machine.refused("save", "a", stdin="[2]")[1] in {"paused", "resume-refused"}
    assert "paused" in machine.done("threads")
    refused = machine.run("save", "a", "--deliberate", "the disk died", stdin="[2]")
    assert "lost the pause" in refused.stderr
    machine.done("unpause", "a", "--reason", "looked at")
    machine.done("save", "a", "--deliberate", "the disk died", stdin='["a"]')
    machine.done("verify")
    assert "1 of these paused until an operator decides" in machine.done(
        "audit", "--kind", "restore"
    )


def test_the_document_says_what_the_lost_entries_decided(paused_since: Machine) -> None:
    """For scripts: each thread with what it loses, and why it is not released."""
    planned = paused_since.json(*_ACCEPT, "--dry-run", "--release")
    by_name = {each["name"]: each for each in planned["losses"]}

    assert by_name["a"]["paused"] is True
    assert by_name["a"]["loses_pause"] is True
    assert by_name["a"]["lost_range"] == [3, 3]
    assert by_name["a"]["decisions"] == []
    assert by_name["b"]["lost_session"] == 3
    assert by_name["b"]["lost_handoff"] is None
    assert planned["released"] == [by_name["b"]]
    assert planned["not_released"] == [by_name["a"]]
    assert by_name["a"]["not_released"] == "it was paused, and the restore loses the pause"
    assert planned["rollouts_void"] is False


def test_a_thread_that_was_paused_is_not_released_by_name(paused_since: Machine) -> None:
    """Nothing is accepted."""
    refused = paused_since.run(*_ACCEPT, "--yes", "--release", "a")

    assert refused.exit_code == 2
    assert "cannot be released: it was paused, and the restore loses the pause" in refused.stderr


def test_without_a_terminal_it_needs_yes(lossy: Machine) -> None:
    """Nobody is there to ask, so nothing is done."""
    assert lossy.refused(*_ACCEPT) == (2, "usage")
    assert lossy.refused("load", "a") == (30, "rolled-back")


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_it_asks_at_a_terminal(lossy: Machine, answer: str, status: int) -> None:
    """What would be lost is shown before the question; no answer is no."""
    pytest.importorskip("pty")
    found, printed = lossy.at_a_terminal(*_ACCEPT, answer=answer, columns=100)

    assert found == status
    assert printed.index("older: its newest") < printed.index("Are all workers stopped")
    assert lossy.run("load", "a").exit_code == (0 if status == 0 else 30)


def test_it_needs_a_reason_and_the_root(lossy: Machine) -> None:
    """A reason of spaces is none, and an operator alone is not the root."""
    assert lossy.run("accept-restore", "--yes").exit_code == 2
    assert lossy.refused("accept-restore", "--yes", "--reason", " ") == (2, "usage")
    operator = lossy.refused(*_ACCEPT, "--yes", "--identity", "operator")
    assert operator[1] == "key-missing"
    (key,) = lossy.home.rglob("root.key")
    key.unlink()
    assert lossy.refused(*_ACCEPT, "--yes")[1] == "key-missing"


def test_entries_that_come_back_are_shown_and_taken_out(machine: Machine) -> None:
    """They are in the way; no other restore is recorded for them."""
    _save(machine, "a")
    backup = _backup(machine)
    _save(machine, "a")
    newest = _backup(machine)
    _put_back(machine, backup)
    machine.done(*_ACCEPT, "--yes")
    _put_lost_entries_back(machine, newest)
    assert machine.refused("load", "a") == (30, "misplaced")
    shown = machine.done(*_ACCEPT, "--dry-run")
    done = machine.done(*_ACCEPT, "--yes")

    assert "In the way of these threads:" in shown
    assert "whole, with entries that an earlier restore cut off" in shown
    assert "To be taken out of the store: 2 entries." in shown
    assert "Taken out." in done
    assert "Export the roster" not in done
    assert json.loads(machine.done("load", "a")) == ["a"]
    assert machine.done("verify").startswith("All good")


def test_leftovers_are_asked_about(machine: Machine) -> None:
    """Taking them out is a question of its own."""
    pytest.importorskip("pty")
    _save(machine, "a")
    backup = _backup(machine)
    _save(machine, "a")
    newest = _backup(machine)
    _put_back(machine, backup)
    machine.done(*_ACCEPT, "--yes")
    _put_lost_entries_back(machine, newest)
    status, printed = machine.at_a_terminal(*_ACCEPT, answer="y\n", columns=100)

    assert status == 0
    assert "Shall the entries that do not count be taken out of the store?" in printed


def test_damage_says_why_it_does_not_count(machine: Machine) -> None:
    """What stopped the verification is shown below the table."""
    _save(machine, "a", "a")
    machine.sql("UPDATE entries SET seals = x'5b5d' WHERE seq = 4")
    printed = machine.done(*_ACCEPT, "--dry-run")

    assert "taken out" in printed
    assert "To be taken out of the store: 1 entry." in printed
    assert "\na: seals: expected 1 to 16 by different keys" in printed
    machine.done(*_ACCEPT, "--yes")
    assert json.loads(machine.done("load", "a")) == ["a"]


def test_an_erased_thread_is_said_to_stay_erased(machine: Machine) -> None:
    """The plan says so, and nothing of it is left."""
    machine.done(
        *("keys", "add", "worker", "--person", _person(machine), "--role", "privacy"),
        *("--namespace", "*"),
    )
    machine.done("save", "secret", stdin='"a telling name"')
    backup = _backup(machine)
    machine.done("erase", "secret", "--reason", "asked for", "--yes")
    _put_back(machine, backup)
    printed = machine.done(*_ACCEPT, "--yes")

    assert "erased since: nothing is kept, so it stays erased" in printed
    assert b"a telling name" not in _backup(machine)
    assert machine.run("load", "secret").exit_code == 44


def _person(machine: Machine) -> str:
    keys = machine.json("keys", "list")
    return next(str(each["person"]) for each in keys if each["name"] == "worker")


def test_threads_of_other_machines_are_shown(machine: Machine, other: Machine) -> None:
    """The anchor here has never seen them; they stay, and the other machine goes on."""
    _save(machine, "a")
    shutil.copytree(machine.home / "config", other.home / "config")
    other.done("anchor", "adopt", "--reason", "a second machine", "--yes")
    _save(other, "theirs")
    machine.done("load", "a")
    backup = _backup(machine)
    _save(machine, "a")
    _put_back(machine, backup)
    printed = machine.done(*_ACCEPT, "--yes")

    assert "Not known to the anchor of this machine:" in printed
    assert "never seen by this anchor: kept as it is" in printed
    assert json.loads(other.done("load", "theirs")) == ["theirs"]
    _save(other, "theirs")
    assert other.done("verify").startswith("All good")


def test_a_long_list_is_shortened(lossy: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is counted by what became of it."""
    monkeypatch.setattr(_restore, "_ROWS_MAX", 1)
    printed = lossy.done(*_ACCEPT, "--dry-run")

    assert "... and 1 behind; --json lists them all." in printed


# ------------------------------------------------------------------ roster export and import


def _older(machine: Machine, file: Path) -> None:
    """The store is older than the roster that was exported to a file."""
    backup = _backup(machine)
    machine.done("keys", "new", "ann")
    machine.done("keys", "add", "ann", "--person", "ann", "--role", "operator", "--namespace", "*")
    machine.done("roster", "export", str(file))
    _put_back(machine, backup)


def test_a_roster_is_exported_for_its_owner_alone(machine: Machine, tmp_path: Path) -> None:
    """It names people; a file that is there is replaced in one piece."""
    file = tmp_path / "roster.json"
    file.write_text("something else")
    file.chmod(0o644)
    lines = machine.done("roster", "export", str(file)).splitlines()
    document = machine.json("roster", "export", str(file))

    assert lines[0].split() == ["roster", str(file)]
    assert document == {"file": str(file), "bytes": file.stat().st_size}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert machine.done("roster", "export", "-").encode() == file.read_bytes()
    assert machine.run("roster", "export", "-", "--json").exit_code == 2
    assert machine.refused("roster", "export", str(tmp_path / "none" / "x"))[1] == (
        "directory-unusable"
    )


def test_a_roster_is_imported_into_an_older_store(machine: Machine, tmp_path: Path) -> None:
    """Before it, nothing is accepted and the hint says what to do; after it, the store opens."""
    file = tmp_path / "roster.json"
    _older(machine, file)
    result = machine.run(*_ACCEPT, "--dry-run")

    assert result.exit_code == 30
    assert "[rolled-back]" in result.stderr
    assert "sealpoint roster import" in result.stderr
    assert machine.done("roster", "import", str(file)) == "Put back: 1 entry.\n"
    assert machine.done("roster", "import", "-", stdin=file.read_bytes()) == (
        "Nothing was missing.\n"
    )
    assert machine.json("roster", "import", str(file)) == {"entries": 0, "head": 1, "anchored": 1}
    machine.done("threads")


def test_an_export_that_is_too_old_is_said(machine: Machine, tmp_path: Path) -> None:
    """What it has is put back, and it is not enough."""
    file = tmp_path / "roster.json"
    _older(machine, file)
    machine.done("roster", "import", str(file))
    machine.done("keys", "new", "bob")
    backup = _backup(machine)
    machine.done("keys", "add", "bob", "--person", "bob", "--role", "writer", "--namespace", "*")
    _put_back(machine, backup)
    printed = machine.done("roster", "import", str(file))

    assert printed.splitlines()[0] == "Nothing was missing."
    assert "The anchor has seen entry 2 of the store chain, and it still ends at entry 1" in printed


def test_something_else_is_not_imported(machine: Machine, tmp_path: Path) -> None:
    """A pin is no roster export, and neither is a file that is not there."""
    pin = tmp_path / "pin.json"
    machine.done("trust", "export", "--output", str(pin))

    assert machine.refused("roster", "import", str(pin)) == (39, "trust-file-invalid")
    assert machine.refused("roster", "import", str(tmp_path / "none")) == (2, "usage")


# ------------------------------------------------------------------ keys quorum


def test_a_quorum_is_set_and_used(machine: Machine) -> None:
    """Then operators accept a restore without the root."""
    printed = machine.done("keys", "quorum", "1")
    assert machine.json("keys", "quorum", "1", "--reason", "again")["quorum"] == 1
    _save(machine, "a")
    backup = _backup(machine)
    _save(machine, "a")
    _put_back(machine, backup)
    (key,) = machine.home.rglob("root.key")
    key.unlink()

    assert "1 operator" in printed
    assert "--identity NAME" in printed
    assert machine.json(*_ACCEPT, "--yes", "--identity", "operator")["epoch"] == 1


def test_a_quorum_of_nobody_is_the_root(machine: Machine) -> None:
    """0 takes it back, and more than there are is refused."""
    assert "nobody but the root" in machine.done("keys", "quorum", "0")
    assert machine.refused("keys", "quorum", "2") == (2, "usage")
