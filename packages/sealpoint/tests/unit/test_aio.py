# SPDX-License-Identifier: Apache-2.0
"""The async twin: the same store, in order, from any loop, with nothing left behind."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from sealpoint import aio, api, errors
from sealpoint.audit import Progress
from sealpoint.errors import SealpointError, TypeNotAllowed, UnknownThread, UsageError
from tests.unit.api.place import Place


def test_it_saves_and_loads() -> None:
    """Every method gives what its twin gives."""

    async def main() -> None:
        async with aio.open_store("memory:") as store:
            thread = store.thread("t")
            ref = await thread.save({"n": 1}, id="a", metadata={"m": 1})
            loaded = await thread.load()
            seen: list[Progress] = []

            assert thread.name == "t"
            assert loaded.state == {"n": 1}
            assert loaded.ref == ref
            assert (await thread.load("a")).ref == (await thread.load(ref)).ref
            assert (await store.threads()).names == ("t",)
            assert (await store.verify(seen.append)).ok
            assert seen

    asyncio.run(main())


def test_it_prunes_erases_and_collects() -> None:
    """Retention is the same as in the twin, and keeps its place among the calls of a thread."""

    async def main() -> None:
        async with aio.open_store("memory:") as store:
            thread = store.thread("t")
            saves = [thread.save(number, id=f"c{number}") for number in range(4)]
            pruning = thread.prune(keep_last=1, keep=["c1"])
            _, done = await asyncio.gather(asyncio.gather(*saves), pruning)
            planned = await thread.prune(keep_last=1, dry_run=True)
            seen: list[tuple[int, int]] = []
            found = await store.gc(progress=lambda *each: seen.append(each), compact=False)

            assert [ref.id for ref in done.pruned] == ["c2", "c0"]
            assert [ref.id for ref in planned.pruned] == ["c1"]
            assert [ref.pruned async for ref in thread.history()] == [False, True, False, True]
            assert (found.threads, found.failures, seen) == (1, (), [(1, 1)])
            assert (await thread.erase(reason="x", dry_run=True)).entries == 7
            with pytest.raises(errors.Pruned):
                await thread.load("c0")
            with pytest.raises(errors.NotTrusted):
                await thread.erase(reason="x")

    asyncio.run(main())


def test_it_can_be_awaited() -> None:
    """`await` gives a store that is closed by hand, once or twice, or by `async with`."""

    async def main() -> None:
        store = await aio.open_store("memory:")
        await store.thread("t").save(1)
        await store.close()
        await store.close()
        async with await aio.open_store("memory:") as other:
            await other.thread("t").save(1)
        with pytest.raises(UsageError):
            await other.threads()

    asyncio.run(main())


def test_calls_take_effect_in_the_order_in_which_they_were_made() -> None:
    """A hundred saves at once on one thread are in the history in that order."""

    async def main() -> list[int]:
        async with aio.open_store("memory:") as store:
            saves = [store.thread("t").save(number) for number in range(100)]
            refs = await asyncio.gather(*saves)
            newest = (await store.thread("t").load()).state

            assert newest == 99
            return [ref.seq for ref in refs]

    assert asyncio.run(main()) == list(range(2, 102))


def test_a_load_sees_the_saves_that_were_made_before_it() -> None:
    """Loads and saves of one thread keep their order among each other."""

    async def main() -> list[Any]:
        async with aio.open_store("memory:") as store:
            thread = store.thread("t")
            calls: list[Any] = []
            for number in range(20):
                calls += [thread.save(number), thread.load()]
            return [loaded.state for loaded in (await asyncio.gather(*calls))[1::2]]

    assert asyncio.run(main()) == list(range(20))


def test_threads_run_beside_each_other() -> None:
    """A call that waits on one thread does not hold up another thread, or the loop."""
    release = threading.Event()

    async def main() -> None:
        def listen(event: Any) -> None:
            if event.code == "session-opened" and not release.is_set():
                assert release.wait(30)

        async with aio.open_store("memory:", on_event=listen) as store:
            waiting = asyncio.create_task(store.thread("slow").save(1))
            await asyncio.sleep(0.05)

            with pytest.raises(UnknownThread):
                await store.thread("quick").load()
            assert not waiting.done()
            release.set()
            assert (await waiting).seq == 2

    asyncio.run(main())


def test_the_same_name_gives_the_same_thread() -> None:
    """Order is kept however often a thread is asked for."""

    async def main() -> None:
        async with aio.open_store("memory:") as store:
            kept = store.thread("t")

            assert store.thread("t") is kept
            assert store.thread("u") is not kept
            with pytest.raises(errors.NameInvalid):
                store.thread("")

    asyncio.run(main())


def test_several_loops_share_a_store() -> None:
    """A store opened in one loop is used from others, one after the other and at once."""
    store = asyncio.run(_opened())
    seqs: list[int] = []
    failures: list[BaseException] = []

    async def some() -> None:
        refs = await asyncio.gather(*(store.thread("t").save(n) for n in range(10)))
        seqs.extend(ref.seq for ref in refs)

    def work() -> None:
        try:
            asyncio.run(some())
        except BaseException as failure:  # noqa: BLE001 - shown by the assertion
            failures.append(failure)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    asyncio.run(store.close())

    assert not failures
    assert sorted(seqs) == list(range(2, 42))


async def _opened() -> aio.AsyncStore:
    return await aio.open_store("memory:")


def test_errors_pass_through() -> None:
    """What the twin raises is raised where the call was awaited, and the next call works."""

    async def main() -> None:
        async with aio.open_store("memory:") as store:
            thread = store.thread("t")
            with pytest.raises(UnknownThread):
                await thread.load()
            with pytest.raises(TypeNotAllowed):
                await thread.save(object())
            with pytest.raises(UnknownThread):
                await anext(thread.history())
            results = await asyncio.gather(
                thread.save(1), thread.save(object()), thread.save(2), return_exceptions=True
            )

            assert isinstance(results[1], TypeNotAllowed)
            assert (await thread.load()).state == 2
        with pytest.raises(errors.UrlInvalid):
            await aio.open_store("nothing")
        with pytest.raises(errors.UrlInvalid):
            async with aio.open_store("nothing"):
                pass

    asyncio.run(main())


def test_history_comes_in_batches_and_in_order() -> None:
    """More refs than one batch holds come newest first; it may be left in the middle."""

    async def main() -> None:
        async with aio.open_store("memory:") as store:
            thread = store.thread("t")
            for number in range(150):
                await thread.save(number)
            seqs = [ref.seq async for ref in thread.history()]
            history = thread.history()
            first = await anext(history)
            await thread.save("later")
            rest = [ref.seq async for ref in history]

            assert seqs == list(range(151, 1, -1))
            assert [first.seq, *rest] == seqs

    asyncio.run(main())


def test_a_cancelled_call_leaves_the_thread_usable() -> None:
    """A call that has not begun is not made; one that has begun ends, and the order is kept."""
    release = threading.Event()
    held = threading.Event()

    async def main() -> list[Any]:
        def listen(event: Any) -> None:
            if event.code == "session-opened":
                held.set()
                assert release.wait(30)

        async with aio.open_store("memory:", on_event=listen) as store:
            thread = store.thread("t")
            begun = asyncio.create_task(thread.save("begun"))
            await asyncio.to_thread(held.wait, 30)
            waiting = asyncio.create_task(thread.save("never"))
            after = asyncio.create_task(thread.save("after"))
            await asyncio.sleep(0.01)
            begun.cancel()
            waiting.cancel()
            results = await asyncio.gather(begun, waiting, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in results)
            release.set()
            await after
            return [(await thread.load(ref)).state async for ref in thread.history()]

    assert asyncio.run(main()) == ["after", "begun"]


def test_close_waits_for_the_calls_under_way() -> None:
    """Whatever was asked for before close is done when it returns."""

    async def main() -> None:
        store = await aio.open_store("memory:")
        saves = [asyncio.create_task(store.thread(f"t{n}").save(n)) for n in range(20)]
        await asyncio.sleep(0)
        await store.close()
        done = await asyncio.gather(*saves, return_exceptions=True)

        assert [getattr(each, "seq", each) for each in done] == [2] * 20

    asyncio.run(main())


def test_a_closed_store_says_so() -> None:
    """Every use after close is an error of the caller."""

    async def main() -> None:
        store = await aio.open_store("memory:")
        thread = store.thread("t")
        await store.close()

        for call in (thread.save(1), thread.load(), store.threads(), store.verify()):
            with pytest.raises(UsageError, match="closed"):
                await call
        with pytest.raises(UsageError):
            store.thread("u")

    asyncio.run(main())


def test_two_stores_of_one_file_meet(tmp_path: Path) -> None:
    """The async twin of a store on disk loses and wins swaps like the store itself."""
    place = Place(tmp_path)
    place.init()

    async def main() -> None:
        options: dict[str, Any] = dict(place.directories)
        async with (
            aio.open_store(place.url, **options) as one,
            aio.open_store(place.url, **options) as two,
        ):
            await one.thread("t").save(1)
            await two.thread("t").save(2)
            with pytest.raises(errors.Superseded):
                await one.thread("t").save(3)

            assert (await one.thread("t").load()).state == 2

    asyncio.run(main())


def test_an_opening_that_is_cancelled_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store that was opened for a caller who has given up is closed again."""
    begun, release = threading.Event(), threading.Event()
    opened: list[api.Store] = []
    genuine = api.open_store

    def slow(url: str, **options: Any) -> api.Store:
        begun.set()
        assert release.wait(30)
        opened.append(genuine(url, **options))
        return opened[0]

    monkeypatch.setattr(api, "open_store", slow)

    async def main() -> None:
        opening = asyncio.ensure_future(_await(aio.open_store("memory:")))
        await asyncio.to_thread(begun.wait, 30)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        release.set()

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name.startswith("sealpoint"):
            thread.join(30)

    assert len(opened) == 1
    with pytest.raises(UsageError, match="closed"):
        opened[0].thread("t")


async def _await(opening: aio.Opening) -> aio.AsyncStore:
    return await opening


def test_the_calls_of_an_error_are_sealpoints_own() -> None:
    """Nothing of the machinery shows: every refusal is a SealpointError."""

    async def main() -> None:
        async with aio.open_store("memory:") as store:
            for call in (store.thread("t").load("nothing"), store.thread("t").load()):
                with pytest.raises(SealpointError):
                    await call

    asyncio.run(main())
