# SPDX-License-Identifier: Apache-2.0
"""Leaves have names, and a difference says what happened to which, and whether it is less."""

from typing import Any

import pytest

from sealpoint.world import Code, LeafChange, LeafClass, Tool, World, WorldDiff, visible
from tests.unit.world.samples import FULL, full


def _sets(diff: WorldDiff) -> tuple[set[str], set[str]]:
    """The classes that differ, and those in which something is only gone."""
    return set(diff.differs), set(diff.narrower)


def _without(*path: Any) -> World:
    plain = full().to_dict()
    inner: Any = plain
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return World.from_dict(plain)


def test_leaves_are_named_by_kind() -> None:
    """Every leaf of a full world, with its name and value."""
    assert full().leaves() == {
        "agent.researcher": {},
        "agent.researcher/prompt.system": "Look.",
        "agent.researcher/tool.browse": {"name": "browse"},
        "code.module.app.tools": "ab" * 32,
        "code.revision": "cd" * 20,
        "code.version": "1.4.0",
        "extra.region": "eu",
        "model.name": "m-1",
        "model.temperature": 0.5,
        "permission.fs:read": True,
        "permission.net": True,
        "prompt.system": "Be exact.",
        "runtime.langgraph": "1.2.0",
        "runtime.python": "3.11",
        "tool.read_file": FULL["tools"][0],
        "tool.search": FULL["tools"][1],
        "topology.edges": {"start -> work": True},
    }
    assert list(full().leaves()) == sorted(full().leaves())


def test_odd_names_are_escaped() -> None:
    """A name cannot end early, hide, or pretend to be another leaf."""
    world = World(
        tools=["a/b", "x\u202ey", "\\u{2f}", "back\\slash"],
        agents={"a/tool.b": World(), "a": World(tools=["b"])},
    )

    assert list(world.leaves()) == [
        "agent.a",
        "agent.a/tool.b",
        r"agent.a\u{2f}tool.b",
        r"tool.\u{5c}u{2f}",
        "tool.a/b",
        "tool.back\\slash",
        r"tool.x\u{202e}y",
    ]


def test_every_leaf_has_the_class_of_its_kind() -> None:
    """Also a leaf of a sub-agent; that there is a sub-agent is topology."""
    classes = {change.leaf: str(change.leaf_class) for change in World().diff(full()).added}

    assert classes == {
        "agent.researcher": "topology",
        "agent.researcher/prompt.system": "prompts",
        "agent.researcher/tool.browse": "tools",
        "code.module.app.tools": "code",
        "code.revision": "code",
        "code.version": "code",
        "extra.region": "other",
        "model.name": "model",
        "model.temperature": "model",
        "permission.fs:read": "permissions",
        "permission.net": "permissions",
        "prompt.system": "prompts",
        "runtime.langgraph": "runtime",
        "runtime.python": "runtime",
        "tool.read_file": "tools",
        "tool.search": "tools",
        "topology.edges": "topology",
    }


@pytest.mark.parametrize(
    ("path", "classes"),
    [
        (("tools", 0), ("tools",)),
        (("tools",), ("tools",)),
        (("permissions", 1), ("permissions",)),
        (("agents",), ("prompts", "tools", "topology")),
        (("agents", "researcher"), ("prompts", "tools", "topology")),
        (("agents", "researcher", "tools"), ("tools",)),
    ],
    ids=str,
)
def test_less_is_narrower_and_back_differs(path: tuple[Any, ...], classes: tuple[str, ...]) -> None:
    """Tools, permissions and whole sub-agents may go; that they come back is more."""
    there, back = full().diff(_without(*path)), _without(*path).diff(full())

    assert _sets(there) == (set(), set(classes))
    assert _sets(back) == (set(classes), set())


@pytest.mark.parametrize(
    ("path", "leaf_class"),
    [
        (("code",), "code"),
        (("code", "modules"), "code"),
        (("code", "revision"), "code"),
        (("model",), "model"),
        (("model", "temperature"), "model"),
        (("prompts",), "prompts"),
        (("topology", "edges"), "topology"),
        (("runtime", "langgraph"), "runtime"),
        (("region",), "other"),
        (("agents", "researcher", "prompts"), "prompts"),
        (("tools", 0, "inputSchema"), "tools"),
        (("tools", 1, "launch"), "tools"),
    ],
    ids=str,
)
def test_what_is_not_known_to_be_less_differs(path: tuple[Any, ...], leaf_class: str) -> None:
    """A setting, a prompt or a part of a definition that is gone may as well allow more."""
    for diff in (full().diff(_without(*path)), _without(*path).diff(full())):
        assert _sets(diff) == ({leaf_class}, set())


def test_each_class_is_told_apart() -> None:
    """Less of one thing and other code are told beside each other."""
    diff = full().diff(full(code={"version": "1.5.0"}, permissions=[]))

    assert _sets(diff) == ({"code"}, {"permissions"})


