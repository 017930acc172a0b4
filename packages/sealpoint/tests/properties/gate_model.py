# SPDX-License-Identifier: Apache-2.0
"""Histories of a team behind the gate: workers, approvers, operators, clocks, and an attacker.

After every step whatever landed is judged by `gate_model_truth.py`. A state that was released must
be the one of the newest recorded allowance, and nothing is refused that is allowed.
"""

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from sealpoint.errors import NeedsApproval, SealpointError
from sealpoint.gate import ROLLOUTS, Outcome, Request
from sealpoint.gate._resume_call import answer_digest
from sealpoint.ledger import STORE_CHAIN, Kind
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from sealpoint.world import World as Declared
from tests.ledgers import key
from tests.properties.gate_model_release import WouldRun, would_run
from tests.properties.gate_model_rollouts import GateRollouts
from tests.properties.gate_model_scene import (
    IDENTITY,
    NAMES,
    POLICIES,
    RIVALS,
    Run,
    lanes,
    names,
    workers,
    worlds,
)
from tests.properties.gate_model_truth import ThreadFacts, Wish
from tests.properties.gate_model_work import work_kinds
from tests.unit.gate.team import NARROW, READ, SHELL
from tests.unit.store.backup import Backup, accepted

__all__ = ["BETWEEN", "OVERTAKERS", "TWISTS", "GateModel"]

TWISTS = [
    "none",
    "people",
    "other",
    "copy",
    "save",
    "late",
    "late and back",
    "policy",
    "pause",
    "deny",
    "prune",
    "handoff",
    "results",
    "question",
    "delete",
    "delete older",
    "held back",
    "lane",
    "again",
]

OVERTAKERS = [
    "resume",
    "begin",
    "save",
    "results",
    "early results",
    "held back",
    "handoff",
    "nobody",
]
"""What somebody else does between the decision about a run and its first read."""
BETWEEN = ["nothing", "pause", "prune", "request"]
"""What happens beside it, and ends nobody's session."""

_WORLDS: dict[str | None, dict[str, Any] | None] = {
    None: None,
    **{Declared.from_dict(world).digest: world for world in (NARROW, READ, SHELL)},
}

_POLICY_RULES = {
    "older-checkpoint",
    "tools",
    "narrower-world",
    "first-world",
    "missing-world",
    "answer",
    "unknown-outcome",
    "old-age",
    "after-restore",
}

approvers = st.sampled_from(["ann", "bob", "carl", "bobby", "twin", "worker", "spare"])
wishes = st.fixed_dictionaries(
    {
        "world": st.sampled_from([SHELL, SHELL, READ, NARROW, None]),
        "older": st.sampled_from([None, None, None, None, 0, 1, 2, 5]),
        "by id": st.booleans(),
        "answer": st.sampled_from([None, None, "yes"]),
        "deliberate": st.sampled_from([None, "meant"]),
    }
)


