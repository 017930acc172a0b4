# SPDX-License-Identifier: Apache-2.0
"""The shared anchor on a real server: hostile rows, lost connections, a database put back."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest

from sealpoint.anchor import RESERVED_SEQ, Hold, Holder, Position
from sealpoint.errors import AnchorUnavailable, UsageError
from sealpoint_postgres._url import ANCHOR_SCHEMA, PostgresUrl
from sealpoint_postgres.anchor import PostgresAnchor
from tests.postgres_server import PostgresServer

_STORE = b"s" * 16
_SLOT = b"\x01" * 32
_OTHER = b"\x02" * 32
_SINCE = datetime(2026, 5, 4, 3, 2, 1, 987_654, tzinfo=UTC)
_FIRST = Holder("first", _SINCE)
_SECOND = Holder("second", _SINCE)
_LEASE_S = 0.8
_WAIT_S = 20.0


def _at(seq: int, *, thread: bytes = b"t" * 16) -> Position:
    return Position(thread, 0, 0, seq, bytes([seq % 256]) * 32)


class _Place:
    """A schema of its own, and the ways into it."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.schema = server.new_schema()
        self._opened: list[PostgresAnchor] = []

    def open(self, store: bytes = _STORE, **options: object) -> PostgresAnchor:
        options = {"create": not options.get("read_only", False), **options}
        url = PostgresUrl.parse(self.server.url(schema=self.schema))
        anchor = PostgresAnchor(
            url,
            store=store,
            password=lambda: self.server.password,
            wait_seconds_max=10.0,
            **options,  # type: ignore[arg-type]
        )
        self._opened.append(anchor)
        return anchor

    def sql(self, statement: str, *parameters: object) -> None:
        with self.server.admin() as connection:
            connection.execute(f"SET search_path = {self.schema}".encode())
            connection.execute(statement.encode(), parameters)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        with self.server.admin() as connection:
            connection.execute(f"SET search_path = {self.schema}".encode())
            return connection.execute(statement.encode()).fetchall()

    def close(self) -> None:
        for anchor in self._opened:
            anchor.close()
        self.server.drop_schema(self.schema)


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[_Place]:
    """A schema that goes when the test ends."""
    made = _Place(postgres)
    yield made
    made.close()


def test_url_of_an_anchor_has_a_schema_of_its_own() -> None:
    """An anchor whose URL names no schema lies in another one than a store does."""
    url = PostgresUrl.parse("postgresql://a@db/agents", schema=ANCHOR_SCHEMA)

    assert url.schema == "sealpoint_anchor"
    assert str(url) == "postgresql://a@db:5432/agents?schema=sealpoint_anchor"


def test_stores_do_not_see_each_other(place: _Place) -> None:
    """One database serves several stores, each with its own slots and its own secret."""
    first, second = place.open(), place.open(store=b"u" * 16)
    first.create(_SLOT, _at(3))
    first.keep_secret(b"k" * 32)

    assert second.get(_SLOT) is None
    assert list(second.slots()) == []
    assert second.secret() is None


def test_first_secret_is_kept(place: _Place) -> None:
    """Of two machines that bring a secret along, both are told the first one."""
    first, second = place.open(), place.open()

    assert first.secret() is None
    assert first.keep_secret(b"a" * 32) == b"a" * 32
    assert second.keep_secret(b"b" * 32) == b"a" * 32
    with pytest.raises(UsageError):
        first.keep_secret(b"short")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE slots SET thread = 'short'",
        "UPDATE slots SET entry = decode(repeat('00', 33), 'hex')",
        "UPDATE slots SET epoch = -1",
        "UPDATE slots SET gen = 4294967296",
        "UPDATE slots SET seq = -2",
        "UPDATE slots SET fence = -2",
        "UPDATE slots SET pause = 4",
        "UPDATE slots SET owner = 4",
        "UPDATE slots SET owner_entry = 'short'",
        "ALTER TABLE slots ALTER entry DROP NOT NULL; UPDATE slots SET entry = NULL",
        "ALTER TABLE slots ALTER owner DROP NOT NULL; UPDATE slots SET owner = NULL",
        "ALTER TABLE slots ALTER paused TYPE integer USING 0",
        "ALTER TABLE slots DROP COLUMN pause",
        "ALTER TABLE slots ALTER seq TYPE text USING 'one'",
        "ALTER TABLE slots ALTER erased TYPE integer USING 0",
        "ALTER TABLE slots ALTER thread TYPE text USING 'x'",
        "ALTER TABLE slots DROP CONSTRAINT slots_pkey; INSERT INTO slots SELECT * FROM slots",
        "ALTER TABLE slots DROP COLUMN entry",
        "DROP TABLE slots",
    ],
)
def test_rows_that_are_no_positions_are_never_an_unknown_thread(
    place: _Place, statement: str
) -> None:
    """Whatever lies in the table instead of a position, every call says so and nothing is told."""
    anchor = place.open()
    anchor.create(_SLOT, _at(3))
    for each in statement.split("; "):
        place.sql(each)

    calls: tuple[Callable[[], object], ...] = (
        lambda: anchor.get(_SLOT),
        lambda: anchor.create(_SLOT, _at(9)),
        lambda: anchor.advance(_SLOT, _at(4), _at(9)),
        lambda: anchor.get_both(_OTHER, _SLOT),
        lambda: anchor.advance_and_get(_SLOT, _at(4), _at(9), _OTHER),
        lambda: list(anchor.slots()),
    )
    for call in calls:
        with pytest.raises(AnchorUnavailable):
            call()


