# SPDX-License-Identifier: Apache-2.0
"""A world is read strictly, cannot be changed, and has one encoding within its bounds."""

import copy
import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from sealpoint.errors import WorldInvalid
from sealpoint.limits import AGENT_LEVELS_MAX, JSON_DEPTH_MAX, WORLD_BYTES_MAX
from sealpoint.world import Code, Tool, World
from tests.unit.world.samples import FULL, full


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _agents(levels: int) -> World:
    world = World()
    for _ in range(levels):
        world = World(agents={"a": world})
    return world


def test_a_world_by_hand_is_the_world_from_a_dict() -> None:
    """The two ways to build a world lead to the same."""
    by_hand = World(
        code=Code("1.4.0", {"app.tools": "ab" * 32}, "cd" * 20),
        tools=[
            Tool("search", {"description": "Looks for it."}, "https://tools.example"),
            Tool("read_file", {"inputSchema": {"properties": {"path": {"type": "string"}}}}),
        ],
        permissions={"net", "fs:read"},
        model={"temperature": 0.5, "name": "m-1"},
        prompts={"system": "Be exact."},
        agents={"researcher": World(tools=["browse"], prompts={"system": "Look."})},
        topology={"edges": {"start -> work": True}},
        runtime={"python": "3.11", "langgraph": "1.2.0"},
        extra={"region": "eu"},
    )

    assert by_hand == full()
    assert by_hand.to_dict() == FULL
    assert World.of(FULL) == by_hand
    assert World.of(by_hand) is by_hand
    assert World.of(None) is None


def test_the_encoding_is_json_in_order() -> None:
    """The bytes of a small world, exactly, and its digest."""
    world = World.from_dict(
        {"tools": ["b", {"name": "a", "x": [1, 1.5, None]}], "é\n": {"b": 1, "a": True}}
    )
    expected = '{"tools":[{"name":"a","x":[1,1.5,null]},{"name":"b"}],"é\\n":{"a":true,"b":1}}'

    assert world.encode() == expected.encode()
    assert world.digest == hashlib.sha256(world.encode()).hexdigest()
    assert World().encode() == b"{}"


def test_numbers_and_texts_have_one_spelling() -> None:
    """The spelling of numbers and escapes that the format promises, whoever encodes them."""
    numbers = [1e16, 1.5e-6, 1e15, 1e-5, 0.1, -0.0, 1.0, 1, 5e-324, 2**64 - 1, -(2**63)]
    world = World(extra={"n": numbers, "t": '\b\t\n\f\r\x0b\x1f\x7f"\\/\u2028'})

    assert world.encode().decode() == (
        '{"n":[1e16,1.5e-6,1000000000000000.0,0.00001,0.1,-0.0,1.0,1,5e-324,'
        "18446744073709551615,-9223372036854775808],"
        '"t":"\\b\\t\\n\\f\\r\\u000b\\u001f\x7f\\"\\\\/\u2028"}'
    )


def test_what_says_nothing_is_left_out() -> None:
    """Empty parts make no difference, so that no difference goes without a leaf."""
    empty = World.from_dict(
        {"code": {}, "tools": [], "permissions": [], "model": {}, "prompts": {}, "agents": {}}
    )

    assert empty == World() == World(code=Code(), model={}) == World.from_dict({"code": None})
    assert empty.code is None
    assert empty.model is None


def test_the_three_forms_of_tools_are_one() -> None:
    """Tools as names, as objects and by name are the same tools; a wire object says its name."""
    assert World.from_dict({"tools": ["a"]}) == World.from_dict({"tools": {"a": {}}})
    assert World.from_dict({"tools": [{"name": "a", "x": 1}]}) == World(tools=[Tool("a", {"x": 1})])
    assert World.from_dict({"tools": {"a": {"name": "a", "x": 1}}}) == World(
        tools=[{"name": "a", "x": 1}]
    )


