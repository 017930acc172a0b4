# SPDX-License-Identifier: Apache-2.0
"""A member of the pool that owns a thread lies about what is given up, or lists no blobs.

An honest prune keeps the newest checkpoint and the results of what it keeps, so an honest session
goes on after it. What a member with other code takes is noticed by whoever writes or runs next.
"""

import os
from typing import Any

import msgspec
import pytest

from sealpoint.audit import verify_bundle
from sealpoint.errors import Misplaced, Missing, NeedsApproval, Superseded
from sealpoint.ledger import CheckpointBody, ClaimCheck, Kind, PruneBody, parse_header
from sealpoint.store import Key
from sealpoint.store._blobs import BlobWriter
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.ledgers import SALT
from tests.rogue import Rogue
from tests.unit.audit.bundles import exported
from tests.unit.gate.team import READ, policy
from tests.unit.store.backup import accepted, planned
from tests.unit.store.laned import put, results, saved

_WORLD = World.from_dict(READ)


def _rogue(attacked: AttackedTeam) -> Rogue:
    return Rogue(attacked.store("spare").core, "spare")


def _large() -> dict[str, Any]:
    return {"list": [os.urandom(20_000).hex() for _ in range(4)]}


def _checkpoints(attacked: AttackedTeam) -> tuple[int, ...]:
    rows = attacked.rows().items()
    return tuple(seq for seq, row in rows if parse_header(row.header).kind is Kind.CHECKPOINT)


@pytest.mark.parametrize(
    "attack", ["nothing", "results", "lane", "hidden results", "an honest prune"]
)
@pytest.mark.parametrize("name", [None, "s1"])
def test_a_run_does_nothing_again_because_its_results_were_taken(
    attacked: AttackedTeam, name: str | None, attack: str
) -> None:
    """Those of a subgraph, that were released to it and were given up since it began."""
    attacked.shared("worker", "spare")
    saved(attacked.fresh(), put({"main": 1}, "m1", world=_WORLD))
    sub = put({"sub": 1}, "s1", lane="sub", world=_WORLD)
    saved(attacked.fresh(), sub, results("paid", "s1", task="pay", lane="sub"))
    paid = attacked.find(Kind.RESULTS)
    run = attacked.fresh()
    session = run.adapter.begin(world=_WORLD, token="r1")  # noqa: S106 (no secret)
    run.release()
    kept, length = _checkpoints(attacked), len(attacked.rows())
    spans = ((paid, paid),)
    bodies = {
        "results": (Kind.PRUNE, PruneBody(salt=SALT, before=length, kept=kept)),
        "lane": (Kind.PRUNE, PruneBody(salt=SALT, before=length, kept=kept[:-1])),
        "hidden results": (Kind.DELETE, PruneBody(salt=SALT, before=0, deleted=spans)),
    }
    if attack == "an honest prune":
        attacked.fresh("spare").prune(keep_last=1)
    elif attack != "nothing":
        rogue = _rogue(attacked)
        rogue.write(*bodies[attack])
        rogue.anchor()

    if attack in bodies:
        with pytest.raises((Superseded, Misplaced)):
            run.adapter.snapshot("sub", name, running=True, session=session)
    else:
        found = run.adapter.snapshot("sub", name, running=True, session=session)
        assert found is not None
        assert [each.task for each in found.results] == ["pay"]


@pytest.mark.parametrize("attack", [False, True])
def test_nothing_is_saved_on_top_of_a_prune_of_the_newest_state(
    attacked: AttackedTeam, *, attack: bool
) -> None:
    """A garbage collection would take the blobs that the save leaves out; it judges as well."""
    attacked.shared("worker", "spare")
    state = _large()
    honest = attacked.fresh()
    honest.resume(world=READ)
    honest.save({"n": 2, **state}, id="c2", world=READ)
    if not attack:
        attacked.fresh("spare").prune(keep_last=1)
        honest.save({"n": 3, **state}, id="c3", world=READ)
        attacked.store().gc()
        assert attacked.fresh("ann").load().state["n"] == 3
        assert attacked.world.open(None, read_only=True).verify().ok
        return
    rogue = _rogue(attacked)
    rogue.write(Kind.PRUNE, PruneBody(salt=SALT, before=len(rogue.rows)))
    rogue.anchor()
    blobs = dict(attacked.store().core.storage.stored_blobs(rogue.thread))

    with pytest.raises(Misplaced, match="it gives up the newest checkpoint"):
        honest.save({"n": 3, **state}, id="c3", world=READ)
    assert attacked.store().gc().failures
    assert dict(attacked.store().core.storage.stored_blobs(rogue.thread)) == blobs


