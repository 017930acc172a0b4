# SPDX-License-Identifier: Apache-2.0
"""Leaves have names, and a difference says what happened to which, and whether it is less."""

from typing import Any

import pytest

from sealpoint.world import Code, LeafChange, Tool, World, visible
from tests.unit.world.samples import FULL, full


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
        "tool.read_file": FULL["tools"][0],
        "tool.search": FULL["tools"][1],
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


@pytest.mark.parametrize(
    "path",
    [
        ("tools", 0),
        ("tools",),
        ("permissions", 1),
        ("agents",),
        ("agents", "researcher"),
        ("agents", "researcher", "tools"),
    ],
    ids=str,
)
def test_less_is_narrowing_and_back_is_widening(path: tuple[Any, ...]) -> None:
    """Tools, permissions and whole sub-agents may go; that they come back is wider."""
    there, back = full().diff(_without(*path)), _without(*path).diff(full())

    assert (there.narrowing, there.widening, there.code_changed) == (True, False, False)
    assert (back.narrowing, back.widening, back.code_changed) == (False, True, False)


@pytest.mark.parametrize(
    "path",
    [
        ("model",),
        ("model", "temperature"),
        ("prompts",),
        ("region",),
        ("agents", "researcher", "prompts"),
        ("tools", 0, "inputSchema"),
        ("tools", 1, "launch"),
    ],
    ids=str,
)
def test_what_is_not_known_to_be_less_is_wider(path: tuple[Any, ...]) -> None:
    """A setting, a prompt or a part of a definition that is gone may as well allow more."""
    for diff in (full().diff(_without(*path)), _without(*path).diff(full())):
        assert (diff.narrowing, diff.widening, diff.code_changed) == (False, True, False)


@pytest.mark.parametrize(
    "code",
    [None, Code("1.5.0"), Code("1.4.0", {"app.tools": "00" * 32}, "cd" * 20)],
    ids=["none", "version", "module"],
)
def test_code_is_told_apart(code: Code | None) -> None:
    """Other code is neither wider nor narrower, and is told beside what is."""
    later = full(code=code.to_dict() if code else None)
    less = full(code=code.to_dict() if code else None, permissions=[])
    more = full(code=code.to_dict() if code else None, permissions=["fs:read", "net", "root"])

    diffs = [full().diff(world) for world in (later, less, more)]

    assert all(diff.code_changed for diff in diffs)
    assert [diff.narrowing for diff in diffs] == [False, True, False]
    assert [diff.widening for diff in diffs] == [False, False, True]


def test_code_of_sub_agents_counts() -> None:
    """A sub-agent's other code is other code, and a sub-agent that is gone took its code along."""
    one = World(agents={"a": World(code=Code("1"), prompts={"p": "x"})})
    other = World(agents={"a": World(code=Code("2"), prompts={"p": "x"})})

    assert one.diff(other).code_changed
    assert not one.diff(other).widening
    assert one.diff(World()).code_changed
    assert one.diff(World()).narrowing


def test_less_and_more_together_are_wider() -> None:
    """One thing less does not make up for one thing more."""
    diff = World(tools=["a", "b"]).diff(World(tools=["a", "c"]))

    assert (diff.narrowing, diff.widening) == (False, True)


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

    assert full().diff(later).lines() == (
        "+ agent writer",
        "+ tool shell_exec",
        "- agent researcher / prompt system",
        "- code revision",
        "- permission net",
        "~ agent researcher / tool browse: x",
        "~ code module app.tools",
        "~ code version",
        "~ model name",
        "~ tool read_file: inputSchema/properties/path/type",
        "~ tool search: description, launch",
    )


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
