# SPDX-License-Identifier: Apache-2.0
"""Values that an application watches: a raised limit is asked about; an unwatched one is not."""

from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import StateGraph

import sealpoint
from sealpoint.errors import NeedsApproval, UsageError, WorldInvalid
from sealpoint.world import LeafClass
from sealpoint_langgraph import SealedSaver, guard


class _State(TypedDict):
    paid: int


def _pay(state: _State) -> _State:
    return {"paid": state["paid"] + 1}


def _guarded(store: Any, **named: Any) -> Any:
    graph = StateGraph(_State)
    graph.add_node("pay", _pay)
    graph.set_entry_point("pay")
    saver = SealedSaver.for_graph(graph, store)
    return guard(graph.compile(checkpointer=saver), saver, actor="app", **named)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store under the policy `team`."""
    places: dict[str, Any] = {"config_dir": tmp_path / "keys", "state_dir": tmp_path / "anchor"}
    url = f"sqlite:///{tmp_path / 'disk' / 'agents.db'}"
    (tmp_path / "disk").mkdir()
    sealpoint.init(url, policy="team", **places)
    with sealpoint.open_store(url, **places) as made:
        yield made


def test_a_watched_value_that_changed_is_asked_about(store: Any) -> None:
    """Under `team` by one other person; what nobody watches passes unseen."""
    config: Any = {"configurable": {"thread_id": "t"}}
    _guarded(store, watch={"limit": 100}).invoke({"paid": 0}, config)
    _guarded(store, watch={"limit": 100}).invoke({"paid": 0}, config)
    with pytest.raises(NeedsApproval) as needs:
        _guarded(store, watch={"limit": 1_000_000}).invoke({"paid": 0}, config)

    assert needs.value.request.needed == 1
    assert any("extra watch.limit 100 -> 1000000" in each for each in needs.value.reasons)


def test_a_watched_value_is_read_at_each_run(store: Any) -> None:
    """Not when the graph was guarded: a list that grew is another value."""
    allowed = ["read"]
    graph = _guarded(store, watch={"allowed": allowed})
    before = graph.sealpoint_world()
    allowed.append("pay")
    found = before.diff(graph.sealpoint_world())

    assert found.differs == {LeafClass.OTHER}


@pytest.mark.parametrize("watch", [[100], ("limit",), {"": 1}, {1: 2}])
def test_values_without_names_are_refused(store: Any, watch: Any) -> None:
    """A value alone does not say which one it is."""
    with pytest.raises(UsageError, match="watch="):
        _guarded(store, watch=watch)


def test_what_would_not_count_is_refused(store: Any) -> None:
    """Beside a declared world, and a value that has no JSON form."""
    with pytest.raises(UsageError, match="cannot be combined"):
        _guarded(store, watch={"limit": 1}, world={"tools": ["pay"]})
    with pytest.raises(WorldInvalid):
        _guarded(store, watch={"limit": object()})
