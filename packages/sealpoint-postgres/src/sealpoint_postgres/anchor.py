# SPDX-License-Identifier: Apache-2.0
"""The anchor that the machines of a fleet share: rows of a PostgreSQL database.

The anchor belongs on another server than the store, or at least behind a login that the store's
operator does not hold: anyone who may write these rows can turn the memory of the fleet back. Rows
are keyed by store and slot, so that one database serves several stores.

Guarantees:

- `create` inserts a row whose key is free; `advance` is one `UPDATE` that names the whole position
  that it replaces. Both are single statements under READ COMMITTED, and committed before they
  return. A caller that lost a connection repeats the call, and the row shows the result of the
  first attempt.
- Only the server that accepts writes answers, also to readers: a standby may lag.
- A process remembers each position that it received. If the database is put back, for example by a
  standby that takes over and lacks the newest rows, `get` never returns an older position. A store
  that lost the same entries is then `RolledBack`; a store that did not brings the anchor forward
  with its next advance.
- Only one run at a time has a thread, by a lease that the server's clock measures; see
  `_run_leases.py`.
- A row that is not a position, and tables that differ from the ones that were created, raise
  `AnchorUnavailable`; they never count as an unknown thread. Nothing larger than a position is read
  into memory.

Unlike the local file, the rows hold no authentication codes: the secret that names the slots is
stored in the same database, for machines that join, so that codes would prove nothing about the
rows.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from psycopg import errors

from sealpoint.anchor import (
    AnchorBackend,
    AnchorUrl,
    Hold,
    Holder,
    Position,
    is_behind,
    require_holder,
    require_position,
    require_rising,
    require_slot,
)
from sealpoint.errors import AnchorUnavailable, Edited, UsageError
from sealpoint.limits import RUN_LEASE_SECONDS
from sealpoint_postgres import _anchor_schema as sql
from sealpoint_postgres._connections import (
    Answer,
    Connection,
    Connections,
    Password,
    Row,
    Value,
    create_all,
)
from sealpoint_postgres._run_leases import RunLeases, Statement
from sealpoint_postgres._url import ANCHOR_SCHEMA, SCHEME, PostgresUrl

__all__ = ["ANCHOR", "PostgresAnchor"]

_T = TypeVar("_T")
_STORE_BYTES = 16
_SECRET_BYTES = 32
_SLOT_BYTES = 32
_TOLD_MAX = 65_536
_TYPES = (bytes, int, int, int, bytes, bool, int, int, int, bytes, bool)
"""Of the columns of a position."""


class PostgresAnchor:
    """Positions in a database that several machines share; see `Anchor` for the contract.

    Args:
        url: The database and the schema in it, and who logs in.
        store: The store's id, 16 bytes.
        password: Gives the password at each new connection; without it, libpq looks for one.
        create: Make schema and tables where there are none.
        read_only: Write nothing; `create`, `advance` and `hold` are refused.
        wait_seconds_max: How long a call retries, and how long one statement may take.
        connections_max: How many connections there are at most.
        lease_seconds: How long a run has its thread after its process was last heard of.

    Raises:
        AnchorUnavailable: The schema has no tables of an anchor, their version is unknown, or the
            server cannot be used.
    """

    def __init__(
        self,
        url: PostgresUrl,
        *,
        store: bytes,
        password: Password | None = None,
        create: bool = False,
        read_only: bool = False,
        wait_seconds_max: float = 30.0,
        connections_max: int = 4,
        lease_seconds: float = RUN_LEASE_SECONDS,
    ) -> None:
        if len(store) != _STORE_BYTES:
            raise UsageError(
                f"shared anchor: expected {_STORE_BYTES} bytes of store, found {len(store)}"
            )
        if create and read_only:
            raise UsageError("shared anchor: expected create or read_only, found both")
        self.url = url
        self._what = f"anchor {url}"
        self._store = store
        self._read_only = read_only
        self._told: dict[bytes, Position] = {}
        self._told_lock = threading.Lock()
        self._connections = Connections(
            url,
            what=self._what,
            unavailable=AnchorUnavailable,
            password=password,
            read_only=read_only,
            wait_seconds_max=wait_seconds_max,
            connections_max=connections_max,
            columns=sql.COLUMNS,
            purpose="anchor",
            newest=True,
        )
        self._runs = RunLeases(
            store,
            execute=self._executed_apart,
            damaged=self._damaged,
            lease_seconds=lease_seconds,
        )
        try:
            if create:
                self._run(self._create_tables)
            self._require_known()
        except BaseException:
            self.close()
            raise

    def get(self, slot: bytes) -> Position | None:
        """The position in a slot, or None if there never was one.

        Raises:
            AnchorUnavailable: The server cannot be used, or the row is not a position.
        """
        require_slot(slot)
        told = self._told.get(slot)
        found = self._run(lambda connection: self._find(connection, slot))
        return self._tell(slot, told, found)

    def create(self, slot: bytes, position: Position) -> Position:
        """Write a slot that is absent.

        Returns:
            The content of the slot now: `position`, or the earlier position, which stays.

        Raises:
            AnchorUnavailable: It cannot be written.
        """
        require_slot(slot)
        require_position(position)

        def work(connection: Connection) -> Position:
            row = (self._store, slot, *_columns(position))
            if connection.run(sql.CREATE, *row).changed == 1:
                return position
            return self._present(connection, slot)

        return self._written(slot, work)

    def advance(self, slot: bytes, expected: Position, position: Position) -> Position:
        """Replace `expected` by `position`; a slot that holds anything else stays as it is.

        Returns:
            The content of the slot now: `position` if it was written.

        Raises:
            AnchorUnavailable: It cannot be written, or the slot is absent.
        """
        require_slot(slot)
        require_position(expected)
        require_position(position)
        require_rising(expected, position)
        named = (self._store, slot, *_columns(expected), *_columns(position))

        def work(connection: Connection) -> Position:
            if connection.run(sql.ADVANCE, *named).changed == 1:
                return position
            return self._present(connection, slot, expected)

        return self._written(slot, work)

    def get_both(self, first: bytes, second: bytes) -> tuple[Position | None, Position | None]:
        """As `get` for each of two slots, in one round trip."""
        require_slot(first)
        require_slot(second)
        told = (self._told.get(first), self._told.get(second))
        rows = self._rows(sql.GET_BOTH, self._store, first, second)
        found = {row[0]: self._position(row[0] or b"", row[1:]) for row in rows}
        if len(found) < len(rows) or not found.keys() <= {first, second}:
            raise self._damaged(f"slot {first.hex()[:12]} or {second.hex()[:12]} is there twice")
        return (
            self._tell(first, told[0], found.get(first)),
            self._tell(second, told[1], found.get(second)),
        )

    def advance_and_get(
        self, slot: bytes, expected: Position, position: Position, other: bytes
    ) -> tuple[Position, Position | None]:
        """As `advance`, and after it as `get` for another slot, in one round trip."""
        require_slot(slot)
        require_slot(other)
        require_position(expected)
        require_position(position)
        require_rising(expected, position)
        named = (self._store, slot, *_columns(expected), *_columns(position))
        told = self._told.get(other)

        def work(connection: Connection) -> tuple[Position, Position | None]:
            # Two statements: the read sees a position that another process committed before this
            # advance.
            moved, looked = connection.run_together(
                [(sql.ADVANCE, named), (sql.GET, (self._store, other))], apart=True
            )
            found = position if moved.changed == 1 else self._present(connection, slot, expected)
            return found, self._one(other, looked.rows)

        self._require_writable()
        found, beside = self._run(work)
        self._note(slot, found)
        return found, self._tell(other, told, beside)

    def slots(self) -> Iterator[tuple[bytes, Position]]:
        """Every slot of the store with its position, by slot, in batches.

        Raises:
            AnchorUnavailable: Also while iterating, at a row that is not a position.
        """
        self._connections.require_open()
        return self._listed(self._batch(bytes(_SLOT_BYTES)))

    def hold(self, slot: bytes, holder: Holder, *, instead: bool = False) -> Hold | Holder:
        """Let a run have a thread, for as long as this process renews its lease.

        Returns:
            The hold, or who has it.

        Raises:
            AnchorUnavailable: The row cannot be written, or does not describe a run.
        """
        require_slot(slot)
        require_holder(holder)
        self._require_writable()
        return self._runs.hold(slot, holder, instead=instead)

    def holder(self, slot: bytes) -> Holder | None:
        """Whose run has a thread, or had it when its lease was over.

        Raises:
            AnchorUnavailable: The server cannot be used, or the row does not describe a run.
        """
        require_slot(slot)
        return self._runs.holder(slot)

    def secret(self) -> bytes | None:
        """The secret under which the slots of the store are keyed, or None if none is kept here.

        Raises:
            AnchorUnavailable: The server cannot be used, or the stored value is not a secret.
        """
        rows = self._rows(sql.KEY_OF_SLOTS, self._store)
        if not rows:
            return None
        if len(rows) == 1 and type(rows[0][0]) is bytes:
            return rows[0][0]
        raise self._damaged(f"the secret of the store's slots is not {_SECRET_BYTES} bytes")

    def keep_secret(self, secret: bytes) -> bytes:
        """Keep the secret for machines that join, unless one is kept already.

        Returns:
            The one that is kept now.

        Raises:
            AnchorUnavailable: It cannot be written.
        """
        if len(secret) != _SECRET_BYTES:
            raise UsageError(
                f"shared anchor: expected {_SECRET_BYTES} bytes of secret, found {len(secret)}"
            )
        self._require_writable()
        row = (self._store, secret)
        self._run(lambda connection: connection.run(sql.KEEP_KEY_OF_SLOTS, *row))
        kept = self.secret()
        if kept is None:
            raise self._damaged("the secret of the store's slots was written and is gone")
        return kept

    def close(self) -> None:
        """Close the connections; closing twice is allowed.

        Runs that have not ended keep their threads until their leases are over.
        """
        self._runs.close()
        self._connections.close()

    def _create_tables(self, connection: Connection) -> None:
        try:
            connection.run(sql.VERSION)
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            create_all(connection, sql.create_statements(self.url.schema))

    def _require_known(self) -> None:
        found = [row[0] for row in self._rows(sql.VERSION)]
        if found != [sql.SCHEMA_VERSION]:
            shown = ", ".join(str(each) for each in found) or "none"
            raise AnchorUnavailable(
                f"{self._what}: expected tables of version {sql.SCHEMA_VERSION}, found {shown}"
            )

    def _require_writable(self) -> None:
        self._connections.require_open()
        if self._read_only:
            raise AnchorUnavailable(
                f"{self._what}: expected to write, found it opened for reading only"
            )

    def _run(self, work: Callable[[Connection], _T]) -> _T:
        try:
            return self._connections.run(work)
        except Edited as exc:
            raise AnchorUnavailable(exc.message) from exc

    def _executed_apart(self, statements: Sequence[Statement]) -> list[Answer]:
        return self._run(lambda connection: connection.run_together(statements, apart=True))

    def _rows(self, statement: str, *values: Value) -> list[Row]:
        return self._run(lambda connection: connection.run(statement, *values).rows)

    def _tell(self, slot: bytes, told: Position | None, found: Position | None) -> Position | None:
        """The reported position of a slot: the earlier known position, if that is newer."""
        if told is not None and (found is None or is_behind(found, told)):
            return told
        self._note(slot, found)
        return found

    def _find(self, connection: Connection, slot: bytes) -> Position | None:
        return self._one(slot, connection.run(sql.GET, self._store, slot).rows)

    def _one(self, slot: bytes, rows: list[Row]) -> Position | None:
        if len(rows) > 1:
            raise self._damaged(f"slot {slot.hex()[:12]} is there twice")
        return self._position(slot, rows[0]) if rows else None

    def _present(
        self, connection: Connection, slot: bytes, expected: Position | None = None
    ) -> Position:
        """The content of a slot after a failed advance; it differs from the expected position."""
        found = self._find(connection, slot)
        if found is None:
            raise AnchorUnavailable(f"{self._what}: it has no position of this thread to advance")
        if found == expected:
            # A rule or a trigger keeps the row unchanged: a retry would repeat forever.
            raise self._damaged(f"slot {slot.hex()[:12]} was to be advanced, and stays")
        return found

    def _written(self, slot: bytes, work: Callable[[Connection], Position]) -> Position:
        self._require_writable()
        position = self._run(work)
        self._note(slot, position)
        return position

    def _note(self, slot: bytes, told: Position | None) -> None:
        """Remember the newest position that this process has received about a slot."""
        if told is None:
            return
        with self._told_lock:
            before = self._told.pop(slot, told)  # the youngest comes last
            if len(self._told) >= _TOLD_MAX:
                self._told.pop(next(iter(self._told)))
            self._told[slot] = before if is_behind(told, before) else told

    def _batch(self, behind: bytes) -> list[tuple[bytes, Position]]:
        found = []
        for slot, *columns in self._rows(sql.SLOTS, self._store, behind):
            if type(slot) is not bytes or slot <= behind:
                # With rows in another order, the batches would repeat forever.
                raise self._damaged("a slot is not 32 bytes, or not in order")
            behind = slot
            found.append((slot, self._position(slot, tuple(columns))))
        return found

    def _listed(self, batch: list[tuple[bytes, Position]]) -> Iterator[tuple[bytes, Position]]:
        while batch:
            yield from batch
            if len(batch) < sql.SLOTS_ROWS:
                return
            batch = self._batch(batch[-1][0])

    def _position(self, slot: bytes, row: Row) -> Position:
        """A row as a position; raises for an impossible row."""
        if tuple(map(type, row)) == _TYPES:
            position = Position(*row)
            try:
                require_position(position)
            except UsageError as exc:
                raise self._damaged(f"slot {slot.hex()[:12]} holds no position") from exc
            return position
        raise self._damaged(f"slot {slot.hex()[:12]} holds no position")

    def _damaged(self, what: str) -> AnchorUnavailable:
        return AnchorUnavailable(
            f"{self._what}: {what}",
            hint="Another program wrote its tables: find out who may, and bring the "
            "database back from before.",
        )


def _columns(position: Position) -> tuple[Value, ...]:
    return (
        position.thread,
        position.epoch,
        position.gen,
        position.seq,
        position.entry,
        int(position.erased),
        position.fence,
        position.pause,
        position.owner,
        position.owner_entry,
        int(position.paused),
    )


def _read(text: str) -> AnchorUrl:
    """The anchor that a URL names, in a schema of its own if the URL names no schema."""
    url = PostgresUrl.parse(text, schema=ANCHOR_SCHEMA)
    return AnchorUrl(scheme=SCHEME, place=url.place, spelled_out=url.spelled_out, text=str(url))


def _open(
    url: AnchorUrl,
    *,
    store: bytes,
    password: Password | None,
    create: bool,
    read_only: bool,
) -> PostgresAnchor:
    found = PostgresUrl.parse(url.spelled_out)
    return PostgresAnchor(found, store=store, password=password, create=create, read_only=read_only)


ANCHOR = AnchorBackend(read=_read, open=_open)
"""The value of an entry point of `sealpoint.anchors`."""
