# SPDX-License-Identifier: Apache-2.0
"""Whole numbers with different hashes whose probe sequences in a dict run into one chain.

A dict of 2**bits slots looks for the place of a key at `hash`, then at `5 * place + 1 + perturb`,
where `perturb` is the hash shifted right by five more bits each time. Once the hash is used up,
every key follows the one cycle `place -> 5 * place + 1`. The keys made here find all their earlier
places taken by the beginning of that cycle, and then walk it to its end.
"""

import numpy as np
from numpy.typing import NDArray

_SHIFT = 5
_HASH_BITS = 60

Numbers = NDArray[np.int64]


def _cycle(size: int) -> Numbers:
    order = np.empty(size, np.int64)
    place = 0
    for step in range(size):
        order[step] = place
        place = (5 * place + 1) % size
    return order


def _batch(
    order: Numbers, taken: NDArray[np.bool_], seeds: int, source: np.random.Generator
) -> Numbers:
    """Draw keys whose places are all taken until their hash is used up."""
    size = len(order)
    bits, step = size.bit_length() - 1, 1
    used = bits
    keys = order[source.integers(0, seeds, 1 << 14)].copy()
    places = keys.copy()
    while used < _HASH_BITS:
        free_bits = min(_SHIFT, _HASH_BITS - used)
        following = (5 * places + 1 + (keys >> (_SHIFT * step))) % size
        choices = (following[:, None] + (np.arange(1 << free_bits) << (bits - _SHIFT))) % size
        score = np.where(taken[choices], source.random(choices.shape), -1.0)
        chosen = score.argmax(1)
        rows = np.arange(len(chosen))
        good = score[rows, chosen] >= 0
        keys = (keys | (chosen << used))[good]
        places = choices[rows, chosen][good]
        used += free_bits
        step += 1
    perturb = keys >> (_SHIFT * (step - 1))
    while perturb.any():
        perturb = perturb >> _SHIFT
        places = np.where(perturb > 0, (5 * places + 1 + perturb) % size, places)
        good = taken[places]
        keys, places, perturb = keys[good], places[good], perturb[good]
    return keys


def chained_keys(*, bits: int, count: int) -> list[int]:
    """Make `count` keys for a table of 2**bits slots."""
    source = np.random.default_rng(1)
    order = _cycle(1 << bits)
    seeds = len(order) // 10
    taken = np.zeros(len(order), bool)
    taken[order[:seeds]] = True
    keys = dict.fromkeys(order[:seeds].tolist())
    while len(keys) < count:
        keys |= dict.fromkeys(_batch(order, taken, seeds, source).tolist())
    return list(keys)[:count]
