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
    """Curves over one scale; with `ticks`, both scales are logarithmic."""

    title: str
    up: str
    right: str
    curves: dict[str, list[float]]
    ticks: Sequence[int] = ()

    def text(self) -> str:
        base, left, right = _HEIGHT - _MARGIN, _MARGIN, _WIDTH - _MARGIN
        highest = max(map(max, self.curves.values())) * 1.05
        lowest = min(map(min, self.curves.values())) * 0.9 if self.ticks else 0.0
        bounds = f"{lowest:,.3g} to {highest:,.3g}" if self.ticks else f"up to {highest:,.3g}"
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
            "<style>text { font: 12px sans-serif }</style>",
            f"<title>{self.title}</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            f'<path d="M{left} {_MARGIN}V{base}H{right}" fill="none" stroke="#888"/>',
            f'<text x="{left}" y="{_MARGIN - 16}">{self.up} ({bounds})</text>',
            f'<text x="{right}" y="{base + 36}" text-anchor="end">{self.right}</text>',
        ]
        for place, tick in enumerate(self.ticks):
            at = left + (right - left) * place / (len(self.ticks) - 1)
            lines.append(f'<text x="{at:.0f}" y="{base + 18}" text-anchor="middle">{tick:,}</text>')
        for row, (name, values) in enumerate(self.curves.items()):
            colour = _COLOURS[row]
            points = " ".join(
                f"{left + (right - left) * place / (len(values) - 1):.1f},"
                f"{base - (base - _MARGIN) * self._height(value, lowest, highest):.1f}"
                for place, value in enumerate(values)
            )
            lines += [
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
                f'<text x="{left + 12}" y="{_MARGIN + 12 + 18 * row}" fill="{colour}">',
                f"{name}</text>",
            ]
        return "\n".join([*lines, "</svg>", ""])

    def _height(self, value: float, lowest: float, highest: float) -> float:
        if not self.ticks:
            return value / highest
        return math.log(value / lowest) / math.log(highest / lowest)


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
            right=f"turn {len(chat.ours)}",
            curves={"SealedSaver": _smooth(chat.ours), "SqliteSaver": _smooth(chat.peer)},
        ),
        "design/messages.svg": _Picture(
            title="Milliseconds for a turn of a chat by its length",
            up="ms a turn, logarithmic",
            right="messages as models return them",
            curves={
                "SealedSaver": [_median(ours) for ours, _ in lengths.values()],
                "SqliteSaver": [_median(peer) for _, peer in lengths.values()],
            },
            ticks=tuple(lengths),
        ),
        "design/payloads.svg": _Picture(
            title="Milliseconds to save a payload inside a state",
            up="ms a save, logarithmic",
            right="bytes",
            curves={
                "new": [whole * 1e3 for whole, _ in payloads.values()],
                "one byte changed": [changed * 1e3 for _, changed in payloads.values()],
            },
            ticks=tuple(payloads),
        ),
        "design/os-threads.svg": _Picture(
            title="Turns a second of conversations in OS threads on one saver",
            up="turns a second",
            right="OS threads",
            curves={
                "SealedSaver": [ours for ours, _ in rates.values()],
                "SqliteSaver": [peer for _, peer in rates.values()],
            },
            ticks=tuple(rates),
        ),
    }
    for name, picture in pictures.items():
        (_DOCS / name).write_text(picture.text(), encoding="utf-8")
