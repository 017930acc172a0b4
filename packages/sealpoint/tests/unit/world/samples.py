# SPDX-License-Identifier: Apache-2.0
"""A world with everything in it, and strategies for worlds that are often alike."""

from typing import Any

from hypothesis import strategies as st

from sealpoint.world import Code, Tool, World

FULL: dict[str, Any] = {
    "code": {"version": "1.4.0", "modules": {"app.tools": "ab" * 32}, "revision": "cd" * 20},
    "tools": [
        {"name": "read_file", "inputSchema": {"properties": {"path": {"type": "string"}}}},
        {"name": "search", "launch": "https://tools.example", "description": "Looks for it."},
    ],
    "permissions": ["fs:read", "net"],
    "model": {"name": "m-1", "temperature": 0.5},
    "prompts": {"system": "Be exact."},
    "agents": {"researcher": {"tools": [{"name": "browse"}], "prompts": {"system": "Look."}}},
    "topology": {"edges": {"start -> work": True}},
    "runtime": {"langgraph": "1.2.0", "python": "3.11"},
    "region": "eu",
}

# Few names and values, so that two worlds often share some and differ in others.
NAMES = st.sampled_from(["a", "b", "a/b", "a.b", "tool.a", "\\u{61}", "\u202ea", "é", "e\u0301"])
_SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, 0.0, "", "x", 2**64 - 1, -(2**63)])
JSONS = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["", "a", "a/b", "~", "name", "launch", "$id"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["a", "b", "name", "launch", "inputSchema"]), JSONS, max_size=3
)
TOOLS = st.builds(
    Tool, NAMES, OBJECTS, st.sampled_from([None, "npx server", "https://tools.example"])
)
CODES = st.builds(
    Code,
    st.sampled_from([None, "1", "2"]),
    st.dictionaries(NAMES, st.sampled_from(["00" * 32, "ff" * 32]), max_size=2),
    st.sampled_from([None, "cd" * 20]),
)


def _worlds(agents: st.SearchStrategy[dict[str, World]]) -> st.SearchStrategy[World]:
    return st.builds(
        World,
        code=st.none() | CODES,
        tools=st.lists(TOOLS, max_size=3, unique_by=lambda tool: tool.name),
        permissions=st.lists(NAMES, max_size=3, unique=True),
        model=st.none() | st.dictionaries(NAMES, JSONS, max_size=2),
        prompts=st.dictionaries(NAMES, st.sampled_from(["", "x", "y"]), max_size=2),
        agents=agents,
        topology=st.dictionaries(NAMES, JSONS, max_size=2),
        runtime=st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=2),
        extra=st.dictionaries(NAMES, JSONS, max_size=2),
    )


_INNER = _worlds(st.just({}))
_MIDDLE = _worlds(st.dictionaries(NAMES, _INNER, max_size=1))
WORLDS = _worlds(st.dictionaries(NAMES, _INNER | _MIDDLE, max_size=2))


def full(**other: Any) -> World:
    """The full world, with other values for some keys."""
    return World.from_dict({**FULL, **other})
