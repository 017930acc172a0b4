# SPDX-License-Identifier: Apache-2.0
"""Small pickles for huge trees: nested deeply, shared many times, or inside themselves."""

import pytest

from sealpoint.errors import ModelLimitExceeded, ModelMalformed
from sealpoint.limits import MODEL_DEPTH_MAX, MODEL_NODES_MAX
from tests.pt_files import ours, pickled, saved, stock


def _depth(value: object) -> int:
    depth = 0
    while isinstance(value, list | tuple):
        depth += 1
        value = value[0] if value else None
    return depth


def test_nesting_without_end_is_refused() -> None:
    """Torch returns a list nested 100,000 deep, on which a copy dies; here nothing."""
    data = pickled(b"]" * 100_000 + b"a" * 99_999)
    loaded = stock(data)

    assert _depth(loaded) == 100_000
    _dismantle(loaded)
    with pytest.raises(ModelLimitExceeded, match=f"nested more than {MODEL_DEPTH_MAX} deep"):
        ours(data)


def _dismantle(value: list[object]) -> None:
    """Take it apart from the top, since freeing it as a whole would recurse."""
    while value:
        inner = value.pop()
        assert isinstance(inner, list)
        value = inner


@pytest.mark.parametrize(
    "program",
    [b"(" * 300 + b"t" * 300, b"N" + b"\x85" * 300, b"](" * 300 + b"e" * 300],
    ids=["marks", "tuples", "lists"],
)
def test_every_way_to_nest_is_counted(program: bytes) -> None:
    """Tuples, lists and open marks are all bounded."""
    with pytest.raises(ModelLimitExceeded, match="deep"):
        ours(pickled(program))


def test_shared_values_are_counted_wherever_they_are_used() -> None:
    """Torch builds 10 ** 9 values out of 600 bytes, to be walked by whoever compares or saves."""
    program = b"Nq\x00"
    for index in range(9):
        program += b"(" + (b"h" + bytes([index])) * 10 + b"tq" + bytes([index + 1])
    # Nothing can be dropped from the stack, so one more tuple holds all levels.
    data = pickled(b"(" + program + b"t")
    loaded = stock(data)

    assert len(data) < 1500
    assert len(loaded[-1]) == 10
    with pytest.raises(ModelLimitExceeded, match=f"more than {MODEL_NODES_MAX} values"):
        ours(data)


def test_list_inside_itself_loads() -> None:
    """Pickles of objects with links to their parents are honest; both readers see the same."""
    data = pickled(b"]q\x00h\x00a")

    assert _is_cycle(stock(data))
    assert _is_cycle(ours(data))


def _is_cycle(value: list[object]) -> bool:
    return value[0] is value


def test_container_that_changes_after_use_is_refused() -> None:
    """A set is made of a list that then grows: what is made must be what torch makes."""
    data = pickled(b"(]q\x00K\x01ac__builtin__\nset\n(h\x00tRh\x00K\x02at")

    assert stock(data) == ([1, 2], {1}, [1, 2])
    with pytest.raises(ModelMalformed, match="no change of a container that was used"):
        ours(data)


def test_honest_nesting_loads() -> None:
    """The control: a hundred levels, and a value used twice, load with both and are equal."""
    shared = [1, 2]
    value: object = [shared, shared]
    for _ in range(100):
        value = [value]
    data = saved(value)

    assert ours(data) == stock(data)
