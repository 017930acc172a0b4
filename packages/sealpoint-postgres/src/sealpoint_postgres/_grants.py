# SPDX-License-Identifier: Apache-2.0
"""Tables, grants and row security of a database, adjusted to the needs of the duties.

The catalog says what is there; a statement is executed only for what differs, so that a right
database is left alone. Names are quoted by `psycopg.sql`. Expressions of policies are made of
constants and hexadecimal digits, in the form in which PostgreSQL prints them, which is also how
they are compared.

Besides the owner's policy, every policy belongs to one login: a member of a duty without a policy
sees no row and adds none. A policy holds the tags of namespaces as constants; its comment names the
namespaces, so that a later run knows the expected state. Only the owner adds to the store chain,
which puts rosters and policies of the gate in force.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg.sql import SQL, Composed, Identifier, Literal

from sealpoint.errors import ConfigError, Edited
from sealpoint.ids import NAMESPACE_TAG_BYTES, namespace_tag
from sealpoint.ledger import STORE_CHAIN
from sealpoint_postgres._database_layout import ANCHOR, STORE, Desk
from sealpoint_postgres._duties import Duty, PostgresLogin

_PUBLIC = "PUBLIC"


def require_own_schema(desk: Desk) -> None:
    """Raise an error for a store in the schema of an anchor, or an anchor in that of a store.

    Raises:
        ConfigError: The schema has tables of the other.
    """
    place = desk.place
    other, option = (ANCHOR, "anchor") if place.layout is STORE else (STORE, "store")
    tables = sorted({*other.tables} - {*place.layout.tables})
    if desk.rows(
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname::text = ANY(%s)",
        place.url.schema,
        tables,
    ):
        raise ConfigError(
            f"{place.what}: the schema {place.url.schema} has the tables of "
            f"{'an anchor' if other is ANCHOR else 'a store'}",
            hint=f"Name it with --{option} instead, or another schema: ?schema=NAME",
        )


def make_tables(desk: Desk) -> None:
    """Schema and tables, which the owner owns.

    Raises:
        ConfigError: The schema belongs to another application.
        Edited: An object that is not a table has the name of a table.
    """
    require_own_schema(desk)
    place = desk.place
    schema, owner = place.url.schema, place.role(Duty.OWNER)
    named = Identifier(schema)
    found = desk.rows(
        "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = %s", schema
    )
    if not found:
        desk.require_create()
        desk.change_owned(
            f"make the schema {schema}",
            SQL("CREATE SCHEMA {} AUTHORIZATION {}").format(named, Identifier(owner)),
        )
    elif found != [(owner,)]:
        desk.change_owned(
            f"the schema {schema} is the owner's, and no longer {found[0][0]}'s",
            SQL("ALTER SCHEMA {} OWNER TO {}").format(named, Identifier(owner)),
        )
    there = _tables(desk)
    for table, columns in place.layout.tables.items():
        if table not in there:
            statement = SQL("CREATE TABLE {} ({})").format(_of(desk, table), SQL(columns))
            desk.change_owned(f"make the table {table}", statement)
    if not there:
        desk.change_owned("say of which version the tables are", SQL(place.layout.filled(schema)))
    for table, (was, kind) in _tables(desk).items():
        if kind != "r":
            raise Edited(f"{place.what}: {table} is not a plain table")
        if was != owner:
            desk.change_owned(
                f"the table {table} is the owner's" + ("" if table not in there else _instead(was)),
                SQL("ALTER TABLE {} OWNER TO {}").format(_of(desk, table), Identifier(owner)),
            )


def has_tables(desk: Desk) -> bool:
    """Whether every table is there."""
    return len(_tables(desk)) == len(desk.place.layout.tables)


def _instead(was: str) -> str:
    return f", and no longer {was}'s"


def _of(desk: Desk, table: str) -> Identifier:
    return Identifier(desk.place.url.schema, table)


def _tables(desk: Desk) -> dict[str, tuple[str, str]]:
    """The owner and the kind of each table that is there, in order."""
    found = {
        name: (owner, kind)
        for name, owner, kind in desk.rows(
            "SELECT c.relname::text, pg_get_userbyid(c.relowner)::text, c.relkind::text"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relname::text = ANY(%s)",
            desk.place.url.schema,
            [*desk.place.layout.tables],
        )
    }
    return {name: found[name] for name in desk.place.layout.tables if name in found}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The privileges of a role on an object."""

    grantee: str
    privilege: str
    passes_on: bool


