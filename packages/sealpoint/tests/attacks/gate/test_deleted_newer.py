# SPDX-License-Identifier: Apache-2.0
"""Making an old checkpoint the newest: by deleting what is newer, or by copying it elsewhere.

Going on from it is what the rule `older-checkpoint` is about, whoever deletes or copies: what came
after it would happen again. It is judged so until somebody has gone on from there on purpose.
"""

from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.audit import UNJUSTIFIED
from sealpoint.errors import NeedsApproval, ResumeRefused, SealpointError
from sealpoint.gate import Request, Thread, shipped_policy
from sealpoint.ledger import Kind, Origin, PruneBody, ResumeBody
from sealpoint.store import Key, SaveDraft
from sealpoint.world import World
from tests.attacks.gate.attacked_team import AttackedTeam
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, saved, written

_RULE = "older-checkpoint"
_WORLD = World.of(READ)
_NEEDS = {"solo": ResumeRefused, "strict": NeedsApproval}
_every_policy = pytest.mark.parametrize("policy", _NEEDS)


def _wallet(attacked: AttackedTeam, *, name: str = "t") -> None:
    """A thread whose newest checkpoint has spent what the one before it had."""
    saved(
        attacked.thread(name=name),
        put({"balance": 100}, "1", world=_WORLD),
        put({"balance": 0}, "2"),
    )


def _hide(attacked: AttackedTeam) -> None:
    """Delete the newest checkpoint, as its owner may."""
    _wallet(attacked)
    attacked.thread().adapter.delete([Key("", "2")])


def _hide_twice(attacked: AttackedTeam) -> None:
    """Delete two newer ones, one after the other, the newest last."""
    _wallet(attacked)
    saved(attacked.thread(), put({"balance": -5}, "3"))
    attacked.thread().adapter.delete([Key("", "2")])
    attacked.thread().adapter.delete([Key("", "3")])


def _copy(attacked: AttackedTeam) -> None:
    """Copy the older checkpoint into a thread that holds nothing else."""
    _wallet(attacked, name="source")
    source = attacked.thread(name="source")
    older = source.load("1")
    saved(
        attacked.thread(),
        SaveDraft(
            older.state,
            "1",
            None,
            None,
            _WORLD,
            supersedes=True,
            origin=Origin(thread=source.id, entry=older.ref.entry, at=older.ref.time),
        ),
    )


_TRICKS: dict[str, Callable[[AttackedTeam], None]] = {
    "delete it": _hide,
    "delete two": _hide_twice,
    "copy the older": _copy,
}
_every_trick = pytest.mark.parametrize("trick", _TRICKS.values(), ids=_TRICKS)

_WAYS: dict[str, Callable[[Thread], Any]] = {
    "resume": lambda thread: thread.resume(world=READ),
    "begin": lambda thread: thread.adapter.begin(world=READ),
    "run": lambda thread: written(thread, World.of(READ)),
    "save": lambda thread: thread.save({"balance": 95}, world=READ),
}


def _rules(attacked: AttackedTeam) -> set[str]:
    return {str(reason.rule) for reason in attacked.fresh().judge(world=READ).reasons}


@_every_policy
@_every_trick
@pytest.mark.parametrize("way", _WAYS)
def test_what_was_made_the_newest_is_not_gone_on_from_without_a_word(
    attacked: AttackedTeam, trick: Callable[[AttackedTeam], None], policy: str, way: str
) -> None:
    """However a session begins; nothing is released, and nothing but a request is written."""
    attacked.apply(shipped_policy(policy))
    trick(attacked)
    attacked.sound()
    before = attacked.kinds()
    expected = _NEEDS[policy] if way in ("resume", "begin") else ResumeRefused

    assert attacked.ending(lambda: _WAYS[way](attacked.fresh())) is expected
    assert [kind for kind in attacked.kinds()[len(before) :] if kind != "request"] == []
    assert _RULE in _rules(attacked)


def _begun(thread: Thread) -> Any:
    thread.adapter.begin(world=READ)
    return thread.adapter.snapshot()


_RELEASES: dict[str, Callable[[Thread], Any]] = {
    "load": lambda thread: thread.load(),
    "snapshot": lambda thread: thread.adapter.snapshot(),
    "resume": lambda thread: thread.resume(world=READ),
    "begin": _begun,
}


@_every_policy
@pytest.mark.parametrize("way", _RELEASES.values(), ids=_RELEASES)
def test_a_prune_of_the_newest_makes_no_older_one_the_newest(
    attacked: AttackedTeam, way: Callable[[Thread], Any], policy: str
) -> None:
    """An entry that no code of ours writes, by a key that may: the older state is not shown."""
    attacked.apply(shipped_policy(policy))
    _wallet(attacked)
    newest = attacked.find(Kind.CHECKPOINT)
    with attacked.landing():
        body = PruneBody(salt=attacked.salt, before=newest + 1, kept=(newest - 1,))
        attacked.slip(Kind.PRUNE, body, "worker")
    try:
        found = way(attacked.fresh()).state
    except SealpointError:
        found = None

    assert found != {"balance": 100}