def test_slots_of_another_size_are_refused(place: _Place) -> None:
    """A key that is no slot ends the list with an error, and is not passed over."""
    anchor = place.open()
    anchor.create(_SLOT, _at(3))
    place.sql(
        "INSERT INTO slots SELECT store, slot || 'x', thread, 0, 0, 1, entry, erased, -1, -1, -1, "
        "owner_entry, paused FROM slots"
    )

    with pytest.raises(AnchorUnavailable):
        list(anchor.slots())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE slot_secrets SET secret = 'short'",
        "ALTER TABLE slot_secrets ALTER secret TYPE text USING repeat('x', 32)",
    ],
)
def test_secret_that_is_none_is_refused(place: _Place, statement: str) -> None:
    """What cannot be a secret is not taken for a missing one."""
    anchor = place.open()
    anchor.keep_secret(b"k" * 32)
    place.sql(statement)

    with pytest.raises(AnchorUnavailable):
        anchor.secret()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE anchor_version SET number = 1",
        "UPDATE anchor_version SET number = 3",
        "DELETE FROM anchor_version",
    ],
)
def test_tables_of_an_unknown_version_are_refused(place: _Place, statement: str) -> None:
    """An anchor of another version, or of none, is not opened."""
    place.open()
    place.sql(statement)

    with pytest.raises(AnchorUnavailable):
        place.open(create=False)


def test_missing_tables_are_not_an_empty_anchor(place: _Place) -> None:
    """Without leave to make them, tables that are not there are an error with a way on."""
    with pytest.raises(AnchorUnavailable) as caught:
        place.open(create=False)

    assert "sealpoint provision postgres --anchor 'postgresql://" in str(caught.value)


def test_what_a_process_was_told_counts_when_the_database_is_put_back(place: _Place) -> None:
    """A process is never told less than before, and an advance is told what is really there."""
    anchor = place.open()
    anchor.create(_SLOT, _at(RESERVED_SEQ))
    anchor.create(_OTHER, _at(1))
    anchor.advance(_SLOT, _at(RESERVED_SEQ), _at(5))
    place.sql("UPDATE slots SET seq = 4, entry = decode(repeat('04', 32), 'hex')")
    place.sql("DELETE FROM slots WHERE slot = %s", _OTHER)

    assert anchor.get(_SLOT) == _at(5)
    assert anchor.get(_OTHER) == _at(1)
    assert place.open().get(_SLOT) == _at(4)
    assert anchor.advance(_SLOT, _at(5), _at(6)) == _at(4)
    assert anchor.get(_SLOT) == _at(5)
    assert anchor.advance(_SLOT, _at(4), _at(6)) == _at(6)
    assert anchor.get(_SLOT) == _at(6)


