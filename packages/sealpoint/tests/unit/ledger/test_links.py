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


def _places(skip_hashes: SkipHashes) -> dict[int, bytes]:
    """The hashes that it holds, by their positions."""
    found: dict[int, bytes] = {}
    below: SkipHashes | None = skip_hashes
    while below is not None:
        found[below.seq] = below.hash
        below = below.below
    return found


def test_a_list_of_hashes_holds_what_the_next_entries_name() -> None:
    """At every length it leads along the skips, and knows the skip of the next entry."""
    skip_hashes = SkipHashes(0, _HASHES[0], None)
    for seq in range(1, _LENGTH + 1):
        assert skip_hashes.hash == _HASHES[seq - 1]
        assert skip_hashes.next_below.seq == skip_seq(seq)
        assert skip_hashes.next_below.hash == _HASHES[skip_seq(seq)]

        skip_hashes = skip_hashes.grown(_HASHES[seq])
        place, needed = seq, {seq: _HASHES[seq]}
        while place:
            place = skip_seq(place)
            needed[place] = _HASHES[place]

        assert _places(skip_hashes) == needed


def test_growing_a_list_of_hashes_leaves_the_old_one_alone() -> None:
    """Hashes that somebody holds while another entry is tried stay as they were."""
    skip_hashes = SkipHashes(0, _HASHES[0], None).grown(_HASHES[1])
    skip_hashes.grown(_HASHES[2])

    assert _places(skip_hashes) == {0: _HASHES[0], 1: _HASHES[1]}
