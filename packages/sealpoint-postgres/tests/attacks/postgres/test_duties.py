# SPDX-License-Identifier: Apache-2.0
"""With the password of a login and psql, nobody does more than its duty: every kind of statement.

Each statement is tried by itself and would take effect if it were let through. Afterwards the
superuser looks at every row, grant, owner, policy, role and object: all is as it was.
"""

from typing import Any

import psycopg
import pytest
from psycopg import sql

from sealpoint.ids import namespace_tag
from sealpoint.ledger import STORE_CHAIN
from sealpoint_postgres._anchor_schema import TABLES as ANCHOR_TABLES
from sealpoint_postgres._storage_schema import TABLES
from tests.postgres_duties import OWNER, DutyDatabase
from tests.postgres_server import PostgresServer

_OURS, _OTHERS = "billing", "payroll"
_SLOTS = {"store": b"s" * 16, "slot": b"k" * 32}

# Everything that could change, delete, hide or take over something; {t} is a table, {c} its first
# column, {d} the database, {s} the schema, {o} the role of the owner, {w} that of another duty.
_STATEMENTS = (
    "UPDATE {t} SET {c} = {c}",
    "UPDATE {t} SET {c} = NULL",
    "UPDATE ONLY {t} SET {c} = DEFAULT RETURNING *",
    "DELETE FROM {t}",
    "DELETE FROM ONLY {t} USING {t} AS other RETURNING *",
    "WITH gone AS (DELETE FROM {t} RETURNING *) SELECT * FROM gone",
    "WITH changed AS (UPDATE {t} SET {c} = {c} RETURNING *) SELECT * FROM changed",
    "TRUNCATE {t}",
    "TRUNCATE {t} CASCADE",
    "MERGE INTO {t} AS a USING {t} AS b ON a.{c} = b.{c} WHEN MATCHED THEN DELETE",
    "MERGE INTO {t} AS a USING {t} AS b ON a.{c} = b.{c} WHEN MATCHED THEN UPDATE SET {c} = b.{c}",
    "MERGE INTO {t} AS a USING {t} AS b ON false WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "INSERT INTO {t} SELECT * FROM {t} ON CONFLICT ({k}) DO UPDATE SET {c} = EXCLUDED.{c}",
    "COPY {t} FROM PROGRAM 'cat /etc/passwd'",
    "COPY {t} FROM '/etc/passwd'",
    "COPY {t} TO PROGRAM 'cat'",
    "COPY {t} TO '/tmp/stolen'",
    "SELECT * FROM {t} FOR UPDATE",
    "SELECT * FROM {t} FOR NO KEY UPDATE",
    "SELECT * FROM {t} FOR SHARE",
    "LOCK TABLE {t} IN SHARE MODE",
    "LOCK TABLE {t} IN ACCESS EXCLUSIVE MODE",
    "ALTER TABLE {t} ADD COLUMN more text",
    "ALTER TABLE {t} DROP COLUMN {c}",
    "ALTER TABLE {t} RENAME TO taken",
    "ALTER TABLE {t} RENAME COLUMN {c} TO taken",
    "ALTER TABLE {t} SET SCHEMA public",
    "ALTER TABLE {t} OWNER TO CURRENT_USER",
    "ALTER TABLE {t} DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE {t} NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE {t} SET UNLOGGED",
    "ALTER TABLE {t} SET (autovacuum_enabled = false)",
    "ALTER TABLE {t} REPLICA IDENTITY FULL",
    "ALTER TABLE {t} DISABLE TRIGGER ALL",
    "ALTER TABLE {t} ALTER COLUMN {c} SET STATISTICS 0",
    "ALTER INDEX {s}.{n}_pkey RENAME TO taken",
    "ALTER SCHEMA {s} OWNER TO CURRENT_USER",
    "ALTER SCHEMA {s} RENAME TO taken",
    "ALTER DATABASE {d} OWNER TO CURRENT_USER",
    "ALTER DATABASE {d} SET search_path = public",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {o} GRANT ALL ON TABLES TO PUBLIC",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {s} GRANT ALL ON TABLES TO PUBLIC",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "ALTER ROLE CURRENT_USER BYPASSRLS",
    "ALTER ROLE CURRENT_USER CREATEROLE",
    "ALTER ROLE {o} LOGIN PASSWORD 'taken'",
    "ALTER ROLE ALL SET row_security = off",
    "ALTER SYSTEM SET row_security = off",
    "ALTER POLICY owner ON {t} TO PUBLIC",
    "CREATE POLICY taken ON {t} USING (true)",
    "DROP POLICY owner ON {t}",
    "DROP TABLE {t}",
    "DROP SCHEMA {s} CASCADE",
    "DROP OWNED BY {o} CASCADE",
    "REASSIGN OWNED BY {o} TO CURRENT_USER",
    "DROP ROLE {o}",
    "DROP DATABASE {d} WITH (FORCE)",
    "CREATE INDEX taken ON {t} ({c})",
    "CREATE STATISTICS {s}.taken ON {c}, {c} FROM {t}",
    "CREATE RULE taken AS ON INSERT TO {t} DO INSTEAD NOTHING",
    "CREATE TRIGGER taken BEFORE INSERT ON {t} EXECUTE FUNCTION {f}()",
    "CREATE FUNCTION {s}.taken() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION public.taken() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION pg_temp.taken() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE VIEW {s}.taken AS SELECT * FROM {t}",
    "CREATE VIEW public.taken AS SELECT * FROM {t}",
    "CREATE MATERIALIZED VIEW {s}.taken AS SELECT * FROM {t}",
    "CREATE TABLE {s}.taken (a int)",
    "CREATE TABLE {s}.taken () INHERITS ({t})",
    "CREATE TABLE {s}.taken PARTITION OF {t} DEFAULT",
    "CREATE TABLE {s}.taken AS SELECT * FROM {t}",
    "SELECT * INTO {s}.taken FROM {t}",
    "CREATE TEMP TABLE taken AS SELECT * FROM {t}",
    "CREATE TEMP VIEW taken AS SELECT * FROM {t}",
    "CREATE TYPE {s}.taken AS (a int)",
    "CREATE DOMAIN {s}.taken AS int",
    "CREATE SEQUENCE {s}.taken",
    "CREATE OPERATOR {s}.= (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = byteaeq)",
    "CREATE CAST (bytea AS int) WITHOUT FUNCTION",
    "CREATE SCHEMA taken",
    "CREATE EXTENSION dblink",
    "CREATE EXTENSION adminpack",
    "CREATE LANGUAGE taken",
    "CREATE DATABASE taken",
    "CREATE ROLE taken SUPERUSER",
    "CREATE TABLESPACE taken LOCATION '/tmp'",
    "CREATE PUBLICATION taken FOR TABLE {t}",
    "CREATE SUBSCRIPTION taken CONNECTION 'host=127.0.0.1' PUBLICATION x",
    "CREATE EVENT TRIGGER taken ON ddl_command_start EXECUTE FUNCTION {f}()",
    "CREATE FOREIGN DATA WRAPPER taken",
    "CREATE SERVER taken FOREIGN DATA WRAPPER taken",
    "GRANT ALL ON {t} TO PUBLIC",
    "GRANT ALL ON ALL TABLES IN SCHEMA {s} TO CURRENT_USER",
    "GRANT CREATE ON SCHEMA {s} TO CURRENT_USER",
    "GRANT TEMPORARY ON DATABASE {d} TO CURRENT_USER",
    "GRANT {o} TO CURRENT_USER",
    "GRANT {w} TO CURRENT_USER",
    "GRANT pg_write_all_data TO CURRENT_USER",
    "GRANT SET ON PARAMETER session_replication_role TO CURRENT_USER",
    "REVOKE ALL ON {t} FROM {o}",
    "REVOKE USAGE ON SCHEMA {s} FROM {w}",
    "SET ROLE {o}",
    "SET ROLE admin",
    "SET ROLE {w}",
    "SET SESSION AUTHORIZATION admin",
    "SET SESSION AUTHORIZATION {o}",
    "SET session_replication_role = replica",
    "REINDEX TABLE {t}",
    "REINDEX SCHEMA {s}",
    "REINDEX DATABASE {d}",
    "VACUUM FULL {t}",
    "CLUSTER {t} USING {n}_pkey",
    "REFRESH MATERIALIZED VIEW {t}",
    "COMMENT ON TABLE {t} IS 'taken'",
    "COMMENT ON COLUMN {t}.{c} IS 'taken'",
    "COMMENT ON POLICY owner ON {t} IS 'taken'",
    "COMMENT ON SCHEMA {s} IS 'taken'",
    "COMMENT ON DATABASE {d} IS 'taken'",
    "SECURITY LABEL ON TABLE {t} IS 'taken'",
    "IMPORT FOREIGN SCHEMA {s} FROM SERVER taken INTO public",
    "CHECKPOINT",
    "LOAD '/tmp/taken.so'",
    "DO $$ BEGIN DELETE FROM {t}; END $$",
    "DO $$ BEGIN EXECUTE 'TRUNCATE {t}'; END $$",
    "DO LANGUAGE plpgsql $$ BEGIN UPDATE {t} SET {c} = {c}; END $$",
    "PREPARE taken AS DELETE FROM {t}",
    "DECLARE taken CURSOR WITH HOLD FOR SELECT * FROM {t} FOR UPDATE",
    "EXPLAIN ANALYZE DELETE FROM {t}",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/stolen')",
    "SELECT lo_unlink(4242)",
    "SELECT lo_put(4242, 0, 'taken')",
    "SELECT lo_get(4242)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_read_binary_file('PG_VERSION')",
    "SELECT pg_ls_dir('.')",
    "SELECT pg_stat_file('PG_VERSION')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'admin'",
    "SELECT pg_reload_conf()",
    "SELECT pg_rotate_logfile()",
    "SELECT pg_switch_wal()",
    "SELECT pg_create_restore_point('taken')",
    "SELECT pg_create_physical_replication_slot('taken')",
    "SELECT pg_create_logical_replication_slot('taken', 'pgoutput')",
    "SELECT pg_logical_emit_message(true, 'taken', 'x')",
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM pg_statistic",
    "SELECT * FROM pg_largeobject",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT setval('taken', 1)",
    "SELECT query_to_xml('DELETE FROM {t}', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT dblink('host=127.0.0.1', 'DELETE FROM {t}')",
)
# What reads: nothing of another namespace comes back, by whatever way it is asked for.
_READING = (
    "TABLE {t}",
    "SELECT * FROM {t}",
    "SELECT {t}::text FROM {t}",
    "SELECT to_jsonb(x) FROM {t} AS x",
    "SELECT ctid, xmin, tableoid, * FROM {t}",
    "SELECT * FROM ONLY {t} TABLESAMPLE SYSTEM (100)",
    "SELECT * FROM {t} WHERE 1 / (octet_length({c}::text)) IS NULL OR true",
    "SELECT max({c}::text), min({c}::text), string_agg({c}::text, ',') FROM {t}",
    "SELECT query_to_xml('SELECT * FROM {t}', true, true, '')",
    "SELECT table_to_xml('{t}', true, true, '')",
    "SELECT schema_to_xml('{s}', true, true, '')",
    "SELECT * FROM pg_stats WHERE schemaname = '{s}'",
    "SELECT * FROM pg_stats_ext",
    "SET row_security = off; SELECT * FROM {t}",
    "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM {t}",
    "BEGIN; DECLARE each CURSOR FOR SELECT * FROM {t}; FETCH ALL FROM each",
    "SELECT query FROM pg_stat_activity",
    "SELECT * FROM pg_cursors",
    "SELECT * FROM pg_prepared_statements",
)


