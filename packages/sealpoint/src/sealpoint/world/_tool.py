# SPDX-License-Identifier: Apache-2.0
"""A tool: its complete description for the model, and the command or URL behind it.

The whole definition counts, not only the name and the parameters: a changed description can make a
model use the same tool differently. A definition that refers to another document is refused,
because that document could change unnoticed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sealpoint.errors import WorldInvalid
from sealpoint.world._json import (
    JSON,
    decode_json,
    encode_json,
    freeze,
    name_text,
    plain_object,
    shown,
)

_REFERENCES = frozenset({"$dynamicRef", "$recursiveRef", "$ref"})
_OWN_FIELDS = frozenset({"launch", "name"})
_TRIPLE = 3


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool that a run can use.

    Args:
        name: The name by which the run calls it.
        definition: The complete object that describes it on the wire. A `name` in it that equals
            the tool's name is left out, since it adds nothing.
        launch: The program or endpoint of a remote tool: the command, or the origin of the URL;
            never a name that the remote side gives itself.

    Raises:
        WorldInvalid: A field is not of this form, or the definition refers to another document.
    """

    name: str
    definition: Mapping[str, JSON] = field(default_factory=dict)
    launch: str | None = None
    encoded: bytes = field(init=False, repr=False)
    """The tool as JSON, in its one spelling."""
    depth: int = field(init=False, repr=False)
    """The nesting depth of lists and objects in that JSON."""

    def __post_init__(self) -> None:
        path = f"tool {shown(name_text(self.name, 'tool: its name'))}"
        definition, depth = plain_object(self.definition, path)
        if definition.get("name") == self.name:
            del definition["name"]
        _check_references(definition, path, "")
        if self.launch is not None:
            name_text(self.launch, f"{path}: launch")
        form = _form(self.name, definition, self.launch)
        object.__setattr__(self, "definition", freeze(definition))
        object.__setattr__(self, "encoded", encode_json(form))
        object.__setattr__(self, "depth", depth + isinstance(form, list))

    def to_json(self) -> dict[str, Any] | list[Any]:
        """Return the tool as plain JSON.

        This is an object: the definition with `name` and `launch`. If the definition already has
        one of these two, it is a list of name, definition and launch.
        """
        made: dict[str, Any] | list[Any] = decode_json(self.encoded)
        return made

    def __eq__(self, other: object) -> bool:
        # Compare bytes: Python treats 1, 1.0 and True as equal.
        return self.encoded == other.encoded if isinstance(other, Tool) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.encoded)


def _form(name: str, definition: dict[str, Any], launch: str | None) -> dict[str, Any] | list[Any]:
    if _OWN_FIELDS & definition.keys():
        return [name, definition, launch]
    started = {} if launch is None else {"launch": launch}
    return {"name": name, **started, **definition}


def tool_fields(value: Any) -> list[Any]:
    """Return name, definition and launch from either form of `Tool.to_json`."""
    if isinstance(value, list):
        return value
    definition = {key: item for key, item in value.items() if key not in _OWN_FIELDS}
    return [value["name"], definition, value.get("launch")]


def read_tools(value: Any, path: str) -> tuple[Tool, ...]:
    """Read tools in any of their forms, sorted by name.

    Raises:
        WorldInvalid: A tool is in none of the forms, or two have one name.
    """
    if isinstance(value, Mapping):
        tools = [
            Tool(name_text(name, f"{path}: the name of a tool"), item)
            for name, item in value.items()
        ]
    elif isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise WorldInvalid(f"{path}: expected a list of tools, found {type(value).__name__}")
    else:
        tools = [_read_tool(item, f"{path}[{place}]") for place, item in enumerate(value)]
    tools.sort(key=lambda tool: tool.name)
    for one, other in pairwise(tools):
        if one.name == other.name:
            raise WorldInvalid(f"{path}: expected each tool once, found {shown(one.name)} twice")
    return tuple(tools)


def _read_tool(item: Any, path: str) -> Tool:
    if isinstance(item, Tool):
        return item
    if isinstance(item, str):
        return Tool(name_text(item, path))
    if isinstance(item, list | tuple) and len(item) == _TRIPLE:
        name, definition, launch = item
        return Tool(name_text(name, f"{path}[0]"), definition, launch)
    if not isinstance(item, Mapping):
        raise WorldInvalid(
            f"{path}: expected a name, or an object with a name, found {type(item).__name__}"
        )
    data = dict(item)
    if "name" not in data:
        raise WorldInvalid(f"{path}: the object has no name")
    name = name_text(data.pop("name"), f'{path}["name"]')
    return Tool(name, launch=data.pop("launch", None), definition=data)


def _check_references(value: Any, path: str, pointer: str) -> None:
    """Refuse a schema that refers to another document, which could change unnoticed."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            _check_references(item, path, f"{pointer}{place}/")
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _REFERENCES and isinstance(item, str) and not item.startswith("#"):
                raise WorldInvalid(
                    f"{path}: {shown(pointer + key)}: expected a reference within the definition, "
                    'which starts with "#", found a remote one',
                    hint="Put what it refers to into the definition, under $defs.",
                )
            _check_references(item, path, f"{pointer}{key}/")
