# SPDX-License-Identifier: Apache-2.0
"""A member of the pool that owns a thread lies in an entry, and buries it under honest ones.

Nobody else has written since, so nobody vouches for what lies there. Its entries on top are right,
and so is everything that they name: only who reads the entries between finds the lie.
"""

from typing import Any

import pytest

from sealpoint.errors import NotTrusted, Tampered
from sealpoint.ledger import Kind, ResultsBody, parse_header
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.rogue import Rogue
from tests.unit.gate.team import READ

_LIES: dict[str, dict[str, Any]] = {
    "an earlier session": {"fence": 1},
    "an earlier owner": {"owner": 0},
    "a pause that is none": {"pause": 1},
    "a later generation": {"gen": 1},
    "another way down": {"skip": "ab" * 32},
    "an earlier roster": {"roster": 0},
}


def _bury(attacked: AttackedTeam, **lie: Any) -> None:
    """A lie in results of the rogue's session; the next session goes on from before, and is right.

    Which entry decided its world is what an honest session of the same member says.
    """
    attacked.pool("pods", "worker", "spare")
    attacked.thread().save({"n": 0}, id="c0", world=READ)
    attacked.thread().handoff(to="pods", reason="shared")
    attacked.fresh().resume(world=READ)
    attacked.fresh().save({"n": 1}, id="c1", world=READ)
    attacked.fresh("spare").resume(world=READ)
    rogue = Rogue(attacked.store("spare").core, "spare")
    at = attacked.find(Kind.RESUME)
    true, named = parse_header(attacked.rows()[at].header), attacked.body(at)
    results = ResultsBody(salt=attacked.salt, checkpoint="c1", task="pay", root="cd" * 32)
    rogue.write(Kind.RESULTS, results, b"\xa1x", **lie)
    marks = {"pause": true.pause, "owner": true.owner, "gen": true.gen, "roster": true.roster}
    rogue.write(Kind.RESUME, named, **marks)
    rogue.save(world=named.world)
    rogue.anchor()


@pytest.mark.parametrize("lie", _LIES)
def test_a_buried_lie_is_found_before_anybody_goes_on(attacked: AttackedTeam, lie: str) -> None:
    """The other member neither opens a session there nor saves, and an audit says why."""
    _bury(attacked, **_LIES[lie])

    for call in (
        lambda: attacked.fresh("worker").resume(world=READ),
        lambda: attacked.fresh("worker").save({"n": 9}, world=READ),
    ):
        with pytest.raises((Tampered, NotTrusted)):
            call()
    assert not attacked.world.open(None, read_only=True).verify().ok
