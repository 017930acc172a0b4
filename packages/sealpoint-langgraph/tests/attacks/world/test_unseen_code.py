# SPDX-License-Identifier: Apache-2.0
"""Code of a graph that changes where nobody looks: behind a name, in a class, in another module.

A world that stayed the same would let the changed graph go on with approvals of the other one.
"""

import importlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealpoint.world import LeafClass, World
from sealpoint_langgraph import world_of

_AGENT = """
import functools
import json
import os
import operator
import sp_app.deep
from os import getenv as fetch
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt as ask

from sp_app import tools
from sp_app.tools import Shelf, plain, shelf

measure = len
TABLE = {"size": len}


def joined(left, right):
    return combined(left, right)


def combined(left, right):
    return right


class State(TypedDict, total=False):
    text: Annotated[str, joined]
    count: Annotated[int, operator.add]


@functools.lru_cache
def remembered(text):
    return text


@functools.wraps(os.getenv)
def disguised(text):
    return text


def closing(call):
    def inner(text):
        return call(text)

    return inner


wrapped = closing(len)


class Base:
    def inherited(self, text):
        return text


class Desk(Base):
    parse = staticmethod(json.loads)

    def __init__(self):
        self.limit = 1

    @property
    def limited(self):
        return self.limit

    @staticmethod
    def fixed(text):
        return text

    @classmethod
    def made(cls):
        return cls()

    def other(self, text):
        return text

    def step(self, state):
        text = self.inherited(self.fixed(self.other(state["text"])))
        return {"text": f"{text} {self.limited} {self.made()}"}


def node(state):
    from . import late
    from sp_app.lazy import run as run_lazily

    text = tools.run(sp_app.deep.run(plain(state["text"])))
    text = Shelf().go(shelf.go(remembered(disguised(text))))
    text = run_lazily(late.run(fetch(text) or ask(text)))
    return {"text": f"{text} {measure(text)} {TABLE['size'](text)} {wrapped(text)}"}


builder = StateGraph(State)
builder.add_node("node", node).add_node("desk", Desk().step)
builder.add_node("size", functools.partial(len))
graph = builder.add_edge(START, "node").add_edge("node", "desk").compile()

if __name__ == "__main__":
    import sys

    from sealpoint_langgraph import world_of

    sys.stdout.buffer.write(world_of(graph).encode())
"""
_TOOLS = """
from os.path import basename as named


def run(text):
    return named(text)


def plain(text):
    return text


class Shelf:
    def go(self, text):
        return text


shelf = Shelf()
"""
_RUN = "def run(text):\n    return text\n"
_FILES = {
    "__init__.py": "",
    "agent.py": _AGENT,
    "tools.py": _TOOLS,
    "deep.py": _RUN,
    "lazy.py": _RUN,
    "late.py": _RUN,
}
_SAME = "    return text\n"
_OTHER = "    return eval(text)\n"
_CHANGES = {
    "module attribute": ("tools.py", "named(text)", "eval(text)", "sp_app.tools: run"),
    "import in that module": ("tools.py", "basename as", "dirname as", "sp_app.tools"),
    "function by name": (
        *("tools.py", f"plain(text):\n{_SAME}", f"plain(text):\n{_OTHER}"),
        "sp_app.tools: plain",
    ),
    "module of a module": ("deep.py", _SAME, _OTHER, "sp_app.deep: run"),
    "import in the node": ("lazy.py", _SAME, _OTHER, "sp_app.lazy: run"),
    "relative import in the node": ("late.py", _SAME, _OTHER, "sp_app.late: run"),
    "class in another module": (
        *("tools.py", f"go(self, text):\n    {_SAME}", f"go(self, text):\n    {_OTHER}"),
        "sp_app.tools: Shelf.go",
    ),
    "imported function": ("agent.py", "import getenv as", "import system as", "sp_app.agent"),
    "function of the framework": (
        *("agent.py", "langgraph.types import interrupt", "langgraph.config import get_config"),
        "sp_app.agent",
    ),
    "assigned builtin": ("agent.py", "measure = len", "measure = eval", "sp_app.agent"),
    "builtin in a table": ("agent.py", '"size": len', '"size": eval', "sp_app.agent"),
    "builtin in a closure": ("agent.py", "closing(len)", "closing(eval)", "sp_app.agent"),
    "imported module": ("agent.py", "import json", "import pickle as json", "sp_app.agent"),
    "cached function": (
        *("agent.py", f"remembered(text):\n{_SAME}", f"remembered(text):\n{_OTHER}"),
        "sp_app.agent: remembered",
    ),
    "function with a name of others": (
        *("agent.py", f"disguised(text):\n{_SAME}", f"disguised(text):\n{_OTHER}"),
        "sp_app.agent: disguised",
    ),
    "other method": (
        *("agent.py", f"other(self, text):\n    {_SAME}", f"other(self, text):\n    {_OTHER}"),
        "sp_app.agent: Desk.other",
    ),
    "static method": (
        *("agent.py", f"fixed(text):\n    {_SAME}", f"fixed(text):\n    {_OTHER}"),
        "sp_app.agent: Desk.fixed",
    ),
    "class method": (
        *("agent.py", "return cls()", "return eval('cls()')"),
        "sp_app.agent: Desk.made",
    ),
    "property": (
        *("agent.py", "return self.limit", "return eval('1')"),
        "sp_app.agent: Desk.limited",
    ),
    "constructor": (
        *("agent.py", "self.limit = 1", "self.limit = eval('1')"),
        "sp_app.agent: Desk.__init__",
    ),
    "inherited method": (
        *(
            "agent.py",
            f"inherited(self, text):\n    {_SAME}",
            f"inherited(self, text):\n    {_OTHER}",
        ),
        "sp_app.agent: Base.inherited",
    ),
    "other base": ("agent.py", "Desk(Base)", "Desk(Base, Exception)", "sp_app.agent: Desk"),
    "function of a reducer": (
        *("agent.py", "    return right\n", "    return eval(right)\n"),
        "sp_app.agent: combined",
    ),
}
_CHANGES_OF_THE_GRAPH = {
    "builtin in a partial": ("agent.py", "partial(len)", "partial(eval)", "builtins.eval"),
    "builtin reducer": ("agent.py", "operator.add]", "operator.mul]", "_operator.mul"),
}

