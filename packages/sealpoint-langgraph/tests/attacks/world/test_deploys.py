# SPDX-License-Identifier: Apache-2.0
"""A deploy that changes what a program does is another world, and one that does not is the same.

The attacker ships a change, by accident or not, in a place where nobody looks: A07, A08 and A09.
Under `strict` every class of differences asks two people.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from sealpoint.config import ModuleOrigin, read_application
from sealpoint.errors import NeedsApproval, WorldInvalid
from sealpoint.gate import Policy, shipped_policy
from sealpoint.world import Code, LeafClass, World
from sealpoint_langgraph import SealedSaver, guard, world_of
from tests.adapters.langgraph.stores import opened
from tests.attacks.world.deploys import (
    AGENT,
    FILES,
    SETTINGS_CHANGED,
    code_changes,
    looks,
    settings_text,
)
from tests.effort import SOAKING

_TEAM = Policy.parse(shipped_policy("strict"))
# How many places of each form are tried, and how many places those are at least.
_OF_EACH_FORM, _PLACES_MIN = (None, 1_380) if SOAKING else (1, 200)


class _State(TypedDict, total=False):
    text: str


class _Deploys:
    """A folder for each deploy of the package."""

    def __init__(self, base: Path, patch: pytest.MonkeyPatch) -> None:
        self._base = base
        self._patch = patch
        self._made = 0

    def put(self, changed: dict[str, str]) -> Path:
        """A folder with the package, some of its files changed."""
        self._made += 1
        folder = self._base / str(self._made)
        for name, text in {**FILES, **changed}.items():
            path = folder / "sp_deploy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return folder

    def code(self, changed: dict[str, str]) -> World:
        """The world of its code alone, which needs no import."""
        folder = self.put(changed)
        with self._importing(folder):
            found = read_application([ModuleOrigin("sp_deploy.agent", str(folder))])
        return World(
            code=Code(
                modules={name: each.digest for name, each in found.code.items()},
                application={name: each.digest for name, each in found.rest.items()},
            )
        )

    def world(self, changed: dict[str, str], settings: dict[str, Any], **named: Any) -> World:
        """The world of its graph."""
        folder = self.put(changed)
        (folder / "settings.json").write_text(settings_text(settings))
        self._patch.setenv("SP_DEPLOY_SETTINGS", str(folder / "settings.json"))
        with self._importing(folder):
            return world_of(importlib.import_module("sp_deploy.agent").graph, **named)

    @contextmanager
    def _importing(self, folder: Path) -> Iterator[None]:
        _forget()
        importlib.invalidate_caches()
        with self._patch.context() as patch:
            patch.syspath_prepend(str(folder))
            yield


def _forget() -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "sp_deploy"]:
        del sys.modules[name]


@pytest.fixture
def deploys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Deploys]:
    """Makes deploys."""
    yield _Deploys(tmp_path, monkeypatch)
    _forget()


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The world of the deploy in which nothing is changed."""
    with pytest.MonkeyPatch.context() as patch:
        yield _Deploys(tmp_path_factory.mktemp("unchanged"), patch).world({}, {})


def _asks(before: World, after: World) -> bool:
    differs = before.diff(after).differs
    return any(_TEAM.measure(leaf_class).asks_people for leaf_class in differs)


def test_another_program_in_any_place_asks_people(deploys: _Deploys) -> None:
    """Every name, constant, operator, argument, statement and expression of it counts."""
    before = deploys.code({})
    tried, missed = 0, list[str]()
    for place, text in code_changes(AGENT, _OF_EACH_FORM):
        tried += 1
        if not _asks(before, deploys.code({"agent.py": text})):
            missed.append(place)

    assert missed == []
    assert tried >= _PLACES_MIN


def test_how_a_program_is_written_asks_nobody(deploys: _Deploys) -> None:
    """Comments, formatting and the order of imports are no deploy that people are asked about."""
    before = deploys.code({})
    for form, text in looks(AGENT, seed=1):
        diff = before.diff(deploys.code({"agent.py": text}))

        assert diff.lines() == (), form


@pytest.mark.parametrize("change", SETTINGS_CHANGED)
def test_another_setting_asks_people(deploys: _Deploys, unchanged: World, change: str) -> None:
    """What decides and stands in no code is read from the objects of the framework."""
    after = deploys.world({}, SETTINGS_CHANGED[change])
    diff = unchanged.diff(after)

    assert _asks(unchanged, after), diff.lines()
    assert LeafClass.CODE not in diff.differs


def test_the_same_settings_ask_nobody(deploys: _Deploys, unchanged: World) -> None:
    """Not where the package lies, nor what was deployed in between, makes another world."""
    deploys.world({}, SETTINGS_CHANGED["a prompt"])

    assert unchanged.diff(deploys.world({}, {})).lines() == ()


