# SPDX-License-Identifier: Apache-2.0
"""Everything that real workflows put into their checkpoints is saved and comes back as it was."""

import asyncio
import copy
import warnings
from typing import Any

import pytest
from agent_framework import (
    CheckpointStorage,
    InMemoryCheckpointStorage,
    WorkflowCheckpoint,
    WorkflowInvocationKwargs,
)

from sealpoint.codec import Registry
from sealpoint_agent_framework._declared_types import allow_types_of, types_of_workflow
from sealpoint_agent_framework._framework_types import WORKFLOW_TYPES
from tests.adapters.agent_framework.programs import (
    PROGRAMS,
    Bill,
    Colour,
    Decision,
    Verdict,
    answer_to,
)
from tests.unit.adapters.agent_framework.samples import registry, same_parts

_DECLARED: dict[str, set[type]] = {
    "human_in_the_loop": {Bill, Colour, Decision},
    "sub_workflow": {Bill, Colour, Decision},
    "sub_workflow_propagated": {Bill, Colour, Decision},
    "functional": {Bill, Colour},
    "structured": {Verdict},
}
_OF_APPLICATIONS = {
    *("event-source", "run-state", "error-details", "execution-context"),
    *("chat-response", "chat-update", "agent-update", "session", "invocation-kwargs"),
    *("orchestrations.group-chat-state", "orchestrations.state"),
    *("orchestrations.choice", "orchestrations.magentic-context"),
}
"""Types that are stored by older versions, in other runs than these, or if an application does."""


class EncodingStorage(InMemoryCheckpointStorage):
    """Keeps what comes back from the codec, and notes what did not come back as it was."""

    def __init__(self, allowed: Registry) -> None:
        super().__init__()
        self.allowed = allowed
        self.kept: list[WorkflowCheckpoint] = []
        self.faults: list[str] = []

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Save a checkpoint as bytes, whatever the framework does with our error."""
        before = copy.deepcopy(checkpoint)
        try:
            found = self.allowed.decode(self.allowed.encode(checkpoint))
        except BaseException as exc:
            self.faults.append(f"{exc}")
            raise
        if not same_parts(found, before) or not same_parts(checkpoint, before):
            self.faults.append(f"another checkpoint: {found}\n{before}")
        self.kept.append(found)
        return await super().save(found)


def _registry_of(made: Any) -> Registry:
    allowed = registry()
    allow_types_of(made, allowed, [Decision])
    return allowed


async def _ended(made: Any, result: Any, storage: CheckpointStorage) -> list[Any]:
    """Answer every question until there is none, and say what came out at the end."""
    for _ in range(9):
        outputs = result.get_outputs()
        asked = result.get_request_info_events()
        if not asked:
            return [getattr(each, "text", each) for each in outputs]
        answers = {each.request_id: answer_to(each.data) for each in asked}
        result = await made.run(responses=answers, checkpoint_storage=storage)
    raise AssertionError("questions without end")


async def _run(name: str, storage: CheckpointStorage) -> list[Any]:
    make, message = PROGRAMS[name]
    made = make()
    return await _ended(made, await made.run(message, checkpoint_storage=storage), storage)


@pytest.fixture(autouse=True)
def _experimental() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@pytest.fixture(scope="module")
def stored() -> dict[str, tuple[EncodingStorage, list[Any]]]:
    """What each program stored, and what it ended with."""
    found = {}
    for name, (make, _) in PROGRAMS.items():
        storage = EncodingStorage(_registry_of(make()))
        found[name] = storage, asyncio.run(_run(name, storage))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_checkpoint_comes_back_as_it_was(
    stored: dict[str, tuple[EncodingStorage, list[Any]]], name: str
) -> None:
    """From the first to the last, with all that is in it, and the run ends as without us."""
    storage, outputs = stored[name]

    assert not storage.faults
    assert len(storage.kept) > 1
    assert outputs
    assert outputs == asyncio.run(_run(name, InMemoryCheckpointStorage()))


def test_every_rule_is_for_something_that_is_stored(
    stored: dict[str, tuple[EncodingStorage, list[Any]]],
) -> None:
    """The framework stores each type by itself, or an application easily does."""
    seen = {
        use.type_name
        for storage, _ in stored.values()
        for checkpoint in storage.kept
        for use in storage.allowed.explain(checkpoint).types
    }
    rest = {
        each.name.removeprefix("agent_framework.")
        for each in WORKFLOW_TYPES
        if f"{each.cls.__module__}.{each.cls.__qualname__}" not in seen
    }

    assert rest == _OF_APPLICATIONS


@pytest.mark.parametrize("name", ["sequential", "structured", "tool_approval", "handoff"])
def test_a_streamed_run_is_stored_as_well(name: str) -> None:
    """What agents said in parts comes back as it was."""

    async def streamed(storage: CheckpointStorage) -> list[Any]:
        make, message = PROGRAMS[name]
        made = make()
        stream = made.run(message, stream=True, checkpoint_storage=storage)
        return await _ended(made, await stream.get_final_response(), storage)

    storage = EncodingStorage(_registry_of(PROGRAMS[name][0]()))
    outputs = asyncio.run(streamed(storage))

    assert not storage.faults
    assert outputs == asyncio.run(streamed(InMemoryCheckpointStorage()))


def test_what_a_caller_gave_to_tools_is_stored() -> None:
    """The framework keeps it in the state, for the runs that follow."""

    async def run(storage: CheckpointStorage) -> None:
        given = WorkflowInvocationKwargs(
            global_kwargs={"tenant": "a"}, executor_kwargs={"checker": {"limit": 3}}
        )
        await PROGRAMS["sequential"][0]().run(
            "write", checkpoint_storage=storage, function_invocation_kwargs=given
        )

    storage = EncodingStorage(registry())
    asyncio.run(run(storage))

    assert not storage.faults
    assert "tenant" in repr(storage.kept[-1].state)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_run_goes_on_from_every_checkpoint(name: str) -> None:
    """A new workflow takes up what was decoded, and ends as one that takes up the original."""

    async def resumed(storage: Any) -> list[Any]:
        await _run(name, storage)
        found = []
        for checkpoint_id in list(storage._checkpoints):
            made = PROGRAMS[name][0]()
            result = await made.run(checkpoint_id=checkpoint_id, checkpoint_storage=storage)
            found.append(await _ended(made, result, storage))
        return found

    storage = EncodingStorage(_registry_of(PROGRAMS[name][0]()))
    found = asyncio.run(resumed(storage))

    assert not storage.faults
    assert found == asyncio.run(resumed(InMemoryCheckpointStorage()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_workflow_names_the_applications_types(name: str) -> None:
    """What executors, agents and steps are annotated with, and nothing of the framework."""
    assert set(types_of_workflow(PROGRAMS[name][0]())) == _DECLARED.get(name, set())
