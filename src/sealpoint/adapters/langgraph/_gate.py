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
from typing import Any

from sealpoint.adapters.langgraph._signal import Purpose, purpose_of
from sealpoint.adapters.langgraph._tuples import Address
from sealpoint.api import Store
from sealpoint.errors import ResumeRefused, Superseded
from sealpoint.world import World

__all__ = ["DELIBERATE", "NESTED", "PASS", "RUN", "Runs"]

RUN = "__sealpoint_run"
"""Where the number of a run is kept in a configuration."""
PASS = "__sealpoint_pass"  # noqa: S105 (a name)
"""Where `guard` keeps the pass of a run."""
DELIBERATE = "__sealpoint_deliberate"
"""Where a caller says why an unusual resume is meant."""

NESTED = "__pregel_read"
"""What the framework leaves in the configuration of a graph that a task of another one runs."""

_HINT = (
    "Run the graph through guard(graph, saver, actor=...), which asks for what is needed; where "
    'the policy only wants a reason, pass deliberately(config, "why") to the graph.'
)


class Runs:
    """The runs of a saver, by thread: the newest one of each may go on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._newest: dict[str, int] = {}
        self._passes: dict[str, tuple[str, World]] = {}

    def enter(
        self, address: Address, config: Mapping[str, Any], world: World | None
    ) -> dict[str, Any]:
        """Decide about a load.

        Returns:
            The marks that what is loaded carries; none if it is only shown.

        Raises:
            ResumeRefused: It would be executed, and that is not allowed.
        """
        purpose = purpose_of(config)
        if purpose is Purpose.SHOW:
            return {}
        configurable = config.get("configurable") or {}
        if address.lane and NESTED in configurable and address.thread in self._newest:
            return {RUN: self._newest[address.thread]}  # a subgraph of a run that was let in
        if self._has_pass(address.thread, configurable.get(PASS)):
            return {RUN: self._newest[address.thread]}
        self._admit(address, purpose, configurable.get(DELIBERATE), world)
        return {RUN: self._begin(address.thread)}

    def _admit(
        self, address: Address, purpose: Purpose, deliberate: str | None, world: World | None
    ) -> None:
        thread = self._store.thread(address.thread)
        try:
            thread.admit(
                world=world,
                ref=None if address.lane else address.id,
                answered=purpose is Purpose.EDIT,
                deliberate=deliberate,
            )
        except ResumeRefused as error:
            raise ResumeRefused(error.message, reasons=error.reasons, hint=_HINT) from error

    def grant(self, thread: str, token: str, world: World) -> None:
        """Let the run that carries a pass in, with its world, and no other one of the thread."""
        with self._lock:
            self._passes[thread] = (token, world)
        self._begin(thread)

    def revoke(self, thread: str, token: str) -> None:
        """Make a pass worthless."""
        with self._lock:
            if self._has(thread, token):
                del self._passes[thread]

    def world(self, thread: str, config: Mapping[str, Any]) -> World | None:
        """The world of the guarded run that a configuration belongs to."""
        token = (config.get("configurable") or {}).get(PASS)
        with self._lock:
            return self._passes[thread][1] if self._has(thread, token) else None

    def require_current(self, thread: str, config: Mapping[str, Any]) -> None:
        """Refuse what a run puts that another one of this saver has overtaken.

        Raises:
            Superseded: A later run goes on with the thread.
        """
        configurable = config.get("configurable") or {}
        token, found = configurable.get(PASS), configurable.get(RUN)
        newest = self._newest.get(thread)
        if token is not None and not self._has_pass(thread, token):
            raise Superseded(
                f"thread {thread!r}: expected a run that goes on, found one that ended"
            )
        if found is not None and found != newest:
            raise Superseded(
                f"thread {thread!r}: expected run {newest}, found run {found}, which was overtaken"
            )

    def _begin(self, thread: str) -> int:
        with self._lock:
            number = self._newest[thread] = self._newest.get(thread, 0) + 1
            return number

    def _has_pass(self, thread: str, token: object) -> bool:
        with self._lock:
            return self._has(thread, token)

    def _has(self, thread: str, token: object) -> bool:
        return token is not None and self._passes.get(thread, (None,))[0] == token
