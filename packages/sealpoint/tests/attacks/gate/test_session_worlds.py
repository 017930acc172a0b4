# SPDX-License-Identifier: Apache-2.0
"""A worker with a genuine key and other code widens the world; no honest worker continues in it.

What a run is able to do is decided when its session begins. The gate judges that decision again
before it continues from a state, by the policy that binds its position and with what it carries.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import Edited, NeedsApproval, NotTrusted
from sealpoint.gate import Request, _session_worlds
from sealpoint.ledger import (
    CheckpointBody,
    GenesisBody,
    Kind,
    PruneBody,
    ResumeBody,
    link_hash,
    parse_header,
)
from sealpoint.storage import Record
from sealpoint.store import SessionStart
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.attacks.gate.test_policy_changes import _Change
from tests.attacks.gate.test_rollouts import _backdate, _ended
from tests.rogue import Rogue
from tests.unit.gate.team import READ, SHELL
from tests.unit.store.laned import put, saved

_STATE = b"\x81\xa1n\x09"


def _world(leaves: dict[str, object]) -> str:
    return World.from_dict(leaves).digest


def _save(attacked: AttackedTeam, **fields: object) -> None:
    """Save a state as the worker, past every check."""
    root = hashlib.sha256(_STATE).hexdigest()
    name = f"bought-{len(attacked.rows())}"
    body = CheckpointBody(salt=attacked.salt, id=name, root=root, **fields)  # type: ignore[arg-type]
    record = attacked.forged(Kind.CHECKPOINT, body, "worker")
    attacked.append(Record(record.header, record.seals, record.body, _STATE))
    thread, world = attacked.world.thread_id("t"), World.from_dict(SHELL)
    blobs = {**attacked.editor.blobs(thread), bytes.fromhex(world.digest): world.encode()}
    attacked.editor.put_blobs(thread, blobs)


def _resume(attacked: AttackedTeam, **fields: object) -> int:
    """Open a session as the worker in a wider world, which nobody has allowed; its position."""
    handle = attacked.fresh()
    release = handle.release()
    given = {
        "world": _world(SHELL),
        "leaves": SHELL,
        "rules": ("narrower-world",),
        "policy": attacked.store().core.renewed_trust().roster.document.policies["*"],
        "checkpoint": release.entry,
        "release": release.digest,
        "released": release.seq,
    }
    basis = handle._state.chain.tip().basis[0]
    body = ResumeBody(salt=attacked.salt, owner="worker", basis=basis, **(given | fields))  # type: ignore[arg-type]
    attacked.append(attacked.forged(Kind.RESUME, body, "worker"))
    return len(attacked.rows()) - 1


def _begun(attacked: AttackedTeam) -> None:
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.sound()


def test_a_checkpoint_names_the_world_of_its_session(attacked: AttackedTeam) -> None:
    """A12: a wider world that is slipped into a session is refused by every reader."""
    _begun(attacked)
    warm = attacked.fresh("operator")
    warm.load()
    with attacked.landing():
        _save(attacked, world=_world(SHELL))

    for thread in (attacked.fresh(), attacked.fresh("operator"), warm):
        assert attacked.ending(thread.load) is NotTrusted
    assert attacked.resumed() is NotTrusted
    assert not attacked.world.open(None, read_only=True).verify().ok


def _one_session(attacked: AttackedTeam) -> None:
    _resume(attacked)
    _save(attacked)


def _sessions_on_top(attacked: AttackedTeam) -> None:
    decided = _resume(attacked)
    _save(attacked)
    for _ in range(3):
        _resume(attacked, leaves=None, decided=decided, rules=())
        _save(attacked)


def _pruned(attacked: AttackedTeam) -> None:
    _sessions_on_top(attacked)
    newest = attacked.find(Kind.CHECKPOINT)
    prune = PruneBody(salt=attacked.salt, before=newest)
    attacked.append(attacked.forged(Kind.PRUNE, prune, "worker"))


def _said_to_be_decided_before(attacked: AttackedTeam) -> None:
    first = attacked.find(Kind.RESUME)
    _resume(attacked, leaves=None, decided=first, rules=())
    _save(attacked)


def _said_to_be_the_first(attacked: AttackedTeam) -> None:
    _resume(attacked, checkpoint=None, release=None, released=None, rules=())
    _save(attacked)


_WAYS: dict[str, Callable[[AttackedTeam], None]] = {
    "one session": _one_session,
    "sessions on top": _sessions_on_top,
    "pruned": _pruned,
    "said to be decided before": _said_to_be_decided_before,
    "said to be the first": _said_to_be_the_first,
}


@pytest.mark.parametrize("way", _WAYS)
def test_a_session_in_a_wider_world_is_not_continued(attacked: AttackedTeam, way: str) -> None:
    """A13, A15: an honest worker with the new tool needs approval, and `verify` says why."""
    _begun(attacked)
    with attacked.landing():
        _WAYS[way](attacked)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh().resume(world=SHELL)
    codes = {each.code for each in attacked.world.open(None, read_only=True).verify().findings}

    assert "compared with what was allowed" in needs.value.message
    assert UNJUSTIFIED in codes


@pytest.mark.parametrize("field", ["decided", "released"])
@pytest.mark.parametrize("buried", [True, False])
def test_a_session_from_nothing_names_no_earlier_decision(
    attacked: AttackedTeam, field: str, *, buried: bool
) -> None:
    """Its world was decided when it began: there is no checkpoint whose world it could keep."""
    attacked.pool("pods", "worker", "spare")
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    attacked.thread().handoff(to="pods", reason="shared")
    warm = attacked.fresh("operator")
    warm.load()
    attacked.thread("officer").erase(reason="asked for")
    rogue = Rogue(attacked.store().core, "worker")
    gen = parse_header(rogue.rows[-1].header).gen + 1
    rogue.write(Kind.GENESIS, GenesisBody(salt=attacked.salt, name="t", owner="pods"), gen=gen)
    named: dict[str, Any] = {"policy": attacked.digest}
    first = rogue.resume("pods", **named)
    ahead: dict[str, Any] = named | {field: first}
    rogue.resume("pods", **ahead)
    rogue.save()
    if buried:
        rogue.resume("pods", **named)
        rogue.save()
    rogue.anchor()

    if not buried:
        for thread in (attacked.fresh("spare"), warm):
            assert attacked.ending(thread.load) is Edited
    assert attacked.resumed("spare") is Edited
    assert not attacked.world.open(None, read_only=True).verify().ok


@pytest.mark.parametrize("field", ["decided", "released"])
def test_a_session_from_nothing_that_names_one_is_not_written(
    attacked: AttackedTeam, field: str
) -> None:
    """A writer refuses it before it signs."""
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    handle, rows = attacked.fresh(), len(attacked.rows())
    handle.load()
    body = ResumeBody(
        salt=attacked.salt,
        owner="worker",
        basis=rows - 1,
        policy=attacked.digest,
        **{field: attacked.find(Kind.RESUME)},  # type: ignore[arg-type]
    )
    start = SessionStart(body, handle._state.core.trust())

    with pytest.raises(Edited):
        handle._gate.writer.open_session(start)
    assert len(attacked.rows()) == rows


def test_what_was_allowed_before_goes_on(attacked: AttackedTeam) -> None:
    """The world that was decided needs nobody's word, and one that people approve holds after."""
    _begun(attacked)
    _one_session(attacked)

    assert attacked.fresh().resume(world=READ).state == {"n": 9}
    request = attacked.ask()
    attacked.approve(request)
    thread = attacked.fresh()
    assert thread.resume(world=SHELL).state == {"n": 9}
    thread.save({"n": 10})
    assert attacked.fresh().resume(world=SHELL).state == {"n": 10}


