# SPDX-License-Identifier: Apache-2.0
"""Keys that expire: they write nothing more, and what nobody had seen of them is not believed."""

from datetime import timedelta

import pytest

from sealpoint.errors import KeyNotInForce, NotTrusted
from sealpoint.ledger import STORE_CHAIN
from sealpoint.signing import STOPPED, Role
from sealpoint.store import adopt_store_chain, adopt_thread, unanchored_threads
from tests.deployment import Deployment
from tests.ledgers import identity
from tests.unit.store.ended import add_key, end, expire

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


def _unseen(world: Deployment, name: str = "t") -> None:
    """The worker saves, and the anchor does not hear of it."""
    worker = world.open()
    worker.anchor.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        worker.thread(name).save("unseen")


def test_an_expired_key_saves_nothing(world: Deployment) -> None:
    """Up to the instant it does, in a process that was open all the time and in a new one."""
    expire(world, "worker", world.clock + _HOUR)
    store = world.open()
    store.thread("t").save(1)
    world.clock += _HOUR

    for opened, name in ((store, "t"), (store, "u"), (world.open(), "t")):
        with pytest.raises(
            KeyNotInForce, match=r"identity 'worker': its key .* expired at"
        ) as caught:
            opened.thread(name).save(2)
        assert "sealpoint keys rotate" in caught.value.hint
    assert store.thread("t").load().state == 1


def test_what_the_anchor_has_seen_stays_good(world: Deployment) -> None:
    """Expiry ends writing, not reading."""
    expire(world, "worker", world.clock + _HOUR)
    world.open().thread("t").save(1)
    world.clock += _DAY
    reader = world.open(None, read_only=True)

    assert reader.thread("t").load().state == 1
    assert [ref.seq for ref in reader.thread("t").history()] == [2]
    assert reader.verify().ok


def test_what_the_anchor_has_not_seen_is_refused(memory: Deployment) -> None:
    """It may have been written at any time since, whatever time it claims."""
    expire(memory, "worker", memory.clock + _HOUR)
    memory.open().thread("t").save(1)
    _unseen(memory)
    memory.clock += _HOUR
    reader = memory.open(None, read_only=True)

    with pytest.raises(NotTrusted, match="and the anchor has not seen the entry") as caught:
        reader.thread("t").load()
    assert "--expires" in caught.value.hint
    finding = next(found for found in reader.verify().findings if found.refuses)
    assert finding.code == "not-trusted"


def test_what_was_not_seen_is_seen_before_the_key_expires(memory: Deployment) -> None:
    """A look in time verifies it, and from then on the anchor vouches for it."""
    expire(memory, "worker", memory.clock + _HOUR)
    memory.open().thread("t").save(1)
    _unseen(memory)
    assert memory.open().thread("t").load().state == "unseen"
    memory.clock += _HOUR

    assert memory.open(None, read_only=True).thread("t").load().state == "unseen"


def test_the_root_may_move_an_expiry(memory: Deployment) -> None:
    """The newest roster decides: later, earlier, or never."""
    expire(memory, "worker", memory.clock + _HOUR)
    memory.open().thread("t").save(1)
    _unseen(memory)
    memory.clock += _HOUR
    store = memory.open()
    with pytest.raises(NotTrusted):
        store.thread("t").load()
    expire(memory, "worker", None)

    assert store.thread("t").load().state == "unseen"
    assert store.thread("t").save(2).seq == 6
    expire(memory, "worker", memory.clock)
    with pytest.raises(NotTrusted):
        store.thread("t").save(3)


def test_an_older_roster_does_not_revive_an_expired_key(memory: Deployment) -> None:
    """An entry that names a roster in which the key did not expire is refused all the same."""
    memory.open().thread("t").save(1)
    _unseen(memory)
    expire(memory, "worker", memory.clock + _HOUR)
    memory.clock += _HOUR

    with pytest.raises(NotTrusted, match="the anchor has not seen"):
        memory.open(None, read_only=True).thread("t").load()


def test_a_clock_that_was_set_back_revives_nothing(memory: Deployment) -> None:
    """Now is never before the newest verified time on the thread."""
    expire(memory, "worker", memory.clock + _DAY)
    memory.clock += _DAY - _HOUR / 2
    store = memory.open()
    store.thread("t").save(1)
    later = memory.clock
    expire(memory, "worker", later)
    memory.clock -= 10 * _DAY

    with pytest.raises(KeyNotInForce, match="expired at"):
        store.thread("t").save(2)


