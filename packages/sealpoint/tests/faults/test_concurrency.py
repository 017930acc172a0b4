# SPDX-License-Identifier: Apache-2.0
"""Two processes of four OS threads on one store: nothing is lost, doubled, forked or reordered."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sealpoint.api import Store
from sealpoint.ledger import STORE_CHAIN
from sealpoint.store import claimed_name
from tests.effort import SOAKING, in_soak
from tests.faults.places import KINDS, Fact, Place, core_of, facts
from tests.faults.writers import Call, Plan, calls, race, state_of

_seconds = pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.soak)])
_LOADS_MAX = 60
_NAMES = 160
_TRIES_MAX = 5
"""So often two processes are started on a busy machine until they want the same at once."""
_LOOKS = 4
_FLEET, _FLEET_THREADS = 8 if SOAKING else 2, 8


@pytest.fixture(params=(*KINDS, in_soak("postgres")))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new store, on each backend."""
    return Place(tmp_path, request.param).make()


def _plans(place: Place, names: Iterable[Iterable[str]], seconds: float, **more: Any) -> list[Plan]:
    return [
        Plan(
            directory=str(place.directory),
            kind=place.kind,
            process=process,
            names=tuple(own),
            seconds=seconds,
            **more,
        )
        for process, own in enumerate(names)
    ]


