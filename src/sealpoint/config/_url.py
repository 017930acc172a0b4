# SPDX-License-Identifier: Apache-2.0
"""Store URLs: which backend, and where.

`memory:`, `sqlite:///relative.db` (from the current directory), `sqlite:////absolute.db` and
`file:///absolute/directory`, which has no relative form. Parsing is strict: what would be ignored
is refused. The path is made absolute when the URL is parsed, so that a later change of the current
directory changes nothing. It is the address of a store, to which pin and keys belong, and no link
in it is followed: whoever may write above the store could otherwise put a link to another store
that is trusted here in the place of a directory, and have that one opened instead. Where an
address leads is a question of its own (`target`), and `StoreFiles` remembers the answer.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote, unquote_to_bytes

from sealpoint.errors import UrlInvalid

_Kind = Literal["file", "memory", "sqlite"]

_URL_CHARS_MAX = 8192
_FOUND_CHARS_MAX = 80
# What stands before the path as it is written: a path of sqlite: may be relative.
_PREFIXES: dict[_Kind, str] = {"file": "file://", "sqlite": "sqlite:///"}
# What a path may hold besides letters, digits and -._~ without percent-encoding (RFC 3986, 3.3).
_PLAIN_CHARS = "/:@!$&'()*+,;="
_RELATIVE_HINT = "A directory is named from the root, with three slashes: file:///srv/agents"
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_SLASH = re.compile(r"%2f", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUrl:
    """The backend of a store and its address; equal when they are one address."""

    kind: _Kind
    path: Path | None
    """Absolute, without dots, and as it was given otherwise; None in memory."""

    def __post_init__(self) -> None:
        if (self.kind == "memory") != (self.path is None):
            raise UrlInvalid(f"store URL: expected a path unless in memory, found {self.path!r}")
        if self.path is not None and not self.path.is_absolute():
            raise UrlInvalid(f"store URL: expected an absolute path, found {self.path!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL.

        Raises:
            UrlInvalid: It is not one of the forms above.
        """
        found: object = text
        if not isinstance(found, str):
            raise UrlInvalid(f"store URL: expected text, found {type(found).__name__}")
        if len(text) > _URL_CHARS_MAX:
            raise UrlInvalid(
                f"store URL: expected at most {_URL_CHARS_MAX} characters, found {len(text)}"
            )
        scheme, colon, rest = text.partition(":")
        if scheme == "memory" and colon:
            if rest:
                raise UrlInvalid(f"store URL: expected memory: alone, found {_shown(text)}")
            return cls(kind="memory", path=None)
        if scheme not in {"file", "sqlite"} or not colon:
            # The rest of an unknown URL may hold a password.
            found = f"the scheme {_shown(scheme)}" if colon else "no scheme"
            raise UrlInvalid(f"store URL: expected memory:, sqlite:/// or file:///, found {found}")
        kind: _Kind = "file" if scheme == "file" else "sqlite"
        return cls(kind=kind, path=_absolute(_decoded(kind, text), text))

    def target(self) -> Path:
        """Where the address leads now: its directory with every link followed, its last name kept.

        Raises:
            UrlInvalid: It leads to no path that could be written down, or into memory.
        """
        if self.path is None:
            raise UrlInvalid("store URL: expected one on disk, found one in memory")
        try:
            target = Path(os.path.realpath(self.path.parent)) / self.path.name
            str(target).encode()
        except (OSError, UnicodeEncodeError) as exc:
            raise UrlInvalid(
                f"store {self}: expected it to lead to a directory with a path in UTF-8, found none"
            ) from exc
        return target

    def __str__(self) -> str:
        if self.path is None:
            return f"{self.kind}:"
        return _PREFIXES[self.kind] + quote(self.path.as_posix(), safe=_PLAIN_CHARS)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _FOUND_CHARS_MAX else f"{text[:_FOUND_CHARS_MAX]}...")


def _decoded(kind: _Kind, text: str) -> str:
    """The path in a URL whose scheme is known, with its percent-encoding undone."""
    if not text.startswith(f"{kind}://"):
        raise UrlInvalid(
            f"store URL: expected three slashes after {kind}:, found {_shown(text)}",
            hint=_RELATIVE_HINT if kind == "file" else None,
        )
    host, _, path = text.removeprefix(f"{kind}://").partition("/")
    if host:
        # Without the user and the password that may stand before it.
        raise UrlInvalid(
            f"store URL: expected no host, found {_shown(host.rpartition('@')[2])}",
            hint=_RELATIVE_HINT if kind == "file" else None,
        )
    for mark, name in (("?", "a query"), ("#", "a fragment")):
        if mark in path:
            raise UrlInvalid(
                f"store URL: expected only a path, found {name} in {_shown(text)}",
                hint=f"In the name of a file, write {mark} as {quote(mark)}.",
            )
    if _BAD_ESCAPE.search(path) or _ESCAPED_SLASH.search(path):
        raise UrlInvalid(
            "store URL: expected % and two hexadecimal digits of a character that is no slash, "
            f"found another in {_shown(text)}",
            hint="In the name of a file, write % as %25; a slash is written as it is.",
        )
    try:
        decoded = unquote_to_bytes(path).decode()
    except ValueError as exc:
        raise UrlInvalid(f"store URL: expected UTF-8, found others in {_shown(text)}") from exc
    if "\0" in decoded:
        raise UrlInvalid(f"store URL: expected a path, found a zero byte in {_shown(text)}")
    if decoded.startswith("~"):
        start = "the root" if kind == "file" else "the root or from here"
        raise UrlInvalid(
            f"store URL: expected a path from {start}, found {_shown(text)}",
            hint=f"Write the home directory out: {_PREFIXES[kind]}/home/...",
        )
    if kind == "file":
        # What follows the host is absolute; a slash at the end says what a directory is anyway.
        decoded = f"/{decoded.rstrip('/')}"
    if decoded.rpartition("/")[2] in {"", ".", ".."}:
        what = "directory" if kind == "file" else "file"
        raise UrlInvalid(f"store URL: expected the path of a {what}, found {_shown(text)}")
    return decoded


def _absolute(decoded: str, text: str) -> Path:
    """The absolute path without dots; links stay as they are."""
    # Two leading slashes would be a second spelling of one.
    path = Path(f"/{decoded.lstrip('/')}" if decoded.startswith("/") else decoded)
    try:
        written = path.absolute()
        absolute = Path(os.path.normpath(written))
        str(absolute).encode()
    except (OSError, UnicodeEncodeError) as exc:
        raise UrlInvalid(
            f"store URL: expected a directory with a path in UTF-8, found none for {_shown(text)}"
        ) from exc
    # The system goes up from where a link leads, and everybody else from where it lies.
    if os.path.realpath(written.parent) != os.path.realpath(absolute.parent):
        raise UrlInvalid(
            f"store URL: expected no .. after a link, found one in {_shown(text)}",
            hint="Write the path without .. in it.",
        )
    return absolute
