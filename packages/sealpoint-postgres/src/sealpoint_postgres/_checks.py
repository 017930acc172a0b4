# SPDX-License-Identifier: Apache-2.0
"""Checks of the databases of a store and of a shared anchor.

Provisioning itself finds its pending changes, at a desk that executes nothing. The other checks
cover everything that provisioning may not touch: roles of other owners, other objects in the
schema, settings of the server, and whether store and anchor are independent of each other.

It reads the catalog, which every login may, in sessions that cannot write. Passwords and
`pg_hba.conf` are shown to superusers alone: where they cannot be looked at, a note says so.
"""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from psycopg.sql import SQL, Composed, Identifier

from sealpoint.api.checks import Commands, Examination, Examined, PartChecks, Severity
from sealpoint_postgres._connections import Connections
from sealpoint_postgres._database_layout import DatabasePlace, Desk
from sealpoint_postgres._duties import Duty
from sealpoint_postgres._grants import require_own_schema
from sealpoint_postgres._roles import drift, immodest_roles, members_of_duties
from sealpoint_postgres._url import SCHEME, PostgresUrl

_T = TypeVar("_T")
_now = partial(datetime.now, UTC)
_WAIT_SECONDS = 10.0
_CLOCK_SECONDS = 30
_VERSION_MIN = 150000
_BOOTSTRAP_SUPERUSER = 10
_EVERY_DATABASE = (
    *("not-provisioned", "database-roles", "database-logins", "database-owner", "database-grants"),
    *("row-security", "default-privileges", "database-triggers", "database-objects"),
    *("login-powerful", "login-owner", "others-write", "others-read", "superusers", "tls-off"),
    *("tls-unverified", "server-listens", "fsync-off", "commit-not-durable", "no-standby"),
    *("server-old", "clock-database"),
)
_SUPERUSERS_SEE = ("hba-trust", "hba-everywhere", "password-md5")
_BOTH = ("anchor-same-server", "anchor-same-login", "anchor-open")


_CRITICAL, _WARNING, _NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE

LINES: dict[str, tuple[Severity, str]] = {
    "not-provisioned": (_CRITICAL, "the database has a role for each duty"),
    "database-roles": (_CRITICAL, "the roles of duties are members of nothing"),
    "database-logins": (_CRITICAL, "each login has one duty and is bounded"),
    "database-owner": (_CRITICAL, "schema and tables are the owner's, and all there"),
    "database-grants": (_CRITICAL, "nobody may do more or less than their duty"),
    "row-security": (_CRITICAL, "row security is on and forced, with the policies of each login"),
    "default-privileges": (_WARNING, "new tables are open to nobody else"),
    "database-triggers": (_CRITICAL, "nothing runs when rows of the store are written"),
    "database-objects": (_WARNING, "nothing else is in the schema"),
    "login-powerful": (_CRITICAL, "no login of the store is a superuser, or spared row security"),
    "login-owner": (_WARNING, "workers do not log in as the owner"),
    "others-write": (_CRITICAL, "no other role can write to the tables"),
    "others-read": (_WARNING, "no other role can read the tables"),
    "superusers": (_NOTE, "the server has one superuser"),
    "tls-off": (_CRITICAL, "what goes to another machine is encrypted"),
    "tls-unverified": (_WARNING, "a server on another machine proves its name"),
    "server-listens": (_WARNING, "the server listens to other machines by TLS alone"),
    "hba-trust": (_CRITICAL, "everybody has to prove who they are, without sending a password"),
    "hba-everywhere": (_WARNING, "nobody logs in from anywhere without TLS"),
    "password-md5": (_WARNING, "the server keeps passwords by SCRAM"),
    "fsync-off": (_CRITICAL, "the server waits for the disk (fsync, full_page_writes)"),
    "commit-not-durable": (_WARNING, "a commit is on the disk when it is acknowledged"),
    "no-standby": (_NOTE, "a synchronous standby has what was acknowledged"),
    "server-old": (_WARNING, "the server is of a version that is looked after"),
    "clock-database": (_WARNING, "the clocks of this machine and of the database agree"),
    "anchor-same-server": (_WARNING, "the shared anchor is on another server than the store"),
    "anchor-same-login": (_CRITICAL, "store and shared anchor have different logins"),
    "anchor-open": (_CRITICAL, "the store's login has nothing of the shared anchor"),
}
"""Code: how bad it is, and what should be so."""

