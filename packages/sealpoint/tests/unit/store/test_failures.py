# SPDX-License-Identifier: Apache-2.0
"""Backends that fail, before or after they took effect: nothing is lost, nothing is done twice."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from sealpoint.errors import (
    AnchorUnavailable,
    Edited,
    Forked,
    HeadMoved,
    SealpointError,
    StorageUnavailable,
    TypeNotAllowed,
    UsageError,
)
from tests.deployment import Deployment, Opened


def _states(world: Deployment) -> list[Any]:
    thread = world.open().thread("t")
    return [thread.load(ref).state for ref in thread.history()][::-1]


def _check_signed(store: Opened) -> None:
    """Of everything that this process signed, no two stand at one position.

    A second record for a position is signed only where the first one never came to stand.
    """
    by_place: dict[tuple[bytes, int], list[bytes]] = {}
    for thread, seq, header in store.storage.offered:
        by_place.setdefault((thread, seq), []).append(header)
    for (thread, seq), headers in by_place.items():
        found = store.storage.inner.read(thread, seq)
        if found is not None and found.header in headers:
            assert headers.index(found.header) == len(headers) - 1


# ---------------------------------------------------------------------- the anchor


def test_the_entry_stands_when_the_anchor_fails(world: Deployment) -> None:
    """The error carries the ref; the next load and the next save catch up."""
    store = world.open()
    thread = store.thread("t")
    thread.save(1)
    store.anchor.fail(AnchorUnavailable("anchor: expected it, found it gone"))
    with pytest.raises(AnchorUnavailable) as caught:
        thread.save(2)
    behind = world.position("t")
    assert behind is not None
    ref = caught.value.ref

    assert behind.seq == 2
    assert getattr(ref, "seq", None) == 3
    assert thread.load(ref).state == 2  # type: ignore[arg-type]
    caught_up = world.position("t")
    assert caught_up is not None
    assert caught_up.seq == 3
    assert thread.save(3).seq == 4
    assert store.storage.groups == [3, 1, 1]


def test_a_save_catches_up_as_well(world: Deployment) -> None:
    """The next save lets the anchor follow first; while it cannot, nothing more is written."""
    store = world.open()
    thread = store.thread("t")
    for number in range(3):
        store.anchor.fail(AnchorUnavailable("anchor: expected it, found it gone"))
        with pytest.raises(AnchorUnavailable):
            thread.save(number)
        store.anchor.fail(AnchorUnavailable("anchor: expected it, found it gone"))
        with pytest.raises(AnchorUnavailable) as caught:
            thread.save("not even tried")
        assert caught.value.ref is None
        thread.load()
    thread.save(3)

    assert _states(world) == [0, 1, 2, 3]
    assert store.storage.groups == [3, 1, 1, 1]
    _check_signed(store)


def test_the_first_save_keeps_its_ref_too(world: Deployment) -> None:
    """Genesis stands although the anchor has only reserved the name."""
    store = world.open()
    store.anchor.fail(AnchorUnavailable("anchor: expected it, found it gone"))
    with pytest.raises(AnchorUnavailable) as caught:
        store.thread("t").save(1)

    assert getattr(caught.value.ref, "seq", None) == 2
    assert world.open().thread("t").load().state == 1
    assert store.thread("t").save(2).seq == 3


def test_nothing_is_written_when_the_name_cannot_be_reserved(world: Deployment) -> None:
    """Without a slot there is no genesis, and the error has no ref."""
    store = world.open()

    def gone() -> None:
        raise AnchorUnavailable("anchor: expected it, found it gone")

    store.anchor.creating.before = gone
    with pytest.raises(AnchorUnavailable) as caught:
        store.thread("t").save(1)

    assert caught.value.ref is None
    assert store.storage.offered == []
    assert store.thread("t").save(1).seq == 2


def test_an_anchor_that_cannot_be_read_stops_everything(world: Deployment) -> None:
    """Not being able to look is never an answer."""
    store = world.open()
    store.thread("t").save(1)

    def gone() -> None:
        raise AnchorUnavailable("anchor: expected it, found it gone")

    for call in (store.thread("t").load, store.threads, store.verify):
        store.anchor.getting.before = gone
        with pytest.raises(AnchorUnavailable):
            call()
    assert store.thread("t").load().state == 1


def test_an_anchor_that_went_another_way_is_a_fork(memory: Deployment) -> None:
    """The anchor moves to an entry that the store does not have: that is said, and not retried."""
    store = memory.open()
    store.thread("t").save(1)
    position = memory.position("t")
    assert position is not None
    elsewhere = type(position)(position.thread, 0, 0, 3, b"e" * 32)
    store.anchor.advancing.before = lambda: memory.turn_anchor(memory.slot("t"), elsewhere)

    with pytest.raises(Forked):
        store.thread("t").save(2)
    for thread in (store.thread("t"), memory.open().thread("t")):
        with pytest.raises(Forked):
            thread.load()


# ---------------------------------------------------------------------- the storage

_ERRORS: list[Callable[[], BaseException]] = [
    lambda: StorageUnavailable("storage: expected it, found it gone"),
    KeyboardInterrupt,
    MemoryError,
]
_every_error = pytest.mark.parametrize("error", _ERRORS, ids=["unavailable", "interrupt", "memory"])


@_every_error
@pytest.mark.parametrize("saves_before", [0, 1, 3])
def test_a_failure_before_the_append_saves_nothing(
    world: Deployment, error: Callable[[], BaseException], saves_before: int
) -> None:
    """Nothing stands, and the next save goes on where the last one ended."""
    store = world.open()
    thread = store.thread("t")
    for number in range(saves_before):
        thread.save(number)
    store.storage.fail(error(), after=False)
    with pytest.raises(type(error())):
        thread.save("lost")
    thread.save("kept")

    assert _states(world) == [*range(saves_before), "kept"]
    assert world.open().threads().names == ("t",)
    _check_signed(store)


@_every_error
@pytest.mark.parametrize("saves_before", [0, 1, 3])
@pytest.mark.parametrize("loads", [False, True])
def test_a_failure_after_the_append_loses_nothing(
    world: Deployment,
    error: Callable[[], BaseException],
    saves_before: int,
    loads: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The entry stands, whatever the caller was told, and nobody is refused because of it."""
    store = world.open()
    thread = store.thread("t")
    for number in range(saves_before):
        thread.save(number)
    store.storage.fail(error(), after=True)
    # What the backend says is resolved by reading; whatever else is raised reaches the caller.
    expected = [] if isinstance(error(), StorageUnavailable) else [type(error())]
    with suppress(*expected):
        thread.save("unknown")
    if loads:
        assert thread.load().state == "unknown"
    thread.save("next")

    assert _states(world) == [*range(saves_before), "unknown", "next"]
    _check_signed(store)


