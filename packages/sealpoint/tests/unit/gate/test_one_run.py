# SPDX-License-Identifier: Apache-2.0
"""A run has its thread while it lives; what came of an answer is asked where nobody knows it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from sealpoint.errors import Busy, NeedsApproval, ResumeRefused
from sealpoint.gate import shipped_policy
from sealpoint.gate._last_session import LastSession
from sealpoint.ledger import Kind
from tests.unit.gate.team import READ, Team, policy
from tests.unit.gate.test_review import _rogue

_YES: dict[str, Any] = {"world": READ, "answer": "yes"}
_AGAIN = "the bank has no such payment"


@pytest.fixture
def solo(memory: Team) -> Iterator[Team]:
    """A team of one, whose run waits for an answer."""
    memory.apply(shipped_policy("solo"))
    memory.thread().save(1, id="asked", world=READ, question="pay?")
    yield memory
    memory.check_sound()


def _died(team: Team) -> None:
    """Leave a run as a process that was killed does: it had its answer, and has saved a step."""
    thread = team.fresh()
    thread.adapter.begin(**_YES, token="mine")  # noqa: S106
    thread.save(2)
    thread.adapter.end("mine", came_to_end=False)


def _goes_on(team: Team, who: str = "worker") -> None:
    """Go on where nobody knows what came of an answer, with a word, and come to the end."""
    thread = team.fresh(who)
    with thread.run(world=READ, deliberate=_AGAIN):
        thread.save(3)
    assert team.newest(Kind.RESUME).rules == ("unknown-outcome",)


_SECOND: dict[str, Callable[[Any], Any]] = {
    "resume": lambda thread: thread.resume(**_YES),
    "run": lambda thread: thread.run(**_YES).__enter__(),
    "begin": lambda thread: thread.adapter.begin(**_YES, token="other"),  # noqa: S106
    "save": lambda thread: thread.save(2),
}


@pytest.mark.parametrize("call", _SECOND)
def test_a_second_call_is_refused_while_a_run_lives(solo: Team, call: str) -> None:
    """In another process, before it has written anything; the run itself saves as it likes."""
    thread = solo.thread()
    with thread.run(**_YES):
        before = solo.everything()
        with pytest.raises((Busy, ResumeRefused), match="a run is under way: 'worker', since"):
            _SECOND[call](solo.fresh())
        assert solo.everything() == before
        thread.save(2)


@pytest.mark.parametrize("call", ["resume", "run", "begin"])
def test_a_second_call_is_refused_in_the_same_process(solo: Team, call: str) -> None:
    """By the very handle of the run: a double click in one web server."""
    thread = solo.thread()
    with thread.run(**_YES):
        with pytest.raises(Busy, match="a run is under way: 'worker', since"):
            _SECOND[call](thread)
        thread.save(2)


def test_a_run_ends_however_its_block_ends(solo: Team) -> None:
    """The next one may go on, and is asked where the first one saved nothing."""
    with suppress(KeyError), solo.thread().run(**_YES):
        raise KeyError("the bank")
    with pytest.raises(ResumeRefused, match="saved nothing since"), solo.fresh().run(**_YES):
        pass
    with solo.fresh().run(**_YES, deliberate=_AGAIN):
        pass
    body = solo.newest(Kind.RESUME)

    assert (body.held, body.reason) == (True, _AGAIN)
    assert set(body.rules) == {"answer", "unknown-outcome"}


def test_a_run_that_died_before_it_saved_anything_is_forgotten(memory: Team) -> None:
    """Nothing was there to go on from; the next one begins the thread, and ends."""
    slot = memory.thread()._state.chain.slot
    for came_to_end in (False, True):
        thread = memory.fresh()
        thread.adapter.begin(world=READ, token="mine")  # noqa: S106
        thread.adapter.end("mine", came_to_end=came_to_end)

    assert memory.store("operator").anchor.inner.holder(slot) is None


def test_what_is_refused_holds_nothing(memory: Team) -> None:
    """A worker asks again and again until people have approved, and keeps nobody else away."""
    memory.thread().save(1, world=READ, question="pay?")
    for _ in range(2):
        with pytest.raises(NeedsApproval):
            memory.thread().adapter.begin(**_YES, token="mine")  # noqa: S106
    with pytest.raises(NeedsApproval):
        memory.fresh().resume(**_YES)


def test_what_was_saved_is_known(solo: Team) -> None:
    """An answer that a run came to its end with is not asked about."""
    with solo.thread().run(**_YES) as loaded:
        solo.thread().save(loaded.state + 1)
    solo.fresh().resume(world=READ)

    assert solo.newest(Kind.RESUME).rules == ()


def test_a_run_that_died_is_asked_about_until_somebody_goes_on(solo: Team) -> None:
    """Also after what it had saved, and not forgotten because somebody was refused."""
    _died(solo)
    for _ in range(2):
        with pytest.raises(ResumeRefused, match="did not come to its end"):
            solo.fresh().adapter.begin(world=READ, token="mine")  # noqa: S106
    solo.fresh().adapter.begin(world=READ, token="mine", deliberate=_AGAIN)  # noqa: S106

    assert solo.newest(Kind.RESUME).rules == ("unknown-outcome",)


def test_a_run_that_died_without_an_answer_goes_on(solo: Team) -> None:
    """It repeats the step that it was at, as every durable framework does."""
    solo.thread().save(2)
    thread = solo.fresh()
    thread.adapter.begin(world=READ, token="mine")  # noqa: S106
    thread.adapter.end("mine", came_to_end=False)
    solo.fresh().adapter.begin(world=READ, token="other")  # noqa: S106

    assert solo.newest(Kind.RESUME).rules == ()


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_is_idempotent_is_not_asked_about(
    solo: Team,
    idempotent: bool,  # noqa: FBT001
) -> None:
    """It is looked up only where it matters, and recorded there."""
    looked: list[bool] = []

    def look() -> bool:
        looked.append(idempotent)
        return idempotent

    solo.fresh().adapter.begin(**_YES, token="mine", idempotent=look)  # noqa: S106
    assert (looked, solo.newest(Kind.RESUME).idempotent) == ([], False)
    _forget_holds(solo)
    begin = solo.fresh().adapter.begin
    if idempotent:
        begin(**_YES, token="other", idempotent=look)  # noqa: S106
        assert solo.newest(Kind.RESUME).idempotent
        assert "unknown-outcome" not in solo.newest(Kind.RESUME).rules
    else:
        with pytest.raises(ResumeRefused, match="saved nothing since"):
            begin(**_YES, token="other", idempotent=look)  # noqa: S106


def _forget_holds(team: Team) -> None:
    """Let no run live any more, as when its machine is gone."""
    inner: Any = team.store("operator").anchor.inner
    inner._holds.clear()


def test_an_operator_stops_a_run_that_hangs(solo: Team) -> None:
    """A pause and its end let the next one go on beside it, once it has said that it is meant."""
    slow = solo.thread()
    slow.adapter.begin(**_YES, token="slow")  # noqa: S106
    with pytest.raises(Busy):
        solo.fresh().resume(**_YES)
    solo.thread("operator").pause("it hangs")
    with pytest.raises(ResumeRefused, match="is paused"):
        solo.fresh().resume(**_YES, deliberate=_AGAIN)
    solo.thread("operator").unpause("somebody else goes on")
    with pytest.raises(ResumeRefused, match="did not come to its end"):
        solo.fresh().adapter.begin(**_YES, token="next")  # noqa: S106
    following = solo.fresh()
    following.adapter.begin(**_YES, token="next", deliberate=_AGAIN)  # noqa: S106
    following.save(2)
    with pytest.raises(Busy):
        solo.fresh().resume(world=READ)
    slow.adapter.end("slow")
    following.adapter.end("next")


def test_whoever_goes_on_beside_it_has_the_thread(solo: Team) -> None:
    """The end of the one that hung leaves nobody else in."""
    slow, following = solo.thread(), solo.fresh()
    slow.adapter.begin(**_YES, token="slow")  # noqa: S106
    solo.thread("operator").pause("it hangs")
    solo.thread("operator").unpause("somebody else goes on")
    assert not slow.adapter.may_go_on("slow"), "it was stopped"
    following.adapter.begin(**_YES, token="next", deliberate=_AGAIN)  # noqa: S106
    following.save(2)
    slow.adapter.end("slow")
    with pytest.raises(Busy):
        solo.fresh().resume(world=READ)
    following.adapter.end("next")
    solo.fresh().resume(world=READ)


def test_a_run_that_died_while_another_was_judged_is_asked_about(
    solo: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the decision and the hold of a double click the first one pays, and dies."""
    real = LastSession.hold

    def hold(last: LastSession, who: str, now: Any) -> Any:
        monkeypatch.setattr(LastSession, "hold", real)
        _died(solo)
        return real(last, who, now)

    monkeypatch.setattr(LastSession, "hold", hold)
    with pytest.raises(ResumeRefused, match="did not come to its end"):
        solo.fresh().adapter.begin(**_YES, token="second")  # noqa: S106