def _require_exact(store: Store, name: str, made: list[Call]) -> list[Fact]:
    """The thread holds what was acknowledged, each once, and nothing else, with the exact state."""
    found = facts(store, name)
    saved = {call.seq: call for call in made if call.outcome == "saved"}

    assert len(saved) == sum(call.outcome == "saved" for call in made)
    assert {fact.seq: fact.metadata for fact in found} == {
        seq: {"mark": call.mark} for seq, call in saved.items()
    }
    for fact in found[:: max(1, len(found) // _LOADS_MAX)]:
        loaded = store.thread(name).load(fact.id)
        assert loaded.state == state_of(fact.metadata["mark"])
        assert loaded.ref.seq == fact.seq
    return found


def _require_order(made: list[Call]) -> None:
    """Of two calls of a process of which one ended before the other began, it is saved first."""
    for process in {call.process for call in made}:
        saved = [call for call in made if call.process == process and call.outcome == "saved"]
        saved.sort(key=lambda call: call.seq, reverse=True)
        earliest_end = max((call.ended for call in saved), default=0)
        for call in saved:
            assert call.began <= earliest_end, call
            earliest_end = min(earliest_end, call.ended)
    for who in {(call.process, call.os_thread) for call in made}:
        own = [call for call in made if (call.process, call.os_thread) == who]
        counters = [call.counter for call in sorted(own, key=lambda call: call.began)]
        positions = [call.seq for call in own if call.outcome == "saved"]

        assert counters == sorted(counters)
        assert positions == sorted(positions)


def _require_sessions(found: list[Fact], writer: int) -> list[int]:
    """Sessions are contiguous, each of one writer, and only another writer ends one.

    Args:
        found: The checkpoints of a thread, oldest first.
        writer: How much of a mark tells one handle from another: 1 process, 2 also OS thread.
    """
    sessions = [fact.session for fact in found]
    owners: dict[int, list[int]] = {}
    for fact in found:
        owner = fact.metadata["mark"][:writer]
        assert owners.setdefault(fact.session, owner) == owner, fact

    assert sessions == sorted(sessions)
    for before, after in pairwise(owners.values()):
        assert before != after
    return list(owners)


def _require_sound(store: Store) -> None:
    report = store.verify()

    assert report.findings == ()
    assert report.ok
    assert store.threads().complete


@_seconds
def test_two_processes_on_one_thread_lose_nothing(place: Place, seconds: int) -> None:
    """Two processes take a thread from each other; each session is one process's, in order."""
    plans = _plans(place, [["shared"], ["shared"]], seconds, saves_least=21, turns_least=12)
    race(*plans)
    made = calls(*plans)
    outcomes = Counter((call.process, call.outcome) for call in made)
    with place.open() as store:
        _require_sound(store)
        found = _require_exact(store, "shared", made)
    _require_order(made)
    sessions = _require_sessions(found, 1)

    assert len(sessions) > 4
    for process in range(2):
        assert outcomes[process, "saved"] > 20
        assert outcomes[process, "superseded"] + outcomes[process, "head-moved"] > 0


@_seconds
def test_eight_handles_on_one_thread_lose_nothing(place: Place, seconds: int) -> None:
    """Eight OS threads with a store each are rivals as processes are, and lose nothing either."""
    plans = _plans(place, [["shared"], ["shared"]], seconds / 2, own_stores=True, turns_least=12)
    race(*plans)
    made = calls(*plans)
    with place.open() as store:
        _require_sound(store)
        found = _require_exact(store, "shared", made)
    _require_order(made)

    assert len(_require_sessions(found, 2)) > 4


@_seconds
def test_two_processes_on_many_threads_lose_nothing(place: Place, seconds: int) -> None:
    """Two processes share some of many threads; on those they do not share nobody sees an error."""
    shared = [f"shared-{number}" for number in range(20)]
    own = [[f"own-{process}-{number}" for number in range(15)] for process in range(2)]
    plans = _plans(place, [shared + names for names in own], seconds, turns_least=2)
    race(*plans)
    made = calls(*plans)
    with place.open() as store:
        _require_sound(store)
        for name in store.threads().names:
            on_it = [call for call in made if call.name == name]
            found = _require_exact(store, name, on_it)
            _require_order(on_it)
            sessions = _require_sessions(found, 1)
            if name not in shared:
                assert len(sessions) == 1

        assert set(store.threads().names) == {call.name for call in made}
    lost = Counter(call.name in shared for call in made if call.outcome != "saved")

    assert lost[False] == 0
    assert lost[True] > 0


def test_two_processes_that_create_the_same_threads_make_each_once(place: Place) -> None:
    """Two first saves of a name at once make one thread, with one genesis, also while it grows."""
    names: list[str] = []
    made: list[Call] = []
    while all(call.outcome == "saved" for call in made):
        tries = len(names) // _NAMES
        assert tries < _TRIES_MAX, "the processes never met"
        new = [f"new-{tries}-{number}" for number in range(_NAMES)]
        pair = _plans(place, [new, new], 0)
        plans = [replace(each, process=2 * tries + each.process) for each in pair]
        race(*plans)
        names, made = names + new, made + calls(*plans)
    with place.open() as store:
        _require_sound(store)
        core = core_of(store)
        threads = [thread for thread, _ in core.storage.heads() if thread != STORE_CHAIN]
        claimed = Counter(claimed_name(core.storage, thread)[1] for thread in threads)

        assert claimed == Counter(names)
        for name in names:
            on_it = [call for call in made if call.name == name]
            assert len(on_it) == 2
            assert "saved" in {call.outcome for call in on_it}
            _require_sessions(_require_exact(store, name, on_it), 1)


def test_verification_beside_a_writer_finds_nothing(place: Place) -> None:
    """Verifying, listing and loading while another process saves and makes threads is no alarm."""
    names = [f"thread-{number}" for number in range(4)]
    with place.open() as store:
        for name in names:
            store.thread(name).save(0)
    own = [[*names, *(f"new-{turn}-{number}" for number in range(100))] for turn in range(100)]
    plans = iter(_plans(place, own, 0.5))

    async def look(plan: Plan) -> int:
        racing = asyncio.ensure_future(asyncio.to_thread(race, plan))
        looks = 0
        with place.open(read_only=True) as store:
            while not racing.done():
                await asyncio.sleep(0.05)
                _require_sound(store)
                for name in names:
                    store.thread(name).load()
                looks += any(place.directory.glob(f"calls-{plan.process}-*"))
        await racing
        assert {call.outcome for call in calls(plan)} == {"saved"}
        return looks

    looks = 0
    while looks < _LOOKS:
        looks += asyncio.run(look(next(plans)))


@pytest.mark.parametrize("seconds", [1, pytest.param(300, marks=pytest.mark.soak)])
def test_a_fleet_on_one_server_loses_nothing(seconds: int, tmp_path: Path) -> None:
    """Processes with eight conversations each, and one that all want, on PostgreSQL."""
    place = Place(tmp_path, "postgres").make()
    names = [
        [f"own-{process}-{each}" for each in range(_FLEET_THREADS)] for process in range(_FLEET)
    ]
    plans = _plans(place, [[*own, "wanted-by-all"] for own in names], seconds, os_threads=8)
    race(*plans)
    made = calls(*plans)
    with place.open() as store:
        _require_sound(store)
        for name in store.threads().names:
            own = [call for call in made if call.name == name]
            _require_sessions(_require_exact(store, name, own), 1)
            if name != "wanted-by-all":
                assert {call.outcome for call in own} == {"saved"}
            _require_order(own)
