# SPDX-License-Identifier: Apache-2.0
"""A member of the pool that owns a thread lies in an entry, and buries it under honest ones.

Nobody else has written since, so nobody vouches for what lies there. Its entries on top are right,
and so is everything that they name: only who reads the entries between finds the lie.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from sealpoint.errors import Forged, Misplaced, NotTrusted, Tampered
from sealpoint.ledger import (
    NO_ID,
    CheckpointBody,
    HandoffBody,
    Header,
    IdTable,
    Kind,
    PruneBody,
    ResultsBody,
    id_print,
    parse_header,
)
from sealpoint.storage import Record
from sealpoint.store import Chain, Key
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT, identity, key
from tests.rogue import Rogue
from tests.unit.gate.team import READ
from tests.unit.store.backup import accepted, planned
from tests.unit.store.laned import put, saved

_LIES: dict[str, dict[str, Any]] = {
    "an earlier session": {"fence": 1},
    "an earlier owner": {"owner": 0},
    "a pause that is none": {"pause": 1},
    "a later generation": {"gen": 1},
    "another way down": {"skip": "ab" * 32},
    "an earlier roster": {"roster": 0},
}
_PAYLOAD = b"\xa6bought"
_ROOT = hashlib.sha256(_PAYLOAD).hexdigest()
_WORLD = World.from_dict(READ)


def _rogue(attacked: AttackedTeam, who: str = "spare") -> Rogue:
    """The other member, in a session of its own."""
    attacked.fresh(who).resume(world=READ)
    return Rogue(attacked.store(who).core, who)


def _put(rogue: Rogue, name: str, *, header: dict[str, Any] | None = None, **fields: Any) -> int:
    body = CheckpointBody(salt="00" * 16, id=name, root=_ROOT, world=_WORLD.digest, **fields)
    return rogue.write(Kind.CHECKPOINT, body, _PAYLOAD, **(header or {}))


def _results(rogue: Rogue, checkpoint: str, **header: Any) -> int:
    body = ResultsBody(salt="00" * 16, checkpoint=checkpoint, task="pay", root=_ROOT)
    return rogue.write(Kind.RESULTS, body, _PAYLOAD, **header)


def _require_stopped(attacked: AttackedTeam) -> None:
    """The honest member neither opens a session nor saves, and an audit says why."""
    for call in (
        lambda: attacked.fresh("worker").resume(world=READ),
        lambda: attacked.fresh("worker").save({"n": 9}, world=READ),
    ):
        with pytest.raises((Tampered, NotTrusted)):
            call()
    assert not attacked.world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("lie", _LIES)
@pytest.mark.parametrize("member", ["spare", "pod"])
def test_a_buried_lie_is_found_before_anybody_goes_on(
    attacked: AttackedTeam, member: str, lie: str
) -> None:
    """Also that of another pod of the same person."""
    attacked.world.enrol(msgspec.structs.replace(identity("pod"), person="worker"))
    attacked.shared("worker", "spare", "pod")
    rogue = _rogue(attacked, member)
    at = attacked.find(Kind.RESUME)
    true, named = parse_header(attacked.rows()[at].header), attacked.body(at)
    _results(rogue, "c1", **_LIES[lie])
    marks: dict[str, Any] = {
        "pause": true.pause,
        "owner": true.owner,
        "gen": true.gen,
        "roster": true.roster,
    }
    rogue.write(Kind.RESUME, named, **marks)
    rogue.save(world=named.world)
    rogue.anchor()

    _require_stopped(attacked)


def test_an_entry_in_the_readers_own_name_hides_nothing(attacked: AttackedTeam) -> None:
    """The rogue names the victim's key, signs with its own, and hands the thread on."""
    attacked.shared("worker", "spare")
    rogue = _rogue(attacked)
    _put(rogue, "false", again=2)
    _results(rogue, "false", by=key("worker").public.id.raw.hex())
    handoff = HandoffBody(salt="00" * 16, owner="pods", reason="yours")
    rogue.write(Kind.HANDOFF, handoff)
    rogue.anchor()

    _require_stopped(attacked)


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("warm", [False, True])
def test_a_false_place_is_found_however_it_is_met(
    attacked: AttackedTeam, *, warm: bool, anchored: bool
) -> None:
    """By a handle that was open, and above the anchored entry."""
    attacked.shared("worker", "spare")
    honest = attacked.fresh("worker")
    if warm:
        honest.load()
    rogue = _rogue(attacked)
    _put(rogue, "another", again=2)
    _put(rogue, "next")
    if anchored:
        rogue.anchor()

    with pytest.raises(Misplaced, match="expected the rank of the first checkpoint 'another'"):
        honest.resume(world=READ)


