# SPDX-License-Identifier: Apache-2.0
"""`sealpoint pause`, `unpause`, `resume` and `handoff`: whether a thread goes on, and with whom."""

import json
import re
from pathlib import Path

import pytest

from sealpoint.errors import Busy, Paused
from sealpoint.gate import shipped_policy
from tests.cli.machine import Machine
from tests.cli.team import HOSTILE, READ, SHELL, make_team


@pytest.fixture
def team(tmp_path: Path) -> Machine:
    """A machine of a team, whose thread `t` has two checkpoints in the world `READ`."""
    made = make_team(tmp_path)
    with made.open() as store:
        for step in range(2):
            store.thread("t").save({"step": step}, id=f"step-{step}", world=READ)
    return made


def _world(machine: Machine, world: object) -> str:
    path = machine.home / "world.json"
    path.write_text(json.dumps(world))
    return str(path)


def _entries(machine: Machine) -> int:
    return int(machine.json("verify")["entries"])


# ---------------------------------------------------------------------- pausing


def test_a_pause_stops_a_worker_until_the_unpause(team: Machine) -> None:
    """Its next save is refused as paused, and the one after the unpause goes through."""
    with team.open() as store:
        store.thread("t").save({"step": 2}, world=READ)
        paused = team.done("pause", "t", "--reason", "looks odd")
        with pytest.raises(Paused):
            store.thread("t").save({"step": 3}, world=READ)
        unpaused = team.done("unpause", "t", "--reason", "fine")
        ref = store.thread("t").save({"step": 3}, world=READ)

    assert paused.splitlines()[0] == f"Paused: thread 't', entry {ref.seq - 2}."
    assert "Only the anchor of this account has seen it" in " ".join(paused.split())
    assert unpaused == f"Unpaused: thread 't', entry {ref.seq - 1}.\n"


def test_pausing_as_json(team: Machine) -> None:
    """The same document for both, and pausing twice names the pause that is there."""
    first = team.json("pause", "t", "--reason", "x")
    second = team.json("pause", "t", "--reason", "x")
    ended = team.json("unpause", "t", "--reason", "x")

    paused = {"thread": "t", "paused": True, "entry": 4, "anchor": "local"}
    assert (first, second) == ({**paused, "already": False}, {**paused, "already": True})
    assert ended == {"thread": "t", "paused": False, "entry": 5}


@pytest.mark.parametrize("verb", ["pause", "unpause"])
def test_what_cannot_be_paused_is_refused(team: Machine, verb: str) -> None:
    """No reason, no such thread, somebody who is no operator."""
    if verb == "unpause":
        team.done("pause", "t", "--reason", "x")

    assert team.run(verb, "t").exit_code == 2
    assert team.refused(verb, "t", "--reason", " ") == (2, "usage")
    assert team.refused(verb, "nobody", "--reason", "x") == (44, "unknown-thread")
    assert team.refused(verb, "t", "--reason", "x", "--identity", "worker") == (39, "no-right")
    assert team.refused(verb, "t", "--reason", "x", "--identity", "eve") == (60, "key-missing")


def test_a_thread_that_runs_is_not_unpaused(team: Machine) -> None:
    """Whoever unpauses the wrong thread is told."""
    assert team.refused("unpause", "t", "--reason", "x") == (2, "usage")


# ---------------------------------------------------------------------- resume, a dry run


def test_an_ordinary_continuation_would_be_allowed(team: Machine) -> None:
    """The exit status is 0, and nothing is written."""
    before = _entries(team)
    printed = team.done("resume", "t", "--world", _world(team, READ))
    document = team.json("resume", "t", "--world", _world(team, READ))

    assert printed.startswith("ALLOWED: resume of thread 't' under policy 'strict'\n")
    assert "An ordinary continuation" in printed
    assert (document["thread"], document["outcome"], document["ordinary"]) == ("t", "allow", True)
    assert document["reasons"] == []
    assert document["policy"]["name"] == "strict"
    assert _entries(team) == before


