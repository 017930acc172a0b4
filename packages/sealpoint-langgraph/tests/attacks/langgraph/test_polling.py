# SPDX-License-Identifier: Apache-2.0
"""Pages that poll: eight OS threads look at a thread while it runs, waits and is edited."""

import asyncio
import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langgraph.types import Command

from sealpoint_langgraph import SealedSaver
from tests.attacks.langgraph.desks import Desk, config_of
from tests.attacks.langgraph.office import Office

_TURNS = 2


async def _history(graph: Any, where: Any) -> list[Any]:
    return [each async for each in graph.aget_state_history(where)]


_LOOKS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda graph, where: graph.get_state(where),
    lambda graph, where: graph.get_state(where, subgraphs=True),
    lambda graph, where: list(graph.get_state_history(where)),
    lambda graph, where: asyncio.run(graph.aget_state(where)),
    lambda graph, where: asyncio.run(graph.aget_state(where, subgraphs=True)),
    lambda graph, where: asyncio.run(_history(graph, where)),
    lambda graph, where: list(graph.checkpointer.list(where)),
    lambda graph, where: graph.checkpointer.get_tuple(where),
)


@contextmanager
def _polled(graph: Any, thread: str) -> Iterator[list[BaseException | int]]:
    """Look at a thread in eight OS threads all the time; every second one has a limit."""
    done, found = threading.Event(), list[BaseException | int]()

    def poll(number: int) -> None:
        where: Any = config_of(thread)
        if number % 2:
            where["recursion_limit"] = 50
        given, count = copy.deepcopy(where), 0
        try:
            while not done.is_set():
                _LOOKS[number](graph, where)
                assert where == given, "a look leaves nothing behind"
                count += 1
        except BaseException as error:  # noqa: BLE001 (told by the test)
            found.append(error)
        found.append(count)

    pollers = [threading.Thread(target=poll, args=(number,)) for number in range(len(_LOOKS))]
    for each in pollers:
        each.start()
    try:
        yield found
    finally:
        done.set()
        for each in pollers:
            each.join()


@pytest.mark.parametrize("kind", ["guarded", "bare"])
@pytest.mark.parametrize("shape", ["root", "subgraph"])
def test_nobody_is_disturbed_by_pages_that_poll(
    calm: Office, thread: str, shape: str, kind: str
) -> None:
    """No run is disturbed, no look is refused, and what is written is what is without them."""

    def work(thread: str) -> list[str]:
        for turn in range(_TURNS):
            graph.invoke({"amount": turn}, config_of(thread))
            graph.invoke(None, config_of(thread))
            graph.update_state(config_of(thread), {"log": ["edited"]}, as_node="plan")
            asyncio.run(graph.ainvoke(Command(resume="yes"), config_of(thread)))
            graph.invoke(Command(resume="yes"), config_of(thread))
        return sorted(calm.kinds(thread))

    desk = Desk(shape)
    graph = calm.guarded(desk)
    if kind == "bare":
        graph = desk.builder().compile(checkpointer=SealedSaver(calm.worker))
    alone = work(f"{thread}-alone")
    expected = list(desk.ran)
    desk.ran.clear()
    with _polled(graph, thread) as found:
        watched = work(thread)

    assert [each for each in found if isinstance(each, BaseException)] == []
    assert all(isinstance(each, int) and each > 0 for each in found), "everybody has looked"
    assert desk.ran == expected
    assert watched == alone
    assert calm.worker.verify().ok
