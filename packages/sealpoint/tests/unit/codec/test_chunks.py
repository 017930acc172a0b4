# SPDX-License-Identifier: Apache-2.0
"""Where long things are cut: by content, within bounds, and the same every time."""

import hashlib
import random
from functools import cache
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint.codec._chunking import (
    CutBytes,
    byte_ends,
    bytes_target,
    id_ends,
    member_ends,
    members_target,
    recut,
)
from tests.effort import examples

_NAMES = ["counter", "random", "text", "words", "zeros"]


@cache
def _data(name: str, target: int) -> bytes:
    """Some content, of seventy times the size to aim at."""
    size = 73 * target
    source = random.Random(5)  # noqa: S311 # test data
    words = [source.randbytes(4).hex()[: source.randint(2, 8)] for _ in range(2000)]
    content = {
        "random": source.randbytes(size),
        "words": " ".join(source.choices(words, k=size // 6)).encode(),
        "zeros": bytes(size),
        "text": b"the quick brown fox jumps over the lazy dog. " * (size // 45),
        "counter": b"".join(number.to_bytes(4, "big") for number in range(size // 4)),
    }
    return content[name]


@pytest.fixture(params=[4096, 16_384, 65_536], scope="module")
def target(request: pytest.FixtureRequest) -> int:
    """All ways to cut bytes keep the same claims."""
    size: int = request.param
    return size


def _cut_bytes(data: bytes, seed: int, target: int) -> list[bytes]:
    ends = [*byte_ends(memoryview(data), seed, target)]
    return [data[start:end] for start, end in pairwise([0, *ends])]


def _cut_members(parts: list[bytes], seed: int) -> list[bytes]:
    ends = list(member_ends(parts, seed, members_target(sum(map(len, parts)))))
    return [b"".join(parts[first:end]) for first, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("seed", [0, 1, 0xFFFFFFFF, (1 << 64) - 1])
def test_chunks_of_bytes_join_to_the_whole_and_are_bounded(
    name: str, seed: int, target: int
) -> None:
    """Whatever the content, no chunk is empty or larger than eight times the target."""
    data = _data(name, target)
    chunks = _cut_bytes(data, seed, target)

    assert b"".join(chunks) == data
    assert all(0 < len(chunk) <= 8 * target for chunk in chunks)
    assert all(len(chunk) >= target // 4 for chunk in chunks[:-1])


@given(data=st.binary(max_size=5000), seed=st.integers(0, (1 << 64) - 1))
@settings(max_examples=examples(100))
def test_any_bytes_join_to_the_whole(data: bytes, seed: int, target: int) -> None:
    """Cutting loses and adds nothing, also for short and empty byte strings."""
    assert b"".join(_cut_bytes(data, seed, target)) == data


@pytest.mark.parametrize("name", ["random", "text", "counter", "words"])
def test_an_insertion_moves_few_boundaries(name: str, target: int) -> None:
    """Chunks away from an insertion are the same."""
    if name == "text" and target > 4096:
        pytest.skip("it repeats itself every 45 bytes: too few places to cut at")
    data = _data(name, target)
    half = len(data) // 2
    before = set(_cut_bytes(data, 3, target))
    after = set(_cut_bytes(data[:half] + b"inserted" + data[half:], 3, target))

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
    data = bytes(64 * 1024 * 1024)
    chunks = _cut_bytes(data, 0, bytes_target(len(data)))

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


def test_the_seed_moves_boundaries(target: int) -> None:
    """Where one store cuts says nothing about where another does."""
    one, other = ({*_ends_of("random", seed, target)} for seed in (1, 2))

    assert one != other


def test_every_seed_has_boundaries_of_its_own(target: int) -> None:
    """Long byte strings are cut in as many ways as there are seeds, and not in a handful."""
    if target == 4096:
        pytest.skip("short ones are cut in 32 ways, as they always were")
    source = random.Random(7)  # noqa: S311 # test data
    cuts = [{*_ends_of("random", source.getrandbits(64), target)} for _ in range(12)]

    for one, other in combinations(cuts, 2):
        assert len(one & other) < len(one) / 8


def _ends_of(name: str, seed: int, target: int) -> list[int]:
    """Where chunks end, but for the last one."""
    return [*byte_ends(memoryview(_data(name, target)), seed, target)][:-1]


def test_cutting_is_the_same_every_time(target: int) -> None:
    """The same bytes and seed have the same boundaries."""
    one, other = (_cut_bytes(_data("random", target), 9, target) for _ in range(2))

    assert one == other
    assert len(set(map(len, one))) > 5
    assert any(a != b for a, b in pairwise(one))


def _as_cut(data: bytes, seed: int, target: int) -> CutBytes:
    """What is remembered of a byte string."""
    view = memoryview(data)
    ends = [*byte_ends(view, seed, target)]
    ids = [hashlib.sha256(view[start:end]).digest() for start, end in pairwise([0, *ends])]
    cut = CutBytes.of(view, target, seed, ends, ids)
    assert cut is not None
    return cut


_Edit = tuple[float, int, bytes]


def _edited(data: bytes, edits: list[_Edit]) -> bytes:
    """Replace so many bytes at places of a byte string by others."""
    for part, dropped, added in edits:
        place = int(part * len(data))
        data = data[:place] + added + data[place + dropped :]
    return data


@given(
    name=st.sampled_from(_NAMES),
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 40_000), st.binary(max_size=3000)), max_size=4
    ),
    seed=st.integers(0, 3),
)
@settings(max_examples=examples(80), deadline=None)
def test_what_is_remembered_moves_no_cut(
    name: str, edits: list[_Edit], seed: int, target: int
) -> None:
    """However a byte string was edited, it is cut as if it had not been seen before."""
    before = _as_cut(_data(name, target), seed, target)
    data = _edited(_data(name, target), edits)
    found = [*recut(memoryview(data), target, seed, before)]
    ends = [end for some, _ in found for end in some]

    assert ends == [*byte_ends(memoryview(data), seed, target)]
    start = 0
    for some, ids in found:
        for place, end in enumerate(some):
            if ids:
                assert ids[place] == hashlib.sha256(data[start:end]).digest()
            start = end


@pytest.mark.parametrize("edit", [(0.5, 1, b"\0"), (0.5, 0, b"inserted"), (0.2, 100, b"")])
def test_what_stayed_is_not_cut_again(edit: _Edit, target: int) -> None:
    """After one edit nearly all chunks are known, those behind an insertion too."""
    data = _data("random", target) * 4  # long enough for a second core
    before = _as_cut(data, 1, target)
    after = _edited(data, [edit])
    found = [*recut(memoryview(after), target, 1, before)]
    new = sum(len(ends) for ends, ids in found if not ids)

    assert new < len(before.ends) / 10


@pytest.mark.parametrize("other", [(16_384, 1), (4096, 2)])
def test_what_was_cut_in_another_way_is_of_no_use(other: tuple[int, int]) -> None:
    """Another seed, or another size to aim at, cuts elsewhere."""
    target, seed = other
    data = _data("random", 4096)
    found = [*recut(memoryview(data), target, seed, _as_cut(data, 1, 4096))]

    assert not any(ids for _, ids in found)
    assert [end for ends, _ in found for end in ends] == [
        *byte_ends(memoryview(data), seed, target)
    ]


def test_a_chunk_is_as_it_was_only_with_the_byte_behind_it(target: int) -> None:
    """A cut may depend on the byte behind it, so a chunk before a changed one is not relied on."""
    data = _data("random", target)
    before = _as_cut(data, 1, target)
    end = before.ends[10]
    after = _edited(data, [((end + 0.5) / len(data), 1, bytes((data[end] ^ 1,)))])

    assert before.stayed(memoryview(data), 0, 0) > 12
    assert before.stayed(memoryview(after), 0, 0) == 10


def test_bytes_that_change_while_they_are_cut_are_cut_within_bounds(target: int) -> None:
    """Whatever another thread writes meanwhile, the chunks rise to the end and keep their sizes."""
    data = bytearray(_data("random", target))
    ends = [0]
    for end in byte_ends(memoryview(data), 1, target):
        ends.append(end)
        data[end:] = data[end - 1 : -1]

    assert ends[-1] == len(data)
    assert all(target // 4 <= end - start <= 8 * target for start, end in pairwise(ends[:-1]))
