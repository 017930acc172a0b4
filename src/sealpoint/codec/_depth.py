# SPDX-License-Identifier: Apache-2.0
"""How deep containers nest in an encoding, told without decoding it.

The native engine recurses on the C stack, half a kilobyte for each container, and each nested
extension starts a new recursion on top of the one around it. The engine stops by itself at 1,023,
which is well for one recursion; for all the others on a path the bound is 255, which is all that
a writer may write, so that they fit a thread's stack together. Payloads of up to a kilobyte need
no look: they and everything nested in them cannot hold more containers than that in all.
"""

from sealpoint.codec._wire import COUNTED, FIXED, FIXED_EXTENSIONS, SIZED, SIZED_EXTENSIONS
from sealpoint.limits import ENCODE_DEPTH_MAX

__all__ = ["UNCHECKED_BYTES_MAX", "is_deep", "nesting"]

UNCHECKED_BYTES_MAX = 1024
"""Payloads of up to this length are not looked at."""

# A reader's own frame, and the levels at which a tree joins members, come on top.
_DEPTH_MAX = ENCODE_DEPTH_MAX + 16
_HEADERS = bytes((*range(0x81, 0x90), *range(0x91, 0xA0), *COUNTED))
_SKIPPED = {
    **dict.fromkeys((*range(0x80), *range(0xC0, 0xC4), *range(0xE0, 0x100)), 1),
    **{first: 1 + (first & 31) for first in range(0xA0, 0xC0)},
    **{first: 1 + size for first, size in FIXED.items()},
    **{first: 2 + size for first, size in FIXED_EXTENSIONS.items()},
}
_WIDTHS = {**SIZED, **SIZED_EXTENSIONS}


def is_deep(payload: bytes) -> bool:
    """Whether containers in `payload` nest deeper than a writer may write."""
    openers = len(payload) - len(payload.translate(None, _HEADERS))
    return openers > _DEPTH_MAX and nesting(payload) > _DEPTH_MAX


def nesting(payload: bytes) -> int:
    """How deep containers nest in a sequence of values, extensions not entered."""
    place, deepest, end = 0, 0, len(payload)
    left = 1 << 62  # members still to come in the innermost open container
    around: list[int] = []
    while place < end:
        first = payload[place]
        left -= 1
        if first in _SKIPPED:
            place += _SKIPPED[first]
        elif first in _WIDTHS:
            start = place + 1 + _WIDTHS[first]
            size = int.from_bytes(payload[place + 1 : start], "big")
            place = start + size + (first in SIZED_EXTENSIONS)
        else:
            members, place = _opened(payload, place)
            if members:
                around.append(left)
                left = members
                deepest = max(deepest, len(around))
        while not left:
            left = around.pop()
    return deepest


def _opened(payload: bytes, place: int) -> tuple[int, int]:
    """How many members the container at `place` has, and where they start."""
    first = payload[place]
    if first in COUNTED:
        start = place + 1 + COUNTED[first]
        count = int.from_bytes(payload[place + 1 : start], "big")
    else:
        start, count = place + 1, first & 15
    is_map = first < 0x90 or first >= 0xDE
    return count * 2 if is_map else count, start
