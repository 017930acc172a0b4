# SPDX-License-Identifier: Apache-2.0
"""Rollouts: a change of world that people accept once, for many threads.

A rollout names pairs of worlds, each from one and to another, in one namespace and until a date. It
is a request like that of a resume: people approve it by signing its statement, and one denial ends
it, before or after it takes effect. While it is in force, a resume between two of its worlds meets
the policy's requirements for changed worlds, and carries the proof. It covers nothing else: no
answer, no older checkpoint, no pause, no restore.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sealpoint.anchor import Position
from sealpoint.errors import (
    Edited,
    Missing,
    SealpointError,
    UnknownCheckpoint,
    UnknownRequest,
    UnknownThread,
    UsageError,
    WorldInvalid,
)
from sealpoint.gate._decision import Reason, compared_reasons
from sealpoint.gate._gate_context import GateContext
from sealpoint.gate._operator_actions import OperatorActions
from sealpoint.gate._policy import Measure, Policies, Policy
from sealpoint.gate._request_list import only_one
from sealpoint.gate._requests import Request, Status, why_closed
from sealpoint.gate._rollouts_in_force import Rollout, RolloutBook
from sealpoint.gate._thread import Thread
from sealpoint.ledger import (
    KINDS,
    ROLLOUTS,
    CheckpointBody,
    Kind,
    link_hash,
    parse_body,
    parse_header,
)
from sealpoint.limits import BODY_BYTES_MAX, ROLLOUT_DAYS_MAX, ROLLOUT_PAIRS_MAX
from sealpoint.signing import Attestation, Verdict
from sealpoint.store import (
    Core,
    ListedThread,
    ThreadReader,
    ThreadState,
    all_threads,
    claimed_name,
    is_reserved,
    read_world,
    thread_slot,
    unknown_threads,
)
from sealpoint.world import World, WorldDiff

# The plan shows what a change of world would mean for the threads of a namespace, before people
# accept it.
#
# It finds the newest checkpoint of a thread from the anchored entry, by the links below it. If
# something was pruned or deleted, it reads the thread itself. Nothing is decoded and nothing is
# released: the gate verifies all of it again when a run resumes. Memory grows with the number of
# different worlds; of each thread only the id is kept, to find threads that the anchor does not
# know.


_EXAMPLES_MAX = 3
_FAILURES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWorld:
    """A world of saved threads, with the requirements for resuming them in the new world."""

    digest: str
    threads: int
    """How many threads were last saved in it."""
    examples: tuple[str, ...]
    """The names of some of those threads."""
    world: World | None
    """None if it cannot be read: then each of its threads needs its own decision."""
    diff: WorldDiff | None
    reasons: tuple[Reason, ...]
    """The reasons that the policy in force gives for the differences."""
    measure: Measure
    """The strictest measure of those reasons."""
    rollout: str | None
    """The id of a rollout in force that allows the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """The worlds of a namespace's threads, compared with a new one."""

    world: World
    worlds: tuple[PlannedWorld, ...]
    """The worlds that differ from the new one, the most frequent first."""
    same: int
    """How many threads were last saved in the new world itself."""
    undeclared: int
    """How many threads were saved without a world."""
    empty: int
    """How many threads hold no checkpoint."""
    failures: tuple[tuple[str, str], ...]
    """Some of the threads that could not be read, or that the anchor does not know: id, message."""
    failed: int
    """The total number of those threads."""

    @property
    def threads(self) -> int:
        """The total number of threads."""
        found = sum(each.threads for each in self.worlds)
        return found + self.same + self.undeclared + self.empty + self.failed


@dataclass(slots=True)
class _Group:
    """The threads of one world, while they are counted."""

    thread: bytes
    """One of them."""
    threads: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Failures:
    """Threads that could not be read: their number, and the first ones with the message."""

    count: int = 0
    first: list[tuple[str, str]] = field(default_factory=list)

    def add(self, thread: str, message: str) -> None:
        self.count += 1
        if len(self.first) < _FAILURES_MAX:
            self.first.append((thread, message))