@pytest.mark.parametrize(
    "definition",
    [{"name": "b"}, {"launch": "c"}, {"launch": None}, {"name": 1, "launch": {}}],
    ids=repr,
)
def test_a_definition_may_have_fields_of_our_names(definition: dict[str, Any]) -> None:
    """A `name` or `launch` that the other side wrote is never taken for ours."""
    world = World(tools=[Tool("a", definition)])
    ours = World(tools=[Tool("a", {}, "c")])

    assert World.decode(world.encode()) == world
    assert World.from_dict(world.to_dict()).tools[0].definition == definition
    assert World.from_dict(world.to_dict()).tools[0].launch is None
    assert world != ours
    assert not world.diff(ours).same
    assert world.diff(ours).changed[0].parts


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (None, "world: expected an object, found NoneType"),
        ([], "world: expected an object, found list"),
        ({1: 2}, "world: expected keys that are text, found int"),
        ({"": 2}, "extra: expected names that are text, found an empty one"),
        ({"code": "1.0"}, "code: expected an object, found str"),
        (
            {"code": {"release": "1"}},
            'code: expected the fields application, modules, .*, found "release"',
        ),
        ({"code": {"version": 1}}, "code.version: expected text, found int"),
        ({"code": {"revision": ""}}, "code.revision: expected text, found an empty one"),
        ({"code": {"modules": []}}, "code.modules: expected an object, found list"),
        ({"code": {"modules": {"a": "AB" * 32}}}, r'code.modules\["a"\]: expected a SHA-256'),
        ({"code": {"modules": {"a": 1}}}, r'code.modules\["a"\]: expected a SHA-256'),
        ({"code": {"modules": {"": "ab" * 32}}}, "code.modules: expected names"),
        ({"code": {"modules": {"a": {}}}}, r'code.modules\["a"\]: expected a SHA-256'),
        ({"code": {"modules": {"a": {"f": "ab" * 6}}}}, r'code.modules\["a"\]: expected a SHA-256'),
        (
            {"code": {"application": {"a": {"": "ab" * 32, "f": "ab" * 5}}}},
            r'code.application\["a"\]: expected a SHA-256 .* or 12 or more of them for "?f',
        ),
        ({"tools": "read"}, "tools: expected a list of tools, found str"),
        ({"tools": 1}, "tools: expected a list of tools, found int"),
        ({"tools": [1]}, r"tools\[0\]: expected a name, or an object with a name, found int"),
        ({"tools": [["a", {}]]}, r"tools\[0\]: expected a name, .* found list"),
        ({"tools": [["a", [], None]]}, 'tool "a": expected an object, found list'),
        ({"tools": [[1, {}, None]]}, r"tools\[0\]\[0\]: expected text, found int"),
        ({"tools": ["a", {}]}, r"tools\[1\]: the object has no name"),
        ({"tools": [{"name": ""}]}, r'tools\[0\]\["name"\]: expected text, found an empty'),
        ({"tools": [{"name": "a", "launch": 1}]}, 'tool "a": launch: expected text, found int'),
        ({"tools": {"a": 1}}, 'tool "a": expected an object, found int'),
        ({"tools": {"": {}}}, "tools: the name of a tool: expected text, found an empty one"),
        ({"tools": ["a", "b", {"name": "a"}]}, 'tools: expected each tool once, found "a" twice'),
        ({"permissions": "net"}, "permissions: expected a list of texts, found str"),
        ({"permissions": {"net": True}}, "permissions: expected a list of texts, found dict"),
        ({"permissions": None}, "permissions: expected a list of texts, found NoneType"),
        ({"permissions": ["a", 1]}, r"permissions\[1\]: expected text, found int"),
        ({"permissions": ["a", "a"]}, 'permissions: expected each once, found "a" twice'),
        ({"model": "m-1"}, "model: expected an object, found str"),
        ({"prompts": ["x"]}, "prompts: expected an object, found list"),
        ({"prompts": {"a": 1}}, r'prompts\["a"\]: expected text, found int'),
        ({"topology": []}, "topology: expected an object, found list"),
        ({"topology": {"": 1}}, "topology: expected names that are text, found an empty one"),
        ({"runtime": "3.11"}, "runtime: expected an object, found str"),
        ({"runtime": {"python": 3}}, r'runtime\["python"\]: expected text, found int'),
        ({"runtime": {"python": ""}}, r'runtime\["python"\]: expected text, found an empty one'),
        ({"agents": []}, "agents: expected an object, found list"),
        ({"agents": {"": {}}}, "agents: the name of one: expected text, found an empty one"),
        ({"agents": {"a": None}}, 'agent "a": there is no world'),
        ({"agents": {"a": {"agents": {"b": {"tools": 1}}}}}, 'agent "a": agent "b": tools: '),
        ({"x": {"y": [float("nan")]}}, r'world\["x"\]\["y"\]\[0\]: .*not finite'),
        ({"x": float("-inf")}, "not finite"),
        ({"x": 2**64}, r'world\["x"\]: expected a JSON value, found an integer beyond 64 bits'),
        ({"x": -(2**63) - 1}, "beyond 64 bits"),
        ({"x": "\ud800"}, r'world\["x"\]: expected text without lone surrogates'),
        ({"\udfff": 1}, r"lone surrogates"),
        ({"x": {1, 2}}, r'world\["x"\]: expected a JSON value, found set'),
        ({"x": b"1"}, "found bytes"),
    ],
    ids=lambda value: repr(value)[:40] if not isinstance(value, str) else "",
)
def test_another_form_is_refused(mapping: Any, message: str) -> None:
    """What is wrong is named with its path, what was expected and what was found."""
    with pytest.raises(WorldInvalid, match=message):
        World.from_dict(mapping)


