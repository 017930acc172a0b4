# SPDX-License-Identifier: Apache-2.0
"""Listing the blobs of a tree, from genuine and from hostile ones."""

import itertools
import time
import tracemalloc
from collections import deque
from typing import Any

import pytest

from sealpoint import Limits, Registry
from sealpoint.codec import Reached, tree_blobs
from sealpoint.codec._wire_format import Get
from sealpoint.errors import (
    BlobMismatch,
    BytesMalformed,
    DecodeError,
    DecodeLimitExceeded,
    StorageUnavailable,
    UnknownType,
    UsageError,
)
from tests.application import Message, Step, make_registry
from tests.arrays import ARRAYS, np
from tests.blobs import Blobs, Watched
from tests.wire import extension

REGISTRY = make_registry()
_VALUE, _LIST, _MAP, _TEXT, _BYTES = range(5)


def _referring(stream: int, levels: int, count: int, total: int, *ids: bytes) -> bytes:
    fields = bytes((stream, levels)) + count.to_bytes(4, "big") + total.to_bytes(8, "big")
    return extension(2, fields + b"".join(ids))


def _always(blob: Any) -> Get:
    return lambda _: blob


def _encoded(value: Any, store: Blobs) -> bytes:
    root = REGISTRY.encode_tree(value, store.put)
    assert isinstance(root, bytes)
    return root


def _state() -> dict[str, Any]:
    """A value with a reference of every stream, index levels and nested references."""
    return {
        "messages": [Message(text=f"message {n} " + "x" * (n % 97)) for n in range(400)],
        "map": {f"key {n}": ["value", n, "y" * (n % 53)] for n in range(400)},
        "bytes": bytes(n * n % 251 for n in range(40_000)),
        "text": "".join(chr(0x100 + n * n % 997) for n in range(30_000)),
        "steps": [[Step(f"step {m}", list(range(40))) for m in range(40)] for _ in range(3)],
        "tuple": tuple(f"member {n}" for n in range(1500)),
        "queue": deque([["z" * 20_000, dict.fromkeys(range(3000), "pairs")]]),
        "array": Step("array", np.arange(9000) if ARRAYS else None),
        "numbers": list(range(20_000)),
    }


def _cut_root() -> int:
    """A value whose root blob is cut itself."""
    return 1 << 200_000


@pytest.mark.parametrize("make", [_state, _cut_root, lambda: [1, 2], lambda: "x" * 50_000])
def test_the_list_is_what_was_put_and_what_a_reader_fetches(make: Any) -> None:
    """Every blob of a tree is listed once, and nothing else, without a registry."""
    store = Watched()
    store.put(b"another tree's")
    others = set(store.stored)
    root = _encoded(make(), store)

    found = list(tree_blobs(root, store.get))

    assert found[0] == root
    assert len(found) == len(set(found))
    assert set(found) == set(store.stored) - others
    store.asked.clear()
    REGISTRY.decode_tree(root, store.get)
    assert set(found) == set(store.asked)


@pytest.mark.parametrize("size", [1, 7, 33, 100, 1000])
def test_a_root_that_is_cut_within_its_references_is_put_together(size: int) -> None:
    """Whoever cuts a whole value may do so anywhere, and its references are found all the same."""
    store = Watched()
    whole = store.stored.pop(_encoded(_state(), store))
    chunks = [store.put(whole[at : at + size]) for at in range(0, len(whole), size)]
    root = store.put(_referring(_VALUE, 0, 0, len(whole), *chunks))

    found = set(tree_blobs(root, store.get, fetch_all=True))

    assert found == set(store.stored) == set(store.asked)
    assert REGISTRY.encode(REGISTRY.decode_tree(root, store.get)) == REGISTRY.encode(_state())


def test_a_writer_cuts_roots_too() -> None:
    """The value that stands for a cut root really has one."""
    store = Blobs()
    root = _encoded(_cut_root(), store)

    assert store.stored[root][2:4] == bytes((2, _VALUE))


def test_only_blobs_that_can_name_others_are_fetched() -> None:
    """Chunks of text and bytes are listed by their ids alone, unless all are asked for."""
    store = Watched()
    root = _encoded({"text": "x" * 100_000, "bytes": bytes(range(256)) * 800}, store)

    found = list(tree_blobs(root, store.get))
    assert set(found) == set(store.stored)
    assert len(store.asked) < len(found) / 3
    store.asked.clear()
    assert list(tree_blobs(root, store.get, fetch_all=True)) == found
    assert sorted(store.asked) == sorted(found)


