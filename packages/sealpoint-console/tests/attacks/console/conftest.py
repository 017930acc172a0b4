# SPDX-License-Identifier: Apache-2.0
"""The console that is attacked."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealpoint_console._http_protection import Allowance
from sealpoint_console.settings import HookSettings
from tests.attacks.console.passkeys import Tab, give_passkey
from tests.console.scene import Scene, Served
from tests.postgres_server import shared_server
from tests.unit.signing.authenticator import Authenticator

_PEOPLE = {"ann": 1, "bob": 2, "olga": 3}

Open = Callable[[str], Tab]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A store of a team, which nobody serves yet."""
    return Scene(tmp_path / "scene").make()


@pytest.fixture
def served(scene: Scene) -> Iterator[Served]:
    """The same with a console."""
    with scene.serving() as served:
        yield served


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def raced(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A console on each engine, whose people have passkeys, for all tests of a module."""
    server = shared_server() if request.param == "postgres" else None
    scene = Scene(tmp_path_factory.mktemp("raced") / "scene", server=server).make()
    scene.settings["hooks"] = (
        HookSettings(name="worker", command=("/bin/true",), events=("resume-wanted",)),
    )
    with scene.serving() as served:
        served.console.desk.sign_ins = Allowance(burst=1000, a_minute=1000)
        for name, number in _PEOPLE.items():
            give_passkey(scene, name, Authenticator(number, origin=served.origin))
        yield served


@pytest.fixture
def tab(raced: Served) -> Iterator[Open]:
    """Opens a tab for somebody, in a session of its own."""
    opened: list[Tab] = []

    def open_tab(name: str) -> Tab:
        passkey = Authenticator(_PEOPLE[name], origin=raced.origin)
        opened.append(Tab(raced.client(name), passkey))
        return opened[-1]

    yield open_tab
    for each in opened:
        each.client.close()