@pytest.mark.parametrize("kind", ["delete", "prune"])
def test_what_was_given_up_stays_so(attacked: AttackedTeam, kind: str) -> None:
    """A later checkpoint that names nothing of it brings no state back, and none is listed."""
    attacked.shared("worker", "spare")
    gone = attacked.fresh().save({"n": "poison"}, id="poison", world=READ)
    kept = attacked.rows()[gone.seq]
    attacked.fresh().save({"n": 2}, id="c2", world=READ)
    if kind == "delete":
        attacked.fresh().adapter.delete([Key("", "poison")], reason="poisoned")
    else:
        attacked.fresh().prune(keep_last=1)
    attacked.fresh().save({"n": 3}, id="c3", world=READ)
    attacked.put({gone.seq: kept})
    _put(_rogue(attacked), "next")
    Rogue(attacked.store("spare").core, "spare").anchor()

    for call in (
        lambda: attacked.fresh("ann").load("poison"),
        lambda: list(attacked.fresh("ann").history()),
    ):
        with pytest.raises(Misplaced, match="expected it to name what entry"):
            call()
    _require_stopped(attacked)


def test_a_false_table_of_ids_is_found(attacked: AttackedTeam) -> None:
    """One that leaves an id out would let it be given away again."""
    attacked.pool("pods", "worker", "spare")
    saved(attacked.fresh(), *(put({"n": n}, f"{n:04}", world=_WORLD) for n in range(80)))
    rogue = _rogue(attacked)
    prints = [NO_ID] * len(rogue.rows)
    for seq, row in attacked.rows().items():
        if parse_header(row.header).kind is Kind.CHECKPOINT:
            body = attacked.body(seq)
            prints[seq] = NO_ID if body.id == "0005" else id_print(body.lane, body.id)
    _put(rogue, "0080", ids=IdTable(first=0, prints=b"".join(prints).hex()))
    rogue.anchor()

    _require_stopped(attacked)


def test_a_checkpoint_that_nobody_signed_is_released_to_nobody(attacked: AttackedTeam) -> None:
    """Also where a later entry of the same session is genuine."""
    attacked.shared("worker", "spare")
    rogue = _rogue(attacked)
    _put(rogue, "false", header={"by": key("worker").public.id.raw.hex()})
    _results(rogue, "false")
    rogue.anchor()

    for call in (attacked.fresh("ann").release, attacked.fresh("ann").load):
        with pytest.raises(Forged):
            call()


@pytest.mark.parametrize("lie", [None, *_LIES, "a false place", "a false prune", "a false table"])
def test_an_accepted_restore_brings_the_thread_back(
    attacked: AttackedTeam, lie: str | None
) -> None:
    """It is cut before the first entry that others refuse, and only if there is one."""
    attacked.shared("worker", "spare")
    rogue = _rogue(attacked)
    at, length = attacked.find(Kind.RESUME), len(rogue.rows)
    true, named = parse_header(attacked.rows()[at].header), attacked.body(at)
    table = IdTable(first=0, prints=(NO_ID * length).hex())
    claims: dict[str, dict[str, Any]] = {
        "a false place": {"again": 2},
        "a false prune": {"prune": 3},
        "a false table": {"ids": table},
    }
    if lie in _LIES:
        marks: dict[str, Any] = {"pause": true.pause, "owner": true.owner, "gen": true.gen}
        _results(rogue, "c1", **_LIES[lie])
        rogue.write(Kind.RESUME, named, roster=true.roster, **marks)
    elif lie is not None:
        _put(rogue, "false", **claims[lie])
    _put(rogue, "next")
    rogue.anchor()
    losses = planned(attacked.world).losses

    assert [each.kept for each in losses] == ([] if lie is None else [length - 1])
    if lie is not None:
        attacked.end("spare")
        accepted(attacked.world, release=True)
        assert attacked.fresh().resume(world=READ, deliberate="brought back").state == {"n": 1}
        assert attacked.fresh().save({"n": 2}, id="c2", world=READ).id == "c2"
        assert attacked.world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("keys", [1, 2])
