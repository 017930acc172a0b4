# SPDX-License-Identifier: Apache-2.0
"""The content of a pickle, as symbols: names without a lookup, and calls without a call.

None, bool, int, float, str and byte strings stand for themselves; every other value is one of the
classes below. After the machine that created them has returned, nothing changes them, except the
field `gives` of a call. Values may contain themselves, where a pickle says so.

An `Inert` replaces a name that is in no table: nothing looks it up or calls it.

`measure` bounds the number of values in a tree, each counted wherever it is used, and their
nesting: a small program for a huge tree is detected before anything walks it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias, Union


class Global(NamedTuple):
    """The name of something in a module, never looked up.

    Without a module it is not a name that Python could import: the callee is on the stack, or in a
    table of numbers that only the writing process had.
    """

    module: str
    name: str

    def __str__(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}" if self.module else self.name


_NO_ITEMS: Any = ()
"""Most objects hold none: no list for it."""


class Node:
    """A symbol that holds other values."""

    __slots__ = ("depth", "nodes")
    nodes: int
    """The number of its values, itself included: 0 until it is measured."""
    depth: int
    """Its nesting depth."""

    def held(self) -> Iterable["Value"]:
        """The values in it."""
        raise NotImplementedError


class Tuple(Node):
    """A tuple."""

    __slots__ = ("values",)
    __match_args__ = ("values",)

    def __init__(self, values: tuple["Value", ...] = ()) -> None:
        self.nodes = self.depth = 0
        self.values = values

    def held(self) -> Iterable["Value"]:
        """The values in it."""
        return self.values


EMPTY_TUPLE = Tuple()
"""The shared empty tuple: nothing is ever put into a tuple."""
EMPTY_TUPLE.nodes = EMPTY_TUPLE.depth = 1


class List(Node):
    """A list."""

    __slots__ = ("grown_at", "values")
    __match_args__ = ("values",)

    def __init__(self, values: list["Value"] | None = None) -> None:
        self.nodes = self.depth = 0
        self.grown_at = 0
        """The position after the last step that put something into it."""
        self.values: list[Value] = _NO_ITEMS if values is None else values

    def held(self) -> Iterable["Value"]:
        """The values in it."""
        return self.values


class Set(Node):
    """A set, as its members in order of insertion, or a frozenset."""

    __slots__ = ("frozen", "values")

    def __init__(self, values: list["Value"] | None = None, *, frozen: bool = False) -> None:
        self.nodes = self.depth = 0
        self.values: list[Value] = _NO_ITEMS if values is None else values
        self.frozen = frozen

    def held(self) -> Iterable["Value"]:
        """The values in it."""
        return self.values


class Dict(Node):
    """A dict, as its pairs in order of insertion."""

    __slots__ = ("grown_at", "pairs")
    __match_args__ = ("pairs",)

    def __init__(self, pairs: list[tuple["Value", "Value"]] | None = None) -> None:
        self.nodes = self.depth = 0
        self.grown_at = 0
        """The position after the last step that put something into it."""
        self.pairs: list[tuple[Value, Value]] = _NO_ITEMS if pairs is None else pairs

    def held(self) -> Iterable["Value"]:
        """The keys and values in it."""
        return chain.from_iterable(self.pairs)


class Made:
    """The result of a name with arguments; then items put into it, then a state set on it."""

    __slots__ = (
        *(
            "arguments",
            "at",
            "built",
            "built_at",
            "depth",
            "function",
            "gives",
            "keywords",
            "nodes",
            "pairs",
        ),
        *("receiver", "state", "values"),
    )

    def __init__(
        self,
        function: Global,
        arguments: Tuple,
        receiver: Union["Value", None] = None,
        keywords: Union["Value", None] = None,
        at: int = 0,
    ) -> None:
        self.nodes = self.depth = 0
        self.function = function
        self.arguments = arguments
        self.receiver = receiver
        """The callee, where it is a value and not a name."""
        self.keywords = keywords
        """Arguments by name."""
        self.at = at
        """The byte after the call in the pickle."""
        self.pairs: list[tuple[Value, Value]] = _NO_ITEMS
        self.values: list[Value] = _NO_ITEMS
        self.state: Value = None
        self.gives: Persistent | None = None
        """Its result, if the reader of the surrounding file has determined it."""
        self.built = False
        self.built_at = 0

    @property
    def bare(self) -> bool:
        """Whether the result has no items and no state, and the call no arguments by name."""
        return not (self.pairs or self.values or self.built or self.keywords is not None)

    def held(self) -> Iterable["Value"]:
        """All its arguments, items and states."""
        given = (self.function, self.arguments)
        if self.bare and self.receiver is None:
            return given
        rest = (self.receiver, self.keywords, self.state)
        return chain(given, chain.from_iterable(self.pairs), self.values, rest)


class Call(Made):
    """The result of a call."""

    __slots__ = ()


class New(Made):
    """An instance of a class, made without its `__init__`."""

    __slots__ = ()


class Persistent(Node):
    """A reference out of the pickle: in a `.pt` file, a storage."""

    __slots__ = ("identity",)
    __match_args__ = ("identity",)

    def __init__(self, identity: "Value") -> None:
        self.nodes = self.depth = 0
        self.identity = identity

    def held(self) -> Iterable["Value"]:
        """The value of the reference."""
        return (self.identity,)


Scalar: TypeAlias = bool | int | float | str | bytes | bytearray | None
SCALAR_TYPES = frozenset({bool, int, float, str, bytes, bytearray, type(None)})
LEAF_TYPES = SCALAR_TYPES | {Global}
"""The types that hold no other values."""
Value: TypeAlias = Scalar | Global | Tuple | List | Set | Dict | Call | New | Persistent


Reading: TypeAlias = Callable[[Made, Callable[[Value], Any]], Any]
"""Returns the meaning of a call of one name, with a function for the meaning of any symbol."""


@dataclass(slots=True)
class Mentions:
    """Names and calls with their positions, up to the end or the fault of a pickle."""

    names: dict[Global, int] = field(default_factory=dict)
    """The byte of the first mention of each name, in order."""
    called: list[Global] = field(default_factory=list)
    called_at: list[int] = field(default_factory=list)
    recalled_at: int | None = None
    """The byte of the first name whose text is not right before it: it may come from the memo, and
    a reader with another memo reads another name.
    """

    @property
    def calls(self) -> list[tuple[Global, int]]:
        """Each call with its byte, in order, also if its result is dropped."""
        return list(zip(self.called, self.called_at, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The content of one pickle."""

    value: Value
    """The one value that it leaves."""
    end: int
    """The byte after it; more pickles may follow."""
    mentions: Mentions
    acts: tuple[Value, ...] = ()
    """Every call and every reference that it makes, used or not, and the tables that it drops: an
    unpickler executes all of it, even if the results are dropped.
    """
    texts: Sequence[str | bytes | bytearray] = ()
    """Every text and byte string of it, used or not."""
    made: Sequence["Call | New | Persistent | Dict | Set"] = ()
    """All calls, references and tables, in order."""

    @property
    def names(self) -> Mapping[Global, int]:
        """Every name with the byte of its first mention, in order, used or not."""
        return self.mentions.names

    @property
    def calls(self) -> Sequence[tuple[Global, int]]:
        """Every call with its byte, in order, used or not."""
        return self.mentions.calls