def test_what_needs_approval_is_told_with_every_reason(team: Machine) -> None:
    """Rule, measure and words of each; the exit status is 71, and no request is made."""
    before = _entries(team)
    wish = ("--world", _world(team, SHELL), "--ref", "seq:2", "--answer", '{"ok": true}')
    result = team.run("resume", "t", *wish)
    as_json = team.run("resume", "t", *wish, "--json")
    document = json.loads(as_json.stdout)

    assert result.exit_code == as_json.exit_code == 71
    assert result.stdout.startswith("NEEDS APPROVAL: ")
    assert "+ tool shell" in result.stdout
    assert document["outcome"] == "needs-approval"
    assert [(each["rule"], each["measure"]) for each in document["reasons"]] == [
        *(("older-checkpoint", "approve 2"), ("tools", "approve 2"), ("answer", "approve 2"))
    ]
    assert all(each["words"] for each in document["reasons"])
    assert as_json.stderr == ""
    assert (_entries(team), team.json("requests", "--all")["requests"]) == (before, [])


def test_a_dry_run_prints_what_the_run_asks(team: Machine) -> None:
    """As does `show`; a run that asks for nothing has no such words."""
    with team.open() as store:
        store.thread("u").save(1, world=READ, question={"pay": "250.00 EUR"})
    asked = team.run("resume", "u", "--world", _world(team, READ))
    plain = team.run("resume", "t", "--world", _world(team, READ))

    for printed in (asked.stdout, team.done("show", "u")):
        asks = printed.partition("It asks:\n")[2]
        assert "pay: 250.00 EUR" in asks
    assert "It asks" not in plain.stdout + team.done("show", "t")


def test_what_would_be_refused_exits_with_70(team: Machine) -> None:
    """A pause, a foreign identity, and without a policy's consent a missing word."""
    team.done("policy", "apply", "solo")
    wish = ("resume", "t", "--world", _world(team, SHELL))
    silent, meant = team.run(*wish), team.run(*wish, "--deliberate", "a new tool")
    other = team.run("resume", "t", "--identity", "second")
    team.done("pause", "t", "--reason", HOSTILE)
    paused = team.run("resume", "t", "--world", _world(team, READ))

    assert (silent.exit_code, meant.exit_code) == (70, 0)
    assert silent.stdout.startswith("REFUSED: ")
    assert "deliberate" in silent.stdout
    assert (other.exit_code, "not-owner" in other.stdout) == (70, True)
    assert paused.exit_code == 70
    assert "\\u{1b}" in paused.stdout
    assert "\u202e" not in paused.stdout


def test_a_dry_run_for_somebody_else_needs_no_key_of_theirs(team: Machine) -> None:
    """It tells what they would be told, and nothing is recorded."""
    entries = _entries(team)
    keys = list(team.home.rglob("worker*"))
    for key in keys:
        key.unlink()
    found = team.json("resume", "t", "--as", "worker", "--world", _world(team, READ))
    refused = team.refused("resume", "t", "--as", "nobody")
    printed = team.run("resume", "t", "--as", "ann", "--world", _world(team, READ))

    assert keys
    assert (found["outcome"], found["identity"]) == ("allow", "worker")
    assert refused == (2, "usage")
    assert printed.exit_code == 70
    assert printed.output.startswith("REFUSED: resume of thread 't' by 'ann' under policy")
    assert _entries(team) == entries


def test_a_session_that_is_too_young_exits_with_41(team: Machine, tmp_path: Path) -> None:
    """It is the status of `Busy`, which the resume itself would raise; a second reason makes 70."""
    file = tmp_path / "patient.toml"
    text = shipped_policy("strict").decode()
    file.write_text(re.sub('takeover_after = "[^"]*"', 'takeover_after = "1d"', text))
    team.done("policy", "apply", str(file))
    alone = team.run("resume", "t", "--world", _world(team, READ))
    with pytest.raises(Busy) as busy, team.open() as other:
        other.thread("t").resume(world=READ)
    team.done("pause", "t", "--reason", "look")
    paused = team.run("resume", "t", "--world", _world(team, READ))

    assert (alone.exit_code, busy.value.exit_status) == (41, 41)
    assert alone.stdout.startswith("REFUSED: ")
    assert paused.exit_code == 70


