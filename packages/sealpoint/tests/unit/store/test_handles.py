# SPDX-License-Identifier: Apache-2.0
"""One name, one handle; and handles that nobody uses are given up in time."""

import gc
import weakref

from tests.deployment import Deployment


def test_the_same_name_gives_the_same_handle(memory: Deployment) -> None:
    """A session has one owner within an open store."""
    store = memory.open()

    assert store.thread("t") is store.thread("t")
    assert store.thread("t") is not store.thread("u")
    assert store.thread("t") is not memory.open().thread("t")
    assert store.thread("t").name == "t"


def test_a_handle_that_somebody_holds_is_never_given_up(memory: Deployment) -> None:
    """However many others are used meanwhile, its session goes on."""
    store = memory.open()
    kept = store.thread("kept")
    kept.save(1)
    for number in range(400):
        store.thread(f"t{number}")

    assert store.thread("kept") is kept
    assert kept.save(2).seq == 3


def test_256_handles_are_kept(memory: Deployment) -> None:
    """The handles used last stay although nobody holds them; older ones go."""
    store = memory.open()
    handles = [weakref.ref(store.thread(f"t{number}")) for number in range(300)]
    store.thread("t44")
    gc.collect()
    alive = [number for number, handle in enumerate(handles) if handle() is not None]

    assert alive == [44, *range(45, 300)][:1] + list(range(45, 300))
    assert len(alive) == 256


def test_using_a_handle_keeps_it(memory: Deployment) -> None:
    """What is asked for again is not the next to go."""
    store = memory.open()
    first = weakref.ref(store.thread("first"))
    for number in range(200):
        store.thread(f"a{number}")
    store.thread("first")
    for number in range(200):
        store.thread(f"b{number}")
    gc.collect()

    assert first() is not None


def test_a_given_up_handle_opens_a_new_session(memory: Deployment) -> None:
    """Its thread goes on under a new fence, and nothing is lost."""
    store = memory.open()
    store.thread("t").save(1)
    for number in range(300):
        store.thread(f"t{number}")
    gc.collect()

    assert store.thread("t").save(2).seq == 4
    assert store.thread("t").load().state == 2


def test_close_gives_handles_up(memory: Deployment) -> None:
    """A closed store holds no thread."""
    store = memory.open()
    handle = weakref.ref(store.thread("t"))
    store.close()
    gc.collect()

    assert handle() is None
