# SPDX-License-Identifier: Apache-2.0
"""A thread is taken out of the store: no list of all threads goes on as if it had never been."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sealpoint.api import Store
from sealpoint.errors import ListIncomplete
from sealpoint_langgraph import SealedSaver
from tests.adapters.langgraph.stores import opened
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.ledger.raw_editor import DatabaseEditor

_RUN = "run-7"


async def _listed(saver: SealedSaver) -> list[Any]:
    return [each async for each in saver.alist(None)]


_CALLS: dict[str, Callable[[SealedSaver], object]] = {
    "list": lambda saver: list(saver.list(None)),
    "list with a limit": lambda saver: list(saver.list(None, limit=1)),
    "alist": lambda saver: asyncio.run(_listed(saver)),
    "delete_for_runs": lambda saver: saver.delete_for_runs([_RUN]),
    "adelete_for_runs": lambda saver: asyncio.run(saver.adelete_for_runs([_RUN])),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two threads of one run."""
    with opened("sqlite", tmp_path / "home") as made:
        graph = Desk().builder().compile(checkpointer=SealedSaver(made))
        for name in ("kept", "lost"):
            graph.invoke({"amount": 2}, {**config_of(name), "metadata": {"run_id": _RUN}})
        yield made


def _lose(store: Store, home: Path) -> Callable[[], None]:
    """Take a thread out of the database; what is returned puts it back."""
    editor, name = DatabaseEditor(home / "disk" / "agents.db"), store.thread("lost").id
    rows = editor.rows(bytes.fromhex(name))
    editor.put_rows(bytes.fromhex(name), {})
    assert rows
    return lambda: editor.put_rows(bytes.fromhex(name), rows)


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_a_list_that_lacks_a_thread_is_refused(
    store: Store, tmp_path: Path, call: Callable[[SealedSaver], object]
) -> None:
    """Whoever deletes what a run saved must not believe that nothing of it is left."""
    home = tmp_path / "home"
    put_back = _lose(store, home)
    with opened("sqlite", home) as again:
        saver = SealedSaver(again)
        with pytest.raises(ListIncomplete) as refused:
            call(saver)
        assert list(saver.list(config_of("kept")))
    put_back()

    assert "anchor show" in str(refused.value.hint)
    with opened("sqlite", home) as again:
        assert len({each.config["configurable"]["thread_id"] for each in _all(again)}) == 2


@pytest.mark.parametrize("call", _CALLS.values(), ids=_CALLS)
def test_the_control_finds_both_threads(
    store: Store, call: Callable[[SealedSaver], object]
) -> None:
    """With both threads in their place the same calls do what they say."""
    saver = SealedSaver(store)
    found = call(saver)

    assert bool(found) == bool(_all(store))


def _all(store: Store) -> list[Any]:
    return list(SealedSaver(store).list(None))