@pytest.fixture(scope="module")
def database(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> DutyDatabase:
    """A store with threads of two namespaces, an anchor, and a login of each duty."""
    made = DutyDatabase(postgres, tmp_path_factory.mktemp("duties"))
    made.initialise()
    made.provision(anchor=made.anchor)
    for name, duty, namespaces in (
        ("writer", "writer", [_OURS]),
        ("approver", "approver", [_OURS]),
        ("reader", "reader", [_OURS]),
        ("wide", "writer", []),
        ("anchor", "anchor", []),
        ("auditor", "anchor-reader", []),
    ):
        made.login(name, duty, *namespaces)
    for namespace in (_OURS, _OTHERS):
        with made.open("wide", namespace=namespace) as store:
            # Larger than what lies inside an entry: blobs and labels have rows as well.
            store.thread(f"thread of {namespace}").save({"text": namespace * 50_000})
    with made.admin(f"{made.name}_anchor") as connection:
        connection.execute(
            "INSERT INTO sealpoint_anchor.slots VALUES (%s, %s, %s, 1, 1, 7, %s, false, "
            "1, 0, 0, %s, false)",
            (_SLOTS["store"], _SLOTS["slot"], b"t" * 16, b"e" * 32, b"o" * 32),
        )
        connection.execute(
            "INSERT INTO sealpoint_anchor.runs VALUES (%s, %s, %s, 'worker', 0, now())",
            (_SLOTS["store"], _SLOTS["slot"], b"t" * 16),
        )
        connection.execute(
            "INSERT INTO sealpoint_anchor.slot_secrets VALUES (%s, %s)",
            (_SLOTS["store"], b"x" * 32),
        )
    with made.admin() as connection:
        connection.execute("SELECT lo_from_bytea(4242, 'of the administrator')")
        connection.execute("ANALYZE")
    return made


def _everything(database: DutyDatabase, name: str, schema: str) -> dict[str, Any]:
    """Every row of a schema, and all of the catalog that says who may do what."""
    queries = {
        "relations": "SELECT oid, relname, relnamespace, relowner, relacl::text, relkind,"
        " relrowsecurity, relforcerowsecurity, relpersistence, reloptions, relfilenode,"
        " relreplident, relhastriggers, relhasrules FROM pg_class WHERE relnamespace NOT IN"
        " ('pg_toast'::regnamespace) ORDER BY oid",
        "columns": "SELECT attrelid, attname, attacl::text, attstattarget FROM pg_attribute"
        " WHERE attrelid > 16383 ORDER BY 1, 2",
        "policies": "SELECT polname, polrelid, polroles::text, polqual::text FROM pg_policy"
        " ORDER BY 1, 2",
        "roles": "SELECT rolname, rolsuper, rolbypassrls, rolcanlogin, rolcreaterole, rolpassword"
        " FROM pg_authid WHERE rolname NOT LIKE 's\\_%' ORDER BY 1",
        "members": "SELECT roleid, member, admin_option FROM pg_auth_members ORDER BY 1, 2",
        "schemas": "SELECT nspname, nspowner, nspacl::text FROM pg_namespace"
        " WHERE nspname NOT LIKE 'pg\\_%temp\\_%' ORDER BY 1",
        "databases": "SELECT datname, datdba, datacl::text FROM pg_database ORDER BY 1",
        "functions": "SELECT count(*), max(oid::int8) FROM pg_proc",
        "types": "SELECT count(*) FROM pg_type",
        "comments": "SELECT objoid, description FROM pg_description ORDER BY 1, 2",
        "settings": "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting ORDER BY 1, 2",
        "defaults": "SELECT count(*) FROM pg_default_acl"
        " WHERE pg_get_userbyid(defaclrole) LIKE '%.owner'",
        "objects": "SELECT lomowner, encode(data, 'hex') FROM pg_largeobject_metadata m"
        " JOIN pg_largeobject o ON o.loid = m.oid ORDER BY loid",
        "slots": "SELECT slot_name FROM pg_replication_slots ORDER BY 1",
    }
    with database.admin(name) as connection:
        found: dict[str, Any] = {
            what: connection.execute(query).fetchall() for what, query in queries.items()
        }
        for (table,) in connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)
        ).fetchall():
            query = sql.SQL("SELECT * FROM {} AS x ORDER BY x::text").format(
                sql.Identifier(schema, table)
            )
            found[table] = connection.execute(query).fetchall()
    return found