@pytest.mark.parametrize("attack", [False, True])
def test_a_state_that_lists_no_blobs_takes_none_from_others(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch, *, attack: bool
) -> None:
    """An honest member goes on from it and lists all that its own states need."""
    attacked.shared("worker", "spare")
    state = _large()
    rogue = attacked.fresh("spare")
    rogue.resume(world=READ)
    with monkeypatch.context() as patch:
        if attack:
            patch.setattr(BlobWriter, "listing", lambda _self: ((), None))
        rogue.save({"n": 2, **state}, id="s2")
    honest = attacked.fresh()
    honest.resume(world=READ)
    for number in (3, 4):
        honest.save({"n": number, **state}, id=f"w{number}")
    report = attacked.world.open(None, read_only=True).verify()
    attacked.store().gc()

    assert report.ok is not attack
    assert all("neither it nor an earlier" in finding.message for finding in report.findings)
    assert attacked.fresh("ann").load("w3").state["n"] == 3
    assert attacked.fresh().resume(world=READ).state == {"n": 4, **state}


def test_the_second_save_after_a_state_of_another_leaves_out_what_it_knows(
    attacked: AttackedTeam,
) -> None:
    """All blobs are listed once, and not with every save."""
    attacked.shared("worker", "spare")
    state = _large()
    attacked.fresh("spare").resume(world=READ)
    attacked.fresh("spare").save({"n": 2, **state}, id="s2", world=READ)
    honest = attacked.fresh()
    honest.resume(world=READ)
    seqs = [honest.save({"n": n, **state}, id=f"w{n}", world=READ).seq for n in (3, 4)]
    bodies: list[CheckpointBody] = [attacked.body(seq) for seq in seqs]
    lists = [len(body.fresh) + 1000 * (body.fresh_list is not None) for body in bodies]

    assert lists[0] > 20 > lists[1]


