# SPDX-License-Identifier: Apache-2.0
"""Two that go on at once, and what is written twice; clocks."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from sealpoint.errors import (
    Forked,
    IdReused,
    Misplaced,
    NeedsApproval,
    RequestClosed,
    ResumeRefused,
    RolledBack,
    Superseded,
)
from sealpoint.gate import Thread
from sealpoint.ledger import CheckpointBody, ExpiryBody, Kind, parse_header
from sealpoint.signing import Role
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT, identity
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL

_WORDS_MAX = 10

# ---------------------------------------------------------------------- 36


def test_two_processes_do_not_both_go_on(attacked: AttackedTeam) -> None:
    """One grant, two processes at the same position: one is released."""
    attacked.waiting("ann", "bob")
    attacked.sound()
    first = attacked.world.open("worker", gated=True)
    second = attacked.world.open("worker", gated=True)
    released: list[Any] = []
    first.storage.appending.before = lambda: released.append(second.thread("t").resume(world=SHELL))

    assert attacked.ending(lambda: first.thread("t").resume(world=SHELL)) is NeedsApproval
    assert len(released) == 1
    assert second.thread("t").save({"n": 3}).seq == len(attacked.kinds()) - 1


def test_two_copies_of_a_store_do_not_both_go_on(attacked: AttackedTeam) -> None:
    """Each process has its own copy, and they share an anchor: the second is refused."""
    attacked.waiting("ann", "bob")
    put_back = attacked.editor.copied()
    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}
    attacked.world.close()
    with attacked.landing():
        attacked.world.close()
        put_back()
    assert attacked.resumed() is RolledBack
    attacked.world.close()
    rows = attacked.rows()
    # Even by the key itself, whose entry is another one than the anchor has seen.
    fork = attacked.forged(
        Kind.RESUME,
        b'{"salt":"' + attacked.salt.encode() + b'","owner":"worker","basis":3}',
        "worker",
    )
    attacked.put({len(rows): fork})

    assert attacked.resumed() is Forked


def test_a_late_write_of_an_ended_session_is_refused(attacked: AttackedTeam) -> None:
    """By the library, and by every reader of what it left in the store."""
    attacked.waiting("ann", "bob")
    attacked.pool("pods", "worker", "spare")
    late = attacked.rows()
    attacked.fresh().resume(world=SHELL)
    assert attacked.ending(lambda: attacked.thread().save("late", world=READ)) is Superseded
    body = attacked.body(attacked.find(Kind.CHECKPOINT))
    with attacked.landing():
        fence = parse_header(late[len(late) - 1].header).fence
        attacked.append(attacked.forged(Kind.CHECKPOINT, body, "worker", fence=fence))

    assert attacked.resumed().code == "not-trusted"


# ---------------------------------------------------------------------- 37


def test_an_entry_is_not_appended_twice(attacked: AttackedTeam) -> None:
    """The genuine rows of a resume, a request and an approval, each once more."""
    attacked.waiting("ann", "bob")
    attacked.fresh().resume(world=SHELL)
    rows = attacked.rows()
    for kind in (Kind.RESUME, Kind.REQUEST, Kind.APPROVAL, Kind.CHECKPOINT):
        with attacked.landing():
            attacked.append(rows[attacked.find(kind)])
        assert attacked.resumed() is Misplaced
        attacked.editor.put_rows(attacked.world.thread_id("t"), rows)

    attacked.sound()


def test_an_id_is_not_used_for_another_state(attacked: AttackedTeam) -> None:
    """A repetition returns what is there, anything else under its id is refused."""
    ref = attacked.thread().save({"n": 1}, id="one", world=READ, question="pay?")
    attacked.sound()

    assert attacked.thread().save({"n": 1}, id="one", world=READ, question="pay?") == ref
    others: list[tuple[Any, dict[str, Any]]] = [
        ({"n": 2}, {"world": READ, "question": "pay?"}),
        ({"n": 1}, {"world": READ, "question": "pay more?"}),
        ({"n": 1}, {"world": {"permissions": []}, "question": "pay?"}),
        ({"n": 1}, {"world": READ}),
    ]
    for state, options in others:
        save = partial(attacked.thread().save, state, id="one", **options)
        assert attacked.ending(save) is IdReused


# ---------------------------------------------------------------------- 52


def test_a_clock_turned_back_revives_no_approval(attacked: AttackedTeam) -> None:
    """The time of the thread counts, and it cannot be taken out of the thread."""
    request = attacked.waiting("ann")
    start = attacked.world.clock
    attacked.later(hours=2)
    carl = attacked.store("carl")
    assert attacked.ending(lambda: carl.approve(request.id, reason="fine")) is RequestClosed
    attacked.world.clock = start
    assert attacked.ending(lambda: carl.approve(request.id, reason="fine")) is RequestClosed
    with attacked.landing():
        attacked.truncate(attacked.find(Kind.EXPIRY))

    assert attacked.resumed() is RolledBack


def test_a_clock_turned_back_spends_no_expired_grant(attacked: AttackedTeam) -> None:
    """Somebody has written since the expiry, so it is later than that."""
    request = attacked.waiting("ann", "bob")
    start = attacked.world.clock
    attacked.later(hours=2)
    attacked.thread("operator").pause("late")
    attacked.thread("operator").unpause("still late")
    attacked.world.clock = start
    attacked.sound()
    attacked.world.clock = start

    assert attacked.resumed() is NeedsApproval
    assert attacked.newest(Kind.REQUEST).statement.digest != request.id


def _ahead_and_back(attacked: AttackedTeam) -> None:
    """An operator's clock was far ahead; a member's save, by other code, has the right time."""
    attacked.shared("worker", "spare")
    attacked.fresh("spare").resume(world=READ)
    start = attacked.world.clock
    attacked.later(days=30)
    attacked.thread("operator").pause("a look")
    attacked.thread("operator").unpause("fine")
    attacked.world.clock = start
    rogue, payload = Rogue(attacked.store("spare").core, "spare"), b"\x81\xa1n\x02"
    world, root = World.from_dict(READ).digest, hashlib.sha256(payload).hexdigest()
    body = CheckpointBody(salt=attacked.salt, id="c2", root=root, world=world)
    rogue.write(Kind.CHECKPOINT, body, payload, at=start)


def test_a_clock_that_was_ahead_once_expires_no_later_approval(attacked: AttackedTeam) -> None:
    """The time of the thread is what its newest checkpoint says, for an audit as for the gate."""
    _ahead_and_back(attacked)
    attacked.approve(attacked.ask())
    handle = attacked.fresh()
    assert handle.resume(world=SHELL).state == {"n": 2}
    handle.save({"n": 3}, world=SHELL)

    findings = attacked.world.open(None, read_only=True).verify().findings
    assert {each.code for each in findings} == {"time"}
    assert attacked.fresh("spare").resume(world=SHELL).state == {"n": 3}


def test_a_clock_that_was_ahead_once_makes_no_checkpoint_old(attacked: AttackedTeam) -> None:
    """An ordinary continuation within the age that the policy allows stays one."""
    _ahead_and_back(attacked)
    attacked.fresh().resume(world=READ)

    assert attacked.newest(Kind.RESUME).rules == ()
    findings = attacked.world.open(None, read_only=True).verify().findings
    assert {each.code for each in findings} == {"time"}


def test_an_expiry_before_its_time_ends_nothing(attacked: AttackedTeam) -> None:
    """The other way: anybody may write that something expired; the time decides."""
    request = attacked.waiting("ann", "bob")
    with attacked.landing():
        attacked.slip(Kind.EXPIRY, ExpiryBody(salt=attacked.salt, request=request.id), "officer")

    assert attacked.fresh().resume(world=SHELL).state == {"n": 2}


def _word(attacked: AttackedTeam) -> Rogue:
    """An auditor with other code, who writes words about no request."""
    attacked.world.enrol(identity("reader", Role.AUDITOR))
    return Rogue(attacked.store("reader").core, "reader")


def _write_word(rogue: Rogue) -> None:
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request="00" * 32))


@contextmanager
def _busy(attacked: AttackedTeam, thread: Thread) -> Iterator[None]:
    """An auditor appends before each attempt of a process that does not hold the place."""
    rogue = _word(attacked)
    words = 0
    storage, held = thread._state.core.storage, False
    append, alone = storage.append, storage.alone

    @contextmanager
    def hold(name: bytes) -> Iterator[None]:
        nonlocal held
        with alone(name):
            held = True
            yield

    def first(*given: Any, **named: Any) -> None:
        nonlocal words
        if not held:
            words += 1
            assert words < _WORDS_MAX, "the place is never held"
            _write_word(rogue)
        append(*given, **named)

    with patch.object(storage, "append", first), patch.object(storage, "alone", hold):
        yield
    assert held


def test_a_save_gets_its_turn_beside_someone_who_writes_all_the_time(
    attacked: AttackedTeam,
) -> None:
    """Its second attempt holds the place."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    thread = attacked.fresh()
    thread.resume(world=READ)
    with _busy(attacked, thread):
        thread.save({"n": 2}, id="c2")

    assert attacked.fresh().load().state == {"n": 2}


