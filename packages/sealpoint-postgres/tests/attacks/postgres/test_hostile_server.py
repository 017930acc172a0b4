# SPDX-License-Identifier: Apache-2.0
"""What only a server can do to its readers: take for ever, or send what nobody can hold."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sealpoint.errors import Edited, SealpointError, StorageUnavailable
from sealpoint.storage import Record
from sealpoint_postgres import _connections as _postgres
from sealpoint_postgres._url import PostgresUrl
from sealpoint_postgres.storage import PostgresStorage
from tests.effort import in_soak
from tests.postgres_server import PostgresServer

_THREAD, _DIGEST, _LABEL = b"t" * 16, b"d" * 32, b"l" * 32
_RECORD = Record(b"header", b"seals", b"body", b"payload")
_SECONDS = 1.0
_HUGE_BYTES = 50_000_000

Call = Callable[[PostgresStorage], object]
_READS: dict[str, Call] = {
    "read": lambda storage: storage.read(_THREAD, 0),
    "scan": lambda storage: list(storage.scan(_THREAD, 0)),
    "scan back": lambda storage: list(storage.scan(_THREAD, 0, descending=True)),
    "threads": lambda storage: list(storage.heads()),
    "blob": lambda storage: storage.blob(_THREAD, _DIGEST, 100),
    "blobs": lambda storage: storage.blobs(_THREAD, [_DIGEST], 100),
    "stored blobs": lambda storage: list(storage.stored_blobs(_THREAD)),
    "blob threads": lambda storage: list(storage.blob_threads()),
    "labelled": lambda storage: storage.labelled(_LABEL),
}
_OF_TABLE = {
    "entries": ("read", "scan", "scan back", "threads"),
    "blobs": ("blob", "blobs", "stored blobs", "blob threads"),
    "labels": ("labelled",),
}


class _Hostile:
    """A store with one row in each table, and the superuser of its server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server, self.schema = server, server.new_schema()
        self.storage = self.opened(create=True)
        blobs = {_DIGEST: b"blob"}
        self.storage.append(_THREAD, 0, [_RECORD], blobs=blobs, label=_LABEL)

    def opened(self, *, create: bool = False) -> PostgresStorage:
        """The storage of a new process."""
        return PostgresStorage(
            PostgresUrl.parse(self._server.url(schema=self.schema)),
            create=create,
            password=lambda: self._server.password,
            wait_seconds_max=_SECONDS,
        )

    def run(self, script: str) -> None:
        """Execute statements in the schema."""
        with self._server.admin() as admin:
            admin.execute(f"SET search_path = {self.schema}")
            admin.execute(script.encode())

    def close(self) -> None:
        """Leave nothing behind."""
        self.storage.close()
        self._server.drop_schema(self.schema)


@pytest.fixture
def hostile(postgres: PostgresServer) -> Iterator[_Hostile]:
    """A store that is open."""
    made = _Hostile(postgres)
    yield made
    made.close()


def _at_once(calls: Sequence[Callable[[], object]]) -> list[type[SealpointError] | None]:
    """How calls end, each in a thread of its own: what most of them do is to wait."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(_ending, calls))


def _ending(call: Callable[[], object]) -> type[SealpointError] | None:
    try:
        call()
    except SealpointError as error:
        return type(error)
    return None


def test_a_view_that_sleeps_is_given_up(hostile: _Hostile) -> None:
    """Each statement has its time, whatever is in the place of a table."""
    for table in _OF_TABLE:
        hostile.run(
            f"ALTER TABLE {table} RENAME TO old_{table}; CREATE VIEW {table} AS "  # noqa: S608
            f"SELECT * FROM old_{table} WHERE pg_sleep(3600) IS NOT NULL"
        )
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(hostile.opened())) for _ in _READS]
        started = time.monotonic()
        reads = zip(_READS.values(), opened, strict=True)
        found = _at_once([partial(read, storage) for read, storage in reads])

        assert found == [StorageUnavailable] * len(_READS)
        assert time.monotonic() - started < len(_READS) * (_SECONDS + 5)


def test_a_function_that_will_not_be_cancelled_is_left_behind(
    hostile: _Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own limit can be caught there; the reader has one as well."""
    monkeypatch.setattr(_postgres, "_GRACE_SECONDS", 0.5)
    hostile.run(
        "CREATE FUNCTION stay() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
        "FOR turn IN 1 .. 8 LOOP BEGIN PERFORM pg_sleep(1); "
        "EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; RETURN true; END $$; "
        "ALTER TABLE entries RENAME TO elsewhere; "
        "CREATE VIEW entries AS SELECT * FROM elsewhere WHERE stay()"
    )
    started = time.monotonic()
    with closing(hostile.opened()) as storage:
        found = _ending(lambda: storage.read(_THREAD, 0))

    assert found is StorageUnavailable
    assert time.monotonic() - started < 6
    # Else it holds its tables, which nobody could remove before it ends by itself.
    hostile.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    )


def _peak_bytes(call: Callable[[], object]) -> int:
    """How much memory a call takes at most, beyond what the process has."""
    status = Path("/proc/self/status")

    def resident(line: str) -> int:
        (found,) = (each for each in status.read_text().splitlines() if each.startswith(line))
        return int(found.split()[1]) * 1024

    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the peak of a process cannot be measured here")
    before = resident("VmRSS:")
    call()
    return resident("VmHWM:") - before


