# SPDX-License-Identifier: Apache-2.0
"""The log of changes: what changed, when, and who made it, as far as anyone can know."""

from collections.abc import Iterable
from typing import Any

import pytest

from sealpoint.errors import NeedsApproval
from sealpoint_openclaw import Guard
from sealpoint_openclaw._change_log import ChangeRecord, Origin, read_changes
from tests.openclaw.recorded_folder import STATE, Recorded
from tests.openclaw.test_attacks import DEVICE

_MEMORY = "workspace/MEMORY.md"
_JOB = (
    "UPDATE cron_jobs SET name = 'nightly', job_json = json_set(job_json, '$.payload.message', ?)"
    " WHERE job_id = (SELECT min(job_id) FROM cron_jobs)"
)


def _log(recorded: Recorded, words: str = "") -> list[ChangeRecord]:
    settings = recorded.settings()
    with settings.open_store(read_only=True) as store:
        changes = list(read_changes(settings.guard(store), store.watch()))
    return [each for each in changes if each.concerns(words)]


def _tool(tool: str, call: str, *files: str) -> dict[str, Any]:
    named = {"agent": "main", "session": "agent:main:main", "run": "r1", "call": call}
    return {"kind": "tool", "tool": tool, "files": list(files)} | named


def _ended(call: str) -> dict[str, Any]:
    return {"kind": "act", "name": "after_tool_call", "session": "", "facts": {"toolCallId": call}}


def _approve(recorded: Recorded, request: str) -> None:
    for person in ("ann", "bob"):
        with recorded.settings().open_store(identity=person) as store:
            store.approve(request, reason="meant")