def test_a_dry_run_reads_its_arguments_strictly(team: Machine, tmp_path: Path) -> None:
    """Worlds and answers that are none, checkpoints and threads that are not there."""
    twice = tmp_path / "twice.json"
    twice.write_text('{"tools": [], "tools": []}')

    assert team.refused("resume", "t", "--world", str(twice)) == (2, "usage")
    assert team.refused("resume", "t", "--world", str(tmp_path / "none")) == (2, "usage")
    assert team.refused("resume", "t", "--world", _world(team, [1])) == (2, "usage")
    invalid = _world(team, {"tools": [{"description": "no name"}]})
    assert team.refused("resume", "t", "--world", invalid) == (2, "world-invalid")
    assert team.refused("resume", "t", "--answer", "null") == (2, "usage")
    assert team.refused("resume", "t", "--answer", "{") == (2, "usage")
    assert team.refused("resume", "t", "--answer", "1" * 40)[0] != 0
    assert team.refused("resume", "t", "--ref", "seq:9") == (44, "unknown-checkpoint")
    assert team.refused("resume", "t", "--ref", "step-9") == (44, "unknown-checkpoint")
    assert team.refused("resume", "nobody") == (44, "unknown-thread")


# ---------------------------------------------------------------------- handoff


def test_an_owner_hands_a_thread_off(team: Machine) -> None:
    """From then on it belongs to the other, and the first may not save."""
    document = team.json("handoff", "t", "--to", "second", "--reason", "on holiday")
    back = team.done("handoff", "t", "--to", "worker", "--reason", "y", "--identity", "second")

    assert document == {"thread": "t", "owner": "second", "entry": 4}
    assert back == "Handed off: thread 't' belongs to 'worker' from now on, entry 5.\n"


def test_an_operator_needs_approval_for_a_handoff(team: Machine) -> None:
    """The status is 71 until enough people have approved, and then the same command does it."""
    wish = ("handoff", "t", "--to", "second", "--reason", "gone", "--identity", "operator")
    first = team.run(*wish)
    (request,) = team.json("requests")["requests"]
    for name in ("ann", "bob"):
        assert team.refused(*wish) == (71, "needs-approval")
        yes = ("--yes-to", request["id"], "--identity", name, "--reason", "ok")
        team.done("approve", request["id"], *yes)

    assert first.exit_code == 71
    assert "run this same handoff command again" in first.stderr
    assert (request["statement"]["action"], request["statement"]["to"]) == ("handoff", "second")
    assert team.json(*wish)["owner"] == "second"


def test_a_handoff_needs_a_writer_and_a_right(team: Machine) -> None:
    """To nobody, to somebody who may not write, by somebody who may not, where it is refused."""
    wish = ("handoff", "t", "--reason", "x")

    assert team.refused(*wish, "--to", "nobody") == (2, "usage")
    assert team.refused(*wish, "--to", "ann") == (2, "usage")
    assert team.refused(*wish, "--to", "second", "--identity", "ann") == (39, "no-right")
    assert team.run("handoff", "t", "--to", "second").exit_code == 2
    refusing = team.home / "refusing.toml"
    source = team.done("policy", "show").replace(
        'handoff-by-operator = "approve 2"', 'handoff-by-operator = "refuse"'
    )
    refusing.write_text(source)
    team.done("policy", "apply", str(refusing))
    by_operator = (*wish, "--to", "second", "--identity", "operator")
    assert team.refused(*by_operator) == (70, "resume-refused")