def test_an_older_policy_lets_no_honest_worker_continue(attacked: AttackedTeam) -> None:
    """B01: the roster that the session names is from before the policy that asks people."""
    change = _Change(attacked)
    with attacked.landing():
        change.slip()
    _save(attacked)

    assert attacked.resumed() is NeedsApproval


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_rollout_that_ended_lets_no_honest_worker_continue(
    attacked: AttackedTeam, how: str
) -> None:
    """B03: the session claims a time at which the rollout held."""
    _, honest, held = _ended(attacked, how)
    with attacked.landing():
        _backdate(attacked, honest, held)
    _save(attacked)

    assert attacked.resumed() is NeedsApproval


def test_approved_worlds_are_continued_in_without_another_word(attacked: AttackedTeam) -> None:
    """The control: a granted resume and a rollout hold for every worker after them."""
    attacked.granted()
    attacked.thread().resume(world=SHELL)
    attacked.thread().save({"n": 3})
    attacked.fresh().save({"n": 4}, world=SHELL)

    assert attacked.fresh().resume(world=SHELL).state == {"n": 4}
    assert attacked.newest(Kind.RESUME).rules == ()
    attacked.check_sound()


@pytest.mark.parametrize("claim", ["released", "decided"])
def test_a_session_that_rests_on_nothing_is_put_to_people(
    attacked: AttackedTeam, claim: str
) -> None:
    """It names a checkpoint that was erased, or a decision that is none: that stops nobody."""
    attacked.pool("pods", "worker", "spare")
    attacked.thread().save({"n": 1}, id="c1", world=READ)
    erased = attacked.find(Kind.CHECKPOINT)
    attacked.fresh("officer").erase(reason="asked for")
    attacked.fresh().save({"n": 2}, id="c2", world=READ)
    attacked.fresh().handoff(to="pods", reason="shared")
    newest = attacked.find(Kind.CHECKPOINT)
    attacked.fresh().resume(world=READ)
    rogue = Rogue(attacked.store().core, "worker")
    fields: dict[str, Any] = {"leaves": READ} if claim == "released" else {"decided": newest}
    released = erased if claim == "released" else newest
    for _ in range(2):
        entry = link_hash(attacked.rows()[released].header).hex()
        fields |= {"checkpoint": entry, "release": "11" * 32, "world": _world(READ)}
        rogue.resume("pods", released=released, **fields)
        released = released if claim == "released" else len(rogue.rows)
        for _ in range(2):
            rogue.save(world=_world(READ))
    rogue.anchor()

    with pytest.raises(NeedsApproval) as asked:
        attacked.fresh("spare").resume(world=READ)
    request = asked.value.request
    assert isinstance(request, Request)
    attacked.approve(request)
    assert attacked.fresh("spare").resume(world=READ).ref.seq > newest
    assert not attacked.world.open(None, read_only=True).verify().ok