@pytest.mark.parametrize("how", ["resume", "begin", "resume with approval", "ask", "handoff"])
def test_whoever_goes_on_gets_a_turn_beside_someone_who_writes_all_the_time(
    attacked: AttackedTeam, how: str
) -> None:
    """A resume and a run begin, people are asked, and a thread is given away."""
    attacked.granted()
    thread, head = attacked.fresh(), len(attacked.rows())
    with _busy(attacked, thread):
        if how == "resume":
            assert thread.resume(world=READ).state == {"n": 2}
        elif how == "begin":
            thread.adapter.begin(world=World.from_dict(READ), token="run")  # noqa: S106
            thread.adapter.end("run")
        elif how == "resume with approval":
            assert thread.resume(world=SHELL).state == {"n": 2}
        elif how == "ask":
            assert attacked.ending(lambda: thread.resume(world=READ, answer=1)) is NeedsApproval
        else:
            thread.handoff(to="spare", reason="on leave")

    kinds = attacked.kinds()[head:]
    last = {"ask": Kind.REQUEST, "handoff": Kind.HANDOFF}.get(how, Kind.RESUME)
    assert kinds[-1] == last
    assert set(kinds[:-1]) == {Kind.EXPIRY}
    assert len(kinds) < 5


def test_a_pause_that_comes_before_a_held_place_is_obeyed(attacked: AttackedTeam) -> None:
    """What was decided before is decided once more there: nothing that came meanwhile is missed."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    thread, operator = attacked.fresh(), attacked.fresh("operator")
    storage = thread._state.core.storage
    with _busy(attacked, thread):
        hold = storage.alone

        @contextmanager
        def both(name: bytes) -> Iterator[None]:
            operator.pause("stop")
            with hold(name):
                yield

        with patch.object(storage, "alone", both):
            assert attacked.ending(lambda: thread.resume(world=READ)) is ResumeRefused
    assert Kind.RESUME not in attacked.kinds()[-2:]


def test_an_anchor_that_is_ahead_at_each_look_is_not_followed_for_ever(
    attacked: AttackedTeam,
) -> None:
    """A load ends with what was the newest when it began, however fast a member writes."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    rogue, thread = _word(attacked), attacked.fresh()
    thread.load()
    _write_word(rogue)
    anchor, rounds = thread._state.core.anchor, 0
    advance = anchor.advance

    def ahead(*given: Any) -> Any:
        nonlocal rounds
        rounds += 1
        assert rounds < 10
        _write_word(rogue)
        with patch.object(anchor, "advance", advance):
            rogue.anchor()
        _write_word(rogue)
        return advance(*given)

    with patch.object(anchor, "advance", ahead):
        state = thread.load().state

    assert state == {"n": 1}
    assert rounds