def test_an_extra_part_never_stands_for_a_known_one() -> None:
    """A key that `from_dict` would read as something else is refused in `extra`."""
    for name in (*FULL.keys() - {"region"},):
        with pytest.raises(WorldInvalid, match=f'extra: expected names of its own, found "{name}"'):
            World(extra={name: []})


def test_messages_never_hold_big_or_hidden_values() -> None:
    """A long or misleading name is cut and made visible before it comes into a message."""
    with pytest.raises(WorldInvalid) as caught:
        World.from_dict({"x" * 10_000 + "\u202e": {"\u202egnp": object()}})

    assert len(caught.value.message) < 400
    assert "\\u{202e}gnp" in str(caught.value)
    assert "\u202e" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{} ",
        b" {}",
        b"\xef\xbb\xbf{}",
        b'{"b":1,"a":1}',
        b'{"a":1,"a":1}',
        b'{"a": 1}',
        b'{"a":1e0}',
        b'{"a":1.50}',
        b'{"a":-0}',
        b'{"a":"\\u0061"}',
        b'{"a":"\\/"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b'{"a":NaN}',
        b'{"a":123456789012345678901234567890}',
        b'{"a":' + b"9" * 10_000 + b"}",
        b'{"tools":["a"]}',
        b'{"tools":{"a":{}}}',
        b'{"tools":[["a",{},null]]}',
        b'{"tools":[{"name":"b"},{"name":"a"}]}',
        b'{"permissions":["b","a"]}',
        b'{"permissions":[]}',
        b'{"code":{}}',
        b'{"model":null}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b" " * (WORLD_BYTES_MAX + 1),
    ],
    ids=lambda data: repr(data[:30]),
)
def test_other_bytes_than_the_encoding_are_refused(data: bytes) -> None:
    """Bytes that are no world, or a world in another spelling, are never read."""
    with pytest.raises(WorldInvalid):
        World.decode(data)


