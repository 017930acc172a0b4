# SPDX-License-Identifier: Apache-2.0
"""The backends by the scheme of a store's URL, and `StoreUrl`, which names a store.

`memory:`, `sqlite:///relative.db` (from the current directory), `sqlite:////absolute.db`, and
`file:///absolute/directory`, which has no relative form. Parts provide other schemes, through the
entry points `sealpoint.storages`. A `Backend` defines how to read an address from a URL and write
it into one, whether and how the store is on this machine, whether anything exists there, and how to
open it; no other code distinguishes backends. The guide "Write a backend" explains it.

Parsing is strict: it refuses anything that it would otherwise ignore. It makes a path absolute, so
that a later change of the current directory has no effect. The path is the address of a store, to
which pin and keys belong, and parsing follows no link in it. Otherwise an attacker who may write
above the store could replace a directory with a link to another store that is trusted here, and
have that one opened instead. `target` separately determines where an address leads, and
`StoreFiles` remembers the answer.
"""

import os
import re
import stat
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote_to_bytes

from sealpoint import _parts
from sealpoint.disk import permission_denied
from sealpoint.errors import StorageUnavailable, UrlInvalid, UsageError
from sealpoint.storage import Backend, Password, Storage
from sealpoint.storage.file import FileStorage
from sealpoint.storage.sqlite import SqliteStorage