_OPEN = -1


def _is_flat(node: Any) -> bool:
    """Whether an object holds only leaves, as most do: then it is measured at once.

    A call counts as flat if its arguments are.
    """
    kind = type(node)
    if kind in _SEQUENCES:
        if not LEAF_TYPES.issuperset(map(type, node.values)):
            return False
        node.nodes, node.depth = 1 + len(node.values), 1
    elif kind is Dict:
        if not LEAF_TYPES.issuperset(map(type, node.held())):
            return False
        node.nodes, node.depth = 1 + 2 * len(node.pairs), 1
    else:
        if kind is Persistent or not node.bare or node.receiver is not None:
            return False
        arguments = node.arguments
        if arguments.nodes <= 0 and (arguments.nodes == _OPEN or not _is_flat(arguments)):
            return False
        node.nodes, node.depth = 2 + arguments.nodes, 1 + arguments.depth
    return True


_SEQUENCES = frozenset({Tuple, List, Set})
"""The types whose values are all that they hold."""


def measure(value: Value, nodes_max: int, depth_max: int) -> str | None:
    """Count a tree, each value wherever it is used; a value inside itself counts once there.

    Returns:
        Why it is too large, or None; then every node has its count and depth.
    """
    if not isinstance(value, Node | Made) or value.nodes:
        return None
    path: list[tuple[Node | Made, Iterator[Any]]] = [(value, iter(value.held()))]
    value.nodes, value.depth = _OPEN, 1
    counts, deepest = [0, 1], [0, 0]  # of what is around the value, too
    while path:
        node, rest = path[-1]
        for part in rest:
            if type(part) in LEAF_TYPES or part.nodes == _OPEN:
                counts[-1] += 1
            elif part.nodes or _is_flat(part):
                counts[-1] += part.nodes
                deepest[-1] = max(deepest[-1], part.depth)
            else:
                if len(path) >= depth_max:
                    return f"its values are nested more than {depth_max} deep"
                part.nodes = _OPEN
                path.append((part, iter(part.held())))
                counts.append(1)
                deepest.append(0)
                break
        else:
            path.pop()
            node.nodes, node.depth = counts.pop(), deepest.pop() + 1
            counts[-1] += node.nodes
            deepest[-1] = max(deepest[-1], node.depth)
            if node.nodes > nodes_max:
                return f"it has more than {nodes_max} values, each counted where it is used"
            if node.depth > depth_max:
                return f"its values are nested more than {depth_max} deep"
    return None


