# SPDX-License-Identifier: Apache-2.0
"""What is true of a thread behind the gate, told from the entries that landed and nothing else.

It shares no code with the gate: every resume entry is judged here once more, with rules of its own
and with the memory of what has been spent, which no restore shortens. What would have run is told
by `gate_model_release.py`; that every entry says what it must is checked as it lands.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sealpoint.ledger import Header, Kind, link_hash, parse_body, parse_header
from sealpoint.signing import Attestation, Verdict
from sealpoint.storage import Record
from sealpoint.world import World
from tests.ledgers import key
from tests.properties.gate_model_release import (
    STATES,
    Line,
    WouldRun,
    given_up,
    is_retried,
    living,
    newest_of,
    would_run,
)
from tests.unit.gate.team import NARROW, READ, SHELL

__all__ = ["LEVELS", "PERSONS", "Accepted", "Ask", "Rulebook", "ThreadFacts", "Wish", "added"]

_LEAVES = {
    World.from_dict(world).digest: frozenset(World.from_dict(world).leaves())
    for world in (NARROW, READ, SHELL)
}
LEVELS = {World.from_dict(world).digest: level for level, world in enumerate((NARROW, READ, SHELL))}
"""How much a world allows, by its digest."""

PERSONS = {
    "ann": "ann",
    "bob": "bob",
    "bobby": "bob",
    "carl": "carl",
    "twin": "worker",
    "worker": "worker",
    "spare": "spare",
    "operator": "operator",
}
_APPROVERS = {key(name).key: name for name in ("ann", "bob", "bobby", "carl", "twin")}
_NAMES = {key(name).key: name for name in (*PERSONS, "chief", "officer")}
_TIMELESS = (Kind.REQUEST, Kind.APPROVAL, Kind.DENIAL, Kind.EXPIRY)
"""Anybody may write these, so they do not move the time of a thread."""
_SETTLES_PAUSE = (Kind.GENESIS, Kind.PAUSE, Kind.UNPAUSE, Kind.ERASE)
_AGE_MAX = timedelta(days=7)
_SLACK = timedelta(minutes=2)
"""A decision is made a little before it is written."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a resume asks for, or claims to have asked for."""

    who: str
    checkpoint: str | None
    """The hash of the entry; None: the newest, whichever that is."""
    world: str | None
    answer: str | None
    deliberate: bool


@dataclass(slots=True)
class Ask:
    """A request as it landed."""

    who: str
    key: tuple[str | None, str | None, str | None, str | None]
    """Checkpoint, release, world and answer."""
    basis: str
    epoch: int
    policy: str | None
    expires: datetime
    yes: set[str] = field(default_factory=set)
    no: set[str] = field(default_factory=set)
    glass: bool = False
    expired: bool = False


def added(before: str, after: str) -> frozenset[str]:
    """What a world has more than another, both by their digests."""
    return _LEAVES[after] - _LEAVES[before]


@dataclass(slots=True)
class Accepted:
    """A rollout, from the moment that it was proposed."""

    who: str
    leaves: frozenset[str]
    """What is added where it holds."""
    policy: str
    epoch: int
    expires: datetime
    yes: set[str] = field(default_factory=set)
    no: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Rulebook:
    """What holds in the whole store."""

    policies: dict[str, tuple[int, str]]
    """By digest: how many have to approve, and the measure for what is not ordinary."""
    policy: str
    rosters: list[tuple[int, str]] = field(default_factory=list)
    """From which roster on which policy was in force."""
    epoch: int = 0
    book_cut: int = 0
    """The epoch of the newest restore that lost entries about rollouts."""
    ended: set[str] = field(default_factory=set)
    """Names whose key has ended."""
    given: set[Attestation] = field(default_factory=set)
    """Every word that somebody has really given."""
    spent: set[str] = field(default_factory=set)
    """Every request that was ever spent."""
    rollouts: dict[str, Accepted] = field(default_factory=dict)
    """Every rollout that was ever proposed, by its id."""

    def in_force(self, roster: int) -> str:
        """The policy that a roster names: what was decided under it was decided before the next."""
        return [digest for first, digest in self.rosters if first <= roster][-1]

    def holds(self, rollout: Accepted, policy: str, now: datetime) -> bool:
        """Whether a rollout lets its change of worlds pass."""
        needed, measure = self.policies[policy]
        yes = {PERSONS[name] for name in rollout.yes - self.ended} - {PERSONS[rollout.who]}
        return (
            not rollout.no
            and rollout.policy == policy
            and rollout.epoch >= self.book_cut
            and now < rollout.expires
            and (measure == "reason" or len(yes) >= needed)
        )


