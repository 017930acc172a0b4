# SPDX-License-Identifier: Apache-2.0
"""Resuming what waits: the runs of a guarded graph that were answered, approved or interrupted."""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command

from sealpoint.adapters.waiting_runs import OnRun, ResumeCounts, WaitingRun, resume_each
from sealpoint.api import Store
from sealpoint.errors import UsageError
from sealpoint_langgraph._configuration import DELIBERATE, TAKES
from sealpoint_langgraph._guard import guarded_store

_ID = re.compile("[0-9a-f]{32}")
"""The form of the id of a question."""
_RESUME = "resume"
"""The tag of an answer in what a decision binds."""


def resume_waiting(
    graph: Any,
    store: Store,
    *,
    every: float | None = None,
    stop: threading.Event | None = None,
    config: RunnableConfig | None = None,
    invoke: Callable[[Any, RunnableConfig], object] | None = None,
    on_run: OnRun | None = None,
) -> ResumeCounts:
    """Resume every run of the graph that a person has answered or approved, each once.

    It runs the threads that wait for their worker: with the answer that a person has signed, with
    what people have approved, and where a process was interrupted after such an answer. Any number
    of processes may do this at once. A run that needs approval first is asked for, and tried again
    once it is approved.

    Args:
        graph: A graph from `guard`.
        store: The store of its saver.
        every: Look again after this many seconds, until `stop` is set; None: look once, as a job
            does.
        stop: Ends the loop after the run under way.
        config: The configuration of each run, such as callbacks; the thread is added.
        invoke: Runs the graph with an input and a configuration; by default `graph.invoke`.
        on_run: Called after each attempt with the run, its `RunOutcome` and the error, if any.

    Returns:
        The counts of all attempts.

    Raises:
        UsageError: The graph is not guarded, or has another store.
        SealpointError: The store cannot be read, when it looks once. A loop logs it and continues.
    """
    if guarded_store(graph) is not store:
        raise UsageError(
            "resume_waiting: expected a graph from guard(graph, saver, actor=...) and the store of "
            "its saver"
        )
    run_graph = invoke or graph.invoke

    def attempt(run: WaitingRun) -> bool:
        found = _input_of(run.answer)
        named = {"thread_id": run.thread.name}
        if run.checkpoint is not None:
            named["checkpoint_id"] = run.checkpoint
        own = merge_configs(config, {"configurable": named})
        if found is None or not _is_waiting(graph, own, run.answer):
            return False
        extra = {TAKES: run.takes, **({DELIBERATE: run.deliberate} if run.deliberate else {})}
        run_graph(found[0], merge_configs(own, cast("Any", {"configurable": extra})))
        return True

    return resume_each(store, attempt, every=every, stop=stop, on_run=on_run)


def _input_of(answer: Any) -> tuple[Any] | None:
    """The input that an answer stands for, in a tuple; None: only the application can repeat it."""
    if answer is None:
        return (None,)
    if not isinstance(answer, Mapping) or set(answer) != {_RESUME} or _holds_object(answer):
        return None
    return (Command(resume=answer[_RESUME]),)


def _holds_object(value: Any) -> bool:
    """Whether a value shows an object, or a key that is spelled like one."""
    if isinstance(value, dict):
        return any(key.endswith("$object") for key in value) or any(
            map(_holds_object, value.values())
        )
    return isinstance(value, list) and any(map(_holds_object, value))


def _is_waiting(graph: Any, config: RunnableConfig, answer: Any) -> bool:
    """Whether the thread waits for this, by the graph: threads of other graphs do not."""
    state = graph.get_state(config, subgraphs=True)
    if not state.next:
        return False
    given = answer[_RESUME] if answer else None
    asked = {each.id for each in state.interrupts}
    if answer is None:
        return not asked
    named = set(filter(_ID.fullmatch, given)) if isinstance(given, Mapping) else set()
    return bool(asked) and (not named or not asked.isdisjoint(named))