def test_asking_less_is_wider(deploys: _Deploys) -> None:
    """Who is asked is a permission: a tool that needs nobody any more is one more."""
    before = deploys.world({}, {})
    less = deploys.world({}, {"interrupt_on": {"pay": False, "looked": True}})

    told = 'agent agent / permission "call pay without asking"'

    assert LeafClass.PERMISSIONS in before.diff(less).differs
    assert f"+ {told}" in before.diff(less).lines()
    assert f"- {told}" in less.diff(before).lines()
    assert LeafClass.PERMISSIONS not in less.diff(before).differs


_FILES: dict[str, tuple[dict[str, str], str]] = {
    "a module that the agent imports": (
        {"tools.py": FILES["tools.py"].replace("return named(text)", "return eval(text)")},
        "~ code sp_deploy.tools: run",
    ),
    "one that it imports when it runs": (
        {"lazy.py": "def run(text):\n    return eval(text)\n"},
        "~ code sp_deploy.lazy: run",
    ),
    "one that is named in a text": (
        {"late.py": "def run(text):\n    return eval(text)\n"},
        "~ code sp_deploy.late: run",
    ),
    "one that nothing imports": (
        {"jobs/nightly.py": FILES["jobs/nightly.py"].replace("environ[text]", "environ")},
        "~ application sp_deploy.jobs.nightly: unused",
    ),
    "one that is new": ({"jobs/hourly.py": "RUN = True\n"}, "+ application sp_deploy.jobs.hourly"),
    "a compiled one": ({"jobs/fast.so": "\x7fELF"}, "+ application sp_deploy.jobs.fast"),
    "a program that Python does not read": (
        {"jobs/old.py": "print 'x'\n"},
        "+ application sp_deploy.jobs.old",
    ),
}


@pytest.mark.parametrize("change", _FILES)
def test_another_module_asks_people(deploys: _Deploys, unchanged: World, change: str) -> None:
    """Each module of the package counts, imported yet or not."""
    files, line = _FILES[change]
    after = deploys.world(files, {})

    assert _asks(unchanged, after)
    assert unchanged.diff(after).lines() == (line,)


def test_a_prompt_in_a_file_asks_people(deploys: _Deploys, tmp_path: Path) -> None:
    """Data files that the application declares are told as prompts, by their names."""
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    worlds = []
    for text in ("Be careful.", "Be careless.", "x" * 10_000, "x" * 10_001):
        (prompts / "system.md").write_text(text)
        worlds.append(deploys.world({}, {}, files=[prompts]))

    assert worlds[0].prompts["file prompts/system.md"] == "Be careful."
    assert worlds[0].diff(worlds[1]).differs == {LeafClass.PROMPTS}
    assert worlds[2].diff(worlds[3]).differs == {LeafClass.PROMPTS}
    assert _asks(worlds[0], worlds[1])


def test_a_prompt_that_changes_under_a_worker_asks_people(tmp_path: Path) -> None:
    """A guard reads the files that it was told of at each run."""
    prompt = tmp_path / "system.md"
    prompt.write_text("Be careful.")
    built: Any = StateGraph(_State).add_node("say", lambda _: {"text": prompt.read_text()})
    with opened("sqlite", tmp_path / "home", policy="strict") as store:
        saver = SealedSaver(store)
        graph = guard(built.add_edge(START, "say").compile(), saver, actor="dev", files=[prompt])
        where: Any = {"configurable": {"thread_id": "t"}}
        graph.invoke({}, where)
        graph.invoke({}, where)
        prompt.write_text("Be careless.")
        with pytest.raises(NeedsApproval, match="prompts"):
            graph.invoke({}, where)
        prompt.unlink()
        with pytest.raises(WorldInvalid, match=r"system\.md"):
            graph.invoke({}, where)


_STARTED = """
import sys
from sealpoint_langgraph import world_of
from sp_deploy.agent import graph
sys.stdout.buffer.write(world_of(graph).encode())
"""


def test_two_processes_with_other_hashes_have_one_world(deploys: _Deploys) -> None:
    """Nothing that a process draws at random is in a world, nor where the package lies."""
    started = []
    for seed in ("1", "2"):
        folder = deploys.put({})
        (folder / "settings.json").write_text(settings_text({}))
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", _STARTED],
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONHASHSEED": seed,
                    "SP_DEPLOY_SETTINGS": str(folder / "settings.json"),
                },
                stdout=subprocess.PIPE,
            )
        )
    found = [process.communicate()[0] for process in started]

    assert [process.returncode for process in started] == [0, 0]
    assert found[0] == found[1]
