# SPDX-License-Identifier: Apache-2.0
"""A disk that tore what it had called written: that is an alarm, and nobody repairs it silently."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpoint.errors import RolledBack, SealpointError, Tampered
from tests.faults.places import KINDS, Place
from tests.faults.recording import MEMORY_SUFFIX
from tests.faults.traced import Task, Traced

_TEARS: dict[str, Callable[[bytes], bytes]] = {
    "the last byte is missing": lambda data: data[:-1],
    "the last sector is missing": lambda data: data[: (len(data) - 1) // 512 * 512],
    "the last sector is empty": lambda data: data[:-512] + bytes(min(512, len(data))),
    "the second half is missing": lambda data: data[: len(data) // 2],
    "everything is missing": lambda _: b"",
}


def _newest(place: Place) -> Path:
    """The file of the store that was written last: the log of SQLite, or the newest entry."""
    files = [path for path in (place.directory / "store").rglob("*") if path.is_file()]
    return max(
        (path for path in files if not path.name.endswith(MEMORY_SUFFIX)),
        key=lambda path: path.stat().st_mtime_ns,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tear", _TEARS)
def test_torn_write_that_was_acknowledged_is_refused(
    tmp_path: Path, tracer: Traced, kind: str, tear: str
) -> None:
    """Whoever opens the store is told each time, and nothing is written over the damage."""
    place = Place(tmp_path.resolve(), kind).make()
    task = Task(
        directory=str(place.directory), kind=kind, scenario="closing", number=1, fault="kill"
    )
    # SQLite folds its log in when it is closed well, and there would be nothing left to tear.
    assert tracer.run(task).status in (0, -signal.SIGKILL)
    torn = _newest(place)
    data = torn.read_bytes()
    torn.write_bytes(_TEARS[tear](data))

    assert torn.read_bytes() != data
    for _ in range(2):
        with place.open() as store:
            with pytest.raises((RolledBack, Tampered)):
                store.thread("t").load()
            with pytest.raises((RolledBack, Tampered)):
                store.thread("t").save("more")
            assert not store.verify().ok


@pytest.mark.parametrize("kind", KINDS)
def test_store_that_is_whole_again_is_read(tmp_path: Path, tracer: Traced, kind: str) -> None:
    """The alarm is about the bytes: with the right ones back, everything is there."""
    place = Place(tmp_path.resolve(), kind).make()
    task = Task(
        directory=str(place.directory), kind=kind, scenario="closing", number=1, fault="kill"
    )
    assert tracer.run(task).status in (0, -signal.SIGKILL)
    torn = _newest(place)
    data = torn.read_bytes()
    torn.write_bytes(data[:-1])
    with place.open(read_only=True) as store, pytest.raises(SealpointError):
        store.thread("t").load()
    torn.write_bytes(data)

    with place.open() as store:
        assert store.verify().ok
        assert store.thread("t").load().metadata == {"number": 2}