def test_size_is_bounded() -> None:
    """A world of the greatest size is read; one more byte is refused, in every way in."""
    text = "x" * (WORLD_BYTES_MAX - len('{"a":""}'))
    largest = World(extra={"a": text})

    assert World.decode(largest.encode()) == largest
    for refused in ({"a": text + "x"}, {"a": "\n" * (WORLD_BYTES_MAX // 2)}):
        with pytest.raises(WorldInvalid, match="at most 524288 bytes"):
            World(extra=refused)
    with pytest.raises(WorldInvalid, match="at most 524288 bytes"):
        World(tools=[Tool(name, {"a": text[:300_000]}) for name in "ab"])
    with pytest.raises(WorldInvalid, match=r"permissions\[0\]: expected text without lone"):
        World(permissions=["\ud800"])
    with pytest.raises(WorldInvalid, match="at most 524288 characters"):
        World(permissions=["x" * (WORLD_BYTES_MAX + 1)])


def test_what_holds_itself_or_repeats_itself_ends() -> None:
    """A mapping in itself, and one that is small only because it is shared, are refused soon."""
    endless: dict[str, Any] = {}
    endless["agents"] = {"a": endless}
    laughs: Any = "ha"
    for _ in range(30):
        laughs = [laughs] * 10

    with pytest.raises(WorldInvalid, match="lists and objects in one another"):
        World.from_dict(endless)
    with pytest.raises(WorldInvalid, match="bytes"):
        World.from_dict({"a": laughs})
    with pytest.raises(WorldInvalid, match="bytes"):
        Tool("a", {"a": laughs})


def test_depth_is_bounded_as_a_whole() -> None:
    """The greatest depth is read; one more is refused, wherever in the world it lies."""
    builds: list[Callable[[int], World]] = [
        lambda levels: World(extra={"a": _nested(levels - 1)}),
        lambda levels: World(model={"a": _nested(levels - 2)}),
        lambda levels: World(topology={"a": _nested(levels - 2)}),
        lambda levels: World(tools=[Tool("a", {"b": _nested(levels - 3)})]),
        lambda levels: World(tools=[Tool("a", {"name": _nested(levels - 4)})]),
        lambda levels: World(agents={"a": World(extra={"b": _nested(levels - 3)})}),
    ]
    for build in builds:
        deepest = build(JSON_DEPTH_MAX)

        assert World.decode(deepest.encode()) == deepest
        assert World.from_dict(deepest.to_dict()) == deepest
        with pytest.raises(WorldInvalid, match="more than 32 lists and objects in one another"):
            build(JSON_DEPTH_MAX + 1)


def test_sub_agents_are_bounded() -> None:
    """Sub-agents may be nested eight times and no more."""
    deepest = _agents(AGENT_LEVELS_MAX)

    assert World.decode(deepest.encode()) == deepest
    with pytest.raises(WorldInvalid, match="agents: they are nested more than 8 deep"):
        World(agents={"a": deepest})
    with pytest.raises(WorldInvalid, match="agents: they are nested more than 8 deep"):
        World.from_dict({"agents": {"a": deepest.to_dict()}})


def test_a_world_cannot_be_changed() -> None:
    """Neither through its attributes, nor through what it was made of, nor what it gave out."""
    source = copy.deepcopy(FULL)
    world = World.from_dict(source)
    before = world.encode()
    source["tools"][0]["inputSchema"]["properties"]["shell"] = {}
    world.to_dict()["permissions"].append("all")
    world.leaves()["tool.read_file"]["inputSchema"].clear()

    assert world.encode() == before == World.from_dict(world.to_dict()).encode()
    with pytest.raises(dataclasses.FrozenInstanceError):
        world.tools = ()  # type: ignore[misc]
    for mapping in (world.extra, world.agents, world.prompts, world.tools[0].definition):
        with pytest.raises(TypeError, match="item assignment"):
            mapping["x"] = "y"  # type: ignore[index]
    assert copy.deepcopy(world) is world is copy.copy(world)


def test_parts_are_values() -> None:
    """Code, tools and worlds are equal by what they say, of one type each, and can be in sets."""
    assert Tool("a", {"x": 1}) != Tool("a", {"x": True})
    assert Tool("a", {"x": 1}) != Tool("a", {"x": 1.0})
    assert World(extra={"x": 0.0}) != World(extra={"x": -0.0})
    assert {Tool("a"), Tool("a", {"name": "a"})} == {Tool("a")}
    assert {Code("1"), Code("1", {})} == {Code("1")}
    assert len({World(), World(permissions=["a"]), World(permissions=("a",))}) == 2
    for part in (Tool("a"), Code("1"), World()):
        assert part != "a"
    assert repr(full()) == f"<World {full().digest[:12]}: 2 tools, 1 agents>"


def test_names_are_never_normalised() -> None:
    """Two spellings of one letter are two tools, two permissions and two sub-agents."""
    one, other = "é", "e\u0301"
    world = World(tools=[one, other], permissions=[one, other], agents={one: World()})

    assert len(world.tools) == len(world.permissions) == 2
    assert not world.diff(World(tools=[one, other], permissions=[one, other])).same
    assert World(agents={one: World()}).diff(World(agents={other: World()})).differs
