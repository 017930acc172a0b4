# SPDX-License-Identifier: Apache-2.0
"""What one address, or whoever has saved a hostile state, can take from everybody else."""

import socket
from contextlib import ExitStack
from itertools import islice
from typing import Any

import pytest

from sealpoint import Registry
from sealpoint.views.changes import Change, compare
from sealpoint_console import _server
from sealpoint_console._server import _Places
from sealpoint_console._thread_pages import _changed_lines
from tests.console.scene import Served, until
from tests.cpu_time import CpuTime

_HOSTILE: dict[str, tuple[Any, Any]] = {
    "long lists": (list(range(60_000)), list(range(60_000, 0, -1))),
    "lists in lists": ([[1] * 50] * 1_000, [[2] * 50] * 1_000),
    "texts that are nearly alike": (
        [["ab" * 100 + str(n) for n in range(19)] for _ in range(60)],
        [["ba" * 100 + str(n) for n in range(20)] for _ in range(60)],
    ),
    "other keys": ({str(n): n for n in range(20_000)}, {f"k{n}": n for n in range(20_000)}),
    "other members": ({*range(20_000)}, {*range(20_000, 40_000)}),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_comparing_hostile_states_ends_with_what_a_page_shows(name: str) -> None:
    """Seconds for each page that somebody opens would be a console that nobody can use."""
    old, new = _HOSTILE[name]
    with CpuTime() as cpu_time:
        found = list(islice(compare(old, new, Registry().encode), 500))

    assert found
    assert cpu_time.seconds < 1.5


def test_texts_with_very_many_lines_fill_no_page() -> None:
    """All changes are there, the lines of the first ones, and the beginnings of the others."""
    texts = ["\n".join(str(line) for line in range(start, start + 3_000)) for start in (0, 5_000)]
    change = Change(
        kind="changed", path="state", old="0", new="5000", old_text=texts[0], new_text=texts[1]
    )
    rows = _changed_lines([change] * 400)

    assert len(rows) == 400
    assert 4_000 <= sum(len(lines) for _, lines in rows) <= 5_100
    assert rows[-1][0].old == "0"


def test_one_address_leaves_connections_to_others() -> None:
    """A network of IPv6 counts as one, and a proxy brings the connections of many."""
    places = _Places(["10.0.0.0/8"])
    most = _server._CONNECTIONS_EACH_MAX

    assert all(places.take("192.0.2.1") for _ in range(most))
    assert not places.take("192.0.2.1")
    assert places.take("192.0.2.2")
    assert [places.take(f"2001:db8::{n:x}") for n in range(most + 1)] == [True] * most + [False]
    assert all(places.take("10.1.2.3") for _ in range(2 * most))
    places.give_back("192.0.2.1")
    assert places.take("192.0.2.1")


def test_connections_beyond_its_part_are_closed_and_given_back(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds all that an address has gets no more, until some of them end."""
    monkeypatch.setattr(_server, "_CONNECTIONS_EACH_MAX", 4)
    place = ("127.0.0.1", int(served.origin.rpartition(":")[2]))
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(socket.create_connection(place, timeout=20))
        with socket.create_connection(place, timeout=20) as beyond:
            assert _is_closed(beyond)
    until(lambda: _answers(served))


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def _answers(served: Served) -> bool:
    with served.client() as client:
        try:
            return client.get("/sign-in").status_code == 200
        except Exception:  # noqa: BLE001 (whatever a closed connection is called)
            return False