Made = Callable[..., World]


def _write(folder: Path, file: str = "", old: str = "", new: str = "") -> Path:
    (folder / "sp_app").mkdir(parents=True)
    for name, text in _FILES.items():
        assert name != file or old in text
        changed = text.replace(old, new) if file in ("", name) else text
        (folder / "sp_app" / name).write_text(changed)
    return folder


def _forget() -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "sp_app"]:
        del sys.modules[name]


@pytest.fixture
def world_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """The world of the program after a text in one of its files, or in all, was replaced."""

    def made(file: str = "", old: str = "", new: str = "") -> World:
        folder = _write(tmp_path / str(len(list(tmp_path.iterdir()))), file, old, new)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(folder))
            _forget()
            return world_of(importlib.import_module("sp_app.agent").graph)

    yield made
    _forget()


@pytest.mark.parametrize(("file", "old", "new", "told"), _CHANGES.values(), ids=_CHANGES)
def test_changed_code_is_another_world(
    world_after: Made, file: str, old: str, new: str, told: str
) -> None:
    """Wherever the code of an application changes, a line says where."""
    diff = world_after().diff(world_after(file, old, new))

    assert diff.differs == {LeafClass.CODE}
    assert diff.lines() == (f"~ code {told}",)


@pytest.mark.parametrize(
    ("file", "old", "new", "told"), _CHANGES_OF_THE_GRAPH.values(), ids=_CHANGES_OF_THE_GRAPH
)
def test_another_builtin_in_the_graph_is_told_with_its_place(
    world_after: Made, file: str, old: str, new: str, told: str
) -> None:
    """What the framework runs is told by name, besides the module that says so."""
    diff = world_after().diff(world_after(file, old, new))

    assert diff.differs == {LeafClass.CODE, LeafClass.TOPOLOGY}
    assert told in "".join(diff.lines(LeafClass.TOPOLOGY))