def make_plan(
    core: Core,
    world: World,
    *,
    policy: Policy | None,
    exact: Callable[[str], str | None],
    rollout: Callable[[str], Rollout | None],
) -> RolloutPlan:
    """Compare the worlds of all threads of a namespace with a new one.

    Args:
        core: The store.
        world: The new world.
        policy: The policy in force.
        exact: Finds the world that a thread would resume from, by its name, by a full read.
        rollout: Finds the rollout in force from a world to the new one.

    Raises:
        StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
        Tampered, NotTrusted, RolledBack, Forked: The store chain does not verify.
    """
    core.renewed_trust()
    groups: dict[str | None, _Group] = {}
    failures = _Failures()
    empty = 0
    threads = all_threads(core)
    for slot, anchored in _begun(threads):
        try:
            found = _newest_world(core, slot, anchored, exact)
            group = _group(groups, found, anchored)
            if group is not None and len(group.examples) < _EXAMPLES_MAX:
                group.examples.append(_name(core, slot, anchored))
        except SealpointError as error:
            failures.add(anchored.thread.hex(), error.message)
            continue
        empty += found is None
        if group is not None:
            group.threads += 1
    for each in unknown_threads(core, threads):
        failures.add(each.thread, f"thread {each.name!r}: expected the anchor to know it")
    undeclared, same = groups.pop(None, None), groups.pop(world.digest, None)
    planned = [
        _planned(
            digest,
            group,
            world,
            before=_readable_world(read_world(core, group.thread, digest)),
            policy=policy,
            rollout=rollout(digest),
        )
        for digest, group in groups.items()
        if digest is not None and group.threads
    ]
    planned.sort(key=lambda each: (-each.threads, each.digest))
    return RolloutPlan(
        world=world,
        worlds=tuple(planned),
        same=0 if same is None else same.threads,
        undeclared=0 if undeclared is None else undeclared.threads,
        empty=empty,
        failures=tuple(failures.first),
        failed=failures.count,
    )


def _group(
    groups: "dict[str | None, _Group]", found: tuple[str | None] | None, anchored: Position
) -> "_Group | None":
    """Return the group of a thread's world; None if the thread is empty, or not counted here."""
    if found is None or found is _ELSEWHERE:
        return None
    return groups.setdefault(found[0], _Group(anchored.thread))


def _begun(threads: Iterable[ListedThread]) -> Iterator[tuple[bytes, Position]]:
    for each in threads:
        if each.is_begun and each.anchored is not None:
            yield each.slot, each.anchored


def _name(core: Core, slot: bytes, anchored: Position) -> str:
    """Return the name of a thread, which its slot proves.

    Raises:
        Edited: The store has another name for it.
    """
    namespace, name = claimed_name(core.storage, anchored.thread)
    if thread_slot(core.parts.secret, namespace, name) != slot:
        raise Edited(
            f"thread {anchored.thread.hex()[:12]}: its first entry does not have the "
            "name that the anchor knows it by"
        )
    return name


_ELSEWHERE: tuple[None] = (None,)
"""A thread of another namespace, or a thread that does not belong to the application."""


def _newest_world(
    core: Core, slot: bytes, anchored: Position, exact: Callable[[str], str | None]
) -> tuple[str | None] | None:
    """Return the world of a thread's newest checkpoint; None if it has no checkpoint."""
    anchored = core.restored(anchored)
    expected = anchored.entry
    records = core.storage.scan(anchored.thread, 0, anchored.seq, descending=True)
    for seq, record in records:
        if link_hash(record.header) != expected:
            raise Edited(f"entry {seq}: it is not the one that the anchor has seen")
        header = parse_header(record.header)
        if header.ns != core.namespace or (header.kind is Kind.ERASE and seq == anchored.seq):
            return _ELSEWHERE
        if KINDS[header.kind].gives_up:
            return (exact(_name(core, slot, anchored)),)
        if KINDS[header.kind].is_checkpoint:
            if record.body is None:
                raise Missing(f"entry {seq}: its body is missing")
            body: CheckpointBody = parse_body(header.kind, header.body, record.body)
            if not body.lane:
                return (body.world,)
        if header.prev is None:
            return _ELSEWHERE if is_reserved(_name(core, slot, anchored)) else None
        expected = bytes.fromhex(header.prev)
    raise Edited(f"thread {anchored.thread.hex()[:12]}: its first entry is missing")


def _planned(
    digest: str,
    group: _Group,
    world: World,
    *,
    before: World | None,
    policy: Policy | None,
    rollout: Rollout | None,
) -> PlannedWorld:
    diff = None if before is None else before.diff(world)
    reasons = () if diff is None else compared_reasons(diff, policy)
    return PlannedWorld(
        digest=digest,
        threads=group.threads,
        examples=tuple(group.examples),
        world=before,
        diff=diff,
        reasons=reasons,
        measure=max((each.measure for each in reasons), default=Measure.ALLOW),
        rollout=None if rollout is None else rollout.facts.id,
    )


def _readable_world(found: dict[str, Any] | None) -> World | None:
    try:
        return None if found is None else World.from_dict(found)
    except WorldInvalid:
        return None


_WORLDS_BYTES_MAX = BODY_BYTES_MAX * 3 // 4
"""The limit on the worlds of a rollout, which are part of the body of one entry."""