def test_an_edit_that_failed_is_not_asked_about(solo: Team) -> None:
    """Nothing runs in it."""
    thread = solo.fresh()
    thread.adapter.begin(world=READ, answer={"edit": 1}, edits=True, token="mine")  # noqa: S106
    thread.adapter.end("mine", came_to_end=False)
    with solo.fresh().run(**_YES):
        pass

    assert solo.newest(Kind.RESUME).rules == ("answer",)


@pytest.mark.parametrize("owners", [("spare",), ("pods",), ("spare", "pods")])
def test_a_handoff_forgets_no_run_that_died(solo: Team, owners: tuple[str, ...]) -> None:
    """Whoever has the thread by now is asked, once, as the one before would have been."""
    solo.pool("pods", "worker", "spare")
    _died(solo)
    for owner, who in zip(owners, ("worker", "spare"), strict=False):
        solo.fresh(who).handoff(to=owner, reason="that pod is dead")
    with pytest.raises(ResumeRefused, match=r"'worker' resumed .* did not come to its end"):
        solo.fresh("spare").adapter.begin(world=READ, token="mine")  # noqa: S106
    _goes_on(solo, "spare")
    solo.fresh("spare").resume(world=READ)

    assert solo.newest(Kind.RESUME).rules == ()


def test_a_handoff_forgets_no_answer_after_which_nothing_was_saved(solo: Team) -> None:
    """The thread alone tells of it, whatever the anchor knows."""
    solo.fresh().resume(**_YES)
    solo.fresh().handoff(to="spare", reason="yours")
    with pytest.raises(ResumeRefused, match="saved nothing since"):
        solo.fresh("spare").resume(**_YES)


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("came_to_end", [True, False])
@pytest.mark.parametrize("saves", [True, False])
def test_an_edit_leaves_the_question_to_the_next_run(
    solo: Team,
    saves: bool,  # noqa: FBT001
    came_to_end: bool,  # noqa: FBT001
    idempotent: bool,  # noqa: FBT001
) -> None:
    """Nothing runs in it, whatever it saves: nobody is asked about it, and it settles nothing."""
    _died(solo)
    wish: dict[str, Any] = {"world": READ, "answer": {"edit": 1}}
    for _ in range(2):
        edit = solo.fresh()
        edit.adapter.begin(**wish, edits=True, token="edit", idempotent=lambda: idempotent)  # noqa: S106
        if saves:
            edit.save(3)
        edit.adapter.end("edit", came_to_end=came_to_end)
    with pytest.raises(ResumeRefused, match=r"edited at .* what came of an answer"):
        solo.fresh().adapter.begin(world=READ, token="next")  # noqa: S106
    _goes_on(solo)
    solo.fresh().resume(world=READ)

    assert solo.newest(Kind.RESUME).rules == ()