def test_comments_in_every_line_are_the_same_world(world_after: Made) -> None:
    """How any of these files is written is nothing that anybody is asked about."""
    before = world_after()

    assert world_after("", "\n", "  # Why.\n\n").diff(before).lines() == ()


def _places(world: World) -> set[str]:
    return set(world.code.modules) if world.code else set()


def _world_in_process(folder: Path, *arguments: str, seed: str = "1") -> World:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
    )
    return World.decode(done.stdout)


_IMPORTED = """
import sys
{before}
from sealpoint_langgraph import world_of
from {module} import graph
sys.stdout.buffer.write(world_of(graph).encode())
"""


def _imported(module: str, before: str = "") -> str:
    return textwrap.dedent(_IMPORTED.format(module=module, before=before))


def test_a_module_that_is_started_has_the_world_that_it_has_when_it_is_imported(
    tmp_path: Path,
) -> None:
    """A world that is accepted ahead is the one in which the worker runs, whatever was imported."""
    folder = _write(tmp_path / "package")
    started = _world_in_process(folder, "-m", "sp_app.agent")
    imported = _world_in_process(folder, "-c", _imported("sp_app.agent"), seed="2")
    later = _world_in_process(folder, "-c", _imported("sp_app.agent", "import sp_app.lazy"))

    assert started.diff(imported).lines() == ()
    assert started.diff(later).lines() == ()
    assert {f"sp_app.{name}" for name in ("agent", "deep", "late", "lazy", "tools")} <= _places(
        started
    )


def test_a_file_that_is_started_has_the_world_that_it_has_when_it_is_imported(
    tmp_path: Path,
) -> None:
    """The same for a program that is one file, with modules beside it."""
    folder = _write(tmp_path / "flat") / "sp_app"
    text = _AGENT.replace("from . import late", "import late").replace("sp_app.agent", "agent")
    text = text.replace("import sp_app.deep", "import deep").replace("sp_app.deep", "deep")
    text = text.replace("from sp_app import tools", "import tools").replace("sp_app.", "")
    (folder / "agent.py").write_text(text)
    started = _world_in_process(folder, "agent.py")
    imported = _world_in_process(folder, "-c", _imported("agent"), seed="2")

    assert started.diff(imported).lines() == ()
    assert _places(started) == {"agent", "deep", "late", "lazy", "tools"}


def test_looking_runs_nothing_of_an_application(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Properties, lazy modules, proxies and metaclasses are not asked, and imports not made."""
    text = """
    import sp_trap.attributes
    from typing import TypedDict
    from langgraph.graph import START, StateGraph


    def stop(*_):
        raise RuntimeError("this was called")


    class Meta(type):
        __getattribute__ = stop


    class Shy(metaclass=Meta):
        def run(self):
            return 1


    class Proxy:
        __class__ = property(stop)
        __getattr__ = stop
        value = property(stop)


    class State(TypedDict):
        text: str


    proxy = Proxy()


    def node(state):
        import sp_trap.never
        return proxy.value, Shy, sp_trap.attributes.missing


    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    """
    folder = tmp_path / "sp_trap"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "never.py").write_text("raise RuntimeError('this was imported')\n")
    (folder / "attributes.py").write_text("def __getattr__(name):\n    raise RuntimeError(name)\n")
    (folder / "agent.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        world = world_of(importlib.import_module("sp_trap.agent").graph)
    finally:
        for name in [each for each in sys.modules if each.partition(".")[0] == "sp_trap"]:
            del sys.modules[name]

    assert _places(world) == {f"sp_trap{name}" for name in ("", ".agent", ".attributes", ".never")}
