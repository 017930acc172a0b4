# SPDX-License-Identifier: Apache-2.0
r"""A value as a tree that people browse, piece by piece, and search.

Every query is bounded: the number of nodes, the depth and the length of texts. The result counts
what it leaves out, and further queries return it: `children` for members, `text` for the rest of a
text. A value may be as wide, deep or long as a store allows; no query copies more of it than it
returns.

All texts are for people: invisible characters are written as `\u{202e}`. `path` names a node with
keys of the state. `at` names it without them, with numbers that lead to it from the root, so it can
be used in a URL or a log. Nothing below a masked value can be viewed, found or counted.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from sealpoint.errors import UsageError
from sealpoint.views.masking import MASKED, REVEALED, Masking
from sealpoint.views.values import (
    ValueParts,
    ValueShape,
    counted,
    parts_of,
    short_text,
    type_name,
    whole_text,
)
from sealpoint.views.words import count_text
from sealpoint.world import json_form, visible

__all__ = [
    "Branch",
    "Children",
    "SearchHit",
    "SearchHits",
    "StateTree",
    "TextPiece",
    "TreeNode",
    "TreePlace",
    "visible_lines",
]

_TEXT_CHARS = 200
_KEY_CHARS = 80
_PATH_CHARS_MAX = 4_000
_CHILDREN = 100
_CHILDREN_MAX = 1_000
_PIECE_CHARS = 100_000
_PIECE_CHARS_MAX = 1_000_000
_LOOK_DEPTH = 3
_LOOK_DEPTH_MAX = 20
_LOOK_BREADTH = 50
_LOOK_NODES_MAX = 2_000
_HITS = 50
_HITS_MAX = 500
_SEARCH_NODES_MAX = 100_000
_SEARCH_CHARS_MAX = 16 * 1024 * 1024
_WORD_CHARS_MAX = 200
_LEAF_CHARS = 10_000
_AROUND_CHARS = 60
_AT = re.compile(r"(?:0|[1-9][0-9]{0,9})(?:\.(?:0|[1-9][0-9]{0,9}))*")
_AT_CHARS_MAX = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """One value of a tree, in one line."""

    at: str
    """Its place, as numbers from the root: `0.3.12`; empty for the root."""
    path: str
    """Its place, for people: `state["plan"].steps[3]`."""
    label: str
    """The last step of the path."""
    type: str
    """The type in words: `dict, 3 keys`, `str, 12,000 characters`."""
    text: str
    """The value in about one line, with a count of the omitted rest."""
    whole: bool
    """Whether the text is complete."""
    children: int
    masked: bool

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return json_form(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """Some of the members of a node."""

    nodes: tuple[TreeNode, ...]
    offset: int
    total: int

    @property
    def left(self) -> int:
        """The number of members after these."""
        return self.total - self.offset - len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A node with some of the nodes below it."""

    node: TreeNode
    branches: tuple["Branch", ...]
    left: int
    """The number of omitted members; `StateTree.children` returns them from `len(branches)` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A piece of a long text, in lines, with unprintable characters made visible."""

    text: str
    offset: int
    """The number of characters of the text before it."""
    chars: int
    """The number of its characters in the original text; made visible they may be more."""
    total: int

    @property
    def left(self) -> int:
        """The number of characters after it."""
        return self.total - self.offset - self.chars


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A node that a search found."""

    node: TreeNode
    where: Literal["key", "text"]
    excerpt: str
    """The text around the match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """The result of a search, in the order of the tree."""

    hits: tuple[SearchHit, ...]
    complete: bool
    """Whether these are all: the search reached neither the limit of hits nor of visited nodes."""
    nodes: int
    """The number of visited nodes."""


