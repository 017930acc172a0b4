# SPDX-License-Identifier: Apache-2.0
"""With the login of one duty nobody keeps the others from their work (A11, B10)."""

import threading
import time
from contextlib import ExitStack

import psycopg
import pytest

from tests.postgres_duties import OWNER, DutyDatabase
from tests.postgres_server import PostgresServer


@pytest.fixture
def database(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> DutyDatabase:
    """A store with a thread, a worker, and a reader of another namespace."""
    made = DutyDatabase(postgres, tmp_path_factory.mktemp("duties"))
    made.initialise()
    made.login("worker", "writer")
    made.login("reader", "reader", "payroll")
    with made.open("worker") as store:
        store.thread("t").save({"n": 1})
    return made


def test_a_reader_that_sits_on_a_table_stops_no_save(database: DutyDatabase) -> None:
    """While the owner waits for the table, saves pass; once it is free, the owner goes on."""
    with (
        database.connect("reader") as held,
        database.open("worker") as store,
        database.open(OWNER) as owner,
    ):
        held.execute("BEGIN")
        held.execute("SELECT count(*) FROM sealpoint.entries")
        compacting = threading.Thread(target=owner._checkpoints.core.storage.compact)
        compacting.start()
        took = []
        for number in range(8):
            began = time.monotonic()
            store.thread("t").save({"n": number})
            took.append(time.monotonic() - began)
            time.sleep(0.1)
        waits = compacting.is_alive()
        held.execute("ROLLBACK")
        compacting.join(timeout=20)

    assert waits
    assert max(took) < 5  # it was 28 s; a lock is waited for a tenth of a second
    assert not compacting.is_alive()


def test_a_login_has_a_bound_on_its_connections(database: DutyDatabase) -> None:
    """A reader takes what is a reader's; a worker that starts meanwhile is let in."""
    with ExitStack() as opened:

        def take_all() -> None:
            for _ in range(40):
                opened.enter_context(database.connect("reader"))

        with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
            take_all()
        store = opened.enter_context(database.open("worker"))
        assert store.thread("t").load().state == {"n": 1}


def test_settings_of_a_login_stop_none_of_its_workers(database: DutyDatabase) -> None:
    """A thief of the login may set what it likes for later sessions; provisioning ends that."""
    with database.connect("worker") as thief:
        for setting in ("row_security = off", "lock_timeout = 1", "statement_timeout = 1"):
            thief.execute(f"ALTER ROLE CURRENT_USER SET {setting}")

    with database.open("worker") as store:
        store.thread("t").save({"n": 2})
        assert store.thread("t").load().state == {"n": 2}
    named = [change.what for found in database.provision() for change in found.changes]
    assert sum("a setting of its own" in each for each in named) == 3
    assert not [change for found in database.provision() for change in found.changes]


@pytest.mark.parametrize("name", ["worker", "reader"])
@pytest.mark.parametrize(
    "made", ["lo_from_bytea(0, 'x')", "lo_create(0)", "lo_creat(-1)", "lo_import('/etc/passwd')"]
)
def test_nobody_fills_the_disk_with_large_objects(
    database: DutyDatabase, name: str, made: str
) -> None:
    """No table and no policy bounds them, so nobody makes any."""
    with (
        database.connect(name) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(f"SELECT {made}")
