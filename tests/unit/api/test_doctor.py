# SPDX-License-Identifier: Apache-2.0
"""`admin.doctor` on PostgreSQL: what is planted is found, and gone when its fix was executed.

The server is one of its own, started as production would, so that settings can be planted too.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from psycopg import sql

import sealpoint
from sealpoint.api import Diagnosis, DoctorFinding, checks, diagnose_anchor
from sealpoint.api._store_location import now
from sealpoint.cli import main
from sealpoint_postgres import Duty, PostgresLogin
from sealpoint_postgres import _checks as _doctor_postgres
from tests.postgres_duties import DutyDatabase
from tests.postgres_server import PostgresServer
from tests.postgres_tls import certify, tls_front

CHECKS = {**checks.CHECKS, **_doctor_postgres.CHECKS.lines}

_QUICK = ("fsync", "full_page_writes", "synchronous_commit", "password_encryption", "listen")


def _servers() -> Iterator[PostgresServer]:
    """A server whose settings are its defaults."""
    made = PostgresServer.create()
    made.settings = tuple(each for each in made.settings if not each.startswith(_QUICK))
    made.start()
    yield made
    made.remove()


server = pytest.fixture(_servers, scope="module")
other_server = pytest.fixture(_servers)


@dataclass
class _Fleet:
    """A provisioned store, the machine of its owner, and that of a worker."""

    database: DutyDatabase
    home: Path

    @property
    def worker(self) -> dict[str, Any]:
        """Where the worker's keys and anchor lie."""
        return {"config_dir": self.home / "worker", "state_dir": self.home / "worker-state"}

    def set_up(self, anchor: str, anchor_password: str) -> None:
        """As the guide says: the root stays with the owner, and the worker has its own key."""
        database = self.database
        database.login("owner", "owner")
        database.login("worker", "writer")
        owner = {"password": database.password("owner"), "anchor_password": anchor_password}
        owner |= database.places
        pin = sealpoint.init(database.url_of("owner"), anchor=anchor, **owner)
        here = self.admin("worker", anchor_password=anchor_password)
        here.trust.import_pin(pin.encode())
        key = here.keys.create("billing")
        office = sealpoint.admin(database.url_of("owner"), **owner)
        office.keys.add(
            "billing", public=str(key), person="owner", roles=["writer"], namespaces=["*"]
        )
        here.anchor.join(anchor)
        with sealpoint.open_store(
            database.url_of("worker"),
            identity="billing",
            password=database.password("worker"),
            anchor_password=anchor_password,
            **self.worker,
        ) as store:
            store.thread("t").save({"step": 1})

    def admin(self, name: str, **options: Any) -> Any:
        """Administer the store from the worker's machine."""
        database = self.database
        url = database.url if name == "admin" else database.url_of(name)
        secret = database.server.password if name == "admin" else database.password(name)
        return sealpoint.admin(url, password=secret, **self.worker, **options)

    def doctor(self, name: str = "worker", **options: Any) -> Diagnosis:
        """What the doctor says with a login."""
        found: Diagnosis = self.admin(name, **options).doctor()
        return found

    def execute(self, finding: DoctorFinding) -> None:
        """Do what a finding says, as its administrator, as it stands."""
        if finding.sql:
            with self.database.admin() as connection:
                for statement in finding.fix.split(" --")[0].split(";"):
                    if statement.strip():
                        connection.execute(statement.encode())
            return
        secret = self.home / "admin.password"
        secret.write_text(self.database.server.password)
        secret.chmod(0o600)
        named = {f"SEALPOINT_{each}_PASSWORD_FILE": str(secret) for each in ("STORE", "ANCHOR")}
        words = shlex.split(finding.fix)
        if words[0] == "sealpoint" and not {"&&", "|"} & {*words}:
            result = CliRunner(env=named).invoke(main, words[1:])
            assert result.exit_code == 0, result.output
            return
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **named, "PATH": programs}
        subprocess.run(["/bin/sh", "-ec", finding.fix], cwd=self.home, env=environment, check=True)


