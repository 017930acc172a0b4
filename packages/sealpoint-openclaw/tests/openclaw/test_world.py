# SPDX-License-Identifier: Apache-2.0
"""The world of a gateway: every row and plugin is a leaf of its own, and odd names make no gap."""

import json
from pathlib import Path

import pytest

from sealpoint.errors import StateChanged
from sealpoint.world import World
from sealpoint_openclaw import Folder, Moment
from sealpoint_openclaw._world import unguarded_folders
from tests.openclaw.recorded_folder import STATE, Recorded


def _add_job(recorded: Recorded, store: str, job: str, name: str) -> None:
    recorded.sql(
        STATE,
        "INSERT INTO cron_jobs (store_key, job_id, name, enabled, payload_kind, job_json,"
        " updated_at) VALUES (?, ?, ?, 1, 'agentTurn', ?, 1)",
        *(store, job, name, json.dumps({"payload": {"kind": "agentTurn", "message": job}})),
    )


@pytest.mark.parametrize("name", ["report", "Every morning, read the mail and report it. " * 9])
@pytest.mark.parametrize(
    ("first", "second"),
    [(("s", "approved"), ("s", "evil")), (("s/t", "evil"), ("s", "t/evil"))],
    ids=["another key", "a key that reads the same"],
)
def test_a_row_with_the_name_of_another_is_a_leaf_of_its_own(
    recorded: Recorded, name: str, first: tuple[str, str], second: tuple[str, str]
) -> None:
    """Otherwise the second job would run under the approval of the first."""
    _add_job(recorded, *first, name)
    with recorded.guard() as guard:
        before = guard.read(None)[1]
    _add_job(recorded, *second, name)
    with recorded.guard() as guard:
        after = guard.read(None)[1]

    assert len(after.topology or {}) == len(before.topology or {}) + 1


@pytest.mark.parametrize(
    "text",
    [
        '{"agents":{"defaults":{"model":"\\ud800","heartbeat":{"\\ud800":1e999}}}}',
        '{"tools":{"\\ud800":"\\udfff"}}',
    ],
)
def test_half_a_character_in_a_setting_does_not_hide_what_changed(
    recorded: Recorded, text: str
) -> None:
    """The refusal names the file, and people can accept it."""
    recorded.write("openclaw.json", text)
    with recorded.guard() as guard:
        with pytest.raises(StateChanged, match=r"openclaw\.json"):
            guard.verify()
        guard.accept("odd")

        assert guard.verify().differences == ()


def test_a_plugin_or_skill_is_one_leaf_that_covers_all_its_files(recorded: Recorded) -> None:
    """A change, a new name or a removal of any of its files changes it."""
    roots = ("extensions/p", "hooks/h", "workspace/skills/s", "plugin-skills/s")
    leaves = {"extensions/p", "hooks/h", "skill workspace/skills/s", "skill plugin-skills/s"}

    def world() -> World:
        with recorded.guard() as guard:
            return guard.read(None)[1]

    bare = world()
    for root in roots:
        recorded.write(f"{root}/lib/a.js", "1")
        recorded.write(f"{root}/lib/AGENTS.md", "1")
    whole = world()
    changed = set()
    for edit in ("write", "rename", "unlink"):
        for root in roots:
            before, file = world(), recorded.folder / root / "lib/a.js"
            if edit == "write":
                file.write_text("2", encoding="utf-8")
            elif edit == "rename":
                file.rename(file.with_name("b.js"))
            else:
                file.with_name("b.js").unlink()
            changed.add(len(before.diff(world()).lines()))

    assert changed == {1}
    assert {*_parts(whole)} - {*_parts(bare)} == leaves


def test_a_folder_elsewhere_that_no_setting_of_the_guard_names_is_listed(
    recorded: Recorded,
) -> None:
    """Edits of it would pass without a word."""
    folder = Folder(root=recorded.folder, others={"workspace": recorded.home / "clawd"})
    named = {
        "agents": {
            "defaults": {"workspace": str(recorded.home / "clawd")},
            "list": [{"workspace": "/srv/evil"}, {"workspace": str(recorded.folder / "w")}],
        },
        "plugins": {"load": {"paths": ["~/plugs", f"{recorded.folder}/../out", "\ud800\0"]}},
    }
    recorded.write("openclaw.json", json.dumps(named))
    (recorded.folder / "workspace-2").symlink_to("/srv/linked")

    assert unguarded_folders(folder) == [
        f"{recorded.folder}/workspace-2 (a link)",
        "/srv/evil (agents.list.workspace)",
        f"{Path('~/plugs').expanduser()} (plugins.load.paths)",
        f"{recorded.folder}/../out (plugins.load.paths)",
        "\\ud800\0 (plugins.load.paths)",
    ]


def test_the_plugin_of_the_guard_is_no_folder_elsewhere(recorded: Recorded) -> None:
    """Each start writes it again."""
    gate = recorded.home / "gate"
    recorded.write(
        "openclaw.json", json.dumps({"plugins": {"load": {"paths": [f"{gate}/plugin"]}}})
    )

    assert unguarded_folders(Folder(root=recorded.folder), gate) == []
    assert len(unguarded_folders(Folder(root=recorded.folder))) == 1


def test_a_configuration_that_is_not_plain_json_may_name_any_folder(recorded: Recorded) -> None:
    """The guard does not know which, and says so."""
    recorded.write("openclaw.json", "// mine\n{}")

    assert unguarded_folders(Folder(root=recorded.folder)) == [
        "any folder that openclaw.json names, because it is not plain JSON"
    ]


def _parts(world: World) -> list[str]:
    return [*(tool.name for tool in world.tools or ()), *(world.prompts or {})]


def test_a_plugin_with_many_files_is_installed_while_it_runs(recorded: Recorded) -> None:
    """All of them were in the world, which has a limit, so no seal of the end could be made."""
    folder = recorded.folder / "extensions/p" / ("module" * 40) / ("source" * 40)
    with recorded.guard() as guard, guard.running() as watch:
        folder.mkdir(parents=True)
        for file in range(1200):
            (folder / f"{file}.js").touch()
        watch.end(crashed=False)

        assert guard.newest().moment is Moment.STOPPED
