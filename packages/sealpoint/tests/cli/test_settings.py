# SPDX-License-Identifier: Apache-2.0
"""Where the command learns which store is meant, and what all verbs have in common."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from sealpoint.cli import main
from tests.cli.machine import Machine, verbs

_READING = [
    *(("threads",), ("log", "t"), ("show", "t"), ("load", "t"), ("diff", "t"), ("verify",)),
    *(("anchor", "show"), ("keys", "list"), ("trust", "export")),
    *(("prune", "t", "--keep-last", "1", "--dry-run"), ("gc", "--dry-run")),
    ("erase", "t", "--reason", "x", "--dry-run"),
    *(("requests",), ("policy", "show"), ("audit",), ("model", "list", "t")),
]
_VERBS = [
    *_READING,
    *(("init",), ("save", "t"), ("trust", "import", "-"), ("keys", "new", "alice")),
    ("trust", "move", "sqlite:///old.db"),
    ("import", "agent-framework", "never-read"),
    ("anchor", "adopt", "--reason", "x", "--yes"),
    ("anchor", "join", "postgresql://u@localhost/d", "--reason", "x"),
    ("anchor", "leave", "--yes"),
    *(
        ("prune", "t", "--keep-last", "1", "--yes"),
        ("erase", "t", "--reason", "x", "--yes"),
        ("gc",),
    ),
    ("keys", "passphrase", "alice", "--remove"),
    *(("model", verb, "never-read", "--thread", "t") for verb in ("seal", "verify")),
    *(("why", "00000000"), ("export", "--output", "never-written")),
    *(
        ("keys", "rotate", "worker", "--reason", "x", "--yes"),
        ("keys", "revoke", "worker", "--reason", "x", "--yes"),
        ("keys", "rotate-root", "--reason", "x", "--yes"),
        ("keys", "pool", "pods", "--member", "worker"),
        ("keys", "quorum", "2"),
    ),
    *(
        ("pause", "t", "--reason", "x"),
        ("unpause", "t", "--reason", "x"),
        ("resume", "t"),
        ("answer", "t", "--text", "x"),
        ("handoff", "t", "--to", "worker", "--reason", "x"),
        ("approve", "00000000", "--reason", "x", "--yes-to", "00000000"),
        ("deny", "00000000", "--reason", "x"),
        ("break-glass", "00000000", "--reason", "x", "--yes-to", "00000000"),
        ("policy", "apply", "strict"),
        ("policy", "try", "strict"),
        ("rollout", "plan", "--graph", "never:imported"),
        ("rollout", "propose", "--graph", "never:imported", "--reason", "x"),
        ("rollout", "list"),
        ("rollout", "show", "00000000"),
        ("rollout", "revoke", "00000000", "--reason", "x"),
        ("request", "export", "00000000", "--output", "never-written"),
        ("relay", "-"),
    ),
    *(
        ("accept-restore", "--reason", "x", "--yes"),
        ("roster", "export", "-"),
        ("roster", "import", "-"),
    ),
    ("keys", "add", "alice", "--person", "a", "--role", "writer", "--namespace", "*"),
]


_PARTS: dict[tuple[str, ...], str] = {
    ("anchor", "join"): "sealpoint_postgres",
    ("import", "agent-framework"): "sealpoint_agent_framework",
    **{("model", verb): "sealpoint_models" for verb in ("list", "seal", "verify")},
}


def _installed(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Those whose parts are installed: in the full set-up, all."""
    return [row for row in rows if find_spec(_PARTS.get(row[:2], "sealpoint"))]


