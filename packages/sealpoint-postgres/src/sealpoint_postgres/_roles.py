# SPDX-License-Identifier: Apache-2.0
"""Roles and logins of a database: one role for each duty, and logins that are members of one.

The code refuses a role with more rights than a role of a store may have (a superuser, a role that
bypasses row security) and never changes it, because it has another purpose. A login has one duty;
provisioning revokes every membership that gives it more rights. The server receives a SCRAM
verifier, and never the password.

No login can exhaust the server alone: each has a connection limit. PostgreSQL lets a login change
its own settings, and these apply to every later program that uses the login; provisioning resets
them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from psycopg.sql import SQL, Identifier, Literal

from sealpoint.errors import ConfigError, NameInvalid, UsageError
from sealpoint.ids import NAMESPACE_TAG_BYTES, namespace_tag
from sealpoint_postgres._database_layout import DatabasePlace, Desk
from sealpoint_postgres._duties import Duty, PostgresChange, PostgresLogin, Provisioned
from sealpoint_postgres._grants import (
    has_tables,
    kept_logins,
    make_tables,
    mend_grants,
    mend_policies,
)

_LOGIN = re.compile(r"(?!pg_)[a-z_][a-z0-9_.-]{0,47}")
_NAME_CHARS_MAX = 63
_MORE = ("SUPERUSER", "BYPASSRLS", "CREATEROLE", "CREATEDB", "REPLICATION")


class NewPassword(Protocol):
    """Where the password of a new login comes from."""

    def require(self, login: str) -> None:
        """Raise an error if the password of an existing login is missing."""

    def make(self) -> str:
        """The password, which is on the disk when this returns."""


def provision(
    place: DatabasePlace, login: PostgresLogin | None, new: NewPassword | None, *, dry_run: bool
) -> Provisioned:
    """Bring a database to its expected state; see `provision_postgres`."""
    if login is not None:
        _require_login_name(login.name)

    def work(desk: Desk) -> Provisioned:
        _make_roles(desk)
        if login is not None:
            _make_login(desk, login, new, dry_run=dry_run)
        logins = _settle_logins(desk, login)
        _mend_settings(desk, logins)
        _mend_large_objects(desk)
        make_tables(desk)
        mend_grants(desk, logins)
        mend_policies(desk, logins)
        desk.end()
        return _result(desk, logins)

    return place.run(work, dry_run=dry_run)


def drift(desk: Desk) -> dict[str, list[PostgresChange]]:
    """The changes that provisioning would make, part by part, at a desk that only looks.

    Raises:
        Edited: An object that is not a table has the name of a table.
    """
    logins: list[PostgresLogin] = []

    def settle_logins() -> None:
        logins.extend(_settle_logins(desk, None))
        _mend_settings(desk, logins)

    parts: dict[str, Callable[[], object]] = {
        "database-owner": lambda: make_tables(desk),
        "database-roles": lambda: _make_roles(desk),
        "database-logins": settle_logins,
        "database-grants": lambda: mend_grants(desk, logins),
        "row-security": lambda: mend_policies(desk, logins),
    }
    found = {}
    for name, compare in parts.items():
        known = len(desk.changes)
        compare()
        found[name] = desk.changes[known:]
        if name == "database-owner" and not has_tables(desk):
            break  # the rest is about tables that are not there
    return found


def immodest_roles(
    desk: Desk, names: Collection[str], *, log_in: bool = True
) -> Iterator[tuple[str, list[str], str]]:
    """Roles with rights that no role of a store may have: name, right, and fix."""
    found = desk.rows(
        "SELECT rolname::text, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,"
        " rolcanlogin FROM pg_roles WHERE rolname::text = ANY(%s) ORDER BY 1",
        [*names],
    )
    for name, *has, logs_in in found:
        more = [each for each, it_has in zip(_MORE, has, strict=True) if it_has]
        if logs_in and not log_in:
            more.append("LOGIN")
        if more:
            mended = SQL("ALTER ROLE {} {}").format(
                Identifier(name), SQL(" ".join(f"NO{each}" for each in more))
            )
            yield name, more, f"{desk.text(mended)};"


def rotate(place: DatabasePlace, name: str, password: str, *, dry_run: bool) -> Provisioned:
    """Give a login another password."""

    def work(desk: Desk) -> Provisioned:
        _require_modest(desk, [name])
        role = Identifier(name)
        desk.change(
            f"change the password of {name}",
            SQL("ALTER ROLE {} PASSWORD {}").format(role, _verifier(desk, name, password)),
            shown=SQL("ALTER ROLE {} PASSWORD {}").format(role, _PLACEHOLDER),
        )
        return _result(desk, ())

    return place.run(work, dry_run=dry_run)


def place_of_login(places: Sequence[DatabasePlace], name: str) -> DatabasePlace:
    """The database in which a login has a duty.

    Raises:
        UsageError: In none.
    """
    known: list[str] = []
    for place in places:
        members = place.run(lambda desk: sorted(members_of_duties(desk)), dry_run=True)
        if name in members:
            return place
        known += members
    raise UsageError(
        f"login {name!r}: it has no duty in {' or '.join(each.what for each in places)}",
        hint=f"Logins with one: {', '.join(known) or 'none'}. One of an anchor needs --anchor URL.",
    )


def _result(desk: Desk, logins: Iterable[PostgresLogin]) -> Provisioned:
    return Provisioned(
        url=str(desk.place.url),
        changes=tuple(desk.changes),
        logins=tuple(logins),
        notes=tuple(desk.notes),
    )


# Roles and logins.


_PLACEHOLDER = SQL("'<what SCRAM-SHA-256 makes of the password>'")


def _make_roles(desk: Desk) -> None:
    """A role for each duty, that is a member of nothing."""
    names = [desk.place.role(duty) for duty in desk.place.layout.grants]
    _require_modest(desk, names, log_in=False)
    there = {name for (name,) in desk.rows(_ROLES, names)}
    for name in names:
        if name not in there:
            desk.change(f"make the role {name}", SQL("CREATE ROLE {}").format(Identifier(name)))
    for member, role, grantor in desk.rows(_MEMBERSHIPS, names):
        _revoke_role(desk, role, member, grantor)


_ROLES = "SELECT rolname::text FROM pg_roles WHERE rolname::text = ANY(%s)"
_MEMBERSHIPS = (
    "SELECT m.rolname::text, r.rolname::text, g.rolname::text FROM pg_auth_members a"
    " JOIN pg_roles m ON m.oid = a.member JOIN pg_roles r ON r.oid = a.roleid"
    " JOIN pg_roles g ON g.oid = a.grantor WHERE m.rolname::text = ANY(%s) ORDER BY 1, 2, 3"
)


def _revoke_role(desk: Desk, role: str, member: str, grantor: str) -> None:
    statement = SQL("REVOKE {} FROM {} GRANTED BY {} CASCADE").format(
        *map(Identifier, (role, member, grantor))
    )
    desk.change(f"{member} is no longer a member of {role}", statement)


def _require_modest(desk: Desk, names: Collection[str], *, log_in: bool = True) -> None:
    """Raise an error for roles with rights that no role of a store may have.

    Raises:
        ConfigError: A role has such a right.
    """
    if desk.only_looks:
        return
    for name, more, mended in immodest_roles(desk, names, log_in=log_in):
        raise ConfigError(
            f"{desk.place.what}: the role {name!r} is there, with {', '.join(more)}, which no "
            "role of it may have",
            hint=f"Choose another login, or take that away in psql: {mended}",
        )


def _require_login_name(name: str) -> None:
    if _LOGIN.fullmatch(name) is None:
        raise NameInvalid(
            "login: expected 1 to 48 of a-z, 0-9, dot, underscore and hyphen, beginning with a "
            f"letter, found {name[:_NAME_CHARS_MAX]!r}",
            hint="Choose a name such as worker_1 or billing.",
        )


def _make_login(
    desk: Desk, login: PostgresLogin, new: NewPassword | None, *, dry_run: bool
) -> None:
    """A role that can log in, and is a member of its duty's."""
    name, role = login.name, Identifier(login.name)
    group = desk.place.role(login.duty)
    _require_modest(desk, [name])
    found = desk.rows("SELECT rolcanlogin, rolinherit FROM pg_roles WHERE rolname::text = %s", name)
    if not found:
        make = SQL("CREATE ROLE {} LOGIN").format(role)
        if new is None:
            desk.change(f"make the login {name}, which has no password", make)
        else:
            # Its file is on the disk before the server knows it.
            password = "-" if dry_run else new.make()
            desk.change(
                f"make the login {name}",
                make + SQL(" PASSWORD ") + _verifier(desk, name, password),
                shown=make + SQL(" PASSWORD ") + _PLACEHOLDER,
            )
    else:
        if new is not None:
            new.require(name)
        if found != [(True, True)]:
            desk.change(f"let {name} log in", SQL("ALTER ROLE {} LOGIN INHERIT").format(role))
    if not desk.rows(_IS_MEMBER, name, group):
        desk.change(
            f"{name} is a member of {group}", SQL("GRANT {} TO {}").format(Identifier(group), role)
        )


