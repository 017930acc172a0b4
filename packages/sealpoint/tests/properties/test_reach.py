# SPDX-License-Identifier: Apache-2.0
"""The blobs that a tree is said to reach are those that were put, and those that a reader fetches.

A pruned store keeps what is listed and nothing else, so one id too few is lost state.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sealpoint import Limits
from sealpoint.codec import Reached, tree_blobs
from sealpoint.codec._wire_format import REFERENCE, BlobId
from sealpoint.errors import SealpointError
from tests import strategies
from tests.application import Loose, Message, Pair, Record, Slotted, Step, make_registry
from tests.arrays import ARRAYS, np, torch
from tests.blobs import Blobs
from tests.effort import examples
from tests.wire import extension

_MANY = 1 << 30
_WIDE = Limits(fraction_keys_max=_MANY, costly_values_max=_MANY)  # one value many times is no flood
_SMALL_BLOBS = Limits(blob_bytes_max=1 << 16)
REGISTRY = make_registry(limits=_WIDE)
SMALL_BLOBS = make_registry(limits=_SMALL_BLOBS)


def _distinct(number: int) -> str:
    return f"{number * 7919} " + "x" * (number % 37)


def _among(value: Any, count: int) -> list[Any]:
    """A list of texts with the value among them up to three times, since encoding it takes time."""
    return [value if number % 200 == 0 else _distinct(number) for number in range(count)]


def _message(value: Any, count: int) -> Message:
    message = Message(text=_distinct(count) * count)
    message._draft = _among(value, count)
    return message


# Each makes something long out of a value and a number up to 600: a reference, or many.
_LENGTHENED: list[Callable[[Any, int], Any]] = [
    _among,
    _message,
    lambda value, count: [[each, number] for number, each in enumerate(_among(value, count))],
    lambda value, count: {_distinct(n): [each] for n, each in enumerate(_among(value, count))},
    lambda value, count: {(n,): [each] for n, each in enumerate(_among(value, count))},
    lambda value, count: (_among(value, count), value),
    lambda value, count: deque(_among(value, count), 700),
    lambda value, count: OrderedDict(enumerate(_among(value, count))),
    lambda value, count: defaultdict(list, enumerate(_among(value, count))),
    lambda value, count: [{_distinct(n) for n in range(count)}, value],
    lambda value, count: [frozenset(range(0, count * 90_000, 30_011)), value],
    lambda value, count: slice(_among(value, count), _distinct(count) * count, None),
    lambda value, count: [value, _distinct(count) * count * 3],
    lambda value, count: [value, (_distinct(count) * count * 3).encode()],
    lambda value, count: [value, "\ud800" + _distinct(count) * count * 2],
    lambda value, count: [value, 1 << (count * 700), *range(count * 9)],
    lambda value, count: Step(_distinct(count) * count, _among(value, count)),
    lambda value, count: Slotted([value, _distinct(count) * count], _among(value, count)),
    lambda value, count: Record("a", _among(value, count)),
    lambda value, count: Loose(_among(value, count), _distinct(count) * count * 2),
    lambda value, count: Pair(_among(value, count), {"a": _distinct(count) * count}),
]
if ARRAYS:
    _LENGTHENED.append(lambda v, count: [np.arange(count * 20), v, torch.arange(count * 10)])


@st.composite
def long_values(draw: st.DrawFn) -> Any:
    """Any value inside of up to four long ones in one another."""
    value = draw(strategies.values())
    for make in draw(st.lists(st.sampled_from(_LENGTHENED), min_size=1, max_size=4)):
        value = make(value, draw(st.just(600) | st.integers(1, 600)))
    return value


def _root(value: Any, blobs: Blobs, registry: Any = REGISTRY) -> bytes:
    root = registry.encode_tree(value, blobs.put)
    assert isinstance(root, bytes)
    return root


def _fetched(root: bytes, blobs: Blobs) -> set[bytes]:
    """What a reader asks for."""
    asked: set[bytes] = set()

    def get(name: BlobId) -> bytes:
        assert isinstance(name, bytes)
        asked.add(name)
        return blobs.get(name)

    REGISTRY.decode_tree(root, get)
    return asked


def _check_listed(root: bytes, blobs: Blobs, limits: Limits | None = None) -> None:
    bounds = Limits() if limits is None else limits
    asked: list[bytes] = []

    def get(name: BlobId) -> bytes:
        assert isinstance(name, bytes)
        asked.append(name)
        return blobs.get(name)

    listed = list(tree_blobs(root, get, limits=bounds))
    assert len(listed) == len(set(listed))
    assert set(asked) <= set(listed)
    assert set(listed) == _fetched(root, blobs)
    asked.clear()
    assert list(tree_blobs(root, get, limits=bounds, fetch_all=True)) == listed
    assert set(asked) == set(listed)


@given(long_values())
@settings(max_examples=examples(120), deadline=None)
def test_what_was_put_is_listed_and_is_what_a_reader_fetches(value: Any) -> None:
    """Whatever the value and its types, the list is complete and holds nothing else."""
    blobs = Blobs()
    root = _root(value, blobs)

    assert set(tree_blobs(root, blobs.get)) == set(blobs.stored)
    _check_listed(root, blobs)


@given(strategies.values(), st.integers(1, 5))
@settings(max_examples=examples(30), deadline=None)
def test_small_blobs_are_listed_too(value: Any, count: int) -> None:
    """The same holds where long members are cut into pieces, and for what is one blob."""
    blobs = Blobs()
    root = _root([[value, "a" * 9000, b"b" * 30_000] * count] * 3, blobs, SMALL_BLOBS)

    assert set(tree_blobs(root, blobs.get, limits=_SMALL_BLOBS)) == set(blobs.stored)
    _check_listed(root, blobs, _SMALL_BLOBS)


def _cut(data: bytes, stream: int, count: int, blobs: Blobs, draw: Any) -> bytes:
    """A reference to chunks that are cut anywhere, some below index blobs."""
    size = draw(st.integers(1 + len(data) // 150, max(2, len(data) // 3)))
    levels = 0
    ids = [blobs.put(data[at : at + size]) for at in range(0, len(data), size)]
    while len(ids) > 1 and size >= 64 and draw(st.booleans()):
        wide = draw(st.integers(2, 9))
        ids = [blobs.put(b"".join(ids[at : at + wide])) for at in range(0, len(ids), wide)]
        levels += 1
    return extension(2, REFERENCE.pack(stream, levels, count, len(data)) + b"".join(ids))


@given(long_values(), st.lists(strategies.values(), max_size=4), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_tree_that_another_writer_cut_is_listed(
    value: Any, others: list[Any], data: st.DataObject
) -> None:
    """Where the cuts lie is the writer's business: in an object, in a reference, in its header."""
    blobs = Blobs()
    members = [blobs.stored[_root(each, blobs)] for each in [*others, value, *others]]
    whole = [each for each in members if each[:1] < b"\xc7" or each[2:4] != b"\2\0"]
    inner = _cut(b"".join(whole), 1, len(whole), blobs, data.draw) if whole else b"\xc0"
    around = b"\x93" + inner + b"\xa1a" + inner
    root = blobs.put(_cut(around, 0, 0, blobs, data.draw) if data.draw(st.booleans()) else around)

    try:
        fetched = _fetched(root, blobs)
    except SealpointError:
        fetched = set()  # one reference too deep, most often
    try:
        listed = set(tree_blobs(root, blobs.get))
    except SealpointError:
        assert not fetched
        return
    assert not fetched or listed == fetched