@dataclass(slots=True)
class ThreadFacts:
    """A thread, as far as its entries tell."""

    book: Rulebook
    lines: list[Line] = field(default_factory=list)
    at: datetime | None = None
    paused: bool = False
    owner: str = ""
    fence: int = -1
    """The session under way; it ends where another begins, or the thread is handed off."""
    cut: bool = False
    lost_pauses: tuple[int, ...] = ()
    """For each restore that lost a pause, how many entries stand below whatever settles it."""
    released: int | None = None
    """How many entries there were when the restore that cut it released it; None: it did not."""
    goes: frozenset[tuple[str, str]] | int | None = None
    """What somebody wants to be rid of: names, or all but so many of each lane; None: all."""
    asked: dict[str, Ask] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many entries there are."""
        return len(self.lines)

    @property
    def pause_is_lost(self) -> bool:
        """Whether a restore lost a pause, and no operator has decided since."""
        settled = max((line.seq for line in self.lines if line.kind in _SETTLES_PAUSE), default=0)
        return any(settled < count for count in self.lost_pauses)

    @property
    def stopped(self) -> bool:
        """Whether a pause is in force, on the thread or lost by a restore."""
        return self.paused or self.pause_is_lost

    def restored(self, before: "ThreadFacts", *, lost: bool, release: bool) -> None:
        """Take over what a restore does not give back."""
        self.cut = lost or before.cut
        kept = [min(count, self.rows) for count in before.lost_pauses]
        if lost and before.paused and not self.paused:
            kept.append(self.rows)
        self.lost_pauses = tuple(kept) if self.rows else ()
        self.released = before.released
        if lost:
            self.released = self.rows if release and not before.paused else None

    @property
    def outcome_is_unknown(self) -> bool:
        """Whether a session went on with an answer, and nothing was saved since."""
        for line in reversed(self.lines):
            given = line.kind is Kind.RESULTS and line.body.answers
            if line.kind in (*STATES, Kind.RESULTS, Kind.GENESIS) and not given:
                return False
            if line.kind is Kind.RESUME and line.body.answer is not None:
                return True
        return False

    @property
    def basis(self) -> Line | None:
        """The newest entry that changes what a resume would mean."""
        return next((line for line in reversed(self.lines) if line.moves), None)

    def newest(self, lane: str = "") -> Line | None:
        """The newest checkpoint of a lane."""
        return newest_of(self.lines, lane)

    def states(self, lane: str = "") -> list[Line]:
        """Every checkpoint that was ever saved in a lane, gone or not, the last one first."""
        found = [line for line in self.lines if line.kind in STATES and line.body.lane == lane]
        return found[::-1]

    def would_run(self, entry: str | None = None) -> WouldRun | None:
        """What would be executed if the thread went on from a checkpoint, or the newest."""
        return would_run(self.lines, entry)

    # ------------------------------------------------------------------ learning

    def learn(self, rows: dict[int, Record], *, judging: bool = True) -> list[Any]:
        """Take in what has landed since; the bodies of the resume entries among it."""
        found = []
        for seq in range(self.rows, len(rows)):
            header = parse_header(rows[seq].header)
            body = parse_body(header.kind, header.body, rows[seq].body or b"")
            line = Line(
                seq,
                link_hash(rows[seq].header).hex(),
                header.kind,
                header.thread,
                header.gen,
                header.at,
                header.fence,
                body,
                _NAMES[header.by],
            )
            if judging:
                self._check(line)
            if header.kind is Kind.RESUME:
                if judging:
                    self._judge(header, body)
                found.append((_NAMES[header.by], body))
                self.cut = self.cut and header.epoch < self.book.epoch
            self._take(header, body, line, judging=judging)
            if header.kind not in _TIMELESS:
                self.at = header.at if self.at is None else max(self.at, header.at)
        return found

    def _check(self, line: Line) -> None:
        """Hold an entry against what its kind must say."""
        body, gone = line.body, given_up(self.lines)
        match line.kind:
            case Kind.CHECKPOINT | Kind.HELD:
                assert self.paused == (line.kind is Kind.HELD), f"{line.kind}: {self.paused=}"
                assert self.paused or not self.pause_is_lost, "saved while a lost pause stops it"
                assert line.fence == self.fence, "saved in a session that is over"
                self._check_rank(line, gone)
            case Kind.RESULTS:
                assert line.fence == self.fence, "added in a session that is over"
                assert not (self.stopped and body.answers), "answered while paused"
            case Kind.DELETE | Kind.PRUNE:
                found = given_up([*self.lines, line])
                assert found >= gone, "what was given up came back"
                self._check_gone(line.kind, found - gone, gone)
            case _:
                pass

    def _check_rank(self, line: Line, gone: set[int]) -> None:
        """A name keeps its place until it is deleted; results count from its session on."""
        hidden = [
            span for each in self.lines if each.kind is Kind.DELETE for span in each.body.deleted
        ]
        same = [each for each in self.lines if each.kind in STATES and each.name == line.name]
        if same and not any(first <= same[-1].seq <= last for first, last in hidden):
            assert (line.body.again, line.body.since) == (same[-1].rank, same[-1].body.since)
            return
        early = [
            each.seq
            for each in self.lines
            if each.kind is Kind.RESULTS
            and each.name == line.name
            and each.seq >= line.fence
            and each.seq not in gone
        ]
        expected = early[0] if early else None
        assert line.body.again is None
        assert line.body.since == expected, "counts other results"

    def _check_gone(self, kind: Kind, found: set[int], gone: set[int]) -> None:
        """What was taken is what somebody wanted to be rid of."""
        goes = self.goes
        holding = [line for line in self.lines if line.kind in (*STATES, Kind.RESULTS)]
        if kind is Kind.PRUNE:
            assert isinstance(goes, int)
            latest = {line.name: line for line in holding if line.kind in STATES}
            given = set(self._pruned(goes, gone))
            # An older checkpoint of the same name may go with what is older still.
            replaced = {
                line.seq
                for line in holding
                if line.kind in STATES and latest[line.name] is not line
            }
            wanted = {line.seq for line in holding if line.name in given} - replaced
            assert found - replaced == wanted - gone, "a prune of something else"
            return
        assert not isinstance(goes, int)
        names = {line.name for line in holding} if goes is None else goes
        wanted = {line.seq for line in holding if line.name in names}
        assert found == wanted - gone, "a deletion of something else"

    def _pruned(self, keep_last: int, gone: set[int]) -> Iterable[tuple[str, str]]:
        """The names that a prune takes: neither the newest of a lane nor what was saved last."""
        for lane in {line.body.lane for line in self.lines if line.kind in STATES}:
            left = living(self.lines, lane, gone)
            last = max((line.seq for line in left), default=-1)
            yield from (line.name for line in left[keep_last:] if line.seq != last)

    def _take(self, header: Header, body: Any, line: Line, *, judging: bool) -> None:
        match header.kind:
            case Kind.GENESIS | Kind.HANDOFF:
                self.owner, self.fence = body.owner, header.seq
            case Kind.RESUME:
                self.fence = header.seq
            case Kind.PAUSE:
                self.paused = True
            case Kind.UNPAUSE:
                self.paused = False
            case Kind.REQUEST:
                self._ask(header, body, judging=judging)
            case Kind.APPROVAL | Kind.DENIAL | Kind.BREAK_GLASS:
                self._hear(body.attestation)
            case Kind.EXPIRY if body.request in self.asked:
                ask = self.asked[body.request]
                ask.expired = ask.expired or header.at >= ask.expires
            case _:
                pass
        self.lines.append(line)

    def _ask(self, header: Header, body: Any, *, judging: bool) -> None:
        said = body.statement
        if judging:
            run = self.would_run(said.checkpoint)
            assert run is not None, "asked for what is not there"
            assert said.release == run.digest, "people are asked for something else than would run"
            assert said.world_from == run.checkpoint.body.world
        self.asked[said.digest] = Ask(
            _NAMES[header.by],
            (said.checkpoint, said.release, said.world_to, said.answer),
            said.basis,
            said.epoch,
            said.policy,
            said.expires,
        )

    def _hear(self, word: Attestation) -> None:
        ask = self.asked.get(word.statement)
        if ask is None or word not in self.book.given:
            return
        name = _NAMES[word.credential]
        if word.verdict is Verdict.BREAK_GLASS:
            ask.glass = ask.glass or name == "chief"
            return
        mine = PERSONS[name] == PERSONS[ask.who]
        if word.verdict is Verdict.DENY and (mine or word.credential in _APPROVERS):
            ask.no.add(name)
        elif word.verdict is Verdict.APPROVE and word.credential in _APPROVERS and not mine:
            ask.yes.add(name)

    # ------------------------------------------------------------------ judging

    def counted(self, names: set[str]) -> set[str]:
        """The persons behind names whose keys have not ended."""
        return {PERSONS[name] for name in names if name not in self.book.ended}

    def rules(self, wish: Wish, now: datetime) -> set[str] | None:
        """Which rules apply to a wish; None in the moments in which a checkpoint becomes old."""
        run = self.would_run(wish.checkpoint)
        if run is None:
            return set()
        age = now - run.saved
        if abs(age - _AGE_MAX) < _SLACK:
            return None
        found = set()
        lost = (run.deleted or run.copied) and not is_retried(
            self.lines, run.checkpoint.entry, wish.who
        )
        if not run.newest or lost or self._is_strange(run, wish.who):
            found.add("older-checkpoint")
        if (run.question is not None) or wish.answer is not None:
            found.add("answer")
        if self.outcome_is_unknown:
            found.add("unknown-outcome")
        if age > _AGE_MAX:
            found.add("old-age")
        if self.cut and not self._goes_on_as_released():
            found.add("after-restore")
        return found | _world_rules(run.checkpoint.body.world, wish.world)

    def _is_strange(self, run: WouldRun, who: str) -> bool:
        """Whether somebody else saved it and gave the thread away, and nobody has gone on since."""
        settles = (line.kind for line in reversed(self.lines) if line.seq == line.fence)
        return next(settles, None) is Kind.HANDOFF and run.authors != {who}

    def _goes_on_as_released(self) -> bool:
        basis = self.basis
        return self.released is not None and basis is not None and basis.seq < self.released

    def ask_for(self, wish: Wish, now: datetime) -> tuple[str, Ask] | None:
        """The newest living request for exactly this."""
        run, basis = self.would_run(wish.checkpoint), self.basis
        if run is None or basis is None:
            return None
        wanted = (run.checkpoint.entry, run.digest, wish.world, wish.answer)
        for digest, ask in reversed(self.asked.items()):
            if (
                ask.who == wish.who
                and ask.key == wanted
                and (ask.basis, ask.epoch) == (basis.entry, self.book.epoch)
                and ask.policy == self.book.policy
                and not ask.expired
                and now < ask.expires
            ):
                return digest, ask
        return None

    def is_granted(self, ask: Ask, policy: str) -> bool:
        """Whether enough people have approved, and nobody has denied."""
        if ask.no:
            return False  # for good, whatever becomes of the keys
        yes = self.counted(ask.yes) - {PERSONS[ask.who]}
        return ask.glass or len(yes) >= self.book.policies[policy][0]

    def may(self, wish: Wish, now: datetime) -> bool | None:
        """Whether a wish is allowed now; None within the last moments of a request."""
        times = [ask.expires for ask in self.asked.values()]
        rules = self.rules(wish, now)
        times += [rollout.expires for rollout in self.book.rollouts.values()]
        if rules is None or any(abs(now - expires) < _SLACK for expires in times):
            return None
        if self.stopped or wish.who != self.owner or self.would_run(wish.checkpoint) is None:
            return False
        if not rules - {"narrower-world"}:
            return True
        found = self.ask_for(wish, now)
        if found is not None and found[1].no:
            return False  # what was denied for this run, nobody allows for all of them
        if self.is_rolled_out(wish, rules, now):
            return True
        if self.book.policies[self.book.policy][1] == "reason" and wish.deliberate:
            return True
        return found is not None and self.is_granted(found[1], self.book.policy)

    def is_rolled_out(self, wish: Wish, rules: set[str], now: datetime) -> bool:
        """Whether a rollout lets all of a wish pass."""
        run = self.would_run(wish.checkpoint)
        before = None if run is None else run.checkpoint.body.world
        if rules != {"tools"} or before is None or wish.world is None:
            return False
        held = (
            rollout.leaves
            for rollout in self.book.rollouts.values()
            if self.book.holds(rollout, self.book.policy, now)
        )
        return added(before, wish.world) <= frozenset().union(*held)

    def _judge_rollout(self, header: Header, body: Any, rules: set[str], policy: str) -> None:
        run = self.would_run(body.checkpoint)
        assert run is not None
        accepted = frozenset[str]()
        for each in body.rollouts:
            found = self.book.rollouts.get(each.digest)
            assert found is not None, "let pass by a rollout that nobody proposed"
            holds = self.book.holds(found, policy, header.at - _SLACK)
            assert holds, "let pass by what does not hold"
            accepted |= found.leaves
        assert added(run.checkpoint.body.world, body.world) <= accepted, "for other differences"
        assert rules == {"tools"}, "a rollout let something else pass"
        assert body.request is None

    def _judge(self, header: Header, body: Any) -> None:
        """Hold an allowance that was recorded against everything that it must be bound to."""
        assert not self.stopped, "resumed while paused"
        assert header.epoch == self.book.epoch, "resumed in an epoch that is over"
        who, basis = _NAMES[header.by], self.basis
        assert who not in self.book.ended, "resumed with a key that has ended"
        assert not self.owner or who == self.owner == body.owner, "resumed by no owner"
        policy = self.book.in_force(header.roster)
        assert body.policy == policy, "allowed by another policy than that in force"
        assert body.basis == (0 if basis is None else basis.seq), "resumed on another basis"
        if body.checkpoint is None:
            assert self.newest() is None, "resumed from nothing, and there was something"
            assert (body.release, body.request, body.rules) == (None, None, ())
            return
        # What is said to have run is what would have, told from the entries below.
        run = self.would_run(body.checkpoint)
        assert run is not None, "released what is no checkpoint, or was given up"
        assert body.release == run.digest, "released something else than the record says"
        wish = Wish(who, body.checkpoint, body.world, body.answer, body.reason is not None)
        rules = self.rules(wish, header.at if self.at is None else max(header.at, self.at))
        if rules is None:
            return
        assert set(body.rules) == rules, f"recorded {body.rules}, expected {rules}"
        if not rules - {"narrower-world"}:
            assert body.request is None
            return
        if body.rollouts:
            self._judge_rollout(header, body, rules, policy)
            return
        if body.request is None:
            assert self.book.policies[policy][1] == "reason", f"nobody was asked for {wish}"
            assert wish.deliberate, "not deliberate, and nobody approved it"
            return
        self._judge_grant(header, body, wish, policy)

    def _judge_grant(self, header: Header, body: Any, wish: Wish, policy: str) -> None:
        ask, basis = self.asked.get(body.request), self.basis
        assert ask is not None, "spent a request that is not there"
        assert basis is not None
        assert ask.who == wish.who, "spent somebody else's request"
        key_ = (wish.checkpoint, body.release, wish.world, wish.answer)
        assert ask.key == key_, "approved was another thing"
        assert (ask.basis, ask.epoch) == (basis.entry, self.book.epoch), "approved another time"
        assert ask.policy == policy, "approved under another policy"
        assert not ask.expired, "spent what had expired"
        assert header.at < ask.expires + _SLACK, "spent what had expired"
        assert self.is_granted(ask, policy), "spent what was not granted"
        assert body.request not in self.book.spent, "spent twice"
        self.book.spent.add(body.request)


def _world_rules(before: str | None, now: str | None) -> set[str]:
    if before == now:
        return set()
    if before is None:
        return {"first-world"}
    if now is None:
        return {"missing-world"}
    return {"tools" if LEVELS[now] > LEVELS[before] else "narrower-world"}
