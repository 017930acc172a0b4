# SPDX-License-Identifier: Apache-2.0
"""The gate before every load that is going to be executed.

Nothing that a saver refuses while a graph runs can stop the graph: results are put in the
background, and by then the nodes have run. What stops it is refusing the load. So a load that
begins a run is decided about here: by a pass that `guard` made after the gate's decision was
recorded, or else by the policy alone, which is recorded with the first entry that the run writes.

A mark in the configuration tells to which run a later `put` belongs, so that a run that was
overtaken in its own process does not go on either.
"""

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from sealpoint.adapters.langgraph._aim import Aim, is_nested
from sealpoint.adapters.langgraph._signal import Purpose, purpose_of
from sealpoint.adapters.langgraph._tuples import Address
from sealpoint.api import Store
from sealpoint.errors import ResumeRefused, Superseded
from sealpoint.gate import Thread
from sealpoint.store import Snapshot
from sealpoint.world import World

__all__ = [
    "DELIBERATE",
    "RUN",
    "TICKET",
    "Runs",
    "in_words_of_graphs",
    "marks_of",
    "require_reason",
]

# What the framework streams shows the configuration without the names that begin like its own.
RUN = "__pregel_sealpoint_run"
"""Where thread and number of a run are kept in a configuration."""
TICKET = "__pregel_sealpoint_ticket"
"""Where `guard` keeps the pass of a run."""
DELIBERATE = "__pregel_sealpoint_deliberate"
"""Where a caller says why an unusual resume is meant."""

_SAID, _MEANT = 'pass deliberate="why"', 'pass deliberately(config, "why")'
_HINT = (
    "Run the graph through guard(graph, saver, actor=...), which asks for what is needed; where "
    'the policy only wants a reason, pass deliberately(config, "why") to the graph.'
)


class _Run(NamedTuple):
    """One run, as its mark tells it."""

    thread: str
    number: int


class _Pass(NamedTuple):
    """What `guard` lets a run do."""

    token: str
    world: World
    root: str | None
    """The checkpoint that was judged; None: the newest."""
    session: int | None
    """The session that the decision began; None: there was nothing to decide about yet."""


