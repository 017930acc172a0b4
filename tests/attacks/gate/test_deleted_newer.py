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
from tests.attacks.gate.raid import Raid
from tests.unit.gate.team import READ
from tests.unit.store.laned import put, saved, written

_RULE = "older-checkpoint"
_WORLD = World.of(READ)
_NEEDS = {"solo": ResumeRefused, "team": NeedsApproval}
_every_policy = pytest.mark.parametrize("policy", _NEEDS)


def _wallet(raid: Raid, *, name: str = "t") -> None:
    """A thread whose newest checkpoint has spent what the one before it had."""
    saved(
        raid.thread(name=name),
        put({"balance": 100}, "1", world=_WORLD),
        put({"balance": 0}, "2"),
    )


def _hide(raid: Raid) -> None:
    """Delete the newest checkpoint, as its owner may."""
    _wallet(raid)
    raid.thread().adapter.delete([Key("", "2")])


def _hide_twice(raid: Raid) -> None:
    """Delete two newer ones, one after the other, the newest last."""
    _wallet(raid)
    saved(raid.thread(), put({"balance": -5}, "3"))
    raid.thread().adapter.delete([Key("", "2")])
    raid.thread().adapter.delete([Key("", "3")])


def _copy(raid: Raid) -> None:
    """Copy the older checkpoint into a thread that holds nothing else."""
    _wallet(raid, name="source")
    source = raid.thread(name="source")
    older = source.load("1")
    saved(
        raid.thread(),
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


_TRICKS: dict[str, Callable[[Raid], None]] = {
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


def _rules(raid: Raid) -> set[str]:
    return {str(reason.rule) for reason in raid.fresh().judge(world=READ).reasons}


@_every_policy
@_every_trick
@pytest.mark.parametrize("way", _WAYS)
def test_what_was_made_the_newest_is_not_gone_on_from_without_a_word(
    raid: Raid, trick: Callable[[Raid], None], policy: str, way: str
) -> None:
    """However a session begins; nothing is released, and nothing but a request is written."""
    raid.apply(shipped_policy(policy))
    trick(raid)
    raid.sound()
    before = raid.kinds()
    expected = _NEEDS[policy] if way in ("resume", "begin") else ResumeRefused

    assert raid.ending(lambda: _WAYS[way](raid.fresh())) is expected
    assert [kind for kind in raid.kinds()[len(before) :] if kind != "request"] == []
    assert _RULE in _rules(raid)


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
    raid: Raid, way: Callable[[Thread], Any], policy: str
) -> None:
    """An entry that no code of ours writes, by a key that may: the older state is not shown."""
    raid.apply(shipped_policy(policy))
    _wallet(raid)
    newest = raid.find(Kind.CHECKPOINT)
    with raid.landing():
        body = PruneBody(salt=raid.salt, before=newest + 1, kept=(newest - 1,))
        raid.slip(Kind.PRUNE, body, "worker")
    try:
        found = way(raid.fresh()).state
    except SealpointError:
        found = None

    assert found != {"balance": 100}


@_every_trick
def test_a_reason_or_an_approval_is_for_once(raid: Raid, trick: Callable[[Raid], None]) -> None:
    """With a word it passes, told with its rule; whoever goes on after that needs none."""
    raid.apply(shipped_policy("solo"))
    trick(raid)
    loaded = raid.fresh().resume(world=READ, deliberate="the payment bounced")
    body = raid.newest(Kind.RESUME)
    again = raid.fresh().resume(world=READ)

    assert loaded.state == {"balance": 100}
    assert (body.rules, body.reason) == ((_RULE,), "the payment bounced")
    assert again.state == {"balance": 100}
    assert raid.newest(Kind.RESUME).rules == ()
    raid.check_sound()


@_every_trick
def test_people_approve_what_was_made_the_newest(raid: Raid, trick: Callable[[Raid], None]) -> None:
    """Under `team` two people are asked for it, and it passes once they have approved."""
    raid.apply(shipped_policy("team"))
    trick(raid)
    with pytest.raises(NeedsApproval) as needs:
        raid.fresh().resume(world=READ)
    request = needs.value.request
    assert isinstance(request, Request)
    raid.approve(request)

    assert raid.fresh().resume(world=READ).state == {"balance": 100}
    assert raid.newest(Kind.RESUME).rules == (_RULE,)
    raid.check_sound()


# ---------------------------------------------------------------------- around the gate


def _around(raid: Raid) -> str:
    """Resume the newest checkpoint as a worker whose gate found nothing to say; what verify says.

    Beside the rule that it does not tell, the entry is well made.
    """
    newest = raid.fresh().load()
    checkpoint = raid.newest(Kind.CHECKPOINT)
    body = ResumeBody(
        salt=raid.salt,
        owner="worker",
        basis=len(raid.rows()) - 1,
        checkpoint=newest.ref.entry,
        release=raid.fresh().release().digest,
        world=checkpoint.world,
        policy=raid.store().core.renewed_trust().roster.document.policies["*"],
    )
    raid.slip(Kind.RESUME, body, "worker")
    findings = raid.world.open(None, read_only=True).verify().findings
    assert all(finding.code == UNJUSTIFIED for finding in findings), findings
    return "\n".join(finding.message for finding in findings)


@_every_policy
@_every_trick
def test_a_resume_around_the_gate_is_found(
    raid: Raid, trick: Callable[[Raid], None], policy: str
) -> None:
    """An audit judges again, and does not forget what was deleted or copied."""
    raid.apply(shipped_policy(policy))
    trick(raid)

    assert _RULE in _around(raid)


@_every_policy
def test_a_resume_around_the_gate_of_what_is_the_newest_is_justified(
    raid: Raid, policy: str
) -> None:
    """The control: the same entry, where nothing was deleted or copied."""
    raid.apply(shipped_policy(policy))
    _wallet(raid)

    assert _around(raid) == ""


# ---------------------------------------------------------------------- the controls


def _prune(raid: Raid) -> None:
    _wallet(raid)
    raid.thread().prune(keep_last=1, compact=False)


def _hide_the_older(raid: Raid) -> None:
    _wallet(raid)
    raid.thread().adapter.delete([Key("", "1")])


def _hide_all_and_begin_anew(raid: Raid) -> None:
    _wallet(raid)
    raid.thread().adapter.delete()
    raid.fresh().save({"balance": 0}, id="3", world=READ)


def _hide_and_go_on(raid: Raid) -> None:
    """Who deleted it was at work, goes on in its own session, and saves something newer."""
    _hide(raid)
    saved(raid.thread(), put({"balance": 0}, "3"))


_HONEST: dict[str, Callable[[Raid], None]] = {
    "prune": _prune,
    "delete the older": _hide_the_older,
    "delete all and begin anew": _hide_all_and_begin_anew,
    "delete the newest and save another": _hide_and_go_on,
}


# Where people are asked, no run goes on that nobody decided about.
_GOES_ON = [(policy, way) for policy in _NEEDS for way in _WAYS if (policy, way) != ("team", "run")]


@pytest.mark.parametrize(("policy", "way"), _GOES_ON)
@pytest.mark.parametrize("honest", _HONEST.values(), ids=_HONEST)
def test_what_is_the_newest_is_gone_on_from_as_before(
    raid: Raid, honest: Callable[[Raid], None], policy: str, way: str
) -> None:
    """The control: nothing above it was deleted since the last resume, so nobody is asked."""
    raid.apply(shipped_policy(policy))
    honest(raid)
    _WAYS[way](raid.fresh())

    assert raid.newest(Kind.RESUME).rules == ()
    assert raid.fresh().load().state["balance"] in (0, 95)
    raid.check_sound()