def test_two_slots_come_in_one_round_trip(place: _Place) -> None:
    """Both are what `get` gives, also where the database was put back or holds something else."""
    anchor = place.open()
    anchor.create(_SLOT, _at(1))
    assert anchor.get_both(_SLOT, _OTHER) == (_at(1), None)
    assert anchor.get_both(_OTHER, _SLOT) == (None, _at(1))
    anchor.create(_OTHER, _at(7))
    assert anchor.advance_and_get(_SLOT, _at(1), _at(2), _OTHER) == (_at(2), _at(7))
    assert anchor.advance_and_get(_SLOT, _at(1), _at(3), _OTHER) == (_at(2), _at(7))
    with pytest.raises(AnchorUnavailable):
        anchor.advance_and_get(b"\x03" * 32, _at(1), _at(2), _OTHER)
    place.sql("UPDATE slots SET seq = 0")

    assert anchor.get_both(_SLOT, _OTHER) == (_at(2), _at(7))
    place.sql("UPDATE slots SET seq = -7 WHERE slot = %s", _OTHER)
    with pytest.raises(AnchorUnavailable):
        anchor.get_both(_SLOT, _OTHER)
    with pytest.raises(AnchorUnavailable):
        anchor.advance_and_get(_SLOT, _at(0), _at(3), _OTHER)
    reading = place.open(read_only=True)
    with pytest.raises(AnchorUnavailable, match="reading only"):
        reading.advance_and_get(_SLOT, _at(0), _at(3), _OTHER)


def test_connection_lost_in_an_advance_changes_nothing_for_the_caller(place: _Place) -> None:
    """Connections that the server ends are made anew, and the row tells what became of a write."""
    anchor = place.open()
    anchor.create(_SLOT, _at(0))
    for seq in range(1, 6):
        place.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'sealpoint' AND pid <> pg_backend_pid()"
        )
        assert anchor.advance(_SLOT, _at(seq - 1), _at(seq)) == _at(seq)

    # As after a commit whose answer never came: the same call again is the same success.
    assert anchor.advance(_SLOT, _at(4), _at(5)) == _at(5)
    assert anchor.create(_SLOT, _at(5)) == _at(5)


def test_two_workers_that_advance_at_once_are_told_one_truth(place: _Place) -> None:
    """Of two that move a slot to different entries, one wins and the other is told so."""
    first, second = place.open(), place.open()
    first.create(_SLOT, _at(0))
    rivals = [
        (first, Position(b"t" * 16, 0, 0, 1, b"a" * 32)),
        (second, Position(b"t" * 16, 0, 0, 1, b"b" * 32)),
    ]
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda each: each[0].advance(_SLOT, _at(0), each[1]), rivals))

    assert told[0] == told[1]
    assert told[0] in {position for _, position in rivals}


def test_anchor_opened_for_reading_writes_nothing(place: _Place) -> None:
    """Reading needs no right to write, and writing is refused before the server is asked."""
    place.open().create(_SLOT, _at(3))
    anchor = place.open(read_only=True)

    assert anchor.get(_SLOT) == _at(3)
    for call in (
        lambda: anchor.create(_OTHER, _at(0)),
        lambda: anchor.advance(_SLOT, _at(3), _at(4)),
        lambda: anchor.keep_secret(b"k" * 32),
    ):
        with pytest.raises(AnchorUnavailable, match="reading only"):
            call()


def test_login_without_rights_is_told_so(place: _Place) -> None:
    """A login that may not read the slots learns nothing, and its password is in no message."""
    place.open().create(_SLOT, _at(3))
    name = f"u_{place.schema}"
    with place.server.admin() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'open-sesame'".encode())
        connection.execute(f"GRANT USAGE ON SCHEMA {place.schema} TO {name}".encode())
    url = PostgresUrl.parse(place.server.url(user=name, schema=place.schema))
    try:
        with pytest.raises(AnchorUnavailable) as refused:
            PostgresAnchor(url, store=_STORE, password=lambda: "open-sesame")
        with pytest.raises(AnchorUnavailable) as wrong:
            PostgresAnchor(url, store=_STORE, password=lambda: "open-simsim")
    finally:
        with place.server.admin() as connection:
            connection.execute(f"DROP OWNED BY {name}".encode())
            connection.execute(f"DROP ROLE {name}".encode())

    assert "may not do that" in str(refused.value)
    assert "open-si" not in str(wrong.value)
    assert isinstance(wrong.value.__cause__, psycopg.Error)


def test_store_of_another_length_is_refused(place: _Place) -> None:
    """What is no store's id is refused before anything is asked."""
    with pytest.raises(UsageError):
        place.open(store=b"short")
    with pytest.raises(UsageError):
        place.open(create=True, read_only=True)


def test_slot_beside_an_advance_is_read_after_its_commit(place: _Place) -> None:
    """What somebody commits while an advance waits for the disk is seen by whoever advanced."""
    anchor = place.open()
    anchor.create(_SLOT, _at(0))
    anchor.create(_OTHER, _at(0))
    place.sql(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(0.6); RETURN NULL; END'"
    )
    place.sql(
        "CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON slots DEFERRABLE INITIALLY DEFERRED "
        f"FOR EACH ROW WHEN (NEW.slot = '\\x{_SLOT.hex()}') EXECUTE FUNCTION wait()"
    )
    with ThreadPoolExecutor() as pool:
        advanced = pool.submit(anchor.advance_and_get, _SLOT, _at(0), _at(1), _OTHER)
        time.sleep(0.3)
        place.open().advance(_OTHER, _at(0), _at(1))
        found = advanced.result()

    assert found == (_at(1), _at(1))


