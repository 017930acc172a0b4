# SPDX-License-Identifier: Apache-2.0
"""`sealpoint openclaw`: what people and service managers see, with an openclaw of our own."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sealpoint.cli import main
from tests.openclaw.recorded_folder import AGENT, STATE, Recorded

_OPENCLAW = f"""#!{sys.executable}
import os, pathlib, signal, sys, time
from tests.openclaw.recorded_folder import Recorded
folder = pathlib.Path(os.environ["OPENCLAW_STATE_DIR"])
recorded = Recorded(folder.parent, folder=folder)
match sys.argv[1:]:
    case ["gateway"]:
        recorded.turn()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print("ready", flush=True)
        time.sleep(60)
    case ["config", "set", text]:
        recorded.write("openclaw.json", text)
    case ["doctor"]:
        sys.exit(3)
"""
_ROOT = Path(__file__).parents[1]
_SECONDS_MAX = 60
_GATEWAY_UID = 64002


class _Laptop:
    """A recorded folder with its guard, and an `openclaw` on the path."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        program = recorded.home / "bin" / "openclaw"
        program.parent.mkdir(exist_ok=True)
        program.write_text(_OPENCLAW, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.environment = os.environ | {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "OPENCLAW_STATE_DIR": str(recorded.folder),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }

    @property
    def directories(self) -> list[str]:
        settings = self.recorded.settings()
        return ["--config-dir", str(settings.config_dir), "--state-dir", str(settings.state_dir)]

    def verb(self, *words: str) -> Result:
        """Run a verb in this process; it ends without a traceback."""
        name, *rest = words
        result = CliRunner().invoke(main, ["openclaw", name, *self.directories, *rest])
        assert result.exception is None or isinstance(result.exception, SystemExit), result
        return result

    def document(self, *words: str) -> dict[str, Any]:
        """Run a verb that succeeds, and return its JSON."""
        result = self.verb(*words, "--json")
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def started(self, *words: str) -> "subprocess.Popen[str]":
        """Start `run` in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "sealpoint", "openclaw", "run", *self.directories, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ran(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `run` until it ends."""
        process = self.started(*words)
        out, err = process.communicate(timeout=_SECONDS_MAX)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def laptop(recorded: Recorded) -> _Laptop:
    """A guarded folder."""
    return _Laptop(recorded)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """A sealed folder."""
    return Recorded.of(tmp_path)


def test_a_gateway_runs_under_the_guard_until_it_is_stopped(laptop: _Laptop) -> None:
    """A signal reaches it, the guard seals what it left, and the next verify is clean."""
    process = laptop.started("--", "openclaw", "gateway")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=_SECONDS_MAX)

    assert process.returncode == 0
    assert "OpenClaw's state is verified; starting openclaw gateway" in err
    assert "OpenClaw has stopped; its state is sealed" in err
    assert laptop.verb("verify").exit_code == 0
    assert laptop.document("status")["seal"]["moment"] == "stopped"


@pytest.mark.parametrize("verb", ["status", "diff"])
def test_a_workspace_that_is_not_guarded_is_named(laptop: _Laptop, verb: str) -> None:
    """The configuration names it, and no `--also` does."""
    config = {"agents": {"defaults": {"workspace": "/srv/clawd"}}}
    laptop.recorded.write("openclaw.json", json.dumps(config))

    assert "Not guarded: /srv/clawd (agents.defaults.workspace)" in laptop.verb(verb).output


def test_a_gateway_does_not_start_from_an_edited_folder(laptop: _Laptop) -> None:
    """The error names the file; `diff` shows it; `accept` with a reason lets it start."""
    laptop.recorded.write("workspace/AGENTS.md", "Be evil.\n")
    refused = laptop.ran("--", "openclaw", "gateway")

    assert refused.returncode == 30
    assert "ready" not in refused.stdout
    assert "state-changed" in refused.stderr
    assert "workspace/AGENTS.md" in refused.stderr
    assert "workspace/AGENTS.md" in laptop.verb("diff").stdout
    assert laptop.verb("verify").exit_code == 30
    (difference,) = laptop.document("diff")["differences"]
    assert (difference["place"], difference["class"]) == (
        "file workspace/AGENTS.md",
        "exact",
    )
    assert laptop.verb("accept").exit_code == 2
    assert laptop.verb("accept", "--reason", "as ann wants it").exit_code == 0
    assert laptop.verb("verify").exit_code == 0


