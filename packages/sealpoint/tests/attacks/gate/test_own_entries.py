# SPDX-License-Identifier: Apache-2.0
"""What a handle has written itself, when the anchor does not follow at once.

An entry stands as soon as the store has it. The step of the anchor that comes after may fail, or
meet what somebody else wrote meanwhile: in any case the handle has to know what a new process
knows, or it reads, releases and signs what is no longer true. Each case has its honest twin, in
which the same things happen one after the other.
"""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.errors import AnchorUnavailable, Erased, NeedsApproval
from sealpoint.gate import Thread
from sealpoint.signing import Role
from sealpoint.store import Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.deployment import Opened
from tests.ledgers import identity
from tests.unit.gate.team import READ
from tests.unit.store.laned import ids, put, results, saved

_WORLD = World.of(READ)


def _warm(attacked: AttackedTeam, who: str = "worker") -> tuple[Opened, Thread]:
    """The process of somebody that has saved three times and knows where everything lies."""
    store = attacked.world.open(who, gated=True)
    thread = store.thread("t")
    saved(thread, put({"n": 1}, "1", world=_WORLD), put({"n": 2}, "2"), put({"n": 3}, "3"))
    thread.load()
    thread.adapter.snapshot()
    assert ids(thread) == ["3", "2", "1"]
    return store, thread


def _knows_all(attacked: AttackedTeam, thread: Thread) -> None:
    """A handle says what a new process says, and the store verifies."""
    cold = attacked.fresh()
    assert thread.release() == cold.release()
    assert thread.load().state == cold.load().state
    mine, theirs = thread.adapter.snapshot(), cold.adapter.snapshot()
    assert mine is not None
    assert theirs is not None
    assert (mine.state, mine.results) == (theirs.state, theirs.results)
    assert ids(thread, None) == ids(cold, None)
    attacked.check_sound()


# ---------------------------------------------------------------------- others come in between

Write = Callable[[Thread], Any]
_WRITES: dict[str, Write] = {
    "results": lambda thread: saved(thread, results("mine", "3", "task")),
    "a checkpoint": lambda thread: saved(thread, put({"n": "mine"}, "4", world=_WORLD)),
    "a prune": lambda thread: thread.prune(keep_last=2, compact=False),
}
_OTHERS: dict[str, Write] = {
    "results": lambda thread: saved(thread, results("theirs", "3", "another")),
    "the same name": lambda thread: saved(thread, put({"n": "theirs"}, "4")),
    "a lane": lambda thread: saved(thread, put({"sub": 1}, "s", "sub")),
    "a delete": lambda thread: thread.adapter.delete([Key("", "3")]),
}


@pytest.mark.parametrize("write", _WRITES.values(), ids=_WRITES)
@pytest.mark.parametrize("other", _OTHERS.values(), ids=_OTHERS)
@pytest.mark.parametrize("overtaken", [True, False], ids=["overtaken", "one after the other"])
def test_what_others_write_meanwhile_is_newer_than_what_this_handle_wrote(
    attacked: AttackedTeam, write: Write, other: Write, *, overtaken: bool
) -> None:
    """Whether others come before or after the anchor's step, all read the same order."""
    store, thread = _warm(attacked)

    def meanwhile() -> None:
        fresh = attacked.fresh()
        fresh.resume(world=READ)
        other(fresh)

    if overtaken:
        store.anchor.advancing.before = meanwhile
    write(thread)
    if not overtaken:
        meanwhile()

    _knows_all(attacked, thread)


# ---------------------------------------------------------------------- the anchor fails