_Mending = tuple[str, Commands]
"""The command that provisions a database, and other commands to run."""


def _look_at_databases(exam: Examination, examined: Examined) -> None:
    """Look at the databases of a store and of its shared anchor, as far as there are any.

    Where an anchor is looked at by itself, with whichever login can, the login is none that
    programs use.
    """
    fixes = examined.commands
    store = anchor = None
    if examined.store is not None and examined.store.scheme == SCHEME:
        url = PostgresUrl.parse(str(examined.store))
        place = DatabasePlace.of_store(url, examined.store_password)
        store = _look_at(exam, place, "--store", fixes, works_here=examined.works_here)
    if examined.anchor is not None and examined.anchor.scheme == SCHEME:
        url = PostgresUrl.parse(examined.anchor.spelled_out)
        place = DatabasePlace.of_anchor(url, examined.anchor_password)
        alone = examined.store is None
        anchor = _look_at(exam, place, "--anchor", fixes, works_here=False, only_looks=alone)
    if store is not None and anchor is not None:
        with exam.look(*_BOTH):
            _look_at_both(exam, fixes, store, anchor)


CHECKS = PartChecks(lines=LINES, look=_look_at_databases)
"""The value of an entry point of `sealpoint.checks`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The facts about a database that was checked."""

    place: DatabasePlace
    admin: PostgresUrl
    """The database, with the login of its administrator."""
    login: str
    server: int
    """The number that the server drew when it was created."""


def _look_at(
    exam: Examination,
    place: DatabasePlace,
    option: str,
    fixes: Commands,
    *,
    works_here: bool,
    only_looks: bool = False,
) -> _Seen | None:
    """Look at a database; a login that only looks is none that programs use."""
    seen: _Seen | None = None
    with exam.look(*_EVERY_DATABASE):
        seen = _at_desk(place, lambda desk: _learn(desk, place))
        known = replace(seen, login="") if only_looks else seen
        as_admin = replace(place, url=seen.admin)
        provision = shlex.join(["sealpoint", "provision", "postgres", option, str(seen.admin)])

        def look(desk: Desk) -> None:
            _Database(exam, desk, (provision, fixes), known, works_here=works_here).look()
            _Server(exam, desk, place.url, (provision, fixes)).look()

        _at_desk(place, look, shown_as=as_admin)
    return seen


def _at_desk(
    place: DatabasePlace, work: Callable[[Desk], _T], *, shown_as: DatabasePlace | None = None
) -> _T:
    """Do some work that only looks, in a session that cannot write."""
    connections = Connections(
        place.url,
        what=place.what,
        unavailable=place.unavailable,
        password=place.password,
        read_only=True,
        connections_max=1,
        wait_seconds_max=_WAIT_SECONDS,
        purpose="store" if place.layout.of_threads else "anchor",
    )
    try:
        return connections.run(
            lambda connection: work(Desk(connection, shown_as or place, only_looks=True))
        )
    finally:
        connections.close()


def _learn(desk: Desk, place: DatabasePlace) -> _Seen:
    ((login, admin, server),) = desk.rows(
        "SELECT session_user::text, (SELECT rolname::text FROM pg_roles WHERE oid = %s),"
        " (SELECT system_identifier FROM pg_control_system())",
        _BOOTSTRAP_SUPERUSER,
    )
    return _Seen(place=place, admin=replace(place.url, user=admin), login=login, server=server)