def test_an_entry_from_after_the_expiry_is_refused_by_its_own_time(memory: Deployment) -> None:
    """A reader whose clock is behind takes the later time that the entry itself claims."""
    expire(memory, "worker", memory.clock + _DAY)
    memory.open().thread("t").save(1)
    ahead = memory.open(now=lambda: memory.clock + _DAY - timedelta(seconds=30))
    ahead.anchor.fail(KeyboardInterrupt())
    ahead.thread("t").load()
    with pytest.raises(KeyboardInterrupt):
        ahead.thread("t").save(2)
    expire(memory, "worker", memory.clock + _HOUR)

    with pytest.raises(NotTrusted, match="the anchor has not seen"):
        memory.open(None, read_only=True).thread("t").load()


def test_a_cut_takes_the_place_of_an_expiry(memory: Deployment) -> None:
    """Once the root has said what counts, time does not matter any more."""
    expire(memory, "worker", memory.clock + _HOUR)
    memory.open().thread("t").save(1)
    _unseen(memory)
    end(memory, "worker", change=add_key("worker", "worker-2"))
    memory.clock += _DAY

    assert memory.open("worker-2").thread("t").load().state == "unseen"


def test_a_key_that_expires_soon_is_told_once_a_day(memory: Deployment) -> None:
    """From 30 days before, with a code and no names."""
    expire(memory, "worker", memory.clock + 32 * _DAY)
    store = memory.open()

    def told() -> int:
        return sum(event.code == "key-expires-soon" for event in memory.events)

    store.thread("t").save(1)
    assert told() == 0
    memory.clock += 3 * _DAY
    store.thread("t").save(2)
    store.thread("t").save(3)
    assert told() == 1
    memory.clock += _DAY
    store.thread("t").save(4)
    assert told() == 2
    event = next(event for event in memory.events if event.code == "key-expires-soon")
    assert (event.thread, event.seq, event.entry) == (STORE_CHAIN.hex(), 1, "")


def test_opening_a_store_tells_of_an_expiry(memory: Deployment) -> None:
    """Not only the first save does; who cannot write is told nothing."""
    expire(memory, "worker", memory.clock + _DAY)
    memory.open(None, read_only=True)
    memory.open(None)
    memory.open("operator")
    assert not memory.events
    memory.open()
    memory.clock += _DAY
    memory.open()
    expire(memory, "worker", memory.clock + 90 * _DAY)
    memory.open()

    assert [event.code for event in memory.events] == ["key-expires-soon", "key-expired"]


@pytest.mark.parametrize("late", [False, True])
def test_verify_remarks_on_keys_that_expire(memory: Deployment, *, late: bool) -> None:
    """Worth a look, and no reason to refuse anything."""
    memory.open().thread("t").save(1)
    expire(memory, "worker", memory.clock + 20 * _DAY)
    expire(memory, "operator", memory.clock + 90 * _DAY)
    memory.clock += 30 * _DAY if late else _DAY
    report = memory.open(None, read_only=True).verify()
    (finding,) = report.findings

    assert report.ok
    assert (finding.code, finding.refuses, finding.thread) == ("key-expiry", False, bytes(16).hex())
    assert ("expired at" if late else "expires at") in finding.message
    assert "'worker'" in finding.message


def test_verify_remarks_on_a_key_that_was_only_stopped(memory: Deployment) -> None:
    """An interrupted revocation is to be repeated."""
    expire(memory, "worker", STOPPED)
    (finding,) = memory.open(None, read_only=True).verify().findings

    assert (finding.code, finding.refuses) == ("key-expiry", False)
    assert "was stopped and has no cutoff yet" in finding.message


def test_an_expired_operator_adopts_nothing(memory: Deployment) -> None:
    """Neither the store chain nor a thread."""
    memory.open().thread("t").save(1)
    expire(memory, "operator", memory.clock + _HOUR)
    memory.clock += _HOUR
    memory.forget("t")
    core = memory.core("operator")
    thread = dict(unanchored_threads(core))["t"]

    with pytest.raises(KeyNotInForce, match=r"identity 'operator': its key .* expired at"):
        adopt_thread(core, "t", thread, "moved")
    memory.anchored._positions.clear()
    with pytest.raises(KeyNotInForce, match=r"identity 'operator': its key .* expired at"):
        adopt_store_chain(memory.core("operator"), "moved")


def test_adoption_does_not_launder_entries_of_an_expired_key(memory: Deployment) -> None:
    """Where nobody has seen them, nobody can say when they were written."""
    memory.enrol(identity("other", Role.OPERATOR))
    memory.open().thread("t").save(1)
    expire(memory, "worker", memory.clock + _HOUR)
    memory.clock += _HOUR
    memory.forget("t")
    core = memory.core("operator")
    thread = dict(unanchored_threads(core))["t"]

    with pytest.raises(NotTrusted, match="the anchor has not seen"):
        adopt_thread(core, "t", thread, "moved")
    expire(memory, "worker", None)
    assert adopt_thread(memory.core("operator"), "t", thread, "moved") == 3
