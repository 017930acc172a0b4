# SPDX-License-Identifier: Apache-2.0
"""A thread with everybody's processes around it, in which a history of `rogue_model.py` happens."""

import hashlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sealpoint.anchor import Anchor, Position
from sealpoint.anchor.memory import MemoryAnchor
from sealpoint.errors import (
    AnchorUnavailable,
    Forked,
    KeyNotInForce,
    NeedsApproval,
    NoRight,
    NotOwner,
    NotTrusted,
    RolledBack,
    SealpointError,
    Tampered,
)
from sealpoint.gate import Thread
from sealpoint.ledger import (
    KINDS,
    AdoptBody,
    Body,
    CheckpointBody,
    EraseBody,
    ExpiryBody,
    GenesisBody,
    HandoffBody,
    Header,
    Kind,
    Marks,
    PauseBody,
    Place,
    PruneBody,
    RequestBody,
    ResultsBody,
    ResumeBody,
    Tip,
    UnpauseBody,
    VerdictBody,
    encode_body,
    encode_header,
    extend,
    link_hash,
    parse_body,
    parse_header,
    skip_seq,
    verify_entry,
)
from sealpoint.signing import (
    Action,
    Attestation,
    Pool,
    Role,
    RosterDocument,
    Statement,
    Verdict,
    attest,
)
from sealpoint.storage import Record
from sealpoint.store import ThreadWalk
from tests.deployment import Deployment, Opened, SimulatedAnchor
from tests.ledgers import SALT, identity, key, seals
from tests.properties.rogue_model import History, Step
from tests.unit.gate.team import policy

__all__ = ["Broken", "run_history"]

_PEOPLE = (
    *(identity("spare"), identity("crew-1"), identity("crew-2")),
    *(identity("ann", Role.APPROVER), identity("bob", Role.APPROVER)),
    *(identity("auditor", Role.AUDITOR), identity("officer", Role.PRIVACY)),
)
_PAYLOAD = b"\x81\xa4note\xa6bought"
_ROOT = hashlib.sha256(_PAYLOAD).hexdigest()
_VERDICTS = {
    Kind.APPROVAL: Verdict.APPROVE,
    Kind.DENIAL: Verdict.DENY,
    Kind.BREAK_GLASS: Verdict.BREAK_GLASS,
}


class Broken(AssertionError):
    """A history in which honest processes and the truth disagree."""


class Stop(NamedTuple):
    """The first entry that the walk from the genesis refuses."""

    header: Header
    before: Tip
    error: SealpointError
    is_claim: bool
    """Whether the chain allows it, and only what it says of earlier entries is false."""


def run_history(
    history: History, folder: Path | None = None, backend: str = "memory"
) -> Counter[str]:
    """Let a history happen, and compare after every move of the rogue member.

    Returns:
        What happened, and how often.

    Raises:
        Broken: An honest process accepts what the walk refuses, or the other way round.
    """
    scene = _Scene(history, folder, backend)
    try:
        for number, step in enumerate(history.steps):
            rest = history.steps[number + 1 :]
            scene.take(step)
            if step.actor == "rogue" and (
                step.act == "anchor" or not rest or rest[0].actor != "rogue"
            ):
                scene.compare()
        scene.compare()
    finally:
        scene.world.remove()
    return scene.tally


def is_refusal(error: object) -> bool:
    """Whether an error says that the thread is not to be believed."""
    if isinstance(error, NotOwner | NoRight | KeyNotInForce):
        return False
    return isinstance(error, NotTrusted | Tampered | Forked | RolledBack | AnchorUnavailable)


def _fields(step: Step) -> dict[str, str]:
    return dict(each.split("=", 1) for each in step.how)