class _Database:
    """Roles, grants and objects of one database."""

    def __init__(
        self, exam: Examination, desk: Desk, mending: _Mending, seen: _Seen, *, works_here: bool
    ) -> None:
        self._exam = exam
        self._desk = desk
        self._provision, self._fixes = mending
        self._seen = seen
        self._works_here = works_here
        self._what = seen.place.what
        self._schema = desk.place.url.schema
        self._tables = [*desk.place.layout.tables]
        self._duties = [desk.place.role(duty) for duty in desk.place.layout.grants]

    def look(self) -> None:
        """Look at what provisioning makes, then at what it leaves to others."""
        require_own_schema(self._desk)
        there = self._desk.rows(
            "SELECT 1 FROM pg_roles WHERE rolname::text = ANY(%s)", self._duties
        )
        if there:
            self._look_at_drift()
        else:
            reason = f"{self._what}: it has no roles of duties, so that one login does everything"
            self._exam.found("not-provisioned", reason, self._provision)
        self._look_at_login()
        self._look_at_others()
        self._look_at_defaults()
        for code, reason, statement in self._extra_objects():
            self._mend(code, f"{self._what}: {reason}", statement)

    def _mend(self, code: str, reason: str, statement: Composed | SQL) -> None:
        self._exam.found(code, reason, f"{self._desk.text(statement)};", sql=True)

    def _look_at_drift(self) -> None:
        for code, changes in drift(self._desk).items():
            for change in changes:
                reason = f"{self._what}: provisioning would change it: {change.what}"
                self._exam.found(code, reason, self._provision)
        for note in self._desk.notes:
            reason, _, fix = note.partition(": ")
            self._exam.found("database-logins", f"{self._what}: {reason}", fix)

    def _look_at_login(self) -> None:
        """No login of the store has more than a duty gives, and a worker's is not the owner's."""
        desk, login = self._desk, self._seen.login
        names = {login, *members_of_duties(desk)}
        for name, more, mended in immodest_roles(desk, names):
            reason = f"{self._what}: the login {name} has {', '.join(more)}"
            if name == self._seen.admin.user:
                self._exam.found("login-powerful", f"{reason}: log in by a duty", self._by_duty())
            else:
                self._exam.found("login-powerful", reason, mended, sql=True)
        owner = desk.place.role(Duty.OWNER)
        is_owner = desk.rows(
            "SELECT 1 FROM pg_roles m, pg_roles r WHERE m.rolname::text = %s AND NOT m.rolsuper"
            " AND r.rolname::text = %s AND pg_has_role(m.oid, r.oid, 'MEMBER')",
            login,
            owner,
        )
        if is_owner and self._works_here:
            reason = f"{self._what}: a worker's key is here, and the login {login} is the owner's"
            self._exam.found("login-owner", reason, self._by_duty())
        for (name,) in desk.rows(
            "SELECT rolname::text FROM pg_roles WHERE rolsuper AND rolcanlogin AND oid <> %s"
            " AND NOT rolname::text = ANY(%s) ORDER BY 1",
            _BOOTSTRAP_SUPERUSER,
            [*names],
        ):
            statement = SQL("ALTER ROLE {} NOSUPERUSER").format(Identifier(name))
            self._mend("superusers", f"{self._what}: {name} is a superuser as well", statement)

    def _by_duty(self) -> str:
        """Make a login of a duty, and use it."""
        url = self._seen.place.url
        duty = Duty.WRITER if self._seen.place.layout.of_threads else Duty.ANCHOR
        name = f"{url.database}_{duty}".lower()
        file = f"{name}.password"
        purpose = "STORE" if duty is Duty.WRITER else "ANCHOR"
        made = f"{self._provision} --login {name} --duty {duty} --password-file {file}"
        named = shlex.quote(str(replace(url, user=name)))
        use = f'export SEALPOINT_{purpose}_PASSWORD_FILE="$PWD/{file}"'
        if duty is Duty.WRITER:
            return f"{made} && {use} SEALPOINT_STORE={named}"
        return f"{made} && {use} && {self._fixes.sealpoint('anchor', 'join')} {named}"

    def _look_at_others(self) -> None:
        """Nobody gets at the tables through a role that is another's."""
        known = [*self._duties, *members_of_duties(self._desk)]
        rights = {"others-write": "INSERT, UPDATE, DELETE, TRUNCATE", "others-read": "SELECT"}
        reported: set[tuple[str, str]] = set()
        for code, privileges in rights.items():
            for member, role in self._desk.rows(_THROUGH, self._schema, self._tables, privileges):
                if member in known or (member, role) in reported:
                    continue
                reported.add((member, role))
                statement = SQL("REVOKE {} FROM {}").format(Identifier(role), Identifier(member))
                reason = f"{self._what}: {member} gets at its tables as a member of {role}"
                self._mend(code, reason, statement)

    def _look_at_defaults(self) -> None:
        """No table that is made later is open to others by default."""
        owner = self._desk.place.role(Duty.OWNER)
        for role, schema, grantee in self._desk.rows(_DEFAULTS, owner, self._schema):
            within = SQL("") if schema is None else SQL("IN SCHEMA {} ").format(Identifier(schema))
            to = SQL("PUBLIC") if grantee is None else Identifier(grantee)
            statement = SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {} {}REVOKE ALL ON TABLES FROM {}"
            ).format(Identifier(role), within, to)
            reason = f"{self._what}: tables that {role} makes are open to {grantee or 'PUBLIC'}"
            self._mend("default-privileges", reason, statement)

    def _extra_objects(self) -> Iterable[tuple[str, str, Composed | SQL]]:
        """The objects on the tables or in the schema that provisioning did not create."""
        schema, rows = self._schema, self._desk.rows
        for name, table in rows(_TRIGGERS, schema):
            yield (
                "database-triggers",
                f"the trigger {name} runs when {table} is written",
                SQL("DROP TRIGGER {} ON {}").format(Identifier(name), Identifier(schema, table)),
            )
        for name, table in rows(_RULES, schema, self._tables):
            yield (
                "database-triggers",
                f"the rule {name} turns statements on {table} into others",
                SQL("DROP RULE {} ON {}").format(Identifier(name), Identifier(schema, table)),
            )
        for child_schema, child, table in rows(_CHILDREN, schema, self._tables):
            yield (
                "database-objects",
                f"rows of {child_schema}.{child} count as rows of {table}",
                SQL("ALTER TABLE {} NO INHERIT {}").format(
                    Identifier(child_schema, child), Identifier(schema, table)
                ),
            )
        for kind, name in rows(_RELATIONS, schema, self._tables):
            yield (
                "database-objects",
                f"{name} is not a table of a store",
                SQL("DROP {} {} CASCADE").format(SQL(_KINDS[kind]), Identifier(schema, name)),
            )
        for name, arguments in rows(_FUNCTIONS, schema):
            yield (
                "database-objects",
                f"the function {name} is in its schema",
                SQL("DROP ROUTINE {}({}) CASCADE").format(
                    Identifier(schema, name),
                    SQL(arguments),  # as the server writes them
                ),
            )


