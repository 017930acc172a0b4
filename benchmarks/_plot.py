# SPDX-License-Identifier: Apache-2.0
"""What was measured, as pictures for the documentation."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _langgraph, _large, _parallel
from benchmarks._measure import Taken

__all__ = ["write"]

_DOCS = Path(__file__).parent.parent / "docs"
_WIDTH, _HEIGHT, _MARGIN = 640, 320, 48
_SMOOTHED = 5
_COLOURS = ("#26a", "#c44")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """Curves over the same places."""

    title: str
    up: str
    right: str
    places: Sequence[int]
    marks: Sequence[int]
    """The places that are written below the curves."""
    curves: dict[str, list[float]]
    wide: bool = False
    """Over a wide range: the places on a logarithmic scale."""
    steep: bool = False
    """Over a wide range: the values on a logarithmic scale."""

    def text(self) -> str:
        values = [value for curve in self.curves.values() for value in curve]
        across = _Scale(min(self.places), max(self.places), logarithmic=self.wide)
        upward = _Scale(
            min(values) * 0.8 if self.steep else 0.0, max(values) * 1.05, logarithmic=self.steep
        )
        left, right, base = _MARGIN, _WIDTH - _MARGIN, _HEIGHT - _MARGIN

        def x(place: float) -> float:
            return left + (right - left) * across.part(place)

        def y(value: float) -> float:
            return base - (base - _MARGIN) * upward.part(value)

        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
            "<style>text { font: 12px sans-serif }</style>",
            f"<title>{self.title}</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            f'<text x="{left}" y="20">{self.up}</text>',
            f'<text x="{right}" y="{base + 38}" text-anchor="end">{self.right}</text>',
        ]
        for mark in upward.marks():
            lines += [
                f'<path d="M{left} {y(mark):.1f}H{right}" stroke="#ddd"/>',
                f'<text x="{left - 6}" y="{y(mark) + 4:.1f}" text-anchor="end">{mark:,g}</text>',
            ]
        lines.extend(
            f'<text x="{x(mark):.1f}" y="{base + 18}" text-anchor="middle">{mark:,}</text>'
            for mark in self.marks
        )
        for row, (name, curve) in enumerate(self.curves.items()):
            colour = _COLOURS[row]
            points = " ".join(
                f"{x(place):.1f},{y(value):.1f}"
                for place, value in zip(self.places, curve, strict=True)
            )
            legend = f'<text x="{right - 130 * row}" y="20" text-anchor="end" fill="{colour}">'
            lines += [
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
                f"{legend}\N{EM DASH} {name}</text>",
            ]
        return "\n".join([*lines, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Scale:
    """From the lowest value to the highest."""

    lowest: float
    highest: float
    logarithmic: bool

    def part(self, value: float) -> float:
        """Where a value lies between the ends, from 0 to 1."""
        if self.logarithmic:
            return math.log(value / self.lowest) / math.log(self.highest / self.lowest)
        return (value - self.lowest) / (self.highest - self.lowest)

    def marks(self) -> list[float]:
        """Round values to draw lines at."""
        if self.logarithmic:
            powers = range(-3, 7)
            found = [step * 10.0**power for power in powers for step in (1, 3)]
        else:
            unit = 10.0 ** math.floor(math.log10(self.highest))
            step = next(size for size in (unit / 5, unit / 2, unit, 2 * unit) if self._fits(size))
            found = [step * number for number in range(7)]
        return [mark for mark in found if self.lowest <= mark <= self.highest]

    def _fits(self, step: float) -> bool:
        return self.highest / step <= 6


def _smooth(side: list[Taken]) -> list[float]:
    """The median of neighbours, in milliseconds: one slow turn is no trend."""
    values = [each.wall * 1e3 for each in side]
    return [
        statistics.median(values[max(0, place - _SMOOTHED) : place + _SMOOTHED + 1])
        for place in range(len(values))
    ]


def _median(side: list[Taken]) -> float:
    return statistics.median(each.wall for each in side) * 1e3


def write() -> None:
    """Draw everything that has a curve; what is not measured yet, is."""
    chat, lengths, rates = _langgraph.chat(), _langgraph.curve(), _parallel.rates()
    payloads = _large.payloads()
    pictures = {
        "guides/langgraph-chat.svg": _Picture(
            title="Milliseconds for each turn of a chat with LangGraph",
            up="ms a turn",
            right="turn",
            places=range(1, len(chat.ours) + 1),
            marks=(1, *range(50, len(chat.ours) + 1, 50)),
            curves={"SealedSaver": _smooth(chat.ours), "SqliteSaver": _smooth(chat.peer)},
        ),
        "design/messages.svg": _Picture(
            title="Milliseconds for a turn of a chat by its length",
            up="ms a turn",
            right="messages as models return them",
            places=tuple(lengths),
            marks=(10, 100, 400, 2_000, 10_000),
            curves={
                "SealedSaver": [_median(ours) for ours, _ in lengths.values()],
                "SqliteSaver": [_median(peer) for _, peer in lengths.values()],
            },
            wide=True,
            steep=True,
        ),
        "design/payloads.svg": _Picture(
            title="Milliseconds to save a payload inside a state",
            up="ms a save",
            right="bytes",
            places=tuple(payloads),
            marks=tuple(payloads),
            curves={
                "new": [whole * 1e3 for whole, _ in payloads.values()],
                "one byte changed": [changed * 1e3 for _, changed in payloads.values()],
            },
            wide=True,
            steep=True,
        ),
        "design/os-threads.svg": _Picture(
            title="Turns a second of conversations in OS threads on one saver",
            up="turns a second",
            right="OS threads",
            places=tuple(rates),
            marks=tuple(rates),
            curves={
                "SealedSaver": [ours for ours, _ in rates.values()],
                "SqliteSaver": [peer for _, peer in rates.values()],
            },
            wide=True,
        ),
    }
    for name, picture in pictures.items():
        (_DOCS / name).write_text(picture.text(), encoding="utf-8")