def _held(anchor: PostgresAnchor, slot: bytes = _SLOT, holder: Holder = _FIRST) -> Hold:
    hold = anchor.hold(slot, holder)

    assert not isinstance(hold, Holder), hold
    return hold


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _stop_renewing(anchor: PostgresAnchor) -> None:
    """Let a process be cut off from the server, as far as leases go."""
    anchor._runs._stop_renewing()


def _renewing() -> int:
    return sum(thread.name == "sealpoint-runs" for thread in threading.enumerate())


def test_lease_that_is_not_renewed_is_over(place: _Place) -> None:
    """After it the holder does not live, and the next run has the thread; the late end is void."""
    first, second = place.open(lease_seconds=_LEASE_S), place.open()
    late = _held(first)
    assert second.hold(_SLOT, _SECOND) == _FIRST
    _stop_renewing(first)
    _wait_until(lambda: second.holder(_SLOT) == Holder("first", _SINCE, living=False))

    hold = _held(second, holder=_SECOND)
    late.end()
    assert first.holder(_SLOT) == _SECOND
    assert first.hold(_SLOT, _FIRST) == _SECOND
    hold.end()
    assert first.holder(_SLOT) is None


def test_lease_is_renewed_while_the_process_lives(place: _Place) -> None:
    """Every hold of the process lasts for many leases, and one OS thread sees to all of them."""
    anchor, other = place.open(lease_seconds=_LEASE_S), place.open()
    before = _renewing()
    holds = [_held(anchor), _held(anchor, _OTHER, _SECOND)]
    assert _renewing() == before + 1
    deadline = time.monotonic() + 2.5 * _LEASE_S
    while time.monotonic() < deadline:
        assert other.holder(_SLOT) == _FIRST
        assert other.hold(_OTHER, _FIRST) == _SECOND
        time.sleep(0.02)
    for hold in holds:
        hold.end()

    _wait_until(lambda: _renewing() == before)
    assert place.rows("SELECT * FROM runs") == []


def test_renewal_that_failed_is_repeated(place: _Place) -> None:
    """A renewal that the server refuses raises nowhere, and the next one keeps the thread."""
    anchor, other = place.open(lease_seconds=_LEASE_S), place.open()
    hold = _held(anchor)
    place.sql("ALTER TABLE runs RENAME TO hidden")
    time.sleep(1.3 * _LEASE_S)
    place.sql("ALTER TABLE hidden RENAME TO runs")
    _wait_until(lambda: other.holder(_SLOT) == _FIRST)
    assert other.hold(_SLOT, _SECOND) == _FIRST
    place.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'sealpoint' AND pid <> pg_backend_pid()"
    )
    time.sleep(1.3 * _LEASE_S)

    _wait_until(lambda: other.holder(_SLOT) == _FIRST)
    hold.end()
    assert other.holder(_SLOT) is None


def test_end_that_fails_is_not_raised(place: _Place) -> None:
    """The run ends for its process all the same, and for others when its lease is over."""
    anchor, other = place.open(lease_seconds=_LEASE_S), place.open()
    hold = _held(anchor)
    place.sql("ALTER TABLE runs RENAME TO hidden")
    hold.end()
    place.sql("ALTER TABLE hidden RENAME TO runs")

    _wait_until(lambda: other.holder(_SLOT) == Holder("first", _SINCE, living=False))
    _held(other, holder=_SECOND).end()


def test_end_of_another_token_changes_nothing(place: _Place) -> None:
    """A hold whose row is another run's by now does not end that one, and does not renew it."""
    anchor = place.open(lease_seconds=_LEASE_S)
    hold = _held(anchor)
    place.sql("UPDATE runs SET token = 'another', who = 'other'")
    _wait_until(lambda: anchor.holder(_SLOT) == Holder("other", _SINCE, living=False))
    hold.end()

    assert anchor.holder(_SLOT) == Holder("other", _SINCE, living=False)


