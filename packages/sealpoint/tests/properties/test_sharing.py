# SPDX-License-Identifier: Apache-2.0
"""A change writes little more than what changed."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.application import Message, Step, make_registry
from tests.blobs import Blobs

REGISTRY = make_registry()
_KIB = 1024


def _random_text(source: random.Random, length: int) -> str:
    return "".join(source.choices("abcdefghijklmnopqrstuvwxyz      ", k=length))


def _messages(count: int) -> list[dict[str, str]]:
    source = random.Random(1)  # noqa: S311 # test data
    return [{"role": "user", "content": _random_text(source, 1000)} for _ in range(count)]


def _written(before: Any, after: Any) -> int:
    """How many bytes the second of two values writes once the first is stored."""
    blobs = Blobs()
    REGISTRY.encode_tree(before, blobs.put)
    blobs.written_bytes = 0
    root = REGISTRY.encode_tree(after, blobs.put)
    assert REGISTRY.encode(REGISTRY.decode_tree(root, blobs.get)) == REGISTRY.encode(after)
    return blobs.written_bytes


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda messages: messages, id="bare"),
        pytest.param(
            lambda messages: {"messages": messages, "step": len(messages)}, id="in a dict"
        ),
        pytest.param(lambda messages: Step("history", messages), id="in a dataclass"),
        pytest.param(
            lambda messages: [Message(text=each["content"]) for each in messages], id="of models"
        ),
    ],
)
def test_a_growing_history_writes_at_most_three_times_its_content(
    wrap: Callable[[Any], Any],
) -> None:
    """A list of 1 KB messages that grows one by one to 400 writes at most 3 times its content."""
    messages = _messages(400)
    content = sum(len(each["content"]) for each in messages)
    blobs = Blobs()

    for length in range(1, 401):
        REGISTRY.encode_tree(wrap(messages[:length]), blobs.put)

    assert blobs.written_bytes <= 3 * content


@pytest.mark.parametrize("place", [0, 1, 5000, 9998, 10_000])
def test_an_element_inserted_among_ten_thousand_writes_under_64_kib(place: int) -> None:
    """Inserting one element anywhere in 10,000 writes the element and a short path."""
    before = [f"element {number} of many" for number in range(10_000)]
    after = [*before[:place], "a new one", *before[place:]]

    assert _written(before, after) < 64 * _KIB


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda number: {"id": number, "text": "x" * (number % 80)}, id="dicts"),
        pytest.param(lambda number: number * number, id="ints"),
        pytest.param(lambda number: number / 7, id="floats"),
        pytest.param(lambda number: (number, str(number)), id="tuples"),
        pytest.param(lambda number: Step(str(number), None), id="dataclasses"),
        pytest.param(lambda _: 0, id="equal ints"),
        pytest.param(lambda _: "same text every time", id="equal texts"),
    ],
)
def test_an_insert_writes_little_whatever_the_elements_are(make: Callable[[int], Any]) -> None:
    """Inserting in the middle of 10,000 elements of one kind writes under 64 KiB."""
    before = [make(number) for number in range(10_000)]
    after = [*before[:5000], make(123_456), *before[5000:]]

    assert _written(before, after) < 64 * _KIB
    assert _written({"list": before}, {"list": after}) < 64 * _KIB


def test_an_edit_of_one_element_writes_little() -> None:
    """Changing one of 400 messages of 1 KB writes under 64 KiB."""
    before = _messages(400)
    after = [*before]
    after[200] = {"role": "user", "content": "edited"}

    assert _written(before, after) < 64 * _KIB


def test_an_edit_of_one_item_of_a_dict_writes_little() -> None:
    """Changing, adding or removing one of 10,000 items of a dict writes under 64 KiB."""
    before = {f"key {number}": f"value {number} of many" for number in range(10_000)}
    removed = {key: item for key, item in before.items() if key != "key 5000"}

    assert _written(before, {**before, "key 5000": "edited"}) < 64 * _KIB
    assert _written(before, {**before, "key 10000": "added"}) < 64 * _KIB
    assert _written(before, removed) < 64 * _KIB


@pytest.mark.parametrize("place", [0, 500_000, 1_000_000])
def test_an_insert_in_a_long_byte_string_writes_little(place: int) -> None:
    """Inserting into 1 MB of bytes writes under 128 KiB."""
    before = random.Random(2).randbytes(1_000_000)  # noqa: S311 # test data
    after = before[:place] + b"new bytes" + before[place:]

    assert _written(before, after) < 128 * _KIB
    assert _written({"file": before}, {"file": after}) < 128 * _KIB


def test_an_insert_in_a_long_text_writes_little() -> None:
    """Inserting into a text of 1 MB writes under 128 KiB."""
    before = _random_text(random.Random(3), 1_000_000)  # noqa: S311 # test data
    after = before[:500_000] + "new words" + before[500_000:]

    assert _written(before, after) < 128 * _KIB
    assert _written({"document": before}, {"document": after}) < 128 * _KIB


def test_what_did_not_change_is_not_written_at_all() -> None:
    """The same value a second time writes nothing."""
    state = {"messages": _messages(50), "bytes": bytes(100_000)}

    assert _written(state, state) == 0


def test_another_seed_moves_the_boundaries_and_not_the_value() -> None:
    """Two stores with different seeds cut in different places and hold the same value."""
    blobs, others = Blobs(), Blobs()
    state = [f"element {number} of many" for number in range(10_000)]
    one = REGISTRY.encode_tree(state, blobs.put, seed=b"one")
    other = REGISTRY.encode_tree(state, others.put, seed=b"other")

    assert one != other
    assert not set(blobs.stored) & set(others.stored)
    assert REGISTRY.decode_tree(one, blobs.get) == REGISTRY.decode_tree(other, others.get)