@pytest.fixture(scope="module")
def fleet(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> _Fleet:
    """A fleet that is as it should be; every test leaves it so."""
    home = tmp_path_factory.mktemp("fleet")
    made = _Fleet(DutyDatabase(server, home), home)
    made.database.login("owner", "owner")
    made.database.login("worker", "writer")
    secret = made.database.password("owner")
    sealpoint.init(made.database.url_of("owner"), password=secret, **made.worker)
    for name in ("root", "operator"):  # they are kept elsewhere
        next(made.worker["config_dir"].rglob(f"{name}.key")).unlink()
    with made.database.admin() as connection:
        connection.execute(f"CREATE ROLE {made.database.login_name('mallory')} LOGIN")
    return made


def _above(found: Diagnosis) -> list[DoctorFinding]:
    return [each for each in found.findings if each.severity != "note"]


def test_a_fleet_as_the_guide_says_has_notes_alone(
    server: PostgresServer, other_server: PostgresServer, tmp_path: Path
) -> None:
    """Owner and worker on machines of their own, and the anchor on another server."""
    database, other = DutyDatabase(server, tmp_path), DutyDatabase(other_server, tmp_path)
    other.login("anchor", "anchor")
    anchor = other_server.url(user=other.login_name("anchor"), database=f"{other.name}_anchor")
    fleet = _Fleet(database, tmp_path)
    secret = other.password("anchor")
    fleet.set_up(anchor, secret)
    found = fleet.doctor(anchor_password=secret)

    assert _above(found) == []
    assert found.ok
    assert {each.code for each in found.findings} >= {"no-standby", "not-looked-at"}


_SQL = {
    "GRANT DELETE ON sealpoint.entries TO {login}": "database-grants",
    "GRANT SELECT ON sealpoint.version TO PUBLIC": "database-grants",
    "GRANT UPDATE (data) ON sealpoint.blobs TO PUBLIC": "database-grants",
    "GRANT SELECT ON sealpoint.labels TO {writer} WITH GRANT OPTION": "database-grants",
    "GRANT CREATE ON SCHEMA sealpoint TO {writer}": "database-grants",
    "REVOKE USAGE ON SCHEMA sealpoint FROM {reader}": "database-grants",
    "GRANT TEMPORARY ON DATABASE {database} TO PUBLIC": "database-grants",
    "ALTER TABLE sealpoint.entries OWNER TO admin": "database-owner",
    "ALTER SCHEMA sealpoint OWNER TO admin": "database-owner",
    "ALTER TABLE sealpoint.blobs DISABLE ROW LEVEL SECURITY": "row-security",
    "ALTER TABLE sealpoint.blobs NO FORCE ROW LEVEL SECURITY": "row-security",
    "DROP POLICY {adds} ON sealpoint.labels": "row-security",
    "ALTER POLICY {reads} ON sealpoint.entries TO PUBLIC": "row-security",
    "CREATE POLICY more ON sealpoint.entries USING (true)": "row-security",
    "GRANT {owner} TO {login}": "database-logins",
    "GRANT pg_write_all_data TO {login}": "database-logins",
    "GRANT pg_read_all_data TO {writer}": "database-roles",
    "GRANT {writer} TO {login} WITH ADMIN OPTION": "database-logins",
    "ALTER ROLE {login} BYPASSRLS": "login-powerful",
    "ALTER ROLE {login} CREATEROLE CREATEDB": "login-powerful",
    "GRANT {login} TO {mallory}": "others-write",
    "GRANT pg_write_all_data TO {mallory}": "others-write",
    "GRANT pg_read_all_data TO {mallory}": "others-read",
    "ALTER ROLE {mallory} SUPERUSER": "superusers",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA sealpoint GRANT SELECT ON TABLES TO PUBLIC": (
        "default-privileges"
    ),
    "CREATE TRIGGER t BEFORE UPDATE ON sealpoint.entries FOR EACH ROW"
    " EXECUTE FUNCTION suppress_redundant_updates_trigger()": "database-triggers",
    "CREATE RULE r AS ON DELETE TO sealpoint.labels DO INSTEAD NOTHING": "database-triggers",
    "CREATE VIEW sealpoint.seen AS SELECT thread FROM sealpoint.entries": "database-objects",
    "CREATE TABLE sealpoint.notes (a integer)": "database-objects",
    "CREATE TABLE public.more () INHERITS (sealpoint.labels)": "database-objects",
    "CREATE FUNCTION sealpoint.f(a integer) RETURNS integer LANGUAGE sql RETURN a": (
        "database-objects"
    ),
    "ALTER DATABASE {database} SET synchronous_commit = off": "commit-not-durable",
    "ALTER ROLE {login} SET password_encryption = md5": "password-md5",
}