_IS_MEMBER = (
    "SELECT 1 FROM pg_roles m, pg_roles r WHERE m.rolname::text = %s AND r.rolname::text = %s"
    " AND pg_has_role(m.oid, r.oid, 'USAGE')"
)


def _verifier(desk: Desk, name: str, password: str) -> Literal:
    """The SCRAM verifier of a password: the server never sees the password itself."""
    made = desk.connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    )
    return Literal(made.decode())


def members_of_duties(desk: Desk) -> dict[str, set[Duty]]:
    """The members of each duty, without the administrator, who has borrowed one."""
    duties = {desk.place.role(duty): duty for duty in desk.place.layout.grants}
    found = defaultdict[str, set[Duty]](set)
    for member, role in desk.rows(
        "SELECT m.rolname::text, r.rolname::text FROM pg_auth_members a"
        " JOIN pg_roles m ON m.oid = a.member JOIN pg_roles r ON r.oid = a.roleid"
        " WHERE r.rolname::text = ANY(%s) AND (m.rolname <> current_user OR %s)"
        " AND (m.rolsuper OR pg_has_role(m.oid, r.oid, 'USAGE'))",
        [*duties],
        desk.only_looks,
    ):
        found[member].add(duties[role])
    return dict(found)


def _settle_logins(desk: Desk, asked: PostgresLogin | None) -> list[PostgresLogin]:
    """Reconcile each login with its expected duty, in order, and revoke all other memberships."""
    members = members_of_duties(desk)
    _require_modest(desk, members)
    kept = kept_logins(desk)
    if asked is not None:
        kept[asked.name] = asked
    logins = []
    for name, duties in sorted(members.items()):
        login = kept.get(name)
        if login is None or login.duty not in duties:
            # The duty with the fewest rights: nothing tells which one was intended.
            least = max(duties, key=[*desk.place.layout.grants].index)
            login = PostgresLogin(name=name, duty=least)
            if desk.place.layout.of_threads and least is not Duty.OWNER:
                desk.notes.append(
                    f"the login {name} has no policy, and so sees no thread: sealpoint provision "
                    f"postgres --store {desk.place.url} --login {name} --duty {least}"
                )
                login = PostgresLogin(name=name, duty=least, namespaces=())
        logins.append(login)
    _require_tags(logins)
    _mend_memberships(desk, {each.name: desk.place.role(each.duty) for each in logins})
    return logins


