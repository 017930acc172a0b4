# SPDX-License-Identifier: Apache-2.0
"""Where long things are cut: by content, within bounds, and the same every time."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.codec._chunks import cut_bytes, id_ends, member_ends, members_target
from tests.effort import examples

_SOURCE = random.Random(5)  # noqa: S311 # test data
_DATA = {
    "random": _SOURCE.randbytes(300_000),
    "zeros": bytes(300_000),
    "text": b"the quick brown fox jumps over the lazy dog. " * 7000,
    "counter": b"".join(number.to_bytes(4, "big") for number in range(75_000)),
}


def _cut_members(parts: list[bytes], seed: int) -> list[bytes]:
    ends = list(member_ends(parts, seed, members_target(sum(map(len, parts)))))
    return [b"".join(parts[first:end]) for first, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("name", _DATA)
@pytest.mark.parametrize("seed", [0, 1, 0xFFFFFFFF])
def test_chunks_of_bytes_join_to_the_whole_and_are_bounded(name: str, seed: int) -> None:
    """Whatever the content, no chunk is empty or larger than eight times the target."""
    chunks = list(map(bytes, cut_bytes(_DATA[name], seed)))

    assert b"".join(chunks) == _DATA[name]
    assert all(0 < len(chunk) <= 8 * 4096 for chunk in chunks)
    assert all(len(chunk) > 1024 for chunk in chunks[:-1])


@given(st.binary(max_size=5000), st.integers(0, 0xFFFFFFFF))
@settings(max_examples=examples(100))
def test_any_bytes_join_to_the_whole(data: bytes, seed: int) -> None:
    """Cutting loses and adds nothing, also for short and empty byte strings."""
    assert b"".join(map(bytes, cut_bytes(data, seed))) == data


@pytest.mark.parametrize("name", ["random", "text", "counter"])
def test_an_insertion_moves_few_boundaries(name: str) -> None:
    """Chunks away from an insertion are the same."""
    data = _DATA[name]
    before = set(map(bytes, cut_bytes(data, 3)))
    after = set(map(bytes, cut_bytes(data[:150_000] + b"inserted" + data[150_000:], 3)))

    assert len(after - before) <= 4


@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=60), st.integers(0, 0xFFFFFFFF))
@settings(max_examples=examples(100))
def test_members_are_never_cut_in_two(parts: list[bytes], seed: int) -> None:
    """Chunks of members join to all members, and each chunk ends where a member does."""
    chunks = list(_cut_members(parts, seed))
    ends = {0}
    for part in parts:
        ends.add(max(ends) + len(part))

    joined = 0
    for chunk in chunks:
        joined += len(chunk)
        assert joined in ends
    assert b"".join(chunks) == b"".join(parts)


def test_members_that_are_all_alike_are_still_cut() -> None:
    """Equal members, which give no place to cut at, are cut by size."""
    chunks = list(_cut_members([b"x" * 10] * 100_000, 0))

    assert max(map(len, chunks)) <= 8 * 4096
    assert len(chunks) > 20


def test_chunks_grow_with_the_whole() -> None:
    """A very long byte string has chunks in the thousands, not in the millions."""
    chunks = list(cut_bytes(bytes(64 * 1024 * 1024), 0))

    assert len(chunks) < 10_000


@pytest.mark.parametrize("first", [0, 255])
def test_indexes_shrink_whatever_the_ids_are(first: int) -> None:
    """Each level of an index is at most a quarter of the one below, and bounded in width."""
    ids = [bytes((first,)) + number.to_bytes(31, "big") for number in range(5000)]
    ends = list(id_ends(ids))

    assert ends[-1] == len(ids)
    assert len(ends) <= len(ids) // 4
    assert max(end - start for start, end in pairwise([0, *ends])) <= 64


def test_an_index_goes_on_from_any_of_its_ends() -> None:
    """What lies behind the end of an index blob is cut as if the index were cut whole."""
    ids = [number.to_bytes(2, "big") * 16 for number in range(0, 60_000, 37)]
    ends = list(id_ends(ids))

    for place in (1, len(ends) // 2, len(ends) - 1):
        assert list(id_ends(ids, ends[place])) == ends[place + 1 :]


def test_the_seed_moves_boundaries() -> None:
    """Where one store cuts says nothing about where another does."""
    one = {len(chunk) for chunk in cut_bytes(_DATA["random"], 1)}
    other = {len(chunk) for chunk in cut_bytes(_DATA["random"], 2)}

    assert one != other


def test_cutting_is_the_same_every_time() -> None:
    """The same bytes and seed have the same boundaries."""
    one, other = (list(map(bytes, cut_bytes(_DATA["random"], 9))) for _ in range(2))

    assert one == other
    assert len(set(map(len, one))) > 5
    assert any(a != b for a, b in pairwise(one))
