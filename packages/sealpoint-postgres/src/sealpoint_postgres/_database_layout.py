# SPDX-License-Identifier: Apache-2.0
"""A database of a store or of an anchor: its expected contents, and a transaction that changes it.

All changes of one database are one transaction, which a dry run rolls back. It waits only a few
seconds for a lock, because savers wait behind it. Every statement is recorded with its purpose. The
login that connects needs CREATEROLE, and CREATE on the database, or is a superuser; it borrows the
other rights of the owner of the tables inside the transaction.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psycopg import errors
from psycopg.sql import SQL, Composed, Identifier

from sealpoint.errors import AnchorUnavailable, SealpointError, StorageUnavailable
from sealpoint_postgres import _anchor_schema as anchor_tables
from sealpoint_postgres import _storage_schema as store_tables
from sealpoint_postgres._connections import Connection, Connections, Password
from sealpoint_postgres._duties import Duty, PostgresChange
from sealpoint_postgres._url import PostgresUrl

_T = TypeVar("_T")
_NAME_CHARS_MAX = 63
_LOCK_SECONDS = 5
# An object that did not exist when the catalog was read exists now.
_AT_ONCE = (
    errors.DuplicateObject,
    errors.DuplicateSchema,
    errors.DuplicateTable,
    errors.UniqueViolation,
)
_ADD = ("INSERT", "SELECT")
_READ = ("SELECT",)
_MOVE = ("INSERT", "SELECT", "UPDATE")
_HOLD = ("DELETE", "INSERT", "SELECT", "UPDATE")
_THREADS_TABLES = ("entries", "blobs", "labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Tables, and what each duty may do with them; the owner may do everything."""

    tables: Mapping[str, str]
    """Their columns."""
    filled: Callable[[str], str]
    """Returns the statements that fill a new schema of this name."""
    grants: Mapping[Duty, Mapping[str, tuple[str, ...]]]
    of_threads: tuple[str, ...] = ()
    """Tables whose rows belong to threads, and are kept apart by namespace."""


