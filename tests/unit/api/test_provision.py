# SPDX-License-Identifier: Apache-2.0
"""Provisioned databases: what each duty's login does, what is mended, and what is refused."""

import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from psycopg import sql

import sealpoint
from sealpoint.errors import (
    ConfigError,
    KeyFileUnsafe,
    ListIncomplete,
    NameInvalid,
    NeedsApproval,
    RolledBack,
    SealpointError,
    StorageUnavailable,
    UsageError,
)
from sealpoint.ids import namespace_tag
from sealpoint_langgraph import SealedSaver, guard
from sealpoint_postgres import Duty, PostgresLogin, rotate_postgres_login
from tests.postgres_duties import DutyDatabase
from tests.postgres_server import PostgresServer

_HELPER = "helper"  # whose login is its password


@pytest.fixture
def database(postgres: PostgresServer, tmp_path: Path) -> DutyDatabase:
    """A database that nobody has provisioned."""
    return DutyDatabase(postgres, tmp_path)


def _changes(database: DutyDatabase, **options: Any) -> list[str]:
    return [each.what for found in database.provision(**options) for each in found.changes]


def _writer(database: DutyDatabase, **facts: Any) -> PostgresLogin:
    return PostgresLogin(name=database.login_name("writer"), duty=Duty.WRITER, **facts)


def test_a_second_run_changes_nothing(database: DutyDatabase) -> None:
    """What is as it should be is left alone, in the store's database and in the anchor's."""
    login = _writer(database, namespaces=("billing",))
    options = {"anchor": database.anchor, "login": login, "password_file": database.home / "file"}
    first = _changes(database, **options)

    assert first
    assert _changes(database, **options) == []
    assert _changes(database) == []


def test_a_dry_run_says_exactly_what_would_be_executed(database: DutyDatabase) -> None:
    """Its statements are those of the run that follows, and nothing is there before."""
    options = {"login": _writer(database), "password_file": database.home / "file"}
    planned = database.provision(dry_run=True, **options)

    assert not (database.home / "file").exists()
    with database.admin() as connection:
        found = connection.execute(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE %s", (f"{database.name}%",)
        )
        assert found.fetchall() == []
    assert planned == database.provision(**options)
    assert "SCRAM-SHA-256$" not in str(planned)
    assert database.home.joinpath("file").read_text().strip() not in str(planned)
    assert database.home.joinpath("file").stat().st_mode & 0o777 == 0o600


_DRIFT = {
    "GRANT DELETE ON sealpoint.entries TO {login}": "DELETE on entries is taken from",
    "GRANT SELECT ON sealpoint.version TO PUBLIC": "SELECT on version is taken from PUBLIC",
    "GRANT UPDATE (data) ON sealpoint.blobs TO PUBLIC": "may do with the column data of blobs",
    "GRANT SELECT ON sealpoint.labels TO {writer} WITH GRANT OPTION": "no longer passes SELECT",
    "GRANT CREATE ON SCHEMA sealpoint TO {writer}": "CREATE on sealpoint is taken from",
    "REVOKE INSERT ON sealpoint.entries FROM {writer}": "INSERT on entries is given to",
    "REVOKE USAGE ON SCHEMA sealpoint FROM {reader}": "USAGE on sealpoint is given to",
    "REVOKE DELETE ON sealpoint.blobs FROM {owner}": "DELETE on blobs is given to",
    "GRANT TEMPORARY ON DATABASE {database} TO PUBLIC": "TEMPORARY on the database is taken from",
    "GRANT CREATE ON DATABASE {database} TO {login}": "CREATE on the database is taken from",
    "REVOKE CONNECT ON DATABASE {database} FROM PUBLIC": "CONNECT to the database is given to",
    "ALTER TABLE sealpoint.entries OWNER TO admin": "the table entries is the owner's, and no",
    "ALTER SCHEMA sealpoint OWNER TO admin": "the schema sealpoint is the owner's, and no longer",
    "ALTER TABLE sealpoint.blobs DISABLE ROW LEVEL SECURITY": "enable row security on blobs",
    "ALTER TABLE sealpoint.blobs NO FORCE ROW LEVEL SECURITY": "force row security on blobs",
    "DROP POLICY {reads} ON sealpoint.labels": "reads' on labels",
    "ALTER POLICY {reads} ON sealpoint.entries USING (true)": "reads' on entries is not as it",
    "ALTER POLICY {adds} ON sealpoint.blobs TO PUBLIC": "adds' on blobs is not as it should be",
    "CREATE POLICY more ON sealpoint.entries USING (true)": "'more' on entries is not as it should",
    "COMMENT ON POLICY {adds} ON sealpoint.labels IS 'other'": "adds' on labels is not as it",
    "DROP TABLE sealpoint.labels": "make the table labels",
    "GRANT {owner} TO {login}": "is no longer a member of",
    "GRANT pg_write_all_data TO {login}": "is no longer a member of pg_write_all_data",
    "GRANT pg_read_all_data TO {writer}": "is no longer a member of pg_read_all_data",
    "GRANT admin TO {login}": "is no longer a member of admin",
    "GRANT {writer} TO {login} WITH ADMIN OPTION": "no longer makes others members of",
    "ALTER ROLE {login} CONNECTION LIMIT -1": "has at most",
    "ALTER ROLE {login} SET row_security = off": "no longer has a setting of its own: row_security",
    "ALTER ROLE {login} SET my.own = 'x'": "no longer has a setting of its own: my.own",
    "ALTER ROLE {login} IN DATABASE {database} SET search_path = public": "its own: search_path",
    "ALTER ROLE {login} RESET ALL": "has the setting idle_in_transaction_session_timeout",
    "GRANT EXECUTE ON FUNCTION lo_create(oid) TO PUBLIC": "nobody makes large objects",
}