def _run(*arguments: str, env: dict[str, str] | None = None, stdin: str = "1") -> Result:
    result = CliRunner().invoke(main, arguments, input=stdin, env=env)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_every_verb_of_a_store_is_listed_here() -> None:
    """The lists above name every verb but those about types and about a file alone."""
    apart = {
        ("move",),  # its store is an argument
        ("policy", "check"),
        ("policy", "new"),  # it writes a file
        ("verify-bundle",),
        ("model", "inspect"),
        ("model", "convert"),
        ("scan",),
        ("rollout", "world"),
        ("doctor",),  # errors are findings: tests/cli/test_doctor.py
        (
            "serve",
        ),  # it runs until it is stopped: packages/sealpoint-console/tests/console/test_serve.py
        ("stores",),
        # Their store is in config.toml: packages/sealpoint-openclaw/tests/cli/test_openclaw.py
        *(words for words, _ in verbs() if words[:1] == ("openclaw",)),
        (
            "provision",
            "postgres",
        ),  # before there is a store: packages/sealpoint-postgres/tests/cli/test_provision.py
    }
    leaves = {
        words
        for words, command in verbs()
        if not isinstance(command, click.Group) and words[0] != "types"
    } - apart

    assert {leaf for leaf in leaves for verb in _VERBS if verb[: len(leaf)] == leaf} == leaves


@pytest.mark.parametrize("verb", _installed(_VERBS), ids=" ".join)
def test_a_verb_without_a_store_says_how_to_give_one(verb: tuple[str, ...], tmp_path: Path) -> None:
    """The hint names the option, the variable and the file."""
    directories = ("--config-dir", str(tmp_path / "c"), "--state-dir", str(tmp_path / "s"))
    result = _run(*verb, *directories)
    error = json.loads(_run(*verb, *directories, "--json").stderr)["error"]

    assert result.exit_code == error["exit_status"] == 2
    assert error["code"] == "usage"
    for way in ("--store", "SEALPOINT_STORE", str(tmp_path / "c" / "config.toml")):
        assert way in error["hint"]
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("url", ["memory:", "postgres://user:secret@host/db", "sqlite://x", ""])
@pytest.mark.parametrize("verb", _installed(_VERBS), ids=" ".join)
def test_a_url_of_no_store_on_disk_is_refused(
    verb: tuple[str, ...], url: str, tmp_path: Path
) -> None:
    """Every verb refuses it in the same way, and shows no password."""
    result = _run(*verb, "--store", url, "--config-dir", str(tmp_path / "c"))

    assert result.exit_code == 2
    assert "[url-invalid]" in result.stderr
    assert "secret" not in result.output