_COLUMNS = (
    in_soak("entries.head"),
    in_soak("entries.body"),
    "entries.payload",
    in_soak("entries.thread"),
    in_soak("blobs.data"),
    in_soak("blobs.digest"),
    in_soak("blobs.thread"),
    in_soak("labels.thread"),
)


@pytest.mark.parametrize("place", _COLUMNS)
def test_a_huge_value_is_refused_and_not_brought_into_memory(hostile: _Hostile, place: str) -> None:
    """Fifty megabytes in any column stay where they are; more would only take longer."""
    table, column = place.split(".")
    hostile.run(
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey; UPDATE {table} SET {column} = "  # noqa: S608
        f"decode(repeat('ab', {_HUGE_BYTES}), 'hex')"
    )
    found: set[Any] = set()

    def read() -> None:
        with closing(hostile.opened()) as storage:
            reads = [_READS[name] for name in _OF_TABLE[table]]
            found.update(_ending(lambda: each(storage)) for each in reads)  # noqa: B023

    peak_bytes = _peak_bytes(read)

    assert found - {None}
    assert found <= {Edited, StorageUnavailable, None}
    assert peak_bytes < _HUGE_BYTES // 4


def test_many_rows_in_the_place_of_one_are_not_brought_into_memory(hostile: _Hostile) -> None:
    """Where a key is gone, one row is read, or as many as there can be."""
    for table in _OF_TABLE:
        hostile.run(
            f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey; "  # noqa: S608
            f"INSERT INTO {table} SELECT {table}.* FROM {table}, generate_series(1, 20000)"
        )
    found: dict[str, Any] = {}

    def read() -> None:
        with closing(hostile.opened()) as storage:
            found.update({name: _ending(lambda: each(storage)) for name, each in _READS.items()})  # noqa: B023

    peak_bytes = _peak_bytes(read)

    assert found.pop("labelled") is Edited
    assert found.pop("scan") is found.pop("scan back") is found.pop("stored blobs") is Edited
    assert set(found.values()) == {None}
    assert peak_bytes < 20_000_000
    assert hostile.storage.read(_THREAD, 0) == _RECORD


def _message(kind: bytes, body: bytes = b"") -> bytes:
    """A message of PostgreSQL's protocol."""
    return kind + struct.pack(">I", 4 + len(body)) + body


Change = Callable[[bytes], bytes]


class _Between:
    """Somebody between client and server, who changes what the server says after the login."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.change: Change = lambda message: message
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            suppress(OSError),
            client,
            socket.create_connection(("127.0.0.1", self._server.port)) as server,
        ):
            for each in (client, server):
                # Message by message, each would wait for an acknowledgement of the one before.
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.recv(8)
            client.sendall(b"N")  # no TLS
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
            begun, source = False, server.makefile("rb")
            while head := source.read(5):
                message = head + source.read(struct.unpack(">I", head[1:])[0] - 4)
                client.sendall(self.change(message) if begun else message)
                begun = begun or head[:1] == b"Z"

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()


_READY, _NARROW = _message(b"Z", b"I"), _message(b"D", struct.pack(">HI", 1, 0))
_COLUMN = b"x\0" + struct.pack(">IHIhih", 0, 0, 17, -1, -1, 1)
_LIES: dict[str, Change] = {
    "says nothing": lambda _: b"",
    "swallows what follows a statement": lambda each: b"" if each[:1] == b"1" else each,
    "is ready too early": lambda each: _READY + each if each[:1] == b"2" else each,
    "has no end": lambda each: each + _message(b"H", b"\0\0\0") if each[:1] == b"2" else each,
    "answers twice": lambda each: each * 2 if each[:1] == b"C" else each,
    "answers with other columns": lambda each: {
        b"T": _message(b"T", struct.pack(">H", 1) + _COLUMN),
        b"D": _NARROW,
    }.get(each[:1], each),
}


@pytest.mark.parametrize("lie", _LIES)
def test_whoever_is_between_ends_no_call_with_a_strange_error_and_none_never(
    postgres: PostgresServer, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that are dropped, repeated or made up end calls in time, with errors of ours."""
    monkeypatch.setattr(_postgres, "_GRACE_SECONDS", 0.1)
    between, schema = _Between(postgres), postgres.new_schema()
    place = postgres.url(schema=schema)
    options: dict[str, Any] = {"password": lambda: postgres.password, "wait_seconds_max": 0.3}
    PostgresStorage(PostgresUrl.parse(place), create=True, **options).close()
    moved = PostgresUrl.parse(place.replace(f":{postgres.port}/", f":{between.port}/"))
    begun = time.monotonic()
    calls: list[Call] = [
        lambda storage: storage.append(_THREAD, 0, [_RECORD], blobs={_DIGEST: b"b"}),
        *_READS.values(),
    ]
    with ExitStack() as stack:
        stack.enter_context(closing(between))
        opened = [stack.enter_context(closing(PostgresStorage(moved, **options))) for _ in calls]
        between.change = _LIES[lie]
        _at_once([partial(call, storage) for call, storage in zip(calls, opened, strict=True)])
    postgres.drop_schema(schema)

    assert time.monotonic() - begun < 30
