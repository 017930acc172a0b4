# SPDX-License-Identifier: Apache-2.0
"""The backends by the scheme of a store's URL: `BACKENDS`, and `StoreUrl`, which names one of them.

`memory:`, `sqlite:///relative.db` (from the current directory), `sqlite:////absolute.db`,
`file:///absolute/directory`, which has no relative form, and `postgresql://USER@HOST/DATABASE`. A
row says how an address is read from a URL and written into one, whether and how the store lies on
this machine, whether anything is there, and how it is opened; nothing else knows one backend from
another. The guide "Write a backend" says what a new row takes.

Parsing is strict: what would be ignored is refused. A path is made absolute when the URL is parsed,
so that a later change of the current directory changes nothing. It is the address of a store, to
which pin and keys belong, and no link in it is followed: whoever may write above the store could
otherwise put a link to another store that is trusted here in the place of a directory, and have
that one opened instead. Where an address leads is a question of its own (`target`), and
`StoreFiles` remembers the answer.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Literal, Protocol, Self
from urllib.parse import quote, unquote_to_bytes

from sealpoint._postgres_url import PostgresUrl
from sealpoint.disk import permission_denied
from sealpoint.errors import ExtraMissing, StorageUnavailable, UrlInvalid, UsageError
from sealpoint.storage import Storage
from sealpoint.storage.file import FileStorage
from sealpoint.storage.sqlite import SqliteStorage

Password = Callable[[], str]
"""Gives a password, each time anew."""

_URL_CHARS_MAX = 8192
_FOUND_CHARS_MAX = 80
# What a path may hold besides letters, digits and -._~ without percent-encoding (RFC 3986, 3.3).
_PLAIN_CHARS = "/:@!$&'()*+,;="
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPED_SLASH = re.compile(r"%2f", re.IGNORECASE)


class OpenStorage(Protocol):
    """How a backend is opened where an address leads."""

    def __call__(
        self,
        target: str,
        url: str,
        *,
        create: bool,
        read_only: bool,
        group: int | None,
        password: Password | None,
    ) -> Storage:
        """Open it.

        Args:
            target: Where the address leads.
            url: The URL, which may say how to get there.
            create: Make the store where there is none.
            read_only: Never write.
            group: The number of a group of this machine that shares it.
            password: Gives what the login of a database asks for; None: nobody said.

        Raises:
            UsageError: A group is named, and the store does not lie on this machine.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What there is to know about the stores of one scheme."""

    scheme: str
    forms: tuple[str, ...]
    """How a URL of it is written, for messages."""
    read: Callable[[str], str]
    """The address in the whole text of a URL: the same text for the same address.

    Raises UrlInvalid. It holds no password: it is shown, and kept beside the pin.
    """
    write: Callable[[str], str]
    """The URL of an address, from which `read` gets the address again."""
    lies_as: Literal["file", "directory"] | None = None
    """How a store lies on this machine, its address being a path; None if it does not."""
    beside: tuple[str, ...] = ()
    """What the names of files end in that lie beside the file of a store and belong to it."""
    read_way: Callable[[str], str] | None = None
    """The URL with what it says about how to get there, such as who logs in; None: nothing."""
    is_vacant: Callable[[str, str, Password | None], bool] | None = None
    """Whether there is nothing where an address leads, given that, the URL and the password.

    Raises StorageUnavailable if that cannot be told: a store that cannot be reached must not look
    like one that somebody took away. None: a store ends with its process.
    """
    open: OpenStorage | None = None
    """None as `is_vacant`: such a store is made with its own keys and anchor, by `open_store`."""

    @property
    def outlives_process(self) -> bool:
        """Whether a store is there when nobody has it open: it then needs a pin and an anchor."""
        return self.open is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUrl:
    """The backend of a store and its address; equal when they are one address."""

    scheme: str
    address: str
    """As its backend reads it; for a store on this machine its path: absolute, without dots, and
    as it was given otherwise."""
    way: str = field(default="", compare=False)
    """The URL with how to get there, where there is more to say than the address."""

    def __post_init__(self) -> None:
        if self.path is not None and not self.path.is_absolute():
            raise UrlInvalid(f"store URL: expected an absolute path, found {self.address!r}")

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
        scheme, colon, _ = text.partition(":")
        if scheme not in BACKENDS or not colon:
            # The rest of an unknown URL may hold a password.
            found = f"the scheme {_shown(scheme)}" if colon else "no scheme"
            forms = _listed([form for row in BACKENDS.values() for form in row.forms])
            raise UrlInvalid(
                f"store URL: expected {_listed([*BACKENDS])}, found {found}",
                hint=f"Write {forms}.",
            )
        backend = BACKENDS[scheme]
        way = "" if backend.read_way is None else backend.read_way(text)
        return cls(scheme=scheme, address=backend.read(text), way=way)

    @property
    def backend(self) -> Backend:
        """What there is to know about stores of this scheme."""
        return BACKENDS[self.scheme]

    @property
    def path(self) -> Path | None:
        """Where the store lies on this machine; None if it does not."""
        return None if self.backend.lies_as is None else Path(self.address)

    def target(self) -> str:
        """Where the address leads now: a path with every link of its directory followed.

        Raises:
            UrlInvalid: It leads to no path that could be written down, or into memory.
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
            StorageUnavailable: That cannot be told.
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
            UsageError: It ends with its process, so there is none to open.
            SealpointError: As its storage does.
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
        """The URL of the address alone: the same for everybody who means this store."""
        return self.backend.write(self.address)

    def __str__(self) -> str:
        return self.way or self.place


