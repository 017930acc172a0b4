# SPDX-License-Identifier: Apache-2.0
"""The permissions in a database: duties, logins, and the result of provisioning."""

from dataclasses import dataclass
from enum import StrEnum


class Duty(StrEnum):
    """The purpose of a login of a database."""

    OWNER = "owner"
    """Owns schema and tables; no other duty updates, deletes, or writes rosters and policies."""
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
    """A login of a database, with its duty."""

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
    """The result of provisioning a database."""

    url: str
    changes: tuple[PostgresChange, ...]
    """In their order; empty if everything was as it should be."""
    logins: tuple[PostgresLogin, ...]
    notes: tuple[str, ...] = ()
    """Problems that provisioning left to others."""