@dataclass(frozen=True, slots=True)
class TreePlace:
    """A value, and its path."""

    value: Any
    """The value itself; `MASKED` if it is hidden."""
    key: Any
    """Its key, field name or position in its container; the name, for the root."""
    shape: ValueShape
    """The shape of its container."""
    above: "TreePlace | None" = None
    number: int = 0

    @property
    def label(self) -> str:
        """As `TreeNode.label`."""
        return str(self.key) if self.above is None else _step(self.shape, self.key)

    @property
    def name(self) -> Any:
        """Its key or field, if it has one."""
        named = self.shape in (ValueShape.MAPPING, ValueShape.RECORD)
        return self.key if named and self.above is not None else None

    def __iter__(self) -> Iterator["TreePlace"]:
        """Iterate from this place to the root."""
        place: TreePlace | None = self
        while place is not None:
            yield place
            place = place.above

    @property
    def at(self) -> str:
        """As `TreeNode.at`."""
        return ".".join(str(each.number) for each in reversed([*self][:-1]))

    @property
    def path(self) -> str:
        """As `TreeNode.path`; a very long path is cut in the middle."""
        whole = "".join(each.label for each in reversed([*self]))
        if len(whole) <= _PATH_CHARS_MAX:
            return whole
        start, end = whole[: _PATH_CHARS_MAX // 4], whole[-_PATH_CHARS_MAX // 2 :]
        return f"{start} ... {len(whole) - len(start) - len(end):,} characters ... {end}"


class StateTree:
    """A value to browse.

    Args:
        value: Any decoded value; it must not change during use.
        name: The name of the root in paths.
        masking: The names of hidden values.
    """

    def __init__(self, value: Any, *, name: str = "state", masking: Masking = REVEALED) -> None:
        self._root = TreePlace(value, name, ValueShape.LEAF)
        self._masking = masking
        self._sets: dict[int, list[Any]] = {}

    @property
    def masking(self) -> Masking:
        """The names of hidden values."""
        return self._masking

    def node(self, at: str = "") -> TreeNode:
        """Return one node.

        Raises:
            UsageError: There is nothing at this place.
        """
        return self._node(self._place(at))

    def value(self, at: str = "") -> Any:
        """Return the original value of a node; `MASKED` if it is hidden.

        Raises:
            UsageError: There is nothing at this place.
        """
        return self._place(at).value

    def children(self, at: str = "", *, offset: int = 0, limit: int = _CHILDREN) -> Children:
        """Return some members of a node.

        Args:
            at: The place of the node.
            offset: How many members to skip at the beginning.
            limit: The maximum number of members; never more than 1,000.

        Raises:
            UsageError: There is nothing at this place.
        """
        place = self._place(at)
        start = max(offset, 0)
        stop = start + min(max(limit, 0), _CHILDREN_MAX)
        nodes = tuple(map(self._node, self._members(place, start, stop)))
        return Children(nodes=nodes, offset=start, total=self._parts(place.value).size)

    def look(
        self, at: str = "", *, depth: int = _LOOK_DEPTH, breadth: int = _LOOK_BREADTH
    ) -> Branch:
        """Return a node with the nodes below it, level by level, up to a limit.

        Args:
            at: The place of the node.
            depth: The maximum number of levels below it; never more than 20.
            breadth: The maximum number of members of each node.

        Raises:
            UsageError: There is nothing at this place.
        """
        top, levels = self._place(at), min(depth, _LOOK_DEPTH_MAX)
        below: dict[int, list[TreePlace]] = {}
        waiting, nodes = deque([(top, 0)]), 1
        while waiting:
            place, level = waiting.popleft()
            room = min(breadth, _LOOK_NODES_MAX - nodes) if level < levels else 0
            found = list(self._members(place, 0, max(room, 0)))
            below[id(place)] = found
            nodes += len(found)
            waiting.extend((each, level + 1) for each in found)
        return self._branch(top, below)

    def text(self, at: str = "", *, offset: int = 0, limit: int = _PIECE_CHARS) -> TextPiece:
        """Return a text or a piece of it; for any other value, the line that shows it.

        Args:
            at: The place of the node.
            offset: How many characters to skip at the beginning.
            limit: The maximum number of characters; never more than 1,000,000.

        Raises:
            UsageError: There is nothing at this place.
        """
        value = self._place(at).value
        whole = self._text(value, _PIECE_CHARS_MAX)
        start = max(offset, 0)
        piece = whole[start : start + min(max(limit, 0), _PIECE_CHARS_MAX)]
        return TextPiece(
            text=visible_lines(piece), offset=start, chars=len(piece), total=len(whole)
        )

    def search(self, word: str, *, limit: int = _HITS) -> SearchHits:
        """Find keys, names of fields and texts that contain a word, ignoring case.

        Args:
            word: The word, or several.
            limit: The maximum number of hits; never more than 500.

        Raises:
            UsageError: There is no word, or it is too long.
        """
        if not 0 < len(word) <= _WORD_CHARS_MAX:
            raise UsageError(
                f"search: expected 1 to {_WORD_CHARS_MAX} characters, found {len(word)}",
                hint="Give a word that a key or a text of the state holds.",
            )
        pattern = re.compile(re.escape(word), re.IGNORECASE)
        hits: list[SearchHit] = []
        most = min(max(limit, 0), _HITS_MAX)
        nodes = chars = 0
        complete = True
        for place in self.walk():
            text = self._searched(place.value)
            hit = self._hit(place, text, pattern)
            nodes += 1
            chars += len(text)
            if hit is not None and len(hits) < most:
                hits.append(hit)
                hit = None
            if hit is not None or nodes > _SEARCH_NODES_MAX or chars > _SEARCH_CHARS_MAX:
                complete = False
                break
        return SearchHits(hits=tuple(hits), complete=complete, nodes=nodes)

    def walk(self, descend: Callable[[Any], bool] = lambda _: True) -> Iterator[TreePlace]:
        """Yield every value, each before its members; the caller decides when to stop.

        Args:
            descend: Whether to enter a value.
        """
        waiting = [iter([self._root])]
        while waiting:
            place = next(waiting[-1], None)
            if place is None:
                waiting.pop()
                continue
            yield place
            parts = self._parts(place.value)
            if parts.size and descend(place.value):
                waiting.append(self._members(place, 0, parts.size))

    # ------------------------------------------------------------------ inside

    def _place(self, at: str) -> TreePlace:
        place = self._root
        if at == "":
            return place
        if len(at) > _AT_CHARS_MAX or not _AT.fullmatch(at):
            raise _nowhere()
        for number in map(int, at.split(".")):
            found = next(self._members(place, number, number + 1), None)
            if found is None:
                raise _nowhere()
            place = found
        return place

    def _parts(self, value: Any) -> ValueParts:
        return parts_of(value, self._masking)

    def _members(self, place: TreePlace, start: int, stop: int) -> Iterator[TreePlace]:
        parts = self._parts(place.value)
        members = parts.slice(start, stop)
        if parts.shape is ValueShape.SET:
            members = iter([(None, each) for each in self._sorted(place.value)[start:stop]])
        for number, (key, member) in enumerate(members, start):
            yield TreePlace(member, key, parts.shape, place, number)

    def _sorted(self, members: Any) -> list[Any]:
        """Return the members of a set in a fixed order, which places need and sets lack."""
        found = self._sets.get(id(members))
        if found is None:
            found = self._sets[id(members)] = sorted(members, key=_sort_text)
        return found

    def _searched(self, value: Any) -> str:
        """Return the text to search; empty for a masked value or one with members."""
        if value is MASKED or self._parts(value).shape is not ValueShape.LEAF:
            return ""
        return self._text(value, _LEAF_CHARS)

    def _hit(self, place: TreePlace, text: str, pattern: re.Pattern[str]) -> SearchHit | None:
        told = "" if place.name is None else self._text(place.name, _KEY_CHARS)
        if found := pattern.search(told):
            return SearchHit(node=self._node(place), where="key", excerpt=_excerpt(told, found))
        if found := pattern.search(text):
            return SearchHit(node=self._node(place), where="text", excerpt=_excerpt(text, found))
        return None

    def _node(self, place: TreePlace) -> TreeNode:
        value, parts = place.value, self._parts(place.value)
        text = short_text(value, _TEXT_CHARS, self._masking)
        return TreeNode(
            at=place.at,
            path=place.path,
            label=place.label,
            type=_type_words(value, parts),
            text=visible(text),
            whole=text == whole_text(value, len(text), self._masking),
            children=parts.size,
            masked=value is MASKED,
        )

    def _text(self, value: Any, chars_max: int) -> str:
        """Return a complete text; for any other value, a line of about this many characters."""
        text = _plain_text(value)
        return short_text(value, chars_max, self._masking) if text is None else text

    def _branch(self, top: TreePlace, below: dict[int, list[TreePlace]]) -> Branch:
        # From the last to the first, so that nodes are made before the nodes that contain them.
        made: dict[int, Branch] = {}
        order = [top]
        for place in order:
            order.extend(below[id(place)])
        for place in reversed(order):
            branches = tuple(made[id(each)] for each in below[id(place)])
            node = self._node(place)
            left = node.children - len(branches)
            made[id(place)] = Branch(node=node, branches=branches, left=left)
        return made[id(top)]


def visible_lines(text: str) -> str:
    """Return a text in its lines, with unprintable characters made visible."""
    return "\n".join(map(visible, text.split("\n")))


def _plain_text(value: Any) -> str | None:
    """Return the text itself if the value is a text, else None."""
    return str.__str__(value) if isinstance(value, str) and not isinstance(value, Enum) else None


def _type_words(value: Any, parts: ValueParts) -> str:
    name = visible(type_name(value))
    if _plain_text(value) is not None:
        return f"{name}, {count_text(len(value), 'character')}"
    if isinstance(value, bytes | bytearray):
        return f"{name}, {count_text(len(value), 'byte')}"
    return name if parts.shape is ValueShape.LEAF else f"{name}, {counted(parts)}"


def _step(shape: ValueShape, key: Any) -> str:
    """Return a step of a path, with a bound for long keys."""
    if shape is ValueShape.SET:
        return "{...}"
    if shape is ValueShape.RECORD and len(key) <= _KEY_CHARS and key.isidentifier():
        return f".{visible(key)}"
    return f"[{visible(short_text(key, _KEY_CHARS))}]"


def _sort_text(value: Any) -> tuple[str, str]:
    return type_name(value), short_text(value, _PIECE_CHARS)


def _excerpt(text: str, found: re.Match[str]) -> str:
    start, end = max(found.start() - _AROUND_CHARS, 0), found.end() + _AROUND_CHARS
    before = f"{start:,} characters, then " if start else ""
    more = len(text) - end
    after = f" ... and {more:,} more characters" if more > 0 else ""
    return f"{before}{visible(text[start:end])}{after}"


def _nowhere() -> UsageError:
    return UsageError(
        "tree: there is nothing",
        hint="Ask for the root, and continue with what its nodes say in `at`.",
    )
