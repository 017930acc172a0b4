# SPDX-License-Identifier: Apache-2.0
"""What an open store remembers of states stays inside one budget, over all its threads."""

import gc
import threading

from sealpoint.codec import TreeMemo
from sealpoint.limits import STATE_MEMORY_BYTES_MAX
from sealpoint.store._blobs import BlobCache
from sealpoint.store._state_cache import StateMemory
from tests.deployment import Deployment

_MIB = 1024 * 1024


def _used(memory: StateMemory, size_bytes: int, number: int = 0) -> BlobCache:
    cache = BlobCache(memory)
    _use(cache, size_bytes, number)
    return cache


def _use(cache: BlobCache, size_bytes: int, number: int = 0) -> None:
    name = number.to_bytes(32, "big")
    cache.remember({name}, {name: bytes(size_bytes)})


def test_the_least_recently_used_goes_first() -> None:
    """Whatever is used again is young again, and what it may leave out is known in any case."""
    memory = StateMemory(4 * _MIB)
    first, second, third = (_used(memory, _MIB, number) for number in range(3))
    _use(first, _MIB)
    fourth = _used(memory, _MIB, 4)

    assert not second.seen
    assert second.known
    assert first.seen
    assert third.seen
    assert fourth.seen


def test_a_state_that_is_larger_than_the_budget_is_not_remembered() -> None:
    """And takes nothing of what others need afterwards."""
    memory = StateMemory(4 * _MIB)
    large = _used(memory, 5 * _MIB)
    small = [_used(memory, _MIB // 2, number) for number in range(7)]

    assert not large.seen
    assert all(each.seen for each in small)


def test_what_nobody_holds_any_more_makes_room() -> None:
    """A handle that is gone takes no memory, and nobody else's place for long."""
    memory = StateMemory(2 * _MIB)
    for number in range(100):
        _used(memory, _MIB, number)
    gc.collect()
    last = [_used(memory, _MIB // 2, number) for number in range(3)]

    assert all(each.seen for each in last)


def test_a_memo_counts_and_goes_with_the_rest() -> None:
    """What the codec keeps of an encoding is inside of the same budget."""
    memory = StateMemory(_MIB)
    cache = BlobCache(memory)
    memo = cache.memo
    memo.begin()
    memo.has_room(_MIB // 2)
    memo.end()
    cache.remember(set(), {})
    assert cache.memo is memo
    assert cache.size_bytes > _MIB // 2
    _used(memory, _MIB, 1)

    assert cache.memo is not memo
    assert isinstance(cache.memo, TreeMemo)


def test_os_threads_use_it_at_the_same_time() -> None:
    """The sum is right afterwards: all that fits is still there, and what does not is gone."""
    memory = StateMemory(8 * _MIB)
    caches = [BlobCache(memory) for _ in range(32)]

    def work(mine: list[BlobCache]) -> None:
        for turn in range(50):
            for number, cache in enumerate(mine):
                _use(cache, (turn + number) % 7 * _MIB // 8, number)

    running = [threading.Thread(target=work, args=(caches[start::8],)) for start in range(8)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    for cache in caches:
        _use(cache, _MIB // 8)

    assert sum(cache.size_bytes for cache in caches if cache.seen) <= 8 * _MIB
    assert all(cache.seen for cache in caches)


def test_a_store_with_many_threads_stays_inside_of_the_budget(memory: Deployment) -> None:
    """However many threads are open, and what it let go of is loaded all the same."""
    store = memory.open()
    store.core.memory = StateMemory(_MIB)
    state = {"log": [{"text": f"{number} " * 100} for number in range(1000)]}
    threads = [store.thread(f"t-{number}") for number in range(12)]
    for thread in threads:
        thread.save(state)
    held = [thread._state.caches.of("").size_bytes for thread in threads]

    assert sum(held) <= _MIB + 512 * len(threads)
    assert held[-1] > 512
    assert threads[0].load().state == state
    assert STATE_MEMORY_BYTES_MAX == 64 * _MIB
