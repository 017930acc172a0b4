# SPDX-License-Identifier: Apache-2.0
"""The cost of building a hash table from given hashes, counted before it is built.

Python's tables resolve collisions by a sequence of places that the hash alone determines. An
attacker who chooses the hashes can make them all different, and every key still walks past all the
others: a hundred thousand keys then take a minute. This module simulates the walk on an array of
flags, for every size that the table has as it grows, and stops at a bound. The rules are those of
CPython's `dict` and `set`, unchanged from 3.11 to 3.14.
"""

from collections.abc import Sequence

_UNSIGNED = (1 << 64) - 1
_SHIFT = 5
_LINEAR = 9  # the number of neighbors that a set checks before it jumps
_FAST_GROWTH_MAX = 50_000


def dict_is_slow(hashes: Sequence[int], probes_max: int) -> bool:
    """Whether a dict of these keys, in this order, takes over `probes_max` probes per key."""
    size = 8
    while True:
        held = size * 2 // 3
        if held > len(hashes) // 64 and _dict_stage(hashes[:held], size, probes_max):
            return True
        if held >= len(hashes):
            return False
        size *= 2


def _dict_stage(hashes: Sequence[int], size: int, probes_max: int) -> bool:
    mask = size - 1
    taken = bytearray(size)
    left = probes_max * len(hashes)
    for value in hashes:
        perturb = value & _UNSIGNED
        place = perturb & mask
        while taken[place]:
            perturb >>= _SHIFT
            place = (place * 5 + perturb + 1) & mask
            left -= 1
        taken[place] = 1
        if left < 0:
            return True
    return False


def set_is_slow(hashes: Sequence[int], probes_max: int) -> bool:
    """Whether a set of these members, in this order, takes over `probes_max` jumps per member."""
    size = 8
    while True:
        held = ((size - 1) * 3 + 4) // 5
        if held > len(hashes) // 64 and _set_stage(hashes[:held], size, probes_max):
            return True
        if held >= len(hashes):
            return False
        wanted = held * (2 if held > _FAST_GROWTH_MAX else 4)
        while size <= wanted:
            size *= 2


def _set_stage(hashes: Sequence[int], size: int, probes_max: int) -> bool:
    mask = size - 1
    taken = bytearray(size)
    left = probes_max * len(hashes)
    for value in hashes:
        perturb = value & _UNSIGNED
        place = perturb & mask
        while True:
            end = place + 1 + (_LINEAR if place + _LINEAR <= mask else 0)
            found = taken.find(0, place, end)
            if found >= 0:
                break
            perturb >>= _SHIFT
            place = (place * 5 + 1 + perturb) & mask
            left -= 1
        taken[found] = 1
        if left < 0:
            return True
    return False
