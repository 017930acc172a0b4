# SPDX-License-Identifier: Apache-2.0
"""Strict reading of JSON and other files that people provide, and writing files for them.

This refuses anything that `json.loads` would silently change: NaN and infinities, a number too
large for a float, a duplicate key in an object.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any, NoReturn

from sealpoint.errors import UsageError
from sealpoint.limits import Limits


def parse_json(data: bytes, what: str) -> Any:
    """Read a JSON document.

    Raises:
        UsageError: It is not JSON, or its meaning is ambiguous.
    """
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
        )
    except json.JSONDecodeError as exc:
        found = f"line {exc.lineno} column {exc.colno}: {exc.msg}"
        raise _not_json(what, found) from exc
    except UnicodeDecodeError as exc:
        raise _not_json(what, f"a byte that is not UTF-8 at {exc.start}") from exc
    except ValueError as exc:
        raise _not_json(what, str(exc)) from exc
    except RecursionError as exc:
        raise _not_json(what, "lists and objects nested too deeply") from exc


def _not_json(what: str, found: str) -> UsageError:
    return UsageError(
        f"{what}: expected strict JSON in UTF-8, found {found}",
        hint="NaN, infinities and keys that an object has twice are not allowed either.",
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key {key!r} twice in one object")
        made[key] = value
    return made


def _constant(text: str) -> NoReturn:
    raise ValueError(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text}, which no float can hold")
    return value


def read_document(file: str, what: str, *, bytes_max: int = Limits().value_bytes_max) -> bytes:
    """Read a file, or standard input if it is named `-`.

    Raises:
        UsageError: It cannot be read, or is too large.
    """
    try:
        if file == "-":
            data = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(bytes_max + 1)
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{what} {file!r}: the file cannot be read: {_why(exc)}",
            hint="Check the path and who may use it, or name another file.",
        ) from exc
    if len(data) > bytes_max:
        raise UsageError(f"{what} {file!r}: it is larger than {bytes_max} bytes")
    return data


def write_document(file: str, data: bytes, what: str) -> None:
    """Write a file, replacing an existing one.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        Path(file).write_bytes(data)
    except (OSError, ValueError) as exc:
        raise UsageError(
            f"{what} {file!r}: the file cannot be written: {_why(exc)}",
            hint="Check the path and who may use it, or name another file.",
        ) from exc


def _why(exc: Exception) -> str:
    return exc.strerror if isinstance(exc, OSError) and exc.strerror else type(exc).__name__