def test_whatever_somebody_changed_is_mended_and_named(database: DutyDatabase) -> None:
    """Each kind of drift is found, named, and gone after one run."""
    login = _writer(database, namespaces=("billing",))
    database.provision(login=login)
    roles = {
        each: f"{database.name}.sealpoint.{each}" for each in ("owner", "writer", "reader")
    } | {"login": login.name, "database": database.name}
    names = roles | {each: f"{login.name} {each}" for each in ("reads", "adds")}
    quoted = {name: sql.Identifier(text) for name, text in names.items()}
    found = {}
    for statement, expected in _DRIFT.items():
        with database.admin() as connection:
            connection.execute(sql.SQL(statement).format(**quoted))
        mended = _changes(database)
        found[statement] = any(expected in each for each in mended) or mended
        assert _changes(database) == [], statement

    assert found == dict.fromkeys(_DRIFT, True)


def test_a_login_gets_another_duty_or_other_namespaces(database: DutyDatabase) -> None:
    """What is asked for last is what it may; nothing of what it was before stays."""
    name = database.login_name("writer")
    database.provision(login=_writer(database))
    (found,) = database.provision(
        login=PostgresLogin(name=name, duty=Duty.READER, namespaces=("a", "b"))
    )

    assert found.logins == (PostgresLogin(name=name, duty=Duty.READER, namespaces=("a", "b")),)
    assert [each.what for each in found.changes if "no longer" in each.what] == [
        f"{name} is no longer a member of {database.name}.sealpoint.writer"
    ]
    assert not any("adds" in each.what and "make" in each.what for each in found.changes)
    assert _changes(database) == []


def test_tables_of_a_store_that_is_there_are_taken_over(database: DutyDatabase) -> None:
    """A store that an administrator made by itself goes on under an owner, with all its rows."""
    secret = database.server.password
    sealpoint.init(database.url, password=secret, **database.places)
    with sealpoint.open_store(database.url, password=secret, **database.places) as store:
        store.thread("t").save({"step": 1})
    database.login("writer", "writer")

    with database.open("writer") as store:
        assert store.thread("t").load().state == {"step": 1}
        store.thread("t").save({"step": 2})


def test_a_role_that_is_more_is_refused_with_the_statement_that_mends_it(
    database: DutyDatabase,
) -> None:
    """A superuser, or one whom row security spares, is left as it is; the hint works literally."""
    name = database.login_name("writer")
    with database.admin() as connection:
        connection.execute(f"CREATE ROLE {name} SUPERUSER BYPASSRLS")
    with pytest.raises(ConfigError) as refused:
        database.provision(login=_writer(database))
    with database.admin() as connection:
        connection.execute(refused.value.hint.partition("psql: ")[2])

    assert "SUPERUSER, BYPASSRLS" in str(refused.value)
    assert _changes(database, login=_writer(database))


