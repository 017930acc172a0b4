# SPDX-License-Identifier: Apache-2.0
"""Moving a store to another backend: all of it arrives, or nothing changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealpoint import api
from sealpoint.api import MoveProgress
from sealpoint.errors import NoPin, StoreExists, Tampered, UsageError
from tests.postgres_server import schema_of, shared_server
from tests.unit.api.place import Place

_TARGETS = ("sqlite", "file", "postgresql")


def _target(kind: str, disk: Path) -> dict[str, Any]:
    """Where to move, and the password there."""
    if kind == "postgresql":
        server = shared_server()
        url = server.url(schema=schema_of(disk))
        return {"url": url, "password": server.password}
    (disk / "new").mkdir()
    place = disk / "new" / "store"
    return {"url": f"sqlite:///{place}" if kind == "sqlite" else f"file://{place}"}


def _furnish(place: Place) -> None:
    """Threads with blobs, an erased one, a pruned one and a pause."""
    with place.open() as store:
        for number in range(40):
            store.thread("long").save({"lines": [f"{number} {each} " * 30 for each in range(50)]})
        store.thread("gone").save({"secret": "x" * 5000})
        store.thread("pruned").save({"n": 1})
        store.thread("pruned").save({"n": 2})
        store.thread("pruned").prune(keep_last=1)
    with place.open(identity="operator") as store:
        store.thread("gone").erase(reason="asked for")
        store.thread("long").pause(reason="look")


def _contents(store: api.Store) -> dict[str, Any]:
    """Every row and blob."""
    storage = store._core.storage
    return {
        thread.hex(): (dict(storage.scan(thread, 0)), dict(storage.stored_blobs(thread)))
        for thread, _ in storage.heads()
    }


@pytest.mark.parametrize("kind", _TARGETS)
def test_every_byte_arrives_and_the_store_goes_on(made: Place, kind: str) -> None:
    """All records and blobs are the same, all verifies, and whoever owned a thread saves on."""
    _furnish(made)
    with made.open(read_only=True) as store:
        before = _contents(store)
    target = _target(kind, made.disk)
    told: list[MoveProgress] = []

    moved = api.admin(made.url, **made.directories).move_to(**target, progress=told.append)

    assert {each.step for each in told} == {"verify the source", "copy", "verify the target"}
    assert moved.copied.entries == sum(len(rows) for rows, _ in before.values())
    with api.open_store(moved.url, **made.directories, password=target.get("password")) as store:
        assert _contents(store) == before
        assert store.verify().ok
        assert store.thread("pruned").save({"n": 3}).writer == "worker"
    with pytest.raises(NoPin):
        made.open()


def _interrupt(at: int) -> Callable[[MoveProgress], None]:
    def progress(done: MoveProgress) -> None:
        if done.step == "copy" and done.done == at:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("kind", _TARGETS)
def test_an_interrupted_move_goes_on(made: Place, kind: str) -> None:
    """What was copied before is not copied again, and until the end the old place is the store."""
    _furnish(made)
    target, admin = _target(kind, made.disk), api.admin(made.url, **made.directories)
    for at in (1, 2, 3):
        with pytest.raises(KeyboardInterrupt):
            admin.move_to(**target, progress=_interrupt(at))
        with made.open() as store:
            store.thread("between").save({"at": at})

    moved = admin.move_to(**target)

    with api.open_store(moved.url, **made.directories, password=target.get("password")) as store:
        assert store.verify().ok
        assert store.thread("between").load().state == {"at": 3}


def test_a_save_at_the_old_place_meanwhile_ends_the_move(made: Place) -> None:
    """A target that lacks what the anchor has seen does not become the store."""
    _furnish(made)
    target = _target("sqlite", made.disk)

    def progress(done: MoveProgress) -> None:
        if done.step == "copy" and done.done == done.total:
            with made.open() as store:
                store.thread("pruned").save({"n": "late"})

    with pytest.raises(Tampered, match="findings"):
        api.admin(made.url, **made.directories).move_to(**target, progress=progress)

    api.admin(made.url, **made.directories).move_to(**target)
    with api.open_store(target["url"], **made.directories) as store:
        assert store.thread("pruned").load().state == {"n": "late"}


def test_another_store_at_the_target_is_left_alone(made: Place, tmp_path: Path) -> None:
    """Neither a store that is trusted here nor foreign rows are written over."""
    _furnish(made)
    target = _target("sqlite", made.disk)
    directories: Any = {"config_dir": tmp_path / "c", "state_dir": tmp_path / "s"}
    api.init(target["url"], **directories)
    with api.open_store(target["url"], **directories) as store:
        store.thread("theirs").save({"n": 1})

    with pytest.raises(StoreExists):
        api.admin(made.url, **made.directories).move_to(**target)
    with pytest.raises(UsageError):
        api.admin(made.url, **made.directories).move_to(made.url)

    with api.open_store(target["url"], **directories) as store:
        assert store.verify().ok
        assert store.thread("theirs").load().state == {"n": 1}


def test_a_damaged_source_is_not_moved(made: Place) -> None:
    """What does not verify is not copied, and the message says so."""
    _furnish(made)
    data = bytearray(made.path.read_bytes())
    place = data.rindex(b'"kind":"checkpoint"')
    data[place + 10] ^= 1
    made.path.write_bytes(bytes(data))
    target = _target("sqlite", made.disk)

    with pytest.raises(Tampered):
        api.admin(made.url, **made.directories).move_to(**target)

    assert not (made.disk / "new" / "store").exists()


def test_a_move_that_came_to_its_end_is_said_to_be_done(tmp_path: Path) -> None:
    """Whoever runs it again is not sent to another place."""
    made = Place(tmp_path)
    api.init(made.url, **made.directories)
    target = _target("sqlite", made.disk)
    api.admin(made.url, **made.directories).move_to(**target)
    with pytest.raises(StoreExists) as again:
        api.admin(made.url, **made.directories).move_to(**target)

    assert "use that URL" in str(again.value.hint)
