# SPDX-License-Identifier: Apache-2.0
"""What is true of a thread behind the gate, told from the entries that landed and nothing else.

It shares no code with the gate: every resume entry is judged here once more, with rules of its own
and with the memory of what has been spent, which no restore shortens.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sealpoint.ledger import Header, Kind, link_hash, parse_body, parse_header
from sealpoint.signing import Attestation, Verdict
from sealpoint.storage import Record
from sealpoint.world import World
from tests.ledgers import key
from tests.unit.gate.team import NARROW, READ, SHELL

__all__ = ["LEVELS", "PERSONS", "Ask", "Rulebook", "ThreadFacts", "Wish"]

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
}
_APPROVERS = {key(name).key: name for name in ("ann", "bob", "bobby", "carl", "twin")}
_NAMES = {key(name).key: name for name in (*PERSONS, "operator", "chief", "officer")}
_MOVES = (Kind.CHECKPOINT, Kind.RESUME, Kind.PRUNE, Kind.HANDOFF)
_SLACK = timedelta(minutes=2)
"""A decision is made a little before it is written."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a resume asks for, or claims to have asked for."""

    who: str
    checkpoint: str | None
    world: str | None
    answer: str | None
    deliberate: bool


@dataclass(slots=True)
class Ask:
    """A request as it landed."""

    who: str
    key: tuple[str | None, str | None, str | None]
    basis: str
    epoch: int
    policy: str | None
    expires: datetime
    yes: set[str] = field(default_factory=set)
    no: set[str] = field(default_factory=set)
    glass: bool = False
    expired: bool = False


@dataclass(slots=True)
class Rulebook:
    """What holds in the whole store."""

    policies: dict[str, tuple[int, str]]
    """By digest: how many have to approve, and the measure for what is not ordinary."""
    policy: str
    rosters: list[tuple[int, str]] = field(default_factory=list)
    """From which roster on which policy was in force."""
    epoch: int = 0
    ended: set[str] = field(default_factory=set)
    """Names whose key has ended."""
    given: set[Attestation] = field(default_factory=set)
    """Every word that somebody has really given."""
    spent: set[str] = field(default_factory=set)
    """Every request that was ever spent."""

    def in_force(self, roster: int) -> str:
        """The policy that a roster names: what was decided under it was decided before the next."""
        return [digest for first, digest in self.rosters if first <= roster][-1]


