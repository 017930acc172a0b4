# SPDX-License-Identifier: Apache-2.0
"""The differences between the newest seal of a folder and the folder as it is now.

A difference names the table or file and the row. Whether it is refused depends on its class, and
on whether the gateway may have run since the seal: then histories may have grown, and what the
gateway writes in ordinary work may differ, but nobody has seen these changes: they are unsealed.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any, TypeAlias

from sealpoint_openclaw._classes import (
    DatabaseKind,
    StateClass,
    TableRule,
    file_class,
    table_rule,
)
from sealpoint_openclaw._folder import STATE_DATABASE
from sealpoint_openclaw._inventory import Database, Inventory, NumberedRows, Table


class Change(StrEnum):
    """The change of a row, a file, a table or a database; or what was reported and is not there."""

    ADDED = "added"
    CHANGED = "changed"
    COMPLETED = "completed"
    REMOVED = "removed"
    MISSING = "missing"


class Concern(StrEnum):
    """Why a difference matters."""

    STATE = "state"
    """Set by an operator, or the same until the next start: it differs."""
    HISTORY = "history"
    """The past of a history differs."""
    UNSEALED = "unsealed"
    """The gateway may have written it since the newest seal, and nobody saw that."""
    REPORTED = "reported"
    """The gateway has written it since the newest seal, and reported it to the guard before."""


def shown_row(row: str) -> str:
    """Return the key of a row for people: its values, without the marks of JSON."""
    try:
        values, end = json.JSONDecoder().raw_decode(row)
    except ValueError:
        return row  # the key is secret, or there is none
    return ", ".join([*(str(value) for value in values), *row[end:].split()])


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Difference:
    """One difference."""

    concern: Concern
    place: str
    """The table and its database, or the file."""
    row: str | None
    """The key of the row; None for a file, a table or a database."""
    change: Change
    state_class: StateClass

    @property
    def words(self) -> str:
        """The difference in a line."""
        row = "" if self.row is None else f", row {shown_row(self.row)}"
        return f"{self.place}{row}: {self.change}"


RowName: TypeAlias = tuple[str, str]
"""A place and a row, as a difference names them."""


def row_name(table: str, path: str, group: str, number: int) -> RowName:
    """Return the name of a row of an ordered table."""
    return f"table {table} of {path}", f"{group} {number}"


def find_differences(
    sealed: Inventory,
    now: Inventory,
    *,
    may_have_run: bool,
    reported: Collection[RowName] = frozenset(),
) -> tuple[Difference, ...]:
    """Return what differs, sorted by concern.

    Args:
        sealed: The inventory of the newest seal.
        now: The inventory of the folder.
        may_have_run: Whether the gateway may have run since the seal without a guard.
        reported: Added rows that the gateway had reported to the guard.
    """
    finder = _Finder(may_have_run=may_have_run, reported=reported)
    return tuple(sorted(finder.find(sealed, now)))


def digest_of(differences: Collection[Difference], now: Inventory) -> str:
    """Return a digest that binds differences and everything that is there now."""
    digest = sha256()
    for each in differences:
        digest.update(f"{each.concern}\0{each.words}\0".encode("utf-8", "backslashreplace"))
    for path, database in sorted(now.databases.items()):
        digest.update(f"{path}\0{database.version}\0".encode() + database.schema)
        for name, table in sorted(database.tables.items()):
            digest.update(name.encode() + b"\0")
            for key, row in sorted([*table.rows.items(), *table.whole.items()]):
                digest.update(key.encode() + b"\0" + row)
            for key, group in sorted(table.groups.items()):
                digest.update(key.encode() + b"\0" + group.digests)
    for path, file in sorted(now.files.items()):
        digest.update(path.encode() + b"\0" + file)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finder:
    may_have_run: bool
    reported: Collection[RowName]

    def find(self, sealed: Inventory, now: Inventory) -> Iterator[Difference]:
        for path in sorted({*sealed.databases, *now.databases}):
            before, after = sealed.databases.get(path), now.databases.get(path)
            if before is None or after is None:
                change = Change.ADDED if before is None else Change.REMOVED
                yield self._difference(StateClass.EXACT, f"database {path}", None, change)
            else:
                yield from self._database(path, before, after)
        for path, change in _changes(sealed.files, now.files):
            place = f"file {path.replace('//', ', ')}"  # a step of Lobster
            yield self._difference(file_class(path), place, None, change)

    def _database(self, path: str, before: Database, after: Database) -> Iterator[Difference]:
        if (before.version, before.schema) != (after.version, after.schema):
            yield self._difference(StateClass.EXACT, f"tables of {path}", None, Change.CHANGED)
        kind = DatabaseKind.STATE if path == STATE_DATABASE else DatabaseKind.AGENT
        empty = Table()
        for name in sorted({*before.tables, *after.tables}):
            rule = table_rule(kind, name)
            old, new = before.tables.get(name, empty), after.tables.get(name, empty)
            yield from self._table(f"table {name} of {path}", rule, old, new)

    def _table(
        self, place: str, rule: TableRule, before: Table, after: Table
    ) -> Iterator[Difference]:
        for key in sorted(before.whole.keys() & after.whole.keys()):
            if before.rows[key] == after.rows[key] and before.whole[key] != after.whole[key]:
                yield self._difference(StateClass.RUNTIME, place, key, Change.CHANGED)
        if rule.state_class is not StateClass.APPEND:
            for key, change in _changes(before.rows, after.rows):
                yield self._difference(rule.state_class, place, key, change)
            return
        yield from self._history(place, rule, before, after)
        for name in sorted({*before.groups, *after.groups}):
            old, new = before.groups.get(name), after.groups.get(name)
            yield from self._sequence(place, rule, name, old, new)

    def _history(
        self, place: str, rule: TableRule, before: Table, after: Table
    ) -> Iterator[Difference]:
        """Compare the rows of a history that have keys in no order."""
        for key, change in _changes(before.rows, after.rows):
            completed = (
                change is Change.CHANGED
                and key in before.partial
                and before.partial[key] == after.partial.get(key)
            )
            if completed:
                change = Change.COMPLETED  # noqa: PLW2901 # the same change, said more exactly
            yield self._past(place, rule, key, change)

    def _sequence(
        self,
        place: str,
        rule: TableRule,
        group: str,
        before: NumberedRows | None,
        after: NumberedRows | None,
    ) -> Iterator[Difference]:
        """Compare the rows of a history that have numbers; equal ones cost one comparison."""
        if before is not None and after is not None:
            length = len(before.numbers)
            if after.numbers[:length] == before.numbers and after.digests.startswith(
                before.digests
            ):
                before, after = None, after.since(length)
        for number, change in _changes(_by_number(before), _by_number(after)):
            yield self._past(place, rule, f"{group} {number}", change)

    def _past(self, place: str, rule: TableRule, key: str, change: Change) -> Difference:
        """Return a difference of a history: what was added or ended is not its past.

        But a decision that nobody saw is: OpenClaw cancels what is open when it dies.
        """
        grown = change is Change.ADDED or (change is Change.COMPLETED and not rule.decides)
        expired = change is Change.REMOVED and rule.expires
        unsealed = self.may_have_run and (grown or expired)
        concern = Concern.UNSEALED if unsealed else Concern.HISTORY
        if unsealed and change is Change.ADDED and (place, key) in self.reported:
            concern = Concern.REPORTED
        return Difference(
            concern=concern,
            place=place,
            row=key,
            change=change,
            state_class=StateClass.APPEND,
        )

    def _difference(
        self, state_class: StateClass, place: str, row: str | None, change: Change
    ) -> Difference:
        unsealed = self.may_have_run and state_class is not StateClass.EXACT
        return Difference(
            concern=Concern.UNSEALED if unsealed else Concern.STATE,
            place=place,
            row=row,
            change=change,
            state_class=state_class,
        )


def _by_number(rows: NumberedRows | None) -> dict[int, bytes]:
    """Return the digest of each number; a second row with one changes it."""
    found: dict[int, bytes] = {}
    for number, digest in () if rows is None else rows.items():
        found[number] = found.get(number, b"") + digest
    return found


def _changes(
    before: Mapping[Any, bytes], after: Mapping[Any, bytes]
) -> Iterator[tuple[Any, Change]]:
    """Yield each key whose digest differs, and how."""
    if before == after:
        return
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old != new:
            yield (
                key,
                (
                    Change.ADDED
                    if old is None
                    else Change.REMOVED
                    if new is None
                    else Change.CHANGED
                ),
            )
