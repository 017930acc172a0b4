# SPDX-License-Identifier: Apache-2.0
"""A tool's definition is whole: it refers to nothing outside of itself."""

from typing import Any

import pytest

from sealpoint.errors import WorldInvalid
from sealpoint.world import Tool, World


def _schema(at: str, value: Any) -> dict[str, Any]:
    return {"inputSchema": {"properties": {"x": {"anyOf": [{"type": "null"}, {at: value}]}}}}


@pytest.mark.parametrize("at", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize(
    "reference",
    ["https://x.example/s.json", "other.json#/a", "//x.example", "file:///etc", "", " #", "\t#"],
)
def test_a_remote_reference_is_refused(at: str, reference: str) -> None:
    """The message names the tool and the path, in every form in which a tool is given."""
    expected = rf'tool "search": "inputSchema/properties/x/anyOf/1/\{at}": expected a reference'
    definition = _schema(at, reference)

    for given in ({"search": definition}, [{"name": "search", **definition}]):
        with pytest.raises(WorldInvalid, match=expected):
            World.from_dict({"tools": given})
        with pytest.raises(WorldInvalid, match=f'agent "a": {expected}'):
            World.from_dict({"agents": {"a": {"tools": given}}})


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("$ref", "#"),
        ("$ref", "#/$defs/a"),
        ("$dynamicRef", "#node"),
        ("$recursiveRef", "#"),
        ("$id", "https://x.example/s.json"),
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("$ref", {"type": "string"}),
        ("ref", "https://x.example/s.json"),
    ],
)
def test_what_is_no_remote_reference_passes(at: str, value: Any) -> None:
    """References within the definition, names of schemas, and a property called `$ref` are fine."""
    tool = Tool("search", _schema(at, value))

    assert Tool("search", tool.definition) == tool


def test_a_reference_beneath_a_property_called_ref_is_found() -> None:
    """A property with the name of a keyword hides nothing below it."""
    with pytest.raises(WorldInvalid, match=r"\$ref/\$ref"):
        Tool("search", _schema("$ref", {"$ref": "https://x.example"}))


def test_both_forms_of_a_tool_are_plain_json() -> None:
    """The short form for most tools; the long one where the definition has our field names."""
    assert Tool("a", {"x": (1, 2)}, "npx a").to_json() == {
        "name": "a",
        "launch": "npx a",
        "x": [1, 2],
    }
    assert Tool("a", {"name": "b"}, "npx a").to_json() == ["a", {"name": "b"}, "npx a"]