def _require_tags(logins: Iterable[PostgresLogin]) -> None:
    """Refuse namespaces that row security could not keep apart.

    Raises:
        UsageError: Two of them have one tag.
    """
    names = {name for login in logins for name in login.namespaces or ()}
    tags: dict[bytes, str] = {}
    for name in sorted(names):
        other = tags.setdefault(namespace_tag(name), name)
        if other != name:
            raise UsageError(
                f"namespaces {other!r} and {name!r}: the ids of their threads begin with the same "
                f"{NAMESPACE_TAG_BYTES} bytes, and row security could not keep them apart",
                hint="Rename one of them; two names share their beginning once in four thousand "
                "million pairs.",
            )


def _mend_memberships(desk: Desk, duties: Mapping[str, str]) -> None:
    """Revoke memberships that give logins rights beyond their duty."""
    ours = {desk.place.role(duty) for duty in desk.place.layout.grants}
    bad = {
        (member, direct)
        for member, direct, reached, more in desk.rows(_REACHED, [*duties])
        if more or (reached in ours and (direct, reached) != (duties[member],) * 2)
    }
    for member, role, grantor in desk.rows(_MEMBERSHIPS, [*duties]):
        if (member, role) in bad:
            _revoke_role(desk, role, member, grantor)
    for member, role in desk.rows(_PASSED_ON, [*duties], [*ours]):
        statement = SQL("REVOKE ADMIN OPTION FOR {} FROM {} CASCADE")
        desk.change(
            f"{member} no longer makes others members of {role}",
            statement.format(Identifier(role), Identifier(member)),
        )


