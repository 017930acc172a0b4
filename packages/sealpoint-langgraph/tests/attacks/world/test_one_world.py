# SPDX-License-Identifier: Apache-2.0
"""What is no other program is no other world, so that nobody learns to approve without reading.

A process fills names while it runs, draws names, and lies somewhere: none of that is a deploy. And
what may be a secret is in no world, not even as a digest that somebody could guess.
"""

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ShellToolMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from sealpoint.world import World
from sealpoint_langgraph import world_of

_DRAWN = itertools.count()


class State(TypedDict, total=False):
    """The state of the graphs here."""

    text: str


def _graph(node: Any) -> Any:
    built: Any = StateGraph(State)
    return built.add_node("node", node).add_edge(START, "node").compile()


def _model() -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage("x")]))


class Clients:
    """Makes a client when it is first needed."""

    def __init__(self) -> None:
        self.client: GenericFakeChatModel | None = None

    def call(self, state: State) -> State:
        """Do so."""
        self.client = self.client or _model()
        return state


def test_a_guard_for_each_request_meets_no_client_of_the_request_before() -> None:
    """What was empty when the process first looked stays out, whichever guard looks again."""
    clients = Clients()
    before = world_of(_graph(clients.call))
    clients.call({})
    after = world_of(_graph(clients.call))

    assert before.diff(after).lines() == ()
    assert not after.model


def _loaded(path: Path) -> Any:
    """A program, loaded by its path under a name that is drawn."""
    name = f"plugin_{next(_DRAWN)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_program_that_is_loaded_under_a_drawn_name_has_one_world(tmp_path: Path) -> None:
    """Its functions and classes are called by the name of its file."""
    file = tmp_path / "sp_plugin.py"
    file.write_text("class Node:\n    def __call__(self, state):\n        return state\n")
    first, other = (world_of(_graph(_loaded(file).Node())) for _ in range(2))

    assert first.diff(other).lines() == ()
    assert first.code is not None
    assert "sp_plugin" in first.code.modules
    assert "plugin_" not in first.encode().decode().replace("sp_plugin", "")


def _shell(**settings: Any) -> World:
    return world_of(create_agent(_model(), middleware=[ShellToolMiddleware(**settings)]))


@pytest.mark.parametrize("marker", ["pyproject.toml", "app/__init__.py"])
def test_a_program_has_one_world_wherever_it_lies(tmp_path: Path, marker: str) -> None:
    """Of a path in the same project as the application only the place there is told."""
    worlds = []
    for checkout in ("release-1", "release-2"):
        folder = tmp_path / checkout
        (folder / "app").mkdir(parents=True)
        (folder / marker).touch()
        worlds.append(_shell(workspace_root=folder / "app" / "data"))
    outside = _shell(workspace_root=tmp_path / "data")

    assert worlds[0].diff(worlds[1]).lines() == ()
    assert "app/data" in worlds[0].encode().decode()
    assert str(tmp_path / "data") in outside.encode().decode()
    assert worlds[0].diff(outside).lines() != ()


def test_of_an_environment_only_the_names_are_told() -> None:
    """Whatever they are called, values of it may be secrets."""
    told = _shell(env={"MODE": "hidden-1", "PLACE": "hidden-2"}).encode().decode()

    assert "MODE" in told
    assert "hidden-" not in told
    assert _shell(env={"MODE": "x"}).diff(_shell(env={"OTHER": "x"})).lines() != ()


@pytest.mark.parametrize(
    "name",
    ["access", "aws_access", "credential", "dbCredentials", "accesstoken", "clientsecret", "login"],
)
def test_what_may_be_a_secret_is_not_told_even_as_a_digest(name: str) -> None:
    """A short one could be guessed from its digest."""
    model = _model()
    plain, secret = (
        world_of(_graph(_calls(model.bind(**{name: value})))) for value in ("a", "hunter2" * 100)
    )

    assert plain.diff(secret).lines() == ()
    assert f'"{name}"' not in secret.encode().decode()


def _calls(model: Any) -> Callable[[State], State]:
    def call(state: State) -> State:
        return {"text": model.invoke(state["text"]).text}

    return call