def test_a_sub_agent_that_is_gone_took_everything_along() -> None:
    """Its other code differs; once it is gone, its code, prompts and runtime are only gone."""
    one = World(agents={"a": World(code=Code("1"), prompts={"p": "x"}, runtime={"python": "3"})})
    other = World(agents={"a": World(code=Code("2"), prompts={"p": "x"}, runtime={"python": "3"})})

    assert _sets(one.diff(other)) == ({"code"}, set())
    assert _sets(one.diff(World())) == (set(), {"topology", "code", "prompts", "runtime"})


def test_less_and_more_of_one_class_is_more() -> None:
    """One thing less does not make up for one thing more."""
    diff = World(tools=["a", "b"]).diff(World(tools=["a", "c"]))

    assert _sets(diff) == ({"tools"}, set())


def test_lines_are_grouped_by_class() -> None:
    """All lines, those of one class, and each class with its own, in the order of the classes."""
    diff = World(tools=["a"], permissions=["net"]).diff(World(tools=["b"], prompts={"p": "x"}))

    assert diff.lines(LeafClass.TOOLS) == ("+ tool b", "- tool a")
    assert diff.lines(LeafClass.CODE) == ()
    assert list(diff.by_class().items()) == [
        (LeafClass.TOOLS, ("+ tool b", "- tool a")),
        (LeafClass.PERMISSIONS, ("- permission net",)),
        (LeafClass.PROMPTS, ("+ prompt p",)),
    ]
    assert sorted(diff.lines()) == sorted(sum(diff.by_class().values(), ()))


def test_a_change_says_where() -> None:
    """What differs inside of a leaf is named by JSON pointers, down to the smallest part."""
    before = {"a": {"b/c": [1, {"d~": 2}], "e": 1}, "f": 1, "g": [1]}
    after = {"a": {"b/c": [1, {"d~": 3}, 4], "e": 1.0}, "g": {"0": 1}, "h": None}
    diff = World(tools=[Tool("t", before)]).diff(World(tools=[Tool("t", after, "npx t")]))

    assert diff.changed == (
        LeafChange(
            "tool.t",
            {"name": "t", **before},
            {"name": "t", "launch": "npx t", **after},
            ("a/b~1c/1/d~0", "a/b~1c/2", "a/e", "f", "g", "h", "launch"),
        ),
    )


def test_parts_are_told_apart_from_our_fields() -> None:
    """Where a definition has a `launch` itself, the parts say which of the two changed."""
    one = World(tools=[Tool("t", {"launch": "x"}, "npx t")])

    assert one.diff(World(tools=[Tool("t", {"launch": "y"}, "npx t")])).changed[0].parts == (
        "1/launch",
    )
    assert one.diff(World(tools=[Tool("t", {"launch": "x"}, "npx u")])).changed[0].parts == ("2",)
    assert one.diff(World(tools=[Tool("t", {}, "x")])).changed[0].parts == ("1/launch", "2")


def test_lines_are_for_people() -> None:
    """One line for each difference: what came, what went, what changed and where."""
    later = full(
        code={"version": "1.5.0", "modules": {"app.tools": "00" * 32}},
        tools=[
            {"name": "read_file", "inputSchema": {"properties": {"path": {"type": "array"}}}},
            {"name": "shell_exec"},
            {**FULL["tools"][1], "launch": "https://other.example", "description": "Other."},
        ],
        permissions=["fs:read"],
        model={"name": "m-2", "temperature": 0.5},
        agents={"researcher": {"tools": [{"name": "browse", "x": 1}]}, "writer": {}},
    )

    search = {**FULL["tools"][1], "launch": "npx"}

    assert full(tools=[FULL["tools"][0], search]).diff(later).lines() == (
        "+ agent writer",
        "+ tool shell_exec",
        "- agent researcher / prompt system",
        "- code revision",
        "- permission net",
        "~ agent researcher / tool browse: + x 1",
        "~ code app.tools",
        "~ code version 1.4.0 -> 1.5.0",
        "~ model name m-1 -> m-2",
        "~ tool read_file: inputSchema/properties/path/type string -> array",
        '~ tool search: description "Looks for it." -> Other., launch npx -> https://other.example',
    )