def test_who_may_not_make_roles_is_told_what_is_missing(database: DutyDatabase) -> None:
    """The hints name the statements that a superuser has to execute, and they are enough."""
    name = database.login_name("helper")
    with database.admin() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{_HELPER}'")
    url = database.server.url(user=name, database=database.name)
    hints = []
    for _ in range(2):
        with pytest.raises(StorageUnavailable) as refused:
            database.provision(store=url, password=_HELPER)
        hints.append(refused.value.hint.partition("execute: ")[2])
        with database.admin() as connection:
            connection.execute(hints[-1])
    (done,) = database.provision(store=url, password=_HELPER, login=_writer(database))

    assert "CREATEROLE" in hints[0]
    assert "CREATE ON DATABASE" in hints[1]
    assert any("if its owner does so" in each for each in done.notes)
    assert _changes(database, store=url, password=_HELPER) == []
    with database.admin() as connection:  # nothing of what was borrowed stays
        assert (
            connection.execute(
                "SELECT inherit_option, set_option FROM pg_auth_members WHERE member = %s::regrole"
                " AND roleid = %s::regrole AND (inherit_option OR set_option)",
                (name, f'"{database.name}.sealpoint.owner"'),
            ).fetchall()
            == []
        )


def test_a_table_that_somebody_holds_is_not_waited_for_long(
    database: DutyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed then, and those who save do not wait behind it."""
    monkeypatch.setattr("sealpoint_postgres._database_layout._LOCK_SECONDS", 0.1)
    database.provision()
    with database.admin() as connection, connection.transaction():
        connection.execute("SELECT 1 FROM sealpoint.entries")
        with pytest.raises(StorageUnavailable, match="another session held a table"):
            database.provision(login=_writer(database))

    assert _changes(database) == []


def test_two_who_provision_at_once_do_not_meet(database: DutyDatabase) -> None:
    """Whoever comes second is told so, and finds the work done when it tries again."""
    role = sql.Identifier(f"{database.name}.sealpoint.owner")
    refusals: list[SealpointError] = []

    def second() -> None:
        try:
            database.provision()
        except StorageUnavailable as refused:
            refusals.append(refused)

    waiting = threading.Thread(target=second)
    with database.admin() as looking:
        with database.admin() as first, first.transaction():
            first.execute(sql.SQL("CREATE ROLE {}").format(role))
            waiting.start()
            while not looking.execute(
                "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'",
                (database.name,),
            ).fetchall():
                pass
        waiting.join()

    (refused,) = refusals
    assert "another session is provisioning it" in str(refused)
    assert _changes(database)
    assert _changes(database) == []


def test_one_comment_that_was_widened_widens_nothing(database: DutyDatabase) -> None:
    """Of comments that differ, what all of them allow is what a login gets back."""
    login = _writer(database, namespaces=("billing",))
    database.provision(login=login)
    for wider in ('["writer", null]', '["owner", ["billing"]]', '["writer", ["billing", "other"]]'):
        for table in ("entries", "blobs", "labels"):
            with database.admin() as connection:
                connection.execute(
                    sql.SQL("COMMENT ON POLICY {} ON {} IS {}").format(
                        sql.Identifier(f"{login.name} reads"),
                        sql.Identifier("sealpoint", table),
                        sql.Literal(wider),
                    )
                )
            (found,) = database.provision()

            assert found.logins == (login,)
            assert found.changes


def test_a_database_that_is_missing_is_said_so(database: DutyDatabase) -> None:
    """Provisioning makes roles and tables, and no database."""
    with pytest.raises(StorageUnavailable, match="does not exist"):
        database.provision(store=database.server.url(database="nowhere"))


def test_two_namespaces_of_one_tag_are_refused(database: DutyDatabase) -> None:
    """What row security could not keep apart is not promised to be."""
    seen: dict[bytes, str] = {}
    names = (f"n{number}" for number in range(1_000_000))
    name = next(each for each in names if seen.setdefault(namespace_tag(each), each) != each)
    other = seen[namespace_tag(name)]
    database.provision(login=_writer(database, namespaces=(name,)))
    second = PostgresLogin(
        name=database.login_name("reader"), duty=Duty.READER, namespaces=(other,)
    )

    with pytest.raises(UsageError, match="begin with the same 4 bytes"):
        database.provision(login=second)
    assert _changes(database) == []


@pytest.mark.parametrize("name", ["", "Bob", "pg_bob", 'x"; DROP ROLE admin; --', "b" * 49])
def test_a_name_that_no_login_should_have_is_refused(database: DutyDatabase, name: str) -> None:
    """A name has plain letters, and is none of the server's own."""
    with pytest.raises(NameInvalid):
        database.provision(login=PostgresLogin(name=name, duty=Duty.READER))


def test_an_anchor_where_the_store_lies_is_refused(database: DutyDatabase) -> None:
    """Whoever owns the store's tables would own those of the anchor."""
    with pytest.raises(UsageError, match="in the same place as the store"):
        database.provision(anchor=f"{database.url}?schema=sealpoint")


def test_a_store_where_an_anchor_lies_is_refused(database: DutyDatabase) -> None:
    """A URL that was mixed up makes no tables in the schema of the other."""
    database.provision(anchor=database.anchor)
    mixed_up = f"{database.anchor}?schema=sealpoint_anchor"
    with pytest.raises(ConfigError, match="tables of an anchor"):
        database.provision(store=mixed_up)
    with pytest.raises(ConfigError, match="tables of a store"):
        database.provision(store=None, anchor=f"{database.url}?schema=sealpoint")

    assert _changes(database, store=None, anchor=database.anchor) == []


def test_a_login_with_a_duty_is_not_made_an_administrator(database: DutyDatabase) -> None:
    """Whoever follows the hint gives a worker no power over roles."""
    database.login("writer", "writer")
    with pytest.raises(StorageUnavailable, match="may not make roles") as refused:
        database.provision(store=database.url_of("writer"), password=database.password("writer"))

    assert "ALTER ROLE" not in refused.value.hint


def test_a_store_that_a_login_may_not_look_into_is_not_called_rolled_back(
    database: DutyDatabase,
) -> None:
    """A grant that was lost is said to be one, with what brings it back."""
    database.initialise()
    database.login("writer", "writer")
    with database.admin() as connection:
        duty = f'"{database.name}.sealpoint.writer"'
        connection.execute(f"REVOKE USAGE ON SCHEMA sealpoint FROM {duty}")
    with pytest.raises(StorageUnavailable, match="may not do that") as refused:
        database.open("writer")

    assert "sealpoint provision postgres" in refused.value.hint
    database.provision()
    database.open("writer").close()


def test_a_store_of_which_a_login_sees_no_row_is_said_to_be_so(database: DutyDatabase) -> None:
    """It may be a policy that was lost, and is refused as if the rows were."""
    database.initialise()
    database.login("writer", "writer")
    with database.admin() as connection:
        reads = f'"{database.login_name("writer")} reads"'
        connection.execute(f"DROP POLICY {reads} ON sealpoint.entries")
    with pytest.raises(RolledBack, match="sees nothing of it") as refused:
        database.open("writer")

    assert "sealpoint provision postgres" in refused.value.hint


def test_the_file_of_a_password_is_made_once(database: DutyDatabase) -> None:
    """A file that is there gives the password; without it, a login that is there is left alone."""
    path = database.password_file("writer")
    path.write_text("of my own\n")
    path.chmod(0o644)
    with pytest.raises(KeyFileUnsafe):
        database.login("writer", "writer")
    path.chmod(0o600)
    database.login("writer", "writer")

    assert path.read_text() == "of my own\n"
    database.connect("writer").close()
    path.unlink()
    with pytest.raises(UsageError, match="is there, and this file"):
        database.login("writer", "writer")


def test_each_duty_does_its_work(database: DutyDatabase) -> None:
    """An owner makes a store, a writer saves and resumes, an approver approves, a reader reads."""
    database.initialise(policy="strict")
    admin = database.administer()
    for person in ("ann", "ben"):
        admin.keys.create(person)
        admin.keys.add(person, person=person, roles=["approver"], namespaces=["*"])
    for name, duty in (("writer", "writer"), ("approver", "approver"), ("reader", "reader")):
        database.login(name, duty, "default")
    with database.open("writer") as store:
        thread = store.thread("t")
        thread.save({"text": "long" * 100_000})
        thread.save({"step": 2}, question="Shall I?")
        with pytest.raises(NeedsApproval) as asked:
            thread.resume(world=None, answer="yes")
    request = asked.value.request
    assert request is not None
    for person in ("ann", "ben"):
        with database.open("approver", identity=person) as store:
            store.approve(request.id, reason="looked at it")
    with database.open("writer") as store:
        assert store.thread("t").resume(world=None, answer="yes").state == {"step": 2}
    with database.open("reader", read_only=True) as store:
        assert list(store.threads()) == ["t"]
        assert store.verify().ok


def test_a_graph_chats_with_the_login_of_a_writer(database: DutyDatabase) -> None:
    """A guarded LangGraph chat goes on over processes, with rows of its namespace alone."""
    database.initialise()
    database.login("writer", "writer", "default")
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", f"{len(state['messages'])}")]})
    builder.add_edge(START, "answer")
    config: Any = {"configurable": {"thread_id": "chat"}}
    hello: Any = {"messages": [("user", "hello")]}
    for turn in range(3):
        with database.open("writer") as store:
            graph = guard(builder.compile(), SealedSaver.for_graph(builder, store), actor="clerk")
            said = graph.invoke(hello, config)["messages"]

            assert [each.content for each in said][-1] == str(2 * turn + 1)


def test_what_a_login_cannot_see_is_not_passed_over(database: DutyDatabase) -> None:
    """Where the anchor knows threads of namespaces that row security hides, lists say so."""
    database.initialise()
    database.login("wide", "writer")
    database.login("narrow", "writer", "billing")
    database.login("auditor", "reader")
    for login, namespace in (("wide", "payroll"), ("narrow", "billing")):
        with database.open(login, namespace=namespace) as store:
            store.thread(namespace).save(1)
    with database.open("narrow", namespace="billing") as store:
        store.thread("billing").save(2)

        assert store.thread("billing").load().state == 2
        assert list(store.threads(partial=True)) == ["billing"]
        assert not store.verify().ok
        with pytest.raises(ListIncomplete, match="which the store has not") as told:
            list(store.threads())
        assert "limited to namespaces" in told.value.hint
    with database.open("auditor", namespace="billing", read_only=True) as store:
        assert list(store.threads()) == ["billing"]
        assert store.verify().ok


@pytest.mark.parametrize("name", ["writer", "wide", "reader"])
def test_what_is_the_owners_is_refused_to_others(database: DutyDatabase, name: str) -> None:
    """Keys, pruning, erasing and new stores need the owner; a refusal names who may."""
    duty = "reader" if name == "reader" else "writer"
    database.login(name, duty, *(["default"] if name == "writer" else []))
    with pytest.raises(StorageUnavailable, match="may not do that") as refused:
        sealpoint.init(database.url_of(name), password=database.password(name), **database.places)

    assert "sealpoint provision postgres --store postgresql://ADMIN@" in refused.value.hint


def test_a_password_changes_while_a_worker_saves(database: DutyDatabase) -> None:
    """Whatever is lost, killed or changed meanwhile, no save fails."""
    database.initialise()
    database.login("writer", "writer")
    failures: list[SealpointError] = []
    saved = 0
    stop = threading.Event()

    def work() -> None:
        nonlocal saved
        with database.open("writer") as store:
            thread = store.thread("busy")
            while not stop.is_set():
                try:
                    thread.save({"step": saved})
                    saved += 1
                except SealpointError as failure:
                    failures.append(failure)
                    return

    worker = threading.Thread(target=work)
    worker.start()
    path, seen = database.password_file("writer"), set()
    try:
        for _ in range(12):
            rotate_postgres_login(
                database.url,
                database.login_name("writer"),
                password_file=path,
                password=database.server.password,
            )
            seen.add(path.read_text())
            with database.admin() as connection:  # every connection is made anew
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s",
                    (database.login_name("writer"),),
                )
    finally:
        stop.set()
        worker.join()

    assert failures == []
    assert len(seen) == 12
    with database.open("writer") as store:
        assert store.thread("busy").load().state == {"step": saved - 1}


