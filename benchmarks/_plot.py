# SPDX-License-Identifier: Apache-2.0
"""The curves of a chat as a picture for the documentation."""

from pathlib import Path

from benchmarks._langgraph import Curves

__all__ = ["write"]

_FILE = Path(__file__).parent.parent / "docs" / "guides" / "langgraph-chat.svg"
_WIDTH, _HEIGHT, _MARGIN = 640, 320, 48
_SMOOTHED = 5


def _smooth(values: list[float]) -> list[float]:
    """The median of neighbours: one slow turn is no trend."""
    found = []
    for place in range(len(values)):
        near = sorted(values[max(0, place - _SMOOTHED) : place + _SMOOTHED + 1])
        found.append(near[len(near) // 2])
    return found


def _points(values: list[float], top: float) -> str:
    wide, high = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    return " ".join(
        f"{_MARGIN + wide * place / (len(values) - 1):.1f},"
        f"{_HEIGHT - _MARGIN - high * value / top:.1f}"
        for place, value in enumerate(values)
    )


def write(curves: Curves) -> None:
    """Draw milliseconds a turn over the turns of the chat."""
    ours, peer = (_smooth([each * 1e3 for each in side]) for side in (curves.ours, curves.peer))
    top = max(*ours, *peer) * 1.05
    base, left, right = _HEIGHT - _MARGIN, _MARGIN, _WIDTH - _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<style>text { font: 12px sans-serif }</style>",
        "<title>Milliseconds for each turn of a chat with LangGraph</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<path d="M{left} {_MARGIN}V{base}H{right}" fill="none" stroke="#888"/>',
        f'<text x="{left}" y="{_MARGIN - 16}">ms a turn (up to {top:.0f})</text>',
        f'<text x="{right}" y="{base + 24}" text-anchor="end">turn {len(ours)}</text>',
        f'<polyline points="{_points(peer, top)}" fill="none" stroke="#c44" stroke-width="2"/>',
        f'<polyline points="{_points(ours, top)}" fill="none" stroke="#26a" stroke-width="2"/>',
        f'<text x="{left + 12}" y="{_MARGIN + 12}" fill="#c44">SqliteSaver</text>',
        f'<text x="{left + 12}" y="{_MARGIN + 30}" fill="#26a">SealedSaver</text>',
        "</svg>",
        "",
    ]
    _FILE.write_text("\n".join(lines), encoding="utf-8")