@pytest.mark.parametrize("statement", _SQL)
def test_what_somebody_did_in_sql_is_found_and_mended(fleet: _Fleet, statement: str) -> None:
    """By a worker's login; what mends it is executed as printed, and nothing is left."""
    database, code = fleet.database, _SQL[statement]
    login = database.login_name("worker")
    duties = {each: f"{database.name}.sealpoint.{each}" for each in ("owner", "writer", "reader")}
    names = duties | {each: f"{login} {each}" for each in ("reads", "adds")}
    names |= {"login": login, "database": database.name, "mallory": database.login_name("mallory")}
    with database.admin() as connection:
        quoted = {name: sql.Identifier(text) for name, text in names.items()}
        connection.execute(sql.SQL(statement).format(**quoted))
    found = [each for each in fleet.doctor().findings if each.code == code]

    assert found
    assert {each.severity for each in found} == {CHECKS[code][0]}
    fixes = {each.fix: each for each in found}
    for finding in fixes.values():
        fleet.execute(finding)
    left = fleet.doctor()
    assert [each for each in left.findings if each.code == code] == []
    assert _above(left) == []


_SETTINGS = {
    "fsync = off": "fsync-off",
    "full_page_writes = off": "fsync-off",
    "synchronous_commit = off": "commit-not-durable",
    "password_encryption = md5": "password-md5",
}


@pytest.mark.parametrize("setting", _SETTINGS)
def test_a_setting_of_the_server_is_found_and_mended(fleet: _Fleet, setting: str) -> None:
    """What makes commits or passwords less safe is put back by the SQL that is printed."""
    with fleet.database.admin() as connection:
        connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    code = _SETTINGS[setting]
    found = _soon(fleet, code, there=True)
    for finding in found:
        fleet.execute(finding)

    assert found
    assert _soon(fleet, code, there=False) == []


def _soon(fleet: _Fleet, code: str, *, there: bool, name: str = "worker") -> list[DoctorFinding]:
    """The findings of a code, once the server has read its settings anew."""
    found: list[DoctorFinding] = []
    for _ in range(50):
        found = [each for each in fleet.doctor(name).findings if each.code == code]
        if bool(found) == there:
            break
    return found


_RULES = {
    "host all somebody 127.0.0.1/32 trust": "hba-trust",
    "host all somebody 127.0.0.1/32 password": "hba-trust",
    "host all somebody 0.0.0.0/0 scram-sha-256": "hba-everywhere",
}


@pytest.mark.parametrize("rule", _RULES)
def test_a_rule_that_lets_people_in_is_found_and_mended(fleet: _Fleet, rule: str) -> None:
    """An administrator is shown the line of pg_hba.conf, and the command that changes it."""
    file = fleet.database.server.data / "pg_hba.conf"
    before = file.read_text()
    file.write_text(f"{before}{rule}\n")
    (finding,) = _soon(fleet, _RULES[rule], there=True, name="admin")
    fleet.execute(finding)

    assert _soon(fleet, _RULES[rule], there=False, name="admin") == []
    file.write_text(before)


def test_a_password_by_md5_is_found_and_set_anew(fleet: _Fleet) -> None:
    """The printed command rotates it, and the login goes on with its file."""
    database, name = fleet.database, fleet.database.login_name("worker")
    with database.admin() as connection:
        connection.execute("SET password_encryption = md5")
        connection.execute(f"ALTER ROLE {name} PASSWORD '{database.password('worker')}'")
    named = fleet.home / f"{name}.password"
    named.symlink_to(database.password_file("worker"))
    (finding,) = [each for each in fleet.doctor("admin").findings if each.code == "password-md5"]
    before = Path.cwd()
    os.chdir(fleet.home)
    try:
        fleet.execute(finding)
    finally:
        os.chdir(before)
    database.password_file("worker").unlink()
    named.rename(database.password_file("worker"))

    assert "password-md5" not in {each.code for each in fleet.doctor("admin").findings}
    assert _above(fleet.doctor()) == []