def test_a_command_is_verified_run_shown_and_sealed(laptop: _Laptop) -> None:
    """With a reason a change of what OpenClaw may do is sealed, and without one it is not."""
    refused = laptop.ran("--", "openclaw", "config", "set", "{}")
    shown = laptop.verb("diff").stdout
    accepted = laptop.verb("accept", "--reason", "reset by ann", "--actor", "ann")
    again = laptop.ran("--reason", "ann wants it", "--", "openclaw", "config", "set", '{"a": 1}')

    assert refused.returncode == 70
    assert "sealpoint openclaw accept --reason WHY" in " ".join(refused.stderr.split())
    assert "rollout" not in refused.stderr
    assert "openclaw.json" in refused.stdout
    assert "openclaw.json" in shown
    assert accepted.exit_code == 0
    assert again.returncode == 0
    assert "The change is sealed" in again.stderr
    assert laptop.verb("verify").exit_code == 0


def test_the_log_says_who_changed_what(laptop: _Laptop) -> None:
    """By the name of the thing; without a name, all but what the gateway writes all the time."""
    empty = laptop.verb("log")
    laptop.ran("--reason", "a phone", "--actor", "ann", "--", "openclaw", "config", "set", "{}")
    laptop.recorded.write("workspace/MEMORY.md", "Ann trusts mallory.\n")
    laptop.verb("accept", "--reason", "so she does", "--actor", "bob")

    assert "No change is on record." in empty.stdout
    lines = laptop.verb("log").stdout.splitlines()
    assert ["file workspace/MEMORY.md" in lines[0], "ann; a phone" in " ".join(lines)] == [True] * 2
    assert "accepted by bob; so she does" in " ".join(
        laptop.verb("log", "memory.md").stdout.split()
    )
    assert "... and older ones" in laptop.verb("log", "--limit", "1").stdout
    assert "No change of it is on record." in laptop.verb("log", "job", "nightly").stdout
    document = laptop.document("log", "openclaw.json")
    assert [(each["who"], each["origin"]) for each in document["changes"]] == [("ann", "command")]
    assert laptop.document("log", "--limit", "1")["more"] is True


def test_many_new_files_are_one_line_of_the_log(laptop: _Laptop) -> None:
    """As an upgrade brings them; programs are given each."""
    for number in range(12):
        laptop.recorded.write(f"cache/assets/9f/{number}.js", "1")
    laptop.verb("accept", "--reason", "an upgrade", "--actor", "bob")
    (line,) = laptop.verb("log", "--limit", "1").stdout.split("\n  ")[:1]

    assert "12 files in cache/assets: added" in " ".join(line.split())
    assert len(laptop.document("log", "cache")["changes"]) == 12


def test_people_who_have_to_approve_are_named_a_command_that_fits(laptop: _Laptop) -> None:
    """A gateway has no rollouts."""
    laptop.recorded.give_to_team()
    laptop.recorded.write("workspace/AGENTS.md", "Be brief.\n")
    asked = laptop.verb("accept", "--reason", "brevity")

    assert asked.exit_code == 71
    assert "sealpoint approve ID --reason WHY. After that, repeat" in " ".join(asked.stderr.split())
    assert "rollout" not in asked.stderr


def test_the_status_of_a_command_is_passed_on(laptop: _Laptop) -> None:
    """And nothing is sealed where nothing changed."""
    ran = laptop.ran("--", "openclaw", "doctor")

    assert ran.returncode == 3
    assert "OpenClaw's state did not change" in ran.stderr


def test_a_command_that_does_not_exist_is_said(laptop: _Laptop) -> None:
    """Before anything is recorded as started."""
    ran = laptop.ran("--gateway", "--", "no-such-program")

    assert ran.returncode == 2
    assert "no-such-program: it cannot be started" in ran.stderr
    assert laptop.verb("verify").exit_code == 0


def test_init_makes_keys_store_and_first_seal(tmp_path: Path) -> None:
    """In directories that it makes; a second time it says that the folder is guarded."""
    recorded = Recorded.of(tmp_path / "other")
    config, state, store = (tmp_path / name for name in ("config", "state", "seals/seals.db"))
    words = [
        *("openclaw", "init", "--folder", str(recorded.folder), "--same-user", "--json"),
        *("--config-dir", str(config), "--state-dir", str(state), "--store", f"sqlite:///{store}"),
    ]
    first = CliRunner().invoke(main, words)
    again = CliRunner().invoke(main, words)

    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["folder"] == str(recorded.folder)
    assert again.exit_code == 2
    assert "sealpoint openclaw status" in again.stderr