def mend_grants(desk: Desk, logins: Sequence[PostgresLogin]) -> None:
    """Reduce grants on schema, tables, columns and database to the needs of the duties."""
    place = desk.place
    schema, owner = place.url.schema, place.role(Duty.OWNER)
    held = _held(
        desk,
        "SELECT %s, nspacl, nspowner, 'n'::\"char\" FROM pg_namespace WHERE nspname = %s",
        schema,
        schema,
    )
    expected = {place.role(duty): {"USAGE"} for duty in place.layout.grants}
    expected[owner] = {"CREATE", "USAGE"}
    _mend(desk, SQL("SCHEMA {}").format(Identifier(schema)), schema, held[schema], expected)
    held = _held(
        desk,
        "SELECT c.relname::text, c.relacl, c.relowner, 'r'::\"char\" FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname::text = ANY(%s)",
        schema,
        [*place.layout.tables],
    )
    everything = {
        privilege
        for (privilege,) in desk.rows("SELECT privilege_type FROM aclexplode(acldefault('r', 10))")
    }
    for table in place.layout.tables:
        expected = {
            place.role(duty): {*grants.get(table, ())}
            for duty, grants in place.layout.grants.items()
        }
        expected[owner] = everything
        on = SQL("TABLE {}").format(_of(desk, table))
        _mend(desk, on, table, held[table], expected)
    _mend_columns(desk)
    _mend_database(desk, {each.name for each in logins})


def _held(desk: Desk, objects: str, *parameters: Any) -> dict[str, list[_Held]]:
    """The privileges of all roles on objects that a query returns with access lists and owners."""
    found = defaultdict[str, list[_Held]](list)
    for name, grantee, privilege, passes_on in desk.rows(
        f"SELECT o.name, CASE a.grantee WHEN 0 THEN '{_PUBLIC}'"  # noqa: S608 # nosec B608
        " ELSE pg_get_userbyid(a.grantee)::text END, a.privilege_type, a.is_grantable"
        f" FROM ({objects}) AS o (name, acl, owner, kind),"
        " aclexplode(coalesce(o.acl, acldefault(o.kind, o.owner))) AS a ORDER BY 1, 2, 3",
        *parameters,
    ):
        found[name].append(_Held(grantee=grantee, privilege=privilege, passes_on=passes_on))
    return found


def _mend(
    desk: Desk, on: Composed, name: str, held: Sequence[_Held], expected: Mapping[str, set[str]]
) -> None:
    """Revoke privileges beyond the expected ones, and grant the missing ones."""
    owner = desk.place.role(Duty.OWNER)
    holds = defaultdict[str, set[str]](set)
    passes_on = defaultdict[str, set[str]](set)
    for each in held:
        holds[each.grantee].add(each.privilege)
        if each.passes_on and each.grantee != owner:
            passes_on[each.grantee].add(each.privilege)
    for grantee, privileges in holds.items():
        extra = privileges - expected.get(grantee, set())
        if extra:
            desk.change_owned(
                f"{_listed(extra)} on {name} is taken from {grantee}",
                SQL("REVOKE {} ON {} FROM {} CASCADE").format(
                    SQL(_listed(extra)), on, _grantee(grantee)
                ),
            )
        if passed := passes_on[grantee] - extra:
            desk.change_owned(
                f"{grantee} no longer passes {_listed(passed)} on {name} on",
                SQL("REVOKE GRANT OPTION FOR {} ON {} FROM {} CASCADE").format(
                    SQL(_listed(passed)), on, _grantee(grantee)
                ),
            )
    for grantee, privileges in expected.items():
        if missing := privileges - holds[grantee]:
            desk.change_owned(
                f"{_listed(missing)} on {name} is given to {grantee}",
                SQL("GRANT {} ON {} TO {}").format(SQL(_listed(missing)), on, _grantee(grantee)),
            )


def _listed(privileges: Iterable[str]) -> str:
    return ", ".join(sorted(privileges))


def _grantee(name: str) -> Identifier | SQL:
    return SQL(_PUBLIC) if name == _PUBLIC else Identifier(name)


