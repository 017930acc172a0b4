# SPDX-License-Identifier: Apache-2.0
"""Reading comes to an end, however the pages of a store refer to each other.

The victim is a process of its own with a few seconds to live: code that does not end fails here,
and keeps nobody waiting.
"""

import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint.errors import Edited, StorageUnavailable
from sealpoint.storage.sqlite import SqliteStorage
from tests.attacks.ledger.pages import in_circles, index_number, on_two_pages, with_rows_repeated
from tests.attacks.ledger.tampered_store import WORLD, TamperedStore, refused
from tests.warm import run_command

_SECONDS_MAX = 30
_BATCH_ROWS = 32

_VICTIM = """
import sys
import sealpoint
url, config, state, read_only, call = *sys.argv[1:5], sys.argv[5]
try:
    with sealpoint.open_store(
        url, config_dir=config, state_dir=state, read_only=bool(read_only)
    ) as store:
        print(eval(call))
except sealpoint.SealpointError as error:
    print(error.code)
"""


def _victim(
    scene: TamperedStore, call: str = "store.threads().complete", *, read_only: bool = True
) -> str:
    """What a process says that opens the store and calls something, within its time."""
    places = [str(scene.places[place]) for place in ("config_dir", "state_dir")]
    try:
        words = ["python", "-c", _VICTIM, scene.url, *places, "1" if read_only else "", call]
        result = run_command(words, Path.cwd(), dict(os.environ), _SECONDS_MAX, apart=True)
    except subprocess.TimeoutExpired:
        return "does not end"
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def _put(scene: TamperedStore, edit: Callable[[bytes], bytes]) -> None:
    before = scene.path.read_bytes()
    scene.path.write_bytes(edit(before))
    assert scene.path.read_bytes() != before


@pytest.mark.parametrize("read_only", [True, False])
def test_a_schema_that_refers_to_itself_is_refused(
    scene: TamperedStore, *, read_only: bool
) -> None:
    """A file of 100 KB with more rows in its schema than anybody can count is opened in no time."""
    scene.require_sound()
    genuine = scene.path.read_bytes()
    _put(scene, on_two_pages)
    control = _victim(scene, read_only=read_only)
    scene.path.write_bytes(genuine)
    _put(scene, in_circles)
    found = _victim(scene, read_only=read_only)

    assert control == "True"
    assert found == "edited"
    assert scene.path.stat().st_size - len(genuine) < 100_000
    scene.path.write_bytes(genuine)
    assert not refused(scene.read())


def test_the_control_schema_has_more_rows_than_can_be_read(scene: TamperedStore) -> None:
    """The planted pages are live: plain SQLite goes on reading until somebody stops it."""
    _put(scene, in_circles)
    looks = iter(range(100_000))
    with scene.raw() as database:
        database.set_progress_handler(lambda: next(looks, None) is None, 100)
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            database.execute("SELECT count(*) FROM entries").fetchone()


@pytest.mark.parametrize("times", [1, 100, 120])
def test_a_row_of_the_schema_that_is_there_twice_is_refused(
    scene: TamperedStore, times: int
) -> None:
    """Rows that repeat a genuine one are no room to hide others behind."""
    scene.require_sound()
    genuine = scene.path.read_bytes()
    _put(scene, lambda data: with_rows_repeated(data, times))
    with scene.raw() as database:
        rows = database.execute("SELECT name FROM sqlite_master").fetchall()
    found = refused(scene.read())

    assert len(rows) == 5 + times
    assert len(set(rows)) == 5
    assert set(found.values()) == {Edited}
    scene.path.write_bytes(genuine)
    assert not refused(scene.read())


def test_a_trigger_behind_a_hundred_rows_is_seen_at_once(scene: TamperedStore) -> None:
    """A schema with a hundred repeated rows, and a trigger after them, is refused when opened."""
    scene.require_sound()
    _put(scene, lambda data: with_rows_repeated(data, 120))
    with scene.raw() as database:
        database.execute("CREATE TRIGGER planted AFTER INSERT ON labels BEGIN SELECT 1; END")
        rows = database.execute("SELECT type FROM sqlite_master").fetchall()

    assert rows.index(("trigger",)) > 100
    for read_only in (True, False):
        with pytest.raises(Edited, match="expected exactly the tables"):
            scene.open(read_only=read_only)


