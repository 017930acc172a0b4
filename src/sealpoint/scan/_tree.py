# SPDX-License-Identifier: Apache-2.0
"""What a pickle says, as a tree of symbols: nothing of it was called, imported or built.

None, bool, int, float and str stand for themselves; all else is one of the classes below. A node
knows how many values it holds, counted wherever they are used, and how deep they are nested, so
that a small program for a huge tree is seen before anybody walks it. Nodes may be shared; a cycle
cannot be written. After `run_pickle` returned, nobody changes a node.
"""

from dataclasses import dataclass, field
from typing import TypeAlias, Union


@dataclass(frozen=True, slots=True)
class Global:
    """The name of something in a module, never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}"


class Node:
    """What holds other values."""

    __slots__ = ()
    nodes: int
    """How many values it is, itself included."""
    depth: int
    """How deep it is nested."""


@dataclass(slots=True, eq=False)
class Tuple(Node):
    """A tuple."""

    values: tuple["Value", ...]
    nodes: int
    depth: int


@dataclass(slots=True, eq=False)
class List(Node):
    """A list."""

    values: list["Value"] = field(default_factory=list)
    nodes: int = 1
    depth: int = 1
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Dict(Node):
    """A dict, as the pairs that are put into it one after the other."""

    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    nodes: int = 1
    depth: int = 1
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """The call of a named function, then pairs put into the result, then a state set on it."""

    function: Global
    arguments: Tuple
    nodes: int
    depth: int
    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    state: Union["Value", None] = None
    built: bool = False
    sealed: bool = False


@dataclass(slots=True, eq=False)
class New(Node):
    """An instance of a named class made without its `__init__`, then as for a call."""

    function: Global
    arguments: Tuple
    nodes: int
    depth: int
    pairs: list[tuple["Value", "Value"]] = field(default_factory=list)
    state: Union["Value", None] = None
    built: bool = False
    sealed: bool = False


@dataclass(slots=True, eq=False)
class Persistent(Node):
    """A reference to something beside the pickle: in a `.pt` file, a storage."""

    identity: "Value"
    nodes: int
    depth: int


Value: TypeAlias = (
    bool | int | float | str | Global | Tuple | List | Dict | Call | New | Persistent | None
)