@dataclass(slots=True)
class ThreadFacts:
    """A thread, as far as its entries tell."""

    book: Rulebook
    rows: int = 0
    basis: str = ""
    at: datetime | None = None
    paused: bool = False
    owner: str = ""
    cut: bool = False
    pruned_before: int = 0
    checkpoints: dict[str, tuple[int, str | None, bool]] = field(default_factory=dict)
    """By the hash of the entry: position, digest of the world, whether a question is pending."""
    asked: dict[str, Ask] = field(default_factory=dict)

    @property
    def newest(self) -> str | None:
        """The hash of the newest checkpoint."""
        return max(self.checkpoints, key=lambda entry: self.checkpoints[entry][0], default=None)

    # ------------------------------------------------------------------ learning

    def learn(self, rows: dict[int, Record], *, judging: bool = True) -> list[Any]:
        """Take in what has landed since; the bodies of the resume entries among it."""
        found = []
        for seq in range(self.rows, len(rows)):
            header = parse_header(rows[seq].header)
            body = parse_body(header.kind, header.body, rows[seq].body or b"")
            if header.kind is Kind.RESUME:
                if judging:
                    self._judge(header, body)
                found.append((_NAMES[header.by], body))
                self.cut = self.cut and header.epoch < self.book.epoch
            self._take(header, body, link_hash(rows[seq].header).hex())
            self.at = header.at if self.at is None else max(self.at, header.at)
        self.rows = len(rows)
        return found

    def _take(self, header: Header, body: Any, entry: str) -> None:
        match header.kind:
            case Kind.GENESIS | Kind.HANDOFF:
                self.owner = body.owner
            case Kind.CHECKPOINT:
                assert not self.paused, "a checkpoint while paused"
                self.checkpoints[entry] = header.seq, body.world, body.question is not None
            case Kind.PRUNE:
                self.pruned_before = body.before
            case Kind.PAUSE:
                self.paused = True
            case Kind.UNPAUSE:
                self.paused = False
            case Kind.REQUEST:
                said = body.statement
                self.asked[said.digest] = Ask(
                    _NAMES[header.by],
                    (said.checkpoint, said.world_to, said.answer),
                    said.basis,
                    said.epoch,
                    said.policy,
                    said.expires,
                )
            case Kind.APPROVAL | Kind.DENIAL:
                self._hear(body.attestation)
            case Kind.BREAK_GLASS if body.request in self.asked:
                self.asked[body.request].glass = True
            case Kind.EXPIRY if body.request in self.asked:
                ask = self.asked[body.request]
                ask.expired = ask.expired or header.at >= ask.expires
            case _:
                pass
        if header.kind in _MOVES:
            self.basis = entry

    def _hear(self, word: Attestation) -> None:
        ask = self.asked.get(word.statement)
        if ask is None or word not in self.book.given:
            return
        name = _NAMES[word.credential]
        mine = PERSONS[name] == PERSONS[ask.who]
        if word.verdict is Verdict.DENY and (mine or word.credential in _APPROVERS):
            ask.no.add(name)
        elif word.verdict is Verdict.APPROVE and word.credential in _APPROVERS and not mine:
            ask.yes.add(name)

    # ------------------------------------------------------------------ judging

    def counted(self, names: set[str]) -> set[str]:
        """The persons behind names whose keys have not ended."""
        return {PERSONS[name] for name in names if name not in self.book.ended}

    def is_ordinary(self, wish: Wish) -> bool:
        """Whether nothing about a wish needs anybody's word."""
        if self.newest is None:
            return True
        if wish.checkpoint != self.newest or wish.answer is not None or self.cut:
            return False
        _, world, question = self.checkpoints[wish.checkpoint]
        if question:
            return False
        if world is None or wish.world is None:
            return world == wish.world
        return LEVELS[wish.world] <= LEVELS[world]

    def ask_for(self, wish: Wish, now: datetime) -> tuple[str, Ask] | None:
        """The newest living request for exactly this."""
        for digest, ask in reversed(self.asked.items()):
            if (
                ask.who == wish.who
                and ask.key == (wish.checkpoint, wish.world, wish.answer)
                and (ask.basis, ask.epoch) == (self.basis, self.book.epoch)
                and ask.policy == self.book.policy
                and not ask.expired
                and now < ask.expires
            ):
                return digest, ask
        return None

    def is_granted(self, ask: Ask, policy: str) -> bool:
        """Whether enough people have approved, and nobody has denied."""
        if self.counted(ask.no):
            return False
        yes = self.counted(ask.yes) - {PERSONS[ask.who]}
        return ask.glass or len(yes) >= self.book.policies[policy][0]

    def may(self, wish: Wish, now: datetime) -> bool | None:
        """Whether a wish is allowed now; None within the last moments of a request."""
        times = [ask.expires for ask in self.asked.values()]
        if any(abs(now - expires) < _SLACK for expires in times):
            return None
        if self.paused or wish.who != self.owner:
            return False
        if self.is_ordinary(wish):
            return True
        if self.book.policies[self.book.policy][1] == "deliberate":
            return wish.deliberate
        found = self.ask_for(wish, now)
        return found is not None and self.is_granted(found[1], self.book.policy)

    def _judge(self, header: Header, body: Any) -> None:
        """Hold an allowance that was recorded against everything that it must be bound to."""
        wish = Wish(
            _NAMES[header.by], body.checkpoint, body.world, body.answer, body.reason is not None
        )
        assert not self.paused, "resumed while paused"
        assert header.epoch == self.book.epoch, "resumed in an epoch that is over"
        assert wish.who not in self.book.ended, "resumed with a key that has ended"
        assert not self.owner or wish.who == self.owner == body.owner, "resumed by no owner"
        policy = self.book.in_force(header.roster)
        assert body.policy == policy, "allowed by another policy than that in force"
        if self.newest is not None:
            assert body.checkpoint in self.checkpoints, "released what is no checkpoint"
            assert self.checkpoints[body.checkpoint][0] >= self.pruned_before or (
                body.checkpoint == self.newest
            ), "released what was given up"
        if self.is_ordinary(wish):
            assert body.request is None
            return
        if self.book.policies[policy][1] == "deliberate":
            assert wish.deliberate, "not deliberate, and nobody approved it"
            return
        assert body.request is not None, f"nobody was asked for {wish}"
        ask = self.asked.get(body.request)
        assert ask is not None, "spent a request that is not there"
        assert ask.who == wish.who, "spent somebody else's request"
        assert ask.key == (wish.checkpoint, wish.world, wish.answer), "approved was another thing"
        assert (ask.basis, ask.epoch) == (self.basis, self.book.epoch), "approved was another time"
        assert ask.policy == policy, "approved under another policy"
        assert not ask.expired, "spent what had expired"
        assert header.at < ask.expires + _SLACK, "spent what had expired"
        assert self.is_granted(ask, policy), "spent what was not granted"
        assert body.request not in self.book.spent, "spent twice"
        self.book.spent.add(body.request)
