# SPDX-License-Identifier: Apache-2.0
"""The superuser of the store's database, who does not hold the anchor, against a new machine.

The machine that meets the store has never seen it: all it knows, it knows from the shared anchor.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sealpoint.errors import (
    AnchorUnavailable,
    ListIncomplete,
    NotTrusted,
    RolledBack,
    Tampered,
    Unanchored,
)
from sealpoint_postgres._anchor_schema import TABLES, create_statements
from tests.fleet import Fleet, FleetMachine
from tests.postgres_server import PostgresServer

_OF_THREAD = "thread IN (SELECT thread FROM labels)"
_ROSTER = "thread = decode(repeat('00', 16), 'hex')"


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[tuple[Fleet, FleetMachine]]:
    """A store in PostgreSQL, an anchor elsewhere, and a machine that has only joined."""
    fleet = Fleet(tmp_path_factory.mktemp("fleet"), postgres, "postgresql")
    one, two = fleet.machine("one"), fleet.machine("two")
    one.init()
    one.save(1)
    two.join(one)
    fleet.back_up()
    one.save(2)
    for name in ("late", "second"):
        one.admin.keys.create(name)
        one.admin.keys.add(name, person=name, roles=["writer"], namespaces=["*"])
    one.save("of u", thread="u", identity="second")
    (key,) = one.directories["config_dir"].rglob("second.key")
    (files,) = two.directories["config_dir"].glob("stores/*")
    (files / "keys").mkdir(mode=0o700)
    shutil.copy(key, files / "keys")
    fleet.back_up("newest")
    yield fleet, two
    fleet.close()


@pytest.fixture
def fleet(made: tuple[Fleet, FleetMachine]) -> Iterator[Fleet]:
    """The two databases, which are as they were after each test."""
    fleet = made[0]
    kept = {table: fleet.on_anchor(f"TABLE {table}") for table in TABLES}
    yield fleet
    fleet.put_back("newest")
    fleet.server.drop_schema(fleet.anchor_schema)
    for statement in create_statements(fleet.anchor_schema):
        fleet.on_anchor(statement)
    for table, rows in kept.items():
        for row in rows:
            values = ", ".join(["%s"] * len(row))
            insert = f"INSERT INTO {table} VALUES ({values}) ON CONFLICT DO NOTHING"  # noqa: S608
            fleet.on_anchor(insert, *row)


@pytest.fixture
def two(made: tuple[Fleet, FleetMachine]) -> FleetMachine:
    """A machine that has joined, and has not looked at any thread."""
    return made[1]


def _write(machine: FleetMachine) -> None:
    machine.save(3, identity="second")


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM entries WHERE {_OF_THREAD} AND seq > 2",  # noqa: S608
        f"DELETE FROM entries WHERE {_OF_THREAD}",  # noqa: S608
        f"DELETE FROM entries WHERE {_ROSTER} AND seq = 1",  # noqa: S608
        f"DELETE FROM entries WHERE {_ROSTER}",  # noqa: S608
        "TRUNCATE entries, blobs, labels",
        f"UPDATE entries SET seq = seq + 9 WHERE {_OF_THREAD} AND seq > 2",  # noqa: S608
    ],
)
def test_rows_that_are_taken_away_are_missed(
    fleet: Fleet, two: FleetMachine, statement: str
) -> None:
    """Whatever the anchor has seen is missed at the first look, and nothing is begun anew."""
    fleet.on_store(statement)

    for act in (two.load, lambda: _write(two)):
        with pytest.raises((RolledBack, Tampered)):
            act()


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM labels", "INSERT INTO entries TABLE kept_entries ON CONFLICT DO NOTHING"],
)
def test_hints_and_copies_change_nothing(fleet: Fleet, two: FleetMachine, statement: str) -> None:
    """What the anchor knows is found without labels, and old rows beside it say nothing."""
    fleet.on_store(statement)

    assert two.load() == 2


def test_older_rows_are_no_store_to_begin_with(fleet: Fleet, two: FleetMachine) -> None:
    """The whole store is put back to an earlier time, for a machine and for one that joins then."""
    fleet.put_back()
    with pytest.raises(RolledBack):
        two.load()
    three = fleet.machine("three")
    three.admin.trust.import_pin(two.pin())

    with pytest.raises(RolledBack):
        three.admin.anchor.join(fleet.anchor)


def test_thread_of_another_store_is_no_answer(fleet: Fleet, two: FleetMachine) -> None:
    """Slots of one store are none of another's, though both lie in one table."""
    fleet.on_anchor("UPDATE slots SET store = decode(repeat('ab', 16), 'hex')")

    with pytest.raises(Unanchored):
        two.load()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE slots SET entry = decode(repeat('00', 33), 'hex')",
        "UPDATE slots SET seq = -7",
        "ALTER TABLE slots ALTER thread TYPE text USING encode(thread, 'hex')",
        "DROP TABLE slots",
        "DROP TABLE slot_secrets",
        "UPDATE anchor_version SET number = 7",
    ],
)
def test_hostile_rows_of_the_anchor_never_look_like_an_unknown_thread(
    fleet: Fleet, two: FleetMachine, statement: str
) -> None:
    """Even whoever writes the anchor by other means gets no thread begun anew."""
    fleet.on_anchor(statement)

    for act in (two.load, lambda: _write(two)):
        with pytest.raises(AnchorUnavailable):
            act()