_KINDS = {
    "r": "TABLE",
    "p": "TABLE",
    "v": "VIEW",
    "m": "MATERIALIZED VIEW",
    "f": "FOREIGN TABLE",
    "S": "SEQUENCE",
    "i": "INDEX",
    "I": "INDEX",
}
# Direct memberships through which a role has some of these privileges on tables of the schema.
_THROUGH = (
    "SELECT DISTINCT m.rolname::text, r.rolname::text FROM pg_auth_members a"
    " JOIN pg_roles m ON m.oid = a.member JOIN pg_roles r ON r.oid = a.roleid, pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s"
    " AND c.relname::text = ANY(%s) AND NOT m.rolsuper AND m.rolname::text NOT LIKE 'pg\\_%%'"
    " AND pg_has_role(m.oid, r.oid, 'MEMBER')"
    " AND coalesce((to_jsonb(a) ->> 'set_option')::boolean, true)"  # PostgreSQL 15 has no such one
    " AND has_table_privilege(r.oid, c.oid, %s) ORDER BY 1, 2"
)
_DEFAULTS = (
    "SELECT DISTINCT r.rolname::text, n.nspname::text, g.rolname::text FROM pg_default_acl d"
    " JOIN pg_roles r ON r.oid = d.defaclrole LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace"
    " CROSS JOIN aclexplode(d.defaclacl) AS a LEFT JOIN pg_roles g ON g.oid = a.grantee"
    " WHERE d.defaclobjtype = 'r' AND a.grantee <> d.defaclrole"
    " AND ((n.oid IS NULL AND r.rolname::text = %s) OR n.nspname = %s) ORDER BY 1, 2, 3"
)
_TRIGGERS = (
    "SELECT t.tgname::text, c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND NOT t.tgisinternal"
    " ORDER BY 1, 2"
)
_RULES = (
    "SELECT w.rulename::text, c.relname::text FROM pg_rewrite w"
    " JOIN pg_class c ON c.oid = w.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relname::text = ANY(%s) ORDER BY 1, 2"
)
_CHILDREN = (
    "SELECT m.nspname::text, k.relname::text, c.relname::text FROM pg_inherits i"
    " JOIN pg_class k ON k.oid = i.inhrelid JOIN pg_namespace m ON m.oid = k.relnamespace"
    " JOIN pg_class c ON c.oid = i.inhparent JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND c.relname::text = ANY(%s) ORDER BY 1, 2"
)
# Relations that are neither our tables nor the indexes of their primary keys.
_RELATIONS = (
    "SELECT c.relkind::text, c.relname::text FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = %s AND NOT c.relname::text = ANY(%s) AND c.relkind <> 'c'"
    " AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid)"
    " AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid) ORDER BY 2"
)
_FUNCTIONS = (
    "SELECT p.proname::text, pg_get_function_identity_arguments(p.oid) FROM pg_proc p"
    " JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %s ORDER BY 1, 2"
)