@given(
    st.lists(long_values(), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=6),
)
@settings(max_examples=examples(20), deadline=None)
def test_trees_that_share_a_memory_list_together_what_each_lists_alone(
    values: list[Any], edits: list[tuple[int, int]]
) -> None:
    """What an earlier walk reached is left out, and never anything else."""
    blobs, reached = Blobs(), Reached()
    state: dict[str, Any] = {"values": values, "log": [], "numbers": []}
    listed: list[bytes] = []
    every: set[bytes] = set()
    for kind, number in [(0, 0), *edits]:
        if kind < 4:
            state["log"] += [_distinct(number + n) for n in range(number * 9)]
        elif kind < 8:
            state["numbers"] += range(number * 1000, number * 1050)
        else:
            state["values"] = [*values, bytes(number) * 1000]
        root = _root(state, blobs)
        listed += tree_blobs(root, blobs.get, reached=reached)
        every |= set(tree_blobs(root, blobs.get))
        assert reached.blobs == every

    assert len(listed) == len(set(listed))
    assert set(listed) == every == set(blobs.stored)


@given(long_values(), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_a_hostile_tree_is_listed_as_a_reader_fetches_it_or_refused(
    value: Any, data: st.DataObject
) -> None:
    """A changed blob under a right name gives an error of ours, or what a reader fetches too."""
    blobs = Blobs()
    root = blobs.stored[_root([value, bytes(20_000)], blobs)]
    blob = data.draw(st.sampled_from([root, *sorted(blobs.stored.values())]))
    place = data.draw(st.integers(0, len(blob) - 1))
    changed = data.draw(st.binary(max_size=4) | st.just(blob[: place % 50]))
    forged = blobs.put(blob[:place] + changed + blob[place + 1 :])
    name = blobs.put(root.replace(blobs.put(blob), forged)) if blob != root else forged

    try:
        listed = set(tree_blobs(name, blobs.get))
    except SealpointError:
        listed = set()
    try:
        fetched = _fetched(name, blobs)
    except SealpointError:
        return
    assert listed == fetched