def _mend_columns(desk: Desk) -> None:
    """No column has grants of its own."""
    for table, column, grantee in desk.rows(
        "SELECT DISTINCT c.relname::text, t.attname::text, CASE a.grantee WHEN 0 THEN %s"
        " ELSE pg_get_userbyid(a.grantee)::text END FROM pg_attribute t"
        " JOIN pg_class c ON c.oid = t.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace,"
        " aclexplode(t.attacl) AS a WHERE n.nspname = %s AND c.relname::text = ANY(%s)"
        " ORDER BY 1, 2, 3",
        _PUBLIC,
        desk.place.url.schema,
        [*desk.place.layout.tables],
    ):
        desk.change_owned(
            f"what {grantee} may do with the column {column} of {table} alone is taken away",
            SQL("REVOKE ALL ({}) ON {} FROM {} CASCADE").format(
                Identifier(column), _of(desk, table), _grantee(grantee)
            ),
        )


def _mend_database(desk: Desk, logins: Collection[str]) -> None:
    """Nobody of the store creates objects in the database; every login of the store may connect."""
    name = desk.place.url.database
    on = SQL("DATABASE {}").format(Identifier(name))
    duties = [desk.place.role(duty) for duty in desk.place.layout.grants]
    found = _held(
        desk,
        "SELECT datname::text, datacl, datdba, 'd'::\"char\" FROM pg_database"
        " WHERE datname = current_database()",
    )
    holds = defaultdict[str, set[str]](set)
    for each in found[name]:
        holds[each.grantee].add(each.privilege)
    for grantee in (_PUBLIC, *duties, *logins):
        if extra := holds[grantee] & {"CREATE", "TEMPORARY"}:
            what = f"{_listed(extra)} on the database is taken from {grantee}"
            if not desk.rules_database:
                desk.notes.append(f"{what}, if its owner does so: this login may not")
                continue
            statement = SQL("REVOKE {} ON {} FROM {} CASCADE")
            desk.change(what, statement.format(SQL(_listed(extra)), on, _grantee(grantee)))
    for role in duties:
        if "CONNECT" not in holds[role] | holds[_PUBLIC]:
            desk.change(
                f"CONNECT to the database is given to {role}",
                SQL("GRANT CONNECT ON {} TO {}").format(on, Identifier(role)),
            )


# Row security.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    """A policy of a table, as the catalog has it."""

    name: str
    command: str
    """`*` for all, `r` for SELECT, `a` for INSERT."""
    roles: tuple[str, ...]
    using: str | None
    check: str | None
    comment: str | None
    permissive: bool = True


_COMMANDS = {"*": "ALL", "r": "SELECT", "a": "INSERT"}
_IS_STORE_CHAIN = f"(thread = '\\x{STORE_CHAIN.hex()}'::bytea)"
_IS_THREAD = f"(thread <> '\\x{STORE_CHAIN.hex()}'::bytea)"


def _policies(desk: Desk, logins: Iterable[PostgresLogin]) -> list[_Policy]:
    """The policies that a table of threads should have."""
    owner = desk.place.role(Duty.OWNER)
    found = [
        _Policy(name="owner", command="*", roles=(owner,), using="true", check="true", comment=None)
    ]
    for login in logins:
        if login.duty is Duty.OWNER or login.namespaces == ():
            continue
        using, check = "true", _IS_THREAD
        if login.namespaces is not None:
            tags = sorted({namespace_tag(name).hex() for name in login.namespaces})
            listed = ", ".join(f"'\\x{tag}'::bytea" for tag in tags)
            tagged = f'("substring"(thread, 1, {NAMESPACE_TAG_BYTES}) = ANY (ARRAY[{listed}]))'
            using, check = f"({tagged} OR {_IS_STORE_CHAIN})", f"({tagged} AND {_IS_THREAD})"
        reads = _Policy(
            name=f"{login.name} reads",
            command="r",
            roles=(login.name,),
            using=using,
            check=None,
            comment=_comment(login),
        )
        found.append(reads)
        if login.duty in {Duty.WRITER, Duty.APPROVER}:
            adds = replace(reads, name=f"{login.name} adds", command="a", using=None, check=check)
            found.append(adds)
    return found