def test_an_outcome_that_cannot_be_looked_up_is_looked_up_later(world: Deployment) -> None:
    """Append and read both fail: the caller is told, and the next save reads first."""
    store = world.open()
    thread = store.thread("t")
    thread.save(0)

    def gone() -> None:
        raise StorageUnavailable("storage: expected it, found it gone")

    store.storage.fail(StorageUnavailable("storage: expected it, found it gone"), after=True)
    store.storage.reading.before = gone
    with pytest.raises(StorageUnavailable):
        thread.save(1)
    store.storage.read_positions.clear()
    thread.save(2)

    assert (world.thread_id("t"), 3) in store.storage.read_positions
    assert _states(world) == [0, 1, 2]
    _check_signed(store)


@pytest.mark.parametrize("after", [False, True])
def test_a_prune_with_an_unknown_outcome_is_looked_up_before_the_next_save(
    world: Deployment,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Nothing else is signed for its position, whether it stood or not, and the session goes on."""
    store = world.open()
    thread = store.thread("t")
    for number in range(3):
        thread.save(number)

    def gone() -> None:
        raise StorageUnavailable("storage: expected it, found it gone")

    store.storage.fail(StorageUnavailable("storage: expected it, found it gone"), after=after)
    store.storage.reading.before = gone
    with pytest.raises(StorageUnavailable):
        thread.prune(keep_last=1)
    store.storage.reading.before = None
    thread.save(3)

    assert thread.load().state == 3
    _check_signed(store)


def test_somebody_else_wrote_while_the_outcome_was_unknown(world: Deployment) -> None:
    """The own entry never came to stand, another's did: that is HeadMoved and not a loss."""
    one, two = world.open(), world.open()
    one.thread("t").save(0)
    two.thread("t").load()

    def taken() -> None:
        two.thread("t").save("two")
        raise StorageUnavailable("storage: expected it, found it gone")

    one.storage.appending.before = taken
    with pytest.raises(StorageUnavailable):
        one.thread("t").save("one")
    with pytest.raises(SealpointError) as caught:
        one.thread("t").save("one")

    assert caught.value.code in {"superseded", HeadMoved.code}
    assert one.thread("t").load().state == "two"
    _check_signed(one)


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_first_save_of_an_id_is_repeated(
    world: Deployment,
    after: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Whether it stood or not, repeating it under its id gives one checkpoint."""
    store = world.open()
    store.storage.fail(KeyboardInterrupt(), after=after)
    with pytest.raises(KeyboardInterrupt):
        store.thread("t").save(1, id="x")
    ref = store.thread("t").save(1, id="x")

    assert ref.seq == 2
    assert _states(world) == [1]


def test_a_position_that_is_taken_by_nothing_is_damage(world: Deployment) -> None:
    """A storage that refuses an append and shows nothing there is not asked for ever."""
    store = world.open()
    store.thread("t").save(0)
    store.storage.fail(HeadMoved("entry 3: it is there already"), after=False)

    with pytest.raises(Edited, match="another entry was first, and does not have it"):
        store.thread("t").save(1)
    assert store.thread("t").load().state == 0


def test_a_storage_that_cannot_be_read_is_an_error(world: Deployment) -> None:
    """Reading failures reach the caller as they are, and a later call works."""
    store = world.open()
    refs = [store.thread("t").save(number) for number in range(3)]

    def gone() -> None:
        raise StorageUnavailable("storage: expected it, found it gone")

    store.storage.reading.before = gone
    with pytest.raises(StorageUnavailable):
        store.thread("t").load(refs[0])
    assert store.thread("t").load(refs[0]).state == 0


def test_a_state_that_cannot_be_saved_writes_nothing(world: Deployment) -> None:
    """Encoding comes before everything else."""
    store = world.open()

    with pytest.raises(TypeNotAllowed):
        store.thread("t").save({"x": object()})
    assert (store.storage.offered, store.anchor.writes) == ([], 0)
    assert store.thread("t").save(1).seq == 2


def test_metadata_beyond_the_bound_of_a_body_is_refused(world: Deployment) -> None:
    """A body that no reader would take is not written, and the handle goes on."""
    store = world.open()
    store.thread("t").save(0)

    with pytest.raises(SealpointError, match="1048576"):
        store.thread("t").save(1, metadata={"x": "y" * (1 << 20)})
    assert store.thread("t").save(2).seq == 3
    assert store.verify().ok


@pytest.mark.parametrize("name", ["load", "save", "history", "threads", "verify"])
def test_nothing_goes_on_after_close(world: Deployment, name: str) -> None:
    """Every call on a closed store is an error of the caller, and closing twice is none."""
    world_store = world.open()
    thread = world_store.thread("t")
    thread.save(1)
    world.memory.close()
    world.anchored.close()
    world_store.close()
    world_store.close()
    calls: dict[str, Callable[[], object]] = {
        "load": thread.load,
        "save": lambda: thread.save(2),
        "history": lambda: list(thread.history()),
        "threads": world_store.threads,
        "verify": world_store.verify,
    }

    with pytest.raises(UsageError, match="closed"):
        calls[name]()
    with pytest.raises(UsageError, match="is closed"):
        world_store.thread("t")


def test_a_with_block_closes(world: Deployment) -> None:
    """Leaving the block, also by an error, closes the store."""
    with world.open() as store:
        store.thread("t").save(1)
    with pytest.raises(UsageError):
        store.thread("t")

    with pytest.raises(ZeroDivisionError), world.open() as other:
        _ = 1 / 0
    with pytest.raises(UsageError):
        other.thread("t")