class Runs:
    """The runs on a store of this process, by thread: the newest one of each may go on.

    All savers of a store share them, as they share the handles of its threads.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._newest: dict[str, int] = {}
        self._passes: dict[str, _Pass] = {}
        self._held: set[str] = set()
        """The passes of runs whose work a pause held back."""
        self._comparing: set[_Run] = set()
        """Runs that have loaded what they name, and look next whether it is the newest."""

    @classmethod
    def of(cls, store: Store) -> "Runs":
        """The runs of a store."""
        with _ALL_LOCK:
            found = _ALL.get(id(store))
            if found is None:
                found = _ALL[id(store)] = cls(store)
            return found

    def enter(
        self, address: Address, config: Mapping[str, Any], world: World | None
    ) -> tuple[Snapshot | None, dict[str, Any]]:
        """Decide about a load, and read.

        Returns:
            What is loaded, and the marks that it carries; none if it is only shown.

        Raises:
            ResumeRefused: It would be executed, and that is not allowed.
        """
        purpose = purpose_of(config)
        thread = self._store.thread(address.thread)
        if purpose is Purpose.SHOW:
            return thread.snapshot(address.lane or "", address.id), {}
        configurable = config.get("configurable") or {}
        if address.lane and is_nested(config) and address.thread in self._newest:
            # A subgraph of a run that was let in; it may have been overtaken since.
            self.require_current(address.thread, config)
            inherited = self._inherited(address.thread, configurable.get(RUN))
            return self._read(address, configurable), {RUN: inherited}
        if self._is_comparison(address, configurable.get(RUN)):
            return self._read(address, configurable), {RUN: configurable[RUN]}
        if self._has_pass(address.thread, configurable.get(TICKET)):
            self._require_judged(address)
            run = _Run(address.thread, self._newest[address.thread])
            snapshot = self._read(address, configurable)
        else:
            if configurable.get(TICKET) is not None:
                # Refused here: what is put is refused too, but that is after the nodes.
                raise ResumeRefused(
                    f"thread {address.thread!r}: expected the pass of a run that goes on, found "
                    "that of another or of one that ended",
                    hint=_HINT,
                )
            aim = Aim.of(config)._replace(root=None if address.lane else address.id)
            snapshot = self._admit(address, aim, purpose, configurable.get(DELIBERATE), world)
            run = self._begin(address.thread)
        if address.id is not None and not address.lane:
            self._comparing.add(run)
        return snapshot, {RUN: run}

    def _read(self, address: Address, configurable: Mapping[str, Any]) -> Snapshot | None:
        """Read for a run, which must still be the one that goes on with the thread."""
        with self._lock:
            found = self._passes.get(address.thread)
            mine = found is not None and found.token == configurable.get(TICKET)
            session = found.session if found is not None and mine else None
        return self._store.thread(address.thread).snapshot(
            address.lane or "", address.id, running=True, session=session
        )

    def _is_comparison(self, address: Address, run: object) -> bool:
        """Whether a run that names a checkpoint asks, once, for the newest to compare it with."""
        # A mark that came over a network is no mark, and may not even have a hash.
        if not isinstance(run, _Run) or address.lane or address.id is not None:
            return False
        with self._lock:
            if run not in self._comparing:
                return False
            self._comparing.discard(run)
            return self._newest.get(address.thread) == run.number

    def _inherited(self, thread: str, run: object) -> _Run:
        if isinstance(run, _Run) and run.thread == thread:
            return run
        return _Run(thread, self._newest[thread])

    def _require_judged(self, address: Address) -> None:
        """Refuse another checkpoint than the one that the gate decided about."""
        judged = self._passes[address.thread].root
        if address.lane or address.id == judged:
            return
        # An edit in several steps goes on from what it has just saved.
        newest = self._store.thread(address.thread).snapshot("")
        if newest is None or address.id != newest.ref.id:
            raise ResumeRefused(
                f"thread {address.thread!r}: expected the checkpoint that the gate decided about, "
                f"{judged or 'the newest'}, found {address.id or 'the newest'}"
            )

    def _admit(
        self,
        address: Address,
        aim: Aim,
        purpose: Purpose,
        deliberate: str | None,
        world: World | None,
    ) -> Snapshot | None:
        thread = self._store.thread(address.thread)
        try:
            older = aim.older(thread)
            require_reason(thread, older, deliberate)
            return thread.admit(
                world=world,
                ref=aim.root,
                answered=purpose is Purpose.EDIT or bool(older),
                deliberate=deliberate,
                lane=address.lane or "",
                id=address.id,
            )
        except ResumeRefused as error:
            raise in_words_of_graphs(error, _HINT) from error

    def grant(
        self, thread: str, token: str, world: World, root: str | None, session: int | None
    ) -> None:
        """Let the run that carries a pass in, with its world, and no other one of the thread."""
        with self._lock:
            self._passes[thread] = _Pass(token, world, root, session)
        self._begin(thread)

    def hold(self, thread: str, config: Mapping[str, Any]) -> bool:
        """Remember that a pause holds the work of a guarded run back; False if it is none."""
        token = (config.get("configurable") or {}).get(TICKET)
        with self._lock:
            held = self._has(thread, token)
            if held:
                self._held.add(str(token))
            return held

    def was_held(self, token: str) -> bool:
        """Whether a pause held work of a run back."""
        with self._lock:
            return token in self._held

    def revoke(self, thread: str, token: str) -> None:
        """Make a pass worthless."""
        with self._lock:
            self._held.discard(token)
            if self._has(thread, token):
                del self._passes[thread]

    def world(self, thread: str, config: Mapping[str, Any]) -> World | None:
        """The world of the guarded run that a configuration belongs to."""
        token = (config.get("configurable") or {}).get(TICKET)
        with self._lock:
            return self._passes[thread].world if self._has(thread, token) else None

    def require_current(self, thread: str, config: Mapping[str, Any]) -> None:
        """Refuse what a run puts that another one of this saver has overtaken.

        Raises:
            Superseded: A later run goes on with the thread.
        """
        configurable = config.get("configurable") or {}
        token, found = configurable.get(TICKET), configurable.get(RUN)
        newest = self._newest.get(thread)
        if token is not None and not self._has_pass(thread, token):
            raise Superseded(
                f"thread {thread!r}: expected a run that goes on, found one that ended"
            )
        if isinstance(found, _Run) and found.thread == thread and found.number != newest:
            raise Superseded(
                f"thread {thread!r}: expected run {newest}, found run {found.number}, which was "
                "overtaken"
            )

    def _begin(self, thread: str) -> _Run:
        with self._lock:
            number = self._newest[thread] = self._newest.get(thread, 0) + 1
            self._comparing.discard(_Run(thread, number - 1))
            return _Run(thread, number)

    def _has_pass(self, thread: str, token: object) -> bool:
        with self._lock:
            return self._has(thread, token)

    def _has(self, thread: str, token: object) -> bool:
        found = self._passes.get(thread)
        return found is not None and found.token == token


_ALL: WeakValueDictionary[int, Runs] = WeakValueDictionary()
_ALL_LOCK = threading.Lock()


def marks_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What an edit in several steps goes on with; it is not shown to the caller."""
    found = config.get("configurable") or {}
    return {TICKET: found[TICKET]} if TICKET in found else {}


def in_words_of_graphs(error: ResumeRefused, hint: str) -> ResumeRefused:
    """The same refusal, with what a caller of a graph can do about it.

    Args:
        error: What the gate says, which speaks of its own arguments.
        hint: What to say unless the gate knows better.
    """
    usual = error.hint == ResumeRefused.hint
    return ResumeRefused(
        error.message.replace(_SAID, _MEANT),
        reasons=tuple(reason.replace(_SAID, _MEANT) for reason in error.reasons),
        hint=hint if usual else error.hint,
    )


def require_reason(thread: Thread, older: Mapping[str, str], deliberate: str | None) -> None:
    """Refuse to go on from older checkpoints of subgraphs, unless somebody says why.

    A policy speaks of the checkpoints of the graph itself; those of its subgraphs come with them.

    Raises:
        ResumeRefused: There is no reason.
    """
    if older and not (isinstance(deliberate, str) and deliberate.strip()):
        lane, name = next(iter(older.items()))
        reason = f"checkpoint {name!r} is not the newest of namespace {lane!r}"
        raise ResumeRefused(
            f"thread {thread.name!r}: expected a resume that is allowed, found: {reason}",
            reasons=(reason,),
            hint=_HINT,
        )