def test_an_id_comes_before_its_blob_is_fetched() -> None:
    """A caller can fetch blobs ahead of the walk, or stop it, since nothing was fetched yet."""
    store = Watched()
    root = _encoded(_state(), store)

    for name in tree_blobs(root, store.get, fetch_all=True):
        assert name not in store.asked
    assert set(store.asked) == set(store.stored)


def test_versions_that_share_their_blobs_are_walked_about_once() -> None:
    """A hundred versions of a chat cost few more fetches than they have blobs."""
    store, reached = Watched(), Reached()
    messages = [{"role": "user", "content": f"{n} " * 200} for n in range(300)]
    listed: list[bytes] = []
    roots = []
    for step in range(100):
        messages.append({"role": "user", "content": f"{step} " * 150})
        roots.append(_encoded({"messages": messages, "step": step, "raw": b"r" * 20_000}, store))

    for root in roots:
        listed += tree_blobs(root, store.get, reached=reached)

    assert sorted(listed) == sorted(store.stored)
    assert reached.blobs == set(store.stored)
    assert len(store.asked) <= len(store.stored)
    store.asked.clear()
    assert not [name for root in roots for name in tree_blobs(root, store.get, reached=reached)]
    assert not store.asked


def test_versions_of_a_list_that_is_cut_in_its_members_are_walked_about_once() -> None:
    """Chunks that begin in the middle of a number are taken over too, where they do it again."""
    store, reached = Watched(), Reached()
    numbers = [n * 1_000_003 for n in range(20_000)]
    for number in range(50):
        numbers.append(number)
        set(tree_blobs(_encoded(numbers, store), store.get, reached=reached))

    assert reached.blobs == set(store.stored)
    assert len(store.asked) < len(store.stored) + 200


@pytest.mark.parametrize("fetch_all", [False, True])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_blob_in_another_part_is_walked_again(order: tuple[int, ...], *, fetch_all: bool) -> None:
    """A file with the bytes of a list's chunk, or of an index, hides nothing that those name."""
    store = Blobs()
    deep = store.put(b"deep")
    chunk = store.put(_referring(_BYTES, 0, 0, 4, deep))
    index = store.put(chunk)
    size = len(store.stored[chunk])
    parts = [
        b"\x92" + _referring(_BYTES, 0, 0, size, chunk) + _referring(_BYTES, 0, 0, 32, index),
        _referring(_BYTES, 1, 0, size, index),
        _referring(_LIST, 0, 1, size, chunk),
        _referring(_LIST, 1, 1, size, index),
    ]
    apart = [store.put(part) for part in parts]
    root = store.put(b"\x94" + b"".join(parts[place] for place in order))
    reached = Reached()

    alone = [set(tree_blobs(name, store.get, fetch_all=fetch_all)) for name in apart]
    listed: set[bytes] = set()
    for place in order:
        listed |= set(tree_blobs(apart[place], store.get, reached=reached, fetch_all=fetch_all))
        assert listed >= alone[place]

    assert deep in alone[2] & alone[3]
    assert set(tree_blobs(root, store.get, fetch_all=fetch_all)) == {root, deep, chunk, index}


def test_a_root_that_is_a_whole_value_is_no_chunk() -> None:
    """What may stand in a root blob alone is refused in a list also where it was walked before."""
    store, reached = Blobs(), Reached()
    whole = store.put(_referring(_VALUE, 0, 0, 1, store.put(b"\1")))
    root = store.put(_referring(_LIST, 0, 1, len(store.stored[whole]), whole))

    assert len(set(tree_blobs(whole, store.get, reached=reached))) == 2
    with pytest.raises(BytesMalformed, match="container"):
        set(tree_blobs(root, store.get, reached=reached))


def test_a_chunk_that_begins_inside_an_object_is_another_one_elsewhere() -> None:
    """The same chunk behind an open string is content, and between objects is a reference."""
    store = Blobs()
    deep = store.put(b"deep")
    chunk = store.put(_referring(_BYTES, 0, 0, 4, deep))
    size = len(store.stored[chunk])
    opened = store.put(bytes((0xC4, size)))
    hidden = store.put(_referring(_LIST, 0, 1, size + 2, opened, chunk))
    shown = store.put(_referring(_LIST, 0, 1, size, chunk))
    reached = Reached()

    assert set(tree_blobs(hidden, store.get, reached=reached)) == {hidden, opened, chunk}
    assert set(tree_blobs(shown, store.get, reached=reached)) == {shown, deep}
    assert REGISTRY.decode_tree(shown, store.get) == [b"deep"]