class _Server:
    """The server of a database: TLS, durability, versions, and how people prove who they are."""

    def __init__(self, exam: Examination, desk: Desk, url: PostgresUrl, mending: _Mending) -> None:
        self._exam = exam
        self._desk = desk
        self._url = url
        self._provision, self._fixes = mending
        self._of_store = bool(desk.place.layout.of_threads)
        self._settings = {
            name: (setting, source)
            for name, setting, source in desk.rows("SELECT name, setting, source FROM pg_settings")
        }

    def look(self) -> None:
        """Look at all of it."""
        self._look_at_tls()
        self._look_at_durability()
        self._look_at_clock()
        version = int(self._settings["server_version_num"][0])
        if version < _VERSION_MIN:
            reason = f"server {self._url}: it is of version {version // 10000}"
            self._exam.found(
                "server-old", reason, f"pg_upgrade --help  # to {_VERSION_MIN // 10000}"
            )
        self._require_setting("password-md5", "password_encryption", "scram-sha-256", ("md5", "on"))
        ((sees_rules, sees_passwords),) = self._desk.rows(
            "SELECT has_table_privilege('pg_hba_file_rules', 'SELECT')"
            " AND has_function_privilege('pg_hba_file_rules()', 'EXECUTE'),"
            " has_table_privilege('pg_authid', 'SELECT')"
        )
        if not (sees_rules and sees_passwords):
            self._exam.unanswered(
                _SUPERUSERS_SEE,
                f"server {self._url}: who logs in how, and how passwords are kept, is shown to "
                "superusers alone",
                self._doctor(),
            )
            return
        with self._exam.look(*_SUPERUSERS_SEE):
            self._look_at_passwords()
            self._look_at_rules()

    def _doctor(self) -> str:
        """The same check, run by the administrator of the database."""
        admin = str(self._desk.place.url)
        if self._of_store:
            return self._fixes.sealpoint("doctor", store=admin)
        return shlex.join(["sealpoint", "doctor", "--anchor", admin])

    def _look_at_tls(self) -> None:
        url, mode = self._url, self._url.parameters().get("sslmode", "prefer")
        proven = replace(url, ways=tuple(each for each in url.ways if each[0] != "sslmode"))
        if self._of_store:
            fix = f"export SEALPOINT_STORE={shlex.quote(str(proven))}"
        else:
            fix = self._fixes.sealpoint("anchor", "join", str(proven))
        if not url.is_here:
            if not self._desk.connection.pgconn.ssl_in_use:  # the server could say anything
                reason = f"server {url}: states and passwords go to it as they are"
                self._exam.found("tls-off", reason, fix)
            if mode != "verify-full":
                reason = f"server {url}: with sslmode={mode} another can take its place"
                self._exam.found("tls-unverified", reason, fix)
        heard = {each.strip() for each in self._settings["listen_addresses"][0].split(",")}
        here = {"", "localhost", "127.0.0.1", "::1"}
        if heard - here and self._settings["ssl"][0] != "on":
            reason = f"server {url}: it listens on {', '.join(sorted(heard - here))} without TLS"
            if url.is_here:
                fix = "ALTER SYSTEM SET listen_addresses = 'localhost'; -- then restart the server"
            else:
                fix = "ALTER SYSTEM SET ssl = on; SELECT pg_reload_conf(); -- with server.crt there"
            self._exam.found("server-listens", reason, fix, sql=True)

    def _look_at_durability(self) -> None:
        for name in ("fsync", "full_page_writes"):
            self._require_setting("fsync-off", name, "on", ("off",))
        self._require_setting("commit-not-durable", "synchronous_commit", "on", ("off", "local"))
        if not self._settings["synchronous_standby_names"][0]:
            self._exam.found(
                "no-standby",
                f"server {self._url}: if its disk is lost, what was saved last is lost",
                """ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf();"""
                " -- once a standby follows",
                sql=True,
            )

    def _require_setting(self, code: str, name: str, good: str, bad: tuple[str, ...]) -> None:
        setting, source = self._settings[name]
        if setting not in bad:
            return
        role, database = Identifier(self._url.user), Identifier(self._url.database)
        who = {
            "user": SQL("ALTER ROLE {} RESET {}").format(role, SQL(name)),
            "database": SQL("ALTER DATABASE {} RESET {}").format(database, SQL(name)),
            "database user": SQL("ALTER ROLE {} IN DATABASE {} RESET {}").format(
                role, database, SQL(name)
            ),
        }
        if source in who:
            fix = f"{self._desk.text(who[source])};"
        elif source == "command line":
            fix = f"-- take {name}={setting} out of the command that starts the server, restart it"
        else:
            fix = f"ALTER SYSTEM SET {name} = '{good}'; SELECT pg_reload_conf();"
        self._exam.found(code, f"server {self._url}: {name} is {setting}", fix, sql=True)

    def _look_at_clock(self) -> None:
        ((theirs,),) = self._desk.rows("SELECT clock_timestamp()")
        apart = abs((_utc(theirs) - _now()).total_seconds())
        if apart > _CLOCK_SECONDS:
            self._exam.found(
                "clock-database",
                f"server {self._url}: its clock and that of this machine are {apart:.0f} s apart",
                "sudo timedatectl set-ntp true",
            )

    def _look_at_passwords(self) -> None:
        logins = members_of_duties(self._desk)
        for (name,) in self._desk.rows(
            "SELECT rolname::text FROM pg_authid WHERE rolcanlogin AND rolpassword LIKE 'md5%%'"
            " ORDER BY 1"
        ):
            reason = f"server {self._url}: it keeps the password of {name} by MD5"
            if name in logins:
                rotate = f"{self._provision} --rotate {name} --password-file {name}.password"
                self._exam.found("password-md5", reason, rotate)
            else:
                asked = self._desk.text(SQL("\\password {}").format(Identifier(name)))
                self._exam.found("password-md5", reason, asked, sql=True)

    def _look_at_rules(self) -> None:
        """Lines of pg_hba.conf, with the command that fixes one on the machine of the server."""
        directory = self._settings["data_directory"][0]
        reload = f'kill -HUP "$(head -n 1 {shlex.quote(directory)}/postmaster.pid)"'
        for file, line, kind, address, method in self._desk.rows(
            # PostgreSQL 15 names neither the file nor the number of a rule: it reads one file.
            "SELECT coalesce(to_jsonb(r) ->> 'file_name', current_setting('hba_file')),"
            " line_number, type, address, auth_method FROM pg_hba_file_rules r"
            " WHERE error IS NULL ORDER BY (to_jsonb(r) ->> 'rule_number')::integer, line_number"
        ):
            named, where = f"{file} line {line}", shlex.quote(str(file))
            if method == "trust" or (method == "password" and kind != "hostssl"):
                self._exam.found(
                    "hba-trust",
                    f"{named}: a client that matches it "
                    + (
                        "needs no password"
                        if method == "trust"
                        else "sends its password unencrypted"
                    ),
                    f"sed -i '{line}s/{method}/scram-sha-256/' {where} && {reload}",
                )
            if kind == "host" and address in {"0.0.0.0", "::", "all"}:  # noqa: S104 # nosec B104 # no bind
                self._exam.found(
                    "hba-everywhere",
                    f"{named}: everybody may try, from anywhere and without TLS",
                    f"sed -i '{line}s/^host[a-z]*/hostssl/' {where} && {reload}",
                )


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.astimezone()