def test_keys_inside_the_folder_are_refused(recorded: Recorded) -> None:
    """A user who writes the folder could seal its change; nothing is made there."""
    inside = recorded.folder / "keys"
    result = CliRunner().invoke(
        main,
        [
            *("openclaw", "init", "--folder", str(recorded.folder), "--same-user"),
            *("--config-dir", str(inside), "--state-dir", str(recorded.home / "s2")),
        ],
    )

    assert result.exit_code == 60
    assert "guard-exposed" in result.stderr
    assert not inside.exists()


def test_one_user_for_both_is_refused_unless_it_is_accepted(tmp_path: Path) -> None:
    """The hint names the option, and what it gives up."""
    folder = tmp_path / "openclaw"
    recorded = Recorded.of(tmp_path / "other").copied(folder)
    result = CliRunner().invoke(
        main,
        [
            *("openclaw", "init", "--folder", str(recorded.folder)),
            *("--config-dir", str(tmp_path / "c"), "--state-dir", str(tmp_path / "s")),
        ],
    )

    assert result.exit_code == 60
    assert "--same-user" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
def test_a_guard_of_root_leaves_every_file_to_the_gateway(recorded: Recorded) -> None:
    """SQLite makes files next to a database that it reads: they belong to the gateway's user."""
    for database in (STATE, AGENT):
        recorded.sql(database, "PRAGMA journal_mode = WAL")
    for path in (recorded.folder, *recorded.folder.rglob("*")):
        os.chown(path, _GATEWAY_UID, _GATEWAY_UID)
    with recorded.guard() as guard:
        guard.check()

    assert recorded.settings().is_same_user() is False
    owners = {path: path.stat().st_uid for path in recorded.folder.rglob("*")}
    assert {*owners.values()} == {_GATEWAY_UID}
    assert any(path.name.endswith("-shm") for path in owners)


def _doctor(recorded: Recorded) -> dict[str, bool]:
    settings = recorded.settings()
    result = CliRunner().invoke(
        main,
        [
            *("doctor", "--store", settings.store, "--json"),
            *("--config-dir", str(settings.config_dir), "--state-dir", str(settings.state_dir)),
        ],
    )
    return {each["code"]: each["holds"] for each in json.loads(result.stdout)["checks"]}


def test_doctor_says_what_the_gateway_could_reach(recorded: Recorded) -> None:
    """One user for both is a warning; a folder around the store is critical."""
    honest = _doctor(recorded)
    config = recorded.settings().config_dir / "config.toml"
    text = config.read_text("utf-8")
    config.write_text(text.replace(f'"{recorded.folder}"', f'"{recorded.home}"'), "utf-8")
    around = _doctor(recorded)
    config.write_text(text.partition("[openclaw]")[0], "utf-8")
    unguarded = _doctor(recorded)

    assert (honest["gateway-reaches-guard"], honest["gateway-same-user"]) == (True, False)
    assert around["gateway-reaches-guard"] is False
    assert "gateway-reaches-guard" not in unguarded


def test_other_verbs_find_the_store_of_the_seals(laptop: _Laptop) -> None:
    """`init` has named it, so a pause needs no URL; a store that is named already stays."""
    paused = CliRunner().invoke(
        main, ["pause", "openclaw", "--reason", "a strange job", *laptop.directories]
    )
    settings = laptop.recorded.settings()
    config = settings.config_dir / "config.toml"
    config.write_text('store = "sqlite:////srv/agents.db"\n', "utf-8")
    settings.write()

    assert paused.exit_code == 0, paused.output
    with settings.open_store(read_only=True) as store:
        assert store.thread("openclaw").paused
    assert config.read_text("utf-8").count("\nstore = ") == 1


def test_a_folder_without_its_databases_is_said(laptop: _Laptop) -> None:
    """As where a disk is not mounted: an error, and nothing is made in its place."""
    shutil.rmtree(laptop.recorded.folder / "state")
    result = laptop.verb("verify")

    assert result.exit_code == 2
    assert "there is no state/openclaw.sqlite here" in result.stderr
    assert not (laptop.recorded.folder / "state").exists()


@pytest.mark.parametrize("name", ["logs", "tmp"])
def test_a_folder_whose_name_is_not_compared_is_refused(tmp_path: Path, name: str) -> None:
    """The hint names another."""
    result = CliRunner().invoke(
        main,
        [
            *("openclaw", "init", "--folder", str(Recorded.of(tmp_path).folder), "--same-user"),
            *("--also", f"{name}={tmp_path}", "--config-dir", str(tmp_path / "c")),
        ],
    )

    assert result.exit_code == 2
    assert f"--also my-{name}={tmp_path}" in result.stderr