def test_a_server_that_everybody_can_reach_is_found(fleet: _Fleet) -> None:
    """Without TLS it should listen to its own machine alone."""
    server = fleet.database.server
    with fleet.database.admin() as connection:
        connection.execute("ALTER SYSTEM SET listen_addresses = '*'")
    server.stop()
    server.start()
    (finding,) = [each for each in fleet.doctor().findings if each.code == "server-listens"]
    fleet.execute(finding)
    server.stop()
    server.start()

    assert _above(fleet.doctor()) == []


def test_a_store_of_a_superuser_is_found_and_provisioned(
    server: PostgresServer, tmp_path: Path
) -> None:
    """Nobody provisioned it, and its superuser works with it: both are said, and mended."""
    database = DutyDatabase(server, tmp_path)
    fleet = _Fleet(database, tmp_path)
    sealpoint.init(database.url, password=server.password, **fleet.worker)
    found = {each.code: each for each in fleet.doctor("admin").findings}
    fleet.execute(found["not-provisioned"])

    assert found["login-powerful"].fix.startswith("sealpoint provision postgres --store ")
    fleet.execute(found["login-powerful"])
    secret = tmp_path / f"{database.name}_writer.password"
    after = sealpoint.admin(
        server.url(user=f"{database.name}_writer", database=database.name),
        password=secret.read_text().strip(),
        **fleet.worker,
    ).doctor()
    assert not {each.code for each in after.findings} & {"not-provisioned", "login-powerful"}


def test_an_anchor_that_the_store_can_reach_is_found(
    server: PostgresServer, tmp_path: Path
) -> None:
    """On the same server, and open to the store's login until the printed SQL was executed."""
    database = DutyDatabase(server, tmp_path)
    database.login("anchor", "anchor")
    anchor = server.url(user=database.login_name("anchor"), database=f"{database.name}_anchor")
    fleet, secret = _Fleet(database, tmp_path), database.password("anchor")
    fleet.set_up(anchor, secret)
    duty = f"{database.name}_anchor.sealpoint_anchor.anchor"
    with database.admin() as connection:
        connection.execute(f'GRANT "{duty}" TO {database.login_name("worker")}')
    found = fleet.doctor(anchor_password=secret)
    (opened,) = [each for each in found.findings if each.code == "anchor-open"]
    fleet.execute(opened)
    codes = {each.code for each in fleet.doctor(anchor_password=secret).findings}

    assert "anchor-open" not in codes
    assert "anchor-same-server" in codes


def _anchored(server: PostgresServer, home: Path) -> tuple[_Fleet, str, dict[str, Any]]:
    """A store that was just made with an anchor on its server, where all keys are yet."""
    database = DutyDatabase(server, home)
    database.login("owner", "owner")
    database.login("anchor", "anchor")
    anchor = server.url(user=database.login_name("anchor"), database=f"{database.name}_anchor")
    where = {"password": database.password("owner"), **database.places}
    where["anchor_password"] = database.password("anchor")
    sealpoint.init(database.url_of("owner"), anchor=anchor, **where)
    return _Fleet(database, home), anchor, where


def test_a_store_that_was_just_made_has_its_anchors_in_step(
    server: PostgresServer, tmp_path: Path
) -> None:
    """Both have seen the first entry, whose number is 0; one that lost it is taught it again."""
    fleet, _, where = _anchored(server, tmp_path)
    database = fleet.database
    office = sealpoint.admin(database.url_of("owner"), **where)
    fresh = {each.code for each in office.doctor().findings}
    with database.admin(f"{database.name}_anchor") as connection:
        connection.execute("DELETE FROM sealpoint_anchor.slots")
    (apart,) = [each for each in office.doctor().findings if each.code == "anchors-apart"]
    office.anchor.join(shlex.split(apart.fix)[3], reason="it lost a slot")

    assert "anchors-apart" not in fresh
    assert apart.reason.endswith("and the shared anchor nothing")
    assert "anchors-apart" not in {each.code for each in office.doctor().findings}