def test_a_prepared_file_works_before_and_after_the_server_changes(
    database: DutyDatabase,
) -> None:
    """What other machines are given first has both passwords, of which either may be in force."""
    database.initialise()
    database.login("writer", "writer")
    path = database.password_file("writer")

    def rotate(**options: Any) -> None:
        rotate_postgres_login(
            database.url,
            database.login_name("writer"),
            password_file=path,
            password=database.server.password,
            **options,
        )

    old = database.password("writer")
    rotate(prepare=True)
    both = path.read_text()
    with database.open("writer") as store:
        store.thread("t").save(1)
    rotate(dry_run=True)
    assert path.read_text() == both
    rotate()
    assert path.read_text() == both.removeprefix(f"{old}\n")
    with database.open("writer", password=both.removesuffix("\n")) as store:
        assert store.thread("t").load().state == 1
    with pytest.raises(StorageUnavailable, match="password authentication failed"):
        database.open("writer", password=old)
    with pytest.raises(UsageError, match="has no duty"):
        rotate_postgres_login(
            database.url, "nobody", password_file=path, password=database.server.password
        )


def test_an_anchor_has_logins_of_its_own(database: DutyDatabase) -> None:
    """They have nothing in the store's database, and are changed where the anchor is."""
    database.login("anchor", "anchor")
    (found,) = rotate_postgres_login(
        None,
        database.login_name("anchor"),
        anchor=database.anchor,
        password_file=database.password_file("anchor"),
        anchor_password=database.server.password,
    )

    assert [each.what for each in found.changes] == [
        f"change the password of {database.login_name('anchor')}"
    ]
    with database.connect("anchor", f"{database.name}_anchor") as connection:
        connection.execute("SELECT * FROM sealpoint_anchor.slots")
    with pytest.raises(UsageError, match="no database for the duty anchor"):
        database.provision(login=PostgresLogin(name="a", duty=Duty.ANCHOR))