def _look_at_both(exam: Examination, fixes: Commands, store: _Seen, anchor: _Seen) -> None:
    """An anchor protects against an operator of the store only if the operator cannot reach it."""
    if store.server != anchor.server:
        return
    exam.found(
        "anchor-same-server",
        f"{anchor.place.what}: an administrator of the store's server can roll both back",
        f"{fixes.sealpoint('anchor', 'leave')} && {fixes.sealpoint('anchor', 'join')} "
        '"${ANCHOR:?the URL of one on another server}" --reason="${REASON:?why}"',
    )
    if store.login == anchor.login:
        name = f"{anchor.place.url.database}_anchor".lower()
        joined = replace(anchor.place.url, user=name)
        provision = shlex.join(
            ["sealpoint", "provision", "postgres", "--anchor", str(anchor.admin)]
        )
        exam.found(
            "anchor-same-login",
            f"{anchor.place.what}: the login {store.login} is that of the store as well",
            f"{provision} --login {name} --duty anchor --password-file {name}.password && "
            f'export SEALPOINT_ANCHOR_PASSWORD_FILE="$PWD/{name}.password" && '
            + fixes.sealpoint("anchor", "join", str(joined)),
        )
    else:
        _at_desk(anchor.place, lambda desk: _look_at_reach(exam, desk, store, anchor))


def _look_at_reach(exam: Examination, desk: Desk, store: _Seen, anchor: _Seen) -> None:
    """The login of the store has no rights on the tables of the anchor, through any role."""
    found = desk.rows(
        "SELECT DISTINCT r.rolname::text FROM pg_roles m, pg_roles r, pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE m.rolname::text = %s AND n.nspname = %s AND c.relname::text = ANY(%s)"
        " AND NOT m.rolsuper AND pg_has_role(m.oid, r.oid, 'MEMBER')"
        " AND has_table_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')",
        store.login,
        desk.place.url.schema,
        [*desk.place.layout.tables],
    )
    for (role,) in found:
        login = Identifier(store.login)
        statement = SQL("REVOKE {} FROM {}").format(Identifier(role), login)
        if role == store.login and len(found) > 1:
            continue  # it has it by the others
        if role == store.login:
            schema = Identifier(desk.place.url.schema)
            statement = SQL("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM {}").format(schema, login)
        exam.found(
            "anchor-open",
            f"{anchor.place.what}: the store's login {store.login} gets at it as {role}",
            f"{desk.text(statement)};",
            sql=True,
        )
