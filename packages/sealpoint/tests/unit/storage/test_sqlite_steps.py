# SPDX-License-Identifier: Apache-2.0
"""Statements end: at their bound, by a signal, or by themselves."""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType

import pytest

from sealpoint.errors import Edited
from sealpoint.limits import SQL_OPEN_STEPS_MAX, SQL_STEPS_MAX
from sealpoint.storage import Record
from sealpoint.storage import _sqlite_connections as sqlite_connections
from sealpoint.storage._sqlite_connections import BoundedConnection
from sealpoint.storage._sqlite_file import file_identity
from sealpoint.storage._sqlite_schema import Purpose
from sealpoint.storage.sqlite import SqliteStorage

_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
_THREAD = bytes(range(16))
_RECORD = Record(b"header" * 60, b"seals" * 40, b"body" * 200)


class _TimeIsUp(BaseException):
    """What an application's handler of a signal may raise."""


@pytest.fixture
def connection() -> Iterator[BoundedConnection]:
    """A connection that looks often."""
    with closing(sqlite3.connect(":memory:", factory=BoundedConnection)) as connection:
        connection.look_every(10)
        yield connection


def _counted(connection: sqlite3.Connection, path: Path) -> int:
    """How many steps it takes to open a file; the bound is lifted."""
    steps = iter(range(10**9))
    connection.set_progress_handler(lambda: next(steps) < 0, 1)
    connection.execute("SELECT 1").fetchall()
    sqlite_connections._require_version(path, connection)
    connection.executescript(sqlite_connections._READ_SETTINGS + sqlite_connections._WRITE_SETTINGS)
    sqlite_connections._require_schema(path, connection)
    return next(steps)


def test_opening_stays_far_below_its_bound(tmp_path: Path) -> None:
    """No store comes near the bound, whatever it holds."""
    path = tmp_path / "store.db"
    with closing(SqliteStorage(path, create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD] * 1000, blobs={})
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert 50 < _counted(connection, path) < SQL_OPEN_STEPS_MAX / 10


def test_the_longest_calls_stay_below_their_bound(tmp_path: Path) -> None:
    """A label of 4096 threads, and a change of many thousand rows, there and gone again."""
    label, many = bytes(32), 20_000
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        for number in range(4096):
            storage.append(number.to_bytes(16, "big"), 0, [_RECORD], blobs={}, label=label)
        storage.append(_THREAD, 0, [_RECORD] * many, blobs={})
        blobs = {number.to_bytes(32, "big"): b"blob" for number in range(many)}
        storage.put_blobs(_THREAD, blobs)
        storage.append(_THREAD, many, [_RECORD], blobs={}, needs=list(blobs))
        storage.drop(_THREAD, many, bodies=range(many), blobs=list(blobs))
        found = len(storage.labelled(label))
        heads = dict(storage.heads())
        storage.truncate(_THREAD, 1, _RECORD.header)
        storage.compact()

        assert found == 4096
        assert len(heads) == 4097
        assert heads[_THREAD] == many
        assert [seq for seq, _ in storage.scan(_THREAD, 0)] == [0]


def test_a_statement_ends_at_its_bound(connection: BoundedConnection) -> None:
    """Beyond what was allowed it is interrupted, and the connection goes on with the next."""
    for steps_max in (0, 10, 10_000):
        connection.allow(steps_max)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(_ENDLESS).fetchone()
        assert connection.is_spent()
        assert connection.interruption() is None
    connection.allow(SQL_STEPS_MAX)
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not connection.is_spent()


@pytest.mark.parametrize("raised", [KeyboardInterrupt, _TimeIsUp, ValueError])
def test_what_a_signal_raises_ends_a_statement(
    connection: BoundedConnection, raised: type[BaseException]
) -> None:
    """Whatever the handler raised is kept, and told once; then the connection goes on."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        raise raised

    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    connection.allow(10**12)
    timer.start()
    try:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(_ENDLESS).fetchone()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)

    assert type(connection.interruption()) is raised
    assert connection.interruption() is None
    assert not connection.is_spent()
    connection.allow(SQL_STEPS_MAX)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_ctrl_c_ends_a_call_of_the_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller of a store gets the interrupt itself, and no error of ours."""
    with closing(SqliteStorage(tmp_path / "store.db", create=True)) as storage:
        storage.append(_THREAD, 0, [_RECORD], blobs={})
        reader = storage._connections._handles.reader
        assert reader is not None
        reader.set_authorizer(None)
        monkeypatch.setattr(reader, "allow", lambda _: BoundedConnection.allow(reader, 10**12))
        # Where tests run in the background, the signal may be ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                storage._rows(_ENDLESS, ())
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)
            monkeypatch.undo()

        with pytest.raises(Edited, match="pages that lead in circles"):
            storage._rows(_ENDLESS, ())
        assert storage.read(_THREAD, 0) == _RECORD


@pytest.mark.parametrize("purpose", Purpose)
def test_every_connection_of_a_store_is_bounded(tmp_path: Path, purpose: Purpose) -> None:
    """Whatever it is for."""
    path = tmp_path / "store.db"
    SqliteStorage(path, create=True).close()
    opened = sqlite_connections.connect(
        path, identity=file_identity(path), purpose=purpose, wait_seconds_max=5
    )
    with closing(opened):
        opened.set_authorizer(None)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            opened.execute(_ENDLESS).fetchone()
        assert opened.is_spent()
