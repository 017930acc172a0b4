# SPDX-License-Identifier: Apache-2.0
"""What a guarded graph reads beside the store: a cache, a long-term memory, a remote graph.

The attacker has the database of the cache or of the memory, and no key (A01, A02).
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache
from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import CachePolicy
from typing_extensions import TypedDict

from sealpoint import Store
from sealpoint.errors import NeedsApproval, ResumeRefused, UsageError
from sealpoint_langgraph import SealedSaver, guard, world_of
from tests.adapters.langgraph.stores import opened

_PAID: list[int] = []
_WHERE: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    """What the graphs work on."""

    amount: int


def _price(_state: State) -> State:
    return {"amount": 5}


def _pay(state: State) -> State:
    _PAID.append(state["amount"])
    return {}


def _remember(_state: State, runtime: Runtime) -> State:
    found = None if runtime.store is None else runtime.store.get(("prices",), "coffee")
    return {"amount": 5 if found is None else found.value["amount"]}


def _built(first: Any = _price) -> Any:
    built: Any = StateGraph(State)
    built.add_node("price", first, cache_policy=CachePolicy(key_func=lambda _state: "price"))
    built.add_node("pay", _pay)
    built.add_edge(START, "price")
    built.add_edge("price", "pay")
    return built


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store of one person."""
    _PAID.clear()
    with opened("sqlite", tmp_path / "home") as made:
        yield made


def test_a_cache_that_others_can_write_is_refused(tmp_path: Path, store: Store) -> None:
    """Else one edited row would pay; the control shows that it does, where it was accepted."""
    place = str(tmp_path / "cache.db")
    graph = _built().compile(cache=SqliteCache(path=place))
    with pytest.raises(UsageError, match="has a cache that is not sealed") as refused:
        guard(graph, SealedSaver(store), actor="dev")
    assert "accept_unsealed=['cache']" in str(refused.value.hint)

    accepted = guard(graph, SealedSaver(store), actor="dev", accept_unsealed=["cache"])
    accepted.invoke({}, _WHERE)
    with closing(sqlite3.connect(place)) as database:
        (before,) = database.execute("SELECT val FROM cache").fetchone()
        database.execute("UPDATE cache SET val = ?", (before.replace(b"\x05", b"\x63"),))
        database.commit()
    accepted.invoke({}, _WHERE)
    assert _PAID == [5, 99]
    told = [each.summary for each in store.audit(kind="resume")]
    assert any("the run reads what is not sealed: cache" in each for each in told)


def test_a_memory_that_others_can_write_is_refused(store: Store) -> None:
    """It is read by nodes, and no entry of the store tells what it said."""
    with SqliteStore.from_conn_string(":memory:") as memory:
        memory.setup()
        graph = _built(_remember).compile(store=memory)
        with pytest.raises(UsageError, match="has a memory that is not sealed"):
            guard(graph, SealedSaver(store), actor="dev")
        accepted = guard(graph, SealedSaver(store), actor="dev", accept_unsealed=["memory"])
        memory.put(("prices",), "coffee", {"amount": 7})
        accepted.invoke({}, _WHERE)

    assert _PAID == [7]
    found: Any = world_of(graph).topology["unsealed"]
    assert found["memory"]["memory"].endswith("SqliteStore")


def test_what_lives_in_the_process_needs_no_word(store: Store) -> None:
    """Nobody else writes it, and it is gone with the process."""
    graph = _built(_remember).compile(cache=InMemoryCache(), store=InMemoryStore())
    guard(graph, SealedSaver(store), actor="dev").invoke({}, _WHERE)

    assert _PAID == [5]
    assert "unsealed" not in world_of(graph).topology


def test_a_memory_that_comes_later_is_refused_before_anything_runs(store: Store) -> None:
    """By a copy with another memory, as a server makes one for each call."""
    graph = guard(_built().compile(), SealedSaver(store), actor="dev")
    with SqliteStore.from_conn_string(":memory:") as memory:
        other = graph.copy({"store": memory})
        with pytest.raises(UsageError, match="has a memory that is not sealed"):
            other.invoke({}, _WHERE)

    assert _PAID == []


def _with_remote(url: str, assistant: str = "billing") -> Any:
    inner: Any = StateGraph(State)
    inner.add_node("far", RemoteGraph(assistant, url=url))
    inner.add_edge(START, "far")
    outer: Any = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile()


def test_a_remote_graph_is_refused_and_where_it_is_counts(store: Store) -> None:
    """Another server, or another assistant there, is another world; its key is in none."""
    graph = _with_remote("https://ann:pw-7319@agents.example.org:8443/v1?key=pw-7319")
    with pytest.raises(UsageError, match=r"billing at https://agents\.example\.org:8443"):
        guard(graph, SealedSaver(store), actor="dev")

    world = world_of(graph)
    assert "pw-7319" not in world.encode().decode()
    for other in (
        _with_remote("https://evil.example.org/v1"),
        _with_remote("https://agents.example.org:8443/v1", "evil"),
    ):
        assert world_of(other) != world


def test_what_is_accepted_later_is_another_world(tmp_path: Path) -> None:
    """Under `strict` people are asked before a thread goes on with a cache that it did not have."""
    with opened("sqlite", tmp_path / "home", policy="strict") as store:
        saver = SealedSaver(store)
        guard(_built().compile(), saver, actor="dev").invoke({}, _WHERE)
        cached = _built().compile(cache=SqliteCache(path=str(tmp_path / "cache.db")))
        graph = guard(cached, saver, actor="dev", accept_unsealed=["cache"])
        with pytest.raises((NeedsApproval, ResumeRefused), match=r"unsealed|topology"):
            graph.invoke({}, _WHERE)


def test_names_of_no_kind_are_refused(store: Store) -> None:
    """A slip accepts nothing."""
    with pytest.raises(UsageError, match="expects some of cache, memory, remote, found 'caches'"):
        guard(_built().compile(), SealedSaver(store), actor="dev", accept_unsealed=["caches"])