_URL_CHARS_MAX = 8192
_FOUND_CHARS_MAX = 80
# The characters that a path may hold without percent-encoding, besides letters, digits and -._~
# (RFC 3986, 3.3).
_PLAIN_CHARS = "/:@!$&'()*+,;="
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_SLASH = re.compile(r"%2f", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUrl:
    """The backend of a store and its address; equal if both are equal."""

    scheme: str
    address: str
    """The address as the backend reads it. For a store on this machine it is the path: absolute,
    without dots, and otherwise as given."""
    way: str = field(default="", compare=False)
    """The URL including how to connect, if that is more than the address."""

    def __post_init__(self) -> None:
        if self.path is not None and not self.path.is_absolute():
            raise UrlInvalid(f"store URL: expected an absolute path, found {self.address!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL.

        Raises:
            UrlInvalid: It does not have one of the forms above.
        """
        found: object = text
        if not isinstance(found, str):
            raise UrlInvalid(f"store URL: expected text, found {type(found).__name__}")
        if len(text) > _URL_CHARS_MAX:
            raise UrlInvalid(
                f"store URL: expected at most {_URL_CHARS_MAX} characters, found {len(text)}"
            )
        scheme, colon, _ = text.partition(":")
        backend = _backend_of(scheme) if colon else None
        if backend is None:
            # The rest of an unknown URL may hold a password.
            found = f"the scheme {_shown(scheme)}" if colon else "no scheme"
            schemes = [*_BACKENDS, *_parts.names(_parts.STORAGES)]
            raise UrlInvalid(
                f"store URL: expected {_listed(schemes)}, found {found}",
                hint=f"Write {_listed(_forms([*_BACKENDS.values()]))}.",
            )
        way = "" if backend.read_way is None else backend.read_way(text)
        return cls(scheme=scheme, address=backend.read(text), way=way)

    @property
    def backend(self) -> Backend:
        """The backend of this scheme."""
        backend = _backend_of(self.scheme)
        if backend is None:
            raise UrlInvalid(f"store URL: expected a known scheme, found {_shown(self.scheme)}")
        return backend

    @property
    def path(self) -> Path | None:
        """The path of the store on this machine; None if it is not on this machine."""
        return None if self.backend.lies_as is None else Path(self.address)

    def target(self) -> str:
        """Return where the address leads now: a path with every link of its directory followed.

        Raises:
            UrlInvalid: It leads to a path that is not valid UTF-8, or into memory.
        """
        if not self.backend.outlives_process:
            raise UrlInvalid("store URL: this needs a store on disk, and memory: is none")
        path = self.path
        if path is None:
            return self.address
        try:
            target = os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118
            target.encode()
        except (OSError, UnicodeEncodeError) as exc:
            raise UrlInvalid(f"store {self}: its directory has a path that is not UTF-8") from exc
        return target

    def is_vacant(self, target: str, password: Password | None = None) -> bool:
        """Whether there is nothing where the address leads.

        Raises:
            StorageUnavailable: The place cannot be checked.
        """
        look = self.backend.is_vacant
        return look is None or look(target, str(self), password)

    def open(
        self,
        target: str,
        *,
        create: bool,
        read_only: bool,
        group: int | None = None,
        password: Password | None = None,
    ) -> Storage:
        """Open the store where the address leads.

        Raises:
            UsageError: The store ends with its process, so there is nothing to open.
            SealpointError: As its storage raises it.
        """
        if self.backend.open is None:
            raise UsageError(
                f"store {self}: a store in memory ends with its process and cannot be opened again"
            )
        return self.backend.open(
            target,
            str(self),
            create=create,
            read_only=read_only,
            group=group,
            password=password,
        )

    @property
    def place(self) -> str:
        """The URL of the address alone: the same for everyone who uses this store."""
        return self.backend.write(self.address)

    def __str__(self) -> str:
        return self.way or self.place


def lasting_forms() -> str:
    """List the URL forms of stores that outlive their process, for messages."""
    return _listed(_forms([row for row in _BACKENDS.values() if row.outlives_process]))


def _forms(rows: list[Backend]) -> list[str]:
    """List the URL forms of these backends, and of the ones that parts provide."""
    own = [form for row in rows for form in row.forms]
    return [*own, *(f"{scheme}://..." for scheme in _parts.names(_parts.STORAGES))]


def _backend_of(scheme: str) -> Backend | None:
    """Return the backend of a scheme: ours, or that of a part; None if there is none.

    Raises:
        ExtraMissing: The part is not installed.
    """
    own = _BACKENDS.get(scheme)
    found: Backend | None = own or _parts.load(_parts.STORAGES, scheme)
    return found


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _FOUND_CHARS_MAX else f"{text[:_FOUND_CHARS_MAX]}...")


def _read_path(text: str, *, prefix: str, what: str, relative: bool) -> str:
    """Return the path in a URL, absolute and without dots; links stay as they are."""
    decoded = _decoded(text, prefix.partition(":")[0], absolute_only=not relative)
    if decoded.startswith("~"):
        start = "the root or from here" if relative else "the root"
        raise UrlInvalid(
            f"store URL: expected a path from {start}, found {_shown(text)}",
            hint=f"Write the home directory out: {prefix}/home/...",
        )
    if not relative:
        # The path after the host is absolute; a trailing slash adds nothing for a directory.
        decoded = f"/{decoded.rstrip('/')}"
    if decoded.rpartition("/")[2] in {"", ".", ".."}:
        raise UrlInvalid(f"store URL: expected the path of a {what}, found {_shown(text)}")
    return str(_absolute(decoded, text))


def _write_path(address: str, *, prefix: str) -> str:
    return prefix + quote(Path(address).as_posix(), safe=_PLAIN_CHARS)


def _decoded(text: str, scheme: str, *, absolute_only: bool) -> str:
    """Decode the percent-encoded text after the two slashes, which must have no host."""
    hint = None
    if absolute_only:
        hint = f"A directory is named from the root, with three slashes: {scheme}:///srv/agents"
    if not text.startswith(f"{scheme}://"):
        raise UrlInvalid(
            f"store URL: expected three slashes after {scheme}:, found {_shown(text)}", hint=hint
        )
    host, _, path = text.removeprefix(f"{scheme}://").partition("/")
    if host:
        # Leave out a user name and password before the host.
        raise UrlInvalid(
            f"store URL: expected no host, found {_shown(host.rpartition('@')[2])}", hint=hint
        )
    for mark, name in (("?", "a query"), ("#", "a fragment")):
        if mark in path:
            raise UrlInvalid(
                f"store URL: expected only a path, found {name} in {_shown(text)}",
                hint=f"In the name of a file, write {mark} as {quote(mark)}.",
            )
    if _BAD_ESCAPE.search(path) or _ESCAPED_SLASH.search(path):
        raise UrlInvalid(
            "store URL: expected % and two hexadecimal digits, found a bad escape or an escaped "
            f"slash in {_shown(text)}",
            hint="In the name of a file, write % as %25; a slash is written as it is.",
        )
    try:
        decoded = unquote_to_bytes(path).decode()
    except ValueError as exc:
        raise UrlInvalid(
            f"store URL: expected UTF-8, found bytes that are not in {_shown(text)}"
        ) from exc
    if "\0" in decoded:
        raise UrlInvalid(f"store URL: expected a path, found a zero byte in {_shown(text)}")
    return decoded


def _absolute(decoded: str, text: str) -> Path:
    """Return the absolute path without dots; links stay as they are."""
    # Two leading slashes would be a second spelling of one.
    path = Path(f"/{decoded.lstrip('/')}" if decoded.startswith("/") else decoded)
    try:
        written = path.absolute()
        absolute = Path(os.path.normpath(written))
        str(absolute).encode()
    except (OSError, UnicodeEncodeError) as exc:
        raise UrlInvalid(
            "store URL: expected a directory with a path in UTF-8, found bytes that are not for "
            f"{_shown(text)}"
        ) from exc
    # The system resolves `..` from the target of a link, but other code from the link itself.
    if written != absolute and os.path.realpath(written.parent) != os.path.realpath(
        absolute.parent
    ):
        raise UrlInvalid(
            f"store URL: expected no .. after a link, found one in {_shown(text)}",
            hint="Write the path without .. in it.",
        )
    return absolute


def _is_vacant(
    target: str, url: str, _password: Password | None = None, *, is_directory: bool
) -> bool:
    """Whether there is nothing at a path; for a directory, also nothing in it."""
    try:
        found = os.lstat(target)
        if is_directory and stat.S_ISDIR(found.st_mode):
            with os.scandir(target) as entries:
                return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return True
    except PermissionError as exc:
        denied, hint = permission_denied(Path(target))
        raise StorageUnavailable(f"store {url}: {denied}", hint=hint) from exc
    except OSError as exc:
        raise StorageUnavailable(f"store {url}: it cannot be looked for: {exc.strerror}") from exc
    return False


def _open_file(
    target: str,
    url: str,  # noqa: ARG001 # same signature as the others
    *,
    create: bool,
    read_only: bool,
    group: int | None,
    password: Password | None,  # noqa: ARG001
) -> Storage:
    return FileStorage(Path(target), create=create, read_only=read_only, group=group)


def _open_sqlite(
    target: str,
    url: str,  # noqa: ARG001 # same signature as the others
    *,
    create: bool,
    read_only: bool,
    group: int | None,
    password: Password | None,  # noqa: ARG001
) -> Storage:
    return SqliteStorage(Path(target), create=create, read_only=read_only, group=group)


def _read_memory(text: str) -> str:
    if text != "memory:":
        raise UrlInvalid(f"store URL: expected memory: alone, found {_shown(text)}")
    return ""


_FILE = "file://"
_SQLITE = "sqlite:///"

_BACKENDS: dict[str, Backend] = {
    row.scheme: row
    for row in (
        Backend(scheme="memory", forms=("memory:",), read=_read_memory, write=lambda _: "memory:"),
        Backend(
            scheme="sqlite",
            forms=("sqlite:///relative.db", "sqlite:////absolute/path.db"),
            read=partial(_read_path, prefix=_SQLITE, what="file", relative=True),
            write=partial(_write_path, prefix=_SQLITE),
            lies_as="file",
            beside=("-wal", "-shm"),
            is_vacant=partial(_is_vacant, is_directory=False),
            open=_open_sqlite,
        ),
        Backend(
            scheme="file",
            forms=("file:///absolute/path",),
            read=partial(_read_path, prefix=_FILE, what="directory", relative=False),
            write=partial(_write_path, prefix=_FILE),
            lies_as="directory",
            is_vacant=partial(_is_vacant, is_directory=True),
            open=_open_file,
        ),
    )
}
