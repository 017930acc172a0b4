# SPDX-License-Identifier: Apache-2.0
"""The values of a checkpoint's name are deleted together: all readers agree on the newest one.

A member of the pool that owns the thread could delete one of several values of a name. Then some
readers would take the name for deleted, others its older value for the newest, and an honest prune
would give up the wrong one.
"""

import hashlib
from typing import Any

import pytest

from sealpoint.errors import Misplaced
from sealpoint.ledger import CheckpointBody, Kind, PruneBody, Rank
from sealpoint.ledger._claim_checks import _mark, _Names
from sealpoint.store import Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT
from tests.rogue import Rogue
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, saved

_WORLD = World.from_dict(READ)
_PAYLOAD = b"\x81\xa4note\xa6bought"


def _rogue(attacked: AttackedTeam) -> Rogue:
    """Somebody in a session of the other member of the pool."""
    attacked.fresh("spare").resume(world=READ)
    return Rogue(attacked.store("spare").core, "spare")


def _save(rogue: Rogue, name: str, **fields: Any) -> int:
    root = hashlib.sha256(_PAYLOAD).hexdigest()
    body = CheckpointBody(salt=SALT, id=name, root=root, world=_WORLD.digest, **fields)
    return rogue.write(Kind.CHECKPOINT, body, _PAYLOAD)


def _delete(rogue: Rogue, seq: int) -> int:
    return rogue.write(Kind.DELETE, PruneBody(salt=SALT, before=0, deleted=((seq, seq),)))


def _require_refused(attacked: AttackedTeam, words: str) -> None:
    with pytest.raises(Misplaced, match=words):
        attacked.fresh().resume(world=READ)
    with pytest.raises(Misplaced, match=words):
        attacked.fresh().prune(keep_last=1)
    findings = attacked.world.open(None, read_only=True).verify().findings
    assert any(words in each.message for each in findings)


@pytest.mark.parametrize("where", ["below", "across", "own"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("is_same_place", [True, False])
def test_a_deletion_takes_all_values_of_a_name_or_none(
    attacked: AttackedTeam, where: str, which: int, *, is_same_place: bool
) -> None:
    """Both by another person, one of each, or both by the member; the second in a new place too."""
    attacked.shared("worker", "spare")
    honest = attacked.fresh()
    honest.resume(world=READ)
    saved(honest, put({"n": 2}, "twice", world=_WORLD), put({"n": 3}, "c2", world=_WORLD))
    if where == "below":
        saved(honest, put({"n": 4}, "twice", world=_WORLD), put({"n": 5}, "c3", world=_WORLD))
    places = [seq for seq in attacked.rows() if _name(attacked, seq) == "twice"]
    rogue = _rogue(attacked)
    if where == "across":
        places.append(_save(rogue, "twice", again=places[0] if is_same_place else None))
    if where == "own":
        first = _save(rogue, "mine")
        places = [first, _save(rogue, "mine", again=first if is_same_place else None)]
    _save(rogue, "c4")
    _delete(rogue, places[which])
    rogue.anchor()

    assert len(places) == 2
    _require_refused(attacked, "it deletes a checkpoint and keeps another of its name")


def _name(attacked: AttackedTeam, seq: int) -> str | None:
    body = attacked.body(seq)
    return body.id if isinstance(body, CheckpointBody) else None


def test_an_honest_name_is_deleted_and_saved_anew(attacked: AttackedTeam) -> None:
    """With two values, in sessions of both members; nothing is an alarm."""
    attacked.shared("worker", "spare")
    for who in ("worker", "spare", "worker"):
        thread = attacked.fresh(who)
        thread.resume(world=READ)
        for name in ("twice", f"c-{who}", "twice"):
            saved(thread, put({"by": who}, name, world=_WORLD))
        saved(thread, put({"by": who}, f"last-{who}-{len(attacked.rows())}", world=_WORLD))
        thread.adapter.delete([Key("", "twice")])

    assert attacked.fresh("spare").resume(world=READ).state == {"by": "worker"}
    assert attacked.world.open(None, read_only=True).verify().ok


def test_every_name_is_found_and_no_other() -> None:
    """However many there are; most others are told apart without a search."""
    names = _Names(0)
    for seq in range(0, 3000, 2):
        names.add("", f"name-{seq}", Rank(seq, seq, seq))

    assert [names.find("", f"name-{seq}") for seq in (0, 1000, 2998)] == [
        Rank(seq, seq, seq) for seq in (0, 1000, 2998)
    ]
    assert not any(names.find("", f"other-{seq}") for seq in range(2000))
    assert names.find("lane", "name-0") is None


def test_a_name_takes_no_place_of_another_lane(attacked: AttackedTeam) -> None:
    """Not even if name and lane of both, one after the other, are the same text."""
    attacked.shared("worker", "spare")
    rogue = _rogue(attacked)
    other = _save(rogue, "a", lane="b\0")
    _save(rogue, "c9")
    attacked.sound()
    _save(rogue, "a\0b", again=other)
    rogue.anchor()

    _require_refused(attacked, "expected")


def test_marks_of_names_are_too_long_to_collide() -> None:
    """Whoever chooses both names finds a collision of 64 bits within minutes."""
    assert len(_mark("", "a")) >= 16
    assert _mark("b\0", "a") != _mark("", "a\0b")