class _Attacker:
    """Somebody with the password of a login and nothing else."""

    def __init__(self, database: DutyDatabase, login: str, *, of_anchor: bool = False) -> None:
        self._database = database
        self._login = login
        self.name = f"{database.name}_anchor" if of_anchor else database.name
        self.schema = "sealpoint_anchor" if of_anchor else "sealpoint"
        self.tables = ANCHOR_TABLES if of_anchor else TABLES
        another = "anchor-reader" if of_anchor else "reader"
        self._roles = {
            "o": f'"{self.name}.{self.schema}.owner"',
            "w": f'"{self.name}.{self.schema}.{another}"',
        }

    def look(self) -> dict[str, Any]:
        """All there is."""
        return _everything(self._database, self.name, self.schema)

    def try_all(self, statements: tuple[str, ...]) -> tuple[list[str], str]:
        """Try statements on every table; those that were let through, and all that was answered."""
        done: list[str] = []
        answers: list[str] = []
        with self._database.connect(self._login, self.name) as connection:
            connection.prepare_threshold = None
            for statement in statements:
                on_tables = any(part in statement for part in ("{t}", "{n}"))
                for table, columns in [*self.tables.items()][: None if on_tables else 1]:
                    if self._login == "anchor" and table == "runs" and "DELETE" in statement:
                        continue  # its duty: whoever begins a run ends it
                    try:
                        cursor = connection.execute(
                            self._filled(statement, table, columns).encode()
                        )
                        rows = [cursor.fetchall() if cursor.description else []]
                        while cursor.nextset():
                            rows.append(cursor.fetchall() if cursor.description else [])
                    except psycopg.Error as refused:
                        answers.append(str(refused))
                    else:
                        done.append(statement)
                        answers.append(repr(rows))
                    connection.rollback()
                    connection.execute("DISCARD ALL")
        return done, "\n".join(answers)

    def _filled(self, statement: str, table: str, columns: str) -> str:
        key = columns.partition("PRIMARY KEY (")[2].partition(")")[0]
        first = columns.split(" ", 1)[0]
        return statement.format(
            t=f"{self.schema}.{table}",
            n=table,
            c=first,
            k=key or first,
            d=self.name,
            s=self.schema,
            f="suppress_redundant_updates_trigger",
            **self._roles,
        )


