# SPDX-License-Identifier: Apache-2.0
"""Saving, pruning, collecting and reading at the same time, for real: nobody hurts anybody."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sealpoint
from sealpoint.errors import Pruned
from tests.deployment import Deployment
from tests.unit.store.retained import check_whole, filled, kept_ids, state_of

_SECONDS = 1.5


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every save puts blobs ahead of its entry, and every sweep takes several batches."""
    monkeypatch.setattr("sealpoint.store._blobs._PENDING_BYTES_MAX", 2000)
    monkeypatch.setattr("sealpoint.store._garbage_collection._BATCH", 3)


def _together(*jobs: Callable[[], Iterator[object]]) -> list[int]:
    """Take steps of every job in a thread of its own for a while; return how many each took."""
    steps = [0] * len(jobs)
    failures: list[BaseException] = []
    end = time.monotonic() + _SECONDS

    def work(number: int, job: Callable[[], Iterator[object]]) -> None:
        try:
            for _ in job():
                steps[number] += 1
                if time.monotonic() > end:
                    return
        except BaseException as exc:  # noqa: BLE001 # raised again below
            failures.append(exc)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(jobs)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failures:
        raise failures[0]
    return steps


def test_saves_prunes_collections_and_loads_go_on_beside_each_other(world: Deployment) -> None:
    """At the end nothing is missing, nothing is left over, and nobody was refused."""
    worker, cron, collector, reader = (world.open() for _ in range(4))
    filled(worker, 3)
    for store in (worker, cron, collector, reader):
        store.storage.notes_reads = False

    def save() -> Iterator[object]:
        for number in range(3, 1_000_000):
            yield filled(worker, 1, first=number)

    def prune() -> Iterator[object]:
        while True:
            yield cron.thread("t").prune(keep_last=2, compact=False)

    def collect() -> Iterator[object]:
        while True:
            found = collector.gc(compact=False)
            assert found.failures == ()
            yield found

    def load() -> Iterator[object]:
        while True:
            loaded = reader.thread("t").load()
            assert loaded.state == state_of(loaded.metadata["number"])
            yield loaded

    steps = _together(save, prune, collect, load)
    newest = f"c{steps[0] + 2}"
    cron.thread("t").prune(keep_last=2)

    assert min(steps) > 0
    assert kept_ids(cron)[-1] == newest
    assert len(kept_ids(cron)) == 2
    assert cron.gc(dry_run=True).blobs == 0
    check_whole(world)


def test_a_session_survives_a_prune_after_every_save(world: Deployment) -> None:
    """However the two meet, the worker saves on in one session."""
    worker, cron = world.open(), world.open()
    filled(worker, 1)

    def save() -> Iterator[object]:
        for number in range(1, 1_000_000):
            yield filled(worker, 1, first=number)

    def prune() -> Iterator[object]:
        while True:
            yield cron.thread("t").prune(keep_last=1, compact=False)

    steps = _together(save, prune)

    assert worker.storage.groups.count(1) == steps[0]
    assert worker.storage.groups[0] == 3
    check_whole(world)


_PROGRAM = """
import sys, time, sealpoint
from sealpoint.store import _blobs, _garbage_collection
from tests.unit.store.retained import state_of

_blobs._PENDING_BYTES_MAX, _garbage_collection._BATCH = 2000, 3
job, url, config, state, seconds = sys.argv[1:]
with sealpoint.open_store(url, config_dir=config, state_dir=state) as store:
    thread = store.thread("t")
    sys.stdin.readline()
    end, number = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        number += 1
        if job == "save":
            thread.save(state_of(number), id=f"c{number}", metadata={"number": number})
        elif job == "prune":
            thread.prune(keep_last=2)
        else:
            assert store.gc().failures == ()
print(number)
"""


@pytest.mark.parametrize("scheme", ["sqlite:///", "file://"])
def test_processes_do_not_hurt_each_other(tmp_path: Path, scheme: str) -> None:
    """A worker saves, a cron job prunes and another collects, each compacting as it goes."""
    (tmp_path / "disk").mkdir()
    url = f"{scheme}{tmp_path / 'disk' / 'store'}"
    places: dict[str, Any] = {"config_dir": tmp_path / "config", "state_dir": tmp_path / "state"}
    sealpoint.init(url, **places)
    with sealpoint.open_store(url, **places) as store:
        store.thread("t").save(state_of(0), id="c0", metadata={"number": 0})
    arguments = [url, str(places["config_dir"]), str(places["state_dir"]), str(2 * _SECONDS)]
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, job, *arguments],
            cwd=Path(__file__).parents[5],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for job in ("save", "prune", "gc")
    ]
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
    printed = [program.communicate(timeout=60) for program in programs]
    assert [program.returncode for program in programs] == [0, 0, 0], printed
    saves = int(printed[0][0])

    with sealpoint.open_store(url, **places) as store:
        thread = store.thread("t")
        thread.prune(keep_last=2)
        refs = list(thread.history())
        assert [ref.metadata["number"] for ref in refs] == list(range(saves, -1, -1))
        for ref in refs[:2]:
            assert thread.load(ref).state == state_of(ref.metadata["number"])
        for ref in refs[2:]:
            with pytest.raises(Pruned):
                thread.load(ref)
        assert store.verify().ok
        assert store.gc(dry_run=True).blobs == 0
