# SPDX-License-Identifier: Apache-2.0
"""Links lead from any entry to any older one in few steps, and `SkipHashes` holds just those."""

import hashlib

import pytest

from sealpoint.ledger import SkipHashes, link_hash, next_link, skip_seq

_LENGTH = 600
_HASHES = [hashlib.sha256(b"entry %d" % seq).digest() for seq in range(_LENGTH + 1)]


def _steps(seq: int, target: int) -> int:
    """How many links lead from one position to another; each must be one that an entry has."""
    steps = 0
    while seq > target:
        below = next_link(seq, target)
        assert below in {seq - 1, skip_seq(seq)}
        assert target <= below < seq
        seq, steps = below, steps + 1
    return steps


def test_the_link_is_the_digest_of_the_header_alone() -> None:
    """Other seals or another body give no other name."""
    assert link_hash(b"header") == hashlib.sha256(b"header").digest()


@pytest.mark.parametrize(
    ("seq", "below"),
    [(1, 0), (2, 1), (3, 0), (4, 3), (6, 3), (7, 0), (12, 11), (2**52, 2**52 - 1), (2**52 - 1, 0)],
)
def test_a_skip_goes_back_by_the_last_step(seq: int, below: int) -> None:
    """A position is a sum of steps, each the longest that fits; its skip leaves out the last."""
    assert skip_seq(seq) == below


def test_every_older_entry_is_reached() -> None:
    """From each of 300 entries each older one is reached, in few steps for each bit."""
    for seq in range(300):
        for target in range(seq + 1):
            assert _steps(seq, target) <= 3 * seq.bit_length()


@pytest.mark.parametrize("seq", [10**6, 2**20 - 1, 2**20, 999_999])
def test_a_long_thread_is_crossed_in_few_steps(seq: int) -> None:
    """In a thread of a million entries no descent takes more than 60 steps."""
    targets = {0, 1, seq - 1, seq // 2, *(seq >> shift for shift in range(20))}
    targets |= {(1 << bit) - 1 for bit in range(20)} | set(range(0, seq, 9973))

    assert max(_steps(seq, target) for target in targets) <= 60


def test_a_spine_holds_what_the_next_entries_name() -> None:
    """At every length it gives the hashes of the list at prev and skip, and nothing superfluous."""
    skip_hashes = SkipHashes.begin(_HASHES[0])
    for seq in range(1, _LENGTH + 1):
        assert skip_hashes.hash_at(seq - 1) == _HASHES[seq - 1]
        assert skip_hashes.hash_at(skip_seq(seq)) == _HASHES[skip_seq(seq)]

        skip_hashes = skip_hashes.grown(seq, _HASHES[seq])
        place, needed = seq, {0, seq}
        while place:
            place = skip_seq(place)
            needed.add(place)
        held = {place for place in range(_LENGTH + 1) if place in skip_hashes._hashes}

        assert held == needed
        assert all(skip_hashes.hash_at(place) == _HASHES[place] for place in needed)


def test_growing_a_spine_leaves_the_old_one_alone() -> None:
    """Hashes that somebody holds while another entry is tried stay as they were."""
    skip_hashes = SkipHashes.begin(_HASHES[0]).grown(1, _HASHES[1])
    skip_hashes.grown(2, _HASHES[2])

    assert skip_hashes.hash_at(1) == _HASHES[1]
    with pytest.raises(KeyError):
        skip_hashes.hash_at(2)