def test_a_walk_that_failed_leaves_nothing_behind_that_is_not_so() -> None:
    """Whichever blob is missing the first time, a second walk with the same memory lists all."""
    store = Blobs()
    root = _encoded(_state(), store)
    whole = dict(store.stored)

    for name, blob in whole.items():
        reached = Reached()
        del store.stored[name]
        with pytest.raises(BlobMismatch, match=name.hex()[:12]):
            set(tree_blobs(root, store.get, reached=reached, fetch_all=True))
        store.stored[name] = blob
        set(tree_blobs(root, store.get, reached=reached, fetch_all=True))
        assert reached.blobs == set(whole)


def test_a_walk_that_nobody_finished_leaves_nothing_behind_that_is_not_so() -> None:
    """A walk may be left after any id, and the next one goes on where it ended."""
    store = Blobs()
    root = _encoded(_state(), store)

    for count in range(0, len(store.stored), 5):
        reached = Reached()
        first = list(itertools.islice(tree_blobs(root, store.get, reached=reached), count))
        rest = list(tree_blobs(root, store.get, reached=reached))
        assert sorted([*first, *rest]) == sorted(store.stored)


def test_what_was_listed_is_fetched_when_all_is_asked_for() -> None:
    """A memory of ids does not keep a later walk from fetching what the first did not."""
    store, reached = Watched(), Reached()
    root = _encoded({"text": ["x" * 100_000]}, store)
    set(tree_blobs(root, store.get, reached=reached))
    store.asked.clear()

    assert not list(tree_blobs(root, store.get, reached=reached, fetch_all=True))
    assert set(store.asked) == set(store.stored)


def test_memory_does_not_follow_the_size_of_the_tree() -> None:
    """Streams are never joined, only stepped through."""
    store = Blobs()
    numbers = list(range(400_000))
    root = _encoded({"numbers": numbers, "texts": [f"{n} " * 300 for n in range(2000)]}, store)
    size = sum(map(len, store.stored.values()))

    tracemalloc.start()
    try:
        for _ in tree_blobs(root, store.get, fetch_all=True):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size > 4_000_000
    assert peak < size / 4


def test_containers_in_one_another_are_no_depth_of_the_walk() -> None:
    """Lists, tuples and references as deep as a writer may nest them are stepped through."""
    value: Any = ["x" * 20_000]
    for number in range(20):
        value = (number, [value, "y" * 9000])
    for _ in range(250):
        value = [value]
    store = Blobs()

    root = _encoded(value, store)

    assert set(tree_blobs(root, store.get)) == set(store.stored)


def test_references_in_one_another_end_at_the_limit() -> None:
    """As many as a reader takes are followed, and one more is refused."""
    for limits in (Limits(), Limits(reference_depth_max=1)):
        store = Blobs()
        data = b"\1"
        for count in range(1, 9):
            data = _referring(_LIST, 0, 1, len(data), store.put(data))
            root = store.put(data)
            whole = store.put(_referring(_VALUE, 0, 0, len(data), root))
            for place, name in enumerate((root, whole)):
                if count <= limits.reference_depth_max + 1:
                    listed = set(tree_blobs(name, store.get, limits=limits))
                    assert len(listed) == count + 1 + place
                else:
                    with pytest.raises(DecodeLimitExceeded, match="reference_depth_max"):
                        set(tree_blobs(name, store.get, limits=limits))


def test_blobs_that_name_themselves_are_refused() -> None:
    """A `get` that lies can make a circle; the walk ends all the same."""
    name = bytes(32)
    for blob in (
        _referring(_LIST, 0, 1, 49, name),
        _referring(_LIST, 12, 1, 49, name),
        _referring(_VALUE, 0, 0, 49, name),
        _referring(_LIST, 0, 1, 49, name) * 1000,
    ):
        with pytest.raises(DecodeError):
            set(tree_blobs(name, _always(blob)))


def test_a_tree_that_names_the_same_blobs_again_and_again_is_walked_once() -> None:
    """A thousand references in each of a thousand, five deep, cost five blobs."""
    store = Watched()
    data = b"\1"
    for _ in range(5):
        name = store.put(data)
        data = _referring(_LIST, 0, data.count(b"\xc7") or 1, len(data), name) * 1000
    root = store.put(b"\xdd\x00\x00\x03\xe8" + data)
    began = time.thread_time()

    found = set(tree_blobs(root, store.get))

    assert found == set(store.stored)
    assert len(store.asked) == 6
    assert time.thread_time() - began < 5