class _Scene:
    """The store, its people, and the rogue member."""

    def __init__(self, history: History, folder: Path | None, backend: str) -> None:
        self.tally: Counter[str] = Counter(histories=1)
        self.rogue = history.rogue
        self.machines = history.machines
        self.world = Deployment(folder, backend=backend)
        self._memories = [MemoryAnchor() for _ in range(history.machines)]
        self.world.enrol(*_PEOPLE)
        self.world.apply(policy(needed=1))
        self._change_roster(lambda _: {"pools": (Pool("crew", ("crew-1", "crew-2")),)})
        self._open: dict[tuple[str | None, int], Opened] = {}
        self._warm: dict[tuple[str, int], Thread] = {}
        self._number = 0
        self._stops: dict[int, Stop] = {}
        self._tips: dict[int, Tip] = {}
        self._verified: set[int] = set()
        self._relied = {0}
        """The entries that an anchor has seen to say whose the thread is."""
        self._owners: dict[int, str] = {}
        """What entries said about that; a later erasure takes their bodies away."""
        for _ in range(2):
            self.thread("worker", 0).save({"n": 0})
        self.slot = self.world.slot("t")
        self.id = self.world.thread_id("t")
        self.reader = self._opened(None, 0)
        self._storage = self._opened(self.rogue, 0).storage.inner
        for who in ("operator", "crew-2"):
            self.thread(who, self.machines - 1).load()

    # ------------------------------------------------------------------ processes

    def process(self, who: str | None, machine: int) -> Opened:
        """A new process of somebody on a machine."""
        options: dict[str, Any] = {"read_only": True} if who is None else {}
        if self.machines > 1:
            shared = self.world._anchor(read_only=who is None)
            closes = self.world.folder is not None
            options["shared_anchor"] = SimulatedAnchor(shared, closes=closes)
            options["anchor"] = SimulatedAnchor(self._memories[machine], closes=False)
        return self.world.open(who, gated=True, **options)

    def _opened(self, who: str | None, machine: int) -> Opened:
        place = who, machine % self.machines
        if place not in self._open:
            self._open[place] = self.process(*place)
        return self._open[place]

    def thread(self, who: str, machine: int) -> Thread:
        """A handle that stays, and knows the thread from before."""
        place = who, machine % self.machines
        if place not in self._warm:
            self._warm[place] = self._opened(*place).thread("t")
        return self._warm[place]

    def fresh(self, who: str | None, machine: int) -> Thread:
        """A handle that knows nothing of the thread; to open the store again would be slow."""
        store = self._opened(who, machine)._checkpoints
        return store._new_handle(store.core, "t")

    # ------------------------------------------------------------------ the truth

    def rows(self) -> list[Record]:
        """The records of the thread."""
        return [record for _, record in self._storage.scan(self.id, 0)]

    def _headers(self) -> list[Header]:
        return [parse_header(row.header) for row in self.rows()]

    def walk(self) -> tuple[Tip | None, Stop | None]:
        """The end of the thread as far as the walk from its genesis goes, and what stops it."""
        tip: Tip | None = None
        walk = ThreadWalk.without_anchor(self.reader.core, self.id, "t")
        try:
            for step in walk.steps():
                tip = step.tip
                self._tips.setdefault(tip.entry.seq, tip)
        except SealpointError as error:
            assert tip is not None
            rows = self.rows()
            at = min(tip.entry.seq + 1, len(rows) - 1)
            stop = Stop(parse_header(rows[at].header), tip, error, self._extends(tip, rows[at]))
            # A later erasure takes away the bodies that say whose the thread was.
            return tip, self._stops.setdefault(at, stop)
        return tip, None

    def _extends(self, tip: Tip, record: Record) -> bool:
        """Whether an entry may follow, leaving aside what it says of the entries before it."""
        before, trust = tip.entry.header, self.reader.core.trust()
        place = Place(before.store, before.ns, before.thread)
        try:
            entry = verify_entry(
                record.header, record.seals, place=place, seq=before.seq + 1, chain=trust
            )
            extend(tip, entry, record.body, trust)
        except SealpointError:
            return False
        return True

    def is_own_matter(self, stop: Stop) -> bool:
        """Whether a reader that starts at the head need not find it: only the owner is concerned.

        The rogue member owns the thread where it broke a rule, wrote as its owner on top (or the
        rule is about what an entry claims of those before it), and nothing on the thread goes
        against what another person decided: no pause, no handoff, no erasure. `verify` finds it
        all the same, and another person's process finds it before it writes on top.
        """
        headers = self._headers()
        owner, by = self._owner_before(stop), key(self.rogue).public.id.raw.hex()
        roster = self.reader.core.trust().roster
        if owner is None or stop.header.by != by or not roster.owns(self.rogue, owner):
            return False
        covered = stop.is_claim or any(
            header.by == by and (KINDS[header.kind].by_owner or header.kind is Kind.HANDOFF)
            for header in headers[stop.header.seq + 1 :]
        )
        return covered and not self._is_against_others(headers, stop)

    def _owner_before(self, stop: Stop) -> str | None:
        """The owner by the newest entry that settles it and that an anchor has seen."""
        tip = stop.before
        while tip.owner.seq not in self._relied:
            tip = self._tips[tip.owner.seq - 1]
        return tip.fence.owner or self._owners.get(tip.owner.seq)

    def _is_against_others(self, headers: list[Header], stop: Stop) -> bool:
        """Whether an entry from a position on is against what another person decided.

        Only who wrote what counts here, and not what the rogue member's headers claim. A handoff
        that no anchor has seen is not done yet: nobody relies on it.
        """
        roster = self.reader.core.trust().roster
        owner, paused, erased = self._owner_before(stop), stop.before.paused is not None, False
        names = {key(each.name).public.id.raw.hex(): each for each in roster.identities}
        for header in headers[stop.header.seq :]:
            rule, kind, writer = KINDS[header.kind], header.kind, names[header.by]
            if not rule.on_threads or not writer.may_any(rule.roles, header.ns):
                continue  # it settles nothing, unless a reader believes it: then what follows does
            if rule.blocked_by_pause and paused:
                return True
            if erased and kind is not Kind.GENESIS:
                return True
            if erased:
                owner = self._owners[header.seq]
            owns = owner is not None and roster.owns(writer.name, owner)
            if (rule.by_owner or kind is Kind.HANDOFF) and not owns:
                return True
            if kind is Kind.HANDOFF and header.seq in self._relied:
                owner = self._owners[header.seq]
            erased = kind is Kind.ERASE
            if kind in (Kind.PAUSE, Kind.UNPAUSE, Kind.ERASE):
                paused = kind is Kind.PAUSE
        return False

    # ------------------------------------------------------------------ comparing

    def compare(self) -> None:
        """Compare what honest processes say with the truth."""
        tip, stop = self.walk()
        if stop is None and self._is_misled():
            self.tally["an anchor that says what no entry does"] += 1
        elif stop is None:
            self.tally["accepted"] += 1
            for name, call in self._reads():
                error = _error(call)
                if is_refusal(error):
                    raise Broken(f"false alarm: {name} says {error!r}")
        if stop is None:
            return
        own = self.is_own_matter(stop)
        self.tally["own matter" if own else f"refused: {type(stop.error).__name__}"] += 1
        calls = [] if own else [*self._reads(), *self._writes(tip)]
        if own and stop.is_claim:
            # An owner that writes on top vouches for them: for others' ones only after a look.
            calls = [
                (name, call)
                for name, call in self._writes(tip)
                if name.startswith(("save", "resume")) and not name.endswith(f" {self.rogue}")
            ]
        for name, call in calls:
            error = _error(call)
            # For another reason counts too, where the gate comes first.
            if error is None if own else not is_refusal(error):
                raise Broken(
                    f"{name} gets {error!r}, and entry {stop.header.seq}, a "
                    f"{stop.header.kind.word}, is refused: {stop.error!r}"
                )
        length = len(self.rows())
        if length not in self._verified:
            self._verified.add(length)
            if self.reader.verify().ok:
                raise Broken(f"verify does not report entry {stop.header.seq}: {stop.error!r}")

    def _is_misled(self) -> bool:
        """Whether the rogue member made an anchor useless, which every process says.

        It names an epoch that never began, or says of a pause what the entry there does not.
        """
        pauses = {header.seq for header in self._headers() if header.kind is Kind.PAUSE}
        return any(
            position.epoch or position.paused != (position.pause in pauses)
            for position in self._positions()
        )

    def _positions(self) -> list[Position]:
        """What every anchor holds of the thread."""
        found = [self.world.position("t"), *(each.get(self.slot) for each in self._memories)]
        return [position for position in found if position is not None]

    def _reads(self) -> list[tuple[str, Callable[[], object]]]:
        calls: list[tuple[str, Callable[[], object]]] = []
        for at in range(self.machines):
            calls += [
                (f"load by a reader on {at}", partial(self._load, None, at)),
                (f"load by spare on {at}", partial(self._load, "spare", at)),
                (f"history by the auditor on {at}", partial(self._list, "auditor", at)),
            ]
        calls += [
            (f"load by warm {who} on {at}", warm.load) for (who, at), warm in self._warm.items()
        ]
        return calls

    def _load(self, who: str | None, machine: int) -> object:
        return self.fresh(who, machine).load()

    def _list(self, who: str, machine: int) -> object:
        return list(self.fresh(who, machine).history())

    def _writes(self, tip: Tip | None) -> list[tuple[str, Callable[[], object]]]:
        at = self._number % self.machines
        who = self._honest_owner(tip)
        return [
            (f"save by {who}", lambda: self.fresh(who, at).save({"n": "no"})),
            (f"resume by {who}", lambda: self.fresh(who, at).resume(world=None, deliberate="x")),
            ("pause by operator", lambda: self.fresh("operator", at).pause("stop")),
            ("erase by officer", lambda: self.fresh("officer", at).erase(reason="asked")),
        ]

    def _honest_owner(self, tip: Tip | None) -> str:
        owner = None if tip is None else tip.fence.owner
        return {None: "worker", "crew": "crew-2"}.get(owner, owner or "worker")

    # ------------------------------------------------------------------ steps

    def take(self, step: Step) -> None:
        """Let one step happen."""
        self._number += 1
        if step.act == "anchor":
            self._move_anchors(**_fields(step))
        elif step.actor == "rogue":
            self._forge(Kind(step.act), _fields(step))
        elif step.act == "roster":
            self._roster(_fields(step).get("change", "none"))
        else:
            self._act(step)
        self._remember()

    def _remember(self) -> None:
        """Keep what later steps take away: what anchors saw, and what bodies said."""
        self._relied |= {position.owner for position in self._positions()}
        for header, row in zip(self._headers(), self.rows(), strict=True):
            if header.kind in (Kind.GENESIS, Kind.HANDOFF) and row.body is not None:
                body = parse_body(header.kind, header.body, row.body)
                self._owners.setdefault(header.seq, body.owner)

    def _act(self, step: Step) -> None:
        tip, stop = self.walk()
        fields = _fields(step)
        who = self._honest_owner(tip) if step.actor == "owner" else step.actor
        machine = int(fields.get("machine", "0"))
        made = self.thread if fields.get("handle") == "warm" else self.fresh
        before = len(self.rows())
        refused = stop is not None and not self.is_own_matter(stop)
        error = _error(lambda: self._call(step.act, made(who, machine), fields))
        self.tally[f"{step.act}: {'done' if error is None else type(error).__name__}"] += 1
        if stop is None and is_refusal(error) and not self._is_misled():
            raise Broken(f"false alarm: {step.act} by {who} says {error!r}")
        if stop is not None and refused and error is None:
            raise Broken(f"{step.act} by {who} succeeds, in spite of {stop.error!r}")
        if stop is not None and refused and len(self.rows()) > before:
            raise Broken(f"{step.act} by {who} has written on top of {stop.error!r}")

    def _call(self, act: str, thread: Thread, fields: dict[str, str]) -> object:
        to = fields.get("to", "spare")
        if act == "save":
            return thread.save({"n": self._number})
        if act == "resume":
            return thread.resume(world=None, deliberate="a test")
        if act in ("pause", "unpause", "erase"):
            return getattr(thread, act)(reason="a test")
        if act == "prune":
            return thread.prune(keep_last=1)
        if act == "handoff":
            return thread.handoff(to=to, reason="a test")
        if act == "request":
            try:
                return thread.handoff(to=to, reason="a test")
            except NeedsApproval as needs:
                request: Any = needs.request
                return self._opened("ann", 0).approve(request.id, reason="fine")
        return thread.load()

    def _roster(self, change: str) -> None:
        def changed(document: RosterDocument) -> dict[str, Any]:
            if change == "pool":
                return {"pools": (Pool("crew", ("crew-2",)),)}
            if change == "back":
                return {"pools": (Pool("crew", ("crew-1", "crew-2")),)}
            return {"pools": tuple(reversed(document.pools))}

        with suppress(SealpointError):
            self._change_roster(changed)

    def _change_roster(self, change: Callable[[RosterDocument], dict[str, Any]]) -> None:
        self.world.change(lambda document: msgspec.structs.replace(document, **change(document)))

    # ------------------------------------------------------------------ the rogue member

    def _move_anchors(self, machine: str = "0", epoch: str = "+0", lie: str = "") -> None:
        """Move every anchor of a machine to the newest entry, as far as it lets somebody."""
        anchors: list[Anchor] = [self.world._anchor(read_only=False)]
        if self.machines > 1:
            anchors.append(self._memories[int(machine) % self.machines])
        rows = self.rows()
        header = parse_header(rows[-1].header)
        claimed = Position(
            self.id,
            header.epoch + int(epoch),
            header.gen,
            header.seq,
            link_hash(rows[-1].header),
            header.kind is Kind.ERASE,
            header.fence,
            header.pause,
            header.owner,
            link_hash(rows[header.owner].header),
            parse_header(rows[header.pause].header).kind is Kind.PAUSE,
        )
        lies: dict[str, dict[str, Any]] = {
            "gen": {"gen": header.gen + 3},
            "erased": {"erased": not claimed.erased},
            "paused": {"paused": not claimed.paused},
            "marks": {"fence": -1, "pause": -1, "owner": -1, "paused": False},
        }
        claimed = msgspec.structs.replace(claimed, **lies.get(lie, {}))
        for anchor in anchors:
            seen = anchor.get(self.slot)
            if seen is None:
                continue
            kept = msgspec.structs.replace(
                claimed,
                fence=max(seen.fence, claimed.fence),
                pause=max(seen.pause, claimed.pause),
                paused=(seen if seen.pause > claimed.pause else claimed).paused,
                owner=max(seen.owner, claimed.owner),
                owner_entry=max(
                    (seen.owner, seen.owner_entry), (claimed.owner, claimed.owner_entry)
                )[1],
            )
            for position in (claimed, kept):
                with suppress(SealpointError):
                    anchor.advance(self.slot, anchor.get(self.slot) or seen, position)
        if self.world.folder is not None:
            anchors[0].close()

    def _forge(self, kind: Kind, fields: dict[str, str]) -> None:
        """Append an entry, well made in every way that is not named."""
        rows = self.rows()
        headers = [parse_header(row.header) for row in rows]
        seq, before, signer = len(rows), headers[-1], key(self.rogue)
        body = self._body(kind, headers, rows, fields)
        data = encode_body(body)
        trust = self.reader.core.renewed_trust()
        marks = Marks.of(before).after(kind, seq)._asdict()
        for name in marks:
            if name in fields:
                marks[name] = _mark(fields[name], name, headers)
        begun = sum(
            header.kind is Kind.GENESIS and headers[header.seq - 1].kind is Kind.ERASE
            for header in headers[1:]
        ) + (kind is Kind.GENESIS and before.kind is Kind.ERASE)
        change = fields.get("gen", "+0")
        held = [
            roster.seq for roster in trust.rosters if roster.holder(signer.public.id) is not None
        ]
        roster = {
            "oldest": held[0],
            "older": max(
                seen for seen in (held[0], *held) if seen <= max(before.roster - 1, held[0])
            ),
            "before": before.roster,
            "newest": trust.roster.seq,
        }[fields.get("roster", "newest")]
        shift = {"past": -timedelta(days=30), "future": timedelta(days=30)}
        made = msgspec.structs.replace(
            before,
            seq=seq,
            prev=link_hash(rows[-1].header).hex(),
            skip=link_hash(rows[skip_seq(seq)].header).hex(),
            kind=kind,
            by=signer.public.id.raw.hex(),
            body=hashlib.sha256(data).hexdigest(),
            roster=roster,
            gen=before.gen if change == "before" else max(begun + int(change), 0),
            epoch=trust.epoch + int(fields.get("epoch", "+0")),
            at=self.world.now() + shift.get(fields.get("at", ""), timedelta()),
            **marks,
        )
        raw = encode_header(made)
        record = Record(
            raw, seals(raw, signer), data, _PAYLOAD if KINDS[kind].holds_payload else None
        )
        self._storage.append(self.id, seq, [record], blobs={})

    def _body(
        self, kind: Kind, headers: list[Header], rows: list[Record], fields: dict[str, str]
    ) -> Body:
        seq, name = len(headers), fields.get("name", self.rogue)
        if kind is Kind.GENESIS:
            return GenesisBody(salt=SALT, name="t", owner=name)
        if kind is Kind.RESUME:
            return ResumeBody(salt=SALT, owner=name, basis=seq - 1)
        if kind in (Kind.CHECKPOINT, Kind.HELD):
            return CheckpointBody(salt=SALT, id=f"bought-{seq}", root=_ROOT)
        if kind is Kind.RESULTS:
            return ResultsBody(salt=SALT, checkpoint="none", task=f"t{seq}", root=_ROOT)
        if kind is Kind.HANDOFF:
            return self._handoff(name, headers, rows, fields.get("proof", "none"))
        if kind is Kind.PAUSE:
            return PauseBody(salt=SALT, reason="mine")
        if kind is Kind.UNPAUSE:
            return UnpauseBody(salt=SALT, reason="mine")
        if kind in (Kind.PRUNE, Kind.DELETE):
            return _retention(headers, rows)
        if kind is Kind.REQUEST:
            return RequestBody(salt=SALT, statement=self._statement(name, headers, rows))
        if kind in _VERDICTS:
            asked = _newest_request(headers, rows) or self._statement(name, headers, rows)
            word = attest(key(self.rogue), asked.digest, _VERDICTS[kind], "mine")
            return VerdictBody(salt=SALT, attestation=word)
        if kind is Kind.EXPIRY:
            return ExpiryBody(salt=SALT, request=f"{seq:064x}")
        if kind is Kind.ERASE:
            return EraseBody(salt=SALT, reason="mine")
        return AdoptBody(salt=SALT, reason="mine")

    def _handoff(
        self, name: str, headers: list[Header], rows: list[Record], proof: str
    ) -> HandoffBody:
        """A handoff with an approval that lies on the thread, with one of its own, or without."""
        words: tuple[Attestation, ...] = ()
        statement = _newest_request(headers, rows) if proof == "found" else None
        if statement is not None:
            name = statement.to or name
            words = tuple(_words(headers, rows, statement.digest))
        elif proof == "bogus":
            statement = self._statement(name, headers, rows)
            words = (attest(key(self.rogue), statement.digest, Verdict.APPROVE, "mine"),)
        return HandoffBody(
            salt=SALT, owner=name, reason="mine", statement=statement, attestations=words
        )

    def _statement(self, name: str, headers: list[Header], rows: list[Record]) -> Statement:
        newest = headers[-1]
        basis = next(
            link_hash(row.header).hex()
            for header, row in zip(reversed(headers), reversed(rows), strict=True)
            if KINDS[header.kind].moves_basis or not header.seq
        )
        return Statement(
            store=newest.store,
            ns=newest.ns,
            thread=newest.thread,
            epoch=newest.epoch,
            gen=newest.gen,
            basis=basis,
            action=Action.HANDOFF,
            checkpoint=None,
            release=None,
            world_from=None,
            world_to=None,
            answer=None,
            to=name,
            differences=(),
            requester=self.rogue,
            actor=None,
            policy=None,
            needed=1,
            nonce="ab" * 16,
            expires=self.world.now() + timedelta(hours=1),
            reason="mine",
        )