_Pair = tuple[World | Mapping[str, Any], World | Mapping[str, Any]]


class Rollouts:
    """The rollouts of an open store's namespace: `store.rollouts`."""

    def __init__(
        self, core: Core, policies: Policies, book: RolloutBook, thread: Callable[[str], Thread]
    ) -> None:
        self._core = core
        self._policies = policies
        self._book = book
        self._thread = thread
        state = ThreadState(core, ROLLOUTS)
        context = GateContext(state, policies, book)
        self._operations = OperatorActions(state, ThreadReader(state), context)

    def plan(self, world: World | Mapping[str, Any]) -> RolloutPlan:
        """Show what a new world would mean for the existing threads; writes nothing.

        Args:
            world: The new capabilities of the runs.

        Raises:
            WorldInvalid: The world is invalid.
            StorageUnavailable, AnchorUnavailable: The store or the anchor cannot be read.
            Tampered, NotTrusted, RolledBack, Forked: The store chain does not verify.
        """
        new = _given_world(world)
        return make_plan(
            self._core,
            new,
            policy=self._policies.in_force(self._core.trust().roster),
            exact=self._world_of,
            rollout=lambda before: self._book.find(before, new.digest),
        )

    def propose(
        self,
        pairs: Iterable[_Pair],
        *,
        reason: str,
        until: datetime | timedelta = timedelta(days=14),
        actor: str | None = None,
    ) -> Request:
        """Ask people to accept changes of world, each from one and to another.

        If the policy requires no more than a reason, the rollout holds at once. If several callers
        propose the same change at the same time, in any process, only one proposal is made.

        Args:
            pairs: The changes: from, to. `plan` finds the worlds of the existing threads.
            reason: Why; it is signed, and shown with every resume that the rollout allows.
            until: When it ends, or how long it holds.
            actor: The person of the roster for whom it is proposed, as the caller claims. This
                person cannot approve it.

        Raises:
            UsageError: There are no or too many pairs, the policy allows all of them already or
                refuses one, the time is invalid, or there is no reason or no such person.
            WorldInvalid: A world is invalid.
            Moved: A rollout for one of these changes waits for approval; or it holds, and this one
                would not end a day later or more.
            NotTrusted: This identity may not ask, because it is neither writer nor operator.
        """
        policy = self._policies.in_force(self._core.trust().roster)
        if policy is None:
            raise UsageError(
                "rollout: no policy is in force, so nobody can approve anything",
                hint="Where the root key is, put one in force: sealpoint policy apply team",
            )
        worlds, measures = _asking_changes(pairs, policy)
        return self._operations.ask_rollout(
            tuple(sorted(measures)),
            tuple(worlds[digest] for digest in sorted(worlds)),
            needed=max(measures.values()).people,
            policy=policy,
            reason=reason,
            expires=self._end(until),
            actor=actor,
        )

    def propose_for(
        self,
        requests: Iterable[Request],
        *,
        reason: str,
        until: datetime | timedelta = timedelta(days=14),
        actor: str | None = None,
    ) -> Request:
        """Ask people to accept the changes of world that open requests wait for, all at once.

        Once it holds, a resume that needed approval only for one of these changes continues without
        its own approvals. If its request covers anything else, that still needs approval.

        Args:
            requests: Open requests to resume in another world, of any threads of the namespace.
            reason: As for `propose`.
            until: As for `propose`.
            actor: As for `propose`.

        Raises:
            UnknownRequest, RequestClosed: A request is no longer open.
            NotTrusted: A request names another world of its checkpoint than the thread has.
            UsageError: A request is not about a change of world that can be compared; or as
                `propose`.
        """
        pairs = [self._change_of(each) for each in requests]
        return self.propose(pairs, reason=reason, until=until, actor=actor)

    def _change_of(self, request: Request) -> tuple[World, World]:
        """Return the worlds that a request is from and to, as its thread has them now."""
        told = request.statement
        where = f"request {request.short} of thread {request.thread!r}"
        if None in (told.world_from, told.world_to) or told.world_from == told.world_to:
            raise UsageError(
                f"{where}: it does not ask to resume in another world than its checkpoint's",
                hint="Another person answers it by itself: sealpoint approve ID --reason WHY",
            )
        thread = self._thread(request.thread)
        found = next((each for each in thread.requests() if each.id == request.id), None)
        if found is None:
            raise UnknownRequest(f"{where}: there is no such open request")
        if found.status not in (Status.OPEN, Status.APPROVED):
            raise why_closed(found)
        diff = thread.compare(found)  # raises if the request misstates the checkpoint's world
        before = read_world(self._core, bytes.fromhex(told.thread), told.world_from or "")
        if diff is None or before is None or found.world is None:
            raise UsageError(
                f"{where}: the world of its checkpoint cannot be read any more, so that nobody "
                "can compare them",
                hint="Another person answers it by itself: sealpoint approve ID --reason WHY",
            )
        return World.from_dict(before), World.from_dict(found.world)

    def _end(self, until: datetime | timedelta) -> datetime:
        now = self._core.now()
        ends = until if isinstance(until, datetime) else now + until
        longest = timedelta(days=ROLLOUT_DAYS_MAX)
        if ends.tzinfo is None or not now < ends <= now + longest:
            raise UsageError(
                f"rollout: expected an end with a time zone, within {ROLLOUT_DAYS_MAX} days from "
                f"now, found {until}"
            )
        return ends.astimezone(UTC)

    def list(self) -> tuple[Request, ...]:
        """Return every rollout since the newest restore, oldest first, in any status.

        Raises:
            Tampered, RolledBack, Forked, Unanchored, NotTrusted: The store is not what it was.
        """
        return self._book.all()

    def get(self, rollout_id: str) -> Request:
        """Return one rollout, by its id or the first digits of it.

        Raises:
            UsageError: There are too few digits, or other characters.
            UnknownRequest: There is no such rollout, or more than one.
        """
        return only_one(self.list(), rollout_id, "rollout")

    def compare(self, rollout: Request) -> tuple[tuple[str, str, WorldDiff], ...]:
        """Return the changes that a rollout allows: from, to, and the difference, for each pair."""
        worlds = {world.digest: world for world in map(World.from_dict, rollout.worlds)}
        return tuple(
            (before, after, worlds[before].diff(worlds[after]))
            for before, after in rollout.statement.pairs
        )

    def revoke(self, rollout_id: str, *, reason: str, actor: str | None = None) -> Attestation:
        """End a rollout for good, as the identity that opened the store.

        An approver may do that, and the proposer. Runs that have already resumed are not stopped.

        Args:
            rollout_id: Its id, or the first digits of it.
            reason: Why; it is signed too.
            actor: The person of the roster for whom this is done, as the caller claims. It is
                recorded and shown, and proves nothing.

        Raises:
            UnknownRequest: There is no such rollout.
            RequestClosed: It has ended already.
            NotTrusted: This identity may not do that.
            UsageError: There is no reason, or no such person.
        """
        return self._operations.answer(self.get(rollout_id).id, Verdict.DENY, reason, actor)[1]

    def _world_of(self, name: str) -> str | None:
        """Return the world that a thread would resume from; None if it has none."""
        try:
            return self._thread(name).release().world
        except (UnknownThread, UnknownCheckpoint, UnknownRequest):
            return None


