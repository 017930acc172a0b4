# SPDX-License-Identifier: Apache-2.0
"""Rollouts: a change of world that people accept once, for many threads.

A rollout names differences between worlds, each of one leaf from a value and to another, in one
namespace and until a date. It is a request like that of a resume: people approve it by signing its
statement, and one denial ends it, before or after it takes effect. While it is in force, the policy
asks nothing more about these differences, and a resume that needs it carries the proof. It covers
nothing else: no other difference, no answer, no older checkpoint, no pause, no first run after a
restore.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

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
from sealpoint.gate._decision import (
    Difference,
    Reason,
    accepted_leaves,
    asked_leaves,
    compared_reasons,
)
from sealpoint.gate._gate_context import GateContext
from sealpoint.gate._operator_actions import OperatorActions
from sealpoint.gate._policy import Measure, Policies, Policy
from sealpoint.gate._request_list import only_one
from sealpoint.gate._requests import (
    Request,
    ShownDifference,
    Status,
    can_be_approved,
    shown_differences,
    why_closed,
)
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
from sealpoint.limits import (
    BODY_BYTES_MAX,
    ROLLOUT_DAYS_MAX,
    ROLLOUT_DIFFERENCES_MAX,
    STATEMENT_BYTES_MAX,
)
from sealpoint.signing import Action, Attestation, Verdict, difference_order
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
    rollouts: tuple[str, ...]
    """The ids of the rollouts in force that accept differences which the policy asks about."""
    left: Measure
    """The strictest measure of the differences that no rollout accepts yet."""


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
    void: tuple[Request, ...] = ()
    """The open requests to resume in another world than the new one. Once the runs declare the new
    world, nobody can use them, or the approvals that they have."""

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
    rollouts: Callable[[WorldDiff], tuple[Rollout, ...]],
    requests: Iterable[Request],
) -> RolloutPlan:
    """Compare the worlds of all threads of a namespace with a new one.

    Args:
        core: The store.
        world: The new world.
        policy: The policy in force.
        exact: Finds the world that a thread would resume from, by its name, by a full read.
        rollouts: Finds the rollouts in force that accept differences.
        requests: The requests of the namespace.

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
            rollouts=rollouts,
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
        void=tuple(each for each in requests if _would_be_void(each, world)),
    )


def _would_be_void(request: Request, world: World) -> bool:
    """Whether nobody can use a request once the runs declare another world."""
    statement = request.statement
    is_open = request.status in (Status.OPEN, Status.APPROVED)
    declared = statement.world_to is not None and statement.world_to != world.digest
    return statement.action is Action.RESUME and is_open and declared


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
    rollouts: Callable[[WorldDiff], tuple[Rollout, ...]],
) -> PlannedWorld:
    diff = None if before is None else before.diff(world)
    reasons = () if diff is None else compared_reasons(diff, policy)
    measure = max((each.measure for each in reasons), default=Measure.ALLOW)
    used: tuple[Rollout, ...] = ()
    left = measure
    if diff is not None and policy is not None and not measure.passes:
        used = rollouts(diff)
        rest = diff.without(accepted_leaves(diff, policy, [each.facts for each in used]))
        left = max((each.measure for each in compared_reasons(rest, policy)), default=Measure.ALLOW)
    return PlannedWorld(
        digest=digest,
        threads=group.threads,
        examples=tuple(group.examples),
        world=before,
        diff=diff,
        reasons=reasons,
        measure=measure,
        rollouts=tuple(each.facts.id for each in used),
        left=left,
    )


def _readable_world(found: dict[str, Any] | None) -> World | None:
    try:
        return None if found is None else World.from_dict(found)
    except WorldInvalid:
        return None


_VALUES_BYTES_MAX = BODY_BYTES_MAX * 3 // 4
"""The limit on the values of a rollout's differences, which are in the body of one entry."""
_NAMES_BYTES_MAX = STATEMENT_BYTES_MAX * 3 // 4
"""The limit on the differences as a statement names them."""

_Pair = tuple[World | Mapping[str, Any], World | Mapping[str, Any]]


