# SPDX-License-Identifier: Apache-2.0
"""The shared anchor on a real server: hostile rows, lost connections, a database put back."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from sealpoint._postgres_url import ANCHOR_SCHEMA, PostgresUrl
from sealpoint.anchor import RESERVED_SEQ, Position
from sealpoint.anchor.postgres import PostgresAnchor
from sealpoint.errors import AnchorUnavailable, UsageError
from tests.postgres_server import PostgresServer

_STORE = b"s" * 16
_SLOT = b"\x01" * 32
_OTHER = b"\x02" * 32


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
