# SPDX-License-Identifier: Apache-2.0
"""A crash at any moment, and writes of which only a part arrived."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sealpoint.errors import SealpointError
from tests.attacks.ledger.tampered_store import WORLD, Saved, TamperedStore, refused
from tests.warm import run_command

_SECONDS_MAX = 60
_CRASH = """
import json, os, sys
import sealpoint
url, config, state, world = *sys.argv[1:4], json.loads(sys.argv[4])
store = sealpoint.open_store(url, config_dir=config, state_dir=state)
for number in range(20):
    ref = store.thread("alpha").save({"number": number}, id=f"crash-{number}", world=world)
    print(ref.seq, flush=True)
os._exit(9)
"""


def test_what_was_acknowledged_survives_a_crash(scene: TamperedStore) -> None:
    """A worker ends without closing anything; every save that returned is there."""
    places = [str(scene.places[place]) for place in ("config_dir", "state_dir")]
    words = ["python", "-c", _CRASH, scene.url, *places, json.dumps(WORLD)]
    result = run_command(words, Path.cwd(), dict(os.environ), _SECONDS_MAX, apart=True)
    acknowledged = [int(line) for line in result.stdout.split()]

    assert result.returncode == 9, result.stderr
    assert len(acknowledged) == 20
    assert scene.path.with_name("agents.db-wal").exists(), "the crash left its log behind"
    with scene.open() as store:
        found = list(store.thread("alpha").history())[:20]
        assert [ref.seq for ref in reversed(found)] == acknowledged
        scene.truth["alpha"] += [
            Saved(ref, {"number": number}, WORLD) for number, ref in enumerate(reversed(found))
        ]
        scene.save(store, "alpha", {"number": 20}, id="after")
    assert not refused(scene.read())


_WAITING = """
import sys
import sealpoint
url, config, state = sys.argv[1:4]
store = sealpoint.open_store(url, config_dir=config, state_dir=state)
print("open", flush=True)
sys.stdin.readline()
store.thread("alpha").load()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="how a mapped file ends a process differs")
def test_a_cut_index_of_the_log_ends_a_process_and_loses_nothing(scene: TamperedStore) -> None:
    """A documented limit: memory that is mapped from a file is gone with the file's bytes."""
    places = [str(scene.places[place]) for place in ("config_dir", "state_dir")]
    worker = subprocess.Popen(
        [sys.executable, "-c", _WAITING, scene.url, *places],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "open\n"
    os.truncate(scene.path.with_name("agents.db-shm"), 0)
    worker.communicate("\n", timeout=60)

    assert worker.returncode == -signal.SIGBUS
    assert not refused(scene.read())


def _crashed(scene: TamperedStore) -> dict[str, bytes]:
    """A copy of file and log in the middle of a session: what a crash leaves."""
    with scene.open() as store:
        for number in range(4):
            scene.save(store, "alpha", {"number": number}, id=f"late-{number}")
        return scene.copy_of_the_store()


def test_a_log_cut_anywhere_is_told_or_refused(scene: TamperedStore) -> None:
    """SQLite keeps whole commits of a torn log; whatever is short of the anchor is refused."""
    left = _crashed(scene)
    log = left["agents.db-wal"]
    anchor = next(scene.places["state_dir"].rglob("anchor.slots"))
    anchored = anchor.read_bytes()
    del left["agents.db-shm"]
    verdicts = set()
    for cut in range(0, len(log), len(log) // 40):
        scene.put_back({**left, "agents.db-wal": log[:cut]})
        anchor.write_bytes(anchored)
        verdicts.add(bool(refused(scene.read())))
        flipped = bytearray(log)
        flipped[cut] ^= 0x55
        scene.put_back({**left, "agents.db-wal": bytes(flipped)})
        scene.read()

    assert verdicts == {True}
    scene.put_back(left)
    assert not refused(scene.read())


def test_half_a_group_of_entries_is_refused_or_taken_up(scene: TamperedStore) -> None:
    """The entries that a session begins with come as one: a part of them is never a whole."""
    before = scene.copy_of_the_store()
    with scene.open() as store:
        store.thread("alpha").save({"note": "resume and checkpoint"}, id="group", world=WORLD)
    after = scene.copy_of_the_store()
    scene.put_back(after)
    scene.commit(lambda db: db.execute("DELETE FROM entries WHERE seq = 8"))
    found = refused(scene.read())

    assert {error.code for read, error in found.items() if "alpha" in read} == {"rolled-back"}
    scene.put_back(before)
    assert refused(scene.read())["load alpha"].code == "rolled-back"


def test_a_store_that_the_anchor_is_behind_of_is_taken_up(scene: TamperedStore) -> None:
    """A power cut may leave the anchor behind: valid descendants are verified and accepted."""
    anchor = next(scene.places["state_dir"].rglob("anchor.slots"))
    behind = anchor.read_bytes()
    with scene.open() as store:
        for number in range(3):
            scene.save(store, "alpha", {"number": number}, id=f"ahead-{number}")
    anchor.write_bytes(behind)
    assert not refused(scene.read())

    anchor.write_bytes(behind)
    scene.commit(
        lambda db: db.execute("UPDATE entries SET seals = x'5b5d' WHERE seq > 6 AND seq < 9")
    )
    with scene.open() as store, pytest.raises(SealpointError):
        store.thread("alpha").load()


def test_a_record_cut_short_is_refused(scene: TamperedStore) -> None:
    """Any column of the newest entry with its end missing."""
    thread = scene.thread_id("alpha")
    for column in ("header", "seals", "body", "payload"):
        copy = scene.copy_of_the_store()
        sql = (
            f"UPDATE entries SET {column} = substr({column}, 1, length({column}) / 2) "  # noqa: S608
            "WHERE thread = ? AND seq = 6"
        )

        def edit(database: sqlite3.Connection, statement: str = sql) -> None:
            database.execute(statement, (thread,))

        found = refused(scene.after(edit))
        scene.put_back(copy)
        assert found["load alpha"].code == "edited", column


def test_a_full_disk_acknowledges_nothing(scene: TamperedStore) -> None:
    """A save that could not be written whole leaves the thread as it was."""
    with scene.open() as store:
        thread = store.thread("alpha")
        thread.load()
        limit = scene.path.stat().st_size // 4096 + 2
        writer = store._checkpoints.core.storage._connections._handles.writer  # type: ignore[attr-defined]
        writer.set_authorizer(None)
        writer.execute(f"PRAGMA max_page_count = {limit}")
        with pytest.raises(SealpointError) as caught:
            thread.save({"large": os.urandom(1_000_000)}, world=WORLD)
        assert caught.value.code == "storage-unavailable"
    assert not refused(scene.read())
