# SPDX-License-Identifier: Apache-2.0
"""`sealpoint provision postgres`: what it prints, and which options belong together."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import sealpoint
from sealpoint.cli import main
from tests.postgres_duties import OWNER, DutyDatabase
from tests.postgres_server import PostgresServer


@pytest.fixture
def database(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> DutyDatabase:
    """A database that nobody has provisioned, and the file of the administrator's password."""
    secret = tmp_path / "admin.password"
    secret.write_text(postgres.password)
    secret.chmod(0o600)
    for purpose in ("STORE", "ANCHOR"):
        monkeypatch.setenv(f"SEALPOINT_{purpose}_PASSWORD_FILE", str(secret))
    return DutyDatabase(postgres, tmp_path)


def _run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["provision", "postgres", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result
    assert "Traceback" not in result.output
    return result


def _done(database: DutyDatabase, *arguments: str) -> str:
    result = _run("--store", database.url, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def _json(database: DutyDatabase, *arguments: str) -> Any:
    return json.loads(_done(database, "--json", *arguments))


def test_a_login_is_made_and_listed(database: DutyDatabase) -> None:
    """Every change is named, then who may do what; a second run has nothing to change."""
    name = database.login_name("bob")
    arguments = ["--login", name, "--duty", "writer", "--namespace", "billing"]
    first = _done(database, *arguments, "--password-file", str(database.password_file("bob")))
    second = _done(database)

    assert f"  make the login {name}\n" in first
    assert "  force row security on entries\n" in first
    assert second == (
        f"{database.url}: nothing to change\n\n"
        f"{'login':<{len(name)}}  duty    namespaces\n{name}  writer  billing\n"
    )
    assert database.password("bob") not in first


def test_a_dry_run_is_a_script_that_does_it(database: DutyDatabase) -> None:
    """What is printed can be executed as it is, and then there is nothing left to do."""
    script = _done(database, "--dry-run", "--anchor", database.anchor)
    store, anchor = script.split("-- postgresql://")[1:]
    for part, name in ((store, database.name), (anchor, f"{database.name}_anchor")):
        with database.admin(name) as connection:
            connection.execute(part.partition("\n")[2].encode())

    assert _done(database, "--dry-run") == f"-- {database.url}\n-- nothing to change\n"
    (found, other) = _json(database, "--anchor", database.anchor)
    assert (found["changes"], found["changed"]) == ([], False)
    assert other["url"] == f"{database.anchor}?schema=sealpoint_anchor"


def test_json_has_all_statements(database: DutyDatabase) -> None:
    """The document says what was changed and by which statements, and whether it was."""
    (planned,) = _json(database, "--dry-run")
    (done,) = _json(database)

    assert planned.pop("changed") is False
    assert done.pop("changed") is True
    assert planned == done
    assert done["logins"] == done["notes"] == []
    assert {"what", "sql"} == {key for each in done["changes"] for key in each}


def test_a_password_is_changed_in_two_steps_or_in_one(database: DutyDatabase) -> None:
    """`--prepare` writes the second line, the next run makes it the only one."""
    name, path = database.login_name("bob"), database.password_file("bob")
    _done(database, "--login", name, "--duty", "reader", "--password-file", str(path))
    rotate = ("--rotate", name, "--password-file", str(path))
    old = path.read_text()
    prepared = _done(database, *rotate, "--prepare")
    both = path.read_text()
    done = _done(database, *rotate)

    assert "second line" in prepared
    assert both.startswith(old)
    assert path.read_text() == both.removeprefix(old)
    assert "has it alone" in done
    database.connect("bob").close()
    assert _done(database, *rotate, "--dry-run").endswith(
        f"ALTER ROLE \"{name}\" PASSWORD '<what SCRAM-SHA-256 makes of the password>';\nCOMMIT;\n"
    )
    database.connect("bob").close()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--login", "bob"], "expected both or neither"),
        (["--duty", "writer"], "expected both or neither"),
        (["--login", "bob", "--duty", "owner", "--namespace", "a"], "writer, approver or reader"),
        (["--password-file", "p"], "expected with --login or --rotate"),
        (["--prepare"], "expected with --rotate"),
        (["--rotate", "bob"], "expected with --password-file"),
        (["--login", "bob", "--duty", "anchor"], "Name it with --anchor"),
        (["--rotate", "bob", "--password-file", "nowhere"], "there is no file"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    database: DutyDatabase, arguments: list[str], told: str
) -> None:
    """The message says which option is missing or too much, before anything is changed."""
    database.provision()
    if "--rotate" in arguments:
        database.login("bob", "reader")
        arguments = [database.login_name("bob") if each == "bob" else each for each in arguments]
    result = _run("--store", database.url, *arguments)

    assert result.exit_code != 0
    assert told in result.stderr


def test_without_a_store_nothing_is_guessed() -> None:
    """Neither a store nor an anchor: the hint says how one is named."""
    result = _run()

    assert result.exit_code == 2
    assert "postgresql://ADMIN@HOST/DATABASE" in result.stderr


_LEAST = (
    ("reader", ["threads"]),
    ("reader", ["log", "t"]),
    ("reader", ["verify"]),
    ("reader", ["doctor", "--quick", "--identity", "worker"]),
    ("writer", ["save", "t"]),
    ("approver", ["pause", "t", "--reason", "look"]),
    ("approver", ["unpause", "t", "--reason", "looked"]),
    ("approver", ["handoff", "t", "--to", "worker", "--reason", "holidays"]),
    ("owner", ["keys", "new", "ann"]),
    ("owner", ["keys", "add", "ann", "--person", "ann", "--role", "approver", "--namespace", "*"]),
    ("owner", ["keys", "rotate", "worker", "--yes"]),
    ("owner", ["keys", "revoke", "ann", "--reason", "left", "--yes"]),
    ("owner", ["policy", "apply", "strict"]),
    ("owner", ["keys", "pool", "pods", "--member", "worker"]),
    ("owner", ["keys", "quorum", "1"]),
    ("owner", ["keys", "rotate-root", "--reason", "x", "--yes"]),
    ("owner", ["prune", "t", "--keep-last", "1", "--yes"]),
    ("owner", ["gc"]),
    ("owner", ["erase", "t", "--reason", "asked for", "--yes"]),
)


_ON_THIS_MACHINE = ["keys", "new", "ann"]


def test_each_verb_needs_the_duty_that_the_table_says(
    database: DutyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verb works with the login of its duty, and what takes away needs the owner's."""
    database.initialise()
    for name, duty in (("writer", "writer"), ("approver", "approver"), ("reader", "reader")):
        database.login(name, duty, "default")
    places = [
        *("--config-dir", str(database.home / "config")),
        *("--state-dir", str(database.home / "state")),
    ]

    def run(login: str, words: list[str]) -> Result:
        monkeypatch.setenv("SEALPOINT_STORE_PASSWORD_FILE", str(database.password_file(login)))
        given = [*words, "--store", database.url_of(login), *places]
        return CliRunner().invoke(main, given, input='{"step": 1}')

    for _ in range(2):
        run("writer", ["save", "t"])
    found, refused = {}, {}
    for duty, words in _LEAST:
        if duty == "owner" and words != _ON_THIS_MACHINE:
            tried = run("approver", words)
            refused[" ".join(words)] = tried.exit_code or tried.output
            assert "this login may not do that" in tried.output
        done = run(duty, words)
        found[" ".join(words)] = done.exit_code and done.output

    assert found == dict.fromkeys(found, 0)
    assert {*refused.values()} == {50, 30}  # gc goes on with what it can, and says what it left


def test_a_fleet_shares_store_and_anchor_with_four_logins(
    database: DutyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker writes both, an auditor on another machine reads both and can write neither."""
    for name, duty in (
        *((OWNER, "owner"), ("writer", "writer"), ("reader", "reader")),
        *(("fleet", "anchor"), ("auditor", "anchor-reader")),
    ):
        database.login(name, duty)
    anchor = database.server.url(
        user=database.login_name("auditor"), database=f"{database.name}_anchor"
    )
    sealpoint.init(
        database.url_of(OWNER),
        password=database.password(OWNER),
        anchor=anchor.replace("auditor", "fleet"),
        anchor_password=database.password("fleet"),
        **database.places,
    )
    with database.open("writer", anchor_password=database.password("fleet")) as store:
        store.thread("t").save({"step": 1})

    def run(home: Path, login: str, at_anchor: str, *words: str) -> str:
        monkeypatch.setenv("SEALPOINT_STORE_PASSWORD_FILE", str(database.password_file(login)))
        monkeypatch.setenv("SEALPOINT_ANCHOR_PASSWORD_FILE", str(database.password_file(at_anchor)))
        places = ["--config-dir", str(home / "config"), "--state-dir", str(home / "state")]
        done = CliRunner().invoke(main, [*words, "--store", database.url_of(login), *places])
        assert done.exit_code == 0, done.output
        return done.stdout

    pin, other = database.home / "pin.json", database.home / "other"
    other.mkdir()
    pin.write_text(run(database.home, "reader", "fleet", "trust", "export"))
    auditor = (other, "reader", "auditor")
    run(*auditor, "trust", "import", str(pin))
    run(*auditor, "anchor", "join", anchor)

    assert run(*auditor, "load", "t") == '{\n  "step": 1\n}\n'
    assert "All good" in run(*auditor, "verify")
    assert "in step" in run(*auditor, "anchor", "show")


def test_a_store_moves_to_a_provisioned_database_as_its_owner(
    database: DutyDatabase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is moved has a store chain, which a writer may not add to; the owner may."""
    database.login(OWNER, "owner")
    database.login("writer", "writer")
    (tmp_path / "disk").mkdir(mode=0o700)
    source = f"sqlite:///{tmp_path}/disk/agents.db"
    sealpoint.init(source, **database.places)
    with sealpoint.open_store(source, **database.places) as store:
        store.thread("t").save({"step": 1})

    def move(login: str) -> Result:
        monkeypatch.setenv("SEALPOINT_STORE_PASSWORD_FILE", str(database.password_file(login)))
        places = [*("--config-dir", str(tmp_path / "config"))]
        places += ["--state-dir", str(tmp_path / "state")]
        return CliRunner().invoke(main, ["move", source, database.url_of(login), *places])

    refused, done = move("writer"), move(OWNER)

    assert refused.exit_code == 50
    assert "this login may not do that" in refused.stderr
    assert done.exit_code == 0, done.output
    with database.open("writer") as store:
        assert store.thread("t").load().state == {"step": 1}
        store.thread("t").save({"step": 2})