def _grants(privileges: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {"version": _READ, **dict.fromkeys(_THREADS_TABLES, privileges)}


STORE = Layout(
    tables=store_tables.TABLES,
    filled=lambda schema: store_tables.create_statements(schema)[-1],
    grants={
        Duty.OWNER: {},
        Duty.WRITER: _grants(_ADD),
        Duty.APPROVER: _grants(_ADD),
        Duty.READER: _grants(_READ),
    },
    of_threads=_THREADS_TABLES,
)
ANCHOR = Layout(
    tables=anchor_tables.TABLES,
    filled=lambda schema: anchor_tables.create_statements(schema)[-1],
    grants={
        Duty.OWNER: {},
        Duty.ANCHOR: {
            "anchor_version": _READ,
            "slots": _MOVE,
            "slot_secrets": _ADD,
            "runs": _HOLD,
        },
        Duty.ANCHOR_READER: dict.fromkeys(anchor_tables.TABLES, _READ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePlace:
    """A database and a schema in it, what belongs there, and the administrator's way to it."""

    url: PostgresUrl
    layout: Layout
    what: str
    unavailable: Callable[..., SealpointError]
    password: Password | None = field(repr=False)

    @classmethod
    def of_store(cls, url: PostgresUrl, password: Password | None) -> "DatabasePlace":
        """That of a store."""
        return cls(
            url=url,
            layout=STORE,
            what=f"store {url}",
            unavailable=StorageUnavailable,
            password=password,
        )

    @classmethod
    def of_anchor(cls, url: PostgresUrl, password: Password | None) -> "DatabasePlace":
        """That of a shared anchor."""
        return cls(
            url=url,
            layout=ANCHOR,
            what=f"anchor {url}",
            unavailable=AnchorUnavailable,
            password=password,
        )

    def role(self, duty: Duty) -> str:
        """The role of a duty: of this database and schema, since roles are a whole server's."""
        name = f"{self.url.database}.{self.url.schema}.{duty}"
        if len(name) <= _NAME_CHARS_MAX:
            return name
        place = hashlib.sha256(f"{self.url.database}.{self.url.schema}".encode()).hexdigest()
        return f"sealpoint.{place[:24]}.{duty}"

    def run(self, work: "Callable[[Desk], _T]", *, dry_run: bool) -> _T:
        """Do some work in one transaction.

        Raises:
            SealpointError: The database cannot be used, or not by this login.
        """
        connections = Connections(
            self.url,
            what=self.what,
            unavailable=self.unavailable,
            password=self.password,
            connections_max=1,
            purpose="anchor" if self.layout is ANCHOR else "store",
        )

        def change(connection: Connection) -> _T:
            desk = Desk(connection, self)
            try:
                with connection.driver.transaction(force_rollback=dry_run):
                    desk.begin()
                    return work(desk)
            except errors.LockNotAvailable as exc:
                raise self.unavailable(
                    f"{self.what}: nothing was changed: another session held a table for "
                    f"{_LOCK_SECONDS} seconds",
                    hint="Repeat it; pg_stat_activity shows whose transaction it is.",
                ) from exc
            except _AT_ONCE as exc:
                raise self.unavailable(
                    f"{self.what}: nothing was changed: another session is provisioning it",
                    hint="Run it again: what the other one made is left as it is.",
                ) from exc
            except errors.InsufficientPrivilege as exc:
                raise self.unavailable(
                    f"{self.what}: nothing was changed: the login {desk.admin!r} may not do this: "
                    f"{desk.doing}",
                    hint="Log in as a superuser, or as the first login that provisioned it.",
                ) from exc

        try:
            return connections.run(change)
        finally:
            connections.close()


class Desk:
    """A transaction at a database, with what was changed in it.

    A desk that only looks executes no change: it records the changes that an administrator with
    full rights would make.
    """

    def __init__(
        self, connection: Connection, place: DatabasePlace, *, only_looks: bool = False
    ) -> None:
        self.place = place
        self.only_looks = only_looks
        self.connection = connection.driver
        self.admin = ""
        self.doing = "look at roles"
        self.changes: list[PostgresChange] = []
        self.notes: list[str] = []
        self.is_superuser = only_looks
        self.rules_database = only_looks
        """Whether this login may change grants of the database for all roles."""
        self._may_create = only_looks
        self._owns_for_now = False

    def begin(self) -> None:
        """Look up the current login.

        Raises:
            SealpointError: The login may not create roles.
        """
        self.connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        self.connection.execute("SET LOCAL bytea_output = 'hex'")
        ((self.admin, self.is_superuser, roles, self._may_create, self.rules_database),) = (
            self.rows(
                "SELECT r.rolname::text, r.rolsuper, r.rolcreaterole,"
                " has_database_privilege(d.oid, 'CREATE'), pg_has_role(d.datdba, 'USAGE')"
                " FROM pg_roles r, pg_database d"
                " WHERE r.rolname = current_user AND d.datname = current_database()"
            )
        )
        if not (self.is_superuser or roles):
            statement = SQL("ALTER ROLE {} CREATEROLE").format(Identifier(self.admin))
            hint = f"Log in as a superuser, or let one execute: {self.text(statement)}"
            if self._has_duty():  # a worker is to get no more than its duty
                hint = "Log in as an administrator: this login has a duty, and makes no others."
            raise self.place.unavailable(
                f"{self.place.what}: the login {self.admin!r} may not make roles", hint=hint
            )

    def _has_duty(self) -> bool:
        duties = [self.place.role(duty) for duty in self.place.layout.grants]
        return bool(
            self.rows(
                "SELECT 1 FROM pg_roles WHERE rolname::text = ANY(%s)"
                " AND pg_has_role(oid, 'MEMBER')",
                duties,
            )
        )

    def rows(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows that a catalog query returns."""
        return self.connection.execute(statement, parameters or None).fetchall()

    def text(self, statement: Composed | SQL) -> str:
        """A statement as it is sent."""
        return statement.as_string(self.connection)

    def change(
        self, what: str, statement: Composed | SQL, *, shown: Composed | None = None
    ) -> None:
        """Execute a statement and record it; `shown` replaces the text of one with a secret."""
        self.doing = what
        if not self.only_looks:
            self.connection.execute(statement)
        text = self.text(statement if shown is None else shown)
        self.changes.append(PostgresChange(what=what, sql=text))

    def change_owned(self, what: str, statement: Composed | SQL) -> None:
        """Execute a statement that needs the rights of the owner, which are borrowed if need be."""
        owner = Identifier(self.place.role(Duty.OWNER))
        if not self.is_superuser and not self._owns_for_now:
            self._owns_for_now = True
            self.change(
                "borrow the rights of the owner", SQL("GRANT {} TO CURRENT_USER").format(owner)
            )
        self.change(what, statement)

    def end(self) -> None:
        """Give back what was borrowed."""
        if self._owns_for_now:
            owner = Identifier(self.place.role(Duty.OWNER))
            self.change(
                "give the rights of the owner back",
                SQL("REVOKE {} FROM CURRENT_USER").format(owner),
            )

    def require_create(self) -> None:
        """Raise an error if this login could not create a schema.

        Raises:
            SealpointError: It may not.
        """
        if not self._may_create:
            statement = SQL("GRANT CREATE ON DATABASE {} TO {}").format(
                Identifier(self.place.url.database), Identifier(self.admin)
            )
            raise self.place.unavailable(
                f"{self.place.what}: the login {self.admin!r} may not make a schema there",
                hint=f"Log in as a superuser, or let one execute: {self.text(statement)}",
            )
