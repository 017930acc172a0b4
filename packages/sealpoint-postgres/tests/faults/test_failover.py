# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL primary dies under load, and its standby takes over.

With a synchronous standby nothing that was acknowledged is lost, twice there or unverifiable. With
one that lags, what is lost is noticed by the anchor and named, and accepting it is the way on.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sealpoint import api
from sealpoint.errors import RolledBack, SealpointError
from tests.effort import SOAKING
from tests.postgres_server import PostgresServer

_MOMENTS = range(50 if SOAKING else 2)
_WORKERS = 3
_SAVES_AFTER = 5


@contextmanager
def _cluster(*settings: str) -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary that runs, and a standby that follows it."""
    primary = PostgresServer.create(*settings)
    standby = None
    try:
        primary.start()
        standby = primary.standby()
        standby.start()
        yield primary, standby
    finally:
        primary.remove()
        if standby is not None:
            standby.remove()


def _url(primary: PostgresServer, standby: PostgresServer) -> str:
    host = "127.0.0.1"
    return f"postgresql://admin@{host}:{primary.port},{host}:{standby.port}/postgres"


class _Worker(threading.Thread):
    """Saves numbers to a thread of its own, one after the other, until it is told to end."""

    def __init__(self, store: api.Store, name: str) -> None:
        super().__init__(name=name)
        self._thread_of_store = store.thread(name)
        self.acknowledged: list[int] = []
        self.after = 0
        """How many were acknowledged since the standby took over."""
        self.failures: list[SealpointError] = []
        self.took_over = threading.Event()
        self.ends = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.ends.is_set():
            try:
                self._thread_of_store.save({"n": number}, id=str(number))
            except SealpointError as error:
                self.failures.append(error)
                continue
            self.acknowledged.append(number)
            self.after += self.took_over.is_set()
            number += 1


@pytest.mark.parametrize("moment", _MOMENTS)
def test_a_synchronous_standby_loses_nothing(moment: int, tmp_path: Path) -> None:
    """Every acknowledged save is there, none twice, and all verify; workers go on by themselves."""
    delay = random.Random(moment).uniform(0.0, 0.4)  # noqa: S311
    with _cluster("synchronous_standby_names=standby") as (primary, standby):
        where: Any = {
            "config_dir": tmp_path / "config",
            "state_dir": tmp_path / "state",
            "password": primary.password,
        }
        url = _url(primary, standby)
        api.init(url, **where)
        with api.open_store(url, **where) as store:
            workers = [_Worker(store, f"worker-{number}") for number in range(_WORKERS)]
            for worker in workers:
                worker.start()
            while not all(worker.acknowledged for worker in workers):
                time.sleep(0.01)
            time.sleep(delay)
            primary.stop("immediate")
            standby.promote()
            for worker in workers:
                worker.took_over.set()
            deadline = time.monotonic() + 60
            while not all(worker.after >= _SAVES_AFTER for worker in workers):
                assert time.monotonic() < deadline, [worker.failures for worker in workers]
                time.sleep(0.01)
            for worker in workers:
                worker.ends.set()
            for worker in workers:
                worker.join()
        with api.open_store(url, **where, read_only=True) as store:
            for worker in workers:
                thread = store.thread(worker.name)
                saved = [thread.load(str(number)).state["n"] for number in worker.acknowledged]
                assert saved == worker.acknowledged
                assert len(list(thread.history())) == len(worker.acknowledged)
            assert store.verify().ok


def test_what_a_lagging_standby_lost_is_named_and_can_be_accepted(tmp_path: Path) -> None:
    """The anchor refuses the older state, says what is missing, and accepting a restore goes on."""
    with _cluster() as (primary, standby):
        where: Any = {
            "config_dir": tmp_path / "config",
            "state_dir": tmp_path / "state",
            "password": primary.password,
        }
        url = _url(primary, standby)
        api.init(url, **where)
        with api.open_store(url, **where) as store:
            store.thread("t").save({"n": 1})
            _wait_for_standby(primary)
            standby.stop()
            store.thread("t").save({"n": 2})
        primary.stop("immediate")
        standby.start()
        standby.promote()

        with (
            api.open_store(url, **where) as store,
            pytest.raises(RolledBack, match="which the anchor has seen"),
        ):
            store.thread("t").load()
        admin = api.admin(url, **where)
        plan = admin.restore.plan()
        assert [each.name for each in plan.losses] == ["t"]
        admin.restore.accept(plan, reason="the standby lagged behind")
        with api.open_store(url, **where) as store:
            assert store.thread("t").load().state == {"n": 1}
            thread = store.thread("t")
            thread.resume(world=None, deliberate="the standby lagged behind")
            thread.save({"n": 3})
            assert store.verify().ok


def _wait_for_standby(primary: PostgresServer) -> None:
    """Until it has everything that was committed."""
    sql = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()"
    deadline = time.monotonic() + 30
    with primary.admin() as server:
        while server.execute(sql).fetchone() != (1,):
            assert time.monotonic() < deadline
            time.sleep(0.01)
