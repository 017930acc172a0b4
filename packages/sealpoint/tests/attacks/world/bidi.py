# SPDX-License-Identifier: Apache-2.0
"""In which order a terminal shows a line, by the rules of the Unicode Bidirectional Algorithm.

As far as these attacks need them: UAX #9 without explicit embeddings and overrides and without
brackets, with first strong isolates. A line finds its direction by itself, as terminals do.
"""

import unicodedata

__all__ = ["as_seen"]

_ISOLATE, _POP = "\u2068", "\u2069"


def as_seen(line: str) -> str:
    """The characters of a line from left to right, as they are seen; isolates are not."""
    units = _units(line)
    kinds = [_kind(unit) for unit in units]
    strong = [kind for kind in kinds if kind in ("L", "R", "AL")]
    base = 1 if strong and strong[0] != "L" else 0
    levels = _levels(_resolved(kinds, "R" if base else "L"), base)
    shown = list(zip(units, levels, strict=True))
    for level in range(max(levels, default=0), 0, -1):  # L2
        shown = _reversed_from(shown, level)
    return "".join(as_seen(unit[1:-1]) if unit[0] == _ISOLATE else unit for unit, _ in shown)


def _units(line: str) -> list[str]:
    """The characters; what is isolated is one."""
    found, depth = list[str](), 0
    for char in line:
        if depth:
            found[-1] += char
        else:
            found.append(char)
        depth += (char == _ISOLATE) - (char == _POP)
    return found


def _kind(unit: str) -> str:
    kind = "ON" if unit[0] == _ISOLATE else unicodedata.bidirectional(unit)
    return kind if kind in ("L", "R", "AL", "EN", "AN", "ES", "ET", "CS", "NSM") else "ON"


def _resolved(kinds: list[str], outside: str) -> list[str]:
    """Weak and neutral characters, each with the direction that it takes."""
    kinds, strong = list(kinds), outside
    for place, kind in enumerate(kinds):  # W1, W2
        if kind == "NSM":
            kinds[place] = kinds[place - 1] if place else "ON"
        elif kind in ("L", "R", "AL"):
            strong = kind
        elif kind == "EN" and strong == "AL":
            kinds[place] = "AN"
    kinds = ["R" if kind == "AL" else kind for kind in kinds]  # W3
    for place in range(1, len(kinds) - 1):  # W4
        before, kind, after = kinds[place - 1 : place + 2]
        if before == after and (
            (kind in ("ES", "CS") and before == "EN") or (kind == "CS" and before == "AN")
        ):
            kinds[place] = before
    strong = outside
    for place, kind in enumerate(kinds):  # W6, W7
        if kind in ("L", "R"):
            strong = kind
        elif kind == "EN" and strong == "L":
            kinds[place] = "L"
        elif kind not in ("EN", "AN"):
            kinds[place] = "ON"
    return _with_neutrals(kinds, outside)


def _with_neutrals(kinds: list[str], outside: str) -> list[str]:
    """Neutral characters take the direction of both sides, or that of the line."""
    sides = ["R" if kind in ("EN", "AN") else kind for kind in kinds]
    for place, kind in enumerate(kinds):  # N1, N2
        if kind == "ON":
            before = next((each for each in reversed(sides[:place]) if each != "ON"), outside)
            after = next((each for each in sides[place:] if each != "ON"), outside)
            kinds[place] = before if before == after else outside
    return kinds


def _levels(kinds: list[str], base: int) -> list[int]:  # I1, I2
    if base:
        return [1 if kind == "R" else 2 for kind in kinds]
    return [{"L": 0, "R": 1}.get(kind, 2) for kind in kinds]


def _reversed_from(shown: list[tuple[str, int]], level: int) -> list[tuple[str, int]]:
    made: list[tuple[str, int]] = []
    turned: list[tuple[str, int]] = []
    for pair in shown:
        if pair[1] >= level:
            turned.append(pair)
            continue
        made += [*reversed(turned), pair]
        turned = []
    return [*made, *reversed(turned)]
