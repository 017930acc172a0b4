# SPDX-License-Identifier: Apache-2.0
"""What the gateway, its users and its commands do honestly: nothing of it raises an alarm."""

import json
import os
from dataclasses import replace

import pytest

from sealpoint.errors import NeedsApproval, ResumeRefused, StateUnsealed
from sealpoint_openclaw import Moment
from tests.openclaw.recorded_folder import AGENT, STATE, Recorded

_POLICY = json.dumps({"version": 1, "agents": {"main": {"security": "full", "ask": "off"}}})


def _open_policy(recorded: Recorded) -> None:
    recorded.sql(STATE, "UPDATE exec_approvals_config SET raw_json = ?", _POLICY)


def test_turns_and_restarts_raise_no_alarm(recorded: Recorded) -> None:
    """Five starts with turns, seals while it runs, and clean stops."""
    for _ in range(5):
        with recorded.guard() as guard, guard.running() as watch:
            recorded.turn()
            watch.seal()
            recorded.turn()
            watch.end(crashed=False)
    with recorded.guard() as guard:
        check = guard.verify()

    assert check.differences == ()
    assert check.seal.moment is Moment.STOPPED


def test_a_running_gateway_that_is_killed_raises_no_alarm(recorded: Recorded) -> None:
    """The guard sees it end, and seals what it left."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.turn()
        watch.end(crashed=True)
    with recorded.guard() as guard, guard.running() as watch:
        watch.end(crashed=False)


def test_a_seal_of_a_running_gateway_without_changes_is_not_made(recorded: Recorded) -> None:
    """What is ignored, such as leases and logs, is no change."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.write("logs/gateway.log", "more")
        recorded.sql(STATE, "UPDATE schema_meta SET updated_at = 1")

        assert watch.seal() is None
        recorded.turn()
        assert watch.seal() is not None
        assert watch.seal() is None
        watch.end(crashed=False)


def test_a_command_that_opens_a_database_raises_no_alarm(recorded: Recorded) -> None:
    """`openclaw tasks maintenance` notes the time and the size on a stopped gateway."""
    recorded.sql(STATE, "UPDATE agent_databases SET last_seen_at = 7, size_bytes = 7")
    with recorded.guard() as guard:
        assert guard.verify().differences == ()


def test_what_a_running_gateway_keeps_up_to_date_is_no_change_of_the_world(
    team: Recorded,
) -> None:
    """The next run of a job, the last use of an agent, logins, and what Python compiled."""
    tokens = '{"profiles": {"mail": {"access": "%s"}}}'
    team.sql(AGENT, "INSERT INTO auth_profile_store VALUES ('primary', ?, 1)", tokens % "old")
    team.sql(STATE, "INSERT INTO mcp_oauth_stores VALUES ('server', 1, '{}', 1)")
    team.write("credentials/whatsapp/default/creds.json", "old")
    with team.guard() as guard, pytest.raises(NeedsApproval) as caught:
        guard.accept("logins")
    assert caught.value.request is not None
    _approve(team, caught.value.request.id)
    with team.guard() as guard:
        guard.accept("logins")
    with team.guard() as guard, guard.running() as watch:
        team.sql(STATE, "UPDATE cron_jobs SET state_json = '{\"nextRunAtMs\": 7}', sort_order = 9")
        team.sql(STATE, "UPDATE agent_databases SET last_seen_at = 7, size_bytes = 7")
        team.sql(AGENT, "UPDATE auth_profile_store SET store_json = ?", tokens % "new")
        team.sql(STATE, 'UPDATE mcp_oauth_stores SET store_json = \'{"access": "new"}\'')
        team.write("credentials/whatsapp/default/creds.json", "new")
        team.write("workspace/skills/report/__pycache__/report.cpython-312.pyc", "code")
        watch.seal()
        watch.end(crashed=False)
    with team.guard() as guard, guard.running() as watch:
        watch.end(crashed=False)

    assert watch.waits == ()


def test_a_new_login_is_a_change_of_the_world(team: Recorded) -> None:
    """People decide which accounts an agent has, and not about the tokens of one."""
    with team.guard() as guard, guard.running() as watch:
        store = '{"profiles": {"mail": {}}}'
        team.sql(AGENT, "INSERT INTO auth_profile_store VALUES ('primary', ?, 1)", store)
        watch.seal()
        waits = watch.waits
        watch.end(crashed=False)

    assert any("model credentials primary" in line for line in waits)


def test_a_folder_behind_a_link_is_the_same_folder(recorded: Recorded) -> None:
    """Its databases are not compared as files too."""
    link = recorded.home / "link"
    link.symlink_to(recorded.folder)
    linked = replace(recorded, folder=link)
    recorded.sql(STATE, "UPDATE schema_meta SET updated_at = updated_at + 1")
    with linked.guard() as guard:
        assert guard.verify().differences == ()


