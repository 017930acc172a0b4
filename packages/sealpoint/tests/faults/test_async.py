# SPDX-License-Identifier: Apache-2.0
"""Many saves at once through the async face: each thread keeps the order of its calls."""

import asyncio

import pytest

from sealpoint.aio import AsyncThread
from sealpoint.errors import HeadMoved, Superseded, UsageError
from tests.faults.places import Place, facts


def test_gathered_saves_keep_the_order_of_their_calls(place: Place) -> None:
    """Saves on several threads that are all under way at once land in the order of their calls."""
    names = [f"thread-{number}" for number in range(6)]

    async def save_all() -> None:
        async with place.open_async() as store:
            await asyncio.gather(
                *(
                    store.thread(name).save({"turn": turn}, metadata={"turn": turn})
                    for turn in range(100)
                    for name in names
                )
            )

    asyncio.run(save_all())
    with place.open() as store:
        for name in names:
            found = facts(store, name)

            assert [fact.metadata["turn"] for fact in found] == list(range(100))
            assert len({fact.session for fact in found}) == 1
        assert store.verify().findings == ()


def test_tasks_of_two_stores_take_a_thread_from_each_other(place: Place) -> None:
    """Tasks on two open stores lose a shared thread to each other, load, and lose no save."""
    saved: list[tuple[int, int]] = []
    lost: list[int] = []

    async def work(who: int, thread: AsyncThread) -> None:
        for turn in range(40):
            try:
                await thread.save({"mark": [who, turn]}, metadata={"mark": [who, turn]})
            except (Superseded, HeadMoved):
                lost.append(who)
                await thread.load()
            else:
                saved.append((who, turn))

    async def both() -> None:
        async with place.open_async() as left, place.open_async() as right:
            stores = [left, right] * 3
            await asyncio.gather(*(work(who, s.thread("t")) for who, s in enumerate(stores)))

    asyncio.run(both())
    with place.open() as store:
        found = facts(store, "t")
        owners = {fact.session: fact.metadata["mark"][0] % 2 for fact in found}

        assert sorted(tuple(fact.metadata["mark"]) for fact in found) == sorted(saved)
        assert all(fact.metadata["mark"][0] % 2 == owners[fact.session] for fact in found)
        assert store.verify().findings == ()
    assert lost, "the stores never met"


def test_closing_waits_for_the_calls_under_way(place: Place) -> None:
    """A store that is closed while saves are queued closes after the last of them."""

    async def save_and_leave() -> list[object]:
        async with place.open_async() as store:
            threads = [store.thread(f"thread-{number}") for number in range(3)]
            tasks = [
                asyncio.ensure_future(thread.save(turn)) for turn in range(30) for thread in threads
            ]
            await asyncio.sleep(0)
        with pytest.raises(UsageError, match="it is closed"):
            await threads[0].save("late")
        return await asyncio.gather(*tasks, return_exceptions=True)

    ends = asyncio.run(save_and_leave())

    assert [end for end in ends if isinstance(end, BaseException)] == []
    with place.open() as store:
        for number in range(3):
            assert len(facts(store, f"thread-{number}")) == 30


def test_cancelled_save_leaves_the_thread_in_order(place: Place) -> None:
    """Saves whose callers gave up happen or do not; the others keep their order."""

    async def save_some() -> None:
        async with place.open_async() as store:
            thread = store.thread("t")
            tasks = [
                asyncio.ensure_future(thread.save(turn, metadata={"turn": turn}))
                for turn in range(60)
            ]
            await asyncio.sleep(0)
            for task in tasks[::3]:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert not [end for end in ends if isinstance(end, Exception)]
            assert (await thread.load()).state == 59

    asyncio.run(save_some())
    with place.open() as store:
        turns = [fact.metadata["turn"] for fact in facts(store, "t")]

        assert turns == sorted(turns)
        assert {turn for turn in range(60) if turn % 3} <= set(turns)
        assert store.verify().findings == ()
