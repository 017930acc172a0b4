# SPDX-License-Identifier: Apache-2.0
"""The programs of the guide and of the example for PostgreSQL, on a real server."""

import os
import sys
from pathlib import Path

import sealpoint
from tests.postgres_server import ADMIN, PostgresServer
from tests.repo._markdown import blocks
from tests.repo._tree import ROOT
from tests.warm import run_command

_GUIDE = ROOT / "docs/guides/from-postgressaver.md"


def _password_file(server: PostgresServer, folder: Path) -> Path:
    path = folder / "password"
    path.touch(mode=0o600)
    path.write_text(server.password, encoding="utf-8")
    return path


def test_a_question_that_was_open_is_answered_after_the_move(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """The guide's programs run in their order, and the new one answers what the old one asked."""
    for block in blocks(_GUIDE.read_text(encoding="utf-8")):
        name = block.text.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(block.text, encoding="utf-8")
    with postgres.admin() as server:
        server.execute("CREATE DATABASE moving")
    secret = _password_file(postgres, tmp_path)
    login = f"{ADMIN}:{postgres.password}"
    settings = {
        "OLD_DATABASE": f"postgresql://{login}@127.0.0.1:{postgres.port}/moving",
        "SEALPOINT_STORE": postgres.url(database="moving"),
        "SEALPOINT_STORE_PASSWORD_FILE": str(secret),
        "SEALPOINT_CONFIG_DIR": str(tmp_path / "config"),
        "SEALPOINT_STATE_DIR": str(tmp_path / "state"),
    }
    sealpoint.init(
        settings["SEALPOINT_STORE"],
        config_dir=tmp_path / "config",
        state_dir=tmp_path / "state",
        password=postgres.password,
    )

    environment = {**os.environ, **settings}
    before, move, after = (
        run_command([sys.executable, f"{name}.py"], tmp_path, environment, 60)
        for name in ("before", "move", "after")
    )

    assert before.stdout == "{'pay': 250}\n"
    assert move.returncode == 0, move.stdout
    assert after.stdout == "{'pay': 250}\n{'amount': 250, 'paid': True}\n"


def test_the_example_shows_two_machines(postgres: PostgresServer, tmp_path: Path) -> None:
    """The example runs to its end: both machines talk, and a pause of one stops the other."""
    with postgres.admin() as server:
        for name in ("agents", "anchor"):
            server.execute(f"CREATE DATABASE {name}")
    secret = str(_password_file(postgres, tmp_path))
    variables = ("SEALPOINT_STORE_PASSWORD_FILE", "SEALPOINT_ANCHOR_PASSWORD_FILE")
    urls = [postgres.url(database=name) for name in ("agents", "anchor")]

    ended = run_command(
        [sys.executable, str(ROOT / "examples/07_postgres.py"), *urls],
        tmp_path,
        {**os.environ, **dict.fromkeys(variables, secret)},
        60,
    )

    assert ended.returncode == 0, ended.stdout
    talked, stopped = ended.stdout.split("Somebody pauses")
    assert "That was message 3." in talked
    assert "REFUSED" in stopped