# What the server lets through, each with the reason why nothing comes of it.
_HARMLESS = {
    "SET ROLE {w}": "by a member of it: that role sees no row by itself",
    "PREPARE taken AS DELETE FROM {t}": "rights are looked at when it is executed",
    "VACUUM FULL {t}": "tables of others are left out with a warning",
    "GRANT ALL ON {t} TO PUBLIC": "who has no right to pass on passes none on, with a warning",
    "GRANT ALL ON ALL TABLES IN SCHEMA {s} TO CURRENT_USER": "the same",
    "GRANT CREATE ON SCHEMA {s} TO CURRENT_USER": "the same",
    "GRANT TEMPORARY ON DATABASE {d} TO CURRENT_USER": "the same",
    "REVOKE ALL ON {t} FROM {o}": "who has granted nothing takes nothing back",
    "REVOKE USAGE ON SCHEMA {s} FROM {w}": "the same",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {s} GRANT ALL ON TABLES TO PUBLIC": "of tables it would "
    "make itself, and it can make none",
    "SELECT pg_logical_emit_message(true, 'taken', 'x')": "a line in the log, of no table",
}


@pytest.mark.parametrize("login", ["writer", "approver", "reader", "wide"])
def test_no_statement_changes_anything(database: DutyDatabase, login: str) -> None:
    """Nothing that a login of the store tries changes, deletes, hides or takes over anything."""
    attacker = _Attacker(database, login)
    before = attacker.look()
    done, _ = attacker.try_all(_STATEMENTS)

    assert attacker.look() == before
    assert sorted({*done} - _HARMLESS.keys()) == []


