# SPDX-License-Identifier: Apache-2.0
"""What agents of a guarded workflow read beside the store: histories, memories, remote agents.

The attacker can write the files of a history, and has no key.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    AgentModeProvider,
    BaseAgent,
    BaseChatClient,
    ChatResponse,
    ContextProvider,
    FileAccessProvider,
    FileHistoryProvider,
    FileSystemAgentFileStore,
    HistoryProvider,
    InMemoryAgentFileStore,
    InMemoryHistoryProvider,
    Message,
    TodoFileStore,
    TodoProvider,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
)

from sealpoint import Store
from sealpoint.errors import UsageError
from sealpoint_agent_framework import SealedCheckpointStorage, guard, world_of
from tests.adapters.agent_framework.stores import opened

pytestmark = pytest.mark.filterwarnings("ignore:.*is experimental")

_TOLD: list[str] = []


class Chat(BaseChatClient):
    """A model that notes what it is told."""

    def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        async def answer() -> ChatResponse:
            _TOLD.extend(each.text for each in messages)
            return ChatResponse(messages=[Message("assistant", ["done"])])

        return answer()


class OwnMemory(ContextProvider):
    """What an application reads by code of its own."""


class OwnHistory(HistoryProvider):
    """A history that an application keeps somewhere."""

    async def get_messages(self, session_id: str | None, **named: Any) -> list[Message]:
        """Nothing."""
        del session_id, named
        return []

    async def save_messages(self, session_id: str | None, messages: Any, **named: Any) -> None:
        """Nowhere."""
        del session_id, messages, named


def _of_package(package: str, *bases: type, **fields: Any) -> Any:
    """A class as another package of the framework defines one."""
    return type("Shipped", bases, {**fields, "__module__": f"{package}._made"})


def _workflow(*providers: Any, agent: Any = None) -> Workflow:
    made = agent or Agent(Chat(), "Be brief.", name="clerk", context_providers=list(providers))
    start = AgentExecutor(made, id="desk")
    return WorkflowBuilder(start_executor=start, name="letters").build()


async def _run(workflow: Any, message: str) -> None:
    await workflow.run(message)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store of one person."""
    _TOLD.clear()
    with opened("sqlite", tmp_path / "home") as made:
        yield made


def test_a_history_that_others_can_write_is_refused(tmp_path: Path, store: Store) -> None:
    """Else one edited line would be told to a model; the control shows that it is."""
    place = tmp_path / "histories"
    storage = SealedCheckpointStorage(store)
    with pytest.raises(UsageError, match="has a memory that is not sealed") as refused:
        guard(_workflow(FileHistoryProvider(place)), storage, actor="dev")
    assert "accept_unsealed=['memory']" in str(refused.value.hint)

    workflow = guard(
        _workflow(FileHistoryProvider(place)), storage, actor="dev", accept_unsealed=["memory"]
    )
    asyncio.run(_run(workflow, "pay 5"))
    (written,) = [each for each in place.rglob("*") if each.is_file()]
    written.write_text(written.read_text().replace("pay 5", "pay 500"))
    asyncio.run(_run(workflow, "go on"))
    assert "pay 500" in _TOLD
    told = [each.summary for each in store.audit(kind="resume")]
    assert any("the run reads what is not sealed: memory" in each for each in told)


def _here() -> list[Any]:
    return [
        InMemoryHistoryProvider(),
        OwnMemory("own"),
        AgentModeProvider(),
        TodoProvider(),
        FileAccessProvider(InMemoryAgentFileStore()),
        OwnHistory("audit", load_messages=False),
    ]


@pytest.mark.parametrize("number", range(6))
def test_what_lies_in_the_session_or_the_process_is_accepted(number: int, store: Store) -> None:
    """It is in the checkpoint, is gone with the process, or is never read."""
    workflow = _workflow(_here()[number])
    guard(workflow, SealedCheckpointStorage(store), actor="dev")

    assert "unsealed" not in world_of(workflow).topology


def _elsewhere(tmp_path: Path) -> list[Any]:
    shipped = _of_package("agent_framework_mem0", ContextProvider)
    derived = type("Derived", (shipped,), {})
    return [
        FileAccessProvider(FileSystemAgentFileStore(tmp_path)),
        TodoProvider(store=TodoFileStore(tmp_path)),
        OwnHistory("own"),
        shipped("mem0"),
        derived("mem0"),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_memory_elsewhere_is_refused(number: int, tmp_path: Path, store: Store) -> None:
    """Files, a history of the application, a memory that the framework ships, one derived of it."""
    provider = _elsewhere(tmp_path)[number]
    with pytest.raises(UsageError, match="has a memory that is not sealed"):
        guard(_workflow(provider), SealedCheckpointStorage(store), actor="dev")

    found: Any = world_of(_workflow(provider)).topology["unsealed"]
    assert list(found["memory"]) == [f"clerk: {provider.source_id}"]


def _remote(url: str) -> Any:
    kind = _of_package("agent_framework_a2a", BaseAgent, run=lambda *_: None)
    agent = kind(name="far")
    agent.url = url
    return agent


def test_a_remote_agent_is_refused_and_where_it_is_counts(store: Store) -> None:
    """Also inside of another workflow; its secrets are in no world."""
    inner = _workflow(agent=_remote("https://ann:secret@agents.example.org:8443/v1?key=secret"))
    start = WorkflowExecutor(inner, id="inner")
    workflow = WorkflowBuilder(start_executor=start, name="outer").build()
    with pytest.raises(UsageError, match=r"not sealed \(.* at https://agents\.example\.org:8443"):
        guard(workflow, SealedCheckpointStorage(store), actor="dev", world={"tools": []})

    world = world_of(inner)
    assert "secret" not in world.encode().decode()
    assert world_of(_workflow(agent=_remote("https://evil.example.org/v1"))) != world
    guard(workflow, SealedCheckpointStorage(store), actor="dev", accept_unsealed="remote")


def test_a_memory_that_comes_later_is_refused(tmp_path: Path, store: Store) -> None:
    """Before anything runs, although the workflow was guarded without it."""
    agent = Agent(Chat(), "Be brief.", name="clerk", context_providers=[OwnMemory("own")])
    workflow = guard(_workflow(agent=agent), SealedCheckpointStorage(store), actor="dev")
    agent.context_providers.append(FileHistoryProvider(tmp_path))
    with pytest.raises(UsageError, match="has a memory that is not sealed"):
        asyncio.run(_run(workflow, "pay 5"))

    assert _TOLD == []


def test_what_is_accepted_later_is_another_world(tmp_path: Path) -> None:
    """So the policy decides whether a thread goes on with a memory that it did not have."""
    before = world_of(_workflow())
    after = world_of(_workflow(FileHistoryProvider(tmp_path)))

    assert "topology" in before.diff(after).differs
    assert any("unsealed" in line for line in before.diff(after).lines())


def test_names_of_no_kind_are_refused(store: Store) -> None:
    """A slip accepts nothing."""
    with pytest.raises(UsageError, match="expects some of memory, remote, found 'cache'"):
        guard(_workflow(), SealedCheckpointStorage(store), actor="dev", accept_unsealed=["cache"])
