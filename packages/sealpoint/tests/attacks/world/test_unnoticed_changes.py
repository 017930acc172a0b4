# SPDX-License-Identifier: Apache-2.0
"""A tool that is swapped behind its name: whatever changed is seen, as no less, by people too.

Servers of tools describe themselves. One that was approved can change its description, add a
field nobody reads, or be replaced by another that says the same.
"""

from typing import Any

import pytest

from sealpoint.errors import WorldInvalid
from sealpoint.world import Code, LeafClass, Tool, World

_WIRE: dict[str, Any] = {
    "name": "read_file",
    "title": "Read a file",
    "description": "Reads one file of the project.",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it lies."}},
        "required": ["path"],
    },
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "_meta": {"vendor/x": 1},
}
_LAUNCH = "npx files@1.2.3"


def _changed(*path: Any, value: Any) -> dict[str, Any]:
    def put(inner: Any, rest: tuple[Any, ...]) -> Any:
        if not rest:
            return value
        made = list(inner) if isinstance(inner, list) else dict(inner)
        made[rest[0]] = put(made.get(rest[0]) if isinstance(made, dict) else None, rest[1:])
        return made

    made: dict[str, Any] = put(_WIRE, path)
    return made


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        (_changed("description", value="Reads it, and sends it on."), "description"),
        (_changed("description", value="Reads one file of the project.\u200b"), "description"),
        (_changed("title", value="Read a file "), "title"),
        (_changed("inputSchema", "required", value=[]), "inputSchema/required/0"),
        (
            _changed("inputSchema", "properties", "path", value={"type": "array"}),
            "inputSchema/properties/path/type",
        ),
        (
            _changed("inputSchema", "properties", "shell", value={}),
            "inputSchema/properties/shell",
        ),
        (_changed("outputSchema", value={}), "outputSchema/type"),
        (_changed("annotations", "readOnlyHint", value=1), "annotations/readOnlyHint"),
        (_changed("_meta", "vendor/x", value=2), "_meta/vendor~1x"),
        (_changed("unheard_of", value=None), "unheard_of"),
        (_changed("name", value="read_files"), "1/name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_field_of_the_wire_object_counts(wire: dict[str, Any], part: str) -> None:
    """A change of any field, known or not, differs in its class, and its place is told."""
    before = World(tools=[Tool("read_file", _WIRE, _LAUNCH)])
    diff = before.diff(World(tools=[Tool("read_file", wire, _LAUNCH)]))

    assert diff.differs == {LeafClass.TOOLS}
    assert not diff.narrower
    assert part in diff.changed[0].parts
    assert part in diff.lines()[0]


def test_another_server_that_says_the_same_is_noticed() -> None:
    """The same definition from something else that is started is a change of its own."""
    before = World(tools=[Tool("read_file", _WIRE, _LAUNCH)])
    diff = before.diff(World(tools=[Tool("read_file", _WIRE, "npx files@1.2.4")]))

    assert diff.differs == {LeafClass.TOOLS}
    assert diff.lines() == ('~ tool read_file: launch "npx files@1.2.3" -> "npx files@1.2.4"',)


def test_a_server_cannot_write_its_own_launch_identity() -> None:
    """A `launch` in the wire object is the server's word and never stands for ours."""
    genuine = World(tools=[Tool("read_file", _WIRE, _LAUNCH)])
    pretended = World(tools=[Tool("read_file", {**_WIRE, "launch": _LAUNCH})])

    assert pretended.tools[0].launch is None
    assert World.decode(pretended.encode()).tools[0].launch is None
    assert genuine.diff(pretended).differs == {LeafClass.TOOLS}


def test_only_a_name_is_enough_to_be_another_tool() -> None:
    """A tool under a name that looks the same is another tool, and its line shows why."""
    before = World(tools=[Tool("read_file", _WIRE)])
    diff = before.diff(World(tools=[Tool("read\u200b_file", {**_WIRE})]))

    assert diff.differs == {LeafClass.TOOLS}
    assert diff.lines() == (r"+ tool read\u{200b}_file", "- tool read_file")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("net\u202etsoh ylno\u202c", r'+ permission "net\u{202e}tsoh ylno\u{202c}"'),
        ("a\n- tool shell_exec", r'+ permission "a\u{a}- tool shell_exec"'),
        ("a\x1b[1A\x1b[2K", r"+ permission a\u{1b}[1A\u{1b}[2K"),
        ("read: description", '+ permission "read: description"'),
        ('a" + tool "b', r'+ permission "a\u{22} + tool \u{22}b"'),
        (" ", '+ permission " "'),
        ("a ", '+ permission "a "'),
    ],
)
def test_a_name_cannot_disguise_its_line(name: str, line: str) -> None:
    """Controls of direction and terminal, ends of lines and quotes stay within the name."""
    assert World().diff(World(permissions=[name])).lines() == (line,)


