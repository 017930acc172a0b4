# SPDX-License-Identifier: Apache-2.0
"""Resuming what waits: the runs of a guarded workflow that were answered, approved, interrupted."""

import asyncio
from collections.abc import Mapping
from typing import Any

from agent_framework import FunctionalWorkflow

from sealpoint.adapters.waiting_runs import OnRun, ResumeCounts, WaitingRun, resume_each_async
from sealpoint.api import Store
from sealpoint.errors import UsageError
from sealpoint_agent_framework._guard import TAKES, guarded_storage
from sealpoint_agent_framework._storage import Known, checkpoint_of

_RESUME = "resume"
"""The tag of responses in what a decision binds."""


async def resume_waiting(
    workflow: Any,
    store: Store,
    *,
    every: float | None = None,
    stop: asyncio.Event | None = None,
    on_run: OnRun | None = None,
) -> ResumeCounts:
    """Resume every run of the workflow that a person has answered or approved, each once.

    It runs the threads that wait for their worker: with the answer that a person has signed, with
    what people have approved, and where a process was interrupted after such an answer. Any number
    of processes may do this at once. A run that needs approval first is asked for, and tried again
    once it is approved. A functional workflow needs all of its earlier responses again, so only its
    first question is answered this way.

    Args:
        workflow: A workflow from `guard`.
        store: The store of its storage.
        every: Look again after this many seconds, until `stop` is set; None: look once, as a job
            does.
        stop: Ends the loop after the run under way.
        on_run: Called after each attempt with the run, its `RunOutcome` and the error, if any.

    Returns:
        The counts of all attempts.

    Raises:
        UsageError: The workflow is not guarded, or has another store.
        SealpointError: The store cannot be read, when it looks once. A loop logs it and continues.
    """
    storage = guarded_storage(workflow)
    if storage is None or storage.store is not store:
        raise UsageError(
            "resume_waiting: expected a workflow from guard(workflow, storage, actor=...) and the "
            "store of its storage"
        )

    async def attempt(run: WaitingRun) -> bool:
        call = await asyncio.to_thread(_call_of, workflow, run)
        if call is None:
            return False
        before = TAKES.set(run.takes)
        try:
            running = workflow.run(**call)
        finally:
            TAKES.reset(before)
        await running
        return True

    return await resume_each_async(store, attempt, every=every, stop=stop, on_run=on_run)


def _call_of(workflow: Any, run: WaitingRun) -> dict[str, Any] | None:
    """The arguments of the call that resumes a run; None: it is not one of this workflow."""
    found = run.thread.adapter.snapshot("", run.checkpoint)
    if found is None or found.ref.metadata.get("workflow_name") != workflow.name:
        return None
    known, checkpoint = Known.of(run.thread.name, found.ref), checkpoint_of(found)
    call = {"checkpoint_id": found.ref.id, "deliberate": run.deliberate}
    if run.answer is None:
        return call if checkpoint.messages else None
    if not isinstance(run.answer, Mapping) or set(run.answer) != {_RESUME}:
        return None
    responses = run.answer[_RESUME]
    if not isinstance(responses, Mapping) or not known.asks.issuperset(responses):
        return None
    if isinstance(workflow, FunctionalWorkflow) and known.answered:
        return None
    return {**call, "responses": dict(responses)}