@pytest.mark.parametrize("login", ["anchor", "auditor"])
def test_no_statement_of_an_anchor_login_reaches_further(
    database: DutyDatabase, login: str
) -> None:
    """An anchor's login moves slots and ends runs, and nothing else; an auditor's does neither."""
    attacker = _Attacker(database, login, of_anchor=True)
    moves = [each for each in _STATEMENTS if login == "anchor" and _moves_slots(each)]
    before = attacker.look()
    done, _ = attacker.try_all(tuple(each for each in _STATEMENTS if each not in moves))

    assert attacker.look() == before
    assert sorted({*done} - _HARMLESS.keys()) == []


def _moves_slots(statement: str) -> bool:
    """Whether an anchor may do this with slots: its duty is to update them."""
    return any(
        word in statement
        for word in ("UPDATE", "FOR SHARE", "LOCK TABLE {t} IN SHARE", "ACCESS EX")
    )


def test_an_anchor_login_takes_no_slot_away(database: DutyDatabase) -> None:
    """What its duty lets it update cannot be deleted, and the secret of the slots stays."""
    with database.connect("anchor", f"{database.name}_anchor") as connection:
        for statement in (
            "DELETE FROM sealpoint_anchor.slots",
            "TRUNCATE sealpoint_anchor.slots",
            "TRUNCATE sealpoint_anchor.runs",
            "DELETE FROM sealpoint_anchor.slot_secrets",
            "UPDATE sealpoint_anchor.slot_secrets SET secret = 'taken'",
            "UPDATE sealpoint_anchor.anchor_version SET number = 2",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


@pytest.mark.parametrize("login", ["anchor", "auditor"])
def test_an_anchor_login_sees_nothing_of_the_store(database: DutyDatabase, login: str) -> None:
    """Schema and tables of the store are closed to it, in the same server."""
    with database.connect(login) as connection:
        for table in TABLES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"TABLE sealpoint.{table}")