def test_two_stolen_keys_of_one_person_do_not_vouch_for_each_other(
    attacked: AttackedTeam, keys: int
) -> None:
    """The third key of that person judges what both of them wrote."""
    for name in ("pod", "pod2"):
        attacked.world.enrol(msgspec.structs.replace(identity(name), person="worker"))
    attacked.shared("worker", "spare", "pod", "pod2")
    rogue = _rogue(attacked, "pod")
    named = attacked.body(attacked.find(Kind.RESUME))
    _put(rogue, "false", again=2)
    other = rogue if keys == 1 else Rogue(attacked.store("pod2").core, "pod2")
    other.write(Kind.RESUME, named)
    other.save(world=named.world)
    other.anchor()

    _require_stopped(attacked)


@pytest.mark.parametrize("lie", [False, True])
def test_what_an_erasure_took_stops_nobody_when_it_is_put_back(
    attacked: AttackedTeam, *, lie: bool
) -> None:
    """No rule asks for it, neither in an audit nor where somebody goes on."""
    attacked.shared("worker", "spare")
    rogue = _rogue(attacked)
    at = _put(rogue, "false", prune=3)
    rogue.anchor()
    taken = attacked.rows()[at]
    attacked.fresh("officer").erase(reason="asked")
    attacked.fresh("spare").save({"n": 9}, id="g1", world=READ)
    if lie:
        attacked.put({at: taken})

    assert attacked.fresh().resume(world=READ).state == {"n": 9}
    assert attacked.fresh().save({"n": 10}, id="g2", world=READ).id == "g2"
    assert attacked.world.open(None, read_only=True).verify().ok


def test_a_checkpoint_in_the_session_of_another_key_is_given_to_nobody(
    attacked: AttackedTeam,
) -> None:
    """Also where an entry that needs no session lies on top of it."""
    attacked.shared("worker", "spare")
    rogue = Rogue(attacked.store("spare").core, "spare")
    _put(rogue, "false")
    rogue.write(Kind.PRUNE, PruneBody(salt=SALT, before=0))
    rogue.anchor()

    for call in (
        attacked.fresh("ann").load,
        attacked.fresh("ann").release,
        lambda: attacked.fresh("operator").judge(world=READ, identity="worker"),
        lambda: list(attacked.fresh("ann").history()),
    ):
        with pytest.raises(NotTrusted, match="expected the key that opened session"):
            call()


def test_true_tables_of_ids_cost_what_they_hold(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table in every checkpoint does not make others read the thread again for each of them."""
    attacked.shared("worker", "spare")
    rogue = _rogue(attacked)
    prints = [NO_ID] * len(rogue.rows)
    for seq, row in attacked.rows().items():
        if parse_header(row.header).kind is Kind.CHECKPOINT:
            body = attacked.body(seq)
            prints[seq] = id_print(body.lane, body.id)
    for number in range(20):
        name = f"m{number}"
        _put(rogue, name, ids=IdTable(first=0, prints=b"".join(prints).hex()))
        prints.append(id_print("", name))
    rogue.anchor()
    walked: list[int] = []
    walk = Chain.walk

    def counted(self: Chain, below: Header | None = None) -> Iterator[tuple[Header, Record]]:
        for header, record in walk(self, below):
            walked.append(header.seq)
            yield header, record

    monkeypatch.setattr(Chain, "walk", counted)
    attacked.fresh().resume(world=READ)

    assert len(walked) < 8 * len(prints)


def test_an_honest_thread_goes_on_after_a_prune_and_an_erasure(attacked: AttackedTeam) -> None:
    """What was given up before an erasure is nothing that a later generation names."""
    attacked.shared("worker", "spare")
    for n in range(3):
        attacked.fresh("spare").save({"n": n}, world=READ)
    attacked.fresh("spare").prune(keep_last=1)
    attacked.fresh("officer").erase(reason="asked to")
    attacked.fresh("spare").save({"n": 9}, world=READ)

    assert attacked.fresh().resume(world=READ).state == {"n": 9}
    assert attacked.world.open(None, read_only=True).verify().ok
