# SPDX-License-Identifier: Apache-2.0
"""Options that many verbs share."""

import importlib
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from sealpoint.codec import Registry
from sealpoint.errors import ObjectNotFound, UsageError

_KEY = "sealpoint.json"


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001
    ctx.meta[_KEY] = value
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    callback=_remember,
    help="Print JSON instead of a table.",
)
"""`--json`, on every verb that reads; errors are then JSON as well."""

reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why; it is recorded.")
"""`--reason`, on every verb that decides something about a thread."""


def wants_json(ctx: click.Context) -> bool:
    """Whether the verb that ran was asked for JSON."""
    return bool(ctx.meta.get(_KEY, False))


# ---------------------------------------------------------------------- times
# Times as people write them on the command line: a day, an instant, or a span from now.


_SPAN = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2}))?"
)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def ago(text: str, now: datetime, option: str) -> datetime:
    """A time with a zone, a day in UTC, or how long ago.

    Raises:
        UsageError: It is none of these.
    """
    return _moment(text, now, option, past=True)


def ahead(text: str, now: datetime, option: str) -> datetime:
    """A time with a zone, a day in UTC, or how long from now.

    Raises:
        UsageError: It is none of these.
    """
    return _moment(text, now, option, past=False)


def _moment(text: str, now: datetime, option: str, *, past: bool) -> datetime:
    found = None
    with suppress(OverflowError, ValueError):  # no such day, or before there were any
        if span := _SPAN.fullmatch(text):
            time = timedelta(**{_UNITS[span[2]]: int(span[1])})
            found = now - time if past else now + time
        elif _MOMENT.fullmatch(text):
            found = datetime.fromisoformat(text)
    if found is None:
        kind = "an age" if past else "a span"
        raise UsageError(
            f"{option}: expected a day, a time with a zone or {kind}, found {text!r}",
            hint="Write 2026-01-31, 2026-01-31T09:30:00Z, or 30d (s, m, h, d or w).",
        )
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


# ---------------------------------------------------------------------- import
# Objects that the person at the command line names: MODULE:OBJECT.
#
# The one place in the package that imports by name. The name comes from the command line of the
# person who runs it, who could as well start Python; it never comes from stored data.


def import_object(reference: str) -> Any:
    """Import MODULE and return its OBJECT, looking in the current directory first.

    Raises:
        ObjectNotFound: There is no such module or object, or the module fails to import.
    """
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise ObjectNotFound(f"object: expected MODULE:OBJECT, found {reference!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as exc:
        message = (
            f"module {module_name!r}: expected it to import, found {type(exc).__name__}: {exc}"
        )
        raise ObjectNotFound(message) from exc
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as exc:
            message = f"object {reference!r}: expected it to exist, found no {name!r}"
            raise ObjectNotFound(message) from exc
    return found


def import_registry(reference: str) -> Registry:
    """Import the registry of an application.

    Raises:
        ObjectNotFound: There is no such object, or it is no registry.
    """
    found = import_object(reference)
    if not isinstance(found, Registry):
        message = f"--registry: expected a sealpoint.Registry, found {type(found).__name__}"
        raise ObjectNotFound(message)
    return found
