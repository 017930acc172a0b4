# SPDX-License-Identifier: Apache-2.0
"""A member with other code makes the book of rollouts unreadable.

It stops no thread: people are asked as if nobody had proposed anything. An accepted restore brings
the book back, or lets it begin again.
"""

from collections.abc import Callable

import msgspec
import pytest

from sealpoint.errors import NeedsApproval, NotTrusted, SealpointError
from sealpoint.ledger import ROLLOUTS, ExpiryBody, Kind
from sealpoint.limits import REQUEST_ANSWERS_MAX
from sealpoint.storage import Record
from sealpoint.store import thread_slot
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT
from tests.rogue import Rogue
from tests.unit.gate.team import NARROW, READ, SHELL
from tests.unit.store.backup import accepted, planned


def _erased(attacked: AttackedTeam, *, dropped: bool) -> None:
    rogue = Rogue(attacked.store("officer").core, "officer", ROLLOUTS)
    at = rogue.erase()
    rogue.anchor()
    if dropped:
        rows = attacked.editor.rows(rogue.thread)
        gone = {seq: Record(row.header, row.seals, None) for seq, row in rows.items() if seq < at}
        attacked.editor.put_rows(rogue.thread, rows | gone)


def _false_mark(attacked: AttackedTeam) -> None:
    rogue = Rogue(attacked.store("ann").core, "ann", ROLLOUTS)
    rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request="0" * 64), gen=5)
    rogue.anchor()


_ATTACKS: dict[str, Callable[[AttackedTeam], None]] = {
    "erased": lambda attacked: _erased(attacked, dropped=False),
    "erased and its name dropped": lambda attacked: _erased(attacked, dropped=True),
    "a false mark": _false_mark,
}


@pytest.fixture
def rolled_out(attacked: AttackedTeam) -> AttackedTeam:
    """A thread that continued in a wider world by a rollout."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    rollout = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="r")
    attacked.approve(rollout)
    attacked.fresh().resume(world=SHELL)
    attacked.fresh().save({"n": 2}, id="c2", world=SHELL)
    return attacked


@pytest.mark.parametrize("attack", _ATTACKS)
def test_a_thread_continues_in_its_own_world(rolled_out: AttackedTeam, attack: str) -> None:
    """Also one that came to it by a rollout of the book that nobody can read now."""
    _ATTACKS[attack](rolled_out)

    assert rolled_out.fresh().resume(world=SHELL).state == {"n": 2}
    assert rolled_out.fresh().save({"n": 3}, id="c3", world=SHELL).id == "c3"
    with pytest.raises(SealpointError):
        rolled_out.world.open("operator", gated=True).rollouts.list()


@pytest.mark.parametrize("attack", _ATTACKS)
def test_people_are_asked_where_a_rollout_would_be_needed(
    rolled_out: AttackedTeam, attack: str
) -> None:
    """No rollout of an unreadable book lets anything pass."""
    rolled_out.thread(name="u").save({"n": 1}, world=READ)
    _ATTACKS[attack](rolled_out)

    with pytest.raises(NeedsApproval):
        rolled_out.fresh(name="u").resume(world=SHELL)


def test_a_session_of_another_person_by_an_unreadable_book_is_not_believed(
    attacked: AttackedTeam,
) -> None:
    """Nobody can tell whether its rollout had been revoked."""
    attacked.shared("worker", "spare")
    rollout = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="r")
    attacked.approve(rollout)
    attacked.fresh("spare").resume(world=SHELL)
    attacked.fresh("spare").save({"n": 2}, id="c2", world=SHELL)
    _false_mark(attacked)

    with pytest.raises(NeedsApproval):
        attacked.fresh("worker").resume(world=SHELL)


@pytest.mark.parametrize("attack", _ATTACKS)
def test_an_accepted_restore_mends_the_book(rolled_out: AttackedTeam, attack: str) -> None:
    """It is in the plan by its name, and rollouts can be proposed again."""
    _ATTACKS[attack](rolled_out)
    plan = planned(rolled_out.world)

    assert [each.name for each in plan.losses] == [ROLLOUTS]
    assert plan.voids_rollouts
    rolled_out.end("officer" if attack != "a false mark" else "bob")
    accepted(rolled_out.world, release=True)
    store = rolled_out.world.open("operator", gated=True)
    assert store.rollouts.propose([(READ, SHELL)], reason="again").id
    # Of a book that begins again, an audit cannot know any more what it had allowed.
    assert not any(finding.refuses for finding in store.verify().findings)


def test_a_slot_of_another_thread_stops_no_thread(attacked: AttackedTeam) -> None:
    """Where somebody has filled the slot of a book that nobody has begun."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    core = attacked.store("ann").core
    own = core.anchor.get(thread_slot(core.parts.secret, core.namespace, "t"))
    assert own is not None
    slot = thread_slot(core.parts.secret, core.namespace, ROLLOUTS)
    core.anchor.create(slot, msgspec.structs.replace(own))

    assert attacked.fresh().resume(world=READ).state == {"n": 1}
    with pytest.raises(NeedsApproval):
        attacked.fresh().resume(world=SHELL)


def test_an_intact_book_is_no_part_of_a_plan(rolled_out: AttackedTeam) -> None:
    """The control."""
    assert planned(rolled_out.world).losses == ()
    assert rolled_out.fresh().resume(world=SHELL).state == {"n": 2}


def test_no_reader_takes_an_erased_book_for_another_thread(rolled_out: AttackedTeam) -> None:
    """The control of the attack: the slot says what it is."""
    _erased(rolled_out, dropped=True)

    with pytest.raises(NotTrusted, match="has no place on a thread that holds"):
        rolled_out.world.open("operator", gated=True).rollouts.list()


@pytest.mark.parametrize("looks", [0, REQUEST_ANSWERS_MAX])
def test_looks_at_an_unreadable_book_use_up_no_answers(attacked: AttackedTeam, looks: int) -> None:
    """A process that could not read an entry counts none of the others twice, nor a denial less."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    warm = attacked.world.open("worker", gated=True)
    attacked.store("operator").rollouts.propose([(NARROW, READ)], reason="another")
    with pytest.raises(NeedsApproval):
        warm.thread("t").resume(world=SHELL)
    asked = attacked.store("operator").rollouts.propose([(READ, SHELL)], reason="r")
    attacked.approve(asked)
    rogue = Rogue(attacked.store("ann").core, "ann", ROLLOUTS)
    at = rogue.write(Kind.EXPIRY, ExpiryBody(salt=SALT, request=asked.id))
    rogue.anchor()
    rows = attacked.editor.rows(rogue.thread)
    taken = Record(rows[at].header, b"[]", rows[at].body)
    attacked.editor.put_rows(rogue.thread, {**rows, at: taken})
    for _ in range(looks):
        with pytest.raises(NeedsApproval):
            warm.thread("t").resume(world=SHELL)
    newer = attacked.editor.rows(rogue.thread)
    attacked.editor.put_rows(rogue.thread, {**newer, at: rows[at]})
    attacked.world.open("ann", gated=True).deny(asked.id, reason="stop")

    with pytest.raises(NeedsApproval):
        warm.thread("t").resume(world=SHELL)