_SHOWN_CHARS = 80


class Inert:
    """Something that a file names and no code built.

    Two of them are equal only if they are the same object, so that none has to be compared in depth
    to be a key. They may contain themselves, like objects with a link to their parent.
    """

    __slots__ = ("arguments", "items", "keywords", "made", "pairs", "state", "type")

    def __init__(
        self,
        type: str,  # noqa: A002 (what it is: the word that readers look for)
        *,
        made: Literal["name", "call", "object"] = "name",
        arguments: tuple[Any, ...] = (),
        keywords: Any = None,
        state: Any = None,
        items: list[Any] | None = None,
        pairs: list[tuple[Any, Any]] | None = None,
    ) -> None:
        """Make one.

        Args:
            type: The dotted name, as the file has it.
            made: The operation in the file: nothing (a `"name"`), a `"call"`, or an `"object"` of a
                class without its `__init__`.
            arguments: Its arguments.
            keywords: Arguments by name, a dict.
            state: The state for the result, most often a dict of its attributes.
            items: The items that would have been appended to the result.
            pairs: Keys and values that would have been put into it.
        """
        self.type = type
        self.made = made
        self.arguments = arguments
        self.keywords = keywords
        self.state = state
        self.items: list[Any] = [] if items is None else items
        self.pairs: list[tuple[Any, Any]] = [] if pairs is None else pairs

    def __repr__(self) -> str:
        """The name, and the size of each part; never more than a line."""
        parts = [ascii(self.type[:_SHOWN_CHARS])]
        if self.made != "name":
            parts.append(f"made={self.made!r}")
        for name in ("arguments", "items", "pairs"):
            count = len(getattr(self, name))
            if count:
                parts.append(f"{name}=<{count}>")
        if self.keywords is not None:
            parts.append("keywords=<...>")
        if isinstance(self.state, dict):
            shown = ", ".join(ascii(str(key)[:20]) for key in list(self.state)[:3])
            more = ", ..." if len(self.state) > 3 else ""
            parts.append(f"state={{{shown}{more}}}")
        elif self.state is not None:
            parts.append(f"state=<{type(self.state).__name__}>")
        return f"Inert({', '.join(parts)})"