@pytest.mark.parametrize("fails", [True, False], ids=["the anchor fails", "it follows"])
def test_what_was_deleted_is_not_resumed_by_who_deleted_it(
    attacked: AttackedTeam, *, fails: bool
) -> None:
    """The entry of a delete stands although its call failed: the handle goes by it."""
    store, thread = _warm(attacked)
    if fails:
        store.anchor.fail(AnchorUnavailable("down"))
        with pytest.raises(AnchorUnavailable):
            thread.adapter.delete([Key("", "3")])
    else:
        thread.adapter.delete([Key("", "3")])

    assert thread.load().state == {"n": 2}
    assert attacked.ending(lambda: thread.resume(world=READ)) is NeedsApproval
    _knows_all(attacked, thread)


@pytest.mark.parametrize("fails", [True, False], ids=["the anchor fails", "it follows"])
def test_what_was_deleted_is_not_counted_on_by_the_next_save(
    attacked: AttackedTeam, *, fails: bool
) -> None:
    """No blob of it is left out of the next state: after `gc` that one can still be read."""
    store = attacked.world.open("worker", gated=True)
    thread = store.thread("t")
    history = [f"message {number} " + "x" * 200 for number in range(200)]
    saved(thread, put({"history": history[:5]}, "1", world=_WORLD))
    saved(thread, put({"history": history}, "2"))
    if fails:
        store.anchor.fail(AnchorUnavailable("down"))
        with pytest.raises(AnchorUnavailable):
            thread.adapter.delete([Key("", "2")])
    else:
        thread.adapter.delete([Key("", "2")])
    thread.save({"history": [*history, "last"]}, id="3", world=READ)
    attacked.world.open("operator", gated=True).gc()

    assert ids(attacked.fresh()) == ["3", "1"]
    assert attacked.fresh().load().state == {"history": [*history, "last"]}
    attacked.check_sound()


@pytest.mark.parametrize("fails", [True, False], ids=["the anchor fails", "it follows"])
def test_a_prune_is_named_by_the_next_save(attacked: AttackedTeam, *, fails: bool) -> None:
    """Whoever goes by the newest checkpoint learns what was given up before it."""
    store, thread = _warm(attacked)
    if fails:
        store.anchor.fail(AnchorUnavailable("down"))
        with pytest.raises(AnchorUnavailable):
            thread.prune(keep_last=1, compact=False)
    else:
        thread.prune(keep_last=1, compact=False)
    thread.save({"n": 4}, id="4", world=READ)

    assert ids(attacked.fresh()) == ["4", "3"]
    _knows_all(attacked, thread)


@pytest.mark.parametrize("fails", [True, False], ids=["the anchor fails", "it follows"])
def test_a_new_generation_knows_nothing_of_what_was_erased(
    attacked: AttackedTeam, *, fails: bool
) -> None:
    """It replaces no checkpoint and names no prune of the generation before."""
    attacked.world.enrol(identity("both", Role.WRITER, Role.PRIVACY))
    store, thread = _warm(attacked, "both")
    thread.prune(keep_last=2, compact=False)
    if fails:
        store.anchor.fail(AnchorUnavailable("down"))
        with pytest.raises(AnchorUnavailable):
            thread.erase(reason="as was asked for")
    else:
        thread.erase(reason="as was asked for")
    assert attacked.ending(thread.load) is Erased
    saved(thread, put({"n": "new"}, "2", world=_WORLD))
    body = attacked.body(max(attacked.rows()))

    assert (body.prune, body.again) == (None, None)
    assert ids(thread, None) == ["2"]
    _knows_all(attacked, thread)


def test_a_save_whose_anchor_failed_is_in_the_list_of_its_handle(attacked: AttackedTeam) -> None:
    """The next save goes on from it, under its own session."""
    store, thread = _warm(attacked)
    store.anchor.fail(AnchorUnavailable("down"))
    (failed,) = thread.adapter.commit([put({"n": 4}, "4")])
    assert isinstance(failed, AnchorUnavailable)

    assert ids(thread) == ["4", "3", "2", "1"]
    saved(thread, put({"n": "other"}, "4"), put({"n": 5}, "5"))
    assert ids(thread) == ["5", "4", "3", "2", "1"]
    _knows_all(attacked, thread)