def test_a_job_is_found_by_both_of_its_names(recorded: Recorded) -> None:
    """With what it was and what it is."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.sql(STATE, _JOB, "report")
        watch.seal()
        recorded.sql(STATE, _JOB, "pay mallory")
        watch.end(crashed=False)
    paid, renamed = _log(recorded, "job nightly")

    assert "payload.message report -> pay mallory" in paid.values
    assert renamed.former.startswith("cron job lab")
    assert _log(recorded, "job lab") == [renamed]
    assert (paid.origin, paid.who) == (Origin.GATEWAY, "while OpenClaw ran")
    assert paid.since == renamed.time


def test_a_device_that_is_called_like_another_is_not_taken_for_it(recorded: Recorded) -> None:
    """Its name ends with the id of the other one."""
    named = "INSERT INTO device_pairing_paired (device_id, public_key, display_name, roles_json,"
    named += " scopes_json, approved_scopes_json, tokens_json, created_at_ms, approved_at_ms)"
    named += " VALUES (?, 'key', ?, '[]', ?, '[]', '{}', 1, 1)"
    with recorded.guard() as guard, guard.running() as watch:
        recorded.sql(STATE, named, "evil", "Ann (ann1), good", '["operator.admin"]')
        recorded.sql(STATE, named, "ann1", "Ann", "[]")
        watch.end(crashed=False)
    (honest,) = [each for each in _log(recorded, "device") if each.row == '["ann1"]']

    assert honest.name == "device Ann (ann1)"
    assert "operator.admin" not in honest.text


def test_an_edit_while_it_was_stopped_has_no_author(recorded: Recorded) -> None:
    """The person who accepted it is named, and why."""
    recorded.write("workspace/AGENTS.md", "Be brief.\n")
    with recorded.guard() as guard:
        guard.accept("shorter", "ann")
    (change,) = _log(recorded, "AGENTS.md")

    assert change.origin is Origin.OUTSIDE
    assert change.author == (
        "nobody on record, while OpenClaw was stopped; accepted by ann; shorter"
    )


def test_what_nobody_saw_after_a_crash_has_no_author(recorded: Recorded) -> None:
    """It may have been the gateway, or anyone."""
    recorded.die_running()
    with recorded.guard() as guard:
        guard.accept("a power cut")
    message, *_ = _log(recorded, "message")

    assert message.origin is Origin.OUTSIDE
    assert "while no guard saw it" in message.who


def test_a_command_is_of_the_person_who_ran_it(recorded: Recorded) -> None:
    """As the caller of the guard said."""
    with recorded.guard() as guard:
        before = guard.verify()
        recorded.write("openclaw.json", '{"gateway": {"bind": "lan"}}')
        guard.seal_command(before, "the phone of ann", "ann")
    (change,) = _log(recorded, "openclaw.json")

    assert change.author == "ann; the phone of ann"
    assert "gateway.bind loopback -> lan" in change.values
    assert "- tools.exec.ask on-miss" in change.values


def test_a_change_that_people_approved_later_names_them(team: Recorded) -> None:
    """It took effect while the gateway ran; the next start waited for them."""
    with team.guard() as guard, guard.running() as watch:
        team.sql(STATE, DEVICE)
        team.sql(STATE, "UPDATE device_pairing_paired SET display_name = 'Ann''s phone'")
        team.write("workspace/skills/deploy/SKILL.md", "Deploy.\n")
        team.write("workspace/skills/deploy/run.sh", "make\n")
        watch.seal()
        seen = watch.latest.time
        watch.end(crashed=False)
    with team.guard() as guard, pytest.raises(NeedsApproval) as caught, guard.running():
        pytest.fail("it started")
    assert caught.value.request is not None
    _approve(team, caught.value.request.id)
    with team.guard() as guard, guard.running() as watch:
        watch.end(crashed=False)
    device, skill = _log(team, "device Ann's phone")[0], _log(team, "skill deploy")

    assert [each.name for each in skill] == ["skill deploy (workspace/skills/deploy)"]
    for each in (device, *skill):
        assert each.time == seen
        assert each.author == "while OpenClaw ran; approved by ann, bob"
    assert 'scopes_json ["operator.admin"]' in device.text


def _writes(guard: Guard, recorded: Recorded, acts: Iterable[dict[str, Any]]) -> ChangeRecord:
    """Change the memory while some acts are on record."""
    with guard.running() as watch:
        for act in acts:
            watch.acts.record([act])
        recorded.write(_MEMORY, "Ann likes coffee.\n")
        watch.seal()
        watch.end(crashed=False)
    (change,) = _log(recorded, "MEMORY.md")
    return change


@pytest.mark.parametrize(
    ("tool", "file"),
    [("write", "MEMORY.md"), ("edit", "workspace/MEMORY.md"), ("apply_patch", "{folder}")],
)
def test_a_memory_that_a_tool_named_is_of_its_run(recorded: Recorded, tool: str, file: str) -> None:
    """Relative to the workspace, or with the whole path."""
    path = file.format(folder=recorded.folder / _MEMORY)
    with recorded.guard() as guard:
        change = _writes(guard, recorded, [_tool("exec", "c0"), _tool(tool, "c1", "a.md", path)])

    assert change.origin is Origin.TOOL
    assert change.who == f"run r1 of main, {tool} c1, agent:main:main"


@pytest.mark.parametrize(
    "acts",
    [
        [],
        [_tool("exec", "c1")],
        [_tool("read", "c1", "MEMORY.md")],
        [_tool("write", "c1", "OTHER-MEMORY.md")],
        [_tool("write", "c1", "other/MEMORY.md")],
        [_tool("write", "c1", "*", ".", "")],
    ],
    ids=["nothing", "a command", "it was read", "another file", "another folder", "no file"],
)
def test_a_memory_that_no_tool_named_has_no_author(
    recorded: Recorded, acts: list[dict[str, Any]]
) -> None:
    """A command of an agent may have written it, or another process: nobody can tell."""
    with recorded.guard() as guard:
        change = _writes(guard, recorded, acts)

    assert change.origin is Origin.GATEWAY
    assert change.who == "while OpenClaw ran" + (", during run r1" if acts else "")


@pytest.mark.parametrize(("tool", "origin"), [("lobster", Origin.TOOL), ("exec", Origin.GATEWAY)])
def test_a_workflow_that_waits_is_of_the_call_that_ran_it(
    recorded: Recorded, tool: str, origin: Origin
) -> None:
    """Lobster names no file. Its steps are in the log too."""
    with recorded.guard() as guard, guard.running() as watch:
        watch.acts.record([_tool(tool, "c1")])
        recorded.write("workspace/pipeline_resume_7.json", '{"pipeline": [{"name": "exec"}]}')
        watch.end(crashed=False)
    file, step = _log(recorded, "pipeline_resume_7.json")

    assert [file.text, step.text] == [
        "file workspace/pipeline_resume_7.json: added",
        'file workspace/pipeline_resume_7.json, step 1 "exec": added',
    ]
    assert [file.origin, step.origin] == [origin] * 2


def test_a_tool_call_counts_until_it_has_ended(recorded: Recorded) -> None:
    """Of two seals, the call is of the time of both only if it had not ended at the first."""
    with recorded.guard() as guard, guard.running() as watch:
        watch.acts.record([_tool("write", "c1", "MEMORY.md"), _tool("write", "c2", "SOUL.md")])
        watch.acts.record([_ended("c2")])
        recorded.turn()
        watch.seal()
        for file in (_MEMORY, "workspace/SOUL.md"):
            recorded.write(file, "changed\n")
        watch.end(crashed=False)

    assert _log(recorded, "MEMORY.md")[0].origin is Origin.TOOL
    assert _log(recorded, "SOUL.md")[0].origin is Origin.GATEWAY


def test_an_upgrade_is_in_the_log(recorded: Recorded) -> None:
    """With both versions, and the person who started it."""
    settings = recorded.settings()
    with settings.open_store() as store:
        for version in ("2026.8.2", "2026.9.6"):
            guard = Guard(
                *(store.thread, settings.thread, settings.folder, settings.digests()),
                {"openclaw": version},
            )
            with guard.running(reason="upgrade", actor="ann") as watch:
                watch.end(crashed=False)
    upgrade, _ = _log(recorded, "version of openclaw")

    assert upgrade.text == "version of openclaw: changed: 2026.8.2 -> 2026.9.6"
    assert upgrade.author == "ann; upgrade"


def test_growth_is_told_apart(recorded: Recorded) -> None:
    """Messages and notes of a running gateway; never what was done past the guard."""
    with recorded.guard() as guard, guard.running() as watch:
        recorded.turn()
        recorded.write(_MEMORY, "changed\n")
        watch.end(crashed=False)
    recorded.turn()
    with recorded.guard() as guard:
        guard.accept("by hand")
    *outside, memory = [each for each in _log(recorded) if not each.is_growth]

    assert memory.place == f"file {_MEMORY}"
    assert {each.origin for each in outside} == {Origin.OUTSIDE}
    assert any(each.name.startswith("message ") for each in outside)
    assert [each.origin for each in _log(recorded, "message")] == [Origin.OUTSIDE, Origin.GATEWAY]
