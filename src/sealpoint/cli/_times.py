# SPDX-License-Identifier: Apache-2.0
"""Times as people write them on the command line: a day, an instant, or a span from now."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sealpoint.errors import UsageError

__all__ = ["ago", "ahead"]

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