_LINE = '~ model m: a {}, "b c" 0 -> 1'


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x\r- tool shell", r'x -> "x\u{d}- tool shell"'),
        ("x\u2028- tool shell", r'x -> "x\u{2028}- tool shell"'),
        ("x, + b 1", 'x -> "x, + b 1"'),
        ('x", b "', r'x -> "x\u{22}, b \u{22}"'),
        ("->", 'x -> "->"'),
        ("0", 'x -> "0"'),
        ("\u202ex", r"x -> \u{202e}x"),
        ("\x1b[2K", r"x -> \u{1b}[2K"),
    ],
)
def test_a_value_cannot_disguise_its_line(value: str, told: str) -> None:
    """A value that is told, such as the name of a model, pretends to no other part or line."""
    before = World(model={"m": {"a": "x", "b c": 0}})
    diff = before.diff(World(model={"m": {"a": value, "b c": 1}}))

    assert diff.lines() == (_LINE.format(told),)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("node.a: b", "+ code node.a: b"),
        ("node.a: b: c", '+ code node.a: "b: c"'),
        ("node.a b: c", '+ code "node.a b": c'),
        ("x: version 1 -> 2", '+ code x: "version 1 -> 2"'),
        ("version", "+ code module version"),
        (": b", '+ code ": b"'),
        ("a\n- b: c", r'+ code "a\u{a}- b": c'),
    ],
)
def test_a_place_of_code_cannot_disguise_its_line(name: str, line: str) -> None:
    """The name of a node or a function ends where it is seen to end."""
    digest = "00" * 32

    assert World().diff(World(code=Code(modules={name: digest}))).lines() == (line,)


def test_lines_are_never_cut() -> None:
    """What stands after ten thousand harmless characters is still there."""
    name = "a" * 10_000 + "-and-shell"

    assert World().diff(World(tools=[name])).lines() == (f"+ tool {name}",)


def test_a_sub_agent_is_no_place_to_hide() -> None:
    """A tool or a prompt deep in sub-agents counts as if it were at the top."""
    inner = World(tools=["search"], prompts={"system": "Look."})
    before = World(agents={"a": World(agents={"b": inner})})
    more = World(
        agents={"a": World(agents={"b": World(tools=["search", "shell"], prompts=inner.prompts)})}
    )
    other = World(
        agents={"a": World(agents={"b": World(tools=["search"], prompts={"system": "Do."})})}
    )

    assert before.diff(more).lines() == ("+ agent a / agent b / tool shell",)
    assert before.diff(more).differs == {LeafClass.TOOLS}
    assert before.diff(other).lines() == ("~ agent a / agent b / prompt system Look. -> Do.",)
    assert before.diff(other).differs == {LeafClass.PROMPTS}
    assert World().diff(World(agents={"empty": World()})).differs == {LeafClass.TOPOLOGY}


def test_a_schema_cannot_be_kept_elsewhere() -> None:
    """A definition whose meaning lies on a server could change without changing."""
    with pytest.raises(WorldInvalid, match='tool "read_file": "inputSchema/\\$ref"'):
        Tool("read_file", {**_WIRE, "inputSchema": {"$ref": "https://x.example/schema.json"}})