def test_an_edit_after_a_run_that_ended_is_not_asked_about(solo: Team) -> None:
    """What the answer let happen was saved, and the edit is nothing that could happen again."""
    with solo.thread().run(**_YES):
        solo.thread().save(2)
    edit = solo.fresh()
    wish: dict[str, Any] = {"world": READ, "answer": {"edit": 1}, "deliberate": "a typo"}
    edit.adapter.begin(**wish, edits=True, token="edit")  # noqa: S106
    edit.adapter.end("edit")
    solo.fresh().resume(world=READ)

    assert solo.newest(Kind.RESUME).rules == ()


@pytest.mark.parametrize("call", ["resume", "save"])
def test_a_word_without_a_run_settles_what_died_before_it(solo: Team, call: str) -> None:
    """The run that died is still known in the anchor, and is not that of the session in force."""
    _died(solo)
    word = solo.fresh()
    word.resume(world=READ, deliberate=_AGAIN)
    with pytest.raises(ResumeRefused, match="saved nothing since"):
        solo.fresh().resume(world=READ)
    word.save(3)
    if call == "resume":
        solo.fresh().resume(world=READ)
    else:
        solo.fresh().save(4, world=READ)
    assert solo.newest(Kind.RESUME).rules == ()
    with solo.fresh().run(world=READ):
        pass

    assert solo.newest(Kind.RESUME).rules == ()


@pytest.mark.parametrize(
    "order",
    [
        ("pause", "unpause", "handoff"),
        ("pause", "handoff", "unpause"),
        ("handoff", "pause", "unpause"),
        ("handoff",),
    ],
)
def test_a_run_that_was_stopped_keeps_no_later_owner_away(
    solo: Team, order: tuple[str, ...]
) -> None:
    """Whether the thread was handed off before, between, after or only handed off."""
    slow = solo.thread()
    slow.adapter.begin(**_YES, token="slow")  # noqa: S106
    for act in order:
        if act == "handoff":
            solo.fresh().handoff(to="spare", reason="it hangs")
        else:
            getattr(solo.thread("operator"), act)("it hangs")
    spare = solo.fresh("spare")
    with pytest.raises(ResumeRefused, match="did not come to its end"):
        spare.adapter.begin(**_YES, token="next")  # noqa: S106
    spare.adapter.begin(**_YES, token="next", deliberate=_AGAIN)  # noqa: S106
    spare.adapter.end("next")


