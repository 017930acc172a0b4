# SPDX-License-Identifier: Apache-2.0
"""How deep containers nest in an encoding, told without decoding it.

The native engine recurses on the C stack, half a kilobyte for each container, and each nested
extension starts a new recursion on top. It stops by itself at 1,023; inside extensions that would
add up to more than a thread's stack, so there the bound is 255, which is all a writer may write.
"""

from sealpoint.codec._wire import COUNTED, FIXED, FIXED_EXTENSIONS, SIZED, SIZED_EXTENSIONS
from sealpoint.limits import ENCODE_DEPTH_MAX

__all__ = ["may_be_deep", "nesting"]

_HEADERS = bytes((*range(0x81, 0x90), *range(0x91, 0xA0), *COUNTED))
_TOKENS_MAX = 512


def may_be_deep(payload: bytes) -> bool:
    """Whether containers in `payload` could nest beyond what a writer may write."""
    if len(payload) - len(payload.translate(None, _HEADERS)) <= ENCODE_DEPTH_MAX:
        return False  # fewer bytes that could open a container than that
    depth = nesting(payload, _TOKENS_MAX)
    return depth is None or depth > ENCODE_DEPTH_MAX


def nesting(payload: bytes, tokens_max: int) -> int | None:
    """How deep containers nest, extensions not entered; None beyond `tokens_max` tokens."""
    place, deepest = 0, 0
    awaited: list[int] = []  # members still to come, of each container that is open
    for _ in range(tokens_max):
        while awaited and awaited[-1] == 0:
            awaited.pop()
        if place >= len(payload):
            return deepest
        if awaited:
            awaited[-1] -= 1
        place, members = _after_token(payload, place)
        if members:
            awaited.append(members)
            deepest = max(deepest, len(awaited))
    return None


def _after_token(payload: bytes, place: int) -> tuple[int, int]:
    """Where the token at `place` ends, and how many members follow it."""
    first = payload[place]
    if 0x80 <= first <= 0x9F:
        return place + 1, (first & 15) * (1 if first & 0x10 else 2)
    if 0xA0 <= first <= 0xBF:
        return place + 1 + (first & 31), 0
    if first in COUNTED:
        end = place + 1 + COUNTED[first]
        count = int.from_bytes(payload[place + 1 : end], "big")
        return end, count * (1 if first < 0xDE else 2)
    if first in SIZED:
        end = place + 1 + SIZED[first]
        return end + int.from_bytes(payload[place + 1 : end], "big"), 0
    if first in SIZED_EXTENSIONS:
        end = place + 1 + SIZED_EXTENSIONS[first]
        return end + 1 + int.from_bytes(payload[place + 1 : end], "big"), 0
    if first in FIXED_EXTENSIONS:
        return place + 2 + FIXED_EXTENSIONS[first], 0
    return place + 1 + FIXED.get(first, 0), 0
