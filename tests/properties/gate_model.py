# SPDX-License-Identifier: Apache-2.0
"""Histories of a team behind the gate: workers, approvers, operators, clocks, and an attacker.

After every step whatever landed is judged by `gate_model_truth.py`. A state that was released must
be the one of the newest recorded allowance, and nothing is refused that is allowed.
"""

import contextlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sealpoint.errors import NeedsApproval, SealpointError
from sealpoint.gate import Request, Thread
from sealpoint.gate._resume_call import answer_digest
from sealpoint.ledger import STORE_CHAIN
from sealpoint.signing import Verdict, attest
from sealpoint.storage import Record
from sealpoint.world import World as Declared
from tests.attacks.ledger.burglar import (
    Burglar,
    DatabaseBurglar,
    DirectoryBurglar,
    MemoryBurglar,
)
from tests.ledgers import key
from tests.properties.gate_model_truth import ResumeCall, Rulebook, ThreadFacts
from tests.unit.gate.team import NARROW, READ, SHELL, Team, policy
from tests.unit.store.backup import Backup, accepted
from tests.unit.store.simulator import Opened, World

__all__ = ["TWISTS", "GateModel"]

_NAMES = ("t", "u")
_WORKERS = ("worker", "again", "spare")
"""Processes; `again` is another one of the worker."""
_IDENTITY = {"again": "worker"}
_POLICIES = [
    (policy("two", needed=2), 2, "approval"),
    (policy("one", needed=1), 1, "approval"),
    (
        policy(
            "solo",
            needed=1,
            older_checkpoint="deliberate",
            wider_world="deliberate",
            first_world="deliberate",
            missing_world="deliberate",
            answer="deliberate",
            after_restore="deliberate",
        ),
        1,
        "deliberate",
    ),
]

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
]

names = st.sampled_from(_NAMES)
workers = st.sampled_from(_WORKERS)
worlds = st.sampled_from([READ, READ, SHELL, SHELL, NARROW, None])
approvers = st.sampled_from(["ann", "bob", "carl", "bobby", "twin", "worker", "spare"])
wishes = st.fixed_dictionaries(
    {
        "world": st.sampled_from([SHELL, SHELL, READ, NARROW, None]),
        "older": st.sampled_from([False, False, False, True]),
        "answer": st.sampled_from([None, None, "yes"]),
        "deliberate": st.sampled_from([None, "meant"]),
    }
)


