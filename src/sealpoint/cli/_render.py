# SPDX-License-Identifier: Apache-2.0
"""A state as lines that people read: every value with its type, nested values further in.

What is left out is counted in the line that leaves it out, unless everything is asked for. Lines
of a text that has several stand behind a bar, so that no text can look like a part of the tree.
"""

from collections.abc import Iterator
from typing import Any

from sealpoint.cli._parts import (
    Shape,
    counted,
    key_step,
    parts_of,
    short_text,
    type_name,
    whole_text,
)

__all__ = ["render"]

_LINE_CHARS = 64
_MEMBERS_SHOWN = 40
_TEXT_LINES_SHOWN = 12
_TEXT_CHARS_SHOWN = 600
_DEPTH_MAX = 100
_EVERYTHING = 1 << 60


def render(value: Any, *, name: str = "state", everything: bool = False) -> Iterator[str]:
    """The lines that show a value.

    Args:
        value: The value.
        name: What it is called.
        everything: Leave nothing out.
    """
    yield from _Rendering(everything=everything).lines(name, value, 0)


class _Rendering:
    def __init__(self, *, everything: bool) -> None:
        self._members_max = _EVERYTHING if everything else _MEMBERS_SHOWN
        self._text_lines_max = _EVERYTHING if everything else _TEXT_LINES_SHOWN
        self._text_chars_max = _EVERYTHING if everything else _TEXT_CHARS_SHOWN

    def lines(self, label: str, value: Any, depth: int) -> Iterator[str]:
        opening = f"{'  ' * depth}{label}: "
        if type(value) is str and "\n" in value:
            yield from self._text(opening, value, depth)
            return
        parts = parts_of(value)
        if parts.shape is Shape.LEAF:
            yield opening + short_text(value, self._text_chars_max)
            return
        line = whole_text(value, _LINE_CHARS)
        if line is not None:
            yield opening + line
            return
        yield f"{opening}{type_name(value)}, {counted(parts)}"
        if depth >= _DEPTH_MAX:
            yield f"{'  ' * (depth + 1)}... nested deeper than can be shown"
            return
        for place, (key, member) in enumerate(parts.members):
            if place >= self._members_max:
                yield f"{'  ' * (depth + 1)}... and {len(parts.members) - place:,} more"
                return
            yield from self.lines(_label(parts.shape, key), member, depth + 1)

    def _text(self, opening: str, value: str, depth: int) -> Iterator[str]:
        """A text of several lines, each behind a bar."""
        lines = value.split("\n")
        yield f"{opening}str, {len(lines):,} lines"
        for place, line in enumerate(lines):
            if place >= self._text_lines_max:
                yield f"{'  ' * (depth + 1)}... and {len(lines) - place:,} more lines"
                return
            shown = line[: self._text_chars_max]
            more = len(line) - len(shown)
            rest = f" ... and {more:,} more characters" if more else ""
            yield f"{'  ' * (depth + 1)}| {shown}{rest}"


def _label(shape: Shape, key: Any) -> str:
    if shape is Shape.MAPPING:
        return short_text(key)
    return "-" if shape is Shape.SET else key_step(shape, key)
