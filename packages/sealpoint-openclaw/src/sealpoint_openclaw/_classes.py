# SPDX-License-Identifier: Apache-2.0
"""What each table and file of OpenClaw is to the guard, as classes.toml says.

The table is data of this distribution, so it is read without suspicion, and a fault in it is an
error at import. A database or table that it does not name is unknown; nothing is left out.
"""

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


class StateClass(StrEnum):
    """How strictly a table or file is compared."""

    EXACT = "exact"
    """An operator decides it: it is a leaf of the world."""
    APPEND = "append"
    """A history: rows are added, and its past does not change."""
    RUNTIME = "runtime"
    """Written in ordinary work: the same from a stop to the next start."""
    IGNORED = "ignored"
    """Not compared."""


class DatabaseKind(StrEnum):
    """The databases of OpenClaw: one for the gateway, and one for each agent."""

    STATE = "state"
    AGENT = "agent"


class TableRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts of a table that count."""

    state_class: StateClass
    known: bool = True
    skips: frozenset[str] = frozenset()
    """Columns that are runtime."""
    free: frozenset[str] = frozenset()
    """Columns that are not compared."""
    quiet: frozenset[str] = frozenset()
    """Paths in JSON columns that are runtime."""
    completes: frozenset[str] = frozenset()
    """Columns that are filled in once."""
    decides: bool = False
    """Whether these columns are a decision of a person."""
    expires: bool = False
    """Whether OpenClaw removes the oldest rows."""
    ordered: bool = False
    """Whether the last key column is a number that rises within the others."""
    hidden: bool = False
    """Whether the key of a row is a secret."""
    world: str = "other"
    """The class of the world that its rows belong to, if they are exact."""
    label: str = ""
    """The name of a row for people, if it has one."""
    shows: tuple[str, ...] = ()
    """Columns, or paths in JSON columns, that a world shows."""


_UNKNOWN = TableRule(state_class=StateClass.RUNTIME, known=False)


def table_rule(kind: DatabaseKind, table: str) -> TableRule:
    """Return what counts in a table; an unknown one is compared as runtime."""
    return _tables()[kind].get(table, _UNKNOWN)


def is_known_version(kind: DatabaseKind, version: int) -> bool:
    """Whether the classes were made for a version of the schema."""
    first, last = _document()["versions"][kind]
    return bool(first <= version <= last)


def file_class(path: str) -> StateClass:
    """Return the class of a file, by its path with slashes."""
    for state_class, pattern in _file_patterns():
        if pattern.fullmatch(path):
            return state_class
    return StateClass.RUNTIME


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("classes.toml").read_text("utf-8"))


@cache
def _tables() -> Mapping[DatabaseKind, Mapping[str, TableRule]]:
    return {
        kind: {
            name: msgspec.convert({"state_class": state_class, **settings}, TableRule)
            for state_class, tables in _document()[kind].items()
            for name, settings in tables.items()
        }
        for kind in DatabaseKind
    }


@cache
def _file_patterns() -> list[tuple[StateClass, re.Pattern[str]]]:
    return [
        (StateClass(rule["class"]), _pattern(path))
        for rule in _document()["files"]
        for path in rule["paths"]
    ]


def _pattern(path: str) -> re.Pattern[str]:
    """Compile a pattern in which `*` stops at a slash, and `**` does not."""
    parts = re.split(r"(\*\*/|\*\*|\*)", path)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts), re.DOTALL)