class Rollouts:
    """The rollouts of an open store's namespace: `store.rollouts`."""

    def __init__(
        self,
        core: Core,
        policies: Policies,
        book: RolloutBook,
        thread: Callable[[str], Thread],
        requests: Callable[[], Iterable[Request]],
    ) -> None:
        self._core = core
        self._policies = policies
        self._book = book
        self._thread = thread
        self._requests = requests
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
            rollouts=self._book.find,
            requests=self._requests(),
        )

    def propose(
        self,
        pairs: Iterable[_Pair],
        *,
        reason: str,
        until: datetime | timedelta = timedelta(days=14),
        actor: str | None = None,
    ) -> Request:
        """Ask people to accept the differences between worlds that the policy asks about.

        The rollout then holds for these differences in every thread, whatever else differs in its
        worlds and needs nothing, or is accepted by another rollout.

        If the policy requires no more than a reason, the rollout holds at once. If several callers
        propose the same change at the same time, in any process, only one proposal is made.

        Args:
            pairs: The changes: from, to. `plan` finds the worlds of the existing threads.
            reason: Why; it is signed, and shown with every resume that the rollout allows.
            until: When it ends, or how long it holds.
            actor: The person of the roster for whom it is proposed, as the caller claims. This
                person cannot approve it.

        Raises:
            UsageError: There are no or too many differences, the policy asks about none of them or
                refuses one, the time is invalid, or there is no reason or no such person.
            WorldInvalid: A world is invalid.
            Moved: A rollout with all of these differences waits for approval; or it holds, and this
                one would not end a day later or more.
            NotTrusted: This identity may not ask, because it is neither writer nor operator.
        """
        policy = self._policies.in_force(self._core.trust().roster)
        if policy is None:
            raise UsageError(
                "rollout: no policy is in force, so nobody can approve anything",
                hint="Where the root key is, put one in force: sealpoint policy apply team",
            )
        differences, measure = _asked_differences(pairs, policy)
        return self._operations.ask_rollout(
            differences,
            needed=measure.people,
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

    def accepting(self, request: Request) -> tuple[Request, ...]:
        """Return the rollouts that accept the change of world which an open request waits for.

        Each of them accepts every difference that the policy asks about. It holds, or waits for
        approvals that it can get.

        Args:
            request: An open request to resume in another world.

        Raises:
            UnknownRequest, RequestClosed: The request is no longer open.
            NotTrusted: It names another world of its checkpoint than the thread has.
            UsageError: It is not about a change of world that can be compared; or the policy does
                not ask about one.
        """
        roster = self._core.trust().roster
        policy = self._policies.in_force(roster)
        pair = self._change_of(request)
        if policy is None:
            return ()
        asked = set(shown_differences(_asked_differences([pair], policy)[0]))
        return tuple(
            each
            for each in self.list()
            if each.status in (Status.OPEN, Status.APPROVED)
            and asked.issubset(each.statement.differences)
            and can_be_approved(each, roster)
        )

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
        """Return every rollout, oldest first, in any status.

        If a restore lost entries about rollouts, those proposed before it are left out: they ended.

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


def _asked_differences(
    pairs: Iterable[_Pair], policy: Policy
) -> tuple[tuple[ShownDifference, ...], Measure]:
    """Return the differences between worlds that a policy asks about, and the strictest measure.

    Raises:
        UsageError: There are none or too many, they are too large, or one is refused.
        WorldInvalid: A world is invalid.
    """
    found: dict[Difference, ShownDifference] = {}
    measure = Measure.ALLOW
    for before, after in ((_given_world(one), _given_world(other)) for one, other in pairs):
        diff = before.diff(after)
        asked = asked_leaves(diff, policy)
        measure = max((measure, *asked.values()))
        shown = [
            (change.leaf, one, other)
            for change, one, other in diff.values()
            if change.leaf in asked
        ]
        found |= zip(shown_differences(shown), shown, strict=True)
    if not found:
        raise UsageError(
            f"rollout: the policy {policy.name!r} asks for nothing between these worlds",
            hint="Nothing has to be accepted: these runs resume as they are.",
        )
    if measure == Measure.REFUSE:
        raise UsageError(
            f"rollout: the policy {policy.name!r} refuses one of these changes, so nobody "
            "can accept it",
            hint="sealpoint rollout plan shows which; sealpoint policy show says why.",
        )
    if len(found) > ROLLOUT_DIFFERENCES_MAX:
        raise UsageError(
            f"rollout: expected at most {ROLLOUT_DIFFERENCES_MAX} differences, found {len(found)}",
            hint="Propose them in several rollouts, such as one for each world with --from. If "
            "most are modules, a policy that records changes of code asks about fewer.",
        )
    ordered = sorted(found, key=difference_order)
    for what, sized, bytes_max in (
        ("names", ordered, _NAMES_BYTES_MAX),
        ("values", found.values(), _VALUES_BYTES_MAX),
    ):
        size_bytes = sum(len(msgspec.json.encode(each)) for each in sized)
        if size_bytes > bytes_max:
            raise UsageError(
                f"rollout: expected differences with {what} of at most {bytes_max} bytes together, "
                f"found {size_bytes}",
                hint="Propose them in several rollouts.",
            )
    return tuple(found[each] for each in ordered), measure
