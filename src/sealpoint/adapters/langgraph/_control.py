# SPDX-License-Identifier: Apache-2.0
"""What stops a guarded run when an operator pauses its thread, or another run takes it over.

A graph is stopped before its next step. Inside of a step, a node or an entrypoint may call tasks of
the functional API one after the other: it is stopped before the next of these. What has been done
before a pause is saved by then or on its way, and is not done again when the run goes on.

Refusing to save would come too late for either: the framework saves in the background, and of the
tasks that code calls it tells nobody what could not be saved.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager, Callbacks
from langgraph.errors import GraphDrained
from langgraph.func import entrypoint, task
from langgraph.runtime import RunControl

from sealpoint.errors import Paused
from sealpoint.gate import Thread

__all__ = ["PAUSED", "PauseControl", "RunWatch", "TaskStop", "paused_error", "tasks_are_told"]

PAUSED = "paused by an operator"
"""Why a run was stopped, as the framework tells it on."""


class Pausable(Protocol):
    """A thread, as far as a pause goes."""

    @property
    def paused(self) -> bool:
        """Whether an operator has stopped it; an error if a run has lost it."""


class RunWatch:
    """The thread of a guarded run, for as long as the run goes on with it."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.token: str | None = None
        """The pass of the run; None: it has not been let in yet."""

    @property
    def paused(self) -> bool:
        """Whether an operator has stopped the thread.

        Raises:
            Superseded: Another run goes on with it by now.
        """
        if self.token is None:
            return self.thread.paused
        return not self.thread.may_go_on(self.token)


class PauseControl(RunControl):
    """Asks before every step whether the run may go on."""

    __slots__ = ("_also", "_at_exit", "_thread")

    def __init__(self, thread: Pausable, also: RunControl | None, *, at_exit: bool) -> None:
        super().__init__()
        self._thread = thread
        self._also = also
        self._at_exit = at_exit
        """Whether all is saved when the run ends, and not before."""

    @property
    def drain_requested(self) -> bool:
        if self._also is not None and self._also.drain_requested:
            self.request_drain(self._also.drain_reason or "shutdown")
        elif self._thread.paused:
            if self._at_exit:
                # A subgraph that ends orderly saves nothing then; one that is broken off does.
                raise GraphDrained(PAUSED)
            self.request_drain(PAUSED)
        return super().drain_requested


class TaskStop(BaseCallbackHandler):
    """Asks before every task that code of a run calls whether the run may go on.

    The framework asks nobody there, but it tells who listens, and lets a listener raise. A task is
    known by its namespace: what else begins in that is a part of it, and is not stopped. A graph
    that a node runs on another thread is not stopped either; that thread has pauses of its own.

    Args:
        thread: The thread of the run.
        every: Stop whatever begins, because tasks cannot be told from the rest.
    """

    raise_error = True
    run_inline = True
    ignore_llm = ignore_retry = ignore_agent = ignore_retriever = True
    ignore_chat_model = ignore_custom_event = True

    def __init__(self, thread: Pausable, *, every: bool) -> None:
        super().__init__()
        self._thread = thread
        self._every = every
        self._root: UUID | None = None
        self._nodes: set[str] = set()
        """The namespaces of the nodes of the run itself."""
        self._begun: set[str] = set()

    def among(self, others: Callbacks) -> Callbacks:
        """The callbacks of a call, and this one."""
        if isinstance(others, BaseCallbackManager):
            found = others.copy()
            found.add_handler(self, inherit=True)
            return found
        return [self, *(others or ())]

    def on_chain_start(
        self,
        serialized: Mapping[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Stop a task that is about to begin."""
        del serialized, inputs
        if self._root is None:
            self._root = run_id  # the run itself
            return
        found = metadata or {}
        place = str(found.get("langgraph_checkpoint_ns"))
        if not self._every and not _is_called(found.get("langgraph_path")):
            if parent_run_id == self._root:
                self._nodes.add(place)
            return
        own = self._every or place.partition("|")[0] in self._nodes
        if own and place not in self._begun:
            if self._thread.paused:
                raise GraphDrained(PAUSED)
            self._begun.add(place)


def _is_called(path: object) -> bool:
    """Whether the path of a task is that of one which code calls."""
    return isinstance(path, tuple) and (path[0], path[-1]) == ("__pregel_push", True)


class _Asked:
    """A thread that is not paused, and takes note of who asks."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    @property
    def paused(self) -> bool:
        self._log.append("asked")
        return False


@cache
def tasks_are_told() -> bool:
    """Whether this release of the framework tells listeners of tasks, tried out on a tiny one."""
    log: list[str] = []

    @task
    def step() -> None:
        log.append("ran")

    @entrypoint()
    def program(_: int) -> None:
        log.append("began")
        step().result()

    program.invoke(0, {"callbacks": [TaskStop(_Asked(log), every=False)]})
    return log == ["began", "asked", "ran"]


def paused_error(thread: Thread) -> Paused:
    """What a call that a pause stopped ends with."""
    return Paused(
        f"thread {thread.name!r}: expected it to run, found it paused; what had been done is kept"
    )