_TO_AND_FRO = """
CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
SET LOCAL search_path = @;
DELETE FROM slots WHERE slot = OLD.slot;
INSERT INTO slots SELECT * FROM (TABLE first UNION ALL TABLE second) AS f
WHERE f.slot = OLD.slot ORDER BY f.seq = OLD.seq LIMIT 1;
RETURN NULL; END'
"""
_TRIGGER = "CREATE TRIGGER stays BEFORE UPDATE ON slots FOR EACH ROW EXECUTE FUNCTION stays()"


@pytest.mark.parametrize(
    "statements",
    [
        (
            "CREATE FUNCTION stays() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            _TRIGGER,
        ),
        ("CREATE RULE stays AS ON UPDATE TO slots DO INSTEAD NOTHING",),
    ],
)
def test_anchor_that_takes_an_advance_and_stays_is_not_asked_for_ever(
    fleet: Fleet, two: FleetMachine, statements: tuple[str, ...]
) -> None:
    """A trigger or a rule that keeps a position where it was makes a save fail, and end."""
    for statement in statements:
        fleet.on_anchor(statement)

    with pytest.raises(AnchorUnavailable, match="and stays"):
        two.save("more", thread="u", identity="second")


def test_anchor_that_goes_to_and_fro_is_not_followed_for_ever(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """A trigger that answers each advance with another genuine ancestor makes a save fail."""
    with closing(Fleet(tmp_path, postgres, "postgresql")) as fleet:
        one = fleet.machine("one")
        one.init()
        one.save(1)
        fleet.on_anchor("CREATE TABLE first AS SELECT * FROM slots")
        one.save(2)
        fleet.on_anchor("CREATE TABLE second AS SELECT * FROM slots")
        fleet.on_anchor(_TO_AND_FRO.replace("@", fleet.anchor_schema))
        fleet.on_anchor(_TRIGGER)

        with pytest.raises(AnchorUnavailable, match="something else at each look"):
            one.save(3)


def test_another_thread_in_the_slot_of_the_store_chain_is_refused(
    fleet: Fleet, two: FleetMachine
) -> None:
    """A store chain that the anchor calls by another id is not looked for without end."""
    fleet.on_anchor(f"UPDATE slots SET thread = decode(repeat('ab', 16), 'hex') WHERE {_ROSTER}")  # noqa: S608
    three = fleet.machine("elsewhere")
    three.admin.trust.import_pin(two.pin())

    with pytest.raises(AnchorUnavailable):
        three.admin.anchor.join(fleet.anchor)


def test_genuine_thread_under_the_name_of_another_is_refused(
    fleet: Fleet, two: FleetMachine
) -> None:
    """Whoever writes the anchor alone cannot have one thread loaded by another's name."""
    three = fleet.machine("third")
    three.admin.trust.import_pin(two.pin())
    three.admin.anchor.join(fleet.anchor)
    assert three.load("u") == "of u"
    shortest = f"(SELECT ctid FROM slots WHERE NOT {_ROSTER} ORDER BY seq LIMIT 1)"  # noqa: S608
    fleet.on_anchor(
        "UPDATE slots SET thread = u.thread, seq = u.seq, entry = u.entry, "  # noqa: S608
        "fence = u.fence, pause = u.pause, owner = u.owner FROM slots u "
        f"WHERE u.ctid = {shortest} AND NOT slots.{_ROSTER}"
    )

    with pytest.raises(NotTrusted, match="another name"):
        three.load("t")


def test_thread_that_the_anchor_calls_erased_is_listed(fleet: Fleet, two: FleetMachine) -> None:
    """An anchor that lies about an erasure leaves no thread out of a list in silence."""
    fleet.on_anchor(f"UPDATE slots SET erased = true WHERE NOT {_ROSTER}")  # noqa: S608

    with two.open(read_only=True) as store:
        assert list(store.threads()) == ["t", "u"]


def test_thread_that_the_anchor_calls_the_store_chain_is_missed(
    fleet: Fleet, two: FleetMachine
) -> None:
    """A slot that leads to the store chain leaves no thread out of a list in silence."""
    fleet.on_anchor("UPDATE slots SET thread = decode(repeat('00', 16), 'hex')")

    with two.open(read_only=True) as store, pytest.raises((AnchorUnavailable, ListIncomplete)):
        list(store.threads())