def lasting_forms() -> str:
    """How the URL of a store may be written that outlives its process, for messages."""
    rows = BACKENDS.values()
    return _listed([form for row in rows if row.outlives_process for form in row.forms])


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _FOUND_CHARS_MAX else f"{text[:_FOUND_CHARS_MAX]}...")


def _read_path(text: str, *, prefix: str, what: str, relative: bool) -> str:
    """The path in a URL, absolute and without dots; links stay as they are."""
    decoded = _decoded(text, prefix.partition(":")[0], absolute_only=not relative)
    if decoded.startswith("~"):
        start = "the root or from here" if relative else "the root"
        raise UrlInvalid(
            f"store URL: expected a path from {start}, found {_shown(text)}",
            hint=f"Write the home directory out: {prefix}/home/...",
        )
    if not relative:
        # What follows the host is absolute; a slash at the end says what a directory is anyway.
        decoded = f"/{decoded.rstrip('/')}"
    if decoded.rpartition("/")[2] in {"", ".", ".."}:
        raise UrlInvalid(f"store URL: expected the path of a {what}, found {_shown(text)}")
    return str(_absolute(decoded, text))


def _write_path(address: str, *, prefix: str) -> str:
    return prefix + quote(Path(address).as_posix(), safe=_PLAIN_CHARS)


def _decoded(text: str, scheme: str, *, absolute_only: bool) -> str:
    """What follows the two slashes and no host, with its percent-encoding undone."""
    hint = None
    if absolute_only:
        hint = f"A directory is named from the root, with three slashes: {scheme}:///srv/agents"
    if not text.startswith(f"{scheme}://"):
        raise UrlInvalid(
            f"store URL: expected three slashes after {scheme}:, found {_shown(text)}", hint=hint
        )
    host, _, path = text.removeprefix(f"{scheme}://").partition("/")
    if host:
        # Without the user and the password that may stand before it.
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
    """The absolute path without dots; links stay as they are."""
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
    # The system goes up from where a link leads, and everybody else from where it lies.
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
    """Whether nothing lies at a path; for a directory, nothing in it either."""
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
    url: str,  # noqa: ARG001 # as for the others
    *,
    create: bool,
    read_only: bool,
    group: int | None,
    password: Password | None,  # noqa: ARG001
) -> Storage:
    return FileStorage(Path(target), create=create, read_only=read_only, group=group)


def _open_sqlite(
    target: str,
    url: str,  # noqa: ARG001 # as for the others
    *,
    create: bool,
    read_only: bool,
    group: int | None,
    password: Password | None,  # noqa: ARG001
) -> Storage:
    return SqliteStorage(Path(target), create=create, read_only=read_only, group=group)


def _postgres() -> ModuleType:
    """The backend, whose client is an extra."""
    try:
        from sealpoint.storage import postgres  # noqa: PLC0415 # optional
    except ModuleNotFoundError as exc:
        if str(exc.name).partition(".")[0] != "psycopg":
            raise  # an installation that is broken says so itself
        raise ExtraMissing(
            "postgresql: expected psycopg, found it missing: pip install 'sealpoint[postgres]'"
        ) from exc
    return postgres


def _open_postgres(
    target: str,  # noqa: ARG001 # the URL says it as well
    url: str,
    *,
    create: bool,
    read_only: bool,
    group: int | None,
    password: Password | None,
) -> Storage:
    if group is not None:
        raise UsageError(
            f"store {url}: a group shares a store on this machine, and this one lies elsewhere",
            hint="Leave --group out: a database has logins of its own.",
        )
    storage: Storage = _postgres().PostgresStorage(
        PostgresUrl.parse(url), create=create, read_only=read_only, password=password
    )
    return storage


def _is_vacant_postgres(_target: str, url: str, password: Password | None) -> bool:
    return bool(_postgres().is_vacant(PostgresUrl.parse(url), password))


def _read_memory(text: str) -> str:
    if text != "memory:":
        raise UrlInvalid(f"store URL: expected memory: alone, found {_shown(text)}")
    return ""


_FILE = "file://"
_SQLITE = "sqlite:///"

BACKENDS: dict[str, Backend] = {
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
        Backend(
            scheme="postgresql",
            forms=("postgresql://USER@HOST/DATABASE",),
            read=lambda text: PostgresUrl.parse(text).place,
            write=lambda address: f"postgresql://{address}",
            read_way=lambda text: str(PostgresUrl.parse(text)),
            is_vacant=_is_vacant_postgres,
            open=_open_postgres,
        ),
    )
}
