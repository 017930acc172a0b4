# SPDX-License-Identifier: Apache-2.0
"""Who may do what in a database: duties, logins, and what became of a database."""

from dataclasses import dataclass
from enum import StrEnum


class Duty(StrEnum):
    """What a login of a database is for."""

    OWNER = "owner"
    """Owns schema and tables: alone updates and deletes, and writes rosters and policies."""
    WRITER = "writer"
    """Adds entries to threads, and reads."""
    APPROVER = "approver"
    """Adds answers to threads, and reads; in the database, the same as a writer."""
    READER = "reader"
    """Reads."""
    ANCHOR = "anchor"
    """Moves the positions of a shared anchor, and has nothing of the store."""
    ANCHOR_READER = "anchor-reader"
    """Reads the positions of a shared anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresLogin:
    """Who logs in to a database, for which duty."""

    name: str
    duty: Duty
    namespaces: tuple[str, ...] | None = None
    """Whose threads it sees, besides the rosters; None is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresChange:
    """A statement that was executed, and what it is for."""

    what: str
    sql: str
    """Without any password, and without what proves one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """What became of a database."""

    url: str
    changes: tuple[PostgresChange, ...]
    """In their order; empty if everything was as it should be."""
    logins: tuple[PostgresLogin, ...]
    notes: tuple[str, ...] = ()
    """What is not as it should be and was left to others."""
