# SPDX-License-Identifier: Apache-2.0
"""Durations as people write them: a whole number with one unit, such as `90s`, `15m` or `30d`."""

import re
from datetime import timedelta

__all__ = ["duration_text", "parse_duration"]

_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_WRITTEN = re.compile(r"([0-9]{1,9})([smhdw])")
_PRINTED = "dhms"


def parse_duration(text: str, units: str) -> timedelta | None:
    """Parse a duration in one of these units; None if the text is not one, or is too long."""
    found = _WRITTEN.fullmatch(text)
    if found is None or found[2] not in units:
        return None
    try:
        return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
    except OverflowError:
        return None


def duration_text(time: timedelta) -> str:
    """Return a duration in the largest unit up to days that makes it a whole number."""
    seconds = int(time.total_seconds())
    for unit in _PRINTED:
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return "0s"