class GateModel(RuleBasedStateMachine):
    """A team, and what must be true of its threads."""

    backend: ClassVar[str] = "memory"
    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._folder = None if self.backend == "memory" else Path(tempfile.mkdtemp())
        self.world = World(self._folder, backend="file" if self.backend == "file" else "sqlite")
        self.team = Team(self.world, _POLICIES[0][0])
        self.burglar = self._burglar()
        self.book = Rulebook({self.team.digest: _POLICIES[0][1:]}, self.team.digest)
        self.book.rosters.append((0, self.team.digest))
        self.facts = {name: ThreadFacts(self.book) for name in _NAMES}
        self.backup: tuple[Backup, dict[str, int]] | None = None
        """A copy, and how long each thread was then."""
        self.olds: dict[str, dict[int, Record]] = {}
        self.tally["histories"] += 1

    def _burglar(self) -> Burglar:
        if self._folder is None:
            return MemoryBurglar(self.world.memory)
        path = self._folder / "store.db"
        return DirectoryBurglar(path) if self.backend == "file" else DatabaseBurglar(path)

    def teardown(self) -> None:
        """End everything."""
        self.world.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)

    @initialize(
        world=worlds, wish=wishes, twists=st.lists(st.sampled_from(TWISTS), min_size=2, max_size=4)
    )
    def begin(self, world: Any, wish: dict[str, Any], twists: list[str]) -> None:
        """Every history begins with a thread, and with somebody who asks to go on."""
        self.save("worker", "t", world, question=False)
        for twist in twists:
            self.petition("t", wish, ["bob", "bobby", "twin"], twist, {**wish, "answer": "no"})
            self.pause("t", on=False)

    # ------------------------------------------------------------------ looking

    def store(self, process: str) -> Opened:
        """The store of a process."""
        made = self.team._open.get(process)
        if made is None:
            made = self.world.open(_IDENTITY.get(process, process), gated=True)
            self.team._open[process] = made
        return made

    def thread(self, process: str, name: str) -> Thread:
        """The handle of a process."""
        return self.store(process).thread(name)

    def reopen(self) -> None:
        """Let every process end; new ones begin when they are asked for."""
        for store in self.team._open.values():
            store.close()
        self.team._open.clear()

    def exists(self, name: str) -> bool:
        """Whether anything was saved under a name."""
        return self.facts[name].rows > 0

    def rows(self, name: str) -> dict[int, Record]:
        """What lies in the store."""
        if self.world.position(name) is None:
            return {}
        return self.burglar.rows(self.world.thread_id(name))

    def learn(self, name: str) -> list[Any]:
        """Judge whatever has landed."""
        return self.facts[name].learn(self.rows(name))

    def now(self, name: str) -> datetime:
        """The later of the clock and the newest time of the thread."""
        at = self.facts[name].at
        return self.world.clock if at is None else max(self.world.clock, at)

    def count(self, what: str) -> None:
        """Note that something happened."""
        self.tally[what] += 1

    # ------------------------------------------------------------------ workers

    @rule(process=workers, name=names, world=worlds, question=st.booleans())
    def save(self, process: str, name: str, world: Any, question: bool) -> None:  # noqa: FBT001
        """Save; a session that it begins by itself is judged like any other."""
        before = len(self.rows(name))
        asking: dict[str, Any] = {"question": "pay?"} if question else {}
        try:
            self.thread(process, name).save({"at": before}, world=world, **asking)
        except SealpointError as error:
            self.count(f"save refused: {error.code}")
            assert len(self.rows(name)) == before, "refused, and written"
        else:
            self.count("saved")
        self.learn(name)

    @rule(process=workers, name=names, wish=wishes)
    def resume(self, process: str, name: str, wish: dict[str, Any]) -> None:
        """Resume, or learn what is missing."""
        if self.exists(name):
            self.asked(process, name, wish)

    def asked(self, process: str, name: str, wish: dict[str, Any]) -> Request | None:
        """Resume; the request if there has to be one."""
        meant, options = self.meant(process, name, wish)
        expected = self.facts[name].may(meant, self.now(name))
        request = self.attempt(process, name, meant, options)
        if expected is not None:
            released = request == "released"
            assert released == expected, f"expected {expected}, found {request}"
        return request if isinstance(request, Request) else None

    def meant(
        self, process: str, name: str, wish: dict[str, Any]
    ) -> tuple[ResumeCall, dict[str, Any]]:
        """A wish as the model has it, and as the library is told."""
        facts = self.facts[name]
        kept = [
            entry
            for entry, (seq, _, _) in facts.checkpoints.items()
            if seq >= facts.pruned_before or entry == facts.newest
        ]
        entry = kept[0] if wish["older"] and kept else facts.newest
        options = {each: wish[each] for each in ("world", "answer", "deliberate")}
        if entry != facts.newest:
            thread = self.world.open(None, read_only=True, gated=True).thread(name)
            options["ref"] = next(ref for ref in thread.history() if ref.entry == entry)
        world = wish["world"]
        return (
            ResumeCall(
                _IDENTITY.get(process, process),
                entry,
                None if world is None else Declared.from_dict(world).digest,
                answer_digest(wish["answer"]),
                wish["deliberate"] is not None,
            ),
            options,
        )

    def attempt(self, process: str, name: str, meant: ResumeCall, options: dict[str, Any]) -> Any:
        """Resume; what is released must be what the newest allowance of it says."""
        try:
            loaded = self.thread(process, name).resume(**options)
        except NeedsApproval as error:
            self.count("needs approval")
            assert not self.own(self.learn(name), meant), "recorded, and not released"
            return error.request
        except SealpointError as error:
            self.count(f"resume refused: {error.code}")
            assert not self.own(self.learn(name), meant), "recorded, and not released"
            return error
        if "ref" not in options:
            # Who asks for the newest is given the newest, also if it came in between.
            meant = replace(meant, checkpoint=loaded.ref.entry)
        found = self.own(self.learn(name), meant)
        assert len(found) == 1, "released without a recorded allowance"
        (body,) = found
        assert (body.checkpoint, body.world, body.answer) == (
            loaded.ref.entry,
            meant.world,
            meant.answer,
        )
        self.count("released by a grant" if body.request else "released")
        return "released"

    @staticmethod
    def own(found: list[Any], meant: ResumeCall) -> list[Any]:
        """The allowances for a wish among those that landed."""
        return [
            body
            for who, body in found
            if (who, body.checkpoint, body.world, body.answer)
            == (meant.who, meant.checkpoint, meant.world, meant.answer)
        ]

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
            self.put_back("worker", name, wish, accept=True)
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
            case _:
                pass

    @rule(
        process=workers,
        name=names,
        wish=wishes,
        what=st.sampled_from(["resume", "pause", "save", "deny", "handoff", "policy"]),
        other=workers,
    )
    def race(self, process: str, name: str, wish: dict[str, Any], what: str, other: str) -> None:
        """Resume, while somebody else does something between the decision and its record."""
        if not self.exists(name):
            return
        process = self.facts[name].owner if process == "spare" else process
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
            "policy": lambda: self.apply(1),
        }

        def intrude() -> None:
            ran.append(what)
            doing[what]()

        if other == process and what in ("resume", "save"):
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

    @rule(name=names)
    def prune(self, name: str) -> None:
        """The owner gives up what is old."""
        if self.exists(name):
            with contextlib.suppress(SealpointError):
                self.thread(self.facts[name].owner, name).prune(keep_last=2)
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
            self.thread(who, name).relay(word)
            self.count(f"{verdict} recorded")
        except SealpointError as error:
            self.count(f"{verdict} refused: {error.code}")
        self.learn(name)

    @rule(name=names, place=st.integers(0, 7))
    def break_glass(self, name: str, place: int) -> None:
        """The chief lets some request pass."""
        asked = list(self.facts[name].asked)
        if asked:
            with contextlib.suppress(SealpointError):
                self.thread("chief", name).break_glass(asked[-1 - place % len(asked)], "down")
                self.count("glass broken")
            self.learn(name)

    @rule(name=names, on=st.booleans())
    def pause(self, name: str, on: bool) -> None:  # noqa: FBT001
        """An operator pauses or unpauses."""
        if self.exists(name):
            operator = self.thread("operator", name)
            with contextlib.suppress(SealpointError):
                _ = operator.pause("odd") if on else operator.unpause("fine")
            self.learn(name)

    # ------------------------------------------------------------------ what holds for all

    @rule(place=st.integers(0, len(_POLICIES) - 1))
    def apply(self, place: int) -> None:
        """Put a policy into force."""
        data, needed, measure = _POLICIES[place]
        digest = self.team.apply(data)
        self.book.policies[digest] = needed, measure
        if digest != self.book.policy:
            self.backup = None
        self.book.policy = digest
        roster = self.store("operator").core.renewed_trust().roster.seq
        self.book.rosters.append((roster, digest))

    @rule(minutes=st.sampled_from([20, 40, 70, -30, -90]))
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
        self.backup = Backup(self.world), {name: self.facts[name].rows for name in _NAMES}

    @precondition(lambda self: self.backup is not None)
    @rule(process=workers, name=names, wish=wishes, accept=st.booleans())
    def put_back(
        self,
        process: str,
        name: str,
        wish: dict[str, Any],
        accept: bool,  # noqa: FBT001
    ) -> None:
        """The copy comes back: refused, or accepted as a restore, which voids old grants."""
        assert self.backup is not None
        backup, lengths = self.backup
        lost = [each for each in _NAMES if lengths[each] < self.facts[each].rows]
        if not lost:
            return
        meant, options = self.meant(process, name, wish)
        current = Backup(self.world)
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
        accepted(self.world)
        self.book.epoch += 1
        self.backup = None
        for each in _NAMES:
            fresh = ThreadFacts(self.book)
            fresh.learn(self.rows(each) if self.exists(each) else {}, judging=False)
            fresh.cut = each in lost or self.facts[each].cut
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
        meant, options = self.meant(process, name, wish)
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
            assert loaded.ref.entry == meant.checkpoint
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
            blobs = self.burglar.blobs(STORE_CHAIN)
            self.burglar.put_blobs(
                STORE_CHAIN, {**blobs, bytes.fromhex(self.book.policy): _POLICIES[1][0] + b"\n"}
            )
            return lambda: self.burglar.put_blobs(STORE_CHAIN, blobs)
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
        self.burglar.put_rows(thread, changed)
        added = changed.keys() - rows.keys()

        def undo() -> None:
            found = self.burglar.rows(thread).items()
            later = {each: kept for each, kept in found if each not in changed}
            kept = later if not added else {}
            self.burglar.put_rows(thread, {**kept, **rows})

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
            self.thread("officer", name).relay(word)
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