def test_whoever_administers_an_anchor_looks_at_it_alone(
    server: PostgresServer, tmp_path: Path
) -> None:
    """The command for what only superusers see looks at the anchor, and takes it for no store."""
    fleet, anchor, where = _anchored(server, tmp_path)
    found = sealpoint.admin(fleet.database.url_of("owner"), **where).doctor().findings
    fixes = [each.fix for each in found if each.code == "not-looked-at"]
    (named,) = [each for each in fixes if " --anchor " in each]
    secret = {"SEALPOINT_ANCHOR_PASSWORD_FILE": str(tmp_path / "admin.password")}
    Path(*secret.values()).write_text(server.password)
    Path(*secret.values()).chmod(0o600)
    alone = CliRunner(env=secret).invoke(main, shlex.split(named)[1:])
    mixed_up = f"{fleet.database.anchor}?schema=sealpoint_anchor"
    wrong = sealpoint.admin(mixed_up, password=server.password, **fleet.database.places).doctor()

    assert alone.exit_code == 0, alone.output
    assert "[hba-trust]" in alone.output
    assert diagnose_anchor(anchor, password=where["anchor_password"]).ok
    assert not [each for each in wrong.findings if "DROP" in each.fix or "provision" in each.fix]


_NEWER = {
    "pg_auth_members": ("set_option", "inherit_option"),
    "pg_hba_file_rules": ("rule_number", "file_name"),
}
"""What the catalog of PostgreSQL 15 does not have."""


def test_a_catalog_of_postgresql_15_is_looked_at_as_well(
    server: PostgresServer, tmp_path: Path
) -> None:
    """Columns that came later are not there, and what is planted is found all the same."""
    database = DutyDatabase(server, tmp_path)
    fleet = _Fleet(database, tmp_path)
    database.login("owner", "owner")
    database.login("worker", "writer")
    sealpoint.init(database.url_of("owner"), password=database.password("owner"), **fleet.worker)
    with database.admin() as connection:
        connection.execute("SET allow_system_table_mods = on")
        for table, columns in _NEWER.items():
            for column in columns:
                connection.execute(f"ALTER TABLE pg_catalog.{table} RENAME {column} TO no_{column}")
        connection.execute(f"CREATE ROLE {database.login_name('mallory')} LOGIN")
        login, mallory = database.login_name("worker"), database.login_name("mallory")
        connection.execute(f"GRANT {login} TO {mallory}")
    found = {each.code for each in fleet.doctor("admin").findings}

    assert "others-write" in found
    assert not found & {"edited", "storage-unavailable", "not-looked-at"}


