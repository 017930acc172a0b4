# SPDX-License-Identifier: Apache-2.0
"""Puts another saver where tests of the framework ask for the in-memory one.

Nothing of the tests is edited. Taken over are, in this process: what `InMemorySaver()` returns, and
the class that the checkpointer fixtures make; a compiled graph, an entrypoint or a `Pregel` that
has a saver of ours, whose types are allowed and which is guarded if that is asked for; and the
calls that run or edit such a graph, which then carry a reason. Left alone are subclasses that
tests make of the in-memory saver, and one that is given a serializer: these are about that saver.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from benchmarks.langgraph_suite._stores import Stores
from sealpoint.errors import RuleInvalid
from sealpoint_langgraph import SealedSaver, deliberately, guard

__all__ = ["Swap"]

_FIXTURE = "MemorySaverAssertImmutable"
_TESTS = "tests."
_COPYING = "copyreg"
"""The module that makes the copy of an object, which has no arguments then."""
_REASON = "a test of the framework"
_ACTOR = "suite"
_CALLS = {"stream": 1, "astream": 1, "bulk_update_state": 0, "abulk_update_state": 0}
"""The calls that run or edit a graph, and the place of the configuration among the arguments."""


class Swap:
    """What is taken over, once in a process.

    Args:
        stores: Where savers come from.
        sealed: Whether they are ours, or the peer's.
        fixtures_only: Whether savers that a test makes itself stay as they are.
        guarded: Whether graphs are guarded.
        reason: Whether calls carry a reason.
    """

    def __init__(
        self, stores: Stores, *, sealed: bool, fixtures_only: bool, guarded: bool, reason: bool
    ) -> None:
        self._stores = stores
        self._make: Callable[[], Any] = stores.sealed if sealed else stores.peer
        self._fixtures_only = fixtures_only
        self._guarded = guarded
        self._reason = reason
        self._guarded_classes: set[type] = set()
        self.guards = 0
        """How many graphs were guarded."""

    def install(self) -> None:
        """Take everything over."""
        found: Any = InMemorySaver  # a class of the framework's, which gains a constructor
        found.__new__ = staticmethod(self._new_saver)
        graphs: Any = (StateGraph, "compile"), (entrypoint, "__call__")
        for owner, name in graphs:
            setattr(owner, name, self._taking(getattr(owner, name)))
        pregel: Any = Pregel
        pregel.__new__ = staticmethod(self._new_pregel)
        if self._reason:
            self._give_reasons(Pregel)

    def _new_saver(self, cls: type, *positional: Any, **named: Any) -> Any:
        # What is no instance of the class is not initialised either.
        fixture = cls.__name__ == _FIXTURE
        own = cls is InMemorySaver and not positional and not named and not self._fixtures_only
        own = own and _caller() != _COPYING
        return self._make() if fixture or own else object.__new__(cls)

    def _taking(self, compile_graph: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compile_graph)
        def taking(*positional: Any, **named: Any) -> Any:
            return self._taken(compile_graph(*positional, **named))

        return taking

    def _new_pregel(self, cls: type, *positional: Any, **named: Any) -> Any:
        plain: Any = object.__new__(cls)
        # The framework makes some itself, of a graph or an entrypoint that was taken over already.
        by_test = _caller().startswith(_TESTS)
        ours = isinstance(named.get("checkpointer"), SealedSaver)
        if cls is not Pregel or not (by_test and ours):
            return plain
        # The graph that is returned is initialised once more, with the same.
        plain.__init__(*positional, **named)
        return self._taken(plain)

    def _taken(self, graph: Any) -> Any:
        """A graph as the tests get it."""
        saver = graph.checkpointer
        if not isinstance(saver, SealedSaver) or type(graph) in self._guarded_classes:
            return graph
        # A second class of one name is allowed when a value of it is saved.
        with suppress(RuleInvalid):
            SealedSaver.for_graph(graph, saver.store)
        if not self._guarded:
            return graph
        guarded = guard(graph, saver, actor=_ACTOR)
        self.guards += 1
        if type(guarded) not in self._guarded_classes:
            self._guarded_classes.add(type(guarded))
            if self._reason:
                self._give_reasons(type(guarded))
        return guarded

    def _give_reasons(self, owner: type) -> None:
        """Make the calls of a class of graphs carry a reason."""
        for name, place in _CALLS.items():
            setattr(owner, name, _with_reason(getattr(owner, name), place))


def _caller() -> str:
    """The module that makes the object whose constructor asks."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame is not None else None
    return str(frame.f_globals.get("__name__")) if frame is not None else ""


def _with_reason(call: Callable[..., Any], place: int) -> Callable[..., Any]:
    @functools.wraps(call)
    def with_reason(graph: Any, *positional: Any, **named: Any) -> Any:
        arguments = list(positional)
        config: Any = arguments[place] if len(arguments) > place else named.get("config")
        if isinstance(graph.checkpointer, SealedSaver) and _names_thread(graph.config, config):
            meant = deliberately(config if config is not None else {}, _REASON)
            if len(arguments) > place:
                arguments[place] = meant
            else:
                named["config"] = meant
        return call(graph, *arguments, **named)

    return with_reason


def _names_thread(*configs: Any) -> bool:
    """Whether a call says which thread it is about; one that does not is to fail as it would."""
    return any("thread_id" in ((config or {}).get("configurable") or {}) for config in configs)