def test_a_directory_that_vanishes_while_it_is_read_is_no_alarm(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands of an agent make and remove directories."""
    build = recorded.folder / "workspace/build"
    build.mkdir()
    scandir = os.scandir

    def vanishing(path: str | int) -> object:
        if path == str(build) and build.is_dir():
            build.rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    with recorded.guard() as guard:
        assert guard.verify().differences == ()
    assert not build.exists()


def test_a_change_of_the_world_while_it_runs_is_recorded_with_a_reason(recorded: Recorded) -> None:
    """Under `solo`: the guard says what it saw, and the next start asks nothing."""
    with recorded.guard() as guard, guard.running() as watch:
        _open_policy(recorded)
        watch.seal()
        watch.end(crashed=False)
    with recorded.guard() as guard, guard.running() as watch:
        watch.end(crashed=False)
    with recorded.settings().open_store(read_only=True) as store:
        told = [record.summary for record in store.audit() if record.kind == "resume"]

        assert store.verify().ok
    assert any("changed while OpenClaw ran: + permission" in summary for summary in told)


def test_a_command_that_changes_the_world_is_sealed_with_a_reason(recorded: Recorded) -> None:
    """Without one the policy refuses it, and nothing starts before somebody accepts it."""
    with recorded.guard() as guard:
        before = guard.verify()
        recorded.write("openclaw.json", "{}")
        with pytest.raises(ResumeRefused):
            guard.seal_command(before, None, None)
        _, ref = guard.seal_command(before, "set up by ann", "ann")

        assert ref is not None
        assert guard.verify().seal.moment in {Moment.COMMAND, Moment.ACCEPTED}


def test_a_command_that_changes_nothing_makes_no_seal(recorded: Recorded) -> None:
    """`openclaw doctor` writes notes that are ignored."""
    with recorded.guard() as guard:
        before = guard.verify()
        recorded.sql(STATE, "UPDATE schema_meta SET updated_at = 1")

        assert guard.seal_command(before, None, None)[1] is None


def test_a_verb_without_a_command_keeps_the_version_of_openclaw(recorded: Recorded) -> None:
    """Otherwise what people accept would be another world than the one that starts."""
    settings = replace(recorded.settings(), runtime={"openclaw": "2026.9.6"})
    with settings.open_store() as store, settings.guard(store).running() as watch:
        watch.end(crashed=False)
    with recorded.guard() as guard:
        assert guard.verify().world.runtime["openclaw"] == "2026.9.6"


def test_after_a_power_cut_a_person_accepts_what_nobody_saw(crashed: Recorded) -> None:
    """The list names every row, and after the decision the gateway starts."""
    with crashed.guard() as guard:
        with pytest.raises(StateUnsealed) as caught:
            guard.verify()
        guard.accept("a power cut; I have read the last messages")
        check = guard.verify()

    assert [line for line in caught.value.differences if "transcript_events" in line]
    assert check.seal.moment is Moment.ACCEPTED


def test_a_compaction_while_it_runs_is_no_alarm(recorded: Recorded) -> None:
    """A transcript that the gateway rewrites while it runs is sealed as it is then."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.sql(AGENT, "DELETE FROM transcript_events WHERE seq BETWEEN 2 AND 4")
        recorded.turn()
        watch.seal()
        watch.end(crashed=False)
    with recorded.guard() as guard:
        assert guard.verify().differences == ()


def test_an_edit_of_an_old_row_while_it_runs_is_in_the_last_seal(recorded: Recorded) -> None:
    """Seals of a running gateway read new rows only; the last one reads all."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.sql(AGENT, "UPDATE transcript_events SET event_json = '{}' WHERE seq = 2")
        watch.seal()
        watch.end(crashed=False)
    with recorded.guard() as guard:
        assert guard.verify().differences == ()


# ---------------------------------------------------------------------- teams


def _approve(recorded: Recorded, request: str) -> None:
    for person in ("ann", "bob"):
        with recorded.settings().open_store(identity=person) as store:
            store.approve(request, reason="meant")


def test_a_team_approves_a_change_that_was_made_while_it_ran(team: Recorded) -> None:
    """The request is there when the gateway has stopped, and the next start waits for it."""
    with team.guard() as guard, guard.running() as watch:
        _open_policy(team)
        watch.seal()
        waits = watch.waits
        watch.end(crashed=False)
    with team.guard() as guard, pytest.raises(NeedsApproval) as caught, guard.running():
        pytest.fail("it started")
    assert caught.value.request is not None
    _approve(team, caught.value.request.id)
    with team.guard() as guard, guard.running() as watch:
        watch.end(crashed=False)

    assert any("exec policy of main: security full" in line for line in waits)


def test_a_team_approves_a_changed_file_and_nothing_else(team: Recorded) -> None:
    """What is approved is bound to all that differs: one more change needs another request."""
    team.write("workspace/AGENTS.md", "Be brief.\n")
    with team.guard() as guard, pytest.raises(NeedsApproval) as caught:
        guard.accept("brevity")
    assert caught.value.request is not None
    _approve(team, caught.value.request.id)
    team.write("workspace/MEMORY.md", "Ann trusts mallory.\n")
    with team.guard() as guard, pytest.raises(NeedsApproval) as other:
        guard.accept("brevity")
    assert other.value.request is not None
    assert other.value.request.id != caught.value.request.id
    team.write("workspace/MEMORY.md", "Ann likes tea.\n")
    with team.guard() as guard:
        guard.accept("brevity")

        assert guard.verify().differences == ()