@pytest.mark.parametrize("mode", ["disable", "require"])
def test_a_server_elsewhere_has_to_prove_its_name(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Both for the store and for its anchor, and each is mended by the URL that is printed."""
    signer = certify("db.example.org", tmp_path)
    database = DutyDatabase(server, tmp_path)
    for name in ("owner", "anchor"):
        database.login(name, name)
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.1")  # where the name leads
    with tls_front(signer, server.port) as port:

        def url(name: str, store: str, mode: str) -> str:
            way = f"sslrootcert={signer}" + (f"&sslmode={mode}" if mode else "")
            login = database.login_name(name)
            return f"postgresql://{login}@db.example.org:{port}/{store}?{way}"

        there, anchor = database.name, f"{database.name}_anchor"
        monkeypatch.setenv("SEALPOINT_STORE", url("owner", there, mode))
        for name, login in (("STORE", "owner"), ("ANCHOR", "anchor")):
            path = database.password_file(login)
            monkeypatch.setenv(f"SEALPOINT_{name}_PASSWORD_FILE", str(path))
        monkeypatch.setenv("SEALPOINT_CONFIG_DIR", str(tmp_path / "config"))
        monkeypatch.setenv("SEALPOINT_STATE_DIR", str(tmp_path / "state"))
        sealpoint.init(url("owner", there, mode), anchor=url("anchor", anchor, mode))
        found = [
            each
            for each in sealpoint.admin(url("owner", there, mode)).doctor().findings
            if each.code in {"tls-off", "tls-unverified"}
        ]
        fixes = {each.fix for each in found}
        (exported,) = [each for each in fixes if each.startswith("export SEALPOINT_STORE=")]
        (joined,) = fixes - {exported}
        proven = shlex.split(exported)[1].removeprefix("SEALPOINT_STORE=")
        result = CliRunner().invoke(main, shlex.split(joined)[1:])
        left = {each.code for each in sealpoint.admin(proven).doctor().findings}

    assert {each.code for each in found} == (
        {"tls-off", "tls-unverified"} if mode == "disable" else {"tls-unverified"}
    )
    assert result.exit_code == 0, result.output
    assert not left & {"tls-off", "tls-unverified", "anchor-unavailable", "storage-unavailable"}


def test_a_worker_with_the_login_of_the_owner_is_found(fleet: _Fleet) -> None:
    """The printed command makes a login of its own, with which the finding is gone."""
    database = fleet.database
    (finding,) = [each for each in fleet.doctor("owner").findings if each.code == "login-owner"]
    fleet.execute(finding)
    name = f"{database.name}_writer"
    url = database.server.url(user=name, database=database.name)
    secret = (fleet.home / f"{name}.password").read_text().strip()
    after = sealpoint.admin(url, password=secret, **fleet.worker).doctor()

    assert _above(after) == []


def test_one_login_for_store_and_anchor_is_found(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed command makes another for the anchor, and joins it by that."""
    monkeypatch.chdir(tmp_path)
    fleet, _, where = _anchored(server, tmp_path)
    database, there = fleet.database, f"{fleet.database.name}_anchor"
    owner = database.login_name("owner")
    database.provision(
        store=None, anchor=database.anchor, login=PostgresLogin(name=owner, duty=Duty.ANCHOR)
    )
    where["anchor_password"] = where["password"]
    office = sealpoint.admin(database.url_of("owner"), **where)
    office.anchor.join(server.url(user=owner, database=there))
    (finding,) = [each for each in office.doctor().findings if each.code == "anchor-same-login"]
    made, named, join = finding.fix.split(" && ")
    fleet.execute(replace(finding, fix=made))
    where["anchor_password"] = Path(named.partition("$PWD/")[2].strip('"')).read_text().strip()
    office = sealpoint.admin(database.url_of("owner"), **where)
    office.anchor.join(shlex.split(join)[3])

    assert "anchor-same-login" not in {each.code for each in office.doctor().findings}


def test_a_version_that_nobody_looks_after_is_found(
    fleet: _Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every version is one day."""
    monkeypatch.setattr("sealpoint_postgres._checks._VERSION_MIN", 990000)
    (finding,) = [each for each in fleet.doctor().findings if each.code == "server-old"]

    assert finding.severity == "warning"
    assert finding.fix.endswith("# to 99")


def test_a_clock_that_is_wrong_is_found(fleet: _Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clocks of machine and server are a minute apart, and where an entry is to come."""
    monkeypatch.setattr("sealpoint_postgres._checks._now", lambda: now() - timedelta(minutes=1))
    apart = {each.code for each in fleet.doctor().findings}
    monkeypatch.undo()
    monkeypatch.setattr("sealpoint.api._doctor.now", lambda: now() - timedelta(hours=1))
    ahead = {each.code for each in fleet.doctor().findings}

    assert "clock-database" in apart
    assert "clock-entries" in ahead


def test_a_server_that_does_not_answer_is_a_finding(fleet: _Fleet) -> None:
    """Neither an exception nor an answer to what could not be looked at."""
    url = fleet.database.url_of("worker")
    wrong = sealpoint.admin(url, password=lambda: "wrong", **fleet.worker).doctor()

    assert {each.code for each in wrong.findings if each.severity == "critical"} == {
        "storage-unavailable"
    }
    assert {each.holds for each in wrong.checks if each.code == "row-security"} == {None}
    assert "wrong" not in str(wrong)