def _given_world(given: World | Mapping[str, Any]) -> World:
    return given if isinstance(given, World) else World.from_dict(given)


def _asking_changes(
    pairs: Iterable[_Pair], policy: Policy
) -> tuple[dict[str, World], dict[tuple[str, str], Measure]]:
    """Return the changes of world that need acceptance, with the policy's measure for each.

    Raises:
        UsageError: There are none or too many, they are too large, or one is refused.
        WorldInvalid: A world is invalid.
    """
    worlds: dict[str, World] = {}
    measures: dict[tuple[str, str], Measure] = {}
    for before, after in ((_given_world(one), _given_world(other)) for one, other in pairs):
        reasons = compared_reasons(before.diff(after), policy)
        measure = max((each.measure for each in reasons), default=Measure.ALLOW)
        if not measure.passes:
            worlds |= {before.digest: before, after.digest: after}
            measures[before.digest, after.digest] = measure
    if not measures:
        raise UsageError(
            f"rollout: the policy {policy.name!r} asks for nothing between these worlds",
            hint="Nothing has to be accepted: these runs resume as they are.",
        )
    if len(measures) > ROLLOUT_PAIRS_MAX:
        raise UsageError(
            f"rollout: expected at most {ROLLOUT_PAIRS_MAX} pairs of worlds, found {len(measures)}",
            hint="Propose them in several rollouts.",
        )
    size_bytes = sum(len(world.encode()) for world in worlds.values())
    if size_bytes > _WORLDS_BYTES_MAX:
        raise UsageError(
            f"rollout: expected worlds of {_WORLDS_BYTES_MAX} bytes together at most, found "
            f"{size_bytes}",
            hint="Propose them in several rollouts.",
        )
    if Measure.REFUSE in measures.values():
        raise UsageError(
            f"rollout: the policy {policy.name!r} refuses one of these changes, so nobody "
            "can accept it",
            hint="sealpoint rollout plan shows which; sealpoint policy show says why.",
        )
    return worlds, measures
