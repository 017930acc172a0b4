# SPDX-License-Identifier: Apache-2.0
"""What becomes of calls when a PostgreSQL server fails, refuses or goes away."""

import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sealpoint
from sealpoint.anchor import Position
from sealpoint.errors import (
    HeadMoved,
    KeyFileUnsafe,
    SealpointError,
    StorageUnavailable,
    UsageError,
)
from sealpoint.storage import Record
from sealpoint_postgres._url import PostgresUrl
from sealpoint_postgres.anchor import PostgresAnchor
from sealpoint_postgres.storage import PostgresStorage
from tests.postgres_server import PostgresServer, free_port
from tests.postgres_tls import certify, tls_front

_THREAD, _DIGEST = b"t" * 16, b"d" * 32
_SECONDS = 20.0


def _record(number: int) -> Record:
    return Record(b"header %d" % number, b"seals", b"body", b"payload")


class _Place:
    """A schema of a server, and logins of it."""

    def __init__(self, server: PostgresServer) -> None:
        self.server, self.schema = server, server.new_schema()
        self._logins: list[str] = []
        self._open: list[Any] = []

    def url(self, **changes: Any) -> PostgresUrl:
        """Where it is."""
        return PostgresUrl.parse(self.server.url(schema=self.schema, **changes))

    def storage(self, **changes: Any) -> PostgresStorage:
        """The storage of a new process."""
        given: dict[str, Any] = {
            "create": True,
            "password": lambda: self.server.password,
            "wait_seconds_max": _SECONDS,
        }
        made = PostgresStorage(changes.pop("url", self.url()), **(given | changes))
        self._open.append(made)
        return made

    def login(self, name: str, password: str) -> str:
        """Make a login that has no rights yet."""
        user = f"{name}_{self.schema}"
        self.run(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
        self._logins.append(user)
        return user

    def run(self, text: str) -> list[Any]:
        """Execute something as the superuser."""
        with self.server.admin() as admin:
            cursor = admin.execute(text.encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Leave nothing behind."""
        for each in self._open:
            each.close()
        self.server.drop_schema(self.schema)
        for user in self._logins:
            self.run(f"DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[_Place]:
    """A schema of its own on the server of all tests."""
    made = _Place(postgres)
    yield made
    made.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that tests stop and start."""
    server = PostgresServer.create()
    server.start()
    yield server
    server.remove()


# ---------------------------------------------------------------------- the server goes away


def test_a_server_that_restarts_between_calls_is_not_noticed(own_server: PostgresServer) -> None:
    """Every idle connection is lost, and the next call makes another."""
    place = _Place(own_server)
    storage = place.storage()
    storage.append(_THREAD, 0, [_record(0)], blobs={})
    own_server.stop("immediate")
    own_server.start()
    storage.append(_THREAD, 1, [_record(1)], blobs={})

    assert [seq for seq, _ in storage.scan(_THREAD, 0)] == [0, 1]
    storage.close()


def test_a_server_that_crashes_under_appends_loses_none_and_doubles_none(
    own_server: PostgresServer,
) -> None:
    """Whatever was acknowledged is there, and an outcome that nobody knew is found out."""
    place = _Place(own_server)
    storage, done = place.storage(), list[int]()
    end = threading.Event()

    def work() -> None:
        while not end.is_set():
            storage.append(_THREAD, len(done), [_record(len(done))], blobs={_DIGEST: b"blob"})
            done.append(len(done))

    worker = threading.Thread(target=work)
    worker.start()
    for _ in range(2):
        time.sleep(0.2)
        own_server.stop("immediate")
        own_server.start()
    before = len(done)
    time.sleep(0.5)
    end.set()
    worker.join(60)
    found = list(storage.scan(_THREAD, 0))

    assert before
    assert len(done) > before, "it went on"
    assert found == [(number, _record(number)) for number in done]
    storage.close()


_CALLS: dict[str, Callable[[PostgresStorage, int], object]] = {
    "append": lambda storage, turn: storage.append(_THREAD, turn + 1, [_record(1)], blobs={}),
    "put_blobs": lambda storage, turn: storage.put_blobs(_THREAD, {bytes([turn]) * 32: b"blob"}),
    "drop": lambda storage, _: storage.drop(_THREAD, 0, payloads=[0], blobs=[bytes(32)]),
    "truncate": lambda storage, _: storage.truncate(_THREAD, 0, b"header 0"),
    "read": lambda storage, _: storage.read(_THREAD, 0),
}
_TABLES = {"put_blobs": "blobs"}


@pytest.mark.parametrize("call", _CALLS)
def test_a_call_whose_connection_is_killed_is_done_again(place: _Place, call: str) -> None:
    """It waits for a lock, is killed there by the server, and ends well when the lock is gone."""
    storage = place.storage()
    storage.append(_THREAD, 0, [_record(0)], blobs={})
    table = f"{place.schema}.{_TABLES.get(call, 'entries')}"
    with place.server.admin() as admin, place.server.admin() as killer:
        with admin.transaction():
            admin.execute(f"LOCK TABLE {table}")
            worker = _Worker(lambda: _CALLS[call](storage, 0))
            for _ in range(2):
                _kill_waiting(killer)
        worker.join()

    assert worker.error is None


class _Worker(threading.Thread):
    """A call in an OS thread of its own, and what it raised."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self.found: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Call."""
        try:
            self.found = self._call()
        except BaseException as error:  # noqa: BLE001 # told where it counts
            self.error = error


def _kill_waiting(killer: psycopg.Connection[Any]) -> None:
    """Terminate whoever of ours waits for a lock."""
    end = time.monotonic() + _SECONDS
    killed: list[Any] = []
    while not killed:
        assert time.monotonic() < end, "nobody waits"
        killed = killer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'sealpoint' AND wait_event_type = 'Lock'"
        ).fetchall()
        time.sleep(0.02)


def test_an_anchor_whose_connection_is_killed_advances_once(place: _Place) -> None:
    """The second try finds the slot where the first was to bring it, or brings it there."""
    anchor = PostgresAnchor(
        place.url(), store=b"s" * 16, create=True, password=lambda: place.server.password
    )
    first, second = (
        Position(b"t" * 16, 0, 0, seq, bytes([seq]) * 32, erased=False) for seq in (0, 1)
    )
    slot = b"x" * 32
    anchor.create(slot, first)
    with place.server.admin() as admin, place.server.admin() as killer:
        with admin.transaction():
            admin.execute(f"LOCK TABLE {place.schema}.slots")
            worker = _Worker(lambda: anchor.advance(slot, first, second))
            _kill_waiting(killer)
        worker.join()

    assert (worker.error, worker.found) == (None, second)
    assert anchor.get(slot) == second
    anchor.close()


def test_an_append_that_was_committed_before_its_connection_was_lost_is_a_success(
    place: _Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second try finds its own bytes, and another's bytes are a head that moved."""
    from sealpoint_postgres._connections import Connection  # noqa: PLC0415

    storage, lost = place.storage(), list[int]()
    run = Connection.run

    def run_and_lose(self: Connection, statement: str, *values: Any) -> Any:
        found = run(self, statement, *values)
        if statement.startswith("INSERT INTO entries") and not lost:
            lost.append(1)
            place.run(f"SELECT pg_terminate_backend({self.pgconn.backend_pid})")
            run(self, "SELECT 1")
        return found

    monkeypatch.setattr(Connection, "run", run_and_lose)
    storage.append(_THREAD, 0, [_record(0)], blobs={})

    assert lost
    with pytest.raises(HeadMoved):
        storage.append(_THREAD, 0, [_record(1)], blobs={})
    assert storage.read(_THREAD, 0) == _record(0)


def test_what_the_server_asks_to_repeat_is_repeated(place: _Place) -> None:
    """Serialization failures and deadlocks are no errors of whoever meets them."""
    user = place.login("strict", "word")
    place.run(
        f"ALTER ROLE {user} SET default_transaction_isolation = 'serializable'; "
        f"ALTER ROLE {user} SET synchronous_commit = off; "
        f"CREATE SCHEMA {place.schema} AUTHORIZATION {user}; "
        f"SET search_path = {place.schema}; CREATE SEQUENCE turns; "
        f"GRANT USAGE ON SEQUENCE turns TO {user}; "
        "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF nextval('{place.schema}.turns') < 3 THEN "
        "RAISE EXCEPTION USING ERRCODE = (ARRAY['40001', '40P01'])[currval("
        f"'{place.schema}.turns')]; END IF; RETURN NEW; END $$"
    )
    storage = place.storage(url=place.url(user=user), password=lambda: "word")
    place.run(
        f"CREATE TRIGGER again BEFORE INSERT ON {place.schema}.entries "
        f"FOR EACH ROW EXECUTE FUNCTION {place.schema}.again()"
    )
    storage.append(_THREAD, 0, [_record(0)], blobs={_DIGEST: b"blob"})

    def settings(connection: Any) -> Any:
        names = "'transaction_isolation', 'synchronous_commit'"
        said = "SELECT bool_and(setting IN ('read committed', 'on')) FROM pg_settings WHERE name IN"
        return connection.run(f"{said} ({names})").rows

    assert storage.read(_THREAD, 0) == _record(0)
    assert storage._connections.run(settings) == [(True,)]


def test_a_lock_that_somebody_keeps_is_not_waited_for_for_ever(place: _Place) -> None:
    """The statement is given up, nothing is written, and the next call goes on."""
    storage = place.storage(wait_seconds_max=0.3)
    with place.server.admin() as admin, admin.transaction():
        admin.execute(f"LOCK TABLE {place.schema}.entries")
        with pytest.raises(StorageUnavailable, match="took too long") as told:
            storage.append(_THREAD, 0, [_record(0)], blobs={})

    assert "pg_stat_activity" in str(told.value)
    storage.append(_THREAD, 0, [_record(0)], blobs={})


def test_a_full_disk_is_said_at_once_and_nothing_is_half_written(place: _Place) -> None:
    """The server says so by its code, here through a trigger; the call is not repeated."""
    storage = place.storage()
    place.run(
        f"SET search_path = {place.schema}; "
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION USING ERRCODE = '53100'; END $$; "
        "CREATE TRIGGER full_disk BEFORE INSERT ON blobs "
        "FOR EACH ROW EXECUTE FUNCTION full_disk()"
    )
    started = time.monotonic()
    with pytest.raises(StorageUnavailable, match="disk of the server is full"):
        storage.append(_THREAD, 0, [_record(0)], blobs={_DIGEST: b"blob"})

    assert time.monotonic() - started < _SECONDS / 2
    assert storage.read(_THREAD, 0) is None


def test_compacting_takes_its_time_but_keeps_nobody_waiting_for_a_lock(place: _Place) -> None:
    """Tables may be large; whoever waits for one keeps everybody behind it waiting."""
    storage = place.storage(wait_seconds_max=0.3)
    storage.append(_THREAD, 0, [_record(0)], blobs={})
    place.run(
        f"SET search_path = {place.schema}; "
        "CREATE FUNCTION slow(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_sleep(0.6); RETURN $1; END $$; CREATE INDEX ON entries (slow(seq))"
    )
    storage.compact()
    with place.server.admin() as admin, admin.transaction():
        admin.execute(f"LOCK TABLE {place.schema}.entries IN ACCESS SHARE MODE")
        with pytest.raises(StorageUnavailable, match="took too long"):
            storage.compact()

    assert storage.read(_THREAD, 0) == _record(0)


# ---------------------------------------------------------------------- processes and handles


def test_both_sides_of_a_fork_go_on(place: _Place) -> None:
    """Each has connections of its own, and neither ends those of the other."""
    storage = place.storage()
    storage.append(_THREAD, 0, [_record(0)], blobs={})
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            storage.append(_THREAD, 1, [_record(1)], blobs={})
            storage.close()
            status = 0
        os._exit(status)
    _, status = os.waitpid(child, 0)

    assert status == 0
    storage.append(_THREAD, 2, [_record(2)], blobs={})
    assert len(list(storage.scan(_THREAD, 0))) == 3


def test_a_closed_handle_is_refused(place: _Place) -> None:
    """Closing twice is allowed, and anything else is not."""
    storage = place.storage()
    storage.close()
    storage.close()

    for call in _CALLS.values():
        with pytest.raises(UsageError, match="found it closed"):
            call(storage, 0)
    with pytest.raises(UsageError, match="found it closed"):
        storage.version()


# ---------------------------------------------------------------------- logins and passwords

_SECRET = "do-not-show-me"  # noqa: S105 # a password that must not be shown


def _told(call: Callable[[], object], caplog: pytest.LogCaptureFixture) -> SealpointError:
    """How a call was refused, without its password anywhere."""
    started = time.monotonic()
    with caplog.at_level(logging.DEBUG), pytest.raises(StorageUnavailable) as told:
        call()
    error = told.value
    shown = "".join(traceback.format_exception(error)) + repr(error) + caplog.text

    assert _SECRET not in shown
    assert error.hint
    assert time.monotonic() - started < _SECONDS / 2, "it fails at once"
    return error


def test_a_login_that_is_refused_says_so_at_once_and_shows_no_password(
    place: _Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong, missing and right passwords, for what is not there, each with its own hint."""
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    user = place.login("worker", _SECRET)
    there = place.url(user=user)
    wrong = _told(lambda: place.storage(url=there, password=lambda: _SECRET + "x"), caplog)
    none = _told(lambda: place.storage(url=there, password=None), caplog)
    nowhere = place.url(user=user, database="nowhere")
    absent = _told(lambda: place.storage(url=nowhere, password=lambda: _SECRET), caplog)
    closed = PostgresUrl.parse(f"postgresql://{user}@127.0.0.1:{free_port()}/postgres")
    refused = _told(lambda: place.storage(url=closed, password=lambda: _SECRET), caplog)
    without = _told(lambda: place.storage(url=there, password=lambda: _SECRET), caplog)

    assert "SEALPOINT_STORE_PASSWORD_FILE" in str(wrong.hint)
    assert "PGPASSFILE" in str(none.hint)
    assert "createdb" in str(absent.hint)
    assert "server runs" in str(refused.hint)
    assert "sealpoint provision postgres" in str(without.hint)


@pytest.mark.parametrize(
    "statement", ["REVOKE CONNECT ON DATABASE {place} FROM PUBLIC", "ALTER ROLE {user} NOLOGIN"]
)
def test_a_login_that_is_kept_out_is_told_who_lets_it_in(
    place: _Place, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    """The database is there, and nobody has to make it."""
    user = place.login("worker", _SECRET)
    place.run(f"CREATE DATABASE {place.schema}")
    place.run(statement.format(place=place.schema, user=user))
    there = place.url(user=user, database=place.schema)
    refused = _told(lambda: place.storage(url=there, password=lambda: _SECRET), caplog)
    place.run(f"DROP DATABASE {place.schema}")

    assert "sealpoint provision postgres --store 'postgresql://ADMIN@" in str(refused.hint)


def test_a_password_that_changes_is_asked_for_again(place: _Place) -> None:
    """At each new connection, so that workers go on while it is changed."""
    passwords = ["first"]
    user = place.login("worker", "first")
    place.run(f"CREATE SCHEMA {place.schema} AUTHORIZATION {user}")
    storage = place.storage(url=place.url(user=user), password=lambda: passwords[-1])
    place.run(f"ALTER ROLE {user} PASSWORD 'second'")
    passwords.append("second")
    place.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'")  # noqa: S608
    storage.append(_THREAD, 0, [_record(0)], blobs={})

    assert storage.read(_THREAD, 0) == _record(0)


@pytest.mark.parametrize("way", ["SEALPOINT_STORE_PASSWORD_FILE", "PGPASSFILE", "callable"])
def test_a_store_is_opened_with_a_password_from_each_place(
    place: _Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A file of ours, libpq's own, or a function."""
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    password, secret = place.server.password, tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text(f"*:*:*:*:{password}" if way == "PGPASSFILE" else password)
    named: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    if way == "callable":
        named["password"] = lambda: password
    else:
        monkeypatch.setenv(way, str(secret))
    sealpoint.init(str(place.url()), **named)
    with sealpoint.open_store(str(place.url()), **named) as store:
        store.thread("t").save([1])

        assert store.thread("t").load().state == [1]
    if way.startswith("SEALPOINT"):
        secret.chmod(0o644)
        with pytest.raises(KeyFileUnsafe):
            sealpoint.open_store(str(place.url()), **named)


def test_a_server_without_tls_is_refused_where_the_url_asks_for_it(place: _Place) -> None:
    """What a URL says about TLS is what libpq is told."""
    url = str(place.url())
    with pytest.raises(StorageUnavailable, match="SSL"):
        place.storage(url=PostgresUrl.parse(f"{url}&sslmode=require"))

    with closing(place.storage(url=PostgresUrl.parse(f"{url}&sslmode=disable"))) as storage:
        assert storage.read(_THREAD, 0) is None


def test_what_is_wrong_with_tls_has_a_hint_by_its_cause(
    place: _Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate for another name, and one that somebody else signed."""
    user = place.login("worker", _SECRET)
    mine = certify("db.example.org", tmp_path / "mine")
    other = certify("db.example.org", tmp_path / "other")
    with tls_front(mine, place.server.port) as port:
        there = replace(place.url(user=user), hosts=(("127.0.0.1", port),))

        def hint(signer: Path) -> str:
            ways = (("sslmode", "verify-full"), ("sslrootcert", str(signer)))
            url = replace(there, ways=ways)
            error = _told(lambda: place.storage(url=url, password=lambda: _SECRET), caplog)
            return str(error.hint)

        assert "that its certificate has" in hint(mine)
        assert "did not sign the server's certificate" in hint(other)
        assert "Name who signs" in hint(tmp_path / "none.crt")


def test_a_rule_that_keeps_a_login_out_is_not_taken_for_a_missing_database(
    own_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a server takes a login by TLS alone."""
    rules, place = own_server.data / "pg_hba.conf", _Place(own_server)
    user = place.login("worker", _SECRET)
    before = rules.read_text()
    rules.write_text(f"host all {user} all reject\n{before}")
    own_server.stop()
    own_server.start()
    refused = _told(
        lambda: place.storage(url=place.url(user=user), password=lambda: _SECRET), caplog
    )
    rules.write_text(before)
    own_server.stop()
    own_server.start()

    assert "If it wants TLS" in str(refused.hint)


def test_a_server_that_asks_for_the_password_itself_does_not_get_it(
    own_server: PostgresServer,
) -> None:
    """A password is proven and not sent, unless the URL says that a server may ask for it."""
    rules = own_server.data / "pg_hba.conf"
    rules.write_text(f"host all asked 127.0.0.1/32 password\n{rules.read_text()}")
    with own_server.admin() as server:
        server.execute("CREATE ROLE asked LOGIN SUPERUSER PASSWORD 'said in clear'")
    own_server.stop()
    own_server.start()
    url = PostgresUrl.parse(own_server.url(user="asked"))
    allowed = PostgresUrl.parse(f"{own_server.url(user='asked')}?require_auth=password")

    with pytest.raises(StorageUnavailable) as refusal:
        PostgresStorage(url, create=True, password=lambda: "said in clear")

    assert "require_auth=password" in (refusal.value.hint or "")
    PostgresStorage(allowed, create=True, password=lambda: "said in clear").close()