def test_a_process_that_died_is_waited_for_by_nobody(solo: Team) -> None:
    """Whatever `takeover_after` says: that is for sessions of which nobody sees the end."""
    solo.apply(policy("waits", takeover="1h", unknown_outcome="reason", answer="record"))
    _died(solo)
    with pytest.raises(ResumeRefused, match="did not come to its end"):
        solo.fresh().adapter.begin(world=READ, token="next")  # noqa: S106
    solo.fresh().adapter.begin(world=READ, token="next", deliberate=_AGAIN)  # noqa: S106


def test_an_erasure_forgets_what_ran_before_it(solo: Team) -> None:
    """Nothing is left of what the answer was given for; and it stops no run by itself."""
    slow = solo.thread()
    slow.adapter.begin(**_YES, token="slow")  # noqa: S106
    solo.thread("operator").pause("it hangs")
    solo.thread("operator").unpause("somebody else goes on")
    solo.thread("officer").erase(reason="asked for")
    with pytest.raises(Busy):
        solo.fresh().adapter.begin(world=READ, token="next")  # noqa: S106
    slow.adapter.end("slow", came_to_end=False)
    solo.fresh().save(1, world=READ)
    solo.fresh().resume(world=READ)

    assert solo.newest(Kind.RESUME).rules == ()


def test_one_word_is_for_one_run(solo: Team) -> None:
    """Who said "again" has said it once: the next one that dies is asked about as well."""
    for deliberate in (None, _AGAIN):
        thread = solo.fresh()
        wish = _YES if deliberate is None else {"world": READ, "deliberate": deliberate}
        thread.adapter.begin(**wish, token="mine")  # noqa: S106
        thread.save(2)
        thread.adapter.end("mine", came_to_end=False)
        with pytest.raises(ResumeRefused, match="did not come to its end"):
            solo.fresh().resume(world=READ)


def test_takeover_after_is_for_sessions_that_have_not_ended(memory: Team) -> None:
    """Not for one that asked, ended or was stopped; for one that nobody knows of it is."""
    solo = shipped_policy("solo")
    memory.apply(solo.replace(b'takeover_after = "0s"', b'takeover_after = "1d"'))
    memory.thread().save(1, world=READ)
    with pytest.raises(Busy, match="may be taken over at"):
        memory.fresh().resume(world=READ)
    memory.thread("operator").pause("nobody is there")
    memory.thread("operator").unpause("go on")
    memory.fresh().resume(world=READ)
    memory.thread("operator").pause("nobody is there")
    memory.thread("operator").unpause("go on")
    memory.thread().load()
    memory.thread().save(2, world=READ, question="pay?")
    with memory.fresh().run(**_YES, deliberate="meant"):
        pass
    memory.fresh().resume(world=READ, deliberate="nothing was paid")

    memory.check_sound()


def test_an_answer_that_was_given_again_in_silence_is_found(memory: Team) -> None:
    """A member with other code goes on a second time, and tells nothing of it."""
    memory.apply(shipped_policy("solo"))
    memory.thread().save(1, world=READ, question="pay?")
    memory.fresh().resume(**_YES)
    body = memory.newest(Kind.RESUME)
    _rogue(
        memory,
        **{
            name: getattr(body, name)
            for name in ("answer", "checkpoint", "release", "released", "world", "decided")
        },
        rules=("answer",),
        policy=body.policy,
    )
    report = memory.world.open(None, read_only=True).verify()
    told = [each.message for each in report.findings]

    assert any("unknown-outcome" in words for words in told), told


@pytest.mark.parametrize("edits", [True, False])
def test_that_an_edit_left_the_question_cannot_be_hidden(
    memory: Team,
    edits: bool,  # noqa: FBT001
) -> None:
    """An audit reads from the edit what only the anchor knew; after a run that saved, nothing."""
    digest = memory.apply(shipped_policy("solo"))
    memory.thread().save(1, world=READ, question="pay?")
    _died(memory)
    word = memory.fresh()
    word.adapter.begin(world=READ, deliberate=_AGAIN, edits=edits, token="word")  # noqa: S106
    word.save(3)
    word.adapter.end("word")
    memory.check_sound()
    _rogue(memory, policy=digest)
    report = memory.world.open(None, read_only=True).verify()
    told = [each.message for each in report.findings]

    assert any("unknown-outcome" in words for words in told) is edits, told
    assert report.ok is not edits, told