def _read_for(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch, sessions: int, name: str
) -> int:
    """How many bodies the first resume of a member reads after many sessions of another one.

    Each of them saves the same checkpoint again, which keeps the place of the first.
    """
    member = attacked.fresh("spare", name=name)
    for number in range(sessions):
        token = f"{name}-{number}"
        member.adapter.begin(world=World.from_dict(READ), token=token)
        saved(member, put({"n": number}, "again", world=World.from_dict(READ)))
        member.adapter.end(token)
    numbers, parse = [0], _session_worlds.parse_body  # type: ignore[attr-defined]

    def counted(*args: Any) -> Any:
        numbers[0] += 1
        return parse(*args)

    with monkeypatch.context() as patch:
        patch.setattr(_session_worlds, "parse_body", counted)
        resumed = attacked.fresh(name=name).resume(world=READ)
    assert resumed.state == {"n": sessions - 1}
    return numbers[0]


def test_a_row_of_sessions_is_read_once(
    attacked: AttackedTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was the newest before each session of another member is not looked up for each."""
    attacked.pool("pods", "worker", "spare")
    few, many = 10, 40
    for name in ("few", "many"):
        attacked.thread(name=name).save({"n": 0}, id="c0", world=READ)
        attacked.fresh(name=name).handoff(to="pods", reason="shared")
    found = _read_for(attacked, monkeypatch, few, "few")
    more = _read_for(attacked, monkeypatch, many, "many")

    assert many < more < 4 * many
    assert more - found <= 3 * (many - few)