@_every_trick
def test_a_reason_or_an_approval_is_for_once(
    attacked: AttackedTeam, trick: Callable[[AttackedTeam], None]
) -> None:
    """With a word it passes, told with its rule; whoever goes on after that needs none."""
    attacked.apply(shipped_policy("solo"))
    trick(attacked)
    loaded = attacked.fresh().resume(world=READ, deliberate="the payment bounced")
    body = attacked.newest(Kind.RESUME)
    again = attacked.fresh().resume(world=READ)

    assert loaded.state == {"balance": 100}
    assert (body.rules, body.reason) == ((_RULE,), "the payment bounced")
    assert again.state == {"balance": 100}
    assert attacked.newest(Kind.RESUME).rules == ()
    attacked.check_sound()


@_every_trick
def test_people_approve_what_was_made_the_newest(
    attacked: AttackedTeam, trick: Callable[[AttackedTeam], None]
) -> None:
    """Under `strict` two people are asked for it, and it passes once they have approved."""
    attacked.apply(shipped_policy("strict"))
    trick(attacked)
    with pytest.raises(NeedsApproval) as needs:
        attacked.fresh().resume(world=READ)
    request = needs.value.request
    assert isinstance(request, Request)
    attacked.approve(request)

    assert attacked.fresh().resume(world=READ).state == {"balance": 100}
    assert attacked.newest(Kind.RESUME).rules == (_RULE,)
    attacked.check_sound()


# ---------------------------------------------------------------------- around the gate


def _around(attacked: AttackedTeam) -> str:
    """Resume the newest checkpoint as a worker whose gate found nothing to say; what verify says.

    Beside the rule that it does not tell, the entry is well made.
    """
    newest = attacked.fresh().load()
    checkpoint = attacked.newest(Kind.CHECKPOINT)
    body = ResumeBody(
        salt=attacked.salt,
        owner="worker",
        basis=len(attacked.rows()) - 1,
        checkpoint=newest.ref.entry,
        release=attacked.fresh().release().digest,
        released=newest.ref.seq,
        world=checkpoint.world,
        leaves=READ if checkpoint.world is not None else None,
        policy=attacked.store().core.renewed_trust().roster.document.policies["*"],
    )
    attacked.slip(Kind.RESUME, body, "worker")
    findings = attacked.world.open(None, read_only=True).verify().findings
    assert all(finding.code == UNJUSTIFIED for finding in findings), findings
    return "\n".join(finding.message for finding in findings)


@_every_policy
@_every_trick
def test_a_resume_around_the_gate_is_found(
    attacked: AttackedTeam, trick: Callable[[AttackedTeam], None], policy: str
) -> None:
    """An audit judges again, and does not forget what was deleted or copied."""
    attacked.apply(shipped_policy(policy))
    trick(attacked)

    assert _RULE in _around(attacked)


@_every_policy
def test_a_resume_around_the_gate_of_what_is_the_newest_is_justified(
    attacked: AttackedTeam, policy: str
) -> None:
    """The control: the same entry, where nothing was deleted or copied."""
    attacked.apply(shipped_policy(policy))
    _wallet(attacked)

    assert _around(attacked) == ""


# ---------------------------------------------------------------------- the controls


def _prune(attacked: AttackedTeam) -> None:
    _wallet(attacked)
    attacked.thread().prune(keep_last=1, compact=False)


def _hide_the_older(attacked: AttackedTeam) -> None:
    _wallet(attacked)
    attacked.thread().adapter.delete([Key("", "1")])


def _hide_all_and_begin_anew(attacked: AttackedTeam) -> None:
    _wallet(attacked)
    attacked.thread().adapter.delete()
    attacked.fresh().save({"balance": 0}, id="3", world=READ)


def _hide_and_go_on(attacked: AttackedTeam) -> None:
    """Who deleted it was at work, goes on in its own session, and saves something newer."""
    _hide(attacked)
    saved(attacked.thread(), put({"balance": 0}, "3"))


_HONEST: dict[str, Callable[[AttackedTeam], None]] = {
    "prune": _prune,
    "delete the older": _hide_the_older,
    "delete all and begin anew": _hide_all_and_begin_anew,
    "delete the newest and save another": _hide_and_go_on,
}


# Where people are asked, no run goes on that nobody decided about.
_GOES_ON = [
    (policy, way) for policy in _NEEDS for way in _WAYS if (policy, way) != ("strict", "run")
]


@pytest.mark.parametrize(("policy", "way"), _GOES_ON)
@pytest.mark.parametrize("honest", _HONEST.values(), ids=_HONEST)
def test_what_is_the_newest_is_gone_on_from_as_before(
    attacked: AttackedTeam, honest: Callable[[AttackedTeam], None], policy: str, way: str
) -> None:
    """The control: nothing above it was deleted since the last resume, so nobody is asked."""
    attacked.apply(shipped_policy(policy))
    honest(attacked)
    _WAYS[way](attacked.fresh())

    assert attacked.newest(Kind.RESUME).rules == ()
    assert attacked.fresh().load().state["balance"] in (0, 95)
    attacked.check_sound()