def _module(digest: str, **definitions: str) -> dict[str, str]:
    """A module as a world tells it, with the beginnings of the digests of what it defines."""
    return {"": digest * 32} | {name: each * 6 for name, each in definitions.items()}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ({"runtime": {"x": "1.2.0"}}, {"runtime": {"x": "1.2.20"}}, "~ runtime x 1.2.0 -> 1.2.20"),
        ({"runtime": {"x": "3.9"}}, {"runtime": {"x": "3.10"}}, "~ runtime x 3.9 -> 3.10"),
        ({"model": {"m": {"t": 0}}}, {"model": {"m": {"t": 1.5}}}, "~ model m: t 0 -> 1.5"),
        ({"model": {"m": {"t": 0}}}, {"model": {"m": {"t": 0.0}}}, "~ model m: t 0 -> 0.0"),
        ({"model": {"m": {"t": "1"}}}, {"model": {"m": {"t": 1}}}, '~ model m: t "1" -> 1'),
        ({"model": {"m": None}}, {"model": {"m": "null"}}, '~ model m null -> "null"'),
        ({"model": {"m": {}}}, {"model": {"m": {"t": 1}}}, "~ model m: + t 1"),
        ({"model": {"m": {"t": 1}}}, {"model": {"m": {}}}, "~ model m: - t"),
        ({"model": {"m": {"t": [1]}}}, {"model": {"m": {"t": 1}}}, "~ model m: t"),
        ({"topology": {"e": {}}}, {"topology": {"e": {"a": True}}}, "~ topology e: + a"),
        ({"prompts": {"p": "x" * 40}}, {"prompts": {"p": ""}}, f'~ prompt p {"x" * 40} -> ""'),
        ({"prompts": {"p": "x" * 41}}, {"prompts": {"p": ""}}, "~ prompt p"),
        ({"prompts": {"p": "a\nb"}}, {"prompts": {"p": ""}}, "~ prompt p"),
        (
            {"code": {"revision": "ab" * 20}},
            {"code": {"revision": "cd" * 20}},
            "~ code revision abababababab -> cdcdcdcdcdcd",
        ),
        (
            {"code": {"revision": "a" * 40}},
            {"code": {"revision": "a" * 39 + "b"}},
            f"~ code revision {'a' * 40} -> {'a' * 39}b",
        ),
        (
            {"code": {"modules": {"node.answer: answer": "00" * 32}}},
            {"code": {"modules": {"node.answer: answer": "11" * 32}}},
            "~ code node.answer: answer",
        ),
        ({}, {"code": {"modules": {"version": "00" * 32}}}, "+ code module version"),
        (
            {"code": {"modules": {"app": _module("00", pay="ab", old="cd")}}},
            {"code": {"modules": {"app": _module("11", pay="ac", refund="cd")}}},
            "~ code app: - old, pay, + refund",
        ),
        (
            {"code": {"modules": {"app": _module("00", pay="ab")}}},
            {"code": {"modules": {"app": _module("11", pay="ab")}}},
            "~ code app",
        ),
        (
            {"code": {"application": {"app.jobs": "00" * 32}}},
            {"code": {"application": {"app.jobs": _module("11", pay="ab")}}},
            "~ application app.jobs",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_short_values_are_told_from_and_to(
    before: dict[str, Any], after: dict[str, Any], line: str
) -> None:
    """A short scalar is told with what it became; of anything else the part is named."""
    assert World.from_dict(before).diff(World.from_dict(after)).lines() == (line,)


def test_definitions_explain_and_decide_nothing() -> None:
    """Where only one side tells what a module defines, its digest says whether it is another."""
    short = World.from_dict({"code": {"modules": {"app": "00" * 32}}})
    told = World.from_dict({"code": {"modules": {"app": _module("00", pay="ab")}}})
    other = World.from_dict({"code": {"modules": {"app": _module("11", pay="ab")}}})

    assert short.diff(told).same
    assert told.diff(short).same
    assert short.diff(other).lines() == ("~ code app",)
    assert short.diff(other).differs == {LeafClass.CODE}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, with é and 漢字 and 🙂", "plain text, with é and 漢字 and 🙂"),
        ("a\u202eb", r"a\u{202e}b"),
        ("\x1b[2J\x07\x00\x7f\x9b", r"\u{1b}[2J\u{7}\u{0}\u{7f}\u{9b}"),
        ("a\r\n\tb", r"a\u{d}\u{a}\u{9}b"),
        ("a\u200b\u2060\ufeff\xad\u00a0\u3000", r"a\u{200b}\u{2060}\u{feff}\u{ad}\u{a0}\u{3000}"),
        ("a\u3164\u115f\u2800\uffa0", r"a\u{3164}\u{115f}\u{2800}\u{ffa0}"),
        ("a\ufe0f\U000e0101\U000e0041", r"a\u{fe0f}\u{e0101}\u{e0041}"),
        ("\u0338a\u0338", "\\u{338}a\u0338"),
        ("\ud800\ue000\U0010ffff", r"\u{d800}\u{e000}\u{10ffff}"),
        ("\U0001fffe\u0378", r"\u{1fffe}\u{378}"),
        (r"\u{202e}", r"\u{5c}u{202e}"),
        (r"C:\users\u1", r"C:\users\u1"),
        ("", ""),
    ],
)
def test_nothing_hides(text: str, shown: str) -> None:
    """What does not show is spelled out, what shows is left alone, and no spelling is forged."""
    assert visible(text) == shown


@pytest.mark.parametrize("name", ["interrupt_before", "interrupt_after"])
def test_where_a_run_stops_for_people_is_a_permission(name: str) -> None:
    """A graph that asks nobody any more has more than one with another edge."""
    before = World(topology={name: {"pay": True}, "edges": {"a -> b": True}})
    found = before.diff(World(topology={name: {}, "edges": {"a -> c": True}}))

    assert found.differs == {LeafClass.PERMISSIONS, LeafClass.TOPOLOGY}
    assert [change.leaf for change in found.changed if change.leaf_class == "permissions"] == [
        f"topology.{name}"
    ]