def test_an_index_that_names_one_blob_a_million_times_is_walked_once() -> None:
    """Ids that repeat cost a look each, and more of them than fit the length are refused."""
    store = Watched()
    chunk = store.put(b"a" * 64)
    index = store.put(chunk * 1024)
    above = store.put(index * 1024)
    total = 64 << 20

    root = store.put(_referring(_BYTES, 2, 0, total, above))
    assert set(tree_blobs(root, store.get, fetch_all=True)) == set(store.stored)
    assert len(store.asked) == 4
    root = store.put(_referring(_BYTES, 2, 0, 1000, above))
    with pytest.raises(BytesMalformed, match="at most 16 chunks"):
        set(tree_blobs(root, store.get))


def test_ids_are_counted_over_all_index_blobs_of_a_level() -> None:
    """Many index blobs do not name more chunks than one of them could."""
    store = Blobs()
    chunks = [store.put(b"%04d" % n * 16) for n in range(20)]
    index = [store.put(b"".join(chunks[at : at + 4])) for at in range(0, 20, 4)]

    root = store.put(_referring(_BYTES, 1, 0, 20 * 64, *index))
    assert set(tree_blobs(root, store.get)) == {root, *index, *chunks}
    root = store.put(_referring(_BYTES, 1, 0, 18 * 64, *index))
    with pytest.raises(BytesMalformed, match="at most 19 chunks"):
        set(tree_blobs(root, store.get))


def test_no_more_chunks_are_fetched_than_the_length_allows() -> None:
    """A stream that is longer than it says is left as soon as that is seen."""
    store = Watched()
    chunks = [store.put(b"%04d" % n * 1000) for n in range(50)]
    root = store.put(_referring(_LIST, 0, 9, 4100, *chunks))

    with pytest.raises(BytesMalformed, match="expected 4100 bytes"):
        set(tree_blobs(root, store.get))
    assert len(store.asked) == 3


def test_small_chunks_are_not_remembered_for_every_state() -> None:
    """States without number would fill the memory, so only chunks worth it are kept with theirs."""
    store, reached = Blobs(), Reached()
    chunk = store.put(b"\1" * 300)
    openers = [store.put(b"\xc5" + size.to_bytes(2, "big")) for size in range(1, 301)]
    parts = [_referring(_LIST, 0, 9, 303, name, chunk) for name in openers]
    root = store.put(b"\xdc\x01\x2c" + b"".join(parts))

    assert len(set(tree_blobs(root, store.get, reached=reached))) == 302
    assert len(reached.passed(fetch_all=False)) == 301


def test_one_chunk_from_many_states_is_paid_for_by_its_bytes() -> None:
    """A chunk that is scanned from another place each time counts against the value's bytes."""
    store = Blobs()
    chunk = store.put(b"\1" * 60_000)
    openers = [store.put(b"\xc5" + size.to_bytes(2, "big")) for size in range(40)]
    parts = [_referring(_LIST, 0, 9, 60_003, name, chunk) for name in openers]
    root = store.put(b"\xdc\x00\x28" + b"".join(parts))
    limits = Limits(value_bytes_max=1_000_000)

    assert len(set(tree_blobs(root, store.get))) == 42
    with pytest.raises(DecodeLimitExceeded, match="value_bytes_max"):
        set(tree_blobs(root, store.get, limits=limits))


_CHUNK = b"\1\2\3"
_NAME = Blobs().put(_CHUNK)