@pytest.mark.parametrize("login", ["writer", "approver", "reader"])
def test_no_row_of_another_namespace_is_read(database: DutyDatabase, login: str) -> None:
    """By no way of asking does a thread of another namespace appear."""
    with database.admin() as connection:
        others = [
            thread.hex()
            for (thread,) in connection.execute("SELECT thread FROM sealpoint.entries")
            if thread.startswith(namespace_tag(_OTHERS))
        ]
    attacker = _Attacker(database, login)
    done, answers = attacker.try_all((*_READING, *_STATEMENTS))

    assert others
    assert "TABLE {t}" in done
    assert namespace_tag(_OURS).hex() in answers or repr(namespace_tag(_OURS))[2:-1] in answers
    for thread in others:
        assert thread not in answers
        assert repr(bytes.fromhex(thread))[2:-1] not in answers
    assert _OTHERS * 3 not in answers
    assert (_OTHERS * 3).encode().hex() not in answers


_ADDING = (
    "INSERT INTO sealpoint.entries VALUES (%s, 99, '', NULL, NULL)",
    "INSERT INTO sealpoint.blobs VALUES (%s, '', '')",
    "INSERT INTO sealpoint.labels VALUES ('', %s)",
    "INSERT INTO sealpoint.labels VALUES ('', %s) ON CONFLICT DO NOTHING",
    (
        "MERGE INTO sealpoint.labels USING (SELECT %s::bytea) AS b (thread) ON false"
        " WHEN NOT MATCHED THEN INSERT VALUES ('', b.thread)"
    ),
)


@pytest.mark.parametrize(
    ("login", "namespace", "allowed"),
    [
        ("writer", _OURS, True),
        ("writer", _OTHERS, False),
        ("approver", _OURS, True),
        ("approver", _OTHERS, False),
        ("reader", _OURS, False),
        ("wide", _OTHERS, True),
    ],
)
def test_rows_are_added_to_ones_own_namespaces_alone(
    database: DutyDatabase, login: str, namespace: str, *, allowed: bool
) -> None:
    """A new row is taken in one's own namespaces, and refused in others, by INSERT and by COPY."""
    thread = namespace_tag(namespace) + bytes(12)
    with database.connect(login) as connection:
        for statement in _ADDING:
            with connection.transaction(force_rollback=True):
                if allowed:
                    connection.execute(statement, (thread,))
                else:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(statement, (thread,))
        with (
            pytest.raises(psycopg.Error),
            connection.cursor().copy("COPY sealpoint.labels FROM STDIN") as copy,
        ):
            copy.write_row((b"", namespace_tag(_OTHERS) + bytes(12)))


@pytest.mark.parametrize("login", ["writer", "approver", "reader", "wide"])
def test_only_the_owner_adds_to_the_store_chain(database: DutyDatabase, login: str) -> None:
    """Nobody else adds a row by which everybody would read another roster, or none."""
    statement = "INSERT INTO sealpoint.entries VALUES (%s, 99, '', NULL, NULL)"
    with (
        database.connect(login) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement, (STORE_CHAIN,))
    with database.connect(OWNER) as connection, connection.transaction(force_rollback=True):
        connection.execute(statement, (STORE_CHAIN,))


def test_whether_a_row_of_others_is_there_is_not_told(database: DutyDatabase) -> None:
    """An insert under a key that is taken in another namespace is refused as any other is."""
    with database.admin() as connection:
        taken = next(
            thread
            for (thread,) in connection.execute("SELECT thread FROM sealpoint.entries")
            if thread.startswith(namespace_tag(_OTHERS))
        )
    free = namespace_tag(_OTHERS) + bytes(12)
    said = []
    with database.connect("writer") as connection:
        for thread in (taken, free):
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
                connection.execute(
                    "INSERT INTO sealpoint.entries VALUES (%s, 0, '', NULL, NULL)", (thread,)
                )
            said.append(str(refused.value))

    assert said[0] == said[1]


def test_a_member_without_a_policy_sees_nothing(database: DutyDatabase) -> None:
    """Whoever is made a member of a duty by hand alone sees no row and adds none."""
    name = database.login_name("stray")
    group = f"{database.name}.sealpoint.writer"
    with database.admin() as connection:
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'stray' IN ROLE {}").format(
                sql.Identifier(name), sql.Identifier(group)
            )
        )
    database.password_file("stray").write_text("stray")
    try:
        with database.connect("stray") as connection:
            assert connection.execute("SELECT * FROM sealpoint.entries").fetchall() == []
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    "INSERT INTO sealpoint.labels VALUES ('', %s)",
                    (namespace_tag(_OURS) + bytes(12),),
                )
    finally:
        with database.admin() as connection:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