def _batch(database: sqlite3.Connection, thread: bytes, high: int) -> list[int]:
    sql = "SELECT seq FROM entries WHERE thread = ? AND seq <= ? ORDER BY seq DESC LIMIT ?"
    return [seq for (seq,) in database.execute(sql, (thread, high, _BATCH_ROWS))]


def _long(scene: TamperedStore) -> bytes:
    """Give a thread so many entries that they are read in several batches; return its id."""
    with scene.open() as store:
        for number in range(90):
            scene.save(store, "alpha", {"number": number}, id=f"more-{number}")
    return scene.thread_id("alpha")


@pytest.mark.parametrize("call", ["store.threads().complete", "store.verify().ok"])
def test_an_index_that_leads_back_is_refused(scene: TamperedStore, call: str) -> None:
    """Where the last entry of a batch claims to come before the first, reading does not repeat."""
    thread = _long(scene)
    control = _victim(scene, call)
    with scene.raw() as database:
        first = _batch(database, thread, 127)
        # Whoever looks for the thread's name now has to look through all of it.
        database.execute("UPDATE entries SET body = NULL WHERE thread = ? AND seq = 0", (thread,))
    _put(scene, lambda data: index_number(data, thread, first[-1], first[0] + 1))
    with scene.raw() as database:
        repeated = _batch(database, thread, _batch(database, thread, 127)[-1] - 1)

    assert control == "True"
    assert repeated == [*first[:-1], first[0] + 1], "the edit leads nowhere"
    assert _victim(scene, call) == "False"


@pytest.mark.parametrize("descending", [False, True])
def test_a_scan_never_gives_a_position_twice(scene: TamperedStore, *, descending: bool) -> None:
    """Numbers in the index that do not rise, or fall, strictly within what was asked for."""
    thread = _long(scene)
    genuine = scene.path.read_bytes()
    with closing(SqliteStorage(scene.path, read_only=True)) as storage:
        honest = [seq for seq, _ in storage.scan(thread, 0, descending=descending)]
    assert honest == sorted(honest, reverse=descending)
    for seq, shown in ((40, 39), (40, 41), (40, 120), (60, 2), (31, 2)):
        scene.path.write_bytes(index_number(genuine, thread, seq, shown))
        with (
            closing(SqliteStorage(scene.path, read_only=True)) as storage,
            pytest.raises(Edited, match="expected positions from"),
        ):
            list(islice(storage.scan(thread, 0, descending=descending), 2 * len(honest)))


def test_names_that_crashes_leave_are_not_passed_over_for_ever(tmp_path: Path) -> None:
    """A directory full of drafts stops a save with a hint, and following the hint helps."""
    (tmp_path / "disk").mkdir()
    url = f"file://{tmp_path}/disk/agents"
    places: Any = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    sealpoint.init(url, **places)
    with sealpoint.open_store(url, **places) as store:
        thread = store.thread("alpha")
        thread.save({"n": 1}, world=WORLD)
        (folder,) = (
            path
            for path in (tmp_path / "disk").rglob("*")
            if path.name == thread.id and path.is_dir()
        )
        for number in range(3):
            (folder / f"new-{number}").touch(mode=0o600)
        thread.save({"n": 2}, world=WORLD)
        for number in range(5000):
            (folder / f"new-{number}").touch(mode=0o600)

        with pytest.raises(StorageUnavailable, match="more than 4096") as caught:
            thread.save({"n": 3}, world=WORLD)
        assert "sealpoint gc" in caught.value.hint
        store.gc()
        thread.save({"n": 3}, world=WORLD)
        assert not [path for path in folder.iterdir() if path.name.startswith("new-")]
        assert store.verify().ok