def mend_policies(desk: Desk, logins: Sequence[PostgresLogin]) -> None:
    """Row security is on, for the owner as well, with the policies that should be there."""
    expected = {policy.name: policy for policy in _policies(desk, logins)}
    for table in desk.place.layout.of_threads:
        _switch_on(desk, table)
        found = _found_policies(desk, table)
        for name, policy in found.items():
            if expected.get(name) != policy:
                statement = SQL("DROP POLICY {} ON {}").format(Identifier(name), _of(desk, table))
                desk.change_owned(
                    f"the policy {name!r} on {table} is not as it should be", statement
                )
        for name, policy in expected.items():
            if found.get(name) != policy:
                _make_policy(desk, table, policy)


def _switch_on(desk: Desk, table: str) -> None:
    ((enabled, forced),) = desk.rows(
        "SELECT c.relrowsecurity, c.relforcerowsecurity FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname::text = %s",
        desk.place.url.schema,
        table,
    )
    for is_on, words in ((enabled, "ENABLE"), (forced, "FORCE")):
        if not is_on:
            desk.change_owned(
                f"{words.lower()} row security on {table}",
                SQL("ALTER TABLE {} {} ROW LEVEL SECURITY").format(_of(desk, table), SQL(words)),
            )


def _found_policies(desk: Desk, table: str) -> dict[str, _Policy]:
    rows = desk.rows(
        "SELECT p.polname::text, p.polcmd::text, ARRAY(SELECT CASE r WHEN 0 THEN %s"
        " ELSE pg_get_userbyid(r)::text END FROM unnest(p.polroles) AS r ORDER BY 1),"
        " pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid),"
        " obj_description(p.oid, 'pg_policy'), p.polpermissive FROM pg_policy p"
        " JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname::text = %s ORDER BY 1",
        _PUBLIC,
        desk.place.url.schema,
        table,
    )
    return {
        name: _Policy(
            name=name,
            command=command,
            roles=tuple(roles),
            using=using,
            check=check,
            comment=comment,
            permissive=permissive,
        )
        for name, command, roles, using, check, comment, permissive in rows
    }


def _make_policy(desk: Desk, table: str, policy: _Policy) -> None:
    name, on = Identifier(policy.name), _of(desk, table)
    statement = SQL("CREATE POLICY {} ON {} FOR {} TO {}").format(
        name, on, SQL(_COMMANDS[policy.command]), SQL(", ").join(map(Identifier, policy.roles))
    )
    if policy.using is not None:
        statement += SQL(" USING ({})").format(SQL(policy.using))
    if policy.check is not None:
        statement += SQL(" WITH CHECK ({})").format(SQL(policy.check))
    desk.change_owned(f"make the policy {policy.name!r} on {table}", statement)
    if policy.comment is not None:
        desk.change_owned(
            f"say what the policy {policy.name!r} on {table} is for",
            SQL("COMMENT ON POLICY {} ON {} IS {}").format(name, on, Literal(policy.comment)),
        )


def kept_logins(desk: Desk) -> dict[str, PostgresLogin]:
    """The logins that the comments of policies name.

    Where the comments for one login differ, only the namespaces that all of them allow count: an
    attacker who widened one comment widens nothing.
    """
    found: dict[str, PostgresLogin] = {}
    for name, comment in desk.rows(
        "SELECT pg_get_userbyid(p.polroles[1])::text, obj_description(p.oid, 'pg_policy')"
        " FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = %s AND c.relname = ANY(%s) ORDER BY c.relname, p.polname",
        desk.place.url.schema,
        [*desk.place.layout.of_threads],
    ):
        try:
            duty, namespaces = json.loads(comment or "")
            login = PostgresLogin(
                name=name,
                duty=Duty(duty),
                namespaces=None if namespaces is None else tuple(map(str, namespaces)),
            )
        except (TypeError, ValueError):
            continue  # no policy of ours; it goes
        found[name] = _narrower(desk, found.get(name, login), login)
    return found


def _narrower(desk: Desk, one: PostgresLogin, other: PostgresLogin) -> PostgresLogin:
    least = max(one.duty, other.duty, key=[*desk.place.layout.grants].index)
    if one.namespaces is None or other.namespaces is None:
        both = other.namespaces if one.namespaces is None else one.namespaces
    else:
        both = tuple(each for each in one.namespaces if each in other.namespaces)
    return PostgresLogin(name=one.name, duty=least, namespaces=both)


def _comment(login: PostgresLogin) -> str:
    return json.dumps([login.duty, login.namespaces])
