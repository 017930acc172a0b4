# SPDX-License-Identifier: Apache-2.0
"""What a change of world would mean for the threads of a namespace, before anybody accepts it.

The newest checkpoint of a thread is found from the entry that the anchor vouches for, by the links
below it; a thread of which something was given up is asked itself. Nothing is decoded and nothing
is released: the gate verifies all of it again when a run goes on. Memory follows the number of
different worlds; of a thread no more than its id is kept, to find those the anchor does not know.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sealpoint.anchor import Position
from sealpoint.errors import Edited, Missing, SealpointError, WorldInvalid
from sealpoint.gate._policy import Measure, Policy
from sealpoint.gate._rollout_book import Rollout
from sealpoint.gate._rules import Reason, compared_reasons
from sealpoint.ledger import (
    KINDS,
    STORE_CHAIN,
    CheckpointBody,
    Kind,
    link_hash,
    parse_body,
    parse_header,
)
from sealpoint.store import (
    Core,
    claimed_name,
    is_reserved,
    read_world,
    thread_slot,
    unknown_threads,
)
from sealpoint.world import World, WorldDiff

__all__ = ["PlannedWorld", "RolloutPlan", "make_plan"]

_EXAMPLES_MAX = 3
_FAILURES_MAX = 100
_GIVES_UP = (Kind.PRUNE, Kind.HIDE, Kind.ERASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWorld:
    """A world that open threads were saved in, and what it would take to go on in the new one."""

    digest: str
    threads: int
    """How many threads were last saved in it."""
    examples: tuple[str, ...]
    """The names of some of them."""
    world: World | None
    """None if it cannot be read: its threads need a decision each."""
    diff: WorldDiff | None
    reasons: tuple[Reason, ...]
    """What the policy in force asks for because of the differences."""
    measure: Measure
    """The strictest of that."""
    rollout: str | None
    """The id of a rollout in force that lets it pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """The worlds of a namespace's threads, held against a new one."""

    world: World
    worlds: tuple[PlannedWorld, ...]
    """Those that differ from it, the most frequent first."""
    same: int
    """How many threads were last saved in the new world itself."""
    undeclared: int
    """How many threads were saved without a world."""
    empty: int
    """How many threads hold no checkpoint."""
    failures: tuple[tuple[str, str], ...]
    """Some of the threads that could not be read, or that the anchor does not know: id, message."""
    failed: int
    """How many these are in all."""

    @property
    def threads(self) -> int:
        """How many threads there are in all."""
        found = sum(each.threads for each in self.worlds)
        return found + self.same + self.undeclared + self.empty + self.failed


@dataclass(slots=True)
class _Group:
    """Threads of one world, while they are counted."""

    thread: bytes
    """One of them."""
    threads: int = 0
    examples: list[str] = field(default_factory=list)


def make_plan(
    core: Core,
    world: World,
    *,
    policy: Policy | None,
    exact: Callable[[str], str | None],
    rollout: Callable[[str], Rollout | None],
) -> RolloutPlan:
    """Hold the worlds of all threads of a namespace against a new one.

    Args:
        core: The store.
        world: The new world.
        policy: The policy in force.
        exact: Finds the world that a thread would go on from, by its name, the long way.
        rollout: Finds the rollout in force from a world to the new one.

    Raises:
        StorageUnavailable, AnchorUnavailable: Nobody can look.
        Tampered, NotTrusted, RolledBack, Forked: The store chain cannot be believed.
    """
    core.renewed_trust()
    groups: dict[str | None, _Group] = {}
    failures: list[tuple[str, str]] = []
    failed = empty = 0
    for slot, anchored in _threads(core):
        try:
            found = _newest_world(core, slot, anchored, exact)
            group = _group(groups, found, anchored)
            if group is not None and len(group.examples) < _EXAMPLES_MAX:
                group.examples.append(_name(core, slot, anchored))
        except SealpointError as error:
            failed += 1
            failures += [(anchored.thread.hex(), error.message)][: _FAILURES_MAX - len(failures)]
            continue
        if found is None:
            empty += 1
        if group is not None:
            group.threads += 1
    for each in unknown_threads(core):
        failed += 1
        words = f"thread {each.name!r}: expected the anchor to know it"
        failures += [(each.thread, words)][: _FAILURES_MAX - len(failures)]
    undeclared, same = groups.pop(None, None), groups.pop(world.digest, None)
    planned = [
        _planned(
            digest,
            group,
            world,
            before=_world(read_world(core, group.thread, digest)),
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
        failures=tuple(failures),
        failed=failed,
    )


def _group(
    groups: "dict[str | None, _Group]", found: tuple[str | None] | None, anchored: Position
) -> "_Group | None":
    """The threads of the same world; None for one that holds nothing, or is not counted here."""
    if found is None or found is _ELSEWHERE:
        return None
    return groups.setdefault(found[0], _Group(anchored.thread))


def _threads(core: Core) -> Iterator[tuple[bytes, Position]]:
    for slot, anchored in core.anchor.slots():
        if not (anchored.thread == STORE_CHAIN or anchored.reserved or anchored.erased):
            yield slot, anchored


def _name(core: Core, slot: bytes, anchored: Position) -> str:
    """The name of a thread, which its slot proves.

    Raises:
        Edited: The store has another name for it.
    """
    namespace, name = claimed_name(core, anchored.thread)
    if thread_slot(core.parts.secret, namespace, name) != slot:
        raise Edited(f"thread {anchored.thread.hex()[:12]}: expected its name, found another")
    return name


_ELSEWHERE: tuple[None] = (None,)
"""A thread of another namespace, or one that is none of the application's."""


def _newest_world(
    core: Core, slot: bytes, anchored: Position, exact: Callable[[str], str | None]
) -> tuple[str | None] | None:
    """The world of a thread's newest checkpoint; None if it has no checkpoint."""
    anchored = core.restored(anchored)
    expected = anchored.entry
    records = core.storage.scan(anchored.thread, 0, anchored.seq, descending=True)
    for seq, record in records:
        if link_hash(record.header) != expected:
            raise Edited(f"entry {seq}: expected the one that the anchor vouches for")
        header = parse_header(record.header)
        if header.ns != core.namespace:
            return _ELSEWHERE
        if header.kind in _GIVES_UP:
            return (exact(_name(core, slot, anchored)),)
        if KINDS[header.kind].is_checkpoint:
            if record.body is None:
                raise Missing(f"entry {seq}: expected its body, found none")
            body: CheckpointBody = parse_body(header.kind, header.body, record.body)
            if not body.lane:
                return (body.world,)
        if header.prev is None:
            return _ELSEWHERE if is_reserved(_name(core, slot, anchored)) else None
        expected = bytes.fromhex(header.prev)
    raise Edited(f"thread {anchored.thread.hex()[:12]}: expected its first entry, found none")


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


def _world(found: dict[str, Any] | None) -> World | None:
    try:
        return None if found is None else World.from_dict(found)
    except WorldInvalid:
        return None
