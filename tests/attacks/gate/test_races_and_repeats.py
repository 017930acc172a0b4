# SPDX-License-Identifier: Apache-2.0
"""Two that go on at once, and what is written twice; clocks."""

from functools import partial
from typing import Any

from sealpoint.errors import (
    Forked,
    IdReused,
    Misplaced,
    NeedsApproval,
    RequestClosed,
    RolledBack,
    Superseded,
)
from sealpoint.ledger import ExpiryBody, Kind, parse_header
from tests.attacks.gate.raid import Raid
from tests.unit.gate.team import READ, SHELL

# ---------------------------------------------------------------------- 36


def test_two_processes_do_not_both_go_on(raid: Raid) -> None:
    """One grant, two processes at the same position: one is released."""
    raid.waiting("ann", "bob")
    raid.sound()
    first = raid.world.open("worker", gated=True)
    second = raid.world.open("worker", gated=True)
    released: list[Any] = []
    first.storage.appending.before = lambda: released.append(second.thread("t").resume(world=SHELL))

    assert raid.ending(lambda: first.thread("t").resume(world=SHELL)) is NeedsApproval
    assert len(released) == 1
    assert second.thread("t").save({"n": 3}).seq == len(raid.kinds()) - 1


def test_two_copies_of_a_store_do_not_both_go_on(raid: Raid) -> None:
    """Each process has its own copy, and they share an anchor: the second is refused."""
    raid.waiting("ann", "bob")
    put_back = raid.burglar.copied()
    assert raid.fresh().resume(world=SHELL).state == {"n": 2}
    raid.world.close()
    with raid.landing():
        raid.world.close()
        put_back()
    assert raid.resumed() is RolledBack
    raid.world.close()
    rows = raid.rows()
    # Even by the key itself, whose entry is another one than the anchor has seen.
    fork = raid.forged(
        Kind.RESUME,
        b'{"salt":"' + raid.salt.encode() + b'","owner":"worker","basis":3}',
        "worker",
    )
    raid.put({len(rows): fork})

    assert raid.resumed() is Forked


def test_a_late_write_of_an_ended_session_is_refused(raid: Raid) -> None:
    """By the library, and by every reader of what it left in the store."""
    raid.waiting("ann", "bob")
    raid.pool("pods", "worker", "spare")
    late = raid.rows()
    raid.fresh().resume(world=SHELL)
    assert raid.ending(lambda: raid.thread().save("late", world=READ)) is Superseded
    body = raid.body(raid.find(Kind.CHECKPOINT))
    with raid.landing():
        fence = parse_header(late[len(late) - 1].header).fence
        raid.append(raid.forged(Kind.CHECKPOINT, body, "worker", fence=fence))

    assert raid.resumed().code == "not-trusted"


# ---------------------------------------------------------------------- 37


def test_an_entry_is_not_appended_twice(raid: Raid) -> None:
    """The genuine rows of a resume, a request and an approval, each once more."""
    raid.waiting("ann", "bob")
    raid.fresh().resume(world=SHELL)
    rows = raid.rows()
    for kind in (Kind.RESUME, Kind.REQUEST, Kind.APPROVAL, Kind.CHECKPOINT):
        with raid.landing():
            raid.append(rows[raid.find(kind)])
        assert raid.resumed() is Misplaced
        raid.burglar.put_rows(raid.world.thread_id("t"), rows)

    raid.sound()


def test_an_id_is_not_used_for_another_state(raid: Raid) -> None:
    """A repetition returns what is there, anything else under its id is refused."""
    ref = raid.thread().save({"n": 1}, id="one", world=READ, question="pay?")
    raid.sound()

    assert raid.thread().save({"n": 1}, id="one", world=READ, question="pay?") == ref
    others: list[tuple[Any, dict[str, Any]]] = [
        ({"n": 2}, {"world": READ, "question": "pay?"}),
        ({"n": 1}, {"world": READ, "question": "pay more?"}),
        ({"n": 1}, {"world": {"permissions": []}, "question": "pay?"}),
        ({"n": 1}, {"world": READ}),
    ]
    for state, options in others:
        save = partial(raid.thread().save, state, id="one", **options)
        assert raid.ending(save) is IdReused


# ---------------------------------------------------------------------- 52


def test_a_clock_turned_back_revives_no_approval(raid: Raid) -> None:
    """The time of the thread counts, and it cannot be taken out of the thread."""
    request = raid.waiting("ann")
    start = raid.world.clock
    raid.later(hours=2)
    carl = raid.store("carl")
    assert raid.ending(lambda: carl.approve(request.id, reason="fine")) is RequestClosed
    raid.world.clock = start
    assert raid.ending(lambda: carl.approve(request.id, reason="fine")) is RequestClosed
    with raid.landing():
        raid.truncate(raid.find(Kind.EXPIRY))

    assert raid.resumed() is RolledBack


def test_a_clock_turned_back_spends_no_expired_grant(raid: Raid) -> None:
    """Somebody has written since the expiry, so it is later than that."""
    request = raid.waiting("ann", "bob")
    start = raid.world.clock
    raid.later(hours=2)
    raid.thread("operator").pause("late")
    raid.thread("operator").unpause("still late")
    raid.world.clock = start
    raid.sound()
    raid.world.clock = start

    assert raid.resumed() is NeedsApproval
    assert raid.newest(Kind.REQUEST).statement.digest != request.id


def test_an_expiry_before_its_time_ends_nothing(raid: Raid) -> None:
    """The other way: anybody may write that something expired; the time decides."""
    request = raid.waiting("ann", "bob")
    with raid.landing():
        raid.slip(Kind.EXPIRY, ExpiryBody(salt=raid.salt, request=request.id), "officer")

    assert raid.fresh().resume(world=SHELL).state == {"n": 2}