@pytest.mark.parametrize(
    ("root", "error", "match"),
    [
        (b"", BytesMalformed, "it is empty"),
        (b"\xc1", BytesMalformed, "c1"),
        (b"\x91\xda\x00", BytesMalformed, "found fewer"),
        (b"\x91\xa5abc", BytesMalformed, "found fewer"),
        (b"\xc7\x05\x06\x90", BytesMalformed, "in all"),
        (extension(40, b"a"), UnknownType, "found 40"),
        (extension(2, b""), BytesMalformed, "in all|a stream"),
        (extension(2, bytes(13)), BytesMalformed, "a stream"),
        (extension(2, bytes(14)), BytesMalformed, "multiple of 32"),
        (b"\x91" + extension(2, bytes(16)), BytesMalformed, "multiple of 32"),
        (_referring(9, 0, 0, 3, _NAME), BytesMalformed, "a stream"),
        (_referring(_LIST, 0, 3, 3, _NAME + b"x"), BytesMalformed, "multiple of 32"),
        (_referring(_LIST, 13, 3, 3, _NAME), DecodeLimitExceeded, "tree_levels_max"),
        (_referring(_LIST, 0, 3, 1 << 40, _NAME), DecodeLimitExceeded, "value_bytes_max"),
        (_referring(_LIST, 0, 3, 2, _NAME), BytesMalformed, "expected 2 bytes"),
        (_referring(_LIST, 0, 3, 4, _NAME), BytesMalformed, "expected 4 bytes"),
        (_referring(_LIST, 0, 6, 5, _NAME, _NAME), BytesMalformed, "expected 5 bytes"),
        (_referring(_BYTES, 0, 0, 1, _NAME, _NAME), BytesMalformed, "at most 1 chunks"),
        (_referring(_TEXT, 0, 3, 3, _NAME), BytesMalformed, "no members"),
        (_referring(_LIST, 1, 3, 3, _NAME), BytesMalformed, "multiple of 32"),
        (b"\x91" + _referring(_VALUE, 0, 0, 3, _NAME), BytesMalformed, "container"),
        (_referring(_VALUE, 0, 0, 4, _NAME), BytesMalformed, "expected 4 bytes"),
        (_referring(_VALUE, 0, 0, 1, bytes(32)), BlobMismatch, "it is missing"),
        (_referring(_MAP, 0, 1, 1, bytes(32)), BlobMismatch, "it is missing"),
    ],
    ids=lambda part: part.hex()[:20] if isinstance(part, bytes) else None,
)
def test_a_tree_that_no_reader_accepts_is_refused(
    root: bytes, error: type[DecodeError], match: str
) -> None:
    """Roots, references and streams that break the format give the error that a reader gives."""
    store = Blobs()
    store.put(_CHUNK)
    name = store.put(root)

    with pytest.raises(error, match=match):
        set(tree_blobs(name, store.get))
    with pytest.raises(DecodeError):
        REGISTRY.decode_tree(name, store.get)


@pytest.mark.parametrize("total", [2, 4])
def test_bytes_of_another_length_are_refused_where_they_are_fetched(total: int) -> None:
    """What the ids alone cannot show is shown by fetching all."""
    store = Blobs()
    root = store.put(_referring(_BYTES, 0, 0, total, store.put(b"abc")))

    assert len(set(tree_blobs(root, store.get))) == 2
    with pytest.raises(BytesMalformed, match=f"expected {total} bytes"):
        set(tree_blobs(root, store.get, fetch_all=True))


def test_an_empty_chunk_is_refused() -> None:
    """A chunk has bytes, or naming it would cost nothing."""
    store = Blobs()
    root = store.put(_referring(_LIST, 0, 1, 1, store.put(b""), store.put(b"\1")))

    with pytest.raises(BytesMalformed):
        set(tree_blobs(root, store.get))


def test_a_blob_beyond_the_limit_or_of_another_type_is_refused() -> None:
    """What `get` returns is bytes, of no more than a blob may have."""
    answers: list[tuple[Any, type[DecodeError]]] = [
        (bytes((1 << 16) + 1), DecodeLimitExceeded),
        (bytearray(b"\1"), BlobMismatch),
        (None, BlobMismatch),
    ]

    for answer, error in answers:
        with pytest.raises(error):
            set(tree_blobs(bytes(32), _always(answer), limits=Limits(blob_bytes_max=1 << 16)))


def test_a_store_that_fails_fails_with_its_own_error() -> None:
    """Errors of `get` are not renamed."""

    def get(_: object) -> bytes:
        raise StorageUnavailable("planted")

    with pytest.raises(StorageUnavailable, match="planted"):
        set(tree_blobs(bytes(32), get))


@pytest.mark.parametrize("root", [b"", b"x" * 31, "ab" * 32, None, 7])
def test_a_root_that_is_no_digest_is_refused_at_once(root: Any) -> None:
    """The call itself raises, not the first step of the walk."""
    with pytest.raises(UsageError):
        tree_blobs(root, Blobs().get)


def test_chunks_as_long_as_a_blob_may_be_are_listed_in_their_pieces() -> None:
    """A member that is longer than a blob may be is cut within, wherever that is."""
    registry = Registry(limits=Limits(blob_bytes_max=1 << 16, reference_depth_max=1))
    store = Blobs()
    value = [["a" * 500, {"b": "c" * 200_000}] * 2, "d" * 70_000, [["e" * 30_000] * 9] * 3]
    root = registry.encode_tree(value, store.put)
    assert isinstance(root, bytes)

    assert set(tree_blobs(root, store.get, limits=registry.limits)) == set(store.stored)