def test_hold_whose_answer_was_lost_is_not_refused_to_its_own_run(place: _Place) -> None:
    """The call that is repeated after a commit without an answer finds its own token."""
    anchor = place.open()
    execute = anchor._runs._execute
    times: list[int] = []

    def twice(statements: object) -> object:
        times.append(1)
        execute(statements)  # type: ignore[arg-type]
        return execute(statements)  # type: ignore[arg-type]

    anchor._runs._execute = twice  # type: ignore[assignment]
    _held(anchor).end()

    assert times == [1, 1]


def test_stores_have_runs_of_their_own(place: _Place) -> None:
    """The same slot of another store is another thread."""
    first, second = place.open(), place.open(store=b"u" * 16)
    hold = _held(first)
    assert second.holder(_SLOT) is None
    _held(second, holder=_SECOND).end()

    assert first.holder(_SLOT) == _FIRST
    hold.end()


def test_close_ends_no_run(place: _Place) -> None:
    """What has not ended is left to its lease, and an end after close is ignored."""
    anchor, other = place.open(lease_seconds=_LEASE_S), place.open()
    before = _renewing()
    hold = _held(anchor)
    anchor.close()
    hold.end()
    anchor.close()

    assert len(place.rows("SELECT * FROM runs")) == 1
    _wait_until(lambda: _renewing() == before)
    _wait_until(lambda: other.holder(_SLOT) == Holder("first", _SINCE, living=False))
    with pytest.raises(UsageError):
        anchor.hold(_SLOT, _FIRST)


def test_child_neither_ends_nor_renews_a_run_of_its_parent(place: _Place) -> None:
    """A child made by fork has runs of its own alone, also while its parent's lease runs out."""
    anchor = place.open(lease_seconds=_LEASE_S)
    hold, before = _held(anchor), _renewing()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            hold.end()
            refused = anchor.hold(_SLOT, _SECOND)
            own = _held(anchor, _OTHER, _SECOND)
            deadline = time.monotonic() + 2 * _LEASE_S
            while time.monotonic() < deadline:
                assert anchor.holder(_OTHER) == _SECOND
            own.end()
            alone = anchor._runs._holds == {} and anchor._runs._stop is None
            status = 0 if refused == _FIRST and alone else 2
        finally:
            os._exit(status)

    assert os.waitpid(child, 0)[1] == 0
    assert anchor.holder(_SLOT) == _FIRST
    assert _renewing() == before
    hold.end()
    assert place.rows("SELECT * FROM runs") == []


def test_anchor_opened_for_reading_begins_no_run(place: _Place) -> None:
    """It sees who has a thread."""
    hold = _held(place.open())
    reader = place.open(read_only=True)

    with pytest.raises(AnchorUnavailable, match="reading only"):
        reader.hold(_OTHER, _SECOND)
    assert reader.holder(_SLOT) == _FIRST
    assert reader.holder(_OTHER) is None
    hold.end()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET who = decode(repeat('61', 513), 'hex')",
        "UPDATE runs SET who = decode('ff', 'hex')",
        "UPDATE runs SET since = 9223372036854775807",
        "UPDATE runs SET since = -9223372036854775808",
        "ALTER TABLE runs ALTER who DROP NOT NULL; UPDATE runs SET who = NULL",
        "ALTER TABLE runs ALTER until DROP NOT NULL; UPDATE runs SET until = NULL",
        "ALTER TABLE runs ALTER who TYPE text USING 'x'",
        "ALTER TABLE runs ALTER since TYPE text USING 'x'",
        "ALTER TABLE runs DROP COLUMN until",
        "ALTER TABLE runs DROP CONSTRAINT runs_pkey; INSERT INTO runs SELECT * FROM runs",
        "DROP TABLE runs",
    ],
)
def test_rows_that_are_no_runs_are_never_a_free_thread(place: _Place, statement: str) -> None:
    """Whatever lies in the table instead of a run, both calls say so."""
    anchor = place.open()
    _held(anchor)
    for each in statement.split("; "):
        place.sql(each)

    with pytest.raises(AnchorUnavailable):
        anchor.holder(_SLOT)
    with pytest.raises(AnchorUnavailable):
        anchor.hold(_SLOT, _SECOND)


def test_run_that_a_trigger_keeps_away_is_not_tried_for_ever(place: _Place) -> None:
    """A row that is neither written nor another's is AnchorUnavailable."""
    anchor = place.open()
    place.sql("CREATE RULE kept AS ON INSERT TO runs DO INSTEAD NOTHING")

    with pytest.raises(AnchorUnavailable):
        anchor.hold(_SLOT, _FIRST)