@pytest.mark.parametrize("lie", ["a false prune", "passes over", "brings back", "nothing"])
def test_a_bundle_is_refused_for_what_an_audit_refuses(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """Claims about what was given up, exported by somebody with other code."""
    attacked.shared("worker", "spare")
    for name in ("poison", "c3"):
        attacked.fresh().save({"n": name}, id=name, world=READ)
    attacked.fresh().adapter.delete([Key("", "poison")], reason="poisoned")
    deleted = attacked.find(Kind.DELETE)
    attacked.fresh("spare").resume(world=READ)
    rogue = _rogue(attacked)
    if lie == "brings back":
        body = PruneBody(salt=SALT, before=0, earlier=deleted)
        rogue.write(Kind.PRUNE, body)
    else:
        named = {"a false prune": 3, "passes over": None}.get(lie, deleted)
        rogue.save(world=_WORLD.digest, prune=named)
    rogue.anchor()
    with monkeypatch.context() as patch:
        patch.setattr(ClaimCheck, "follow", lambda *_: None)
        data = exported(attacked)

    if lie == "nothing":
        assert verify_bundle(data, attacked.world.pin).ok
        return
    with pytest.raises(Misplaced):
        verify_bundle(data, attacked.world.pin)
    assert not attacked.world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("attack", ["nothing", "lie", "hole"])
def test_a_missing_body_does_not_hide_what_is_brought_back(
    attacked: AttackedTeam, attack: str
) -> None:
    """Only an erasure takes bodies: a member that removes one hides no later lie behind it."""
    attacked.shared("worker", "spare")
    attacked.fresh().save({"n": 2}, id="c2", world=READ)
    gone = attacked.find(Kind.CHECKPOINT)
    kept = attacked.rows()[gone]
    attacked.fresh().adapter.delete([Key("", "c2")])
    deleted = attacked.find(Kind.DELETE)
    rogue, hole = _rogue(attacked), -1
    if attack == "hole":
        taken = PruneBody(salt=SALT, before=0, deleted=((gone, gone),), earlier=deleted)
        hole = rogue.write(Kind.PRUNE, taken)
    if attack != "nothing":
        rogue.write(Kind.DELETE, PruneBody(salt=SALT, before=0, earlier=None))
        rogue.anchor()
        attacked.put({gone: kept})
    if attack == "hole":
        attacked.put({hole: msgspec.structs.replace(attacked.rows()[hole], body=None)})

    if attack == "nothing":
        with pytest.raises(NeedsApproval, match="deleted"):
            attacked.fresh("worker").resume(world=READ)
    else:
        with pytest.raises((Misplaced, Missing)):
            attacked.fresh("worker").resume(world=READ)
        with pytest.raises((Misplaced, Missing)):
            attacked.fresh("worker").save({"n": 3}, world=READ)
        assert not attacked.store().verify().ok


@pytest.mark.parametrize("attack", [False, True])
def test_no_prune_takes_the_newest_of_the_main_lane(
    attacked: AttackedTeam, *, attack: bool
) -> None:
    """Not where a lane has a newer one either: a garbage collection would take its state."""
    attacked.shared("worker", "spare")
    attacked.fresh("spare").resume(world=READ)
    rogue = _rogue(attacked)
    lane = rogue.save(world=_WORLD.digest, lane="sub")
    if attack:
        rogue.write(Kind.PRUNE, PruneBody(salt=SALT, before=lane))
    rogue.anchor()
    collected = attacked.store().gc()

    assert bool(collected.failures) is attack
    if not attack:
        assert attacked.fresh().resume(world=READ).state == {"n": 1}
        return
    assert not attacked.world.open(None, read_only=True).verify().ok
    assert [(each.kept, each.seen) for each in planned(attacked.world).losses] == [(lane, lane + 1)]
    accepted(attacked.world)
    assert attacked.fresh("ann").load().state == {"n": 1}


@pytest.mark.parametrize("attack", [False, True])
def test_no_prune_takes_the_newest_of_a_lane_that_nobody_reads(
    attacked: AttackedTeam, *, attack: bool
) -> None:
    """Whoever goes on from the main lane asks what a prune took of another one, and so does gc."""
    attacked.shared("worker", "spare")
    sub = put({"sub": 1}, "s1", lane="sub", world=_WORLD)
    saved(attacked.fresh(), sub, put({"main": 1}, "m1", world=_WORLD))
    attacked.fresh("spare").resume(world=READ)
    kept = _checkpoints(attacked)[-2:]
    rogue = _rogue(attacked)
    body = PruneBody(salt=SALT, before=kept[1], kept=() if attack else kept[:1])
    rogue.write(Kind.PRUNE, body)
    rogue.anchor()
    if attack:
        with pytest.raises(Misplaced):
            attacked.fresh().resume(world=READ)
    else:
        attacked.fresh().resume(world=READ)
        attacked.fresh().save({"main": 2}, id="m2", world=READ)
    collected = attacked.store("ann").gc()

    assert bool(collected.failures) is attack
    assert attacked.rows()[kept[0]].payload is not None


_TAKEN = ["nothing", "the newest", "what a deletion left", "what an honest deletion left"]


def _lane(attacked: AttackedTeam, taken: str) -> tuple[dict[str, int], int | None]:
    """A subgraph of three states below two of the main lane, from which somebody takes something.

    Returns:
        Where the checkpoints lie, and the position of the false prune.
    """
    attacked.apply(policy("p", older_checkpoint="record"))
    attacked.shared("worker", "spare")
    worker = attacked.fresh()
    saved(worker, put({"main": 1}, "m1", world=_WORLD))
    for number in (1, 2, 3):
        saved(worker, put({"sub": number}, f"s{number}", lane="sub", world=_WORLD))
    saved(worker, put({"main": 2}, "m2", world=_WORLD))
    if taken == "what an honest deletion left":
        worker.adapter.delete([Key("sub", "s3")])
        saved(worker, put({"main": 3}, "m3", world=_WORLD))
    places = {attacked.body(seq).id: seq for seq in _checkpoints(attacked)}
    if taken == "nothing":
        attacked.fresh("spare").prune(keep_last=1)
        return places, None
    rogue, earlier = _rogue(attacked), None
    spans = ((places["s3"], places["s3"]),)
    if taken == "what a deletion left":
        earlier = rogue.write(Kind.DELETE, PruneBody(salt=SALT, before=0, deleted=spans))
    elif taken == "what an honest deletion left":
        earlier = attacked.find(Kind.DELETE)
    lost = {"s3"} if earlier is None else {"s2", "s3"}
    body = PruneBody(
        salt=SALT,
        before=len(rogue.rows),
        kept=tuple(seq for name, seq in places.items() if name not in lost),
        deleted=() if earlier is None else spans,
        earlier=earlier,
    )
    prune = rogue.write(Kind.PRUNE, body)
    rogue.anchor()
    return places, prune


@pytest.mark.parametrize("taken", _TAKEN)
def test_the_state_of_a_subgraph_is_not_rolled_back(attacked: AttackedTeam, taken: str) -> None:
    """Nobody goes on from a prune of what was its newest, and no garbage collection takes that."""
    places, prune = _lane(attacked, taken)
    world = attacked.world
    if prune is None:
        run = attacked.fresh()
        session = run.adapter.begin(world=_WORLD, token="r1")  # noqa: S106 (no secret)
        found = run.adapter.snapshot("sub", None, running=True, session=session)
        assert found is not None
        assert found.state == {"sub": 3}
        assert not attacked.store().gc().failures
        assert world.open(None, read_only=True).verify().ok
        return

    with pytest.raises(Misplaced):
        attacked.fresh().adapter.begin(world=_WORLD, token="r1", deliberate="go on")  # noqa: S106
    with pytest.raises(Misplaced):
        attacked.fresh().resume(world=READ, deliberate="go on")
    with pytest.raises(Misplaced):
        saved(attacked.fresh(), put({"main": 9}, "m9", world=_WORLD))
    assert attacked.store().gc().failures
    assert attacked.rows()[places["s2"]].payload is not None
    assert [each.kept for each in planned(world).losses] == [prune - 1]
    accepted(world)
    assert attacked.fresh().adapter.snapshot("sub", "s2") is not None


@pytest.mark.parametrize("taken", _TAKEN)
def test_a_reader_of_a_subgraph_is_told(attacked: AttackedTeam, taken: str) -> None:
    """By name or not, in a list, or in what approvers are shown: nothing passes for the newest."""
    _, prune = _lane(attacked, taken)
    name = {"the newest": "s3"}.get(taken, "s2")
    reads = (
        lambda: attacked.fresh("ann").adapter.snapshot("sub", None),
        lambda: attacked.fresh("ann").adapter.snapshot("sub", name),
        lambda: list(attacked.fresh("ann").adapter.snapshots("sub")),
        lambda: list(attacked.fresh("ann").adapter.snapshots(None)),
    )

    for read in reads:
        if prune is None:
            read()
        else:
            with pytest.raises(Misplaced):
                read()
    if prune is not None:
        reader = attacked.fresh("ann")
        reader.load()
        with pytest.raises(Misplaced):
            reader._reader.release("m1")


@pytest.mark.parametrize("newest", ["left", "deleted"])
def test_an_honest_prune_below_a_deletion_is_believed(attacked: AttackedTeam, newest: str) -> None:
    """What was pruned while a newer one was left stays pruned once that one is deleted."""
    attacked.apply(policy("p", older_checkpoint="record"))
    attacked.shared("worker", "spare")
    worker = attacked.fresh()
    for number in (1, 2, 3):
        saved(worker, put({"main": number}, f"m{number}", world=_WORLD))
        saved(worker, put({"sub": number}, f"s{number}", lane="sub", world=_WORLD))
    saved(worker, put({"sub": 4}, "s1", lane="sub", world=_WORLD))
    attacked.fresh("spare").prune(keep_last=1)
    if newest == "deleted":
        attacked.fresh("spare").adapter.delete([Key("sub", "s3"), Key("sub", "s1")])
    for who in ("worker", "spare", "worker"):
        run = attacked.fresh(who)
        run.adapter.begin(world=_WORLD, deliberate="go on", token=who)
        saved(run, put({"main": who}, f"by-{who}", world=_WORLD))
        run.adapter.end(who)
        run.prune(keep_last=1)
    found = attacked.fresh("ann").adapter.snapshot("sub", None)

    assert (found is None) is (newest == "deleted")
    assert attacked.fresh("ann").adapter.snapshot("sub", "s2") is None
    assert not attacked.store("ann").gc().failures
    assert not planned(attacked.world).losses
    assert attacked.world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("attack", ["nothing", "an honest prune", "a prune"])
def test_a_run_from_an_older_state_does_nothing_again(attacked: AttackedTeam, attack: str) -> None:
    """What was released to it is pruned meanwhile, and something newer of the same lane is left."""
    attacked.apply(policy("p", older_checkpoint="record"))
    attacked.shared("worker", "spare")
    before = attacked.fresh()
    saved(before, put({"main": 1}, "m1", world=_WORLD), results("paid", "m1", task="bill"))
    sub = put({"sub": 1}, "s1", lane="sub", world=_WORLD)
    saved(before, sub, results("paid", "s1", task="pay", lane="sub"))
    saved(before, put({"main": 2}, "m2", world=_WORLD))
    saved(before, put({"sub": 2}, "s2", lane="sub", world=_WORLD))
    run = attacked.fresh()
    session = run.adapter.begin(world=_WORLD, ref="m1", lanes={"sub": "s1"}, deliberate="again")
    run.adapter.snapshot("", "m1", running=True, session=session)
    kept = tuple(seq for seq in _checkpoints(attacked) if attacked.body(seq).id in ("m2", "s2"))
    if attack == "an honest prune":
        attacked.fresh("spare").prune(keep_last=1)
    elif attack == "a prune":
        rogue = _rogue(attacked)
        rogue.write(Kind.PRUNE, PruneBody(salt=SALT, before=len(rogue.rows), kept=kept))
        rogue.anchor()

    for lane, name, task in (("", "m1", "bill"), ("sub", "s1", "pay")):
        if attack == "nothing":
            found = run.adapter.snapshot(lane, name, running=True, session=session)
            assert found is not None
            assert [each.task for each in found.results] == [task]
        else:
            with pytest.raises(Superseded):
                run.adapter.snapshot(lane, name, running=True, session=session)