def _error(call: Callable[[], object]) -> SealpointError | None:
    try:
        call()
    except SealpointError as error:
        return error
    return None


def _mark(choice: str, name: str, headers: list[Header]) -> int:
    """What an entry names for a session, a pause or an owner."""
    seq = len(headers)
    newest = getattr(headers[-1], name)
    choices = {"zero": 0, "own": seq, "last": seq - 1}
    choices["previous"] = getattr(headers[min(max(newest - 1, 0), seq - 1)], name)
    return choices[choice] if choice in choices else int(choice) % seq


def _retention(headers: list[Header], rows: list[Record]) -> PruneBody:
    """A prune that gives up no more than the one before it."""
    for header, row in zip(reversed(headers), reversed(rows), strict=True):
        if header.kind in (Kind.ERASE, Kind.GENESIS):
            break
        if KINDS[header.kind].is_retention and row.body is not None:
            body: PruneBody = parse_body(header.kind, header.body, row.body)
            return msgspec.structs.replace(body, earlier=header.seq)
    return PruneBody(salt=SALT, before=0)


def _parsed(headers: list[Header], rows: list[Record], *kinds: Kind) -> list[Any]:
    found = []
    for header, row in zip(headers, rows, strict=True):
        if header.kind in kinds and row.body is not None:
            with suppress(SealpointError):
                found.append(parse_body(header.kind, header.body, row.body))
    return found


def _newest_request(headers: list[Header], rows: list[Record]) -> Statement | None:
    asked: list[RequestBody] = _parsed(headers, rows, Kind.REQUEST)
    return asked[-1].statement if asked else None


def _words(headers: list[Header], rows: list[Record], digest: str) -> list[Attestation]:
    said: list[VerdictBody] = _parsed(headers, rows, *_VERDICTS)
    return [each.attestation for each in said if each.attestation.statement == digest]