class GateModel(GateRollouts):
    """A team, its runs, and an attacker."""

    def __init__(self) -> None:
        super().__init__()
        self.backup: tuple[Backup, dict[str, int]] | None = None
        """A copy, and how long each thread was then."""
        self.olds: dict[str, dict[int, Record]] = {}

    @initialize(
        world=worlds, wish=wishes, twists=st.lists(st.sampled_from(TWISTS), min_size=1, max_size=2)
    )
    def open_history(self, world: Any, wish: dict[str, Any], twists: list[str]) -> None:
        """Every history begins with a thread, and with somebody who asks to go on."""
        self.save("worker", "t", world, question=False)
        self.work("worker", "t", "child", ["put"], 0, holds=False, world=None)
        self.work("worker", "t", "", ["put", "results"], 0, holds=False, world=None)
        for twist in twists:
            self.petition("t", wish, ["bob", "bobby", "twin"], twist, {**wish, "answer": "no"})
            self.pause("t", on=False)

    # ------------------------------------------------------------------ workers

    @rule(process=workers, name=names, wish=wishes)
    def resume(self, process: str, name: str, wish: dict[str, Any]) -> None:
        """Resume, or learn what is missing."""
        if self.exists(name):
            self.asked(self.process(process, name), name, wish)

    def asked(self, process: str, name: str, wish: dict[str, Any]) -> Request | None:
        """Resume; the request if there has to be one."""
        meant, options = self.meant(process, name, wish)
        expected = self.expected(name, meant, options)
        request = self.attempt(process, name, meant, options)
        if expected is not None:
            released = request == "released"
            assert released == expected, f"expected {expected}, found {request}"
        return request if isinstance(request, Request) else None

    def expected(self, name: str, meant: Wish, options: dict[str, Any]) -> bool | None:
        """Whether a wish is allowed, which the gate says as well, with the rules that apply."""
        facts = self.facts[name]
        found, rules = facts.may(meant, self.now(name)), facts.rules(meant, self.now(name))
        run = facts.would_run(meant.checkpoint)
        if run is None or found is None or rules is None:
            return found
        with self.cold(name, meant.who) as thread:
            decision = thread.judge(**options)
        said = {str(reason.rule) for reason in decision.reasons}
        assert said & _POLICY_RULES == rules, f"the gate finds {said}, expected {rules}"
        assert (decision.outcome is Outcome.ALLOW) == found, f"{decision}, expected {found}"
        assert decision.release is not None
        assert decision.release.digest == run.digest
        return found

    def meant(self, process: str, name: str, wish: dict[str, Any]) -> tuple[Wish, dict[str, Any]]:
        """A wish as the model has it, and as the library is told."""
        options = {each: wish[each] for each in ("world", "answer", "deliberate")}
        older, entry = self.facts[name].states(), None
        if wish["older"] is not None and older:
            line = older[wish["older"] % len(older)]
            if wish["by id"]:
                line = next(each for each in older if each.name == line.name)
            entry = line.entry
            options["ref"] = line.body.id if wish["by id"] else self.refs[entry]
        world = wish["world"]
        return (
            Wish(
                IDENTITY.get(process, process),
                entry,
                None if world is None else Declared.from_dict(world).digest,
                answer_digest(wish["answer"]),
                wish["deliberate"] is not None,
            ),
            options,
        )

    def attempt(
        self,
        process: str,
        name: str,
        meant: Wish,
        options: dict[str, Any],
        *,
        begins: bool = False,
    ) -> Any:
        """Resume; what is released must be what the newest allowance of it says."""
        thread = self.thread(process, name)
        try:
            loaded = thread.adapter.begin(**options) if begins else thread.resume(**options)
        except NeedsApproval as error:
            self.count("needs approval")
            assert not self.own(self.learn(name), meant), "recorded, and not released"
            return error.request
        except SealpointError as error:
            self.count(f"resume refused: {error.code}")
            assert not self.own(self.learn(name), meant), "recorded, and not released"
            return error
        if loaded is None:
            self.count("nothing to begin from")
            assert not self.learn(name)
            assert self.facts[name].newest() is None, "nothing to begin from, and there was"
            self.sessions.pop((process, name), None)  # a run from nothing has a session of its own
            return None
        found = self.own(self.learn(name), meant)
        assert len(found) == 1, "released without a recorded allowance"
        (body,) = found
        assert (body.world, body.answer) == (meant.world, meant.answer)
        # What is handed over is what would have run as the thread was below the record.
        facts = self.facts[name]
        below = next(line.seq for line in reversed(facts.lines) if line.kind is Kind.RESUME)
        run = would_run(facts.lines[:below], meant.checkpoint)
        assert run is not None, "released what is gone"
        assert (body.checkpoint, body.release) == (run.checkpoint.entry, run.digest)
        self.sessions[process, name] = below
        if begins:
            assert loaded == below
            asked = None if meant.checkpoint is None else run.checkpoint.body.id
            self.runs.append(Run(process, name, below, asked, run))
        else:
            self.check_loaded(loaded, run)
        by = "a grant" if body.request else "a rollout" if body.rollouts else ""
        self.count(f"released by {by}" if by else "released")
        return "released"

    def check_loaded(self, loaded: Any, run: WouldRun) -> None:
        """Compare what a resume handed over with what would have run."""
        line = run.checkpoint
        assert (loaded.ref.entry, loaded.state) == (line.entry, self.values[line.entry])
        assert (loaded.ref.held, loaded.question) == (run.held, run.question)

    @staticmethod
    def own(found: list[Any], meant: Wish) -> list[Any]:
        """The allowances for a wish among those that landed."""
        return [
            body
            for who, body in found
            if (who, body.world, body.answer) == (meant.who, meant.world, meant.answer)
            and meant.checkpoint in (None, body.checkpoint)
        ]

    @rule(
        process=workers,
        name=names,
        wish=wishes,
        people=st.sampled_from([["ann", "carl"], ["ann", "bob", "bobby"], ["ann"]]),
        later=st.sampled_from(["nothing", "nothing", "revoked", "late", "answer", "policy"]),
    )
    def roll_out(
        self, process: str, name: str, wish: dict[str, Any], people: list[str], later: str
    ) -> None:
        """A change of worlds is accepted for a thread that waits, and then it goes on, or not."""
        newest = self.facts[name].newest()
        before = None if newest is None else _WORLDS[newest.body.world]
        if before is None or before == SHELL:
            return
        self.propose(before, SHELL, "operator", 1, people)
        rollout = next(reversed(self.book.rollouts), None)
        if later == "revoked" and rollout is not None:
            self.word_on(rollout, "carl", approves=False)
        elif later == "late":
            self.turn_clock(90)
        elif later == "policy":
            self.apply(1)
        answer = "yes" if later == "answer" else None
        meant = {**self.newest_wish(name), "world": SHELL, "answer": answer, "deliberate": None}
        self.asked(self.process(process, name), name, {**wish, **meant})

    @rule(process=workers, name=names, wish=wishes)
    def begin(self, process: str, name: str, wish: dict[str, Any]) -> None:
        """Begin a session; what it is about is read later."""
        if self.exists(name):
            process = self.process(process, name)
            meant, options = self.meant(process, name, wish)
            expected = self.expected(name, meant, options)
            found = self.attempt(process, name, meant, options, begins=True)
            if expected is not None:
                assert (found == "released") == expected, f"expected {expected}, found {found}"

    def newest_wish(self, name: str) -> dict[str, Any]:
        """To go on with the newest as it was saved."""
        newest = self.facts[name].newest()
        world = None if newest is None else _WORLDS[newest.body.world]
        return {
            "world": world,
            "older": None,
            "by id": False,
            "answer": None,
            "deliberate": "meant",
        }

    def approved(self, process: str, name: str, wish: dict[str, Any], *, begins: bool) -> Any:
        """Resume or begin; where others have to approve, they do."""
        meant, options = self.meant(process, name, wish)
        found = self.attempt(process, name, meant, options, begins=begins)
        if isinstance(found, Request):
            for who in ("ann", "carl", "bob"):
                self.say(who, name, found.id, Verdict.APPROVE)
            found = self.attempt(process, name, meant, options, begins=begins)
        return found

    @rule(name=names, lane=lanes, kinds=work_kinds, place=st.integers(0, 7), pausing=st.booleans())
    def go_on(self, name: str, lane: str, kinds: list[str], place: int, pausing: bool) -> None:  # noqa: FBT001
        """The owner goes on with the newest, with whatever approval it takes, and works."""
        process = self.process("owner", name)
        if self.facts[name].newest() is not None and not self.is_running(process, name):
            self.approved(process, name, self.newest_wish(name), begins=False)
        if pausing:
            self.pause(name, on=True)
        self.work(process, name, lane, kinds, place, holds=pausing, world=None)
        if pausing:
            self.pause(name, on=False)

    @rule(
        name=names,
        older=st.sampled_from([None, None, 0, 1, 2]),
        what=st.sampled_from(OVERTAKERS),
        between=st.sampled_from(BETWEEN),
    )
    def overtake(self, name: str, older: int | None, what: str, between: str) -> None:
        """Between the decision about a run and its first read, somebody else does something."""
        if not self.exists(name):
            return
        process = self.process("owner", name)
        self.pause(name, on=False)
        wish = {**self.newest_wish(name), "older": older}
        world = wish["world"]
        if self.approved(process, name, wish, begins=True) != "released":
            return
        run, rival = self.runs[-1], RIVALS[process]
        match what:
            case "resume" | "begin":
                self.approved(rival, name, {**wish, "older": None}, begins=what == "begin")
            case "save":
                self.save(rival, name, world, question=False)
            case "results":
                self.work(rival, name, "", ["results"], 0, holds=False, world=world)
            case "early results":
                # They are of a session that has ended when somebody else saves their checkpoint.
                self.work(process, name, "", ["early"], 0, holds=False, world=None)
                self.pause(name, on=True)
                self.pause(name, on=False)
                self.save(rival, name, world, question=False)
            case "held back":
                self.pause(name, on=True)
                self.work(process, name, "", ["put"], 0, holds=True, world=None)
                self.pause(name, on=False)
            case "handoff":
                self.handoff(name)
            case _:
                pass
        match between:
            case "pause":
                self.pause(name, on=True)
                self.pause(name, on=False)
            case "prune":
                self.prune(name)
            case "request":
                self.resume(rival, name, {**wish, "world": SHELL, "deliberate": None})
            case _:
                pass
        self.count(f"overtaken by: {what}")
        self.read_run(run)
        self.read_run(run, "child")

    @rule(
        name=names,
        wish=wishes,
        people=st.lists(approvers, max_size=3, unique=True),
        twist=st.sampled_from(TWISTS),
        other=wishes,
    )
    def petition(
        self,
        name: str,
        wish: dict[str, Any],
        people: list[str],
        twist: str,
        other: dict[str, Any],
    ) -> None:
        """Ask, let people approve, let something happen, and try to spend it: twice."""
        if not self.exists(name):
            return
        process = self.facts[name].owner
        request = self.asked(process, name, wish)
        if request is None:
            return
        # Mostly those who count; else whoever it is.
        for who in people if twist == "people" else ("ann", "bob"):
            self.say(who, name, request.id, Verdict.APPROVE)
        if twist == "copy":
            self.copy_store()
        self.twist(name, request, twist)
        self.asked(process, name, other if twist == "other" else wish)
        if twist == "copy":
            self.put_back("worker", name, wish, accept=True, release=False)
        for again in ("again" if process == "worker" else process, process):
            self.asked(again, name, wish)

    def twist(self, name: str, request: Request, twist: str) -> None:
        """What happens between the approval and its use."""
        owner = self.facts[name].owner
        match twist:
            case "save":
                self.save(owner, name, READ, question=False)
            case "late":
                self.turn_clock(70)
            case "late and back":
                self.turn_clock(70)
                self.pause(name, on=True)
                self.pause(name, on=False)
                self.turn_clock(-90)
            case "policy":
                self.apply(1)
            case "pause":
                self.pause(name, on=True)
            case "deny":
                self.say("carl", name, request.id, Verdict.DENY)
            case "prune":
                self.prune(name)
            case "handoff":
                self.handoff(name)
                self.handoff(name)
            case "results" | "question":
                kind = "asking" if twist == "question" else "results"
                self.work(owner, name, "", [kind], 0, holds=False, world=None)
            case "delete":
                self.delete(name, "", "newest", 0)
            case "delete older":
                self.delete(name, "", "older", 0)
            case "held back":
                self.pause(name, on=True)
                self.work(owner, name, "", ["put"], 0, holds=True, world=None)
                self.pause(name, on=False)
            case "lane":
                self.work(owner, name, "child", ["put", "results"], 0, holds=False, world=None)
            case "again":
                self.work(owner, name, "", ["again"], 1, holds=False, world=None)
            case _:
                pass

    @rule(
        process=workers,
        name=names,
        wish=wishes,
        what=st.sampled_from(
            [
                "resume",
                "pause",
                "save",
                "deny",
                "handoff",
                "results",
                "delete",
                "prune",
                "begin",
            ]
        ),
        other=workers,
    )
    def race(self, process: str, name: str, wish: dict[str, Any], what: str, other: str) -> None:
        """Resume, while somebody else does something between the decision and its record.

        A change of policy meanwhile is refused and leaves a finding, which
        `packages/sealpoint/tests/attacks/gate/test_policy_changes.py` tests.
        """
        if not self.exists(name):
            return
        process, other = self.process(process, name), self.process(other, name)
        request = self.asked(process, name, wish)
        if request is not None:
            for who in ("ann", "carl", "bob"):
                self.say(who, name, request.id, Verdict.APPROVE)
        meant, options = self.meant(process, name, wish)
        ran: list[str] = []
        doing: dict[str, Callable[[], object]] = {
            "resume": lambda: self.attempted(other, name, wish, ran),
            "pause": lambda: self.pause(name, on=True),
            "save": lambda: self.save(other, name, READ, question=False),
            "deny": lambda: self.object(name, request),
            "handoff": lambda: self.handoff(name),
            "results": lambda: self.work(
                other, name, "", ["results"], 0, holds=False, world=wish["world"]
            ),
            "delete": lambda: self.delete(name, "", "newest", 0),
            "prune": lambda: self.prune(name),
            "begin": lambda: self.begin(other, name, wish),
        }

        def intrude() -> None:
            ran.append(what)
            doing[what]()

        if other == process and what in ("resume", "save", "results", "begin"):
            return
        if self.facts[name].owner == process and what in ("delete", "prune"):
            return
        storage = self.store(process).storage
        storage.appending.before = intrude
        spent = len(self.book.spent)
        found = self.attempt(process, name, meant, options)
        storage.appending.before = None
        self.count(f"raced: {what}" if ran else "raced for nothing")
        if "won" in ran and found == "released":
            assert len(self.book.spent) <= spent + 2

    def object(self, name: str, request: Request | None) -> None:
        """Deny what was just asked for."""
        if request is not None:
            self.say("carl", name, request.id, Verdict.DENY)

    def attempted(self, process: str, name: str, wish: dict[str, Any], ran: list[str]) -> None:
        """What the other process of a race does."""
        meant, options = self.meant(process, name, wish)
        if self.attempt(process, name, meant, options) == "released":
            ran.append("won")

    @rule(name=names)
    def handoff(self, name: str) -> None:
        """The owner gives the thread to the other writer."""
        if not self.exists(name):
            return
        owner = self.facts[name].owner
        to = "spare" if owner == "worker" else "worker"
        with contextlib.suppress(SealpointError):
            self.thread(owner, name).handoff(to=to, reason="yours")
            self.count("handed off")
        self.learn(name)

    # ------------------------------------------------------------------ people

    @rule(who=approvers, name=names, place=st.integers(0, 7), verdict=st.sampled_from(Verdict))
    def answer(self, who: str, name: str, place: int, verdict: Verdict) -> None:
        """Somebody says something to some request, be it old or new."""
        asked = list(self.facts[name].asked)
        if asked:
            self.say(who, name, asked[-1 - place % len(asked)], verdict)

    def say(self, who: str, name: str, request: str, verdict: Verdict) -> None:
        """A word of somebody, by an identity or a key of their own."""
        word = attest(key(who), request, verdict, "seen")
        self.book.given.add(word)
        try:
            self.thread(who, name).operations.relay(word)
            self.count(f"{verdict} recorded")
        except SealpointError as error:
            self.count(f"{verdict} refused: {error.code}")
        self.learn(name)

    @rule(name=names, place=st.integers(0, 7))
    def break_glass(self, name: str, place: int) -> None:
        """The chief lets some request pass; an operator without the mark tries to."""
        asked = list(self.facts[name].asked)
        if asked:
            request = asked[-1 - place % len(asked)]
            self.say("operator", name, request, Verdict.BREAK_GLASS)
            self.say("chief", name, request, Verdict.BREAK_GLASS)

    @rule(name=names, on=st.booleans())
    def pause(self, name: str, on: bool) -> None:  # noqa: FBT001
        """An operator pauses or unpauses."""
        if self.exists(name):
            operator = self.thread("operator", name)
            with contextlib.suppress(SealpointError):
                _ = operator.pause("odd") if on else operator.unpause("fine")
            self.learn(name)

    # ------------------------------------------------------------------ what holds for all

    @rule(place=st.integers(0, len(POLICIES) - 1))
    def apply(self, place: int) -> None:
        """Put a policy into force."""
        data, needed, measure = POLICIES[place]
        digest = self.team.apply(data)
        self.book.policies[digest] = needed, measure
        if digest != self.book.policy:
            self.backup = None
        self.book.policy = digest
        roster = self.store("operator").core.renewed_trust().roster.seq
        self.book.rosters.append((roster, digest))

    @rule(minutes=st.sampled_from([20, 40, 70, -30, -90, 8 * 24 * 60]))
    def turn_clock(self, minutes: int) -> None:
        """Time passes, or somebody turns the clock back."""
        self.world.clock += timedelta(minutes=minutes)
        self.count("clock turned back" if minutes < 0 else "time passed")

    @precondition(lambda self: not self.book.ended)
    @rule(who=st.sampled_from(["bob", "carl"]), really=st.sampled_from([True, False, False]))
    def end(self, who: str, really: bool) -> None:  # noqa: FBT001
        """The key of an approver ends."""
        if really:
            self.team.end(who)
            self.book.ended.add(who)
            self.backup = None

    @rule()
    def restart(self) -> None:
        """Every process ends."""
        self.reopen()

    # ------------------------------------------------------------------ copies

    @rule()
    def copy_store(self) -> None:
        """Somebody makes a copy of the store."""
        self.backup = Backup(self.world), {name: self.facts[name].rows for name in NAMES}

    @precondition(lambda self: self.backup is not None)
    @rule(process=workers, name=names, wish=wishes, accept=st.booleans(), release=st.booleans())
    def put_back(
        self,
        process: str,
        name: str,
        wish: dict[str, Any],
        accept: bool,  # noqa: FBT001
        release: bool,  # noqa: FBT001
    ) -> None:
        """The copy comes back: refused, or accepted as a restore, which voids old grants."""
        assert self.backup is not None
        backup, lengths = self.backup
        lost = [each for each in NAMES if lengths[each] < self.facts[each].rows]
        if not lost:
            return
        meant, options = self.meant(self.process(process, name), name, wish)
        current = Backup(self.world)
        book = len(self.rows(ROLLOUTS))
        self.reopen()
        backup.put_back()
        if name in lost:
            with contextlib.suppress(SealpointError):
                self.world.open(meant.who, gated=True).thread(name).resume(**options)
                raise AssertionError("released from a store that was put back")
        if not accept:
            self.reopen()
            current.put_back()
            self.count("put back and refused")
            return
        accepted(self.world, release=release)
        self.book.epoch += 1
        if book > len(self.rows(ROLLOUTS)):
            self.book.book_cut = self.book.epoch
        self.backup = None
        for each in NAMES:
            fresh = ThreadFacts(self.book)
            fresh.learn(self.rows(each) if self.exists(each) else {}, judging=False)
            fresh.restored(self.facts[each], lost=each in lost, release=release)
            self.facts[each] = fresh
        self.count("restored")

    # ------------------------------------------------------------------ the attacker

    @rule(
        process=workers,
        name=names,
        wish=wishes,
        edit=st.sampled_from(
            ["cut", "drop", "copy", "body", "header", "seals", "strip", "swap", "old", "policy"]
        ),
        place=st.integers(0, 11),
    )
    def attack(self, process: str, name: str, wish: dict[str, Any], edit: str, place: int) -> None:
        """Somebody changes the store, a worker tries to resume, and all is put right again."""
        rows = self.rows(name) if self.exists(name) else {}
        if not rows:
            return
        meant, options = self.meant(self.process(process, name), name, wish)
        undo = self.edited(name, rows, edit, len(rows) - 1 - place % len(rows))
        if undo is None:
            return
        self.count(f"attacked: {edit}")
        expected = self.facts[name].may(meant, self.now(name))
        fresh = self.world.open(meant.who, gated=True).thread(name)
        try:
            loaded = fresh.resume(**options)
        except SealpointError as error:
            self.count(f"resume refused: {error.code}")
        else:
            # What was changed was not needed for this, and everything else is as it must be.
            assert expected is not False, f"released after {edit}"
            assert meant.checkpoint in (None, loaded.ref.entry)
            self.count("released beside an edit")
        self.reopen()
        undo()
        self.learn(name)

    def edited(
        self, name: str, rows: dict[int, Record], edit: str, seq: int
    ) -> Callable[[], None] | None:
        """Make an edit; what is returned takes it back and leaves what came later."""
        thread, row = self.world.thread_id(name), rows[seq]
        if edit == "policy":
            blobs = self.editor.blobs(STORE_CHAIN)
            self.editor.put_blobs(
                STORE_CHAIN, {**blobs, bytes.fromhex(self.book.policy): POLICIES[1][0] + b"\n"}
            )
            return lambda: self.editor.put_blobs(STORE_CHAIN, blobs)
        changed: dict[int, Record] = dict(rows)
        if edit == "cut":
            changed = {each: record for each, record in rows.items() if each < seq}
        elif edit == "drop":
            del changed[seq]
        elif edit == "copy":
            changed[len(rows)] = row
        elif edit == "old":
            changed = dict(self.olds.get(name) or {})
            self.olds[name] = rows
        elif edit == "swap":
            other = rows[max(seq - 1, 0)]
            changed[seq] = Record(row.header, row.seals, other.body, row.payload)
        else:
            changed[seq] = _damaged(row, edit)
        if not changed or changed == rows:
            return None
        self.editor.put_rows(thread, changed)
        added = changed.keys() - rows.keys()

        def undo() -> None:
            found = self.editor.rows(thread).items()
            later = {each: kept for each, kept in found if each not in changed}
            kept = later if not added else {}
            self.editor.put_rows(thread, {**kept, **rows})

        return undo

    @rule(name=names, place=st.integers(0, 7), who=approvers, forged=st.booleans())
    def relay_by_a_thief(self, name: str, place: int, who: str, forged: bool) -> None:  # noqa: FBT001
        """A word in somebody's name, or one that was given before, is appended by a thief."""
        asked = list(self.facts[name].asked)
        if not asked:
            return
        request = asked[-1 - place % len(asked)]
        word = attest(key(who), request, Verdict.APPROVE, "never said")
        if forged:
            word = attest(key("officer"), request, Verdict.APPROVE, "never said")
            word = type(word)(
                word.scheme, key(who).key, word.statement, word.verdict, word.reason, word.proof
            )
        elif not any(each.statement == request for each in self.book.given):
            return
        else:
            word = next(each for each in self.book.given if each.statement == request)
        with contextlib.suppress(SealpointError):
            self.thread("officer", name).operations.relay(word)
            assert not forged, "a forged word was recorded"
        self.count("a word relayed by a thief")
        self.learn(name)


def _damaged(row: Record, part: str) -> Record:
    parts: dict[str, Any] = {
        name: getattr(row, name) for name in ("header", "seals", "body", "payload")
    }
    if part == "strip":
        return Record(**(parts | {"body": None, "payload": None}))
    data = bytes(parts[part] or b"x")
    place = len(data) // 2
    parts[part] = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    return Record(**parts)
