# SPDX-License-Identifier: Apache-2.0
"""`postgresql://` URLs: the name of a PostgreSQL database, and the way to reach it.

`postgresql://USER@HOST:PORT/DATABASE?schema=NAME`, with several hosts for a primary and its
standbys (`HOST:PORT,HOST:PORT`), or `postgresql://USER@/DATABASE?host=/run/postgresql` for a socket
of this machine. A URL has two parts: the *place* (hosts, database and schema) and the *way* (login
and TLS). Pin and keys belong to the place, so that workers with logins of their own use the same
store.

A URL cannot hold a password, because URLs are shown, logged and kept. A host other than this
machine has to prove its identity (`sslmode=verify-full`) unless the URL says otherwise. Parsing is
strict: it refuses everything that it would otherwise ignore.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self
from urllib.parse import parse_qsl, quote, unquote, urlencode

from sealpoint.errors import UrlInvalid

SCHEME = "postgresql"
SCHEMA = "sealpoint"
"""The schema of a store whose URL names none."""
ANCHOR_SCHEMA = "sealpoint_anchor"
"""The schema of an anchor whose URL names none; a store uses another schema."""

_PORT = 5432
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]")
_PORT_DIGITS = re.compile(r"[1-9][0-9]{0,4}")
_WAY = re.compile(r"[^\x00-\x1f\x7f\ufffd]{1,1024}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$-]{0,62}")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,49}")
_SOCKET = re.compile(r"/[A-Za-z0-9_./-]{1,90}")
_WAYS = ("channel_binding", "require_auth", "sslcert", "sslkey", "sslmode", "sslrootcert")
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_HINT = "Write postgresql://USER@HOST/DATABASE, or postgresql://USER@HOST:PORT/DATABASE?schema=NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresUrl:
    """A database and a schema in it, and the way to reach it."""

    hosts: tuple[tuple[str, int], ...]
    """Hosts with their ports, all of one cluster; the one that accepts writes is used."""
    database: str
    schema: str = SCHEMA
    user: str = ""
    """The login; if empty, the value of PGUSER or else the user of this process."""
    ways: tuple[tuple[str, str], ...] = ()
    """The TLS parameters for libpq."""

    @classmethod
    def parse(cls, text: str, *, schema: str = SCHEMA) -> Self:
        """Read a URL; `schema` is that of one that names none.

        Raises:
            UrlInvalid: The text is not such a URL, or holds a password. The message does not repeat
                it.
        """
        rest = text.removeprefix(f"{SCHEME}://")
        before, _, query = rest.partition("?")
        login, at, where = before.rpartition("@")
        hosts, slash, database = where.partition("/")
        user, colon, _ = login.partition(":")
        if rest == text or not slash:
            raise UrlInvalid(
                "PostgreSQL URL: expected a host and a database after postgresql:", hint=_HINT
            )
        if colon:
            raise UrlInvalid(
                "PostgreSQL URL: expected no password in it",
                hint="Take it out of the URL, which is shown and kept, and put it into a file for "
                "this user alone: SEALPOINT_STORE_PASSWORD_FILE names it, for an anchor "
                "SEALPOINT_ANCHOR_PASSWORD_FILE, or PGPASSFILE does for both.",
            )
        given = _query(query)
        named = given.pop("schema", schema)
        socket = given.pop("host", None)
        made = cls(
            hosts=_hosts(hosts, socket),
            database=_named("database", unquote(database), _NAME),
            schema=_named("schema", named, _SCHEMA),
            user=_named("user", unquote(user), _NAME) if at else "",
            ways=tuple(sorted(given.items())),
        )
        if text.count("#") or (at and not user):
            raise UrlInvalid("PostgreSQL URL: expected nothing else in it", hint=_HINT)
        return made

    @property
    def place(self) -> str:
        """Hosts, database and schema: the same text for the same place."""
        return self._written([("schema", self.schema)])

    @property
    def spelled_out(self) -> str:
        """The URL with its schema, also where the URL names none."""
        return f"{SCHEME}://{self._login}{self._written([('schema', self.schema), *self.ways])}"

    @property
    def is_here(self) -> bool:
        """Whether every host is this machine."""
        return all(_is_loopback(host) for host, _ in self.hosts)

    def parameters(self) -> dict[str, str]:
        """The parameters for libpq; never a password."""
        ways = dict(self.ways)
        if not self.is_here:
            ways.setdefault("sslmode", "verify-full")
        return {
            "host": ",".join(host.strip("[]") for host, _ in self.hosts),
            "port": ",".join(str(port) for _, port in self.hosts),
            "dbname": self.database,
            **({"user": self.user} if self.user else {}),
            **ways,
        }

    def __str__(self) -> str:
        said = [] if self.schema == SCHEMA else [("schema", self.schema)]
        return f"{SCHEME}://{self._login}{self._written([*said, *self.ways])}"

    @property
    def _login(self) -> str:
        return f"{quote(self.user)}@" if self.user else ""

    def _written(self, query: list[tuple[str, str]]) -> str:
        """The text after the login; the directory of a socket is part of the query."""
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        if hosts.startswith("/"):
            query, hosts = [*query, ("host", hosts)], ""
        asked = urlencode(query, safe="/:,")
        return f"{hosts}/{quote(self.database)}{'?' if asked else ''}{asked}"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.startswith("/"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _query(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        pairs = [("", "")]
    found = dict(pairs)
    known = ("host", "schema", *_WAYS)
    plain = all(_WAY.fullmatch(value) for value in found.values())
    if len(found) < len(pairs) or not set(found) <= set(known) or not plain:
        raise UrlInvalid(
            f"PostgreSQL URL: expected nothing behind the ? but each of {', '.join(known)} once",
            hint=_HINT,
        )
    if found.get("sslmode", "disable") not in _SSL_MODES:
        raise UrlInvalid(
            f"PostgreSQL URL: expected sslmode to be one of {', '.join(_SSL_MODES)}",
            hint="Leave it out: to another machine it is verify-full.",
        )
    return found


def _hosts(text: str, socket: str | None) -> tuple[tuple[str, int], ...]:
    if socket is not None:
        path, colon, digits = socket.partition(":")
        if text or _SOCKET.fullmatch(path) is None:
            raise UrlInvalid(
                "PostgreSQL URL: expected host= to be the directory of a socket, and no other host",
                hint="Write postgresql://USER@/DATABASE?host=/run/postgresql",
            )
        return ((path, _port(digits) if colon else _PORT),)
    found = []
    for part in text.split(","):
        matched = _HOST.match(part)
        end = 0 if matched is None else matched.end()
        if matched is None or (part[end:] and part[end] != ":"):
            raise UrlInvalid("PostgreSQL URL: expected the name of a host after //", hint=_HINT)
        found.append((part[:end].lower(), _port(part[end + 1 :]) if part[end:] else _PORT))
    return tuple(found)


def _port(text: str) -> int:
    if _PORT_DIGITS.fullmatch(text) is None or int(text) >= 1 << 16:
        raise UrlInvalid("PostgreSQL URL: expected a port from 1 to 65535", hint=_HINT)
    return int(text)


def _named(what: str, text: str, form: re.Pattern[str]) -> str:
    if form.fullmatch(text) is None:
        raise UrlInvalid(
            f"PostgreSQL URL: expected the name of a {what} of plain letters, digits and _",
            hint=_HINT,
        )
    return text