# The direct memberships of each login, the roles that they lead to, and whether those have more
# rights than any role of a store may have.
_REACHED = (
    "WITH RECURSIVE reached (member, direct, role) AS ("
    " SELECT a.member, a.roleid, a.roleid FROM pg_auth_members a"
    " JOIN pg_roles m ON m.oid = a.member WHERE m.rolname::text = ANY(%s)"
    " UNION SELECT r.member, r.direct, a.roleid FROM reached r"
    " JOIN pg_auth_members a ON a.member = r.role)"
    " SELECT m.rolname::text, d.rolname::text, r.rolname::text, r.rolsuper OR r.rolbypassrls"
    " OR r.rolcreaterole OR r.rolreplication OR r.rolname::text LIKE 'pg\\_%%'"
    " FROM reached JOIN pg_roles m ON m.oid = reached.member"
    " JOIN pg_roles d ON d.oid = reached.direct JOIN pg_roles r ON r.oid = reached.role"
)
_PASSED_ON = (
    "SELECT m.rolname::text, r.rolname::text FROM pg_auth_members a"
    " JOIN pg_roles m ON m.oid = a.member JOIN pg_roles r ON r.oid = a.roleid"
    " WHERE a.admin_option AND m.rolname::text = ANY(%s) AND r.rolname::text = ANY(%s)"
)


# Limits that stop one login from using the resources of all.


_SHARES = {Duty.READER: 8, Duty.APPROVER: 8, Duty.ANCHOR_READER: 8}
"""The share of the server's connections for a login of each duty; half for any other."""
_SHARE = 2
_CONNECTIONS_MIN = 4
_SETTINGS = {"idle_in_transaction_session_timeout": "1min"}
"""The setting that ends a session with an abandoned open transaction."""


def _mend_settings(desk: Desk, logins: Iterable[PostgresLogin]) -> None:
    """Set a missing connection limit on each login, and reset its own settings."""
    duties = {each.name: each.duty for each in logins}
    for name, limit, most in desk.rows(_LIMITS, [*duties]):
        share = max(_CONNECTIONS_MIN, most // _SHARES.get(duties[name], _SHARE))
        if limit < 0:
            desk.change(
                f"{name} has at most {share} connections at a time",
                SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(Identifier(name), Literal(share)),
            )
    given: dict[str, set[str]] = {name: set() for name in duties}
    for name, database, setting, value in desk.rows(_OWN_SETTINGS, [*duties]):
        if database is None and _SETTINGS.get(setting) == value:
            given[name].add(setting)
            continue
        within = SQL(" IN DATABASE {}").format(Identifier(database)) if database else SQL("")
        statement = SQL("ALTER ROLE {}{} RESET {}").format(
            Identifier(name), within, _named(setting)
        )
        desk.change(f"{name} no longer has a setting of its own: {setting}", statement)
    for name, has in given.items():
        for setting, value in _SETTINGS.items():
            if setting not in has:
                desk.change(
                    f"{name} has the setting {setting}",
                    SQL("ALTER ROLE {} SET {} = {}").format(
                        Identifier(name), Identifier(setting), Literal(value)
                    ),
                )


def _named(setting: str) -> Identifier:
    return Identifier(*setting.split("."))


_LIMITS = (
    "SELECT rolname::text, rolconnlimit, current_setting('max_connections')::int FROM pg_roles"
    " WHERE rolname::text = ANY(%s) ORDER BY 1"
)
_OWN_SETTINGS = (
    "SELECT r.rolname::text, d.datname::text, split_part(s.given, '=', 1),"
    " substr(s.given, strpos(s.given, '=') + 1) FROM pg_db_role_setting c"
    " JOIN pg_roles r ON r.oid = c.setrole LEFT JOIN pg_database d ON d.oid = c.setdatabase,"
    " unnest(c.setconfig) AS s (given) WHERE r.rolname::text = ANY(%s) ORDER BY 1, 2, 3"
)


def _mend_large_objects(desk: Desk) -> None:
    """Forbid large objects, which no grant and no policy limits: a login could fill the disk."""
    found = [name for (name,) in desk.rows(_MAKES_OBJECTS)]
    if not found:
        return
    statement = SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(SQL(", ".join(found)))
    if desk.is_superuser and not desk.rows("SELECT 1 FROM pg_largeobject_metadata LIMIT 1"):
        desk.change("nobody makes large objects in the database", statement)
        return
    why = "other programs use them" if desk.is_superuser else "a superuser can end that"
    desk.notes.append(
        f"every login can fill the disk with large objects; {why}: {desk.text(statement)};"
    )


_MAKES_OBJECTS = (
    "SELECT p.oid::regprocedure::text FROM pg_proc p"
    " WHERE p.pronamespace = 'pg_catalog'::regnamespace"
    " AND p.proname IN ('lo_creat', 'lo_create', 'lo_from_bytea')"
    " AND EXISTS (SELECT 1 FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a"
    " WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE') ORDER BY 1"
)