@pytest.mark.parametrize(
    "verb", [verb for verb in _installed(_VERBS) if verb[0] != "init"], ids=" ".join
)
def test_a_store_without_a_pin_is_not_trusted(verb: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing about a store is believed before a pin vouches for it."""
    stranger = Machine(tmp_path / "disk" / "store.db", tmp_path / "one")

    # Where a pin is brought, what is no pin is refused itself.
    expected = (39, "trust-file-invalid") if verb[:2] == ("trust", "import") else (39, "no-pin")

    assert stranger.refused(*verb, stdin="1") == expected


@pytest.mark.parametrize("verb", _installed(_READING), ids=" ".join)
def test_reading_verbs_write_nothing(verb: tuple[str, ...], machine: Machine) -> None:
    """Not a byte of the store, the keys or the anchor changes, and no file appears."""
    machine.done("save", "t", stdin="1")
    machine.done("save", "t", stdin="2")
    everything = machine.path.parent

    def contents() -> dict[Path, bytes]:
        # A reader may leave SQLite's own empty side files behind.
        return {
            path: path.read_bytes()
            for path in everything.rglob("*")
            if path.is_file() and not path.name.endswith(("-shm", "-wal"))
        }

    before = contents()
    machine.done(*verb)

    assert contents() == before


def test_an_option_comes_before_the_environment_before_the_file(tmp_path: Path) -> None:
    """Three stores, three ways to name one: the nearest wins, for store and namespace."""
    config = tmp_path / "config"
    directories = ["--config-dir", str(config), "--state-dir", str(tmp_path / "state")]
    urls = {name: f"sqlite:///{tmp_path}/disk/{name}.db" for name in ("option", "variable", "file")}
    (tmp_path / "disk").mkdir()
    for name, url in urls.items():
        assert _run("init", "--store", url, *directories).exit_code == 0
        assert _run("save", name, "--store", url, *directories).exit_code == 0
    (config / "config.toml").write_text(f'store = "{urls["file"]}"\n', encoding="utf-8")
    variable = {"SEALPOINT_STORE": urls["variable"]}

    def names(*arguments: str, env: dict[str, str] | None = None) -> list[str]:
        result = _run("threads", "--json", *arguments, *directories, env=env)
        found: list[str] = json.loads(result.stdout)["threads"]
        return found

    assert names() == ["file"]
    assert names(env=variable) == ["variable"]
    assert names("--store", urls["option"], env=variable) == ["option"]
    assert names(env={"SEALPOINT_NAMESPACE": "other"}) == []
    assert names("--namespace", "default", env={"SEALPOINT_NAMESPACE": "other"}) == ["file"]


def test_directories_and_identity_come_from_the_environment_too(machine: Machine) -> None:
    """The same variables as in Python, read by the same code."""
    env = {
        "SEALPOINT_STORE": machine.url,
        "SEALPOINT_CONFIG_DIR": str(machine.home / "config"),
        "SEALPOINT_STATE_DIR": str(machine.home / "state"),
    }

    assert json.loads(_run("save", "t", "--json", env=env).stdout)["writer"] == "worker"
    refused = _run("save", "t", env={**env, "SEALPOINT_IDENTITY": "nobody"})
    assert refused.exit_code == 60
    assert "[key-missing]" in refused.stderr
    chosen = _run("save", "t", "--identity", "worker", env={**env, "SEALPOINT_IDENTITY": "nobody"})
    assert chosen.exit_code == 0


def test_a_settings_file_that_is_wrong_is_an_error(machine: Machine) -> None:
    """It is named, and nothing goes on without it."""
    (machine.home / "config" / "config.toml").write_text("shop = 1", encoding="utf-8")

    assert machine.refused("threads") == (60, "config")


def test_a_wrong_option_is_json_where_json_is_asked_for(machine: Machine) -> None:
    """Click's own errors keep the form that the caller asked for."""
    result = machine.run("log", "--json")
    error = json.loads(result.stderr)["error"]

    assert result.exit_code == error["exit_status"] == 2
    assert "THREAD" in error["message"]
    assert "Usage:" in machine.run("log").stderr


def test_the_command_works_as_a_process(machine: Machine) -> None:
    """Standard streams, exit statuses and JSON, from a real process."""
    command = [sys.executable, "-m", "sealpoint"]

    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments, *machine.options],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "ascii"},
        )

    saved = run("save", "ü", "--json", stdin='{"a": "\u00fc"}')
    loaded = run("load", "ü")
    shown = run("show", "ü")
    unknown = run("load", "nobody", "--json")

    assert (saved.returncode, saved.stderr) == (0, "")
    assert json.loads(loaded.stdout) == {"a": "\u00fc"}
    assert "\\xfc" in shown.stdout
    assert unknown.returncode == 44
    assert json.loads(unknown.stderr)["error"]["code"] == "unknown-thread"
    assert unknown.stdout == ""


def test_the_stores_of_this_machine_are_listed(machine: Machine, tmp_path: Path) -> None:
    """With pin, keys and anchor, and whether the data is still there."""
    options = machine.directories
    empty = _run("stores", "--config-dir", str(tmp_path / "c"), "--state-dir", str(tmp_path / "s"))
    (found,) = json.loads(_run("stores", *options, "--json").stdout)
    text = _run("stores", *options).stdout
    machine.path.unlink()
    (gone,) = json.loads(_run("stores", *options, "--json").stdout)

    assert "knows no store" in empty.stdout
    assert found["url"] == machine.url
    assert found["keys"] == ["operator", "root", "worker"]
    assert (found["anchor"], found["data"], found["fault"]) == (True, True, "")
    assert found["store"].startswith("store:")
    assert "worker" in text
    assert gone["data"] is False


@pytest.mark.skipif(sys.platform == "win32", reason="needs users of POSIX")
def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither HOME nor the list of users says where keys lie: an error of ours, with a way out."""

    def unknown(_: int) -> None:
        raise KeyError

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    result = _run("threads", "--store", "sqlite:////nowhere/a.db")

    assert result.exit_code != 0
    assert "SEALPOINT_CONFIG_DIR" in result.stderr
    assert "SEALPOINT_STATE_DIR" in result.stderr
