# SPDX-License-Identifier: Apache-2.0
"""What every thread of a modelled store must hold, in plain Python.

A thread is the list of the entries that landed, and what each of them means. Everything else is
read off that list: so a thread that a restore cut short is a shorter list, and nothing more.
Nothing here is computed by the code under test, except what only the store can draw: times, hashes
and ids that nobody gave.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from sealpoint.ledger import Kind
from sealpoint.store import CheckpointRef

__all__ = ["POOL", "POOL_MEMBERS", "Fact", "Meant", "Saved", "ThreadTruth", "View", "state_of"]

POOL = "pods"
POOL_MEMBERS = ("worker", "second")
_SHARED = [f"message {place} that everybody has {'x' * 40}" for place in range(60)]


def state_of(number: int) -> Any:
    """One of a few states: tiny, with a root that is a blob of its own, or a tree of several.

    There are few, so that a state is given up and saved again: its blobs are then gone once.
    """
    match number % 3:
        case 0:
            return {"number": number}
        case 1:
            return {"number": number, "text": f"text {number} " * 300}
        case _:
            own = [f"message {place} of state {number} alone {'y' * 40}" for place in range(40)]
            return {"shared": _SHARED, "own": own, "number": number}


@dataclass(frozen=True)
class Meant:
    """What a call was to write."""

    state: Any = None
    parent: str | None = None
    metadata: dict[str, Any] | None = None
    world: dict[str, Any] | None = None
    gone: frozenset[int] = frozenset()
    """The positions whose states a prune is to give up."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint as its writer knows it."""

    ref: CheckpointRef
    meant: Meant

    def says(self, other: Meant) -> bool:
        """Whether saving this under the same id is a repetition."""
        return self.meant == other


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One entry of a thread, and what it did."""

    kind: Kind
    hash: bytes
    by: str
    """The identity that wrote it."""
    saved: Saved | None = None
    gone: frozenset[int] = frozenset()
    """The positions whose states a prune gave up."""


@dataclass(slots=True)
class View:
    """What a thread holds."""

    checkpoints: list[Saved] = field(default_factory=list)
    """Those of this generation, oldest first; the refs know whether they are pruned."""
    erased_refs: list[CheckpointRef] = field(default_factory=list)
    """Those of generations that were erased."""
    exists: bool = False
    erased: bool = False
    erasures: int = 0
    owner: str = ""
    token: bytes = b""
    """Changes whenever somebody's session or state is not the newest any more."""

    @property
    def listed(self) -> list[CheckpointRef]:
        """The history, newest first."""
        return [saved.ref for saved in reversed(self.checkpoints)]

    def named(self, name: str) -> Saved | None:
        """The checkpoint of an id."""
        return next((each for each in self.checkpoints if each.ref.id == name), None)

    def may_write(self, who: str) -> bool:
        """Whether an identity may go on with the thread, or begin it."""
        if not self.owner:
            return True
        return who in (POOL_MEMBERS if self.owner == POOL else (self.owner,))


class ThreadTruth:
    """What a thread must hold."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.facts: tuple[Fact, ...] = ()
        self.lost_refs: list[CheckpointRef] = []
        """Checkpoints that a restore took away."""
        self._view: tuple[tuple[Fact, ...], View] = ((), View())

    @property
    def view(self) -> View:
        """What it holds now."""
        if self._view[0] is not self.facts:
            self._view = self.facts, _replayed(self.facts)
        return self._view[1]

    def add(self, fact: Fact) -> None:
        """One more entry landed."""
        self.facts = (*self.facts, fact)

    def cut(self, facts: tuple[Fact, ...]) -> None:
        """A restore was accepted, and this is what it kept."""
        before = self.view
        self.facts = facts
        kept = {saved.ref.entry for saved in self.view.checkpoints}
        self.lost_refs += [saved.ref for saved in before.checkpoints if saved.ref.entry not in kept]

    def kept_of(self, facts: tuple[Fact, ...], dead: set[bytes]) -> tuple[Fact, ...]:
        """What accepting an older list leaves: nothing that is dead, nothing that was erased."""
        alive = tuple(_until_dead(facts, dead))
        if alive != self.facts and _replayed(alive).erasures < self.view.erasures:
            return ()
        return alive

    def would_prune(
        self, last: int | None, since: CheckpointRef | None, keep: Iterable[str]
    ) -> list[CheckpointRef]:
        """The checkpoints that a prune gives up, newest first."""
        names = set(keep)
        living = [ref for ref in self.view.listed if not ref.pruned]
        return [
            ref
            for place, ref in enumerate(living)
            if place
            and not (last is not None and place < last)
            and not (since is not None and ref.time >= since.time)
            and ref.id not in names
        ]


def _until_dead(facts: tuple[Fact, ...], dead: set[bytes]) -> Iterator[Fact]:
    for fact in facts:
        if fact.hash in dead:
            return
        yield fact


def _replayed(facts: tuple[Fact, ...]) -> View:
    view = View(exists=bool(facts))
    for fact in facts:
        match fact.kind:
            case Kind.GENESIS:
                view.owner = POOL if fact.by in POOL_MEMBERS else fact.by
                view.erased = False
            case Kind.CHECKPOINT:
                assert fact.saved is not None
                view.checkpoints.append(fact.saved)
            case Kind.PRUNE:
                view.checkpoints = [
                    replace(saved, ref=structs.replace(saved.ref, pruned=True))
                    if saved.ref.seq in fact.gone
                    else saved
                    for saved in view.checkpoints
                ]
            case Kind.ERASE:
                view.erased_refs += [saved.ref for saved in view.checkpoints]
                view.checkpoints, view.erased, view.owner = [], True, ""
                view.erasures += 1
            case _:
                pass
        if fact.kind is not Kind.PRUNE:
            view.token = fact.hash
    return view
